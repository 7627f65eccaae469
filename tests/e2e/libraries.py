"""libraries.py - presets blas, onednn, fftw, mpi and openmp on Debian's own libraries.

The programs (tests/workloads/) print what they asked of a library; where a library keeps an account of its own (oneDNN's verbose
mode), that is compared as well. What a call costs is worked out here, by formula. MKL is a stand-in (tests/workloads/mkl_names.c).
"""
import collections
import json
import math
import os
import re

from harness import TESTS, case, check, same
from vulkan import client_python

SYSTEM = "/usr/lib/x86_64-linux-gnu"

ALONE = {"OMP_NUM_THREADS": "1"}        # a team that spins on a busy machine takes seconds for nothing

LOSSES = ("records", "late", "unknown_frees", "bad_chunks", "probe_values", "probe_frees")


def built(box, source, output, *flags):
    return box.compile(f"workloads/{source}", output, flags)


def both(box, words, *options, **how):
    """a run with mlprof whose output is that of the program alone"""
    plain, run = box.native(words, **how), box.run(words, *options, **how)
    same(f"status ({plain.stderr[-300:]})", plain.status, 0)
    same("output", (run.status, run.stdout), (plain.status, plain.stdout))
    same("losses", {key: run.summary["losses"][key] for key in LOSSES}, dict.fromkeys(LOSSES, 0))
    return run


def rows_of(run, preset):
    return [row for row in run.summary["probes"] if row["preset"] == preset]


def check_rates(run, names):
    """each has its GFLOP/s among the kernels, to the thousandths that are shown"""
    kernels = {kernel["name"]: kernel for kernel in run.summary["kernels"]}
    same("not among the kernels", set(names) - kernels.keys(), set())
    wrong = [(name, k["gflops"], k["flops"] / k["total_ns"]) for name, k in kernels.items() if abs(k["gflops"] - k["flops"] / k["total_ns"]) > 0.001]
    same("GFLOP/s", wrong, [])
    check("no kernel has any", any(k["gflops"] > 0 for k in kernels.values()))


# ---- blas ------------------------------------------------------------------------------------

def half(n):
    return n * (n + 1) // 2


# KIND: (name, operations, elements) of SIZES; None: the preset does not say
BLAS = {
    "gemm": lambda m, n, k: (f"gemm {m}x{n}x{k}", 2 * m * n * k, m * k + k * n + m * n),
    "gemv": lambda m, n: (f"gemv {m}x{n}", 2 * m * n, m * n + m + n),
    "trsm": lambda m, n, side: (f"trsm {m}x{n}", m * n * side, half(side) + m * n),
    "trmm": lambda m, n, side: (f"trmm {m}x{n}", m * n * side, half(side) + m * n),
    "symm": lambda m, n, side: (f"symm {m}x{n}", 2 * m * n * side, half(side) + 2 * m * n),
    "syrk": lambda n, k: (f"syrk {n}x{k}", 2 * half(n) * k, n * k + half(n)),
    "gemmt": lambda n, k: (f"gemmt {n}x{k}", 2 * half(n) * k, 2 * n * k + half(n)),
    "gemm_batch": lambda m, n, k, many: (f"gemm_batch {many} of {m}x{n}x{k}", 2 * m * n * k * many, many * (m * k + k * n + m * n)),
    "getrf": lambda m, n: (f"getrf {m}x{n}", m * n * n - n ** 3 / 3, 0),
    "gesv": lambda n, r: (f"gesv {n}x{n} {r}", 2 / 3 * n ** 3 + 2 * n * n * r, 0),
    "potrf": lambda n: (f"potrf {n}x{n}", n ** 3 / 3, 0),
    "geqrf": lambda m, n: (f"geqrf {m}x{n}", 2 * n * n * (m - n / 3), 0),
    "gesdd": lambda m, n: (f"gesdd {m}x{n}", 0, 0),
    "syevd": lambda n: (f"syevd {n}x{n}", 0, 0),
}


def near(got, wanted):
    """the summary shows thousandths"""
    return all(abs(a - b) <= 0.001 for a, b in zip(got, wanted))


