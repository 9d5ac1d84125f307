# SPDX-License-Identifier: Apache-2.0
"""test_commands.py - bench/run, tests/run, python/setup.py, in small trees.

Claims: what was built otherwise, or for another tree, is not what is measured, tested or packed;
what cannot be had is refused in a sentence.
"""

import pathlib
import subprocess
import tempfile
import unittest

from tree import RELEASE, Tree

ANEW = "was configured otherwise, and is made anew"


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.tree = Tree(self.scratch / "tree")

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


if __name__ == "__main__":
    unittest.main()
