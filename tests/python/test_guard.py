# SPDX-License-Identifier: Apache-2.0
"""Batches that a device still copies from, by a driver in host memory (tests/fake_cuda)."""

import collections
import ctypes
import dataclasses
import functools
import multiprocessing
import os
import pickle
import sys
import threading
import types
import unittest
from unittest import mock

import ebb
import numpy
from ebb import delivery, loader, tensor as ebb_tensor

from test_region import Refused

if "EBB_CUDA_LIBRARY" not in os.environ:
    raise unittest.SkipTest("EBB_CUDA_LIBRARY does not name the fake driver")
try:
    import torch
except ImportError:
    torch = None

BYTES = 100000
driver = ctypes.CDLL(os.environ["EBB_CUDA_LIBRARY"])


def call(name, *arguments):
    code = getattr(driver, name)(*arguments)
    assert code == 0, (name, code)


@dataclasses.dataclass(slots=True)
class Slotted:
    image: object


def with_attribute(kind):
    """An instance of a class that has this one as its base, with the image as an attribute."""
    def make(got):
        value = type("Own", (kind,), {})()
        value.image = got["image"]
        return value
    return make


def with_slot(got):
    value = type("Slot", (list,), {"__slots__": ("image",)})([1])
    value.image = got["image"]
    return value


class Record:
    """Other names are those of a dict, and one that is not there is a KeyError."""

    __slots__ = ("data",)

    def __init__(self, got):
        self.data = {"image": got["image"]}

    def __getattr__(self, name):
        return self.data[name]


class Shadowed:
    __slots__ = ("image",)

    def __init__(self, got):
        Shadowed.image.__set__(self, got["image"])


class Computed(Shadowed):
    __slots__ = ()

    @property
    def image(self):
        raise RuntimeError("called")


class Hiding:
    def __init__(self, got):
        self.image = got["image"]

    @property
    def __dict__(self):
        raise RuntimeError("called")


class Device:
    """Some bytes of device 0, which the fake driver fills when its default stream runs."""

    def __init__(self):
        self.context, self.address = ctypes.c_void_p(), ctypes.c_uint64()
        call("cuInit", 0)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        call("cuCtxPushCurrent_v2", self.context)
        call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(BYTES))

    def copy(self, array):
        call("cuMemcpyHtoDAsync_v2", self.address, ctypes.c_void_p(array.ctypes.data),
             ctypes.c_size_t(BYTES), None)

    def read(self):
        got = numpy.zeros(BYTES, "u1")
        driver.fake_cuda_run()
        call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(got.ctypes.data), self.address,
             ctypes.c_size_t(BYTES), None)
        driver.fake_cuda_run()
        return got

    def close(self):
        call("cuMemFree_v2", self.address)
        call("cuCtxPopCurrent_v2", ctypes.byref(self.context))
        call("cuDevicePrimaryCtxRelease_v2", 0)


def batch(pool, number):
    return pool.send({"image": numpy.full(BYTES, number, "u1"), "label": [numpy.ones(3)]}).open()


class State(ctypes.Structure):
    """The first fields of struct fake_cuda_state."""

    _fields_ = [(name, ctypes.c_size_t) for name in
                ("allocations", "allocated_bytes", "registered", "registered_bytes",
                 "registrations", "events", "contexts", "stuck", "waiting", "copies")]
    _fields_.append(("rest", ctypes.c_char * 256))


def registered():
    """Stretches of pages that the driver has pinned in this process."""
    state = State()
    driver.fake_cuda_look(ctypes.byref(state))
    return state.registered


def consume(pool, queue):
    """A process that is spawned, which gets batches and copies from them."""
    before, got = registered(), queue.get()
    good = "pinned" in pool.kind and (before, registered()) == (0, 1)
    sys.exit(not good or ebb.guard(got, 0) != 1)


