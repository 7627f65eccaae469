"""probe_roles.py - a user's probe file gives a library's calls their meaning; the library keeps books of what it really did.

The library (tests/workloads/card.c) runs its work on a thread of its own and prints when.
"""
import os
import re

from harness import case, check, same

ROWS = """
# my card: memory, names, encoders, work
card_malloc   alloc   heap=card size=$arg2 label=$arg3:string ptr=+0($arg1):ptr@ret ok=$retval:s32==0 callstack
card_free     free    heap=card ptr=$arg1 entry
card_release  free    heap=card ptr=$arg1 any=1 entry
card_register bind    key=$arg1 name=$arg2:string
card_encoder  set     key=$retval val=$arg1 as=queue
card_use      set     key=$arg1 val=$arg2 as=function entry
card_launch   dispatch name=name(cur($arg1,function)) queue=cur($arg1,queue) gx=$stack1 gy=$stack2 gz=$stack3 us=$arg2:s32 stack=4
card_submit   submit  queue=$arg1
card_wait     wait    queue=$arg1
card_copy     copy    bytes=$arg3 dir=$arg4:s32
card_level    counter value=$fretval
card_note     mark    name="epoch {n}" n=$arg1:s32
"""


def made(box, *options):
    library = box.compile("workloads/card.c", "libcard.so")
    program = box.compile("workloads/card_user.cc", "card_user", [library, "-Wl,-rpath," + os.path.dirname(library)])
    run = box.run([program], "--probes=none," + box.file("card.probes", ROWS), *options)
    same(run.stderr, run.status, 0)
    box.check_no_loss(run.summary)
    return run


def ran(run):
    """(name, queue, start, end) of what the card did"""
    lines = [line.split() for line in run.stdout.splitlines() if line.startswith("ran ")]
    return [(name, int(queue), int(start), int(end)) for _, name, queue, start, end in lines]


@case("probe roles: a dispatch is shown from its submit to its wait, around what the card really did")
def work(box):
    run = made(box)
    books = ran(run)
    same("kernels that ran", len(books), 12)
    rows = run.sql("""select s.name, s.ts, s.ts + s.dur as end, t.name as track, extract_arg(s.arg_set_id, 'debug.observed_by_host') as observed,
        extract_arg(s.arg_set_id, 'debug.size_x') as x, extract_arg(s.arg_set_id, 'debug.size_z') as z,
        extract_arg(s.arg_set_id, 'debug.us') as us from slice s join track t on s.track_id = t.id where s.category = 'kernel' order by s.ts""")
    seen = [row for row in rows if row["observed"]]
    same("kernels seen", len(seen), 12)
    same("never submitted", len(rows) - len(seen), 1)
    for number in (0, 1):
        mine = [row for row in seen if row["track"] == f"queue {number}"]
        theirs = [book for book in books if book[1] == number]
        same("names", sorted(row["name"] for row in mine), sorted(book[0] for book in theirs))
        for name in {book[0] for book in theirs}:
            pairs = zip([row for row in mine if row["name"] == name], [book for book in theirs if book[0] == name])
            check("a kernel ran outside of its span", all(row["ts"] <= book[2] and book[3] <= row["end"] for row, book in pairs))
    same("sizes", {(row["name"], row["x"], row["z"], row["us"]) for row in seen},
         {("relu", 100, 3, 3000), ("softmax", 7, 1, 2000), ("relu", 5, 5, 1000)})
    kernels = {row["name"]: row for row in run.summary["kernels"]}
    same("calls", {name: row["calls"] for name, row in kernels.items()}, {"relu": 8, "softmax": 4})
    shares = re.findall(r"^ +[\d.]+ [num]?s +(?:([\d.]+) %)? +\d+ .*  (\w+)  on card ", run.text, re.M)
    check(f"shares of more than all: {run.text}", {name for _, name in shares} == {"relu", "softmax"} and all(float(share or 0) <= 100 for share, _ in shares))
    same("left over", run.summary["losses"]["works_unfinished"], 1)
    waits = run.summary["waits"]
    same("waits", waits["calls"], 8)
    check(f"waited {waits['total_ns']} ns", waits["total_ns"] >= 4 * 4_000_000)
    flows = run.sql("""select a.name as a, b.name as b, count(*) as n from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id
        where b.category = 'kernel' group by 1, 2 order by 1, 2""")
    same("arrows", [(row["a"], row["b"], row["n"]) for row in flows],
         [("card_launch", "relu", 1), ("card_submit", "relu", 8), ("card_submit", "softmax", 4)])


@case("probe roles: memory, transfers, counters, marks")
def memory(box):
    run = made(box)
    pool = next(pool for pool in run.summary["pools"] if pool["name"] == "card")
    same("pool", (pool["kind"], pool["peak_bytes"], pool["allocs"], pool["frees"], pool["live_at_exit_bytes"]), ("library", 4 << 20, 3, 2, 1 << 20))
    device = next(device for device in run.summary["devices"] if device["title"] == "card")
    same("owners", [(row["bytes"], row["owner"]) for row in device["peak"]["by_stack"]], [(3 << 20, "memory"), (1 << 20, "memory")])
    profiles = run.sql("""select heap_name as heap, sum(size) as bytes, sum(count) as blocks from heap_profile_allocation
        where heap_name like 'card%' group by 1 order by 1""")
    same("profiles", [(row["heap"], row["bytes"], row["blocks"]) for row in profiles], [("card memory", 4 << 20, 2), ("card memory at exit", 1 << 20, 1)])
    same("frees of nobody's", run.summary["losses"]["probe_frees"], 0)
    same("values not read", run.summary["losses"]["probe_values"], 0)
    check("added to the host's", run.summary["peak"]["bytes"] < 5 << 20)
    same("transfers", {row["kind"]: (row["calls"], row["bytes"]) for row in run.summary["transfers"]}, {"write": (10, 1000000), "read": (1, 50000)})
    calls = {row["name"]: row for row in run.summary["probes"]}
    same("calls", {name: row["calls"] for name, row in calls.items()},
         {"card_malloc": 4, "card_free": 1, "card_release": 2, "card_register": 2, "card_encoder": 2, "card_use": 12, "card_launch": 13,
          "card_submit": 8, "card_wait": 8, "card_copy": 11, "card_level": 5, "epoch 7": 1})
    same("failed", calls["card_malloc"]["failed"], 1)
    same("labels", {row["name"] for row in run.sql("""select extract_arg(s.arg_set_id, 'debug.name') as name from slice s where s.category = 'allocation'""")},
         {"weights", "cache", "again"})
    same("curve", [row["value"] for row in run.sql("""select c.value from counter c join track t on c.track_id = t.id
        where t.name = 'card_level' order by c.ts""")], [0.0, 0.75, 1.5, 2.25, 3.0])
    same("marks", run.value("select count(*) from slice where category = 'mark' and name = 'epoch 7' and dur = 0"), 1)


@case("probe roles: a raw stream gives the same again, byte for byte")
def again(box):
    raw = box.file("raw")
    run = made(box, "--raw=" + raw)
    trace = box.new_trace()
    same("replay", box.native([box.tools.mlprof, "replay", "-q", "-o", trace, raw]).status, 0)
    for suffix in (".perfetto-trace", ".summary.json", ".summary.txt"):
        first, second = (open(path.replace(".perfetto-trace", suffix), "rb").read() for path in (run.trace, trace))
        check(f"{suffix} differs", first.replace(os.path.basename(run.trace).encode(), b"") == second.replace(os.path.basename(trace).encode(), b""))


def register(tools):
    pass
