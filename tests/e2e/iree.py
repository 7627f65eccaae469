"""iree.py - IREE's CPU executables: dispatches, tiles and workers against IREE's own profile of the same run."""
import collections
import json
import os
import signal
import statistics

from harness import TESTS, case, check, same
from vulkan import client_python

WORKLOADS = os.path.join(TESTS, "workloads")
INPUTS = ["--function=main", "--input=256x256xf32=1", "--input=256x256xf32=0.01"]
TASK = ["--device=local-task", "--task_topology_group_count=3"]
SYNC = ["--device=local-sync"]
EMBEDDED, SYSTEM = "embedded", "system"


# ---- modules and stand-ins ------------------------------------------------------------------------

def tool(name):
    return os.path.join(os.path.dirname(client_python()), name)


def linker(box):
    """the compiler brings lld under another name, and says so to nobody"""
    found = box.native([client_python(), "-c", "import iree.compiler as c, os; print(os.path.join(os.path.dirname(c.__file__), '_mlir_libs', 'iree-lld'))"])
    path = box.file("ld.lld", f'#!/bin/sh\nexec {found.stdout.strip()} -flavor gnu "$@"\n')
    os.chmod(path, 0o755)
    return path


def module(box, link, *options):
    path = box.file(f"net-{link}.vmfb")
    if link == SYSTEM:
        options = [*options, "--iree-llvmcpu-link-embedded=false", f"--iree-llvmcpu-system-linker-path={linker(box)}"]
    done = box.native([tool("iree-compile"), "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
                       "--iree-llvmcpu-target-cpu=host", *options, os.path.join(WORKLOADS, "iree_net.mlir"), "-o", path], timeout=120)
    same(f"iree-compile: {done.stderr[-300:]}", done.status, 0)
    return path


def stand_in(box, version):
    return box.compile("workloads/iree_library.c", f"iree_library_{version}.so", [f"-DVERSION={version}", "-Wno-unused-parameter"])


def loader(box, version, *words):
    return [box.compile("workloads/iree_loader.c"), stand_in(box, version), str(version), *words]


# ---- what was seen --------------------------------------------------------------------------------

def clean(run):
    losses = run.summary["losses"]
    same("losses", {key: losses[key] for key in ("records", "late", "unknown_frees", "bad_chunks", "unknown_ids", "works_unfinished")
                    if losses.get(key)}, {})


def same_program(box, words, *options, env=None):
    plain, run = box.native(words, env, timeout=120), box.run(words, *options, env=env)
    same("status and output", (run.status, run.stdout), (plain.status, plain.stdout))
    return run


def kernels(run):
    """name -> (dispatches, tiles)"""
    return {k["name"]: (k["calls"], k.get("tiles", 0)) for k in run.summary["kernels"]}


def dispatches(run):
    return run.sql("""select s.id, s.ts, s.dur, s.name, extract_arg(arg_set_id, 'debug.work') as work, extract_arg(arg_set_id, 'debug.tiles') as tiles,
        extract_arg(arg_set_id, 'debug.tile_sum_ns') as tile_sum, extract_arg(arg_set_id, 'debug.workers') as workers,
        extract_arg(arg_set_id, 'debug.size_x') as x, extract_arg(arg_set_id, 'debug.source') as source,
        extract_arg(arg_set_id, 'debug.executable') as executable from slice s where s.category = 'kernel' order by s.ts""")


def runs_of_threads(run):
    return run.sql("""select s.ts, s.dur, s.name, thread.name as thread, thread.tid, extract_arg(s.arg_set_id, 'debug.work') as work,
        extract_arg(s.arg_set_id, 'debug.tiles') as tiles, extract_arg(s.arg_set_id, 'debug.busy_ns') as busy
        from slice s join thread_track t on s.track_id = t.id join thread using (utid) where s.category = 'tiles' order by s.ts""")


def profile(box, path):
    """IREE's own events, in order of their start"""
    told = box.native([tool("iree-profile"), "dispatch", "--format=jsonl", "--dispatch_events", path])
    same(f"iree-profile: {told.stderr[-300:]}", told.status, 0)
    events = [json.loads(line) for line in told.stdout.splitlines() if '"host_dispatch_event"' in line]
    return sorted(events, key=lambda event: event["start_host_time_ns"])


