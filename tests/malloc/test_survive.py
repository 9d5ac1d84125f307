# SPDX-License-Identifier: Apache-2.0
"""test_survive.py - `survive` passes no program that does the same in all ways, which is nothing.

LIBRARY is libebb-malloc.
"""

import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import tempfile
import types
import unittest
from unittest import mock

FILE = str(pathlib.Path(__file__).resolve().with_name("survive"))
LOADER = importlib.machinery.SourceFileLoader("survive", FILE)
survive = importlib.util.module_from_spec(importlib.util.spec_from_loader("survive", LOADER))
LOADER.exec_module(survive)
programs = survive.programs


class Judges(unittest.TestCase):
    def outcome(self, program):
        """A word and what explains it."""
        options = types.SimpleNamespace(library=pathlib.Path(os.environ["LIBRARY"]), turns=None,
                                        packages=None, long=False)
        with tempfile.TemporaryDirectory() as folder:
            word, lines = survive.run_all_ways(program, options, pathlib.Path(folder))
        return word, "\n".join(lines)

    def assert_fails(self, program, *why):
        word, lines = self.outcome(program)
        self.assertEqual(word, "fail", lines)
        for text in why:
            self.assertIn(text, lines)

    def test_a_program_that_works_passes(self):
        self.assertEqual(self.outcome(programs.perl)[0], "pass")

    def test_a_program_that_ends_with_1_at_once_fails(self):
        self.assert_fails(lambda way: way.run("false"), "glibc: AssertionError: false ended with 1",
                          "preloaded: AssertionError: false ended with 1")

    def test_scripts_that_are_not_there_are_failures(self):
        with mock.patch.object(programs, "SCRIPTS", pathlib.Path("/nowhere")):
            for program in (programs.python_script, programs.perl, programs.bash):
                self.assert_fails(program, "/nowhere/mixed")

    def test_what_is_not_compiled_is_a_failure(self):
        with mock.patch.dict(os.environ, {"GCC_EXEC_PREFIX": "/nowhere/"}):
            self.assert_fails(programs.gcc, "gcc ended with 1", "cc1")
        self.assert_fails(lambda way: programs.compile_sources(way, "gcc", []), "no sources")

    def test_a_module_of_which_no_test_passes_fails(self):
        module = ("import unittest\nclass Case(unittest.TestCase):\n"
                  "    def test_one(self):\n        self.{}\n"
                  "    def test_two(self):\n        self.fail()\n")
        for one, word in (("fail()", "fail"), ("assertTrue(1)", "pass")):
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree("/usr/lib/python3.11/test", f"{folder}/test")
                pathlib.Path(folder, "test/test_ours.py").write_text(module.format(one))
                self.assertEqual(self.outcome(self.of_modules(folder))[0], word)

    def test_a_module_is_missing_only_if_it_is_missing_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "ours.py").write_text("try:\n    import nowhere\n"
                                                       "except ImportError as e:\n    print(e)\n")
            for module, word in (("ours", "pass"), ("nowhere", "skip"), ("os.nowhere", "skip")):
                def program(way):
                    way.env["PYTHONPATH"] = folder
                    programs.need_module(way, module, "package")
                    return ""
                self.assertEqual(self.outcome(program)[0], word, module)

    def of_modules(self, folder):
        def program(way):
            way.env["PYTHONPATH"] = folder
            return programs.python_module("test_ours")(way)
        program.__module__ = programs.__name__
        return program


if __name__ == "__main__":
    unittest.main()
