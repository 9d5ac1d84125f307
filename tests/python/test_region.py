# SPDX-License-Identifier: Apache-2.0
"""Regions, tensors and steps: what they hold, who shares it, and that late use is an error."""

import asyncio
import contextvars
import copy
import functools
import gc
import inspect
import io
import itertools
import pickle
import sys
import textwrap
import threading
import unittest
import unittest.mock
import warnings
import weakref

import ebb
import numpy

try:
    import _testcapi
except ImportError:
    _testcapi = None
try:
    import torch
except ImportError:
    torch = None

NUMPY_DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                "float16", "float32", "float64", "complex64", "complex128"]


def held():
    return ebb.Pool().stats["held"]


class Refused(unittest.TestCase):
    """assertRaises for ebb.Error by name."""

    def assertRefused(self, name, function, *arguments, **keywords):
        with self.assertRaises(ebb.Error) as caught:
            function(*arguments, **keywords)
        self.assertEqual(caught.exception.name, name, caught.exception)
        self.assertLess(caught.exception.code, 0)
        self.assertTrue(str(caught.exception))


class Lifetimes(Refused):
    def test_a_tensor_of_a_closed_region_raises_and_does_not_dangle(self):
        with ebb.Region() as region:
            tensors = [region.zeros(shape) for shape in [(), (3,), (1000,), (0, 2), (300, 300)]]
        for tensor in tensors:
            self.assertFalse(tensor.is_live)
            for use in (lambda: tensor.shape, lambda: tensor.strides, lambda: tensor.dtype,
                        lambda: tensor.numpy(), lambda: tensor.__dlpack__(),
                        lambda: memoryview(tensor), lambda: tensor.copy_(numpy.zeros(3)),
                        lambda: len(tensor), lambda: tensor.nbytes):
                self.assertRefused("EBB_E_STALE", use)
            self.assertIn("ended", repr(tensor))

    def test_exports_outlive_the_region_and_nothing_writes_over_them(self):
        pool = ebb.Pool()
        kept = []
        for number in range(50):
            with ebb.Region(pool) as region:
                for shape in [(3,), (2000,), (64, 64)]:
                    tensor = region.zeros(shape)
                    tensor.numpy()[...] = number
                    kept.append((number, tensor.numpy()))
                    kept.append((number, memoryview(tensor)))
        for number, array in kept:
            self.assertTrue((numpy.asarray(array) == number).all())
        self.assertGreater(pool.stats["held"], 0)
        del kept, array, tensor
        gc.collect()
        self.assertEqual(pool.stats["held"], 0)

    def test_reset_ends_tensors_though_the_region_stays(self):
        region = ebb.Region()
        old = region.zeros((100,))
        region.reset()
        new = region.zeros((100,))
        self.assertRefused("EBB_E_STALE", lambda: old.shape)
        del old
        new.numpy()[:] = 1
        self.assertEqual(new.shape, (100,))
        region.close()
        region.close()
        self.assertRefused("EBB_E_STALE", region.empty, (3,))
        self.assertRefused("EBB_E_STALE", region.reset)

    def test_a_parent_ends_its_children(self):
        with ebb.Region() as run:
            child = ebb.Region(parent=run)
            tensor = child.zeros((9,))
        self.assertFalse(child.is_open)
        self.assertRefused("EBB_E_STALE", lambda: tensor.shape)
        self.assertRefused("EBB_E_STALE", ebb.Region, parent=run)

    def test_the_pool_is_the_parents(self):
        pool, other = ebb.Pool(), ebb.Pool()
        with ebb.Region(pool) as parent, ebb.Region(parent=parent) as region:
            self.assertIs(region.pool, pool)
            with ebb.step("below") as step:
                self.assertIs(step.pool, pool)
            with ebb.step("below", pool=other, parent=region) as step:
                self.assertIs(step.pool, pool)
            self.assertRefused("EBB_E_ARGUMENT", ebb.Region, other, parent=region)
        with ebb.Region() as parent, ebb.Region(parent=parent) as region:
            self.assertIsNone(region.pool)

    def test_promoted_tensors_are_the_parents(self):
        with ebb.Region() as run:
            with ebb.Region(parent=run) as step:
                small, large = step.zeros((3,)), step.zeros((300, 300))
                small.numpy()[:] = 1
                large.numpy()[:] = 2
                other = step.zeros((3,))
                self.assertIs(step.promote([small, large])[0], small)
                self.assertRefused("EBB_E_NOT_OWNED", step.promote, small)
            self.assertEqual(small.numpy().sum() + large.numpy().sum(), 3 + 180000)
            self.assertIs(small.region, run)
            self.assertFalse(other.is_live)

    def test_what_was_promoted_is_returned(self):
        with ebb.Region() as run, ebb.Region(parent=run) as step:
            several = [step.zeros((3,)) for _ in range(3)]
            self.assertEqual(step.promote(tensor for tensor in several), tuple(several))
            self.assertTrue(all(tensor.region is run for tensor in several))
            for form in ([step.zeros(3)], (step.zeros(3),), {step.zeros(3): 1}, step.zeros(3), []):
                self.assertIs(step.promote(form), form)

    def test_dropped_tensors_give_their_place_back(self):
        with ebb.Region() as region:
            for _ in range(1000):
                region.empty((1000, 100))
            self.assertLess(region.stats["reserved"], 4_000_000)

    def test_cycles_through_regions_are_collected(self):
        class Holder(ebb.Region):
            """A subclass has a __dict__, so what it holds may lead back to it."""

        class Owner(ebb.Pool):
            pass

        owner = Owner()
        region = owner.region = Holder(owner)
        region.tensor_of_its_own = region.zeros(5000)
        region.child = Holder(parent=region)
        with ebb.step("a cycle", pool=owner) as owner.step:
            pass
        gone = [weakref.ref(thing) for thing in (owner, region, region.child)]
        del owner, region
        gc.collect()
        self.assertEqual([reference() for reference in gone], [None] * 3)

    def test_a_tensor_of_one_element_is_as_true_as_that(self):
        with ebb.Region() as region:
            for name in ("bool", "uint8", "int64", "float16", "float32", "complex128"):
                for shape in ((), (1,), (1, 1)):
                    for number in (0, 1):
                        made = region.tensor(numpy.full(shape, number, name), copy=True)
                        self.assertIs(bool(made), bool(number))
            self.assertFalse(region.tensor(numpy.float32(-0.0)))
            for shape in ((2,), (0,), (1, 0), (3, 1)):
                with self.assertRaisesRegex(ValueError, "ambiguous"):
                    bool(region.zeros(shape))
            if torch:
                self.assertFalse(region.zeros(1, torch.bfloat16))
                self.assertTrue(region.tensor(torch.ones(1, dtype=torch.bfloat16)))
            self.assertEqual(len(region.zeros((0, 3))), 0)
            scalar = region.zeros(())
        self.assertRefused("EBB_E_STALE", bool, scalar)

    def test_a_region_is_not_pickled_or_copied(self):
        region = ebb.Region()
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with self.assertRaisesRegex(TypeError, "a region stays in its process"):
                pickle.dumps(region, protocol)
        self.assertRaises(TypeError, copy.copy, region)

    def test_a_region_that_a_size_closes_is_closed(self):
        class Closes:
            def __index__(self):
                region.close()
                return 3

        for make in (ebb.Region.zeros, ebb.Region.empty):
            region = ebb.Region()
            self.assertRefused("EBB_E_STALE", make, region, (Closes(),))

    def test_what_is_asked_for_its_elements_may_end_the_region(self):
        class Hostile:
            def __init__(self, act):
                self.act = act

            def __dlpack__(self, **options):
                self.act()
                return numpy.ones(5000, "f4").__dlpack__()

        for act in ("reset", "close"):
            region = ebb.Region()
            there = region.zeros(5000)
            self.assertRefused("EBB_E_STALE", there.copy_, Hostile(getattr(region, act)))
            region = ebb.Region()
            parts = [region.zeros(5000), Hostile(getattr(region, act))]
            self.assertRefused("EBB_E_STALE", region.stack, parts)
            self.assertRefused("EBB_E_STALE", region.pack, parts)
            for make in (ebb.Region().stack, ebb.Region().pad, ebb.Region().pack):
                other = ebb.Region()
                parts = [other.zeros(5000), Hostile(getattr(other, act))]
                self.assertRefused("EBB_E_STALE", make, parts)
        parent = ebb.Region()
        region = ebb.Region(parent=parent)
        there = region.zeros(5000)
        there.copy_(Hostile(lambda: region.promote(there)))
        self.assertTrue((there.numpy() == 1).all())

    def some(region):
        return [region.zeros(shape) for shape in (7, (7,) * 3, (1,) * 20 + (7,)) * 9]

    def ends_in_between(self, make, act, later, limit=None, fill=some):
        """make(region), where so many objects later the collector ends that, and others come to lie
        there, which nobody may end; the error's name and text, too."""
        class Cycle:
            def __init__(self):
                self.me = self

            def __del__(self):
                getattr(region, act)()
                other = region if region.is_open else ebb.Region(pool)
                over.extend(fill(other))
                there.append((other, other.stats["blocks"]))

        pool, over, there = ebb.Pool(), [], []
        region, thresholds = ebb.Region(pool, limit=limit), gc.get_threshold()
        if not gc.get_freeze_count():  # full collections are fast then
            gc.freeze()
            self.addCleanup(gc.unfreeze)
        gc.collect()  # and no object is there to be used again
        gc.disable()
        Cycle()
        gc.set_threshold(gc.get_count()[0] + later)
        gc.enable()
        try:
            return make(region), None, None
        except ebb.Error as error:
            return None, error.name, str(error)
        finally:
            gc.set_threshold(*thresholds)
            for other, blocks in there:
                self.assertGreaterEqual(other.stats["blocks"], blocks)

    def test_what_is_collected_may_end_the_region(self):
        arrays = [numpy.ones(5000 + i) for i in range(3)]
        makes = [lambda region: [region.zeros(10000)],
                 lambda region: [region.stack(arrays[:1] * 3)],
                 lambda region: [region.tensor(arrays[0], copy=True)],
                 lambda region: [region.pad(arrays)], lambda region: region.pack(arrays)]
        for make, act, later in itertools.product(makes, ("reset", "close"), range(1, 20)):
            tensors, name, text = self.ends_in_between(make, act, later)
            self.assertIn(name, (None, "EBB_E_STALE"), text)
            for tensor in tensors or []:
                if tensor is not None and tensor.is_live:
                    tensor.numpy()[...] = 1
            del tensors

    def test_what_is_collected_may_end_the_region_of_what_is_refused(self):
        def stacks(limit):
            try:
                return ebb.Region(limit=limit).stack([same] * 3) is not None
            except ebb.Error:
                return False

        def fill(region):  # as it was
            return [*(region.tensor(same) for _ in range(3)), region.empty((3, *same.shape))]

        same, other = (numpy.ones((1,) * 20 + (size,)) for size in (5000, 5001))
        limit = next(filter(stacks, range(24 * 5000, 26 * 5000, 64))) - 64  # none for a part's head
        wanted = f"stack: number 1 is float64 {other.shape}, the first is float64 {same.shape}"
        for act, later in itertools.product(("reset", "close"), range(1, 30)):
            _, name, text = self.ends_in_between(
                lambda region: region.stack([same, other]), act, later)
            self.assertIn(name, ("EBB_E_SHAPE", "EBB_E_STALE"), text)
            if name == "EBB_E_SHAPE":
                self.assertEqual(text, wanted)
            _, name, text = self.ends_in_between(
                lambda region: region.stack([same] * 3), act, later, limit, fill)
            self.assertIn(name, ("EBB_E_REGION_LIMIT", "EBB_E_STALE"), text)

    def test_sizes_are_read_before_what_is_collected_ends_the_region(self):
        wanted = (1,) * 20 + (5000,)  # Python keeps no tuples that are as long
        for act, later in itertools.product(("reset", "close"), range(1, 20)):
            shape, name, text = self.ends_in_between(
                lambda region: region.zeros(wanted).shape, act, later)
            self.assertIn((shape, name), ((wanted, None), (None, "EBB_E_STALE")), text)

    def test_what_only_says_that_it_is_of_a_class(self):
        pool, region = ebb.Pool(), ebb.Region()
        array = numpy.arange(100000.0)
        posers = [weakref.proxy(pool), weakref.proxy(region), weakref.proxy(self),
                  *(unittest.mock.Mock(spec=cls) for cls in (ebb.Pool, ebb.Region, ebb.Tensor))]
        for poser in posers:
            self.assertRaises(TypeError, ebb.Region, poser)
            self.assertRaises(TypeError, ebb.Region, parent=poser)
            with self.assertRaises((TypeError, BufferError)):
                region.tensor(poser)
        tensor = region.tensor(weakref.proxy(array))  # which does not keep the array
        del array
        others = [numpy.full(100000, -1.0) for _ in range(3)]  # may lie where it was
        self.assertEqual(tensor.numpy()[-1] + others[0][0], 99998)

    def test_promotion_needs_a_parent(self):
        with ebb.Region() as region:
            self.assertRefused("EBB_E_ARGUMENT", region.promote, region.zeros(3))

    def test_numbers_of_slots_beyond_bounds(self):
        for wrong in (-1, (1 << 32) + 5):
            self.assertRaises(ValueError, ebb.Pool, "shared", slots=wrong)

    def test_numbers_that_no_unsigned_holds(self):
        for ring in (-1, 65, 1 << 32, 1 << 70):
            with self.assertRaisesRegex(ValueError, f"^ring is {ring}: 0 to 64"):
                ebb.step("ring", ring=ring)
            with self.assertRaisesRegex(ValueError, f"^ring is {ring}: 0 to 64"):
                ebb._ebb.Site("ring", ring=ring)
        for target in (-1, 1 << 64, -1 << 64):
            with self.assertRaisesRegex(ValueError, f"^target is {target}: "):
                ebb.Pool("host").trim(target)

    def test_numbers_beyond_64_bits_are_named(self):
        shared = functools.partial(ebb.Pool, "shared")
        for make, name in [(ebb.Pool, "limit"), (ebb.Pool, "limit_used"), (shared, "slot_bytes"),
                           (shared, "slots"), (shared, "descriptor"), (ebb.Region, "hint"),
                           (ebb.Region, "limit")]:
            for wrong in (1 << 64, 1 << 70, -1 << 64):
                with self.assertRaisesRegex(ValueError, f"^{name} is {wrong}: "):
                    make(**{name: wrong})
            self.assertRaises(TypeError, make, **{name: 1.5})
        with ebb.Region() as region, self.assertRaisesRegex(OverflowError, f"of {1 << 64} is"):
            region.empty((1 << 64,))

    def test_arguments_of_steps_are_looked_at_at_once(self):
        self.assertRaises(TypeError, ebb.step, 5)
        self.assertRaises(TypeError, ebb.step, "parent", parent=3)
        self.assertRaises(TypeError, ebb.step, "ring", ring=1.5)

    def test_arguments_that_close_the_pool(self):
        class Closer:
            def __index__(self):
                pool.close()
                return 0

            def __bool__(self):
                pool.close()
                return True

        for kind in ("host", "shared"):
            for name in ("trim", "reclaim"):
                pool = ebb.Pool(kind)
                ebb.Region(pool).zeros(100000).region.close()
                self.assertRefused("EBB_E_STALE", getattr(pool, name), Closer())

    def test_kinds_of_which_a_part_is_missing(self):
        for kind in ("", "+", "shared+", "+shared", "host++huge"):
            with self.assertRaisesRegex(ValueError, "none of host, huge"):
                ebb.Pool(kind)

    def test_numbers_that_would_be_taken_for_the_default(self):
        shared = functools.partial(ebb.Pool, "shared")
        for make, name in [(ebb.Pool, "limit"), (ebb.Pool, "limit_used"), (shared, "limit"),
                           (shared, "slots"), (shared, "slot_bytes"), (ebb.Region, "limit")]:
            for wrong in (0, -1, -(1 << 40)):
                with self.assertRaisesRegex(ValueError, f"^{name} is {wrong}: .*1.*, or None$"):
                    make(**{name: wrong})
            make(**{name: None}).close()
            make(**{name: 4 if name == "slots" else 1 << 20}).close()
        with self.assertRaisesRegex(ValueError, "^slots is 4294967301: 1 to 4096, or None$"):
            shared(slots=(1 << 32) + 5)
        for make, name in [(ebb.Region, "hint"), (shared, "descriptor"),
                           (functools.partial(ebb.Pool, "pinned"), "device")]:
            with self.assertRaisesRegex(ValueError, f"^{name} is -1: "):
                make(**{name: -1})
        ebb.Region(hint=0).close()
        for wrong in (-0.5, 1e9, float("inf"), float("nan")):
            with self.assertRaisesRegex(ValueError, "^wait is (-0.5|1e\\+09|inf|nan): "):
                shared(wait=wrong)
        with self.assertRaisesRegex(TypeError, "float"):
            shared(slots=1.5)

    def test_numbers_that_a_kind_has_no_use_for(self):
        for name, value in [("slots", 3), ("slot_bytes", 4096), ("wait", 0.5), ("descriptor", 0)]:
            for kind in ("host", "huge"):
                with self.assertRaisesRegex(ValueError, f"^{name} is for pools of kind 'shared', "
                                                        f"this one is '{kind}'$"):
                    ebb.Pool(kind, **{name: value})
        for kind in ("host", "shared"):
            with self.assertRaisesRegex(ValueError, "^device is for pools of kind 'device' or"):
                ebb.Pool(kind, device=1)
        ebb.Pool(slots=None, slot_bytes=None, wait=0, device=None, descriptor=None).close()

    def test_limits_are_errors_with_numbers(self):
        with ebb.Region(limit=100_000) as region:
            self.assertRefused("EBB_E_REGION_LIMIT", region.empty, (100_000,))
            region.empty((1000,))
        pool = ebb.Pool(limit=1 << 20)
        with ebb.Region(pool) as region:
            self.assertRefused("EBB_E_POOL_LIMIT", region.empty, (1 << 20,))

    @unittest.skipUnless(_testcapi, "_testcapi is missing")
    def test_other_interpreters_are_refused_and_change_nothing(self):
        result = _testcapi.run_in_subinterp(textwrap.dedent("""
            import sys
            sys.path[:] = %r
            try:
                import ebb
            except ImportError as error:
                assert "interpreter" in str(error), error
            else:
                raise AssertionError("imported")
        """) % sys.path)
        self.assertEqual(result, 0)
        self.assertEqual(repr(ebb.Region().zeros(3)), "<ebb.Tensor float32 [3]>")

    def test_what_is_printed_says_what_it_is(self):
        pool = ebb.Pool("shared", name="batches")
        self.assertEqual(repr(pool), "<ebb.Pool 'batches' of kind 'shared'>")
        self.assertEqual(repr(ebb.Pool()), "<ebb.Pool of kind 'host'>")
        self.assertEqual(repr(ebb.Collate(pool, sorted, allocate=False)),
                         "<ebb.Collate of sorted into <ebb.Pool 'batches' of kind 'shared'>>")
        self.assertIn("Collate of default_collate into", repr(ebb.Collate(pool)))
        step = ebb.step("printed", 3, ring=1)
        self.assertEqual(repr(step), "<ebb.step 'printed', tag 3, ring 1>")
        self.assertEqual(repr(ebb.step("printed")), "<ebb.step 'printed'>")
        for _ in range(4):
            with step as region:
                region.zeros(3000)
        self.assertEqual(repr(step.site),
                         "<ebb site of steps 'printed': 4 steps, 2 of them planned>")
        parcel = pool.send([1])
        self.assertEqual(repr(parcel), "<ebb.Parcel, to be opened>")
        parcel.open()
        self.assertEqual(repr(parcel), "<ebb.Parcel, opened or sent before>")
        pool.close()
        self.assertEqual(repr(pool), "<ebb.Pool 'batches' of kind 'shared', closed>")

    def test_the_module_is_made_once(self):
        before = {name: sys.modules.pop(name) for name in list(sys.modules)
                  if name.partition(".")[0] == "ebb"}
        try:
            import ebb as again
            self.assertIs(again.Error, ebb.Error)
            self.assertEqual(again.Region().zeros(3).shape, (3,))
        finally:
            ebb._ebb.set_tensor_class(ebb.Tensor)
            sys.modules.update(before)
        self.assertIs(type(ebb.Region().zeros(3)), ebb.Tensor)

    def test_long_names_are_cut_between_letters_or_in_them(self):
        for before in range(4):
            name = "n" * before + "\N{EURO SIGN}" * 100
            with ebb.Region(ebb.Pool(name=name, limit=1 << 20), name=name, limit=1 << 21) as region:
                self.assertRefused("EBB_E_REGION_LIMIT", region.empty, (1 << 20,))
                self.assertRefused("EBB_E_POOL_LIMIT", region.empty, (1 << 18,))
                tensor = region.empty((1 << 17,))
                self.assertRaises(BufferError, tensor.__dlpack__, copy=True)

    def test_what_only_shared_pools_do_is_refused_by_others(self):
        for wanted in (ebb.Pool().fileno, ebb.Pool().reclaim, lambda: ebb.Pool().send(1)):
            self.assertRefused("EBB_E_KIND", wanted)

    def test_a_pool_that_is_used_is_not_closed(self):
        pool = ebb.Pool()
        region = ebb.Region(pool)
        self.assertRefused("EBB_E_BUSY", pool.close)
        region.close()
        pool.close()
        pool.close()
        self.assertRefused("EBB_E_STALE", ebb.Region, pool)
        self.assertRaises(ValueError, ebb.Pool, "marble")
        self.assertRaises(ValueError, ebb.Pool, "shared+marble")
        self.assertRaises(TypeError, ebb.Region, "no pool")
        with self.assertRaisesRegex(TypeError, "'no pool' is no ebb.Pool"):
            ebb.step("tests.pools", pool="no pool")

    def test_shapes_and_dtypes_that_are_none(self):
        with ebb.Region() as region:
            self.assertRefused("EBB_E_SHAPE", region.empty, (-1,))
            self.assertRefused("EBB_E_SIZE", region.empty, (1 << 62, 1 << 62))
            self.assertRaises(ValueError, region.empty, (1,) * 33)
            self.assertRaises(OverflowError, region.empty, (1 << 64,))
            self.assertRaises(TypeError, region.empty, ("3",))
            for dtype in ("float8", "float32\0", "\0", "torch.float32\0", numpy.dtype("M8[s]"),
                          object, 3, numpy.dtype("f4").newbyteorder()):
                self.assertRaises(TypeError, region.empty, (3,), dtype)
            region.empty((1,) * 32)


    def test_an_interrupt_is_no_answer(self):
        """Whoever is asked what it is may be interrupted, which is not to say no."""
        def interrupt(self, *arguments):
            raise KeyboardInterrupt

        named = type("Named", (), {"name": property(interrupt)})
        swapped = type("Swapped", (), {"name": "float32", "isnative": property(interrupt)})
        whole = type("Whole", (), {"__index__": interrupt, "__float__": lambda self: 1.0})
        speaker = type("Speaker", (), {"__dlpack__": property(interrupt)})
        with ebb.Region() as region:
            for dtype in (named(), swapped()):
                self.assertRaises(KeyboardInterrupt, region.empty, 3, dtype)
            self.assertRaises(KeyboardInterrupt, region.pad, [numpy.ones(3)], padding=whole())
            self.assertRaises(KeyboardInterrupt, region.tensor, speaker())


