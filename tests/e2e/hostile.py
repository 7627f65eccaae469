"""hostile.py - the table of hostile programs: the same with and without mlprof.

Each row is a program in tests/hostile. It runs three times: natively, under `mlprof run`, and with a bare
LD_PRELOAD. What it prints on stdout and stderr and how it ends must be the same; what mlprof wrote about it
must be whole. The finished table is printed at the end of the tests.
"""
import glob
import os

from harness import PYTHON, TESTS, Failure, case, check, same

TABLE = []


def program(name, *arguments):
    def command(box):
        return [box.compile(f"hostile/{name}"), *[a(box) if callable(a) else a for a in arguments]]
    return command


def python(name, *arguments):
    return lambda box: [PYTHON, os.path.join(TESTS, "hostile", name), *arguments]


def shell(name):
    return lambda box: ["/bin/sh", os.path.join(TESTS, "hostile", name)]


def library(name):
    return lambda box: box.compile(f"hostile/{name}", flags=["-shared", "-fPIC"])


def linked(name, flag):
    return lambda box: [box.compile("hostile/allocator.c", f"allocator-{name}", ["-Wl,--no-as-needed", flag])]


def sanitized_children(box):
    made = [box.compile("hostile/sanitized.c", f"sanitized-{kind}", [f"-fsanitize={kind}"]) for kind in ("address", "thread", "leak", "undefined")]
    return ["/bin/sh", "-c", "; ".join(f"{program}; echo $?" for program in made)]


def set_user_id(box):
    """a copy of the target that belongs to nobody and runs as nobody"""
    target = box.compile("hostile/suid_target.c")
    copy = os.path.join(box.path, "suid_target")
    with open(target, "rb") as source, open(copy, "wb") as to:
        to.write(source.read())
    if os.getuid() == 0:
        os.chown(copy, 65534, 65534)
    os.chmod(copy, 0o6755)
    return copy


# ---- what must be true of the summary ---------------------------------------------------------------

def processes(least):
    def look(run):
        count = len(run.summary["processes"])
        check(f"{count} processes in the summary, at least {least} expected", count >= least)
    return look


def not_followed(run):
    same("MLPROF in the cleared environment", run.stdout.splitlines()[1], "0")
    check("the summary says nothing of what was not followed", "follow" in run.text)


def allocated(least):
    def look(run):
        allocs = run.summary["totals"]["allocs"]
        check(f"{allocs} allocations recorded, at least {least} expected", allocs >= least)
    return look


def exactly(allocs):
    """what churn() did: three allocations a round, one of them by realloc"""
    def look(run):
        same("allocations", run.summary["totals"]["allocs"], allocs)
    return look


def all_or_counted(least):
    """where the program leaves us no way to send, what is missing must at least be counted"""
    def look(run):
        allocs, lost = run.summary["totals"]["allocs"], run.summary["losses"]["records"]
        check(f"{allocs} allocations recorded, {lost} records lost, of at least {least}", allocs + lost >= least)
    return look


def anything(run):
    pass


