# SPDX-License-Identifier: Apache-2.0
"""The stock DataLoader with ebb.Collate: the same batches, and what becomes of the regions."""

import contextlib
import copy
import gc
import mmap
import multiprocessing
import os
import pathlib
import pickle
import random
import re
import resource
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
import warnings
import weakref
from unittest import mock

import ebb
import numpy
from ebb import loader as ebb_loader, structure

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is missing")

import cases
from cases import INNER, Data, reference, same
from test_region import Refused

torch.set_num_threads(1)
# once for all workers, each of which would take a second
multiprocessing.set_forkserver_preload(["__main__", "torch"])
MAGIC = (0x31686374616265).to_bytes(8, "little")


def loader(case, pool, workers, length=96, **options):
    return torch.utils.data.DataLoader(
        Data(case, length), batch_size=cases.BATCH, num_workers=workers,
        collate_fn=ebb.Collate(pool, INNER[case]), **options)


def expected(case, length=96):
    data = Data(case, length)
    for start in range(0, length, cases.BATCH):
        yield reference(case, [data[i] for i in range(start, min(start + cases.BATCH, length))])


def enlarged(samples):
    """16 MB in one tensor and 4 MB in each of four; the first only asks for its place."""
    return [ebb.empty((4, 1 << 20), torch.float32).fill_(samples[0]), [torch.ones(1 << 20)] * 4]


def refused(samples):
    region = ebb.Region()
    region.close()
    region.empty(3)


def unpicklable(samples):
    return [samples[0], lambda: 0]


def read_only(samples):
    array = numpy.ones(3000)
    array.flags.writeable = False
    return array


def unreadable():
    raise LookupError("not to be read")


class Unreadable:
    def __reduce__(self):
        return unreadable, ()


def message_of(parcel):
    """What crosses, taken out of it."""
    return parcel.__reduce__()[1][0]


def attached(pool):
    """Another object of it, by the same message as in a process that is spawned."""
    return pickle.loads(pickle.dumps(pool))


class Regions(unittest.TestCase):
    def assertAllFree(self, pool):
        gc.collect()
        stats = pool.stats
        self.assertEqual((stats["owned"], stats["held"], stats["open_regions"], stats["blocks"]),
                         (0, 0, 0, 0), stats)


# A module that makes a Collate when it is imported, and a trainer whose fork server does that.
MAKES_ONE = """
import ebb
collate = ebb.Collate(ebb.Pool("shared"))

def by_another(samples):
    return collate(samples)
"""
PRELOADS_IT = """
import multiprocessing, sys, ebb, torch
from cases import Data
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["makes_one"])
pool = ebb.Pool("shared")
import makes_one
mine = ebb.Collate(pool)
for collate in makes_one.by_another, mine, makes_one.collate:
    batches = torch.utils.data.DataLoader(Data("a_u8", 32), batch_size=16, num_workers=1,
                                          collate_fn=collate, multiprocessing_context=context,
                                          timeout=60)
    print(*[len(batch[0]) for batch in batches])
for pool in pool, makes_one.collate.pool:
    print(pool.stats["received"], pool.stats["fallbacks"])
"""

# A process that nobody spawned for that gets a Collate, and a batch.
OPENS_IT = """
import pickle, sys, ebb
collate, batch = (pickle.loads(bytes.fromhex(text)) for text in sys.argv[1:])
print(batch, end="")
"""


# A torch with a dtype that ebb has no name for, as if it came later.
SENDS_UNNAMED = """
import torch, ebb
pool, unnamed = ebb.Pool("shared"), torch.bfloat16
del torch.bfloat16
pool.send(torch.ones(3)).open()  # ebb looks for its names
torch.bfloat16 = unnamed
whole = torch.arange(1 << 16).to(unnamed).reshape(256, 256)
leaf = torch.ones(3, dtype=unnamed, requires_grad=True)
views = [whole[3:7, ::2], whole[:5, :9].t(), whole[0, 0], whole[:0], torch.ones(3).to(unnamed)]
for view, got in zip(views, pool.send(views).open()):
    assert got.dtype == unnamed and torch.equal(got, view), got
    assert got.storage().size() <= max(view.numel(), 1), got.storage().size()
got = pool.send(leaf).open()
assert got.requires_grad and got.is_leaf and torch.equal(got, leaf)
"""


class Same(Regions):
    """Bit-identical to what torch makes without workers, in every way that workers start."""

    def compare(self, case, workers, **options):
        pool = ebb.Pool("shared")
        batches = loader(case, pool, workers, **options)
        for number, (batch, wanted) in enumerate(zip(batches, expected(case))):
            same(batch, wanted, f"{case}, batch {number}")
        self.assertEqual(number, 5)
        self.assertEqual((pool.stats["received"], pool.stats["fallbacks"]), (6, 0))
        del batch, batches
        self.assertAllFree(pool)

    def test_a_loader_without_batches_is_told_what_to_use(self):
        samples = [{"image": torch.zeros(3)}] * 2
        for workers in (0, 1):
            loader = torch.utils.data.DataLoader(samples, batch_size=None, num_workers=workers,
                                                 collate_fn=ebb.collate)
            with self.assertRaises(KeyError) as caught:
                next(iter(loader))
            said = "".join(traceback.format_exception(caught.exception))
            self.assertIn("takes a list of samples, and got <class 'dict'>", said)
            self.assertIn("inner=torch.utils.data.default_convert", said)
        with self.assertRaises(IndexError) as caught:
            ebb.collate([])
        self.assertEqual(caught.exception.__notes__,
                         ["ebb.default_collate() got a list of no samples"])
        with self.assertRaises(TypeError) as caught:  # what is in a list is no question of ours
            ebb.collate([torch.zeros(3), 4])
        self.assertFalse(hasattr(caught.exception, "__notes__"))

    def test_in_the_main_process(self):
        for case in INNER:
            with self.subTest(case):
                self.compare(case, 0)

    def test_forked(self):
        for case in INNER:
            with self.subTest(case):
                self.compare(case, 2)

    def compare_mixed(self, context):
        pool, data = ebb.Pool("shared"), cases.Mixed()
        batches = torch.utils.data.DataLoader(
            data, batch_sampler=data.batches(), num_workers=1, multiprocessing_context=context,
            collate_fn=ebb.Collate(pool, cases.mixed))
        for (case, batch), places in zip(batches, data.batches()):
            same(batch, reference(case, [data[place][1] for place in places]), case)
        self.assertEqual((pool.stats["received"], pool.stats["fallbacks"]), (14, 0))
        del batch, batches
        self.assertAllFree(pool)

    def test_spawned(self):
        self.compare_mixed("spawn")

    def test_from_a_fork_server(self):
        self.compare_mixed("forkserver")

    def test_a_dataset_that_is_pickled_by_itself_has_the_pool_too(self):
        """As torch does it with its pipes: the worker gets the pool once in each of two pickles."""
        for context in ("spawn", "forkserver"):
            collate = ebb.Collate(ebb.Pool("shared"))
            batches = torch.utils.data.DataLoader(
                cases.PickledAlone(collate), 4, num_workers=1, timeout=60, collate_fn=collate,
                multiprocessing_context=context)
            for _ in range(2):  # two workers, one after the other
                self.assertEqual([batch.tolist() for batch in batches],
                                 [[0, 1, 2, 3], [4, 5, 6, 7]])
            self.assertEqual(collate.pool.stats["received"], 4)

    def test_a_child_of_a_fork_server_inherits_a_pool_as_often_as_it_is_pickled(self):
        """So it does not matter whether the parent still has it open."""
        pool = ebb.Pool("shared")
        child = multiprocessing.get_context("forkserver").Process(
            target=cases.send_in_both, args=(pool, cases.PickledAlone(pool)))
        child.start()
        pool.close()
        child.join(60)
        self.assertEqual(child.exitcode, 0)

    def test_the_collate_that_needs_nothing(self):
        batches = torch.utils.data.DataLoader(Data("a_u8"), batch_size=16, num_workers=2,
                                              collate_fn=ebb.collate)
        for batch, wanted in zip(batches, expected("a_u8")):
            same(batch, wanted)

    def test_a_function_that_calls_a_collate(self):
        """A worker that is spawned makes another one, whose batches go torch's way."""
        def loop(pool):
            before = [pool.stats[name] for name in ("received", "fallbacks")]
            with mock.patch.dict(os.environ, PYTHONWARNINGS="ignore::RuntimeWarning"):
                batches = torch.utils.data.DataLoader(
                    Data("a_u8", 32), batch_size=16, num_workers=1, collate_fn=cases.by_another,
                    multiprocessing_context=context, timeout=60)
                for batch, wanted in zip(batches, expected("a_u8", 32)):
                    same(batch, wanted)
            return [pool.stats[name] - past
                    for name, past in zip(("received", "fallbacks"), before)]

        ebb.collate  # is made before the workers
        newest = ebb.Pool("shared")
        for context, pool, counts in (("fork", ebb.collate.pool, [2, 0]), ("spawn", newest, [0, 2]),
                                      ("forkserver", newest, [0, 2])):
            with self.subTest(context):
                self.assertEqual(loop(pool), counts)

    def test_a_collate_that_is_made_in_a_worker_says_so(self):
        pool = ebb.Pool("shared")
        there = attached(pool)
        with mock.patch.object(ebb_loader.delivery, "loop_of_worker", sys._getframe):
            self.assertIsInstance(ebb.Collate(there)([1]), ebb.Parcel)
            with self.assertWarnsRegex(RuntimeWarning, "was made in the worker") as caught:
                self.assertEqual(ebb.Collate(pool)([1]).open().tolist(), [1])
        self.assertEqual(caught.filename, __file__)

    def test_a_collate_that_is_made_in_a_fork_server(self):
        """Its batches go torch's way; that of the trainer has its pool, whatever is preloaded."""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "makes_one.py").write_text(MAKES_ONE, encoding="utf-8")
            places = [folder, os.path.dirname(__file__), *sys.path]
            done = subprocess.run(
                [sys.executable, "-B", "-W", "always::RuntimeWarning", "-c", PRELOADS_IT],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(places)}, capture_output=True,
                text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("or its fork server", done.stderr)
        self.assertEqual(done.stdout.splitlines()[3:], ["2 0", "2 2"])

    def test_a_loader_inside_of_a_worker(self):
        collate = ebb.Collate(ebb.Pool("shared"), cases.as_they_are)
        inner = cases.Inner(ebb.Collate(ebb.Pool("shared")))
        batches = torch.utils.data.DataLoader(inner, 1, num_workers=1, collate_fn=collate)
        wanted = [images[at:at + 8] for images, _ in expected("a_u8", 32) for at in (0, 8)]
        same([images for [(images, _)] in batches], wanted)

    def test_workers_that_stay_for_epochs(self):
        pool = ebb.Pool("shared")
        batches = loader("b", pool, 2, persistent_workers=True)
        for _ in range(5):
            for batch, wanted in zip(batches, expected("b")):
                same(batch, wanted)
        self.assertEqual(pool.stats["received"], 30)


