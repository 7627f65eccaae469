"""metal.py - the preset `metal`: libraries with Metal's objects, against what they themselves know.

   cmt, ggml-metal, tt-metal, mlx-c   stand-ins (tests/workloads), written from the public headers: none of them can run here
   MLX, wgpu                          the real libraries, of the tests' Python environment
"""
import os

from harness import case, check, same
from vulkan import WORKLOADS, client_python


def work(run, device):
    """all work on its queues, in the order of time"""
    return run.sql(f"""select s.name, s.category as kind, s.ts, s.ts + s.dur as end, t.name as track,
        extract_arg(s.arg_set_id, 'debug.size_x') as x, extract_arg(s.arg_set_id, 'debug.size_y') as y, extract_arg(s.arg_set_id, 'debug.size_z') as z,
        extract_arg(s.arg_set_id, 'debug.local_x') as lx, extract_arg(s.arg_set_id, 'debug.local_y') as ly, extract_arg(s.arg_set_id, 'debug.local_z') as lz,
        extract_arg(s.arg_set_id, 'debug.shared_by') as shared, extract_arg(s.arg_set_id, 'debug.observed_by_host') as observed,
        extract_arg(s.arg_set_id, 'debug.device_end') - extract_arg(s.arg_set_id, 'debug.device_start') as device_ns,
        extract_arg(s.arg_set_id, 'debug.bytes') as bytes, extract_arg(s.arg_set_id, 'debug.unfinished') as unfinished
        from slice s join track t on s.track_id = t.id join track g on t.parent_id = g.id
        where g.name = '{device}' and t.name like 'queue %' and s.category in ('kernel', 'copy', 'fill', 'read', 'write') order by s.ts, s.id""")


def labels(run):
    """(label, bytes) of the memory that was taken"""
    rows = run.sql("""select extract_arg(arg_set_id, 'debug.name') as label, extract_arg(arg_set_id, 'debug.size') as bytes
        from slice where category = 'allocation' order by ts""")
    return [(row["label"], row["bytes"]) for row in rows]


def arrows(run, device):
    """{(from, to): how many} from calls to its work"""
    rows = run.sql(f"""select a.name as a, b.name as b, count(*) as n from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id
        join track t on b.track_id = t.id join track g on t.parent_id = g.id where g.name = '{device}' and t.name like 'queue %' group by 1, 2""")
    return {(row["a"], row["b"]): row["n"] for row in rows}


def calls(run):
    return {row["name"]: row["calls"] for row in run.summary["probes"] if row["preset"] == "metal"}


def pool(run, name):
    found = [pool for pool in run.summary["pools"] if pool["name"] == name]
    same(f"pools called {name} among {[pool['name'] for pool in run.summary['pools']]}", len(found), 1)
    return found[0]


def stand_in(box, library, user):
    """the program with its library beside it"""
    made = box.compile("workloads/" + library, "lib" + library.rsplit(".", 1)[0] + ".so")
    return box.compile("workloads/" + user, None, [made, "-Wl,-rpath," + os.path.dirname(made)])


def compared(box, words, lines=None, **how):
    """a run whose output is that of the program alone; lines: of which kinds, if not all are the same in each run"""
    plain, run = box.native(words, **how), box.run(words, **how)
    kept = [[line for line in out.splitlines() if not lines or line.startswith(lines)] for out in (plain.stdout, run.stdout)]
    same("output", (run.status, kept[1]), (plain.status, kept[0]))
    same(f"status: {run.stderr[-300:]}", run.status, 0)
    box.check_no_loss(run.summary)
    return run


# ---- cmt ------------------------------------------------------------------------------------

CLOCK_RATE = 0.99998            # of the stand-in's device


def cmt_run(box):
    return compared(box, [stand_in(box, "cmt.c", "cmt_user.c")], ("expect", "too much", "took"))


def cmt_books(run):
    """(name, queue, command buffer, start, end): what the stand-in really did"""
    lines = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("ran ")]
    return [(name, queue, int(commands), int(start), int(end)) for name, queue, commands, start, end in lines]


def cmt_buffers(run):
    """{number: (start, end)} of the command buffers that the stand-in ran"""
    lines = [map(int, line.split()[1:]) for line in run.stdout.splitlines() if line.startswith("buffer ")]
    return {number: (start, end) for number, start, end in lines}


