"""bench.py - what mlprof costs, beside its peers, in one table.

Every benchmark runs natively and under each tool, in turns, for several rounds, each in the reverse order of the one before;
medians are compared. Where the bar is a few percent, the median of each round's ratio is: the machine's own pace changes less within a round.
Runs of a minute are cut into slices, native and mlprof in turns, as that pace changes within the minute.
A bar is one line of the project's speed promises: it says PASS or OVER with the figure that was measured
in this run. Counts are checked in the same run: a fast profiler that forgets records is no good.
"""
import argparse
import datetime
import glob
import hashlib
import json
import os
import platform
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import harness
import vulkan
from probe_table import PLACE, Fetch, Row, table

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "mlprof-tests")
MICRO = 1e3


class Broken(Exception):
    """a program under some tool did not end well"""


def virtual_environment():
    with open(os.path.join(HERE, "requirements.txt"), "rb") as file:
        return os.path.join(CACHE, "venv-" + hashlib.sha256(file.read()).hexdigest()[:12])


class Bench:
    def __init__(self, tools, quick):
        self.tools, self.quick = tools, quick
        self.place = tempfile.mkdtemp(prefix="mlprof-bench-", dir="/var/tmp")
        self.python = os.path.join(virtual_environment(), "bin", "python")
        self.rows, self.bars, self.seen = [], [], {}
        self.number = 0
        self.load = os.getloadavg()[0]

    # ---- what the tests' helpers ask of a box -------------------------------------------------------

    def compile(self, *arguments):
        return self.tools.compile(*arguments)

    def file(self, name):
        return os.path.join(self.place, name)

    # ---- ways to run a program: each returns (seconds, stdout, summary or None) -------------------

    def timed(self, words, env=None):
        start = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **(env or {})}, cwd=self.place)
        took = time.monotonic() - start
        if done.returncode:
            raise Broken(f"{' '.join(words)} ended with {done.returncode}\n{done.stderr[-800:]}")
        return took, done.stdout

    def native(self, words, env):
        return (*self.timed(words, env), None)

    def under_mlprof(self, words, *options):
        """-> the trace, and the words that make it"""
        self.number += 1
        trace = os.path.join(self.place, f"m{self.number}.perfetto-trace")
        return trace, [self.tools.mlprof, "run", "--quiet", "-o", trace, *options, "--", *words]

    def summary_of(self, trace):
        with open(trace.replace(".perfetto-trace", ".summary.json")) as file:
            summary = json.load(file)
        for old in glob.glob(trace.replace(".perfetto-trace", ".*")):
            os.unlink(old)
        return summary

    def mlprof(self, words, env, *options):
        trace, words = self.under_mlprof(words, *options)
        took, out = self.timed(words, env)
        return took, out, self.summary_of(trace)

    def heaptrack(self, words, env):
        self.number += 1
        base = os.path.join(self.place, f"h{self.number}")
        took, out = self.timed(["heaptrack", "-o", base, *words], env)
        for old in glob.glob(base + "*"):
            os.unlink(old)
        return took, "\n".join(line for line in out.splitlines() if not line.startswith("heaptrack")), None

    def memray(self, words, env):
        """for Python programs: [python, ...] becomes memray run --native ..."""
        output = os.path.join(self.place, "memray.bin")
        took, out = self.timed([words[0], "-m", "memray", "run", "--native", "-q", "-f", "-o", output, *words[1:]], env)
        os.unlink(output)
        return took, out, None

    def lttng(self, words, env):
        wrapper = "liblttng-ust-libc-wrapper.so"
        session = [["lttng", "create", "bench", "-o", os.path.join(self.place, "lttng")], ["lttng", "enable-event", "-u", "lttng_ust_libc:*"], ["lttng", "start"]]
        for command in session:
            subprocess.run(command, check=True, capture_output=True)
        try:
            return (*self.timed(words, {**(env or {}), "LD_PRELOAD": wrapper}), None)
        finally:
            subprocess.run(["lttng", "destroy", "bench"], capture_output=True)
            shutil.rmtree(os.path.join(self.place, "lttng"), ignore_errors=True)

    def has_lttng(self):
        if not shutil.which("lttng"):
            return False
        subprocess.run(["lttng-sessiond", "--daemonize"], capture_output=True)
        return subprocess.run(["lttng", "list"], capture_output=True).returncode == 0

    # ---- a benchmark -------------------------------------------------------------------------------

    def compare(self, name, ways, rounds, figure):
        """ways: {column: function that runs once}; figure: (seconds, stdout) -> number. Returns medians. A peer that
        breaks on a program is left out of its row."""
        seen = {way: [] for way in ways}
        summaries = []
        for number in range(rounds):
            for way, run in list(ways.items())[::-1 if number % 2 else 1]:
                try:
                    took, out, summary = run()
                except Broken as broken:
                    if way in ("native", "mlprof", "python"):
                        raise
                    print(f"  {name}: {way} left out: {broken}", file=sys.stderr)
                    del ways[way], seen[way]
                    continue
                seen[way].append(figure(took, out))
                if summary:
                    summaries.append((summary, out))
        medians = {way: statistics.median(values) for way, values in seen.items()}
        print(f"  {name}: " + ", ".join(f"{way} {value:.4g}" for way, value in medians.items()), file=sys.stderr, flush=True)
        self.seen = seen
        return medians, summaries

    def compare_in_slices(self, name, words, env, rounds):
        """a long program natively and under mlprof at once, but only one of them ever runs. Returns medians of seconds, and summaries."""
        self.seen, summaries = {"native": [], "mlprof": []}, []
        for number in range(rounds):
            trace, under = self.under_mlprof(words)
            both = {"native": Sliced(self, words, env), "mlprof": Sliced(self, under, env)}
            turns = list(both.values())[::-1 if number % 2 else 1]
            while any([run.go_on(SLICE_SECONDS) for run in turns]):
                pass
            for way, run in both.items():
                self.seen[way].append(run.end())
            summaries.append(self.summary_of(trace))
        medians = {way: statistics.median(values) for way, values in self.seen.items()}
        ratios = " ".join(f"{ours / native:.3f}" for ours, native in zip(self.seen["mlprof"], self.seen["native"]))
        print(f"  {name}: native {medians['native']:.4g}, mlprof {medians['mlprof']:.4g}, ratios {ratios}", file=sys.stderr, flush=True)
        return medians, summaries

    def ratio(self):
        """what the last comparison says of mlprof against native, round by round"""
        return statistics.median(ours / native for ours, native in zip(self.seen["mlprof"], self.seen["native"]))

    def row(self, *cells):
        self.rows.append(cells)

    def bar(self, what, figure, limit, unit):
        self.bars.append((what, figure, limit, unit))

    def close(self):
        shutil.rmtree(self.place, ignore_errors=True)


