"""accelerators.py - the presets cuda, hip and nccl, on stand-ins for these libraries: no machine of ours has such a card.

The stand-ins (tests/workloads/gpu_*.c, nccl.c) have the public headers' functions. A thread is their card; they keep books of what it
really did and when, and of its memory.
"""
import collections
import os
import subprocess

from harness import case, check, same

COPIES = {"h2d": "write", "d2h": "read", "d2d": "copy", "fill": "fill"}
# file, name, flags. As in the real ones, calls inside of a library are not seen, but for "layers", where a copy is seen to be made of another.
LIBRARIES = {"cuda": ("gpu_runtime.c", "libcudart.so.12", ["-Wl,-Bsymbolic"]), "layers": ("gpu_runtime.c", "libcudart.so.11", []),
             "per thread": ("gpu_runtime.c", "libcudart.so.13", ["-DPER_THREAD", "-Wl,-Bsymbolic"]),
             "hip per thread": ("gpu_runtime.c", "libamdhip64.so.7", ["-DHIP", "-DPER_THREAD", "-Wl,-Bsymbolic"]),
             "hip": ("gpu_runtime.c", "libamdhip64.so.6", ["-DHIP", "-Wl,-Bsymbolic"]),
             "driver per thread": ("gpu_driver.c", "libcuda.so.2", ["-DPER_THREAD"]),
             "driver": ("gpu_driver.c", "libcuda.so.1", []), "nccl": ("nccl.c", "libnccl.so.2", []), "rccl": ("nccl.c", "librccl.so.1", ["-DHIP"]),
             "blas": ("gpu_blas.c", "libcublas.so.12", [])}
WAYS = {"lazy": ["-Wl,-z,lazy"], "full RELRO, no PLT": ["-fno-plt", "-Wl,-z,relro,-z,now"]}


def library(box, kind):
    source, name, flags = LIBRARIES[kind]
    return box.compile("workloads/" + source, name, [*flags, f"-Wl,-soname,{name}"])


def linked(box, source, name, kinds, flags=()):
    files = [library(box, kind) for kind in kinds]
    return box.compile("workloads/" + source, name, [*flags, *files, "-Wl,-rpath," + os.path.dirname(files[0])])


def found(box, kind, flags=()):
    """the program that finds each function by dlsym"""
    return box.compile("workloads/gpu_user.c", f"gpu_user-{kind}-dlsym", [*flags, f'-DBY_DLSYM="{library(box, kind)}"'])


# ---- the library's books --------------------------------------------------------------------

Item = collections.namedtuple("Item", "name stream bytes start end")


