"""truth.py - what mlprof says against what the program counted itself.

Two ways to the same numbers are compared with the program's books: the summary, and SQL over the trace
by Perfetto's trace processor.
"""
import json
import os
import re
import resource
import shutil

from harness import PYTHON, case, check, same

# The tree's total at its highest, the heap profile taken at the peak, and the one at exit.
COUNTER_MAX = """select cast(max(c.value) as int) as v from counter c join process_counter_track t on c.track_id = t.id
    join process p using (upid) where t.name = '{0}'"""
DUMP = "select ts, sum(size) as bytes, sum(count) as blocks from heap_profile_allocation group by ts order by ts"


def agrees(box, run):
    """SQL over the trace says the same as the summary, for a program of one process"""
    summary = run.summary
    same("max of counter total", run.value(COUNTER_MAX.format("total")), summary["peak"]["bytes"])
    for name in ("malloc", "mmap"):
        pool = [p for p in summary["pools"] if p["name"] == name]
        if pool and pool[0]["peak_bytes"]:
            same(f"max of counter {name}", run.value(COUNTER_MAX.format(name)), pool[0]["peak_bytes"])


def workload(name, source, *arguments, once=True):
    @case(f"truth: {name}")
    def books(box):
        words = [box.compile(f"workloads/{source}"), *[a.format(box=box.path) for a in arguments]]
        for run in (box.run(words), box.bare(words)):
            box.check_expected(run)
            agrees(box, run)


workload("every way to allocate", "heap_random.c")
workload("edges of the malloc family", "heap_edges.c")
workload("temporary allocations", "temporary.c")
workload("realloc chains", "realloc_chain.c")
workload("mappings", "mappings.c")
workload("reservations", "reserve.c")
workload("mapped files and shared memory", "files.c", "{box}/weights.bin")
workload("brk", "brk.c")


@case("truth: C++ new and delete")
def cxx(box):
    program = box.compile("workloads/cxx_books.cc")
    base = box.run([program, "dry"])
    box.check_expected(box.run([program]), base)


@case("truth: a bare program sets variables; none of what it frees is ours")
def own_environment(box):
    for words in (["bash", "-c", "export A=1; (exit 3); true"], [PYTHON, "-c", "import os; os.environ.update({str(i): 'x' for i in range(1, 99)}); os.environ.clear()"]):
        box.check_no_loss(box.bare(words).summary)


@case("truth: tree of processes")
def tree(box):
    run = box.run([box.compile("workloads/tree.c")])
    box.check_expected(run)
    summary = run.summary
    same("processes", len(summary["processes"]), 11)
    same("sum of the processes' peaks", sum(p["peak"]["bytes"] for p in summary["processes"]), summary["peak"]["bytes"])


def threaded(box, threads, top, times):
    program = box.compile("workloads/threads.c")
    base = box.run([program, str(threads), str(top), "dry"])
    for number in range(times):
        run = box.run([program, str(threads), str(top)])
        try:
            box.check_expected(run, base)
            agrees(box, run)
        except Exception as error:
            raise type(error)(f"run {number + 1} of {times}: {error}") from None


for count in (1, 2, 4, 8, 16, 32):
    @case(f"truth: {count} threads hand blocks over")
    def threads_case(box, count=count):
        threaded(box, count, 0, 3)
        threaded(box, count, 5000000, 2)


@case("truth: threads, 100 of 100 runs")
def hundred(box):
    threaded(box, 8, 0, 50)
    threaded(box, 32, 0, 50)


@case("truth: 500 threads that begin at once")
def crowd(box):
    program = box.compile("workloads/crowd.c")
    base = box.run([program, "dry"])
    for _ in range(3):
        box.check_expected(box.run([program]), base)


@case("truth: blocks freed by another core at once")
def handover(box):
    program = box.compile("workloads/handover.c")
    base = box.run([program, "dry"])
    for _ in range(5):
        box.check_expected(box.run([program]), base)