SLICE_SECONDS = 0.5


class Sliced:
    """a program with all that it starts, which stands still but when it is told to go on"""

    def __init__(self, bench, words, env):
        self.words, self.took = words, 0.0
        self.errors = tempfile.TemporaryFile(dir=bench.place)
        self.process = subprocess.Popen(["/bin/sh", "-c", 'kill -STOP $$; exec "$0" "$@"', *words], stdout=subprocess.DEVNULL, stderr=self.errors,
                                        env={**os.environ, **env}, cwd=bench.place, start_new_session=True)
        os.waitpid(self.process.pid, os.WUNTRACED)      # stopped
        self.over = select.poll()
        self.over.register(os.pidfd_open(self.process.pid), select.POLLIN)

    def go_on(self, seconds):
        """False: it has ended"""
        if self.process.returncode is not None:
            return False
        os.killpg(self.process.pid, signal.SIGCONT)
        start = time.monotonic()
        ended = self.over.poll(seconds * 1000)
        self.took += time.monotonic() - start
        if ended:
            self.process.wait()
        else:
            os.killpg(self.process.pid, signal.SIGSTOP)
        return not ended

    def end(self):
        """seconds that it took"""
        if self.process.returncode:
            self.errors.seek(0)
            raise Broken(f"{' '.join(self.words)} ended with {self.process.returncode}\n{self.errors.read()[-800:].decode()}")
        return self.took