class Buffers(Refused):
    def test_every_dtype_is_numpys(self):
        with ebb.Region() as region:
            for dtype in NUMPY_DTYPES:
                for shape in [(), (5,), (3, 4), (2, 0, 3), (1000, 3)]:
                    array = region.zeros(shape, dtype).numpy()
                    self.assertEqual((array.dtype, array.shape), (numpy.dtype(dtype), shape))
                    self.assertIs(array.dtype.type, numpy.dtype(dtype).type)  # not longlong
                    self.assertTrue(array.flags.writeable)
                    self.assertTrue((array == 0).all())
                    same = region.tensor(array, copy=True)
                    self.assertEqual((same.dtype, same.shape), (dtype, shape))

    def test_flags_of_the_protocol(self):
        with ebb.Region() as region:
            tensor = region.zeros((3, 4))
            view = memoryview(tensor)
            self.assertEqual((view.format, view.shape, view.strides, view.readonly, view.itemsize),
                             ("f", (3, 4), (16, 4), False, 4))
            view[1, 2] = 7.0
            self.assertEqual(tensor.numpy()[1, 2], 7)
            self.assertEqual(bytes(tensor), tensor.numpy().tobytes())
            turned = region.tensor(numpy.arange(6, dtype="f4").reshape(2, 3).T, copy=False)
            self.assertEqual(memoryview(turned).tolist(), [[0, 3], [1, 4], [2, 5]])
            with self.assertRaises(BufferError):
                io.BytesIO().write(turned)  # wants contiguous bytes

    def test_what_is_read_only_is_not_written(self):
        source = numpy.arange(5.0)
        source.flags.writeable = False
        with ebb.Region() as region:
            tensor = region.tensor(source, copy=False)
            self.assertTrue(memoryview(tensor).readonly)
            self.assertFalse(tensor.numpy().flags.writeable)
            self.assertRefused("EBB_E_EXCHANGE", tensor.copy_, numpy.zeros(5))
            self.assertTrue(region.tensor(source, copy=True).numpy().flags.writeable)

    def test_any_buffer_comes_in(self):
        import array
        with ebb.Region() as region:
            self.assertEqual(bytes(region.tensor(b"abc")), b"abc")
            for code, dtype in zip("bBhHiIlLqQfd", ["int8", "uint8", "int16", "uint16", "int32",
                                                    "uint32", "int64", "uint64", "int64", "uint64",
                                                    "float32", "float64"]):
                tensor = region.tensor(array.array(code, [1, 2, 3]), copy=True)
                self.assertEqual((tensor.dtype, tensor.numpy().tolist()), (dtype, [1, 2, 3]))
            for wrong in (3, "text", [1, 2], None, numpy.array(["a"]), numpy.array([None]),
                          numpy.ones(3, "g"), numpy.ones(3, "G")):
                if getattr(wrong, "dtype", None) in (numpy.double, numpy.cdouble):
                    continue  # a machine without long doubles
                self.assertRaises((TypeError, BufferError), region.tensor, wrong)

    def test_a_buffer_that_is_not_given_says_why(self):
        view = memoryview(b"abc")
        view.release()
        with ebb.Region() as region:
            with self.assertRaisesRegex(ValueError, "released"):
                region.tensor(view)

    def test_arrays_of_ctypes_come_in(self):
        import ctypes
        with ebb.Region() as region:
            for kind, dtype in ((ctypes.c_float, "float32"), (ctypes.c_double, "float64"),
                                (ctypes.c_int8, "int8"), (ctypes.c_uint16, "uint16"),
                                (ctypes.c_int, "int32"), (ctypes.c_long, "int64"),
                                (ctypes.c_ulonglong, "uint64"), (ctypes.c_bool, "bool")):
                tensor = region.tensor((kind * 2 * 2)((0, 1), (1, 0)))
                self.assertEqual((tensor.dtype, tensor.numpy().tolist()), (dtype, [[0, 1], [1, 0]]))
            for wrong in (ctypes.c_float.__ctype_be__, ctypes.c_char_p):
                self.assertRaises(TypeError, region.tensor, (wrong * 3)())

    def test_borrowed_buffers_are_given_back(self):
        source = bytearray(100)
        region = ebb.Region()
        tensor = region.tensor(source, copy=False)
        self.assertRaises(BufferError, source.append, 1)
        del tensor
        source.append(1)
        tensor = region.tensor(source, copy=False)
        region.close()
        source.append(1)


