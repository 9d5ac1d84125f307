# SPDX-License-Identifier: Apache-2.0
"""test_bench.py - the loader benchmarks: rows, refusals, and batches that arrive as they were made.

Nothing is timed. What needs torch is skipped without it.
"""

import contextlib
import gc
import hashlib
import importlib.util
import io
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

LOADER = pathlib.Path(__file__).resolve().parents[2] / "bench" / "loader" / "loader.py"
METRICS = {"cpu_ms_per_batch", "faults_per_batch", "trainer_ms_per_batch", "fds_per_batch"}


def run(*words):
    return subprocess.run([sys.executable, str(LOADER), *words], capture_output=True, text=True,
                          check=False)


# Instead of child.py: figures, but the first argument says of which case and method none come. It
# gets the number of batches if it is bare.
CHILD = """
import sys
what = " ".join(sys.argv[2:4]) + (" bare" if sys.argv[4:] else "")
print("100.00    0.01    0    7    3 total", file=sys.stderr)
if what in sys.argv[1].split(","):
    print("last words", file=sys.stderr)
    sys.exit(1)
print('{"cpu_ms_per_batch": 2, "trainer_ms_per_batch": 1}')
"""

# Counts 1000 calls and 20 for each batch: the last word says how many.
STRACE = """#!/bin/sh
[ "$1 $2 $3" = "-f -c -o" ] || exit 7
counts=$4
shift 4
"$@" || exit
for batches in "$@"; do :; done
[ "$batches" = true ] ||
    echo "100.00    0.01    0    $((1000 + 20 * batches))    3 total" >"$counts"
"""
SILENT = STRACE.replace(" >", " >/dev/null #")
REFUSED = "#!/bin/sh\nexit 1\n"


