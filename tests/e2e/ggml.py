"""ggml.py - presets ggml and ggml-ops on the real libraries: xllamacpp, gpt4all (llama.cpp) and pywhispercpp (whisper.cpp) from PyPI.

The models are written here (workloads/ggml_models.py). What must be seen is known from what the program asked for, from llama.cpp's and
whisper.cpp's own counters, from shapes in the model's file and from the sizes that ggml gives for its buffers.
"""
import collections
import json
import os
import re

from harness import case, check, same
from vulkan import WORKLOADS, client_python

PROMPT, STEPS = 7, 100


def python(box, code, *words):
    done = box.native([client_python("ggml.txt"), "-c", code, *words], env={"PYTHONPATH": WORKLOADS})
    same(f"python: {done.stderr[-400:]}", done.status, 0)
    return json.loads(done.stdout)


def model(box, kind):
    """a model's file, and the bytes of each of its tensors"""
    path = f"tiny.{kind}"
    return path, python(box, f"import ggml_models, json, sys; print(json.dumps(ggml_models.write_{kind}(sys.argv[1])))", path)


def both(box, script, *words, options=(), venv="ggml.txt"):
    """the program with and without mlprof: the same output; the run and its last word on stderr"""
    command = [client_python(venv), os.path.join(WORKLOADS, script), *map(str, words)]
    plain, run = box.native(command), box.run(command, *options)
    same(f"status: {run.stderr[-400:]}", (plain.status, run.status), (0, 0))
    same("output", run.stdout, plain.stdout)
    check("output", run.stdout)
    losses = {name: count for name, count in run.summary["losses"].items() if count and name != "symbols"}
    same("losses", losses, {})
    return run


def books(run):
    return json.loads(run.stderr.strip().splitlines()[-1])


def rows(run, preset="ggml"):
    return {row["name"]: row for row in run.summary["probes"] if row["preset"] == preset}


def calls(run, preset="ggml"):
    return {name: row["calls"] for name, row in rows(run, preset).items()}


def rate(row):
    return next(rate["total"] for rate in row["rates"] if rate["unit"] == "tokens")


def near(what, got, wanted, part, more=0):
    check(f"{what}: {got}, expected {wanted} within {part * 100} %", abs(got - wanted) <= part * wanted + more)


def pool(run):
    return next(pool for pool in run.summary["pools"] if pool["name"] == "ggml")


def buffers(run):
    """(name of the function that made it, bytes), in order"""
    return [(row["name"], row["size"]) for row in run.sql("""select s.name, extract_arg(s.arg_set_id, 'debug.size') as size from slice s
        where s.category = 'allocation' and s.name like 'ggml%' order by s.ts""")]


