"""opencl.py - OpenCL programs on PoCL: all ways in, times and memory against what the program knows itself.

What PoCL does not do (devices that fail, clocks that drift, unified memory) a stand-in does: workloads/opencl_driver.c.
"""
import collections
import glob
import os
import re
import shutil
import signal
import textwrap

from harness import PYTHON, case, check, same
from vulkan import client_python

OPEN = """cl = ctypes.CDLL("libOpenCL.so.1")
platform, device = ctypes.c_void_p(), ctypes.c_void_p()
assert cl.clGetPlatformIDs(1, ctypes.byref(platform), None) == 0
assert cl.clGetDeviceIDs(platform, ctypes.c_ulong(0xffffffff), 1, ctypes.byref(device), None) == 0
for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
    getattr(cl, name).restype = ctypes.c_void_p
context = ctypes.c_void_p(cl.clCreateContext(None, 1, ctypes.byref(device), None, None, None))
queue = ctypes.c_void_p(cl.clCreateCommandQueue(context, device, ctypes.c_ulong(0), None))
buffer = ctypes.c_void_p(cl.clCreateBuffer(context, ctypes.c_ulong(1), ctypes.c_size_t(4096), None, None))
data = (ctypes.c_char * 4096)()
"""

DLSYM = "import ctypes\n" + OPEN + """for i in range(5):
    assert cl.clEnqueueWriteBuffer(queue, buffer, 1, ctypes.c_size_t(0), ctypes.c_size_t(4096), data, 0, None, None) == 0
print("wrote", cl.clFinish(queue), cl.clReleaseMemObject(buffer))
"""

DLVSYM = """
import ctypes
cl, libc = ctypes.CDLL("libOpenCL.so.1"), ctypes.CDLL(None)
libc.dlvsym.restype = ctypes.c_void_p
finish = libc.dlvsym(ctypes.c_void_p(cl._handle), b"clFinish", b"OPENCL_1.0")
print(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(finish)(None))
"""


def work_of(run, name):
    """[(start, duration)] of a work's slices on the device's tracks"""
    return [(row["ts"], row["dur"]) for row in run.sql(f"""
        select s.ts, s.dur from slice s join track t on s.track_id = t.id
        where s.name = '{name}' and s.category like '%kernel%' order by s.ts""")]


@case("opencl: a kernel's times are the device's own")
def times(box):
    run = box.run([box.compile("workloads/opencl_truth.c")])
    box.check_expected(run)
    words = [line.split() for line in run.stdout.splitlines()]
    for _, name, calls, total in (w for w in words if w[0] == "kernel"):
        found = [k for k in run.summary["kernels"] if k["name"] == name]
        same(f"kernels called {name}", len(found), 1)
        same(f"calls of {name}", found[0]["calls"], int(calls))
        check(f"ns of {name}: {found[0]['total_ns']}, the device says {total}", abs(found[0]["total_ns"] - int(total)) <= int(total) / 1000 + 20 * int(calls))
        told = sorted((int(w[2]), int(w[3])) for w in words if w[0] == "work" and w[1] == name)
        drawn = work_of(run, name)
        same(f"slices of {name}", len(drawn), len(told))
        for i in range(1, len(told)):
            apart, seen = told[i][0] - told[0][0], drawn[i][0] - drawn[0][0]
            check(f"{name} {i} starts {seen} ns after the first, the device says {apart}", abs(apart - seen) <= 1000 + apart / 1000)


@case("opencl: work lies inside of the calls that caused and awaited it")
def inside(box):
    run = box.run([box.compile("workloads/opencl_truth.c")])
    flows = run.sql("""
        select o.name call, o.ts call_ts, o.dur call_dur, i.ts, i.dur, i.name from flow f
        join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id where o.name = 'clEnqueueNDRangeKernel'""")
    same("arrows from enqueue to kernel", len(flows), 40)
    finishes = run.sql("select ts, ts + dur as end from slice where name = 'clFinish' order by ts")
    for row in flows:
        check(f"{row['name']} starts before its enqueue", row["ts"] >= row["call_ts"])
        ends = [f["end"] for f in finishes if f["end"] >= row["call_ts"]]
        check(f"{row['name']} ends after the clFinish that awaited it", ends and row["ts"] + row["dur"] <= ends[0])


KINDS = ("kernel", "read", "write", "copy", "fill", "map", "unmap", "mark", "group", "other")
STAMPS = ("device_queued", "device_submitted", "device_start", "device_end")


