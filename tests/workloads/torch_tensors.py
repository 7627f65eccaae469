"""torch_tensors.py - tensors of known sizes, which are freed, kept, grown and shared; prints what torch's allocator must have seen.

   torch_tensors.py         ends with some alive
   torch_tensors.py base    the same program without them
"""
import os
import sys

import torch

MIB = 1 << 20


def tensors():
    kept = [torch.empty(n * MIB, dtype=torch.uint8) for n in (24, 16, 8)]
    view = kept[0].view(torch.float32)[:MIB].t()            # the same memory
    foreign = torch.frombuffer(bytearray(4 * MIB), dtype=torch.uint8)       # not torch's
    del kept[1]                                             # 32 MiB are left
    kept[1].resize_(20 * MIB)                               # a new block, for a moment beside the old one
    kept.append(torch.empty(1000, 7, dtype=torch.float64))
    print("expect", "pools.torch.peak_bytes", (24 + 8 + 20) * MIB)
    print("expect", "pools.torch.allocs", 5)
    print("expect", "pools.torch.frees", 2)
    print("expect", "pools.torch.live_at_exit_bytes", (24 + 20) * MIB + 1000 * 7 * 8)
    return kept, view, foreign


made = tensors() if len(sys.argv) == 1 else torch.empty(0)
sys.stdout.flush()
os._exit(0)
