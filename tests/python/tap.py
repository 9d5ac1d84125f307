#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tap.py [--part] FILE [NAME...] - runs a file of unittest's tests and says TAP, one point a test.

NAME is Class or Class.test, as for unittest. A file that raises SkipTest is skipped, whole. With
--part those are run that parts.py draws.
"""

import importlib.util
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kit"))

import parts  # noqa: E402


class Tap(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0

    def say(self, good, test, note=""):
        self.number += 1
        name = test.id().split(".", 1)[-1]
        print(f"{'ok' if good else 'not ok'} {self.number} - {name}{note}", flush=True)

    def addSuccess(self, test):
        self.say(True, test)

    def addSkip(self, test, reason):
        self.say(True, test, f" # SKIP {reason}")

    def fail(self, test, error):
        self.say(False, test)
        for line in self._exc_info_to_string(error, test).splitlines():
            print(f"# {line}")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.fail(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self.fail(test, error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self.fail(subtest, error)


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def main():
    in_part = sys.argv[1] == "--part"
    file, *names = sys.argv[1 + in_part:]
    file = pathlib.Path(file)
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except unittest.SkipTest as reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    loader = unittest.TestLoader()
    suite = (loader.loadTestsFromNames(names, module) if names
             else loader.loadTestsFromModule(module))
    if in_part:
        suite = unittest.TestSuite(parts.drawn(tests_of(suite)))
    print(f"1..{suite.countTestCases()}", flush=True)
    result = Tap()
    suite.run(result)
    return not result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
