"""vulkan.py - Vulkan programs on lavapipe: every way in, each kind of work, times, memory and names against what is true."""
import collections
import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

from harness import PYTHON, TESTS, Run, case, check, same

WORKLOADS = os.path.join(TESTS, "workloads")
LOCK = threading.Lock()
VALIDATION = {"VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation"}
# name of the C array and header: source, options of glslangValidator
SHADERS = {
    "vk_scale": ("vk_scale.comp", []),
    "vk_scale_entry": ("vk_scale.comp", ["-e", "scale_up", "--source-entrypoint", "main"]),
    "vk_scale_long": ("vk_scale.comp", ["-e", 250 * "e", "--source-entrypoint", "main"]),
    "vk_fixed": ("vk_fixed.comp", []),
    "vk_fixed_debug": ("vk_fixed.comp", ["-g"]),
}
WAYS = {
    "linked": ["-lvulkan"],
    "full RELRO, no PLT": ["-fno-plt", "-Wl,-z,relro,-z,now", "-lvulkan"],
    "lazy": ["-Wl,-z,lazy", "-lvulkan"],
    "dlsym for each": ["-DBY_DLSYM"],
    "getters": ["-DBY_GETTER"],
}
DONE_TIMED, DONE_OBSERVED, DONE_UNTIMED, DONE_FAILED, DONE_IN_TIMED, DONE_IN_OBSERVED = range(6)
KERNEL, GROUP = 0, 8


# ---- programs -------------------------------------------------------------------------------

def shaders(box):
    with LOCK:
        for name, (source, options) in SHADERS.items():
            header = os.path.join(box.tools.programs, name + ".h")
            source = os.path.join(WORKLOADS, source)
            if os.path.exists(header) and os.path.getmtime(header) > os.path.getmtime(source):
                continue
            command = ["glslangValidator", "-V", "--target-env", "vulkan1.0", *options, "--vn", name, "-o", header, os.path.basename(source)]
            done = subprocess.run(command, cwd=WORKLOADS, capture_output=True, text=True)
            check(f"{' '.join(command)}: {done.stdout}", done.returncode == 0)


def build(box, source="vk_work.c", way="linked", flags=()):
    shaders(box)
    name = source.rsplit(".", 1)[0] + "-" + re.sub(r"\W+", "-", way)
    return box.compile("workloads/" + source, name, ["-Wno-unused-function", "-I", box.tools.programs, *WAYS[way], *flags])


def shim(box, mode):
    """environment of a program that finds its functions by getters: lavapipe, but for one thing (vk_shim.c)"""
    return {"VK_CLIENT_DRIVER": box.compile("workloads/vk_shim.c", "vk_shim.so"), "SHIM_DRIVER": glob.glob("/usr/lib/*/libvulkan_lvp.so")[0],
            "SHIM": mode}


def deaf(box):
    """environment in which lavapipe, found by the loader, takes the stamps itself: mlprof's own way of taking them fails when it is tried"""
    icd = box.file("deaf.json")
    env = shim(box, "deaf")
    with open(icd, "w") as file:
        json.dump({"file_format_version": "1.0.0", "ICD": {"library_path": env.pop("VK_CLIENT_DRIVER"), "api_version": "1.3.0"}}, file)
    return {**env, "VK_ICD_FILENAMES": icd}


def client_python(wanted="clients.txt"):
    """the Python of the venv that scripts/setup --tests makes from this list"""
    with open(os.path.join(TESTS, "e2e", wanted), "rb") as file:
        name = "venv-" + hashlib.sha256(file.read()).hexdigest()[:12]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    python = os.path.join(cache, "mlprof-tests", name, "bin", "python")
    check("no venv with clients: scripts/setup --tests makes it", os.path.exists(python))
    return python


# ---- what was recorded ----------------------------------------------------------------------

LINE = re.compile(r'^ +(\d+) (\w+) (.*?)(?: "((?:[^"\\]|\\.)*)")?$')


class Records:
    """names, works, ends and labels in a raw stream, by number (a chunk may be in it twice)"""

    def __init__(self, box, raw):
        self.names, self.works, self.ends, self.labels, self.texts = {}, {}, {}, {}, {}
        wanted = {"name": self.names, "work": self.works, "work_done": self.ends, "label": self.labels}
        for line in box.native([box.tools.mlprof, "dump", raw]).stdout.splitlines():
            found = LINE.match(line)
            if not found or found.group(2) not in wanted:
                continue
            fields = {k: int(v.lstrip("#").removesuffix("ns"), 0) for k, v in (word.split("=", 1) for word in found.group(3).split())}
            text = (found.group(4) or "").replace("\\x00", "\n").strip()
            wanted[found.group(2)][fields["id"]] = text if found.group(2) in ("name", "label") else fields
            if found.group(2) == "work":
                self.texts[fields["id"]] = text

    def name(self, work):
        return self.names.get(work["name"], "?")

    def seen(self):
        """(name or "kernel", bytes, groups, local size) -> how many"""
        return collections.Counter(("kernel" if w["kind"] == KERNEL else self.name(w), w["bytes"], w["x"], w["local"] & 0x1fffff)
                                   for w in self.works.values() if w["kind"] != GROUP)

    def statuses(self):
        return collections.Counter(end["status"] for end in self.ends.values())

    def spans(self):
        return [(end["start"], end["end"]) for _, end in sorted(self.ends.items()) if end["status"] == DONE_TIMED]


def truth(run):
    told = collections.Counter()
    for line in run.stdout.splitlines():
        if line.startswith("work "):
            _, name, count, size, groups, local = line.split()
            told[(name, int(size), int(groups), int(local))] += int(count)
    return told


