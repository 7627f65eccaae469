"""devices.py - device APIs in corners: forks while modules are bound, commands that no driver here has, marks, our own memory."""
import collections
import os

import opencl
from harness import case, check, same
from vulkan import DONE_IN_TIMED, DONE_OBSERVED, DONE_TIMED, GROUP, KERNEL, VALIDATION, build, recorded, shim, truth

WORKLOADS = "workloads/"
MARK = 7


@case("devices: a fork while another thread's modules are bound")
def fork_in_bind(box):
    build(box)                                          # its shaders
    gate = box.compile(WORKLOADS + "bind_gate.c", "bind_gate.so")
    user = box.compile(WORKLOADS + "bind_gate.c", "bind_gate_user.so", ["-DUSER", "-Wl,-z,lazy", gate, "-Wl,-rpath," + os.path.dirname(gate)])
    plugin = box.compile(WORKLOADS + "vk_work.c", "vk_work.so",
                         ["-Wno-unused-function", "-I", box.tools.programs, "-shared", "-fPIC", "-Dmain=plugin_main", "-lvulkan"])
    run, records = recorded(box, [box.compile(WORKLOADS + "bind_fork.c"), gate, user, plugin, "ops", "12"])
    check(run.stdout, "child: status 0, signal 0" in run.stdout)
    same("the child's work", records.seen(), truth(run))


@case("devices: a test's program is made anew when a header changes")
def headers(box):
    source = box.file("includes.c", '#include <stdio.h>\n#include "included.h"\nint main(void) { printf("%d\\n", NUMBER); return 0; }\n')
    program = box.file("includes")
    for number in (1, 2):
        header = box.file("included.h", f"enum {{ NUMBER = {number} }};\n")
        box.compile(source, program)
        same("output", box.native([program]).stdout, f"{number}\n")
        for path in (source, header):
            os.utime(path, (1, 1))                      # older than the program, until it is written again
        made = os.path.getmtime(program)
        same("made once", os.path.getmtime(box.compile(source, program)), made)


@case("devices: rays, and the structures they are traced in")
def rays(box):
    # no driver here has them: compute shaders behind the functions' names
    run, records = recorded(box, [build(box, "vk_rays.c", "getters")], env=shim(box, "rays"))
    told = [tuple(line.split()[1:]) for line in run.stdout.splitlines() if line.startswith("op ")]
    works = [work for _, work in sorted(records.works.items())]
    seen = [("main" if records.name(work).startswith("main#") else records.name(work), str(work["x"])) for work in works]
    same("work", (seen, len(told)), (told, 6))
    same("ends", dict(records.statuses()), {DONE_TIMED: 6})
    spans = records.spans()
    check(f"order {spans}", all(a[1] <= b[0] for a, b in zip(spans, spans[1:])))
    same("kernels", sum(row["calls"] for row in run.summary["kernels"] if row["name"] == "scale_up"), 3)
    same("local size", [work["local"] for work in works if records.name(work) == "scale_up"], [0] * 3)
    same("build", run.value("select count(*) as n from slice where name = 'vkCreateRayTracingPipelinesKHR'"), 1)


@case("devices: marks on a queue's track")
def marks(box):
    for env in (None, VALIDATION):
        run, records = recorded(box, [build(box, "vk_marks.c")], env=env)
        told = [word for line in run.stdout.splitlines() if line.startswith("track ") for word in line[6:].split(", ")]
        works = [(work, records.ends[id]) for id, work in sorted(records.works.items()) if work["kind"] != GROUP]
        same("track", ["kernel" if work["kind"] == KERNEL else records.name(work) for work, _ in works], told)
        same("kinds", {work["kind"] for work, _ in works}, {KERNEL, MARK})
        timed = [end for work, end in works if records.name(work) != "between"]
        same("ends", {end["status"] for end in timed}, {DONE_TIMED})
        check("marks lie where all before them is over", all(a["end"] <= b["start"] for a, b in zip(timed, timed[1:])))
        same("the queue's", [end["status"] for work, end in works if records.name(work) == "between"], [DONE_OBSERVED] * 2)
    rows = run.sql("select name, count(*) as n from slice where category = 'mark' group by name order by name")
    same("in the trace", [(row["name"], row["n"]) for row in rows], [(name, 2) for name in ("between", "first", "last", "middle", "second")])
    run, records = recorded(box, [build(box, "vk_marks.c")], "--device-time=submit")
    same("where nothing is timed", [records.name(work) for work in records.works.values() if work["kind"] == MARK], ["between"] * 2)


@case("devices: a million Vulkan labels, each another: bounded memory, and said")
def many_labels(box):
    run, _ = recorded(box, [build(box, "vk_marks.c"), "1000000"])
    check(f"said: {run.summary['notices']}", any("names and labels" in line for line in run.summary["notices"]))
    half, end = (int(word) for word in run.stdout.split()[1:])
    check(f"{half} KiB after half of them, {end} in the end", end < half + 4096)


@case("devices: what a driver takes for mlprof is not taken for the program's")
def own_memory(box):
    def taken(*options):
        run = box.run([build(box), "ops", "12"], *options)
        rows = [row for row in run.summary["peak"]["by_stack"] if row.get("driver_call")]
        return run, {mine: sorted((row["driver_call"], row["bytes"]) for row in rows if row["for_mlprof"] == mine and row["bytes"] > 4096)
                     for mine in (False, True)}

    run, timed = taken("--large=64K")
    check(f"the memory that times are copied to: {timed}", ("vkQueueSubmit", 65536) in timed[True])
    same("in the trace", run.value("select count(*) as n from args where key = 'debug.driver_for' and string_value = 'mlprof'"), 1)
    run, plain = taken("--device-time=off")
    same("without times", plain[True], [])
    same("the program's", *[[row for row in rows[False] if row[0] == "vkAllocateMemory"] for rows in (timed, plain)])