def blas_books(run):
    """{name: (calls, flops, bytes)} of the lines "did LETTER KIND SIZES" """
    books = collections.defaultdict(lambda: (0, 0, 0))
    for line in run.stdout.splitlines():
        if not line.startswith("did "):
            continue
        _, letter, kind, *sizes = line.split()
        name, operations, elements = BLAS[kind](*map(int, sizes))
        calls, flops, size = books[letter + name]
        books[letter + name] = (calls + 1, flops + operations * (4 if letter in "cz" else 1),
                                size + elements * {"s": 4, "d": 8, "c": 8, "z": 16}[letter])
    return dict(books)


def blas_outermost(run):
    """[(name, calls, flops, bytes)] of the calls that no other one made"""
    rows = run.sql("""select name, count(*) as n, sum(extract_arg(arg_set_id, 'debug.flops')) as flops,
        sum(extract_arg(arg_set_id, 'debug.bytes')) as bytes from slice where category = 'span' and depth = 0 group by name""")
    return {row["name"]: (row["n"], row["flops"] or 0, row["bytes"] or 0) for row in rows}


def whole(books):
    """a slice shows whole operations"""
    return {name: (calls, round(flops / calls) * calls, size) for name, (calls, flops, size) in books.items()}


@case("libraries: BLAS and LAPACK by C and Fortran names on OpenBLAS: shapes, operations, bytes")
def openblas(box):
    run = both(box, [built(box, "blas_calls.c", "openblas_calls", "-DLAPACK", "-l:libopenblas.so.0"), "products", "lapack"])
    books = blas_books(run)
    same("names that the program knows", len(books), 4 * 12 + 7)
    same("calls of the program", blas_outermost(run), whole(books))
    rows = {row["name"]: (row["calls"], row["flops"], row["bytes"]) for row in rows_of(run, "blas")}
    wrong = [(name, rows.get(name), book) for name, book in books.items() if name not in rows or not near(rows[name], book)]
    same("sums", wrong, [])
    check_rates(run, {name for name, book in books.items() if book[1]})


@case("libraries: BLAS and LAPACK through pointers in data, as scipy calls them; --check tells rows that follow them from others")
def pointers(box):
    program = built(box, "blas_pointers.c", "blas_pointers", "-fPIE", "-pie", "-l:libopenblas.so.0")
    run = both(box, [program], env=ALONE)
    same("calls of the program", {name: calls for name, (calls, _, _) in blas_outermost(run).items()}, {"dgemm 48x48x48": 5, "dgetrf 48x48": 1})
    rows = box.file("plain.probes", "dgemm_ span\ndgetr?_ span data\n")
    said = json.loads(box.native([box.tools.mlprof, "probes", "--check", "--json", f"--probes=none,{rows},+blas", program]).stdout)[0]["rows"]
    states = {(row["preset"], row["symbol"]): row["state"] for row in said if row["state"] != "absent"}
    same("--check", states, {(None, "dgemm_"): "data", (None, "dgetr?_"): "import", ("blas", "dgemm_"): "import", ("blas", "dgetrf_"): "import"})
    text = box.native([box.tools.mlprof, "probes", "--check", f"--probes=none,{rows}", program]).stdout
    check(f"how to see it is not said: {text}", "only by a row with the flag data" in text)


@case("libraries: BLIS: many products at once, and its own names")
def blis(box):
    run = both(box, [built(box, "blas_calls.c", "blis_calls", "-DBLIS", f"{SYSTEM}/blis-openmp/libblis.so.4"), "products", "blis"], env=ALONE)
    books = blas_books(run)
    shown = blas_outermost(run)
    calls, _, _ = shown.pop("dgemm_batch 3 of 8x6x10")
    batch = books.pop("dgemm_batch 3 of 8x6x10")
    same("calls of the program", shown, whole(books))
    same("batches: two of one group, and one of two groups, whose operations are not known", calls, batch[0] + 1)
    of_batches = [row for row in rows_of(run, "blas") if row["function"] == "cblas_dgemm_batch"]
    same("operations", [(row["flops"], row["bytes"]) for row in of_batches], [(batch[1] / 2, batch[2] / 2)])