@case("metal: cmt's buffers and heaps, by the device's own count, with their labels")
def cmt_memory(box):
    run = cmt_run(box)
    box.check_expected(run)
    same("labels", labels(run), [("weights", 100000), ("scratch", 3 << 20), (None, 1 << 20), ("pool", 2 << 20)])
    inside = run.sql("""select display_value as value from args where key like 'debug.bound%' and display_value like '%activations%'""")
    check("what lies in the heap", inside)
    device = next(device for device in run.summary["devices"] if device["title"] == "metal")
    same("owners", [(row["bytes"], row["owner"]) for row in device["peak"]["by_stack"]],
         [(size, "take_memory") for size in (3 << 20, 2 << 20, 1 << 20, 100000)])
    same("memory of its own", (device["host_memory"], device["objects"]), (False, 1))
    with_devices = run.summary["peak_with_devices"]["bytes"]
    check(f"{with_devices} bytes with the device's", device["peak_bytes"] <= with_devices <= device["peak_bytes"] + run.summary["peak"]["bytes"])
    curve = [row["value"] for row in run.sql("""select c.value from counter c join track t on c.track_id = t.id
        join track g on t.parent_id = g.id where g.name = 'metal' order by c.ts""")]
    same("curve", (max(curve), curve[-1]), (device["peak_bytes"], device["live_at_exit_bytes"]))
    same("calls", {name: calls(run)[name] for name in ("mtRetain", "mtDeviceNewBufferWithLength", "mtHeapNewBufferWithLength")},
         {"mtRetain": 1, "mtDeviceNewBufferWithLength": 3, "mtHeapNewBufferWithLength": 1})
    same("losses", [run.summary["losses"][key] for key in ("probe_frees", "probe_values", "unknown_ids")], [0, 0, 0])


@case("metal: cmt's kernels have their pipelines' names, their sizes and the device's times")
def cmt_work(box):
    run = cmt_run(box)
    books, seen = cmt_books(run), [row for row in work(run, "metal") if not row["unfinished"]]
    same("work by name and queue", sorted((row["name"], row["track"].split(": ")[1]) for row in seen), sorted(book[:2] for book in books))
    same("sizes", {(row["name"], *(row[key] for key in ("x", "y", "z", "lx", "ly", "lz"))) for row in seen if row["kind"] == "kernel"},
         {("relu", 16, 2, 1, 32, 4, 2), ("relu", 3, 1, 1, 8, 1, 1), ("relu", 9, 9, 9, 1, 1, 1), ("softmax", 16, 4, 1, 64, 2, 1),
          ("softmax", 5, 1, 1, 1, 1, 1)})
    same("bytes", [(row["name"], row["kind"], row["bytes"]) for row in seen if row["kind"] != "kernel"], [("copy", "copy", 100000), ("fill", "fill", 50000)])
    clock = next(device for device in run.summary["devices"] if device["title"] == "metal")["clock"]
    alone, shared = [row for row in seen if row["device_ns"] and not row["shared"]], [row for row in seen if row["shared"]]
    same("timed alone, together, by the host", (len(alone), [row["shared"] for row in shared], len([row for row in seen if row["observed"]])),
         (5, [4] * 4, 3))
    for row, number in [(row, i + 1) for i, row in enumerate(alone)] + [(row, 6) for row in shared]:
        start, end = cmt_buffers(run)[number]
        check(f"{row['name']} took {row['device_ns']} ns, the device says {end - start}", abs(row["device_ns"] - (end - start) * CLOCK_RATE) < 10)
        check(f"{row['name']} from {row['ts']} to {row['end']}, really {start} to {end}",
              max(abs(row["ts"] - start), abs(row["end"] - end)) < clock["residual_ns"] + 100_000)
    for row, book in zip([row for row in seen if row["observed"]], books[9:]):
        check("a kernel ran outside of its span", row["name"] == book[0] and row["ts"] <= book[3] and book[4] <= row["end"])


