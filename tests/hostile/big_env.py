"""a 1 MiB environment, handed on to a program"""
import os, subprocess, sys
env = dict(os.environ)
for i in range(9):
    env[f"BIG{i}"] = "x" * 120000
out = subprocess.run(["/bin/sh", "-c", "echo ${#BIG8}; exec env | wc -c >/dev/null"], env=env, capture_output=True, text=True)
print(out.stdout.strip(), out.returncode)
