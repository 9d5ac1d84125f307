# SPDX-License-Identifier: Apache-2.0
"""test_bench.py - the loader benchmarks: rows, refusals, and batches that arrive as they were made.

Nothing is timed. What needs torch is skipped without it.
"""

import contextlib
import importlib.util
import io
import pathlib
import subprocess
import sys
import unittest
import unittest.mock

LOADER = pathlib.Path(__file__).resolve().parents[2] / "bench" / "loader" / "loader.py"
METRICS = {"cpu_ms_per_batch", "faults_per_batch", "trainer_ms_per_batch", "fds_per_batch"}


def run(*words):
    return subprocess.run([sys.executable, str(LOADER), *words], capture_output=True, text=True,
                          check=False)


# Instead of child.py: figures, but the first argument says of which case and method none come.
CHILD = """
import sys
what = " ".join(sys.argv[2:])
if what in sys.argv[1].split(","):
    print("last words", file=sys.stderr)
    sys.exit(1)
print('{"cpu_ms_per_batch": 2, "trainer_ms_per_batch": 1}')
"""


class Failing(unittest.TestCase):
    """Children that fail. Needs no torch."""

    def run_it(self, *failing, methods="torch-fd,ebb"):
        """(exit status, {(case, method)} that have rows, rows, what was said)"""
        sys.path.insert(0, str(LOADER.parent))
        self.addCleanup(sys.path.remove, str(LOADER.parent))
        import loader

        def child(case, method, *_):
            return [sys.executable, "-c", CHILD, ",".join(failing), case, method]

        words = ["loader.py", "--quick", "--rounds", "2", "--cases", "tiny,packed", "--methods",
                 methods]
        rows, said = io.StringIO(), io.StringIO()
        with unittest.mock.patch.object(loader, "child", child), \
                unittest.mock.patch.object(sys, "argv", words), \
                contextlib.redirect_stdout(rows), contextlib.redirect_stderr(said):
            status = int(loader.main())
        rows = [line.split("\t") for line in rows.getvalue().splitlines()]
        return status, {tuple(row[1:3]) for row in rows}, rows, said.getvalue()

    def test_a_method_that_fails_is_left_out_and_the_others_go_on(self):
        status, found, rows, said = self.run_it()
        self.assertEqual((status, len(found), len(rows)), (0, 4, 12))
        status, found, rows, said = self.run_it("tiny torch-fd")
        self.assertEqual((status, len(found)), (1, 3))
        self.assertNotIn(("tiny", "torch-fd"), found)
        self.assertEqual(said.count("tiny, torch-fd: left out: exit 1\nlast words\n"), 1)
        status, found, rows, said = self.run_it("packed ebb")
        self.assertEqual((status, len(found)), (1, 3))
        self.assertFalse([row for row in rows if row[1] == "packed" and "over_ebb" in row[3]])
        status, found, rows, said = self.run_it("tiny ebb", "tiny torch-fd")
        self.assertEqual((status, {case for case, _ in found}), (1, {"packed"}))

    def test_a_child_without_figures_has_failed(self):
        sys.path.insert(0, str(LOADER.parent))
        self.addCleanup(sys.path.remove, str(LOADER.parent))
        import rounds
        for text in ("", "print('x')"):
            self.assertRaisesRegex(rounds.Failed, "prints no figures", rounds.figures_of,
                                   [sys.executable, "-c", text])

    def test_names_that_come_twice_are_refused(self):
        for option, name in (("--methods", "ebb"), ("--cases", "tiny")):
            for program in (LOADER, LOADER.with_name("gpu.py")):
                done = subprocess.run([sys.executable, str(program), option, f"{name},{name}"],
                                      capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(f"{option}: named twice: {name}", done.stderr)


@unittest.skipUnless(importlib.util.find_spec("torch"), "needs torch")
class LoaderTest(unittest.TestCase):
    def test_rows_of_all_methods(self):
        done = run("--quick", "--cases", "tiny")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        methods = {row[2] for row in rows}
        self.assertEqual(methods, {"torch-fd", "torch-fs", "packed", "piped", "ebb"})
        for method in methods:
            found = {row[3]: float(row[4]) for row in rows if row[2] == method}
            self.assertTrue(METRICS <= set(found), method)
            self.assertGreater(found["cpu_ms_per_batch"], 0)
        self.assertTrue(all(row[:2] == ["loader", "tiny"] and len(row) == 5 for row in rows))
        ebbs = {row[3]: float(row[4]) for row in rows if row[2] == "ebb"}
        self.assertEqual(ebbs["fds_per_batch"], 0)

    def test_unknown_names_are_refused(self):
        for words in (["--cases", "nothing"], ["--methods", "magic"], ["--methods", "tiny"]):
            done = run("--quick", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("no such", done.stderr)

    def test_less_than_one_round_is_refused(self):
        for number in ("0", "-3"):
            done = run("--quick", "--cases", "tiny", "--methods", "ebb", "--rounds", number)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(f"--rounds: {number} is below 1", done.stderr)

    def test_batches_to_a_gpu_need_one(self):
        import torch
        program = str(LOADER.parent / "gpu.py")
        for words in (["--cases", "nothing"], ["--methods", "magic"], ["--workers", "0"],
                      ["--rounds", "-1"]):
            done = subprocess.run([sys.executable, program, *words], capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
        done = subprocess.run([sys.executable, program, "--quick", "--cases", "tiny"],
                              capture_output=True, text=True, check=False)
        if not torch.cuda.is_available():
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("torch has no GPU here", done.stderr)
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        self.assertEqual({row[2] for row in rows}, {"torch", "torch-pinned", "ebb", "ebb-pinned"})

    def test_every_method_delivers_what_was_collated(self):
        sys.path.insert(0, str(LOADER.parent))
        import torch
        import cases
        import methods
        from torch.nn.utils.rnn import PackedSequence, unpack_sequence
        from tree import tensors_of

        def contents(tree):  # sequences of one length may be packed in any order
            return unpack_sequence(tree) if isinstance(tree, PackedSequence) else tensors_of(tree)

        for name, case in cases.all_cases().items():
            samples = [case.make(number) for number in range(case.per_batch)]
            wanted = contents(case.collate(samples, torch))
            for way, method in methods.METHODS.items():
                maker = method(case)
                found = contents(maker.open(maker.collate(samples)))
                self.assertEqual(len(found), len(wanted))
                for one, other in zip(found, wanted):
                    self.assertEqual(one.dtype, other.dtype, f"{name}, {way}")
                    self.assertTrue(torch.equal(one, other), f"{name}, {way}")