class Numbers(Refused):
    def test_one_element_is_a_number_and_not_its_bytes_as_text(self):
        with ebb.Region() as region:
            digits = region.tensor(numpy.array([0x31313131], "int32"))  # b"1111"
            self.assertEqual((int(digits), float(digits), digits.item()), (0x31313131,) * 3)
            half = region.tensor(numpy.array([[2.5]]))
            self.assertEqual((half.item(), int(half), float(half), complex(half)),
                             (2.5, 2, 2.5, 2.5 + 0j))
            self.assertIs(region.zeros((), "bool").item(), False)
            self.assertEqual(complex(region.zeros(1, "complex64")), 0j)
            with self.assertRaises(TypeError):
                float(region.zeros(1, "complex64"))
            for shape in [(2,), (0,), (3, 1)]:
                for make in (int, float, complex, ebb.Tensor.item):
                    with self.assertRaisesRegex(ValueError, "no number"):
                        make(region.zeros(shape))

    def test_parts_are_those_of_the_array_of_the_same_bytes(self):
        with ebb.Region() as region:
            tensor = region.tensor(numpy.arange(6.0).reshape(2, 3), copy=True)
            tensor[1][2] = 7
            self.assertEqual([list(row) for row in tensor], [[0, 1, 2], [3, 4, 7]])
            self.assertEqual(tensor[1, 2], 7)
            numpy.testing.assert_array_equal(numpy.array([tensor, tensor])[1], tensor.numpy())
            with self.assertRaises(IndexError):
                tensor[2]
            with self.assertRaises(TypeError):
                iter(region.zeros(()))
        self.assertRefused("EBB_E_STALE", lambda: tensor[0])

    @unittest.skipUnless(torch, "no torch")
    def test_torch_makes_tensors_of_every_dtype_of_it(self):
        with ebb.Region() as region:
            for name in NUMPY_DTYPES:
                if not hasattr(torch, name):
                    continue
                tensor = region.zeros((2, 3), name)
                tensor.torch()[1, 2] = 1
                for make in (torch.as_tensor, torch.tensor, torch.from_dlpack):
                    if make is torch.from_dlpack and name == "bool":
                        continue  # of torch 1, which takes none
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # that it is slow
                        made = make(tensor)
                    self.assertEqual(made.dtype, getattr(torch, name), make)
                    self.assertTrue(torch.equal(made, tensor.torch()), (make, name))

    @unittest.skipUnless(torch, "no torch")
    def test_functions_of_torch_take_a_tensor_for_its_torch(self):
        with ebb.Region() as region:
            one, two = region.zeros((2, 3)), region.zeros((2, 3))
            one.torch().fill_(1)
            wanted = torch.ones(2, 3)
            for made in (torch.add(one, two), torch.ones(2, 3) + two, torch.stack([two, one])[1],
                         torch.cat((one, two))[:2], torch.nn.functional.relu(one),
                         torch.add(torch.ones(2, 3), other=two)):
                self.assertIs(type(made), torch.Tensor)
                self.assertTrue(torch.equal(made, wanted), made)
            self.assertEqual(tuple(torch.nn.Linear(3, 5)(one).shape), (2, 5))
            torch.add(one, one, out=two)
            self.assertEqual(two[1, 2], 2)
            with self.assertRaisesRegex(RuntimeError, "size"):
                torch.add(one, region.zeros(7))
        self.assertRefused("EBB_E_STALE", torch.add, one, two)

    @unittest.skipUnless(torch, "no torch")
    def test_the_host_has_one_cpu_whatever_its_number(self):
        with ebb.Region() as region:
            tensor = region.zeros(3)
            for device in ("cpu", "cpu:0", torch.device("cpu"), torch.device("cpu", 0)):
                self.assertIs(tensor.to(device), tensor)


