"""readme.py - every command in README.md runs.

The commands stand in fences marked sh. Each runs as it is written, in a directory that looks like the
checkout, with the built mlprof on PATH and DESTDIR set, so that nothing leaves the scratch directory.
"""
import os
import re
import xml.etree.ElementTree as xml

from harness import ROOT, case, check, same

# These run everything, this test included: that they work is shown by getting here.
RUNNING = {"scripts/test"}
SHORTENED = {"scripts/bench": "scripts/bench --quick true"}


def commands():
    with open(os.path.join(ROOT, "README.md")) as file:
        fences = re.findall(r"^```sh\n(.*?)^```", file.read(), re.M | re.S)
    lines = [line.split("  #")[0].strip() for fence in fences for line in fence.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


@case("readme: every command runs")
def readme(box):
    for name in os.listdir(ROOT):
        if not name.startswith("build"):
            os.symlink(os.path.join(ROOT, name), box.file(name))
    os.symlink(box.tools.build, box.file("build"))
    env = {"PATH": os.path.dirname(box.tools.mlprof) + ":" + os.environ["PATH"], "DESTDIR": box.file("dest"), "MLPROF_TEST_BUILD": box.tools.build}
    words = commands()
    check("README.md has no commands", words)
    for command in words:
        if command in RUNNING:
            continue
        done = box.native(["bash", "-c", SHORTENED.get(command, command)], env, timeout=200)
        same(f"{command}: {done.stdout[-300:]} {done.stderr[-500:]}", done.status, 0)
    box.note(f"{len(words)} commands")


@case("readme: scripts/quickstart")
def quickstart(box):
    """prints the model's output, the summary and where the trace is; the peak is what the model counted"""
    done = box.native([os.path.join(ROOT, "scripts", "quickstart")], timeout=300)
    same(f"status: {done.stderr[-500:]}", done.status, 0)
    own = int(re.search(r"peak by its own count: (\d+) bytes", done.stdout).group(1))
    check("no word of the trace", "ui.perfetto.dev" in done.stdout and "perfetto-trace" in done.stdout)
    import json
    with open(box.file("mlprof-model.summary.json")) as file:
        summary = json.load(file)
    if "device: none" in done.stdout:
        same("peak", summary["peak"]["bytes"], own)
    else:
        names = {kernel["name"] for kernel in summary["kernels"]}
        same("kernels", names, {"attention_query", "attention_key", "attention_value", "feed_forward_up", "feed_forward_down"})
        plain = box.run([os.path.join(box.tools.build, "tests", "model"), os.path.join(ROOT, "build", "tests", "tiny.weights")])
        same("peak without the device", plain.summary["peak"]["bytes"], own)
    check("no pool for the weights", any(p["name"].endswith("tiny.weights") for p in summary["pools"]))
    iree = box.native([os.path.join(ROOT, "scripts", "quickstart"), "iree"], timeout=600)
    same(f"quickstart iree: {iree.stderr[-500:]}", iree.status, 0)
    with open(box.file("mlprof-iree-run-module.summary.json")) as file:
        kernels = json.load(file)["kernels"]
    check(f"IREE's kernels: {kernels}", any("matmul" in kernel["name"] for kernel in kernels))
    other = box.native([os.path.join(ROOT, "scripts", "quickstart"), "--", "sh", "-c", "echo hi; exit 3"], timeout=300)
    same("quickstart -- CMD", (other.status, other.stdout.splitlines()[0]), (3, "hi"))


def drawn(box, *window):
    """{class: [rectangle or path]} of the picture of quickstart's trace"""
    done = box.native([os.path.join(ROOT, "scripts", "picture"), "mlprof-model.perfetto-trace", "trace.svg", *window], timeout=100)
    same(f"scripts/picture: {done.stderr[-500:]}", done.status, 0)
    check("the picture is too large", os.path.getsize(box.file("trace.svg")) < 100_000)
    found = {}
    for element in xml.parse(box.file("trace.svg")).iter():
        found.setdefault(element.get("class"), []).append(element)
    return found


@case("readme: scripts/picture")
def picture(box):
    """three kernels of a fresh trace are drawn where the trace has them, with their names, and an arrow ends at each"""
    done = box.native([os.path.join(ROOT, "scripts", "quickstart")], timeout=300)
    same(f"quickstart: {done.stderr[-500:]}", done.status, 0)
    kernels = box.tools.ask(box.file("mlprof-model.perfetto-trace"), """select k.name, k.ts - trace_start() as start, k.dur,
        call.ts - trace_start() as called from flow join slice k on slice_in = k.id join slice call on slice_out = call.id
        where k.category = 'kernel' order by k.ts limit 3""")[1][0]
    first, last = kernels[0]["called"] - 100_000, kernels[2]["start"] + kernels[2]["dur"]
    found = drawn(box, "--from", str(first / 1e6), "--to", str(last / 1e6))
    same("kernels", len(found["kernel"]), 3)
    places = [(float(rect.get("x")), float(rect.get("width"))) for rect in found["kernel"]]
    ends = [float(arrow.get("d").split()[-2]) for arrow in found["arrow"]]
    scale = (sum(places[2]) - places[0][0]) / (last - kernels[0]["start"])
    for kernel, (x, width) in zip(kernels, places):
        wanted = places[0][0] + (kernel["start"] - kernels[0]["start"]) * scale, kernel["dur"] * scale
        check(f"{kernel} is at {x}, {width} wide instead of {wanted}", abs(x - wanted[0]) < 1 and abs(width - wanted[1]) < 2)
        check(f"no arrow ends at {kernel}: {ends}", any(abs(end - x) < 5 for end in ends))
    check(f"no calls or transfers: {list(found)}", {"enqueue", "wait"} <= set(found) and {"write", "read"} & set(found))
    same("curves", len(found["curve"]), 2)
    words = "".join(xml.parse(box.file("trace.svg")).getroot().itertext())
    same("names not in the picture", [kernel["name"] for kernel in kernels if kernel["name"] not in words], [])
    whole = drawn(box)
    box.note(f"the whole run: {os.path.getsize(box.file('trace.svg'))} bytes, {len(whole['kernel'])} kernels, {len(whole['arrow'])} arrows")
    check("no arrows in the whole run", len(whole["arrow"]) > 20)


def register(tools):
    pass