def drawn_work(run):
    """(name, kind, bytes, stamps of the device) of all works that are drawn, by the device's track"""
    args = ", ".join(f"extract_arg(s.arg_set_id, 'debug.{key}') as {key}" for key in (*STAMPS, "bytes", "failed", "untimed", "global_x", "local_x"))
    return run.sql(f"""select s.id, s.name, s.category as kind, s.ts, s.dur, s.depth, s.track_id, t.name as queue, p.name as device, {args} from slice s
        join track t on s.track_id = t.id join track p on t.parent_id = p.id where s.category in {KINDS} and t.name like 'queue%' order by s.ts""")


@case("opencl: every kind of command, with the device's own stamps")
def all_kinds(box):
    run = box.run([box.compile("workloads/opencl_all.c")])
    box.check_expected(run)
    told = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("work ")]
    told = [(name.replace("native_kernel", "native kernel"), kind, int(size), *map(int, stamps)) for name, kind, size, *stamps in told]
    rows = drawn_work(run)
    check("lost, untimed or unfinished", not any(run.summary["losses"][f"works_{how}"] for how in ("untimed", "unfinished", "not_drawn")))
    drawn = [(row["name"], row["kind"], row["bytes"] or 0) for row in rows]
    # besides there is one fill that waits for the program, and one that fails
    same("commands", sorted(drawn), sorted([work[:3] for work in told] + 2 * [("clEnqueueFillBuffer", "fill", 100)]))
    stamps = {(row["name"], *(row[key] for key in STAMPS)) for row in rows}
    missing = [work for work in told if work[3] and (work[0], *work[3:]) not in stamps]
    same("works whose four stamps are not the device's own", missing, [])
    check("slices without an end, or one inside of another", all(row["dur"] >= 0 and row["depth"] == 0 for row in rows))
    sizes = {(row["global_x"], row["local_x"]) for row in rows if row["name"] == "scale"}
    check(f"sizes {sizes}", {(64, 16), (1, 1)} <= sizes)
    waited = [row["device_submitted"] - row["device_queued"] for row in rows if row["bytes"] == 100 and not row["failed"]]
    check(f"the split shows how long it waited for the program: {waited}", waited[0] > 15e6)


@case("opencl: a command buffer is one span, with what is in it")
def command_buffers(box):
    run = box.run([box.compile("workloads/opencl_commands.c")])
    same("status", run.status, 0)
    told = [(kind, int(queued), int(end)) for kind, queued, end in (line.split() for line in run.stdout.splitlines())]
    rows = drawn_work(run)
    same("in the order of the queue", [(row["kind"], row["device_queued"], row["device_end"]) for row in rows], told)
    for i in (1, 4):
        same("it starts when it is there and what was before it is over", rows[i]["device_start"], max(told[i][1], told[i - 1][2]))
    args = run.sql("""select extract_arg(arg_set_id, 'debug.commands') as commands, extract_arg(arg_set_id, 'debug.kernels') as kernels,
        extract_arg(arg_set_id, 'debug.names') as names from slice where category = 'group'""")
    same("what is in it", [(int(row["commands"]), int(row["kernels"]), row["names"]) for row in args], 2 * [(6, 3, "scale, spin")])
    same("groups", sums(run, "transfers", "group", "calls"), 2)


@case("opencl: a program that cannot be built: its log")
def build_log(box):
    run = box.run([box.compile("workloads/opencl_guest.c")])
    rows = run.sql("""select category, extract_arg(arg_set_id, 'debug.error') as error, extract_arg(arg_set_id, 'debug.log') as log,
        extract_arg(arg_set_id, 'debug.options') as options from slice where name = 'clBuildProgram' and extract_arg(arg_set_id, 'debug.error') is not null order by ts""")
    same("builds that failed", [(row["category"], row["error"], row["options"]) for row in rows[:2]], [("build", -11, "-DSOMETHING"), ("build", -11, None)])
    check(f"logs {rows}", all("nothing_of_that_name" in row["log"] for row in rows[:2]))
    log = rows[2]["log"]
    check(f"the first error, and that it was cut: {log}", "the_first_one" in log.splitlines()[0] and log.endswith(" ... "))


BROKEN = "import ctypes\n" + OPEN + """cl.clCreateProgramWithSource.restype = ctypes.c_void_p
program = ctypes.c_void_p(cl.clCreateProgramWithSource(context, 1, ctypes.byref(ctypes.c_char_p(b"")), None, None))
print(cl.clBuildProgram(program, 1, ctypes.byref(device), b"-broken", None, None))
"""


OLDEST = "import ctypes\n" + OPEN + """event = ctypes.c_void_p()
print(cl.clEnqueueMarker(queue, ctypes.byref(event)), cl.clEnqueueBarrier(queue), cl.clEnqueueWaitForEvents(queue, 1, ctypes.byref(event)), cl.clFinish(queue))
"""


