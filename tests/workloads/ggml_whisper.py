"""ggml_whisper.py MODEL TIMES STEPS - transcribes a tone by pywhispercpp, then encodes it and decodes words one by one.

whisper.cpp tells its own counts and times on stderr, and so does the loop of single words.
"""
import sys
import time

import _pywhispercpp
import numpy
from pywhispercpp.model import Model


def main():
    model = Model(sys.argv[1], n_threads=1, temperature_inc=0.0, greedy={"best_of": 1}, single_segment=True, no_timestamps=True, print_progress=False)
    for turn in range(int(sys.argv[2])):
        tone = numpy.sin(numpy.arange(16000) / (20 + turn)).astype("f4")
        print([(part.t0, part.t1, part.text) for part in model.transcribe(tone)])
    sys.stdout.flush()
    assert _pywhispercpp.whisper_encode(model._ctx, 0, 1) == 0
    begin = time.monotonic_ns()
    for step in range(int(sys.argv[3])):
        assert _pywhispercpp.whisper_decode(model._ctx, 100 + step, 1, step, 1) == 0
    loop = time.monotonic_ns() - begin
    _pywhispercpp.whisper_print_timings(model._ctx)
    print(f"loop time = {loop / 1e6:.4f} ms / {sys.argv[3]} runs", file=sys.stderr)


main()
