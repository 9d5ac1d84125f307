# SPDX-License-Identifier: Apache-2.0
"""allocators.py - what serves malloc() in a process: the environment that it is started with.

The peers and their settings are those of the churn benchmark. `ebb` is libebb-malloc, `ebb-scopes`
the same with a scope for each request or step.
"""

import atexit
import functools
import os
import pathlib
import platform
import shutil
import tempfile

SCOPES = "SERVE_SCOPES"  # the variable that tells servers and loops to open scopes
OURS = "EBB_MALLOC_LIBRARY"  # where libebb-malloc.so is, if not in the build folder
GIVES_NOTHING_BACK = ("glibc.malloc.mmap_max=0:glibc.malloc.mmap_threshold=33554432:"
                      "glibc.malloc.trim_threshold=9223372036854775807:"
                      "glibc.malloc.top_pad=67108864")
NO_DECAY = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0"

# name: (library, settings)
ALLOCATORS = {
    "glibc": (None, {}),
    "glibc-tuned": (None, {"GLIBC_TUNABLES": GIVES_NOTHING_BACK}),
    "jemalloc": ("libjemalloc.so.2", {}),
    "jemalloc-tuned": ("libjemalloc.so.2", {"MALLOC_CONF": NO_DECAY}),
    "mimalloc": ("libmimalloc.so.2.0", {}),
    "tcmalloc": ("libtcmalloc_minimal.so.4", {}),
    "ebb": ("libebb-malloc.so", {}),
    "ebb-scopes": ("libebb-malloc.so", {SCOPES: "1"}),
}
# How the names of settings of allocators begin.
VARIABLES = ("LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_", "MIMALLOC_", "TCMALLOC_", "EBB_MALLOC",
             SCOPES)


def plain_environment():
    """That of the user, without what was set for some allocator."""
    return {name: value for name, value in os.environ.items() if not name.startswith(VARIABLES)}


def own_library(build):
    given = os.environ.get(OURS)
    places = [pathlib.Path(given)] if given else \
        [build / "runtime" / "malloc" / "libebb-malloc.so", build / "runtime" / "libebb-malloc.so"]
    return next((place.resolve() for place in places if place.is_file()), None)


def system_library(name):
    """Its path in Debian's folder for this machine's libraries, or a common one."""
    folders = [f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/lib64", "/usr/lib",
               "/usr/local/lib"]
    return next((place for place in (pathlib.Path(folder) / name for folder in folders)
                 if place.is_file()), None)


@functools.cache
def preloadable(library):
    """A path of it that the loader reads as one: spaces and colons end a name there, $ begins a
    word of the loader's own. The folder for temporary files is to have none of them."""
    if not set(str(library)) & set(" :$"):
        return str(library)
    folder = tempfile.mkdtemp(prefix="ebb-serve-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    link = pathlib.Path(folder, "preloaded.so")
    link.symlink_to(library)
    return str(link)


class Allocator:
    """`path` is None for the C library itself; `absent`: it cannot be had here."""

    def __init__(self, name, build):
        library, self.settings = ALLOCATORS[name]
        self.name, self.path = name, None
        self.absent, self.scopes = False, SCOPES in self.settings
        if library:
            self.path = own_library(build) if "ebb" in library else system_library(library)
            self.absent = self.path is None

    def environment(self):
        found = plain_environment()
        # What the user set for ebb is for ebb alone.
        if self.name.startswith("ebb"):
            found.update({name: os.environ[name] for name in ("EBB_MALLOC", "EBB_MALLOC_STATS")
                          if name in os.environ})
        found.update(self.settings)
        if self.path:
            found["LD_PRELOAD"] = preloadable(self.path)
        return found

    def serves(self, pid):
        """Whether it serves the process. What is preloaded does, whatever else was linked."""
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
        if self.path:
            return str(self.path.resolve()) in maps
        return not any(f"/{library}" in maps for library, _ in ALLOCATORS.values() if library)