@case("metal: cmt's commits lead to their work, and waits are waits")
def cmt_waits(box):
    run = cmt_run(box)
    same("arrows", arrows(run, "metal"), {
        ("mtCommandBufferCommit", "relu"): 7, ("mtCommandBufferCommit", "softmax"): 3, ("mtCommandBufferCommit", "copy"): 1,
        ("mtCommandBufferCommit", "fill"): 1, ("mtComputeCommandEncoderDispatchThreadgroups_threadsPerThreadgroup", "relu"): 1})
    same("never committed", run.summary["losses"]["works_unfinished"], 1)
    waits = {row["name"]: row for row in run.summary["waits"]["by_name"]}
    same("waits", {name: row["calls"] for name, row in waits.items()}, {"mtCommandBufferWaitUntilCompleted": 7, "mtCommandBufferStatus": 1})
    waited = next(int(line.split()[1]) for line in run.stdout.splitlines() if line.startswith("waited "))
    blocked = waits["mtCommandBufferWaitUntilCompleted"]["total_ns"]
    check(f"blocked for {blocked} ns, the program says {waited} ns", 0.5 * waited < blocked <= waited)
    kernels = {row["name"]: row for row in run.summary["kernels"]}
    same("kernels", {name: (row["calls"], row["observed"], row["shared"], row["unfinished"]) for name, row in kernels.items()},
         {"relu": (7, 1, 1, 1), "softmax": (3, 2, 1, 0)})


# ---- MLX ------------------------------------------------------------------------------------

MLX_PRODUCTS, MLX_STEPS = 4, 3          # of metal_mlx.py
MLX_LARGEST = 256 * 32 * 4              # what a training step makes: arrays are freed by other threads than they are made by


@case("metal: MLX's memory by its own count, its evaluations, waits and tasks")
def mlx(box):
    run = compared(box, [client_python(), os.path.join(WORKLOADS, "metal_mlx.py")], "(")
    told = {key: int(value) for key, value in run.expected}
    seen = pool(run, "mlx")
    same("live at the end", seen["live_at_exit_bytes"], told["pools.mlx.live_at_exit_bytes"])
    peak = told["pools.mlx.peak_bytes"]
    check(f"peak {seen['peak_bytes']}, MLX says {peak}", peak - MLX_LARGEST <= seen["peak_bytes"] <= peak)
    same("in the host's memory", (seen["kind"], run.summary.get("peak_with_devices", run.summary["peak"])["bytes"]), ("library", run.summary["peak"]["bytes"]))
    same("losses", [run.summary["losses"][key] for key in ("probe_frees", "probe_values", "unknown_ids")], [0, 0, 0])
    owners = {row["owner"].split("::")[0] for device in run.summary["devices"] if device["title"] == "mlx" for row in device["peak"]["by_stack"]}
    check(f"owners: {owners}", "mlx" in owners)
    counts = calls(run)
    same("calls", {name: counts[name] for name in ("mlx::eval", "mlx::async_eval", "mlx::core::synchronize", "mlx::matmul", "mlx::addmm")},
         {"mlx::eval": MLX_PRODUCTS + 3, "mlx::async_eval": MLX_STEPS, "mlx::core::synchronize": MLX_STEPS,
          "mlx::matmul": MLX_PRODUCTS + 3 * MLX_STEPS, "mlx::addmm": 2 * MLX_STEPS})
    kernels = {row["name"]: row["calls"] for row in run.summary["kernels"]}
    shapes = {"256x64x128": MLX_PRODUCTS, "256x32x128": MLX_STEPS, "256x10x32": MLX_STEPS}
    same("products on its threads", {shape: kernels.get("sgemm " + shape) for shape in shapes}, shapes)
    tasks = run.value("select count(*) from slice where name = 'mlx task' and extract_arg(arg_set_id, 'debug.runs') like '%matmul_dispatch<float>%'")
    check(f"{tasks} tasks that multiply", tasks >= MLX_PRODUCTS + 5 * MLX_STEPS)
    waits = {row["name"]: row["calls"] for row in run.summary["waits"]["by_name"]}
    same("waits", waits, {"mlx::core::array::wait": MLX_PRODUCTS + 3, "mlx::core::synchronize": MLX_STEPS})


# ---- wgpu -----------------------------------------------------------------------------------

