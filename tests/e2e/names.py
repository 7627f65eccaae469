"""names.py - the top stack at the peak names the right functions and lines.

Comments "frame: NAME" in a workload's source mark the lines that must be found, the innermost first.
"""
import glob
import os
import re
import sysconfig

from harness import PYTHON, TESTS, case, check, same


def marked(source):
    """[(function, line)] of a source's "frame:" comments, in order of the file"""
    with open(os.path.join(TESTS, source)) as file:
        lines = enumerate(file, 1)
        return [(match.group(1).strip(), number) for number, line in lines
                if (match := re.search(r"(?:/\*|//) frame: ([^*\n]+)", line))]


def look(source, run):
    stack = run.summary["peak"]["by_stack"][0]["frames"]
    name = os.path.basename(source)
    ours = [(f["function"].split("(")[0], f["line"]) for f in stack if os.path.basename(f.get("file") or "") == name]
    same("frames of the top stack", ours, marked(source))
    rows = run.sql("select distinct s.name as function, s.source_file as file, s.line_number as line from stack_profile_symbol s")
    found = {(row["function"].split("(")[0], row["line"]) for row in rows if os.path.basename(row["file"] or "") == name}
    check(f"in the trace: {found}", found.issuperset(marked(source)))


@case("names: C, with an inlined function")
def c(box):
    run = box.run([box.compile("workloads/name_c.c")])
    look("workloads/name_c.c", run)
    check("the text does not name it", "weights_load" in run.text)


@case("names: C++, through the standard library")
def cc(box):
    run = box.run([box.compile("workloads/name_cc.cc")])
    look("workloads/name_cc.cc", run)


@case("names: a Python extension")
def extension(box):
    include = sysconfig.get_paths()["include"]
    library = box.compile("workloads/name_ext.c", "name_ext.so", [f"-I{include}"])
    code = "import sys; sys.path.insert(0, %r); import name_ext; name_ext.make(30 << 20)" % os.path.dirname(library)
    run = box.run([PYTHON, "-c", code])
    look("workloads/name_ext.c", run)
    modules = [f["module"] for f in run.summary["peak"]["by_stack"][0]["frames"]]
    check(f"modules: {modules}", any("python3" in m for m in modules))


@case("names: code made at run time")
def jit(box):
    run = box.run([box.compile("workloads/name_jit.c")])
    names = [frame["function"] for frame in run.summary["peak"]["by_stack"][0]["frames"]]
    for path in glob.glob(f"/tmp/perf-{run.summary['processes'][0]['pid']}.map"):
        os.unlink(path)
    check(f"frames: {names}", ["allocate", "jit_matmul_f32", "main"] == [n for n in names if n in ("allocate", "jit_matmul_f32", "main")])


@case("names: stripped code gets its module and dynamic symbols")
def stripped(box):
    program = box.compile("workloads/name_c.c", "name_c-stripped", ["-s"])
    frames = box.run([program]).summary["peak"]["by_stack"][0]["frames"]
    check(f"module: {frames}", any(os.path.basename(f["module"]) == "name_c-stripped" for f in frames))
    check(f"libc: {frames}", any("libc_start" in (f["function"] or "") for f in frames))


def register(tools):
    pass
