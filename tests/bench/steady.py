"""a loop in its steady state; prints the median ns of a round

   steady.py numpy|torch|MODEL.onnx [TENS OF ROUNDS]
"""
import statistics
import sys
import time


def matmul():
    import numpy
    a, b = numpy.random.rand(384, 384).astype("f4"), numpy.random.rand(384, 384).astype("f4")
    return lambda: (a @ b).sum()


def inference(path):
    import numpy
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    x = numpy.random.rand(1, 3, 64, 64).astype("f4")
    return lambda: session.run(None, {"x": x})


def training():
    """forward, backward and optimizer, of layers of a usual size"""
    import torch
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, labels = torch.randn(256, 512), torch.randint(0, 10, (256,))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), labels).backward()
        optimizer.step()
    return step


step = {"numpy": matmul, "torch": training}.get(sys.argv[1], lambda: inference(sys.argv[1]))()
for _ in range(100):
    step()
times = []
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 60):
    start = time.perf_counter_ns()
    for _ in range(10):
        step()
    times.append((time.perf_counter_ns() - start) / 10)
print("ns", statistics.median(times))