@case("opencl: a log that begins with pages of warnings")
def build_warnings(box):
    run = same_with(box, [PYTHON, "-c", BROKEN], standin(box)[1])
    same("output", run.stdout, "-11\n")
    log = run.value("select extract_arg(arg_set_id, 'debug.log') as log from slice where name = 'clBuildProgram'")
    check(f"it begins with the first error, and says where it was cut: {log}", log.startswith(" ... k.cl:2:1: error: the first one\n") and log.endswith(" ... "))


@case("opencl: calls are on their threads, with stacks, and lead to their work")
def calls(box):
    run = box.run([box.compile("workloads/opencl_all.c")])
    told = collections.Counter(line.split()[1] for line in run.stdout.splitlines() if line.startswith("work cl"))
    seen = {call["name"]: call["calls"] for call in run.summary["api_calls"]}
    for name, count in told.items():
        same(f"calls of {name}", seen[name], count + 2 * (name == "clEnqueueFillBuffer"))
    for name in ("clFinish", "clFlush", "clWaitForEvents", "clBuildProgram", "clCreateBuffer", "clCreateImage", "clCreateSubBuffer", "clReleaseMemObject",
                 "clSVMAlloc", "clSVMFree", "clEnqueueBarrier"):
        check(f"{name} is not among the calls", seen.get(name))
    drawn = {row["name"]: row["n"] for row in run.sql("""select s.name, count(*) as n from slice s join thread_track t on s.track_id = t.id
        join thread using (utid) where is_main_thread and s.category is not null group by 1""")}
    same("on the main thread", {name: drawn[name] for name in seen}, seen)
    ends = run.sql("select extract_arg(arg_set_id, 'debug.status') as status from slice where name = 'clSetUserEventStatus' order by ts")
    same("user events", (seen["clCreateUserEvent"], [int(row["status"]) for row in ends]), (2, [0, -5]))
    arrows = run.value("""select count(*) from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id
        where a.name like 'clEnqueue%' and b.ts >= a.ts""")
    same("arrows to later work", arrows, len(drawn_work(run)))
    waits = sum(row["total"] for row in run.sql("select sum(dur) as total from slice where category = 'wait'"))
    same("time that the host was blocked", waits, run.summary["waits"]["total_ns"])
    stacks = {(row["name"], row["inner"]) for row in run.sql("""select distinct s.name, coalesce(y.name, f.name) as inner
        from __intrinsic_track_event_callstacks c join slice s on c.slice_id = s.id join stack_profile_callsite t on c.callsite_id = t.id
        join stack_profile_frame f on t.frame_id = f.id left join stack_profile_symbol y using (symbol_set_id) where s.category in ('enqueue', 'wait', 'allocation')""")}
    wanted = {("clEnqueueCopyBuffer", "buffers"), ("clEnqueueFillImage", "images"), ("clEnqueueSVMMemcpy", "shared"), ("clEnqueueNDRangeKernel", "kernels_"),
              ("clEnqueueTask", "kernels_"), ("image", "images"), ("SVM", "shared")}
    check(f"stacks {sorted(stacks)}", wanted <= stacks)


@case("opencl: memory: what it is, and what lies in it")
def memory(box):
    run = box.run([box.compile("workloads/opencl_all.c")])
    rows = run.sql("""select name, extract_arg(arg_set_id, 'debug.size') as size, extract_arg(arg_set_id, 'debug.flags') as flags,
        extract_arg(arg_set_id, 'debug.bound') as bound from slice where category = 'allocation'""")
    parent = next(row for row in rows if row["size"] == 16384)
    same("flags", parent["flags"], "read-only alloc-host-ptr")
    same("what lay in it", sorted(parent["bound"].split(", ")), ["image at 0 (4096 bytes)", "sub-buffer at 0 (4096 bytes)", "sub-buffer at 8192 (2048 bytes)"])
    check(f"images {rows}", {("image", 80000), ("image", 16000)} <= {(row["name"], row["size"]) for row in rows})


@case("opencl: many blocks of shared memory freed by one call, which is refused first, and by calls that free nothing")
def shared(box):
    run = box.run([box.compile("workloads/opencl_shared.c")])
    box.check_expected(run)
    freed = run.sql("""select s.ts + s.dur as end, (select max(w.ts) from slice w where w.name = 'clEnqueueSVMFree' and w.category = 'enqueue') as call
        from slice s where s.name = 'SVM' and s.category = 'allocation' and s.dur >= 0 order by s.ts limit 35""")
    check(f"gone before the call that freed them: {freed}", all(row["end"] >= row["call"] for row in freed))