class Sequences(Refused):
    def test_stack_is_numpys(self):
        arrays = [numpy.random.rand(3, 4) for _ in range(5)]
        with ebb.Region() as region:
            self.assertTrue((region.stack(arrays).numpy() == numpy.stack(arrays)).all())
            views = [array.T[::2] for array in arrays]
            self.assertTrue((region.stack(views).numpy() == numpy.stack(views)).all())
            self.assertRefused("EBB_E_EMPTY", region.stack, [])
            self.assertRefused("EBB_E_SHAPE", region.stack, [arrays[0], arrays[1].T])
            self.assertRefused("EBB_E_SHAPE", region.stack, [arrays[0], arrays[1].astype("f4")])

    def test_stack_takes_tensors_of_its_own_and_of_others_mixed(self):
        with ebb.Region() as region, ebb.Region() as other:
            mixed = [region.zeros((3,)), other.zeros((3,)), numpy.ones(3, "f4"), b"\0" * 3][:3]
            self.assertEqual(region.stack(mixed).numpy().tolist(), [[0] * 3, [0] * 3, [1] * 3])
            self.assertTrue(mixed[0].is_live and mixed[1].is_live)

    def test_regions_of_what_is_made_on_the_way_stay(self):
        for n in (3, 50000):
            arrays = [numpy.full(n, i, "f4") for i in range(5)]
            region = ebb.Region()
            one = region.stack(ebb.from_dlpack(array, copy=True) for array in arrays)
            two = region.pad(ebb.from_dlpack(array, copy=True) for array in arrays)
            three = region.pack(ebb.from_dlpack(array, copy=True) for array in arrays)[0]
            self.assertTrue((one.numpy() == numpy.stack(arrays)).all())
            self.assertTrue((two.numpy() == numpy.stack(arrays).T).all())
            self.assertTrue((three.numpy() == numpy.stack(arrays).T.ravel()).all())

    def test_pad_and_pack(self):
        sequences = [numpy.arange(n, dtype="i8") for n in (2, 4, 1)]
        with ebb.Region() as region:
            self.assertEqual(region.pad(sequences, padding=-1, batch_first=True).numpy().tolist(),
                             [[0, 1, -1, -1], [0, 1, 2, 3], [0, -1, -1, -1]])
            self.assertEqual(region.pad(sequences, batch_first=True, left=True,
                                        total_length=5).numpy()[0].tolist(), [0, 0, 0, 0, 1])
            data, sizes, order, back = [part.numpy().tolist() for part in region.pack(sequences)]
            self.assertEqual((data, sizes, order, back),
                             ([0, 0, 0, 1, 1, 2, 3], [3, 2, 1, 1], [1, 0, 2], [1, 0, 2]))
            self.assertEqual(region.pack(sequences[1:], enforce_sorted=True)[2:], (None, None))
            self.assertRefused("EBB_E_UNSORTED", region.pack, sequences, enforce_sorted=True)
            for is_sorted in (True, False):  # nothing would be left of it
                self.assertRefused("EBB_E_LENGTH_NEGATIVE", region.pack,
                                   [sequences[0], sequences[0][:0]], enforce_sorted=is_sorted)
            self.assertRefused("EBB_E_VALUE", region.pad, sequences, padding=0.5)
            for length in (3, -1, -1 << 63):
                self.assertRefused("EBB_E_TOTAL_LENGTH", region.pad, sequences,
                                   total_length=length)
            self.assertRaises(TypeError, region.pad, sequences, total_length=5.0)

    def test_what_has_no_dimensions_is_no_sequence(self):
        with ebb.Region() as region:
            for make in (region.pad, region.pack):
                for place, parts in enumerate(([1.0, 2.0], [[1.0, 2.0], 3.0])):
                    arrays = [numpy.array(part, "f4") for part in parts]
                    with self.assertRaisesRegex(ebb.Error, f"sequence {place}: 0 dimensions, at "
                                                           "least 1 is needed") as caught:
                        make(arrays)
                    self.assertEqual(caught.exception.name, "EBB_E_SHAPE")

    def test_paddings_are_what_they_are(self):
        odd, most = (1 << 53) + 1, (1 << 64) - 1
        whole = [numpy.arange(n, dtype="i8") for n in (2, 4)]
        with ebb.Region() as region:
            for value in (odd, numpy.int64(odd), numpy.array(odd), numpy.uint64(odd)):
                self.assertEqual(region.pad(whole, padding=value).numpy()[3, 0], odd)
            for value in (numpy.float32(-2), numpy.array(-2.0)):
                self.assertEqual(region.pad(whole, padding=value).numpy()[3, 0], -2)
            widest = [part.astype("u8") for part in whole]
            for value in (most, numpy.uint64(most)):
                self.assertEqual(region.pad(widest, padding=value).numpy()[3, 0], most)
            for value in (most, -1.5):
                self.assertRefused("EBB_E_VALUE", region.pad, whole, padding=value)
            for value in (1 << 64, -1 << 64, (1 << 64) + 1, 1 << 2000):
                self.assertRefused("EBB_E_VALUE", region.pad, whole, padding=value)
            reals = [part.astype("f4") for part in whole]
            for value in (1 << 64, -1 << 70):
                self.assertEqual(region.pad(reals, padding=value).numpy()[3, 0], float(value))
            for value in ((1 << 64) + 1, 1 << 2000):
                self.assertRefused("EBB_E_VALUE", region.pad, reals, padding=value)
            self.assertRaises(TypeError, region.pad, whole, padding="0")


