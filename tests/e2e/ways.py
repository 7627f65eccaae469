"""ways.py - the ways in: options, exit statuses, signals, what is said where."""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

from harness import PYTHON, ROOT, case, check, same

KEYS = {
    "": ["command", "exit", "duration_ns", "totals", "peak", "pools", "processes", "losses", "overhead"],
    "totals": ["allocs", "frees", "allocated_bytes", "live_at_exit_bytes", "live_at_exit_blocks", "temporary_allocs"],
    "peak": ["bytes", "time_ns", "by_stack"],
    "peak.by_stack.0": ["bytes", "blocks", "frames"],
    "peak.by_stack.0.frames.0": ["function", "file", "line", "module"],
    "pools.0": ["name", "peak_bytes", "peak_time_ns", "allocs", "frees", "live_at_exit_bytes"],
    "processes.0": ["pid", "ppid", "name", "command", "exit", "peak", "pools"],
    "losses": ["records", "stacks", "symbols"],
    "overhead": ["events", "events_per_s", "hook_ns_estimate"],
}


@case("ways: the summary has its keys")
def keys(box):
    summary = box.run([box.compile("workloads/heap_random.c")]).summary
    for path, names in KEYS.items():
        place = summary
        for part in path.split(".") if path else []:
            place = place[int(part)] if part.isdigit() else place[part]
        for name in names:
            check(f"no key {name} in {path or 'the summary'}: {sorted(place)}", name in place)
    check("exit", summary["exit"] == {"status": 0})
    killed = box.run([box.compile("hostile/exits.c"), "kill"]).summary
    check(f"exit of a killed program: {killed['exit']}", killed["exit"].get("signal") == 9)


@case("ways: exit statuses")
def statuses(box):
    for words, status in ((["/bin/sh", "-c", "exit 41"], 41), (["/bin/sh", "-c", "kill -9 $$"], 137), (["/no/such"], 127),
                          (["no-such-command-at-all"], 127), ([box.file("plain", "text")], 126), ([box.path], 126)):
        run = box.run(words)
        same(f"status of {words}: {run.stderr}", run.status, status)
    same("no command", box.native([box.tools.mlprof, "run"]).status, 125)
    same("unknown option", box.native([box.tools.mlprof, "run", "--frobnicate", "--", "true"]).status, 125)
    both = box.native([box.tools.mlprof, "run", "-o", "one", "--raw=one", "--", "true"])
    same("one name for two files", (both.status, both.stderr), (125, "mlprof: --output and --raw name the same file 'one'\n"))
    same("unwritable output", box.native([box.tools.mlprof, "run", "-o", "/no/such/dir/x", "--", "true"]).status, 125)


@case("ways: a program that cannot be started leaves the last trace as it is")
def not_started(box):
    program, trace, raw = box.file("program"), box.file("kept.perfetto-trace", "old trace"), box.file("kept.raw", "old stream")
    shutil.copy("/bin/true", program)
    words = [box.tools.mlprof, "run", "--quiet", "-o", trace, f"--raw={raw}", "--", program]
    with open(program, "ab"):                           # so the exec says ETXTBSY, after everything else went well
        run = box.native(words)
        same("status, stderr", (run.status, run.stderr), (126, f"mlprof: {program}: Text file busy\n"))
    for path, text in ((trace, "old trace"), (raw, "old stream")):
        with open(path) as file:
            same(path, file.read(), text)
    same("status", box.native(words).status, 0)
    check("the old trace stayed", os.path.getsize(trace) > 1000 and os.path.getsize(raw) > 1000)
    same("files", sorted(name for name in os.listdir(box.path) if "kept" in name or ".part" in name),
         ["kept.perfetto-trace", "kept.raw", "kept.summary.json", "kept.summary.txt"])


@case("ways: what is said where")
def said(box):
    words = [box.compile("workloads/name_c.c")]
    loud = box.run(words, quiet=False)
    same("stdout", loud.stdout, "")
    check("no summary on stderr", "weights_load" in loud.stderr)
    check("the text file is not what was said", loud.text.strip() and loud.text.strip().splitlines()[0] in loud.stderr)
    check("a status line without a terminal", "\r" not in loud.stderr and "\x1b" not in loud.stderr)
    same("--quiet", box.run(words).stderr, "")
    spoken = box.run(words, "--json", quiet=False)
    check("--json", json.loads(spoken.stdout)["peak"]["bytes"] == spoken.summary["peak"]["bytes"])
    bare = box.bare(words, quiet=False)
    same("stdout of a bare run", bare.stdout, "")
    check("no summary on stderr of a bare run", "weights_load" in bare.stderr)
    same("quiet bare run", box.bare(words).stderr, "")