def without_times(text):
    return [line for line in text.splitlines() if not line.startswith("time ")]


def recorded(box, words, *options, env=None, like=None):
    """the program under mlprof, compared with itself alone; (run, records)"""
    plain = like or box.native(words, env)
    raw = box.file(f"raw{box.count}")
    run = box.run(words, f"--raw={raw}", *options, env=env)
    same("exit status", (run.status, run.stderr), (plain.status, plain.stderr))
    same("output", without_times(run.stdout), without_times(plain.stdout))
    for key in ("records", "late", "bad_chunks", "unknown_ids"):
        same(f"losses.{key}", run.summary["losses"][key], 0)
    return run, Records(box, raw)


def check_scene(box, words, *options, env=None):
    """all work is there, timed, in order, on the one queue"""
    run, records = recorded(box, words, *options, env=env)
    told = truth(run)
    same("losses.unknown_frees", run.summary["losses"]["unknown_frees"], 0)
    check("the program told of no work", told)
    same(f"{words[1:]}: work", records.seen(), told)
    same(f"{words[1:]}: ends", dict(records.statuses()), {DONE_TIMED: sum(told.values())})
    spans = records.spans()
    check(f"{words[1:]}: a span ends before it starts", all(start < end for start, end in spans))
    check(f"{words[1:]}: spans of one queue overlap", all(a[1] <= b[0] for a, b in zip(spans, spans[1:])))
    return run, records


# ---- cases ----------------------------------------------------------------------------------

SCENES = ("ops", "resubmit", "twice", "secondary", "rerecord", "many", "images", "abandoned")


@case("vulkan: every way in")
def ways(box):
    for way in WAYS:
        run, _ = check_scene(box, [build(box, way=way), "ops", "12"])
        same(f"{way}: devices", [device["api"] for device in run.summary["devices"]], ["Vulkan"])
        same(f"{way}: kernels", run.summary["devices"][0]["kernels"], 3)
    # a plugin that is linked to the loader; one that opens it, and has visible variables of the functions' names
    for name, flags in (("vk_work.so", ["-lvulkan"]), ("vk_variables.so", ["-DBY_GETTER", "-DVISIBLE"])):
        plugin = box.compile("workloads/vk_work.c", name,
                             ["-Wno-unused-function", "-I", box.tools.programs, "-shared", "-fPIC", "-Dmain=plugin_main", *flags])
        check_scene(box, [box.compile("workloads/vk_plugin.c"), plugin, "ops", "12"])
    run, _ = recorded(box, [PYTHON, os.path.join(WORKLOADS, "vk_ctypes.py")])
    same("ctypes: output, memory", (run.stdout, [device["peak_bytes"] for device in run.summary["devices"]]), ("0\n0\n", [65536]))


@case("vulkan: no Vulkan where there is none")
def none(box):
    program = "import ctypes; print([hasattr(ctypes.CDLL(None), name) for name in ('vkCreateInstance', 'vkGetInstanceProcAddr')])"
    same("output", box.run([PYTHON, "-c", program]).stdout, "[False, False]\n")


@case("vulkan: nothing that was submitted is missing, whoever takes the stamps")
def scenes(box):
    program = build(box)
    for env, clock in ((None, "host"), (deaf(box), "calibrated")):
        for scene in SCENES:
            run, _ = check_scene(box, [program, scene, "12"], env=env)
            same("who takes the stamps", run.summary["devices"][0]["clock"]["kind"], clock)
        for scene in ("submit2", "images"):
            check_scene(box, [program, scene, "13"], env=env)


@case("vulkan: timeline semaphores, and the newer commands by either name")
def newer(box):
    for version in ("11", "12", "13"):
        run, _ = check_scene(box, [build(box, "vk_sync.c"), version])
        signals = run.sql("""select s.category, is_main_thread as main, extract_arg(s.arg_set_id, 'debug.value') as value from slice s
            join thread_track t on s.track_id = t.id join thread using (utid) where s.name = 'vkSignalSemaphore'""")
        same("signalled by another thread", [(row["category"], row["main"], int(row["value"])) for row in signals], [("call", 0, 25)])
        check_scene(box, [build(box, "vk_sync.c"), version], env=deaf(box))
        # the program alone knows what is over, and frees its command buffers while their results are still to be told
        run, _ = check_scene(box, [build(box, "vk_sync.c", "getters"), version], env=shim(box, "busy"))
        check(run.stdout, "waited 25 times" in run.stdout)


@case("vulkan: versions 1.0 to 1.3")
def versions(box):
    program = build(box)
    for version in ("10", "11", "12", "13"):
        for scene in ("ops", "twice", "secondary"):
            check_scene(box, [program, scene, version])
    check_scene(box, [program, "ops", "10"], env=deaf(box))


@case("vulkan: a card is one device, however many instances of whichever version there are")
def instances(box):
    run, records = recorded(box, [build(box, "vk_instances.c", flags=["-pthread"])])
    same("work", records.seen(), truth(run))
    same("devices", [(device["kernels"], device["queues"], device["works_timed"]) for device in run.summary["devices"]], [(8, 8, 8)])


