#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_consumers.py LIBRARY - NumPy and PyTorch read what ebb exports, ebb what they export. TAP.

The library is called through ctypes; capsules are made here, as a binding would make them. A
consumer that is not installed is skipped.
"""

import ctypes
import gc
import itertools
import sys

SHARE, IF_NEEDED, COPY = range(3)
INT, UINT, FLOAT, OPAQUE, BFLOAT, COMPLEX, BOOL = range(7)
NAME, USED = b"dltensor", b"used_dltensor"

python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Region(ctypes.Structure):
    _fields_ = [("lane", ctypes.c_void_p), ("generation", ctypes.c_uint64)]


class Dtype(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [("object", ctypes.c_uint64 * 8), ("data", ctypes.c_void_p),
                ("storage", ctypes.c_void_p), ("dtype", Dtype), ("ndim", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64))]


class Stats(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("others", ctypes.c_uint64 * 20),
                ("held", ctypes.c_uint64)]


class Ebb:
    """The functions of the library with their types. The interpreter's lock stays with us: what
    others made may need it when it is given back."""

    def __init__(self, path):
        self.library = ctypes.PyDLL(path)
        integers = ctypes.POINTER(ctypes.c_int64)
        tensor = ctypes.POINTER(Tensor)
        self.open = self.declare("ebb_region_open", Region, ctypes.c_void_p)
        self.close = self.declare("ebb_region_close", ctypes.c_int, Region)
        self.new = self.declare("ebb_tensor_new", tensor, Region, Dtype, ctypes.c_int, integers)
        self.view = self.declare("ebb_tensor_view", tensor, Region, tensor, ctypes.c_int,
                                 integers, integers, ctypes.c_int64)
        self.export = self.declare("ebb_tensor_export", ctypes.c_void_p, tensor, ctypes.c_int)
        self.take = self.declare("ebb_tensor_import", tensor, Region, ctypes.c_void_p,
                                 ctypes.c_int)
        self.end = self.declare("ebb_object_end", ctypes.c_int, tensor)
        self.count = self.declare("ebb_region_count_exports", ctypes.c_size_t, Region)
        self.stats = self.declare("ebb_process_read_stats", ctypes.c_int, ctypes.POINTER(Stats))
        self.why = self.declare("ebb_last_error_text", ctypes.c_char_p)

    def declare(self, name, result, *arguments):
        function = getattr(self.library, name)
        function.restype, function.argtypes = result, arguments
        return function

    def held(self):
        stats = Stats(size=ctypes.sizeof(Stats))
        assert self.stats(stats) == 0, self.why()
        return stats.held


def integers(values):
    return (ctypes.c_int64 * max(1, len(values)))(*values)


class Exporter:
    """What from_dlpack() functions ask."""

    def __init__(self, ebb, tensor, mode=IF_NEEDED):
        self.ebb, self.tensor, self.mode = ebb, tensor, mode

    def __dlpack__(self, stream=None):
        managed = self.ebb.export(self.tensor, self.mode)
        assert managed, self.ebb.why()
        return python.PyCapsule_New(managed, NAME, None)

    def __dlpack_device__(self):
        return (1, 0)


def product(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def make(ebb, region, dtype, shape):
    """A tensor of bytes 0, 1, 2 ... modulo a prime, and these bytes."""
    tensor = ebb.new(region, Dtype(*dtype, 1), len(shape), integers(shape))
    assert tensor, ebb.why()
    size = product(shape) * dtype[1] // 8
    data = bytes(i % (2 if dtype[0] == BOOL else 251) for i in range(size))
    ctypes.memmove(tensor.contents.data, data, size)
    return tensor, data


SHAPES = [(), (1,), (7,), (3000,), (64, 64), (2, 3, 500), (3, 0, 5), (1,) * 32, (2, 1, 1, 2000)]


def views(shape):
    """Shapes and strides of views of a row-major tensor: turned, every second one, repeated."""
    strides = [product(shape[i + 1:]) for i in range(len(shape))]
    yield shape, strides
    yield shape[::-1], strides[::-1]
    yield tuple((size + 1) // 2 for size in shape), [2 * stride for stride in strides]
    yield (3,) + tuple(shape[1:]), [0] + strides[1:]


class Numpy:
    name = "numpy"
    dtypes = {(INT, 8): "i1", (INT, 16): "i2", (INT, 32): "i4", (INT, 64): "i8", (UINT, 8): "u1",
              (UINT, 16): "u2", (UINT, 32): "u4", (UINT, 64): "u8", (FLOAT, 16): "f2",
              (FLOAT, 32): "f4", (FLOAT, 64): "f8", (COMPLEX, 64): "c8", (COMPLEX, 128): "c16"}
    refused = [(BFLOAT, 16), (BOOL, 8)]

    def __init__(self):
        import numpy
        self.module = numpy
        if tuple(int(part) for part in numpy.__version__.split(".")[:2]) >= (1, 25):
            self.refused = [(BFLOAT, 16)]

    def read(self, exporter):
        return self.module.from_dlpack(exporter)

    def bytes(self, array):
        return array.tobytes()

    def address(self, array):
        return array.__array_interface__["data"][0]

    def expected(self, data, dtype, shape, strides):
        typed = self.module.frombuffer(data, self.dtypes[dtype])
        bytes_ = [stride * typed.itemsize for stride in strides]
        return self.module.lib.stride_tricks.as_strided(typed, shape, bytes_).tobytes()


class Torch(Numpy):
    name = "torch"
    dtypes = {key: Numpy.dtypes[key] for key in Numpy.dtypes if key[0] != UINT or key[1] == 8}
    refused = [(UINT, 16), (UINT, 32), (UINT, 64)]

    def __init__(self):
        super().__init__()
        import torch
        self.torch = torch
        if tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 3):
            self.refused = []

    def read(self, exporter):
        return self.torch.utils.dlpack.from_dlpack(exporter.__dlpack__())

    def bytes(self, array):
        return array.contiguous().numpy().tobytes()

    def address(self, array):
        return array.data_ptr()


def reads_every_data_type_and_view(ebb, consumer):
    region = ebb.open(None)
    for dtype, shape in itertools.product(consumer.dtypes, SHAPES):
        base, data = make(ebb, region, dtype, shape)
        for seen, strides in views(shape):
            if not shape or product(shape) == 0:
                seen, strides = shape, [product(shape[i + 1:]) for i in range(len(shape))]
            view = ebb.view(region, base, len(seen), integers(seen), integers(strides), 0)
            assert view, ebb.why()
            got = consumer.read(Exporter(ebb, view))
            assert tuple(got.shape) == tuple(seen), (got.shape, seen)
            wanted = consumer.expected(data, dtype, seen, strides)
            assert consumer.bytes(got) == wanted, (dtype, seen, strides)
            del got
    assert ebb.count(region) == 0
    assert ebb.close(region) == 0


def refuses_by_itself_what_it_does_not_know(ebb, consumer):
    """An error of the consumer's, never wrong elements."""
    region = ebb.open(None)
    for dtype in consumer.refused:
        tensor, _ = make(ebb, region, dtype, (3000,))
        managed = ebb.export(tensor, SHARE)
        try:
            consumer.read(Fixed(python.PyCapsule_New(managed, NAME, None)))
            raise AssertionError(f"{dtype} was read")
        except (RuntimeError, BufferError, TypeError, ValueError):
            delete(managed)
    assert ebb.close(region) == 0


