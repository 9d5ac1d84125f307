# SPDX-License-Identifier: Apache-2.0
"""DLPack both ways: with torch, with numpy, and with capsules that nobody honest would make."""

import ctypes
import datetime
import gc
import hashlib
import hmac
import itertools
import mmap
import threading
import unittest
import weakref
import zlib

import ebb
import numpy

from test_region import Refused

try:
    import torch
except ImportError:
    torch = None

INT, UINT, FLOAT, OPAQUE, BFLOAT, COMPLEX, BOOL = range(7)
COPIED = 2  # a flag
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Plain(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]
    name = b"dltensor"


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", DELETER), ("flags", ctypes.c_uint64),
                ("tensor", DLTensor)]
    name = b"dltensor_versioned"


def error_of(call):
    try:
        call()
    except ebb.Error as error:
        return error.name


class Producer:
    """A struct with elements 0, 1, 2 ... and whatever fields a test wants, and who deleted it."""

    def __init__(self, kind=Plain, shape=(2, 3), strides=None, **fields):
        self.elements = (ctypes.c_float * 64)(*range(64))
        self.shape = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self.strides = strides and (ctypes.c_int64 * len(strides))(*strides)
        self.deleted, self.act = 0, None
        self.struct = kind(deleter=DELETER(self.delete))
        if kind is Versioned:
            self.struct.major = 1
        self.struct.tensor = DLTensor(
            data=ctypes.addressof(self.elements), device_type=1, ndim=len(shape), code=FLOAT,
            bits=32, lanes=1, shape=ctypes.addressof(self.shape),
            strides=ctypes.addressof(self.strides) if strides else None)
        for name, value in fields.items():
            place = self.struct if hasattr(kind, name) else self.struct.tensor
            setattr(place, name, value)
        self.capsule = python.PyCapsule_New(ctypes.addressof(self.struct), kind.name, None)

    def delete(self, _):
        self.deleted += 1
        self.act and self.act()

    def is_taken(self):
        return not python.PyCapsule_IsValid(self.capsule, type(self.struct).name)


HUGE = 1 << 62
HOSTILE = [
    ("EBB_E_SHAPE", dict(shape=(-1,))), ("EBB_E_SHAPE", dict(shape=(2, -3))),
    ("EBB_E_SHAPE", dict(ndim=-1)), ("EBB_E_SHAPE", dict(ndim=33)),
    ("EBB_E_SHAPE", dict(ndim=2 ** 31 - 1)), ("EBB_E_SIZE", dict(shape=(HUGE, 4))),
    ("EBB_E_SIZE", dict(shape=(HUGE, HUGE, HUGE))),
    ("EBB_E_SIZE", dict(shape=(2, 3), strides=(HUGE, 1))),
    ("EBB_E_DTYPE", dict(lanes=0)), ("EBB_E_DTYPE", dict(bits=0)),
    ("EBB_E_DTYPE", dict(bits=255)), ("EBB_E_DTYPE", dict(code=99)),
    ("EBB_E_EXCHANGE", dict(data=None)), ("EBB_E_EXCHANGE", dict(shape_pointer=None)),
    ("EBB_E_EXCHANGE", dict(device_type=2)), ("EBB_E_EXCHANGE", dict(device_type=99)),
    ("EBB_E_EXCHANGE", dict(device_type=-1)), ("EBB_E_SIZE", dict(byte_offset=2 ** 64 - 1)),
    ("EBB_E_SIZE", dict(byte_offset=2 ** 63)),
]


