# SPDX-License-Identifier: Apache-2.0
"""Steps with a scope: what is made in them lives as long as the program wants, served or not.

Run once as it is and, where it is built, once with libebb-malloc preloaded: no result may differ.
Then its statistics say, at a socket, what each site had.
"""

import asyncio
import contextvars
import gc
import inspect
import os
import random
import re
import socket
import threading
import time
import types
import unittest
import weakref

import ebb
import numpy

try:
    import torch
except ImportError:
    torch = None

SIZES = [1, 100, 700, 5000, 70_000, 3_000_000]  # small and large blocks of malloc


def filled(size, value):
    return numpy.full(size, value % 251, numpy.uint8)


def is_filled(array, value):
    return bool((array == value % 251).all())


class Scopes(unittest.TestCase):
    def test_it_says_whether_they_are_served(self):
        preloaded = "libebb-malloc" in os.environ.get("LD_PRELOAD", "")
        self.assertIs(ebb.is_scope_served(), preloaded)

    def test_a_step_with_a_scope_is_a_step(self):
        with ebb.step("scope.plain", scope=True) as region:
            tensor = region.zeros((3, 4))
            self.assertIs(ebb.current(), region)
        self.assertFalse(tensor.is_live)
        self.assertFalse(region.is_open)
        self.assertIsNone(ebb.current())

    def test_what_lives_on_keeps_its_contents(self):
        kept = []
        for number in range(300):
            with ebb.step("scope.kept", scope=True):
                for size in SIZES[:5 if number % 50 else 6]:
                    made, dropped = filled(size, number + size), filled(size, 0)
                    if number % 3 == 0:
                        kept.append((made, number + size))
                    del dropped
                text = b"x" * (number * 10)
            if number % 7 == 0:
                kept = kept[::2]
            self.assertEqual(text, b"x" * (number * 10))
        self.assertGreater(len(kept), 10)
        for made, value in kept:
            self.assertTrue(is_filled(made, value))

    def test_sites_with_and_without_are_two(self):
        with ebb.step("scope.two"), ebb.step("scope.two", scope=True):
            pass
        with ebb.step("scope.two", scope=1):
            pass
        self.assertIsNot(ebb.step("scope.two").site, ebb.step("scope.two", scope=True).site)
        self.assertIs(ebb.step("scope.two", scope=2).site, ebb.step("scope.two", scope=True).site)
        self.assertEqual(ebb.step("scope.two").site.stats["steps"], 1)

    def test_scopes_nest_and_exceptions_go_through(self):
        kept = []
        for number in range(100):
            with self.assertRaises(ZeroDivisionError):
                with ebb.step("scope.outer", scope=True):
                    kept.append((filled(900, number), number))
                    with ebb.step("scope.inner", scope=True):
                        kept.append((filled(90_000, number + 1), number + 1))
                        kept.append((filled(900, 1 // (number % 2 - number % 2)), 1))
        self.assertEqual(len(kept), 200)
        for made, value in kept:
            self.assertTrue(is_filled(made, value))

    def test_the_decorator_keeps_it(self):
        @ebb.step("scope.function", scope=True)
        def make(number):
            return filled(4000, number) if number == 0 else make(number - 1)

        self.assertTrue(is_filled(make(20), 0))
        self.assertEqual(ebb.step("scope.function", scope=True).site.stats["steps"], 21)

    def test_other_threads_free_what_a_scope_made(self):
        handed, wrong = [], []

        def work(number):
            for at in range(100):
                with ebb.step("scope.thread", scope=True):
                    handed.append((filled(200 + 500 * at, number + at), number + at))
                while handed and at % 3 == 0:
                    try:
                        made, value = handed.pop(0)
                    except IndexError:
                        break
                    if not is_filled(made, value):
                        wrong.append(value)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        for made, value in handed:
            self.assertTrue(is_filled(made, value))

    def test_another_thread_cannot_end_it_and_its_own_can_afterwards(self):
        refused = []

        def close():
            try:
                region.close()
            except ebb.Error as error:
                refused.append(error.name)

        step = ebb.step("scope.other", scope=True)
        with step as region:
            thread = threading.Thread(target=close)
            thread.start()
            thread.join()
            self.assertIs(region.is_open, ebb.is_scope_served())
        self.assertFalse(region.is_open)
        self.assertEqual(refused, ["EBB_E_THREAD"] * ebb.is_scope_served())
        self.assertEqual(step.site.stats["steps"], 1)

    def check_refused_elsewhere(self, end):
        """Another thread ends a step with a scope: it is told whose that is."""
        refused = []

        def run():
            try:
                end()
            except ebb.Error as error:
                refused.append(error.name)
            refused.append(ebb.current())

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        self.assertEqual(refused, ["EBB_E_THREAD", None])

    @unittest.skipUnless(ebb.is_scope_served(), "any thread may end it")
    def test_another_thread_that_leaves_it_changes_nothing(self):
        step = ebb.step("scope.left", scope=True)
        for end_elsewhere in (lambda: step.__exit__(None, None, None),
                              lambda: region.__exit__(None, None, None)):
            with ebb.Region() as outer, step as region:
                for _ in range(2):
                    self.check_refused_elsewhere(end_elsewhere)
                    self.assertIs(ebb.current(), region)
                    self.assertTrue(region.is_open)
                made = [filled(size, size) for size in SIZES]
            self.assertFalse(region.is_open)
            self.assertFalse(outer.is_open)
            self.assertIsNone(ebb.current())
            self.assertTrue(all(is_filled(one, len(one)) for one in made))
        self.assertEqual(step.site.stats["steps"], 2)

    @unittest.skipUnless(ebb.is_scope_served(), "any thread may end it")
    def test_a_generator_that_another_thread_closes_leaves_its_step_to_its_own(self):
        def make():
            with step as region:
                yield region

        step = ebb.step("scope.generator", scope=True)
        with ebb.step("scope.generator.outer", scope=True) as outer:
            generator = make()
            region = next(generator)
            self.check_refused_elsewhere(generator.close)
            self.assertIs(ebb.current(), region)
            step.__exit__(None, None, None)
            self.assertFalse(region.is_open)
            self.assertIs(ebb.current(), outer)
        self.assertEqual(step.site.stats["steps"], 1)

    def test_what_is_no_flag_is_refused(self):
        class Neither:
            def __bool__(self):
                raise OSError("neither")

        with self.assertRaises(OSError):
            ebb.step("scope.wrong", scope=Neither()).site
        with self.assertRaises(OSError):
            ebb._ebb.Site("scope.wrong", None, 0, Neither())

    @unittest.skipIf(torch is None, "no torch")
    def test_training_gives_the_same_numbers(self):
        def train(scope):
            torch.manual_seed(1)
            model = torch.nn.Sequential(torch.nn.Linear(40, 300), torch.nn.Tanh(),
                                        torch.nn.Linear(300, 7))
            optimizer = torch.optim.Adam(model.parameters())
            losses = []
            for number in range(30):
                with ebb.step("scope.train", scope=scope):
                    rows = torch.full((50 + number, 40), 0.01 * number)
                    loss = model(rows).square().sum()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.detach())
            gc.collect()
            return [loss.item() for loss in losses]

        self.assertEqual(train(True), train(False))


def turn():
    """Others run."""
    return asyncio.sleep(0)


class Tasks(unittest.TestCase):
    """Coroutines that ebb.step() decorates."""

    def test_a_decorated_coroutine_is_one_and_its_step_is_its_own(self):
        @ebb.step("task.own", scope=True)
        async def answer(number, *, more):
            """Docs."""
            region = ebb.current()
            made = ebb.zeros(number, numpy.dtype("f4"))
            await turn()
            self.assertIs(ebb.current(), region)
            return region, made, more

        async def ask():
            asked = [answer(number, more=-number) for number in range(1, 30)]
            answers = await asyncio.gather(*asked)
            self.assertIsNone(ebb.current())
            return answers

        self.assertTrue(inspect.iscoroutinefunction(answer))
        self.assertEqual((answer.__name__, answer.__doc__), ("answer", "Docs."))
        answers = asyncio.run(ask())
        self.assertEqual(len({id(region) for region, _, _ in answers}), 29)
        for number, (region, made, more) in enumerate(answers, 1):
            self.assertFalse(region.is_open)
            self.assertEqual((len(made), more), (number, -number))
        self.assertEqual(ebb.step("task.own", scope=True).site.stats["steps"], 29)

    def test_each_call_of_one_that_calls_itself_has_its_own(self):
        @ebb.step("task.itself", scope=True)
        async def sink(depth, above=None):
            self.assertIs(ebb.current().parent, above)
            await turn()
            return depth and 1 + await sink(depth - 1, ebb.current())

        self.assertEqual(asyncio.run(sink(20)), 20)
        self.assertEqual(ebb.step("task.itself", scope=True).site.stats["steps"], 21)

    def test_whatever_is_awaited_by_calling_it(self):
        class Called:
            async def __call__(self):
                return ebb.current()

        class Static:
            @ebb.step("task.static")
            @staticmethod
            async def static():
                return ebb.current()

            @ebb.step("task.method")
            async def method(self):
                return self, ebb.current()

        self.assertFalse(asyncio.run(ebb.step("task.called")(Called())()).is_open)
        self.assertFalse(asyncio.run(Static.static()).is_open)
        it = Static()
        self.assertIs(asyncio.run(it.method())[0], it)
        with self.assertRaisesRegex(TypeError, "classmethod.* cannot be called"):
            ebb.step("task.class")(classmethod(Static.method))
        with self.assertRaisesRegex(TypeError, "3 cannot be called"):
            ebb.step("task.three")(3)

    def test_exceptions_go_both_ways(self):
        class Wrong(Exception):
            pass

        @ebb.step("task.wrong", scope=True)
        async def fail(future):
            try:
                await future
            except Wrong as wrong:
                caught.append((wrong, ebb.current().is_open))
                raise KeyError("other") from wrong

        async def ask():
            future, wrong = asyncio.get_running_loop().create_future(), Wrong()
            asyncio.get_running_loop().call_soon(future.set_exception, wrong)
            with self.assertRaisesRegex(KeyError, "other") as raised:
                await fail(future)
            self.assertIs(raised.exception.__cause__, wrong)
            self.assertEqual(caught, [(wrong, True)])
            self.assertIsNone(ebb.current())

        caught = []
        asyncio.run(ask())

    def test_tasks_that_are_cancelled_end_their_steps(self):
        async def cancel(answer):
            tasks = [asyncio.create_task(answer(number)) for number in range(10)]
            await turn()
            for task in tasks:
                task.cancel()
            return await asyncio.gather(*tasks, return_exceptions=True)

        @ebb.step("task.cancelled", scope=True)
        async def wait(number):
            regions.append(ebb.current())
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                await turn()  # it may wait before it ends
                self.assertIs(ebb.current(), regions[number])
                if number % 2:
                    raise
                return number

        regions = []
        answers = asyncio.run(cancel(wait))
        self.assertEqual([answer for answer in answers if isinstance(answer, int)],
                         [0, 2, 4, 6, 8])
        self.assertEqual([type(answer) for answer in answers[1::2]], [asyncio.CancelledError] * 5)
        self.assertFalse(any(region.is_open for region in regions))
        self.assertEqual(len(regions), 10)

    def test_one_that_is_closed_early(self):
        @ebb.step("task.closed", scope=True)
        async def wait(*, swallows=False, waits=False):
            try:
                regions.append(ebb.current())
                await turn()
            except GeneratorExit:
                ended.append(ebb.current())
                if waits:
                    await turn()
                if not swallows:
                    raise

        def begun(**how):
            made = wait(**how)
            self.assertIsNone(made.send(None))
            self.assertTrue(regions[-1].is_open)
            return made

        regions, ended = [], []
        begun().close()
        begun(swallows=True).close()
        made = begun()
        del made
        made = begun(waits=True)
        self.assertRaisesRegex(RuntimeError, "ignored GeneratorExit", made.close)
        made.close()
        self.assertEqual(regions, ended)
        self.assertFalse(any(region.is_open for region in regions))
        self.assertIsNone(ebb.current())

    def test_nothing_is_kept_longer_than_without_it(self):
        class Kept:
            pass

        @types.coroutine
        def ask():
            made = Kept()
            references.append(weakref.ref(made))
            yield made

        @ebb.step("task.kept", scope=True)
        async def wait(kept):
            await ask()
            ended.append(references[0]() is None)  # what it waited for
            await turn()

        references, ended, kept = [], [], Kept()
        made = wait(kept)
        made.send(None)
        made.send(None)
        self.assertEqual(ended, [True])
        gc.disable()
        self.addCleanup(gc.enable)
        try:
            made.throw(ValueError("wrong"))
        except ValueError:  # which had the frames
            pass
        kept = weakref.ref(kept)
        self.assertIsNone(kept())

    def test_a_step_that_ended_while_it_waited(self):
        @ebb.step("task.ended", scope=True)
        async def wait(ends):
            with ebb.step("task.ended.inner", scope=True):
                ends.append(ebb.current().parent)
                await turn()
                self.assertIsNone(ebb.current())
                kept = filled(5000, 1)
                await turn()
                return kept

        async def run():
            ends = []
            task = asyncio.create_task(wait(ends))
            await turn()
            ends[0].close()
            self.assertTrue(is_filled(await task, 1))

        asyncio.run(run())

    def test_one_that_goes_on_in_another_context_or_thread(self):
        @ebb.step("task.moved", scope=True)
        async def wait():
            regions.append(ebb.current())
            try:
                await turn()
                await turn()
            finally:
                ended.append(True)
            return 3

        def go_on(made, name):
            try:
                made.send(None)
            except StopIteration as done:
                results.append(done.value)
            except ebb.Error as error:
                results.extend((error.name, len(ended)))  # while it has the frames

        regions, ended, results = [], [], []
        made = wait()
        for _ in range(3):
            contextvars.copy_context().run(go_on, made, "context")
        self.assertEqual(results, [3])
        self.assertIsNone(ebb.current())

        made, context = wait(), contextvars.copy_context()
        context.run(go_on, made, "begun")
        thread = threading.Thread(target=context.run, args=(go_on, made, "thread"))
        thread.start()
        thread.join()
        if ebb.is_scope_served():
            self.assertEqual(results, [3, "EBB_E_THREAD", 2])  # it has been closed there
            self.assertTrue(regions[1].is_open)
            regions[1].close()
        else:
            context.run(go_on, made, "ended")
            self.assertEqual(results, [3, 3])
        self.assertFalse(regions[1].is_open)


STATISTICS = os.environ.get("EBB_MALLOC_STATS", "").replace("unix:", "").replace(
    "%p", str(os.getpid()))
BLOCK = 25 << 12  # far more than all else that is allocated


def allocate():
    bytearray(BLOCK - 1)  # and a NUL


@unittest.skipUnless(ebb.is_scope_served() and STATISTICS, "nobody says what each site has")
class Where(unittest.TestCase):
    """Each site has exactly the blocks of its own coroutines."""

    @staticmethod
    def ask():
        with socket.socket(socket.AF_UNIX) as asking:
            for _ in range(500):  # until somebody listens there
                try:
                    asking.connect(STATISTICS)
                    break
                except OSError:
                    time.sleep(0.02)
            asking.shutdown(socket.SHUT_WR)
            return asking.makefile().read()

    def assertBlocks(self, **wanted):
        found = {}
        for part in re.split(r"^site ", self.ask(), flags=re.MULTILINE)[1:]:
            name, *lines = part.splitlines()
            told = dict(line.split() for line in lines if line.startswith(" "))
            if name in wanted:
                found[name] = round(int(told["scope_bytes_total"]) / BLOCK)
                self.assertEqual(told["scopes_open"], "0", name)
        self.assertEqual(found, wanted)

    def run_all(self, *coroutines):
        async def together():
            return await asyncio.gather(*coroutines, return_exceptions=True)

        return asyncio.run(together())

    @staticmethod
    def task(name, **more):
        @ebb.step(name, scope=True, **more)
        async def work(turns, then=None, at=None):
            for number in range(turns):
                allocate()
                await (then(turns - number) if number == at else turn())
            return ebb.current()
        return work

    def test_two_that_take_turns(self):
        one, two = self.task("where.a"), self.task("where.b")

        async def often(work, turns):
            for _ in range(20):
                await work(turns)

        self.run_all(often(one, 5), often(two, 7))
        self.assertBlocks(**{"where.a": 100, "where.b": 140})

    def test_a_hundred(self):
        chance = random.Random(5)
        works = [self.task(f"where.{number}") for number in range(10)]
        numbers = [chance.randrange(1, 9) for _ in range(100)]
        self.run_all(*(works[place % 10](number) for place, number in enumerate(numbers)))
        self.assertBlocks(**{f"where.{number}": sum(numbers[number::10]) for number in range(10)})

    def test_cancelled_ones(self):
        async def work(name, turns):
            try:
                for _ in range(turns):
                    allocate()
                    await turn()
            finally:
                allocate()
                await turn()
                allocate()

        async def run():
            tasks = [asyncio.create_task(ebb.step(name, scope=True)(work)(name, 100))
                     for name in ("where.cancelled", "where.cancelled.too")]
            for _ in range(5):
                await turn()
            tasks[0].cancel()
            for _ in range(5):
                await turn()
            tasks[1].cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run(run())
        self.assertBlocks(**{"where.cancelled": 7, "where.cancelled.too": 12})

    def test_those_inside_of_one_are_left_with_it(self):
        """Be they decorated themselves or not; and are entered in the order that they were in."""
        inner = self.task("where.inner")

        @ebb.step("where.plain")
        async def work():
            with ebb.step("where.outer", scope=True):
                for _ in range(4):
                    allocate()
                    await inner(3)
                    with ebb.step("where.with", scope=True), ebb.step("where.without"):
                        await turn()
                        allocate()
                        await turn()
                    allocate()

        self.run_all(work(), work(), self.task("where.other")(50))
        self.assertBlocks(**{"where.inner": 24, "where.outer": 16, "where.with": 8,
                             "where.other": 50})

    def test_around_all_of_them(self):
        """The loop is run in a scope: it has what no task does in its own."""
        @ebb.step("where.around", scope=True)
        def around():
            async def outside():
                for _ in range(6):
                    allocate()
                    await turn()
            self.run_all(self.task("where.within")(5), outside(), self.task("where.within")(3))

        around()
        self.assertBlocks(**{"where.around": 6, "where.within": 8})


if __name__ == "__main__":
    unittest.main()
