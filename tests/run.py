"""run.py - runs the cases; the last line says how many passed. See e2e/harness.py."""
import argparse
import concurrent.futures
import importlib
import os
import shutil
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "e2e"))
import harness

MODULES = ["units", "rules", "ways", "truth", "names", "trace", "device_trace", "probe_trace", "probe_roles", "opencl", "vulkan", "devices", "iree", "probe_files", "probe_torture", "probe_bind", "probe_use", "probe_presets", "probe_tables", "torch", "libraries", "metal", "ggml", "accelerators", "runtimes", "hostile", "faults", "guard", "peers", "readme"]
PRINT = threading.Lock()


def say(*words):
    with PRINT:
        print(*words, flush=True)


def run_case(tools, name, function, keep):
    box = harness.Box(tools, name)
    start = time.monotonic()
    try:
        function(box)
        box.check_traces()
        result, why = "ok", ""
    except harness.Skip as skip:
        result, why = "skip", str(skip)
    except harness.Failure as failure:
        result, why = "FAIL", str(failure)
    except Exception:
        result, why = "FAIL", traceback.format_exc(limit=-3)
    line = f"{result:4} {name} ({time.monotonic() - start:.1f} s)"
    say(line + (": " + why if why else "") + (f"  [files in {box.path}]" if keep and result == "FAIL" else ""))
    for note in box.notes:
        say("     " + note)
    if not (keep and result == "FAIL"):
        box.close()
    return result


def run_all(tools, cases, jobs, keep):
    """Cases that need the machine for themselves come last."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        beside = [pool.submit(run_case, tools, name, function, keep) for name, function, alone in cases if not alone]
        results = [future.result() for future in beside]
    return results + [run_case(tools, name, function, keep) for name, function, alone in cases if alone]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", action="store_true", help="leave the files of failed cases")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()

    tools = harness.Tools(options.build)
    for module in MODULES:
        importlib.import_module(module).register(tools)
    cases = [row for row in harness.CASES if not options.names or any(word in row[0] for word in options.names)]
    if options.list:
        print("\n".join(name for name, _, _ in cases))
        return 0
    results = run_all(tools, cases, options.jobs, options.keep)
    tools.close()
    importlib.import_module("hostile").print_table()
    count = results.count
    skipped = f", {count('skip')} skipped" if count("skip") else ""
    print(f"{count('ok')} passed, {count('FAIL')} failed{skipped}")
    return 1 if count("FAIL") or not results else 0


if __name__ == "__main__":
    sys.exit(main())