def printed(word):
    return lambda _seconds, out: float([line for line in out.splitlines() if line.startswith(word + " ")][0].split()[1])


printed_ns = printed("ns")


def seconds_taken(seconds, _out):
    return seconds


def expected_in(out):
    return {line.split()[1]: int(line.split()[2]) for line in out.splitlines() if line.startswith("expect ")}


def check_counts(bench, name, summaries, base):
    """what the program did is what the summary says; base: what libc did for its threads"""
    for summary, out in summaries:
        for key, value in expected_in(out).items():
            got = harness.look_up(summary, key) - harness.look_up(base, key)
            if got != value or summary["losses"]["records"]:
                bench.bar(f"{name}: {key} = what the program did", got, value, "exact")
                return
    bench.bar(f"{name}: counts of {len(summaries)} runs", 0, 0, "exact")


# ---- the pair benchmark -----------------------------------------------------------------------------

def pair_arguments(threads, depth, pairs, *more):
    return [f"--threads={threads}", f"--depth={depth}", f"--pairs={pairs}", "--books", *more]


def pair_ways(bench, program, arguments, peers):
    words = [program, *arguments]
    ways = {"native": lambda: bench.native(words, None), "mlprof": lambda: bench.mlprof(words, None)}
    if "heaptrack" in peers:
        ways["heaptrack"] = lambda: bench.heaptrack([program, *fewer(arguments)], None)
    if "memray" in peers:
        library = bench.tools.compile("bench/pair.c", "pair.so", ["-shared", "-fPIC", "-Dmain=pair_main"])
        inside = [bench.python, os.path.join(HERE, "pair_from_python.py"), library, *fewer(arguments)]
        ways["python"] = lambda: bench.native(inside, None)
        ways["memray"] = lambda: bench.memray(inside, None)
    if "lttng" in peers and bench.has_lttng():
        ways["lttng"] = lambda: bench.lttng([program, *fewer(arguments)], None)
    return ways


def fewer(arguments):
    """the slow ones get a tenth of the pairs"""
    return [f"--pairs={int(a.split('=')[1]) // 10}" if a.startswith("--pairs=") else a for a in arguments]


def pairs(bench):
    program = bench.tools.compile("bench/pair.c", "pair")
    rounds, many = (3, 1000000) if bench.quick else (7, 4000000)
    added, own = {}, {}
    # Beyond 160 MiB of records that nobody has a CPU to look at, threads that do nothing else are slowed down: "for longer".
    for threads, depth, peers, longer in ((1, 20, ("heaptrack", "memray", "lttng"), False), (2, 20, ("heaptrack", "memray"), False), (2, 20, (), True),
                                          (1, 10, (), False), (1, 100, (), False)):
        name = f"pair, {threads} thread{'s' * (threads > 1)}, depth {depth}{', for longer' * longer}"
        arguments = pair_arguments(threads, depth, many * 4 if longer else many)
        medians, summaries = bench.compare(name, pair_ways(bench, program, arguments, peers), rounds, printed_ns)
        _, _, base = bench.mlprof([program, *pair_arguments(threads, depth, 0)], None)
        check_counts(bench, name, summaries, base)
        python = medians.pop("python", 0)
        if "memray" in medians:
            medians["memray"] += medians["native"] - python
        added[threads, depth, longer] = {way: value - medians["native"] for way, value in medians.items()}
        bench.row(name, "ns a pair", medians)
        cpu = statistics.median(printed("cpu")(0, out) for _, out in summaries)
        bench.row("  of which the threads' own CPU time", "ns a pair", {"native": medians["native"], "mlprof": cpu})
        own[threads, depth, longer] = cpu - medians["native"]
    one = added[1, 20, False]
    bench.bar("added to a pair, depth 20, one thread", one["mlprof"], 75, "ns")
    for peer, told, share in (("heaptrack", "heaptrack's", 1 / 8), ("memray", "memray --native's", 1 / 5)):
        if peer in one:
            bench.bar(f"  as a share of {told}", one["mlprof"] / one[peer], share, "x")
    bench.bar("  two threads against one", added[2, 20, False]["mlprof"] / one["mlprof"], 1.3, "x")
    bench.bar("  the same of the threads' own CPU time, for longer", own[2, 20, True] / own[1, 20, False], 1.3, "x")
    bench.bar("  each frame from depth 10 to 100", (added[1, 100, False]["mlprof"] - added[1, 10, False]["mlprof"]) / 90, 0.6, "ns")