def largest(run):
    """{name: calls} of the calls with operations that lie in no other such call"""
    rows = {row["id"]: row for row in run.sql("""select id, parent_id, name, extract_arg(arg_set_id, 'debug.flops') as flops
        from slice where category = 'span'""")}
    found = collections.Counter()
    for row in rows.values():
        above = row
        while above := rows.get(above["parent_id"]):
            if above["flops"]:
                break
        if row["flops"] and not above:
            found[row["name"]] += 1
    return dict(found)


@case("libraries: a product that BLAS or LAPACK hands from one name to another, in one library or the next, is counted once")
def reference_blas(box):
    """cblas_dgemm calls dgemm_ in its own library, dgeqrf_ those of another; what dgesdd_ calls counts, as it has no operations of its own"""
    where = [f"{SYSTEM}/lapack/liblapack.so.3", f"{SYSTEM}/blas/libblas.so.3", f"-Wl,-rpath,{SYSTEM}/blas:{SYSTEM}/lapack"]
    run = both(box, [built(box, "blas_calls.c", "reference_blas_calls", "-DLAPACK", *where), "products", "lapack"])
    books = blas_books(run)
    same("calls of the program", blas_outermost(run), whole(books))
    counted = {kernel["name"]: kernel["calls"] for kernel in run.summary["kernels"]}
    same("kernels", counted, largest(run))
    flops = {kernel["name"]: kernel["flops"] for kernel in run.summary["kernels"]}
    wrong = [name for name, (calls, wanted, _) in books.items() if wanted and counted[name] == calls and not near([flops[name]], [wanted])]
    same("operations", wrong, [])
    check("nothing was counted below LAPACK", set(counted) - set(books))


@case("libraries: MKL's names, on a stand-in")
def mkl(box):
    library = built(box, "mkl_names.c", "libmkl_stand_in.so", "-DLIBRARY", "-shared", "-fPIC")
    run = both(box, [built(box, "mkl_names.c", "mkl_names", library, "-Wl,-rpath,$ORIGIN")])
    books = dict(line[4:].split(": ") for line in run.stdout.splitlines() if line.startswith("did "))
    rows = {row["name"]: f'{row["flops"]:.0f} {row["bytes"]}' for row in rows_of(run, "blas")}
    same("calls", rows, books)


# ---- onednn ----------------------------------------------------------------------------------

def onednn_account(text):
    """{primitive: executions} by the library's own account"""
    lines = [line.split(",") for line in text.splitlines() if line.startswith("onednn_verbose,exec,")]
    return collections.Counter(line[3] for line in lines)


def onednn_run(box, program):
    """the run, and its kernels, which are as the program and the library say"""
    run = both(box, [program], env=ALONE)
    books = collections.Counter(line[4:] for line in run.stdout.splitlines() if line.startswith("did "))
    kernels = {row["name"]: row for row in run.summary["kernels"] if not row["name"].startswith("dnnl_")}
    same("executions", {name: row["calls"] for name, row in kernels.items()}, dict(books))
    same("operations", {name: row["flops"] for name, row in kernels.items() if row["flops"]}, {
        "matmul 64x32:32x48:64x48": 5 * 2 * 64 * 48 * 32, "matmul 6x8x10:6x10x12:6x8x12": 2 * 2 * 6 * 8 * 12 * 10,
        **{name: calls * 2 * (2 * 32 * (12 * 10 if name.endswith("12x10") else 10 * 8)) * (16 * 3 * 3) for name, calls in books.items() if "convolution" in name}})
    spans = run.sql("select name, count(*) as n from slice where category = 'kernel' group by 1")
    same("kernels in the trace", {row["name"]: row["n"] for row in spans}, dict(books))
    account = onednn_account(box.native([program], env={"ONEDNN_VERBOSE": "1"}).stdout)
    by_kind = collections.Counter()
    for name, calls in books.items():
        by_kind[re.sub("_(forward|backward).*", "", name.split()[0])] += calls
    same("the library's account", {kind.replace("_v2", ""): calls for kind, calls in account.items()}, dict(by_kind))
    return run


@case("libraries: oneDNN's primitives by kind and shape, as often as the library says itself")
def onednn(box):
    run = onednn_run(box, built(box, "onednn_calls.c", "onednn_calls"))
    product, = [row for row in run.summary["kernels"] if row["name"] == "dnnl_sgemm 20x30x40"]
    same("its gemm", (product["calls"], product["flops"]), (1, 2 * 20 * 30 * 40))


