"""probe_tables.py - functions behind tables: an API's struct of pointers, a class' virtual functions.

ONNX Runtime is the real one, from PyPI's wheel: its C library for a program that the test compiles, and its Python module, in which nothing
can be seen. The PJRT plugin is a stand-in (tests/workloads/pjrt_plugin.c): the real ones are for TPUs and GPUs.
"""
import glob
import json
import os
import re
import shutil

from harness import case, check, same
from vulkan import client_python

TABLES = """
tab_base    table at=$retval 0=Base.get
Base.get    table at=$retval 0=Tab.add 1=Tab.text 2=Tab.mul
Tab.add     span  a=$arg1 b=$arg2 {flags}
Tab.text    span  name="text {{what}}" what=$arg1:string {flags}
Tab.mul     span  a=$farg1 b=$farg2 {flags}
tab_sized   table at=$retval size=+0($retval) 1=Sized.one 2=Sized.two 3=Sized.three {flags}
tab_heap    table at=$retval 0=Heap.one 1=Heap.none {flags}
tab_locked  table at=$retval 0=Locked.two
tab_object  table at=+0($retval):ptr 0=Object.one 1=Object.none 2=Object.sum
Sized.one|Sized.two|Sized.three|Heap.one|Heap.none|Locked.two|Object.one|Object.none|Object.sum span
"""


def calls(run, preset=None):
    return {row["name"]: row["calls"] for row in run.summary["probes"] if row["preset"] == preset}


for flags in ("trust", "careful"):
    @case(f"tables: versions, sizes, read-only memory, objects; threads, a child, two copies that go and come again; {flags}")
    def shapes(box, flags=flags):
        library, program = box.compile("workloads/table_lib.c", "libtable.so"), box.compile("workloads/table_user.c")
        words = [program, library, shutil.copy(library, box.file("copy.so"))]
        plain = box.native(words)
        same("status", plain.status, 0)
        run = box.run(words, "--probes=none," + box.file("t.probes", TABLES.format(flags=flags)))
        same("output", (run.stdout, run.status), (plain.stdout, plain.status))
        check("constant tables can be written", "protection r--p r--p" in run.stdout)
        books = [[int(word) for word in line.split()[1:]] for line in run.stdout.splitlines() if line.startswith("books")]
        same("rounds of two copies", len(books), 4)
        add, text, mul, one, two, three, total, _ = map(sum, zip(*books))
        # The library's own count, and what its children did: one sum each. A table that says it is shorter than it is keeps its third
        # function for itself; memory that nobody may write keeps its own.
        same("calls", calls(run), {
            "Tab.add": add + 4, "text one": 4, "text two": 4, "text ": text - 8, "Tab.mul": mul, "Sized.one": 8, "Sized.two": 8, "Heap.one": 4,
            "Object.one": 4, "Object.sum": total, "Sized.three": three - 4,
        })
        same("one's", one, 8 + 4 + 4)
        same("two's", two, 8 + 4)
        same("what is said of it", run.summary["notices"], ["a table of functions has slots that cannot be replaced: calls through them are not seen"])
        losses = {name: count for name, count in run.summary["losses"].items() if count}
        same("losses", losses, {})


# ---- ONNX Runtime ---------------------------------------------------------------------------

