"""a loop in its steady state: steady.py numpy | steady.py MODEL.onnx; prints the median ns of a round"""
import statistics
import sys
import time

import numpy


def matmul():
    a, b = numpy.random.rand(384, 384).astype("f4"), numpy.random.rand(384, 384).astype("f4")
    return lambda: (a @ b).sum()


def inference(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    x = numpy.random.rand(1, 3, 64, 64).astype("f4")
    return lambda: session.run(None, {"x": x})


step = matmul() if sys.argv[1] == "numpy" else inference(sys.argv[1])
for _ in range(100):
    step()
times = []
for _ in range(60):
    start = time.perf_counter_ns()
    for _ in range(10):
        step()
    times.append((time.perf_counter_ns() - start) / 10)
print("ns", statistics.median(times))
