#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes measured tables into README.md and pages of docs/, from the rows of a benchmark run.

    docs/figures.py [--json build/results/bench.json] [--readme README.md]
                    [--results docs/results.md] [--loader docs/loader.md] [--rough]

Each section has its place between two markers, such as `churn:begin` and `churn:end`, which is
written anew where the run has rows of ebb for it, with the day and the machine; what was not
measured again stays. Nothing here is measured; tables.py says how figures are shown. README has
extracts, results.md all of churn, micro and sequence, loader.md the loaders. Refused without
--rough: a quick run, a replay that left the blocks alone, or was without plans, some of the peers
or some of the traces of bench/traces, or in which anything failed, and micro benchmarks or loaders
in which a contestant of a case failed, or was left out. A file that is missing or bad is named, and
changes nothing, nor does a page that cannot be written: each figure must be a number of at most
1e18 either way. Exit codes: 0; 2 if something was refused.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True

import tables  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRACES = ROOT / "bench/traces"
MOST = 1e18  # what is more, or less than its negative, is no figure of a run

# Who takes part in the cases that are shown, as bench/micro/contest.c has it.
CONTESTS = {
    "small10k": ("floor", "ebb", *tables.PEERS, *tables.ARENAS),
    "const": ("floor", "ebb", *tables.PEERS, *tables.ARENAS),
    "open_close": ("ebb", *tables.ARENAS),
    "close_n": ("ebb", *tables.PEERS, *tables.ARENAS),
    "flat_count": ("floor", "ebb", "mimalloc"),
    "large": ("floor", "ebb", "pmr", "bumpalo", *tables.PEERS),
    "request": ("floor", "ebb", "apr", "pmr", "bumpalo", *tables.PEERS),
    "release": ("ebb", "talloc", *tables.PEERS),
    "promote": ("floor", "ebb"),
    "tensor": ("ebb", *tables.PEERS),
    "promote_objects": ("ebb",),
    "planned": ("floor", "ebb", *tables.PEERS),
}

# What of the JSON is used, and of what kind it is.
ABOUT = {
    "machine": {"date": str, "cpu": str, "cores": float, "memory_bytes": float, "kernel": str,
                "os": str, "compiler": str, "load": float},
    "settings": {"quick": bool, "touch": bool, "plan": bool, "rounds": float},
    "allocators": [{"name": str, "package": str, "version": str}],
    "cases": [{"case": str}],
    "failures": [{"case": str, "allocator": str, "text": str}],
    "rows": [{"bench": str, "case": str, "allocator": str, "metric": str, "value": float}],
    "targets": [{"target": str, "case": str, "value": float, "limit": float, "met": bool}],
}
KINDS = {str: "text", bool: "true or false", float: "a number of at most 1e18", dict: "an object",
         list: "a list"}


class BadInput(Exception):
    """A file that is missing or is not what it should be."""


