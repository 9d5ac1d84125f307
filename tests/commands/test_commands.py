# SPDX-License-Identifier: Apache-2.0
"""test_commands.py - bench/run, tests/run, python/setup.py and the options of the build.

Claims: what was built otherwise, or for another tree, is not what is measured, tested or packed;
a signal ends a command and what it runs; what cannot be had is refused in a sentence; no test is
left out of all parts.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from tree import NO_C, PROJECT, RELEASE, SOURCE, Tree, is_alive, take_default_signals, wait_until

ANEW = "was configured otherwise, and is made anew"
NOBODY = 65534


class Case(unittest.TestCase):
    project = PROJECT

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.tree = Tree(self.scratch / "tree", self.project)

    def assert_says(self, result, code, *words):
        self.assertEqual(result[0], code, result[1])
        for word in words:
            self.assertIn(word, result[1])


class Bench(Case):
    def test_a_folder_that_was_set_up_otherwise_is_made_anew(self):
        subprocess.run(["meson", "setup", "build/release", "-Dcheck=full", "-Dbench=true"],
                       cwd=self.tree.folder, check=True, capture_output=True)
        self.assert_says(self.tree.bench(), 2, RELEASE, ANEW)

    def test_an_option_that_was_changed_since_is_set_back(self):
        self.assert_says(self.tree.bench(), 2, RELEASE)
        again = self.tree.bench()
        self.assert_says(again, 2, RELEASE)
        self.assertNotIn(ANEW, again[1])
        subprocess.run(["meson", "configure", "build/release", "-Dcheck=full"],
                       cwd=self.tree.folder, check=True, capture_output=True)
        self.assert_says(self.tree.bench(), 2, RELEASE, ANEW)

    def test_new_build_files_leave_the_folder(self):
        self.tree.bench()
        build_file = self.tree.folder / "meson.build"
        build_file.write_text(build_file.read_text() + "message('new')\n")
        self.tree.bench()
        again = self.tree.bench()
        self.assert_says(again, 2, RELEASE)
        self.assertNotIn(ANEW, again[1])

    def test_flags_of_the_environment_are_not_measured(self):
        flags = {"CFLAGS": "-O0 -UNDEBUG", "CPPFLAGS": "-UNDEBUG", "LDFLAGS": "-nonsense"}
        self.assert_says(self.tree.bench(environment=flags), 2, RELEASE)

    def test_a_copied_tree_measures_itself(self):
        self.tree.bench()
        copy = self.tree.copy(self.scratch / "copy")
        self.assert_says(copy.bench(), 2, RELEASE.replace("one", "two"), ANEW)
        self.assert_says(self.tree.bench(), 2, RELEASE)


class Tests(Case):
    project = NO_C

    def interrupt(self, script, number, to_all=False, first="gcc"):
        """Starts tests/run, and signals it, as Ctrl-C does or as kill does, in that script, which
        the first of two configurations runs."""
        at_work = self.tree.waits(script)
        command = self.tree.start(self.tree.folder / "tests" / "run", "--only", f"{first},tsan",
                                  start_new_session=True, preexec_fn=take_default_signals)
        self.addCleanup(command.stdout.close)
        self.addCleanup(command.kill)
        wait_until(at_work.exists)
        worker = int(at_work.read_text())
        (os.killpg if to_all else os.kill)(command.pid, number)
        said = command.communicate(timeout=30)[0]
        ended = 128 + number if number == signal.SIGQUIT else -number  # bash ends by no SIGQUIT
        self.assertEqual(command.returncode, ended, said)
        self.assertEqual(said, "")
        self.assertFalse(is_alive(worker))
        self.assertFalse((self.tree.folder / "build" / "test-tsan").exists())

    def test_one_interrupt_ends_it_while_it_builds(self):
        self.interrupt("build.sh", signal.SIGINT, to_all=True)

    def test_one_interrupt_ends_it_while_it_tests(self):
        self.interrupt("test.sh", signal.SIGINT, to_all=True)

    def test_one_quit_ends_it_while_it_builds(self):
        self.interrupt("build.sh", signal.SIGQUIT, to_all=True)

    def test_one_quit_ends_it_while_it_tests(self):
        self.interrupt("test.sh", signal.SIGQUIT, to_all=True)

    def test_killed_it_takes_what_it_builds_along(self):
        self.interrupt("build.sh", signal.SIGTERM)

    def test_killed_it_takes_what_meson_builds_along(self):
        self.interrupt("build.sh", signal.SIGTERM, first="release")

    def test_killed_it_takes_what_it_tests_along(self):
        self.interrupt("test.sh", signal.SIGTERM)

    def test_after_an_interrupt_it_goes_on_as_ever(self):
        self.interrupt("build.sh", signal.SIGINT, to_all=True)
        (self.tree.folder / "build.sh").write_text('echo built >"$1"\n')
        self.assert_says(self.tree.tests("--only", "gcc"), 0, "1 passed, 0 failed")

    def test_what_it_tests_can_be_interrupted(self):
        (self.tree.folder / "test.sh").write_text("kill -s INT $$\n")
        self.assert_says(self.tree.tests("--only", "gcc"), 1, "0 passed, 1 failed")

    def test_tests_that_never_ran_are_missed(self):
        (self.tree.folder / "gone.c").write_text("int main(void) { return 0; }\n")
        with open(self.tree.folder / "meson.build", "a") as build_file:
            build_file.write("add_languages('c', native: false)\n"
                             "test('gone', executable('gone', 'gone.c'),\n"
                             "  is_parallel: false, priority: -1)\n")
        (self.tree.folder / "test.sh").write_text("rm gone\n")
        self.assert_says(self.tree.tests("--only", "gcc"), 1, "meson test FAILED",
                         "0 passed, 1 failed")

    def test_a_case_that_a_test_skips_fails_nothing(self):
        (self.tree.folder / "skips.sh").write_text("echo 1..2; echo ok 1; echo 'not ok 2 # SKIP'\n")
        with open(self.tree.folder / "meson.build", "a") as build_file:
            build_file.write("test('skips', find_program('sh'), args: files('skips.sh'),\n"
                             "  protocol: 'tap')\n")
        self.assert_says(self.tree.tests("--only", "gcc"), 0, "2 passed, 0 failed, 1 skipped")

    def test_it_tells_how_long_it_built(self):
        (self.tree.folder / "build.sh").write_text('sleep 2\necho built >"$1"\n')
        for first in ("gcc", "release"):
            said = self.tree.tests("--only", first)[1]
            told = re.search(rf"^tests/run: {first} +(\d+) s, +(\d+) of them to build: 1 ok$", said,
                             re.MULTILINE)
            self.assertIsNotNone(told, said)
            self.assertGreaterEqual(int(told[2]), 2)
            self.assertGreaterEqual(int(told[1]), int(told[2]))

    def test_memcheck_has_half_of_the_tests_and_then_the_others(self):
        with open(self.tree.folder / "meson.build", "a") as build_file:
            build_file.write("add_test_setup('valgrind')\n" + "".join(
                f"test('{name}', find_program('true'), suite: 'unit')\n" for name in "abcdef"))
        ran = []
        for seed in "67":
            self.assert_says(self.tree.tests("--only", "valgrind",
                                             environment={"EBB_FRESH_SEED": seed}), 0,
                             "3 passed, 0 failed")
            log = self.tree.folder / "build/test-gcc/meson-logs/testlog-valgrind.json"
            ran += [json.loads(line)["name"][-1] for line in log.read_text().splitlines()]
        self.assertEqual(sorted(ran), list("abcdef"))

    def test_a_failure_says_how_it_is_had_again(self):
        self.tree.folder = self.tree.folder.rename(self.scratch / "a tree")
        with open(self.tree.folder / "meson.build", "a") as build_file:
            build_file.write("add_test_setup('valgrind')\n"
                             "test('two words', find_program('false'), suite: 'unit')\n")
        for configuration, words in (("gcc", "-C"), ("valgrind", "--setup valgrind")):
            said = self.tree.tests("--only", configuration)[1]
            again = re.search(r"^     again: (.*)$", said, re.MULTILINE)[1]
            self.assertIn(words, again)
            once_more = self.tree.run("/usr/bin/bash", "-c", again)
            self.assert_says(once_more, 1, "1/1 ", "two words", "FAIL")

    def test_who_calls_it_chooses_no_parts(self):
        (self.tree.folder / "test.sh").write_text('exit ${EBB_PARTS:-0}\n')
        self.assert_says(self.tree.tests("--only", "whole", environment={"EBB_PARTS": "5"}), 0,
                         "1 passed, 0 failed")

    def test_a_copied_tree_tests_itself(self):
        self.tree.tests("--only", "gcc")
        copy = self.tree.copy(self.scratch / "copy")
        (copy.folder / "test.sh").write_text("exit 1\n")
        self.assert_says(copy.tests("--only", "gcc"), 1, "0 ok, 1 NOT OK")

    def seed(self):
        """It is said whatever becomes of the build, which is not tried here."""
        (self.tree.folder / "meson.build").write_text("project('ebb')\nerror('no build')\n")
        said = self.tree.tests("--only", "gcc", environment={"EBB_FRESH_SEED": ""})[1]
        return int(re.search(r"^tests/run: seed +EBB_FRESH_SEED=(\d+)$", said, re.MULTILINE)[1])

    def git(self, *words, folder=None):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *words],
                              cwd=folder or self.tree.folder, check=True, capture_output=True,
                              text=True)

    def test_the_seed_follows_from_the_sources(self):
        first = self.seed()
        self.assertEqual(self.seed(), first)
        (self.tree.folder / "tests" / "new").write_text("new\n")
        self.assertNotEqual(self.seed(), first)

    @unittest.skipUnless(shutil.which("git"), "no git")
    @unittest.skipUnless(os.geteuid() == 0, "who is not root gives nothing away")
    def test_the_seed_follows_from_what_is_committed_by_whomever(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "all")
        tree = self.git("rev-parse", "HEAD^{tree}").stdout
        for folder in (self.tree.folder, self.tree.folder / ".git"):
            os.chown(folder, NOBODY, NOBODY)
        self.assertEqual(self.seed(), int(tree[:8], 16))
        link = self.scratch / "link"
        link.symlink_to(self.tree.folder)
        self.tree.folder = link
        self.assertEqual(self.seed(), int(tree[:8], 16))

    @unittest.skipUnless(shutil.which("git"), "no git")
    def test_the_seed_follows_from_nothing_that_is_around_the_tree(self):
        first = self.seed()
        (self.scratch / "other").write_text("other\n")
        self.git("init", "-q", folder=self.scratch)
        self.git("add", "other", folder=self.scratch)
        self.git("commit", "-q", "-m", "other", folder=self.scratch)
        self.assertEqual(self.seed(), first)

    def test_the_seed_that_is_given_is_said(self):
        self.assert_says(self.tree.tests("--only", "gcc", environment={"EBB_FRESH_SEED": "7"}), 0,
                         "EBB_FRESH_SEED=7\n", "1 passed, 0 failed")

    def test_a_seed_that_is_no_number_is_refused(self):
        for seed in ("abc", "-5", " 7", "08", "1" * 19):
            result = self.tree.tests("--only", "gcc", environment={"EBB_FRESH_SEED": seed})
            self.assertEqual(result, (2, "tests/run: EBB_FRESH_SEED: no number of at most 18 "
                                         f"digits: {seed}\n"))

    def test_a_tree_that_belongs_to_another_is_refused(self):
        lock = self.tree.folder / "build" / "tests-run.lock"
        lock.parent.mkdir()
        lock.touch()
        lock.chmod(0o444)
        self.scratch.chmod(0o755)
        other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        result = self.tree.tests("--only", "gcc", **other)
        self.assertEqual(result, (1, f"tests/run: {lock}: cannot be written\n"))

    def test_a_configuration_that_is_named_twice_is_refused(self):
        self.assert_says(self.tree.tests("--only", "gcc,release,gcc"), 2,
                         "tests/run: --only: named twice: gcc")


class Package(Case):
    def setUp(self):
        super().setUp()
        try:
            import setuptools  # noqa: F401
        except ImportError as error:
            self.skipTest(str(error))

    def setup(self, tree, *words, folder="python"):
        return tree.run("/usr/bin/python3", "-B", "setup.py", "-q", *words,
                        cwd=tree.folder / folder)

    def built(self, tree):
        self.assert_says(self.setup(tree, "build"), 0)
        found, = (tree.folder / "python" / "build").glob("lib*/ebb/_ebb*.so")
        return found.read_text()

    def test_a_copied_tree_packs_itself(self):
        self.assertEqual(self.built(self.tree), "tree one")
        copy = self.tree.copy(self.scratch / "copy")
        self.assertEqual(self.built(copy), "tree two")
        self.assertEqual(self.built(self.tree), "tree one")

    def test_a_moved_tree_packs_itself(self):
        self.built(self.tree)
        moved = self.tree.copy(self.scratch / "moved")
        self.tree.folder.rename(self.scratch / "gone")
        self.assertEqual(self.built(moved), "tree two")

    @unittest.skipUnless(os.environ.get("EBB_HAS_PYTHON"), "the Python package is not built")
    def test_the_wheel_serves_without_anything_else(self):
        check = pathlib.Path(__file__).with_name("check_wheel.py")
        done = subprocess.run([sys.executable, "-B", check, SOURCE], text=True, capture_output=True)
        if "# SKIP" in done.stdout:
            self.skipTest(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_there_is_no_archive_of_sources(self):
        self.assert_says(self.setup(self.tree, "sdist"), 1, "setup.py: no sdist: ")
        self.assertFalse((self.tree.folder / "python" / "dist").exists())

    def test_what_lies_above_is_not_run_unless_it_is_ebb(self):
        (self.tree.folder / "python").rename(self.tree.folder / "unpacked")
        self.assert_says(self.setup(self.tree, "build", folder="unpacked"), 1,
                         "is not the source tree of ebb")
        (self.tree.folder / "unpacked").rename(self.tree.folder / "python")
        (self.tree.folder / "meson.build").write_text("project('other', version: '1.0')\n")
        self.assert_says(self.setup(self.tree, "build"), 1, "is not the source tree of ebb")


class Parts(Case):
    project = NO_C

    def points(self, *words, **environment):
        """Names of the tests of a file of seven that were run."""
        file = self.scratch / "test_seven.py"
        file.write_text("import unittest\nclass Seven(unittest.TestCase):\n" + "".join(
            f"    def test_{name}(self):\n        pass\n" for name in "abcdefg"))
        code, said = self.tree.run("/usr/bin/python3", "-B", SOURCE / "tests/python/tap.py", *words,
                                   file, environment={"EBB_PARTS": "", **environment})
        plan, *points = said.splitlines()
        self.assertEqual((code, plan), (0, f"1..{len(points)}"), said)
        return [point[-1] for point in points]

    def test_all_parts_are_the_whole(self):
        parts = [self.points("--part", EBB_PARTS="3", EBB_FRESH_SEED=seed) for seed in "789"]
        self.assertEqual([len(part) for part in parts], [2, 2, 3])
        self.assertEqual(sorted(sum(parts, [])), list("abcdefg"))

    def test_the_whole_is_run_unless_parts_are_asked_for(self):
        self.assertEqual(self.points("--part", EBB_FRESH_SEED="7"), list("abcdefg"))
        self.assertEqual(self.points(EBB_PARTS="3", EBB_FRESH_SEED="7"), list("abcdefg"))


class Options(unittest.TestCase):
    """Of ebb's own build files: what is asked for is built, or the reason is said."""

    def refuses(self, asked, *options):
        with tempfile.TemporaryDirectory() as build:
            result = subprocess.run(["meson", "setup", build, SOURCE, "-Dtests=false", asked,
                                     *options], text=True, capture_output=True)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(f"{asked}: not with ", result.stdout)

    def test_no_python_package_with_jemalloc_for_chunks(self):
        self.refuses("-Dpython=enabled", "-Dchunks=jemalloc")

    def test_no_python_package_under_a_sanitizer(self):
        self.refuses("-Dpython=enabled", "-Db_sanitize=address", "-Db_lundef=false")

    def test_no_malloc_under_a_sanitizer(self):
        self.refuses("-Dmalloc=enabled", "-Db_sanitize=address", "-Db_lundef=false")


if __name__ == "__main__":
    unittest.main()
