"""rules.py - what must hold of the tree and of what is built."""
import os
import re
import subprocess

from harness import ROOT, case, check, same

# Names that a program or libc may expect to find: what libmlprof.so may define.
HOOKS = """
malloc calloc realloc reallocarray free cfree posix_memalign aligned_alloc memalign valloc pvalloc free_sized free_aligned_sized
malloc_usable_size mmap mmap64 munmap mremap mprotect brk sbrk
fork _Fork vfork daemon clone posix_spawn posix_spawnp execve execv execvp execvpe execl execlp execle execveat fexecve
pthread_create pthread_getattr_np pthread_setname_np prctl dlopen dlmopen dlclose dlsym dlvsym exit _exit _Exit quick_exit abort kill raise
""".split()
CXX = re.compile(r"_Zn[wa]|_Zd[la]|_ZnwmSt|_ZdlPv")                       # operator new and delete
ALLOCATORS = re.compile(r"(mallocx|rallocx|xallocx|sallocx|dallocx|sdallocx|nallocx|je_\w+|tc_\w+|mi_\w+)$")

# part: what its files may include of ours
INCLUDES = {
    "include": r"mlprof/|records\.def",
    "preload": r"mlprof/|[a-z_]+\.h$",
    "collector/read": r"mlprof/|\.\./util/|\.\./model/session\.h|[a-z_]+\.h$",
    "collector/model": r"mlprof/|\.\./util/|util/|[a-z_]+\.h$",
    "collector/write": r"\.\./util/|util/|\.\./model/|[a-z_.-]+\.h$",
    "collector/util": r"mlprof/wire\.h|[a-z_]+\.h$",
}
NEVER = {
    "preload": ["collector/", "<stdio.h>"],
    "collector/model": ["read/", "write/", "protobuf", "preload/"],
    "collector/write": ["read/", "preload/"],
    "collector/read": ["write/", "preload/"],
    "collector": ["preload/"],
    "include": ["preload/", "collector/"],
}


def tracked():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0 and done.stdout:
        return [path for path in done.stdout.split("\n") if path and os.path.exists(os.path.join(ROOT, path))]
    return [os.path.relpath(os.path.join(d, f), ROOT) for d, _, names in os.walk(ROOT) for f in names if "/build" not in d and "/.git" not in d]


def text_of(path):
    with open(os.path.join(ROOT, path), errors="replace") as file:
        return file.read()


@case("rules: libmlprof.so exports its hooks and nothing else")
def exports(box):
    out = box.native(["nm", "-D", "--defined-only", box.tools.library]).stdout
    names = {line.split()[-1].split("@")[0] for line in out.splitlines() if " A " not in line}
    check("it exports nothing", names)
    foreign = [n for n in names if n not in HOOKS and not CXX.match(n) and not ALLOCATORS.match(n) and not n.startswith("mlprof_")]
    same("names that are not hooks", foreign, [])
    check("malloc & co are hooks", {"malloc", "free", "calloc", "realloc", "mmap", "munmap"} <= names)
    box.note(f"{len(names)} exports")


@case("rules: libmlprof.so needs libc alone")
def needed(box):
    out = box.native(["readelf", "-d", box.tools.library]).stdout
    libraries = set(re.findall(r"\(NEEDED\).*\[(.*)\]", out))
    check(f"it needs {libraries}", libraries <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"})
    maps = box.run(["/bin/cat", "/proc/self/maps"]).stdout
    scopes = box.native(["/bin/sh", "-c", "true"], {"LD_DEBUG": "scopes", "LD_PRELOAD": box.tools.library, "MLPROF_QUIET": "1"}).stderr
    everybody = [line for line in scopes.splitlines() if "scope 0:" in line]
    check("no scopes shown", any("libmlprof" in line for line in everybody))
    check("libunwind is in the program's global scope", not any("libmlprof" in line and "libunwind" in line for line in everybody))
    box.note("libunwind is " + ("mapped, privately" if "libunwind" in maps else "not mapped"))


@case("rules: libmlprof.so uses no string function of libc")
def no_vectors(box):
    """they would change vector registers under a probed function: see preload/memory.c"""
    out = box.native(["nm", "-D", "--undefined-only", box.tools.library]).stdout
    same("imports", re.findall(r" U ((?:mem|str|wcs|bcopy|bzero)\w*)", out), [])


@case("rules: top level")
def top_level(box):
    wanted = {"meson.build", "preload", "collector", "include", "tests", "scripts", "README.md"}
    also = {"LICENSE", "meson_options.txt"}
    found = {path.split("/")[0] for path in tracked()}
    found = {name for name in found if not name.startswith(".")}
    check(f"top level is {sorted(found)}", wanted <= found <= wanted | also)


@case("rules: what a build or a run makes is not kept")
def generated(box):
    made = re.compile(r"(^|/)__pycache__/|\.(pyc|o|so|a|perfetto-trace|mlraw)$|\.summary\.(txt|json)$")
    same("generated files", [path for path in tracked() if made.search(path)], [])


@case("rules: who includes whom")
def includes(box):
    wrong = []
    for path in tracked():
        if not path.endswith((".c", ".h", ".def")):
            continue
        for part, banned in NEVER.items():
            if path.startswith(part + "/"):
                for line in re.findall(r'^\s*#\s*include\s+([<"].*[>"])', text_of(path), re.M):
                    wrong += [f"{path} includes {line}" for word in banned if word in line]
    same("forbidden includes", wrong, [])


@case("rules: nothing refers outside the tree or to a package host")
def references(box):
    # written in pieces so that this file passes its own test
    words = ["../" + "shared", "/work/" + "shared", "registry." + "npmjs", "pypi." + "org", "files.python" + "hosted", "deb." + "debian.org"]
    wrong = [f"{path}: {word}" for path in tracked() for word in words if word in text_of(path)]
    same("references", wrong, [])


@case("rules: no unfinished business")
def unfinished(box):
    mark = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!X)")
    wrong = [f"{path}:{number}" for path in tracked() if path.endswith((".c", ".h", ".py", ".cc", ".build", ".def"))
             for number, line in enumerate(text_of(path).splitlines(), 1) if mark.search(line)]
    same("marks", wrong, [])


@case("rules: scripts/setup does nothing the second time")
def setup_twice(box):
    run = box.native([os.path.join(ROOT, "scripts", "setup"), "--tests"])
    same("status and words", (run.status, run.stdout, run.stderr), (0, "", ""))
    check(f"it took {run.seconds:.1f} s", run.seconds < 2)


@case("rules: scripts/setup elsewhere prints the list")
def setup_elsewhere(box):
    os.mkdir(box.file("bin"))
    for name in ("bash", "dirname", "sed", "cat", "env"):
        os.symlink(f"/usr/bin/{name}", box.file(f"bin/{name}"))
    run = box.native([os.path.join(ROOT, "scripts", "setup")], {"PATH": box.file("bin")})
    same("status", run.status, 0)
    check(f"list: {run.stdout}", "libunwind-dev" in run.stdout and "meson" in run.stdout)


def register(tools):
    pass
