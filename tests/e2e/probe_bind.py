"""probe_bind.py - which calls are led to a probe, and which values are read there."""
import collections
import re

import hostile
from harness import PYTHON, case, check, same
from probe_table import CAREFUL, ENTRY, PLACE, Fetch, Row, run, table

VERSIONS = "V1 { global: p_get; local: *; };\nV2 { global: p_get; } V1;\n"


def plugins(box, glob):
    """[program, two plugins, one that registers itself]; glob: the program defines p_which too"""
    one = box.compile("workloads/probe_plugin.c", "probe_plugin_one.so", ["-DNUMBER=1"])
    two = box.compile("workloads/probe_plugin.c", "probe_plugin_two.so", ["-DNUMBER=2", "-Wl,-z,now"])
    own = box.compile("workloads/probe_plugin.c", "probe_plugin_own.so", ["-DNUMBER=3", "-DREGISTERS"])
    script = box.file("versions.map", VERSIONS)
    versions = box.compile("workloads/probe_versions.c", "libprobe_versions.so", [f"-Wl,--version-script={script}"])
    host = box.compile("workloads/probe_host.c", "probe_host_global" if glob else "probe_host",
                       ["-rdynamic", "-Wl,-z,lazy", versions, "-Wl,-rpath,$ORIGIN", *(["-DGLOBAL"] if glob else [])])
    return [host, one, two, own]


for glob in (False, True):
    @case(f"probes: plugins, {'the same name in the program too' if glob else 'each with its own'}")
    def local(box, glob=glob):
        """each caller keeps its own target: RTLD_LOCAL, RTLD_DEEPBIND, lazy or not; unloaded and loaded again; versions"""
        words = plugins(box, glob)
        native = box.native(words)
        same("status without", native.status, 0)
        done, seen = run(box, [Row("p_*")], words)
        same("output and status", (done.stdout, done.status), (native.stdout, native.status))
        counts = collections.Counter(call.symbol for call in seen.calls)
        # From the program's own words: p_ask is called twice a round, and each time calls p_which. The constructor gave away
        # p_ask's address before anybody could look at its module. And who asks dlsym for a function of its own gets that.
        same("calls", counts, {"p_which": 4 * 2 + 8 + 5 + 5 + 1 + (1 if glob else 2), "p_ask": 8 + 5, "p_ask_data": 8, "p_get": 4})
        check("data was taken for a function", not any(symbol == "p_data" for _, symbol, _ in seen.sites.values()))
        box.note(native.stdout.splitlines()[2])


for place in ("-pie", "-no-pie"):
    @case(f"probes: a plugin that is bound at once calls functions of an executable, {place}")
    def of_executable(box, place=place):
        plugin = box.compile("workloads/probe_plugin.c", "probe_plugin_host.so", ["-DNUMBER=4", "-DASKS_HOST", "-Wl,-z,now"])
        words = [box.compile("workloads/probe_executable.c", f"probe_executable{place}", [place, "-rdynamic"]), plugin]
        native = box.native(words)
        done, seen = run(box, [Row("host_*")], words)
        same("output and status", (done.stdout, done.status), (native.stdout, 0))
        same("calls", collections.Counter(call.symbol for call in seen.calls), {"host_number": 5})


@case("probes: a row for one library only, and the first row that fits")
def libraries(box):
    words = plugins(box, False)
    _, seen = run(box, [Row("p_which", library="probe_plugin_t*"), Row("p_as*"), Row("p_ask")], words)
    native = box.native(words)
    # two's p_which is called where the output says so
    of_two = sum(len(re.findall(r"\b2\b|\b20\b", line)) for line in native.stdout.splitlines() if line.startswith(("which", "again")))
    same("calls of two's", len(seen.of("p_which")), of_two)
    same("rows", {row for row, _, _ in seen.sites.values()}, {0, 1})


@case("probes: a fork while another thread reads ld.so's list leaves the child able to load and to look")
def fork_in_list(box):
    plugin = box.compile("workloads/probe_plugin.c", "probe_plugin_one.so", ["-DNUMBER=1"])
    words = [box.compile("workloads/bind_list.c"), plugin]
    native = box.native(words)
    same("without", native.stdout, "child: status 0, signal 0\n")
    done, _ = run(box, [Row("p_*")], words)
    same("output and status", (done.stdout, done.status), (native.stdout, native.status))


