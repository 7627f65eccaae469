"""probe_files.py - probe files: what is refused, what is listed, what the program's side gets, what --check says of libraries."""
import fnmatch
import glob
import hashlib
import itertools
import json
import os
import re
import struct

from harness import ROOT, TESTS, case, check, same

PRESETS = os.path.join(ROOT, "collector", "probe", "presets")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"

# struct probe_head, probe_row, probe_fetch, probe_slot of include/mlprof/probes.h
HEAD, ROW, FETCH, SLOT = "<6I", "<4I4HQ2I", "<5B3x4i", "<3I"
MAGIC, ANY = 0x4250504d, 0xffffffff


# ---- what is refused ------------------------------------------------------------------------

BAD = [
    ("f spam\n", ":1:3: expected a role (span, dispatch, submit, wait, copy, alloc, free, retain, counter, mark, thread, bind, alias, set, time, table, builtin, getter or module), not 'spam'"),
    ("# fine\n\ng span a=$arg1\nf span flops=2*n n=$arg1:string\n", ":4:16: expected a number, this is a text"),
    ("f alloc size=$arg1\n", ":1:1: expected a key 'ptr=' in a row of role alloc"),
    ("f span \\\n  a=+8($arg1\n", ":2:13: expected ')', not the end of the row"),
]


@case("probes: a bad file is refused by place, and nothing is started")
def bad_files(box):
    for number, (text, said) in enumerate(BAD):
        path = box.file(f"bad{number}.probes", text)
        ran = box.file(f"ran{number}")
        run = box.run(["/usr/bin/touch", ran], f"--probes={path}", quiet=False)
        same("status and words", (run.status, run.stderr), (125, f"mlprof: {path}{said}\n"))
        check("the program ran", not os.path.exists(ran))
        check("a trace was left behind", not os.path.exists(run.trace))
        same("mlprof probes FILE", box.native([box.tools.mlprof, "probes", path]).stderr, run.stderr)
    # What LD_PRELOAD alone loads cannot keep a program from running: it says the same, and runs it unrecorded.
    path = box.file("bad0.probes")
    bare = box.bare(["/bin/echo", "here"], {"MLPROF_PROBES": path}, wait=False)
    same("bare", (bare.status, bare.stdout, bare.stderr), (0, "here\n", f"mlprof: {path}{BAD[0][1]}\n"))


@case("probes: names that are no preset and files that are not there")
def no_presets(box):
    for words, said in (("+blass", "--probes: there is no preset 'blass'; did you mean 'blas'?"),
                        ("-torrch", "--probes: there is no preset 'torrch'; did you mean 'torch'?"),
                        ("nothing-like-it", "--probes: there is no preset 'nothing-like-it'; 'mlprof probes' lists them"),
                        ("./none.probes", "./none.probes: No such file or directory"),
                        ("/", "/: Is a directory")):
        run = box.run(["/bin/true"], f"--probes={words}", quiet=False)
        same(f"--probes={words}", (run.status, run.stderr), (125, f"mlprof: {said}\n"))
    big = box.file("big.probes", "# much\n" * (1 << 20))
    same("a file of 7 MB", box.run(["/bin/true"], f"--probes={big}", quiet=False).stderr, f"mlprof: {big}: expected a probe file, of at most 4 MiB\n")


# ---- what is listed -------------------------------------------------------------------------

def rows_of(text):
    """[(line, symbol, role)] of a probe file, read by other means than mlprof's"""
    found, held, first = [], "", 0
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"#.*", "", line)
        first = first if held else number
        held += line.rstrip("\\")
        if line.endswith("\\"):
            continue
        words, held = held.split(), ""
        for symbol in words[0].split("|") if words else []:
            before, letters, after = re.fullmatch(r"([^[]*)(?:\[(\w+)\])?(.*)", symbol).groups()
            found += [(first, before + letter + after, words[1]) for letter in (letters or " ").replace(" ", "\0")]
    found = [(line, symbol.replace("\0", ""), role) for line, symbol, role in found]
    return sorted(found, key=lambda row: bool(re.search("[*?]", row[1])))        # those that name their function are looked at first