class Hostile(Refused):
    def refuse(self, name, kind, fields, copy):
        fields = dict(fields)
        no_shape = "shape_pointer" in fields and fields.pop("shape_pointer") is None
        producer = Producer(kind, **fields)
        if no_shape:
            producer.struct.tensor.shape = None
        with ebb.Region() as region:
            before = region.stats
            with self.assertRaises(ebb.Error) as caught:
                region.tensor(producer.capsule, copy=copy)
            self.assertTrue(str(caught.exception))
            if not no_shape:
                self.assertEqual(caught.exception.name, name, fields)
            self.assertEqual(region.stats["blocks"], before["blocks"])
        self.assertFalse(producer.is_taken())
        self.assertEqual(producer.deleted, 0)

    def test_fields_that_lie_are_refused_and_stay_their_producers(self):
        for name, fields in HOSTILE:
            for kind in (Plain, Versioned):
                for copy in (None, True, False):
                    with self.subTest(fields=fields, kind=kind.__name__, copy=copy):
                        self.refuse(name, kind, fields, copy)

    def test_versions_and_flags_from_the_future_are_refused(self):
        self.refuse("EBB_E_EXCHANGE", Versioned, dict(major=2), None)
        self.refuse("EBB_E_EXCHANGE", Versioned, dict(flags=1 << 40), None)

    def test_a_struct_from_the_future_may_end_behind_what_it_must_have(self):
        bytes_there = ctypes.sizeof(Versioned) - ctypes.sizeof(DLTensor)
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                              ctypes.c_int, ctypes.c_long]
        libc.mprotect.argtypes = libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        page = mmap.PAGESIZE
        start = libc.mmap(None, 2 * page, mmap.PROT_READ | mmap.PROT_WRITE,
                          mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        libc.mprotect(start + page, page, 0)
        ctypes.c_uint32.from_address(start + page - bytes_there).value = 2
        capsule = python.PyCapsule_New(start + page - bytes_there, Versioned.name, None)
        with ebb.Region() as region:
            self.assertRefused("EBB_E_EXCHANGE", region.tensor, capsule)
        self.assertTrue(python.PyCapsule_IsValid(capsule, Versioned.name))
        libc.munmap(start, 2 * page)

    def test_negative_strides_and_odd_offsets_are_copied_or_refused(self):
        for fields in (dict(shape=(4,), strides=(-1,)), dict(shape=(4,), byte_offset=2)):
            producer = Producer(**fields)
            producer.struct.tensor.data += 16
            with ebb.Region() as region:
                self.assertRefused("EBB_E_EXCHANGE", region.tensor, producer.capsule, copy=False)
                tensor = region.tensor(producer.capsule)
                self.assertEqual(producer.deleted, 1)
                if "strides" in fields:
                    self.assertEqual(tensor.numpy().tolist(), [4, 3, 2, 1])
            self.assertEqual(producer.deleted, 1)

    def test_what_is_no_capsule_or_was_taken(self):
        producer = Producer()
        with ebb.Region() as region:
            tensor = region.tensor(producer.capsule)
            self.assertTrue(producer.is_taken())
            self.assertRaises(BufferError, region.tensor, producer.capsule)
            stranger = python.PyCapsule_New(1, b"something", None)
            self.assertRaises(BufferError, region.tensor, stranger)
            self.assertEqual(tensor.numpy().tolist(), [[0, 1, 2], [3, 4, 5]])
            del tensor
            self.assertEqual(producer.deleted, 1)

    def test_the_deleter_is_called_once_at_the_latest_by_the_close(self):
        for kind in (Plain, Versioned):
            producer = Producer(kind)
            region = ebb.Region()
            tensor = region.tensor(producer.capsule)
            region.close()
            self.assertEqual(producer.deleted, 1)
            del tensor, region
            gc.collect()
            self.assertEqual(producer.deleted, 1)

    def test_a_deleter_that_shows_its_capsule_again(self):
        for kind in (Plain, Versioned):
            producer, refused = Producer(kind), []
            with ebb.Region() as region:
                producer.act = lambda: refused.append(self.assertRaises(
                    BufferError, region.tensor, producer.capsule, copy=True))
                region.tensor(producer.capsule, copy=True)
            self.assertEqual((producer.deleted, len(refused)), (1, 1))

    def test_a_deleter_that_ends_the_region(self):
        for act in ("reset", "close"):
            for fields in (dict(), dict(shape=(4,), byte_offset=2)):  # copied: deleted at once
                region, producer, heard = ebb.Region(), Producer(**fields), []
                producer.act = lambda: heard.append(error_of(getattr(region, act)))
                tensor = region.tensor(producer.capsule, copy=None if fields else True)
                self.assertEqual((producer.deleted, heard), (1, ["EBB_E_BUSY"]))
                self.assertTrue(tensor.is_live)
            parent = ebb.Region()
            region = ebb.Region(parent=parent)
            tensor = region.zeros(5000)
            producer, heard = Producer(shape=(5000,), strides=(0,), byte_offset=2), []
            producer.act = lambda: (region.promote(tensor),
                                    heard.append(error_of(getattr(region, act))))
            tensor.copy_(producer.capsule)
            self.assertEqual(heard, ["EBB_E_BUSY"])
            self.assertTrue(tensor.is_live)
            region, producers = ebb.Region(), [Producer() for _ in range(20)]
            producers[5].act = getattr(region, act)
            with self.assertRaises(ebb.Error):
                region.stack([producer.capsule for producer in producers]).shape
            self.assertEqual([producer.deleted for producer in producers], [1] * 20)


class Exports(Refused):
    def test_keywords_of_the_protocol(self):
        with ebb.Region() as region:
            tensor = region.zeros((3,))
            self.assertEqual(tensor.__dlpack_device__(), (1, 0))
            for words in (dict(stream=None), dict(stream=-1), dict(dl_device=(1, 0)),
                          dict(copy=True), dict(copy=False), dict(max_version=(0, 8))):
                self.assertTrue(python.PyCapsule_IsValid(tensor.__dlpack__(**words), b"dltensor"))
            for version in ((1, 0), (1, 5), (2, 0)):
                self.assertTrue(python.PyCapsule_IsValid(tensor.__dlpack__(max_version=version),
                                                         b"dltensor_versioned"))
            for words in (dict(stream=1), dict(stream=1 << 64), dict(stream=-1 << 64),
                          dict(stream=1.5), dict(dl_device=(2, 0))):
                self.assertRaises(BufferError, tensor.__dlpack__, **words)
            self.assertRaises(TypeError, tensor.__dlpack__, max_version=1)
            self.assertEqual(region.exports, 0)

    def test_numpy_reads_what_is_exported(self):
        with ebb.Region() as region:
            tensor = region.zeros((4, 5), "int32")
            tensor.numpy()[...] = 7
            array = numpy.from_dlpack(tensor)
        self.assertTrue((array == 7).all())

    def test_imported_elements_are_exported_by_a_copy_only(self):
        source = numpy.arange(6.0)
        with ebb.Region() as region:
            tensor = region.tensor(source, copy=False)
            self.assertRaises(BufferError, tensor.__dlpack__, copy=False)
            self.assertTrue(memoryview(tensor).readonly)
            copied = numpy.from_dlpack(tensor)
            source[:] = 0
            self.assertEqual(copied.tolist(), list(range(6)))
            self.assertEqual(tensor.numpy().tolist(), [0] * 6)

    def test_who_wants_bytes_only_gets_them_in_one_dimension(self):
        for shape in ((), (6,), (2, 3), (0, 4), (1, 2, 3)):
            array = numpy.ones(shape, "f4")
            tensor = ebb.from_dlpack(array, copy=True)
            for read in (lambda of: hashlib.sha256(of).digest(), zlib.crc32,
                         lambda of: hmac.new(b"key", of, "sha256").digest()):
                self.assertEqual(read(tensor), read(array))
            self.assertEqual(memoryview(tensor).shape, shape)

    def test_complex_buffers_and_scalars_are_read(self):
        with ebb.Region() as region:
            for name in ("complex64", "complex128"):
                number = numpy.dtype(name).type(3 - 4j)
                array = numpy.full((2, 3), number)
                for source in (number, memoryview(array), memoryview(region.tensor(array)),
                               memoryview(array.T)):
                    tensor = region.tensor(source)
                    self.assertEqual(tensor.dtype, name)
                    self.assertTrue((tensor.numpy() == number).all())

    def test_buffers_of_structs_are_refused(self):
        try:
            import _testbuffer as testbuffer
        except ImportError:
            self.skipTest("this Python comes without _testbuffer")
        with ebb.Region() as region:
            for code, item in (("<lf", (1, 2.0)), ("<Lf", (1, 2.0)), ("<lhh", (1, 2, 3)),
                               ("Li", (7, 8)), ("lxxxx", (7,))):
                struct = testbuffer.ndarray([item], shape=[1], format=code)
                with self.assertRaisesRegex(TypeError, "format .* is none that ebb reads"):
                    region.tensor(struct)
            for code in ("l", "L", "@l", "@L"):
                made = region.tensor(testbuffer.ndarray([5], shape=[1], format=code))
                self.assertEqual(made.numpy().tolist(), [5])

    def test_arrays_of_other_elements_are_refused_for_their_dtype(self):
        others = {name: numpy.frombuffer(bytes(64), name)
                  for name in (">f4", ">i8", "M8[s]", "S4", "U2", "V8", "i4,f4", "longdouble")}
        others["O"] = numpy.array([None, 1], object)
        with ebb.Region() as region:
            for name, array in others.items():
                for lent in (array, array.copy()):
                    for copy in (None, True, False):
                        with self.subTest(dtype=name, writeable=lent.flags.writeable, copy=copy):
                            with self.assertRaises(TypeError) as caught:
                                region.tensor(lent, copy=copy)
                            self.assertEqual(str(caught.exception),
                                             f"{lent.dtype!r} is none that ebb reads")

    def test_arrays_of_other_classes_are_refused_likewise(self):
        class Plain(numpy.ndarray):
            dtype = property(lambda self: 1 // 0)

        class Knows(numpy.ndarray):
            def __dlpack__(self, **words):
                return numpy.arange(3).__dlpack__()

        structs = numpy.zeros(3, "i4,f4")
        days = numpy.zeros(3, "M8[s]")
        others = structs.view(numpy.recarray), numpy.char.array(["a", "b"]), days.view(Plain)
        with ebb.Region() as region:
            for lent in others:
                with self.subTest(type=type(lent)):
                    with self.assertRaisesRegex(TypeError, "dtype.* is none that ebb reads"):
                        region.tensor(lent)
            self.assertEqual(region.tensor(days.view(Knows)).numpy().tolist(), [0, 1, 2])

    def test_masked_arrays_are_refused(self):
        class Masked(numpy.ma.MaskedArray):
            pass

        lent = numpy.ma.array([1, 2, 3], mask=[0, 1, 0])
        with ebb.Region() as region:
            for masked in (lent, lent.view(Masked), numpy.ma.array(numpy.zeros(2, "M8[s]"))):
                for copy in (None, True, False):
                    with self.assertRaisesRegex(TypeError, "a masked array has a mask"):
                        region.tensor(masked, copy=copy)
                with self.assertRaisesRegex(TypeError, "a masked array has a mask"):
                    ebb.from_dlpack(masked)
            self.assertEqual(region.tensor(lent.filled(9)).numpy().tolist(), [1, 9, 3])

    def test_dropped_in_any_thread(self):
        pool = ebb.Pool()
        with ebb.Region(pool) as region:
            arrays = [region.zeros((1000,)).numpy() for _ in range(100)]
        threads = [threading.Thread(target=lambda: arrays and arrays.pop()) for _ in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(pool.stats["held"], 0)


    def test_what_numpy_cannot_read_is_no_array_of_objects(self):
        region = ebb.Region()
        tensor, bfloat = region.zeros((2, 3)), region.zeros(2, "bfloat16")
        self.assertEqual(numpy.asarray(tensor).tolist(), [[0] * 3] * 2)
        self.assertEqual(numpy.asarray(tensor, "int8").dtype, "int8")
        for ask in (numpy.asarray, lambda odd: numpy.add(odd, odd), lambda odd: numpy.stack([odd])):
            self.assertRaises(BufferError, ask, bfloat)
        region.close()
        for ask in (numpy.asarray, lambda odd: numpy.add(odd, odd), lambda odd: numpy.stack([odd])):
            self.assertRefused("EBB_E_STALE", ask, tensor)

    def test_what_the_buffer_protocol_lacks_is_named(self):
        named = {"bfloat16": (4, 16, 1), "code 2, 8 bits, 1 lanes": (2, 8, 1),
                 "code 0, 4 bits, 2 lanes": (0, 4, 2)}
        for name, (code, bits, lanes) in named.items():
            producer = Producer(code=code, bits=bits, lanes=lanes)
            with ebb.Region() as region:
                tensor = region.tensor(producer.capsule)
                self.assertEqual(tensor.dtype, name)
                end = name + (r", torch\(\) and DLPack have$" if name == "bfloat16" else "$")
                for ask in (memoryview, ebb.Tensor.numpy):
                    with self.assertRaisesRegex(BufferError, "no format for " + end):
                        ask(tensor)

    def test_arrays_as_numpy_asks_for_them(self):
        with ebb.Region() as region:
            tensor = region.zeros(5000)
            shared, same = tensor.__array__(), tensor.__array__(numpy.dtype("f4"), copy=False)
            copied, other = tensor.__array__(copy=True), tensor.__array__("f8")
            self.assertRaises(ValueError, tensor.__array__, "f8", copy=False)
            tensor.copy_(numpy.ones(5000, "f4"))
            self.assertEqual([array[0] for array in (shared, same, copied, other)], [1, 1, 0, 0])
            self.assertEqual((other.dtype, copied.dtype), ("float64", "float32"))


class Shares(Refused):
    """copy=False shares, or raises; and the bytes stay the same ones."""

    def sources(self, tensor):
        yield tensor
        yield tensor.numpy()
        yield memoryview(tensor)
        yield tensor.__dlpack__()
        yield tensor.__dlpack__(max_version=(1, 0))
        if torch:
            yield tensor.torch()

    def test_elements_of_regions_however_few_are_shared(self):
        with ebb.Region() as region, ebb.Region(parent=region) as child, ebb.Region() as stranger:
            for count in (1, 1024, 1025, 5000):
                for place in (region, child, stranger):
                    for copy in (False, None):
                        tensor = region.zeros(count, "uint8")
                        for number, source in enumerate(self.sources(tensor), 1):
                            taken = place.tensor(source, copy=copy)
                            taken.copy_(numpy.full(count, number, "uint8"))
                            self.assertEqual(tensor.numpy()[-1], number, (count, type(source)))

    def test_copies_are_none_of_the_source(self):
        with ebb.Region() as region:
            for count in (1, 5000):
                tensor = region.zeros(count)
                for source in self.sources(tensor):
                    taken = region.tensor(source, copy=True)
                    taken.copy_(numpy.ones(count, "f4"))
                    self.assertEqual(tensor.numpy()[0], 0)
                    self.assertTrue(taken.__dlpack__(copy=False))

    def test_two_tensors_of_one_storage_go_up_together(self):
        with ebb.Region() as parent, ebb.Region(parent=parent) as child:
            for count in (4, 5000):
                one = child.zeros(count)
                two = child.tensor(one, copy=False)
                child.promote([one, two])
                one.copy_(numpy.ones(count, "f4"))
                self.assertEqual(two.numpy()[0], 1)

    def test_what_shares_a_storage_goes_up_as_far_as_that_and_is_shared_beyond(self):
        for make in (ebb.Region.zeros, lambda region, count: region.tensor(numpy.zeros(count))):
            for count in (4, 5000):
                with ebb.Region() as run, ebb.Region(parent=run) as epoch:
                    step = ebb.Region(parent=epoch)
                    first = make(epoch, count)
                    shared, copied = step.tensor(first), step.tensor(first, copy=True)
                    self.assertRefused("EBB_E_NOT_OWNED", step.promote, [copied, shared], to=run)
                    self.assertIs(shared.region, step)
                    kept = run.tensor(shared, copy=False)
                    step.promote(copied, to=run)
                    step.promote(shared)
                    shared.numpy()[0] = 7
                    self.assertEqual((kept.numpy()[0], first.numpy()[0]), (7, 7))
                    epoch.close()
                    self.assertEqual((kept.numpy()[0], copied.numpy()[0]), (7, 0))

    def test_what_is_promoted_is_apart_from_what_was_handed_on_and_is_kept(self):
        hands = [ebb.Tensor.numpy, memoryview, lambda tensor: numpy.from_dlpack(tensor)]
        hands += [ebb.Tensor.torch] if torch else []
        for count, hand in itertools.product((4, 90000), hands):
            with ebb.Region() as run:
                with ebb.Region(parent=run) as step:
                    tensor = step.zeros(count)
                    handed = hand(tensor)
                    self.assertIs(step.promote(tensor), tensor)
                tensor.copy_(numpy.ones(count, "f4"))
                self.assertEqual((handed[count - 1], tensor.numpy()[count - 1]), (0, 1))

    def test_what_is_promoted_is_apart_from_another_of_its_storage_that_stays(self):
        for count in (4, 90000):
            with ebb.Region() as run, ebb.Region(parent=run) as step:
                tensor = step.zeros(count)
                stays = step.tensor(tensor, copy=False)
                step.promote(tensor)
                tensor.copy_(numpy.ones(count, "f4"))
                self.assertEqual((stays.numpy()[0], tensor.numpy()[0]), (0, 1))

    def test_large_tensors_of_which_nothing_is_kept_go_by_their_pages(self):
        with ebb.Region() as run, ebb.Region(parent=run) as step:
            tensor = step.zeros(90000)
            address = tensor.numpy().ctypes.data
            step.promote(tensor)
            self.assertEqual(tensor.numpy().ctypes.data, address)

    def test_what_was_taken_goes_with_all_tensors_that_see_it_or_stays(self):
        source = numpy.zeros(5000)
        with ebb.Region() as run, ebb.Region(parent=run) as step:
            tensor = step.tensor(source, copy=False)
            others = [step.tensor(tensor)]
            self.assertRefused("EBB_E_BUSY", step.promote, tensor)
            self.assertIs(tensor.region, step)
            others.append(others)  # a cycle
            del others
            gc.disable()  # for the program's own reasons
            step.promote(tensor)
            self.assertFalse(gc.isenabled())
            gc.enable()
            tensor.numpy()[0] = 7
            self.assertEqual(source[0], 7)

    def test_a_tensor_is_there_without_the_one_that_it_was_made_of(self):
        with ebb.Region() as region:
            blocks = region.stats["blocks"]
            for source in (numpy.arange(4.0), region.tensor(numpy.arange(4.0), copy=True)):
                first = source if isinstance(source, ebb.Tensor) else region.tensor(source)
                second = region.tensor(first)
                del first, source
                gc.collect()
                self.assertEqual(second.numpy().tolist(), [0, 1, 2, 3])
            del second
            self.assertEqual(region.stats["blocks"], blocks)

    def test_what_numpy_lent_is_handed_on(self):
        source = numpy.zeros((2, 3), "f4")
        with ebb.Region() as region, ebb.Region() as stranger:
            tensor = region.tensor(source, copy=False)
            again = stranger.tensor(tensor, copy=False)
            source.shape = 6
            seen = [tensor.numpy(), again.numpy()]
            seen += [tensor.torch(), again.torch()] if torch else []
            for number, array in enumerate(seen, 1):
                self.assertEqual(tuple(array.shape), (2, 3))
                array[1, 2] = number
                self.assertEqual(source[5], number)
                self.assertEqual(again.numpy()[1, 2], number)
        self.assertEqual(seen[0][1, 2], len(seen))

    def test_odd_arrays_are_handed_on(self):
        whole = numpy.arange(24.0).reshape(4, 6)
        with ebb.Region() as region:
            for source in (whole[:1][::-1], whole[1:2, ::-6], whole[:0][::-1], whole.T, whole[::2],
                           whole[0, 0:1].squeeze(), numpy.zeros((0, 3))[:, ::-1],
                           numpy.zeros(3, [("a", "f8"), ("b", "i4")])["a"][:1],
                           numpy.broadcast_to(whole[0], (3, 6))):
                tensor = region.tensor(source, copy=False)
                for array in [tensor.numpy()] + ([tensor.torch()] if torch else []):
                    self.assertEqual(tuple(array.shape), source.shape)
                    self.assertEqual(array.tolist(), source.tolist())

    def test_arrays_between_whose_elements_others_lie_are_copied(self):
        rows = numpy.zeros(4, [("a", "f8"), ("b", "i4"), ("c", "?")])
        rows["a"], rows["b"], rows["c"] = numpy.arange(4), numpy.arange(4, 8), [0, 1, 1, 0]
        with ebb.Region() as region:
            for name in "ab":
                for source in (rows[name], rows[name][::-2], rows[name].reshape(2, 2).T):
                    self.assertRaises(BufferError, region.tensor, source, copy=False)
                    for copy in (True, None):
                        tensor = region.tensor(source, copy=copy)
                        self.assertEqual(tensor.numpy().tolist(), source.tolist())
                        self.assertEqual(tensor.dtype, source.dtype.name)
                        tensor.numpy()[...] = 9
                        self.assertNotIn(9, source)
            self.assertEqual(region.tensor(rows["c"], copy=False).numpy().tolist(),
                             [False, True, True, False])
            filled = region.zeros(4, "int32").copy_(rows["b"])
            self.assertEqual(filled.numpy().tolist(), [4, 5, 6, 7])

    def test_what_would_be_copied_by_who_has_it_is_not_shared(self):
        source = bytearray(range(64))
        with ebb.Region() as region, ebb.Region() as stranger:
            tensor = region.tensor(source, copy=False)
            self.assertRaises(BufferError, stranger.tensor, tensor, copy=False)
            self.assertEqual(stranger.tensor(tensor).numpy().tolist(), list(source))
            region.tensor(source, copy=False)

    def test_a_producer_is_told_that_nothing_may_be_copied(self):
        class Copying:
            def __dlpack__(self, max_version=None, copy=None):
                asked.append(copy)
                if copy is False:
                    raise BufferError("it has to be copied")
                self.made = Producer(Versioned, flags=COPIED)
                return self.made.capsule

        class Older:
            def __dlpack__(self, max_version):
                self.made = Producer(Versioned, flags=COPIED)
                return self.made.capsule

        asked, copying, older = [], Copying(), Older()
        with ebb.Region() as region:
            self.assertRaises(BufferError, region.tensor, copying, copy=False)
            self.assertRefused("EBB_E_EXCHANGE", region.tensor, older, copy=False)
            self.assertFalse(older.made.is_taken())
            for made in (copying, older):
                self.assertEqual(region.tensor(made).numpy().tolist(), [[0, 1, 2], [3, 4, 5]])
            producer = Producer(Versioned, flags=COPIED)
            region.tensor(producer.capsule, copy=False)  # whose elements are shared
        self.assertEqual(asked, [False, None])

    def test_a_copy_that_numpy_makes_may_close_the_region(self):
        class Closing(numpy.ndarray):
            def __array_finalize__(self, source):
                region.close()

        rows = numpy.zeros(4, [("a", "f8"), ("b", "i4")])
        region = ebb.Region()
        source = rows["a"].view(Closing)
        region = ebb.Region()
        self.assertRefused("EBB_E_STALE", region.tensor, source)
        self.assertFalse(region.is_open)

    def test_what_is_read_only_stays_so(self):
        source = numpy.arange(3.0)
        source.flags.writeable = False
        with ebb.Region() as region:
            tensor = region.tensor(source, copy=False)
            self.assertFalse(tensor.numpy().flags.writeable)
            self.assertTrue(numpy.shares_memory(tensor.numpy(), source))
            if torch:
                tensor.torch()[0] = 7  # of a copy
            self.assertEqual(source[0], 0)

    def test_what_an_array_says_of_its_elements_is_not_believed(self):
        class Odd(numpy.ndarray):
            __array_struct__ = property(lambda self: numpy.zeros(1 << 10).__array_struct__)
            flags = property(lambda self: 1 / 0)

        class Number(numpy.float64):
            __array_struct__ = property(lambda self: numpy.array("text").__array_struct__)

        source = numpy.arange(16, dtype="f4").view(Odd)
        with ebb.Region() as region:
            tensor = region.tensor(source, copy=False)
            for seen in (tensor.numpy(), region.stack([source]).numpy()[0]):
                self.assertEqual((seen.tolist(), seen.dtype), (list(range(16)), "f4"))
            self.assertEqual(region.tensor(Number(2)).numpy(), 2)

    def test_an_ended_tensor_keeps_nothing(self):
        source = numpy.arange(5000.0)
        gone = weakref.ref(source)
        region = ebb.Region()
        tensor = region.tensor(source, copy=False)
        again = region.tensor(tensor)
        del source
        self.assertIsNotNone(gone())
        region.close()
        self.assertIsNone(gone())
        self.assertRefused("EBB_E_STALE", tensor.numpy)
        self.assertRefused("EBB_E_STALE", again.numpy)

    def test_who_has_a_tensor_of_its_own_elements_goes_after_the_region(self):
        class Bytes(bytearray):
            pass

        class Array(numpy.ndarray):
            pass

        for make in (Bytes, Array, lambda count: numpy.zeros(count).view(Array),
                     *([torch.zeros] if torch else [])):
            source = make(5000)
            source.tensor = ebb.from_dlpack(source, copy=False)
            region, gone = source.tensor.region, weakref.ref(source)
            del source
            gc.collect()
            self.assertEqual(gone() is not None, make in (Bytes, Array))
            region.close()
            gc.collect()
            self.assertTrue(gone() is None)

    def test_scalars_of_numpy_are_numbers_or_refused(self):
        with ebb.Region() as region:
            for number in (numpy.float16(2), numpy.int64(2), numpy.uint8(2)):
                self.assertEqual(region.tensor(number).numpy(), 2)
                self.assertEqual(region.tensor(number).dtype, number.dtype.name)
            for odd in (numpy.datetime64("2020-01-01"), numpy.timedelta64(3, "s")):
                self.assertRaises(TypeError, region.tensor, odd)


Mode = getattr(getattr(torch, "overrides", None), "TorchFunctionMode", None)
if torch:
    class Liar(torch.Tensor):
        """A subclass that says odd things, and is asked by nobody who reads its elements."""
        shapes = itertools.cycle([[16], (1 << 40,), torch.Size([1 << 20]), None])
        shape = property(lambda self: next(self.shapes))
        data_ptr = stride = is_contiguous = None

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if function is torch.Tensor.detach:  # once, as its elements may be elsewhere
                return super().__torch_function__(function, types, args, kwargs)
            raise AssertionError(f"{function.__name__} was asked of a subclass")

    class Wrapper(torch.Tensor):
        """A subclass whose elements are in another tensor."""

        @staticmethod
        def __new__(cls, inside):
            made = torch.Tensor._make_subclass(cls, torch.zeros(inside.shape))
            made.inside = inside
            return made

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            args = [arg.inside if isinstance(arg, cls) else arg for arg in args]
            return function(*args, **(kwargs or {}))

if Mode:
    class Acts(Mode):
        """Acts once, behind torch's answer to a question of that name; may answer otherwise."""

        def __init__(self, name, act=lambda: None, answer=None):
            super().__init__()
            self.name, self.act, self.answer = name, act, answer

        def __torch_function__(self, function, types, args=(), kwargs=None):
            answer = function(*args, **(kwargs or {}))
            getter_of = getattr(function, "__self__", None)
            if self.name not in (function.__name__, getattr(getter_of, "__name__", None)):
                return answer
            act, self.act = self.act, lambda: None
            act()
            return answer if self.answer is None else self.answer


class Meddler:
    """Five thousand ones, whose producer acts when he is asked for them."""

    def __init__(self, act):
        self.act = act

    def __dlpack__(self, **_):
        self.act()
        return numpy.ones(5000, "f4").__dlpack__()


@unittest.skipUnless(torch, "torch is missing")
class Torch(Refused):
    def test_a_subclass_is_not_asked_for_its_elements(self):
        source = torch.arange(16.0)
        liar = source.as_subclass(Liar)
        with ebb.Region() as region, ebb.Region() as stranger:
            for copy in (None, True, False):
                tensor = region.tensor(liar, copy=copy)
                self.assertEqual((tensor.shape, tensor.nbytes), ((16,), 64))
                seen = [tensor.numpy(), tensor.torch().numpy(), numpy.asarray(memoryview(tensor)),
                        stranger.tensor(tensor).numpy(), region.stack([liar, tensor]).numpy()[0],
                        region.pad([liar, tensor]).numpy()[:, 1], region.pack([liar])[0].numpy(),
                        region.empty(16).copy_(liar).numpy()]
                for array in seen:
                    self.assertEqual(array.tolist(), source.tolist())
                tensor.copy_(liar)
            source.share_memory_()
            self.assertRefused("EBB_E_RELEASED", tensor.numpy)

    def test_a_subclass_says_where_its_elements_are(self):
        source = torch.arange(16.0)
        with ebb.Region() as region:
            for tensor in (region.tensor(Wrapper(source)), region.stack([Wrapper(source)]),
                           region.pad([Wrapper(source)]), region.pack([Wrapper(source)])[0],
                           region.empty(16).copy_(Wrapper(source))):
                self.assertEqual(tensor.numpy().ravel().tolist(), source.tolist())
            self.assertRaises(ValueError, region.tensor, torch.nn.UninitializedParameter())

    def test_what_needs_a_gradient_is_read_whatever_its_class(self):
        source = torch.arange(16.0, requires_grad=True)
        for lent in (source * 1, (source * 1).as_subclass(Liar), torch.nn.Parameter(source)):
            with ebb.Region() as region:
                for tensor in (region.tensor(lent), region.stack([lent]), region.pad([lent])):
                    self.assertFalse(tensor.torch().requires_grad)
                    self.assertEqual(tensor.numpy().ravel().tolist(), list(range(16)))

    def test_elements_that_are_freed_while_others_are_asked_for_are_not_read(self):
        for method in (ebb.Region.stack, ebb.Region.pad, ebb.Region.pack):
            for taken in (lambda source, region: source, lambda source, region: source.numpy(),
                          lambda source, region: region.tensor(source, copy=False),
                          lambda source, region: source.as_subclass(Liar),
                          lambda source, region: torch.nn.Parameter(source, False)):
                source = torch.full((5000,), 7.0)
                with ebb.Region() as region:
                    first = taken(source, region)
                    self.assertRefused("EBB_E_RELEASED", method, region,
                                       [first, Meddler(source.share_memory_)])

    def test_elements_that_are_freed_while_the_source_is_asked_are_not_written(self):
        for take in (lambda source: source, torch.Tensor.numpy):
            source = torch.full((5000,), 7.0)
            tensor = ebb.from_dlpack(take(source))
            self.assertRefused("EBB_E_RELEASED", tensor.copy_, Meddler(source.share_memory_))
            self.assertTrue((source == 7).all())

    def test_what_gets_other_elements_while_others_are_asked_for_is_read_as_it_was(self):
        for change in (lambda source: setattr(source, "data", torch.zeros(3)),
                       lambda source: source.set_(torch.zeros(3))):
            source = torch.full((5000,), 7.0)
            with ebb.Region() as region:
                stacked = region.stack([source, Meddler(lambda: change(source))])
                self.assertEqual(stacked.numpy().mean(), 4)

    @unittest.skipUnless(Mode, "torch has no modes")
    def test_elements_that_are_freed_while_they_are_asked_for_do_not_come_in(self):
        for name in ("detach", "is_cpu", "shape", "data_ptr", "storage", "untyped_storage"):
            for change in (torch.Tensor.share_memory_, lambda source: source.storage().resize_(9)):
                for take in (lambda source: region.tensor(source),
                             lambda source: region.stack([source, source])):
                    source = torch.full((5000,), 7.0)
                    with ebb.Region() as region:
                        with Acts(name, lambda: change(source)):
                            try:
                                made = take(source)
                            except ebb.Error as error:
                                self.assertEqual(error.name, "EBB_E_RELEASED")
                                continue
                        self.assertTrue((made.numpy() == 7).all())

    @unittest.skipUnless(Mode, "torch has no modes")
    def test_what_a_mode_says_is_believed_within_the_storage_only(self):
        big = 1 << 62
        for name, answer, refused in (("shape", [16], TypeError), ("shape", 16, TypeError),
                                      ("shape", (17,), ebb.Error), ("shape", (-1,), TypeError),
                                      ("shape", (big, big), TypeError), ("data_ptr", 8, ebb.Error),
                                      ("shape", (2, 0, big, big), None), ("shape", (15,), None)):
            with ebb.Region() as region, Acts(name, answer=answer):
                if refused:
                    self.assertRaises(refused, region.tensor, torch.zeros(16))
                else:
                    self.assertEqual(region.tensor(torch.zeros(16)).shape, answer)

    @unittest.skipUnless(Mode, "torch has no modes")
    def test_nothing_comes_into_a_region_that_was_reset_while_torch_was_asked(self):
        source = torch.ones(5000)
        with ebb.Region() as region:
            for name, copy in itertools.product(("detach", "data_ptr"), (None, True)):
                with Acts(name, region.reset):
                    self.assertRefused("EBB_E_STALE", region.tensor, source, copy=copy)
                self.assertEqual(region.stats["blocks"], 0)

    def test_nothing_comes_into_a_region_that_was_reset_while_its_producer_was_asked(self):
        with ebb.Region() as region:
            for copy in (None, True):
                self.assertRefused("EBB_E_STALE", region.tensor, Meddler(region.reset), copy=copy)
                self.assertEqual(region.stats["blocks"], 0)

    def test_elements_that_torch_has_freed_are_not_used(self):
        changes = [lambda source: source.resize_(1 << 16),
                   lambda source: source.storage().resize_(0),
                   lambda source: (source.storage().resize_(0), source.storage().resize_(9)),
                   lambda source: source.share_memory_()]
        for change in changes:
            source = torch.full((5000,), 7.0)
            with ebb.Region() as region, ebb.Region(parent=region) as child:
                tensor, other = region.tensor(source, copy=False), region.zeros(5000)
                view = child.tensor(tensor, copy=False)
                self.assertEqual(view.torch()[4999], 7)
                change(source)
                for used in (tensor, view):
                    for use in (used.torch, used.numpy, used.__dlpack__, lambda: memoryview(used),
                                lambda: used.copy_(other), lambda: other.copy_(used),
                                lambda: numpy.asarray(used), lambda: region.stack([used]),
                                lambda: region.tensor(used), lambda: child.tensor(used, copy=True)):
                        self.assertRefused("EBB_E_RELEASED", use)
                    self.assertEqual(used.shape, (5000,))
            del tensor, view

    def test_arrays_of_what_torch_has_freed_are_not_used(self):
        for array_of in (lambda source: source.numpy(), lambda source: source.numpy()[10:90:2],
                         lambda source: source.detach().numpy().reshape(50, 100).T):
            source = torch.full((5000,), 7.0)
            with ebb.Region() as region, ebb.Region() as stranger:
                tensor = region.tensor(array_of(source), copy=False)
                again = stranger.tensor(tensor, copy=False)
                self.assertTrue((again.numpy() == 7).all() and (tensor.torch() == 7).all())
                source.share_memory_()
                for used in (tensor, again):
                    self.assertRefused("EBB_E_RELEASED", used.numpy)
                    self.assertRefused("EBB_E_RELEASED", used.torch)
                    self.assertRefused("EBB_E_RELEASED", used.copy_, used)

    def test_what_an_array_says_of_its_base_is_not_believed(self):
        class Odd(numpy.ndarray):
            calls = 0

            @property
            def base(self):
                Odd.calls += 1
                return self if Odd.calls < 100 else None

        source = torch.full((5000,), 7.0)
        with ebb.Region() as region:
            tensor = region.tensor(source.numpy().view(Odd)[:], copy=False)
            self.assertEqual(Odd.calls, 0)
            self.assertEqual(tensor.numpy()[4999], 7)
            source.share_memory_()
            self.assertRefused("EBB_E_RELEASED", tensor.numpy)

    def test_an_array_of_torchs_is_let_go_with_the_tensor(self):
        source = torch.full((5000,), 7.0)
        array = source.numpy()
        gone = [weakref.ref(array), weakref.ref(array.base)]
        del source
        tensor = ebb.from_dlpack(array)
        del array
        gc.collect()
        self.assertIsNotNone(gone[1]())
        self.assertEqual(tensor.numpy()[4999], 7)
        del tensor
        self.assertEqual([weak() for weak in gone], [None, None])

    def test_a_storage_that_grows_elsewhere_is_its_owners_still(self):
        source = torch.full((5000,), 7.0)
        with ebb.Region() as region:
            region.tensor(source, copy=False)
            source.resize_(1 << 16)  # which numpy() would forbid for ever
            self.assertEqual(source[4999], 7)

    def test_what_torch_lent_is_handed_on(self):
        class Typed(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                if function is torch.Tensor.numpy:
                    raise TypeError("a typed tensor is no array")
                return super().__torch_function__(function, types, args, kwargs)

        source = torch.zeros(2, 3)
        for lent in (source, source.as_subclass(Typed), torch.nn.Parameter(source)):
            with ebb.Region() as region, ebb.Region() as stranger:
                tensor = region.tensor(lent, copy=False)
                again = stranger.tensor(tensor, copy=False)
                seen = [tensor.torch(), again.torch(), tensor.numpy(), again.numpy()]
                self.assertIs(type(seen[0]), torch.Tensor)
                self.assertFalse(seen[0].requires_grad)
            for number, array in enumerate(seen, 1):
                array[1, 2] = number
                self.assertEqual(source[1, 2], number)
        boolean = torch.tensor([True, False])
        with ebb.Region() as region:
            tensor = region.tensor(boolean, copy=False)
            self.assertEqual((tensor.torch().dtype, tensor.numpy().dtype), (torch.bool, bool))
            bfloat = region.tensor(boolean.bfloat16())
            self.assertEqual(bfloat.torch().dtype, torch.bfloat16)
            self.assertRaises(BufferError, bfloat.numpy)

    def test_every_dtype_both_ways(self):
        for name in ("bool uint8 int8 int16 int32 int64 float16 float32 float64 bfloat16 "
                     "complex64 complex128").split():
            dtype = getattr(torch, name)
            for shape in [(), (3,), (0, 4), (30, 50)]:
                with ebb.Region() as region:
                    made = region.zeros(shape, dtype)
                    self.assertEqual(made.dtype, name)
                    seen = made.torch()
                    self.assertEqual((seen.dtype, tuple(seen.shape)), (dtype, shape))
                    seen.fill_(1)
                    again = region.tensor(seen)
                    self.assertTrue(torch.equal(again.torch(), torch.ones(shape, dtype=dtype)))
                self.assertTrue(torch.equal(seen, torch.ones(shape, dtype=dtype)))

    def test_views_and_odd_tensors(self):
        base = torch.arange(24.0).reshape(4, 6)
        with ebb.Region() as region:
            for view in (base.t(), base[1:, ::2], base[:, None].expand(4, 3, 6),
                         base.reshape(2, 2, 6).permute(2, 0, 1)):
                self.assertTrue(torch.equal(region.tensor(view).torch(), view))
            conjugated = torch.complex(base, base).conj()
            meta = torch.empty(3, device="meta")
            for odd, why in ((conjugated, "conjugated"), (conjugated.imag, "negated"),
                             (base.to_sparse(), "not strided"), (meta, "on a device"),
                             (torch.quantize_per_tensor(base, 1.0, 0, torch.qint8), "of a dtype"),
                             (base.reshape((1,) * 40 + (24,)), "up to 32 dimensions")):
                with self.assertRaisesRegex(TypeError, why):
                    region.tensor(odd)
            self.assertRaises(TypeError, region.empty, (3,), torch.quint8)

    def test_a_capsule_that_was_taken_is_told_from_one_of_others(self):
        with ebb.Region() as region:
            capsule = region.zeros(3000).__dlpack__()
            region.tensor(capsule)
            with self.assertRaisesRegex(BufferError, "taken before: it is 'used_dltensor'"):
                region.tensor(capsule)
            with self.assertRaisesRegex(BufferError, "none of DLPack, but 'datetime"):
                region.tensor(datetime.datetime_CAPI)

    def test_from_dlpack_keeps_a_region_of_its_own(self):
        source = torch.arange(5000.0)
        tensor = ebb.from_dlpack(source)
        source[0] = 9
        self.assertEqual(tensor.torch()[0], 9)
        self.assertEqual(ebb.from_dlpack(source, copy=True).torch()[0], 9)

    def test_what_is_lent_stays_when_the_tensor_gets_other_elements(self):
        for change in (lambda source: setattr(source, "data", torch.zeros(3)),
                       lambda source: source.set_(torch.zeros(3))):
            array = numpy.full(1 << 22, 7, "f4")
            gone = weakref.ref(array)
            source = torch.nn.Parameter(torch.from_numpy(array), False)
            del array
            tensor = ebb.from_dlpack(source)
            change(source)
            gc.collect()
            self.assertTrue((tensor.numpy() == 7).all())
            self.assertIsNotNone(gone())
            del tensor
            gc.collect()
            self.assertIsNone(gone())


if __name__ == "__main__":
    unittest.main()