def values_program(box):
    library = box.compile("workloads/probe_values.c", "libprobe_values.so", ["-DLIBRARY", "-shared", "-fPIC"])
    return box.compile("workloads/probe_values.c", "probe_values", [library, "-Wl,-rpath,$ORIGIN"])


S16, S32, NE, F32, F64, NAME, TEXT, NEXT = 2, 4, 8, 40, 48, 56, 64, 80
ROWS = [
    Row("v_numbers", Fetch("arg", 1, "s64"), Fetch("arg", 2, "s32"), Fetch("arg", 3, "s8", [0]), Fetch("arg", 3, "s16", [S16]),
        Fetch("arg", 3, "s32", [S32]), Fetch("arg", 3, "s64", [NE], count=4), Fetch("arg", 3, "f32", [F32]), Fetch("arg", 3, "f64", [F64]),
        Fetch("arg", 3, "s64", [NEXT, NE + 8]), Fetch("farg", 1, "f64"), Fetch("farg", 2, "f32"), Fetch("arg", 7, "u8"), Fetch("retval", 1, "s64")),
    Row("v_text", Fetch("arg", 1, "string"), Fetch("arg", 2, "strv")),
    Row("v_results", Fetch("arg", 1, "s64", [NE + 8]), Fetch("arg", 1, "s64", [NE + 8], exit=True), Fetch("fretval", 1, "f64"),
        Fetch("arg", 1, "string", [TEXT]), Fetch("arg", 1, "string", [NAME, 0])),
    Row("v_entry", Fetch("arg", 1), flags=ENTRY),
    Row("v_slow", Fetch("arg", 1, "u32"), min_ns=1000000),
    Row("v_stack", Fetch("stack", 1), Fetch("arg", 8), stack=2),
    Row("v_many", Fetch("arg", 1, "s32"), Fetch("arg", 2, "s32", [0], count=8, counted=True)),
]


def check_values(seen):
    one, two, *more = [(call.values, call.bad) for call in seen.of("v_numbers")]
    same("numbers", one, ([-1, -2, -5, -600, -70000, (10, 20, -30, 40), 1.5, -2.25, 60, 3.5, 4.5, 200, 222], 0))
    same("numbers, no pointer", two, ([1 << 40, 7, 0, 0, 0, (0, 0, 0, 0), 0, 0, 0, -0.5, 0.25, 1, (1 << 40) + 12], 0b000111111100))
    texts = [call.values for call in seen.of("v_text")]
    same("texts", texts[:8], [["plain", "viewed"], ["", ""], ["x" * 240, None], ["last one", "viewed"], ["y" * 240, "viewed"], ["", ""],
                              [None, "last one"], ["", ""]])
    same("results", [call.values for call in seen.of("v_results")], [[20, "inline", "a tensor", 4242, 2.5]])
    same("entries", [call.values for call in seen.of("v_entry")], [[i] for i in range(10)])
    check("entries have a duration", all(call.begin == call.end for call in seen.of("v_entry")))
    same("stack words", [call.values for call in seen.of("v_stack")], [[77, 88]])
    zeros = (0,) * 8
    same("as many as there are, at the end of memory", [(call.values, call.bad) for call in seen.of("v_many")], [
        ([0, zeros], 0), ([1, (7,) + zeros[1:]], 0), ([2, (6, 7) + zeros[2:]], 0), ([9, (-2, -1, 0, 1, 2, 3, 4, 5)], 0),
        ([-1, zeros], 0), ([2, zeros], 2)])
    return more, texts[8:]


@case("probes: values")
def values(box):
    program = values_program(box)
    native = box.native([program])
    done, seen = run(box, ROWS, [program])
    same("output and status", (done.stdout, done.status), (native.stdout, native.status))
    check_values(seen)
    pid = seen.calls[0].pid
    check("short calls were recorded", all(call.values == [2000] for call in seen.of("v_slow")))
    same("calls too short", seen.loss("probe_short", pid), 20 - len(seen.of("v_slow")))
    same("long calls", len(seen.of("v_slow")), 10)
    same("all counted", seen.loss("probe_enters", pid), seen.loss("probe_exits", pid))