def misses(bench):
    program = bench.tools.compile("bench/pair.c", "pair")
    rounds, count = (3, 200000) if bench.quick else (7, 500000)
    for name, paths in (("not in the cache", 8192), ("never seen before", 10**9)):
        few = count if paths < 10**9 else count // 10
        ways = pair_ways(bench, program, pair_arguments(1, 50, few, f"--walk={paths}"), ())
        medians, _ = bench.compare(f"stack {name}", ways, rounds, printed_ns)
        bench.row(f"pair, stack {name}, depth 50", "ns a pair", medians)
        if paths < 10**9:
            bench.bar(f"a stack {name}, depth 50", medians["mlprof"] - medians["native"], 1000, "ns")


# ---- real programs ----------------------------------------------------------------------------------

def cxx_source(bench):
    path = os.path.join(bench.place, "large.cc")
    with open(path, "w") as file:
        file.write("#include <regex>\n#include <map>\n#include <string>\n#include <iostream>\n#include <functional>\n")
        for i in range(5):
            file.write(f"struct K{i} {{ int a; bool operator<(const K{i} &o) const {{ return a < o.a; }} }};\n"
                       f"int f{i}(const std::string &s) {{ std::map<K{i}, std::string> m; m[K{i}{{1}}] = s;\n"
                       f"  std::regex r(s); std::function<int(int)> g = [&](int x) {{ return x + (int)m.size(); }};\n"
                       f"  return g(std::regex_match(s, r)); }}\n")
    done = subprocess.run(["g++", "-E", path, "-o", path + ".ii"], check=True)
    return path + ".ii", done


SQLITE = """
create table t(a integer, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000)
insert into t select (i * 7919) % 1000003, 'row ' || i from n;
create index k on t(b, a);
select count(*) from t where b > 'row 5';
"""
JSON = "import json\nd = [{'k%d' % i: [i, str(i), {'x': i / 3}]} for i in range(30000)]\nfor _ in range(3): d = json.loads(json.dumps(d))"


def real(bench):
    rounds = 3 if bench.quick else 5
    source, _ = cxx_source(bench)
    cc1plus = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True).stdout.strip()
    script = os.path.join(bench.place, "index.sql")
    with open(script, "w") as file:
        file.write(SQLITE)
    json_script = os.path.join(bench.place, "round_trip.py")
    with open(json_script, "w") as file:
        file.write(JSON)
    import_script = os.path.join(bench.place, "import_it.py")
    with open(import_script, "w") as file:
        file.write("import onnxruntime")
    programs = [
        ("import onnxruntime", [bench.python, import_script], None, 2.5, True),
        ("cc1plus -O2", [cc1plus, "-quiet", "-O2", source, "-o", "/dev/null"], None, 1.3, False),
        ("sqlite3, index over 1 M rows", ["sqlite3", ":memory:", f".read {script}"], None, 1.5, False),
        ("json round trip, PYTHONMALLOC=malloc", [bench.python, json_script], {"PYTHONMALLOC": "malloc"}, 1.5, True),
    ]
    for name, words, env, limit, is_python in programs:
        ways = {"native": lambda: bench.native(words, env), "mlprof": lambda: bench.mlprof(words, env), "heaptrack": lambda: bench.heaptrack(words, env)}
        if is_python:
            ways["memray"] = lambda: bench.memray(words, env)
        medians, summaries = bench.compare(name, ways, rounds, seconds_taken)
        bench.row(name, "s", medians)
        bench.row("  of which the program itself ran", "s", {"native": medians["native"], "mlprof": statistics.median(s["duration_ns"] for s, _ in summaries) / 1e9})
        bench.bar(name, medians["mlprof"] / medians["native"], limit, "x native")
        if name.startswith("import") and "heaptrack" in medians:
            share = (medians["mlprof"] - medians["native"]) / (medians["heaptrack"] - medians["native"])
            bench.bar("  added time as a share of heaptrack's", share, 1 / 6, "x")
        lost = sum(summary["losses"]["records"] for summary, _ in summaries)
        bench.bar(f"  records lost in {len(summaries)} runs", lost, 0, "exact")


