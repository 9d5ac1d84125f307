#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_model.py FILE - writes the model of the onnxruntime servers: a tiny transformer.

Four layers of attention over any number of tokens, 32 wide, weights from a seeded generator. The
numbers below are those of onnx.proto's fields; opset 13.
"""

import array
import random
import sys

TOKENS, WIDTH, INNER, ANSWERS, LAYERS = 512, 32, 64, 16, 4
FLOAT, INT32 = 1, 6  # TensorProto.DataType
ATTRIBUTE_INT, ATTRIBUTE_INTS = 2, 7


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def attribute(name, value):
    if isinstance(value, int):
        content = number(3, value) + number(20, ATTRIBUTE_INT)
    else:
        content = b"".join(number(8, item) for item in value) + number(20, ATTRIBUTE_INTS)
    return text(5, text(1, name) + content)


def node(kind, inputs, output, **attributes):
    content = b"".join(text(1, name) for name in inputs) + text(2, output) + text(4, kind)
    content += b"".join(attribute(name, value) for name, value in attributes.items())
    return text(1, content)


def tensor(name, shape, values):
    content = b"".join(number(1, size) for size in shape) + number(2, FLOAT) + text(8, name)
    return text(5, content + text(9, array.array("f", values).tobytes()))


def value(field, name, kind, dimension):
    dimension = text(2, dimension) if isinstance(dimension, str) else number(1, dimension)
    shape = text(1, dimension)
    return text(field, text(1, name) + text(2, text(1, number(1, kind) + text(2, shape))))


def weights(source, name, rows, columns):
    scale = rows ** -0.5
    return tensor(name, (rows, columns),
                  [source.gauss(0, scale) for _ in range(rows * columns)])


def layer(source, at, given):
    """(its initializers, its nodes, the name of its result)"""
    def name(what):
        return f"{what}{at}"
    sizes = {"query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH), "value": (WIDTH, WIDTH),
             "out": (WIDTH, WIDTH), "up": (WIDTH, INNER), "down": (INNER, WIDTH)}
    initializers = b"".join(weights(source, name(f"w_{what}"), *size)
                            for what, size in sizes.items())
    nodes = b"".join(node("MatMul", [given, name(f"w_{what}")], name(what))
                     for what in ("query", "key", "value"))
    nodes += node("Transpose", [name("key")], name("across"), perm=[1, 0])
    nodes += node("MatMul", [name("query"), name("across")], name("raw"))
    nodes += node("Mul", [name("raw"), "scale"], name("scores"))
    nodes += node("Softmax", [name("scores")], name("shares"), axis=-1)
    nodes += node("MatMul", [name("shares"), name("value")], name("seen"))
    nodes += node("MatMul", [name("seen"), name("w_out")], name("attended"))
    nodes += node("Add", [given, name("attended")], name("middle"))
    nodes += node("MatMul", [name("middle"), name("w_up")], name("wide"))
    nodes += node("Relu", [name("wide")], name("bent"))
    nodes += node("MatMul", [name("bent"), name("w_down")], name("narrow"))
    nodes += node("Add", [name("middle"), name("narrow")], name("hidden"))
    return initializers, nodes, name("hidden")


def graph():
    source = random.Random(1)
    initializers = weights(source, "embedding", TOKENS, WIDTH)
    initializers += weights(source, "head", WIDTH, ANSWERS)
    initializers += tensor("scale", (), [WIDTH ** -0.5])
    nodes = node("Gather", ["embedding", "tokens"], "hidden")
    last = "hidden"
    for at in range(LAYERS):
        added, more, last = layer(source, at, last)
        initializers += added
        nodes += more
    nodes += node("ReduceMean", [last], "pooled", axes=[0], keepdims=0)
    nodes += node("MatMul", ["pooled", "head"], "answer")
    return nodes + text(2, "serve") + initializers + value(11, "tokens", INT32, "n") + \
        value(12, "answer", FLOAT, ANSWERS)


def main():
    opset = text(1, "") + number(2, 13)
    with open(sys.argv[1], "wb") as file:
        file.write(number(1, 7) + text(2, "ebb") + text(7, graph()) + text(8, opset))


if __name__ == "__main__":
    main()
