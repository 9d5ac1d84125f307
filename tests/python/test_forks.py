# SPDX-License-Identifier: Apache-2.0
"""A fork in the middle: the child works for itself, and its parent's regions stay the parent's."""

import contextlib
import ctypes
import io
import os
import traceback
import unittest

import ebb
import numpy

try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    raise unittest.SkipTest("torch is missing")

from ebb import loader as ebb_loader, structure
from test_region import Refused

Mode = getattr(torch.overrides, "TorchFunctionMode", object)
ROW = 5000  # of float32: large enough to be born in a region


class Child:
    """A fork that calls the function once it is told to go on; what it raises fails the test."""

    def __init__(self, function, fork=os.fork):
        self.go, out = os.pipe()
        self.pid = fork()
        if self.pid == 0:
            os.close(out)
            os.read(self.go, 1)
            failed = True
            with contextlib.suppress(BaseException):
                try:
                    function()
                    failed = False
                except BaseException:
                    traceback.print_exc()
            os._exit(failed)
        os.close(self.go)
        self.go = out

    def end(self):
        os.close(self.go)
        assert os.waitpid(self.pid, 0)[1] == 0, "see what the child has printed"


def rows(value):
    return [torch.full((ROW,), float(value)) for _ in range(4)]


def make_all(value):
    """What collate functions make, large enough to be born in a region: all of that value."""
    return [ebb.stack(rows(value)), ebb.stack([row.numpy() for row in rows(value)]),
            ebb.empty((4, ROW), torch.float32).fill_(value), ebb.zeros((4, ROW)).add_(value),
            ebb.pad_sequence(rows(value)), ebb.pack_sequence(rows(value)).data,
            ebb.default_collate(rows(value))]


def torchs(value):
    return [torch.full((4, ROW), float(value)), torch.cat(rows(value))]


def all_are(value, batch):
    return all(bool((part == value).all()) for part in batch)


def collate(make, **options):
    """A Collate whose child makes what it makes after its parent has, and what became of it."""
    def inner(samples):
        first = make(1)

        def be_child():
            assert ebb.current() is None
            made = make(-7)
            assert all_are(-7, made) and all_are(1, first)
            made = ebb.Collate(pool, lambda _: make(3), **options)([None])  # a slot of its own
            assert all_are(3, made) and all_are(-7, make(-7))

        child = Child(be_child)
        second = make(2)
        child.end()
        return first, second

    pool = ebb.Pool("shared", slots=4)
    return ebb.Collate(pool, inner, **options)


class Making(unittest.TestCase):
    def test_what_a_child_makes_is_not_in_its_parents_batch(self):
        first, second = collate(make_all)([None])
        self.assertTrue(all_are(1, first) and all_are(2, second))

    def test_nor_is_what_torch_makes_there(self):
        try:
            collating = collate(torchs, allocate=True)
        except ImportError as error:
            self.skipTest(f"not built: {error}")
        first, second = collating([None])
        self.assertTrue(all_are(1, first) and all_are(2, second))

    def test_a_child_counts_batches_of_its_own(self):
        def counts():
            return [pool.stats[name] for name in ("sent", "received", "fallbacks")]

        def be_child():
            pool._count_fallback()
            assert counts() == [0, 0, 1]
            pool.send([2]).open()
            assert counts() == [1, 1, 1]

        pool = ebb.Pool("shared")
        pool.send([1]).open()
        pool._count_fallback()
        Child(be_child).end()
        self.assertEqual(counts(), [1, 1, 1])

    def return_from_nested(self, **options):
        """The parent's batch is there before the child goes on."""
        def forks(_):
            made = torchs(1) + make_all(1)
            children.append(os.fork())
            value = 2 if children[0] else -7
            if not children[0]:
                os.read(ends[0], 1)
            return made + torchs(value) + make_all(value)

        def outer(_):
            return ebb.Collate(pool, forks, **options)([None]) + torchs(2 if children[0] else -7)

        children, ends, pool = [], os.pipe(), ebb.Pool("shared")
        batch = ebb.Collate(pool, outer, **options)([None])
        if children[0] == 0:
            os._exit(not (ebb.current() is None and all_are(1, batch[:9]) and
                          all_are(-7, batch[9:] + torchs(-7) + make_all(-7))))
        os.write(ends[1], b"x")
        self.assertEqual(os.waitpid(children[0], 0)[1], 0)
        self.assertTrue(all_are(1, batch[:9]) and all_are(2, batch[9:]) and len(batch) == 20)
        for end in ends:
            os.close(end)

    def test_a_child_that_returns_from_the_collate_function_has_its_batch(self):
        self.return_from_nested()
        with contextlib.suppress(ImportError):
            self.return_from_nested(allocate=True)

    def test_regions_of_other_pools_are_the_childs_own(self):
        with ebb.Region() as region:
            before = region.zeros(ROW)

            def be_child():
                assert ebb.current() is region
                before.torch().fill_(5)
                assert all_are(-7, make_all(-7)) and all_are(5, [before.torch()])
                region.reset()

            child = Child(be_child)
            made = make_all(2)
            child.end()
            self.assertTrue(all_are(2, made) and all_are(0, [before.torch()]))

    def test_the_current_region_is_the_last_that_is_the_childs(self):
        pool = ebb.Pool("shared")
        with contextlib.ExitStack() as entered:
            host = entered.enter_context(ebb.Region())
            shared = entered.enter_context(ebb.Region(pool))
            step = entered.enter_context(ebb.step("forks"))
            self.assertIs(step.parent, shared)

            def be_child():
                assert ebb.current() is host
                with ebb.step("forks") as own:
                    assert own.parent is host and all_are(-7, make_all(-7))
                with ebb.Region(pool) as own:
                    assert ebb.current() is own and all_are(-7, make_all(-7))
                entered.pop_all().close()
                assert ebb.current() is None and not shared.is_open
                with ebb.Region(pool) as own:
                    assert ebb.current() is own and all_are(-7, make_all(-7))

            made = make_all(1)
            child = Child(be_child)
            made += make_all(1)
            child.end()
            self.assertTrue(all_are(1, made))
            self.assertIs(ebb.current(), step)