def steady(bench):
    rounds = 5 if bench.quick else 11
    model = os.path.join(bench.place, "small.onnx")
    subprocess.run([bench.python, os.path.join(HERE, "make_model.py"), model], check=True)
    env = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for name, python, argument in (("numpy matmul loop", bench.python, "numpy"), ("ONNX Runtime inference loop", bench.python, model),
                                   ("PyTorch training loop", harness.PYTHON, "torch")):
        words = [python, os.path.join(HERE, "steady.py"), argument]
        ways = {"native": lambda: bench.native(words, env), "mlprof": lambda: bench.mlprof(words, env),
                "without": lambda: bench.mlprof(words, env, "--probes=none")}
        if not bench.quick and python == bench.python:
            ways.update(heaptrack=lambda: bench.heaptrack(words, env), memray=lambda: bench.memray(words, env))
        medians, _ = bench.compare(name, ways, rounds, printed_ns)
        without = medians.pop("without")
        bench.row(f"{name}, a round", "us", {way: value / MICRO for way, value in medians.items()})
        bench.row("  without probes", "us", {"native": medians["native"] / MICRO, "mlprof": without / MICRO})
        bench.bar(name, bench.ratio(), 1.03, "x native")


# By default glibc gives tensors back to the kernel and takes them anew, more or less often by chance of where its heap lies: the same loop
# of PyTorch's makes 170 to 630 thousand page faults in six seconds, and is 10 % faster or slower, whoever watches it.
ONE_HEAP = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "32000000"}


# How long each takes natively, as so many rounds are a minute on one machine and half of one on another. A step of the layers takes a few
# milliseconds, one of the transformer a few hundred.
WHOLE_RUNS = [
    ("a whole numpy run", "numpy", 15),
    ("a whole PyTorch run, small transformer", "transformer", 60),
    ("a whole PyTorch run, layers of 512", "torch", 60),
]


def whole(bench):
    """from the first import to the last file that mlprof writes, with the presets that are on by default"""
    env = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **ONE_HEAP}
    for name, argument, seconds in WHOLE_RUNS:
        words = [bench.python if argument == "numpy" else harness.PYTHON, os.path.join(HERE, "steady.py"), argument]
        _, out = bench.timed([*words, "2"], env)
        tens = max(1, round(seconds * 1e8 / printed_ns(0, out)))
        medians, summaries = bench.compare_in_slices(name, [*words, str(tens)], env, 1 if bench.quick else 5)
        bench.row(name, "s", medians)
        bench.row("  finding functions to probe", "s", {"mlprof": statistics.median(s["overhead"]["bind_ns"] for s in summaries) / 1e9})
        bench.bar(name, bench.ratio(), 1.03, "x native")


# ---- the collector ----------------------------------------------------------------------------------