@case("libraries: oneDNN 3 (PyPI): the same, with the shapes that its descriptors do not show in public")
def onednn3(box):
    library = os.path.join(os.path.dirname(os.path.dirname(client_python("onednn.txt"))), "lib", "libdnnl.so.3")
    onednn_run(box, built(box, "onednn3_calls.c", "onednn3_calls", library, "-Wl,-rpath," + os.path.dirname(library)))


# ---- fftw ------------------------------------------------------------------------------------

def fft_operations(name):
    """5 n log2 n, of real numbers half of it; "7 fft 16x20" are seven transforms"""
    *many, kind, shape = name.split()
    points = math.prod(map(int, shape.split("x")))
    return int((5 if kind == "fft" else 2.5) * int(many[0] if many else 1) * points * math.log2(points))


@case("libraries: FFTW's transforms by the shape of their plans, and its memory")
def fftw(box):
    run = both(box, [built(box, "fftw_calls.c", "fftw_calls")])
    books = collections.Counter(line[4:] for line in run.stdout.splitlines() if line.startswith("did "))
    rows = {row["name"]: (row["calls"], row["flops"]) for row in rows_of(run, "fftw") if row["role"] == "span"}
    same("transforms", rows, {name: (calls, calls * fft_operations(name)) for name, calls in books.items()})
    check_rates(run, books.keys())
    spans = run.sql("select name, count(*) as n from slice where category = 'span' group by 1")
    same("spans", {row["name"]: row["n"] for row in spans}, dict(books))
    held = next(int(line.split()[1]) for line in run.stdout.splitlines() if line.startswith("held "))
    pool = next(pool for pool in run.summary["pools"] if pool["name"] == "fftw")
    same("memory", (pool["peak_bytes"], pool["allocated_bytes"], pool["allocs"], pool["live_at_exit_bytes"]), (held, held, 5, 0))


# ---- mpi -------------------------------------------------------------------------------------

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
OPENMPI = ["mpirun.openmpi", "-n", "4", "--oversubscribe"]
MPICH = ["mpirun.mpich", "-n", "4"]


def mpi_program(box, kind):
    """Each MPI has a compiler command of its own; what it would add is all that is taken of it."""
    said = box.native([f"mpicc.{kind}", *(["-showme"] if kind == "openmpi" else ["-show"]), "x.c"])
    same(said.stderr, said.status, 0)
    return built(box, "mpi_calls.c", f"{kind}_calls", *[word for word in said.stdout.split()[1:] if word.startswith(("-I", "-L", "-l", "-Wl"))])


def mpi_books(run):
    """{(rank, function): (calls, bytes)}"""
    books = collections.defaultdict(lambda: (0, 0))
    for line in run.stdout.splitlines():
        if " did " in line:
            _, rank, _, function, times, size = line.split()
            calls, total = books[int(rank), function]
            books[int(rank), function] = (calls + int(times), total + int(size))
    return dict(books)


def mpi_calls(run):
    """the same of the trace; which process is which rank says the first mark that it has"""
    calls = """select t.upid, s.name, s.category, min(s.ts) as first, count(*) as n, sum(extract_arg(s.arg_set_id, 'debug.bytes')) as bytes
        from slice s join thread_track k on s.track_id = k.id join thread t using (utid)
        where s.name like 'rank %' or s.name like 'MPI_%' group by 1, 2, 3 order by first desc"""
    rows = run.sql(calls)
    same("marks", {row["category"] for row in rows if row["name"].startswith("rank ")}, {"mark"})
    ranks = {row["upid"]: int(row["name"].split()[1]) for row in rows if row["name"].startswith("rank ")}
    return {(ranks[row["upid"]], row["name"]): (row["n"], row["bytes"] or 0) for row in rows if row["name"].startswith("MPI_")}