class Messages(Refused, Regions):
    def test_a_message_is_short_however_large_the_batch(self):
        pool = ebb.Pool("shared")
        for batch in ([], {i: torch.zeros(8) for i in range(1000)}, torch.zeros(1 << 22)):
            for protocol in range(3, 6):
                parcel = pool.send(batch)
                message = pickle.dumps(parcel, protocol)
                self.assertLessEqual(len(message), 64, message)
                same(pickle.loads(message), batch)

    def test_a_parcel_is_good_once(self):
        pool = ebb.Pool("shared")
        parcel = pool.send([1])
        message = pickle.dumps(parcel)
        self.assertRaises(ValueError, pickle.dumps, parcel)
        self.assertRaises(ValueError, parcel.open)
        self.assertEqual(pickle.loads(message), [1])
        with self.assertRaises(ebb.Error) as caught:
            pickle.loads(message)
        self.assertEqual(caught.exception.name, "EBB_E_STALE")
        for _ in range(1000):
            pool.send(numpy.zeros(10000))  # and dropped: nothing piles up
        self.assertAllFree(pool)
        self.assertLess(pool.stats["reserved_peak"], 1 << 20)

    def test_a_description_is_short(self):
        """Case 168: less than 1 kB and 64 bytes for each of 114 tensors."""
        pool = ebb.Pool("shared")
        data = Data("b2")
        batch = cases.masked([data[i] for i in range(16)])
        count = 2 + 16 * len(cases.TARGETS)
        numbers, number, shift = [], 0, 0
        for byte in message_of(pool.send(batch))[8:]:
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                numbers.append(number)
                number = shift = 0
        self.assertEqual(count, 114)
        self.assertLess(numbers[3], 1024 + 64 * count)

    def test_a_parcel_has_one_owner(self):
        """A copy would open it, and leave two that believe it theirs."""
        pool = ebb.Pool("shared")
        parcel = pool.send([1])
        for make in (copy.copy, copy.deepcopy, lambda parcel: copy.deepcopy([parcel])):
            with self.assertRaisesRegex(TypeError, "cannot be copied"):
                make(parcel)
        self.assertRaises(TypeError, ebb.Parcel)
        self.assertRaises(TypeError, ebb.Parcel, pool, bytes(12))
        self.assertEqual(parcel.open(), [1])

    def test_a_parcel_in_a_batch_goes_along_with_it_or_stays_as_it_was(self):
        class Opens:
            def __reduce__(self):
                parcel.open()
                return list, ()

        pool = ebb.Pool("shared", slots=4, slot_bytes=1 << 21)
        parcel = pool.send(torch.arange(4.0))
        self.assertRefused("EBB_E_POOL_LIMIT", pool.send, [parcel, torch.zeros(1 << 22)])
        self.assertRaises((AttributeError, pickle.PicklingError), pool.send, [parcel, lambda: 0])
        outer = pool.send([parcel, parcel])
        self.assertRaises(ValueError, parcel.open)
        del parcel
        got = outer.open()
        self.assertIs(got[0], got[1])
        same(got[0], torch.arange(4.0))
        del got
        parcel = pool.send([1])
        with self.assertRaisesRegex(ValueError, "was opened or sent before"):
            pool.send([parcel, Opens()])
        pool.send([pool.send([2]), pool.send([3])])  # all three are dropped
        self.assertAllFree(pool)
        held = [ebb.Region(pool) for _ in range(4)]
        self.assertEqual(len(held), 4)

    def test_nor_does_it_go_before_that_batch_where_this_goes_torchs_own_way(self):
        class Opens:
            def __reduce__(self):
                parcel.open()
                return list, ()

        pool, unknown = ebb.Pool("shared", slots=1), ebb.Pool("shared")
        parcel, wanted = pool.send(torch.arange(4.0)), torch.arange(4.0)
        with mock.patch.object(ebb_loader.delivery, "loop_of_worker", sys._getframe), \
                mock.patch.object(ebb.Collate, "_is_unknown_to_the_trainer",
                                  lambda collate: collate.pool is unknown), \
                warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for collate in ebb.Collate(pool, list), ebb.Collate(unknown, list):
                self.assertRaises((AttributeError, pickle.PicklingError), collate,
                                  [parcel, lambda: 0])
                collate([parcel])  # and dropped
                inner = collate([parcel, parcel])
                with self.assertRaises((AttributeError, pickle.PicklingError)):
                    collate([inner, lambda: 0])
                got, = pickle.loads(pickle.dumps(collate([inner])))
                self.assertIs(got[0], got[1])
                same(got[0], wanted)
                self.assertRaises(ValueError, parcel.open)
                self.assertRaises(ValueError, collate, [parcel])
                del got
                parcel = pool.send(wanted)
                same(collate([parcel]).open(), [wanted])
                parcel = pool.send(wanted)
                with self.assertRaisesRegex(ValueError, "was opened or sent before"):
                    collate([parcel, Opens()])
                parcel = pool.send(wanted)
        same(parcel.open(), wanted)
        self.assertAllFree(pool)

    def test_a_parcel_in_a_batch_without_workers_is_opened_be_there_a_slot_or_not(self):
        def inner(_):
            return {"twice": [parcel, parcel], "note": cases.Note("x", (parcel, numbers)),
                    "array": numpy.arange(3), "number": 5}

        numbers = torch.arange(3000)
        for slots in (1, 2):
            pool = ebb.Pool("shared", slots=slots)
            parcel = pool.send(torch.arange(4.0))
            self.assertIs(ebb.Collate(pool, lambda _: numbers)([]) is numbers, slots == 1)
            batch = ebb.Collate(pool, inner)([])
            self.assertEqual(pool.stats["fallbacks"], 2 * (slots == 1))
            opened = batch["twice"][0]
            same(opened, torch.arange(4.0))
            self.assertTrue(batch["twice"][1] is opened is batch["note"].value[0])
            same((batch["note"].value[1], batch["array"]), (numbers, numpy.arange(3)))
            self.assertRaises(ValueError, parcel.open)
            self.assertEqual(batch["number"], 5)
            del batch, opened
            self.assertAllFree(pool)

    def test_nor_do_arrays_of_objects_hide_it_there_and_elements_are_let_alone(self):
        def storage():
            made = torch.ones(3)
            return made.untyped_storage() if hasattr(made, "untyped_storage") else made.storage()

        full, pool = ebb.Pool("shared", slots=1), ebb.Pool("shared")
        taken, kept = full.send(5), storage()
        buffer = pickle.PickleBuffer(bytearray(b"abc"))
        objects, *elements = ebb.Collate(full, list)(
            [numpy.array([pool.send(7), None]), kept, buffer])
        self.assertEqual(objects.tolist(), [7, None])
        self.assertTrue(elements[0] is kept and elements[1] is buffer)
        self.assertFalse(kept.is_shared())
        note = cases.Note("x", 5)  # what is pickled is also read: it may have descriptors
        got, = ebb.Collate(full, list)([note])
        self.assertTrue(got == note and got is not note)
        self.assertEqual((taken.open(), full.stats["fallbacks"]), (5, 2))

    def test_numbers_are_not_looked_at_where_a_batch_goes_torchs_own_way(self):
        asked = []
        ebb_loader._take_apart([*range(100), "x", 5.0, {"a": (b"x", None)}], asked.append)
        self.assertEqual(asked, [])

    def test_a_parcel_in_a_batch_that_cannot_be_made_goes_with_it(self):
        class CannotBeMade:
            def __reduce__(self):
                return int, ("none",)

        for order in (1, -1):  # the parcel is opened before, or never
            pool = ebb.Pool("shared", slots=4)
            outer = pool.send([pool.send([1]), CannotBeMade()][::order])
            self.assertRaisesRegex(ValueError, "none", outer.open)
            self.assertRaisesRegex(ValueError, "opened or sent before", outer.open)
            del outer
            self.assertAllFree(pool)
            held = [ebb.Region(pool) for _ in range(4)]
            self.assertEqual(len(held), 4)

    def test_a_parcel_in_a_batch_that_the_collate_function_keeps_goes_along(self):
        def inner(samples):
            kept.append(ebb.empty((5000,), torch.float32).fill_(5))
            return [kept[-1], pool.send(torch.arange(4.0))]

        for slots in (4, 2):  # there is another one for the copy, or none
            kept, pool = [], ebb.Pool("shared", slots=slots)
            made, numbers = ebb.Collate(pool, inner)([None])
            self.assertEqual(pool.stats["fallbacks"], slots == 2)
            self.assertTrue(bool((made == 5).all()))
            same(numbers, torch.arange(4.0))
            del made, numbers
            kept.clear()
            self.assertAllFree(pool)

    def test_a_parcel_that_cannot_be_opened_is_as_good_as_it_was(self):
        pool = ebb.Pool("shared")
        parcel = pool.send([1])
        child = os.fork()
        if child == 0:  # it needs a descriptor of its own to open anything
            good, limits = False, resource.getrlimit(resource.RLIMIT_NOFILE)
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
                with self.assertRaises(ebb.Error) as caught:
                    parcel.open()
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
                good = caught.exception.name == "EBB_E_MEMORY" and parcel.open() == [1]
            finally:
                os._exit(not good)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_what_was_written_is_not_read_from_a_region_that_closed(self):
        pool = ebb.Pool("shared")
        region, other = ebb_loader._open_region(pool), ebb_loader._open_region(pool)
        writer = structure.write(region, [torch.zeros(5000)])
        region.close()
        with self.assertRaises(ebb.Error) as caught:
            writer.move(other)
        self.assertEqual(caught.exception.name, "EBB_E_STALE")

    def test_where_elements_are_is_not_read_from_the_slot(self):
        """A batch that found no room once goes to another region, whatever others write."""
        pool = ebb.Pool("shared", slots=2, slot_bytes=1 << 22)
        tight = ebb.Pool("shared", slots=1, slot_bytes=1 << 22, limit=1 << 14)
        region, other = ebb_loader._open_region(pool), ebb_loader._open_region(pool)
        batch = [numpy.arange(50000), numpy.arange(60000)[::-1].copy()]
        writer = structure.write(region, batch)
        with mmap.mmap(pool.fileno(), 0) as peer:  # the leaf of the first array
            leaf = peer.find(struct.pack("<3Q", 0, batch[0].nbytes, 0))
            self.assertGreater(leaf, 0)
            peer[leaf:leaf + 8] = struct.pack("<Q", batch[0].nbytes)
        with self.assertRaises(ebb.Error):
            writer.move(ebb_loader._open_region(tight))
        writer.move(other)
        region.close()
        for came, sent in zip(writer.send().open(), batch):
            numpy.testing.assert_array_equal(came, sent)

    def test_a_pool_that_was_closed_is_not_asked(self):
        pool, closed = ebb.Pool("shared"), ebb.Pool("shared")
        message = pickle.dumps(pool.send([1]))
        closed.close()
        self.assertEqual(pickle.loads(message), [1])

    def test_what_collates_into_a_pool_that_was_closed_says_so(self):
        pool, calls = ebb.Pool("shared"), []
        collate = ebb.Collate(pool, calls.append)
        pool.close()
        for make in (lambda: collate([1]), lambda: ebb.Collate(pool)):
            with self.assertRaisesRegex(ebb.Error, "the pool is closed") as caught:
                make()
            self.assertEqual(caught.exception.name, "EBB_E_STALE")
        self.assertEqual(calls, [])
        with self.assertRaisesRegex(ebb.Error, "the pool is closed"):
            list(torch.utils.data.DataLoader([1, 2], collate_fn=collate))

    def test_what_a_batch_raises_is_not_lost_among_several_pools(self):
        """Newer ones than that which has it say no, older ones are not asked."""
        pools = [ebb.Pool("shared", slots=1) for _ in range(3)]
        for pool in pools:
            message = pickle.dumps(pool.send([numpy.ones(3), Unreadable()]))
            with self.assertRaisesRegex(LookupError, "not to be read"):
                pickle.loads(message)
            pool.send([]).open()  # the only slot is free

    def test_forged_messages_are_refused(self):
        pool = ebb.Pool("shared")
        parcel = pool.send([torch.zeros(3)])
        good = message_of(parcel)
        for forged in (b"", b"12345678", good[:-1], good + b"\1", bytes(len(good)),
                       b"x" * 60, good[:8] + b"\xff" * 40, good[:8] + b"\0\0\0\0"):
            with self.assertRaises((ebb.Error, LookupError)):
                ebb._open(forged)
        for place in range(len(good)):
            for bit in range(8):
                forged = bytearray(good)
                forged[place] ^= 1 << bit
                try:
                    ebb._open(bytes(forged))
                except (ebb.Error, LookupError):
                    continue
                except Exception as error:  # a root that is inside, but none: pickle says so
                    self.assertIsInstance(error, (pickle.UnpicklingError, EOFError, ValueError))

    def find_root(self, pool, parcel):
        """Where the root block is in the file of the pool: it begins with a magic word."""
        descriptor, at = pool.fileno(), 0
        while True:
            at = os.lseek(descriptor, at, os.SEEK_DATA)
            end = os.lseek(descriptor, at, os.SEEK_HOLE)
            found = os.pread(descriptor, end - at, at).find(MAGIC)
            if found >= 0:
                return at + found
            at = end

    def test_a_description_that_lies_is_refused_or_gives_wrong_contents_only(self):
        """A broken worker writes anything into header, leaves and numbers of what it has sent."""
        pool = ebb.Pool("shared")
        batch = [torch.arange(12).reshape(3, 4), torch.zeros(2, 3, 4).permute(2, 0, 1),
                 torch.ones(5000), numpy.arange(6).reshape(2, 3).T, bytearray(b"x" * 100)]
        chance = random.Random(11)
        refused = 0
        parcel = pool.send(batch)
        place = self.find_root(pool, parcel)
        parcel.open()
        for _ in range(3000):
            parcel = pool.send(batch)
            self.assertEqual(os.pread(pool.fileno(), 8, place), MAGIC)
            at = chance.choice((8 * chance.randrange(5), chance.randrange(40 + 5 * 32 + 80)))
            value = chance.choice((0, 1, 255, 1 << 31, (1 << 63) - 1, (1 << 64) - 1,
                                   chance.getrandbits(64)))
            size = chance.choice((1, 8))
            os.pwrite(pool.fileno(), (value & ((1 << 8 * size) - 1)).to_bytes(size, "little"),
                      place + at)
            try:
                for thing in parcel.open():
                    numpy.array(thing, copy=True)
            except Exception as error:  # named, whatever read it first
                self.assertTrue(str(error) or repr(error))
                refused += 1
        self.assertGreater(refused, 500)
        self.assertAllFree(pool)

    def test_what_cannot_be_pickled_is_an_error_and_leaves_nothing(self):
        pool = ebb.Pool("shared")
        for wrong in (lambda: 0, (i for i in range(3)), sys._getframe()):
            with self.assertRaises((TypeError, pickle.PicklingError, AttributeError)):
                pool.send([torch.zeros(10000), wrong])
        with ebb.Region() as region, self.assertRaisesRegex(TypeError, r"its torch\(\) or numpy"):
            pool.send([region.zeros(3)])
        leaf = torch.ones(3, requires_grad=True)
        self.assertRaises(RuntimeError, pool.send, leaf * 2)
        self.assertTrue(pool.send(leaf).open().requires_grad)
        self.assertAllFree(pool)

    def test_without_a_slot_arrays_can_be_written_as_torchs_can(self):
        pool = ebb.Pool("shared", slots=1)
        taken = pool.send(5)
        for collate in (read_only, ebb.Collate(pool, read_only)):
            batch = next(iter(torch.utils.data.DataLoader([1], num_workers=1, collate_fn=collate)))
            batch += 1
            self.assertEqual(batch.sum(), 6000)
        self.assertEqual((taken.open(), pool.stats["fallbacks"]), (5, 1))

    def test_what_cannot_be_pickled_is_an_error_without_a_slot_too(self):
        """The thread that sends would only print it, and nothing arrives ever."""
        pool = ebb.Pool("shared", slots=1)
        taken = pool.send(5)
        needs_grad = [torch.ones(2000, requires_grad=True)] * 4
        for samples, inner, known in (([torch.ones(3)] * 4, unpicklable, True),
                                      ([torch.ones(3)] * 4, unpicklable, False),
                                      (needs_grad, None, True), (needs_grad, torch.stack, True)):
            collate = ebb.Collate(pool, inner)
            collate._is_unknown_to_the_trainer = lambda known=known: not known
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # in the worker, that it is
                batches = iter(torch.utils.data.DataLoader(samples, 4, num_workers=1, timeout=20,
                                                           collate_fn=collate))
            with self.assertRaisesRegex(Exception, "(?s)Caught .*(pickle|grad|differentiation)"):
                next(batches)
            del batches
        self.assertEqual(taken.open(), 5)