class Steps(Refused):
    def test_steps_learn_and_nest(self):
        with ebb.Region() as run:
            for _ in range(10):
                with ebb.step("tests.learn", tag=3) as region:
                    self.assertIs(ebb.current(), region)
                    self.assertIs(region.parent, run)
                    region.zeros((100, 100))
                self.assertIs(ebb.current(), run)
        stats = ebb.step("tests.learn").site.stats
        self.assertEqual((stats["steps"], stats["planned_steps"], stats["missed"]), (10, 8, 0))
        self.assertIsNone(ebb.current())

    def test_steps_of_generators_that_take_turns_stand_apart_by_a_parent_or_a_pool(self):
        def opened(**options):
            with ebb.step("tests.turns", **options) as region:
                yield region

        with ebb.Region() as run:
            for options in ({"parent": run}, {"pool": ebb.Pool()}, {}):
                first, second = opened(**options), opened(**options)
                outer, inner = next(first), next(second)
                first.close()
                self.assertFalse(outer.is_open)
                self.assertIs(inner.is_open, bool(options), options)
                second.close()
                self.assertFalse(inner.is_open)
                self.assertIs(ebb.current(), run)

    def test_tags_are_integers_of_any_kind(self):
        for tag in (numpy.int64(3), numpy.uint8(3), True, -3, 3 << 64):
            with ebb.step("tests.tags", tag) as region:
                region.zeros(3)
        for tag in (3.0, "3", None):
            self.assertRaises(TypeError, ebb.step, "tests.tags", tag)

    @unittest.skipUnless(_testcapi, "_testcapi is missing")
    def test_a_step_that_there_is_no_memory_for_does_not_stay_open(self):
        pool, refused = ebb.Pool(), 0
        site = ebb.step("tests.memory", pool=pool).site
        for allocations in range(10):
            begun = None
            _testcapi.set_nomemory(allocations, allocations + 1)
            try:
                begun = site.begin(ebb.Region, None, 1)
            except MemoryError:
                refused += 1
            finally:
                _testcapi.remove_mem_hooks()
            if begun:
                begun.close()
            self.assertEqual(pool.stats["open_regions"], 0)
        self.assertGreater(refused, 0)

    def test_a_decorated_function_is_a_step_each_time_also_in_itself(self):
        @ebb.step("tests.recursive")
        def recursive(depth):
            region = ebb.current()
            inner = recursive(depth - 1) if depth else []
            self.assertIs(ebb.current(), region)
            return [region, *inner]

        regions = recursive(3)
        self.assertEqual(len(set(map(id, regions))), 4)
        self.assertFalse(any(region.is_open for region in regions))
        self.assertEqual(recursive.__name__, "recursive")

    def test_steps_are_copied_and_pickled_with_what_has_them(self):
        step = ebb.step("tests.copied", 7)
        for made in (copy.deepcopy([step])[0], pickle.loads(pickle.dumps(step))):
            with step as outer, made as region:
                self.assertIs(region.parent, outer)
        self.assertEqual(made.site.stats["steps"], 4)

    def test_a_ring_keeps_what_has_ended(self):
        step = ebb.step("tests.ring", ring=2)
        with step as region:
            tensor = region.zeros(3)
        self.assertTrue(region.is_open)
        region.close()  # nothing: it has ended
        self.assertEqual(tensor.numpy().tolist(), [0, 0, 0])
        for _ in range(3):
            with step:
                pass
        self.assertFalse(region.is_open)
        self.assertFalse(tensor.is_live)

    def test_a_step_that_is_closed_or_fails_ends_once(self):
        with ebb.step("tests.closed") as region:
            region.close()
        with self.assertRaises(KeyError):
            with ebb.step("tests.closed") as region:
                raise KeyError
        self.assertFalse(region.is_open)
        self.assertEqual(ebb.step("tests.closed").site.stats["steps"], 2)

    def test_a_step_that_is_not_begun_is_not_left(self):
        step = ebb.step("tests.left")
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "was not begun, or was ended before"):
                step.__exit__(None, None, None)
            with step:
                pass

    def test_a_step_of_a_pool_that_was_closed(self):
        pool = ebb.Pool()
        step = ebb.step("closed", pool=pool)
        with step as region:
            region.zeros(5000)
        pool.close()
        self.assertRefused("EBB_E_STALE", step.__enter__)

    def test_one_step_in_several_threads_and_tasks(self):
        step, wrong = ebb.step("everywhere"), []
        meet = threading.Barrier(3, timeout=20)

        def work(number):
            for _ in range(20):
                meet.wait()
                with step as region:
                    meet.wait()
                    if ebb.current() is not region or not region.is_open:
                        wrong.append(number)
                    meet.wait()
                if region.is_open:
                    wrong.append(number)

        async def task(number):
            for _ in range(5):
                with step as region:
                    await asyncio.sleep(0.001 * number)
                    self.assertIs(ebb.current(), region)
                self.assertFalse(region.is_open)

        async def tasks():
            await asyncio.gather(*(task(number) for number in range(4)))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        asyncio.run(tasks())
        self.assertIsNone(ebb.current())

    def test_what_is_no_list_of_regions_is_refused(self):
        step = ebb.step("strange")
        for step._open, what in ((3, "no list"), (["a"], "'a', which is no ebb.Region")):
            self.assertRaisesRegex(TypeError, what, step.__exit__)

    def test_a_copy_of_a_step_has_its_own(self):
        step = ebb.step("copied", tag=3, ring=2)
        with step as region:
            for copied in (copy.copy(step), copy.deepcopy([step])[0],
                           pickle.loads(pickle.dumps(step))):
                self.assertRaisesRegex(RuntimeError, "not begun", copied.__exit__)
                self.assertIs(copied.site, step.site)
                with copied as other:
                    self.assertIs(ebb.current(), other)
                self.assertIs(ebb.current(), region)
            self.assertTrue(region.is_open)
        self.assertEqual(step.site.stats["steps"], 4)

    def test_what_goes_on_after_it_returned_is_no_step(self):
        async def stream():
            yield

        def generator():
            yield

        for function in (stream, generator):
            with self.assertRaises(TypeError) as caught:
                ebb.step("later")(function)
            self.assertIn(function.__name__, str(caught.exception))
            with self.assertRaisesRegex(TypeError, "goes on"):
                ebb.step("later")(functools.partial(function))
            called = type("Called", (), {"__call__": lambda self, it=function: it()})
            self.assertTrue(ebb.step("now")(called()))  # says nothing of what it returns
            called.__call__ = function
            for other in (called(), staticmethod(function), classmethod(function)):
                with self.assertRaisesRegex(TypeError, "goes on"):
                    ebb.step("later")(other)

    def test_threads_have_currents_of_their_own(self):
        seen = []
        with ebb.Region():
            thread = threading.Thread(target=lambda: seen.append(ebb.current()))
            thread.start()
            thread.join()
        self.assertEqual(seen, [None])