@case("vulkan: bytes of image copies, whatever the format")
def texels(box):
    for version in ("12", "13"):
        run, _ = check_scene(box, [build(box, "vk_texels.c"), version])
        check("few formats: " + run.stdout, int(re.search(r"^formats (\d+)", run.stdout, re.M).group(1)) > 50)
        check("depth and stencil: " + run.stdout, int(re.search(r"^depth and stencil cleared (\d+)", run.stdout, re.M).group(1)) > 4)
        told = sum(size * count for (name, size, _, _), count in truth(run).items() if "Clear" not in name)
        same("bytes copied", [row["bytes"] for row in run.summary["transfers"] if row["kind"] == "copy"], [told])
        same("unknown", run.summary["losses"]["works_unsized"], 0)
    # a format that is not in the table: said so, here and there
    run, _ = check_scene(box, [build(box, "vk_texels.c", "getters"), "12", "1000156007"], env=shim(box, "format"))
    same("unknown", run.summary["losses"]["works_unsized"], 4)
    same("copies", [(row["calls"], row["unsized"], row["bytes"]) for row in run.summary["transfers"] if row["kind"] == "copy"], [(4, 4, 0)])
    same("marked", run.value("select count(*) as n from args where key = 'debug.bytes_unknown'"), 4)
    check("in words", "4 transfers moved an unknown number of bytes" in run.text)


@case("vulkan: bare LD_PRELOAD")
def bare(box):
    run = box.bare([build(box), "ops", "12"])
    same("status", run.status, 0)
    same("kernels", run.summary["devices"][0]["kernels"], 3)


def check_times(box, scene, spare=0, env=None):
    """each piece of work against the program's own stamps around it, and all of them against the host's clock around them.
    Its stamp at the bottom of the pipe makes llvmpipe wake its threads, which puts that stamp 50 us behind ours and, where the cores
    are busy, now and then some milliseconds: of pieces that are not much longer than that, `spare` may be further off."""
    run, records = check_scene(box, [build(box), scene, "12"], env=env)
    lines = [line.split() for line in run.stdout.splitlines() if line.startswith("time ")]
    own = [int(words[1]) for words in lines if len(words) == 2]
    around = next(int(words[2]) for words in lines if words[1] == "all")
    ours = [end - start for start, end in records.spans()]
    pairs = list(zip(ours, own, strict=True))
    check(f"{scene}: times, and the program's own: {pairs}", all(seen <= told for seen, told in pairs))
    apart = [(seen, told) for seen, told in pairs if told - seen >= max(told * 0.05, 20000)]
    check(f"{scene}: times that are not the program's own: {apart}", len(apart) <= spare)
    check(f"{scene}: {sum(ours)} ns in all, of {around} that the host waited", around * 0.85 < sum(ours) <= around)
    same(f"{scene}: it waited for its own", [row["calls"] for row in run.summary["waits"]["by_name"] if row["name"] == "vkGetQueryPoolResults"], [1])
    box.note(f"{scene}: host {around / 1e6:.3f} ms, own {sum(own) / 1e6:.3f} ms, mlprof {sum(ours) / 1e6:.3f} ms")
    return run, ours


@case("vulkan: a dispatch's time is the device's own", alone=True)
def times(box):
    run, ours = check_times(box, "timed")
    kernels = run.summary["kernels"]
    same("kernels", len(kernels), 1)
    same("their sum", kernels[0]["total_ns"], sum(ours))
    check_times(box, "moved", spare=1)
    check_times(box, "timed", env=deaf(box))
    check_times(box, "moved", spare=1, env=deaf(box))


@case("vulkan: dispatches after a render pass are timed", alone=True)
def rendered(box):
    for env in (None, deaf(box)):
        run, records = recorded(box, [build(box), "rendered", "13"], env=env)
        around = next(int(line.split()[2]) for line in run.stdout.splitlines() if line.startswith("time all "))
        same("kernels", records.seen(), truth(run))
        ours = [records.ends[number]["end"] - records.ends[number]["start"] for number, work in sorted(records.works.items()) if work["kind"] == KERNEL]
        check(f"{ours} ns, of {around} that the host waited", around * 0.85 < sum(ours) <= around and min(ours) > around * 0.1)


@case("vulkan: work lies between its submit and the wait")
def inside(box):
    run, _ = check_scene(box, [build(box), "rerecord", "12"])
    rows = run.sql("""select o.ts call, o.ts + o.dur as returned, i.ts start, i.ts + i.dur as end from flow f
        join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id where o.name = 'vkQueueSubmit'""")
    same("arrows", len(rows), 1860)
    waits = sorted((row["ts"], row["end"]) for row in run.sql("select ts, ts + dur as end from slice where name = 'vkWaitForFences'"))
    same("waits", len(waits), 30)
    for row in rows:
        check("work starts before its submit", row["start"] >= row["call"])
        wait = next(end for begin, end in waits if begin >= row["returned"])
        check("work ends after the wait for it", row["end"] <= wait)


