#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_style.py ROOT - the house rules that a program can check, one TAP point each.

A rule is a function that takes the tree and yields what breaks it, as text that starts with the
place. Its docstring is the rule. check_the_checker.py shows that each of them can fire.
"""

import posixpath
import re
import statistics
import sys

sys.dont_write_bytecode = True

from source import Tree  # noqa: E402

# from the bottom up
LAYERS = ["base", "plan", "pool", "region", "object", "handoff", "step", "report",
          "malloc"]
STANDARD_HEADERS = set("""assert complex ctype errno fenv float inttypes iso646 limits locale math
    setjmp signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string
    tgmath threads time uchar wchar wctype""".split())

RULES = {}


def rule(function):
    RULES[function.__name__] = function
    return function


def matches(files, pattern, text=lambda f: f.text):
    """Each line of the files that has the pattern."""
    for file in files:
        for number, line in enumerate(text(file).splitlines(), 1):
            found = re.search(pattern, line)
            if found:
                yield file, f"{file.path}:{number}: {found[0].strip()}"


def code_matches(files, pattern):
    return matches(files, pattern, lambda f: f.uncommented)


def share(part, whole):
    return 100 * part / whole if whole else 0


# ---- files

@rule
def licence_comes_first(tree):
    """Every source file starts with its SPDX line, after a #! line if there is one."""
    for file in tree.code():
        lines = file.lines
        first = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
        if not first or not re.search(r"SPDX-License-Identifier: Apache-2\.0$", first[0]):
            yield f"{file.path}:1: no SPDX line"


@rule
def lines_are_at_most_100_columns(tree):
    """No line of code is longer than 100 columns."""
    for file in tree.code():
        for number, line in enumerate(file.lines, 1):
            if len(line) > 100:
                yield f"{file.path}:{number}: {len(line)} columns"


@rule
def c_files_are_at_most_600_lines(tree):
    """No .c or .h of runtime, bench, tests and python is longer than 600 lines."""
    for file in tree.c("runtime", "bench", "tests", "python"):
        if len(file.lines) > 600:
            yield f"{file.path}: {len(file.lines)} lines"


@rule
def names_say_something(tree):
    """No file or folder is named util, common, misc, helper or core."""
    for file in tree.files:
        for part in file.parts:
            words = re.split(r"[^a-z]+", part.lower())
            if set(words) & {"util", "utils", "common", "misc", "helper", "helpers", "core"}:
                yield f"{file.path}: {part}"


@rule
def no_paths_of_one_machine(tree):
    """No file knows a folder of the machine it was written on; only tests use /tmp."""
    for file, where in matches(tree.files, r"(?<![\w./~-])/(work|root|home|tmp)(?![\w.-])"):
        ours = file.below("tests") or file.path == "bench/run"
        if not (ours and where.endswith("tmp")):
            yield where


@rule
def no_hosts_of_registries(tree):
    """No file names the host of a package registry."""
    hosts = (r"\b(pypi\.org|pythonhosted\.org|crates\.io|npmjs\.(org|com)|rubygems\.org|"
             r"proxy\.golang\.org|anaconda\.(org|com)|(deb|snapshot)\.debian\.org|docker\.io|"
             r"ghcr\.io|quay\.io|gcr\.io|repo\d*\.maven\.org|artifactor[y]|jfro[g])\b")
    for _, where in matches(tree.files, hosts):
        yield where


@rule
def options_are_at_most_8(tree):
    """meson_options.txt has at most 8 options."""
    file = tree.file("meson_options.txt")
    count = len(re.findall(r"^option\(", file.text, re.MULTILINE)) if file else 0
    if count > 8:
        yield f"{file.path}: {count} options"


# ---- headers

@rule
def public_headers_are_at_most_250_lines(tree):
    """No public header is longer than 250 lines."""
    for file in tree.c("include"):
        if len(file.lines) > 250:
            yield f"{file.path}: {len(file.lines)} lines"


@rule
def public_headers_explain_themselves(tree):
    """At least 45 % of the lines of each public header that are not blank carry a comment (a
    header of nothing but includes is left out), and 45 % of all of them together are comment and
    nothing else."""
    all_whole = all_filled = 0
    for file in tree.c("include"):
        whole, carrying, filled = file.comment_lines()
        all_whole, all_filled = all_whole + whole, all_filled + filled
        declares = re.search(r"\w", file.bare)
        if declares and share(carrying, filled) < 45:
            yield f"{file.path}: {share(carrying, filled):.0f} % of the lines carry a comment"
    if share(all_whole, all_filled) < 45 and all_filled:
        yield f"include: {share(all_whole, all_filled):.0f} % of the lines are comments"


@rule
def public_headers_include_only_ebb_and_the_standard(tree):
    """Public headers include headers of ebb and of standard C, nothing else."""
    for file in tree.c("include"):
        for number, name, _ in file.includes():
            standard = name.endswith(".h") and name[:-2] in STANDARD_HEADERS
            if not standard and not name.startswith("ebb/"):
                yield f"{file.path}:{number}: {name}"


# ---- processes

# what takes the result, and the call
FORK = r"(?:(\w+)\s*=(?!=)(?:[^;,()]|\([^()]*\))*?)?\bfork\(\)"


@rule
def forks_are_looked_at(tree):
    """Who calls fork() compares what it returned with 0 by <, > or >=, gives it to act_await(),
    which does, or returns it, in the same function: -1 is all processes to kill() and waitpid()."""
    for file in tree.c("runtime", "bench", "tests", "python"):
        lines = file.bare.splitlines()
        for function in file.functions():
            body = "\n".join(lines[function.first - 1:function.last])
            for name in re.findall(FORK, body):
                looks = rf"\b{name}\s*(?:<|>|>=)\s*0|\b(?:act_await\(|return\s+){name}\b"
                if not name or not re.search(looks, body):
                    yield f"{function}: {name or 'it'} may be -1"


