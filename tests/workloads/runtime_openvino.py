"""runtime_openvino.py - a tiny model on OpenVINO's CPU device: through its Python module, which calls C++, then through its C API."""
import ctypes
import glob
import os
import sys

import numpy
import openvino
from openvino import opset13 as op

INFERS, STARTS, C_INFERS, C_STARTS, LONG = 5, 3, 4, 2, 12


def model():
    x = op.parameter([1, 64], numpy.float32, name="x")
    return openvino.Model([op.relu(op.matmul(x, op.constant(numpy.full((64, 32), 0.5, numpy.float32)), False, False))], [x], "tiny")


def long_model():
    """some ten milliseconds of work, so that there is time to look whether it is through"""
    y = x = op.parameter([1024, 1024], numpy.float32, name="x")
    for _ in range(LONG):
        y = op.matmul(y, op.constant(numpy.ones((1024, 1024), numpy.float32)), False, False)
    return openvino.Model([y], [x], "long")


def look_at_long():
    request = openvino.Core().compile_model(long_model(), "CPU").create_infer_request()
    request.start_async()
    looks = [request.wait_for(1) for _ in range(3)]
    request.wait()
    print("too early", looks, "then", request.wait_for(1))


def by_cxx(made):
    request = openvino.Core().compile_model(made, "CPU").create_infer_request()
    for i in range(INFERS):
        sum_of = request.infer([numpy.full((1, 64), i, numpy.float32)])[0].sum()
    for i in range(STARTS):
        request.start_async()
        request.wait()
    try:
        request.infer([numpy.zeros((3, 5), numpy.float32)])     # not its shape
    except RuntimeError:
        print("refused")
    print(sum_of, request.get_output_tensor().data.sum())


def by_c(path):
    library = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(openvino.__file__), "libs", "libopenvino_c.so*"))[0])
    core, read, compiled, request = (ctypes.c_void_p() for _ in range(4))
    codes = [library.ov_core_create(ctypes.byref(core)), library.ov_core_read_model(core, path.encode(), None, ctypes.byref(read)),
             library.ov_core_compile_model(core, read, b"CPU", ctypes.c_size_t(0), ctypes.byref(compiled)),
             library.ov_compiled_model_create_infer_request(compiled, ctypes.byref(request))]
    codes += [library.ov_infer_request_infer(request) for _ in range(C_INFERS)]
    for _ in range(C_STARTS):
        codes += [library.ov_infer_request_start_async(request), library.ov_infer_request_wait(request)]
    codes.append(library.ov_core_compile_model_from_file(core, path.encode(), b"CPU", ctypes.c_size_t(0), ctypes.byref(compiled)))
    codes.append(library.ov_infer_request_wait_for(request, ctypes.c_int64(1)))
    print("codes", set(codes), "no such file:", library.ov_core_read_model(core, b"/none.xml", None, ctypes.byref(read)) != 0)


look_at_long()
by_cxx(model())
openvino.save_model(model(), sys.argv[1], compress_to_fp16=False)
by_c(sys.argv[1])
