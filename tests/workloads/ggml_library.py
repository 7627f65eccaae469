"""ggml_library.py - the C functions of llama.cpp and ggml that xllamacpp's one library holds, for ctypes."""
import ctypes
import glob
import importlib.util
import os

P, I, U, S = ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t, ctypes.c_char_p


class Parameters(ctypes.Structure):
    """by value, in and out; longer than any of them is"""
    _fields_ = [("bytes", ctypes.c_uint8 * 320)]


class Batch(ctypes.Structure):
    _fields_ = [("tokens", I)] + [(f"pointer{i}", P) for i in range(6)]


class Perf(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("start_ms", "load_ms", "prompt_ms", "step_ms")] + [(name, I) for name in ("prompt", "steps", "reused")]


class Arena(ctypes.Structure):
    _fields_ = [("bytes", U), ("memory", P), ("no_alloc", ctypes.c_bool)]


EVALUATED = ctypes.CFUNCTYPE(ctypes.c_bool, P, ctypes.c_bool, P)
LOG = ctypes.CFUNCTYPE(None, I, S, P)
QUIET = LOG(lambda level, text, data: None)

FUNCTIONS = {                           # name: result, arguments
    "llama_log_set": (None, LOG, P), "llama_backend_init": (None,), "ggml_log_set": (None, LOG, P),
    "llama_model_default_params": (Parameters,), "llama_context_default_params": (Parameters,),
    "llama_model_load_from_file": (P, S, Parameters), "llama_model_free": (None, P), "llama_model_size": (ctypes.c_uint64, P),
    "llama_init_from_model": (P, P, Parameters), "llama_free": (None, P), "llama_set_n_threads": (None, P, I, I),
    "llama_batch_get_one": (Batch, P, I), "llama_decode": (I, P, Batch), "llama_synchronize": (None, P),
    "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), P, I), "llama_perf_context": (Perf, P),
    "ggml_op_desc": (S, P), "ggml_get_name": (S, P), "ggml_set_name": (P, P, S),
    "ggml_init": (P, Arena), "ggml_free": (None, P), "ggml_tensor_overhead": (U,), "ggml_graph_overhead": (U,),
    "ggml_new_tensor_2d": (P, P, I, ctypes.c_int64, ctypes.c_int64), "ggml_mul_mat": (P, P, P, P), "ggml_add": (P, P, P, P), "ggml_relu": (P, P, P),
    "ggml_new_graph": (P, P), "ggml_build_forward_expand": (None, P, P), "ggml_nbytes": (U, P),
    "ggml_backend_cpu_init": (P,), "ggml_backend_cpu_set_n_threads": (None, P, I), "ggml_backend_free": (None, P),
    "ggml_backend_alloc_ctx_tensors": (P, P, P), "ggml_backend_buffer_get_size": (U, P), "ggml_backend_buffer_free": (None, P),
    "ggml_backend_alloc_buffer": (P, P, U),
    "ggml_backend_tensor_set": (None, P, S, U, U), "ggml_backend_tensor_get": (None, P, P, U, U),
    "ggml_backend_tensor_set_2d": (None, P, S, U, U, U, U, U), "ggml_backend_tensor_memset": (None, P, ctypes.c_uint8, U, U),
    "ggml_backend_tensor_copy": (None, P, P),
    "ggml_backend_sched_new": (P, ctypes.POINTER(P), P, I, U, ctypes.c_bool, ctypes.c_bool), "ggml_backend_sched_free": (None, P),
    "ggml_backend_sched_reset": (None, P), "ggml_backend_sched_graph_compute": (I, P, P), "ggml_backend_sched_set_eval_callback": (None, P, EVALUATED, P),
    "ggml_backend_sched_get_buffer_size": (U, P, P),
}


def load():
    package = os.path.dirname(importlib.util.find_spec("xllamacpp").origin)
    library = ctypes.CDLL(glob.glob(os.path.join(package, "*.so"))[0])
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.llama_log_set(QUIET, None)
    library.ggml_log_set(QUIET, None)
    return library
