"""torch_train.py - some steps of training on PyTorch.

   torch_train.py run       prints losses and weights; the steps lie between two calls of eye(), which nothing else calls
   torch_train.py books     the same under torch's own profiler: prints what it counted in the steps, as JSON
   torch_train.py nested    a backward pass that starts others inside of itself, so deep that the engine takes threads for it
"""
import collections
import json
import sys
import time

import torch

STEPS = 5
PAUSE = 0.05                    # the curve is thinned: what lasts so long is in it


def training():
    torch.manual_seed(1)
    layers = torch.nn
    net = layers.Sequential(layers.Conv2d(3, 8, 3, padding=1), layers.ReLU(), layers.Flatten(), layers.Linear(8 * 16 * 16, 64), layers.ReLU(),
                            layers.Linear(64, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(32, 3, 16, 16), torch.randint(0, 10, (32,))

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()
    return net, step


def run():
    net, step = training()
    before = torch.eye(2)
    time.sleep(PAUSE)
    losses = [step() for _ in range(STEPS)]
    time.sleep(PAUSE)
    after = torch.eye(2)
    print(before.sum().item(), after.sum().item())
    print([loss.hex() for loss in losses], [weight.double().sum().item().hex() for weight in net.parameters()])


def schemas():
    """what torch's own C++ calls an operator, and what its profiler does: add_Tensor is aten::add"""
    names = [(schema.name, schema.overload_name) for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("aten::")]
    return {name + ("_" + overload if overload else ""): name for name, overload in names}


def pairs_in(events, seen, around=None):
    """(what it is right inside of, name) of all events in `seen`, from the tree; the times of the others are too coarse to tell"""
    for event in events:
        name = event.name
        if name in seen:
            yield around, name
        yield from pairs_in(event.children, seen, name if name in seen else around)


def books():
    _, step = training()
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        for _ in range(STEPS):
            step()
    events = [event for event in profile.function_events if event.name != "[memory]"]
    seen = {e.name for e in events if e.name.startswith("aten::") or e.name.endswith(("Backward0", "AccumulateGrad"))}
    seen -= {name for name in seen if name.startswith("autograd::engine")}
    pairs = collections.Counter(pairs_in(profile.kineto_results.experimental_event_tree(), seen))
    moves = [e.nbytes() for e in sorted(profile.kineto_results.events(), key=lambda e: e.start_us()) if e.name() == "[memory]"]
    live = peak = 0
    for move in moves:
        live += move
        peak = max(peak, live)
    print(json.dumps({
        "calls": collections.Counter(e.name for e in events), "pairs": [[*pair, n] for pair, n in pairs.items()], "schemas": schemas(),
        "allocs": sum(move > 0 for move in moves), "bytes": sum(move for move in moves if move > 0), "live": live, "peak": peak,
    }))


class Deep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        if ctx.depth:
            with torch.enable_grad():
                Deep.apply(torch.ones(1, requires_grad=True), ctx.depth - 1).sum().backward()
        return gradient * 2, None


def nested():
    x = torch.ones(1, requires_grad=True)
    Deep.apply(x, 130).sum().backward()
    print(x.grad.item())


{"run": run, "books": books, "nested": nested}[sys.argv[1]]()