@case("libraries: OpenMPI: four ranks in one trace, each with its calls and bytes")
def openmpi(box):
    run = both(box, [*OPENMPI, mpi_program(box, "openmpi")], env=ROOT)
    books = mpi_books(run)
    same("ranks", {rank for rank, _ in books}, {0, 1, 2, 3})
    same("calls and bytes of each rank", mpi_calls(run), books)
    sums = {row["name"]: (row["calls"], row["bytes"]) for row in rows_of(run, "mpi") if row["role"] == "span"}
    added = {function: tuple(map(sum, zip(*[book for (_, name), book in books.items() if name == function]))) for _, function in books}
    same("sums", {name: sums[name] for name in added}, added)
    same("waits for a device", run.summary["waits"]["calls"], 0)


@case("libraries: OpenMPI: mlprof in each rank, a trace for each")
def openmpi_inside(box):
    program = mpi_program(box, "openmpi")
    each = f'exec "{box.tools.mlprof}" run --quiet -o rank$OMPI_COMM_WORLD_RANK.perfetto-trace -- "{program}"'
    plain, run = box.native([*OPENMPI, program], env=ROOT), box.native([*OPENMPI, "sh", "-c", each], env=ROOT)
    same(f"output {run.stderr[-300:]}", (run.status, run.stdout), (0, plain.stdout))
    books = mpi_books(run)
    for rank in range(4):
        run.trace = box.file(f"rank{rank}.perfetto-trace")
        same(f"rank {rank}", mpi_calls(run), {key: book for key, book in books.items() if key[0] == rank})


@case("libraries: MPICH: the same calls and bytes; those of types of one's own are not known")
def mpich(box):
    run = both(box, [*MPICH, mpi_program(box, "mpich")])
    books = {key: (calls, 0 if key[1] == "MPI_Ibcast" else size) for key, (calls, size) in mpi_books(run).items()}
    same("calls and bytes of each rank", mpi_calls(run), books)
    check("none of MPI 4's functions", (0, "MPI_Allreduce_c") in books)


# ---- openmp ----------------------------------------------------------------------------------

def omp_by_clang(box, source="omp_nested.c"):
    program = box.file("omp_clang")
    done = box.native(["clang", "-g", "-O2", "-fopenmp", os.path.join(TESTS, "workloads", source), "-o", program])
    same(done.stderr, done.status, 0)
    return program


OPENMP = {
    "libgomp": lambda box: built(box, "omp_nested.c", "omp_gcc"),
    "libomp": omp_by_clang,
    "gcc's program on libomp": lambda box: built(box, "omp_nested.c", "omp_gcc_libomp", f"{SYSTEM}/libomp.so.5"),
}


def openmp(title):
    def run_one(box):
        run = both(box, [OPENMP[title](box)], "--probes=+openmp")
        wanted = sorted(int(line.split()[2]) for line in run.stdout.splitlines() if line.startswith("did "))
        same("regions", sorted(row["calls"] for row in rows_of(run, "openmp")), wanted)
        outer, inner = (next(row["name"] for row in rows_of(run, "openmp") if row["calls"] == calls) for calls in wanted)
        rows = run.sql("""select s.name, p.name as inside, k.utid from slice s left join slice p on s.parent_id = p.id
            join thread_track k on s.track_id = k.id where s.category = 'span'""")
        same("spans", sorted(row["name"] for row in rows), sorted([outer] * wanted[0] + [inner] * wanted[1]))
        same("regions inside of others", [row for row in rows if row["inside"]], [])
        same("threads that entered one", len({row["utid"] for row in rows}), 1)
        same("not asked for", rows_of(box.run([OPENMP[title](box)]), "openmp"), [])
    return run_one


for title in OPENMP:
    case(f"libraries: OpenMP's outermost regions: {title}")(openmp(title))


@case("libraries: OpenMP: a region that shares 200 variables gets all of them")
def openmp_shared(box):
    run = both(box, [omp_by_clang(box, "omp_shared.c")], "--probes=+openmp")
    same("sums", run.stdout, f"{2 * sum(range(100, 300)) + 200} {sum(range(100, 300)) + 400}\n")
    same("regions", [row["calls"] for row in rows_of(run, "openmp")], [1])
    same("variables", [row["shared"] for row in run.sql("select extract_arg(arg_set_id, 'debug.shared') as shared from slice where category = 'span'")], [201])


def register(tools):
    pass