@case("opencl: a CPU device's memory counts once")
def once(box):
    run = box.run([box.compile("workloads/opencl_once.c")])
    box.check_expected(run)
    title = run.summary["devices"][0]["title"]
    owners = {row.get("driver_of"): row["bytes"] for row in run.summary["peak"]["by_stack"] if row["bytes"] >= 64 << 20}
    same("who took it from the heap", owners, {title: 64 << 20})
    same("with devices", run.summary["peak_with_devices"]["bytes"], run.summary["peak"]["bytes"])


@case("opencl: who asked for the memory of a CPU device, and who used it first")
def owners(box):
    run = box.run([box.compile("workloads/opencl_owners.c")])
    held, on_device = (re.split(r"\n\n", run.text.split("\n" + name, 1)[1])[0] for name in ("Held by", "On device"))
    check(f"whom the driver took it for:\n{held}", re.search(r" 96\.0 MiB .*in clEnqueueFillBuffer.*\n +by first_use  opencl_owners\.c:\d+\n +by main ", held))
    rows = re.findall(r"^ +([\d.]+ MiB) .* OpenCL 0  (\w+)  opencl_owners\.c:\d+$", on_device, re.M)
    same("who asked for it", rows, [("64.0 MiB", "weights"), ("32.0 MiB", "cache")])


@case("opencl: --device-time and --api")
def switches(box):
    words = [box.compile("workloads/opencl_truth.c")]
    device = box.run(words, "--device-time=off").summary["devices"][0]
    # the workload asks for times itself
    same("off, but the program asked for times", (device["works_timed"], device["works_observed"]), (42, 0))
    run = box.run([box.compile("workloads/opencl_many.c"), "1000"], "--device-time=off")
    device, kernel = run.summary["devices"][0], run.summary["kernels"][0]
    same("off", (device["works_timed"], device["works_observed"]), (0, 1000))
    rows = [row for row in drawn_work(run) if row["kind"] == "kernel"]
    # all were enqueued before the first was over, on a queue that keeps order
    same("off: lanes", len({row["track_id"] for row in rows}), 1)
    check("off: overlap", all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(rows, rows[1:])))
    same("off: drawn, summed up", (sum(row["dur"] for row in rows), kernel["total_ns"]), 2 * (device["busy_ns"],))
    device = box.run([box.compile("workloads/opencl_many.c"), "1000"], "--device-time=submit").summary["devices"][0]
    same("submit", (device["works_timed"], device["works_observed"]), (1000, 0))
    same("another API", box.run(words, "--api=vulkan").summary["devices"], [])


@case("opencl: more work at once than there are lanes: what is drawn late says so")
def crowd(box):
    run = box.run([box.compile("workloads/opencl_crowd.c")], "--device-time=off")
    box.check_expected(run)
    rows = run.sql("""select i.ts - o.ts as apart, i.dur, coalesce(extract_arg(i.arg_set_id, 'debug.drawn_late_ns'), 0) as late from flow f
        join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id where i.category = 'kernel'""")
    same("kernels", len(rows), 200)
    check("some are late", any(row["late"] for row in rows))
    # what only the host saw of a queue without order begins with its call
    same("farther from its call than it says", [row for row in rows if abs(row["apart"] - row["late"]) > 100], [])


@case("opencl: a program can't tell the difference")
def guest(box):
    program = [box.compile("workloads/opencl_guest.c")]
    plain = box.native(program)
    for run in (box.run(program), box.bare(program), box.run(program, "--device-time=submit"), box.run(program, "--device-time=off"), box.run(program, "--api=none")):
        same("exit status", run.status, plain.status)
        same("output", run.stdout, plain.stdout)


@case("opencl: threads that enqueue at the same time")
def threads(box):
    program = box.compile("workloads/opencl_threads.c")
    for _ in range(3):
        box.check_expected(box.run([program]))


@case("opencl: sub-devices are devices")
def sub_devices(box):
    run = box.run([box.compile("workloads/opencl_guest.c")])
    works = [device["works_timed"] for device in run.summary["devices"]]
    check(f"{works} works", len(works) == 3 and works[0] > 20 and works[1:] == [2, 2])
    tracks = run.sql("select distinct p.name from track t join track p on t.parent_id = p.id where t.name like 'queue%'")
    same("groups of tracks", len(tracks), 3)


@case("opencl: a sub-device's memory is its own, though PoCL says that its context is the parent's")
def sub_device_memory(box):
    program = box.compile("workloads/opencl_parts.c")
    run = same_with(box, [program], {})
    box.check_expected(run)
    titles = [device["title"] for device in run.summary["devices"]]
    check(f"devices {titles}", len(titles) == 1 and titles[0].endswith(", sub-device"))
    run = same_with(box, [program, "1000"], standin(box)[1])
    same("contexts whose handles come again", run.stdout, "reused 1\n")
    books = {device["title"].partition(": ")[2]: (device["allocs"], device["frees"], device["peak_bytes"]) for device in run.summary["devices"]}
    same("memory", books, {"steady, sub-device": (500, 500, 10), "steady": (500, 500, 1000)})