@case("truth: heap profiles in the trace")
def heap_profiles(box):
    """the dump at the peak holds the peak's malloc bytes, the one at exit what was left"""
    run = box.run([box.compile("workloads/heap_random.c")])
    expected = dict(run.expected)
    dumps = run.sql(DUMP)
    check(f"no heap profiles: {dumps}", dumps)
    sizes = [row["bytes"] for row in dumps]
    # The trace processor sums what dumps report; each dump stands alone in the file.
    check(f"peak {expected['peak.bytes']} is in no dump: {dumps}", int(expected["peak.bytes"]) in sizes)
    check(f"live at exit {expected['totals.live_at_exit_bytes']} is in no dump: {dumps}",
          int(expected["totals.live_at_exit_bytes"]) in sizes)


@case("truth: nothing is lost when a process dies")
def deaths(box):
    program = box.compile("workloads/death.c")
    base = box.run([program, "dry"])
    for how, status in (("kill", 137), ("segv", 139), ("abort", 134), ("_exit", 3), ("quick_exit", 4), ("exit", 5), ("term", 143), ("return", 0), ("exec", 0)):
        for run in (box.run([program, how]), box.bare([program, how])):
            same(f"status after {how}", run.status, status)
            first = run.summary["processes"][0] if how == "exec" else run.summary
            run.status = 0
            if how != "exec":
                box.check_expected(run, base)
            else:
                pools = [p for p in first["pools"] if p["name"] == "malloc"]
                same("allocs before exec", pools[0]["allocs"], int(dict(run.expected)["totals.allocs"]) + base.summary["totals"]["allocs"])


@case("truth: raw stream gives the same trace again, byte for byte")
def replay(box):
    raw = box.file("raw")
    for words in ([box.compile("workloads/threads.c"), "8"], [PYTHON, "-c", "import json"], [box.compile("workloads/tree.c")]):
        run = box.run(words, f"--raw={raw}")
        again = box.file("again.perfetto-trace")
        done = box.native([box.tools.mlprof, "replay", "-o", again, raw])
        same(f"replay: {done.stderr}", done.status, 0)
        check("the replayed trace differs", open(run.trace, "rb").read() == open(again, "rb").read())
        check("the replayed summary differs", run.summary == json.load(open(box.file("again.summary.json"))))
        dump = box.native([box.tools.mlprof, "dump", raw])
        same("dump", dump.status, 0)
        check("dump shows no hello", "hello" in dump.stdout)
        check("dump shows no alloc", "alloc" in dump.stdout)
    os.truncate(raw, os.path.getsize(raw) - 1000)
    done = box.native([box.tools.mlprof, "replay", "-o", again, raw])
    same("chunks that were cut", json.load(open(box.file("again.summary.json")))["losses"]["bad_chunks"], 1)


@case("truth: the stacks are libunwind's")
def stacks(box):
    """every stack of a real program compared with libunwind's own walk"""
    shapes = box.compile("workloads/shapes.c")
    pointed = box.compile("bench/pair.c", "pair-pointed", ["-fno-omit-frame-pointer"])
    for words in ([PYTHON, "-c", "import json, asyncio"], [box.compile("hostile/exceptions.cc"), "few"], [box.compile("hostile/longjmp.c")],
                  [shapes], [pointed, "--walk=300", "--depth=40", "--pairs=20000"]):
        run = box.run(words, "--check-stacks")
        found = re.search(r"checked against libunwind: (\d+), wrong: (\d+)", run.stderr)
        check(f"nothing was checked: {run.stderr[-300:]}", found and int(found.group(1)) > 100)
        same(f"wrong stacks of {found.group(1)}", int(found.group(2)), 0)


@case("truth: stacks that are all new, ten million frames of them, stay right and take no memory of the program's")
def all_new(box):
    """each of these stacks is forgotten soon, and their numbers begin afresh twice"""
    run = box.run([box.compile("bench/pair.c", "pair"), "--books", "--pairs=250000", "--depth=50", "--walk=1000000000"])
    losses, rows = run.summary["losses"], run.summary["peak"]["by_stack"]
    same("losses", {key: losses[key] for key in ("records", "stacks", "late", "bad_chunks")}, dict.fromkeys(("records", "stacks", "late", "bad_chunks"), 0))
    check("not nearly all of them new", run.summary["overhead"]["stack_misses"] >= 250000)
    turns = [[f["function"] for f in row["frames"] if f["function"] in ("turn", "left_turn", "right_turn")] for row in rows]
    same("turns in each stack at the peak", {len(way) for way in turns if way}, {len(turns[0])})
    check(f"{len(turns[0])} turns", len(turns[0]) >= 40)
    check("stacks at the peak are the same", len({tuple(way) for way in turns}) > len(turns) / 2)
    check(f"highest RSS {run.summary['totals']['peak_rss_bytes']}", run.summary["totals"]["peak_rss_bytes"] < 32 << 20)


