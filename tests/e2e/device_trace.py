"""device_trace.py - how devices look in a trace, asked in SQL; the records are those of tests/unit/test_devices.c."""
from harness import case, check, same, written_by_unit_test

ARGS = "extract_arg(s.arg_set_id, 'debug.{}')"
ON_TRACK = """select s.id, s.name, s.ts, s.dur, s.depth, s.category, t.name as track, p.name as parent, g.name as grandparent
    from slice s join track t on s.track_id = t.id left join track p on t.parent_id = p.id left join track g on p.parent_id = g.id"""


def made(box):
    return written_by_unit_test(box, "test_devices")


@case("device trace: works on the tracks of their queues, calls on those of their threads")
def tracks(box):
    run = made(box)
    rows = run.sql(ON_TRACK + " where s.category in ('kernel', 'copy')")
    same("places", {(row["track"], row["parent"], row["grandparent"]) for row in rows},
         {("queue 0", "OpenCL 0: pthread-cpu", "Devices"), ("queue 1", "OpenCL 0: pthread-cpu", "Devices"),
          ("queue 0: compute", "Vulkan 0: Big GPU", "Devices")})
    same("slices", len(rows), 95)
    check("slices of a queue lie inside each other", all(row["depth"] == 0 for row in rows))
    check("slices without an end", all(row["dur"] >= 0 for row in rows))
    calls = run.sql("""select s.name, s.category, count(*) as n from slice s join thread_track t on s.track_id = t.id
        where s.category is not null group by 1, 2 order by 1""")
    same("calls", [(row["name"], row["category"], row["n"]) for row in calls],
         [("clEnqueueNDRangeKernel", "enqueue", 55), ("clFinish", "wait", 50), ("vkQueueSubmit", "submit", 20)])


@case("device trace: overlapping work has lanes of its own, marks where it is not timed")
def lanes(box):
    run = made(box)
    rows = run.sql(f"""select s.ts, s.dur, s.track_id, {ARGS.format('work')} as work, {ARGS.format('duration_ns')} as device,
        {ARGS.format('unfinished')} as unfinished, {ARGS.format('failed')} as failed, {ARGS.format('untimed')} as untimed
        from slice s join track t on s.track_id = t.id where t.name = 'queue 1' order by 4""")
    same("works", [row["work"] for row in rows], [51, 52, 53, 54, 55])
    same("durations", [row["device"] for row in rows[:2]], [200000, 290000])
    same("drawn", [row["dur"] for row in rows[:2]], [200000, 290000])
    check("two that overlap are on one lane", rows[0]["track_id"] != rows[1]["track_id"])
    same("marks", [bool(rows[2]["failed"]), bool(rows[3]["untimed"]), bool(rows[4]["unfinished"])], [True, True, True])


@case("device trace: an arrow from each call to its work")
def flows(box):
    run = made(box)
    rows = run.sql("""select a.name as call, b.name as work, count(*) as n, sum(b.ts < a.ts) as early from flow f
        join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id group by 1, 2 order by 1, 2""")
    same("arrows", [(row["call"], row["work"], row["n"], row["early"]) for row in rows],
         [("clEnqueueNDRangeKernel", "sgemm", 55, 0), ("vkQueueSubmit", "copy", 20, 0), ("vkQueueSubmit", "layer", 20, 0)])


@case("device trace: memory is a curve, and a slice for each allocation")
def memory(box):
    run = made(box)
    rows = run.sql("""select t.name, p.name as device, max(c.value) as top from counter c join track t on c.track_id = t.id
        join track p on t.parent_id = p.id where t.name like 'Memory%' group by t.id""")
    same("curves", {(row["name"], row["device"], row["top"]) for row in rows},
         {("Memory", "OpenCL 0: pthread-cpu", 1 << 20), ("Memory", "Vulkan 0: Big GPU", 4 << 20),
          ("Memory, heap 0", "Vulkan 0: Big GPU", 2 << 20), ("Memory, heap 1", "Vulkan 0: Big GPU", 2 << 20)})
    rows = run.sql(f"""select s.name, {ARGS.format('size')} as size, {ARGS.format('bound')} as bound, {ARGS.format('never_freed')} as never,
        {ARGS.format('memory')} as flags from slice s where s.category = 'allocation' order by s.ts""")
    same("sizes", [row["size"] for row in rows], [1 << 20, 1 << 20, 2 << 20, 2 << 20])
    same("what lay inside", rows[0]["bound"], "weights at 4096 (8192 bytes)")
    same("never freed", [bool(row["never"]) for row in rows], [False, False, True, True])
    same("flags", rows[2]["flags"], "device_local")
    rows = run.sql("select heap_name, sum(size) as bytes from heap_profile_allocation where heap_name like '% memory' group by 1 order by 1")
    same("profiles", [(row["heap_name"], row["bytes"]) for row in rows], [("OpenCL 0 memory", 1 << 20), ("Vulkan 0 memory", 4 << 20)])


@case("device trace: stacks that were written while the program ran have names")
def stacks(box):
    run = made(box)
    rows = run.sql("""select distinct s.name, coalesce(y.name, f.name) as inner from __intrinsic_track_event_callstacks c
        join slice s on c.slice_id = s.id join stack_profile_callsite t on c.callsite_id = t.id
        join stack_profile_frame f on t.frame_id = f.id left join stack_profile_symbol y using (symbol_set_id)
        where s.category in ('enqueue', 'allocation', 'kernel', 'submit') order by 1, 2""")
    same("innermost frames", [(row["name"], row["inner"]) for row in rows],
         [("buffer", "run_model"), ("clEnqueueNDRangeKernel", "run_model"), ("layer", "main"), ("memory", "main"), ("memory", "run_model"),
          ("vkQueueSubmit", "run_model")])


@case("device trace: says which devices there were")
def attributes(box):
    run = made(box)
    found = {row["name"].split("trace_attribute.mlprof.")[1]: row["str_value"] or row["int_value"] for row in
             run.sql("select name, str_value, int_value from metadata where name like 'trace_attribute.mlprof.%device%'")}
    same("titles", (found["device.1.title"], found["device.2.title"]), ("OpenCL 0: pthread-cpu", "Vulkan 0: Big GPU"))
    same("clocks", (found["device.1.clock"], found["device.2.clock"]), ("bounded", "calibrated"))
    same("peaks", (found["device.1.peak_bytes"], found["device.2.peak_bytes"], found["peak_with_devices_bytes"]), (1 << 20, 4 << 20, 4 << 20))


def register(tools):
    pass