@case("vulkan: the validation layer has nothing to say")
def validation(box):
    program = build(box)
    for scene, version in (("ops", "10"), ("ops", "13"), ("resubmit", "12"), ("twice", "11"), ("secondary_slow", "12"), ("rerecord", "12"),
                           ("many", "12"), ("submit2", "13"), ("images", "13"), ("abandoned", "12")):
        run, _ = check_scene(box, [program, scene, version], env=VALIDATION)
        check(f"{scene}: {run.stdout}", "VUID" not in run.stdout)
    sync = {**VALIDATION, "VK_LAYER_ENABLES": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT"}
    for scene in ("ops", "twice", "secondary_slow", "resubmit"):
        check_scene(box, [program, scene, "13"], env=sync)
        check_scene(box, [program, scene, "13"], env={**sync, **deaf(box)})
    for way in ("submit", "off"):
        recorded(box, [program, "resubmit", "12"], f"--device-time={way}", env=VALIDATION)
    for version in ("11", "12", "13"):
        recorded(box, [build(box, "vk_sync.c"), version], env=VALIDATION)
    recorded(box, [program, "rendered", "13"], env=VALIDATION)
    recorded(box, [build(box, "vk_names.c")], env=VALIDATION)
    recorded(box, [build(box, "vk_texels.c"), "13"], env=VALIDATION)


@case("vulkan: memory, exact to the byte")
def memory(box):
    run, _ = recorded(box, [build(box, "vk_memory.c")])
    wrong = [(key, value) for key, value in run.expected if str(run.summary["devices"][0][key.split(".")[-1]]) != value]
    same(f"books {run.expected}", wrong, [])
    same("things bound or imported", run.summary["devices"][0]["objects"], 14)
    check("its memory is the host's", run.summary["devices"][0]["host_memory"])
    spans = run.sql("""select name, extract_arg(arg_set_id, 'debug.size') as size, extract_arg(arg_set_id, 'debug.memory') as memory,
        extract_arg(arg_set_id, 'debug.bound') as bound, extract_arg(arg_set_id, 'debug.never_freed') as never from slice
        where category = 'allocation' order by ts""")
    same("imported", [(row["name"], row["size"]) for row in spans if row["name"].startswith("imported")],
         [("imported host memory", 65536), ("imported memory", 1 << 21)])
    spans = [row for row in spans if row["name"] == "memory"]
    image = int(re.search(r"^image (\d+)", run.stdout, re.M).group(1))
    same("spans", [row["size"] for row in spans], [1 << 20, image, 8192] * 3 + [1 << 21, 12288])
    same("what lies in a block", spans[0]["bound"], "buffer at 0 (65536 bytes), buffer at 131072 (65536 bytes), buffer at 262144 (65536 bytes)")
    check(f"flags {spans[0]['memory']}", {"host_visible", "device_local"} <= set(spans[0]["memory"].split("|")))
    same("never freed", [bool(row["never"]) for row in spans], [False] * 10 + [True])
    stacks = run.sql("""select distinct coalesce(y.name, f.name) as inner from __intrinsic_track_event_callstacks c join slice s on c.slice_id = s.id
        join stack_profile_callsite t on c.callsite_id = t.id join stack_profile_frame f on t.frame_id = f.id
        left join stack_profile_symbol y using (symbol_set_id) where s.category = 'allocation'""")
    check(f"who asked for it: {stacks}", {"client_memory"} <= {row["inner"] for row in stacks})


@case("vulkan: one buffer over a whole block, and which ranges of it are used")
def slabs(box):
    for way, env in (("linked", None), ("getters", None), ("linked", VALIDATION)):
        run, _ = recorded(box, [build(box, "vk_slabs.c", way)], env=env)
        check(f"validation: {run.stdout}", "VUID" not in run.stdout)
        kernel = run.summary["kernels"][0]["name"]
        wanted = sorted((int(length), int(offset), who.replace("KERNEL", kernel))
                        for offset, length, who in re.findall(r"^range (\d+) (\d+) (\w+)$", run.stdout, re.M))
        union = int(re.search(r"^union (\d+)", run.stdout, re.M).group(1))
        room, more = map(int, re.search(r"^many (\d+) (\d+)", run.stdout, re.M).groups())
        spans = run.sql("""select category, extract_arg(arg_set_id, 'debug.used') as used, extract_arg(arg_set_id, 'debug.used_bytes') as bytes,
            extract_arg(arg_set_id, 'debug.used_ranges') as ranges, extract_arg(arg_set_id, 'debug.used_left_out') as left_out
            from slice where category in ('allocation', 'object') and bytes is not null order by ts""")
        same("the block and its buffer; two that 20 descriptors use, nobody knows where; two of many ranges; two buffers that nobody used, one after the other",
             [(s["category"], s["bytes"], s["ranges"], s["left_out"] or 0) for s in spans],
             [(what, *numbers) for numbers in ((union, len(wanted), 0), (0, 0, 20), (room * 16, room, more), (0, 0, 0)) for what in ("allocation", "object")] +
             [("object", 0, 0, 0)])
        told = sorted((int(length), int(offset), who) for who, offset, length in re.findall(r"(\S+) at (\d+) \((\d+) bytes\)", spans[0]["used"]))
        same("ranges", told, wanted)
        blocks = run.summary["devices"][0]["blocks"]
        same("in the summary", sorted((b["bytes"], b["used_bytes"], b["used_ranges"], b["used_left_out"]) for b in blocks),
             sorted([(8 << 20, union, len(wanted), 0), (8 << 20, room * 16, room, more)]))
        largest = next(b["largest"] for b in blocks if b["used_bytes"] == union)
        same("the largest", [r["bytes"] for r in largest], sorted((w[0] for w in wanted), reverse=True)[:16])


@case("vulkan: what the host called, and where its work ran")
def calls(box):
    run, _ = check_scene(box, [build(box), "rerecord", "12"])
    rows = run.sql("""select s.name, s.category, count(*) as n, sum(s.dur) as ns, count(c.slice_id) as stacks from slice s join thread_track t on s.track_id = t.id
        left join __intrinsic_track_event_callstacks c on c.slice_id = s.id where s.name like 'vk%' group by 1, 2""")
    seen = {row["name"]: (row["category"], row["n"]) for row in rows}
    for name, wanted in {"vkQueueSubmit": ("submit", 30), "vkWaitForFences": ("wait", 30), "vkCreateComputePipelines": ("build", 1),
                         "vkCreateShaderModule": ("build", 1), "vkAllocateMemory": ("memory", 1), "vkMapMemory": ("memory", 1),
                         "vkFreeMemory": ("memory", 1), "vkCreateDevice": ("call", 1)}.items():
        same(name, seen.get(name), wanted)
    check("submits without a stack", all(row["stacks"] == row["n"] for row in rows if row["name"] == "vkQueueSubmit"))
    waits = run.summary["waits"]
    same("blocked on the device", (waits["calls"], waits["total_ns"]), (30, sum(row["ns"] for row in rows if row["category"] == "wait")))
    places = run.sql("""select t.name as track, p.name as device, g.name as top, s.category, count(*) as n, sum(extract_arg(s.arg_set_id, 'debug.local_x') = 64
        and extract_arg(s.arg_set_id, 'debug.groups_x') > 0) as sizes, max(s.depth) as depth from slice s join track t on s.track_id = t.id
        join track p on t.parent_id = p.id join track g on p.parent_id = g.id where g.name = 'Devices' and t.name like 'queue%' group by 1, 2, 3, 4""")
    same("its kernels", [(row["track"], row["device"].split(":")[0], row["category"], row["n"], row["sizes"], row["depth"]) for row in places],
         [("queue 0/0 (graphics)", "Vulkan 0", "kernel", 1860, 1860, 0)])


@case("vulkan: names, labels and local sizes")
def names(box):
    run, records = recorded(box, [build(box, "vk_names.c")])
    told = [re.match(r"kernel (.*) (\d+) (\d+)x(\d+)x(\d+) (\S+)$", line).groups() for line in run.stdout.splitlines() if line.startswith("kernel ")]
    works = [work for _, work in sorted(records.works.items())]
    same("dispatches, submitted twice", len(works), 2 * len(told))
    for i, (work, (name, groups, x, y, z, label)) in enumerate(zip(works, told * 2)):
        seen = records.name(work)
        check(f"{name} is called {seen}", seen == name or (name == "main#*" and re.fullmatch("main#[0-9a-f]+", seen)))
        same(f"{name}: groups", work["x"], int(groups))
        same(f"{name}: local size", work["local"], int(x) | int(y) << 21 | int(z) << 42)
        same(f"{name}: labels", records.texts[work["id"]].split("\n") if records.texts[work["id"]] else [],
             [f"label={label}"] * (label != "-") + ["queue_label=epoch 7"] * (i >= len(told)))
    check(f"labels {records.labels}", {"weights", "the queue"} <= set(records.labels.values()))


@case("vulkan: --device-time and --api")
def switches(box):
    words = [build(box), "resubmit", "12"]
    run, records = recorded(box, words, "--device-time=submit")
    same("submit", dict(records.statuses()), {DONE_TIMED: 200, DONE_IN_TIMED: 200})
    same("submit: kernels by name", records.seen(), truth(run))
    run, records = recorded(box, words, "--device-time=off")
    same("off", dict(records.statuses()), {DONE_OBSERVED: 200, DONE_IN_OBSERVED: 200})
    same("off: readings of the device's clock", [(device["clock"]["kind"], device["clock"]["samples"]) for device in run.summary["devices"]], [("none", 0)])
    run, records = recorded(box, words, "--api=opencl")
    same("another API", (records.works, run.summary["devices"]), ({}, []))


@case("vulkan: kernels of submits that are timed as a whole are moments inside of them")
def wholes(box):
    # two batches in one submit, of five and of two command buffers; the host sees them end at once
    for how, batches in (("submit", 2), ("off", 1)):
        run, records = recorded(box, [build(box), "twice", "12"], f"--device-time={how}")
        same(f"{how}: kernels", records.seen(), truth(run))
        rows = run.sql("""select s.id, s.ts, s.dur, s.depth, s.category, s.track_id, extract_arg(s.arg_set_id, 'debug.untimed') as untimed,
            extract_arg(s.arg_set_id, 'debug.work') as work from slice s join track t on s.track_id = t.id where t.name like 'queue%' order by s.ts, s.id""")
        same(f"{how}: lanes", len({row["track_id"] for row in rows}), 1)
        whole = [row for row in rows if not row["untimed"]]
        parts = [row for row in rows if row["untimed"]]
        same(f"{how}: bars, and moments in them", (len(whole), len(parts)), (batches, 9 - batches))
        same(f"{how}: what they are", {(row["category"], row["depth"]) for row in whole}, {("group", 0)})
        check(f"{how}: {parts}", all(row["dur"] == 0 and row["depth"] == 1 for row in parts))
        check(f"{how}: bars overlap", all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(whole, whole[1:])))
        same(f"{how}: in order", [row["work"] for row in parts], sorted(row["work"] for row in parts))
        took = sum(row["dur"] for row in whole)
        group = next(row for row in run.summary["transfers"] if row["kind"] == "group")
        # what is drawn may be off from the device's own time by a nanosecond for each end
        check(f"{how}: drawn {took} ns, summed up {group['total_ns']}, busy {run.summary['devices'][0]['busy_ns']}",
              abs(took - group["total_ns"]) <= 4 and abs(took - run.summary["devices"][0]["busy_ns"]) <= 4)
        check(f"{how}: {run.text}", f"have no times of their own (--device-time={how}: " in run.text and "submissions as a whole  on Vulkan 0" in run.text)