@case("opencl: every way in")
def ways(box):
    flags = {"full RELRO, no PLT": ["-fno-plt", "-Wl,-z,relro,-z,now"], "lazy": ["-Wl,-z,lazy"]}
    for name, extra in flags.items():
        run = box.run([box.compile("workloads/opencl_truth.c", "opencl-" + name.replace(" ", "-").replace(",", ""), extra)])
        same(f"{name}: kernels", run.summary["devices"][0]["kernels"], 40)
    plugin = box.compile("workloads/opencl_truth.c", "opencl-plugin.so", ["-shared", "-fPIC", "-Dmain=plugin_main"])
    run = box.run([box.compile("workloads/opencl_plugin.c"), plugin])
    same("plugin: kernels", run.summary["devices"][0]["kernels"], 40)
    box.check_expected(same_with(box, [box.compile("workloads/opencl_unseen.c")], {}))
    run = box.run([PYTHON, "-c", DLVSYM])
    same("dlvsym", (run.stdout, [(c["name"], c["calls"]) for c in run.summary["api_calls"]]), ("-36\n", [("clFinish", 1)]))
    run = box.run([PYTHON, "-c", DLSYM])
    same("dlsym by ctypes", run.stdout, "wrote 0 0\n")
    same("dlsym by ctypes: transfers", run.value("select count(*) as n from slice where name = 'clEnqueueWriteBuffer' and category like '%write%'"), 5)


@case("opencl: work that never ends is shown as such")
def ends(box):
    program = box.compile("workloads/opencl_ends.c")
    for way, status in (("exit", 4), ("_exit", 3), ("kill", 128 + signal.SIGKILL), ("fork", 7)):
        run = box.run([program, way])
        same(f"{way}: status", run.status, status)
        same(f"{way}: output", run.stdout, "enqueued 3\n")
        told = run.summary["losses"]["works_unfinished"] + sum(k["calls"] for k in run.summary["kernels"])
        same(f"{way}: kernels, ended or not", told, 1 + 3)


@case("opencl: a queue for every kernel")
def many_queues(box):
    run = box.run([box.compile("workloads/opencl_queues.c")], env={"POCL_DEVICES": "basic"})
    box.check_expected(run)
    queues = run.summary["devices"][0]["queues"]
    check(f"20000 queues, one after the other, have {queues} tracks", queues <= 100)


@case("opencl: a fork's child goes on with what its parent made")
def fork_child(box):
    run = same_with(box, [box.compile("workloads/opencl_fork.c")], {"POCL_DEVICES": "basic"})
    same("output", run.stdout, "child\nparent 0\n")
    pids = [process["pid"] for process in run.summary["processes"]]
    books = {device["pid"]: (device["kernels"], device["works_timed"], device["peak_bytes"], device["allocs"], device["frees"]) for device in run.summary["devices"]}
    same("devices", books, {pids[0]: (2, 2, 4096, 1, 1), pids[1]: (3, 4, 8192, 1, 1)})
    same("kernels", {(kernel["pid"], kernel["name"], kernel["calls"]) for kernel in run.summary["kernels"]}, {(pids[0], "scale", 2), (pids[1], "scale", 3)})
    same("unknown", run.summary["losses"]["unknown_ids"], 0)
    check(f"whose is whose:\n{run.text}", all(run.text.count(f"  in pid {pid}") == 2 for pid in pids))


@case("opencl: a hundred thousand enqueues, nothing piles up")
def many(box):
    box.check_expected(box.run([box.compile("workloads/opencl_many.c"), "100000"]))


@case("opencl: a million enqueues in one run, bounded memory", alone=True)
def million(box):
    program = box.compile("workloads/opencl_many.c")
    few, little = box.watched([program, "100000"])
    run, much = box.watched([program, "1000000"])
    box.check_expected(run)
    early, late = map(int, next(line for line in run.stdout.splitlines() if line.startswith("memory ")).split()[1:])
    size = os.path.getsize(run.trace)
    box.note(f"program: {early >> 10} MiB after 100 thousand, {late >> 10} MiB after a million; collector: {little >> 10} and {much >> 10} MiB; "
             f"trace: {os.path.getsize(few.trace) >> 20} and {size >> 20} MiB, {run.summary['losses']['works_not_drawn']} not drawn")
    check(f"the program's memory grew from {early} to {late} KiB", late - early < 3000)
    # if works were kept, it would be some 300 bytes for each of 900 thousand; a loaded machine makes bursts of some MiB
    check(f"the collector's memory grew from {little} to {much} KiB", much - little < 40 << 10)
    check(f"{size / 1e6:.1f} bytes of trace for each enqueue", size < 150e6)


