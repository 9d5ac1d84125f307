#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tap.py FILE [NAME...] - runs a file of unittest's tests and says TAP, one point a test.

NAME is Class or Class.test, as for unittest. A file that raises SkipTest is skipped, whole.
"""

import importlib.util
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True


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


def main():
    file = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except unittest.SkipTest as reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    loader = unittest.TestLoader()
    suite = (loader.loadTestsFromNames(sys.argv[2:], module) if sys.argv[2:]
             else loader.loadTestsFromModule(module))
    print(f"1..{suite.countTestCases()}", flush=True)
    result = Tap()
    suite.run(result)
    return not result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
