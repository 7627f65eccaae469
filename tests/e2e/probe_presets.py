"""probe_presets.py - the shipped rows on real libraries: names, shapes and counts are known from what the program asked for."""
from harness import case, check, same
from vulkan import client_python

NUMPY = """
import numpy
a, b = numpy.ones((64, 32), "f4"), numpy.ones((32, 48), "f4")
for _ in range(7):
    c = a @ b
d = numpy.eye(20) * 2
for _ in range(3):
    e = d @ d
large = numpy.ones((300, 300), "f4")
large @ large  # on some CPUs small ones need no buffer
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
    frames = [frame for stack in run.summary["peak"]["by_stack"] for frame in stack["frames"]]
    check("no block was allocated in a product", any("gemm" in frame["function"] for frame in frames))
    same("frames of mlprof", [frame for frame in frames if "libmlprof" in (frame["module"] or "")], [])
    slices = run.sql("select name, count(*) as n from slice where name like '%gemm %' group by name order by name")
    same("spans", [(row["name"], row["n"]) for row in slices], [("dgemm 20x20x20", 3), ("sgemm 300x300x300", 1), ("sgemm 64x48x32", 7)])


@case("presets: OpenMP's regions, when asked for")
def openmp(box):
    program = box.compile("workloads/regions.c")
    plain, run = box.native([program]), box.run([program], "--probes=+openmp")
    same("output", (run.status, run.stdout), (plain.status, plain.stdout))
    same("regions", sorted(row["calls"] for row in run.summary["probes"] if row["preset"] == "openmp"), [4, 25])
    quiet = box.run([program])
    same("not asked for", [row for row in quiet.summary["probes"] if row["preset"] == "openmp"], [])


def register(tools):
    pass
