"""probe_use.py - rows of one's own, as users meet them: which of them counts, what they are told, and numbers that the program knows, too."""
import os
import re

from harness import case, check, same


def program(box):
    library = box.compile("workloads/probe_use.c", "libprobe_use.so", ["-DLIBRARY", "-shared", "-fPIC", "-fno-semantic-interposition"])
    return [box.compile("workloads/probe_use.c", "probe_use", [library, "-Wl,-rpath,$ORIGIN"])]


def run(box, rows, command, *before):
    path = box.file("my.probes", rows)
    native = box.native(command)
    done = box.run(command, f"--probes={','.join(['none', *before, path])}")
    same("output and status", (done.stdout, done.status), (native.stdout, native.status))
    return done


def calls(done):
    return {probe["name"]: probe["calls"] for probe in done.summary["probes"]}


@case("probes: of several rows the one that names the function, then the first; a row for many of one's own goes before a preset's")
def which_row(box):
    done = run(box, 'u_* span name="many {wild}"\nu_two span name="two"\nu_two span name="no"\n', program(box))
    found = calls(done)
    same("by name", (found["two"], found["many one"]), (2, 1))
    check(f"names: {found}", "many two" not in found and "no" not in found)
    first = box.file("first.probes", 'u_t* span name="first file {wild}"\n')
    found = calls(run(box, 'u_two span name="two"\n', program(box), first))
    same("the first file goes before", found["first file wo"], 2)
    blas = box.compile("workloads/probe_use.c", "libprobe_blas.so", ["-DLIBRARY", "-shared", "-fPIC", "-Du_two=cblas_sgemm"])
    words = [box.compile("workloads/probe_use.c", "probe_blas", ["-Du_two=cblas_sgemm", blas, "-Wl,-rpath,$ORIGIN"])]
    same("mine", calls(run(box, 'cblas_* span name="mine"\n', words, "+blas"))["mine"], 2)


@case("probes: rows that find no function are told of, each once")
def unfound(box):
    rows = "".join(f"u_missing{i}|u_gone{i} span\n" for i in range(7))
    done = run(box, "u_one|u_nothing span\nu_wrong* span\nlibx* module\n" + rows, program(box), "+blas")
    told = [re.search(r"my\.probes:(\d+): no call to (\S+) was found", notice) for notice in done.summary["notices"]]
    same("rows", [(int(one[1]), one[2]) for one in told if one], [(i + 4, f"u_missing{i}") for i in range(5)])
    check(f"the others: {done.summary['notices']}", any("3 more rows" in notice for notice in done.summary["notices"]))
    check(f"text: {done.text}", re.search(r"^Notes +\S*my.probes:4: no call to u_missing0 ", done.text, re.M))
    same("none, if all find theirs", run(box, "u_one span\nu_nothing|u_two span\n", program(box)).summary["notices"], [])


@case("probe roles: memory that is moved, grows where it is, cannot grow, and ends by a size of 0")
def moved(box):
    done = run(box, "u_give alloc heap=u size=$arg1 ptr=$retval\nu_move alloc heap=u was=$arg1 size=$arg2 ptr=$retval\n"
               "u_take free heap=u ptr=$arg1 entry\n", program(box))
    live, peak = map(int, re.search(r"live (\d+) peak (\d+)", done.stdout).groups())
    pool, = [pool for pool in done.summary["pools"] if pool["name"] == "u"]
    same("at exit, peak", (pool["live_at_exit_bytes"], pool["peak_bytes"]), (live, peak))
    same("blocks at exit", pool["live_at_exit_blocks"], 1)
    same("nothing is missing", (done.summary["losses"]["probe_frees"], done.summary["losses"]["probe_values"]), (0, 0))


@case("probes: numbers without a sign; a counter's value that is none is counted as missing")
def numbers(box):
    done = run(box, 'u_number span n=$arg1 half=n>>1 more=n>0 signed=$arg1:s64 r=$retval name="{n}"\nu_level counter value=$farg1 name=level\n', program(box))
    wanted = [2 ** 64 - 1 >> shift for shift in range(0, 64, 21)]
    same("names", [row["name"] for row in done.sql("select name from slice where category = 'probe' or name glob '[0-9]*' order by ts")], [str(n) for n in wanted])
    for key, value in (("half", lambda n: n >> 1), ("more", lambda n: 1), ("signed", lambda n: n - 2 ** 64 if n >> 63 else n), ("r", lambda n: 2 ** 64 - 1 - n)):
        got = done.sql(f"select display_value as v from slice s join args a using (arg_set_id) where s.name glob '[0-9]*' and a.key = 'debug.{key}' order by ts")
        same(key, [row["v"] for row in got], [str(value(n)) for n in wanted])
    same("points", [row["value"] for row in done.sql("select value from counter c join track t on t.id = c.track_id where t.name = 'level' order by ts")], [-2.5, 1e300])
    same("missing", done.summary["losses"]["probe_values"], 2)


@case("probes: plugins that threads load, call and unload at once are bound before they are called")
def reloaded(box):
    plugins = [box.compile("workloads/probe_reload.c", f"probe_reload{i}.so", [f"-DPLUGIN={i}", "-shared", "-fPIC", *flags])
               for i, flags in enumerate(([], ["-fno-plt"], ["-Wl,-z,now"]), 1)]
    words = [box.compile("workloads/probe_reload.c", "probe_reload"), *plugins]
    rows = "".join(f'r_inner span lib={os.path.basename(path)} name="inner{i}"\n' for i, path in enumerate(plugins)) + 'r_* span name="{symbol}"\n'
    for _ in range(3):
        done = run(box, rows, words)
        each = list(map(int, done.stdout.split()))
        same("calls", calls(done), {"r_outer": sum(each), **{f"inner{i}": count for i, count in enumerate(each)}})


@case("probes: --check of what is no library, or for another machine")
def no_library(box):
    box.compile("workloads/probe_use.c", "libprobe_use.so", ["-DLIBRARY", "-shared", "-fPIC", "-fno-semantic-interposition"])
    image = open(os.path.join(box.tools.programs, "libprobe_use.so"), "rb").read()
    files = {"arm.so": image[:18] + b"\xb7\0" + image[20:], "32.so": image[:4] + b"\1" + image[5:], "cut.so": image[:1000], "head.so": image[:30], "empty.so": b"", "text.so": b"u_one\n"}
    wanted = {"arm.so": "for another machine", "32.so": "for another machine", "cut.so": "no dynamic symbols"}
    for name, content in files.items():
        with open(box.file(name), "wb") as file:
            file.write(content)
    os.mkfifo(box.file("pipe.so"))
    for name in [*files, "pipe.so", "missing.so", "."]:
        done = box.native([box.tools.mlprof, "probes", "--check", box.file(name)], timeout=20)
        words = wanted.get(name, "No such file" if name == "missing.so" else "not an ELF file")
        check(f"{name}: {done.stderr}", done.status == 2 and words in done.stderr and name in done.stderr and not done.stdout)


def register(tools):
    pass