@case("probes: every preset is listed with all its rows, in words and JSON")
def listed(box):
    said = json.loads(box.native([box.tools.mlprof, "probes", "--json"]).stdout)
    files = {os.path.basename(path).removesuffix(".probes"): open(path).read() for path in glob.glob(PRESETS + "/*.probes")}
    same("presets", sorted(files), [preset["name"] for preset in said["presets"]])
    wanted = [(name + ".probes", *row) for name in sorted(files) for row in rows_of(files[name])]
    same("rows", [(row["file"], row["line"], row["symbol"], row["role"]) for row in said["rows"]], wanted)
    same("numbers of the rows", [row["row"] for row in said["rows"]], list(range(len(wanted))))
    text = box.native([box.tools.mlprof, "probes"]).stdout
    for preset in said["presets"]:
        on = "# default: on\n" in files[preset["name"]]
        same(preset["name"] + " is on", preset["default"], on)
        line = rf'^{preset["name"]} +{"yes" if on else "no"} +{preset["rows"]}  {re.escape(preset["purpose"])}$'
        check(f"not listed: {line}\n{text}", re.search(line, text, re.M))
        check(f'{preset["name"]} does not say what it needs', "\n# Needs: " in files[preset["name"]])
    lines = box.native([box.tools.mlprof, "probes", "torch", "litert"]).stdout.splitlines()
    same("lines of two presets", len(lines), sum(len(rows_of(files[name])) for name in ("torch", "litert")))
    box.note(f"{len(files)} presets, {len(wanted)} rows")


@case("probes: the man page's examples are good rows, one for each role")
def man_page(box):
    page = open(os.path.join(ROOT, "collector", "man", "mlprof-probes.5.in")).read()
    blocks = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", page, re.M | re.S)
    path = box.file("man.probes", "\n".join(blocks))
    run = box.native([box.tools.mlprof, "probes", "--json", path])
    same("words", run.stderr, "")
    roles = {row["role"] for row in json.loads(run.stdout)["rows"]}
    every = set(re.search(r"expected a role \((.*) or (\w+)\)", BAD[0][1]).expand(r"\1, \2").split(", "))
    same("roles", roles, every)
    for role in every:
        check(f"no item for {role}", f".It Cm {role}\n" in page)


@case("probes: help and completions know the command and the option")
def help_pages(box):
    tool = box.tools.mlprof
    presets = [preset["name"] for preset in json.loads(box.native([tool, "probes", "--json"]).stdout)["presets"]]
    check("help probes", "--check" in box.native([tool, "help", "probes"]).stdout)
    check("help run", "--probes=LIST" in box.native([tool, "help", "run"]).stdout and "[MLPROF_PROBES]" in box.native([tool, "help", "run"]).stdout)
    for shell in ("bash", "zsh", "fish"):
        script = box.native([tool, "help", f"--completion={shell}"]).stdout
        check(f"{shell} does not know them", "probes" in script and "check" in script)
        for name in presets:
            check(f"{shell} does not offer {name}", f" +{name} -{name}" in script)
    # What bash really offers: the word before is --probes, or, as readline parts words, --probes and =.
    for words, wanted in ((["--probes", "+open"], ["+openmp", "+openvino"]), (["--probes", "=", "-cu"], ["-cuda"]), (["--probes", "=", "none,+fft"], ["none,+fftw"]),
                          (["--probes", "=", "-blas,al"], ["-blas,all"]), (["--probes", "=", "/etc/host.c"], ["/etc/host.conf"])):
        line = " ".join(f"'{word}'" for word in ["mlprof", "run", *words])
        script = f'eval "$({tool} help --completion=bash)"; COMP_WORDS=({line}) COMP_CWORD={len(words) + 1}; _mlprof; printf "%s\\n" "${{COMPREPLY[@]}}"'
        run = box.native(["bash", "--norc", "-c", script])
        same(f"bash after {words}", (run.stdout.split(), run.stderr), (wanted, ""))
    box.file("myprobes", "x span\n")
    for words, said in ((["--check", "--probes=myprobes", "/bin/true"], "there is no preset 'myprobes'; the file of that name is './myprobes'"),
                        (["--check", "--probes=+./myprobes", "/bin/true"], "'./myprobes' is no preset; of a file of your own the name is enough"),
                        (["--check"], "needs the file of a library"), (["--probes=all"], "goes with --check"), (["--check", "/etc/passwd"], "not an ELF file"),
                        (["--check", "/none"], "No such file"), (["blass"], "did you mean 'blas'")):
        run = box.native([tool, "probes", *words])
        check(f"{words}: {run.status} {run.stderr}", run.status == 2 and said in run.stderr)