@case("vulkan: programs that end in the middle")
def ends(box):
    program = build(box, "vk_ends.c")
    for way, status in (("exit", 4), ("_exit", 3), ("kill", 128 + signal.SIGKILL), ("fork", 7), ("return", 0)):
        raw = box.file("raw-" + way)
        run = box.run([program, way], f"--raw={raw}")
        same(f"{way}: status", run.status, status)
        same(f"{way}: output", run.stdout, "submitted 3\n")
        records = Records(box, raw)
        same(f"{way}: work", len(records.works), 3)
        same(f"{way}: works, over or not", run.summary["losses"]["works_unfinished"] + len(records.ends), 3)


@case("vulkan: a device is destroyed while the program exits")
def destroyed(box):
    """a driver that takes its time while it is asked for the last results"""
    raw = box.file("raw")
    run = box.run([build(box, "vk_ends.c", "getters"), "destroy"], f"--raw={raw}", env=shim(box, "slow"))
    records = Records(box, raw)
    same("status, output", (run.status, run.stdout.split("\n")[0]), (6, "submitted 3"))
    same("works, over or not", run.summary["losses"]["works_unfinished"] + len(records.ends), 3)


@case("vulkan: forks while other threads are at work")
def forks(box):
    run, records = recorded(box, [build(box, "vk_fork.c")])
    same("children", run.stdout.splitlines()[0], "children 300, bad 0")
    kernels = int(run.stdout.split()[-1])
    same("work", (len(records.works), dict(records.statuses())), (kernels, {DONE_TIMED: kernels}))
    same("devices", [(device["kernels"], device["queues"]) for device in run.summary["devices"]], [(kernels, 1)])
    same("unknown frees", run.summary["losses"]["unknown_frees"], 0)


