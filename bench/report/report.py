#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""report.py - turns the results of a benchmark run into one self-contained HTML page.

    report.py --json bench.json [--tsv micro.tsv ...] --out report.html

The page needs nothing but itself: style, pictures and script are inside, nothing is fetched.
Both options may be repeated; rows of later files replace equal ones of earlier files.
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
    return parser.parse_args()


def read_text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def main():
    given = arguments()
    results = Results()
    try:
        for path in given.json:
            results.add_json(read_text(path))
        for path in given.tsv:
            results.add_tsv(read_text(path))
        text = page.draw(results, given.title)
        page.write(text, given.out)
    except (OSError, ValueError) as fault:
        print(f"report.py: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
