"""trace.py - what must be in a trace, asked in SQL of Perfetto's trace processor."""
import os
import re

from harness import PYTHON, case, check, same

SPANS = """select s.name, s.ts, s.dur, extract_arg(s.arg_set_id, 'debug.size') as size from slice s
    join process_track t on s.track_id = t.id where s.name not like '%peak%' order by s.ts"""


@case("trace: large blocks are spans")
def spans(box):
    run = box.run([box.compile("workloads/spans.c")])
    rows = run.sql(SPANS)
    found = {(row["name"].split("(")[0].split()[0], int(row["size"])) for row in rows if row["size"] is not None}
    same("spans", found, {("embed", 2000000), ("attend", 3000000), ("cache", 4 << 20), ("embed", 5000000)})
    attend = [row for row in rows if row["name"].startswith("attend")][0]
    check(f"attend lived {attend['dur']} ns, about 50 ms expected", 49e6 < attend["dur"] < 120e6)
    small = box.run([box.compile("workloads/spans.c")], "--large=500")
    check("--large=500 draws the small one too", len(small.sql(SPANS)) > len(rows))


@case("trace: threads, processes, exit reasons")
def tree(box):
    run = box.run([box.compile("workloads/spans.c")])
    names = {row["name"] for row in run.sql("select name from thread")}
    check(f"threads: {names}", {"decoder", "spans"} <= names)
    run = box.run(["/bin/sh", "-c", "/bin/true; /bin/echo hello | /bin/cat"])
    rows = run.sql("select p.name, p.cmdline, parent.name as parent from process p left join process parent on p.parent_upid = parent.upid")
    check(f"processes: {rows}", {"sh", "true", "cat"} <= {os.path.basename((row["name"] or "").split()[0]) for row in rows if row["name"]})
    check(f"command lines: {rows}", any("hello" in (row["cmdline"] or "") for row in rows))


@case("trace: how children ended that leave by _exit or a signal")
def ends(box):
    code = """
import os, signal, time
for end in (lambda: os._exit(7), lambda: os.kill(os.getpid(), signal.SIGKILL)):
    pid = os.fork()
    if not pid:
        bytearray(5000)
        time.sleep(0.5)         # who is gone before the collector has heard of it leaves nothing to look at
        end()
    time.sleep(%s)
    os.waitpid(pid, 0)
"""
    release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    for pause in ("0.3", "0")[:2 if release >= (6, 15) else 1]:         # before that only those that wait to be taken show their status
        processes = box.run([PYTHON, "-c", code % pause]).summary["processes"]
        same(f"exits, taken after {pause} s", [process["exit"] for process in processes][1:], [{"status": 7}, {"signal": 9}])


@case("trace: RSS, faults and CPU are sampled")
def samples(box):
    program = box.compile("workloads/rss.c")
    run = box.run([program])
    rows = run.sql("""select t.name, max(c.value) as top, count(*) as points from counter c
        join process_counter_track t on c.track_id = t.id group by t.name""")
    top = {row["name"]: row["top"] for row in rows}
    points = {row["name"]: row["points"] for row in rows}
    anon = [name for name in top if "rss" in name.lower() and "anon" in name.lower()]
    check(f"no RSS counter among {sorted(top)}", anon)
    check(f"anon RSS {top[anon[0]]}", 64 << 20 <= top[anon[0]] < 80 << 20)
    check(f"{points[anon[0]]} samples in about 0.5 s at 20 ms", points[anon[0]] >= 5)
    high = box.run([program, "moment"]).summary["totals"]["peak_rss_bytes"]
    check(f"highest RSS, in a moment between two samples: {high}", 192 << 20 <= high < 224 << 20)
    check(f"no CPU counter among {sorted(top)}", any("cpu" in name.lower() for name in top))
    check(f"no fault counter among {sorted(top)}", any("fault" in name.lower() for name in top))


@case("trace: children are sampled at once, however still it was before")
def samples_of_children(box):
    code = f"""
import subprocess, time
for _ in range(3):
    time.sleep(0.4)
    subprocess.run(["{PYTHON}", "-c", "import time; held = bytearray(96 << 20); time.sleep(0.2)"])
"""
    processes = box.run([PYTHON, "-c", code]).summary["processes"]
    highest = [process["peak_rss_bytes"] for process in processes[1:]]
    check(f"highest RSS of children that hold 96 MiB for 0.2 s: {highest}", len(highest) == 3 and min(highest) >= 96 << 20)


@case("trace: says what made it")
def metadata(box):
    run = box.run([box.compile("workloads/name_c.c")], "--stacks=full")
    rows = run.sql("select name, str_value, int_value from metadata")
    text = str(rows)
    check(f"no version in {text[:600]}", "0.1.0" in text or "mlprof" in text)
    build_ids = run.sql("select name, build_id from stack_profile_mapping where build_id != ''")
    check(f"build ids: {build_ids}", any("libc" in row["name"] for row in build_ids))


@case("trace: the peak's moment and height are kept")
def peak_point(box):
    run = box.run([box.compile("workloads/heap_random.c")])
    peak = run.summary["peak"]
    rows = run.sql("""select c.ts, cast(c.value as int) as value from counter c join process_counter_track t on c.track_id = t.id
        where t.name = 'total' order by c.value desc, c.ts limit 1""")
    same("height", rows[0]["value"], peak["bytes"])
    start = run.value("select trace_start() as ts")
    check(f"instant of the peak: {run.sql('select name, ts from slice where dur = 0 limit 5')}",
          run.value("select count(*) as n from slice where lower(name) like '%peak%'") >= 1)
    check("the peak is outside the run", start <= rows[0]["ts"])


@case("trace: thinned curves keep every tooth, at its time")
def teeth(box):
    run = box.run([box.compile("workloads/teeth.c")])
    teeth = [(int(line.split()[1]), int(line.split()[2])) for line in run.stdout.splitlines() if line.startswith("tooth")]
    rows = run.sql("""select c.ts, cast(c.value as int) as value from counter c join process_counter_track t on c.track_id = t.id
        where t.name = 'malloc' order by c.ts""")
    box.note(f"{run.summary['overhead']['events']} events, {len(rows)} points")
    first = [row["ts"] for row in rows if row["value"] == teeth[0][0]]
    check("the first tooth is missing", first)
    for height, at in teeth:
        near = [row for row in rows if row["value"] == height and abs(row["ts"] - first[0] - at) < 1000000]
        check(f"the tooth of {height} bytes at {at} ns is not where it should be", near)
    feet = [row for row in rows if row["value"] == 0]
    check(f"{len(feet)} feet of {len(teeth)}", len(feet) >= len(teeth) - 1)


def register(tools):
    pass