@case("ways: default names of the files")
def default_names(box):
    box.native([box.tools.mlprof, "run", "--quiet", "--", "/bin/true"])
    names = sorted(os.listdir(box.path))
    same("number of files", len(names), 3)
    stem = re.fullmatch(r"mlprof-true-\d+", names[0].split(".")[0])
    check(f"names: {names}", stem and all(n.startswith(stem.group() + ".") for n in names))
    before = set(os.listdir(box.path))
    box.native(["/bin/true"], {"LD_PRELOAD": box.tools.library, "MLPROF_QUIET": "1"})
    time.sleep(1)
    new = set(os.listdir(box.path)) - before
    same(f"files of a bare run {new}", len(new), 3)


@case("ways: options")
def options(box):
    program = box.compile("workloads/heap_random.c")
    none = box.run([program], "--stacks=none")
    box.check_expected(none)
    check("frames without stacks", not any(s["frames"] for s in none.summary["peak"]["by_stack"]))
    caller = box.run([program], "--stacks=caller")
    box.check_expected(caller)
    check("more than the caller", all(len(s["frames"]) <= 2 for s in caller.summary["peak"]["by_stack"]))
    tree = box.run([box.compile("workloads/tree.c")], "--follow=none")
    same("processes with --follow=none", len(tree.summary["processes"]), 1)
    shell = box.run(["sh", "-c", "ls >/dev/null; exit 0"], "--follow=none")        # by vfork
    same("a shell's processes with --follow=none", len(shell.summary["processes"]), 1)
    became = box.run(["sh", "-c", "exec ls /dev/null"], "--follow=none")
    same("what it became itself", became.summary["processes"][0]["not_followed"], "/usr/bin/ls")
    box.check_expected(box.run([program], "--large=0"))
    drop = box.run([program], "--on-full=drop")
    same("--on-full=drop", drop.status, 0)
    bare = box.bare([program], {"MLPROF_STACKS": "none"})
    check("MLPROF_STACKS", not any(s["frames"] for s in bare.summary["peak"]["by_stack"]))


@case("ways: help, version, man pages and completions agree")
def help_pages(box):
    tool = box.tools.mlprof
    version = box.native([tool, "--version"])
    check(f"version: {version.stdout}", re.search(r"\d+\.\d+\.\d+", version.stdout) and version.status == 0)
    page = box.native([tool, "help", "run"])
    for option in ("--output", "--stacks", "--large", "--follow", "--on-full", "--api", "--device-time", "--quiet", "--json", "--raw"):
        check(f"{option} is not in help run", option in page.stdout)
    check("--help names no run", "run" in box.native([tool, "--help"]).stdout)
    same("unknown command", box.native([tool, "frobnicate"]).status, 125)


@case("ways: a library without its command says so")
def moved_away(box):
    os.makedirs(box.file("elsewhere"))
    library = shutil.copy(box.tools.library, box.file("elsewhere"))
    run = box.native(["/bin/echo", "hello"], env={"LD_PRELOAD": library})
    same("output, status", (run.stdout, run.status), ("hello\n", 0))
    same("what is said", run.stderr, "mlprof: libmlprof.so was moved away from its command, so nothing is recorded\n")