class Failing(unittest.TestCase):
    """Children that fail. Needs no torch."""

    def run_it(self, *failing, methods="torch-fd,ebb", strace=None):
        """(exit status, {(case, method)} that have rows, rows, what was said); quick, unless
        there is a text of strace."""
        sys.path.insert(0, str(LOADER.parent))
        self.addCleanup(sys.path.remove, str(LOADER.parent))
        import loader

        def child(case, method, _, batches, *bare):
            return [sys.executable, "-c", CHILD, ",".join(failing), case, method,
                    *([str(batches)] if bare else [])]

        words = ["loader.py", "--cases", "tiny,packed", "--methods", methods, "--rounds"]
        if strace is None:
            words += ["2", "--quick"]
        else:
            words.append("1")
            folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
            (folder / "strace").write_text(strace, encoding="utf-8")
            (folder / "strace").chmod(0o755)
            self.enterContext(unittest.mock.patch.dict(
                os.environ, PATH=f"{folder}:{os.environ['PATH']}"))
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
        self.assertEqual(said.count("tiny, torch-fd: left out: exit 1\n"), 1)
        self.assertEqual(said.count("\nlast words\n"), 1)
        status, found, rows, said = self.run_it("packed ebb")
        self.assertEqual((status, len(found)), (1, 3))
        self.assertFalse([row for row in rows if row[1] == "packed" and "over_ebb" in row[3]])
        status, found, rows, said = self.run_it("tiny ebb", "tiny torch-fd")
        self.assertEqual((status, {case for case, _ in found}), (1, {"packed"}))

    def calls(self, *failing, strace):
        """(exit status, {(case, method): system calls per batch}, what was said)"""
        status, _, rows, said = self.run_it(*failing, strace=strace)
        return status, {tuple(row[1:3]): float(row[4]) for row in rows
                        if row[3] == "syscalls_per_batch"}, said

    def test_system_calls_are_what_strace_counts_and_not_what_a_child_says(self):
        status, calls, said = self.calls(strace=STRACE)
        self.assertEqual((status, len(calls), set(calls.values())), (0, 4, {20.0}), said)

    def test_a_child_that_fails_under_strace_alone_is_a_failure_with_its_last_words(self):
        status, calls, said = self.calls("tiny ebb bare", strace=STRACE)
        self.assertEqual((status, len(calls), ("tiny", "ebb") in calls), (1, 3, False), said)
        self.assertEqual(said.count("tiny, ebb, system calls: left out: exit 1\n"), 1)
        self.assertEqual(said.count("\nlast words\n"), 1)
        self.assertNotIn("strace counts nothing", said)

    def test_calls_of_a_method_that_was_left_out_of_a_case_are_not_counted(self):
        status, calls, said = self.calls("tiny ebb", strace=STRACE)
        self.assertEqual((status, len(calls), ("tiny", "ebb") in calls), (1, 3, False), said)
        self.assertNotIn("tiny, ebb, system calls", said)

    def test_a_strace_that_counts_nothing_is_said(self):
        status, calls, said = self.calls(strace=SILENT)
        self.assertEqual((status, calls), (1, {}))
        self.assertEqual(said.count("left out: strace counts nothing\n"), 4)
        status, calls, said = self.calls(strace=REFUSED)
        self.assertEqual((status, calls), (0, {}))
        self.assertEqual(said.count("left out: strace counts nothing here\n"), 1)

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

    def test_descriptors_are_of_the_batches_that_are_kept(self):
        sys.path.insert(0, str(LOADER.parent))
        self.addCleanup(sys.path.remove, str(LOADER.parent))
        import torch
        import cases
        import child
        import methods

        class Uneven(methods.Torch):  # two batches that take long are on their way at first
            calls = 0

            def collate(self, batch):
                self.calls += 1
                end = time.monotonic() + (0.3 if self.calls in (3, 4) else 0)
                while time.monotonic() < end:
                    pass
                return super().collate(batch)

            def open(self, message):
                time.sleep(0.3)
                return message

        torch.multiprocessing.set_sharing_strategy("file_descriptor")
        for name, tensors in (("tiny", 100), ("detection_list", 128)):
            case = cases.all_cases()[name]
            method = Uneven(case)
            loader = child.make_loader(case, method, 1, 10)
            with self.waiting_for(child, 1):
                self.assertEqual(child.hold_some(loader, method), {"fds_per_batch": tensors})
            del loader
            gc.collect()  # its worker ends

    @contextlib.contextmanager
    def waiting_for(self, child, workers):
        """Each wait in there is for so many workers, and is a long one if it has to be."""
        with unittest.mock.patch.object(child, "WAIT_NS", 60 * 10 ** 9), \
                unittest.mock.patch.object(child, "wait_until_idle",
                                           wraps=child.wait_until_idle) as wait:
            yield
        self.assertEqual({len(call.args[0]) for call in wait.call_args_list}, {workers})

    def test_processor_time_is_of_the_workers_too(self):
        sys.path.insert(0, str(LOADER.parent))
        self.addCleanup(sys.path.remove, str(LOADER.parent))
        import cases
        import child
        import methods

        class Busy(methods.Torch):
            def collate(self, batch):
                end = time.process_time() + 0.02
                while time.process_time() < end:
                    pass
                return super().collate(batch)

        case = cases.all_cases()["tiny"]
        method = Busy(case)
        for workers in (1, 2):
            loader = child.make_loader(case, method, workers, 16)
            with self.waiting_for(child, workers):
                found = child.run_through(loader, method, 16)
                found.update(child.take_at_leisure(loader, method, 16))
            self.assertGreaterEqual(found["cpu_ms_per_batch"], 20)
            del loader
            gc.collect()

    def test_children_that_are_no_workers_are_not_counted_among_them(self):
        sys.path.insert(0, str(LOADER.parent))
        self.addCleanup(sys.path.remove, str(LOADER.parent))
        import cases
        import child
        import methods

        case = cases.all_cases()["tiny"]
        other = multiprocessing.Process(target=time.sleep, args=(1000,))
        other.start()
        self.addCleanup(other.join)
        self.addCleanup(other.kill)
        self.assertRaisesRegex(RuntimeError, "2 child processes, and num_workers is 1", child.begin,
                               child.make_loader(case, methods.Torch(case), 1, 4))

    def test_workers_are_not_ahead_while_a_thread_of_the_trainer_works_for_them(self):
        sys.path.insert(0, str(LOADER.parent))
        self.addCleanup(sys.path.remove, str(LOADER.parent))
        import child

        import meter

        thread = threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 10 ** 6))
        began = meter.cpu_ns(os.getpid())
        thread.start()  # which holds up no other
        with unittest.mock.patch.object(child, "WAIT_NS", 60 * 10 ** 9):
            child.wait_until_idle([])
        waited = meter.cpu_ns(os.getpid())
        with unittest.mock.patch.object(child, "WAIT_NS", 1):
            self.assertRaisesRegex(TimeoutError, "not ahead", child.wait_until_idle, [])
        thread.join()
        self.assertLess(meter.cpu_ns(os.getpid()) - waited, waited - began)

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
        has_one = torch.cuda.is_available()
        done = subprocess.run([sys.executable, program, "--quick", "--cases", "tiny",
                               *(() if has_one else ("--methods", "ebb"))],
                              capture_output=True, text=True, check=False)
        if not has_one:
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