def padded(sizes):
    return sum(-(-size // 64) * 64 for size in sizes.values())


# ---- llama.cpp --------------------------------------------------------------------------------

def check_tokens(run, told):
    """what llama.cpp counted itself, and the time that the program took for its loop"""
    seen = run.summary["tokens"]
    same("steps and the prompt", [(row["steps"], row["batches"], row["batch_tokens"]) for row in seen], [(STEPS, 1, PROMPT)])
    same("llama.cpp's own counters", (told["steps"], told["prompt"]), (STEPS, PROMPT))
    near("time of the loop", seen[0]["loop_ns"], told["loop_ns"], 0.05, 1000000)
    near("tokens/s", seen[0]["per_s"], STEPS * 1e9 / seen[0]["loop_ns"], 0.001)
    check(f"steps alone: {seen[0]['step_ns']} ns, llama.cpp says {told['step_ms']} ms", seen[0]["step_ns"] <= told["step_ms"] * 1.02e6)
    return seen[0]


def check_llama(run, sizes, told):
    count = calls(run)
    same("decodes and graphs", {name: count.get(name) for name in ("llama_decode", "llama_context::process_ubatch", "llama_context::graph_compute",
                                                                  "ggml_backend_sched_graph_compute_async", "llama_init_from_model")},
         {"llama_decode": 1 + STEPS, "llama_context::process_ubatch": 1 + STEPS, "llama_context::graph_compute": 1 + STEPS,
          "ggml_backend_sched_graph_compute_async": 1 + STEPS, "llama_init_from_model": 1})
    same("tokens", [rate(rows(run)[name]) for name in ("llama_decode", "llama_context::process_ubatch")], [PROMPT + STEPS] * 2)
    same("the model's bytes", told["model_bytes"], sum(sizes.values()))
    spans = run.sql("""select extract_arg(s.arg_set_id, 'debug.tokens') as tokens from slice s where s.name = 'llama_decode' order by s.ts""")
    same("tokens of each decode", [row["tokens"] for row in spans], [PROMPT] + [1] * STEPS)


@case("ggml: llama.cpp by its C functions: decodes, tokens/s, tensors, buffers")
def llama(box):
    path, sizes = model(box, "llama")
    run = both(box, "ggml_llama.py", path, PROMPT, STEPS)
    told = books(run)
    check_llama(run, sizes, told)
    speed = check_tokens(run, told)
    words, width, layers, context = 259, 64, 2, 256              # a context is at least 256 long
    logits = run.sql("""select s.name, extract_arg(s.arg_set_id, 'debug.shape') as shape, extract_arg(s.arg_set_id, 'debug.bytes') as bytes,
        count(*) as n from slice s where s.name like 'get %' group by 1, 2, 3""")
    same("logits", [(row["name"], row["shape"], row["bytes"], row["n"]) for row in logits], [("get result_output", f"{words}x1x1x1", 4 * words, 2 * (1 + STEPS))])
    same("moved once: the asynchronous one calls the other", next(move["bytes"] for move in run.summary["transfers"] if move["kind"] == "read"), 4 * words * (1 + STEPS))
    inputs = {row["name"]: (row["bytes"], row["n"]) for row in run.sql("""select s.name, sum(extract_arg(s.arg_set_id, 'debug.bytes')) as bytes, count(*) as n
        from slice s where s.name like 'set %' group by 1""")}
    same("words handed over", inputs["set inp_tokens"], (4 * (PROMPT + STEPS), 1 + STEPS))
    made = [size for name, size in buffers(run)]
    same("weights and cache", [size in made for size in (padded(sizes), 2 * layers * context * width * 2)], [True, True])
    memory = pool(run)
    same("all of them", (memory["kind"], memory["allocated_bytes"], memory["live_at_exit_bytes"], memory["frees"]), ("library", sum(made), 0, memory["allocs"]))
    check("the text has it", re.search(rf"^Tokens +steps.*\n +{STEPS} .* {PROMPT} .*llama_context::process_ubatch", run.text, re.M))
    box.note(f"{speed['per_s']:.0f} tokens/s, the program says {STEPS * 1e9 / told['loop_ns']:.0f}")


@case("ggml: calls that fail are said to, and their tokens do not count (a stand-in)")
def failing(box):
    library = box.compile("workloads/llama_failing.c", "libllama_failing.so", ["-DLIBRARY", "-shared", "-fPIC"])
    program = box.compile("workloads/llama_failing.c", "llama_failing", [library, "-Wl,-rpath,$ORIGIN"])
    run = box.run([program])
    same("output", run.stdout, "5 failed\n")
    seen = rows(run)
    same("calls and failures", {name: (row["calls"], row["failed"]) for name, row in seen.items()},
         {"load ": (1, 1), "load there": (1, 0), "llama_state_load_file state": (1, 1), "llama_decode": (5, 3)})
    same("tokens", rate(seen["llama_decode"]), 2 * 64)


@case("ggml: a mapped model is memory of its file, and shown once")
def mapped(box):
    path, sizes = model(box, "llama")
    run = both(box, "ggml_llama.py", path, PROMPT, STEPS, "map")
    check_llama(run, sizes, books(run))
    same("buffers in the mapped file", [size for name, size in buffers(run) if size == padded(sizes)], [padded(sizes)])
    files = [pool["peak_bytes"] for pool in run.summary["pools"] if pool["kind"] == "file" and pool["name"].endswith("tiny.llama")]
    same("the file", len(files), 1)
    same("at the end", pool(run)["live_at_exit_bytes"], 0)


@case("ggml: xllamacpp's server says how fast it was")
def server(box):
    path, _ = model(box, "llama")
    run = both(box, "ggml_server.py", path, 1000)
    told, seen = books(run), run.summary["tokens"]
    tried = 2                                                   # tokens that the server tries its cache with when it starts
    same("tokens", [(row["name"], row["steps"], row["batch_tokens"]) for row in seen],
         [("llama_context::process_ubatch", told["predicted_n"] - 1, told["prompt_n"] + tried)])
    near("tokens/s", seen[0]["per_s"], told["predicted_per_second"], 0.1)
    same("samples", calls(run)["common_sampler_sample"], told["predicted_n"])
    box.note(f"{seen[0]['per_s']:.0f} tokens/s, the server says {told['predicted_per_second']:.0f}")


# ---- whisper.cpp ------------------------------------------------------------------------------

def timings(run):
    """whisper.cpp's own: kind -> ms, runs"""
    return {kind: (float(ms), int(runs)) for kind, ms, runs in re.findall(r"(\w+) time = +([\d.]+) ms / +(\d+) runs", run.stderr)}


@case("ggml: whisper.cpp: full, mel, graphs, buffers, against its own counts")
def whisper(box):
    times, steps, computes_of_an_encode = 2, 30, 3
    path, sizes = model(box, "whisper")
    run = both(box, "ggml_whisper.py", path, times, steps)
    told, seen = timings(run), {row["function"]: row for row in run.summary["probes"]}
    wanted = {"whisper_full": times, "whisper_full_with_state": times, "whisper_pcm_to_mel_with_state": times, "whisper_init_from_file_with_params": 1,
              "whisper_init_state": 1, "whisper_encode": 1, "whisper_decode": steps}
    same("calls", {name: seen[name]["calls"] for name in wanted}, wanted)
    same("encodes", told["encode"][1], times + 1)
    same("words one by one", [(row["name"], row["steps"], row["batches"]) for row in run.summary["tokens"]], [("whisper_decode_with_state", steps, 0)])
    near("time of the loop", run.summary["tokens"][0]["loop_ns"], told["loop"][0] * 1e6, 0.05, 1000000)
    prompts = told["batchd"][1] // 2                            # two words each, at once
    same("graphs", seen["ggml_backend_sched_graph_compute"]["calls"], computes_of_an_encode * told["encode"][1] + told["decode"][1] + prompts)
    same("samples", {row["n"] for row in run.sql("select extract_arg(s.arg_set_id, 'debug.samples') as n from slice s where s.name = 'whisper_full'")}, {16000})
    inside = sum(told[kind][0] for kind in ("sample", "encode", "decode", "batchd")) * 1e6 + seen["whisper_pcm_to_mel_with_state"]["total_ns"]
    spans = sum(seen[name]["total_ns"] for name in ("whisper_full", "whisper_encode", "whisper_decode"))
    check(f"calls: {spans} ns, of their parts whisper.cpp says {inside:.0f}", inside * 0.98 <= spans)
    check("weights", padded(sizes) in [size for name, size in buffers(run)])
    words = 51864
    same("logits", {row["bytes"] for row in run.sql("select extract_arg(arg_set_id, 'debug.bytes') as bytes from slice where name like 'get %'")}, {4 * words})
    same("at the end", (pool(run)["live_at_exit_bytes"], pool(run)["frees"]), (0, pool(run)["allocs"]))


# ---- operations -------------------------------------------------------------------------------

WITH_OPS = ["--probes=+ggml-ops"]
OPS = """select s.id, s.name, s.dur, s.parent_id, extract_arg(s.arg_set_id, 'debug.tensor') as tensor, extract_arg(s.arg_set_id, 'debug.shape') as shape,
    extract_arg(s.arg_set_id, 'debug.flops') as flops, p.name as parent, p.dur as parent_dur, g.name as grandparent
    from slice s join slice p on s.parent_id = p.id join slice g on p.parent_id = g.id where extract_arg(s.arg_set_id, 'debug.function') = 'ggml.op' order by s.ts"""


@case("ggml-ops: each operation with tensor, shape and flops; the program's callbacks are called as they were")
def operations(box):
    run = both(box, "ggml_graph.py", options=WITH_OPS)
    told, once = books(run), [("MUL_MAT", "product", "5x3x1x1"), ("ADD", "total", "5x3x1x1"), ("RELU", "last", "5x3x1x1")]
    ops = run.sql(OPS)
    same("operations: alone, watched, stopped after the first one, alone again", [(op["name"], op["tensor"], op["shape"]) for op in ops],
         3 * once + 2 * once[:1] + once)
    same("inside of the graph's computation", {(op["parent"], op["grandparent"]) for op in ops},
         {("ggml_backend_sched_graph_compute_async", "ggml_backend_sched_graph_compute")})
    flops = 2 * 5 * 3 * 1024
    same("flops", {op["name"]: op["flops"] for op in ops}, {"MUL_MAT": flops, "ADD": None, "RELU": None})
    same("kernels", {kernel["name"]: kernel["calls"] for kernel in run.summary["kernels"]}, {"MUL_MAT": 6, "ADD": 4, "RELU": 4})
    same("their sum", rows(run, "ggml-ops")["MUL_MAT"]["flops"], 6 * flops)
    left, right = told["tensors"]["left"], told["tensors"]["right"]
    moved = run.sql("""select name, group_concat(bytes) as bytes from (select s.name, extract_arg(s.arg_set_id, 'debug.bytes') as bytes from slice s
        where s.name like 'set %' or s.name like 'copy %' or s.name like 'memset %' order by s.ts) group by 1""")
    same("transfers", {row["name"]: row["bytes"] for row in moved},
         {"set left": f"{left},16,8,8", "set right": f"{right}", "copy left": f"{left}", "set copy": f"{left}", "memset right": "16"})
    results = 4 * 5 * 3 * (6 + 4)                               # the product each time, the last where it was computed
    same("what was moved, once: the library's own copy and rows are made by its set", collections.Counter({move["kind"]: move["bytes"] for move in run.summary["transfers"]}),
         collections.Counter({"write": 2 * left + right + 16, "read": results}))
    same("buffers", (sorted(size for name, size in buffers(run)), pool(run)["peak_bytes"]), (sorted(told["buffers"]), sum(told["buffers"])))


@case("ggml-ops: nothing of it where it is not asked for, and buffers are not added to the host's memory")
def not_asked(box):
    run, bare = both(box, "ggml_graph.py"), both(box, "ggml_graph.py", options=["--probes=none"])
    same("operations", (calls(run, "ggml-ops"), run.summary["kernels"]), ({}, []))
    check("a pool", pool(run)["peak_bytes"] > 8 << 20)
    peaks = [summary["peak"]["bytes"] for summary in (run.summary, bare.summary)]
    check(f"peaks with and without probes: {peaks}", abs(peaks[0] - peaks[1]) < 1 << 20)


@case("ggml-ops: llama.cpp's decodes, all nodes of their graphs, and the same words come out")
def llama_operations(box):
    path, sizes = model(box, "llama")
    words = ["ggml_llama.py", path, PROMPT, STEPS]
    run, plain = both(box, *words, options=WITH_OPS), both(box, *words)
    nodes = plain.value("select sum(extract_arg(arg_set_id, 'debug.nodes')) from slice where name = 'ggml_backend_sched_graph_compute_async'")
    ops = run.sql(OPS)
    same("operations", (len(ops), sum(calls(run, "ggml-ops").values())), (nodes, nodes))
    check_llama(run, sizes, books(run))
    products = {name for name in sizes if "norm" not in name and name != "token_embd.weight"}
    flops = collections.Counter()
    for op in ops:
        flops[op["parent_id"]] += op["flops"] or 0
    same("flops of each step", set(list(flops.values())[1:]), {2 * sum(sizes[name] // 4 for name in products)})
    spent, parents = collections.Counter(), {op["parent_id"]: op["parent_dur"] for op in ops}
    for op in ops:
        spent[op["parent_id"]] += op["dur"]
    check("operations do not last longer than their graph", all(spent[graph] <= parents[graph] for graph in spent))
    box.note(f"{len(ops)} operations, {sum(spent.values()) / sum(parents.values()):.0%} of their graphs' time")


@case("ggml: gpt4all's llama.cpp of 2024, where a tensor is laid out otherwise: prompt, steps, tensors, operations")
def gpt4all(box):
    words, steps, batch = 259, 15, 8
    path, sizes = model(box, "llama")
    run = both(box, "ggml_gpt4all.py", path, steps, options=WITH_OPS, venv="gpt4all.txt")
    told, count = books(run), calls(run)
    same("steps and the prompt", [(row["name"], row["steps"], row["batch_tokens"]) for row in run.summary["tokens"]], [("llama_decode", steps, told["read"])])
    parents = run.sql("""select s.name, p.name as parent, count(*) as n from slice s join slice p on s.parent_id = p.id
        where s.name in ('llama_decode', 'llama_new_context_with_model') group by 1, 2""")
    same("inside of", {(row["name"], row["parent"]): row["n"] for row in parents},
         {("llama_decode", "llmodel_prompt"): count["llama_decode"], ("llama_new_context_with_model", "llmodel_loadModel"): 1})
    moved = run.sql("""select distinct name, extract_arg(arg_set_id, 'debug.bytes') as bytes from slice
        where category != 'device' and (name like 'get %' or name like 'set %' and name not like '%pos')""")
    same("logits, and words: one, a batch, what is left of the prompt", {(row["name"], row["bytes"]) for row in moved},
         {("get result_output", 4 * words)} | {("set inp_tokens", 4 * n) for n in (1, batch, told["read"] - batch)})
    ops = run.sql(OPS)
    same("operations", len(ops), run.value("select sum(extract_arg(arg_set_id, 'debug.nodes')) from slice where name = 'ggml_backend_sched_graph_compute_async'"))
    weights = {"Qcur": "attn_q", "Kcur": "attn_k", "Vcur": "attn_v", "kqv_out": "attn_output", "ffn_gate": "ffn_gate", "ffn_up": "ffn_up", "ffn_out": "ffn_down"}
    wanted = {f"{name}-0": 2 * sizes[f"blk.0.{weight}.weight"] // 4 for name, weight in weights.items()}
    same("flops of a step", {op["tensor"]: op["flops"] for op in ops if op["name"] == "MUL_MAT" and op["tensor"] in wanted and "x1x1x1" in op["shape"]}, wanted)


@case("ggml-ops: two copies of ggml in one process")
def two_copies(box):
    models = {kind: model(box, kind)[0] for kind in ("llama", "whisper")}
    jobs = [["ggml_whisper.py", models["whisper"], "1", "2"], ["ggml_llama.py", models["llama"], "7", "5"]]
    alone = sum((collections.Counter(calls(both(box, *job, options=WITH_OPS), "ggml-ops")) for job in jobs), collections.Counter())
    program = box.file("both.py", "import runpy, sys\nfor job in " + repr(jobs) + f":\n    sys.argv = job\n    runpy.run_path({WORKLOADS!r} + '/' + job[0])\n")
    run = box.run([client_python("ggml.txt"), program], *WITH_OPS, env={"PYTHONPATH": WORKLOADS})
    same(f"status: {run.stderr[-300:]}", run.status, 0)
    same("operations of both", collections.Counter(calls(run, "ggml-ops")), alone)


@case("ggml-ops: more schedulers than there is room for: the rest goes on untimed, and the summary says so")
def many_schedulers(box):
    run = both(box, "ggml_graph.py", 300, options=WITH_OPS)
    same("operations", calls(run, "ggml-ops"), {"MUL_MAT": 256 + 5, "ADD": 256 + 3, "RELU": 256 + 3})
    check("a note", any("schedulers" in notice for notice in run.summary["notices"]))


def register(tools):
    pass