@contextlib.contextmanager
def naming(path):
    """What goes wrong with a file is said with its name."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: {error}") from error


def is_of(value, kind):
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and \
            abs(value) <= MOST  # which nan is not
    return isinstance(value, kind)


def check(value, shape, place=""):
    """ValueError, which says where, unless all that the shape names is there."""
    kind = shape if isinstance(shape, type) else type(shape)
    if not is_of(value, kind):
        raise ValueError(f"{place or 'what it holds'} is not {KINDS[kind]}")
    if kind is str:
        value.encode("utf-8")  # halves of characters could not be written
    if isinstance(shape, list):
        for number, item in enumerate(value):
            check(item, shape[0], f"{place}[{number}]")
    if isinstance(shape, dict):
        for key, part in shape.items():
            if key not in value:
                raise ValueError(f"{place or 'it'} has no {key}")
            check(value[key], part, f"{place}.{key}" if place else key)


def read_about(path):
    with naming(path):
        about = json.loads(path.read_text(encoding="utf-8"))
        check(about, ABOUT)
    return about


# Where a section stands, what it is made of, and by whom.
SECTIONS = {
    "programs": ("readme", "churn", tables.programs_part),
    "operations": ("readme", "micro", tables.operations_part),
    "churn": ("results", "churn", tables.churn_part),
    "micro": ("results", "micro", tables.micro_part),
    "sequence": ("results", "sequence", tables.sequence_part),
    "loader": ("loader", "loader", tables.loader_part),
}


def replace(page, text, section, parts):
    begin, end = f"<!-- {section}:begin -->", f"<!-- {section}:end -->"
    start, stop = text.find(begin), text.find(end)
    if start < 0 or stop < start:
        raise BadInput(f"{page}: the markers {begin} and {end} are not there")
    if text.count(begin) > 1 or text.count(end) > 1:
        raise BadInput(f"{page}: one of the markers {begin} and {end} comes twice")
    block = "\n\n".join([begin, *(part for part in parts if part), ""])
    if "\r\n" in text:
        block = block.replace("\n", "\r\n")
    return text[:start] + block + text[stop:]


def has_figures(rows, bench):
    return bool(tables.churn_cases(rows) if bench == "churn" else rows.cases(bench, "ebb"))


def sections_of(rows, path):
    """Those that the run has figures of ebb for."""
    found = [section for section, (_, bench, _) in SECTIONS.items() if has_figures(rows, bench)]
    if not found and rows.cases("churn"):
        raise BadInput(f"{path}: no row of churn has ebb's step_us")
    if not found:
        benches = dict.fromkeys(bench for _, bench, _ in SECTIONS.values())
        raise BadInput(f"{path}: no row of ebb in {', '.join(benches)}")
    return found


def read_page(page):
    """As it is, with its line ends; an error too if it may not be written."""
    with naming(page), page.open("r+b") as file:
        return file.read().decode("utf-8")


def draft_in(folder, page, text):
    """A file like the page, of that text."""
    draft = pathlib.Path(folder, page.name)
    draft.write_bytes(text.encode("utf-8"))
    owner = page.stat()
    with contextlib.suppress(PermissionError):  # root alone gives files away
        os.chown(draft, owner.st_uid, owner.st_gid)
    shutil.copymode(page, draft)
    return draft


def write_pages(pages):
    """All are written beside before one takes its place."""
    with contextlib.ExitStack() as folders:
        drafts = {}
        for page, text in pages.items():
            with naming(page):
                folder = folders.enter_context(tempfile.TemporaryDirectory(dir=page.parent))
                drafts[page] = draft_in(folder, page, text)
        for page, draft in drafts.items():
            with naming(page):
                draft.replace(page)


def write(rows, about, options):
    """All pages are drawn before one is written; one that has two names is one."""
    pages = {}
    for section in sections_of(rows, options.json):
        name, _, part = SECTIONS[section]
        page = pathlib.Path(os.path.realpath(getattr(options, name)))
        text = pages.get(page) or read_page(page)
        pages[page] = replace(page, text, section, part(rows, about))
    write_pages(pages)


def said_by_failures(about):
    first = about["failures"][0]
    whose = f"{first['case']}: {first['allocator']}" if first["allocator"] else first["case"]
    return f"a run with {len(about['failures'])} failures ({whose}: {first['text']})"


def what_is_missing(rows, about):
    """Whose figures a replay lacks, or None; those of each peer belong to each case."""
    names = [peer["name"] for peer in about["allocators"]]
    absent = [name for name in tables.PEERS if name not in names]
    if absent:
        return f"a run without {', '.join(absent)}"
    cases = {item["case"] for item in about["cases"]} - {"spike.synthetic"}
    left_out = sorted(bundled_cases() - cases)
    if left_out:
        return f"a run without {len(left_out)} of the bundled traces, such as {left_out[0]}"
    for case in sorted(cases):
        for name in ("ebb", *tables.PEERS):
            if rows.value("churn", case, name, "step_us") is None:
                return f"a run in which {case} has no step_us of {name}"
    return None


def missing_contestants(rows):
    """[(case, contestant)] of the micro benchmarks; one that failed has no row of its case."""
    return [(case, name) for case, names in CONTESTS.items() for name in names
            if case not in rows.cases("micro", name)]


def missing_methods(rows):
    """[(case, method)] of the loaders, of whose time or system calls there is no row. Where strace
    may not trace there are calls of none."""
    def lacking(settings, metric):
        cases = [case + setting for setting in settings for _, case in tables.LOADERS]
        return [(case, method) for case in cases for method in ("ebb", *tables.LOADER_PEERS)
                if rows.value("loader", case, method, metric) is None]

    counted = any(key[0] == "loader" and key[3] == "syscalls_per_batch" for key in rows.values)
    return lacking(tables.LOADER_SETTINGS, "cpu_ms_per_batch") + (
        lacking(tables.LOADER_SETTINGS[:1], "syscalls_per_batch") if counted else [])


# Of the sequences there are all rows or none: torch is a column of its own, and may be a dash.
MISSING = {"micro": missing_contestants, "loader": missing_methods}


def who_is_missing(rows):
    """Whose figures are missing from a section that would be written, or None."""
    for section, missing in MISSING.items():
        found = missing(rows) if rows.cases(section, "ebb") else []
        if found:
            return f"a run in which {found[0][0]} lacks figures of {found[0][1]}"
    return None


def bundled_cases():
    return {path.name.removesuffix(".trace.gz") for path in TRACES.glob("*.trace.gz")}


def what_is_rough_of_churn(rows, about):
    """What else may be asked for does not reach the other benchmarks."""
    if not rows.cases("churn"):
        return None
    if not about["settings"]["touch"]:
        return "a run that left the blocks alone"
    if not about["settings"]["plan"]:
        return "a run without plans"
    return said_by_failures(about) if about["failures"] else what_is_missing(rows, about)


def what_is_rough(rows, about):
    """What keeps the run's figures from being those of the whole benchmark, or None."""
    if about["settings"]["quick"]:
        return "a quick run"
    return what_is_rough_of_churn(rows, about) or who_is_missing(rows)


def refuse_rough(rows, about, path):
    what = what_is_rough(rows, about)
    if what:
        raise BadInput(f"{path}: of {what}; --rough takes it all the same")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", default=ROOT / "build/results/bench.json", type=pathlib.Path)
    parser.add_argument("--readme", default=ROOT / "README.md", type=pathlib.Path)
    parser.add_argument("--results", default=ROOT / "docs/results.md", type=pathlib.Path)
    parser.add_argument("--loader", default=ROOT / "docs/loader.md", type=pathlib.Path)
    parser.add_argument("--rough", action="store_true",
                        help="take a quick run too, or one without touches or plans, or that "
                             "lacks figures of traces, cases or peers")
    options = parser.parse_args()
    try:
        about = read_about(options.json)
        rows = tables.Rows(about["rows"])
        if not options.rough:
            refuse_rough(rows, about, options.json)
        write(rows, about, options)
    except BadInput as error:
        print(f"figures.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