class Current(Refused):
    def test_made_in_the_current_region_or_beside(self):
        self.assertEqual(ebb.empty((3,), numpy.float64).shape, (3,))
        with ebb.Region() as region:
            array = ebb.zeros((2000,), numpy.dtype("int64"))
            self.assertEqual(region.exports, 1)
            self.assertEqual(array.sum(), 0)
            stacked = ebb.stack([numpy.ones(2000), numpy.zeros(2000)])
            self.assertEqual(region.exports, 2)
        self.assertEqual(stacked.sum(), 2000)

    def test_arrays_of_the_other_byte_order(self):
        swapped = numpy.dtype("f4").newbyteorder()
        arrays = [numpy.arange(2000, dtype=swapped)] * 2
        with ebb.Region() as region:
            self.assertRaises(TypeError, ebb.empty, 3, swapped)
            self.assertTrue((ebb.stack(arrays) == numpy.stack(arrays)).all())
            region._keeps = True  # a batch is made: what ebb has no name for is made beside it
            self.assertEqual(ebb.zeros(3, swapped).dtype, swapped)

    def test_arrays_of_elements_without_a_name(self):
        arrays = [numpy.arange(3000, dtype=numpy.longdouble)] * 2
        with ebb.Region():
            self.assertEqual(ebb.stack(arrays).dtype, numpy.longdouble)
            self.assertRaises(TypeError, ebb.empty, 3, numpy.longdouble)

    def test_stacked_arrays_have_the_strides_of_numpys(self):
        cube = numpy.arange(50 * 60 * 3.0).reshape(50, 60, 3)
        views = [cube, cube.transpose(2, 0, 1), cube.copy("F"), cube[::-1], cube[:, ::-1, :2],
                 cube[:40, 5:35], cube.T[:, :30], cube[:, :1], cube[:1].T, cube.swapaxes(0, 1),
                 numpy.broadcast_to(cube[:, :1], (50, 60, 3)),
                 numpy.broadcast_to(cube[0], (9, 60, 3))]
        cases = [[view] * 4 for view in views] + [[cube, cube.copy("F")], [cube.copy("F"), cube]]
        for arrays in cases:
            wanted = numpy.stack(arrays)
            with ebb.Region():
                made = [ebb.stack(arrays)]
            made.append(ebb.Collate(ebb.Pool("shared"), ebb.stack)(arrays))
            for array in made:
                self.assertEqual(array.strides, wanted.strides, arrays[0].strides)
                self.assertTrue((array == wanted).all())

    def test_crops_of_arrays_are_stacked_in_the_region(self):
        with ebb.Region() as region:
            stacked = ebb.stack([numpy.ones((50, 60))[5:45, 10:50]] * 2)
            self.assertEqual(region.exports, 1)
        self.assertEqual(stacked.sum(), 2 * 40 * 40)

    def test_regions_are_left_in_any_order(self):
        with ebb.Region() as outer:
            one, two = ebb.Region().__enter__(), ebb.Region().__enter__()
            one.__exit__(None, None, None)
            self.assertIs(ebb.current(), two)
            two.__exit__(None, None, None)
            self.assertIs(ebb.current(), outer)
        self.assertIsNone(ebb.current())

    def test_a_region_is_entered_once_and_open(self):
        with ebb.Region() as region:
            self.assertRaises(RuntimeError, region.__enter__)
            self.assertIs(ebb.current(), region)
        self.assertRefused("EBB_E_STALE", region.__enter__)
        self.assertIsNone(ebb.current())

    def test_a_region_that_is_left_elsewhere(self):
        def generator():
            with ebb.Region() as region:
                yield region

        made = generator()
        region = contextvars.copy_context().run(next, made)
        self.assertIsNone(ebb.current())
        made.close()
        self.assertFalse(region.is_open)

    def test_below_a_region_that_was_left_elsewhere_the_others_are_found(self):
        async def numbers():
            with ebb.Region():
                yield 1
                yield 2

        async def look():
            await asyncio.sleep(0.001)
            return ebb.current()

        async def run():
            with ebb.Region() as run:
                for _ in range(3):
                    async for _ in numbers():
                        break  # another task ends it
                    await asyncio.sleep(0.001)
                    self.assertIs(ebb.current(), run)
                with ebb.Region(parent=run) as inner:
                    task = asyncio.create_task(look())
                self.assertIs(await task, run)
                with ebb.step("in") as region:
                    self.assertIs(region.parent, run)
            self.assertIsNone(ebb.current())
            references.extend(map(weakref.ref, (run, inner, region)))

        references = []
        asyncio.run(run())
        gc.collect()
        self.assertEqual([reference() for reference in references], [None] * 3)

    def test_a_limit_of_the_users_is_an_error(self):
        with ebb.Region(limit=10_000):
            self.assertRefused("EBB_E_REGION_LIMIT", ebb.empty, (100_000,), numpy.float32)