@case("ways: targets that cannot be interposed")
def refused(box):
    source = box.file("hello.c", '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
    for name, flags in (("static", ["-static"]), ("asan", ["-fsanitize=address"]), ("tsan", ["-fsanitize=thread"])):
        program = box.file(name)
        done = box.native(["gcc", source, "-o", program, *flags])
        same(f"compile {name}: {done.stderr}", done.status, 0)
        run = box.run([program], quiet=False)
        check(f"{name}: no word of it: {run.stderr}", name in run.stderr.lower() or "sanitizer" in run.stderr.lower())
        same(f"{name}: lines", len(run.stderr.strip().splitlines()), 1)
    with open("/bin/true", "rb") as file:
        image = bytearray(file.read())
    image[18:20] = (183 if image[18] == 62 else 62).to_bytes(2, "little")      # e_machine: another one
    with open(box.file("foreign"), "wb") as file:
        file.write(image)
    os.chmod(box.file("foreign"), 0o755)
    run = box.run([box.file("foreign")], quiet=False)
    check(f"other architecture: {run.status} {run.stderr}", run.status == 126 and len(run.stderr.strip().splitlines()) == 1)
    if os.getuid() == 0:
        from hostile import set_user_id
        run = box.run([set_user_id(box)], quiet=False)
        check(f"set-user-id: {run.stderr}", "set-user-id" in run.stderr.lower() or "setuid" in run.stderr.lower())
    plain = box.file("noscript", "just text\n")
    os.chmod(plain, 0o755)
    same("neither ELF nor script", box.run([plain]).status, 126)
    script = box.file("script", "#!/bin/sh\nexec /bin/echo from a script\n")
    os.chmod(script, 0o755)
    same("a script", box.run([script]).stdout, "from a script\n")


@case("ways: the user's own LD_PRELOAD is kept")
def own_preload(box):
    library = box.compile("hostile/preloaded.c")
    words = [PYTHON, "-c", "import os; print(os.environ.get('PRELOADED_HELLO'))"]
    same("run", box.run(words, env={"LD_PRELOAD": library}).stdout, "1\n")
    same("bare", box.bare(words, preload=f"{library}:{box.tools.library}").stdout, "1\n")


def start(box, *words):
    # A group of its own in this session: in a session of its own it would be orphaned, and the kernel stops no such group.
    trace = box.new_trace()
    process = subprocess.Popen([box.tools.mlprof, "run", "--quiet", "-o", trace, "--", *words], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, cwd=box.path, preexec_fn=os.setpgrp)
    return process, trace


@case("ways: signals act on the program as without us")
def signals(box):
    code = """
import os, signal, sys, time
def caught(number, frame):
    os.write(1, b"caught %d\\n" % number)       # print() cannot be interrupted by another print()
    sys.exit(50 + number)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, caught)
print("ready", flush=True)
for _ in range(400):        # one long sleep would not be woken by a signal that comes just before it
    time.sleep(0.05)
"""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        process, trace = start(box, PYTHON, "-c", code)
        process.stdout.readline()
        if number == signal.SIGINT:
            os.killpg(process.pid, number)      # Ctrl-C reaches the whole group
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=20)
        same(f"signal {number}: {err}", (out, process.returncode), (f"caught {int(number)}\n", 50 + number))
        same("summary", json.load(open(trace.replace(".perfetto-trace", ".summary.json")))["exit"], {"status": 50 + number})


def on_terminal(box, words, keys=b""):
    """what a terminal of 40 columns shows of mlprof run, and its status; the keys are pressed once the program says "ready" """
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    process = subprocess.Popen([box.tools.mlprof, "run", "-o", box.new_trace(), "--", *words], stdin=side, stdout=side, stderr=side, cwd=box.path,
                               env={**os.environ, "TERM": "xterm"}, preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)))
    os.close(side)
    shown = b""
    end = time.monotonic() + 20
    while time.monotonic() < end:               # an error says that nobody has the terminal open any more
        if select.select([main], [], [], 0.1)[0]:
            try:
                shown += os.read(main, 65536)
            except OSError:
                break
        if keys and b"ready" in shown:
            os.write(main, keys)
            keys = b""
    return shown, process.wait(timeout=10)


@case("ways: a terminal: live status, Ctrl-C")
def terminal(box):
    shown, _ = on_terminal(box, [PYTHON, "-c", "import time\nfor i in range(30): x = bytearray(1 << 20); time.sleep(0.05)"])
    check(f"no status line: {shown[:200]}", b"\r" in shown and b"peak" in shown.lower())
    check("the status line is not erased", b"\x1b[K" in shown or b"\x1b[2K" in shown)
    lines = re.findall(rb"\x1b\[K(mlprof: [^\x1b]*)", shown)
    check(f"wider than the terminal: {lines}", lines and all(len(line) <= 40 for line in lines))
    shown, status = on_terminal(box, [PYTHON, "-c", "import time; print('ready', flush=True); time.sleep(20)"], b"\x03")
    same("status after Ctrl-C", status, 130)
    check(f"after Ctrl-C: {shown}", b"KeyboardInterrupt" in shown and b"SIGINT" in shown)