@case("vulkan: the loader is closed and opened again")
def again(box):
    program = build(box, "vk_again.c")
    run, records = recorded(box, [program])
    same("work", records.seen(), truth(run))
    run, records = recorded(box, [program, "leave"])
    same("work with a device left behind", records.seen(), truth(run))
    same("devices", len(run.summary["devices"]), 1)


@case("vulkan: two loaders in one process")
def loaders(box):
    first = "libvulkan.so.1"
    found = [path for path in glob.glob("/usr/lib/*/libvulkan.so.1") if os.path.exists(path)][0]
    second = shutil.copy(os.path.realpath(found), box.file("libvulkan-other.so.1"))
    for way in ("getters", "dlsym for each"):
        run, records = recorded(box, [build(box, "vk_loaders.c", way), first, second, first])
        same(f"{way}: work", records.seen(), truth(run))
        same(f"{way}: which loader", [line.split("/")[-1] for line in run.stdout.splitlines() if " by " in line],
             ["libvulkan.so.1", "libvulkan-other.so.1", "libvulkan.so.1"])


@case("vulkan: drivers that do odd things")
def odd(box):
    program = build(box, "vk_faults.c")
    wanted = {
        "": {DONE_TIMED: 20}, "wrap": {DONE_TIMED: 20}, "features": {DONE_TIMED: 20},
        "untimed": {DONE_OBSERVED: 10, DONE_IN_OBSERVED: 20}, "transfer": {DONE_OBSERVED: 10, DONE_IN_OBSERVED: 20},
        "lost": {DONE_TIMED: 8, DONE_FAILED: 12}, "lost_fence": {DONE_TIMED: 8, DONE_FAILED: 12},
        "lost_idle": {DONE_TIMED: 10, DONE_FAILED: 10}, "refuse": {DONE_TIMED: 18, DONE_FAILED: 2},
        "queries": {DONE_OBSERVED: 10, DONE_IN_OBSERVED: 20}, "memory": {DONE_OBSERVED: 10, DONE_IN_OBSERVED: 20}, "busy": {DONE_TIMED: 20},
    }
    for mode, ends in wanted.items():
        run, records = recorded(box, [program], env=shim(box, mode))
        same(f"{mode}: ends", dict(records.statuses()), ends)
        same(f"{mode}: dispatches", sum(work["kind"] == KERNEL for work in records.works.values()), 10)
        losses = run.summary["losses"]
        same(f"{mode}: counted", [losses["works_untimed"], losses["works_failed"], losses["works_unfinished"]],
             [ends.get(DONE_IN_OBSERVED, 0), ends.get(DONE_FAILED, 0), 0])
        spans = [(row["ts"], row["end"]) for row in run.sql("select ts, ts + dur as end from slice where category like '%kernel%' order by ts")]
        residual = run.summary["devices"][0]["clock"]["residual_ns"]
        check(f"{mode}: its clock is {residual} ns off", residual < 100000)
        check(f"{mode}: spans {spans[:4]}", all(a[1] <= b[0] for a, b in zip(spans, spans[1:])))


ON_QUEUE = """select t.name as queue, s.name, s.ts, s.dur, s.category, extract_arg(s.arg_set_id, 'debug.observed_by_host') as observed,
    extract_arg(s.arg_set_id, 'debug.untimed') as untimed from slice s join track t on s.track_id = t.id
    where t.name like 'queue %' order by s.ts"""


