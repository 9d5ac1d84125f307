# SPDX-License-Identifier: Apache-2.0
"""Handlers of signals that raise, at each bytecode: no slot of a pool is lost, no region is left.

A handler runs between two bytecodes, wherever the program is. Here a trace function stands for it:
a case is run again and again, and an exception comes before its first bytecode, its second, and so
on, until it is run to its end. What it left is dropped; then the pool must have all its slots.

Bytecodes of the cases themselves are left out. They are the program's, whose `with` statements are
not interrupted between the end of their body and the call of __exit__(), as functions of Python
are: signals are looked at behind calls, at jumps backwards and where functions begin.
"""

import asyncio
import gc
import pickle
import random
import signal
import sys
import time
import unittest
import warnings

import ebb
import numpy

SLOTS = 3


class Interrupt(BaseException):
    """As KeyboardInterrupt: nobody catches it by mistake."""


class Tracer:
    """Raises Interrupt before bytecode number `at`."""

    def __init__(self, at):
        self.left, self.has_raised = at, False

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename == __file__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event in ("call", "opcode"):
            if self.left == 0:
                self.has_raised = True
                raise Interrupt
            self.left -= 1
        return self


def is_run_to_its_end(case, at):
    tracer = Tracer(at)
    sys.settrace(tracer)
    try:
        case()
    except Interrupt:
        return False
    finally:
        sys.settrace(None)
    assert not tracer.has_raised, f"the exception at {at} was taken for an answer"
    return True


def sample(number=5):
    return {"text": "x", "array": numpy.full((3, 50), number), "list": [numpy.ones(2000), number]}


def stacked(samples):
    """What collates, some of it in the region."""
    return ebb.stack([array["list"][0] for array in samples]), samples[0]


