"""runtime_litert.py - a tiny model, x + x, on LiteRT's CPU device through the C API of libLiteRt.so, as a C program would."""
import ctypes
import os
import sys

import ai_edge_litert
import flatbuffers
from ai_edge_litert import schema_py_generated as schema

WIDTH, RUNS, STARTS, FLOAT32, HOST_MEMORY, CPU, READ, WRITE = 64, 5, 2, 1, 1, 1, 0, 1
POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t


def made(kind, **fields):
    thing = kind()
    for name, value in fields.items():
        setattr(thing, name, value)
    return thing


def model():
    tensors = [made(schema.TensorT, shape=[1, WIDTH], type=schema.TensorType.FLOAT32, buffer=1 + i, name=name) for i, name in enumerate("xy")]
    add = made(schema.OperatorT, opcodeIndex=0, inputs=[0, 0], outputs=[1], builtinOptionsType=schema.BuiltinOptions.AddOptions,
               builtinOptions=schema.AddOptionsT())
    graph = made(schema.SubGraphT, tensors=tensors, inputs=[0], outputs=[1], operators=[add], name="main")
    whole = made(schema.ModelT, version=3, buffers=[schema.BufferT() for _ in range(3)], subgraphs=[graph],
                 operatorCodes=[made(schema.OperatorCodeT, builtinCode=schema.BuiltinOperator.ADD, version=1)])
    builder = flatbuffers.Builder(1024)
    builder.Finish(whole.Pack(builder), b"TFL3")
    return bytes(builder.Output())


class Layout(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_uint32), ("sizes", ctypes.c_int32 * 8), ("strides", ctypes.c_uint32 * 8)]


class TensorType(ctypes.Structure):
    _fields_ = [("element", ctypes.c_int32), ("layout", Layout)]


def new(function, *arguments):
    """what the function stores through its last argument"""
    to = POINTER()
    if function(*arguments, ctypes.byref(to)):
        raise RuntimeError(function.__name__)
    return to


def floats(library, buffer, mode):
    at = POINTER()
    library.LiteRtLockTensorBuffer(buffer, ctypes.byref(at), mode)
    return (ctypes.c_float * WIDTH).from_address(at.value)


def main(path):
    with open(path, "wb") as file:
        file.write(model())
    library = ctypes.CDLL(os.path.join(os.path.dirname(ai_edge_litert.__file__), "libLiteRt.so"))
    environment = new(library.LiteRtCreateEnvironment, 0, None)
    loaded = new(library.LiteRtCreateModelFromFile, environment, path.encode())
    options = new(library.LiteRtCreateOptions)
    library.LiteRtSetOptionsHardwareAccelerators(options, CPU)
    compiled = new(library.LiteRtCreateCompiledModel, environment, loaded, options)
    shape = TensorType(FLOAT32, Layout(2, (ctypes.c_int32 * 8)(1, WIDTH)))
    buffers = [new(library.LiteRtCreateManagedTensorBuffer, environment, HOST_MEMORY, ctypes.byref(shape), SIZE(4 * WIDTH)) for _ in range(2)]
    floats(library, buffers[0], WRITE)[:] = [1.5] * WIDTH
    library.LiteRtUnlockTensorBuffer(buffers[0])
    run = [compiled, SIZE(0), SIZE(1), ctypes.byref(buffers[0]), SIZE(1), ctypes.byref(buffers[1])]
    codes = [library.LiteRtRunCompiledModel(*run) for _ in range(RUNS)]
    later = ctypes.c_bool()
    codes += [library.LiteRtRunCompiledModelAsync(*run, ctypes.byref(later)) for _ in range(STARTS)]
    run[0] = None
    print("codes", set(codes), "no model:", library.LiteRtRunCompiledModel(*run) != 0, "asynchronous:", later.value)
    print(sum(floats(library, buffers[1], READ)))
    library.LiteRtUnlockTensorBuffer(buffers[1])
    library.LiteRtDestroyTensorBuffer(buffers[0])               # the other one stays


main(sys.argv[1])
