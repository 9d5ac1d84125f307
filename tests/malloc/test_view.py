# SPDX-License-Identifier: Apache-2.0
"""test_view.py - statistics of a running process: files, sockets, and who asks for them badly.

LIBRARY is preloaded under TOLD, a program of told.c, or under Python; at times with SLOW_SOCKET,
WORDY or NO_THREAD.
HARDENED is the hardened library.
WIDE is the same as TOLD with 300 KB of variables that each thread has; LINKED is linked with the
library, which is found by its whole path.
"""

import contextlib
import fcntl
import os
import pathlib
import re
import resource
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

PATIENCE = 20  # seconds; far more than anything here takes
TRAY = 56 << 10

SMALL_FILES = 'ulimit -f 0; export LD_PRELOAD="$0"; exec "$@"'

# Executes with calls that fail: numbers of calls, the library, the program and its arguments.
FORBID = """
import ctypes, os, struct, sys
numbers = [int(number) for number in sys.argv[1].split(",")]
rows = [(0x20, 0, 0, 0)]  # load the number; each: if it is this, EPERM
for number in numbers:
    rows += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050001)]
rows.append((0x06, 0, 0, 0x7FFF0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())  # no new privileges
assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())  # the filter
os.dup2(1, 900)  # one more file, with a high number
os.environ["LD_PRELOAD"] = sys.argv[2]
os.execv(sys.argv[3], sys.argv[3:])
"""
CALLS = {"x86_64": {"close_range": 436, "unshare": 272, "flock": 73, "mincore": 27},
         "aarch64": {"close_range": 436, "unshare": 97, "flock": 32, "mincore": 232}}


def forbidding(*calls):
    numbers = ",".join(str(CALLS[os.uname().machine][call]) for call in calls)
    return ("/usr/bin/python3", "-c", FORBID, numbers)


def until(claim):
    """Waits for it; what it was in the end."""
    last = time.monotonic() + PATIENCE
    while not (found := claim()) and time.monotonic() < last:
        time.sleep(0.05)
    return found


def complains(program):
    """Waits until there is something on its standard error; it stays there."""
    return select.select([program.stderr], [], [], PATIENCE)[0]