@case("metal: wgpu's buffers, kernels, copies and waits, and Vulkan's below them")
def wgpu(box):
    run = compared(box, [client_python(), os.path.join(WORKLOADS, "metal_wgpu.py")], timeout=120)
    made = [("data", 4096 * 4), ("the other one", 1 << 20), (None, 4096 * 4)]
    rows = run.sql("""select extract_arg(arg_set_id, 'debug.name') as label, extract_arg(arg_set_id, 'debug.size') as bytes
        from slice where category = 'allocation' and name = 'wgpuDeviceCreateBuffer' order by ts""")
    same("buffers", [(row["label"], row["bytes"]) for row in rows][:2], made[:2])
    same("the one it is read back by", [row["bytes"] for row in rows][2:], [4096 * 4])
    seen = pool(run, "wgpu")
    same("their pool", (seen["kind"], seen["allocs"], seen["frees"], seen["peak_bytes"], seen["live_at_exit_bytes"]),
         ("library", 3, 3, sum(size for _, size in made), 0))
    same("counted once", run.summary.get("peak_with_devices", run.summary["peak"])["bytes"], run.summary["peak"]["bytes"])
    done = work(run, "wgpu")
    same("kernels", sorted((row["name"], row["x"], row["y"], row["z"]) for row in done if row["kind"] == "kernel"),
         [("scale", 64, 1, 1)] * 4 + [("shift", 8, 8, 1)])
    same("copies", [(row["kind"], row["bytes"]) for row in done if row["kind"] != "kernel"], [("copy", 8192), ("fill", 4096), ("copy", 4096 * 4)])
    check("not over", not any(row["unfinished"] for row in done))
    empty = run.sql("select ts from slice where name = 'wgpuQueueSubmit' and extract_arg(arg_set_id, 'debug.buffers') = 0")
    same("a submit of nothing begins nothing", (len(empty), [row["name"] for row in done if row["ts"] == empty[0]["ts"]]), (1, []))
    same("arrows", arrows(run, "wgpu"), {("wgpuQueueSubmit", "scale"): 4, ("wgpuQueueSubmit", "shift"): 1, ("wgpuQueueSubmit", "copy"): 2,
                                         ("wgpuQueueSubmit", "fill"): 1})
    below = [device for device in run.summary["devices"] if device["api"] == "Vulkan"]
    same("devices of Vulkan", len(below), 1)
    inner = [row for row in work(run, below[0]["title"]) if row["kind"] == "kernel"]
    same("Vulkan's kernels", sorted(row["name"] for row in inner), ["scale"] * 4 + ["shift"])
    for name in ("scale", "shift"):
        pairs = zip([row for row in done if row["name"] == name], [row for row in inner if row["name"] == name])
        check(f"{name} ran on Vulkan outside of wgpu's span", all(row["ts"] <= below["ts"] and below["end"] <= row["end"] for row, below in pairs))
    written = [row for row in run.summary["transfers"] if row["device"] == "wgpu" and row["kind"] == "write"]
    same("written", [(row["calls"], row["bytes"]) for row in written], [(2, 4096 * 4 + 16 * 8 * 4)])
    same("values that could not be read", run.summary["losses"]["probe_values"], 0)
    waits = {row["name"]: row["total_ns"] for row in run.summary["waits"]["by_name"]}
    slices = run.value("select sum(dur) from slice where category = 'wait' and name = 'wgpuDevicePoll'")
    inside = run.value("""select ifnull(sum(i.dur), 0) from slice i join slice o on i.track_id = o.track_id and i.ts >= o.ts and i.ts + i.dur <= o.ts + o.dur
        where i.category = 'wait' and o.category = 'wait' and o.name = 'wgpuDevicePoll' and i.name != o.name""")
    same("what Vulkan waited for is not counted again", waits["wgpuDevicePoll"], slices - inside)


# ---- stand-ins on a device of little wit (standin.h) ----------------------------------------

def standin_work(run, device, sizes):
    """Each kernel ran inside of the span that is shown for it, and has the sizes that were asked for."""
    books = [(name, int(start), int(end)) for _, name, start, end in (line.split() for line in run.stdout.splitlines() if line.startswith("ran "))]
    seen = work(run, device)
    same("work", sorted(row["name"] for row in seen), sorted(book[0] for book in books))
    same("sizes", {(row["name"], *(row[key] for key in ("x", "y", "z", "lx", "ly", "lz"))) for row in seen}, sizes)
    for name in {book[0] for book in books}:
        pairs = list(zip([row for row in seen if row["name"] == name], [book for book in books if book[0] == name]))
        check(f"{name} ran outside of its span: {pairs}", all(row["ts"] <= start and end <= row["end"] for row, (_, start, end) in pairs))
    return len(books)


