"""faults.py - mlprof itself is harmed: the program must not notice, and what was written must be whole."""
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import time

from harness import PYTHON, ROOT, Run, case, check, same

WHOLE = "good 1 1 1, child 17\n"
COLLECTOR_PID_AT = 12           # in struct control: magic, version, state, then this


def environment_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return dict(item.split(b"=", 1) for item in file.read().split(b"\0") if b"=" in item)


class Victim:
    """steady.c under mlprof, running; knows its session and its collector"""

    def __init__(self, box, how, seconds=1.2, environment=None):
        self.box = box
        self.trace = box.new_trace()
        program = [box.compile("workloads/steady.c"), str(seconds)]
        words = {"run": [box.tools.mlprof, "run", "--quiet", "-o", self.trace, "--", *program], "bare": program}[how]
        env = {**os.environ, **(environment or {})}
        if how == "bare":
            env.update(LD_PRELOAD=box.tools.library, MLPROF_OUTPUT=self.trace, MLPROF_QUIET="1")
        self.process = subprocess.Popen(words, env=env, cwd=box.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.how = how
        same("first line", self.process.stdout.readline(), "ready\n")

    def session(self):
        """the session directory, found as anybody with our rights could: in the program's environment or its maps"""
        pid = self.process.pid
        if self.how == "run":
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                pid = int(file.read().split()[0])
        for line in open(f"/proc/{pid}/maps"):
            path = line.rstrip().split(None, 5)[-1]
            if path.endswith("/control"):
                return os.path.dirname(path)
        raise AssertionError("the program has no session mapped")

    def collector(self):
        with open(os.path.join(self.session(), "control"), "rb") as file:
            return struct.unpack_from("I", file.read(16), COLLECTOR_PID_AT)[0]

    def end(self, expected_status=23):
        out, err = self.process.communicate(timeout=60)
        same("what the program printed", out, WHOLE)
        if expected_status is not None:
            same("status", self.process.returncode, expected_status)
        return err


def killed(how, delay):
    @case(f"faults: collector killed after {delay} s ({how})")
    def kill_it(box):
        victim = Victim(box, how)
        time.sleep(delay)
        session = victim.session()
        os.kill(victim.collector(), signal.SIGKILL)
        said = victim.end(None if how == "run" else 23)
        shutil.rmtree(session, ignore_errors=True)      # nobody is left who could
        box.note(f"said: {said.strip()!r}")
        same("lines said about it", len(said.strip().splitlines()), 1)
        same("summary", os.path.exists(victim.trace.replace(".perfetto-trace", ".summary.json")), False)
        check("no partial trace", os.path.getsize(victim.trace) > 0 or delay == 0)


for how in ("run", "bare"):
    for delay in (0.0, 0.1, 0.4, 0.9):
        killed(how, delay)


def removed(how, delay):
    @case(f"faults: session directory removed after {delay} s ({how})")
    def remove_it(box):
        victim = Victim(box, how)
        time.sleep(delay)
        start = time.monotonic()
        shutil.rmtree(victim.session())
        victim.end()
        box.wait_for(victim.trace.replace(".perfetto-trace", ".summary.json"), 10)
        check(f"the program took {time.monotonic() - start:.1f} s instead of 1.2", time.monotonic() - start < 8)
        with open(victim.trace.replace(".perfetto-trace", ".summary.json")) as file:
            same("exit", json.load(file)["exit"], {"status": 23})


for how in ("run", "bare"):
    for delay in (0.0, 0.3):
        removed(how, delay)


def stalled(box, *words):
    """the collector stands still for two seconds while the program is at work"""
    trace = box.new_trace()
    process = subprocess.Popen([box.tools.mlprof, "run", "--quiet", "-o", trace, "--", *words],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=box.path)
    time.sleep(0.3)
    process.send_signal(signal.SIGSTOP)
    time.sleep(2)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=120)
    same("stderr, status", (err, process.returncode), ("", 0))
    return Run(box, out, err, 0, trace, 0)


@case("faults: collector stalled for 2 s")
def stalled_pair(box):
    """the pipe fills, the program waits, nothing is lost"""
    program = box.compile("bench/pair.c", "pair")
    run = stalled(box, program, "--threads=2", "--pairs=5000000", "--books")
    box.check_expected(run, box.run([program, "--threads=2", "--pairs=0", "--books"]))


@case("faults: collector stalled for 2 s, and a signal every 60 us ends each wait")
def stalled_signals(box):
    run = stalled(box, box.compile("hostile/alarm_in_hook.c"))
    check(f"allocations: {run.summary['totals']['allocs']}", run.summary["totals"]["allocs"] >= 1500000)
    box.check_no_loss(run.summary)


@case("faults: processes live one after another while the collector is stalled for 2 s")
def stalled_children(box):
    """it sees late that one is over, but whoever exits, or becomes another image, has said when: that is before the next one began"""
    program = box.compile("workloads/children_in_turn.c", "children_in_turn", ["-I", os.path.join(ROOT, "include")])
    for way, processes in (("", 101), ("exec", 101), ("forge", 102)):
        run = stalled(box, program, *way.split())
        same(f"{way}: processes", len(run.summary["processes"]), processes)
        same(f"{way}: peak", run.summary["peak"]["bytes"], 2 << 20)
        same(f"{way}: lost", [run.summary["losses"][key] for key in ("records", "late", "bad_chunks")], [0, 0, 0])