class View(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "stats"

    @contextlib.contextmanager
    def runs(self, stats, *words, limit=None, folder=None, before=()):
        """A program until the block ends; what it then says on its standard error is self.said.

        limit: the words that execute the rest under some limit, the library first. before: what is
        preloaded in front of it.
        """
        words = words or (pathlib.Path(os.environ["TOLD"]).absolute(), "2")
        if limit:
            words = (*limit, os.environ["LIBRARY"], *words)
        environment = dict(os.environ, EBB_MALLOC_STATS=stats)
        if not limit:
            environment["LD_PRELOAD"] = ":".join((*before, os.environ["LIBRARY"]))
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment, cwd=folder) as program:
            try:
                self.assertEqual(program.stdout.readline(), b"ready\n")
                yield program
                program.stdin.close()
                self.assertEqual(program.wait(PATIENCE), 0)
                self.said = program.stderr.read().decode()
            finally:
                program.kill()

    def ask(self, request=b"", path=None):
        """What the socket answers; empty: nobody is there. Who asks nothing says so."""
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(PATIENCE)
            try:
                asking.connect(str(path or self.path))
            except (FileNotFoundError, ConnectionRefusedError):
                return b""
            asking.sendall(request)
            if not request:
                asking.shutdown(socket.SHUT_WR)
            return self.read(asking)

    @staticmethod
    def read(asking):
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := asking.recv(1 << 16):
                answer += part
        return answer

    def connect(self, many):
        """So many that say nothing yet."""
        asking = [socket.socket(socket.AF_UNIX) for _ in range(many)]
        for one in asking:
            self.addCleanup(one.close)
            one.settimeout(PATIENCE)
            one.connect(str(self.path))
        return asking

    def check_plain(self, text, sites=2):
        self.assertRegex(text, rb"(?m)^general_held_bytes +[1-9]\d*$")
        self.assertRegex(text, rb"^resident_bytes +[1-9]\d*\n")
        self.assertRegex(text, rb"(?m)^pinned_bytes +\d+$")
        self.assertRegex(text, rb"(?m)^large_given_back_bytes_total +\d+$")
        self.assertEqual(len(re.findall(rb"(?m)^site site-\d+$", text)), sites)
        self.assertEqual(len(re.findall(rb"(?m)^    scopes_total +1$", text)), sites)

    def check_prometheus(self, text, sites=2):
        """Each line as the format has it; each number announced once, before its first line, by a
        sentence of its own; what only grows is a total."""
        announced, sentences = set(), re.findall(rb"(?m)^# HELP ebb_\w+ (.*)$", text)
        self.assertEqual(len(set(sentences)), len(sentences))
        for sentence in sentences:
            self.assertRegex(sentence, rb"^[A-Z][^.]{19,}\.$")
        self.assertTrue(text.endswith(b"\n"))
        for line in text.decode().splitlines():
            if head := re.fullmatch(r"# TYPE (ebb_\w+) (counter|gauge)", line):
                self.assertNotIn(head[1], announced)
                self.assertEqual(head[1].endswith("_total"), head[2] == "counter")
                announced.add(head[1])
            elif not re.fullmatch(r"# HELP ebb_\w+ \S.*", line):
                number = re.fullmatch(r'(ebb_\w+)(\{site="[^"]*"\})? \d+', line)
                self.assertTrue(number, line)
                self.assertIn(number[1], announced)
        self.assertEqual(len(re.findall(rb'ebb_scopes_total\{site="site-\d+"\} 1\n', text)), sites)
        self.assertEqual(len(re.findall(rb"ebb_scope_plan_bytes\{site", text)), sites)

    def test_a_file_is_written_and_written_again(self):
        with self.runs(str(self.path)):
            self.assertTrue(until(lambda: self.path.exists() and b"site-1" in
                                  self.path.read_bytes()))
            self.check_plain(self.path.read_bytes())
            self.path.unlink()
            self.assertTrue(until(self.path.exists))
        self.assertEqual(self.said, "")
        self.assertEqual(os.listdir(self.folder), ["stats"])

    def test_what_a_site_holds_is_told(self):
        def numbers():
            told = self.ask()
            at = told.rfind(b"site holder\n")
            return [int(re.search(rb"    %s +(\d+)\n" % name, told[at:])[1])
                    for name in (b"scopes_open", b"scope_held_bytes", b"scope_pinned_bytes")]

        def goes_on(program, line):
            self.assertEqual(program.stdout.readline(), line)
            return numbers()

        mib = 1 << 20
        with self.runs(f"unix:{self.path}", os.environ["TOLD"], "0", "hold") as program:
            self.assertTrue(until(self.ask))
            scopes, resident, pinned = goes_on(program, b"1\n")
            self.assertEqual((scopes, pinned), (1, 0))
            self.assertTrue(mib + TRAY <= resident <= 4 * mib, resident)
            program.stdin.write(b"\n")
            program.stdin.flush()
            self.assertEqual(goes_on(program, b"2\n"), [0, mib + TRAY, mib + TRAY])
            program.stdin.write(b"\n")
            program.stdin.flush()
            self.assertEqual(goes_on(program, b"3\n"), [0, 0, 0])
            self.assertRegex(self.ask(), rb"\npinned_trays +1\n")
            program.stdin.write(b"\n")
            program.stdin.flush()
            self.assertEqual(goes_on(program, b"4\n"), [0, 0, 0])
            self.assertRegex(self.ask(), rb"\npinned_trays +0\n")
            program.stdin.write(b"\n")
            program.stdin.flush()
            self.assertEqual(goes_on(program, b"5\n"), [0, 0, 0])
            given = re.findall(rb"(?:large|scope)_given_back_bytes\w* +(\d+)\n", self.ask())
            whole, own = map(int, given)  # the pool's, and its one site's
            self.assertTrue(32 * mib <= own <= whole, given)

    def test_pages_that_were_never_touched_are_not_told_as_resident(self):
        """A site that once had 300 MB plans for them, and has hardly any of them in use."""
        def numbers():
            told = self.ask()
            return [int(re.search(rb"(?m)^large_%s_bytes +(\d+)$" % name, told)[1])
                    for name in (b"resident", b"held")]

        def anonymous(program):
            """As the system finds it, where it can look; what it counts may be far off."""
            folder = pathlib.Path(f"/proc/{program.pid}")
            looks = (folder / "smaps_rollup").exists()
            text = (folder / ("smaps_rollup" if looks else "status")).read_text()
            return int(re.search(r"(?m)^(Anonymous|RssAnon):\s+(\d+) kB", text)[2]) << 10

        def is_between(program, least):
            most = anonymous(program) + (2 << 20)  # it may have become less meanwhile
            resident, held = numbers()
            self.seen = resident, held, most
            return least <= resident <= min(held, most)

        with self.runs(f"unix:{self.path}", os.environ["TOLD"], "0", "plan") as program:
            self.assertTrue(until(self.ask))
            for line, least in ((b"1\n", 300_000_000), (b"2\n", 0), (b"3\n", 300_000)):
                self.assertEqual(program.stdout.readline(), line)
                # What was known a moment ago is told at first, the longer the slower it was found.
                self.assertTrue(until(lambda: is_between(program, least)), (line, self.seen))
                program.stdin.write(b"\n")
                program.stdin.flush()

    def test_what_the_general_heap_gives_back_is_told(self):
        """And what of the process is in memory, as the system counts it for others, too."""
        script = ("blocks = [bytearray(300_000) for _ in range(200)]\n"
                  "print('ready', flush=True); input()\n"
                  "del blocks\n"
                  "import ctypes; ctypes.CDLL(None).malloc_trim(0)\n"
                  "print('given', flush=True); input()\n")
        with self.runs(f"unix:{self.path}", "/usr/bin/python3", "-c", script) as program:
            self.assertTrue(until(self.ask))
            before = self.read_whole(program)
            program.stdin.write(b"\n")
            program.stdin.flush()
            self.assertEqual(program.stdout.readline(), b"given\n")
            after = self.read_whole(program)
            program.stdin.write(b"\n")
        self.assertGreaterEqual(before[0] - after[0], 50 << 20)
        self.assertGreaterEqual(after[1] - before[1], 50 << 20)
        self.assertLess(after[1] - before[1], 70 << 20)

    def read_whole(self, program):
        """Resident bytes, of which the system has the same, and bytes given back."""
        told = self.ask()
        resident, given = (int(re.search(rb"(?m)^%s +(\d+)$" % name, told)[1])
                           for name in (b"resident_bytes", b"general_given_back_bytes_total"))
        status = pathlib.Path(f"/proc/{program.pid}/statm").read_text()
        own = int(status.split()[1]) * resource.getpagesize()
        self.assertAlmostEqual(resident, own, delta=4 << 20)
        return resident, given

    def test_what_is_in_memory_is_told_once_the_first_thread_has_ended(self):
        with self.runs(f"unix:{self.path}", os.environ["TOLD"], "1", "end") as program:
            status = pathlib.Path(f"/proc/{program.pid}/statm")
            self.assertTrue(until(lambda: status.read_text().startswith("0 ")))
            self.assertTrue(until(self.ask))
            self.assertRegex(self.ask(), rb"^resident_bytes +[1-9]\d*\n")

    @unittest.skipIf(os.geteuid(), "for the superuser alone")
    def test_what_the_system_does_not_say_is_left_out(self):
        """It has no /proc once the program has changed its root."""
        script = ("import os; print('ready', flush=True); input(); "
                  f"os.chroot({str(self.folder)!r}); print('there', flush=True); input()")
        with self.runs(f"unix:{self.path}", "/usr/bin/python3", "-c", script) as program:
            self.assertTrue(until(self.ask))
            self.assertIn(b"resident_bytes ", self.ask())
            program.stdin.write(b"\n")
            program.stdin.flush()
            self.assertEqual(program.stdout.readline(), b"there\n")
            told = self.ask()
            program.stdin.write(b"\n")
        self.assertTrue(told.startswith(b"general_allocated_bytes "))

    def test_pages_in_memory_are_left_out_where_nobody_may_ask_for_them(self):
        for limit in (None, forbidding("mincore")):
            with self.subTest(limit=limit), self.runs(f"unix:{self.path}", limit=limit):
                self.assertTrue(until(self.ask))
                told = self.ask()
            self.assertEqual(b"large_resident_bytes " in told, not limit, told)
            self.assertRegex(told, rb"(?m)^large_held_bytes +\d+$")

    def test_what_the_hardened_library_forbids_counts_as_freed(self):
        frees = "for _ in range(500): bytearray(1 << 20)\nprint('ready', flush=True)\ninput()"
        with mock.patch.dict(os.environ, LIBRARY=os.environ["HARDENED"]), \
                self.runs(f"unix:{self.path}", "/usr/bin/python3", "-c", frees) as program:
            self.assertTrue(until(self.ask))
            numbers = re.findall(rb"(?m)^general_\w+_bytes +(\d+)$", self.ask())
            self.assertEqual(len(numbers), 2)
            self.assertTrue(0 < max(map(int, numbers)) < 100 << 20, numbers)
            program.stdin.write(b"\n")

    def test_a_program_whose_threads_have_large_variables(self):
        with self.runs(str(self.path), os.environ["WIDE"], "2"):
            self.assertTrue(until(lambda: self.path.exists() and b"site-1" in
                                  self.path.read_bytes()))

    def test_where_there_is_little_room_for_threads(self):
        """However little: a thread that does not find what it needs is not begun."""
        mib = 1 << 20
        environment = dict(os.environ, EBB_MALLOC_STATS=str(self.path),
                           LD_PRELOAD=os.environ["LIBRARY"])
        for room in range(20 * mib, 32 * mib, mib // 4):
            def limit(room=room):
                resource.setrlimit(resource.RLIMIT_STACK, (64 * mib, resource.RLIM_INFINITY))
                resource.setrlimit(resource.RLIMIT_AS, (64 * mib + room, resource.RLIM_INFINITY))

            program = subprocess.run(("/bin/true",), env=environment, preexec_fn=limit,
                                     stderr=subprocess.DEVNULL, check=False)
            self.assertGreaterEqual(program.returncode, 0, room)

    def test_a_thread_that_could_not_begin_is_named_once_and_tried_again(self):
        with self.runs(str(self.path), os.environ["TOLD"], "2", "hold",
                       before=[os.environ["NO_THREAD"]]) as program:
            time.sleep(1.5)
            self.assertFalse(self.path.exists())
            program.stdin.write(b"\n\n")  # a scope ends, another one begins
            program.stdin.flush()
            self.assertTrue(until(self.path.exists))
        self.assertRegex(self.said, "^ebb-malloc: EBB_MALLOC_STATS: [^\n]*/stats: no thread, it is "
                                    "tried again as scopes begin: Resource [^\n]*\n$")

    def test_a_number_is_there_before_there_is_anything_to_count(self):
        def names(text):
            return set(re.findall(rb"(?m)^# TYPE (\w+)", text))

        with self.runs(f"unix:{self.path}", os.environ["TOLD"], "0"):
            self.assertTrue(until(self.ask))
            empty = self.ask(b"GET / HTTP/1.0\r\n\r\n")
        self.check_prometheus(empty.partition(b"\r\n\r\n")[2], 0)
        for name in (b"resident", b"held", b"free", b"given_back"):
            self.assertRegex(empty, rb"\nebb_large_%s_bytes(_total)? 0\n" % name)
        with self.runs(f"unix:{self.path}"):
            self.assertTrue(until(self.ask))
            self.assertEqual(names(self.ask(b"GET / HTTP/1.0\r\n\r\n")), names(empty))

    def test_a_file_for_prometheus(self):
        path = self.folder / "stats.prom"
        with self.runs(str(path)):
            self.assertTrue(until(lambda: path.exists() and b"site-1" in path.read_bytes()))
            self.check_prometheus(path.read_bytes())

    def test_names_are_told_so_that_each_reader_knows_them(self):
        """Prometheus refuses a page with two lines of one site, or with what is no UTF-8."""
        names = [b"twin", b"twin", b"twin#2", b"two\nlines\x7f", "ü".encode() * 16, b"\xffbyte",
                 b"?byte", "\x9b31m\x85\u2028\u202er\u2069".encode(), b'a "quote\\']
        told = ["twin", "twin#2", "twin#2#2", "two?lines?", "ü" * 15, "?byte", "?byte#2",
                "?31m???r?", 'a "quote\\']
        with self.runs(f"unix:{self.path}", os.environ["TOLD"], "0", *names):
            self.assertTrue(until(self.ask))
            self.assertTrue(until(lambda: b"quote" in self.ask()))
            found = re.findall(r"(?m)^site (.*)$", self.ask().decode())
            quoted = re.findall(r'(?m)^ebb_scopes_total{site="(.*)"} 1$',
                                self.ask(b"GET / HTTP/1.0\r\n\r\n").decode())
        self.assertEqual(found[::-1], told)
        self.assertEqual(quoted[::-1], told[:-1] + ['a \\"quote\\\\'])

    def test_who_reads_slowly_does_not_hold_up_the_others(self):
        """However many parts the answer has: here a hundred times what is read each time, 40 s."""
        with self.runs(f"unix:{self.path}", os.environ["TOLD"], "1000"):
            self.assertTrue(until(self.ask))
            with socket.socket(socket.AF_UNIX) as slow:
                slow.connect(str(self.path))
                over = threading.Event()
                self.addCleanup(over.set)
                def read():
                    while not over.wait(0.4) and slow.recv(16384):
                        pass
                reader = threading.Thread(target=read)
                reader.start()
                began = time.monotonic()
                self.assertIn(b"site-999", self.ask())
                self.assertLess(time.monotonic() - began, 30)
                over.set()
                reader.join()

    def test_a_thousand_sites_are_told(self):
        path = self.folder / "stats.prom"
        with self.runs(str(path), os.environ["TOLD"], "1000"):
            self.assertTrue(until(lambda: path.exists() and b"site-999" in path.read_bytes()))
            self.check_prometheus(path.read_bytes(), 1000)

    def test_each_process_has_a_file_of_its_own(self):
        with self.runs(str(self.folder / "%p.txt")) as program:
            path = self.folder / f"{program.pid}.txt"
            self.assertTrue(until(path.exists))

    def test_a_child_tells_its_own_whatever_the_environment_is_by_then(self):
        with self.runs(str(self.folder / "%p.txt"), os.environ["TOLD"], "1", "fork") as program:
            parent = f"{program.pid}.txt"
            self.assertTrue(until(lambda: {path.name for path in self.folder.glob("*.txt")} -
                                  {parent}))

    def test_a_socket_answers_as_it_is_asked(self):
        with self.runs(f"unix:{self.path}"):
            self.assertTrue(until(self.ask))
            self.check_plain(self.ask())
            answer = self.ask(b"GET /metrics HTTP/1.1\r\nHost: ebb\r\n\r\n")
            head, _, body = answer.partition(b"\r\n\r\n")
            self.assertRegex(head, rb"^HTTP/1.0 200 OK\r\nContent-Type: text/plain")
            self.assertIn(b"\r\nContent-Length: %d" % len(body), head)
            self.check_prometheus(body)

    def test_a_request_may_come_long_after_the_connection(self):
        """And in parts."""
        with self.runs(f"unix:{self.path}"):
            self.assertTrue(until(self.ask))
            asking = self.connect(4)
            for part in (b"GE", b"T / HT", b"TP/1.0\r\n\r\n"):
                time.sleep(0.2)
                for one in asking[1:]:
                    with contextlib.suppress(BrokenPipeError):  # it has been answered
                        one.sendall(part)
            for one in asking[1:]:
                self.assertRegex(self.read(one), rb"^HTTP/1.0 200 OK\r\n")
            self.check_plain(self.read(asking[0]))  # that says nothing at all

    def test_a_request_is_heard_to_its_end_before_it_is_answered(self):
        """Who has not written all of it would fail there. Who never ends it is answered, too."""
        with self.runs(f"unix:{self.path}"):
            self.assertTrue(until(self.ask))
            asking = self.connect(4)
            heads = (b"GET / HTTP/1.1\r\n", b"HEAD / HTTP/1.1\nHost: e\n", b"POST / HTTP/1.1\r\n")
            for one, head in zip(asking, (*heads, heads[0])):
                one.sendall(head)
            time.sleep(0.5)  # two looks
            for one, end in zip(asking, (b"Host: ebb\r\n\r\n", b"\n", b"\r\n")):
                one.sendall(end)
            for one, status in zip(asking, (b"200", b"200", b"405", b"200")):
                self.assertRegex(self.read(one), rb"^HTTP/1.0 %s" % status)

    def test_each_method_is_answered_in_http(self):
        with self.runs(f"unix:{self.path}"):
            self.assertTrue(until(self.ask))
            head, _, body = self.ask(b"HEAD / HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")
            self.assertRegex(head, rb"^HTTP/1.0 200 OK\r\n")
            self.assertRegex(head, rb"\r\nContent-Length: [1-9]\d{3,}")
            self.assertEqual(body, b"")
            for method in (b"POST", b"VERSION-CONTROL", b"GETTER", b"G"):
                answer = self.ask(method + b" / HTTP/1.1\r\n\r\n")
                self.assertRegex(answer, rb"^HTTP/1.0 405 [^\r]+\r\nAllow: GET, HEAD\r\n")
                self.assertTrue(answer.endswith(b"\r\nContent-Length: 0\r\n\r\n"), answer)

    def test_who_says_nothing_keeps_nobody_else_waiting(self):
        """As many as are held at a time are one second, or nearly."""
        with self.runs(f"unix:{self.path}"):
            self.assertTrue(until(self.ask))
            silent = self.connect(300)
            began = time.monotonic()
            self.assertRegex(self.ask(b"GET / HTTP/1.0\r\n\r\n"), rb"^HTTP/1.0 200 OK\r\n")
            self.assertLess(time.monotonic() - began, 5)
            for one in silent:
                self.check_plain(self.read(one))

    def test_who_does_not_read_keeps_nobody_else_waiting(self):
        with self.runs(f"unix:{self.path}", os.environ["TOLD"], "1000"):
            self.assertTrue(until(self.ask))
            for one in self.connect(40):
                one.sendall(b"GET / HTTP/1.0\r\n\r\n")
            began = time.monotonic()
            self.assertIn(b"site-999", self.ask(b"GET / HTTP/1.0\r\n\r\n"))
            self.assertLess(time.monotonic() - began, 10)

    def test_who_does_not_read_keeps_nobody_waiting_that_is_answered_with_it(self):
        """It has a second. At best, since the first of the two may be answered alone."""
        def ask_beside_it(request):
            slow, asking = self.connect(2)
            slow.sendall(b"GET / HTTP/1.0\r\n\r\n")
            began = time.monotonic()
            asking.sendall(request)
            self.assertIn(b"site-999", self.read(asking))
            took = time.monotonic() - began
            slow.close()  # or the next look would wait for it
            return took

        with self.runs(f"unix:{self.path}", os.environ["TOLD"], "1000"):
            self.assertTrue(until(self.ask))
            for request in (b"GET / HTTP/1.0\r\n\r\n", b"plain\n"):
                took = [ask_beside_it(request) for _ in range(6)]
                self.assertLess(min(took), 0.8, request)

    def test_who_asks_at_length_is_answered_to_the_end(self):
        with self.runs(f"unix:{self.path}"):
            self.assertTrue(until(self.ask))
            with socket.socket(socket.AF_UNIX) as asking:
                asking.settimeout(PATIENCE)
                asking.connect(str(self.path))
                asking.sendall(b"GET / HTTP/1.1\r\nCookie: " + b"x" * 9000 + b"\r\n\r\n")
                answer = b"".join(iter(lambda: asking.recv(1 << 16), b""))
            self.check_prometheus(answer.partition(b"\r\n\r\n")[2])

    def test_who_goes_on_and_on_spoils_no_answer_but_its_own(self):
        """Of a request that is not read to its end, the system says that it was cut off."""
        over = threading.Event()

        def go_on():
            while not over.is_set():
                with socket.socket(socket.AF_UNIX) as noisy, contextlib.suppress(OSError):
                    noisy.connect(str(self.path))
                    while not over.is_set():
                        noisy.sendall(b"x" * 200000)

        with self.runs(f"unix:{self.path}", os.environ["TOLD"], "60"):
            self.assertTrue(until(self.ask))
            threads = [threading.Thread(target=go_on) for _ in range(4)]
            try:
                for thread in threads:
                    thread.start()
                for _ in range(20):
                    time.sleep(0.05)
                    asking = self.connect(1)[0]
                    asking.sendall(b"GET / HTTP/1.1\r\nCookie: " + b"x" * 9000 + b"\r\n\r\n")
                    answer = b"".join(iter(lambda: asking.recv(1 << 16), b""))
                    self.assertIn(b"site-59", answer)
            finally:
                over.set()
        for thread in threads:
            thread.join()

    def test_who_asks_badly_keeps_nobody_else_waiting(self):
        with self.runs(f"unix:{self.path}"):
            self.assertTrue(until(self.ask))
            silent = [socket.socket(socket.AF_UNIX) for _ in range(4)]
            for one in silent:
                one.connect(str(self.path))
            silent[0].sendall(b"GE")  # half a request
            silent[1].close()
            silent[2].shutdown(socket.SHUT_RDWR)
            for request in (b"", b"\0" * 9000, b"GET " + b"x" * 9000):
                self.assertIn(b"general_held_bytes", self.ask(request))
            for _ in range(20):
                self.assertTrue(self.ask(b"GET / HTTP/1.0\r\n\r\n"))
            for one in silent:
                one.close()
        self.assertEqual(self.said, "")

    def test_a_socket_that_is_left_over_is_used_again(self):
        for _ in range(2):
            with self.runs(f"unix:{self.path}"):
                self.assertTrue(until(self.ask))
            self.assertEqual(self.said, "")
            self.assertTrue(self.path.is_socket())

    def count_listening(self):
        """Also those whose path others have removed or taken."""
        lines = pathlib.Path("/proc/net/unix").read_text().splitlines()
        return sum(line.endswith(f" {self.path}") and line.split()[3] == "00010000"
                   for line in lines)

    def check_one_of_many_has_it(self):
        environment = dict(os.environ, EBB_MALLOC_STATS=f"unix:{self.path}",
                           LD_PRELOAD=f"{os.environ['SLOW_SOCKET']}:{os.environ['LIBRARY']}")
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                program = stack.enter_context(subprocess.Popen(
                    (os.environ["TOLD"], "2"), stdin=subprocess.PIPE, env=environment,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                stack.callback(program.kill)
            self.assertTrue(until(self.ask))
            time.sleep(2)  # the others try again
            self.assertEqual(self.count_listening(), 1)
            self.check_plain(self.ask())
        self.assertEqual(os.listdir(self.folder), ["stats"])

    def test_of_many_one_takes_over_what_is_left(self):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(self.path))
        self.check_one_of_many_has_it()

    def test_what_does_not_listen_yet_is_not_left_over(self):
        self.check_one_of_many_has_it()

    def test_a_folder_that_is_locked_is_waited_for(self):
        folder = os.open(self.folder, os.O_RDONLY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        with self.runs(f"unix:{self.path}") as program:
            time.sleep(1.5)
            self.assertTrue(complains(program))
            self.assertEqual(os.listdir(self.folder), [])
            fcntl.flock(folder, fcntl.LOCK_UN)
            self.assertTrue(until(self.ask))
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.assertRegex(self.said, "^[^\n]*no socket, its folder is locked: [^\n]*\n$")

    def test_a_folder_that_cannot_be_locked(self):
        """What is free is had, what is left over stays so."""
        with self.runs(f"unix:{self.path}", limit=forbidding("flock")):
            self.assertTrue(until(self.ask))
        self.assertEqual(self.said, "")
        with self.runs(f"unix:{self.path}", limit=forbidding("flock")) as program:
            time.sleep(1.5)
            self.assertTrue(complains(program))
            self.assertEqual(self.ask(), b"")
        self.assertRegex(self.said, "^[^\n]*left over, but its folder cannot be locked: "
                                    "Operation not permitted\n$")

    def test_a_socket_in_the_folder_where_the_program_is(self):
        for _ in range(2):
            with self.runs("unix:stats", folder=self.folder):
                self.assertTrue(until(self.ask))
            self.assertEqual(self.said, "")

    def check_stays(self, stats, move):
        """The program moves, its socket is the same as before, and there is no other one."""
        elsewhere = self.folder / "elsewhere"
        inside = elsewhere / str(self.folder).lstrip("/")  # where the path is for who moves there
        inside.mkdir(parents=True)
        script = ("import os; print('ready', flush=True); input(); "
                  f"{move}({str(elsewhere)!r}); input()")
        with self.runs(stats, "/usr/bin/python3", "-c", script, folder=self.folder) as program:
            self.assertTrue(until(self.ask))
            name = self.path.stat().st_ino
            program.stdin.write(b"move\n")
            program.stdin.flush()
            time.sleep(2.5)
            self.assertTrue(self.ask())
            self.assertEqual(self.path.stat().st_ino, name)
            self.assertEqual(list(elsewhere.rglob("stats")), [])
            self.path.unlink()
            self.assertTrue(until(lambda: any(elsewhere.rglob("stats")) or self.path.exists()))
            program.stdin.write(b"end\n")
        self.assertEqual(self.said, "")

    def test_a_socket_stays_where_it_is_when_the_program_changes_its_folder(self):
        self.check_stays("unix:stats", "os.chdir")

    @unittest.skipIf(os.geteuid(), "for the superuser alone")
    def test_a_socket_stays_where_it_is_when_the_program_changes_its_root(self):
        self.check_stays(f"unix:{self.path}", "os.chroot")

    def test_a_socket_whose_name_is_removed_is_made_again(self):
        with self.runs(f"unix:{self.path}"):
            for _ in range(2):
                self.assertTrue(until(self.ask))
                self.path.unlink()
            self.assertTrue(until(self.ask))
            self.assertEqual(self.count_listening(), 1)
            time.sleep(1.5)
            self.assertEqual(self.count_listening(), 1)
            self.check_plain(self.ask())
        self.assertEqual(self.said, "")

    def test_a_socket_whose_name_another_has_waits_for_it(self):
        """What can still be reached, here by a second name, is so until then."""
        second = self.folder / "second"
        with self.runs(f"unix:{self.path}") as program:
            self.assertTrue(until(self.ask))
            os.link(self.path, second)
            with socket.socket(socket.AF_UNIX) as another:
                another.bind(str(self.folder / "another"))
                another.listen()
                os.rename(self.folder / "another", self.path)  # there is no moment without one
                name = self.path.stat().st_ino
                time.sleep(2.5)
                self.assertTrue(complains(program))
                self.assertEqual(self.path.stat().st_ino, name)
                self.check_plain(self.ask(path=second))
            self.assertTrue(until(self.ask))
            self.assertEqual(self.ask(path=second), b"")
        self.assertRegex(self.said, "^[^\n]*no socket: Address already in use\n$")

    def test_what_belongs_to_others_is_left_alone(self):
        self.path.write_text("mine")
        with self.runs(f"unix:{self.path}") as program:
            self.assertTrue(complains(program))
        self.assertIn(f"{self.path}: is there, and is no socket: a file\n", self.said)
        self.assertEqual(self.path.read_text(), "mine")
        self.path.unlink()
        with self.runs(f"unix:{self.path}"):
            self.assertTrue(until(self.ask))
            with self.runs(f"unix:{self.path}", os.environ["TOLD"], "7") as program:
                self.assertTrue(complains(program))
            self.assertIn("Address already in use", self.said)
            self.check_plain(self.ask())
        self.path.unlink()
        os.mkfifo(self.path)
        link = self.folder / "link"
        link.symlink_to(self.path)
        for path in (self.path, link):
            with self.runs(str(path)) as program:
                time.sleep(1.5)
                self.assertTrue(complains(program))
            self.assertIn(f"{path}: is there, and is no file to be replaced: a "
                          f"{'pipe' if path == self.path else 'link'}\n", self.said)
        self.assertTrue(self.path.is_fifo() and link.is_symlink())

    def test_nothing_is_written_through_what_has_the_name_beside(self):
        """Statistics are written there first: in a folder that others may write to as well."""
        beside, mine = self.folder / "stats.new", self.folder / "mine"
        mine.write_text("mine")
        for put in (lambda: beside.symlink_to(mine), lambda: os.link(mine, beside),
                    lambda: os.mkfifo(beside)):
            put()
            kind = beside.lstat().st_mode
            with self.runs(str(self.path)) as program:
                time.sleep(1.5)
                self.assertTrue(complains(program))
                self.assertEqual(beside.lstat().st_mode, kind)
                self.assertFalse(self.path.exists())
                beside.unlink()
                self.assertTrue(until(self.path.exists))
            self.assertRegex(self.said, "^[^\n]*stats: the file with .new [^\n]*\n$")
            self.assertNotIn("File exists", self.said)
            self.assertEqual(mine.read_text(), "mine")
            self.path.unlink()

    def test_what_comes_later_is_left_alone_as_well(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with self.runs(str(self.path)) as program:
            self.assertTrue(until(self.path.exists))
            written = self.path.stat().st_mtime_ns
            self.assertTrue(until(lambda: self.path.stat().st_mtime_ns != written))
            pipe.rename(self.path)  # between two writes
            time.sleep(2.5)
            self.assertTrue(complains(program))
            self.assertEqual(os.listdir(self.folder), ["stats"])
            self.assertTrue(self.path.is_fifo())
            self.path.unlink()
            self.assertTrue(until(self.path.is_file))
        self.assertRegex(self.said, f"^[^\n]*{self.path}: is there, [^\n]*: a pipe\n$")

    def test_what_is_buffered_when_the_last_thread_ends_is_written(self):
        for stats in (str(self.path), f"unix:{self.path}"):
            with self.runs(stats, os.environ["TOLD"], "1", "end") as program:
                self.assertTrue(until(self.path.exists))
                program.stdin.close()
                self.assertEqual(program.stdout.read(), b"over\n")
            self.assertEqual(self.said, "")
            self.path.unlink(missing_ok=True)

    def test_the_last_thread_ends_the_process_where_no_other_can_begin(self):
        """What is buffered is lost: it goes to no file of the library's own either."""
        for stats in (str(self.path), f"unix:{self.path}"):
            with mock.patch.dict(os.environ, NO_THREAD_OF_OTHERS="1"), \
                    self.runs(stats, os.environ["TOLD"], "1", "end",
                              before=[os.environ["NO_THREAD"]]) as program:
                self.assertTrue(until(self.path.exists))
                program.stdin.close()
                self.assertEqual(program.wait(PATIENCE), 0)
                self.assertEqual(program.stdout.read(), b"")
            self.assertEqual(self.said, "")
            self.path.unlink(missing_ok=True)

    def test_files_of_the_program_are_its_own(self):
        """It closes all that it does not know, again and again, and counts on the lowest number."""
        script = ("import os, socket, sys, time\n"
                  "print('ready', flush=True)\n"
                  "last = time.monotonic() + 2.5\n"
                  "while time.monotonic() < last:\n"
                  "    os.closerange(3, 300)\n"
                  "    own = socket.socket(socket.AF_UNIX)\n"
                  "    number = own.fileno()\n"
                  "    time.sleep(0.0001)\n"
                  "    assert len(os.listdir('/proc/self/fd')) == 5, os.listdir('/proc/self/fd')\n"
                  "    own.close()\n"  # which fails where it is closed
                  "    assert number == 3, number\n"
                  "sys.stdin.read()\n")
        for stats in (f"unix:{self.path}", str(self.folder / "file")):
            with self.subTest(stats=stats):
                with self.runs(stats, "/usr/bin/python3", "-c", script):
                    for _ in range(10):
                        self.ask()
                        time.sleep(0.01)
                    self.assertTrue(until(self.ask) if "unix" in stats else
                                    until((self.folder / "file").exists))
                self.assertEqual(self.said, "")

    def test_nothing_of_the_program_is_kept_open(self):
        """What it closes is closed, for whoever reads the other end."""
        script = ("import os, sys\n"
                  "print('ready', flush=True)\n"
                  "os.close(1)\n"
                  "os.closerange(900, 901)\n"  # of FORBID
                  "sys.stdin.read()\n"
                  "os._exit(0)\n")
        for limit in (None, forbidding("close_range")):
            with self.subTest(limit=limit), self.runs(
                    f"unix:{self.path}", "/usr/bin/python3", "-c", script, limit=limit) as program:
                self.assertTrue(until(self.ask))
                self.assertTrue(select.select([program.stdout], [], [], PATIENCE)[0])
                self.assertEqual(program.stdout.read(), b"")

    def test_where_calls_are_forbidden(self):
        """Either call gives the thread files of its own; without both it says so, and goes on."""
        with self.runs(f"unix:{self.path}", limit=forbidding("close_range")):
            self.assertTrue(until(self.ask))
        self.assertEqual(self.said, "")
        calls = forbidding("close_range", "unshare")
        with self.runs(f"unix:{self.path}", limit=calls) as program:
            time.sleep(1.5)
            self.assertTrue(complains(program))
            self.assertEqual(self.ask(), b"")
        self.assertRegex(self.said, "^[^\n]*no table of files of its own: Operation not permitted")

    def test_what_cannot_be_had_is_named_once(self):
        for stats, reason in ((f"{self.folder}/no/file", "No such file"),
                              (f"unix:{self.folder}/no/socket", "No such file"),
                              (str(self.folder), "no file to be replaced: a directory"),
                              (f"unix:{self.folder}", "is no socket: a directory"),
                              (f"{self.folder}/no\n\t/file", r"no\?\?/file: "),
                              ("", "a path of 0 bytes"),
                              ("unix:", "a path of 0 bytes"),
                              (str(self.path) + "x" * 200, "expected 1 to 107"),
                              (f"unix:{self.path}" + "x" * 200, "expected 1 to 107")):
            with self.subTest(stats=stats), self.runs(stats) as program:
                time.sleep(1.5 if "/" in stats and len(stats) < 107 else 0)
                self.assertTrue(complains(program))
            self.assertRegex(self.said, f"^ebb-malloc: EBB_MALLOC_STATS: [^\n]*{reason}[^\n]*\n$")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_long_reason_is_cut(self):
        for kind, missing in (("", "/no/file"), ("unix:", "/no/socket")):
            path = f"{self.folder}/" + "x" * (107 - len(f"{self.folder}/{missing}")) + missing
            with self.runs(kind + path, before=[os.environ["WORDY"]]) as program:
                time.sleep(1.5)
                self.assertTrue(complains(program))
            self.assertRegex(self.said, f"^ebb-malloc: EBB_MALLOC_STATS: {path}: [^\n]*: w+\n$")
            self.assertEqual(len(self.said), 511)

    def test_a_file_that_may_not_grow_ends_nobody(self):
        with self.runs(str(self.path), limit=("/bin/sh", "-c", SMALL_FILES)) as program:
            self.assertTrue(complains(program))
        self.assertIn("cannot be written: File too large", self.said)
        self.assertEqual(os.listdir(self.folder), [])

    def test_who_executes_a_program_with_more_rights_has_nothing_written(self):
        def gain():
            os.setresuid(65534, 0, 0)  # what is executed now is as a setuid program

        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        self.folder.chmod(0o755)
        environment = dict(os.environ, EBB_MALLOC_STATS=str(self.path), EBB_MALLOC="nonsense")
        for rights in (None, gain):
            with self.subTest(rights=rights), subprocess.Popen(
                    (os.environ["LINKED"], "2"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, env=environment, preexec_fn=rights) as program:
                self.assertEqual(program.stdout.readline(), b"ready\n")
                time.sleep(1.5)
                program.stdin.close()
                self.assertEqual(program.wait(PATIENCE), 0)
                self.assertEqual(b"no such key" in program.stderr.read(), not rights)
                self.assertEqual(os.listdir(self.folder), [] if rights else ["stats"])
            self.path.unlink(missing_ok=True)

    def test_what_could_not_be_had_is_tried_again(self):
        path = self.folder / "late" / "file"
        with self.runs(str(path)) as program:
            self.assertTrue(complains(program))
            path.parent.mkdir()
            self.assertTrue(until(path.exists))
        self.assertIn("No such file", self.said)


if __name__ == "__main__":
    sys.exit(unittest.main())