# ---- what the program's side gets -----------------------------------------------------------

class Table:
    def __init__(self, data):
        self.head = struct.unpack_from(HEAD, data)
        magic, version, rows, fetches, text_bytes, slots = self.head
        same("magic and version", (magic, version), (MAGIC, 2))
        sizes = [struct.calcsize(kind) for kind in (HEAD, ROW, FETCH)]
        at = list(itertools.accumulate([sizes[0], rows * sizes[1], fetches * sizes[2], text_bytes]))
        same("bytes", len(data), at[3] + slots * struct.calcsize(SLOT))
        self.rows = list(struct.iter_unpack(ROW, data[at[0]:at[1]]))
        self.fetches = list(struct.iter_unpack(FETCH, data[at[1]:at[2]]))
        self.texts = data[at[2]:at[3]]
        self.slots = list(struct.iter_unpack(SLOT, data[at[3]:]))

    def text(self, at):
        return None if at == ANY else self.texts[at:self.texts.index(0, at)].decode()

    def symbols(self):
        return [self.text(row[0]) for row in self.rows]


def table_of(box, probes):
    """the file in the session directory, as the recorded program finds it"""
    copy = box.file("copy")
    script = 'cp "$MLPROF_SESSION/probes" "$0" 2>/dev/null; stat -c %a "$MLPROF_SESSION/probes" 2>/dev/null || echo none'
    run = box.run(["/bin/sh", "-c", script, copy], *([f"--probes={probes}"] if probes else []))
    same("status", run.status, 0)
    if run.stdout == "none\n":
        return None
    same("mode of the file", run.stdout, "600\n")
    with open(copy, "rb") as file:
        return Table(file.read())


@case("probes: the compiled table is there before the program starts")
def compiled(box):
    path = box.file("my.probes", "one|two_* alloc heap=x size=$arg2 ptr=+0($arg1):ptr@ret lib=libx.so* trust\n"
                    "three span entry a=$arg1 b=+256($arg2):string c=+16($arg2):s64[4] stack=40 min=1us callstack\n")
    mine = table_of(box, f"none,{path}")
    same("symbols", mine.symbols(), ["one", "three", "two_*"])
    one, three, two = mine.rows
    same("prefix and flags", [(row[1], row[7]) for row in (one, two, three)], [(3, 0), (4, 1), (5, 2 | 4 | 16)])
    same("libraries", [mine.text(row[2]) for row in (one, two, three)], ["libx.so*", "libx.so*", None])
    same("fetches", [(row[4], row[5]) for row in (one, two, three)], [(2, 1), (2, 1), (3, 3)])
    same("stack, least time", (three[6], three[8], one[6]), (40, 1000, 16))
    same("what is fetched", mine.fetches[three[3]:three[3] + 3],
         [(0, 1, 3, 1, 0, 0, 0, 0, 0), (0, 2, 10, 1, 1, 256, 0, 0, 0), (0, 2, 7, 4, 1, 16, 0, 0, 0)])
    usual = table_of(box, None)
    check("presets", "cblas_sgemm" in usual.symbols() and "GOMP_parallel" not in usual.symbols())
    vague = ("Gather", "Igather", "Gatherv", "Igatherv", "Allgatherv", "Iallgatherv", "Scatter", "Iscatter")
    same("a preset's rows are read directly, but for one that looks for dimensions and those whose types MPI may leave open",
         {symbol for symbol, row in zip(usual.symbols(), usual.rows) if row[7] & 16},
         {"Pjrt.BufferFromHostBuffer"} | {prefix + name for prefix in ("MPI_", "PMPI_") for name in vague})
    more = table_of(box, f"+openmp,-blas,{path}")
    check("more and less", more.symbols()[:3] == mine.symbols() and "GOMP_parallel" in more.symbols() and "cblas_sgemm" not in more.symbols())
    base = more.symbols().index("OrtGetApiBase")
    same("a slot leads to its row", [(index, more.symbols()[row]) for table, index, row in more.slots if table == base], [(0, "OrtApiBase.GetApi")])
    same("no rows, no file", table_of(box, "none"), None)
    box.note(f"{len(usual.rows)} rows by default, {len(usual.texts)} bytes of names")


