# SPDX-License-Identifier: Apache-2.0
"""test_bench.py - the loader benchmarks: rows, refusals, and batches that arrive as they were made.

Nothing is timed. Skipped without torch.
"""

import importlib.util
import pathlib
import subprocess
import sys
import unittest

LOADER = pathlib.Path(__file__).resolve().parents[2] / "bench" / "loader" / "loader.py"
METRICS = {"cpu_ms_per_batch", "faults_per_batch", "trainer_ms_per_batch", "fds_per_batch"}


def run(*words):
    return subprocess.run([sys.executable, str(LOADER), *words], capture_output=True, text=True,
                          check=False)


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
