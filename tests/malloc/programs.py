# SPDX-License-Identifier: Apache-2.0
"""programs.py - what the programs of `survive` are asked to do.

A program is a function that takes a way to run things and returns all that was said and made, as
text that must not depend on whose malloc() it was.
"""

import hashlib
import pathlib
import xml.etree.ElementTree

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"

# modules of CPython's own tests: those of up to a second, and more of up to some seconds
QUICK_MODULES = """test_array test_binascii test_bytes test_collections test_contextlib test_copy
    test_dict test_exceptions test_gc test_generators test_json test_list test_memoryio
    test_struct test_thread test_unicode test_weakset test_xml_etree test_zlib""".split()
MODULES = """test_ast test_atexit test_base64 test_bigmem test_bisect test_buffer test_bz2 test_call
    test_cmath test_codecs test_compile test_complex test_coroutines test_dataclasses
    test_datetime test_decimal test_deque test_descr test_dictviews test_dis test_enum
    test_enumerate test_exception_group test_fileio test_float test_fork1 test_format test_fractions
    test_frozen test_fstring test_functools test_grammar test_hash test_hashlib
    test_heapq test_iter test_itertools test_long test_marshal test_math test_memoryview test_mmap
    test_module test_opcodes test_operator test_ordered_dict test_pickle test_pickletools test_posix
    test_pprint test_queue test_random test_range test_re test_set test_shelve test_slice test_sort
    test_string test_super test_symtable test_sys test_tempfile test_textwrap
    test_threading_local test_tokenize test_traceback test_tracemalloc test_tuple test_types
    test_typing test_unicodedata test_userdict test_userlist test_wait3 test_wait4 test_weakref
    test_with test_xml_etree_c test_io test_subprocess test_zipfile test_lzma""".split()


class Missing(Exception):
    """A program that is not installed; its name."""


def digest(folder, pattern="*"):
    """Names and contents of all files."""
    lines = []
    for file in sorted(folder.rglob(pattern)):
        if file.is_file():
            contents = hashlib.sha256(file.read_bytes()).hexdigest()
            lines.append(f"{file.relative_to(folder)} {contents}")
    return "\n".join(lines) + "\n"


# ---- CPython

def how(case):
    """A test has no part if it passed, else `failure`, `error` or `skipped`."""
    return " ".join(part.tag for part in case if not part.tag.startswith("system"))


def need_module(way, module, package):
    """Another one that is missing may be told, and do no harm: NumPy, where torch has none."""
    said = way.run("python3", "-c", f"import {module}", timeout=60, status=None)
    if f"No module named '{module.split('.')[0]}" in said:
        raise Missing(package)


def python_module(name):
    """Each test of the module, and how it went: some fail here or there, whose malloc() it be."""
    def program(way):
        need_module(way, f"test.{name}", "libpython3.11-testsuite")
        said = way.run("python3", "-m", "test", "--junit-xml", "result.xml", name, status=None)
        try:
            tree = xml.etree.ElementTree.parse(way.scratch / "result.xml")
        except (OSError, xml.etree.ElementTree.ParseError) as error:
            raise AssertionError(f"no result: {said[-500:]}") from error
        cases = list(tree.iter("testcase"))
        assert not all(map(how, cases)), f"no test passed: {said[-500:]}"
        return "".join(sorted(f"{case.get('name')} {how(case)}\n" for case in cases))
    program.__name__ = f"python: {name}"
    return program


def python_script(way):
    return way.run("python3", SCRIPTS / "mixed.py")


def torch_training(way):
    need_module(way, "torch", "python3-torch")
    return way.run("python3", SCRIPTS / "training.py", OMP_NUM_THREADS="1")


# ---- compilers

def compile_sources(way, compiler, files, *options):
    assert files, "there are no sources"
    said = ""
    for number, file in enumerate(files):
        said += way.run(compiler, "-c", *options, file, "-o", f"{number}.o", "-I",
                        way.source / "include", "-I", way.source / "runtime", "-D_GNU_SOURCE",
                        "-DEBB_CHECK_LEVEL=1", "-DGATES_OF_C")  # others need what a build makes
    return said + digest(way.scratch, "*.o")