# ---- the stand-in driver -----------------------------------------------------------------------

def standin(box):
    """the driver, and the environment in which a loader finds it and no other"""
    driver = box.compile("workloads/opencl_driver.c", "opencl_driver.so")
    os.makedirs(box.file("vendors"), exist_ok=True)
    box.file("vendors/standin.icd", driver + "\n")
    return driver, {"OCL_ICD_VENDORS": box.file("vendors")}


def same_with(box, words, env, *options):
    """the run under mlprof, that looks to the program like one without"""
    plain, run = box.native(words, env), box.run(words, *options, env=env)
    same("status", (run.status, run.stderr), (plain.status, plain.stderr))
    same("output", run.stdout, plain.stdout)
    return run


def sums(run, key, name, field):
    return sum(row[field] for row in run.summary[key] if row["kind" if key == "transfers" else "name"] == name)


@case("opencl: unified memory (USM) and pipes, exact to the byte")
def unified(box):
    _, env = standin(box)
    run = same_with(box, [box.compile("workloads/opencl_usm.c")], env)
    box.check_expected(run)
    same("copies", (sums(run, "transfers", "copy", "calls"), sums(run, "transfers", "copy", "bytes")), (2, 3000))
    same("fills", (sums(run, "transfers", "fill", "calls"), sums(run, "transfers", "fill", "bytes")), (2, 80000))
    same("migrated, advised", sums(run, "transfers", "other", "calls"), 2)
    refused = run.stdout.count("not freed: -34\n")
    same("two that could not be had, and those that could not be freed", sum(c["errors"] for c in run.summary["api_calls"]), 2 + refused)
    check("blocks whose freeing failed at first", refused)
    kinds = {row["name"] for row in run.sql("select distinct name from slice where category = 'allocation'")}
    same("kinds", kinds, {"USM host", "USM device", "USM shared", "pipe"})
    same("its memory counts beside the host's", run.summary["peak_with_devices"]["device_bytes"] > 0, True)


@case("opencl: what the program takes in a function that the driver calls is its own")
def own_memory(box):
    program = box.compile("workloads/opencl_own.c")
    for words, env, sizes in (([program], {"POCL_DEVICES": "basic"}, (1, 2, 4)), ([program, "notify"], standin(box)[1], (3,))):
        run = same_with(box, words, env)
        owners = {row["bytes"] >> 20: row.get("driver_call") for row in run.summary["peak"]["by_stack"] if row["owner"] == "keep"}
        same("whose it is", owners, dict.fromkeys(sizes))
        marked = run.sql("select extract_arg(arg_set_id, 'debug.driver_call') as call from slice where name = 'keep'")
        same("in the trace", [row["call"] for row in marked], len(sizes) * [None])


@case("opencl: commands of OpenCL 1.0 are calls")
def oldest(box):
    run = same_with(box, [PYTHON, "-c", OLDEST], standin(box)[1])
    same("output", run.stdout, "0 0 0 0\n")
    seen = {call["name"]: call["calls"] for call in run.summary["api_calls"]}
    same("calls", {name: seen.get(name) for name in ("clEnqueueMarker", "clEnqueueBarrier", "clEnqueueWaitForEvents")},
         {"clEnqueueMarker": 1, "clEnqueueBarrier": 1, "clEnqueueWaitForEvents": 1})
    same("marks", [(row["name"], row["kind"]) for row in drawn_work(run)], [("clEnqueueMarker", "mark")])


@case("opencl: kernels with long names")
def long_names(box):
    _, env = standin(box)
    run = same_with(box, [box.compile("workloads/opencl_names.c")], env)
    told = sorted(line.split()[1] for line in run.stdout.splitlines())
    same("kernels", sorted(kernel["name"] for kernel in run.summary["kernels"]), told)
    same("in the trace", [row["name"] for row in run.sql("select name from slice where category = 'kernel' order by name")], told)


@case("opencl: devices that refuse, fail and are lost")
def faults(box):
    _, env = standin(box)
    words = [box.compile("workloads/opencl_faults.c")]
    run = same_with(box, words, env)
    box.check_expected(run)
    failed = dict(run.expected)["losses.works_failed"]
    marked = run.sql("""select s.name, s.dur, extract_arg(s.arg_set_id, 'debug.error') as error from slice s
        where extract_arg(s.arg_set_id, 'debug.failed') = 1""")
    same("shown as failed", len(marked), int(failed))
    for row in marked:
        kind, _, number = row["name"].partition("_")
        wanted = -int(number) if kind in ("fail", "refuse") else -2
        same(f"{row['name']}: error", int(row["error"]), wanted)
    calls = {c["name"]: c["errors"] for c in run.summary["api_calls"]}
    same("buffers that could not be had", calls["clCreateBuffer"], 2)
    check(f"the summary says so:\n{run.text}", f"{failed} pieces of device work failed" in run.text)
    for way in ("--device-time=off", "--device-time=submit"):
        same_with(box, words, env, way)
    same("bare", box.bare(words, env=env).stdout, run.stdout)