def run(coroutine):
    """To its end, without a loop."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as done:
        return done.value


class Interrupts(unittest.TestCase):
    def setUp(self):
        self.pool = ebb.Pool("shared", slots=SLOTS)
        self.outer = None  # the current region
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)

    def assertWhole(self, at):
        """All slots of the pool can be had at once, and the current region is what it was."""
        try:
            parcels = [self.pool.send(number) for number in range(SLOTS)]
        except ebb.Error:
            gc.collect()
            parcels = [self.pool.send(number) for number in range(SLOTS)]
        self.assertEqual([parcel.open() for parcel in parcels], list(range(SLOTS)), at)
        self.assertIs(ebb.current(), self.outer, at)
        self.assertEqual(self.pool.stats["open_regions"], 0, at)

    def interrupt_everywhere(self, case, least, step=1):
        """At every bytecode of the package and of what it calls; at least so many."""
        case()
        at = 0
        while not is_run_to_its_end(case, at):
            with self.subTest(at=at):
                self.assertWhole(at)
            at += step
        self.assertWhole(at)
        self.assertGreater(at, least)

    def test_sending(self):
        self.interrupt_everywhere(lambda: self.pool.send(sample()), 100)

    def test_opening(self):
        """The batch is lost when it is half read, its slot is not."""
        def case():
            self.pool.send(sample()).open()
        self.interrupt_everywhere(case, 100)

    def test_opening_what_reads_by_functions_of_python(self):
        parcels = []

        def case():
            parcels.pop().open()

        for at in range(1000):
            parcels.append(self.pool.send([random.Random(3), complex(1, 2), ebb.Error("x")]))
            if is_run_to_its_end(case, at):
                break
            parcels.clear()  # the one that was not opened, if it came to that
            self.assertWhole(at)
        self.assertGreater(at, 5)

    def test_unpickling(self):
        """A message that was read before the interrupt is not the package's to lose."""
        def case():
            message = pickle.dumps(parcels.pop())
            pickle.loads(message)

        parcels = []
        for at in range(1000):
            parcels.append(self.pool.send(random.Random(3)))
            if is_run_to_its_end(case, at):
                break
            parcels.clear()
            self.assertWhole(at)
        self.assertGreater(at, 5)

    def interrupt_keeping(self, taken):
        """A collate function keeps what it made: the batch needs a slot more than others do."""
        kept, parcels = [], []

        def keeping(samples):
            kept.append(ebb.zeros(5000, numpy.dtype("f8")))
            return kept[-1], samples

        def case():
            parcels.extend(self.pool.send(number) for number in range(taken))
            ebb.Collate(self.pool, keeping)([sample(), sample()])
            kept.clear()
            parcels.clear()

        def whole(at, check=self.assertWhole):
            kept.clear()
            parcels.clear()
            check(at)

        self.assertWhole = whole
        self.interrupt_everywhere(case, 300, 7)

    def test_a_batch_that_moves_to_another_slot(self):
        self.interrupt_keeping(0)
        self.assertEqual(self.pool.stats["fallbacks"], 0)

    def test_a_batch_that_is_rescued(self):
        self.interrupt_keeping(SLOTS - 1)
        self.assertGreater(self.pool.stats["fallbacks"], 0)

    def test_collating(self):
        collate = ebb.Collate(self.pool, stacked)
        self.interrupt_everywhere(lambda: collate([sample(), sample()]), 300)

    def test_collating_inside_of_a_region(self):
        collate = ebb.Collate(self.pool, stacked)
        with ebb.Region() as self.outer:
            self.interrupt_everywhere(lambda: collate([sample(), sample()]), 300, 3)

    def test_regions(self):
        def case():
            with ebb.Region(self.pool) as region, ebb.Region(parent=region):
                ebb.zeros(3, numpy.dtype("f4"))

        with ebb.Region() as self.outer:
            self.interrupt_everywhere(case, 50)

    def test_steps(self):
        """Of one object that stays."""
        step = ebb.step("interrupted", pool=self.pool)

        def case():
            with step as region:
                ebb.zeros(3, numpy.dtype("f4"))
                with step:
                    region.close()
                    region.close()

        with ebb.Region() as self.outer:
            self.interrupt_everywhere(case, 50)
        self.assertEqual(step._open, [])

    def test_coroutines(self):
        """Steps that are open in it end, too: it is closed where it cannot go on."""
        step, turns = ebb.step("interrupted.task", pool=self.pool), sys.modules["ebb.step"]._turns

        async def wait():
            with step:
                await asyncio.sleep(0)
                with step as region:
                    await asyncio.sleep(0)
                    return region

        async def answer():
            with step as region:
                return await turns(region, wait())

        with ebb.Region() as self.outer:
            self.interrupt_everywhere(lambda: run(answer()), 50)
        self.assertEqual(step._open, [])

    def test_signals_of_a_timer(self):
        """The same by real ones, at random: they are looked at where Python looks."""
        collate, chance = ebb.Collate(self.pool, stacked), random.Random(7)
        armed, interrupted, step = [], 0, ebb.step("timer", pool=self.pool)
        send = step(lambda: self.pool.send(sample()))

        @step
        async def answer():
            await asyncio.sleep(0)
            return send()

        def handler(number, frame):
            if armed:
                armed.clear()
                raise Interrupt

        def work():
            signal.setitimer(signal.ITIMER_REAL, 1e-6 + 0.0006 * chance.random())
            while armed:  # an exception that comes inside of a finalizer is Python's to report
                collate([sample(), sample()])
                with ebb.Region(self.pool):
                    send().open()
                run(answer()).open()

        before = signal.signal(signal.SIGALRM, handler)
        began = time.monotonic()
        while time.monotonic() < began + (2 if interrupted > 100 else 40):
            armed.append(True)
            try:
                work()
            except Interrupt:
                interrupted += 1
            self.assertWhole(interrupted)
        signal.signal(signal.SIGALRM, before)
        self.assertGreater(interrupted, 100)


if __name__ == "__main__":
    unittest.main()
