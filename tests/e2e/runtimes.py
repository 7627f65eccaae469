"""runtimes.py - the presets litert, openvino and tensorflow.

OpenVINO and LiteRT are the real libraries, from PyPI, with a tiny model that the program makes itself. Of TensorFlow Lite no package
exports the C API, and TensorFlow is too large to fetch for a test: these are stand-ins (tests/workloads/tflite.c, tensorflow.c) with the
public headers' functions.
"""
import json
import os

from harness import case, check, same
from vulkan import WORKLOADS, client_python


def both(box, words):
    plain, run = box.native(words), box.run(words)
    same("output", (run.status, run.stdout), (plain.status, plain.stdout))
    same(run.stderr[-300:], run.status, 0)
    box.check_no_loss(run.summary)
    return run


def calls(run, preset):
    """name -> (calls, those that failed or were left by an exception)"""
    return {row["name"]: (row["calls"], row["failed"] + row["unwound"]) for row in run.summary["probes"] if row["preset"] == preset}


def kernels(run):
    return {row["name"]: (row["device"], row["calls"]) for row in run.summary["kernels"]}


def linked(box, name):
    library = box.compile(f"workloads/{name}.c", f"lib{name}-stand-in.so")
    return box.compile(f"workloads/{name}_user.c", f"{name}_user", [library, "-Wl,-rpath," + os.path.dirname(library)])


@case("runtimes: OpenVINO's inference requests, from Python and through its C API")
def openvino(box):
    path = box.file("tiny.xml")
    run = both(box, [client_python(), os.path.join(WORKLOADS, "runtime_openvino.py"), path])
    check(f"the program did what it says: {run.stdout}", "too early [False, False, False] then True\nrefused\n4096.0 4096.0\ncodes {0} no such file: True\n" == run.stdout)
    # 5 calls of infer, one that throws and 3 of start_async from Python; 4 and 2 through C, each of which calls the C++ one. One more was
    # started, and looked at by wait_for before it was through.
    told = calls(run, "openvino")
    same("calls", {name: told[name] for name in told if name.startswith("ov")},
         {"ov::InferRequest::infer": (5 + 1 + 4, 1), "ov::InferRequest::start_async": (1 + 3 + 2, 0), "ov::InferRequest::wait": (1 + 3 + 2, 0),
          "ov::InferRequest::wait_for": (4 + 1, 0), "ov_infer_request_wait_for": (1, 0),
          "ov_infer_request_infer": (4, 0), "ov_infer_request_start_async": (2, 0), "ov_infer_request_wait": (2, 0)})
    same("inferences", kernels(run), {"infer": ("openvino", 15)})
    same("waits, those of C around those of C++", run.summary["waits"]["calls"], 6 + 5 + 2 + 1)
    same("read", (told[f"read_model {path}"], told["read_model /none.xml"]), ((1, 0), (1, 1)))
    same("compiled", (told["compile_model on CPU"], told[f"compile_model {path} on CPU"]), ((1, 0), (1, 0)))
    rows = run.sql("""select t.name as track, count(*) as n from slice s join track t on s.track_id = t.id where s.category = 'kernel' group by 1 order by 1""")
    same("a track for each request", [(row["track"], row["n"]) for row in rows], [("queue 0", 1), ("queue 1", 8), ("queue 2", 6)])
    longest, = run.sql("""select max(dur) as dur from slice where category = 'kernel'""")
    check(f"the long one: {longest}", longest["dur"] >= 3_000_000)
    # One that was started lasts until the wait for it is over.
    ends = [{row["end"] for row in run.sql(f"select ts + dur as end from slice where {where}")} for where in (
        "category = 'kernel'", "category = 'wait'", "name in ('ov::InferRequest::infer', 'ov_infer_request_infer') and category != 'kernel'")]
    same("ends of no wait and no infer", ends[0] - ends[1] - ends[2], set())


@case("runtimes: LiteRT's compiled model through its C API")
def litert(box):
    path = box.file("tiny.tflite")
    run = both(box, [client_python(), os.path.join(WORKLOADS, "runtime_litert.py"), path])
    same("what it computed", run.stdout, "codes {0} no model: True asynchronous: False\n192.0\n")
    # Inside, this version calls LiteRtRunCompiledModelWithOptions, and locks buffers.
    told = calls(run, "litert")
    same("calls", {name: told[name] for name in told if "Lock" not in name and "With" not in name},
         {f"load {path}": (1, 0), "compile": (1, 0), "LiteRtRunCompiledModel": (6, 1), "LiteRtRunCompiledModelAsync": (2, 0),
          "LiteRtCreateManagedTensorBuffer": (2, 0), "LiteRtDestroyTensorBuffer": (1, 0)})
    same("runs", kernels(run)["run"], ("litert", 7))
    pool = next(pool for pool in run.summary["pools"] if pool["name"] == "litert")
    same("buffers of 64 floats", (pool["peak_bytes"], pool["allocs"], pool["frees"], pool["live_at_exit_bytes"]), (512, 2, 1, 256))
    same("all is over when it returns", run.summary["losses"]["works_unfinished"], 0)