def collate_when_asked(pool, pipe):
    """A process that is forked: to its Collate it is a worker of torch's."""
    delivery.loop_of_worker = sys._getframe
    collate = ebb.Collate(pool, lambda _: numpy.ones(BYTES, "u1"))
    while pipe.recv():
        pipe.send(collate(None))


class Worker:
    """Makes a batch whenever it is asked for one, and not before."""

    def __init__(self, pool):
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=collate_when_asked, args=(pool, theirs),
                                       daemon=True)  # ends with a test that fails
        self.process.start()

    def ask(self):
        self.pipe.send(True)
        return self.pipe.recv()

    def end(self):
        self.pipe.send(False)
        self.process.join()


class Guard(Refused):
    def setUp(self):
        driver.fake_cuda_stall(True)

    def tearDown(self):
        driver.fake_cuda_stall(False)
        driver.fake_cuda_run()

    def arrives_whole(self, guarded):
        """A batch is dropped while the device copies from it, and the next ones come."""
        pool, device, whole = ebb.Pool("shared+pinned", slots=2), Device(), True
        for number in range(1, 20):
            got = batch(pool, number)
            device.copy(got["image"])
            if guarded:
                self.assertEqual(ebb.guard(got, 0), 1)
            del got
            parcel = pool.send(numpy.full(BYTES, 100 + number, "u1"))  # in the other slot, if so
            whole = whole and bool((device.read() == number).all())
            del parcel
        device.close()
        return whole

    def test_a_batch_that_a_device_reads_is_not_written_over(self):
        self.assertTrue(self.arrives_whole(True))
        self.assertFalse(self.arrives_whole(False), "or the test would show nothing")

    def test_the_slot_is_free_when_the_stream_has_passed(self):
        pool = ebb.Pool("shared+pinned", slots=1)
        for part in (lambda got: got, lambda got: got["label"], lambda got: got["image"][5:9],
                     lambda got: types.SimpleNamespace(inside=(1, "x", None, {2: got["image"]})),
                     lambda got: [got, got, [got["label"]]],
                     lambda got: Slotted(got["image"]),
                     lambda got: collections.deque([got["image"]]),
                     lambda got: collections.ChainMap({}, got),
                     lambda got: functools.partial(print, got["image"]),
                     lambda got: functools.partial(print, image=got["image"]),
                     lambda got: memoryview(got["image"])[5:9:2],
                     lambda got: memoryview(got["image"]).toreadonly(),
                     lambda got: pickle.PickleBuffer(got["image"]),
                     lambda got: ebb.from_dlpack(got["image"]),
                     lambda got: [ebb.from_dlpack(memoryview(got["image"]))],
                     Record, Computed, with_slot,
                     *map(with_attribute, (dict, list, set, collections.deque, object,
                                           str, bytes, int, float))):
            got = batch(pool, 7)
            self.assertEqual(ebb.guard(part(got), 0), 1)
            del got
            self.assertRefused("EBB_E_SLOTS", pool.send, [1])
            driver.fake_cuda_run()
            self.assertEqual(pool.send([1]).open(), [1])

    def test_slots_are_free_again_though_no_parcel_arrives(self):
        pool = ebb.Pool("shared+pinned", slots=2)
        worker = Worker(pool)
        for got in [worker.ask(), worker.ask()]:
            self.assertEqual(ebb.guard(got, 0), 1)
        del got
        worker.ask()
        self.assertEqual((pool.stats["received"], pool.stats["fallbacks"]), (2, 1))
        driver.fake_cuda_run()
        for _ in range(4):
            worker.ask()  # the first comes beside the pool, and asks the device
        worker.end()
        self.assertEqual((pool.stats["received"], pool.stats["fallbacks"]), (5, 2))

    def test_a_batch_arrives_beside_a_pool_that_is_closed_meanwhile(self):
        def look():
            yield pool
            pool.close()  # as another thread may

        pool = ebb.Pool("shared")
        beside = pickle.dumps(loader._Beside(pool._key, [5]))
        with mock.patch.object(loader, "shared_pools", look):
            self.assertEqual(pickle.loads(beside), [5])

    def test_who_guards_a_batch_asks_about_those_before(self):
        pool = ebb.Pool("shared+pinned", slots=2)
        worker = Worker(pool)
        first, second = worker.ask(), worker.ask()
        self.assertEqual(ebb.guard(first, 0), 1)
        del first
        driver.fake_cuda_run()
        self.assertEqual(ebb.guard(second, 0), 1)
        worker.ask()
        worker.end()
        self.assertEqual((pool.stats["received"], pool.stats["fallbacks"]), (3, 0))

    def test_a_buffer_that_was_sent_guards_its_batch(self):
        pool = ebb.Pool("shared+pinned", slots=1)
        got = pool.send({"bytes": pickle.PickleBuffer(bytes(BYTES))}).open()
        self.assertEqual(ebb.guard(got, 0), 1)
        self.assertEqual(ebb.guard([b"", bytearray(5), memoryview(b"mine")], 0), 0)
        closed = memoryview(b"gone")
        closed.release()
        self.assertEqual(ebb.guard([closed], 0), 0)

    @unittest.skipUnless(torch, "torch is missing")
    def test_a_storage_guards_its_batch(self):
        pool = ebb.Pool("shared+pinned", slots=1)
        got = pool.send(torch.ones(5000)).open()
        kept = torch.Tensor.untyped_storage if hasattr(torch.Tensor, "untyped_storage") \
            else torch.Tensor.storage
        self.assertEqual(ebb.guard([kept(got)], 0), 1)

    def test_a_tensor_guards_its_region_and_a_batch_those_of_parcels_inside_as_well(self):
        for whole in False, True:
            pool = ebb.Pool("shared+pinned", slots=2)
            got = pool.send([numpy.ones(BYTES), pool.send(numpy.ones(BYTES))]).open()
            self.assertEqual(ebb.guard(got if whole else got[0], 0), 1 + whole)
            del got
            if whole:
                self.assertRefused("EBB_E_SLOTS", pool.send, [1])
            else:
                self.assertEqual(pool.send([1]).open(), [1])  # in that of the parcel
            driver.fake_cuda_run()

    def test_each_batch_in_a_list_is_guarded_and_what_came_beside_is_not(self):
        pool, other = ebb.Pool("shared+pinned"), ebb.Pool("shared")
        batches = [batch(pool, 1), batch(other, 2), batch(pool, 3), numpy.zeros(9), "text"]
        self.assertEqual(ebb.guard(batches, 0), 3)
        batches.append(batches)  # a cycle
        self.assertEqual(ebb.guard(batches, 0, device=1), 3)
        with ebb.Region() as region:
            mine = [region.zeros((9000,)).numpy(), numpy.zeros((0, 3)), 5, {}, object(),
                    Hiding({"image": numpy.zeros(3)})]
            closed = region.zeros(9000)
            self.assertEqual(ebb.guard(closed, 0), 0)
        self.assertEqual(ebb.guard([mine, closed], 0), 0)

    def test_what_cannot_be_guarded_says_why(self):
        got = batch(ebb.Pool("shared+pinned"), 1)
        self.assertRefused("EBB_E_DEVICE", ebb.guard, got, 0, device=9)
        self.assertRaises(TypeError, ebb.guard, got, "default")
        device, streams = Device(), [0]
        for _ in range(3):
            made = ctypes.c_void_p()
            call("cuStreamCreate", ctypes.byref(made), 0)
            streams.append(made.value)
        for stream in streams:
            self.assertEqual(ebb.guard(got, stream), 1)
        self.assertRefused("EBB_E_BUSY", ebb.guard, got, 0, device=1)
        driver.fake_cuda_run()
        self.assertEqual(ebb.guard(got, 0, device=1), 1)
        device.close()

    def test_an_address_without_a_device_is_of_the_current_one(self):
        got = batch(ebb.Pool("shared+pinned"), 1)
        for begun in (True, False):
            cuda = types.SimpleNamespace(is_initialized=lambda: begun, current_device=lambda: 9)
            with mock.patch.dict(sys.modules, {"torch.cuda": cuda}):
                self.assertEqual(ebb.guard(got, 0, device=0), 1)
                if begun:
                    self.assertRefused("EBB_E_DEVICE", ebb.guard, got, 0)
                else:
                    self.assertEqual(ebb.guard(got, 0), 1)

    def test_threads_guard_and_drop_at_once(self):
        pool, wrong = ebb.Pool("shared+pinned", slots=64), []
        driver.fake_cuda_stall(False)

        def work(number):
            for _ in range(200):
                got = batch(pool, number)
                if ebb.guard(got, 0) != 1 or not (got["image"] == number).all():
                    wrong.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_copies_in_pinned_memory_share_a_pool(self):
        with ebb.Region() as region:
            tensor = region.zeros(3)
            copies = [tensor.pin_memory() for _ in range(1100)]  # more than there can be pools
            pool, before = copies[0].region.pool, registered()
            self.assertTrue(all(copy.region.pool is pool for copy in copies))
            self.assertLess(pool.stats["reserved"], 64 << 20)
            self.assertIs(copies[0].pin_memory(), copies[0])
            del copies
            pool.close()
            self.assertLess(registered(), before)
            self.assertIsNot(tensor.pin_memory().region.pool, pool)

    def test_a_child_with_its_parents_number_has_copies_of_its_own(self):
        parent, pool = os.getpid(), ebb_tensor._pool_of_copies()
        child = os.fork()
        if not child:
            os.getpid = lambda: parent  # as in a namespace of processes
            os._exit(ebb_tensor._pool_of_copies() is pool)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_process_that_is_spawned_pins_what_it_opens(self):
        pool, spawning = ebb.Pool("shared+pinned", device=1), multiprocessing.get_context("spawn")
        queue = spawning.SimpleQueue()
        child = spawning.Process(target=consume, args=(pool, queue))
        child.start()
        queue.put(pool.send(numpy.ones(BYTES, "u1")))
        child.join()
        self.assertEqual(child.exitcode, 0)
        self.assertEqual(registered(), 0, "who sends pins nothing")

    def test_arrays_of_objects_are_looked_through(self):
        unlike = numpy.empty((2, 2), object)
        unlike[1, 1] = numpy.ones(5000)
        pair = numpy.array([(1, numpy.ones(5000))], [("number", "i4"), ("part", object)])
        for batch in (unlike, pair, unlike[1:, 1]):
            got = ebb.Pool("shared+pinned", slots=1).send([batch]).open()
            self.assertEqual(ebb.guard(got, 0), 1)

    @unittest.skipUnless(torch, "torch is missing")
    def test_tensors_and_streams_of_torch(self):
        pool = ebb.Pool("shared+pinned", slots=1)
        sparse = torch.eye(300).to_sparse()
        rows = torch.zeros(300, 300).to_sparse_csr()  # without a single value
        got = pool.send([torch.ones(5000), torch.nn.Parameter(torch.ones(5)), sparse, rows]).open()
        stream = types.SimpleNamespace(cuda_stream=0, device=types.SimpleNamespace(index=1))
        for part in (got, got[0][3:], got[1], got[2], got[3]):
            self.assertEqual(ebb.guard(part, stream), 1)
        with self.assertRaises(ValueError) as caught:
            ebb.guard([torch.ones(3, device="meta")], 0)
        self.assertIn("meta", str(caught.exception))
        if not torch.cuda.is_available():
            self.assertEqual(ebb.guard(got), 0)  # nothing here can read it
        del got, part
        self.assertRefused("EBB_E_SLOTS", pool.send, [1])
        driver.fake_cuda_run()
        pool.send([1]).open()


if __name__ == "__main__":
    unittest.main()