@case("vulkan: several families and queues, of which some cannot time")
def queues(box):
    program = build(box, "vk_queues.c")
    run, _ = recorded(box, [program], env=shim(box, "queues"))
    told = [re.match(r"queue (\S+) \((\w+)\) (\d) (\d+) (\d+)$", line).groups() for line in run.stdout.splitlines() if line.startswith("queue ")]
    own = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("time ")]
    rows = run.sql(ON_QUEUE)
    same("tracks", {row["queue"] for row in rows}, {f"queue {name} ({word})" for name, word, *_ in told})
    for name, word, timed, works, submits in told:
        mine = [row for row in rows if row["queue"] == f"queue {name} ({word})"]
        pieces = [row for row in mine if row["category"] != "group"]
        batches = [row for row in mine if row["category"] == "group"]
        same(f"{name}: works", len(pieces), int(works))
        same(f"{name}: pieces without times", sum(bool(row["untimed"]) for row in pieces), 0 if timed == "1" else int(works))
        same(f"{name}: submits that the host watched", len(batches), 0 if timed == "1" else int(submits))
        check(f"{name}: not marked", all(row["observed"] for row in batches))
        check(f"{name}: submits overlap", all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(batches, batches[1:])))
        stamps = sorted((int(begin), int(end)) for queue, _, begin, end in own if queue == name)
        for batch, (begin, end) in zip(batches, stamps):
            check(f"{name}: {batch['ts'] - begin} ns after the program's own begin, {end - batch['ts'] - batch['dur']} before its end",
                  batch["ts"] >= begin - 2000 and batch["ts"] + batch["dur"] <= end + 2000)
    same("queues", run.summary["devices"][0]["queues"], len(told))
    same("all", run.summary["devices"][0]["works_timed"] + run.summary["devices"][0]["works_untimed"], sum(int(works) for *_, works, _ in told))
    # one command buffer on two queues: what cannot be timed there is not timed wrongly
    run, records = recorded(box, [program, "200000"], env=shim(box, "queues"))
    same("one after the other", dict(records.statuses()), {DONE_TIMED: 8})
    run, records = recorded(box, [program, "0"], env=shim(box, "queues"))
    same("kernels", sum(work["kind"] == KERNEL for work in records.works.values()), 4)
    check(f"ends {records.statuses()}", records.statuses()[DONE_TIMED] + records.statuses()[DONE_IN_TIMED] >= 8)
    check("said", not records.statuses()[DONE_IN_TIMED] or "on two queues at once" in run.text)


@case("vulkan: threads that record and submit to the queue in turn")
def threads(box):
    run, records = recorded(box, [build(box, "vk_threads.c", flags=["-pthread"])])
    same("work", records.seen(), truth(run))
    same("ends", dict(records.statuses()), {DONE_TIMED: sum(truth(run).values())})


@case("vulkan: a thread with the smallest stack")
def small_stack(box):
    check_scene(box, [build(box, "vk_small.c", flags=["-pthread"])])


@case("vulkan: command buffers come and go while other threads record")
def churn(box):
    run = box.run([build(box, "vk_churn.c", flags=["-pthread"])])
    same("status, output", (run.status, run.stdout), (0, "done\n"))
    same("kernels", run.summary["devices"][0]["kernels"], 1)


@case("vulkan: devices made while other threads are at work on the heap, and many at once")
def crowd(box):
    program = build(box, "vk_crowd.c", flags=["-pthread"])
    for what, rounds, devices in (("noise", 10, 10), ("made", 20, 20), ("threads", 10, 80), ("alive", 5, 7), ("asked", 50, 50)):
        run = box.run([program, what, str(rounds)])
        device, did = run.summary["devices"][0], int(run.stdout.split()[-1])
        same(f"{what}: dispatches, all timed", (run.status, device["kernels"], device["works_timed"], run.summary["losses"]["works_untimed"]), (0, did, did, 0))
        same(f"{what}: who takes the stamps", device["clock"]["kind"], "host")
        same(f"{what}: queues", device["queues"], devices)


@case("vulkan: memory is freed while another thread destroys what is bound in it")
def loose(box):
    run = box.run([build(box, "vk_churn.c", flags=["-pthread"]), "memory"])
    same("status, output", (run.status, run.stdout), (0, "done\n"))
    device = run.summary["devices"][0]
    same("memory, and things in it", (device["allocs"], device["frees"], device["objects"]), (3001, 3001, 16 * 3000 + 1))
    same("ends that are told twice", run.summary["losses"]["unknown_ids"], 0)


def watched(box, words, env):
    """-> (run, highest RSS of the collector in KiB)"""
    trace, high = box.new_trace(), 0
    process = subprocess.Popen([box.tools.mlprof, "run", "--quiet", "-o", trace, "--", *words], stdout=subprocess.PIPE, text=True, cwd=box.path,
                               env={**os.environ, **env})
    while process.poll() is None:
        with contextlib.suppress(OSError), open(f"/proc/{process.pid}/status") as file:
            high = max([high] + [int(line.split()[1]) for line in file if line.startswith("VmHWM")])
        time.sleep(0.01)
    return Run(box, process.stdout.read(), "", process.wait(), trace, 0), high


@case("vulkan: a million dispatches, nothing piles up", alone=True)
def piles(box):
    """in many small submits, then in few large ones; the device on the submitting core, as lavapipe's threads take 20 us for each"""
    program = build(box, "vk_long.c")
    for few, many, each, env in ((2000, 20000, 10, {}), (200, 2000, 500, {}), (200, 2000, 100, deaf(box))):
        runs = [watched(box, [program, str(submits), str(each)], {"LP_NUM_THREADS": "0", **env}) for submits in (few, many)]
        for (run, _), submits in zip(runs, (few, many)):
            same("status", run.status, 0)
            device = run.summary["devices"][0]
            same("kernels, all timed", (device["kernels"], device["works_timed"]), (submits * each, submits * each))
            same("dropped", run.summary["losses"]["records"], 0)
        (small, low), (large, high) = ((int(run.stdout.split()[-1]), collector) for run, collector in runs)
        check(f"the program's memory grew from {small} to {large} KiB", large - small < 3000)
        check(f"the collector took {low} KiB, then {high}", high < 200 << 10)
        box.note(f"{many} submits of {each}: program {small >> 10} MiB after a tenth, {large >> 10} at the end; collector {low >> 10}, {high >> 10}")