class Structure(Regions):
    def test_everything_comes_back_as_itself(self):
        shared = torch.arange(4.0)
        batch = {
            "scalars": [1, 2.5, None, True, "text", b"bytes", 1 << 100, {1, 2}, frozenset("ab")],
            "views": [torch.arange(12).reshape(3, 4).t(), torch.zeros(0, 3), torch.tensor(3.5),
                      torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)],
            "dtypes": [torch.ones(3, dtype=dtype) for dtype in
                       (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
                        torch.float16, torch.bfloat16, torch.float64, torch.complex64)],
            "arrays": [numpy.arange(6).reshape(2, 3).T, numpy.arange(6)[::-1],
                       numpy.zeros((0, 2), "f4"), numpy.array(3.0), numpy.array(["a", "bc"]),
                       numpy.array(["2020-01-01"], "M8[D]"), numpy.zeros(2, "i4,f8"),
                       numpy.arange(3, dtype=">i4"), numpy.ones(3, bool)],
            "odd": [torch.nn.Parameter(torch.ones(2)), cases.Boxes.make(torch.ones(1, 4), format=1),
                    cases.Pair(1, cases.Note("x", numpy.float32(1))), bytearray(b"y" * 5000),
                    torch.device("cpu"), torch.float32, numpy.dtype("f4"), torch.Size([3])],
            "packed": torch.nn.utils.rnn.pack_sequence([torch.ones(3, 2), torch.ones(1, 2)]),
        }
        pool = ebb.Pool("shared")
        got = pool.send(batch).open()
        same(got, batch)
        gaps = [torch.arange(12.0)[::3], torch.ones(3)[:, None].expand(3, 7),
                torch.arange(60).reshape(3, 4, 5)[:, 1:3, ::2].permute(2, 0, 1)]
        same(pool.send(gaps).open(), [view.contiguous() for view in gaps])
        again = pool.send([shared, shared]).open()
        self.assertIs(again[0], again[1])
        negated = torch.complex(torch.ones(2), torch.ones(2)).conj()
        for lazy in (negated, negated.imag):
            self.assertTrue(torch.equal(pool.send(lazy).open(), lazy))
        sparse = torch.eye(3).to_sparse()
        self.assertTrue(torch.equal(pool.send(sparse).open().to_dense(), sparse.to_dense()))
        with warnings.catch_warnings(), self.assertRaisesRegex(RuntimeError, "drop names"):
            warnings.simplefilter("ignore")
            pool.send([torch.zeros(2, 3, names=("row", "column"))])  # torch's own refusal
        objects = numpy.array([1, "a", None], object)
        self.assertEqual(pool.send(objects).open().tolist(), objects.tolist())
        masked = numpy.ma.array([1, 2, 3], mask=[0, 1, 0])
        self.assertEqual(pool.send(masked).open().tolist(), masked.tolist())

    def view_of(self, tensor, chance):
        """Of some dimensions, some of them of one place or repeated, in any order, with gaps."""
        for dim, size in enumerate(tensor.shape):
            first = chance.randrange(size)
            tensor = tensor[(slice(None),) * dim + (slice(first, chance.randrange(first, size) + 1,
                                                          chance.choice((1, 1, 2))),)]
        if chance.random() < 0.3:
            dim = chance.randrange(tensor.ndim)
            tensor = tensor.narrow(dim, 0, 1).expand(*tensor.shape[:dim], chance.randrange(4),
                                                     *tensor.shape[dim + 1:])
        if chance.random() < 0.3:
            tensor = tensor.permute(chance.sample(range(tensor.ndim), tensor.ndim))
        return tensor.select(chance.randrange(tensor.ndim), 0) if 0 not in tensor.shape else tensor

    def test_views_with_gaps_come_back_however_they_lie(self):
        chance, pool = random.Random(5), ebb.Pool("shared")
        whole = torch.arange(5 * 6 * 7 * 4).reshape(5, 6, 7, 4)
        for dtype in (torch.int64, torch.float32, torch.uint8, torch.complex128):
            views = [self.view_of(whole.to(dtype), chance) for _ in range(200)]
            for view, got in zip(views, pool.send(views).open()):
                self.assertTrue(torch.equal(got, view), (view.shape, view.stride()))
            backward = [view.numpy()[..., ::-1] for view in views if view.ndim]
            for view, got in zip(backward, pool.send(backward).open()):
                numpy.testing.assert_array_equal(got, view)

    def test_complex_numbers_of_half_precision_come_back(self):
        """ebb and torch's own pickles have no name for them, its queues have."""
        pool = ebb.Pool("shared")
        for parts in torch.arange(12.0).half().reshape(2, 3, 2), torch.zeros(0, 2).half():
            sent = torch.view_as_complex(parts)
            for tensor in sent, sent.t():
                got = pool.send(tensor).open()
                self.assertEqual((got.dtype, got.shape), (torch.complex32, tensor.shape))
                self.assertTrue(torch.equal(torch.view_as_real(got), torch.view_as_real(tensor)))

    def test_views_of_elements_without_a_name_bring_no_others(self):
        subprocess.run([sys.executable, "-W", "ignore", "-c", SENDS_UNNAMED], check=True)
        pool = ebb.Pool("shared")
        for name in filter(lambda name: name.startswith("float8"), dir(torch)):
            view = torch.ones(64, 64).to(getattr(torch, name))[3:7, ::2]
            got = pool.send(view).open()
            self.assertEqual((got.dtype, got.untyped_storage().nbytes()), (view.dtype, 4 * 32))
            self.assertTrue(torch.equal(got.view(torch.uint8), view.view(torch.uint8)))

    def test_tensors_of_more_dimensions_than_ebb_has_come_back(self):
        pool = ebb.Pool("shared")
        for dimensions in (33, 40):
            for dtype in (torch.float32, torch.int32, torch.uint8, torch.bool, torch.complex64):
                whole = torch.arange(16).to(dtype).reshape((4, 2, 2) + (1,) * (dimensions - 3))
                for tensor in whole, whole.transpose(0, 2):
                    same(pool.send(tensor).open(), tensor)

    def test_in_a_region_of_a_batch_more_dimensions_are_torchs(self):
        shape, many = (1,) * 33, [torch.ones((2,) * 11 + (1,) * 21)] * 2
        for zeros in ebb.zeros, lambda *what: ebb.empty(*what).fill_(0):
            same(ebb.Collate(inner=lambda _, zeros=zeros: zeros(shape, torch.float32))([]),
                 torch.zeros(shape))
        same(ebb.Collate()(many), torch.stack(many))
        with ebb.Region():
            self.assertRaisesRegex(ValueError, "33 dimensions", ebb.empty, shape, torch.float32)
            same(ebb.stack(many), torch.stack(many))

    def test_strides_along_a_single_element_say_nothing(self):
        columns = numpy.asfortranarray(numpy.arange(15.0).reshape(3, 5, 1))
        odd = numpy.lib.stride_tricks.as_strided(columns, (3, 1, 5), (8, 3, 24))
        pool = ebb.Pool("shared")
        for array in (columns[:, :, ::-1], columns.T[::-1], odd):
            same(pool.send(array).open(), array)
            with ebb.Region() as region:
                same(region.tensor(array).numpy().copy(), numpy.ascontiguousarray(array))

    def test_slots_of_subclasses_and_zeros_that_lie_nowhere(self):
        pool = ebb.Pool("shared")
        marked = torch.ones(3).as_subclass(cases.Marked)
        marked.mark, marked.note = 5, "six"
        got = pool.send([marked, torch.ones(3).as_subclass(cases.Marked)]).open()
        self.assertEqual((got[0].mark, got[0].note), (5, "six"))
        self.assertFalse(hasattr(got[1], "mark"))
        nowhere = torch._efficientzerotensor(3000)
        self.assertTrue(torch.equal(pool.send(nowhere).open(), torch.zeros(3000)))
        with ebb.Region() as region:
            self.assertRaises(TypeError, region.tensor, nowhere)

    def test_sparse_tensors_are_as_coalesced_as_they_were(self):
        pool = ebb.Pool("shared")
        twice = torch.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,))
        for sparse in (twice, twice.coalesce(), torch.eye(3).to_sparse(),
                       torch.zeros(3).to_sparse()):
            got = pool.send(sparse).open()
            self.assertEqual(got.is_coalesced(), sparse.is_coalesced())
            if sparse.is_coalesced():
                self.assertTrue(torch.equal(got.indices(), sparse.indices()))
            self.assertTrue(torch.equal(got.to_dense(), sparse.to_dense()))

    def test_nested_tensors_go_torchs_own_way(self):
        """Torch 1.13 has none for them: it is given one here."""
        def reduce(tensor, protocol):
            return torch.nested.nested_tensor, (list(tensor.unbind()),)

        with warnings.catch_warnings(), \
                mock.patch.object(torch.Tensor, "__reduce_ex__", reduce):
            warnings.simplefilter("ignore")
            parts = [torch.ones(2, 3), torch.zeros(4, 3)]
            got = ebb.Pool("shared").send(torch.nested.nested_tensor(parts)).open()
            self.assertTrue(got.is_nested)
            same(list(got.unbind()), parts)

    def test_sparse_tensors_are_not_kept(self):
        """torch keeps what it unpickles of them until torch.load() looks at it."""
        pool = ebb.Pool("shared", slots=2)
        for number in range(1, 9):
            for sparse in ((torch.eye(3) * number).to_sparse(), torch.eye(number).to_sparse_csr()):
                got = pool.send(sparse).open()
                self.assertEqual(got.layout, sparse.layout)
                self.assertTrue(torch.equal(got.to_dense(), sparse.to_dense()))
                del got

    def test_quantised_tensors_are_stacked_as_torch_does(self):
        pool = ebb.Pool("shared")
        sample = torch.quantize_per_tensor(torch.arange(3000.0), 0.1, 3, torch.quint8)
        got = ebb.Collate(pool)([sample, sample])
        wanted = torch.utils.data.default_collate([sample, sample])
        self.assertEqual((got.q_scale(), got.q_zero_point()), (0.1, 3))
        same(got.int_repr(), wanted.int_repr())

    def test_sequences_that_are_more_than_their_elements(self):
        rnn, pool = torch.nn.utils.rnn, ebb.Pool("shared")
        several = [torch.ones(3000, requires_grad=True), torch.ones(2)]
        typed = [torch.ones(4, 4).as_subclass(cases.Boxes)] * 2
        with ebb.Region():
            for made in (ebb.pad_sequence(several), ebb.pack_sequence(several).data):
                made.sum().backward()
            same(several[0].grad, torch.full((3000,), 2.0))
            same(ebb.pad_sequence(typed), rnn.pad_sequence(typed))
            same(ebb.pack_sequence(typed).data, rnn.pack_sequence(typed).data)
            self.assertRaises(TypeError, ebb.pad_sequence, [torch.empty(3, device="meta")])

        def pad(sequences):
            return ebb.pad_sequence(iter(sequences), padding_value=0.1)

        def both(sequences):
            return ebb.pad_sequence(sequences), ebb.pack_sequence(sequences).data

        plain, lazy = [torch.ones(3), torch.ones(2)], [torch.ones(3, dtype=torch.cfloat).conj()] * 2
        same(ebb.Collate(pool, pad)(plain), rnn.pad_sequence(plain, padding_value=0.1))
        for one, two in zip(ebb.Collate(pool, both)(lazy), both(lazy)):
            self.assertTrue(torch.equal(one, two))

    def test_sequences_without_elements_are_refused_as_by_torch(self):
        def pack(sequences):
            return ebb.pack_sequence(sequences, enforce_sorted=False)

        for empty in ([torch.ones(3, 0)], [torch.ones(2, 0), torch.ones(3, 0)], [torch.ones(0, 3)]):
            with self.subTest(empty), ebb.Region():
                with self.assertRaises(RuntimeError) as wanted:
                    torch.nn.utils.rnn.pack_sequence(empty, enforce_sorted=False)
                said = re.escape(str(wanted.exception))
                self.assertRaisesRegex(RuntimeError, said, ebb.Collate(inner=pack), empty)
                self.assertRaises(RuntimeError, pack, empty)

    def test_types_that_torchs_collate_learns_later(self):
        functions = torch.utils.data._utils.collate.default_collate_fn_map
        notes, tensors = [cases.Note("a", 1)] * 2, [torch.ones(3000)] * 2
        self.assertRaises(TypeError, ebb.default_collate, notes)
        with mock.patch.dict(functions, {cases.Note: lambda batch, *, collate_fn_map: len(batch)}):
            self.assertEqual(ebb.default_collate(notes), 2)
            with mock.patch.dict(functions, {torch.Tensor: functions[cases.Note]}):
                self.assertEqual(ebb.default_collate([tensors]), [1, 1])
        self.assertEqual(ebb.default_collate([tensors])[0].shape, (1, 3000))

    def test_buffers_out_of_band_may_lie_in_any_order(self):
        for array in (numpy.arange(6.0).reshape(2, 3), numpy.asfortranarray(numpy.ones((2, 3)))):
            got = ebb.Pool("shared").send(cases.Buffered(array)).open()
            self.assertEqual(bytes(got), array.tobytes("A"))

    def test_arrays_with_fields_can_be_written_as_before(self):
        pool, frozen = ebb.Pool("shared"), numpy.zeros(4, "i4,f8")
        frozen.flags.writeable = False
        for array in (numpy.zeros(4, "i4,f8"), numpy.zeros((4, 4), "i4,f8")[:, ::2], frozen,
                      numpy.zeros(4, numpy.dtype("i4,f8").newbyteorder())):
            back = pool.send(array).open()
            same(back, array)
            self.assertEqual(back.flags.writeable, array.flags.writeable)

    def test_elements_that_are_not_aligned_are_copied_to_where_they_are(self):
        def inner(samples):
            bytes_there = ebb.empty((9001,), numpy.uint8)
            bytes_there[:] = numpy.arange(9001) % 251
            return (torch.frombuffer(memoryview(bytes_there), dtype=torch.float32, offset=1),
                    bytes_there[3:-2].view("i4"))

        for got, wanted in zip(ebb.Collate(ebb.Pool("shared"), inner)([None]), inner(None)):
            same(got, wanted)

    def test_results_can_be_written_and_saved_small(self):
        import io
        batch = ebb.Pool("shared").send([torch.zeros(10), torch.zeros(1 << 20),
                                         numpy.zeros(10)]).open()
        batch[0][3] = batch[2][3] = 7
        file = io.BytesIO()
        torch.save(batch[0], file)
        self.assertLess(len(file.getvalue()), 4096)
        self.assertEqual(batch[0].storage().size(), 10)

    def test_stacked_tensors_have_the_strides_of_torchs(self):
        from torch.utils.data import default_collate
        images = torch.rand(3, 20, 20, 3).permute(0, 3, 1, 2)  # channels_last
        for samples in (list(images), [images, images], [images[:, :, :3, :3]] * 2,
                        [torch.rand(40, 50).t()] * 3, [torch.rand(2, 3)] * 2):
            wanted = default_collate(samples)
            batches = [ebb.Collate(ebb.Pool("shared"), ebb.default_collate)(samples)]
            with ebb.Region():
                batches.append(ebb.default_collate(samples).clone())
            for batch in batches:
                self.assertEqual(batch.stride(), wanted.stride())
                self.assertTrue(torch.equal(batch, wanted))
            made = torch.utils.data.DataLoader(samples, len(samples), num_workers=1,
                                               collate_fn=ebb.Collate(ebb.Pool("shared")))
            plain = torch.utils.data.DataLoader(samples, len(samples), num_workers=1)
            self.assertEqual(next(iter(made)).stride(), next(iter(plain)).stride())

    def test_stacked_in_a_worker_without_a_slot_they_have_the_strides_of_torchs(self):
        samples = list(torch.rand(3, 4, 20, 20, 3).permute(0, 1, 4, 2, 3))  # channels_last
        plain = torch.utils.data.DataLoader(samples, len(samples), num_workers=1)
        wanted = next(iter(plain))
        pool = ebb.Pool("shared", slots=1)
        for taken in (False, True):
            parcel = pool.send(5) if taken else None
            made = torch.utils.data.DataLoader(samples, len(samples), num_workers=1,
                                               collate_fn=ebb.Collate(pool))
            batch = next(iter(made))
            self.assertEqual(batch.stride(), wanted.stride())
            self.assertTrue(torch.equal(batch, wanted))
            del batch
        self.assertEqual((parcel.open(), pool.stats["fallbacks"]), (5, 1))

    def test_without_a_slot_lazy_and_sparse_samples_are_stacked_as_with_one(self):
        numbers = torch.arange(6000.0).reshape(2, 1500, 2)
        conjugated = list(torch.view_as_complex(numbers).conj())
        pool = ebb.Pool("shared", slots=1)
        for taken in (False, True):
            parcel = pool.send(5) if taken else None
            made = torch.utils.data.DataLoader(conjugated, 2, num_workers=1,
                                               collate_fn=ebb.Collate(pool))
            self.assertTrue(torch.equal(next(iter(made)), torch.stack(conjugated)))
        self.assertEqual((parcel.open(), pool.stats["fallbacks"]), (5, 1))
        with mock.patch("torch.utils.data.get_worker_info", object):
            self.assertEqual(ebb.default_collate([torch.eye(3).to_sparse()] * 2).shape, (2, 3, 3))

    def test_samples_of_several_dtypes_become_what_torch_makes_of_them(self):
        def first_of(dtypes, workers, collate):
            samples = [torch.full((2000,), 1.5).to(dtype) for dtype in dtypes]
            try:
                return next(iter(torch.utils.data.DataLoader(samples, 2, num_workers=workers,
                                                             collate_fn=collate)))
            except RuntimeError as error:
                return str(error).strip().splitlines()[-1]

        pool, made = ebb.Pool("shared"), 0
        for dtypes in ((torch.float32, torch.float64), (torch.float64, torch.float32),
                       (torch.uint8, torch.int64), (torch.int64, torch.float32)):
            for workers in (0, 1):
                wanted = first_of(dtypes, workers, None)
                for inner in (None, torch.utils.data.default_collate):
                    same(first_of(dtypes, workers, ebb.Collate(pool, inner)), wanted)
                made += isinstance(wanted, torch.Tensor)
        self.assertEqual(made, 7)
        with ebb.Region():
            self.assertEqual(ebb.default_collate([torch.ones(9), torch.ones(9).double()]).dtype,
                             torch.float64)

    def test_dtypes_have_the_same_names_in_a_region_and_without(self):
        for name, dtype in (("bool", torch.bool), ("bool_", torch.bool), ("int64", torch.int64),
                            ("torch.float32", torch.float32), ("complex64", torch.complex64)):
            with ebb.Region() as region:
                made = [ebb.zeros(3, name), region.zeros(3, name).torch()]
            same(made + [ebb.zeros(3, name)], [torch.zeros(3, dtype=dtype)] * 3)
        for name in ("float8", "float32\0", "torch.", "", "nn", "torch.torch.bool"):
            self.assertRaises(TypeError, ebb.zeros, 3, name)
            with ebb.Region() as region:
                self.assertRaises(TypeError, ebb.zeros, 3, name)
                self.assertRaises(TypeError, region.zeros, 3, name)

    def test_born_in_the_region_is_not_copied(self):
        seen = []

        def inner(samples):
            made = ebb.empty((1000, 10), torch.float32).fill_(3)
            seen.append(made.data_ptr())
            return [made, ebb.stack([torch.ones(5000)] * 3), ebb.empty((3000,), numpy.float64)]

        pool = ebb.Pool("shared")
        made, stacked, array = ebb.Collate(pool, inner)([None])
        self.assertEqual(made.data_ptr(), seen[0])
        self.assertTrue((made == 3).all() and (stacked == 1).all() and array.shape == (3000,))

    def test_views_of_what_was_born_in_the_region_stay_views_of_it(self):
        """With its elements, unless the batch had to be copied; with their strides in any case."""
        def inner(samples):
            whole = ebb.empty((4, 8, 64), torch.float32).fill_(3)
            kept[:] = [whole] * keeps
            return [whole[:, :, ::2], whole[:1].expand(5, 8, 64), whole[1:3], whole]

        kept = []
        for keeps in (False, True):
            gaps, repeated, part, whole = ebb.Collate(ebb.Pool("shared"), inner)([None])
            self.assertEqual([view.stride() for view in (gaps, repeated, part, whole)],
                             [(512, 64, 2), (0, 64, 1), (512, 64, 1), (512, 64, 1)])
            whole.fill_(5)
            for view in gaps, repeated, part:
                self.assertTrue(bool((view == (3 if keeps else 5)).all()))

    def test_torchs_own_tensors_are_refused_where_their_module_is_missing(self):
        """As in the wheel."""
        with mock.patch.dict(sys.modules, {"ebb._torch_hook": None}), mock.patch.dict(vars(ebb)):
            vars(ebb).pop("_torch_hook", None)  # an import finds it without looking for a module
            with self.assertRaisesRegex(ImportError, "^allocate=True .* is not in the wheel"):
                ebb.Collate(allocate=True)

    def test_torchs_own_tensors_are_born_in_the_region(self):
        try:
            ebb.Collate(allocate=True)
        except ImportError as error:
            self.skipTest(f"not built: {error}")
        pool, seen, kept = ebb.Pool("shared"), [], []

        def inner(samples):
            made = torch.cat([torch.full((5000,), 3.0), torch.zeros(3)]) * 2
            seen.append(made.data_ptr())
            kept.extend([torch.full((2000,), 5.0)] * (len(seen) % 2))
            return {"made": made, "small": torch.arange(3)}

        collate = ebb.Collate(pool, inner, allocate=True)
        for number in range(6):
            batch = collate([None])
            self.assertEqual(batch["made"][:5000].sum(), 30000)
            if number % 2:  # nothing was kept: the elements are where they were made
                self.assertEqual(batch["made"].data_ptr(), seen[-1])
        for case in ("b2", "a_f32", "c"):
            batches = torch.utils.data.DataLoader(
                Data(case), cases.BATCH, num_workers=1, collate_fn=ebb.Collate(
                    pool, INNER[case] or torch.utils.data.default_collate, allocate=True))
            for batch, wanted in zip(batches, expected(case)):
                same(batch, wanted)
        for tensor in kept:
            self.assertTrue((tensor == 5).all())
        del batch, batches, tensor
        kept.clear()
        self.assertAllFree(pool)

    def test_onednn_has_memory_beside_torchs_own_tensors_and_in_the_region(self):
        """It asks the allocator by another way than tensors do, and frees by the address alone."""
        try:
            ebb.Collate(allocate=True)
        except ImportError as error:
            self.skipTest(f"not built: {error}")
        if not torch.backends.mkldnn.is_available():
            self.skipTest("torch has no oneDNN")
        convolution, pool, kept = torch.nn.Conv2d(3, 8, 3), ebb.Pool("shared"), []

        def inner(samples):
            images = torch.stack(samples)
            kept.append(images.to_mkldnn())
            with torch.no_grad():
                return convolution(images)

        samples = [torch.rand(3, 40, 40) for _ in range(4)]
        beside = convolution(torch.stack(samples))
        beside.sum().backward()
        collate = ebb.Collate(pool, inner, allocate=True)
        for batch in torch.utils.data.DataLoader(samples, 4, num_workers=1, collate_fn=collate):
            self.assertTrue(torch.allclose(batch, beside, atol=1e-5))
        batch = collate(samples)
        self.assertTrue(torch.allclose(batch, beside, atol=1e-5))
        self.assertTrue(torch.equal(kept[0].to_dense(), torch.stack(samples)))  # is kept
        del batch
        kept.clear()
        self.assertEqual(pool.stats["fallbacks"], 0)
        self.assertAllFree(pool)

    def test_what_was_made_in_the_region_stays_until_it_is_sent(self):
        """The batch is dropped before its region is sent: nothing may take its place meanwhile."""
        def make(lengths):
            self.assertIs(ebb.current(), region)
            return [ebb.empty((5000,), torch.float32), ebb.zeros((3,), numpy.float64),
                    ebb.pack_sequence([torch.ones(length) for length in lengths])]

        pool = ebb.Pool("shared")
        region = ebb_loader._open_region(pool)
        batch = region._run(make, (2000, 300), None)
        self.assertRaises(TypeError, region._run, make, None, None)
        self.assertIsNone(ebb.current())
        before = region.stats["blocks"]
        batch.clear()
        self.assertEqual(region.exports, 0)
        self.assertEqual(region.stats["blocks"], before)
        region.close()
        self.assertAllFree(pool)

    def test_copies_of_what_was_imported_stay_until_they_are_sent(self):
        """They lie where scratch of the collate function lay: a run that would leave the region."""
        def inner(samples):
            region = ebb.current()
            with ebb.Region(parent=region) as scratch:
                scratch.empty((4_000_000,), "float32")
                copy = export(region.tensor(torch.full((3_000_000,), samples[0]), copy=False))
            return copy, numpy.full(2_000_000, 7.0, "float32")

        pool = ebb.Pool("shared")
        for export in (ebb.Tensor.torch, ebb.Tensor.numpy, numpy.from_dlpack,
                       lambda tensor: tensor.torch()[5:9]):
            copy, other = ebb.Collate(pool, inner)([3.5])
            self.assertTrue(bool((copy == 3.5).all()) and bool((other == 7).all()))
            del copy, other
        self.assertAllFree(pool)

    def test_a_collate_that_keeps_what_it_made(self):
        kept = []

        def inner(samples):
            made = ebb.empty((5000,), torch.float32).fill_(len(kept))
            kept.append(made)
            return {"made": made, "view": made[5:10], "small": torch.arange(3)}

        pool = ebb.Pool("shared")
        collate = ebb.Collate(pool, inner)
        batches = [collate([None]) for _ in range(10)]
        for number, batch in enumerate(batches):
            self.assertTrue((batch["made"] == number).all() and (batch["view"] == number).all())
            self.assertEqual(batch["small"].tolist(), [0, 1, 2])
            self.assertTrue((kept[number] == number).all())
            batch["made"].fill_(-1)
            self.assertTrue((kept[number] == number).all())
        del batches, batch
        kept.clear()
        self.assertAllFree(pool)

    def test_a_collate_that_keeps_what_it_made_pays_for_few_full_collections(self):
        def inner(samples):
            kept.append(ebb.empty((5000,), torch.float32))
            return kept[-1]

        def collect(generation=2):
            counts[generation] = counts.get(generation, 0) + 1
            return really(generation)

        def cycle(samples):
            batch = [ebb.empty((5000,), torch.float32)]
            batch.append(batch)
            really()  # it is an old one now
            return batch

        really, pool, kept, counts = gc.collect, ebb.Pool("shared"), [], {}
        with mock.patch.object(ebb_loader, "_sending", ebb_loader._Collects()), \
                mock.patch.object(ebb_loader.gc, "collect", collect):
            for _ in range(100):
                ebb.Collate(pool, inner)([None])
            self.assertEqual(counts, {1: 100, 2: 6})
            for _ in range(50):
                ebb.Collate(pool, cycle)([None])
            self.assertGreater(counts[2], 15)  # it is tried again, and goes on if it helps

    @contextlib.contextmanager
    def opens(self):
        """How regions of batches are opened meanwhile: one that waits, or one that tries."""
        def open_region(pool, waits=True):
            opened.append("waits" if waits else "tries")
            return real(pool, waits)

        opened, real = [], ebb_loader._open_region
        with mock.patch.object(ebb_loader, "_open_region", open_region), \
                mock.patch.object(ebb_loader, "_opening", ebb_loader._Collects()):
            yield opened

    def test_old_cycles_take_no_slots_for_good_beside_what_is_kept(self):
        """What is kept lets the search for them pause, and where no slot is left none is sent."""
        def inner(samples):
            cycle = [ebb.empty((5000,), torch.float32)]
            cycle.append(cycle)
            gc.collect(1), gc.collect(1)  # it is an old one now
            kept[:] = [ebb.empty((5000,), torch.float32)]
            return cycle[0]

        kept = []
        for wait in (0, 20):
            pool = ebb.Pool("shared", slots=4, wait=wait)
            with mock.patch.object(ebb_loader, "_sending", ebb_loader._Collects()), \
                    self.opens() as opens:
                for _ in range(30):
                    ebb.Collate(pool, inner)([None])
            self.assertEqual((pool.stats["fallbacks"], pool.stats["received"]), (0, 30))
            self.assertNotIn("waits", opens)

    def test_a_batch_that_gets_no_slot_waits_once(self):
        pool = ebb.Pool("shared", slots=1, wait=0.1)
        taken = pool.send(5)
        with self.opens() as opens:
            self.assertEqual(ebb.Collate(pool)([5]).tolist(), [5])
        self.assertEqual((taken.open(), opens), (5, ["tries", "tries", "waits"]))

    def test_full_collections_are_few_where_others_free_slots_meanwhile(self):
        def let_go():
            sent.pop().open()

        pool = ebb.Pool("shared", slots=1, wait=20)
        sent = [pool.send(6)]
        with self.opens(), \
                mock.patch.object(ebb_loader.gc, "collect", side_effect=let_go) as collect:
            for number in range(20):
                sent = sent or [pool.send(6)]
                if ebb_loader._opening.left:
                    sent.pop().open()
                self.assertEqual(ebb.Collate(pool)([number]).tolist(), [number])
        self.assertLess(collect.call_count, 6)

    def test_full_collections_are_few_where_others_have_all_slots(self):
        pool = ebb.Pool("shared", slots=2)
        taken = [pool.send(5), pool.send(6)]
        with mock.patch.object(ebb_loader, "_opening", ebb_loader._Collects()), \
                mock.patch.object(ebb_loader.gc, "collect") as collect:
            for _ in range(100):
                self.assertEqual(ebb.Collate(pool)([5]).tolist(), [5])
        self.assertEqual((pool.stats["fallbacks"], collect.call_count), (100, 6))
        self.assertEqual([parcel.open() for parcel in taken], [5, 6])

    def test_a_collate_that_keeps_what_it_made_when_no_slot_is_left(self):
        kept = []

        def inner(samples):
            kept.append(ebb.empty((5000,), torch.float32).fill_(len(kept)))
            return [kept[-1], torch.arange(3)]

        pool = ebb.Pool("shared", slots=3)
        collate = ebb.Collate(pool, inner)
        batches = [collate([None]) for _ in range(8)]
        for number, (made, small) in enumerate(batches):
            self.assertTrue((made == number).all() and (kept[number] == number).all())
            self.assertEqual(small.tolist(), [0, 1, 2])
        self.assertGreater(pool.stats["fallbacks"], 0)
        self.assertEqual(pool.stats["fallbacks"] + pool.stats["received"], 8)
        del batches, made, small
        kept.clear()
        self.assertAllFree(pool)

    def test_what_was_kept_is_rescued_however_much_it_is(self):
        def small(kind, **options):
            asked.append(options.get("slot_bytes"))
            return ebb.Pool(kind, **{"slot_bytes": 1 << 22, **options})

        def inner(samples):
            kept.append(ebb.empty((1 << 18,), torch.float32).fill_(5))
            return [kept[0][i:] for i in range(64)]

        kept, asked = [], []
        pool = small("shared", slots=1)
        with mock.patch.object(ebb_loader, "Pool", small):
            batch = ebb.Collate(pool, inner)([None])
        size = sum(part.numel() * part.element_size() for part in batch)
        self.assertLess(asked[-1], 3 * size // 2)  # addresses may be few
        self.assertEqual(pool.stats["fallbacks"], 1)
        self.assertEqual([part.sum() for part in batch], [part.sum() for part in inner(None)])

    def test_pools_that_batches_outlive_end_with_them_however_many(self):
        """As those of batches that were rescued: each has descriptors, and pages, until then."""
        gc.collect()
        ebb.Pool().close()  # those that other tests left end here
        before = len(os.listdir("/proc/self/fd"))
        batches = [ebb.Pool("shared", slots=1, slot_bytes=1).send(numpy.full(9, number)).open()
                   for number in range(100)]
        self.assertEqual([int(batch[8]) for batch in batches], list(range(100)))
        self.assertGreaterEqual(len(os.listdir("/proc/self/fd")), before + 200)
        batches.clear()
        ebb.Pool().close()
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before)

    def test_a_pool_that_a_batch_outlives_keeps_the_pages_of_that_alone(self):
        pool, size = ebb.Pool("shared", slots=8), 1 << 20
        file = os.dup(pool.fileno())
        batches = [parcel.open() for parcel in [pool.send(torch.ones(size)) for _ in range(8)]]
        self.assertGreater(512 * os.fstat(file).st_blocks, 8 * 4 * size)
        batch = batches[3]
        del batches, pool
        self.assertLess(512 * os.fstat(file).st_blocks, 2 * 4 * size)
        self.assertEqual(batch.sum(), size)
        del batch
        os.close(file)

    def test_what_is_free_stays_for_others_where_one_that_did_not_make_the_pool_drops_it(self):
        pool, size = ebb.Pool("shared", slots=4), 1 << 20
        batches = [parcel.open() for parcel in [pool.send(torch.ones(size)) for _ in range(4)]]
        del batches

        def pages():
            return 512 * os.fstat(file).st_blocks

        file = os.dup(pool.fileno())
        before = pages()
        self.assertGreater(before, 4 * 4 * size)
        again = attached(pool)
        batch = pickle.loads(pickle.dumps(pool.send([1, torch.ones(size)])))  # of the newest
        self.assertEqual(again.stats["received"], 1)
        del again
        self.assertEqual(pages(), before)
        child = os.fork()
        if child == 0:
            batches = [pool.send(torch.ones(9)).open()]
            del pool
            os._exit(pages() != before)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(batch[1].sum(), size)
        del batch
        os.close(file)

    def test_a_pool_that_batches_outlived_ends_when_others_come(self):
        def opens():
            with ebb.Region():
                pass

        def begins():
            with ebb.step("tests.begins"):
                pass

        gc.collect()
        ebb.Pool().close()  # those that other tests left end here
        before = len(os.listdir("/proc/self/fd"))
        pool = ebb.Pool("shared")
        parcel = pool.send([1])
        for comes in opens, begins, lambda: parcel.open():
            kept = ebb.Pool("shared", slots=1).send(numpy.ones(9)).open()  # of another that is gone
            between = len(os.listdir("/proc/self/fd"))
            del kept
            comes()
            self.assertEqual(len(os.listdir("/proc/self/fd")), between - 2)
        del pool, parcel
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before)

    def test_who_opens_regions_does_not_pay_for_pools_that_batches_outlive(self):
        def median():
            spent = []
            for _ in range(501):
                began = time.perf_counter_ns()
                ebb.Region().close()
                spent.append(time.perf_counter_ns() - began)
            return statistics.median(spent)

        gc.collect()
        ebb.Pool().close()
        pool = ebb.Pool("shared", slots=4096, slot_bytes=1 << 24)
        batch = pool.send(numpy.ones(9)).open()
        before = median()
        del pool
        self.assertLess(median(), 10 * before)  # it was 40 times as much
        self.assertEqual(batch.sum(), 9)

    def test_a_cycle_that_keeps_what_was_made_is_collected(self):
        def inner(samples):
            batch = [ebb.empty((5000,), torch.float32)]
            batch.append(batch)
            return batch

        pool = ebb.Pool("shared")
        batch = ebb.Collate(pool, inner)([None])
        self.assertIs(batch[1], batch)
        del batch
        self.assertAllFree(pool)


