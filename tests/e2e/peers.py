"""peers.py - against heaptrack: same program, same allocations.

heaptrack writes a raw stream of its own ("+ SIZE TRACE ADDRESS", "- ADDRESS"). Count, bytes and what is left
are added up from it here and compared with ours. Where the two see different things it is for one of
these reasons, each taken out of the comparison or put into it by name:

  pool     heaptrack's library brings libstdc++ into the program, whose start-up takes one block of 72704 bytes.
           We bring nothing. (Where the program itself loads libstdc++, both see its pool.)
  freeres  heaptrack calls __libc_freeres at the end, which frees blocks that the program never does. A small
           library in front makes that call do nothing.
  zero     realloc(p, 0) frees p; heaptrack keeps it as live.
  tree     heaptrack follows no child; we run the same single process.
"""
import os
import subprocess

from harness import PYTHON, Skip, case, check, same

POOL = 72704

NO_FREERES = """
void __libc_freeres(void) {}
void _ZN9__gnu_cxx9__freeresEv(void) {}
"""


class Heaptrack:
    """what heaptrack's raw stream adds up to"""

    def __init__(self, lines):
        self.live, self.allocs, self.frees, self.bytes, self.pools = {}, 0, 0, 0, 0
        for line in lines:
            word = line.split()
            if word and word[0] == "+":
                self.alloc(int(word[1], 16), word[3])
            elif word and word[0] == "-" and self.live.pop(word[1], None) is not None:
                self.frees += 1

    def alloc(self, size, address):
        self.allocs += 1
        self.bytes += size
        self.pools += size == POOL
        self.live[address] = size

    @property
    def left(self):
        return sum(self.live.values())


def heaptrack(box, words, env):
    stub = box.file("no_freeres.so")
    source = box.file("no_freeres.c", NO_FREERES)
    same("stub", box.native(["gcc", "-shared", "-fPIC", "-o", stub, source]).status, 0)
    done = box.native(["setarch", "-R", "heaptrack", "-r", "-o", box.file("peer"), *words], {**env, "LD_PRELOAD": stub}, timeout=120)
    same(f"heaptrack: {done.stderr[-500:]}", done.status, 0)
    raw = [name for name in os.listdir(box.path) if name.startswith("peer") and "raw" in name][0]
    tool = "zstd" if raw.endswith("zst") else "gzip"
    stream = subprocess.run([tool, "-dc", box.file(raw)], capture_output=True, text=True, check=True)
    return Heaptrack(stream.stdout.splitlines())


def compare(name, command, own_pools):
    """own_pools: blocks of the pool's size that the program makes by itself"""
    @case(f"peers: heaptrack on {name}")
    def against(box):
        words, env = command(box)
        peer = heaptrack(box, words, env)
        run = box.run(["setarch", "-R", *words], env=env)
        same("status", run.status, 0)
        ours = run.summary["processes"][-1]
        pool = [p for p in ours["pools"] if p["name"] == "malloc"][0]
        extra = peer.pools - own_pools
        box.note(f"allocations {pool['allocs']}, heaptrack {peer.allocs} of which {extra} is its own pool; "
                 f"left at exit {pool['live_at_exit_bytes']}, heaptrack {peer.left}")
        check(f"heaptrack's own pools: {extra}", extra in (0, 1))
        same("allocations", pool["allocs"], peer.allocs - extra)
        same("bytes left at exit", pool["live_at_exit_bytes"], peer.left - extra * POOL)


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
    return [compiler, "-quiet", "-O1", box.file("x.ii"), "-o", box.file("x.s")], {}


compare("python3 -c 'import json, asyncio'", python, 0)
compare("sqlite3", sqlite, 0)
compare("cc1plus on a C++ file", cxx, 1)


def register(tools):
    pass
