# SPDX-License-Identifier: Apache-2.0
"""kin.py - which allocator is what: its place in lists and its colour.

One colour means ebb, everywhere. The peers are grey: what a picture says is where ebb stands
among them, and their names are written next to them. Names that are not known are peers.
"""

MALLOCS = ("glibc", "glibc-tuned", "jemalloc", "jemalloc-tuned", "mimalloc", "tcmalloc")
ARENAS = ("apr", "bumpalo", "obstack", "pmr", "talloc")
OWN = ("ebb", "ebb-scopes", "ebb-unplanned")
ORDER = ("floor", "floor-in-memory") + OWN + MALLOCS + ARENAS


def family(allocator):
    if allocator in OWN:
        return "ebb"
    if allocator.startswith("floor"):
        return "floor"
    return "arena" if allocator in ARENAS else "malloc"


def sort_key(allocator):
    known = ORDER.index(allocator) if allocator in ORDER else len(ORDER)
    return (known, allocator)


def in_order(allocators):
    return sorted(allocators, key=sort_key)


def peers(allocators):
    """Those that ebb is compared with: neither ebb itself nor a floor."""
    return [name for name in in_order(allocators) if family(name) not in ("ebb", "floor")]