def check_times(box, name, ours, theirs):
    """IREE stamps before and after us; a thread may be set aside between its stamp and ours, which is seen in few of many"""
    off = [abs(a["dur"] - b["duration_ns"]) / b["duration_ns"] for a, b in zip(ours, theirs)]
    length = statistics.median(b["duration_ns"] for b in theirs)
    if length >= 20000:
        check(f"{name}: {length} ns, off by {statistics.median(off):.4f}", statistics.median(off) <= 0.03)
    if length >= 100000:
        far = sum(o > 0.03 for o in off)
        check(f"{name}: {far} of {len(off)} are off by more than 3 %", far <= len(off) * 0.05)
    sums = statistics.median(a["tile_sum"] / b["tile_duration_sum_ns"] for a, b in zip(ours, theirs))
    check(f"{name}: tile sum is {sums:.3f} of IREE's, which has the time between tiles in it", 0.7 <= sums <= 1.03)
    box.note(f"{name[16:40]}: {length / 1000:.1f} us, wall off by {statistics.median(off) * 100:.2f} %, tile sum {sums:.3f}")


def against_profile(box, words, count):
    path = box.file(f"profile{box.count}")
    run = box.run([*words, f"--benchmark_min_time={count}x", "--device_profiling_mode=host-execution", f"--device_profiling_output={path}"])
    same(f"status: {run.stderr[-300:]}", run.status, 0)
    clean(run)
    ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
    for row in dispatches(run):
        ours[row["name"]].append(row)
    for event in profile(box, path):
        theirs[event["key"]].append(event)
    check(f"IREE told of {list(theirs)}", len(theirs) >= 3)
    same("names and dispatches", {name: len(rows) for name, rows in ours.items()}, {name: len(rows) for name, rows in theirs.items()})
    for name, rows in theirs.items():
        same(f"{name}: tiles", [row["tiles"] for row in ours[name]], [event["tile_count"] for event in rows])
        same(f"{name}: grids", [row["x"] for row in ours[name]], [event["workgroup_count"][0] for event in rows])
        check_times(box, name, ours[name], rows)
    return run


# ---- cases ----------------------------------------------------------------------------------------

def benchmark(path, device):
    return [tool("iree-benchmark-module"), *device, f"--module={path}", *INPUTS]


@case("iree: local-task, embedded ELF, against its own profile", alone=True)
def task_embedded(box):
    run = against_profile(box, benchmark(module(box, EMBEDDED), TASK), 200)
    same("devices", [(d["api"], d["name"], d["host_memory"]) for d in run.summary["devices"]], [("IREE", "CPU", True)])


@case("iree: local-task, system library, against its own profile", alone=True)
def task_system(box):
    against_profile(box, benchmark(module(box, SYSTEM), TASK), 200)


@case("iree: local-sync, both kinds of executables, against its own profile", alone=True)
def sync(box):
    for link in (EMBEDDED, SYSTEM):
        against_profile(box, benchmark(module(box, link), SYNC), 50)


@case("iree: an executable for each kernel", alone=True)
def several(box):
    path = module(box, EMBEDDED, "--iree-hal-link-executables=false")
    run = against_profile(box, benchmark(path, TASK), 50)
    check("executables", len({row["executable"] for row in dispatches(run)}) >= 3)


@case("iree: each worker's runs are on its thread, inside of their dispatch")
def lanes(box):
    run = same_program(box, [tool("iree-run-module"), *TASK, f"--module={module(box, EMBEDDED)}", *INPUTS])
    clean(run)
    by_work = collections.defaultdict(list)
    for row in runs_of_threads(run):
        check(f"thread {row['thread']}", row["thread"].startswith("iree-worker"))
        by_work[row["work"]].append(row)
    rows = dispatches(run)
    check("dispatches", len(rows) >= 3)
    same("dispatches that were worked at", {row["work"] for row in rows}, set(by_work))
    for row in rows:
        parts = by_work[row["work"]]
        same("tiles", sum(part["tiles"] for part in parts), row["tiles"])
        same("tile sum", sum(part["busy"] for part in parts), row["tile_sum"])
        same("workers", len({part["tid"] for part in parts}), row["workers"])
        same("its extent", (min(part["ts"] for part in parts), max(part["ts"] + part["dur"] for part in parts)), (row["ts"], row["ts"] + row["dur"]))
        check("runs are named alike", {part["name"] for part in parts} == {row["name"]})
        check(f"source {row['source']}", row["source"].split("/")[-1].startswith("iree_net.mlir:"))


@case("iree: --probes and bare LD_PRELOAD")
def switches(box):
    words = [tool("iree-run-module"), *TASK, f"--module={module(box, EMBEDDED)}", *INPUTS]
    for option, seen in (("--probes=-iree", 0), ("--probes=none", 0), ("--probes=none,+iree", 1), ("--api=none", 1)):
        run = same_program(box, words, option)
        same(option, len(run.summary["devices"]), seen)
    same("bare", len(box.bare(words).summary["devices"]), 1)


