#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""report.py - turns the results of a benchmark run into one self-contained HTML page.

    report.py --json bench.json [--tsv micro.tsv ...] --out report.html

The page needs nothing but itself: style, pictures and script are inside, nothing is fetched.
Both options may be repeated, and one of them is needed; rows of later files replace equal ones of
earlier files. A table without a single row is refused, and what is no JSON. Exit codes: 0; 1 if the
results are bad; 2 if the options are, or the page cannot be written.
"""

import argparse
import sys

import page
from results import Results


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("--json", action="append", default=[], help="results of the benchmark")
    parser.add_argument("--tsv", action="append", default=[], help="further rows")
    parser.add_argument("--out", required=True, help="the page to write")
    parser.add_argument("--title", default="ebb: what a step costs")
    given = parser.parse_args()
    if not given.json and not given.tsv:
        parser.error("nothing to show: neither --json nor --tsv is given")
    return given


def read_text(path):
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        return file.read()


def add_json(results, path):
    try:
        results.add_json(read_text(path))
    except ValueError as fault:
        raise ValueError(f"{path}: {fault}") from fault


def add_tsv(results, path):
    if not results.add_tsv(read_text(path)):
        raise ValueError(f"{path}: no rows in it")


def main():
    given = arguments()
    results = Results()
    try:
        for path in given.json:
            add_json(results, path)
        for path in given.tsv:
            add_tsv(results, path)
        text = page.draw(results, given.title)
        page.write(text, given.out)
    except page.Unwritable as fault:
        print(f"report.py: {fault.filename}: {fault.strerror}", file=sys.stderr)
        return 2
    except (OSError, ValueError) as fault:
        print(f"report.py: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