class Refusing(Refused):
    def refuse_all(self, region, tensor, imported):
        for write in (lambda: region.empty(ROW), lambda: region.zeros(ROW), region.reset,
                      lambda: region.tensor(numpy.zeros(ROW)), lambda: region.stack(rows(-7)),
                      lambda: region.pad(rows(-7)), lambda: region.pack(rows(-7)),
                      lambda: region.promote(tensor), lambda: ebb.Region(parent=region),
                      ebb.step("refused", parent=region).__enter__, region.__enter__,
                      lambda: tensor.copy_(numpy.full(ROW, -7, "float32")),
                      imported.__dlpack__, lambda: memoryview(imported),
                      lambda: tensor.__dlpack__(copy=True),
                      lambda: structure.write(region, rows(-7))):
            self.assertRefused("EBB_E_STALE", write)

    def write_by_none(self, tensor):
        """No view of a batch's elements that can say that it is read-only lets a child write."""
        values = numpy.full(ROW, -7, "float32")
        views = [memoryview(tensor), memoryview(tensor.numpy()),
                 memoryview(numpy.asarray(tensor)), memoryview(numpy.frombuffer(tensor, "f4"))]
        assert all(view.readonly for view in views)
        self.assertRaises(TypeError, io.BytesIO(bytes(values)).readinto, tensor)
        with ebb.Region() as own:
            for taken in (own.tensor(tensor), own.tensor(tensor.__dlpack__(max_version=(1, 0)))):
                self.assertRefused("EBB_E_EXCHANGE", taken.copy_, values)
        assert all_are(0, [tensor.numpy()])

    def test_a_child_reads_and_closes_what_is_its_parents_and_no_more(self):
        pool = ebb.Pool("shared", slots=2)
        for keeps in (False, True):
            root = ebb.Region(pool)
            root._keeps = keeps
            region = ebb.Region(parent=root)
            region._keeps = keeps
            tensor = region.zeros(ROW)
            imported = region.tensor(torch.zeros(ROW), copy=False)

            def be_child():
                with self.assertRaisesRegex(ebb.Error, "that this one was forked from"):
                    region.empty(1)
                self.refuse_all(region, tensor, imported)
                assert all_are(0, [tensor.torch(), tensor.numpy()]) and region.is_open
                assert all_are(0, [imported.torch(), imported.numpy()])
                self.write_by_none(tensor)
                with ebb.Region(pool) as own:
                    assert all_are(0, [own.stack([tensor, tensor]).torch()])
                root.close()
                assert not region.is_open and not tensor.is_live

            child = Child(be_child)
            later = region.zeros(ROW)
            child.end()
            self.assertTrue(all_are(0, [tensor.torch(), later.torch()]))
            self.assertIs(region.promote(tensor), tensor)
            root.close()
        self.assertEqual(pool.send([1]).open(), [1])

    def test_a_child_of_what_is_put_into_a_batch_writes_nothing_there(self):
        class Forks:
            def __reduce__(self):
                children.append(os.fork())
                return list, ()

            def __dlpack__(self):
                children.append(os.fork())
                return source.__dlpack__()

            def __index__(self):
                children.append(os.fork())
                return ROW

            def __iter__(self):
                children.append(os.fork())
                return iter([made])

        source = torch.zeros(ROW)

        def write():
            return structure.write(ebb_loader._open_region(pool), [Forks(), torch.ones(ROW)])

        pool = ebb.Pool("shared")
        parent = ebb.Region(pool)
        region = ebb.Region(parent=parent)
        for make in (write, lambda: region.stack([Forks(), source]),
                     lambda: region.tensor(Forks()), lambda: region.zeros(Forks()),
                     lambda: region.promote(Forks()) and made):
            children = []
            try:
                made = make()
            except ebb.Error as error:
                os._exit(not (children == [0] and error.name == "EBB_E_STALE"))
            if children == [0]:
                os._exit(1)
            self.assertEqual(os.waitpid(children[0], 0)[1], 0)
        self.assertTrue(all_are(0, [made.torch()]))

    def test_a_child_of_what_is_imported_writes_nothing_in_its_parents_slot(self):
        value = [0.0]

        def fork():
            if forks:
                forks.clear()
                children.append(os.fork())
                if not children[0]:
                    os.read(ends[0], 1)
                    value[0] = -7.0

        def elements():
            return numpy.full(ROW, value[0], "float32")

        class Speaker:
            def __dlpack__(self, **_):
                fork()
                return elements().__dlpack__()

        class Buffer(bytearray):
            @property
            def __dlpack__(self):
                fork()
                self[:] = bytes([int(-value[0])]) * len(self)
                raise AttributeError

        class Forks(Mode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                fork()
                plain.fill_(value[0])
                return function(*args, **(kwargs or {}))

        pool, ends = ebb.Pool("shared"), os.pipe()
        region = ebb.Region(pool)
        region.empty(16 * ROW)  # its pages stay: the child needs no others
        plain = torch.zeros(ROW)
        for source in (Speaker(), Buffer(4 * ROW)) + ((plain,) if Mode is not object else ()):
            forks, children = [1], []
            try:
                with Forks() if source is plain else contextlib.nullcontext():
                    made = region.tensor(source, copy=True)
            except ebb.Error as error:
                os._exit(not (children == [0] and error.name == "EBB_E_STALE"))
            if children == [0]:
                os._exit(1)
            os.write(ends[1], b"x")
            self.assertEqual(os.waitpid(children[0], 0)[1], 0)
            self.assertTrue(all_are(0, [made.torch()]))
        for end in ends:
            os.close(end)


def fork_raw():
    """A child that neither Python nor the C library's handlers know of."""
    child = ctypes.PyDLL(None)._Fork()
    assert child >= 0
    return child


@unittest.skipUnless(hasattr(ctypes.PyDLL(None), "_Fork"), "glibc before 2.34 has no _Fork()")
class Raw(unittest.TestCase):
    def test_a_child_drops_batches_and_parcels_of_its_parent(self):
        held, pool = [], ebb.Pool("shared", slots=2)
        held += [pool.send(numpy.full(ROW, 1)).open(), pool.send(numpy.full(ROW, 5))]
        child = Child(held.clear, fork_raw)
        child.end()
        with self.assertRaises(ebb.Error) as caught:
            pool.send(numpy.full(ROW, 9))
        self.assertEqual(caught.exception.name, "EBB_E_SLOTS")
        self.assertTrue((held[0] == 1).all() and (held[1].open() == 5).all())

    def test_a_child_makes_nothing_in_its_parents_batch(self):
        def be_child():
            with self.assertRaises(ebb.Error) as caught:
                region.empty(ROW)
            assert caught.exception.name == "EBB_E_STALE"
            assert ebb.current() is None
            made.append(ebb.zeros(4 * ROW))

        pool = ebb.Pool("shared", slots=2)
        made = []
        with ebb.Region(pool) as region:
            first = ebb.empty(4 * ROW, torch.float32).fill_(1)
            child = Child(be_child, fork_raw)
            second = ebb.empty(4 * ROW, torch.float32).fill_(2)
            child.end()
            self.assertTrue(all_are(1, [first]) and all_are(2, [second]))

    def test_nor_does_torch_there(self):
        def inner(samples):
            first = torchs(1)
            child = Child(lambda: torchs(-7), fork_raw)
            second = torchs(2)
            child.end()
            return first, second
        try:
            collating = ebb.Collate(ebb.Pool("shared", slots=4), inner, allocate=True)
        except ImportError as error:
            self.skipTest(f"not built: {error}")
        first, second = collating([None])
        self.assertTrue(all_are(1, first) and all_are(2, second))


if __name__ == "__main__":
    unittest.main()
