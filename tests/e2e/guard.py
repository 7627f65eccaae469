"""guard.py - a session belongs to one user: others can neither read nor write it, and no link leads astray."""
import os
import shutil
import stat
import subprocess
import tempfile

from faults import Victim
from harness import Skip, case, check, same

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]


def as_nobody(box, script, path):
    if os.getuid() != 0:
        raise Skip("only root can become another user")
    return box.native([*NOBODY, "sh", "-c", script, "sh", path])


@case("guard: a second user can neither read nor write the session")
def second_user(box):
    if os.getuid() != 0:
        raise Skip("only root can become another user")
    for how in ("run", "bare"):
        victim = Victim(box, how, 2)
        session = victim.session()
        same("mode", stat.S_IMODE(os.stat(session).st_mode), 0o700)
        for name in os.listdir(session):
            mode = stat.S_IMODE(os.lstat(os.path.join(session, name)).st_mode)
            check(f"{name} is open to others: {mode:o}", mode & 0o077 == 0)
            for attempt in ('cat "$1" >/dev/null', 'echo x >>"$1"', 'rm "$1"', 'ln "$1" /tmp/stolen'):
                done = as_nobody(box, attempt, os.path.join(session, name))
                check(f"a second user could do: {attempt} on {name}", done.status != 0)
        check("a second user could list it", as_nobody(box, 'ls "$1"', session).status != 0)
        check("a second user could write in it", as_nobody(box, 'touch "$1/x"', session).status != 0)
        victim.end()


@case("guard: a burst leaves a user without rights the pipes that it had")
def pipes(box):
    """beyond a quota of pages, which all processes of a user share, new pipes are tiny"""
    if os.getuid() != 0:
        raise Skip("only root can become another user")
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        for part, path in (("collector", box.tools.mlprof), ("preload", box.tools.library), ("program", box.compile("workloads/burst_children.c"))):
            os.mkdir(os.path.join(place, part), 0o755)
            shutil.copy(path, os.path.join(place, part))
        words = [os.path.join(place, "collector/mlprof"), "run", "--json", "-o", os.path.join(place, "x.perfetto-trace"), "--",
                 os.path.join(place, "program/burst_children"), "pipes"]
        done = subprocess.run([*NOBODY, "env", "HOME=/", *words], cwd=place, capture_output=True, text=True, timeout=60)
    same("status", done.returncode, 0)
    sizes = [line for line in done.stdout.splitlines() if line.startswith("pipe ")]
    same("pipes", (len(sizes), set(sizes)), (22, {"pipe 65536"}))


@case("guard: names are not to be guessed")
def names(box):
    seen = set()
    for _ in range(3):
        victim = Victim(box, "run", 0.2)
        name = os.path.basename(victim.session())
        seen.add(name)
        check(f"{name} is the pid and nothing else", len(name.replace(str(victim.process.pid), "")) >= 12)
        victim.end()
    same("different names", len(seen), 3)


@case("guard: a foreign or linked session is refused")
def foreign(box):
    program = box.compile("workloads/heap_random.c")
    native = box.native([program])
    victim = Victim(box, "run", 3)
    session = victim.session()
    link = box.file("link")
    os.symlink(session, link)
    copy = box.file("copy")
    shutil.copytree(session, copy, copy_function=lambda a, b: shutil.copyfile(a, b) if os.path.isfile(a) else os.mkfifo(b))
    os.chmod(copy, 0o755)
    if os.getuid() == 0:
        for name in ["", *os.listdir(copy)]:
            os.lchown(os.path.join(copy, name), 65534, 65534)
    for place in (link, copy, "/no/such", "", "relative"):
        run = box.native([program], {"LD_PRELOAD": box.tools.library, "MLPROF_SESSION": place, "MLPROF_QUIET": "1",
                                     "MLPROF_OUTPUT": box.new_trace()})
        same(f"output with MLPROF_SESSION={place!r}", (run.stdout, run.status), (native.stdout, native.status))
    victim.end()
    with open(victim.trace.replace(".perfetto-trace", ".summary.json")) as file:
        check("the victim's summary has strangers in it", "heap_random" not in file.read())


@case("guard: output is never written through somebody's link")
def output_link(box):
    """in a directory that others can write, a link in place of the trace must not lead to another file"""
    target = box.file("precious", "precious")
    os.chmod(target, 0o644)
    link = box.file("x.summary.json")
    os.symlink(target, link)
    box.native([box.tools.mlprof, "run", "--quiet", "-o", box.file("x.perfetto-trace"), "--", "/bin/true"])
    same("the file behind the link", open(target).read(), "precious")


def register(tools):
    pass