@case("devices: OpenCL callbacks that enqueue, wherever the driver calls them")
def callbacks(box):
    program = box.compile(WORKLOADS + "opencl_callbacks.c")
    plain, run = box.native([program]), box.run([program])
    same("output", (run.status, run.stdout), (plain.status, plain.stdout))
    told = dict(line.split()[1:] for line in run.stdout.splitlines() if line.startswith("kernel "))
    same("kernels", {row["name"]: str(row["timed"]) for row in run.summary["kernels"]}, told)
    same("unfinished", run.summary["losses"]["works_unfinished"], 0)
    inside = run.sql("""select outer_call.name, count(*) as n from slice as call join slice as outer_call on call.parent_id = outer_call.id
                        where call.name = 'clEnqueueNDRangeKernel' and outer_call.name in ('clBuildProgram', 'clReleaseMemObject')
                        group by outer_call.name order by outer_call.name""")
    same("calls inside of calls", [(row["name"], row["n"]) for row in inside], [("clBuildProgram", 1), ("clReleaseMemObject", 3)])


@case("devices: wrong OpenCL calls fail as they do alone")
def wrong(box):
    program = box.compile(WORKLOADS + "opencl_wrong.c")
    plain, run = box.native([program]), box.run([program])
    same("output", (run.status, run.stdout, run.stderr), (plain.status, plain.stdout, plain.stderr))
    check("few wrong calls", plain.stdout.count(" cl") > 38)
    device, kernel = run.summary["devices"][0], run.summary["kernels"][0]
    same("kernels that ran, and those that were refused", (device["kernels"], kernel["calls"]), (0, kernel["failed"]))
    check(f"none was refused: {run.text}", kernel["failed"] and f"({kernel['failed']} failed)" in run.text)
    refused = [row for row in run.summary["transfers"] if row["failed"]]
    check(f"transfers {refused}", {"read", "copy", "fill", "map"} <= {row["kind"] for row in refused})
    same("bytes that they moved", {row["kind"]: row["bytes"] for row in refused if row["failed"] == row["calls"] and row["bytes"]}, {})
    box.check_expected(run)


@case("devices: secondary command buffers in secondary ones, and on two queues at once")
def secondaries(box):
    program = build(box, "vk_secondary.c")
    run, records = recorded(box, [program, "nested"])
    same("kernels", collections.Counter((work["kind"], work["x"]) for work in records.works.values()),
         {(KERNEL, 1): 3, (KERNEL, 2): 3, (KERNEL, 3): 3, (GROUP, 0): 3})
    same("ends", dict(records.statuses()), {DONE_TIMED: 12})
    check("said", any("executed in secondary ones" in line for line in run.summary["notices"]))
    # the second run of one set of queries cannot be timed, and is not timed wrongly
    run, records = recorded(box, [program, "shared"], env=shim(box, "queues"))
    works = [(work["kind"], work["x"], records.ends[id]["status"]) for id, work in sorted(records.works.items())]
    same("work", works, [(KERNEL, x, DONE_TIMED) for x in (1, 2, 3)] + [(KERNEL, x, DONE_IN_TIMED) for x in (1, 2, 3)] + [(GROUP, 0, DONE_TIMED)])
    check("said", "on two queues at once" in run.text)


@case("devices: the switches as variables, with a bare LD_PRELOAD")
def variables(box):
    words = [build(box), "resubmit", "12"]
    device = box.bare(words, env={"MLPROF_DEVICE_TIME": "submit", "MLPROF_API": "vulkan"}).summary["devices"][0]
    same("submits timed, and the kernels in them not", (device["works_timed"], device["works_untimed"], device["kernels"]), (200, 200, 200))
    device = box.bare(words, env={"MLPROF_DEVICE_TIME": "off"}).summary["devices"][0]
    same("submits as the host saw them", (device["works_timed"], device["works_observed"], device["kernels"]), (0, 200, 200))
    for api in ("none", "opencl"):
        same(api, box.bare(words, env={"MLPROF_API": api}).summary["devices"], [])


@case("devices: OpenCL memory that others made, and semaphores")
def imports(box):
    # no driver here has these: the stand-in (opencl_driver.c)
    _, env = opencl.standin(box)
    run = opencl.same_with(box, [box.compile(WORKLOADS + "opencl_imports.c")], env)
    box.check_expected(run)
    kinds = run.sql("select name, count(*) as n from slice where category = 'allocation' group by name order by name")
    same("kinds", [(row["name"], row["n"]) for row in kinds], [("OpenGL buffer", 1), ("buffer", 4), ("imported memory", 1)])
    same("imported", run.value("select count(*) as n from args where key = 'debug.memory' and string_value like '%imported%'"), 4)
    same("work", {row["kind"]: row["calls"] for row in run.summary["transfers"]}, {"other": 5, "mark": 2, "fill": 1})
    same("filled", opencl.sums(run, "transfers", "fill", "bytes"), 64)


@case("devices: a whole OpenCL library between program and loader")
def proxy(box):
    library = box.compile(WORKLOADS + "opencl_proxy.c", "libproxy.so")
    program = box.compile(WORKLOADS + "opencl_many.c", "opencl_many-proxy", ["-Wl,--no-as-needed", library, "-Wl,-rpath," + os.path.dirname(library)])
    run = box.run([program, "1000"])
    same("status", run.status, 0)
    box.check_expected(run)


def register(tools):
    pass