class Bounds(Refused, Regions):
    def test_a_batch_that_does_not_fit_goes_torchs_way_and_is_counted(self):
        for workers in (0, 1):
            pool = ebb.Pool("shared", slot_bytes=1 << 20, slots=4)
            collate = ebb.Collate(pool, enlarged)
            batches = torch.utils.data.DataLoader(range(12), 2, num_workers=workers,
                                                  collate_fn=collate)
            for number, batch in enumerate(batches):
                same(batch, [torch.full((4, 1 << 20), 2.0 * number), [torch.ones(1 << 20)] * 4])
            self.assertEqual((pool.stats["fallbacks"], pool.stats["received"]), (6, 0))
            del batch, batches
            self.assertAllFree(pool)

    def test_what_is_kept_of_a_child_of_the_region_stays_and_the_batch_goes(self):
        def closed():
            with ebb.Region(parent=ebb.current()) as scratch:
                return scratch.empty(5000).torch()

        def still_open():
            scratch = ebb.Region(parent=ebb.current())
            return scratch, scratch.empty(5000).torch()

        def inner(samples):
            kept.append(samples())
            return torch.ones(9000)

        for keep in (closed, still_open):
            pool, kept = ebb.Pool("shared"), []
            collate = ebb.Collate(pool, inner)
            for _ in range(10):
                same(collate(keep), torch.ones(9000))
            self.assertEqual((pool.stats["fallbacks"], pool.stats["received"]), (0, 10))
            kept.clear()
            self.assertAllFree(pool)

    def test_a_batch_beside_a_pool_that_was_attached_by_its_descriptor_is_counted_once(self):
        pool = ebb.Pool("shared", slots=1)
        taken = pool.send(5)
        theirs = ebb.Pool("shared", descriptor=pool.fileno())
        with mock.patch.object(ebb_loader.delivery, "loop_of_worker", sys._getframe):
            message = pickle.dumps(ebb.Collate(theirs, list)([7]))
        del theirs  # in the trainer it is not
        newer = ebb.Pool("shared")
        self.assertEqual(pickle.loads(message), [7])
        again = attached(pool)
        self.assertEqual(pickle.loads(message), [7])
        self.assertEqual([pool.stats["fallbacks"] for pool in (pool, newer, again)], [1, 0, 1])
        self.assertEqual(taken.open(), 5)

    def test_a_batch_in_one_that_does_not_fit_arrives_with_it(self):
        def both(samples):
            return {"images": inner(samples), "mask": torch.zeros(1 << 22, dtype=torch.uint8)}

        inner, small = ebb.Collate(ebb.Pool("shared")), ebb.Pool("shared", slot_bytes=1 << 21)
        batches = torch.utils.data.DataLoader(
            [torch.full((5000,), float(i)) for i in range(8)], 2, num_workers=1, timeout=60,
            collate_fn=ebb.Collate(small, both))
        for number, batch in enumerate(batches):
            self.assertEqual(batch["images"][:, 0].tolist(), [2 * number, 2 * number + 1])
        self.assertEqual((number, small.stats["fallbacks"]), (3, 4))

    def test_a_kept_batch_that_no_pool_can_be_made_for_is_an_error_and_takes_no_slot(self):
        def inner(samples):
            kept.append(ebb.empty((5000,), torch.float32).fill_(5))
            return [kept[0], torch.arange(3)]

        kept, others, pool = [], [], ebb.Pool("shared", slots=1)
        ebb.Collate(pool, lambda _: ebb.zeros(5000))([])  # what it needs beside is there
        gc.collect()
        with contextlib.suppress(ebb.Error):
            while True:
                others.append(ebb.Pool())
        self.assertRefused("EBB_E_MEMORY", ebb.Collate(pool, inner), [None])
        self.assertTrue(bool((kept[0] == 5).all()))
        kept.clear()
        self.assertAllFree(pool)
        self.assertEqual((pool.send([2]).open(), pool.stats["fallbacks"]), ([2], 0))

    def test_repeated_elements_beyond_all_addresses(self):
        pool = ebb.Pool("shared")
        wide = torch.zeros(1).expand(1 << 31, 1 << 31)
        self.assertRefused("EBB_E_SIZE", pool.send, [wide])
        self.assertIs(ebb.Collate(pool, lambda _: wide)([]), wide)
        self.assertEqual(pool.stats["fallbacks"], 1)

    def test_all_batches_kept_and_none_stalls(self):
        pool = ebb.Pool("shared", slots=4)
        batches = list(loader("d", pool, 2, length=40 * cases.BATCH))
        for batch, wanted in zip(batches, expected("d", 40 * cases.BATCH)):
            same(batch, wanted)
        self.assertEqual(len(batches), 40)
        self.assertGreaterEqual(pool.stats["fallbacks"], 32)
        self.assertEqual(pool.stats["fallbacks"] + pool.stats["received"], 40)
        del batches, batch
        self.assertAllFree(pool)

    def test_waiting_for_a_slot_is_bounded_and_leaves_other_threads_alone(self):
        for wait in (0.3, 60):
            pool = ebb.Pool("shared", slots=2, wait=wait)
            held = [pool.send(torch.zeros(3)).open() for _ in range(2)]
            start = time.monotonic()
            if wait == 60:
                threading.Timer(0.1, held.pop).start()
                self.assertEqual(pool.send([4]).open(), [4])
                held.append(pool.send([5]))
                threading.Timer(0.1, held.pop).start()
                with ebb.step("waits", pool=pool):
                    self.assertEqual(pool.stats["open_regions"], 1)
                self.assertLess(time.monotonic() - start, 50)
            else:
                self.assertRefused("EBB_E_SLOTS", pool.send, [3])
                self.assertGreaterEqual(time.monotonic() - start, 0.29)

    def test_a_step_with_a_ring_that_waits_leaves_other_threads_alone(self):
        pool = ebb.Pool("shared", slots=1, wait=60)
        held = [pool.send([1])]
        threading.Timer(0.1, held.pop).start()
        start = time.monotonic()
        with ebb.step("rings", pool=pool, ring=1):
            self.assertLess(time.monotonic() - start, 50)

    def counted_while_a_step_waits(self, ring):
        """How far another thread gets in a second meanwhile."""
        def counts():
            begins = time.monotonic()
            while not over.is_set():
                reached[0] += 1
            reached.append(time.monotonic() - begins)

        pool, over, reached = ebb.Pool("shared", slots=1, wait=0.5), threading.Event(), [0]
        sent, thread = pool.send([1]), threading.Thread(target=counts)
        thread.start()
        try:
            begins = time.monotonic()
            self.assertRefused("EBB_E_SLOTS", ebb.step("counts", pool=pool, ring=ring).__enter__)
            self.assertGreaterEqual(time.monotonic() - begins, 0.49)
        finally:
            over.set()
            thread.join()
            sent.open()
        return reached[0] / reached[1]

    def test_other_threads_get_as_far_while_a_step_with_a_ring_waits_as_beside_others(self):
        # it was a fifth; a loaded machine may do that, too, but not each time
        self.assertTrue(any(self.counted_while_a_step_waits(1) * 3 >
                            self.counted_while_a_step_waits(0) for _ in range(4)))

    def test_a_step_that_waited_leaves_what_another_thread_resets_alone(self):
        def meddle():  # in the middle of that
            held.clear()
            self.assertTrue(begun.wait(60))

        pool, begun = ebb.Pool("shared", slots=3, wait=60), threading.Event()
        step, held = ebb.step("rings", pool=pool, ring=1), [pool.send([1])]
        with step as oldest:
            sources = [numpy.zeros(5000) for _ in range(2)]
            tensors = [oldest.tensor(source, copy=False) for source in sources]
        weakref.finalize(sources.pop(), meddle)
        with step as kept:
            pass
        thread = threading.Timer(0.2, oldest.reset)
        thread.start()
        with step as third:  # waits until the other thread lets go of what is held
            begun.set()
            thread.join()
            self.assertTrue(kept.is_open and oldest.is_open)
            self.assertEqual(oldest.zeros(9000).numpy().sum(), 0)
            del oldest, tensors, thread
            self.assertEqual(pool.stats["open_regions"], 2)
        del third, kept, step
        self.assertAllFree(pool)

    def test_a_signal_ends_the_wait_for_a_slot(self):
        class Stopped(Exception):
            pass

        def stop(number, frame):
            raise Stopped

        pool = ebb.Pool("shared", slots=1, wait=60)
        held = pool.send([1])
        before = signal.signal(signal.SIGALRM, stop)
        try:
            for wait in (lambda: pool.send([2]), lambda: ebb.Region(pool),
                         lambda: ebb.step("waits", pool=pool).__enter__(),
                         lambda: ebb.step("rings", pool=pool, ring=1).__enter__()):
                start = time.monotonic()
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                self.assertRaises(Stopped, wait)
                self.assertLess(time.monotonic() - start, 50)
        finally:
            signal.signal(signal.SIGALRM, before)
        self.assertEqual(held.open(), [1])
        with ebb.Region(pool):
            self.assertRefused("EBB_E_BUSY", pool.close)
        pool.close()

    def test_a_pool_that_a_thread_waits_for_is_not_closed(self):
        for begin in (ebb.Region, lambda pool: ebb.step("waits", pool=pool).__enter__()):
            pool = ebb.Pool("shared", slots=1, wait=60)
            sent, opened, begun = [pool.send([1])], [], threading.Event()

            def wait():
                begun.set()
                opened.append(begin(pool))

            thread = threading.Thread(target=wait)
            interval = sys.getswitchinterval()
            sys.setswitchinterval(1000)  # it goes on until it gives the interpreter away by itself
            try:
                thread.start()
                begun.wait()
                self.assertRefused("EBB_E_BUSY", pool.close)
            finally:
                sys.setswitchinterval(interval)
            sent.clear()
            thread.join()
            opened.pop().close()
            pool.close()

    def test_a_handler_cannot_close_the_pool_that_is_waited_for(self):
        for ring in (0, 1):
            pool, refused = ebb.Pool("shared", slots=1, wait=60), []
            held = [pool.send([1])]

            def close(number, frame):
                with self.assertRaises(ebb.Error) as caught:
                    pool.close()
                refused.append(caught.exception.name)
                held.clear()

            before = signal.signal(signal.SIGALRM, close)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                with ebb.step("waits", pool=pool, ring=ring) as region:
                    region.zeros(1000)
            finally:
                signal.signal(signal.SIGALRM, before)
            self.assertEqual(refused, ["EBB_E_BUSY"])

    def test_a_pool_with_steps_ends_when_it_is_dropped_and_nobody_collects_cycles(self):
        gc.collect()
        ebb.Pool().close()  # those that other tests left end here
        before = len(os.listdir("/proc/self/fd"))
        gc.disable()
        try:
            for ring in (0, 1):
                pool = ebb.Pool("shared")
                for _ in range(3):
                    with ebb.step("tests.drops", pool=pool, ring=ring) as region:
                        region.zeros(5000)
                del pool, region
                self.assertEqual(len(os.listdir("/proc/self/fd")), before)
        finally:
            gc.enable()

    def test_what_is_collected_with_its_pool_takes_a_last_step(self):
        told = []

        class Trainer:
            def __init__(self):
                self.pool, self.me = ebb.Pool("shared"), self
                self.step()

            def step(self):
                with ebb.step("tests.ends", pool=self.pool):
                    told.append("step")

            def __del__(self):
                self.step()

        Trainer()
        gc.collect()
        self.assertEqual(told, ["step"] * 2)

    def test_a_site_does_not_keep_its_pool_and_the_region_of_a_step_does(self):
        def drops(begin):
            """What that begins on a site of a pool, and the pool, which nobody else has then."""
            pool = ebb.Pool("shared")
            return begin(ebb.step("tests.keeps", pool=pool).site), weakref.ref(pool)

        site, pool = drops(lambda site: site)
        self.assertIsNone(pool())
        self.assertRefused("EBB_E_STALE", site.begin, ebb.Region, None, 0)
        region, pool = drops(lambda site: site.begin(ebb.Region, None, 0))
        self.assertIs(region.pool, pool())
        self.assertEqual(region.zeros(5000).numpy().sum(), 0)
        region.close()
        del region
        self.assertIsNone(pool())
        with ebb.Region() as above:
            region, pool = drops(lambda site: site.begin(ebb.Region, above, 0))
            self.assertIsNone(pool())  # it needs that of the region above, and no other
            self.assertEqual(region.zeros(5000).numpy().sum(), 0)
            region.close()

    def test_kept_without_a_bound(self):
        pool = ebb.Pool("shared")
        batches = list(loader("d", pool, 2, length=40 * cases.BATCH))
        self.assertEqual((pool.stats["fallbacks"], len(batches)), (0, 40))

    def test_a_worker_that_fails_says_so_and_the_pool_goes_on(self):
        def inner(samples):
            ebb.empty((5000,), torch.float32)
            raise KeyError("mine")

        pool = ebb.Pool("shared")
        failing = torch.utils.data.DataLoader(Data("d"), batch_size=4, num_workers=1,
                                              collate_fn=ebb.Collate(pool, inner))
        self.assertRaises(KeyError, next, iter(failing))
        self.assertRaises(KeyError, ebb.Collate(pool, inner), [1])
        for batch, wanted in zip(loader("d", pool, 1), expected("d")):
            same(batch, wanted)

    def test_errors_of_the_users_are_not_shown_as_consequences_of_no_room(self):
        def missing(samples):
            return {}["mine"]

        def beyond(samples):
            return ebb.empty((1 << 60,), torch.float32)

        def kept(samples):
            made.append(ebb.empty((5000,), torch.float32))
            return made, Unreadable()

        def unlike(samples):
            return ebb.pad_sequence([torch.zeros(1 << 20, 2), torch.zeros(1, 3)])

        made, pool = [], ebb.Pool("shared", slots=1, slot_bytes=1 << 21)
        for inner in (beyond, kept, unlike, missing):
            held = ebb.Region(pool) if inner is missing else None
            with self.subTest(inner):
                with self.assertRaises(Exception) as caught:
                    ebb.Collate(pool, inner)([1])
                self.assertIsNone(caught.exception.__context__)
            made.clear()
        held.close()

    def test_an_error_of_ebbs_while_a_batch_is_pickled_is_no_want_of_room(self):
        """Torch's own way, in a thread of the worker's, would meet it again and send nothing."""
        class Asks:
            def __reduce__(self):
                return int, (closed.fileno(),)

        closed = ebb.Pool("shared")
        closed.close()
        batches = torch.utils.data.DataLoader(range(4), num_workers=1, timeout=60, collate_fn=(
            ebb.Collate(ebb.Pool("shared"), lambda _: [torch.zeros(5000), Asks()])))
        self.assertRaisesRegex(ebb.Error, "closed", list, batches)

    def test_nor_is_one_of_a_region_of_its_own_that_is_full(self):
        class Fills:
            def __reduce__(self):
                return int, (small.zeros(1 << 20).numpy(),)

        small, pool = ebb.Region(limit=1 << 12), ebb.Pool("shared")
        collate = ebb.Collate(pool, lambda _: [torch.zeros(5000), Fills()])
        self.assertRefused("EBB_E_REGION_LIMIT", collate, [None])
        self.assertEqual(pool.stats["fallbacks"], 0)
        self.assertAllFree(pool)

    def test_a_region_that_is_closed_while_a_batch_is_pickled_is_want_of_room(self):
        class Closes:
            def __reduce__(self):
                regions.pop().close()
                return int, ()

        def inner(samples):
            regions.append(ebb.current())
            return [Closes(), 5]

        regions, pool = [], ebb.Pool("shared")
        self.assertEqual(ebb.Collate(pool, inner)([None])[1], 5)
        self.assertEqual(pool.stats["fallbacks"], 1)

    def test_an_error_of_ebbs_in_a_worker_has_all_attributes(self):
        batches = torch.utils.data.DataLoader(range(4), num_workers=1, collate_fn=ebb.Collate(
            ebb.Pool("shared"), refused))
        with self.assertRaises(ebb.Error) as caught:
            list(batches)
        self.assertIn("the region is closed", str(caught.exception))
        self.assertEqual((caught.exception.code, caught.exception.name), (0, ""))

    def test_leaving_the_loop_gives_regions_back(self):
        """Those that were fetched ahead, too: their workers do when they end."""
        pool = ebb.Pool("shared")
        for _ in range(4):
            for batch in loader("d", pool, 2):
                break
        del batch
        gc.collect()
        self.assertEqual(pool.reclaim(sent_too=True), 0)
        self.assertAllFree(pool)

    def test_nor_do_parcels_inside_of_batches_stay(self):
        """That nobody opened, whatever pool they are of; those of a batch that arrived do."""
        class Sends:
            def __getitem__(self, index):
                return pools[index % 2].send([torch.full((3000,), index), pools[1].send(index)])

        pools = [ebb.Pool("shared"), ebb.Pool("shared")]
        batches = iter(torch.utils.data.DataLoader(
            Sends(), 2, num_workers=1, prefetch_factor=4, sampler=range(40),
            collate_fn=ebb.Collate(pools[0], list)))
        kept = next(batches)
        del batches
        gc.collect()
        self.assertEqual([pool.reclaim(sent_too=True) for pool in pools], [0, 0])
        self.assertEqual([(int(part[0]), number) for part, number in kept], [(0, 0), (1, 1)])
        del kept
        for pool in pools:
            self.assertAllFree(pool)

    def test_nor_do_those_inside_of_batches_that_go_torchs_own_way(self):
        class Sends:
            def __getitem__(self, index):
                return pool.send([torch.full((3000,), index), pool.send(index)])

        full, pool = ebb.Pool("shared", slots=1), ebb.Pool("shared")
        taken = full.send(5)
        batches = iter(torch.utils.data.DataLoader(
            Sends(), 2, num_workers=1, prefetch_factor=4, sampler=range(40),
            collate_fn=ebb.Collate(full, list)))
        kept = next(batches)
        del batches
        gc.collect()
        self.assertEqual(pool.reclaim(sent_too=True), 0)
        self.assertEqual([(int(part[0]), number) for part, number in kept], [(0, 0), (1, 1)])
        self.assertEqual((taken.open(), full.stats["fallbacks"]), (5, 1))
        del kept
        self.assertAllFree(pool)

    def test_but_those_that_the_trainer_made_do(self):
        """A worker that was forked has them inside of its batches, too, and no part in them."""
        for slots in (40, 41):  # batches go torch's own way, or not
            pool = ebb.Pool("shared", slots=slots)
            made = [pool.send([index]) for index in range(40)]
            batches = iter(torch.utils.data.DataLoader(
                made, 2, num_workers=1, prefetch_factor=4, collate_fn=ebb.Collate(pool, list)))
            next(batches)
            del batches
            gc.collect()
            self.assertEqual([parcel.open()[0] for parcel in made[2:]], [*range(2, 40)])

    def test_nor_do_they_stay_when_an_exception_of_a_worker_was_caught(self):
        """Its iterator is part of a cycle, and torch ends the workers by a signal then."""
        class Fails:
            def __getitem__(self, index):
                if index == 9:
                    raise ValueError("no sample")
                return torch.ones(3000)

        pool, caught = ebb.Pool("shared"), 0
        try:  # assertRaises() would clear the frames, and with them the cycle
            for _ in torch.utils.data.DataLoader(Fails(), 2, num_workers=1, prefetch_factor=4,
                                                 sampler=range(40), collate_fn=ebb.Collate(pool)):
                pass
        except ValueError:
            caught = 1
        gc.collect()
        while multiprocessing.active_children():  # torch does not wait for the signal's effect
            time.sleep(0.01)
        self.assertTrue(caught)
        self.assertEqual(pool.reclaim(sent_too=True), 0)
        self.assertAllFree(pool)

    def test_nor_do_they_stay_when_a_thread_has_collated_first(self):
        """Its frames say nothing of torch's loop."""
        def collate_in_a_thread(_):
            thread = threading.Thread(target=lambda: batches.collate_fn([]).open())
            thread.start()
            thread.join()

        pool = ebb.Pool("shared")
        batches = loader("b", pool, 1, worker_init_fn=collate_in_a_thread)
        for batch in batches:
            break
        del batch
        gc.collect()
        self.assertEqual(pool.reclaim(sent_too=True), 0)
        self.assertAllFree(pool)

    def test_a_worker_keeps_no_iterator_of_an_epoch_that_is_over(self):
        """Looking at torch's frame leaves a copy of its variables there, up to Python 3.12."""
        class Endless(torch.utils.data.IterableDataset):
            def __iter__(self):
                try:
                    while True:
                        yield torch.ones(3000)
                finally:
                    closed.release()

        closed, pool = multiprocessing.Semaphore(0), ebb.Pool("shared")
        batches = torch.utils.data.DataLoader(Endless(), 2, num_workers=1, persistent_workers=True,
                                              collate_fn=ebb.Collate(pool))
        next(iter(batches))
        self.assertFalse(closed.acquire(False))
        next(iter(batches))
        self.assertTrue(closed.acquire(timeout=20))

    def test_looking_for_the_event_leaves_a_modules_variables_alone(self):
        """A loop of an unknown torch is the outermost frame, which may be the program's."""
        names = {"_variable": ebb_loader.delivery._variable, "sys": sys}
        exec("found = _variable(sys._getframe(), 'sys')\nstays = sys", names)
        self.assertIs(names["found"], names["stays"])

    def test_nor_do_they_stay_where_workers_look_at_the_event_at_once(self):
        """To look at it takes its flag away, for a moment that is a long one here."""
        def is_set(event):
            with event._cond:
                found = event._flag.acquire(False)
                if found:
                    time.sleep(0.05)
                    event._flag.release()
                return found

        pool = ebb.Pool("shared")
        with mock.patch("multiprocessing.synchronize.Event.is_set", is_set):
            for _ in range(2):
                batches = loader("b", pool, 4)
                for batch in batches:
                    break
                del batch, batches
                gc.collect()
        self.assertEqual(pool.reclaim(sent_too=True), 0)
        self.assertAllFree(pool)

    def interrupted(self, pool):
        """An iterator whose worker was, when it had one batch fetched ahead, and has looked at the
        event since, which is not set."""
        class Interrupts:
            def __getitem__(self, index):
                if index == 2:
                    raise KeyboardInterrupt
                return torch.ones(3000)

        def seems_set(event):
            found = look(event)
            if threading.current_thread() is threading.main_thread():  # at its end only
                looked.release()
            return found

        looked, delivery = multiprocessing.Semaphore(0), ebb_loader.delivery
        look = delivery._seems_set
        with mock.patch.multiple(delivery, _seems_set=seems_set, _OVER_WITHIN=60):
            batches = iter(torch.utils.data.DataLoader(
                Interrupts(), 1, num_workers=1, sampler=range(40), collate_fn=ebb.Collate(pool)))
        next(batches)
        self.assertTrue(looked.acquire(timeout=50))
        return batches

    def test_nor_do_they_stay_when_workers_are_interrupted_before_the_trainer_lets_go(self):
        """As by Ctrl-C at a terminal, which goes to all of them."""
        pool = ebb.Pool("shared")
        batches = self.interrupted(pool)
        del batches
        gc.collect()
        self.assertEqual(pool.reclaim(sent_too=True), 0)
        self.assertAllFree(pool)

    def test_a_worker_that_is_interrupted_again_does_not_wait_for_the_trainer(self):
        pool = ebb.Pool("shared")
        batches = self.interrupted(pool)
        worker, = batches._workers
        os.kill(worker.pid, signal.SIGINT)
        worker.join(30)
        self.assertEqual(worker.exitcode, 0)
        del batches
        gc.collect()
        self.assertEqual(pool.reclaim(sent_too=True), 1)

    def test_what_left_the_loader_early_is_not_recalled(self):
        """Batches that arrived, and those that the trainer itself has sent."""
        pool = ebb.Pool("shared")
        batches = iter(loader("d", pool, 2))
        kept = [next(batches) for _ in range(3)]
        beside = pickle.dumps(pool.send([torch.arange(5000)]))
        del batches
        gc.collect()
        for batch, wanted in zip(kept, expected("d")):
            same(batch, wanted)
        self.assertTrue(torch.equal(pickle.loads(beside)[0], torch.arange(5000)))

    def test_only_shared_pools_collate_and_go_to_other_processes(self):
        self.assertRaises(ValueError, ebb.Collate, ebb.Pool())
        for no_pool in (INNER["b"], 3):  # a collate function of one's own goes second
            with self.assertRaisesRegex(TypeError, "no ebb.Pool: what collates is `inner`"):
                ebb.Collate(no_pool)
        with self.assertRaisesRegex(TypeError, "5 cannot be called: `inner` is what"):
            ebb.Collate(ebb.Pool("shared"), 5)
        self.assertRaises(TypeError, pickle.dumps, ebb.Pool())
        self.assertRefused("EBB_E_KIND", ebb.Pool().fileno)
        self.assertRefused("EBB_E_KIND", ebb.Pool().send, [1])

    def test_copies_of_what_has_a_pool_have_the_same_one(self):
        """A batch comes back to one pool only, which counts it."""
        collate = ebb.Collate(ebb.Pool("shared"))
        for number, copied in enumerate((copy.copy, copy.deepcopy, copy.copy), 1):
            batches = copied(torch.utils.data.DataLoader([3], num_workers=1, collate_fn=collate))
            self.assertEqual([batch.tolist() for batch in batches], [[3]])
            self.assertIs(copied(collate).pool, collate.pool)
            self.assertEqual(collate.pool.stats["received"], number)
        step = ebb.step("tests.copied.pool", pool=ebb.Pool())
        self.assertIs(copy.deepcopy(step).site, step.site)

    def test_a_pool_that_is_pickled_is_had_of_who_has_it_open(self):
        """A message that is never read keeps nothing, and one may be read again."""
        gc.collect()
        ebb.Pool().close()  # those that other tests left end here
        collate, other = ebb.Collate(ebb.Pool("shared")), ebb.Pool("shared")
        before = len(os.listdir("/proc/self/fd")), threading.active_count()
        message = [pickle.dumps(collate) for _ in range(20)][0]
        self.assertEqual((len(os.listdir("/proc/self/fd")), threading.active_count()), before)
        for number in range(2):
            parcel = pickle.dumps(collate.pool.send([number]))
            done = subprocess.run([sys.executable, "-B", "-c", OPENS_IT, message.hex(),
                                   parcel.hex()], capture_output=True, text=True, check=False)
            self.assertEqual(done.stdout, f"[{number}]", done.stderr)
        place = collate.pool.fileno()
        collate.pool.close()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before[0] - 2)
        with self.assertRaisesRegex(LookupError, f"of process {os.getpid()}, which pickled"):
            pickle.loads(message)
        os.dup2(other.fileno(), place)  # another pool has its number
        self.assertRaises(LookupError, pickle.loads, message)
        os.close(place)

    def test_limits_go_to_other_processes_with_the_pool(self):
        for options in ({"limit": 2 << 20}, {"limit_used": 2 << 20}):
            pool = ebb.Pool("shared", name="mine", **options)
            there = attached(pool)
            for end in (pool, there, attached(there)):
                self.assertEqual(end.send([3]).open(), [3])
                self.assertRefused("EBB_E_POOL_LIMIT", end.send, numpy.zeros(1 << 19))