@case("metal: ggml-metal's buffers, pipelines and graphs")
def ggml_metal(box):
    run = compared(box, [stand_in(box, "ggml_metal.c", "ggml_metal_user.c")], "done")
    same("kernels", standin_work(run, "ggml-metal", {("kernel_mul_mm_f32_f32", 32, 16, 1, 128, 1, 1), ("kernel_add", 256, 1, 3, 64, 2, 2)}), 6)
    same("arrows", arrows(run, "ggml-metal"), {
        ("ggml_metal_encoder_dispatch_threadgroups", "kernel_mul_mm_f32_f32"): 3, ("ggml_metal_encoder_dispatch_threadgroups", "kernel_add"): 3})
    inside = run.value("""select count(*) from slice i join slice o on i.track_id = o.track_id and i.ts >= o.ts and i.ts + i.dur <= o.ts + o.dur
        where i.name = 'ggml_metal_encoder_dispatch_threadgroups' and o.name = 'ggml_metal_graph_compute' and o.category = 'submit'""")
    same("dispatches inside of the submits", inside, 6)
    memory = pool(run, "ggml-metal")
    same("memory", (memory["peak_bytes"], memory["allocs"], memory["frees"], memory["live_at_exit_bytes"]), (10 << 20, 2, 1, 8 << 20))
    same("transfers", {row["kind"]: (row["calls"], row["bytes"]) for row in run.summary["transfers"]}, {"write": (1, 1 << 20), "read": (3, 3000)})
    same("waits", [(row["name"], row["calls"]) for row in run.summary["waits"]["by_name"]], [("ggml_metal_synchronize", 3)])


@case("metal: mlx-c's evaluations and kernels of the program's own")
def mlx_c(box):
    run = compared(box, [stand_in(box, "mlx_c.c", "mlx_c_user.c")], "active")
    same("kernels", standin_work(run, "mlx", {("gelu", 4, 3, 2, 256, 2, 1)}), 3)
    counts = calls(run)
    same("calls", {name: counts.get(name) for name in ("mlx_matmul", "mlx_eval", "mlx_async_eval", "mlx_synchronize", "capture run.gputrace")},
         {"mlx_matmul": 3, "mlx_eval": 1, "mlx_async_eval": 3, "mlx_synchronize": 3, "capture run.gputrace": 1})
    same("active memory", [row["value"] for row in run.sql("""select c.value from counter c join track t on c.track_id = t.id
        where t.name = 'mlx active memory' order by c.ts""")], [4096, 8192, 12288])


@case("metal: tt-metal's workloads and buffers, by their mangled names")
def tt_metal(box):
    program = stand_in(box, "tt_metal.cc", "tt_metal_user.cc")
    run = compared(box, [program], "at")
    long = "compute/a_file_with_a_name_that_is_not_kept_inside_of_the_string.cpp"
    books = [line.split()[1] for line in run.stdout.splitlines() if line.startswith("ran ")]
    seen = work(run, "tt-metal")
    same("workloads", sorted(row["name"][:63] for row in seen), sorted(books))
    same("their kernels' files", {row["name"] for row in seen}, {"compute/bmm.cpp", long})
    memory = pool(run, "tt-metal")
    same("memory", (memory["kind"], memory["peak_bytes"], memory["allocs"], memory["frees"], memory["live_at_exit_bytes"]),
         ("device", 7 << 20, 2, 1, 6 << 20))
    same("waits", [(row["name"], row["calls"]) for row in run.summary["waits"]["by_name"]], [("tt::tt_metal::distributed::Finish", 3)])
    check("not over", not any(row["unfinished"] for row in seen))
    # the names that ttnn 0.81.1 has
    symbols = box.native(["nm", "-D", "--defined-only", os.path.join(box.tools.programs, "libtt_metal.so")]).stdout
    for name in TT_NAMES:
        check(f"the stand-in lacks {name}", f" {name}\n" in symbols)


TT_NAMES = [
    "_ZN2tt8tt_metal11distributed12MeshWorkload11add_programERKNS1_19MeshCoordinateRangeEONS0_7ProgramE",
    "_ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb",
    "_ZN2tt8tt_metal11distributed6FinishERNS1_16MeshCommandQueueESt4spanIKN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEELm18446744073709551615EE",
    "_ZN2tt8tt_metal12CreateKernelERNS0_7ProgramERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKSt7variantIJNS_7xy_pairENS0_9CoreRangeE"
    "NS0_12CoreRangeSetEEERKSB_IJNS0_18DataMovementConfigENS0_13ComputeConfigEEE",
    "_ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE",
    "_ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE",
    "_ZNK2tt8tt_metal6Buffer12aligned_sizeEv",
]


def register(tools):
    pass