@case("probes: a raw stream keeps the rows")
def in_stream(box):
    path = box.file("my.probes", "# only a comment\nmy_function span name=\"mine {n}\" n=$arg1\n")
    raw = box.file("raw")
    run = box.run(["/bin/true"], f"--probes={path}", f"--raw={raw}")
    same("status", run.status, 0)
    dump = box.native([box.tools.mlprof, "dump", raw]).stdout
    check("the user's rows", f"#file {path}\\x0a\\x0amy_function span name=" in dump)
    check("the presets' rows", "#preset blas\\x0a" in dump)
    again = box.native([box.tools.mlprof, "replay", "-q", "-o", box.file("again.perfetto-trace"), raw])
    same("replay", (again.status, again.stderr), (0, ""))
    with open(run.trace, "rb") as one, open(box.file("again.perfetto-trace"), "rb") as two:
        check("the replayed trace is another", one.read() == two.read())


# ---- --check --------------------------------------------------------------------------------

def states(box, library, probes="all"):
    run = box.native([box.tools.mlprof, "probes", "--check", "--json", f"--probes={probes}", library])
    same(f"words of {library}", (run.status, run.stderr), (0, ""))
    return {(row["preset"], row["symbol"]): row for row in json.loads(run.stdout)[0]["rows"]}


def truth(box, library):
    """(exported, imported, named by JUMP_SLOT or GLOB_DAT) as binutils see it"""
    lines = box.native(["nm", "-D", "--without-symbol-versions", library]).stdout.splitlines()
    names = [line.split()[-2:] for line in lines]
    exported = {name for kind, name in names if kind in "TWi"}
    imported = {name for kind, name in names if kind in "Uw"}
    relocations = box.native(["readelf", "-rW", library]).stdout
    called = {name.split("@")[0] for name in re.findall(r"R_X86_64_(?:JUMP_SLO\w*|GLOB_DAT) +\w+ (\S+)", relocations)}
    return exported - imported, imported, called


def check_against_truth(box, library, presets):
    exported, imported, called = truth(box, library)
    counts = {}
    for (preset, symbol), row in states(box, library, "none," + ",".join("+" + name for name in presets)).items():
        if "*" in symbol or "?" in symbol or "." in symbol:
            continue
        wanted = "seen" if symbol in exported & called else "outside" if symbol in exported else "import" if symbol in imported else row["state"]
        only = re.findall(rf"^{symbol} \w+(?: lib=(\S+))?", open(f"{PRESETS}/{preset}.probes").read(), re.M)
        if only and only[-1] and not fnmatch.fnmatch(os.path.basename(library), only[-1]):       # of several rows, the last is the one here
            wanted = "other"
        same(f"{library}: {symbol}", row["state"], wanted)
        check(f"{library}: {symbol} is {row['state']}", symbol in exported | imported or row["state"] in ("absent", "hidden"))
        counts[row["state"]] = counts.get(row["state"], 0) + 1
    box.note(f"{os.path.basename(library)}: {counts}")
    return counts


STYLES = {
    "plain": ([], "seen"),
    "symbolic": (["-Wl,-Bsymbolic"], "outside"),
    "script": (["-Wl,--version-script=hide.map"], "hidden"),
    "hidden": (["-fvisibility=hidden"], "hidden"),
    "stripped": (["-fvisibility=hidden", "-s"], "absent"),
}


