#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gguf_model.py FILE - writes the model of the llama.cpp server: random, but whole.

Two layers of the architecture `llama`, 64 wide, float32, weights from a seeded generator, and a
vocabulary of bytes and made-up words. Numbers and names are those of GGUF, version 3.
"""

import array
import random
import struct
import sys

TOKENS, WIDTH, INNER, LAYERS, HEADS, CONTEXT = 512, 64, 128, 2, 4, 2048
U32, I32, F32, TEXT, ARRAY = 4, 5, 6, 8, 9  # kinds of values
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6  # kinds of tokens
ALIGNMENT = 32


def text(words):
    words = words.encode()
    return struct.pack("<Q", len(words)) + words


def entry(key, kind, value):
    if kind == TEXT:
        return text(key) + struct.pack("<I", kind) + text(value)
    return text(key) + struct.pack("<I" + {U32: "I", F32: "f"}[kind], kind, value)


def array_entry(key, kind, values):
    head = text(key) + struct.pack("<IIQ", ARRAY, kind, len(values))
    if kind == TEXT:
        return head + b"".join(text(value) for value in values)
    return head + array.array({I32: "i", F32: "f"}[kind], values).tobytes()


def vocabulary():
    """[(token, kind)]"""
    special = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    data = [(f"<0x{value:02X}>", BYTE) for value in range(256)]
    count = TOKENS - len(special) - len(data)
    return special + data + [(f"\u2581w{number}", NORMAL) for number in range(count)]


def entries():
    words = vocabulary()
    numbers = {"context_length": CONTEXT, "embedding_length": WIDTH, "block_count": LAYERS,
               "feed_forward_length": INNER, "attention.head_count": HEADS,
               "attention.head_count_kv": HEADS, "rope.dimension_count": WIDTH // HEADS,
               "vocab_size": TOKENS}
    found = [entry("general.architecture", TEXT, "llama"), entry("general.name", TEXT, "serve")]
    found += [entry(f"llama.{key}", U32, value) for key, value in numbers.items()]
    found += [entry("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
              entry("tokenizer.ggml.model", TEXT, "llama"),
              array_entry("tokenizer.ggml.tokens", TEXT, [word for word, _ in words]),
              array_entry("tokenizer.ggml.scores", F32, [-float(at) for at in range(TOKENS)]),
              array_entry("tokenizer.ggml.token_type", I32, [kind for _, kind in words]),
              entry("tokenizer.ggml.unknown_token_id", U32, 0),
              entry("tokenizer.ggml.bos_token_id", U32, 1),
              entry("tokenizer.ggml.eos_token_id", U32, 2)]
    return found


def shapes():
    """{name: sizes, the fastest first}"""
    found = {"token_embd.weight": (WIDTH, TOKENS)}
    for at in range(LAYERS):
        layer = {"attn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH, WIDTH),
                 "attn_v": (WIDTH, WIDTH), "attn_output": (WIDTH, WIDTH), "ffn_norm": (WIDTH,),
                 "ffn_gate": (WIDTH, INNER), "ffn_up": (WIDTH, INNER), "ffn_down": (INNER, WIDTH)}
        found.update({f"blk.{at}.{name}.weight": sizes for name, sizes in layer.items()})
    return found | {"output_norm.weight": (WIDTH,), "output.weight": (WIDTH, TOKENS)}


def weights(source, sizes):
    if len(sizes) == 1:
        return array.array("f", [1.0] * sizes[0])
    scale = sizes[0] ** -0.5
    return array.array("f", [source.gauss(0, scale) for _ in range(sizes[0] * sizes[1])])


def padded(content):
    return content + bytes(-len(content) % ALIGNMENT)


def main():
    source, tensors, data = random.Random(1), [], b""
    for name, sizes in shapes().items():
        tensors.append(text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0,
                                                len(data)))
        data += padded(weights(source, sizes).tobytes())
    values = entries()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    with open(sys.argv[1], "wb") as file:
        file.write(padded(head + b"".join(values) + b"".join(tensors)) + data)


if __name__ == "__main__":
    main()
