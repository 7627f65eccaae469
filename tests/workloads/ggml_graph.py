"""ggml_graph.py [SCHEDULERS] - a product, a sum and a relu on schedulers of ggml, with callbacks of its own; what was computed goes to stdout.

The callback that only watches wants the product and nothing else; the one that stops ends each graph after the product.
"""
import ctypes
import hashlib
import json
import struct
import sys

import ggml_library

ROWS, COLUMNS, INNER, F32 = 5, 3, 1024, 0
library = ggml_library.load()
heard = []


def watch(tensor, ask, data):
    name = library.ggml_get_name(tensor).decode()
    heard.append((name, ask, data))
    return name == "product" if ask else True


def stop(tensor, ask, data):
    heard.append((library.ggml_get_name(tensor).decode(), ask, data))
    return ask and library.ggml_get_name(tensor) == b"product"


WATCH, STOP, NONE = ggml_library.EVALUATED(watch), ggml_library.EVALUATED(stop), ggml_library.EVALUATED()


def arena(tensors, graphs=0):
    bytes_needed = tensors * library.ggml_tensor_overhead() + graphs * library.ggml_graph_overhead()
    return library.ggml_init(ggml_library.Arena(bytes_needed, None, True))


def named(tensor, name):
    library.ggml_set_name(tensor, name)
    return tensor


def filled(tensor, values):
    library.ggml_backend_tensor_set(tensor, struct.pack(f"<{len(values)}f", *values), 0, 4 * len(values))


def main():
    backend = library.ggml_backend_cpu_init()
    library.ggml_backend_cpu_set_n_threads(backend, 1)
    weights = arena(3)
    left, right, copy = (named(library.ggml_new_tensor_2d(weights, F32, INNER, n), name) for n, name in ((ROWS, b"left"), (COLUMNS, b"right"), (ROWS, b"copy")))
    buffer, scratch = library.ggml_backend_alloc_ctx_tensors(weights, backend), library.ggml_backend_alloc_buffer(backend, 8 << 20)
    filled(left, [i % 7 - 3 for i in range(ROWS * INNER)])
    filled(right, [i % 5 - 2 for i in range(COLUMNS * INNER)])
    library.ggml_backend_tensor_set_2d(left, struct.pack("<4f", 1, 2, 3, 4), 0, 8, 2, 4 * INNER, 8)       # the first two of two rows
    library.ggml_backend_tensor_copy(left, copy)
    library.ggml_backend_tensor_memset(right, 0, 0, 16)

    steps = arena(16, 1)
    product = named(library.ggml_mul_mat(steps, copy, right), b"product")
    total = named(library.ggml_add(steps, product, product), b"total")
    last = named(library.ggml_relu(steps, total), b"last")
    graph = library.ggml_new_graph(steps)
    library.ggml_build_forward_expand(graph, last)

    schedulers = [library.ggml_backend_sched_new((ctypes.c_void_p * 1)(backend), None, 1, 64, False, False) for _ in range(int(sys.argv[1]) if sys.argv[1:] else 1)]
    first, out, digest = schedulers[0], (ctypes.c_float * (ROWS * COLUMNS))(), hashlib.sha256()

    def compute(scheduler):
        library.ggml_backend_sched_reset(scheduler)
        assert library.ggml_backend_sched_graph_compute(scheduler, graph) == 0
        library.ggml_backend_tensor_get(product, out, 0, ctypes.sizeof(out))
        digest.update(bytes(out))
        if callback is not STOP:
            library.ggml_backend_tensor_get(last, out, 0, ctypes.sizeof(out))
            digest.update(bytes(out))

    sizes = [library.ggml_backend_buffer_get_size(buffer), library.ggml_backend_buffer_get_size(scratch)]
    callback = None
    for scheduler in schedulers:
        compute(scheduler)
        sizes.append(library.ggml_backend_sched_get_buffer_size(scheduler, backend))
    for callback, times in ((WATCH, 2), (STOP, 2), (NONE, 1)):
        library.ggml_backend_sched_set_eval_callback(first, callback, 77)
        for _ in range(times):
            compute(first)
    print(digest.hexdigest(), heard)
    print(json.dumps({"buffers": sizes, "tensors": {"left": library.ggml_nbytes(left), "right": library.ggml_nbytes(right)}}), file=sys.stderr)
    for scheduler in schedulers:
        library.ggml_backend_sched_free(scheduler)
    for held in (buffer, scratch):
        library.ggml_backend_buffer_free(held)
    library.ggml_backend_free(backend)


main()