@case("probes: --check in five link styles")
def link_styles(box):
    source = box.file("lib.c", "#include <stdlib.h>\nint work(int n) { return abs(rand()) + n; }\nint outer(int n) { return work(n) + work(n + 1); }\n")
    box.file("hide.map", "{ global: outer; local: *; };\n")
    rows = box.file("w.probes", "work span\nwo* span\nrand span\nnothing_here span\nwork_elsewhere|work span lib=libother.so*\n")
    for style, (flags, wanted) in STYLES.items():
        library = box.file(f"lib{style}.so")
        done = box.native(["gcc", "-shared", "-fPIC", "-O1", "-fno-inline", source, "-o", library, *flags])
        same(f"compile {style}: {done.stderr}", done.status, 0)
        run = box.native([box.tools.mlprof, "probes", "--check", "--json", f"--probes=none,{rows}", library])
        said = [row["state"] for row in json.loads(run.stdout)[0]["rows"]]
        also = "other" if wanted in ("seen", "outside") else wanted
        same(style, said, [wanted, "import", "absent", "absent", also, wanted])
    text = box.native([box.tools.mlprof, "probes", "--check", f"--probes=none,{rows}", box.file("libhidden.so")]).stdout
    check(f"hidden is not said: {text}", re.search(r"^  hidden +w +span +work: hidden: .*cannot be seen$", text, re.M))
    nothing = box.file("n.probes", "nothing_here span\n")
    text = box.native([box.tools.mlprof, "probes", "--check", f"--probes=none,{nothing}", box.file("libplain.so")]).stdout
    check(f"nothing is not said: {text}", "can see nothing in this file" in text)


@case("probes: --check of Debian's OpenBLAS and oneDNN agrees with binutils")
def debian_libraries(box):
    blas = check_against_truth(box, LIBRARIES + "/libopenblas.so.0", ["blas", "openmp"])
    check(f"OpenBLAS: {blas}", blas["seen"] + blas["outside"] > 100)
    dnnl = states(box, LIBRARIES + "/libdnnl.so.2")
    check_against_truth(box, LIBRARIES + "/libdnnl.so.2", ["onednn", "openmp", "blas"])
    exported = [name for name in truth(box, LIBRARIES + "/libdnnl.so.2")[0] if re.fullmatch(r"dnnl_.*_desc_init", name)]
    same("a glob counts", dnnl[("onednn", "dnnl_*_desc_init")]["exported"], len(exported))
    same("execute", dnnl[("onednn", "dnnl_primitive_execute")]["state"], "outside")
    same("its regions", dnnl[("openmp", "GOMP_parallel")]["state"], "import")


def venv(list_of_pins):
    with open(os.path.join(TESTS, list_of_pins), "rb") as file:
        name = "venv-" + hashlib.sha256(file.read()).hexdigest()[:12]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "mlprof-tests", name, "lib", "python*", "site-packages")


@case("probes: --check of wheels: numpy's BLAS, wgpu")
def wheels(box):
    packages = venv("e2e/clients.txt")
    core, = glob.glob(packages + "/numpy/_core/_multiarray_umath.*.so")
    blas, = glob.glob(packages + "/numpy.libs/libscipy_openblas64_-*.so")
    wgpu, = glob.glob(packages + "/wgpu/resources/libwgpu_native-release.so")
    same("numpy calls", states(box, core)[("blas", "scipy_cblas_sgemm64_")]["state"], "import")
    same("its BLAS", states(box, blas)[("blas", "scipy_cblas_sgemm64_")]["state"], "outside")
    check_against_truth(box, core, ["blas"])
    check_against_truth(box, blas, ["blas"])
    counts = check_against_truth(box, wgpu, ["metal"])
    rows = re.findall(r"^wgpu\S+", open(PRESETS + "/metal.probes").read(), re.M)
    same("rows for wgpu", counts["outside"] + counts.get("seen", 0), sum(len(row.split("|")) for row in rows))


def register(tools):
    pass