@case("runtimes: LiteRT's Python module is linked as one piece, and --check says so")
def one_piece(box):
    script = "import ai_edge_litert, os; print(os.path.dirname(ai_edge_litert.__file__))"
    home = box.native([client_python(), "-c", script]).stdout.strip()
    said = box.native([box.tools.mlprof, "probes", "--check", "--probes=none,+litert", os.path.join(home, "libpywrap_litert_common.so")])
    check(said.stdout, "0 rows see something here" in said.stdout and "linked in as one piece" in said.stdout)
    seen = json.loads(box.native([box.tools.mlprof, "probes", "--json", "--check", "--probes=none,+litert", os.path.join(home, "libLiteRt.so")]).stdout)
    check("the library for C programs shows something", "LiteRtRunCompiledModel" in json.dumps(seen))


@case("runtimes: LiteRT's Python module at work is named as unseen, though a library that could be seen lies beside it")
def unseen_piece(box):
    path = box.file("tiny.tflite")
    script = f"""import sys; sys.path.insert(0, {WORKLOADS!r}); sys.argv = ['runtime_litert.py', {path!r}]
import numpy
rows = open({WORKLOADS!r} + '/runtime_litert.py').read().split('\\nmain(')[0]; names = {{'__name__': 'rows'}}; exec(rows, names)
open({path!r}, 'wb').write(names['model']())
from ai_edge_litert.interpreter import Interpreter
one = Interpreter({path!r}); one.allocate_tensors(); one.set_tensor(0, numpy.ones((1, 64), 'f4')); one.invoke(); print(one.get_tensor(1).sum())"""
    run = box.run([client_python(), "-c", script])
    same(f"status: {run.stderr[-300:]}", run.status, 0)
    same("calls", calls(run, "litert"), {})
    check(f"unseen: {run.summary['unseen_libraries']}", any(one["library"] == "litert" for one in run.summary["unseen_libraries"]))


@case("runtimes: TensorFlow Lite's C API (a stand-in)")
def tflite(box):
    model = box.file("model.tflite", "x")
    run = both(box, [linked(box, "tflite"), model])
    same("books", run.stdout, "too early 1, no file 1\ntoo few 1\n2\ninvoked 7 from 1792 to 256\n")
    same("calls", calls(run, "litert"),
         {f"load {model}": (1, 0), "load /none": (1, 1), "TfLiteInterpreterCreate": (1, 0), "TfLiteInterpreterAllocateTensors": (1, 0),
          "invoke": (8, 1), "TfLiteTensorCopyFromBuffer": (8, 1), "TfLiteTensorCopyToBuffer": (1, 0)})
    invoke = next(row for row in run.summary["kernels"] if row["name"] == "invoke")
    check(f"seven of 2 ms: {invoke}", invoke["calls"] == 7 and invoke["min_ns"] >= 2_000_000)
    same("copied", sum(row["bytes"] for row in run.summary["transfers"]), 1792 + 256)


@case("runtimes: TensorFlow's operations, sessions and tensors (a stand-in)")
def tensorflow(box):
    run = both(box, [linked(box, "tensorflow")])
    same("output", run.stdout, "too many results 0\nno type 1\nno session 0\nno model 0\n")
    told = calls(run, "tensorflow")
    same("operations", (told["MatMul"], told["Relu"], told["run"], told["load /"], told["load /none"]), ((7, 1), (1, 0), (4, 1), (1, 0), (1, 1)))
    listed = {name: count for name, (_, count) in kernels(run).items()}
    same("kernels", listed, {"MatMul": 6, "Relu": 1, "run": 3})
    pool = next(pool for pool in run.summary["pools"] if pool["name"] == "tensorflow")
    same("tensors", (pool["peak_bytes"], pool["allocs"], pool["frees"], pool["live_at_exit_bytes"]), (85000, 4, 3, 40000))
    arguments = run.sql("""select distinct extract_arg(arg_set_id, 'debug.inputs') as i, extract_arg(arg_set_id, 'debug.outputs') as o from slice where name = 'run'""")
    same("inputs and outputs", [(row["i"], row["o"]) for row in arguments], [(2, 3)])


def register(tools):
    pass