def states(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


@case("ways: stop and continue")
def stop_continue(box):
    process, _ = start(box, PYTHON, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(0.5); print('end', flush=True)")
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGTSTP)
    time.sleep(0.4)
    same("state of the program after SIGTSTP", states(pid), "T")
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=20)
    same("after SIGCONT", (out, process.returncode), ("end\n", 0))


@case("ways: no zombie, no stranger among the children")
def no_stranger(box):
    code = """
import os
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no children")
print(os.getpgid(0) == os.getpgid(os.getpid()))
"""
    run = box.bare([PYTHON, "-c", code])
    same("stdout", run.stdout, "no children\nTrue\n")


@case("ways: a bare program's files are there when it has ended, also if it became another")
def there_at_the_end(box):
    script = box.file("script", f"#!/usr/bin/env {PYTHON}\nimport json\n")
    os.chmod(script, 0o755)
    for words in ([PYTHON, "-c", "import json"], [script], ["bash", "-c", f"true; exec {script}"]) * 5:
        trace = box.new_trace()
        with open(box.file("said"), "w+") as said:              # not a pipe, whose end comes when the collector's does
            process = subprocess.Popen(words, cwd=box.path, stderr=said,
                                       env={**os.environ, "LD_PRELOAD": box.tools.library, "MLPROF_QUIET": "1", "MLPROF_OUTPUT": trace})
            status = process.wait(timeout=60)
            said.seek(0)
            same("status, stderr", (status, said.read()), (0, ""))
        check(f"no summary yet of {words}", os.path.exists(trace.replace(".perfetto-trace", ".summary.json")))


@case("ways: the first process of a container waits for its own children alone")
def first_process(box):
    code = """
import os
if os.fork() == 0:
    os._exit(3)
print(os.getpid(), os.wait()[1] >> 8)
try:
    print("a stranger:", os.wait())
except ChildProcessError:
    print("no children left")
"""
    inside = ["unshare", "-pf" if os.getuid() == 0 else "-rpf", "--kill-child", "--mount-proc"]
    subreaper = "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
    for front, pid in ((inside, "1 "), ([PYTHON, "-c", subreaper], "")):
        trace = box.new_trace()
        run = box.native([*front, "/usr/bin/env", f"LD_PRELOAD={box.tools.library}", "MLPROF_QUIET=1", f"MLPROF_OUTPUT={trace}",
                          PYTHON, "-c", code], timeout=20)
        check(f"{front[0]}: {run.stdout} {run.stderr}", run.stdout.startswith(pid) and run.stdout.endswith(" 3\nno children left\n"))
        box.wait_for(trace.replace(".perfetto-trace", ".summary.json"), 10)


@case("ways: installed, any prefix and DESTDIR; no warnings")
def installed(box):
    build = os.path.join(box.path, "b")
    done = box.native(["meson", "setup", build, ROOT, "-Dwerror=true", "--prefix=/opt/somewhere", "--libdir=lib64"], timeout=120)
    same(f"meson: {done.stdout[-500:]}", done.status, 0)
    done = box.native(["meson", "install", "-C", build, "--destdir", box.file("dest")], timeout=300)
    same(f"install: {done.stdout[-800:]} {done.stderr[-500:]}", done.status, 0)
    prefix = box.file("dest/opt/somewhere")
    found = {os.path.relpath(os.path.join(d, f), prefix) for d, _, names in os.walk(prefix) for f in names}
    for path in ("bin/mlprof", "lib64/mlprof/libmlprof.so", "share/man/man1/mlprof.1", "share/man/man1/mlprof-run.1", "share/man/man5/mlprof-probes.5",
                 "share/bash-completion/completions/mlprof", "share/zsh/site-functions/_mlprof",
                 "share/fish/vendor_completions.d/mlprof.fish"):
        check(f"{path} is not installed: {sorted(found)}", path in found)
    check(f"no public header: {sorted(found)}", any(f.startswith("include/mlprof") for f in found))
    check(f"no pkg-config file: {sorted(found)}", any(f.endswith("mlprof.pc") for f in found))
    program = box.compile("workloads/heap_random.c")
    trace = box.file("installed.perfetto-trace")
    done = box.native([os.path.join(prefix, "bin/mlprof"), "run", "--quiet", "-o", trace, "--", program])
    same(f"installed run: {done.stderr}", done.status, 0)
    bare = box.bare([program], preload=os.path.join(prefix, "lib64/mlprof/libmlprof.so"))
    box.check_expected(bare)


def register(tools):
    pass
