"""ggml_models.py - two models of random numbers, as small as they come: a GGUF that llama.cpp loads, and whisper.cpp's own format.

Both return the bytes of each tensor by name, which is what a library has to hold.
"""
import struct

import numpy

MAGIC = 0x67676d6c
WORDS = [b"<unk>", b"<s>", b"</s>"] + [b"<0x%02X>" % byte for byte in range(256)]
LAYERS, WIDTH, HEADS, FEED, CONTEXT = 2, 64, 4, 96, 1024


def llama_shapes():
    shapes = {"token_embd.weight": (len(WORDS), WIDTH), "output_norm.weight": (WIDTH,), "output.weight": (len(WORDS), WIDTH)}
    for i in range(LAYERS):
        block = {"attn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH, WIDTH), "attn_v": (WIDTH, WIDTH), "attn_output": (WIDTH, WIDTH),
                 "ffn_norm": (WIDTH,), "ffn_gate": (FEED, WIDTH), "ffn_up": (FEED, WIDTH), "ffn_down": (WIDTH, FEED)}
        shapes.update({f"blk.{i}.{name}.weight": shape for name, shape in block.items()})
    return shapes


def write_llama(path):
    import gguf
    random = numpy.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(WORDS)
    writer.add_token_scores([0.0] * len(WORDS))
    writer.add_token_types([gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    sizes = {}
    for name, shape in llama_shapes().items():
        tensor = (numpy.ones(shape) if "norm" in name else random.standard_normal(shape) * 0.1).astype("f4")
        writer.add_tensor(name, tensor)
        sizes[name] = tensor.nbytes
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sizes


STATE, AUDIO, TEXT, MELS, VOCABULARY, BINS = 32, 100, 64, 80, 51864, 201     # special words have fixed places in the vocabulary


def whisper_shapes():
    def both(name, *shape):
        return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}

    def attention(name):
        parts = both(f"{name}_ln", STATE)
        for part in ("query", "value", "out"):
            parts.update(both(f"{name}.{part}", STATE, STATE))
        return {**parts, f"{name}.key.weight": (STATE, STATE)}

    shapes = {"encoder.positional_embedding": (AUDIO, STATE), "encoder.conv1.weight": (STATE, MELS, 3), "encoder.conv1.bias": (STATE, 1),
              "encoder.conv2.weight": (STATE, STATE, 3), "encoder.conv2.bias": (STATE, 1), **both("encoder.ln_post", STATE),
              "decoder.positional_embedding": (TEXT, STATE), "decoder.token_embedding.weight": (VOCABULARY, STATE), **both("decoder.ln", STATE)}
    for side, names in (("encoder", ["attn"]), ("decoder", ["attn", "cross_attn"])):
        block = f"{side}.blocks.0."
        shapes.update({**both(block + "mlp_ln", STATE), **both(block + "mlp.0", 4 * STATE, STATE), **both(block + "mlp.2", STATE, 4 * STATE)})
        for name in names:
            shapes.update(attention(block + name))
    return shapes


def is_single(name, shape):
    """biases, norms and positions are kept in single precision, all else in half"""
    return len(shape) == 1 or name.endswith((".bias", "positional_embedding"))


def write_whisper(path):
    random = numpy.random.default_rng(1)
    sizes = {}
    with open(path, "wb") as file:
        file.write(struct.pack("<I11i", MAGIC, VOCABULARY, AUDIO, STATE, 2, 1, TEXT, STATE, 2, 1, MELS, 1))
        file.write(struct.pack("<2i", MELS, BINS) + random.random((MELS, BINS)).astype("f4").tobytes())
        file.write(struct.pack("<i", 256) + b"".join(struct.pack("<IB", 1, byte) for byte in range(256)))
        for name, shape in whisper_shapes().items():
            data = numpy.ones(shape) if "ln" in name and name.endswith("weight") else random.standard_normal(shape) * 0.2
            data = data.astype("f4" if is_single(name, shape) else "f2")
            file.write(struct.pack("<3i", data.ndim, len(name), data.dtype == "f2"))
            file.write(struct.pack(f"<{data.ndim}i", *reversed(shape)) + name.encode() + data.tobytes())
            sizes[name] = data.nbytes
    return sizes
