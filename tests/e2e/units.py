"""units.py - the unit tests that meson knows, the same under sanitizers, and a minute of the fuzzers."""
import json
import os
import subprocess
import threading

from harness import ROOT, TESTS, Skip, case, check, same

FUZZ_SECONDS = 60
BUILD_LOCK = threading.Lock()


def unit_tests(build):
    done = subprocess.run(["meson", "introspect", "--tests", build], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else []


def build_tests(box, build, tests):
    targets = {os.path.relpath(word, build) for test in tests for word in test["cmd"] if word.startswith(build)}
    check("no unit tests", tests)
    done = box.native(["ninja", "-C", build, *sorted(targets)], timeout=600)
    same(f"ninja: {done.stdout[-1500:]}", done.status, 0)


def run_unit(box, build, test):
    run = box.native(test["cmd"], test["env"], timeout=120, cwd=test["workdir"] or build)
    same(f"status: {run.stdout[-800:]} {run.stderr[-1500:]}", run.status, 0)
    bad = [line for line in run.stdout.splitlines() if line.startswith("not ok")]
    check("\n".join(bad), not bad)


def add_unit(test):
    @case(f"unit: {test['name']}")
    def unit(box):
        with BUILD_LOCK:
            build_tests(box, box.tools.build, [test])
        run_unit(box, box.tools.build, test)


@case("unit: all again by clang, no warnings, AddressSanitizer and UBSan")
def sanitized(box):
    build = box.file("b")
    settings = {"CC": "clang", "CXX": "clang++", "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1"}
    done = box.native(["meson", "setup", build, ROOT, "-Dwerror=true", "-Db_sanitize=address,undefined", "-Db_lundef=false"], settings, timeout=120)
    same(f"meson: {done.stdout[-500:]}", done.status, 0)
    done = box.native(["ninja", "-C", build], settings, timeout=600)
    same(f"ninja: {done.stdout[-1500:]}", done.status, 0)
    tests = [test for test in unit_tests(build) if test["cmd"][0].startswith(os.path.join(build, "tests"))]
    build_tests(box, build, tests)
    for test in tests:
        run_unit(box, build, {**test, "env": {**test["env"], **settings}})


@case(f"fuzz: reader and model, probe files, {FUZZ_SECONDS} s", alone=False)
def fuzz(box):
    script = os.path.join(TESTS, "fuzz", "run")
    check("tests/fuzz/run is missing", os.path.exists(script))
    done = box.native([script, str(FUZZ_SECONDS)], {"FUZZ_BUILD": box.file("b")}, timeout=FUZZ_SECONDS + 240)
    same(f"fuzzer: {done.stdout[-800:]} {done.stderr[-1500:]}", done.status, 0)


def register(tools):
    for test in unit_tests(tools.build):
        add_unit(test)
