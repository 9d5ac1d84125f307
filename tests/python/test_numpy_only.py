# SPDX-License-Identifier: Apache-2.0
"""Without torch: arrays, regions, and batches between processes of multiprocessing."""

import sys

sys.modules["torch"] = None  # whoever imports it fails

import collections
import multiprocessing
import os
import types
import unittest

import ebb
import numpy

Pair = collections.namedtuple("Pair", "x y")


def sample(index):
    return {"x": numpy.full((20, 30), index, "f4"), "y": index, "name": str(index),
            "pair": Pair(numpy.arange(3), float(index)), "many": [numpy.zeros(2), True]}


class Thing:
    """Has no reducer that is registered."""


def calls_in_package(function, *arguments):
    """How many functions of the package, in Python, the call takes."""
    folder, calls = os.path.dirname(ebb.__file__), []

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(folder):
            calls.append(frame.f_code.co_name)
    sys.setprofile(profile)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return len(calls)


def work(pool, count, queue):
    collate = ebb.default_collate
    for start in range(count):
        with ebb.Region(pool):
            pass
        queue.put(pool.send(collate([sample(start), sample(start + 1)])))
    queue.put(None)


def answer(pool, queue):
    queue.get().send("here")


class NumpyOnly(unittest.TestCase):
    def check(self, batch, start):
        self.assertEqual(list(batch), ["x", "y", "name", "pair", "many"])
        self.assertEqual(batch["x"].shape, (2, 20, 30))
        self.assertTrue((batch["x"][1] == start + 1).all() and (batch["x"][0] == start).all())
        self.assertEqual(batch["y"].tolist(), [start, start + 1])
        self.assertEqual(batch["name"], [str(start), str(start + 1)])
        self.assertIs(type(batch["pair"]), Pair)
        self.assertEqual(batch["pair"].x.tolist(), [[0, 1, 2]] * 2)
        self.assertEqual(batch["many"][1].dtype, bool)

    def test_collate_in_this_process(self):
        pool = ebb.Pool("shared")
        for start in range(10):
            self.check(ebb.Collate(pool)([sample(start), sample(start + 1)]), start)
        self.assertEqual(pool.stats["received"], 10)
        self.assertIsInstance(ebb.collate([sample(0), sample(1)]), dict)

    def test_batches_cross_queues(self):
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            pool, queue = ebb.Pool("shared"), context.Queue()
            worker = context.Process(target=work, args=(pool, 20, queue))
            worker.start()
            kept = []
            while (batch := queue.get(timeout=60)) is not None:
                kept.append(batch)
            worker.join()
            self.assertEqual(len(kept), 20)
            for start, batch in enumerate(kept):
                self.check(batch, start)

    def test_connections_cross_queues(self):
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            pool, queue = ebb.Pool("shared"), context.Queue()
            others = [context.Pipe() for _ in range(5)]  # the numbers differ
            worker = context.Process(target=answer, args=(pool, queue))
            worker.start()
            mine, theirs = context.Pipe()
            queue.put(pool.send(theirs))
            self.assertTrue(mine.poll(60))
            self.assertEqual(mine.recv(), "here")
            worker.join()
            self.assertEqual((worker.exitcode, len(others)), (0, 5))

    def test_objects_without_a_reducer_take_no_code_in_python_each(self):
        pool = ebb.Pool("shared")
        few, many = (calls_in_package(pool.send, [[Thing(), numpy.ones(2), numpy.float32(1), Thing]
                                                  for _ in range(count)]) for count in (1, 50))
        self.assertGreater(few, 0)
        self.assertEqual(many, few)

    def test_helpers_make_arrays(self):
        with ebb.Region() as region:
            self.assertIs(type(ebb.empty((3000,))), numpy.ndarray)
            self.assertIs(type(ebb.stack([numpy.ones(3000)] * 2)), numpy.ndarray)
            self.assertEqual(region.exports, 0)
            kept = ebb.zeros((3000,), "float64")
            self.assertEqual(region.exports, 1)
        self.assertEqual(kept.sum(), 0)

    def test_numbers_stay_what_they_are_or_are_refused(self):
        for batch in ([1, 2.5], [True, False], [2 ** 63], [2 ** 63 - 1, 1], [1j, 2]):
            self.assertEqual(ebb.default_collate(batch).tolist(), batch)
        for batch in ([numpy.int64(1), 2], [numpy.int64(2 ** 53 + 1), numpy.uint64(1)],
                      [numpy.uint64(2 ** 53 + 1), -1], [numpy.bool_(True), numpy.uint8(7)]):
            made = ebb.default_collate(batch)
            self.assertIn(made.dtype.kind, "iu")
            self.assertEqual(made.tolist(), [int(number) for number in batch])
        for batch in ([1, "a"], [2.5, "a"], [1, None], [numpy.float32(1), b"a"],
                      [numpy.timedelta64(5, "ns")], [1, numpy.timedelta64(5)],
                      [numpy.timedelta64(5), 2 ** 64]):
            with self.assertRaises(TypeError):
                ebb.default_collate(batch)
        for batch in ([1, 2 ** 63], [2 ** 64, 1], [-2 ** 63 - 1], [numpy.uint64(2 ** 63 + 1), -1],
                      [numpy.int64(-1), numpy.uint64(2 ** 63)], [numpy.bool_(True), 2 ** 64]):
            with self.assertRaises(OverflowError):
                ebb.default_collate(batch)

    def test_torch_that_another_thread_is_about_to_import(self):
        pool = ebb.Pool("shared")
        sys.modules["torch"] = half = types.ModuleType("torch")
        sys.modules["torch.utils.data"] = types.ModuleType("torch.utils.data")
        try:
            self.assertEqual(ebb.stack([numpy.arange(3)] * 2).shape, (2, 3))
            self.assertEqual(ebb.Collate(pool, list)([1, 2]), [1, 2])
            for name in ("utils", "Tensor", "_C"):
                setattr(half, name, types.ModuleType(name))
                with ebb.Region() as region:
                    self.assertEqual(region.tensor(numpy.arange(3)).numpy().tolist(), [0, 1, 2])
                self.assertEqual(pool.send([numpy.arange(3)]).open()[0].tolist(), [0, 1, 2])
        finally:
            sys.modules["torch"] = None
            del sys.modules["torch.utils.data"]

    def test_torch_was_not_needed(self):
        self.assertIsNone(sys.modules["torch"])
        with ebb.Region() as region, self.assertRaises(ImportError):
            region.zeros((3,)).torch()


if __name__ == "__main__":
    unittest.main()