# ---- the runtime

@rule
def functions_are_at_most_70_lines(tree):
    """No function is longer than 70 lines, head and braces included."""
    for file in tree.c("include", "runtime", "bench", "tests", "python"):
        for function in file.functions():
            if function.lines > 70:
                yield f"{function}: {function.lines} lines"


def runtime_lengths(tree):
    return sorted(function.lines for file in tree.c("runtime", "include")
                  for function in file.functions())


def median_and_p90(lengths):
    return statistics.median(lengths), lengths[(len(lengths) * 9 - 1) // 10]


@rule
def functions_are_short(tree):
    """Half of the runtime's functions have at most 12 lines, nine tenths at most 35."""
    lengths = runtime_lengths(tree)
    if not lengths:
        yield "runtime: no functions found"
        return
    median, p90 = median_and_p90(lengths)
    if median > 12:
        yield f"runtime: the median is {median} lines"
    if p90 > 35:
        yield f"runtime: p90 is {p90} lines"


# Public headers, by the lowest layer that may include them: that which keeps what they promise.
PUBLIC = {
    "base": ["base"],
    "pool": ["pool", "device"],
    "region": ["region", "promote", "cleanup", "remote", "exhausted"],
    "object": ["alias", "batch", "collate", "copy", "exchange", "object", "own", "ragged",
               "sample", "sequence", "tensor", "value", "view"],
    "handoff": ["handoff"],
    "step": ["step", "current", "scope"],
    "report": ["report"],
    "malloc": ["ebb"],
}


def layer_of_public(name):
    """The layer of <ebb/NAME.h>, or None."""
    stem = name.removeprefix("ebb/").removesuffix(".h")
    return next((layer for layer, headers in PUBLIC.items() if stem in headers), None)


def layer_of(file, name):
    """The layer that a quoted include leads to, or None."""
    if name.startswith(".") or "/" not in name:  # beside the file
        name = posixpath.normpath(posixpath.join(*file.parts[1:-1], name))
    return name.split("/")[0] if name.split("/")[0] in LAYERS else None


@rule
def includes_go_downwards(tree):
    """No layer of the runtime includes one above it, or a public header that one above it keeps:
    base < plan < pool < region < object < handoff < step < report < malloc."""
    for file in tree.c("runtime"):
        layer = file.parts[1]
        for number, name, quoted in file.includes():
            if not quoted and not name.startswith("ebb/"):
                continue
            target = layer_of(file, name) if quoted else layer_of_public(name)
            if layer not in LAYERS or target is None:
                yield f"{file.path}:{number}: {name}: of no layer"
            elif LAYERS.index(target) > LAYERS.index(layer):
                yield f"{file.path}:{number}: {name} is above {layer}"


def function_macros(tree):
    return [where for _, where in
            code_matches(tree.c("runtime", "include"), r"^\s*#\s*define\s+\w+\(")]


@rule
def macros_with_arguments_are_at_most_15(tree):
    """runtime and include define at most 15 macros that take arguments."""
    found = function_macros(tree)
    if len(found) > 15:
        yield f"{len(found)} macros"
        yield from found


@rule
def only_poison_h_names_sanitizers(tree):
    """In the runtime, code names sanitizers and valgrind only in base/poison.h."""
    files = [f for f in tree.c("runtime", "include") if f.path != "runtime/base/poison.h"]
    for _, where in code_matches(files, r"(?i)\w*(asan|msan|tsan|ubsan|sanitize|valgrind)\w*"):
        yield where


@rule
def only_os_c_maps_memory(tree):
    """In the runtime, only the files of the table `os` include sys/mman.h."""
    table = ("runtime/base/os.c", "runtime/base/os_file.c")
    for file in tree.c("runtime", "include"):
        for number, name, _ in file.includes():
            if name == "sys/mman.h" and file.path not in table:
                yield f"{file.path}:{number}: {name}"


@rule
def only_one_file_knows_jemalloc(tree):
    """In the runtime, only base/jemalloc.h includes jemalloc's header."""
    for file in tree.c("runtime", "include"):
        for number, name, _ in file.includes():
            if name.startswith("jemalloc/") and file.path != "runtime/base/jemalloc.h":
                yield f"{file.path}:{number}: {name}"


# ---- TAP

def figures(tree):
    """What the rules measured, for those who want to know how near the limits are."""
    lengths = runtime_lengths(tree)
    if lengths:
        median, p90 = median_and_p90(lengths)
        yield (f"functions of runtime and include: {len(lengths)}, lines: median {median:g}, "
               f"p90 {p90}, longest {lengths[-1]}")
    yield f"macros with arguments: {len(function_macros(tree))}"
    for file in tree.c("include"):
        whole, carrying, filled = file.comment_lines()
        yield (f"{file.path}: {len(file.lines)} lines, comment {share(whole, filled):.0f} %, "
               f"with trailing ones {share(carrying, filled):.0f} %")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_style.py ROOT")
    tree = Tree(sys.argv[1])
    print(f"1..{len(RULES)}")
    failed = False
    for number, (name, check) in enumerate(RULES.items(), 1):
        broken = list(check(tree))
        failed |= bool(broken)
        print(f"{'not ok' if broken else 'ok'} {number} - {name}")
        for where in broken:
            print(f"# {where}")
    for line in figures(tree):
        print(f"# {line}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