def varint(n):
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def bytes_of(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def twice_model():
    """y = x + x for 256 floats, in ONNX's protobuf format"""
    def tensor(name):
        shape = b"".join(bytes_of(1, number(1, n)) for n in (1, 256))
        return bytes_of(1, name) + bytes_of(2, bytes_of(1, number(1, 1) + bytes_of(2, shape)))

    node = bytes_of(1, "x") + bytes_of(1, "x") + bytes_of(2, "y") + bytes_of(4, "Add")
    graph = bytes_of(1, node) + bytes_of(2, "twice") + bytes_of(11, tensor("x")) + bytes_of(12, tensor("y"))
    return number(1, 8) + bytes_of(7, graph) + bytes_of(8, number(2, 17))


def onnxruntime(box):
    """(folder of its files, a model, an environment that keeps what it writes in the box)"""
    python = client_python()
    folder, = glob.glob(os.path.dirname(os.path.dirname(python)) + "/lib/python*/site-packages/onnxruntime/capi")
    model = box.file("twice.onnx")
    with open(model, "wb") as file:
        file.write(twice_model())
    return folder, model, {"HOME": box.path, "XDG_CACHE_HOME": box.path}


def states(box, library):
    run = box.native([box.tools.mlprof, "probes", "--check", "--json", library])
    same(f"words of {library}", (run.status, run.stderr), (0, ""))
    said, = json.loads(run.stdout)
    return {row["symbol"]: row["state"] for row in said["rows"] if row["preset"] == "onnxruntime"}, said["unseen"]


@case("tables: ONNX Runtime's C API: sessions, runs, allocators")
def onnxruntime_c(box):
    folder, model, env = onnxruntime(box)
    library, = glob.glob(folder + "/libonnxruntime.so.*")
    words = [box.compile("workloads/ort_run.c"), library, model, "20"]
    plain = box.native(words, env)
    same(plain.stderr, plain.status, 0)
    run = box.run(words, env=env)
    same("output", (run.stdout, run.status), (plain.stdout, plain.status))
    check("the table's address changed", "same 1 1, an older version 1" in run.stdout)
    same("calls", calls(run, "onnxruntime"), {
        "OrtApi.CreateEnv": 1, f"create session {model}": 1, "create session": 1, "run": 21, "run with binding": 3, "OrtApi.ReleaseSession": 2,
        "OrtAllocator.Alloc": 5, "OrtAllocator.Free": 4})
    rows = {row["name"]: row for row in run.summary["probes"] if row["preset"] == "onnxruntime"}
    same("the run that had to fail", rows["run"]["failed"], 1)
    same("the model's bytes", rows["create session"]["bytes"], len(twice_model()))
    pool, = [pool for pool in run.summary["pools"] if pool["name"] == "onnxruntime"]
    # the blocks that the program asked for, and "x", the name of the input
    same("memory", (pool["peak_bytes"], pool["allocs"], pool["frees"], pool["live_at_exit_bytes"]), (1000000 + 500000 + 250000 + 2, 5, 4, 500000))
    slices = run.sql("""select extract_arg(arg_set_id, 'debug.inputs') as i, extract_arg(arg_set_id, 'debug.outputs') as o, count(*) as n,
        count(distinct extract_arg(arg_set_id, 'debug.session')) as sessions from slice where name = 'run' group by 1, 2""")
    same("runs", [(row["i"], row["o"], row["n"], row["sessions"]) for row in slices], [(1, 1, 21, 2)])
    same("unseen", run.summary["unseen_libraries"], [])
    said, unseen = states(box, library)
    same("--check", (said["OrtGetApiBase"], said["OrtApi.Run"], said["OrtAllocator.Alloc"], unseen), ("outside", "table", "table", []))


PYTHON = """
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
print(session.run(None, {"x": numpy.arange(256, dtype="f4").reshape(1, 256)})[0].sum())
"""


@case("tables: ONNX Runtime's Python module, of which nothing can be seen, as is said")
def onnxruntime_python(box):
    folder, model, env = onnxruntime(box)
    module, = glob.glob(folder + "/onnxruntime_pybind11_state.*.so")
    run = box.run([client_python(), "-c", PYTHON, model], env=env)
    same("output", (run.stdout, run.status), ("65280.0\n", 0))
    same("seen", calls(run, "onnxruntime"), {})
    same("unseen", run.summary["unseen_libraries"], [{"library": "onnxruntime", "path": module}])
    check(f"not said: {run.text}", re.search(rf"^Unseen +onnxruntime: {re.escape(os.path.basename(module))} .* no call to it can be seen$", run.text, re.M))
    rows = run.sql("select name, str_value from metadata where name like 'trace_attribute.mlprof.unseen.%' order by name")
    same("in the trace", [row["str_value"] for row in rows], ["onnxruntime", module])
    said, unseen = states(box, module)
    same("--check", (set(said.values()), unseen), ({"absent"}, ["onnxruntime"]))
    text = box.native([box.tools.mlprof, "probes", "--check", module]).stdout
    check(f"not said: {text}", "holds onnxruntime, linked in as one piece" in text and "exports 1 function" in text)
    other = box.run([client_python(), "-c", "import onnxruntime"], "--probes=-onnxruntime", env=env)
    same("without the preset", other.summary["unseen_libraries"], [])


# ---- PJRT -----------------------------------------------------------------------------------

@case("tables: a PJRT plugin, and one whose table is shorter")
def pjrt(box):
    program = box.compile("workloads/pjrt_user.c")
    for name, options, reads in (("pjrt_plugin.so", [], 7), ("pjrt_plugin_old.so", ["-DOLD"], 0)):
        plugin = box.compile("workloads/pjrt_plugin.c", name, options)
        plain, run = box.native([program, plugin, "7"]), box.run([program, plugin, "7"])
        same("output", (run.stdout, run.status), (plain.stdout, 0))
        back = int(re.search(r"read back (\d+)", run.stdout)[1])
        rows = {row["name"]: row for row in run.summary["probes"] if row["preset"] == "pjrt"}
        wanted = {"create client": 1, "compile": 1, "Pjrt.LoadedExecutableGetExecutable": 1, "Pjrt.ExecutableName": 1, "Pjrt.BufferFromHostBuffer": 5,
                  "Pjrt.LoadedExecutableExecute": 7, "Pjrt.EventAwait": 7, "Pjrt.BufferDestroy": 9, "Pjrt.BufferDelete": 2}
        same("calls", {name: row["calls"] for name, row in rows.items()}, {**wanted, **({"Pjrt.BufferToHostBuffer": 7} if reads else {})})
        same("bytes of the program", rows["compile"]["bytes"], 18)
        same("an upload of nothing", rows["Pjrt.BufferFromHostBuffer"]["failed"], 1)
        pool, = [pool for pool in run.summary["pools"] if pool["name"] == "pjrt"]
        matrix, cube, scalar = 64 * 32 * 4, 2 * 3 * 4 * 16, 1
        same("memory", (pool["peak_bytes"], pool["allocs"], pool["frees"], pool["live_at_exit_bytes"]), (matrix + cube + scalar, 3, 2, scalar))
        same("a size that could not be read", run.summary["losses"]["probe_values"], 1)
        same("frees of nobody's", run.summary["losses"]["probe_frees"], 0)
        same("kernels", {row["name"]: row["calls"] for row in run.summary["kernels"]}, {"jit_matmul": 7})
        same("read back", [(row["kind"], row["calls"], row["bytes"]) for row in run.summary["transfers"]], [("read", 7, back)] if reads else [])
        same("waits", run.summary["waits"]["calls"], 7)


def register(tools):
    pass
