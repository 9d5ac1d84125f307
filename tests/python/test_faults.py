# SPDX-License-Identifier: Apache-2.0
"""Workers that are killed, descriptors and shared memory that are short, forks, the end.

EBB_KILLS=20000 tests/python/tap.py tests/python/test_faults.py Kills   with PYTHONPATH set to
build/.../python: the campaign, an hour or so; EBB_SEED is another one. By default it is short.
"""

import gc
import os
import pickle
import random
import select
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
import unittest
from unittest import mock

import ebb
import numpy

try:
    import torch
    import cases
    torch.set_num_threads(1)
except ImportError:
    torch = None

HERE = os.path.dirname(os.path.abspath(__file__))
KILLS = int(os.environ.get("EBB_KILLS", 40))
SEED = int(os.environ.get("EBB_SEED", 1))


def run(code, *arguments, before="", **options):
    """Runs a program of Python; (exit status, what it printed)."""
    path = os.pathsep.join([os.path.dirname(os.path.dirname(ebb.__file__)), HERE])
    program = [sys.executable, "-B", "-c", textwrap.dedent(code), *map(str, arguments)]
    result = subprocess.run([*before.split(), *program] if before else program, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
                            **options)
    return result.returncode, result.stdout


def batch_of(number):
    """What a worker sends: each element says which batch it is of."""
    random.seed(number)
    return {"number": number,
            "arrays": [numpy.full(random.choice((1, 10, 3000, 30000)), number, "i8")
                       for _ in range(random.randrange(1, 8))]}


def check(batch):
    wanted = batch_of(batch["number"])
    assert [len(array) for array in batch["arrays"]] == [len(a) for a in wanted["arrays"]]
    for array in batch["arrays"]:
        assert (array == batch["number"]).all(), batch["number"]


class Worker:
    """A process that sends batches as fast as it can. It is killed at a time of its own."""

    def __init__(self, pool, first):
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.work(pool, first, write)
            finally:
                os._exit(1)
        os.close(write)
        self.rest = b""

    @staticmethod
    def work(pool, first, write):
        for number in range(first, first + 1000):
            try:
                message = pickle.dumps(pool.send(batch_of(number)))
            except ebb.Error as error:
                if error.name != "EBB_E_SLOTS":
                    raise
                time.sleep(0.001)
                continue
            os.write(write, struct.pack("I", len(message)) + message)

    def messages(self, wait):
        """Those that are whole; None at the end."""
        if not select.select([self.read], [], [], wait)[0]:
            return []
        data = os.read(self.read, 4096)
        if not data:
            return None
        self.rest += data
        found = []
        while len(self.rest) >= 4 and len(self.rest) >= 4 + struct.unpack_from("I", self.rest)[0]:
            size = struct.unpack_from("I", self.rest)[0]
            found.append(self.rest[4:4 + size])
            self.rest = self.rest[4 + size:]
        return found

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Doomed:
    """A collate function that kills its worker at a time of its own, while it runs or at its end.

    Not later: who is killed inside of torch's loop may take the lock of `_workers_done_event` with
    it (Event.is_set() holds one), and then the loader waits for ever. Nor does torch's handler of
    SIGCHLD run: it raises wherever the trainer is, maybe with a lock of Queue.put() in hand.
    """

    def __init__(self, inner, victim, chance):
        self.inner, self.victim, self.chance = inner, victim, chance

    def __call__(self, samples):
        if torch.utils.data.get_worker_info().id != self.victim or self.chance.random() < 0.8:
            return self.inner(samples)
        signal.setitimer(signal.ITIMER_REAL, max(1e-6, self.chance.random() * 0.002))
        batch = self.inner(samples)
        if self.chance.random() < 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return batch


