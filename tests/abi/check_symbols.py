#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_symbols.py LIBRARY MAP INCLUDE_DIR [laid_out] - what libebb.so shows to who loads it.

The version script, the public headers and the library itself must name the same functions, and
nothing of the jemalloc inside may be seen from outside. And what would make pages of the library
resident that nobody needs: what its compiler adds, and another order of its parts; and where the
linker lays it out (runtime/layout.ld), constants beside what only unwinding reads. TAP.
"""

import pathlib
import re
import subprocess
import sys

VERSION = "EBB_0.1"
# Each in its part of the library, as runtime/meson.build lists them.
STEPS = ["ebb_region_open", "ebb_region_alloc_slow", "ebb_region_release_slow", "ebb_region_close",
         "ebb_promote", "ebb_step_begin", "ebb_step_end"]
BEHIND = ["ebb_device_count", "ebb_region_send", "ebb_report_region", "ebb_batch_collate",
          "ebb_tensor_new"]
ALLOCATORS = set("""malloc free calloc realloc reallocarray memalign posix_memalign aligned_alloc
    valloc pvalloc malloc_usable_size malloc_stats mallinfo mallopt
    mallocx rallocx xallocx sallocx dallocx sdallocx nallocx mallctl mallctlnametomib mallctlbymib
    malloc_conf malloc_message malloc_stats_print""".split())


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exports(library):
    """The defined dynamic symbols as {name: version}; the version's own name is none."""
    found = {}
    for line in run("nm", "-D", "--defined-only", library).splitlines():
        _, kind, symbol = line.split()
        name, _, version = symbol.partition("@")
        if kind != "A":
            found[name] = version.lstrip("@")
    return found


def places(library):
    """Where what the library defines is, by name."""
    rows = (line.split() for line in run("nm", "--defined-only", library).splitlines())
    return {name: int(at, 16) for at, _, name in rows}


def mapped(path):
    text = re.sub(r"/\*.*?\*/|#[^\n]*", "", path.read_text(), flags=re.DOTALL)
    listed = re.search(r"global:(.*?)local:", text, re.DOTALL)[1]
    return {name for name in re.split(r"[;\s]+", listed) if name}


def declared(folder):
    names = set()
    for header in folder.glob("ebb/*.h"):
        text = re.sub(r"/\*.*?\*/|^#[^\n]*", "", header.read_text(), flags=re.DOTALL | re.MULTILINE)
        for found in re.finditer(r"\bEBB_API\b([^;{]*)", text):
            names.add(re.search(r"(\w+)\s*(\(|$)", found[1])[1])
    return names


def difference(left, right, left_name, right_name):
    return ([f"only in {left_name}: {name}" for name in sorted(left - right)]
            + [f"only in {right_name}: {name}" for name in sorted(right - left)])


def dynamic(library, tag):
    pattern = rf"\({tag}\).*\[(.*)\]"
    return re.findall(pattern, run("readelf", "-dW", library))


def segments(library):
    """The sections of each segment that is loaded."""
    text = run("readelf", "-lW", library)
    kinds = re.findall(r"^  ([A-Z_]+) +0x", text, re.MULTILINE)
    rows = re.findall(r"^   \d\d +(.*)$", text, re.MULTILINE)
    return [set(row.split()) for kind, row in zip(kinds, rows) if kind == "LOAD"]


def beside_constants(library):
    """What is loaded with them and has no use for who runs the code."""
    [constants] = [names for names in segments(library) if ".rodata" in names]
    return sorted(constants & {".eh_frame", ".eh_frame_hdr", ".text"})


def cases(library, version_map, folder, laid_out):
    seen, listed = exports(library), mapped(version_map)
    allocators = [name for name in seen
                  if name in ALLOCATORS or re.match(r"_?_?je_|_Zn|_Zd|jemalloc", name)]
    yield "library_exports_what_the_map_lists", difference(set(seen), listed, "library", "map")
    yield "map_lists_what_the_headers_declare", difference(listed, declared(folder), "map",
                                                           "headers")
    yield "no_allocator_is_exported", allocators
    yield "every_symbol_carries_the_version", [f"{name}: {version or 'none'}" for name, version
                                               in seen.items() if version != VERSION]
    yield "jemalloc_is_no_library_that_is_loaded", [name for name in dynamic(library, "NEEDED")
                                                    if "jemalloc" in name]
    where = places(library)
    compilers = r"__cpu_" if "ebb_jemalloc_free" in where else r"__cpu_|__popcount"
    yield "nothing_of_the_compilers_library_is_inside", [name for name in where
                                                         if re.match(compilers, name)]
    end = max(where[name] for name in STEPS)
    yield "what_steps_run_is_in_front_of_the_rest", [name for name in BEHIND if where[name] < end]
    if laid_out:
        yield "constants_lie_beside_nothing_that_only_unwinding_reads", beside_constants(library)
    soname = dynamic(library, "SONAME")
    yield "library_is_called_libebb_so_0", [] if soname == ["libebb.so.0"] else soname or ["none"]


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit("usage: check_symbols.py LIBRARY MAP INCLUDE_DIR [laid_out]")
    todo = list(cases(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]),
                      "laid_out" in sys.argv[4:]))
    print(f"1..{len(todo)}")
    for number, (name, wrong) in enumerate(todo, 1):
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
        for line in wrong:
            print(f"# {line}")
    return any(wrong for _, wrong in todo)


if __name__ == "__main__":
    sys.exit(main())
