#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tally.py CONFIGURATION BUILD LOG - adds up what `meson test` wrote to its testlog.json.

Prints `passed failed skipped bad first`: test cases, that is the points of a test that speaks TAP,
else the test as one; how many tests Meson calls bad; and when the first of them began, in seconds
as of `date +%s`. A test that ended otherwise than its points say (it crashed, or ran fewer than
planned) is one failure more. What failing tests printed goes to standard error. For Meson
`not ok 1 # SKIP`, as cmocka says it, is a failure; here a case left out.
"""

import json
import pathlib
import re
import shlex
import sys

POINT = re.compile(r"^(not )?ok\b(?P<name>[^#\n]*)(?:# *(?P<directive>\w+).*)?$", re.MULTILINE)
PLAN = re.compile(r"^1\.\.(\d+)", re.MULTILINE)
GOOD = ("OK", "SKIP", "EXPECTEDFAIL")  # to Meson
HEAD_SHOWN, TAIL_SHOWN = 60, 20  # of what a failing test printed


class Sums:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def points_of(text):
    sums = Sums()
    for point in POINT.finditer(text):
        directive = (point["directive"] or "").upper()
        if directive == "SKIP":
            sums.skipped += 1
        elif point[1] and directive != "TODO":
            sums.failed += 1
        else:
            sums.passed += 1
    return sums


def sums_of(test):
    """The test cases of one entry of the log."""
    text, result = test.get("stdout", ""), test["result"]
    plans = PLAN.findall(text)
    if not plans:
        good = result in ("OK", "EXPECTEDFAIL")
        return Sums(good, not good and result != "SKIP", result == "SKIP")
    sums = points_of(text)
    complete = sums.passed + sums.failed + sums.skipped >= sum(int(plan) for plan in plans)
    ended_well = test["returncode"] == 0 and result not in ("TIMEOUT", "INTERRUPT")
    if not (complete and ended_well) and not sums.failed:
        sums.failed = 1
    if plans == ["0"]:
        sums.skipped += 1
    return sums


def shortened(text):
    lines = text.splitlines()
    cut = len(lines) - HEAD_SHOWN - TAIL_SHOWN
    if cut > 0:
        lines[HEAD_SHOWN:-TAIL_SHOWN] = [f"... {cut} lines left out ..."]
    return "\n".join(lines)


def show(configuration, build, log, test):
    setup = pathlib.Path(log).stem.partition("-")[2]  # testlog.json, or testlog-SETUP.json
    again = ["meson", "test", "-C", build, *(["--setup", setup] if setup else []),
             test["name"].split(" / ")[-1]]
    told = [line for line in test.get("stdout", "").splitlines() if not line.startswith("ok ")]
    print(f"---- {configuration}: {test['name']}: {test['result']}, exit {test['returncode']}\n"
          f"     again: {shlex.join(again)}", file=sys.stderr)
    for text in ("\n".join(told), test.get("stderr", "")):
        if text.strip():
            print(shortened(text), file=sys.stderr)


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: tally.py CONFIGURATION BUILD LOG")
    configuration, build, log = sys.argv[1:]
    total = Sums()
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            tests = [json.loads(line) for line in file]
    except OSError as error:
        sys.exit(f"tally.py: {error}")
    for test in tests:
        sums = sums_of(test)
        total.add(sums)
        if sums.failed:
            show(configuration, build, log, test)
    bad = sum(test["result"] not in GOOD for test in tests)
    first = min((test["starttime"] for test in tests), default=0)
    print(total.passed, total.failed, total.skipped, bad, int(first))


if __name__ == "__main__":
    main()
