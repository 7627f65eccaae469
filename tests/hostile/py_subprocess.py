"""subprocess with close_fds, pipes, preexec_fn, a new session and a missing program"""
import os, subprocess, sys
print(subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 5"], capture_output=True, close_fds=True))
print(subprocess.check_output(["sort"], input=b"b\na\n"))
p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, preexec_fn=lambda: os.umask(0o77))
print(p.communicate(b"hello"), p.returncode)
try:
    subprocess.run(["/no/such"])
except FileNotFoundError as error:
    print(error)
print(subprocess.run([sys.executable, "-c", "import os; print(sorted(os.listdir('/proc/self/fd'))[:3])"], capture_output=True, text=True).stdout)