class Kills(unittest.TestCase):
    @staticmethod
    def lifetime(pool):
        """Seconds in which a worker sends a few batches, where forks are dear, too."""
        begin = time.monotonic()
        worker = Worker(pool, 0)
        while not (messages := worker.messages(1)):
            assert messages is not None, "the worker has ended"
        worker.kill()
        os.close(worker.read)
        pool.reclaim(True)
        return max(0.02, 2 * (time.monotonic() - begin))

    def receive(self, messages, held):
        for message in messages:
            batch = pickle.loads(message)
            check(batch)
            self.received += 1
            if random.random() < 0.5:
                held.append(batch)
        while len(held) > 20:
            check(held.pop(random.randrange(len(held))))

    def test_workers_killed_at_random_lose_and_corrupt_nothing(self):
        """Every message that arrived opens, is right, and stays right while it is held."""
        pool = ebb.Pool("shared", slots=256, slot_bytes=4 << 20)
        held, self.received, lifetime, silent = [], 0, self.lifetime(pool), 0
        for kill in range(KILLS):
            chance = random.Random(SEED * 1_000_003 + kill)
            if silent == 10:  # forks have become dearer since
                lifetime, silent = min(8 * lifetime, max(lifetime, self.lifetime(pool))), 0
            worker, before = Worker(pool, kill * 1000), self.received
            until = time.monotonic() + chance.random() * lifetime
            while time.monotonic() < until:
                self.receive(worker.messages(0.001) or [], held)
            worker.kill()
            while (messages := worker.messages(1)) is not None:
                self.receive(messages, held)
            os.close(worker.read)
            silent = silent + 1 if self.received == before else 0
        for batch in held:
            check(batch)
        self.assertGreater(self.received, KILLS // 10)
        held.clear()
        batch = None  # there may be none
        gc.collect()
        pool.reclaim(True)
        stats = pool.stats
        self.assertEqual((stats["owned"], stats["held"], stats["open_regions"]), (0, 0, 0), stats)
        parcels = [pool.send(number) for number in range(256)]  # every slot works
        self.assertEqual([parcel.open() for parcel in parcels], list(range(256)))

    @unittest.skipUnless(torch, "torch is missing")
    @mock.patch("torch.utils.data._utils.signal_handling._set_SIGCHLD_handler", lambda: None)
    def test_a_loader_whose_workers_are_killed_says_so_and_the_next_one_works(self):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pool = ebb.Pool("shared")
        kept = []
        for number in range(2 + KILLS // 1000):  # torch looks every five seconds
            data = cases.Data("d", 1 << 20)
            collate = Doomed(ebb.Collate(pool), number % 2, random.Random(SEED * 1009 + number))
            with self.assertRaisesRegex(RuntimeError, "exited unexpectedly"):
                loader = torch.utils.data.DataLoader(data, 16, num_workers=2, collate_fn=collate)
                for first, batch in zip(range(0, 1 << 20, 16), loader):
                    if first < 64:
                        samples = [data[first + i] for i in range(16)]
                        kept.append((batch, cases.reference("d", samples)))
        self.assertTrue(kept)
        for batch, wanted in kept:
            cases.same(batch, wanted)
        del kept, batch
        gc.collect()
        pool.reclaim(True)
        self.assertEqual((pool.stats["owned"], pool.stats["held"]), (0, 0))


@unittest.skipUnless(torch, "torch is missing")
class Shortage(unittest.TestCase):
    KEEP = """
        import resource, sys
        import ebb, torch, cases
        pool = ebb.Pool("shared")
        loader = torch.utils.data.DataLoader(cases.Data("b", 640), 16, num_workers=2,
                                             collate_fn=ebb.Collate(pool, cases.listed))
        kept = list(loader)
        for batch, start in zip(kept, range(0, 640, 16)):
            cases.same(batch, cases.reference("b", [loader.dataset[i]
                                                    for i in range(start, start + 16)]))
        assert len(kept) == 40 and pool.stats["fallbacks"] == 0, pool.stats
        print("good")
    """

    def test_12_GB_of_addresses_are_enough_for_as_many(self):
        status, said = run("import resource\n"
                           "resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))"
                           + textwrap.dedent(self.KEEP))
        self.assertEqual((status, said), (0, "good\n"))

    def test_a_limit_of_addresses_that_comes_too_late_is_warned_of(self):
        """Nothing can be sent under one that is set by a worker_init_fn, say."""
        status, said = run("""
            import os, resource, ebb
            collate = ebb.Collate(ebb.Pool("shared"), list)
            collate.pool.send([1]).open()
            if os.fork() == 0:  # a process that has not called it yet
                resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))
                collate([2])
                collate([3])
                os._exit(0)
            os.wait()
            collate([4])
        """)
        self.assertEqual(status, 0, said)
        self.assertEqual(said.count("RuntimeWarning: RLIMIT_AS is 8589934592 here"), 1, said)

    def test_64_descriptors_are_enough_for_40_batches_of_128_tensors(self):
        status, said = run("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))"
                           + textwrap.dedent(self.KEEP))
        self.assertEqual((status, said), (0, "good\n"))

    def test_shared_memory_of_16_MB_is_enough(self):
        mount = "mount -t tmpfs -o size=16m tmpfs /dev/shm"
        if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode:
            self.skipTest("mounting needs rights")
        status, said = run(f"import os\nassert os.system('{mount}') == 0"
                           + textwrap.dedent(self.KEEP), before="unshare -m")
        self.assertEqual((status, said), (0, "good\n"))

    def test_who_makes_a_pool_needs_no_descriptor_for_the_first_batch(self):
        status, said = run('''
            import os, pickle, resource, ebb, numpy
            def leave(descriptors):
                most = len(os.listdir("/proc/self/fd")) - 1 + descriptors
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, 1000))

            made = ebb.Pool("shared")
            reads, writes = os.pipe()
            if os.fork() == 0:
                os.write(writes, pickle.dumps(made.send(numpy.ones(5000))))
                os._exit(0)
            leave(0)
            assert pickle.loads(os.read(reads, 100)).sum() == 5000
            resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))
            leave(1)
            try:
                ebb.Pool("shared")
            except ebb.Error as error:
                print(error.name, error)
            ''')
        self.assertEqual(status, 0, said)
        self.assertIn("EBB_E_MEMORY", said)
        self.assertIn("cannot be opened once more, error 24", said)

    def test_descriptors_do_not_grow_with_batches(self):
        pool = ebb.Pool("shared")
        loader = torch.utils.data.DataLoader(cases.Data("b", 160), 16, num_workers=2,
                                             persistent_workers=True,
                                             collate_fn=ebb.Collate(pool, cases.listed))
        kept = list(loader)
        before = len(os.listdir("/proc/self/fd"))
        kept += list(loader)
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_nothing_is_left_in_the_system(self):
        before = set(os.listdir("/dev/shm"))
        status, said = run("""
            import os, signal
            import ebb, torch, cases
            pool = ebb.Pool("shared")
            batches = iter(torch.utils.data.DataLoader(cases.Data("d", 1 << 20), 16, num_workers=1,
                                                       collate_fn=ebb.Collate(pool)))
            kept = [next(batches) for _ in range(3)]
            os.kill(batches._workers[0].pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        """)
        self.assertEqual(status, -signal.SIGKILL, said)
        left = {name for name in set(os.listdir("/dev/shm")) - before if "ebb" in name}
        self.assertEqual(left, set())


class Ends(unittest.TestCase):
    def test_a_forked_child_drops_without_effect(self):
        pool = ebb.Pool("shared")
        kept = [pool.send(batch_of(number)).open() for number in range(20)]
        child = os.fork()
        if child == 0:
            kept.clear()
            gc.collect()
            good = pool.send([1]).open() == [1]  # a place of its own
            os._exit(0 if good else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        others = [pool.send(numpy.full(30000, -1)).open() for _ in range(100)]
        for batch in kept:
            check(batch)
        del others, kept, batch
        gc.collect()
        self.assertEqual(pool.stats["held"], 0)

    def test_a_forked_child_drops_a_parcel_that_the_parent_opens(self):
        pool = ebb.Pool("shared")
        parcels = [pool.send(batch_of(number)) for number in range(5)]
        child = os.fork()
        if child == 0:
            parcels.clear()
            gc.collect()
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        while parcels:
            check(parcels.pop().open())

    def closes_in_a_child(self, pool):
        """Whether a forked child finds no region of the pool, and can end it."""
        child = os.fork()
        if child == 0:
            good = False
            try:
                good = pool.stats["open_regions"] == 0
                pool.close()
            except BaseException as error:
                os.write(2, f"# {error}\n".encode())
                good = False
            finally:
                os._exit(not good)
        return os.waitpid(child, 0)[1] == 0

    def test_a_fork_while_a_thread_waits_for_a_slot(self):
        """The child has no such thread: nobody waits there."""
        pool, opened = ebb.Pool("shared", slots=1, wait=60), []
        parcel, interval = pool.send([1]), sys.getswitchinterval()
        thread = threading.Thread(target=lambda: opened.append(ebb.Region(pool)))
        sys.setswitchinterval(1000)  # it goes on until it gives the interpreter away by itself
        try:
            thread.start()
            with self.assertRaises(ebb.Error) as caught:
                pool.close()
            good = self.closes_in_a_child(pool)
        finally:
            sys.setswitchinterval(interval)
        self.assertIn("another thread opens", str(caught.exception))
        self.assertTrue(good)
        del parcel
        thread.join()
        opened.pop().close()
        pool.close()

    def opened_without_the_interpreter(self, pool, opened):
        """A thread that has opened a region of the pool, and waits for the interpreter to say so;
        or was faster than this one."""
        thread = threading.Thread(target=lambda: opened.append(ebb.Region(pool)))
        thread.start()  # returns when that one gives the interpreter away, in Region()
        until = time.monotonic() + 20
        while pool.stats["open_regions"] == 0 and time.monotonic() < until:
            pass
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            pass
        return thread

    def test_a_fork_when_a_thread_has_opened_and_waits_for_the_interpreter(self):
        interval = sys.getswitchinterval()
        for pool in (ebb.Pool("shared"), ebb.Pool()):
            good = None
            while good is None:
                opened = []
                sys.setswitchinterval(60)
                thread = self.opened_without_the_interpreter(pool, opened)
                if not opened:
                    good = self.closes_in_a_child(pool)
                sys.setswitchinterval(interval)
                thread.join()
                opened.pop().close()
            self.assertTrue(good)
            pool.close()

    def test_the_pool_may_go_before_the_batch(self):
        pool = ebb.Pool("shared")
        batch = pool.send(batch_of(5)).open()
        del pool
        gc.collect()
        other = ebb.Pool("shared")
        for _ in range(20):
            other.send(numpy.full(30000, -1)).open()
        check(batch)

    def test_dropped_by_any_thread(self):
        pool = ebb.Pool("shared")
        kept = [pool.send(batch_of(number)).open() for number in range(200)]
        threads = [threading.Thread(target=lambda: [kept.pop() for _ in range(25)])
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        self.assertEqual(pool.stats["held"], 0)

    DROP = """
        import sys
        import ebb, {module} as module
        pool = ebb.Pool("shared", descriptor=int(sys.argv[1]))
        batch = pool.send([module.ones(5000), module.ones(3)]).open()
        sys.modules["kept"] = batch         # and what the interpreter's end drops, or does not
        sys.stdout.write("good\\n")
    """

    def test_dropped_at_the_end_of_the_interpreter_and_after_it(self):
        for module in ["numpy"] + ["torch"] * (torch is not None):
            with self.subTest(module):
                pool = ebb.Pool("shared")
                descriptor = pool.fileno()
                os.set_inheritable(descriptor, True)
                status, said = run(textwrap.dedent(self.DROP).format(module=module), descriptor,
                                   close_fds=False)
                self.assertEqual((status, said), (0, "good\n"))
                pool.reclaim(True)
                self.assertEqual(pool.stats["held"], 0)
                self.assertEqual(pool.send([1]).open(), [1])

    @unittest.skipUnless(torch, "torch is missing")
    def test_a_deleter_that_is_called_after_the_interpreter_ended(self):
        """An old capsule's struct, deleted by the C library's exit: the slot is free by that."""
        pool = ebb.Pool("shared")
        descriptor = pool.fileno()
        os.set_inheritable(descriptor, True)
        status, said = run("""
            import ctypes, sys
            import ebb, numpy, torch
            pool = ebb.Pool("shared", descriptor=int(sys.argv[1]))
            python = ctypes.pythonapi
            python.PyCapsule_GetPointer.restype = ctypes.c_void_p
            python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
            python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
            taken = []

            def take(capsule):
                managed = python.PyCapsule_GetPointer(capsule, b"dltensor")
                python.PyCapsule_SetName(capsule, b"used_dltensor")
                taken.append(managed)
                return managed

            torch._C._from_dlpack = take  # before ebb looks it up
            assert pool.send([torch.ones(5000)]).open() == taken
            deleter = ctypes.c_void_p.from_address(taken[0] + 56).value
            libc = ctypes.CDLL(None)
            libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
            assert libc.__cxa_atexit(deleter, taken[0], None) == 0
            print("good")
        """, descriptor, close_fds=False)
        self.assertEqual((status, said), (0, "good\n"))
        self.assertEqual(pool.reclaim(True), 0)  # it was free already


if __name__ == "__main__":
    unittest.main()