class Books:
    def __init__(self, run):
        lines = [line.split() for line in run.stdout.splitlines()]
        self.items = [Item(words[1], *map(int, words[2:])) for words in lines if words[0] == "ran"]
        self.memory = {words[1]: tuple(map(int, words[2:])) for words in lines if words[0] == "memory"}
        names = [item.name for item in self.items]
        readable = subprocess.run(["c++filt", "-p"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.split("\n")
        self.items = [item._replace(name=name) for item, name in zip(self.items, readable)]

    def kernels(self):
        return [item for item in self.items if item.name not in COPIES]

    def transfers(self):
        sums = {}
        for item in self.items:
            if item.name in COPIES:
                calls, size = sums.get(COPIES[item.name], (0, 0))
                sums[COPIES[item.name]] = (calls + 1, size + item.bytes)
        return sums


def recorded(box, program):
    """the run and the books of it; what the program says is the same without mlprof, but for times"""
    def without_times(run):
        return [line.split()[:4] if line.startswith("ran ") else line for line in run.stdout.splitlines()]

    plain, run = box.native([program]), box.run([program])
    same("output", (run.status, without_times(run), run.stderr), (0, without_times(plain), plain.stderr))
    box.check_no_loss(run.summary)
    same("losses", {key: value for key, value in run.summary["losses"].items() if value}, {})
    return run, Books(run)


def works(run):
    return run.sql("""select s.name, s.ts, s.ts + s.dur as end, s.category, t.name as track,
        extract_arg(s.arg_set_id, 'debug.observed_by_host') as observed, extract_arg(s.arg_set_id, 'debug.size_x') as x,
        extract_arg(s.arg_set_id, 'debug.size_y') as y, extract_arg(s.arg_set_id, 'debug.size_z') as z,
        extract_arg(s.arg_set_id, 'debug.local_x') as lx, extract_arg(s.arg_set_id, 'debug.local_z') as lz
        from slice s join track t on s.track_id = t.id where s.category in ('kernel', 'write', 'read', 'fill', 'copy') order by s.ts, s.id""")


def check_around(rows, items):
    """Each span, in order, holds what really ran; none is the device's own time."""
    same("pieces of work", [row["name"] for row in rows], [item.name for item in items])
    for row, item in zip(rows, items):
        check(f"{item} ran outside of {row}", row["ts"] <= item.start and item.end <= row["end"])
        check(f"not marked as the host's: {row}", row["observed"])


def pool(run, name):
    row = next(row for row in run.summary["pools"] if row["name"] == name)
    return row["live_at_exit_bytes"], row["peak_bytes"], row["allocs"], row["frees"]


def check_memory(run, books, api):
    same("device memory", pool(run, api), books.memory["device"])
    same("pinned memory", pool(run, api + " host"), books.memory["pinned"])
    peak = run.summary["peak_with_devices"]
    same("peak of host and device", (peak["bytes"], peak["device_bytes"]), (peak["host_bytes"] + books.memory["device"][1], books.memory["device"][1]))
    pinned, host = books.memory["pinned"][1], run.summary["peak"]["bytes"]
    check(f"pinned memory is the host's, once: {host}", pinned <= host < pinned + 100000)


# ---- CUDA's run-time and HIP ----------------------------------------------------------------

def check_run(box, program, api):
    run, books = recorded(box, program)
    call = lambda name: api + name
    rows = works(run)
    graph = [row for row in rows if row["name"].startswith("graph 0x")]
    same("graphs", len(graph), 1)
    # A graph is one piece of work here, of two kernels; one kernel nobody registered.
    inside = [item for item in books.kernels() if graph[0]["ts"] <= item.start and item.end <= graph[0]["end"]]
    same("kernels of the graph", [item.name for item in inside], ["relu", "relu"])
    kernels = [item._replace(name=item.name.replace("unregistered", "unseen_kernel")) for item in books.kernels() if item not in inside]
    for stream, track in ((0, ": default"), (1, ": compute"), (2, ": copies")):
        mine = [row for row in rows if row["category"] == "kernel" and row["track"].endswith(track) and row not in graph]
        last = kernels[-1:] if stream == 2 else []              # on a stream that lies where "copies" was
        check_around(mine, [item for item in kernels if item.stream == stream and item not in last])
    check_around([row for row in rows if row["category"] == "kernel" and ":" not in row["track"]], kernels[-1:])
    same("calls", {row["name"]: row["calls"] for row in run.summary["kernels"] if row not in graph and "0x" not in row["name"]},
         dict(collections.Counter(item.name for item in kernels)))
    same("transfers", {row["kind"]: (row["calls"], row["bytes"]) for row in run.summary["transfers"]}, books.transfers())
    same("sizes", {tuple(row[key] for key in ("name", "x", "y", "z", "lx", "lz")) for row in rows if row["category"] == "kernel" and row not in graph},
         {("saxpy", 100, 20, 3, 32, 2), ("relu", 100, 20, 3, 32, 2), ("unseen_kernel", 1, 1, 1, 1, 1)} |
         ({("relu", 7, 6, 5, 4, 2)} if api == "cuda" else set()))
    check_memory(run, books, api)
    return run, books, rows, call


def check_event(run, books, rows, call):
    """The event lies between two kernels: the first one ends with the wait for it, the second does not."""
    wait = run.sql(f"select ts, ts + dur as end from slice where name = '{call('EventSynchronize')}' order by ts")
    long = max(books.kernels(), key=lambda item: item.end - item.start)
    before = [item for item in books.kernels() if item.end <= long.start][-1]
    spans = {item: next(row for row in rows if row["name"] == item.name and row["ts"] <= item.start and item.end <= row["end"]) for item in (before, long)}
    same("ends with the event's wait", spans[before]["end"], wait[-1]["end"])
    check("ended by the event before it", spans[long]["end"] > long.end > wait[-1]["end"])
    same("an event that was never recorded is no wait for anything", [row for row in rows if row["end"] == wait[0]["end"]], [])


def check_calls(run, books, call):
    # Two kernels came from a graph, and with CUDA one was launched otherwise.
    kernels = len(books.kernels()) - 2 - (call("") == "cuda")
    calls = {row["name"]: (row["calls"], row["failed"]) for row in run.summary["probes"]}
    # One launch more failed; a free of nobody's memory fails, a free of nothing is none.
    same("launches", calls[call("LaunchKernel")], (kernels + 1, 1))
    same("memory calls", (calls[call("Malloc")], calls[call("Free")]), ((3, 1), (3, 1)))
    same("copies", calls[call("Memcpy")], (6, 1))
    arrows = run.sql("""select a.name as a, b.category as b, count(*) as n from flow f join slice a on f.slice_out = a.id
        join slice b on f.slice_in = b.id group by 1, 2 order by 1, 2""")
    seen = {row["a"]: row["n"] for row in arrows}
    same("arrows from launches to kernels", seen[call("LaunchKernel")], kernels)
    same("and from copies", (seen[call("MemcpyAsync")], seen[call("MemsetAsync")], seen[call("GraphLaunch")]), (4, 4, 1))


@case("accelerators: CUDA's run-time, linked: kernels, copies, events, graphs and memory against the card's books")
def cuda(box):
    for way, flags in WAYS.items():
        program = linked(box, "gpu_user.c", "gpu_user-cuda-" + way.split()[0], ["cuda"], flags)
        run, books, rows, call = check_run(box, program, "cuda")
        check_event(run, books, rows, call)
        check_calls(run, books, call)


@case("accelerators: CUDA's run-time by dlopen and dlsym")
def cuda_found(box):
    run, books, rows, call = check_run(box, found(box, "cuda"), "cuda")
    check_event(run, books, rows, call)
    check_calls(run, books, call)


@case("accelerators: CUDA's run-time and HIP by the names for threads with default streams of their own, linked and by dlsym")
def per_thread(box):
    for api, kind, flags in (("cuda", "per thread", ["-DPER_THREAD"]), ("hip", "hip per thread", ["-DPER_THREAD", "-DHIP"])):
        for program in (linked(box, "gpu_user.c", f"gpu_user-{api}-thread", [kind], flags), found(box, kind, flags)):
            run, books, rows, call = check_run(box, program, api)
            check_event(run, books, rows, call)
            calls = {row["name"]: (row["calls"], row["failed"]) for row in run.summary["probes"]}
            launch, copy = ("LaunchKernel_ptsz", "Memcpy_ptds") if api == "cuda" else ("LaunchKernel_spt", "Memcpy_spt")
            kernels = len(books.kernels()) - 2 - (api == "cuda")        # two of a graph, and one launched otherwise
            same("calls", (calls[call(launch)], calls[call(copy)]), ((kernels + 1, 1), (6, 1)))


@case("accelerators: a call inside of one that does the same is what counts, and it counts once")
def layers(box):
    run, books, rows, call = check_run(box, linked(box, "gpu_user.c", "gpu_user-layers", ["layers"]), "cuda")
    check_event(run, books, rows, call)
    calls = {row["name"]: row["calls"] for row in run.summary["probes"]}
    same("both are seen", (calls["cudaMemcpy"], calls["cudaMemcpyAsync"], calls["cudaMemsetAsync"], calls["cudaLaunchKernel"]), (6, 10, 5, 16))


@case("accelerators: HIP, linked and by dlsym")
def hip(box):
    for program in (linked(box, "gpu_user.c", "gpu_user-hip", ["hip"], ["-DHIP"]), found(box, "hip", ["-DHIP"])):
        run, books, rows, call = check_run(box, program, "hip")
        check_event(run, books, rows, call)
        check_calls(run, books, call)


# ---- CUDA's driver --------------------------------------------------------------------------

def check_driver(box, program):
    run, books = recorded(box, program)
    rows = works(run)
    add = "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    # A mangled name of more than 240 bytes is cut: the scope and the name are shown, and where it was cut.
    each = "at::native::elementwise_kernel<..." + ("_ZN2at6native18elementwise_kernelI" + "Li1000E" * 64)[:240][-24:] + ">"
    books.items = [item._replace(name=each) if item.name.startswith(each.split("<")[0]) else item for item in books.items]
    same("kernels", {item.name for item in books.kernels()}, {"triton::gemm<64>", "layer_norm", add, each})
    # Work of two streams: each is in order.
    for stream in (0, 1):
        mine = [row for row in rows if row["category"] == "kernel" and row["track"].endswith(": default") == (stream == 0)]
        check_around(mine, [item for item in books.kernels() if item.stream == stream])
    same("sizes", {tuple(row[key] for key in ("name", "x", "y", "z", "lx", "lz")) for row in rows if row["category"] == "kernel"},
         {("triton::gemm<64>", 3, 2, 1, 32, 2), ("layer_norm", 9, 8, 7, 6, 4), *((name, 1, 1, 1, 1, 1) for name in ("layer_norm", add, each))})
    same("transfers", {row["kind"]: (row["calls"], row["bytes"]) for row in run.summary["transfers"]}, books.transfers())
    check_memory(run, books, "cuda")


def over_driver(box):
    return [f'-DBY_GETTER="{library(box, "driver")}"']


@case("accelerators: CUDA's driver API, linked and through cuGetProcAddress: kernels named by their module")
def driver(box):
    check_driver(box, linked(box, "gpu_driver_user.c", "gpu_driver_user", ["driver"]))
    check_driver(box, box.compile("workloads/gpu_driver_user.c", "gpu_driver_user-getter", over_driver(box)))
    check_driver(box, linked(box, "gpu_driver_user.c", "gpu_driver_user-thread", ["driver per thread"], ["-DPER_THREAD"]))


@case("accelerators: what a probed run-time finds for itself is not told twice")
def over(box):
    below = box.compile("workloads/gpu_over.c", "libgpu_over.so", over_driver(box))
    run, books = recorded(box, box.compile("workloads/gpu_over_user.c", "gpu_over_user", [below, "-Wl,-rpath," + os.path.dirname(below)]))
    same("calls", {row["name"]: row["calls"] for row in run.summary["probes"]}, {"cudaMalloc": 2})
    same("memory", pool(run, "cuda"), books.memory["device"])


# ---- cuBLAS and cuDNN -----------------------------------------------------------------------

@case("accelerators: products of cuBLAS and a convolution of cuDNN are work of their streams, with their operations")
def blas(box):
    run, books = recorded(box, linked(box, "gpu_blas_user.c", "gpu_blas_user", ["blas", "cuda"]))
    rows = works(run)
    for stream in (0, 1):
        mine = [row for row in rows if row["track"].endswith(": default") == (stream == 0)]
        check_around(mine, [item._replace(name=item.name.replace(":", " ")) for item in books.items if item.stream == stream])
    same("operations", {row["name"]: (row["calls"], row["flops"]) for row in run.summary["kernels"] if row["flops"]},
         {"cublasSgemm 64x32x16": (3, 3 * 2.0 * 64 * 32 * 16), "cublasSgemm 8x8x8": (1, 2.0 * 8 ** 3), "cublasGemmStridedBatchedEx 10x4x5x6": (1, 2.0 * 10 * 4 * 5 * 6)})


# ---- less common functions ------------------------------------------------------------------

@case("accelerators: less common functions, as the headers declare them: kinds, bytes, streams, sizes, operations and memory")
def less_common(box):
    below = box.compile("workloads/gpu_rows.c", "libgpu_rows.so", ["-DLIBRARY", "-shared", "-fPIC"])
    run = box.run([box.compile("workloads/gpu_rows.c", "gpu_rows", [below, "-Wl,-rpath,$ORIGIN"])])
    same(f"status: {run.stderr[-300:]}", run.status, 0)
    said = [line.split() for line in run.stdout.splitlines()]
    works = [words for words in said if words[1] in ("kernel", *COPIES.values())]
    seen = run.sql("""select p.name as device, s.category as kind, s.name as name, t.name as track,
        ifnull(extract_arg(s.arg_set_id, 'debug.bytes'), 0) as bytes, ifnull(extract_arg(s.arg_set_id, 'debug.size_x'), 0) as x,
        ifnull(extract_arg(s.arg_set_id, 'debug.local_x'), 0) as lx, ifnull(extract_arg(s.arg_set_id, 'debug.flops'), 0) as flops
        from slice s join track t on s.track_id = t.id join track p on t.parent_id = p.id
        where s.category in ('kernel', 'write', 'read', 'fill', 'copy') order by s.ts, s.id""")
    same("works", [(row["device"], row["kind"], row["name"].replace(" ", ":"), row["bytes"], row["track"].split()[-1], row["x"], row["lx"], row["flops"]) for row in seen],
         [(*words[:3], int(words[3]), words[4], *map(int, words[5:]), *[0] * (8 - len(words))) for words in works])
    sizes = collections.defaultdict(lambda: [0, 0, 0])
    for api, what, size in (words for words in said if words[1] in ("memory", "freed")):
        book = sizes[api.replace(":", " ")]
        book[what == "freed"] += 1
        book[2] += int(size) * (1 if what == "memory" else -1)
    same("memory", {row["name"]: [row["allocs"], row["frees"], row["live_at_exit_bytes"]] for row in run.summary["pools"] if row["kind"] in ("library", "device")}, dict(sizes))
    same("losses", {key: count for key, count in run.summary["losses"].items() if count}, {})


# ---- NCCL -----------------------------------------------------------------------------------

def check_collectives(box, program, api):
    run, books = recorded(box, program)
    rows = [row for row in works(run) if row["category"] == "kernel"]
    check_around(rows, books.kernels())
    same("one track: the stream's", len({row["track"] for row in rows}), 1)
    theirs = collections.Counter()
    for item in books.items:
        theirs[item.name] += item.bytes
    kernels = {row["name"]: (row["device"], row["bytes"]) for row in run.summary["kernels"]}
    same("bytes", kernels, {name: (api, size) for name, size in theirs.items()})
    calls = {row["name"]: (row["calls"], row["failed"]) for row in run.summary["probes"]}
    same("calls", (calls["ncclAllReduce"], calls["ncclGroupEnd"], calls["ncclCommInitRank"]), ((12, 1), (1, 0), (1, 0)))


@case("accelerators: collectives of NCCL and RCCL run on the streams of CUDA and HIP, with their bytes")
def nccl(box):
    check_collectives(box, linked(box, "nccl_user.c", "nccl_user", ["nccl", "cuda"]), "cuda")
    check_collectives(box, linked(box, "nccl_user.c", "rccl_user", ["rccl", "hip"], ["-DHIP"]), "hip")


def register(tools):
    pass
