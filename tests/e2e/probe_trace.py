"""probe_trace.py - how probed calls look in a trace, asked in SQL; the records are those of tests/unit/test_probed.c."""
from harness import case, check, same, written_by_unit_test

ARGS = "extract_arg(s.arg_set_id, 'debug.{}')"
ON_TRACK = """select s.name, s.ts, s.dur, s.category, t.name as track, p.name as parent, g.name as grandparent
    from slice s join track t on s.track_id = t.id left join track p on t.parent_id = p.id left join track g on p.parent_id = g.id"""


def made(box):
    return written_by_unit_test(box, "test_probed")


@case("probe trace: calls on their threads by kind, moments, arguments that are numbers")
def calls(box):
    run = made(box)
    rows = run.sql("""select s.category, count(*) as n, min(s.dur) as least from slice s join thread_track t on s.track_id = t.id
        where s.category is not null group by 1 order by 1""")
    same("calls", {row["category"]: row["n"] for row in rows},
         {"copy": 1, "enqueue": 7, "mark": 2, "memory": 12, "span": 18, "submit": 2, "wait": 5})
    same("moments", [row["least"] for row in rows if row["category"] == "mark"], [0])
    rows = run.sql(f"""select s.dur, {ARGS.format('M')} as m, {ARGS.format('flops')} as flops, {ARGS.format('gflops')} as gflops,
        {ARGS.format('function')} as function from slice s where s.name = 'sgemm 100x100x100'""")
    same("arguments", {(row["dur"], row["m"], row["flops"], row["gflops"], row["function"]) for row in rows},
         {(20000, 100, 2000000, 100.0, "cblas_sgemm")})
    rows = run.sql(f"select s.name, {ARGS.format('failed')} as failed, {ARGS.format('left_by_exception')} as left from slice s")
    same("failed", [row["name"] for row in rows if row["failed"]], ["cardMalloc", "cardWait"])
    same("left", [row["name"] for row in rows if row["left"]], ["lib::eval"])
    found = {row["name"].rsplit(".", 1)[1]: row["int_value"] for row in run.sql("""select name, int_value from metadata
        where name like 'trace_attribute.mlprof.%probe_%'""")}
    same("what is missing", found, {"probe_values": 1, "probe_calls": 3, "probe_frees": 1, "probe_calls_too_short": 11})


@case("probe trace: work on the queues of its library, marked as the host saw it, with arrows")
def work(box):
    run = made(box)
    rows = run.sql(ON_TRACK + " where s.category = 'kernel'")
    same("places", {(row["name"], row["track"], row["parent"], row["grandparent"]) for row in rows},
         {("relu", "queue 0", "card", "Libraries"), ("softmax", "queue 0", "card", "Libraries"), ("softmax", "queue 1", "card", "Libraries"),
          ("run", "queue 0", "clock", "Libraries"), ("plain 5", "queue 0: default", "plain", "Libraries")})
    rows = run.sql(f"""select s.name, {ARGS.format('observed_by_host')} as observed, {ARGS.format('unfinished')} as unfinished,
        {ARGS.format('size_x')} as x, s.dur from slice s where s.category = 'kernel' order by s.ts, s.name""")
    same("marks", [(row["name"], bool(row["observed"]), bool(row["unfinished"])) for row in rows],
         [("relu", True, False), ("softmax", True, False), ("softmax", True, False), ("softmax", False, True), ("run", False, False),
          ("run", False, False), ("plain 5", True, False)])
    same("grids and times", [(row["x"], row["dur"]) for row in rows[:3]], [(128, 83000), (256, 83000), (8, 129000)])
    rows = run.sql("""select a.name as call, b.name as work, count(*) as n, sum(b.ts < a.ts) as early from flow f
        join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id group by 1, 2 order by 1, 2""")
    same("arrows that go back", sum(row["early"] for row in rows), 0)
    same("arrows", {(row["call"], row["work"]): row["n"] for row in rows},
         {("cardLaunch", "cardCommit"): 3, ("cardCommit", "relu"): 1, ("cardCommit", "softmax"): 2, ("cardLaunch", "softmax"): 1,
          ("clockRun", "run"): 2, ("plainRun", "plain 5"): 1})


@case("probe trace: heaps of libraries are curves, slices and profiles; counters are tracks")
def memory(box):
    run = made(box)
    rows = run.sql("""select t.name, p.name as library, g.name as grandparent, max(c.value) as top, count(*) as n from counter c
        join track t on c.track_id = t.id join track p on t.parent_id = p.id left join track g on p.parent_id = g.id
        where t.name in ('Memory', 'level') group by t.id order by 1, 2""")
    same("curves", [(row["name"], row["library"], row["grandparent"], row["top"]) for row in rows],
         [("Memory", "card", "Libraries", 3 << 20), ("Memory", "lib", "Libraries", 8000), ("level", "Counters", None, 36)])
    same("points", rows[2]["n"], 7)
    rows = run.sql(f"""select s.name, {ARGS.format('size')} as size, {ARGS.format('name')} as label, {ARGS.format('never_freed')} as never
        from slice s where s.category = 'allocation' order by s.ts""")
    same("blocks", [(row["name"], row["size"], row["label"], bool(row["never"])) for row in rows],
         [("cardMalloc", 1 << 20, "weights", False), ("cardMalloc", 2 << 20, "cache", True), ("libAlloc", 5000, None, False),
          ("libAlloc", 3000, None, True), ("libAlloc", 1000, None, True)])
    rows = run.sql("select heap_name, sum(size) as bytes from heap_profile_allocation where heap_name like '% memory' group by 1 order by 1")
    same("profiles", [(row["heap_name"], row["bytes"]) for row in rows], [("card memory", 3 << 20), ("lib memory", 8000)])
    check("the host's curve has nothing of it", run.sql("""select max(c.value) as top from counter c join track t on c.track_id = t.id
        where t.name = 'total (all processes)'""")[0]["top"] == 1 << 20)


def register(tools):
    pass
