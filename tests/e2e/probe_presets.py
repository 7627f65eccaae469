"""probe_presets.py - the shipped rows on real libraries: names, shapes and counts are known from what the program asked for."""
import os

from harness import case, check, same
from vulkan import WORKLOADS, client_python

NUMPY = """
import numpy
a, b = numpy.ones((64, 32), "f4"), numpy.ones((32, 48), "f4")
for _ in range(7):
    c = a @ b
d = numpy.eye(20) * 2
for _ in range(3):
    e = d @ d
x = [numpy.linalg.solve(d, numpy.ones(20)) for _ in range(2)]
print(c.sum(), e.sum(), x[0].sum())
"""


@case("presets: numpy's matrix products have their shapes and operations")
def numpy(box):
    words = [client_python(), "-c", NUMPY]
    plain, run = box.native(words), box.run(words)
    same("output", (run.status, run.stdout), (plain.status, plain.stdout))
    rows = {row["name"]: (row["calls"], row["flops"], row["bytes"]) for row in run.summary["probes"] if row["preset"] == "blas"}
    same("products", {name: rows[name] for name in ("sgemm 64x48x32", "dgemm 20x20x20")}, {
        "sgemm 64x48x32": (7, 7 * 2.0 * 64 * 48 * 32, 7 * 4 * (64 * 32 + 32 * 48 + 64 * 48)),
        "dgemm 20x20x20": (3, 3 * 2.0 * 20 ** 3, 3 * 8 * 3 * 20 * 20),
    })
    same("solved", rows["dgesv 20x20 1"][0], 2)
    kernels = {kernel["name"]: kernel for kernel in run.summary["kernels"]}
    check(f"GFLOP/s: {kernels['sgemm 64x48x32']['gflops']}", kernels["sgemm 64x48x32"]["gflops"] > 0)
    slices = run.sql("select name, count(*) as n from slice where name like '%gemm %' group by name order by name")
    same("spans", [(row["name"], row["n"]) for row in slices], [("dgemm 20x20x20", 3), ("sgemm 64x48x32", 7)])


@case("presets: OpenMP's regions, when asked for")
def openmp(box):
    program = box.compile("workloads/regions.c")
    plain, run = box.native([program]), box.run([program], "--probes=+openmp")
    same("output", (run.status, run.stdout), (plain.status, plain.stdout))
    same("regions", sorted(row["calls"] for row in run.summary["probes"] if row["preset"] == "openmp"), [4, 25])
    quiet = box.run([program])
    same("not asked for", [row for row in quiet.summary["probes"] if row["preset"] == "openmp"], [])


@case("presets: wgpu's buffers and dispatches, over Vulkan's")
def wgpu(box):
    run = box.run([client_python(), os.path.join(WORKLOADS, "vk_wgpu.py")])
    same("status", run.status, 0)
    pool = [pool for pool in run.summary["pools"] if pool["name"] == "wgpu"]
    same("the buffer and what it is read back by", [(p["peak_bytes"], p["allocs"], p["live_at_exit_bytes"]) for p in pool], [(2 * 4096 * 4, 2, 0)])
    calls = {row["name"]: row["calls"] for row in run.summary["probes"] if row["preset"] == "metal"}
    same("dispatches and submits, one of which is the read-back's", (calls["wgpuComputePassEncoderDispatchWorkgroups"], calls["wgpuQueueSubmit"]), (3, 4))


def register(tools):
    pass