@case("truth: a thread that sleeps holds nothing back")
def sleeper(box):
    """the collector's memory stays small while one thread of the program never does anything"""
    program = box.compile("bench/pair.c", "pair")
    run, high = box.watched([program, "--pairs=6000000", "--idle=1", "--books"])
    base = box.run([program, "--pairs=0", "--idle=1", "--books"])
    box.check_expected(run, base)
    box.note(f"collector at most {high >> 10} MiB for 12 M records")
    check(f"the collector took {high >> 10} MiB", high < 120 << 10)


@case("truth: a crowd on all CPUs makes the model wait, not the numbers wrong")
def crowd(box):
    """more threads than CPUs do nothing but allocate: what they write is taken in, and looked at when there is time, up to a bound"""
    program = box.compile("bench/pair.c", "pair")
    threads = 2 * os.cpu_count()
    run, high = box.watched([program, f"--threads={threads}", f"--pairs={8000000 // threads}", "--books"])
    base = box.run([program, f"--threads={threads}", "--pairs=0", "--books"])
    box.check_expected(run, base)
    box.note(f"collector at most {high >> 10} MiB for 16 M records")
    check(f"the collector took {high >> 10} MiB", high < 160 << 10)
    check(f"late: {run.summary['losses']['late']}", run.summary["losses"]["late"] < 1000)


@case("truth: a thousand forked children of many modules: each is there once, in order, with its status")
def fork_modules(box):
    """what a child says of itself takes several chunks, and it waits for a CPU meanwhile; it may be over before its parent says that it made it"""
    library = box.compile("workloads/fork_modules.c", "module.so", ["-shared", "-fPIC"])
    folder = box.file("many_modules_that_have_names_of_some_length")
    os.mkdir(folder)
    for i in range(100):
        shutil.copy(library, os.path.join(folder, f"libmodule{i}.so"))
    run = box.run([box.compile("workloads/fork_modules.c"), folder])
    processes = run.summary["processes"]
    same("processes", (len(processes), len({p["pid"] for p in processes})), (1001, 1001))
    same("late", run.summary["losses"]["late"], 0)
    same("ends", {str(p["exit"]) for p in processes[1:]}, {"{'status': 3}"})


@case("truth: children that die in a burst, in the middle of a record, hold nobody back")
def burst_deaths(box):
    run = box.run([box.compile("workloads/burst_children.c"), "die"])
    same("processes", len(run.summary["processes"]), 301)
    same("late or lost", (run.summary["losses"]["late"], run.summary["losses"]["records"]), (0, 0))


@case("truth: a burst leaves descriptors for what comes after it")
def burst_files(box):
    program = box.compile("workloads/burst_children.c")
    for few in (300, 100):
        run = box.run([program, "end"], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (few, few)))
        blocks = int(run.stdout.split("blocks ")[1])
        same(f"ends, {few} files", [process["exit"] for process in run.summary["processes"]], [{"status": 0}] + 10 * [{"status": 4}])
        check(f"{run.summary['totals']['allocs']} blocks, {few} files, {blocks} expected", 0 <= run.summary["totals"]["allocs"] - blocks < 100)
        same("late or lost", (run.summary["losses"]["late"], run.summary["losses"]["records"]), (0, 0))


@case("truth: what an image wrote last is there, however far the collector is behind")
def exec_crowd(box):
    """each exec is said in the last chunk of its image, that is never sent"""
    raw = box.file("raw")
    run = box.run([box.compile("workloads/exec_crowd.c"), "4"], "--on-full=drop", f"--raw={raw}")
    same("processes", len(run.summary["processes"]), 5)
    listing = box.native(["/bin/sh", "-c", '"$0" dump "$1" | grep " exec pid="', box.tools.mlprof, raw]).stdout
    same("execs", len(listing.splitlines()), 4)


def register(tools):
    pass