class Views(Regions):
    def hold(self, batch):
        """A few views of a batch, and what they must still show later."""
        images, targets = batch
        whole = random.choice(images)
        target = random.choice(targets)["boxes"]
        views = [whole[1], whole.transpose(0, 2), whole.numpy()[:, ::2], whole.reshape(-1)[3:],
                 whole.view(torch.uint8) if whole.dtype == torch.float32 else whole, target,
                 pickle.loads(pickle.dumps(target)), memoryview(whole.numpy()[0])]
        view = random.choice(views)
        return view, numpy.array(view, copy=True)

    def test_600_batches_whose_views_are_held_at_random(self):
        random.seed(7)
        pool = ebb.Pool("shared")
        held, count = [], 0
        while count < 600:
            for batch in loader("b", pool, 2, length=100 * cases.BATCH):
                held.append((*self.hold(batch), count + random.choice((0, 1, 5, 40))))
                count += 1
                for view, wanted, until in [item for item in held if item[2] <= count]:
                    self.assertEqual(numpy.asarray(view).tobytes(), wanted.tobytes())
                held = [item for item in held if item[2] > count]
        self.assertEqual((pool.stats["received"], pool.stats["fallbacks"]), (600, 0))
        held.clear()
        del batch, view, wanted
        self.assertAllFree(pool)


if __name__ == "__main__":
    unittest.main()
