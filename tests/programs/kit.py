# SPDX-License-Identifier: Apache-2.0
"""kit.py - a real program with libebb-malloc: it is started, asked, looked at, and ended.

LIBRARY is preloaded, HARDENED is set if it is the hardened one, EBB_MALLOC is the program's, and
PACKAGES a folder where `survive --fetch` has put what is not installed. A program that is missing
is a test that is skipped, by name.
"""

import contextlib
import os
import pathlib
import re
import signal
import socket
import sys
import tempfile
import time
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "malloc"))

import programs  # noqa: E402
import servers  # noqa: E402
from way import Way  # noqa: E402

MIB = 1 << 20
IS_HARDENED = "HARDENED" in os.environ
HAS_TURNS = "turns" in os.environ.get("EBB_MALLOC", "")
# What an idle process keeps after a spike, beside what it had: what threads keep hot, and of the
# hardened library what is held back.
KEPT = (24 + 40 * IS_HARDENED) * MIB
LOST = (1 + 40 * IS_HARDENED) * MIB  # caches of threads, buffers, and, again, what is held back
PATIENCE = 40  # seconds; the general heap gives back what it has not used for ten
COMPLAINT = re.compile(r"(?m)^(ebb|<jemalloc>).*")


class Running:
    """A program, the processes that it forked, and what the library tells of them."""

    def __init__(self, process, folder):
        self.process, self.folder = process, folder

    def pids(self):
        found = [self.process.pid]
        for pid in found:
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                with contextlib.suppress(OSError):  # it has just ended
                    found += map(int, task.read_text().split())
        return found

    def resident(self):
        """Bytes in memory that are no file's, of all processes."""
        found = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                found += int((re.findall(r"RssAnon:\s+(\d+) kB", status) or [0])[0]) << 10
        return found

    def told(self):
        """Numbers of all processes that tell theirs, added up; of sites: `turn/scopes_open`."""
        sums = {}
        for path in self.folder.glob("told.*"):
            site = ""
            for line in self.ask(path).splitlines():
                if line.startswith("site "):
                    site = line[5:] + "/"
                elif line.strip():
                    name, number = line.split()
                    name = (site if line.startswith(" ") else "") + name
                    sums[name] = sums.get(name, 0) + int(number)
        assert "general_allocated_bytes" in sums, "nothing is told"
        return sums

    @staticmethod
    def ask(path):
        """Sockets of processes that have ended are still there."""
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(PATIENCE)
            try:
                asking.connect(str(path))
                asking.shutdown(socket.SHUT_WR)
                with asking.makefile() as answer:
                    return answer.read()
            except ConnectionError:
                return ""

    def level(self):
        return self.resident(), self.allocated()

    def allocated(self):
        """What of all blocks is in use: of the general heap, and of what scopes have left."""
        told = self.told()
        return told["general_allocated_bytes"] + told["pinned_live_bytes"]


def until(claim):
    """Waits for it; what it was in the end."""
    last = time.monotonic() + PATIENCE
    while not (found := claim()) and time.monotonic() < last:
        time.sleep(0.2)
    return found


class Case(unittest.TestCase):
    """Each test has a folder, a program, and the clients that it runs without the library."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ebb-")
        self.addCleanup(folder.cleanup)
        self.here = pathlib.Path(folder.name)
        options = types.SimpleNamespace(packages=pathlib.Path(os.environ.get("PACKAGES") or
                                                              "nowhere"))
        self.way = Way([os.environ["LIBRARY"]], self.here, options,
                       EBB_MALLOC_STATS=f"unix:{self.here}/told.%p")
        self.plain = Way([], self.here, options)
        for name in ("EBB_MALLOC", "EBB_MALLOC_STATS"):
            self.plain.env.pop(name, None)

    def find(self, *names):
        for name in names:
            try:
                self.way.find(name)
            except programs.Missing:
                self.skipTest(f"{name} is not installed")

    @contextlib.contextmanager
    def runs(self, *words, stop=signal.SIGTERM, **options):
        """A program until the block ends; it has to end well, and say nothing of the library's."""
        self.find(words[0])
        with open(self.here / "said", "w+b") as said:
            process = self.way.start(*words, stderr=said, **options)
            try:
                yield Running(process, self.here)
                self.assertIsNone(process.poll(), f"{words[0]} has ended")
                process.send_signal(stop)
                self.assertIn(process.wait(PATIENCE), (0, -stop))
                self.check_said(said)
            finally:
                if process.poll() is None:
                    for pid in Running(process, self.here).pids():
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    process.wait()
                for stream in (process.stdin, process.stdout):
                    if stream:
                        stream.close()

    def check_said(self, said):
        said.seek(0)
        text = said.read().decode(errors="replace")
        self.assertIsNone(COMPLAINT.search(text), text[-2000:])

    def check_comes_back(self, running, before, peak):
        """After a spike memory has gone down by all that is not in use, but for little: far."""
        resident, in_use = before
        self.assertGreater(peak, resident + 3 * KEPT, "there was no spike")

        def is_back():
            now, used = running.level()
            return now <= resident + max(0, used - in_use) + KEPT
        self.assertTrue(until(is_back), f"resident and in use: {before} before, {peak} at most, "
                        f"{running.level()} after; {running.told()}")

    def check_nothing_is_lost(self, running, before):
        """Bytes in use are those of before."""
        self.assertTrue(until(lambda: running.allocated() <= before + LOST),
                        f"{before} before, {running.allocated()} after, {running.told()}")
