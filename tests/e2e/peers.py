"""peers.py - against heaptrack: same program, same allocations.

heaptrack writes a raw stream of its own ("+ SIZE TRACE ADDRESS", "- ADDRESS"). Every size in it is compared
with every size in ours: the two must be the same, both in what was allocated and in what was left at the
end. Where the two see different things it is for one of these reasons, found by looking at the stacks:

  pool      heaptrack's library brings libstdc++ into the program, whose start-up takes a block of 72704 bytes,
            never freed. We bring nothing. (Where the program itself has libstdc++, both see its pool.)
  handlers  the libraries that heaptrack brings register exit handlers; libc keeps these in blocks of 32 (1040
            bytes), and a program that is near the edge gets one block more. They are freed at exit.
  freeres   heaptrack calls __libc_freeres and libstdc++'s own at the end, which frees blocks that the program never
            frees. A small library in front makes these calls do nothing. cc1plus exports a libstdc++ of its own, which
            is found before that and frees its own pool (72704 bytes), so that heaptrack's extra one does not show at the end.
  children  heaptrack follows none; single processes are compared.
  regions   cc1plus keeps a block of 32768 bytes, never freed, for each 16 MiB of addresses in which its garbage collector has
            pages, and each tool moves these a little. (With random addresses it has 5 to 7 of them under the same tool.)
"""
import collections
import os
import re
import subprocess

from harness import PYTHON, case, check, same

POOL, HANDLERS, REGION = 72704, 1040, 32768

NO_FREERES = """
void __libc_freeres(void) {}
void _ZN9__gnu_cxx9__freeresEv(void) {}
"""


class Books:
    """how often each size was allocated and how often it was left"""

    def __init__(self):
        self.live, self.sizes = {}, collections.Counter()

    def alloc(self, address, size):
        self.sizes[size] += 1
        self.live[address] = size

    def free(self, address):
        self.live.pop(address, None)

    @property
    def left(self):
        return collections.Counter(self.live.values())


def of_heaptrack(lines):
    books = Books()
    for line in lines:
        word = line.split()
        if word and word[0] == "+":
            books.alloc(word[3], int(word[1], 16))
        elif word and word[0] == "-":
            books.free(word[1])
    return books


def of_mlprof(dump):
    """the last process image in a dump; a chunk that was looked at while it was being filled comes more than once"""
    chunks = {}
    for line in dump.splitlines():
        if line.startswith("chunk "):
            head = dict(word.split("=") for word in line.split()[2:])
            key = (int(head["born"]), int(head["slot"]), int(head["seq"]))
            chunks[key] = []
        else:
            chunks[key].append(line.split(None, 2))
    born = max(key[0] for key in chunks)
    records = [record for key in sorted(chunks) if key[0] == born for record in chunks[key]]
    books = Books()
    for _, kind, rest in sorted((r for r in records if r[1] in ("alloc", "enter", "block", "free", "leave")), key=lambda r: int(r[0])):
        address = re.search(r"addr=(\w+)", rest).group(1)
        if kind in ("free", "leave"):
            books.free(address)
        else:
            books.alloc(address, int(re.search(r"size=(\d+)", rest).group(1)))
    return books


def heaptrack(box, words, env):
    stub = box.file("no_freeres.so")
    source = box.file("no_freeres.c", NO_FREERES)
    same("stub", box.native(["gcc", "-shared", "-fPIC", "-o", stub, source]).status, 0)
    done = box.native(["setarch", "-R", "heaptrack", "-r", "-o", box.file("peer"), *words], {**env, "LD_PRELOAD": stub}, 120, clean=True)
    same(f"heaptrack: {done.stderr[-500:]}", done.status, 0)
    raw = [name for name in os.listdir(box.path) if name.startswith("peer")][0]
    stream = subprocess.run(["zstd" if raw.endswith("zst") else "gzip", "-dc", box.file(raw)], capture_output=True, text=True, errors="replace", check=True)
    return of_heaptrack(stream.stdout.splitlines())


def mlprof(box, words, env):
    run = box.run(["setarch", "-R", *words], f"--raw={box.file('raw')}", env=env, clean=True)
    same(f"status: {run.stderr[-300:]}", run.status, 0)
    dump = box.native([box.tools.mlprof, "dump", box.file("raw")], timeout=120)
    same("dump", dump.status, 0)
    books = of_mlprof(dump.stdout)
    malloc = [pool for pool in run.summary["processes"][-1]["pools"] if pool["name"] == "malloc"][0]
    same("allocations in the summary", malloc["allocs"], books.sizes.total())
    same("left at exit in the summary", malloc["live_at_exit_bytes"], sum(books.live.values()))
    return books


def even_out_regions(ours, peer):
    """one region more or less is where the pages lie, and it is there to the end"""
    more = ours.sizes[REGION] - peer.sizes[REGION]
    same("regions more in ours: allocated, left", more, ours.left[REGION] - peer.left[REGION])
    check(f"{more} regions more in ours", abs(more) <= 1)
    for i in range(abs(more)):
        (peer if more > 0 else ours).alloc(f"region {i}", REGION)


def compare(name, command, more, more_left, less_left, even_out=lambda ours, peer: None):
    """more: what heaptrack has beyond ours, by size; the others: what is left at the end in one of the two only"""
    @case(f"peers: heaptrack on {name}")
    def against(box):
        words, env = command(box)
        env = {"PATH": os.environ["PATH"], "HOME": box.path, "PWD": box.path, "LANG": "C.UTF-8", **env}
        peer, ours = heaptrack(box, words, env), mlprof(box, words, env)
        box.note(f"allocations: ours {ours.sizes.total()}, heaptrack {peer.sizes.total()}; "
                 f"left: ours {sum(ours.live.values())} bytes, heaptrack {sum(peer.live.values())}")
        even_out(ours, peer)
        same("allocations in heaptrack only", dict(peer.sizes - ours.sizes), more)
        same("allocations in ours only", dict(ours.sizes - peer.sizes), {})
        same("left in heaptrack only", dict(peer.left - ours.left), more_left)
        same("left in ours only", dict(ours.left - peer.left), less_left)


def python(box):
    return [PYTHON, "-I", "-c", "import json, asyncio"], {"PYTHONHASHSEED": "0"}


def sqlite(box):
    script = box.file("q.sql", "create table t(a, b);\nwith recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)\n"
                      "insert into t select i, 'text ' || i from n;\ncreate index k on t(b);\nselect count(*), max(b) from t;\n")
    return ["sqlite3", "-batch", ":memory:", f".read {script}"], {"HOME": box.path}


def cxx(box):
    source = box.file("x.cc", "#include <map>\n#include <string>\nint f() { std::map<int, std::string> m; m[1] = \"a\"; return m.size(); }\n")
    done = box.native(["g++", "-E", source, "-o", box.file("x.ii")])
    same("preprocess", done.status, 0)
    compiler = box.native(["g++", "-print-prog-name=cc1plus"]).stdout.strip()
    return [compiler, "-quiet", "-fsyntax-only", box.file("x.ii")], {}


compare("python3 -c 'import json, asyncio'", python, {POOL: 1}, {POOL: 1}, {})
compare("sqlite3", sqlite, {POOL: 1}, {POOL: 1}, {})
compare("cc1plus on a C++ file", cxx, {POOL: 1, HANDLERS: 1}, {}, {}, even_out_regions)


def register(tools):
    pass
