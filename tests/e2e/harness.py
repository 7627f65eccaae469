"""harness.py - run a program with and without mlprof and look at what came out.

   source --compile()--> program --run()--> Run(stdout, stderr, status, summary, trace)
                                              |                              |
                              expect lines the program printed      Perfetto's trace processor

A case is a function with @case. It gets a Box: a scratch directory and the means to run things in it.
Every trace that appears in the box is checked by the trace processor before the case may pass.
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(TESTS)
PYTHON = "/usr/bin/python3"
CASES = []


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def case(name, alone=False):
    """alone: measures time or loads the machine, so nothing else may run beside it"""
    def add(function):
        CASES.append((name, function, alone))
        return function
    return add


def same(what, got, wanted):
    if got != wanted:
        raise Failure(f"{what}: got {got!r}, expected {wanted!r}")


def check(what, truth):
    if not truth:
        raise Failure(what)


def is_current(output, command):
    """A program that this command made, newer than its source and all that it includes, which the compiler wrote down beside it."""
    if not all(os.path.exists(output + end) for end in ("", ".d", ".command")) or open(output + ".command").read() != command:
        return False
    with open(output + ".d") as file:
        sources = file.read().split(": ", 1)[1].replace("\\\n", " ").split()
    return all(os.path.exists(file) and os.path.getmtime(file) < os.path.getmtime(output) for file in sources)


class Tools:
    """What all cases share: paths of the build and one trace processor."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.mlprof = os.path.join(self.build, "collector", "mlprof")
        self.library = os.path.join(self.build, "preload", "libmlprof.so")
        self.programs = os.path.join(self.build, "test-programs")
        os.makedirs(self.programs, exist_ok=True)
        self.compile_lock = threading.Lock()
        self.query_lock = threading.Lock()
        self.server = None

    def compile(self, source, output=None, flags=()):
        """The source's first line may hold flags: "// cc: -pthread"."""
        source = os.path.join(TESTS, source)
        output = os.path.join(self.programs, output or os.path.basename(source).rsplit(".", 1)[0])
        with open(source) as file:
            first = file.readline()
        own = first.split("cc:", 1)[1].replace("*/", "").split() if "cc:" in first else []
        command = ["g++" if source.endswith(".cc") else "gcc", "-g", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wno-unused-result",
                   "-I", os.path.join(TESTS, "workloads"), "-MMD", "-MF", output + ".d", source, "-o", output + ".new", *flags, *own]
        with self.compile_lock:
            if is_current(output, " ".join(command)):
                return output
            done = subprocess.run(command, capture_output=True, text=True)
            check(f"does not compile: {' '.join(command)}\n{done.stderr}", done.returncode == 0)
            os.replace(output + ".new", output)  # another case may be running the old one
            with open(output + ".command", "w") as file:
                file.write(" ".join(command))
        return output

    def ask(self, trace, *sql):
        """(faults, rows of each query) of a trace, by Perfetto's trace processor"""
        with self.query_lock:
            if not self.server:
                self.server = subprocess.Popen([os.path.join(TESTS, "tpq", "tpq"), "--serve"], text=True,
                                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.server.stdin.write(json.dumps({"trace": trace, "sql": sql}) + "\n")
            self.server.stdin.flush()
            line = self.server.stdout.readline()
        check("the trace processor ended", line)
        answer = json.loads(line)
        check(f"{trace}: {answer.get('error')}", "error" not in answer)
        return answer["faults"], answer["results"]

    def close(self):
        if self.server:
            self.server.stdin.close()
            self.server.wait()


def whole_packets(path):
    """A trace is a row of packets, each with tag 0x0a and a length; is the last one whole?"""
    data = open(path, "rb").read()
    at = 0
    while at < len(data):
        if data[at] != 0x0a:
            return False
        at, length, shift = at + 1, 0, 0
        while True:
            if at >= len(data):
                return False
            length |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                break
        at += length
    return at == len(data)


class Run:
    """One finished program and what mlprof wrote about it."""

    def __init__(self, box, stdout, stderr, status, trace, seconds):
        self.box, self.stdout, self.stderr, self.status = box, stdout, stderr, status
        self.trace, self.seconds = trace, seconds

    @property
    def summary(self):
        with open(self.trace.replace(".perfetto-trace", ".summary.json")) as file:
            return json.load(file)

    @property
    def text(self):
        with open(self.trace.replace(".perfetto-trace", ".summary.txt")) as file:
            return file.read()

    def sql(self, query):
        return self.box.tools.ask(self.trace, query)[1][0]

    def value(self, query):
        """the single value of a query with one row and one column"""
        rows = self.sql(query)
        same(f"rows of {query}", len(rows), 1)
        return list(rows[0].values())[0]

    @property
    def expected(self):
        """[(key, value)] of the lines "expect KEY VALUE" that the program printed"""
        lines = [line.split(None, 2) for line in self.stdout.splitlines() if line.startswith("expect ")]
        return [(key, value) for _, key, value in lines]


def look_up(summary, key):
    """pools.mmap.peak_bytes -> summary["pools"][name == "mmap"]["peak_bytes"]; pool names may hold dots: last part wins"""
    if key.startswith("pools."):
        name, field = key[len("pools."):].rsplit(".", 1)
        found = [pool for pool in summary["pools"] if pool["name"] == name]
        check(f"no pool {name} among {[pool['name'] for pool in summary['pools']]}", found)
        return found[0][field]
    for part in key.split("."):
        summary = summary[int(part)] if part.isdigit() else summary[part]
    return summary


class Box:
    def __init__(self, tools, name):
        self.tools = tools
        self.name = name
        self.path = tempfile.mkdtemp(prefix="mlprof-test-" + "".join(c if c.isalnum() else "-" for c in name) + "-")
        os.chmod(self.path, 0o755)
        self.count = 0
        self.checked = set()
        self.notes = []

    def close(self):
        shutil.rmtree(self.path, ignore_errors=True)

    def note(self, text):
        self.notes.append(text)

    def file(self, name, content=None):
        path = os.path.join(self.path, name)
        if content is not None:
            with open(path, "w") as file:
                file.write(content)
        return path

    def compile(self, source, output=None, flags=()):
        return self.tools.compile(source, output, flags)

    def _finish(self, process, timeout, input):
        try:
            return process.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise Failure(f"no end after {timeout} s: {process.args}\n{out[-400:]}\n{err[-400:]}") from None

    def native(self, command, env=None, timeout=60, input=None, cwd=None, clean=False, **popen):
        """status is as the shell would say it: 128 + N for signal N; clean: env is all the environment there is"""
        start = time.monotonic()
        process = subprocess.Popen(command, env=env if clean else {**os.environ, **(env or {})}, cwd=cwd or self.path, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, stdin=subprocess.PIPE if input else subprocess.DEVNULL,
                                   text=True, errors="surrogateescape", start_new_session=True, **popen)
        out, err = self._finish(process, timeout, input)
        status = process.returncode if process.returncode >= 0 else 128 - process.returncode
        return Run(self, out, err, status, None, time.monotonic() - start)

    def new_trace(self):
        self.count += 1
        return os.path.join(self.path, f"t{self.count}.perfetto-trace")

    def run(self, command, *options, env=None, timeout=120, quiet=True, **popen):
        """mlprof run"""
        trace = self.new_trace()
        words = [self.tools.mlprof, "run", "-o", trace, *(["--quiet"] if quiet else []), *options, "--", *command]
        done = self.native(words, env, timeout, **popen)
        done.trace = trace
        return done

    def watched(self, command, *options, timeout=300):
        """mlprof run, and the most memory that the collector took, in KiB"""
        trace, high, end = self.new_trace(), 0, time.monotonic() + timeout
        with open(self.file("watched.out"), "w+") as out:
            process = subprocess.Popen([self.tools.mlprof, "run", "--quiet", "-o", trace, *options, "--", *command], stdout=out, cwd=self.path,
                                       stdin=subprocess.DEVNULL, start_new_session=True)
            while process.poll() is None:
                try:
                    with open(f"/proc/{process.pid}/status") as file:
                        high = max([high] + [int(line.split()[1]) for line in file if line.startswith("VmHWM")])
                except OSError:
                    pass
                if time.monotonic() > end:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise Failure(f"no end after {timeout} s: {process.args}")
                time.sleep(0.01)
            out.seek(0)
            return Run(self, out.read(), "", process.returncode, trace, 0), high

    def bare(self, command, env=None, timeout=120, quiet=True, wait=True, preload=None, **popen):
        """LD_PRELOAD=libmlprof.so without the command"""
        trace = self.new_trace()
        environment = {"LD_PRELOAD": preload or self.tools.library, "MLPROF_OUTPUT": trace,
                       **({"MLPROF_QUIET": "1"} if quiet else {}), **(env or {})}
        done = self.native(command, environment, timeout, **popen)
        done.trace = trace
        if wait:
            self.wait_for(trace.replace(".perfetto-trace", ".summary.json"), timeout=20)
        return done

    def wait_for(self, path, timeout):
        end = time.monotonic() + timeout
        while not os.path.exists(path):
            check(f"{os.path.basename(path)} did not appear within {timeout} s", time.monotonic() < end)
            time.sleep(0.01)

    def check_traces(self):
        """Each trace in the box: whole packets, and nothing the trace processor complains of."""
        for trace in sorted(glob.glob(os.path.join(self.path, "**", "*.perfetto-trace"), recursive=True)):
            if trace in self.checked or not os.path.getsize(trace):
                continue
            self.checked.add(trace)
            check(f"{os.path.basename(trace)} does not end on a whole packet", whole_packets(trace))
            faults, _ = self.tools.ask(trace)
            check(f"{os.path.basename(trace)}: trace processor says {faults}", not faults)

    def check_expected(self, run, base=None):
        """The program's own books against the summary; base: a run of the same program that does nothing."""
        check(f"the program ended with {run.status}: {run.stderr[-300:]}", run.status == 0)
        summary = run.summary
        check("the program printed no expectation", run.expected)
        wrong = []
        for key, value in run.expected:
            got = look_up(summary, key)
            want = int(value) if value.lstrip("-").isdigit() else value
            if base is not None and isinstance(want, int):
                want += look_up(base.summary, key)
            if got != want:
                wrong.append(f"{key} is {got}, the program says {want}")
        check("; ".join(wrong), not wrong)
        self.check_no_loss(summary)

    def check_no_loss(self, summary):
        for key in ("records", "late", "unknown_frees", "bad_chunks"):
            same(f"losses.{key}", summary["losses"].get(key, 0), 0)


def written_by_unit_test(box, name):
    """the trace that a unit test writes of its own records, as if it had been recorded"""
    trace = box.new_trace()
    done = box.native(["ninja", "-C", box.tools.build, f"tests/{name}"], timeout=300)
    same(f"ninja: {done.stdout[-500:]}", done.status, 0)
    done = box.native([os.path.join(box.tools.build, "tests", name), trace])
    same(f"{name}: {done.stdout[-500:]}", done.status, 0)
    return Run(box, done.stdout, done.stderr, 0, trace, done.seconds)