@case("faults: disk full")
def disk_full(box):
    """a file system of 128 KiB: the trace ends on a whole packet, one message, the program's own status"""
    os.makedirs(box.file("full"))
    os.makedirs(box.file("kept"))
    program = box.compile("workloads/steady.c")
    script = (f"mount -t tmpfs -o size=128k none {box.path}/full && dd if=/dev/zero of={box.path}/full/ballast bs=1k count=96 2>/dev/null;"
              f"{box.tools.mlprof} run --large=64 -o {box.path}/full/x.perfetto-trace -- {program} 1; s=$?;"
              f"cp {box.path}/full/x.* {box.path}/kept/; exit $s")
    run = box.native(["unshare", "-m" if os.getuid() == 0 else "-rm", "sh", "-c", script])
    same(f"status: {run.stderr}", run.status, 23)
    same("output", run.stdout, "ready\n" + WHOLE)
    check(f"no message: {run.stderr}", "space" in run.stderr.lower())
    check("no trace at all", glob.glob(box.file("kept/*.perfetto-trace")))


@case("faults: a program that sleeps does not fill the raw stream")
def sleeper(box):
    raw = box.file("raw")
    same("status", box.run(["sleep", "3"], f"--raw={raw}").status, 0)
    check(f"{os.path.getsize(raw)} bytes", os.path.getsize(raw) < 200000)


@case("faults: no room for the raw stream")
def raw_full(box):
    """it is said, and everything else is there"""
    for words, environment in (([box.tools.mlprof, "run", "--raw=/dev/full", "-o", "run.perfetto-trace", "--"], {}),
                               ([], {"LD_PRELOAD": box.tools.library, "MLPROF_RAW": "/dev/full", "MLPROF_OUTPUT": "bare.perfetto-trace"})):
        run = box.native(words + [PYTHON, "-c", "raise SystemExit(3)"], env=environment)
        same(f"status: {run.stderr}", run.status, 3)
        check(f"no message: {run.stderr}", "cannot write '/dev/full': No space left on device; the raw stream ends early" in run.stderr)
    same("summaries", sorted(os.path.basename(name) for name in glob.glob(box.file("*.json"))), ["bare.summary.json", "run.summary.json"])
    nowhere = box.native([box.tools.mlprof, "run", "--raw=/no/such/place", "--", "true"])
    same("a place that is none", (nowhere.status, nowhere.stderr), (125, "mlprof: cannot write /no/such/place: No such file or directory\n"))


@case("faults: files may not grow beyond a limit")
def file_limit(box):
    """5 MB are enough for the program's shared memory and too little for the raw stream: as with a full disk"""
    program, raw = box.compile("bench/pair.c", "pair"), box.file("raw")
    shell = ["sh", "-c", 'ulimit -f 10000; exec "$@"', "sh"]
    for words in ([box.tools.mlprof, "run", f"--raw={raw}", "-o", "run.perfetto-trace", "--"],
                  ["env", f"LD_PRELOAD={box.tools.library}", f"MLPROF_RAW={raw}", "MLPROF_OUTPUT=bare.perfetto-trace"]):
        run = box.native([*shell, *words, program, "--pairs=2000000"])
        same(f"status: {run.stderr[-300:]}", run.status, 0)
        check(f"no message: {run.stderr}", "File too large; the raw stream ends early" in run.stderr)
    same("summaries", sorted(os.path.basename(name) for name in glob.glob(box.file("*.json"))), ["bare.summary.json", "run.summary.json"])


@case("faults: 200 processes at once")
def swarm(box):
    run = box.run([box.compile("workloads/swarm.c")])
    box.check_expected(run)
    check(f"{len(run.summary['processes'])} processes", len(run.summary["processes"]) >= 201)


@case("faults: 8 processes become others while the collector is stalled")
def exec_at_once(box):
    """their old and new images' chunks lie in the pipe all at once, and to end an old image the pipe is drained in the midst of a batch"""
    program = box.compile("workloads/exec_at_once.c")
    run = stalled(box, program, "8")
    same("output", run.stdout, "0 bad\n")
    box.check_no_loss(run.summary)
    became = [process for process in run.summary["processes"] if process["command"] == [program]]
    same("allocations of the new ones", [process["allocs"] // 20000 for process in became], [1] * 8)


@case("faults: a busy process becomes another busy one, again and again")
def exec_busy(box):
    """to end an old image the pipe is drained, where ever more of the new one is; the collector's stack is small"""
    program, trace = box.compile("workloads/exec_busy.c"), box.new_trace()
    done = box.native(["sh", "-c", 'ulimit -s 400; exec "$@"', "sh", box.tools.mlprof, "run", "--quiet", "-o", trace, "--", program, "24"])
    same("stderr, status", (done.stderr, done.status), ("", 0))
    run = Run(box, done.stdout, done.stderr, done.status, trace, 0)
    box.check_no_loss(run.summary)
    same("allocations of each", [process["allocs"] for process in run.summary["processes"]], [200000] * 25)
    same("how they ended", [process["exit"] for process in run.summary["processes"]][:-1], [{"exec": True}] * 24)


@case("faults: nothing is left behind")
def clean(box):
    """session directories are gone when all is over, whatever happened"""
    place = box.file("run")
    os.makedirs(place, mode=0o700)
    for words in (["/bin/true"], [box.compile("hostile/exits.c"), "kill"], [box.compile("hostile/fork_only.c")]):
        for variable in ("XDG_RUNTIME_DIR", "TMPDIR"):
            environment = {"XDG_RUNTIME_DIR": "", "TMPDIR": "", variable: place}
            box.run(words, env=environment)
            same(f"left by run in {variable}", os.listdir(place), [])
            box.bare(words, env=environment)
            time.sleep(0.3)
            same(f"left by a bare run in {variable}", os.listdir(place), [])


def register(tools):
    pass