@case("opencl: clocks that drift", alone=True)
def drift(box):
    _, env = standin(box)
    program = box.compile("workloads/opencl_drift.c")
    for device, name, ppm, length in (("1", "fast", -200, "3000"), ("2", "slow", 300, "3000"), ("1", "fast", -200, "60")):
        run = box.run([program, device, length], env=env)
        same("status", run.status, 0)
        told = sorted(tuple(map(int, line.split()[1:])) for line in run.stdout.splitlines() if line.startswith("work "))
        drawn = [(row["start"], row["end"]) for row in run.sql("""select to_monotonic(ts) as start, to_monotonic(ts + dur) as end from slice
            where name = 'busy_100' and category = 'kernel' order by ts""")]
        same(f"{name}: kernels", len(drawn), len(told))
        worst = max(abs(a - b) for t, d in zip(told, drawn) for a, b in zip(t, d))
        clock = next(d for d in run.summary["devices"] if d["name"] == name)["clock"]
        reads = int(run.stdout.split()[-1])
        box.note(f"{name}, {length} ms: {len(told)} kernels at most {worst} ns off, residual {clock['residual_ns']} ns, {clock['rate_ppm']:.2f} ppm, {reads} calls")
        check(f"{name}: {worst} ns off", worst < 5000)
        check(f"{name}: the clock is said to be {clock}", clock["kind"] == "calibrated" and clock["residual_ns"] < 5000)
        if length == "3000":
            check(f"{name}: {clock['rate_ppm']} ppm", abs(clock["rate_ppm"] - ppm) < 5)
        check(f"{name}: its timer was read {reads} times in {length} ms", 5 <= reads <= 2 * (8 + int(length) / 90))


# ---- several loaders ----------------------------------------------------------------------------

def check_loaders(box, words):
    run = same_with(box, words, {})
    told = {line.split()[1]: int(line.split()[2]) for line in run.stdout.splitlines() if line.startswith("kernel ")}
    check("the program told of no kernels", told)
    same(f"{words[1:]}: kernels", {k["name"]: k["timed"] for k in run.summary["kernels"]}, told)
    names = [line.split(" has ")[1] for line in run.stdout.splitlines() if " has " in line]
    for number, name in enumerate(names):
        where = {k["device"].split(": ")[1] for k in run.summary["kernels"] if k["name"] == f"busy_{number}"}
        same(f"{words[1:]}: busy_{number} ran on", where, {name})
    same("unknown", run.summary["losses"]["unknown_ids"], 0)
    return run


@case("opencl: two loaders in one process, a loader and a driver, one is closed")
def loaders(box):
    driver, env = standin(box)
    program = box.compile("workloads/opencl_loaders.c")
    found = [path for path in glob.glob("/usr/lib/*/libOpenCL.so.1") if os.path.exists(path)][0]
    copy = shutil.copy(os.path.realpath(found), box.file("libOpenCL-other.so.1"))
    pocl, own = "@/etc/OpenCL/vendors", "@" + env["OCL_ICD_VENDORS"]
    for words, devices in (([found + pocl, copy + own], 2), ([copy + own, found + pocl], 2), ([found + pocl, copy + pocl], 1),
                           ([found + pocl, driver + "@"], 2), ([driver + "@", found + pocl], 2), ([found + own, driver + "@", copy + pocl], 2)):
        run = check_loaders(box, [program, *words])
        same(f"{words}: devices {[d['name'] for d in run.summary['devices']]}", len(run.summary["devices"]), devices)


AGAIN = "import _ctypes, ctypes\nfor i in range(12):\n" + textwrap.indent(OPEN, "    ") + """    assert cl.clEnqueueWriteBuffer(queue, buffer, 1, ctypes.c_size_t(0), ctypes.c_size_t(4096), data, 0, None, None) == 0
    print(cl.clFinish(queue), cl.clReleaseMemObject(buffer), cl.clReleaseCommandQueue(queue), cl.clReleaseContext(context))
    _ctypes.dlclose(cl._handle)
    if "libOpenCL" in open("/proc/self/maps").read():
        print("it stays")
"""


