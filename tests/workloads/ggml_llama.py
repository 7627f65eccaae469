"""ggml_llama.py MODEL PROMPT STEPS [map] - reads a prompt and writes on by llama.cpp's C functions, and says on stderr what that was.

map: the model's file is mapped, not read.
"""
import ctypes
import hashlib
import json
import struct
import sys
import time

import ggml_library

WORDS, LOAD_MODE, NO_PERF, READ, MAP = 259, 24, 138, 0, 1       # places in this release's parameters, and what they take


def main():
    path, prompt, steps, mapped = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] == ["map"]
    library = ggml_library.load()
    library.llama_backend_init()
    parameters = library.llama_model_default_params()
    struct.pack_into("<i", parameters.bytes, LOAD_MODE, MAP if mapped else READ)
    model = library.llama_model_load_from_file(path.encode(), parameters)
    parameters = library.llama_context_default_params()
    struct.pack_into("<I", parameters.bytes, 0, 128)
    parameters.bytes[NO_PERF] = 0
    context = library.llama_init_from_model(model, parameters)
    library.llama_set_n_threads(context, 1, 1)

    digest, chosen, next_words = hashlib.sha256(), [], (ctypes.c_int32 * prompt)(*range(1, prompt + 1))
    assert library.llama_decode(context, library.llama_batch_get_one(next_words, prompt)) == 0
    begin = 0
    for _ in range(steps):
        logits = library.llama_get_logits_ith(context, -1)[:WORDS]
        digest.update(struct.pack(f"<{WORDS}f", *logits))
        chosen.append(max(range(WORDS), key=logits.__getitem__))
        next_words = (ctypes.c_int32 * 1)(chosen[-1])
        begin = begin or time.monotonic_ns()
        assert library.llama_decode(context, library.llama_batch_get_one(next_words, 1)) == 0
    loop = time.monotonic_ns() - begin
    library.llama_synchronize(context)
    perf = library.llama_perf_context(context)
    print(chosen, digest.hexdigest())
    print(json.dumps({"loop_ns": loop, "model_bytes": library.llama_model_size(model), **{name: getattr(perf, name) for name, _ in perf._fields_}}),
          file=sys.stderr)
    library.llama_free(context)
    library.llama_model_free(model)


main()