@case("iree: buffers of the task device's pool, against its own profile")
def memory(box):
    path = box.file("profile")
    run = box.run([*benchmark(module(box, EMBEDDED), TASK), "--benchmark_min_time=20x", "--device_profiling_mode=memory-events",
                   f"--device_profiling_output={path}"])
    same(f"status: {run.stderr[-300:]}", run.status, 0)
    clean(run)
    told = [json.loads(line) for line in box.native([tool("iree-profile"), "memory", "--format=jsonl", path]).stdout.splitlines()]
    pool = [row for row in told if row["type"] == "memory_pool" and row["kind"] == "pool_reservation"]
    same("pools", len(pool), 1)
    device = run.summary["devices"][0]
    same("buffers", device["allocs"], pool[0]["materialized_total_open_count"])
    # A buffer is told of when the next dispatch begins: one that another one's end only touched may be missed in the peak.
    most, largest = pool[0]["pool_bytes_reserved_high_water"], 256 * 256 * 4
    check(f"most bytes at one time: {device['peak_bytes']}, IREE says {most}", device["peak_bytes"] in (most, most - largest))
    same("left at exit", (device["frees"], device["live_at_exit_bytes"]), (device["allocs"], 0))
    check("it is in the program's heap, and counted there once", device["host_memory"] and "peak_with_devices" in run.summary)
    same("added to the peak", run.summary["peak_with_devices"]["bytes"] - run.summary["peak"]["bytes"], 0)


@case("iree: the Python runtime, modules loaded again and again")
def python(box):
    for link in (EMBEDDED, SYSTEM):
        path = module(box, link)
        for device in ("local-task", "local-sync"):
            run = same_program(box, [client_python(), os.path.join(WORKLOADS, "iree_runtime.py"), path, device, "4", "25"])
            clean(run)
            seen = kernels(run)
            check(f"{link}, {device}: {seen}", len(seen) >= 3 and all(calls == 100 for calls, _ in seen.values()))


@case("iree: stand-ins of versions 5 and 6, loaded by mprotect and by dlopen")
def versions(box):
    for version in (5, 6):
        for env in (None, {"LOADER": "dlopen"}):
            run = same_program(box, loader(box, version, "count"), env=env)
            clean(run)
            wanted = {words[1]: (int(words[2]), int(words[3])) for words in map(str.split, run.stdout.splitlines()) if words[0] == "expect_dispatches"}
            check("the program told of nothing", wanted)
            same(f"version {version}", kernels(run), wanted)
            rows = dispatches(run)
            same("source", {row["source"] for row in rows}, {"model.txt:4"})
            check("workers", {row["thread"] for row in runs_of_threads(run)} <= {"stand-in-0", "stand-in-1", "stand-in-2"})
        same(f"version {version}: its table leads to us", box.run(loader(box, version, "own")).stdout, "own 0\n")


@case("iree: an unknown version is left alone, and that is said")
def unknown(box):
    run = same_program(box, loader(box, 7, "own"))
    same("table", run.stdout, "own 5\n")
    same("devices", run.summary["devices"], [])
    check(f"notices: {run.summary['notices']}", any("library version" in line for line in run.summary["notices"]))


@case("iree: images that only begin like an executable")
def odd(box):
    run = same_program(box, loader(box, 6, "odd"))
    same("devices", run.summary["devices"], [])


@case("iree: a kernel that fails")
def failing(box):
    run = same_program(box, loader(box, 6, "fail"))
    same("failed", (run.summary["losses"]["works_failed"], run.summary["losses"]["works_unfinished"]), (1, 0))
    same("dispatches", kernels(run), {"stand_in_fail": (4, 3 * 64)})


@case("iree: more executables, one after another, than there are thunks")
def reload(box):
    for env in (None, {"LOADER": "dlopen"}):
        run = same_program(box, loader(box, 6, "reload", "3000"), env=env)
        clean(run)
        same("dispatches", kernels(run), {"stand_in_nop": (3000, 12000)})
        same("notices", run.summary["notices"], [])


@case("iree: fork and kill in the middle")
def ends(box):
    run = same_program(box, loader(box, 6, "fork"))
    clean(run)
    told = sorted((k["name"], k["calls"], k["tiles"]) for k in run.summary["kernels"])
    same("dispatches of both", told, [("stand_in_call", 1, 4), ("stand_in_nop", 10, 40), ("stand_in_nop", 10, 40)])
    run = box.run(loader(box, 6, "kill"))
    same("status", run.status, 128 + signal.SIGKILL)
    same("unfinished", run.summary["losses"]["works_unfinished"], 1)
    same("whole ones", sum(k["calls"] for k in run.summary["kernels"]), 10)


@case("iree: a dispatch's wall time is the program's own", alone=True)
def wall(box):
    run = box.run(loader(box, 6, "wall"))
    own, ours = int(run.stdout.split()[1]), run.summary["kernels"][0]["total_ns"]
    check(f"{ours} ns, the program says {own}", ours <= own and own - ours <= own * 0.03)


def register(tools):
    pass