# name, what it does, how to start it, what the summary must show, losses allowed
ROWS = [
    ("fork_only", "fork without exec; children that die in five ways", program("fork_only.c"), processes(7), False),
    ("fork_threads", "fork from 8 threads that allocate", program("fork_threads.c"), processes(161), False),
    ("vfork_exec", "vfork and exec, also one that fails", program("vfork_exec.c"), processes(3), False),
    ("posix_spawn", "posix_spawn, also with an environment of its own", program("spawn.c"), processes(3), False),
    ("daemon", "double-fork daemon that closes everything", program("daemon.c"), processes(3), False),
    ("sh pipeline", "sh with pipelines, jobs, traps", shell("pipeline.sh"), processes(6), False),
    ("py subprocess", "Python subprocess with close_fds", python("py_subprocess.py"), processes(5), False),
    ("py fork", "Python multiprocessing by fork", python("py_multi.py", "fork"), processes(5), False),
    ("py spawn", "Python multiprocessing by spawn", python("py_multi.py", "spawn"), processes(5), False),
    ("py forkserver", "Python multiprocessing by forkserver", python("py_multi.py", "forkserver"), processes(5), False),
    ("env -i", "exec with a cleared environment", shell("cleared_env.sh"), not_followed, False),
    ("close all", "closes every descriptor, files take our number", program("close_all.c"), allocated(600000), False),
    ("dup2 over", "dup2 over every descriptor it finds", program("dup_over.c"), allocated(600000), False),
    ("chroot", "chdir and chroot before the end", program("chroot_exit.c"), allocated(615000), False),
    ("chdir", "its directory is removed", program("chdir_exit.c"), allocated(150000), False),
    ("signals allocate", "SIGPROF and SIGALRM storms, handlers that allocate", program("signal_alloc.c"), allocated(200000), False),
    ("siglongjmp", "a handler that leaves by siglongjmp; dies of SIGTERM", program("signal_exit.c"), allocated(1500), False),
    ("alarm in hook", "SIGALRM every 60 us, handler spoils errno", program("alarm_in_hook.c"), allocated(1500000), False),
    ("pthread_cancel", "threads cancelled while they allocate", program("cancel.c"), allocated(1000), False),
    ("longjmp", "longjmp over frames that allocate", program("longjmp.c"), allocated(60000), False),
    ("exceptions", "C++ exceptions in 4 threads, then terminate", program("exceptions.cc"), allocated(300000), False),
    ("dlopen loop", "500 times dlopen, allocate in constructors, dlclose", program("dlopen_loop.c", library("plugin.c")), allocated(2000), False),
    ("thread storm", "5000 threads, destructors that allocate", program("thread_storm.c"), allocated(5000 * 62), False),
    ("small stacks", "threads of 16 KiB, least sigaltstack", program("small_stack.c"), allocated(75000), False),
    ("stack asked", "threads whose first act is pthread_getattr_np", program("stack_asked.c"), allocated(8), False),
    ("RLIMIT_NOFILE", "ten descriptors", program("few_files.c"), all_or_counted(300000), True),
    ("RLIMIT_AS", "200 MiB of address space", program("little_memory.c"), all_or_counted(6000), True),
    ("seccomp", "no open, socket, pipe or memfd any more; 70 threads", program("seccomp.c"), all_or_counted(6000 + 70 * 60000), True),
    ("jailed _exit", "leaves by it where nothing else is allowed", program("jailed_exit.c"), processes(2), False),
    ("odd sizes", "zero, huge, failing, misaligned: errno", program("edges.c"), allocated(10), False),
    ("exit handlers", "malloc in atexit and in the last destructor", program("late.c"), allocated(1000), False),
    ("quick_exit", "malloc in at_quick_exit", program("late.c", "quick"), allocated(800), False),
    ("static init", "static and thread_local constructors", program("static_init.cc"), allocated(1000), False),
    ("own LD_PRELOAD", "sets LD_PRELOAD itself", program("sets_preload.c", library("preloaded.c")), processes(3), False),
    ("RTLD_NEXT", "a malloc of its own over dlsym(RTLD_NEXT)", program("next_malloc.c"), anything, False),
    ("jemalloc", "linked with jemalloc", linked("jemalloc", "-ljemalloc"), allocated(39000), False),
    ("tcmalloc", "linked with tcmalloc", linked("tcmalloc", "-ltcmalloc_minimal"), allocated(39000), False),
    ("mimalloc", "linked with mimalloc", linked("mimalloc", "-lmimalloc"), allocated(39000), False),
    ("big environment", "an environment of 1 MiB", python("big_env.py"), processes(2), False),
    ("setuid child", "a set-user-id program in the tree", program("suid_child.c", set_user_id), anything, False),
    ("sanitized child", "children with Address-, Thread-, Leak- and UBSan", sanitized_children, processes(5), False),
    ("raw clone", "processes made behind libc's back", program("raw_clone.c"), allocated(3300), False),
    ("SIGSEGV", "dies of it", program("exits.c", "segv"), exactly(3000), False),
    ("SIGKILL", "dies of it", program("exits.c", "kill"), exactly(3000), False),
    ("abort", "dies of it", program("exits.c", "abort"), exactly(3000), False),
    ("_exit", "leaves by it", program("exits.c", "_exit"), exactly(3000), False),
    ("thread exits", "main thread gone, another calls exit", program("exits.c", "thread"), allocated(3300), False),
    ("orphan", "a child that outlives its parent", program("exits.c", "orphan"), allocated(3300), False),
]


def compare(native, other):
    same("stdout", other.stdout, native.stdout)
    same("stderr", other.stderr, native.stderr)
    same("exit status", other.status, native.status)


def one_way(box, native, start, look, may_lose, cells):
    try:
        run = start()
        compare(native, run)
        box.wait_for(run.trace.replace(".perfetto-trace", ".summary.json"), timeout=20)
        look(run)
        lost = run.summary["losses"]["records"]
        check(f"{lost} records lost", may_lose or lost == 0)
        box.check_traces()
        cells.append("same")
        return None
    except Failure as failure:
        cells.append("DIFFERS")
        return str(failure)


def register_row(name, what, command, look, may_lose):
    @case("hostile: " + name)
    def row(box):
        words = command(box)
        native = box.native(words)
        cells = [name, what, f"exit {native.status}" if native.status < 128 else f"signal {native.status - 128}"]
        TABLE.append(cells)
        faults = [one_way(box, native, start, look, may_lose, cells)
                  for start in (lambda: box.run(words), lambda: box.bare(words))]
        faults = [f"{way}: {fault}" for way, fault in zip(("mlprof run", "LD_PRELOAD"), faults) if fault]
        check("\n     ".join(faults), not faults)


def print_table():
    if not TABLE:
        return
    print("\nHostile programs: the same with and without mlprof")
    print(f"{'program':18} {'what it does':56} {'ends by':10} {'mlprof run':11} LD_PRELOAD")
    order = {row[0]: place for place, row in enumerate(ROWS)}
    for cells in sorted(TABLE, key=lambda cells: order.get(cells[0], 999)):
        name, what, end, run, bare = (cells + ["-", "-"])[:5]
        print(f"{name:18} {what:56} {end:10} {run:11} {bare}")
    print()


def register(tools):
    for row in ROWS:
        register_row(*row)
