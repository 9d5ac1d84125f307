#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""same.py LIBRARY PROGRAM [ARGUMENTS] - a program says the same with libebb-malloc preloaded.

Runs it with the C library's malloc() and with LIBRARY's, and compares exit status and output, line
by line. TAP.
"""

import difflib
import os
import subprocess
import sys

SHOWN = 40  # lines of difference


def run(words, library=None):
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("LD_PRELOAD", "MALLOC_PERTURB_")}
    if library:
        environment["LD_PRELOAD"] = library
    done = subprocess.run(words, capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, env=environment)
    return done.stdout.splitlines() + [f"exit {done.returncode}: {done.stderr[-500:]}"]


def main():
    library, words = sys.argv[1], sys.argv[2:]
    theirs, ours = run(words), run(words, library)
    print("1..2")
    said = len(theirs) > 1 and theirs[-1] == "exit 0: "
    print("ok 1" if said else f"not ok 1 - with the C library's malloc: {theirs[-1]}")
    differences = list(difflib.unified_diff(theirs, ours, "C library", "libebb-malloc", n=0))
    print(f"{'not ' * bool(differences)}ok 2 - {len(theirs)} lines are the same")
    for line in differences[:SHOWN]:
        print("#", line.rstrip())
    return bool(differences) or not said


if __name__ == "__main__":
    sys.exit(main())