class Help(unittest.TestCase):
    def test_everything_public_is_explained(self):
        self.assertGreater(len(ebb.__doc__), 500)
        for name in ebb.__all__:
            thing = getattr(ebb, name) if name != "collate" else ebb.Collate
            self.assertTrue(inspect.getdoc(thing), name)
            self.assertEqual(getattr(thing, "__module__", "ebb"), "ebb" if isinstance(thing, type)
                             else thing.__module__)
            if not isinstance(thing, type):
                continue
            for member, value in inspect.getmembers(thing):
                if not member.startswith("_") and not issubclass(thing, Exception):
                    self.assertTrue(inspect.getdoc(value), f"{name}.{member}")

    def test_stubs_name_what_is_there(self):
        import ast
        import pathlib
        stub = ast.parse((pathlib.Path(ebb.__file__).parent / "__init__.pyi").read_text())
        named = {node.name: node for node in stub.body
                 if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        named.update({node.target.id: None for node in stub.body
                      if isinstance(node, ast.AnnAssign)})
        self.assertLessEqual(set(ebb.__all__), set(named))
        for name, node in named.items():
            if not isinstance(node, ast.ClassDef) or name.startswith("_"):
                continue
            thing = getattr(ebb, name)
            stubbed = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            public = {member for member in dir(thing) if not member.startswith("_")}
            if not issubclass(thing, Exception):
                self.assertEqual(public, {item for item in stubbed if not item.startswith("_")},
                                 name)

    def test_what_the_stubs_call_generic_takes_a_type(self):
        import ast
        import pathlib
        stub = ast.parse((pathlib.Path(ebb.__file__).parent / "__init__.pyi").read_text())
        generic = [node.name for node in stub.body if isinstance(node, ast.ClassDef) and
                   any(ast.unparse(base).startswith("Generic") for base in node.bases)]
        self.assertEqual(generic, ["Parcel"])
        for name in generic:
            self.assertEqual(getattr(ebb, name)[int].__args__, (int,))

    def test_annotations_of_a_class_do_not_name_its_methods(self):
        """A type checker looks in the class first: torch.Tensor is nothing in Tensor.torch."""
        import ast
        import pathlib
        stub = ast.parse((pathlib.Path(ebb.__file__).parent / "__init__.pyi").read_text())
        for node in (node for node in stub.body if isinstance(node, ast.ClassDef)):
            methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
            for item in methods.values():
                notes = [item.returns, *(a.annotation for a in ast.walk(item.args)
                                         if isinstance(a, ast.arg) and a.annotation)]
                named = {name.id for note in notes for name in ast.walk(note)
                         if isinstance(name, ast.Name)}
                self.assertFalse(named & set(methods), (node.name, item.name))

    def test_stubs_and_signatures_agree(self):
        """The same parameters, of the same kinds; and what is no positional one can be named."""
        import ast
        import pathlib
        stub = ast.parse((pathlib.Path(ebb.__file__).parent / "__init__.pyi").read_text())
        compared = 0
        for node in stub.body:
            thing = getattr(ebb, getattr(node, "name", ""), ebb)
            items = [node] if isinstance(node, ast.FunctionDef) else getattr(node, "body", [])
            for item in items:
                function = thing if item is node else getattr(thing, getattr(item, "name", ""), 0)
                if not callable(function) or item.name.startswith("__"):
                    continue
                kinds = {**dict.fromkeys((a.arg for a in item.args.posonlyargs), 0),
                         **dict.fromkeys((a.arg for a in item.args.args), 1),
                         **dict.fromkeys((a.arg for a in item.args.kwonlyargs), 3)}
                kinds.pop("self", None)
                real = inspect.signature(function).parameters.values()
                self.assertEqual({p.name: p.kind for p in real if p.name != "self"}, kinds,
                                 item.name)
                compared += 1
        self.assertGreater(compared, 25)
        self.assertEqual(ebb.Pool().trim(target=0), 0)
        self.assertEqual(ebb.Pool("shared").reclaim(sent_too=True), 0)
        with ebb.Region() as region:
            self.assertRaises(TypeError, region.zeros(3).copy_, source=numpy.zeros(3, "f4"))


if __name__ == "__main__":
    unittest.main()
