# SPDX-License-Identifier: Apache-2.0
"""Batches from the stock DataLoader to a real GPU; skipped where torch has none.

What the fake driver shows (test_guard.py), over the real one, with torch's own copies: pages are
pinned in torch's eyes, too, what arrives on the device is what was sent, and a batch that the
device still reads is not written over.
"""

import ctypes
import gc
import unittest

import ebb

try:
    ctypes.CDLL("libcuda.so.1")
except OSError:  # without the second that it takes torch to say so
    raise unittest.SkipTest("there is no driver of a GPU")
try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is missing")
if not torch.cuda.is_available():
    raise unittest.SkipTest("torch has no GPU here")

import cases
from cases import INNER, Data, reference

GPU = torch.device("cuda", 0)
BYTES = 1 << 20
LONG = 200_000_000  # cycles of the device: 0.1 s and more


class Numbers(torch.utils.data.Dataset):
    """Sample i: BYTES bytes of i, and i."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return torch.full((BYTES,), index % 251, dtype=torch.uint8), index


def loader_of(data, pool, workers=2, inner=None, **options):
    return torch.utils.data.DataLoader(data, num_workers=workers,
                                       collate_fn=ebb.Collate(pool, inner), **options)


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, torch.nn.utils.rnn.PackedSequence):
        yield value.data
    elif isinstance(value, dict):
        for inner in value.values():
            yield from tensors_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from tensors_in(inner)


class RealGpu(unittest.TestCase):
    def test_tensors_of_a_batch_are_pinned_and_those_of_others_are_not(self):
        for kind, pinned in (("shared+pinned", True), ("shared", False)):
            got = ebb.Pool(kind).send([torch.ones(5000), {"n": torch.ones(3, 7)}]).open()
            self.assertEqual([part.is_pinned() for part in tensors_in(got)], [pinned] * 2, kind)
        with ebb.Region(ebb.Pool("pinned")) as region:
            self.assertTrue(torch.from_dlpack(region.zeros((100, 100))).is_pinned())

    def compare(self, case, **options):
        pool, data = ebb.Pool("shared+pinned"), Data(case, 96)
        batches = loader_of(data, pool, inner=INNER[case], batch_size=cases.BATCH, **options)
        for number, batch in enumerate(batches):
            start = number * cases.BATCH
            wanted = reference(case, [data[at] for at in range(start, start + cases.BATCH)])
            there = [part.to(GPU, non_blocking=True) for part in tensors_in(batch)]
            self.assertEqual(ebb.guard(batch), 1)
            del batch
            wanted = list(tensors_in(wanted))
            self.assertEqual(len(there), len(wanted))
            for one, other in zip(there, wanted):
                self.assertEqual(one.dtype, other.dtype)
                self.assertTrue(torch.equal(one.cpu(), other), f"{case}, batch {number}")
        self.assertEqual((pool.stats["received"], pool.stats["fallbacks"]), (6, 0))

    def test_all_kinds_of_batches_arrive_as_they_were(self):
        for case in ("a_u8", "a_f32", "b", "b2", "c", "d"):
            with self.subTest(case):
                self.compare(case)

    def test_workers_that_are_spawned(self):
        self.compare("a_f32", multiprocessing_context="spawn")

    def test_workers_that_are_forked_when_the_device_is_at_work(self):
        busy = torch.ones(2000, 2000, device=GPU)
        for _ in range(3):
            busy = busy @ busy / 2000
            self.compare("b")
        self.assertEqual(float(busy[0, 0]), 1)

    def test_torch_does_not_pin_again_what_is_pinned(self):
        pool = ebb.Pool("shared+pinned")
        for images, labels in loader_of(Numbers(24), pool, batch_size=4, pin_memory=True):
            self.assertTrue(images.is_pinned() and labels.is_pinned())
            self.assertEqual(ebb.guard(images), 1, "it is the batch itself, not a copy")
        pool = ebb.Pool("shared")
        for images, _ in loader_of(Numbers(8), pool, batch_size=4, pin_memory=True):
            self.assertTrue(images.is_pinned())
            self.assertEqual(ebb.guard(images), 0, "a copy of torch's")

    def arrives_whole(self, guarded):
        """Each copy waits behind work of the device while the batch's slot is wanted again."""
        pool, stream, whole = ebb.Pool("shared+pinned", slots=2), torch.cuda.Stream(GPU), True
        for number in range(8):
            got = pool.send(torch.full((BYTES,), number, dtype=torch.uint8)).open()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(LONG)
                there = got.to(GPU, non_blocking=True)
                if guarded:
                    self.assertEqual(ebb.guard(got), 1)
            del got
            parcel = pool.send(torch.full((BYTES,), 100 + number, dtype=torch.uint8))
            stream.synchronize()
            whole = whole and bool((there == number).all())
            del parcel
        return whole

    def test_a_batch_that_the_device_reads_is_not_written_over(self):
        self.assertTrue(self.arrives_whole(True))
        self.assertFalse(self.arrives_whole(False), "or the test would show nothing")

    def test_a_long_epoch_with_few_slots(self):
        pool = ebb.Pool("shared+pinned", slots=12, wait=5.0)
        sums = []
        for images, labels in loader_of(Numbers(1200), pool, workers=4, batch_size=4):
            there = images.to(GPU, non_blocking=True)
            self.assertEqual(ebb.guard(images), 1)
            del images
            sums.append((there.view(4, BYTES)[:, ::4099].float().std(1).sum()
                         + (there[:, 0].cpu() != labels % 251).sum()))
        self.assertEqual(float(sum(part.cpu() for part in sums)), 0)
        self.assertEqual((pool.stats["received"], pool.stats["fallbacks"]), (300, 0))

    def test_several_streams_read_one_batch(self):
        pool = ebb.Pool("shared+pinned", slots=1)
        got = pool.send(torch.arange(BYTES)).open()
        streams, there = [torch.cuda.Stream(GPU) for _ in range(4)], []
        for stream in streams:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(20 * LONG)  # what follows is to come before its end
                there.append(got.to(GPU, non_blocking=True))
                self.assertEqual(ebb.guard(got), 1)
        with self.assertRaises(ebb.Error):  # EBB_E_BUSY: a fifth
            ebb.guard(got, torch.cuda.Stream(GPU))
        del got
        with self.assertRaises(ebb.Error):  # EBB_E_SLOTS
            pool.send([1])
        torch.cuda.synchronize()
        self.assertEqual(pool.send([1]).open(), [1])
        for part in there:
            self.assertTrue(torch.equal(part.cpu(), torch.arange(BYTES)))

    def test_pools_come_and_go(self):
        for _ in range(20):  # the same addresses are registered anew, if they come again
            pool = ebb.Pool("shared+pinned")
            got = pool.send(torch.ones(BYTES)).open()
            self.assertTrue(got.is_pinned())
            del got
            pool.close()
            del pool
            gc.collect()

    def test_a_region_on_the_device_takes_no_objects(self):
        with ebb.Region(ebb.Pool("device")) as region:
            with self.assertRaises(ebb.Error):
                region.zeros((3,))


if __name__ == "__main__":
    unittest.main()
