# SPDX-License-Identifier: Apache-2.0
"""test_serve.py - the benchmark of servers: its client, its allocators, and what is left out.

Nothing is timed. EBB_BUILD is the build folder, with the benchmarks in it.
"""

import array
import contextlib
import http.server
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve()
SERVE = HERE.parents[2] / "bench" / "serve"
BUILD = pathlib.Path(os.environ["EBB_BUILD"])
CLIENT = BUILD / "bench" / "serve" / "ebb-load"
sys.path.insert(0, str(SERVE))

import allocators  # noqa: E402
import cases  # noqa: E402
import program  # noqa: E402
import serve  # noqa: E402
import turns  # noqa: E402


class Answering:
    """A server of this process; keeps the requests, answers as it is told."""

    def __init__(self, status=200, size=64):
        self.bodies = bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                bodies.append(array.array("i", body))
                self.send_response(status)
                self.send_header("content-LENGTH", str(size))
                self.end_headers()
                self.wfile.write((body * 16)[:size])

            def log_message(self, format, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # the client hangs up on bad answers
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ask(self, commands, connections=3):
        done = subprocess.run([str(CLIENT), str(os.getpid()), str(self.server.server_address[1]),
                               str(connections)], input=commands, capture_output=True, text=True,
                              check=False)
        self.server.shutdown()
        self.server.server_close()
        return done


class Client(unittest.TestCase):
    def test_every_request_is_sent_once_and_within_its_sizes(self):
        server = Answering()
        done = server.ask("200 5 80 10\n1 7 7 0\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = (json.loads(line) for line in done.stdout.splitlines())
        self.assertEqual((first["requests"], second["requests"]), (200, 1))
        self.assertEqual(len(server.bodies), 201)
        lengths = [len(body) for body in server.bodies]
        self.assertLessEqual(max(lengths[:200]), 80)
        self.assertGreaterEqual(min(lengths[:200]), 5)
        # Evenly on a logarithmic scale: half of them are below sqrt(5 * 80) = 20.
        self.assertTrue(70 < sum(length < 20 for length in lengths[:200]) < 130, lengths)
        self.assertEqual(lengths[200], 7)
        self.assertTrue(all(0 <= token < 256 for body in server.bodies for token in body))
        self.assertEqual(len(first["resident"]), 20)
        self.assertTrue(all(value > 1 << 20 for value in first["resident"]))
        self.assertEqual(second["resident"], [])
        self.assertGreater(first["cpu_us"], 0)
        self.assertLessEqual(first["p50_us"], first["p99_us"])

    def test_the_checksum_is_of_the_answers_in_any_order(self):
        sums = [json.loads(Answering().ask("60 5 80 0\n", connections).stdout)["sum"]
                for connections in (1, 5)]
        self.assertEqual(*sums)
        other = json.loads(Answering().ask("61 5 80 0\n").stdout)["sum"]
        self.assertNotEqual(other, sums[0])

    def test_answers_that_are_none_are_failures(self):
        for server in (Answering(status=500), Answering(size=60)):
            done = server.ask("20 5 80 0\n")
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("ebb-load", done.stderr)

    def test_commands_that_are_none_are_refused(self):
        for command in ("0 1 1 0\n", "1 0 1 0\n", "1 9 8 0\n", f"1 1 {1 << 40} 0\n", "nothing\n",
                        "\n", "1 1 1\n", "1 1 1 0 0\n", "-1 1 1 0\n", "1 1 1 -1\n", "1 1 1 0x\n",
                        "1.5 1 1 0\n", "1 1 1\n0\n", "1 1 1 0\0\n", f"{1 << 64} 1 1 0\n",
                        f"{10 ** 9 + 1} 1 1 0\n", "1" + " " * 300 + "1 1 0\n"):
            done = Answering().ask(command)
            self.assertEqual((done.returncode, done.stdout), (2, ""), command)
            self.assertIn("ebb-load: not COUNT LOW HIGH SAMPLE", done.stderr)
        done = Answering().ask("1 1 1 0\nnothing\n")
        self.assertEqual((done.returncode, done.stdout.count("\n")), (2, 1))

    def test_the_input_may_end(self):
        for commands, answers in (("", 0), ("1 1 1 0\n", 1), (" 1\t1 1 0 \r\n1 1 1 0", 2)):
            done = Answering().ask(commands)
            self.assertEqual((done.returncode, done.stdout.count("\n")), (0, answers), done.stderr)


class Allocators(unittest.TestCase):
    def test_a_process_with_another_allocator_is_found_out(self):
        found = [allocators.Allocator(name, BUILD) for name in allocators.ALLOCATORS]
        found = [one for one in found if not one.absent]
        self.assertIn("glibc", [one.name for one in found])
        for mine in found:
            with subprocess.Popen(["cat"], env=mine.environment(), stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE) as process:
                process.stdin.write(b"x\n")
                process.stdin.flush()
                process.stdout.readline()  # it runs: all its libraries are there
                for other in found:
                    self.assertEqual(other.serves(process.pid), other.path == mine.path,
                                     (mine.name, other.name))
                process.stdin.close()

    def served(self, allocator, environment):
        """Whether it serves a program, and one that this has started."""
        command = ["sh", "-c", "echo; cat"]
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            children = f"/proc/{process.pid}/task/{process.pid}/children"
            while not (child := pathlib.Path(children).read_text(encoding="ascii")):
                pass
            process.stdin.write(b"x\n")
            process.stdin.flush()
            process.stdout.readline()  # both run: all their libraries are there
            found = allocator.serves(process.pid), allocator.serves(int(child))
            process.stdin.close()
        return found

    @unittest.skipUnless(allocators.own_library(BUILD), "needs libebb-malloc")
    def test_a_library_is_preloaded_from_any_folder(self):
        for name in ("a b", "a:b", "a$LIB", "ü"):
            with tempfile.TemporaryDirectory(suffix=name) as folder:
                library = shutil.copy(allocators.own_library(BUILD), folder)
                with unittest.mock.patch.dict(os.environ, {allocators.OURS: str(library)}):
                    mine = allocators.Allocator("ebb", BUILD)
                    self.assertEqual(self.served(mine, mine.environment()), (True, True), name)

    def test_what_is_preloaded_serves_whatever_else_is_linked(self):
        glibc, first, second = (allocators.Allocator(name, BUILD)
                                for name in ("glibc", "ebb", "jemalloc"))
        if first.absent or second.absent:
            self.skipTest("needs libebb-malloc and jemalloc")
        both = {**os.environ, "LD_PRELOAD": f"{first.path} {second.path}"}
        self.assertEqual(self.served(first, both), (True, True))
        self.assertEqual(self.served(glibc, both), (False, False))

    def test_settings_of_one_do_not_reach_another(self):
        os.environ["MALLOC_CONF"] = os.environ["GLIBC_TUNABLES"] = "x"
        self.addCleanup(os.environ.pop, "MALLOC_CONF")
        self.addCleanup(os.environ.pop, "GLIBC_TUNABLES")
        for name in allocators.ALLOCATORS:
            environment = allocators.Allocator(name, BUILD).environment()
            self.assertNotEqual(environment.get("MALLOC_CONF"), "x")
            self.assertNotEqual(environment.get("GLIBC_TUNABLES"), "x")
            self.assertEqual(environment.get("SERVE_SCOPES"),
                             "1" if name == "ebb-scopes" else None)


SERVER = """
import http.server, os, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    left, lock = int(sys.argv[1]), threading.Lock()
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            Handler.left -= 1
            if Handler.left == 0:
                print("enough", file=sys.stderr, flush=True)
                os._exit(1)
        self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 64\\r\\n\\r\\n" + bytes(64))
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("port", server.server_address[1], flush=True)
sys.stdin.read()
print("ended after", int(sys.argv[1]) - Handler.left, file=sys.stderr)
"""


LOOP = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    print('{"cpu_ms": 1, "faults": 0, "peak_bytes": 1, "loss": 1}', flush=True)
"""
MUCH = "import sys; sys.stderr.write('much ' * 100_000 + 'said')\n"
HANG = "import time; time.sleep(1000)\n"
SILENT = r"\Astopped answering: no line in 0\.1 s\n.*much said\Z"


class Rounds(unittest.TestCase):
    """With a server that ends after so many requests, or with a loop."""

    def round_of(self, requests, server=SERVER):
        return self.round_of_case(cases.Serving(
            lambda: [sys.executable, "-c", server, str(requests)], normal=4, mixed=(1, 8), warm=40,
            timed=100, most=400))

    def round_of_case(self, case):
        names = [allocators.Allocator(name, BUILD) for name in ("glibc", "glibc-tuned")]
        chosen = types.SimpleNamespace(quick=False, build=BUILD, rounds=1)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            rounds, good = serve.rounds_of(chosen, case, names)
        return rounds[0], good, said.getvalue()

    def test_all_figures_are_there(self):
        courses, good, said = self.round_of(10 ** 6)
        self.assertTrue(good, said)
        self.assertEqual(said.count("ended"), 2)  # each of them was told to, and did
        for course in courses.values():
            self.assertEqual(len(course.cpu), 10)
            names = {metric.partition(".")[0] for metric in course.figures}
            self.assertEqual(names, {
                "resident_bytes", "cpu_us_per_request", "requests_per_second", "p50_us", "p99_us",
                "faults_per_request", "mixed_resident_ratio", "mixed_resident_bytes",
                "spike_before_bytes", "spike_peak_bytes", "spike_after_bytes",
                "spike_resident_ratio", "spike_resident_bytes"})
            self.assertIn("spike_resident_bytes.n77", course.figures)
            self.assertIn("mixed_resident_bytes.n400", course.figures)
            self.assertNotIn("mixed_resident_bytes.n401", course.figures)
        spike = 100 + 20 + 8 + 50
        self.assertEqual(said.count(f"ended after {400 + spike}\n"), 2, said)

    def test_a_server_that_dies_is_a_failure_with_its_last_words(self):
        for requests in (1, 30, 100, 300, 500):
            courses, good, said = self.round_of(requests)
            self.assertFalse(good)
            self.assertEqual(courses, {})
            self.assertIn("failed: glibc-tuned: stopped answering", said)
            self.assertEqual(said.count("enough"), 2)

    def test_what_is_said_beside_stops_nobody_and_is_passed_on(self):
        loop = cases.Training(lambda: [sys.executable, "-c", MUCH + LOOP], 10)
        for courses, good, said in (self.round_of(10 ** 6, MUCH + SERVER),
                                    self.round_of_case(loop)):
            self.assertTrue(good, said)
            self.assertEqual((len(courses), said.count("much"), said.count("said")),
                             (2, 200_000, 2))

    def test_who_hangs_is_a_failure_with_its_last_words(self):
        stuck = SERVER.replace("        Handler.left -= 1", f"        {HANG}")
        allocator = allocators.Allocator("glibc", BUILD)
        server = serve.process.Server([sys.executable, "-c", MUCH + stuck, "1"], allocator)
        self.addCleanup(server.stop)
        server.connect(CLIENT)
        with unittest.mock.patch.object(program, "PATIENCE_S", 0.1):
            with self.assertRaisesRegex(program.Failed, SILENT):
                server.load(1, 1, 1)
        loop = program.Program([sys.executable, "-c", MUCH + "print('ready', flush=True);" + HANG])
        self.assertEqual(loop.hear(), "ready")
        with unittest.mock.patch.object(program, "PATIENCE_S", 0.1):
            self.assertRaisesRegex(program.Failed, SILENT, loop.hear)
            loop = program.Program([sys.executable, "-c", HANG])
            self.assertRaisesRegex(program.Failed, "does not start: no line", loop.hear_port)

    def test_every_answer_counts_and_not_only_those_that_are_timed(self):
        wrong = ('(os.urandom(64) if "GLIBC_TUNABLES" in os.environ and {} '
                 'else bytes(64))').format
        for when, where in (("10 ** 6 - Handler.left <= 20", "turns"),
                            ("10 ** 6 - Handler.left > 200", "after the long run"),
                            ("10 ** 6 - Handler.left > 450", "after the long run")):
            courses, good, said = self.round_of(10 ** 6, SERVER.replace("bytes(64)", wrong(when)))
            self.assertEqual((len(courses), good), (2, False), when)
            found = re.findall("answers differ, (.*): (.*); (.*)\n", said)
            self.assertEqual([(at, {*names}) for at, *names in found],
                             [(where, {"glibc", "glibc-tuned"})], said)

    def test_who_does_not_end_well_is_a_failure(self):
        loop = cases.Training(lambda: [sys.executable, "-c", LOOP + "sys.exit(3)"], 10)
        with unittest.mock.patch.object(program, "END_S", 0.1):
            stuck = self.round_of(10 ** 6, SERVER + HANG)
        for (courses, good, said), why in (
                (self.round_of(10 ** 6, SERVER + "os.kill(os.getpid(), 15)"), "ended by signal 15"),
                (stuck, "did not end within 0.1 s of its input's end"),
                (self.round_of_case(loop), "ended with 3")):
            self.assertEqual((courses, good), ({}, False))
            for name in ("glibc", "glibc-tuned"):
                self.assertEqual(said.count(f"failed: {name}: {why}\n"), 1, said)

    def test_without_the_client_no_server_is_left_behind(self):
        with unittest.mock.patch.object(serve.process, "Program", wraps=program.Program) as made, \
                tempfile.TemporaryDirectory() as empty, \
                unittest.mock.patch(f"{__name__}.BUILD", pathlib.Path(empty)):
            courses, good, said = self.round_of(1)
        self.assertEqual((courses, good), ({}, False))
        self.assertIn("ebb-load", said)
        self.assertEqual(said.count("ended"), 2)
        self.assertEqual(made.call_count, 4)


class Beginnings(unittest.TestCase):
    """Of courses that only note when it is their turn."""

    class Course:
        def __init__(self, name, taken, ends_after):
            self.allocator, self.taken = types.SimpleNamespace(name=name), taken
            self.left = ends_after

        def begin(self):
            pass

        def take_turn(self):
            self.left -= 1
            if self.left < 0:
                raise program.Failed("ends")
            self.taken.append(self.allocator.name)

        def finish(self, _):
            pass

        def stop(self):
            pass

    def taken_by(self, ends_after, times, number=0):
        """(who took a turn, one after the other; who is left); the courses are named 0, 1, ..."""
        taken = []
        made = [self.Course(name, taken, most) for name, most in enumerate(ends_after)]
        with unittest.mock.patch.object(serve, "courses_of", lambda *_: made), \
                unittest.mock.patch.object(serve.process, "TURNS", times), \
                contextlib.redirect_stderr(io.StringIO()):
            left = serve.round_of(None, types.SimpleNamespace(most=0), made, number)
        return taken, [course.allocator.name for course in left]

    def test_they_begin_with_another_one_each_time(self):
        for count in (1, 2, 3, 7):
            for number in (0, 1, 2):
                taken, _ = self.taken_by([count] * count, count, number)
                self.assertEqual(taken[0], number % count)
                self.assertEqual(sorted(taken[::count]), [*range(count)], taken)
                for turn in range(count):
                    self.assertEqual(len({*taken[turn * count:][:count]}), count)

    def test_who_fails_takes_no_turn_more(self):
        self.assertEqual(self.taken_by([3, 1, 3], 3), ([0, 1, 2, 2, 0, 0, 2], [0, 2]))
        self.assertEqual(self.taken_by([1, 1], 3), ([0, 1], []))


class Node(unittest.TestCase):
    """Which is as old as Debian's where it is not from elsewhere."""

    def test_a_package_that_needs_a_newer_one_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            node, package = pathlib.Path(folder, "node"), pathlib.Path(folder, "package")
            node.write_text("#!/bin/sh\necho v18.20.4\n")
            node.chmod(0o755)
            package.mkdir()
            with unittest.mock.patch.dict(os.environ, {"PATH": f"{folder}:/usr/bin:/bin"}):
                for engines in ({}, {"engines": {"node": ">=18.0.0"}}):
                    (package / "package.json").write_text(json.dumps(engines))
                    self.assertEqual(cases.need_node(package), str(node))
                (package / "package.json").write_text('{"engines": {"node": ">=20.0.0"}}')
                newer = cases.Place(None, pathlib.Path(folder)).node()
                with self.assertRaisesRegex(cases.Absent, "package needs node 20, not v18.20.4"):
                    cases.need_node(package, newer)
                newer.parent.mkdir(parents=True)
                newer.touch()
                self.assertEqual(cases.need_node(package, newer), str(newer))

    def test_one_that_does_not_tell_its_version_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            node = pathlib.Path(folder, "node")
            node.touch(0o755)
            with unittest.mock.patch.dict(os.environ, {"PATH": folder}):
                for text, why in (("#!/bin/sh\nexit 1\n", "does not tell its version"),
                                  ("#!/bin/sh\n", "does not tell its version"),
                                  ("#!/bin/sh\necho none; exit 0\n", "does not tell its version"),
                                  ("#!/bin/sh\necho v20.1.0; exit 1\n", "does not tell"),
                                  ("no program", "cannot be run: Exec format error"),
                                  ("#!/nowhere/sh\n", "cannot be run: No such file")):
                    node.write_text(text)
                    with self.assertRaisesRegex(cases.Absent, f"{node} {why}"):
                        cases.need_node()


class Loops(unittest.TestCase):
    """Programs that take so many steps for each line, in so many threads."""

    def turns(self, name, *words, scopes=False):
        place = cases.Place(BUILD, pathlib.Path("/nowhere"))
        allocator = allocators.Allocator("ebb-scopes" if scopes else "glibc", BUILD)
        done = subprocess.run([place.program("bench", "serve", name), *words], input="3\n1\n",
                              capture_output=True, text=True, env=allocator.environment(),
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        ready, *turns = done.stdout.splitlines()
        self.assertEqual((ready, len(turns)), ("ready", 2))
        return [json.loads(turn) for turn in turns]

    def test_threads_do_the_same_work_each_and_scopes_change_no_result(self):
        for large in ("0", "100000"):
            alone = self.turns("ebb-short-loop", large, "1", "2")
            for threads in (1, 3, 8):
                for scopes in (False, True) if allocators.own_library(BUILD) else (False,):
                    turns = self.turns("ebb-short-loop", large, str(threads), "2", scopes=scopes)
                    self.assertEqual([turn["loss"] for turn in turns],
                                     [turn["loss"] * threads for turn in alone])
                    self.assertTrue(all(turn["cpu_ms"] > 0 for turn in turns))

    def test_pairs_are_none_of_them_left_out(self):
        ten_thousand = sum(i & 255 for i in range(10000))
        self.assertEqual([turn["loss"] for turn in self.turns("ebb-pairs", "64", "1")],
                         [300 * ten_thousand, 100 * ten_thousand])

    def test_peaks_are_of_the_loop_and_not_of_who_started_it(self):
        held = bytearray(200 << 20)
        for turn in self.turns("ebb-pairs", "64", "1"):
            self.assertTrue(1 << 20 < turn["peak_bytes"] < 50 << 20 < len(held), turn)

    def test_a_library_that_is_none_is_said(self):
        program = BUILD / "bench" / "serve" / "ort-loop"
        done = subprocess.run([program, "/nowhere.so", "model", "1", "1"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere.so", done.stderr)


class Turns(unittest.TestCase):
    """The command line of turns.py."""

    def test_unknown_names_are_refused(self):
        for words, said in ((["--servers", "nope"], "no such server or way: nope"),
                            (["--servers", "redis,wait"], "no such server or way: wait"),
                            (["--ways", "glibc,redis"], "no such server or way: redis"),
                            (["--ways", "ebb,ebb"], "--ways: named twice: ebb"),
                            (["--servers", "nginx,nginx"], "--servers: named twice: nginx"),
                            (["--rounds", "0"], "--rounds: 0 is below 1")):
            done = subprocess.run([sys.executable, "-B", str(SERVE / "turns.py"), str(BUILD),
                                   *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(said, done.stderr)

    def test_every_server_is_a_command_or_is_said_to_be_absent(self):
        """With a node and without one; nothing has been built or fetched."""
        with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as here:
            place = turns.Place(types.SimpleNamespace(
                build=pathlib.Path(empty), fetched=pathlib.Path(empty), packages=None))
            node = pathlib.Path(here, "node")
            node.write_text("#!/bin/sh\necho v18.20.4\n")
            node.chmod(0o755)
            for path in (here, empty):
                with unittest.mock.patch.dict(os.environ, {"PATH": path}):
                    for server, (command, *_) in turns.SERVERS.items():
                        with self.subTest(server, path=path), contextlib.suppress(cases.Absent):
                            found = command(place, pathlib.Path(here), 1)
                            self.assertIsInstance(found, list)
                            self.assertTrue(server != "node-json" or path == here, found)

    def run_it(self, *words, build=BUILD, server=None):
        """(exit status, rows, what was said) with little load; `server`: its command, instead."""
        words = ["turns.py", str(build), "--servers", "asyncio-json", "--rounds", "2", *words]
        little = {"WARM": 8, "MEASURED": 8, "AFTER": 8, "IDLE_S": 0}
        servers = {"asyncio-json": (lambda *_: server, *turns.SERVERS["asyncio-json"][1:])}
        rows, said = io.StringIO(), io.StringIO()
        with unittest.mock.patch.multiple(turns, **little), \
                unittest.mock.patch.dict(turns.SERVERS, servers if server else {}), \
                unittest.mock.patch.object(sys, "argv", words), \
                contextlib.redirect_stdout(rows), contextlib.redirect_stderr(said):
            status = int(turns.main())
        return status, [line.split("\t") for line in rows.getvalue().splitlines()], said.getvalue()

    def test_without_the_library_its_ways_are_left_out_and_named(self):
        with tempfile.TemporaryDirectory() as empty, \
                unittest.mock.patch.dict(os.environ, {allocators.OURS: ""}):
            status, rows, said = self.run_it(build=empty)
            self.assertEqual((status, {row[2] for row in rows}), (0, {"glibc"}), said)
            for way in ("ebb", "wait", "receive"):
                self.assertIn(f"left out: {way}, libebb-malloc is not there", said)
            status, rows, said = self.run_it("--ways", "wait", build=empty)
            self.assertEqual((status, rows), (3, []))
            self.assertIn("nothing is left to run", said)

    @unittest.skipUnless(allocators.own_library(BUILD), "needs libebb-malloc")
    def test_a_way_that_another_allocator_serves_is_a_failure(self):
        kept = turns.loop_server("json")
        status, rows, said = self.run_it("--ways", "glibc,ebb", server=kept)
        self.assertEqual((status, {row[2] for row in rows}), (0, {"glibc", "ebb"}), said)
        lost = ["env", "-u", "LD_PRELOAD", *kept]
        status, rows, said = self.run_it("--ways", "glibc,ebb", server=lost)
        self.assertEqual((status, {row[2] for row in rows}), (1, {"glibc"}), said)
        self.assertEqual(said.count("left out: asyncio-json, ebb: another allocator serves it"), 1)
        brought = ["env", f"LD_PRELOAD={allocators.own_library(BUILD)}", *kept]
        status, rows, said = self.run_it("--ways", "glibc", server=brought)
        self.assertEqual((status, rows), (3, []), said)
        self.assertIn("left out: asyncio-json, glibc: it is linked with an allocator", said)

    def test_a_server_that_does_not_start_or_answer_is_named(self):
        for text, why in (("print('no port')", "does not start"),
                          (MUCH + "sys.exit(1)", "does not start\n much "),
                          (MUCH + "print('port 1', flush=True)", "does not start\n much ")):
            status, rows, said = self.run_it("--ways", "glibc",
                                             server=[sys.executable, "-c", text])
            self.assertEqual((status, rows), (1, []))
            self.assertIn(f"left out: asyncio-json, glibc: {why}", said)

    def test_who_hangs_up_is_not_waited_for(self):
        for ask, heard in ((turns.ask_memcached, b"STORED\r\n"), (turns.ask_redis, b""),
                           (turns.ask_json, b"HTTP/1.1 200 OK\r\n"), (turns.ask_nginx, b"")):
            peer = io.BufferedRWPair(io.BytesIO(heard), io.BytesIO())
            with self.assertRaises(program.Failed):
                ask(peer, turns.Dice(1), 1)


class Program(unittest.TestCase):
    def run_it(self, *words, build=BUILD):
        with tempfile.TemporaryDirectory() as empty:
            return subprocess.run([sys.executable, str(SERVE / "serve.py"), str(build),
                                   "--fetched", empty, "--quick", *words], capture_output=True,
                                  text=True, check=False)

    def test_unknown_names_are_refused(self):
        for words in (["--cases", "nothing"], ["--allocators", "magic"], ["--cases", "glibc"]):
            done = self.run_it(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("no such", done.stderr)

    def test_names_that_come_twice_are_refused(self):
        for option, name in (("--cases", "pairs-64"), ("--allocators", "glibc")):
            done = self.run_it("--cases", "pairs-64", option, f"{name},{name}")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"{option}: named twice: {name}", done.stderr)

    def test_less_than_one_round_is_refused(self):
        for number in ("0", "-3"):
            done = self.run_it("--cases", "ort-c", "--rounds", number)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(f"--rounds: {number} is below 1", done.stderr)

    def test_what_is_not_there_is_named_and_left_out(self):
        done = self.run_it("--cases", "ort-c,ort-node,llama,pairs-64", "--allocators", "glibc")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({line.split("\t")[1] for line in done.stdout.splitlines()}, {"pairs-64"})
        for name in ("ort-c", "ort-node", "llama"):
            self.assertIn(f"left out: {name}, ", done.stderr)

    def test_where_nothing_is_left_to_run_that_is_said(self):
        done = self.run_it("--cases", "ort-c,ort-node,llama")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("left out: llama, ", done.stderr)
        self.assertIn("serve: nothing is left to run", done.stderr)
        with tempfile.TemporaryDirectory() as empty:
            done = self.run_it("--cases", "pairs-64", "--allocators", "ebb", build=empty)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("nothing is left to run", done.stderr)

    def test_the_others_are_not_measured_without_ebb(self):
        with tempfile.TemporaryDirectory() as build:
            (pathlib.Path(build) / "bench").symlink_to(BUILD / "bench")
            with unittest.mock.patch.dict(os.environ, {allocators.OURS: ""}):
                for words in ((), ("--allocators", "glibc,ebb-scopes")):
                    done = self.run_it("--cases", "pairs-64", *words, build=build)
                    self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                    self.assertIn("failed: there is no libebb-malloc", done.stderr)
                done = self.run_it("--cases", "pairs-64", "--allocators", "glibc", build=build)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_case_without_scopes_is_left_out_where_only_scopes_are_asked_for(self):
        chosen = types.SimpleNamespace(
            allocators=["ebb-scopes"], build=BUILD, cases=["a", "b"],
            table={"a": cases.Serving(lambda: [], scopes=False), "b": cases.Serving(lambda: [])})
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            _, found = serve.present(chosen)
        self.assertNotIn("a", found)
        self.assertIn("left out: a, there is no allocator for it", said.getvalue())
        self.assertEqual("b" in found, allocators.own_library(BUILD) is not None)

    def test_without_a_build_folder_it_is_refused(self):
        done = self.run_it("--cases", "pairs-64", build="/nowhere/build")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("/nowhere/build: no such folder", done.stderr)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs torch")
    def test_rows_of_a_loop(self):
        done = self.run_it("--cases", "train-mlp", "--allocators", "glibc,glibc-tuned")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        self.assertEqual({tuple(row[:2]) for row in rows}, {("serve", "train-mlp")})
        for name in ("glibc", "glibc-tuned"):
            self.assertEqual({row[3] for row in rows if row[2] == name},
                             {"cpu_ms_per_step", "faults_per_step", "peak_bytes",
                              "cpu_over_glibc"})

    def test_models_are_the_same_each_time(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, start in (("onnx_model.py", b"\x08\x07\x12\x03ebb"),
                                ("gguf_model.py", b"GGUF\x03\0\0\0")):
                files = [pathlib.Path(folder) / f"{name}.{number}" for number in range(2)]
                for file in files:
                    subprocess.run([sys.executable, str(SERVE / name), str(file)], check=True)
                self.assertEqual(files[0].read_bytes(), files[1].read_bytes())
                self.assertTrue(files[0].read_bytes().startswith(start))


if __name__ == "__main__":
    unittest.main()