@case("probes: values, read with care")
def careful(box):
    """the same values; and wild pointers do no harm"""
    program = values_program(box)
    rows = [Row(row.symbol, *row.fetches, flags=row.flags | CAREFUL, stack=row.stack, min_ns=row.min_ns) for row in ROWS]
    native = box.native([program], {"WILD": "1"})
    done, seen = run(box, rows, [program], env={"WILD": "1"})
    same("output and status", (done.stdout, done.status), (native.stdout, native.status))
    numbers, texts = check_values(seen)
    same("wild texts", texts, [[None, None]])
    same("wild numbers", [bad for _, bad in numbers], [0b000111110000])


@case("probes: functions that cannot be called through are left alone")
def special(box):
    program = box.compile("hostile/vfork_exec.c")
    native = box.native([program])
    done, seen = run(box, [Row("vfork"), Row("setjmp"), Row("*setjmp*"), Row("dlsym"), Row("vf*")], [program])
    same("output and status", (done.stdout, done.status), (native.stdout, native.status))
    same("calls", len(seen.calls), 0)
    check(f"nothing is said of it: {seen.notices}", any("left alone" in line for line in seen.notices))


def many(box, functions, calls):
    """a library of so many functions with long names that call each other, and a program that calls each once"""
    names = [f"_ZN2at4_ops{i}some_operator_with_a_long_name_{i}4callERKNS_6TensorES4_RKN3c106ScalarE" for i in range(functions)]
    lines = [f"long {name}(long);" for name in names]
    lines += [f"long {name}(long n) {{ return n ? n + {names[(i * 7 + 1) % functions]}(0) + {names[(i * 13 + 5) % functions]}(0) : {i}; }}" for i, name in enumerate(names)]
    lines += ["long all(void); long all(void) { long s = 0;", *[f"s += {name}(1);" for name in names[:calls]], "return s; }"]
    source, library = box.file("many.c", "\n".join(lines)), box.file("libmany.so")
    done = box.native(["gcc", "-O1", "-shared", "-fPIC", source, "-o", library], timeout=300)
    same(f"gcc: {done.stderr[-300:]}", done.status, 0)
    main = box.file("main.c", "#include <stdio.h>\nlong all(void); int main(void) { printf(\"%ld\\n\", all()); return 0; }")
    same("gcc", box.native(["gcc", main, "-o", box.file("main"), library, f"-Wl,-rpath,{box.path}"]).status, 0)
    return box.file("main")


@case("probes: 3000 functions are bound in 100 ms", alone=True)
def thousands(box):
    program = many(box, 3000, 3000)
    native = box.native([program])
    took = []
    for _ in range(3):
        done, seen = run(box, [Row("cblas_*"), Row("_ZN2at4_ops*4callE*"), *[Row(f"nobody_{i}") for i in range(500)]], [program])
        same("output", done.stdout, native.stdout)
        same("sites", len(seen.sites), 3000)
        same("calls", len(seen.calls), 9000)
        took.append(seen.bound_ms)
    box.note(f"{min(took):.1f} ms")
    check(f"it took {took} ms", min(took) < 100)


@case("probes: more functions than stubs")
def too_many(box):
    program = many(box, 8300, 8300)
    native = box.native([program])
    done, seen = run(box, [Row("_ZN2at*")], [program])
    same("output", done.stdout, native.stdout)
    same("sites", len(seen.sites), 8192)
    check(f"nothing is said of it: {seen.notices}", any("left out" in line for line in seen.notices))


# Every function that can be seen, of whatever library: hostile programs, and real ones. Only what they do is looked at.
EVERYTHING = [
    *[(name, command) for name, _, command, *_ in hostile.ROWS],
    ("python", lambda box: [PYTHON, "-c", "import json, asyncio, sqlite3, ssl, ctypes, decimal\nprint(json.dumps([1, 2.5]), ctypes.CDLL(None).abs(-5), decimal.Decimal(2).sqrt())"]),
    ("ls", lambda box: ["ls", "-l", "/usr/lib"]),
    ("sort", lambda box: ["sort", "/etc/passwd"]),
    ("gcc", lambda box: ["gcc", "-O2", "-c", "-xc++", "-", "-o", "/dev/null"]),
]

for name, command in EVERYTHING:
    @case(f"probes: on everything, {name}")
    def everything(box, command=command):
        words = command(box)
        native = box.native(words)
        place = box.file("probes")
        with open(place, "wb") as file:
            file.write(table([Row("*")]))
        done = box.run(["/bin/sh", "-c", PLACE, place, *words], timeout=300)
        same("output and status", (done.stdout, done.stderr, done.status), (native.stdout, native.stderr, native.status))


def register(tools):
    pass
