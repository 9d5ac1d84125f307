#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_the_checker.py - every style rule fires on a small file that breaks it, and on no other.

A good tree, which breaks no rule, is written to a scratch folder. Then, for each case, one file
of it is replaced or added; exactly the named rule must complain, and it must name the file.
"""

import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True

import source  # noqa: E402
from check_style import RULES, median_and_p90  # noqa: E402

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
HASH_SPDX = "# SPDX-License-Identifier: Apache-2.0\n"


def function(lines, name="f"):
    return f"int {name}(void) {{\n" + "    step();\n" * (lines - 2) + "}\n"


def header(body, comments=12):
    return SPDX + "/*\n" + " * why\n" * comments + " */\n" + body


GOOD = {
    "meson.build": HASH_SPDX + "project('x', 'c')\n",
    "meson_options.txt": HASH_SPDX + "option('a', type: 'boolean')\n" * 8,
    "include/ebb/base.h": header("#include <stddef.h>\nint ebb_base(void); /* one */\n"),
    "include/ebb/ebb.h": SPDX + "#include <ebb/base.h>\n#include <stdint.h>\n",
    "runtime/base/os.c": SPDX + '#include <sys/mman.h>\n' + function(12),
    "runtime/base/poison.h": SPDX + "#if defined(__SANITIZE_ADDRESS__)\n#endif\n",
    "runtime/base/jemalloc.h": SPDX + "#include <jemalloc/jemalloc.h>\n",
    "runtime/pool/chunk.c": SPDX + '#include "base/os.h"\n#include "base/jemalloc.h"\n'
                            + function(12) + "struct { int a; } x = { f(1) };\n",
    "runtime/region/tree.c": SPDX + '#include "pool/pool.h"\n#include "slots.h"\n'
                             + function(9) + 'char brace[] = "{"; // }\n',
    "runtime/region/slots.h": SPDX + '#ifdef __cplusplus\nextern "C" {\n#endif\n' + function(12)
                              + "#ifdef __cplusplus\n}\n#endif\n",
    "tests/forks.c": SPDX + "int f(void) {\n    pid_t a = fork(), b = a > 0 ? fork() : -1;\n"
                     "    return b < 0;\n}\n"
                     "pid_t g(struct s *s) {\n    s->pid = fork(); // fork()\n"
                     "    return s->pid >= 0 ? 0 : -1;\n}\n",
    "tests/scratch.c": SPDX + 'char path[] = "/' + 'tmp/x";\n' + function(70),
    "tests/run": "#!/bin/bash\n" + HASH_SPDX + "true\n",
    "bench/peer.rs": SPDX,
    "docs/guide.md": "any text\n",
}

# rule: one or more (file, its contents)
BAD = {
    "forks_are_looked_at": [
        ("tests/a.c", SPDX + "void f(void) {\n    pid_t child = fork();\n    if (child == 0)\n"
         "        _exit(0);\n    kill(child, 9);\n}\nint g(int child) { return child > 0; }\n"),
        ("bench/a.c", SPDX + "void f(void) {\n    (void)fork();\n}\n"),
    ],
    "licence_comes_first": [
        ("runtime/base/a.c", "int a;\n" + SPDX),
        ("tests/a.py", "#!/usr/bin/python3\nimport sys\n"),
        ("tests/empty.c", ""),
        ("bench/meson.build", "project('x')\n"),
        ("bench/go", "#!/bin/sh\necho\n"),
    ],
    "lines_are_at_most_100_columns": [
        ("runtime/base/a.h", SPDX + "/* " + "x" * 98 + "*/\n"),
        ("tests/meson.build", HASH_SPDX + "#" * 101 + "\n"),
    ],
    "c_files_are_at_most_600_lines": [("bench/a.c", SPDX + "\n" * 600)],
    "names_say_something": [
        ("runtime/base/util.h", SPDX),
        ("tests/misc/a.c", SPDX),
        ("docs/trace_helpers.md", "x\n"),
    ],
    "no_paths_of_one_machine": [
        ("docs/a.md", "see `/" + "work/shared`\n"),
        ("tests/a.py", HASH_SPDX + "open('/" + "root/x')\n"),
        ("bench/a.c", SPDX + 'char p[] = "/' + 'tmp/x";\n'),
        ("docs/b.md", "cd /" + "home\n"),
    ],
    "no_hosts_of_registries": [
        ("docs/a.md", "https://" + "pypi." + "org/simple\n"),
        ("tests/run", "#!/bin/bash\n" + HASH_SPDX + "curl http://" + "deb.debian." + "org\n"),
    ],
    "options_are_at_most_8": [
        ("meson_options.txt", HASH_SPDX + "option('a', type: 'boolean')\n" * 9),
    ],
    "public_headers_are_at_most_250_lines": [
        ("include/ebb/long.h", header("int a; /* a */\n", 248)),
    ],
    "public_headers_explain_themselves": [
        ("include/ebb/bare.h", SPDX + "int a;\n" * 8),
        ("include/ebb/trailing.h", SPDX + "int a; /* a */\n" * 40),
    ],
    "public_headers_include_only_ebb_and_the_standard": [
        ("include/ebb/a.h", header("#include <pthread.h>\nint a;\n")),
        ("include/ebb/b.h", header('#include "pool/pool.h"\nint a;\n')),
    ],
    "functions_are_at_most_70_lines": [
        ("bench/a.c", SPDX + function(71)),
        ("tests/a.c", SPDX + "static\nint g(int a)\n{\n" + "    a++;\n" * 67 + "}\n"),
    ],
    "functions_are_short": [
        ("runtime/base/a.c", SPDX + "".join(function(13, f"f{i}") for i in range(9))),
        ("runtime/base/b.c", SPDX + function(36)),
    ],
    "includes_go_downwards": [
        ("runtime/pool/a.c", SPDX + '#include "region/region.h"\n'),
        ("runtime/base/a.h", SPDX + '#include "../pool/pool.h"\n'),
        ("runtime/report/a.c", SPDX + '#include "kit/test.h"\n'),
        ("runtime/region/a.c", SPDX + "#include <ebb/step.h>\n"),
        ("runtime/region/b.c", SPDX + "#include <ebb/strange.h>\n"),
        ("runtime/extra/a.c", SPDX + '#include "base/os.h"\n'),
    ],
    "macros_with_arguments_are_at_most_15": [
        ("runtime/base/a.h", SPDX + "".join(f"#define A{i}(x) (x)\n" for i in range(16))),
    ],
    "only_poison_h_names_sanitizers": [
        ("runtime/pool/a.c", SPDX + "#include <sanitizer/asan_interface.h>\n"),
        ("runtime/base/a.h", SPDX + "#include <valgrind/memcheck.h>\n"),
        ("runtime/base/b.h", SPDX + "__attribute__((no_sanitize(\"integer\"))) int a(void);\n"),
    ],
    "only_os_c_maps_memory": [("runtime/pool/a.c", SPDX + "#include <sys/mman.h>\n")],
    "only_one_file_knows_jemalloc": [
        ("runtime/base/a.c", SPDX + "#include <jemalloc/jemalloc.h>\n"),
    ],
}


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def complaints(files):
    """What each rule says about a tree of these files: only the rules that complain."""
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for path, text in files.items():
            write(root, path, text)
        tree = source.Tree(root)
        said = {name: list(check(tree)) for name, check in RULES.items()}
    return {name: lines for name, lines in said.items() if lines}


def good_tree_passes():
    said = complaints(GOOD)
    return [f"{name}: {lines}" for name, lines in said.items()]


def rule_fires(name, path, text):
    said = complaints({**GOOD, path: text})
    if name not in said:
        return ["it said nothing"]
    other = [f"also {rule}: {lines}" for rule, lines in said.items() if rule != name]
    # what holds for many files together names none of them
    together = re.match(r"include: |runtime: |\d+ macros", said[name][0])
    named = together or any(path in line for line in said[name])
    return other + ([] if named else [f"does not name the file: {said[name]}"])


def every_rule_has_a_case():
    return [f"no case for {name}" for name in RULES.keys() ^ BAD.keys()]


def functions_are_measured():
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        text = (SPDX + "static int a(void)\n    __attribute__((cold));\n"
                "#define OPEN {\n"
                "struct s { int x[2]; } s = { { 1, 2 } };\n\n"
                "/* { */\nstatic __attribute__((cold)) int\nb(int (*call)(int))\n{\n"
                "    if (call) { return '}'; }\n    return 0;\n}\n"
                "int c(void) { return 1; }\n")
        write(root, "runtime/base/a.c", text)
        found = [(f.name, f.first, f.lines) for f in source.Tree(root).files[0].functions()]
    expected = [("b", 8, 6), ("c", 14, 1)]
    return [] if found == expected else [f"{found} instead of {expected}"]


def percentiles_are_those_of_the_list():
    found = [median_and_p90(list(range(1, n + 1))) for n in (1, 10, 11)]
    return [] if found == [(1, 1), (5.5, 9), (6, 10)] else [str(found)]


def cases():
    yield "good_tree_breaks_no_rule", good_tree_passes
    yield "every_rule_has_a_case", every_rule_has_a_case
    yield "functions_are_found_and_measured", functions_are_measured
    yield "percentiles_are_those_of_the_list", percentiles_are_those_of_the_list
    for name, files in BAD.items():
        for path, text in files:
            yield f"{name} fires on {path}", lambda a=(name, path, text): rule_fires(*a)


def main():
    todo, failed = list(cases()), False
    print(f"1..{len(todo)}")
    for number, (name, case) in enumerate(todo, 1):
        wrong = case()
        failed |= bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
        for line in wrong:
            print(f"# {line}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
