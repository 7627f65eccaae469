"""vk_ncnn.py - two layers by ncnn on Vulkan: vk_ncnn.py DIRECTORY"""
import os
import sys

import ncnn
import numpy

param, model = os.path.join(sys.argv[1], "net.param"), os.path.join(sys.argv[1], "net.bin")
with open(param, "w") as file:
    file.write("7767517\n3 3\nInput in0 0 1 in0\nPooling p0 1 1 in0 x 0=0 1=2 2=2\nReLU r0 1 1 x out\n")
open(model, "wb").close()
net = ncnn.Net()
net.opt.use_vulkan_compute = True
net.load_param(param)
net.load_model(model)
extractor = net.create_extractor()
extractor.input("in0", ncnn.Mat(numpy.linspace(-1, 1, 8 * 32 * 32).astype(numpy.float32).reshape(8, 32, 32)))
status, out = extractor.extract("out")
print(status, numpy.array(out).sum(), numpy.array(out).shape)
del extractor, out
net.clear()
del net
ncnn.destroy_gpu_instance()
