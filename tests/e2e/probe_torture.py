"""probe_torture.py - calls go through probes unharmed, however they are linked and whatever they pass; each one is recorded once.

The truth is the library's own books (tests/workloads/probe_lib.cc) and the output of the same program without mlprof.
"""
import collections
import os
import re
import shutil

from harness import Skip, case, check, same
from probe_table import CALLSTACK, DATA, UNWOUND, Fetch, Row, run

STYLES = {
    "PIE, bound at start": ["-fPIE", "-pie", "-Wl,-z,now,-z,relro"],
    "lazy": ["-fPIE", "-pie", "-Wl,-z,lazy"],
    "without PLT": ["-fno-plt", "-fPIE", "-pie"],
    "non-PIE": ["-fno-pie", "-no-pie", "-Wl,-z,lazy"],
}
ROWS = [Row("t_by_value480", stack=64), Row("t_wide*", flags=CALLSTACK), Row("_ZN*6Probed*El", flags=DATA), Row("_Z9t_complex*"), Row("t_*")]


def build(box, style):
    """the library in the same style as the program; both beside each other"""
    word = re.sub(r"\W+", "_", style)
    own = [flag for flag in STYLES[style] if flag.startswith("-Wl") or flag == "-fno-plt"]
    library = box.compile("workloads/probe_lib.cc", f"libprobe_{word}.so", own)
    return box.compile("workloads/probe_torture.cc", f"probe_torture_{word}",
                       [*STYLES[style], "-rdynamic", library, "-Wl,-rpath,$ORIGIN"])


def read_books(path):
    """symbol -> (calls, never returned, left by an exception)"""
    books = collections.defaultdict(lambda: [0, 0, 0])
    with open(path) as file:
        for line in file:
            symbol, *counts = line.split()
            books[symbol] = [a + int(b) for a, b in zip(books[symbol], counts)]
    return books


def check_books(seen, books, pid):
    got = {symbol: [0, 0] for symbol in books}
    for call in seen.calls:
        if call.pid == pid:
            got.setdefault(call.symbol, [0, 0])
            got[call.symbol][0] += 1
            got[call.symbol][1] += call.left & UNWOUND
    want = {symbol: [calls - never, unwound] for symbol, (calls, never, unwound) in books.items()}
    same("records, and those left by an exception", {symbol: got[symbol] for symbol in got if got[symbol] != want.get(symbol)},
         {symbol: want[symbol] for symbol in want if got[symbol] != want[symbol]})
    never = sum(book[1] for book in books.values())
    same("calls that never returned", seen.loss("probe_enters", pid) - seen.loss("probe_exits", pid), never)
    check("times run backwards", all(call.begin <= call.end for call in seen.calls))


def main_pid(seen):
    """of the program that wrote most"""
    return collections.Counter(call.pid for call in seen.calls).most_common(1)[0][0]


for style in STYLES:
    @case(f"probes: torture, {style}")
    def torture(box, style=style):
        program = build(box, style)
        native = box.native([program])
        same("status without", native.status, 3)
        books = box.file("books")
        done, seen = run(box, ROWS, [program, books])
        same("output and status", (done.stdout, done.stderr, done.status), (native.stdout, native.stderr, native.status))
        same("records lost", seen.loss("records", main_pid(seen)), 0)
        check_books(seen, read_books(books), main_pid(seen))
        children = {call.pid for call in seen.calls} - {main_pid(seen)}
        same("children that made probed calls of their own", len(children), 1)
        same("and those", [call.symbol for call in seen.calls if call.pid in children], ["t_ints"])


@case("probes: torture with stacks, and its summary")
def with_stacks(box):
    """each call has a stack that libunwind agrees with, and the summary comes to be"""
    program = build(box, "PIE, bound at start")
    native = box.native([program])
    books = box.file("books")
    # libunwind, which is only there to check, uses vector registers; and it says of an interrupted frame where it was, not
    # where it goes on
    bare = ("t_eleven", "_Z9t_complexCdCf", "t_wide", "t_wide_stack", "t_widest", "t_in_handler", "t_ints")
    rows = [Row("t_by_value480", stack=64, flags=CALLSTACK), Row("_ZN*6Probed*El", flags=DATA | CALLSTACK), *map(Row, bare), Row("t_*", flags=CALLSTACK)]
    done, seen = run(box, rows, [program, books], "--check-stacks", quiet=False)
    same("output and status", (done.stdout, done.status), (native.stdout, native.status))
    check_books(seen, read_books(books), main_pid(seen))
    check("calls without a stack", all(call.node for call in seen.calls if call.symbol not in bare))
    check("stacks that were not asked for", not any(call.node for call in seen.calls if call.symbol in bare))
    wrong = [int(n) for n in re.findall(r"wrong: (\d+)", done.stderr)]
    check("nothing was checked", wrong)
    same("stacks that libunwind sees otherwise", sum(wrong), 0)


@case("probes: gdb walks through the trampoline")
def debugger(box):
    if not shutil.which("gdb"):
        raise Skip("no gdb here")
    program = build(box, "PIE, bound at start")
    done, _ = run(box, ROWS, ["gdb", "-q", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set breakpoint pending on", "-ex", "break t_inner",
                              "-ex", "run", "-ex", "bt", "-ex", "finish", "-ex", "kill", program], timeout=180)
    names = re.findall(r"^#\d+ .*?(\w+) \(", done.stdout, re.M)
    check(f"gdb's stack: {done.stdout[-2000:]}", names[:1] == ["t_inner"] and "t_outer" in names and names[-1] == "main" and names.count("probe_common") == 2)
    check(f"finish: {done.stdout[-2000:]}", re.search(r"Value returned is .* = 12", done.stdout) or "Run till exit" in done.stdout)


def register(tools):
    pass
