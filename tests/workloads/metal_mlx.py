"""metal_mlx.py - MLX on the CPU: matrix products, then training steps of a small network. It prints what MLX itself counts, and leaves
without freeing, so that what is live then is live at the end."""
import os
import sys

import mlx.core as mx
import mlx.nn as nn

PRODUCTS, STEPS = 4, 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(128, 32), nn.Linear(32, 10)

    def __call__(self, x):
        return self.second(nn.relu(self.first(x)))


def loss(net, x):
    return mx.mean(mx.square(net(x)))


mx.random.seed(5)
a, b = mx.random.normal((256, 128)), mx.random.normal((128, 64))
mx.eval(a, b)
for _ in range(PRODUCTS):
    c = a @ b
    mx.eval(c)

net = Net()
step = nn.value_and_grad(net, loss)
mx.eval(net.parameters())
for _ in range(STEPS):
    value, gradients = step(net, a)
    mx.async_eval(value, gradients)
    mx.synchronize()
    net.update({name: {key: net[name][key] - 0.1 * gradients[name][key] for key in part} for name, part in gradients.items()})
mx.eval(net.parameters())

print(c.shape, value.shape, mx.get_peak_memory() >= mx.get_active_memory())
print("expect pools.mlx.peak_bytes", mx.get_peak_memory())
print("expect pools.mlx.live_at_exit_bytes", mx.get_active_memory())
sys.stdout.flush()
os._exit(0)