def highest_rss(process):
    """VmHWM of a process while it lives, in bytes"""
    high = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as file:
                high = max([high] + [int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")])
        except OSError:
            break
        time.sleep(0.01)
    return high


def watched(bench, words):
    """-> (highest RSS of the collector, seconds from the program's end to ours, summary, trace bytes, stdout)"""
    trace = os.path.join(bench.place, "watched.perfetto-trace")
    output = os.path.join(bench.place, "watched.out")
    with open(output, "w") as file:
        process = subprocess.Popen([bench.tools.mlprof, "run", "--quiet", "-o", trace, "--", *words], stdout=file, cwd=bench.place)
        high = highest_rss(process)
    ended = time.monotonic()
    with open(output) as file:
        out = file.read()
    program_end = float([line for line in out.splitlines() if line.startswith("end ")][0].split()[1]) / 1e9
    with open(trace.replace(".perfetto-trace", ".summary.json")) as file:
        return high, ended - program_end, json.load(file), os.path.getsize(trace), out


def collector(bench):
    program = bench.tools.compile("bench/pair.c", "pair")
    stress = 3 if bench.quick else 10
    _, after, summary, size, out = watched(bench, [program, "--books", f"--seconds={stress}"])
    waited = summary["overhead"].get("waited_ns", 0) / summary["duration_ns"]
    bench.bar(f"{stress} s of stress: the program waited", waited * 100, 5, "% of the time")
    bench.bar("  output complete after the program's end", after, 1, "s")
    _, _, base = bench.mlprof([program, "--books", "--pairs=0"], None)
    check_counts(bench, f"{stress} s of stress", [(summary, out)], base)

    empty, _, _, _, _ = watched(bench, [program, "--books", "--pairs=0"])
    high, after, summary, _, out = watched(bench, [program, "--books", "--pairs=0", "--live=2000000"])
    bench.bar("2 M live blocks: the collector's memory", high / 1e6, 300, "MB")
    bench.bar("  each live block", (high - empty) / 2e6, 64, "bytes")
    check_counts(bench, "2 M live blocks", [(summary, out)], base)


def long_run(bench):
    program = bench.tools.compile("bench/pair.c", "pair")
    high, after, summary, size, out = watched(bench, [program, "--books", "--pairs=100000000"])
    _, _, base = bench.mlprof([program, "--books", "--pairs=0"], None)
    check_counts(bench, "100 M allocations", [(summary, out)], base)
    bench.bar("100 M allocations: the trace", size / 1e6, 50, "MB")
    bench.bar("  the collector's memory", high / 1e6, 300, "MB")


def start_up(bench):
    words = ["/bin/true"]
    ways = {"native": lambda: bench.native(words, None), "mlprof": lambda: bench.mlprof(words, None)}
    medians, _ = bench.compare("true", ways, 15 if bench.quick else 40, seconds_taken)
    bench.row("true", "ms", {way: value * 1e3 for way, value in medians.items()})
    bench.bar("mlprof run true costs", (medians["mlprof"] - medians["native"]) * 1e3, 30, "ms")


# ---- devices -----------------------------------------------------------------------------------------

def device_programs(bench):
    vulkan.shaders(bench)
    opencl = bench.tools.compile("bench/opencl_enqueue.c", "opencl_enqueue")
    dispatch = bench.tools.compile("bench/vk_dispatch.c", "vk_dispatch", ["-Wno-unused-function", "-I", bench.tools.programs, *vulkan.WAYS["linked"]])
    pocl, lavapipe, card = {"POCL_MAX_PTHREAD_COUNT": "1"}, {}, vulkan.deaf(bench)
    return [
        ("clEnqueueNDRangeKernel, PoCL", [opencl, "tiny"], pocl, 1000, None),
        ("a loop of 1 ms kernels, PoCL", [opencl, "long"], pocl, None, 1.03),
        ("vkCmdDispatch, lavapipe", [dispatch, "record"], lavapipe, 1000, None),
        ("vkCmdDispatch, lavapipe's stamps", [dispatch, "record"], card, 1000, None),
        ("vkQueueSubmit, lavapipe at work", [dispatch, "submit"], lavapipe, 2000, None),
        ("vkQueueSubmit, lavapipe's stamps", [dispatch, "submit"], card, 2000, None),
        ("vkQueueSubmit, lavapipe asleep", [dispatch, "wake"], lavapipe, 2000, None),
        ("a loop of 1 ms dispatches, lavapipe", [dispatch, "long"], lavapipe, None, 1.03),
        ("a loop of 1 ms dispatches, lavapipe's stamps", [dispatch, "long"], card, None, None),
        ("1 ms dispatches, 20 to a submit, lavapipe", [dispatch, "several"], lavapipe, None, 1.03),
        ("submit and wait, one small dispatch, lavapipe", [dispatch, "tiny"], lavapipe, None, None),
        ("submit and wait, lavapipe's stamps", [dispatch, "tiny"], card, None, None),
    ]


IREE_LAYER = """  %{0} = linalg.matmul ins(%{1}, %weights : !matrix, !matrix) outs(%clear : !matrix) -> !matrix
"""
IREE_MODEL = """func.func @main(%l0: !matrix, %weights: !matrix) -> !matrix {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !matrix
  %clear = linalg.fill ins(%zero : f32) outs(%empty : !matrix) -> !matrix
{0}  return %l{1} : !matrix
}}
"""


def iree_words(bench, layers):
    """a compiled model on Vulkan whose dispatches, one a layer, take more than a millisecond each; prints what an iteration took in its steady state.
    IREE's threads and lavapipe's fill two cores twice and the scheduler deals with them as it likes, so that it takes seconds to even out."""
    tools = os.path.dirname(vulkan.client_python())
    source, module = os.path.join(bench.place, f"{layers}.mlir"), os.path.join(bench.place, f"{layers}.vmfb")
    with open(source, "w") as file:
        file.write(IREE_MODEL.format("".join(IREE_LAYER.format(f"l{i + 1}", f"l{i}") for i in range(layers)), layers).replace("!matrix", "tensor<256x256xf32>"))
    bench.timed([os.path.join(tools, "iree-compile"), "--iree-hal-target-backends=vulkan-spirv", source, "-o", module])
    return [os.path.join(tools, "iree-benchmark-module"), "--device=vulkan", "--function=main", f"--module={module}", "--input=256x256xf32=1",
            "--input=256x256xf32=0.001", "--benchmark_min_warmup_time=1", "--benchmark_min_time=2s", "--benchmark_format=json"]


def tiles(bench):
    library = bench.tools.compile("workloads/iree_library.c", "iree_library_6.so", ["-DVERSION=6"])
    words = [bench.tools.compile("workloads/iree_loader.c", "iree_loader"), library, "6", "bench"]
    ways = {"native": lambda: bench.native(words, None), "mlprof": lambda: bench.mlprof(words, None)}
    medians, runs = bench.compare("a tile of an IREE kernel", ways, 7 if bench.quick else 15, printed_ns)
    bench.row("a tile of an IREE CPU kernel that does nothing", "ns", medians)
    bench.bar("added to a tile of an IREE CPU kernel", medians["mlprof"] - medians["native"], 40, "ns")
    bench.bar("  tiles counted", sum(kernel["tiles"] for summary, _ in runs for kernel in summary["kernels"]), 200000 * len(runs), "exact")


def iree(bench):
    tiles(bench)
    for layers in (8, 2):
        name, words = f"IREE module on Vulkan, {layers} layers", iree_words(bench, layers)
        ways = {"native": lambda: bench.native(words, None), "mlprof": lambda: bench.mlprof(words, None)}
        medians, runs = bench.compare(name, ways, 7 if bench.quick else 15, lambda took, out: json.loads(out[out.index("{"):])["benchmarks"][0]["real_time"])
        kernels = [kernel for summary, _ in runs for kernel in summary["kernels"]]
        bench.bar(name, bench.ratio(), 1.03, "x native")
        bench.bar("  its shortest dispatch, average, below 1 ms", max(0.0, 1 - min(kernel["avg_ns"] for kernel in kernels) / 1e6), 0, "ms")


def devices(bench):
    for name, words, env, added, ratio in device_programs(bench):
        ways = {"native": lambda: bench.native(words, env), "mlprof": lambda: bench.mlprof(words, env),
                "submit": lambda: bench.mlprof(words, env, "--device-time=submit")}
        medians, _ = bench.compare(name, ways, 5 if bench.quick else 11, printed_ns)
        submit = medians.pop("submit")
        bench.row(name, "ns", medians)
        bench.row("  with --device-time=submit", "ns", {"native": medians["native"], "mlprof": submit})
        if added:
            bench.bar(f"added to {name}", medians["mlprof"] - medians["native"], added, "ns")
        if ratio:
            bench.bar(name, bench.ratio(), ratio, "x native")


# ---- probes -----------------------------------------------------------------------------------------

PROBES = [
    ("a probed call, 16 words of stack", "empty", [Row("p_empty")], 40),
    ("a probed call, two numbers and a string", "values", [Row("p_values", Fetch("arg", 1), Fetch("arg", 2, "s32"), Fetch("arg", 3, "string"))], 60),
]


def probes(bench):
    library = bench.tools.compile("bench/probe_empty.c", "libprobe_empty.so")
    program = bench.tools.compile("bench/probe_call.c", "probe_call", [library, "-Wl,-rpath,$ORIGIN"])
    for name, kind, rows, added in PROBES:
        place = os.path.join(bench.place, "probes")
        with open(place, "wb") as file:
            file.write(table(rows))
        probed = ["/bin/sh", "-c", PLACE, place, program, kind]
        ways = {"native": lambda: bench.native([program, kind], None), "mlprof": lambda: bench.mlprof(probed, None)}
        medians, _ = bench.compare(name, ways, 5 if bench.quick else 11, printed("call"))
        bench.row(name, "ns", medians)
        bench.bar(f"added to {name}", medians["mlprof"] - medians["native"], added, "ns")


# ---- the table --------------------------------------------------------------------------------------

BENCHES = {"pair": pairs, "miss": misses, "real": real, "steady": steady, "whole": whole, "collector": collector, "true": start_up, "devices": devices, "iree": iree, "probes": probes}
COLUMNS = ["native", "mlprof", "heaptrack", "memray", "lttng"]


def machine():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{datetime.date.today()}, {len(names)} x {names[0] if names else platform.machine()}, Linux {platform.release()}"


def show(bench):
    print(f"\n{machine()}, load {bench.load:.2f} before the run" + (": NOT QUIET, times mean little" if bench.load > 0.7 else "") + "\n")
    print(f"{'':42} {'':9}" + "".join(f"{name:>22}" for name in COLUMNS))
    for name, unit, medians in bench.rows:
        cells = []
        for column in COLUMNS:
            value = medians.get(column)
            ratio = f" ({value / medians['native']:.2f}x)" if value is not None and column != "native" and "native" in medians else ""
            cells.append(f"{'-' if value is None else f'{value:.4g}' + ratio:>22}")
        print(f"{name:42} {unit:9}" + "".join(cells))
    print()
    over = 0
    for what, figure, limit, unit in bench.bars:
        good = figure == limit if unit == "exact" else figure <= limit
        over += not good
        told = ("agree" if good else f"{figure}, not {limit}") if unit == "exact" else f"{figure:.3g} {unit}, at most {limit:.3g}"
        print(f"{'PASS' if good else 'OVER'}  {what}: {told}")
    print(f"\n{len(bench.bars) - over} of {len(bench.bars)} bars held")
    return over


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter runs")
    parser.add_argument("--long", action="store_true", help="also 100 M allocations")
    parser.add_argument("names", nargs="*", help=" ".join(BENCHES))
    options = parser.parse_args()
    bench = Bench(harness.Tools(options.build), options.quick)
    try:
        for name, run in BENCHES.items():
            if not options.names or name in options.names:
                run(bench)
        if options.long:
            long_run(bench)
        return 1 if show(bench) else 0
    finally:
        bench.close()


if __name__ == "__main__":
    sys.exit(main())
