"""ggml_server.py MODEL STEPS - a completion by xllamacpp's server; what it says of its own speed goes to stderr."""
import json
import sys

import xllamacpp


def main():
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.n_ctx, parameters.n_parallel, parameters.warmup, parameters.fit_params, parameters.verbosity = 1024, 1, False, False, 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    answer = server.handle_completions({"prompt": "hello", "n_predict": int(sys.argv[2]), "temperature": 0, "ignore_eos": True, "cache_prompt": False})
    print(answer["choices"], answer["usage"])
    print(json.dumps(answer["timings"]), file=sys.stderr)


main()