def gcc(way):
    files = sorted((way.source / "runtime").glob("*/*.c"))
    return compile_sources(way, "gcc", files if way.options.long else files[::50], "-std=gnu11",
                           "-O2", "-w")


def clang(way):
    files = sorted((way.source / "runtime").glob("*/*.c"))
    return compile_sources(way, "clang", files[::5] if way.options.long else files[::120],
                           "-std=gnu11", "-O2", "-w")


def gxx(way):
    name = "operators.cc" if way.options.long else "replaced.cc"  # which takes a sixth of the time
    return compile_sources(way, "g++", [way.source / "tests/malloc" / name], "-std=c++17", "-O1",
                           "-w", "-DREPLACED=15")


# ---- tools

def git(way):
    """A repository of our own sources: two commits, then all that walks it."""
    date = "2026-01-02T03:04:05Z"
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "GIT_CONFIG_NOSYSTEM": "1"}
    folders = ("runtime", "include", "docs") if way.options.long else ("runtime/pool",)
    said = way.run("mkdir", "-p", "repo/runtime")
    for folder in folders:
        said += way.run("cp", "-rT", way.source / folder, f"repo/{folder}")

    def git_(*words, **options):
        return way.run("git", "-C", "repo", "-c", "user.name=a", "-c", "user.email=a@b", *words,
                       **dates, **options)
    said += git_("init", "-q", "-b", "main") + git_("add", ".") + git_("commit", "-q", "-m", "one")
    for file in sorted((way.scratch / "repo").rglob("*.c"))[::3]:
        file.write_text(file.read_text().replace("size_t", "unsigned long"))
    said += git_("diff", "--stat") + git_("diff") + git_("commit", "-q", "-a", "-m", "two")
    said += way.run("git", "clone", "-q", "--no-local", "repo", "clone", **dates)
    return (said + git_("log", "-p", "-M") + git_("gc", "-q", "--aggressive") +
            git_("fsck", "--full") + git_("rev-list", "--objects", "--all") +
            git_("blame", "runtime/pool/pool.c") + git_("grep", "-n", "unsigned") +
            digest(way.scratch / "clone", "*.c"))


def perl(way):
    return way.run("perl", SCRIPTS / "mixed.pl")


def sqlite(way):
    return way.run("sqlite3", "base", text=(SCRIPTS / "tables.sql").read_text())


def bash(way):
    return way.run("bash", SCRIPTS / "mixed.sh")


def valgrind(way):
    """It takes the place of all of malloc(), ours too; `ls` uses reallocarray(). Leaks would be
    looked for in all addresses that ebb has reserved."""
    return way.run("valgrind", "-q", "--leak-check=no", "--error-exitcode=9", "ls", SCRIPTS)


def node(way):
    return way.run("node", SCRIPTS / "mixed.js")


def npm(way):
    """A package of two files, packed, and installed from the pack, without a network."""
    package = way.scratch / "package"
    package.mkdir()
    (package / "package.json").write_text('{"name": "own", "version": "1.2.3", "main": "i.js"}')
    (package / "i.js").write_text("module.exports = 5\n")
    user = way.scratch / "user"
    user.mkdir()
    (user / "package.json").write_text('{"name": "user", "version": "1.0.0"}')
    options = ["--offline", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    return (way.run("npm", "pack", *options, "./package") +
            way.run("npm", "install", "--prefix", "user", *options, way.scratch / "own-1.2.3.tgz")
            .partition(" in ")[0] +
            way.run("node", "-e", "console.log(require('./user/node_modules/own'))") +
            digest(user / "node_modules", "*.js*"))


def chromium(way):
    """Its zygote may have one thread only: none of libebb-malloc's."""
    said = way.run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                   "--disable-dev-shm-usage", f"--user-data-dir={way.scratch}/profile",
                   f"file://{SCRIPTS}/page.html", timeout=180, EBB_MALLOC="idle_ms:0")
    assert "<!DOCTYPE" in said, f"there is no page: {said[-500:]}"
    return said[said.find("<!DOCTYPE"):]


def chosen(long):
    always = [python_script, gcc, clang, gxx, git, perl, sqlite, bash, node, valgrind]
    modules = QUICK_MODULES + (MODULES if long else [])
    return (always + ([npm, chromium, torch_training] if long else []) +
            [python_module(name) for name in modules])
