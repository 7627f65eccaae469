"""iree_runtime.py MODULE DEVICE ROUNDS CALLS - IREE's Python runtime: a module loaded so often, called so often each time."""
import sys

import iree.runtime
import numpy

path, device, rounds, calls = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
a = numpy.arange(256 * 256, dtype=numpy.float32).reshape(256, 256) % 7 / 50
total = 0.0
for _ in range(rounds):
    config = iree.runtime.Config(device)
    context = iree.runtime.SystemContext(config=config)
    with open(path, "rb") as file:
        context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, file.read()))
    for _ in range(calls):
        soft, power = context.modules.module["main"](a, a)
        total += float(soft.to_host().sum() + power.to_host().max())
    del soft, power, context, config
print(f"total {total:.4f}")