@case("opencl: the loader is closed and opened again")
def again(box):
    run = same_with(box, [PYTHON, "-c", AGAIN], {})
    same("writes", (sums(run, "transfers", "write", "calls"), sums(run, "transfers", "write", "timed")), (12, 12))
    check(f"it was closed: {run.stdout}", "it stays" not in run.stdout)
    same("memory", (run.summary["devices"][0]["allocs"], run.summary["devices"][0]["frees"]), (12, 12))


@case("opencl: more loaders than there are doors for")
def too_many_loaders(box):
    program = box.compile("workloads/opencl_loaders.c")
    found = [path for path in glob.glob("/usr/lib/*/libOpenCL.so.1") if os.path.exists(path)][0]
    words = [shutil.copy(os.path.realpath(found), box.file(f"libOpenCL-{i}.so.1")) + "@/etc/OpenCL/vendors" for i in range(10)]
    run = same_with(box, [program, *words], {})
    same("kernels that are seen", {k["name"]: k["timed"] for k in run.summary["kernels"]}, {f"busy_{i}": 12 for i in range(8)})
    check(f"it is said: {run.summary['notices']}", any("more loaders" in line for line in run.summary["notices"]))


@case("opencl: a library that stands between program and loader")
def between(box):
    library = box.compile("workloads/opencl_between.c", "libbetween.so")
    program = box.compile("workloads/opencl_many.c", "opencl_many-between", [library, "-Wl,-rpath," + os.path.dirname(library)])
    run = box.run([program, "1000"])
    same("status", run.status, 0)
    check("the program's calls go through it: " + run.stdout, "between: 1000 kernels" in run.stdout)
    box.check_expected(run)


@case("opencl: a preloaded library that hands kernels on to the next")
def before(box):
    library = box.compile("workloads/opencl_before.c", "libbefore.so")
    run = box.run([box.compile("workloads/opencl_many.c"), "1000"], env={"LD_PRELOAD": library})
    same("status", run.status, 0)
    check("the program's calls go through it: " + run.stdout, "before: 1000 kernels" in run.stdout)
    box.check_expected(run)


def register(tools):
    pass


# ---- real clients ------------------------------------------------------------------------------

PYOPENCL = """
import numpy, pyopencl as cl, pyopencl.array
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
print("profiling:", bool(queue.properties & cl.command_queue_properties.PROFILING_ENABLE))
a = pyopencl.array.to_device(queue, numpy.arange(1000, dtype=numpy.float32))
kernel = cl.Program(context, "__kernel void add3(__global float *x) { x[get_global_id(0)] += 3; }").build().add3
for _ in range(10):
    event = kernel(queue, (1000,), None, a.data)
queue.finish()
print(a.get()[:3])
try:
    event.profile.start
    print("times for all")
except cl.RuntimeError:
    print("no times")
"""
TINYGRAD = """
from tinygrad import Tensor
x = Tensor([[1., 2.], [3., 4.]])
print((x @ x + 1).relu().sum().item())
"""


def same_output(box, words, env=None):
    plain, run = box.native(words, env, timeout=120), box.run(words, env=env)
    same("status", run.status, plain.status)
    same("output", run.stdout, plain.stdout)
    for row in run.sql("select count(*) n from slice where dur < -1"):
        same("negative spans", row["n"], 0)
    return run


@case("opencl: pyopencl, which brings a loader of its own")
def pyopencl(box):
    run = same_output(box, [client_python(), "-c", PYOPENCL])
    same("add3", [k["calls"] for k in run.summary["kernels"] if k["name"] == "add3"], [10])
    same("memory at exit", run.summary["devices"][0]["live_at_exit_bytes"], 0)


@case("opencl: pyopencl's loader and the system's in one process")
def pyopencl_and_ctypes(box):
    run = same_output(box, [client_python(), "-c", PYOPENCL + DLSYM])
    same("add3, by its own loader", [k["calls"] for k in run.summary["kernels"] if k["name"] == "add3"], [10])
    writes = run.value("select count(*) from slice where name = 'clEnqueueWriteBuffer' and category = 'write' and extract_arg(arg_set_id, 'debug.bytes') = 4096")
    same("writes, by the system's", writes, 5)
    same("devices", len(run.summary["devices"]), 1)


@case("opencl: tinygrad")
def tinygrad(box):
    run = same_output(box, [client_python(), "-c", TINYGRAD], {"DEV": "CL", "CACHELEVEL": "0"})
    check(f"kernels: {run.summary['kernels']}", run.summary["devices"][0]["kernels"] >= 1)


@case("opencl: clinfo, clpeak")
def tools(box):
    same_output(box, ["clinfo", "-l"])
    run = box.run(["clpeak", "--kernel-latency"])
    same("clpeak", run.status, 0)
    check("clpeak enqueued thousands", run.summary["devices"][0]["kernels"] >= 20000)
    same("unfinished", run.summary["losses"]["works_unfinished"], 0)
