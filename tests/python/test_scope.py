# SPDX-License-Identifier: Apache-2.0
"""Steps with a scope: what is made in them lives as long as the program wants, served or not.

Run once as it is and, where it is built, once with libebb-malloc preloaded: no result may differ.
"""

import gc
import os
import threading
import unittest

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


if __name__ == "__main__":
    unittest.main()
