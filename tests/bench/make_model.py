"""makes the small convolution network of the bench: make_model.py FILE"""
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS = [3, 16, 32, 32, 64]
random = numpy.random.default_rng(1)
nodes, weights, last = [], [], "x"
for i, (before, after) in enumerate(zip(CHANNELS, CHANNELS[1:])):
    weights.append(numpy_helper.from_array(random.standard_normal((after, before, 3, 3)).astype("f4") * 0.1, f"w{i}"))
    nodes.append(helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
    nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
    last = f"r{i}"
nodes.append(helper.make_node("GlobalAveragePool", [last], ["y"]))
graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 64, 64])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CHANNELS[-1], 1, 1])], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
