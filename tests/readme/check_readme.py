#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_readme.py - the example of README.md is docs/examples/step.c, compiles, runs, returns 0.

    check_readme.py --cc CC [FLAG...]
    check_readme.py --cc gcc -Iinclude build/runtime/libebb.so -Wl,-rpath,$PWD/build/runtime
    check_readme.py --cc gcc $(pkg-config --cflags --libs ebb)

CC may be several words. The flags go behind the source file, as `pkg-config --cflags --libs`
prints them. Prints TAP; exit code 1 if something does not hold, 2 if called badly.
"""

import argparse
import difflib
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wno-variadic-macros", "-Werror", "-O2"]


def blocks_of(text, language):
    """The fenced code blocks of a language, without their fences."""
    blocks, block = [], None
    for line in text.splitlines(keepends=True):
        if block is None and line.rstrip() == "```" + language:
            block = []
        elif block is not None and line.rstrip() == "```":
            blocks.append("".join(block))
            block = None
        elif block is not None:
            block.append(line)
    return blocks


def equals_example(readme, example):
    """'' if the first C block of the README is the example without its first line."""
    blocks = blocks_of(readme, "c")
    if not blocks:
        return "README.md has no C block"
    if not example.startswith(SPDX):
        return "docs/examples/step.c does not start with its licence line"
    return "".join(difflib.unified_diff(
        blocks[0].splitlines(keepends=True), example[len(SPDX):].splitlines(keepends=True),
        "README.md", "docs/examples/step.c"))


def output_of(command):
    """'' if the command succeeds, else what it was and what it said."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60, check=False)
    if done.returncode == 0:
        return ""
    return f"{shlex.join(map(str, command))}: {done.returncode}\n{done.stdout}"


def report(number, claim, trouble):
    print(f"{'not ok' if trouble else 'ok'} {number} - {claim}")
    for line in trouble.splitlines():
        print(f"# {line}")
    return not trouble


def check(compiler, flags):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = ROOT / "docs" / "examples" / "step.c"
    print("1..3")
    good = report(1, "readme_shows_the_example_that_is_run",
                  equals_example(readme, example.read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory() as scratch:
        program = pathlib.Path(scratch) / "step"
        built = report(2, "the_example_compiles_without_a_warning",
                       output_of([*compiler, *STRICT, example, "-o", program, *flags]))
        good = built and good
        ran = report(3, "the_example_returns_0",
                     output_of([program]) if built else "it was not built")
    return good and ran


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cc", required=True, type=shlex.split, help="compiler")
    options, flags = parser.parse_known_args()
    return 0 if check(options.cc, flags) else 1


if __name__ == "__main__":
    sys.exit(main())
