#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_headers.py INCLUDE_DIR COMPILER STANDARD - every public header is a citizen of its own.

Each of them compiles before any other header, without a warning and with no macro defined that a
user would have to know of, twice in one file, with its constants where a user names them. TAP, a
point for each header: the compiler says where it is wrong.
"""

import pathlib
import re
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wundef", "-Werror"]
C_WARNINGS = ["-Wstrict-prototypes", "-Wmissing-prototypes", "-Wc++-compat"]
CXX_WARNINGS = ["-Wold-style-cast", "-Wzero-as-null-pointer-constant"]
GXX_WARNINGS = ["-Wuseless-cast"]
CONSTANT = re.compile(r"^#define (EBB_\w+) [(0-9]", re.MULTILINE)


def compile_text(folder, compiler, standard, text):
    """What the compiler has to say about the text; empty if it takes it."""
    language = "c++" if "++" in standard else "c"
    warnings = WARNINGS + (C_WARNINGS if language == "c" else CXX_WARNINGS)
    warnings += GXX_WARNINGS if pathlib.Path(compiler).name.startswith("g++") else []
    command = [compiler, "-x", language, f"-std={standard}", *warnings, f"-I{folder}",
               "-fsyntax-only", "-"]
    result = subprocess.run(command, input=text, text=True, capture_output=True)
    return result.stderr or ("" if result.returncode == 0 else f"exit {result.returncode}")


def cases(folder):
    for header in sorted((folder / "ebb").glob("*.h")):
        constants = CONSTANT.findall(header.read_text())
        # a file of nothing but an include is no C file: ISO wants a declaration
        user = "int user;\n" + "".join(f"char user_of_{name}[sizeof({name})];\n"
                                       for name in constants)
        yield header.name, f"#include <ebb/{header.name}>\n" * 2 + user


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: check_headers.py INCLUDE_DIR COMPILER STANDARD")
    folder, failed = pathlib.Path(sys.argv[1]), False
    todo = list(cases(folder))
    print(f"1..{len(todo)}")
    for number, (name, text) in enumerate(todo, 1):
        said = compile_text(folder, sys.argv[2], sys.argv[3], text)
        failed |= bool(said)
        print(f"{'not ok' if said else 'ok'} {number} - {name}")
        for line in said.splitlines():
            print(f"# {line}")
    return failed or not todo


if __name__ == "__main__":
    sys.exit(main())
