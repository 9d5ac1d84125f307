#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_headers.py INCLUDE_DIR COMPILER STANDARD - every public header is a citizen of its own.

Each of them compiles alone, before any other header, and twice in one file, without a warning,
with no macro defined that a user would have to know of. So do its constants where a user names
them. TAP, two points for each header, and one more where it has constants.
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
        include = f"#include <ebb/{header.name}>\n"
        # a file of nothing but an include is no C file: ISO wants a declaration
        yield f"{header.name}_compiles_alone", include + "int user;\n"
        yield f"{header.name}_may_be_included_twice", include + include + "int user;\n"
        constants = CONSTANT.findall(header.read_text())
        if constants:
            named = " + ".join(f"sizeof({constant})" for constant in constants)
            yield f"{header.name}_has_constants_for_users", include + f"size_t user = {named};\n"


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