class Fixed:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, stream=None):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def delete(managed):
    deleter = ctypes.cast(managed + 56, ctypes.POINTER(ctypes.c_void_p)).contents.value
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(managed)


def shares_the_bytes(ebb, consumer):
    region = ebb.open(None)
    tensor, _ = make(ebb, region, (FLOAT, 32), (3000,))
    got = consumer.read(Exporter(ebb, tensor, SHARE))
    assert consumer.address(got) == tensor.contents.data
    values = ctypes.cast(tensor.contents.data, ctypes.POINTER(ctypes.c_float))
    values[7] = 42
    assert got[7] == 42
    if consumer.name == "torch":  # to NumPy what it imports is read-only
        got[8] = 43
        assert values[8] == 43
    del got
    assert ebb.close(region) == 0


def reads_on_after_the_region_closed(ebb, consumer):
    before = ebb.held()
    region = ebb.open(None)
    tensor, data = make(ebb, region, (FLOAT, 64), (3000,))
    got = consumer.read(Exporter(ebb, tensor, SHARE))
    assert ebb.close(region) == 0
    assert ebb.held() >= before + len(data)
    scribbler = ebb.open(None)
    for _ in range(20):
        make(ebb, scribbler, (UINT, 8), (20000,))
    assert consumer.bytes(got) == data
    assert ebb.close(scribbler) == 0
    del got
    gc.collect()
    assert ebb.held() == before


def many_cycles_leave_nothing(ebb, consumer):
    before = ebb.held()
    for cycle in range(2000):
        region = ebb.open(None)
        tensor, _ = make(ebb, region, (FLOAT, 32), (300,))
        got = consumer.read(Exporter(ebb, tensor))
        if cycle % 2:
            del got
        assert ebb.close(region) == 0
    got = None
    assert ebb.held() == before


def is_read_by_ebb(ebb, consumer):
    region = ebb.open(None)
    source = consumer.module.arange(24, dtype="f4").reshape(4, 6)[1:, ::2]
    array = source if consumer.name == "numpy" else consumer.torch.from_numpy(source)
    capsule = array.__dlpack__()
    managed = python.PyCapsule_GetPointer(capsule, NAME)
    tensor = ebb.take(region, managed, SHARE)
    assert tensor, ebb.why()
    python.PyCapsule_SetName(capsule, USED)
    seen = tensor.contents
    assert seen.ndim == 2 and seen.shape[:2] == [3, 3] and seen.strides[:2] == [6, 2]
    assert seen.data == consumer.address(array)
    del array
    values = ctypes.cast(seen.data, ctypes.POINTER(ctypes.c_float))
    assert [values[6 * i + 2 * k] for i in range(3) for k in range(3)] == list(source.flatten())
    references = sys.getrefcount(source)
    assert ebb.end(tensor) == 0
    assert sys.getrefcount(source) < references
    assert ebb.close(region) == 0


CASES = [reads_every_data_type_and_view, refuses_by_itself_what_it_does_not_know,
         shares_the_bytes, reads_on_after_the_region_closed, many_cycles_leave_nothing,
         is_read_by_ebb]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_consumers.py LIBRARY")
    ebb, failed, number = Ebb(sys.argv[1]), False, 0
    print(f"1..{2 * len(CASES)}")
    for kind in (Numpy, Torch):
        try:
            consumer, reason = kind(), ""
        except ImportError as error:
            consumer, reason = None, str(error)
        for case in CASES:
            number += 1
            name = f"{kind.name}_{case.__name__}"
            if not consumer:
                print(f"ok {number} - {name} # SKIP {reason}")
                continue
            try:
                case(ebb, consumer)
                print(f"ok {number} - {name}", flush=True)
            except AssertionError as error:
                failed = True
                print(f"not ok {number} - {name}\n# {error!r}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