# ---- real clients ----------------------------------------------------------------------------

@case("vulkan: vulkaninfo")
def vulkaninfo(box):
    plain, run = box.native(["vulkaninfo"]), box.run(["vulkaninfo"])
    same("output", (run.status, run.stdout), (plain.status, plain.stdout))
    same("devices", len(run.summary["devices"]), 1)


@case("vulkan: vkcube")
def vkcube(box):
    with open(box.file("display"), "w") as number:
        server = subprocess.Popen(["Xvfb", "-displayfd", str(number.fileno()), "-screen", "0", "640x480x24", "-nolisten", "tcp"],
                                  pass_fds=[number.fileno()], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            display = open(box.file("display")).read().strip()
            if display:
                break
            threading.Event().wait(0.05)
        env = {"DISPLAY": ":" + display}
        plain = box.native(["vkcube", "--c", "60"], env)
        run = box.run(["vkcube", "--c", "60"], env=env)
        same("status", (run.status, run.stdout), (plain.status, plain.stdout))
        device = run.summary["devices"][0]
        check(f"submits timed whole: {device['works_timed']}", device["works_timed"] >= 60 and not device["works_untimed"])
        checked = box.run(["vkcube", "--c", "20"], env={**env, **VALIDATION})
        check(f"validation: {checked.stdout}", "VUID" not in checked.stdout)
    finally:
        server.terminate()
        server.wait()


@case("vulkan: IREE, against its own profile", alone=True)
def iree(box):
    tools = os.path.dirname(client_python())
    module, profile = box.file("model.vmfb"), box.file("profile")
    with open(os.path.join(WORKLOADS, "vk_matmul.mlir")) as file:       # longer ones: who is put aside between the two stamps is so for milliseconds
        source = box.file("model.mlir", file.read().replace("192", "768"))
    done = box.native([os.path.join(tools, "iree-compile"), "--iree-hal-target-backends=vulkan-spirv", source, "-o", module])
    same(f"iree-compile: {done.stderr[-300:]}", done.status, 0)
    words = [os.path.join(tools, "iree-run-module"), "--device=vulkan", "--function=main", f"--module={module}", "--input=768x768xf32=1",
             "--input=768x768xf32=0.01"]
    run, records = recorded(box, words)
    same("kernels", [(k["name"], k["calls"]) for k in run.summary["kernels"]], [("main_dispatch_0_matmul_768x768x768_f32", 2)])
    check_slabs(run, 768 * 768 * 4)
    box.run([*words, "--device_profiling_mode=queue-events,dispatch-events", f"--device_profiling_output={profile}"])
    kernels = box_summary(box)["kernels"]
    told = box.native([os.path.join(tools, "iree-profile"), "dispatch", "--format=jsonl", profile]).stdout
    groups = [json.loads(line) for line in told.splitlines() if '"dispatch_group"' in line]
    same("names and counts", [(k["name"], k["calls"]) for k in kernels], [(g["key"], g["count"]) for g in groups])
    for kernel, group in zip(kernels, groups):
        check(f"{kernel['total_ns']} ns, IREE says {group['total_ns']}", abs(kernel["total_ns"] - group["total_ns"]) <= group["total_ns"] * 0.03)
        box.note(f"{kernel['name']}: {kernel['total_ns'] / 1e6:.3f} ms, IREE says {group['total_ns'] / 1e6:.3f}")


def check_slabs(run, tensor):
    """IREE's blocks of 64 MiB: one takes what comes from the host, the other holds the tensors of the model"""
    slabs = [b for b in run.summary["devices"][0]["blocks"] if b["bytes"] == 64 << 20]
    used = [b for b in slabs if b["used_bytes"]]
    check(f"blocks: {slabs}", len(slabs) >= 1 and used)
    for block in used:
        check(f"tensors: {block}", all(r["bytes"] == tensor and not r["offset"] % 16 for r in block["largest"]))
        same("all of them", block["used_bytes"], tensor * block["used_ranges"])
    check("by the kernel", any(r["by"] == "main_dispatch_0_matmul_768x768x768_f32" for b in used for r in b["largest"]))


def box_summary(box):
    last = max(glob.glob(box.file("*.summary.json")), key=os.path.getmtime)
    with open(last) as file:
        return json.load(file)


@case("vulkan: ncnn, by the loader and straight to the driver")
def ncnn(box):
    words = [client_python(), os.path.join(WORKLOADS, "vk_ncnn.py"), box.path]
    driver = glob.glob("/usr/lib/*/libvulkan_lvp.so")
    for env in (None, {"NCNN_VULKAN_DRIVER": driver[0]}):
        run, records = recorded(box, words, env=env)
        kernels = run.summary["kernels"]
        check(f"kernels: {kernels}", sum(k["calls"] for k in kernels) >= 3)
        same("ends", set(records.statuses()), {DONE_TIMED})
        check("local sizes", all(work["local"] for work in records.works.values() if work["kind"] == KERNEL))


@case("vulkan: wgpu")
def wgpu(box):
    run, records = recorded(box, [client_python(), os.path.join(WORKLOADS, "vk_wgpu.py")])
    by_device = {kernel["device"].split(":")[0]: (kernel["name"], kernel["calls"]) for kernel in run.summary["kernels"]}
    same("kernels, as the device and as the library had them", by_device, {"Vulkan 0": ("scale_add", 3), "wgpu": ("scale_add", 3)})
    same("ends", set(records.statuses()), {DONE_TIMED})


def register(tools):
    pass
