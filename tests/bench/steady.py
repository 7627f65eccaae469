"""a loop in its steady state; prints the median ns of a round

   steady.py numpy|torch|transformer|MODEL.onnx [TENS OF ROUNDS]
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
    """forward, backward and optimizer, of layers so small that a step takes some milliseconds"""
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


def transformer():
    """the same of a small language model: 4 layers, 3.6 million parameters, 1024 tokens a step"""
    import torch
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(256, nhead=4, dim_feedforward=1024, batch_first=True)
    net = torch.nn.Sequential(torch.nn.Embedding(1000, 256), torch.nn.TransformerEncoder(layer, 4), torch.nn.Linear(256, 1000))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    words = torch.randint(0, 1000, (8, 128))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(words).flatten(0, 1), words.flatten()).backward()
        optimizer.step()
    return step


tens = int(sys.argv[2]) if len(sys.argv) > 2 else 60
step = {"numpy": matmul, "torch": training, "transformer": transformer}.get(sys.argv[1], lambda: inference(sys.argv[1]))()
for _ in range(min(100, 2 * tens)):
    step()
times = []
for _ in range(tens):
    start = time.perf_counter_ns()
    for _ in range(10):
        step()
    times.append((time.perf_counter_ns() - start) / 10)
print("ns", statistics.median(times))
