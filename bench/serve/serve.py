#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""serve.py BUILD [--quick] [--rounds N] [--cases LIST] [--allocators LIST] - servers and loops.

Real inference servers, loaded over loopback, and training loops of torch (cases.py), under each
allocator (allocators.py). Rows `serve TAB case TAB allocator TAB metric TAB value`. In each round
the allocators take turns, each in a process of its own; figures are medians over turns and rounds,
and `cpu_over_glibc` is the median of the ratios within a turn. The long run of mixed requests, and
the series of resident memory (METRIC.nNUMBER), are of the first round. BUILD is the build folder;
what npm brought and the models are below --fetched. What cannot be had is left out, and named.
Answers must be the same under every allocator. Progress goes to standard error. Exit status: 1 if
something failed or answers differ, or ebb is asked for and not there: then nothing is run; 2 for
wrong arguments, 3 if nothing of it can be run here.
"""

import argparse
import pathlib
import statistics
import sys

import cases
import process
from allocators import ALLOCATORS, Allocator
from chosen import check
from program import Failed

NOTHING_RUNS = 3  # the exit status; bench/run leaves out the servers then


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--fetched", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--cases", default="")
    parser.add_argument("--allocators", default=",".join(ALLOCATORS))
    chosen = parser.parse_args()
    chosen.build = chosen.build.resolve()
    if not chosen.build.is_dir():
        parser.error(f"{chosen.build}: no such folder")
    chosen.fetched = (chosen.fetched or chosen.build.parent / "serve").resolve()
    if chosen.rounds is None:
        chosen.rounds = 1 if chosen.quick else 3
    chosen.table = cases.all_cases(cases.Place(chosen.build, chosen.fetched))
    chosen.cases = chosen.cases.split(",") if chosen.cases else list(chosen.table)
    chosen.allocators = chosen.allocators.split(",")
    check(parser, chosen.rounds, "case or allocator", ("--cases", chosen.cases, chosen.table),
          ("--allocators", chosen.allocators, ALLOCATORS))
    return chosen


def tell(text):
    print(f"serve: {text}", file=sys.stderr, flush=True)


def takers(case, allocators):
    """The allocators that it is run under."""
    return [allocator for allocator in allocators if case.scopes or not allocator.scopes]


def present(chosen):
    """The cases and allocators that can be had; says which cannot."""
    allocators, found = [], {}
    for name in chosen.allocators:
        allocator = Allocator(name, chosen.build)
        if allocator.absent:
            tell(f"left out: {name}, its library is not there")
        else:
            allocators.append(allocator)
    for name in chosen.cases:
        try:
            chosen.table[name].command()
            if not takers(chosen.table[name], allocators):
                raise cases.Absent("there is no allocator for it")
            found[name] = chosen.table[name]
        except cases.Absent as why:
            tell(f"left out: {name}, {why}")
    return allocators, found


def lacks_ours(chosen, allocators):
    """Whether ebb was asked for, and the peers would be measured without it."""
    left = [allocator.name for allocator in allocators]
    return any(name.startswith("ebb") and name not in left for name in chosen.allocators)


def attempt(course, what, *arguments):
    """Calls a method of a course; False if it failed, which is said."""
    try:
        getattr(course, what)(*arguments)
        return True
    except (Failed, OSError, ValueError) as why:
        tell(f"failed: {course.allocator.name}: {why}")
        return False


def turned(courses, number):
    """The same, beginning with another one each time."""
    at = number % len(courses) if courses else 0
    return courses[at:] + courses[:at]


def courses_of(chosen, case, allocators):
    if isinstance(case, cases.Training):
        return [process.Training(case, allocator) for allocator in allocators]
    client = chosen.build / "bench" / "serve" / "ebb-load"
    return [process.Serving(case, allocator, client) for allocator in allocators]


def round_of(chosen, case, allocators, number):
    """[course] of those that did not fail. All processes are there at once; they are timed by
    turns, each while the others wait."""
    courses = courses_of(chosen, case, allocators)
    try:
        left = [course for course in courses if attempt(course, "begin")]
        for turn in range(process.TURNS):
            for course in turned(left, turn + number):
                if not attempt(course, "take_turn"):
                    left.remove(course)
        return [course for course in left if attempt(course, "finish", 0 if number else case.most)]
    finally:
        for course in courses:
            course.stop()


def differences(rounds):
    """What tells, for each stretch that did not compute the same everywhere, who computed what."""
    computed, said = {}, []
    for course in (course for courses in rounds for course in courses.values()):
        for stretch, sums in course.computed.items():
            computed.setdefault(stretch, {}).setdefault(tuple(sums), set()).add(
                course.allocator.name)
    for stretch, found in computed.items():
        if len(found) > 1:
            said.append(f"answers differ, {stretch}: " + "; ".join(
                ", ".join(sorted(names)) for names in found.values()))
    return said


def rounds_of(chosen, case, allocators):
    """([{allocator: course}], whether nothing failed and all computed the same)"""
    rounds = []
    if chosen.quick:
        case.make_short()
    for number in range(chosen.rounds):
        courses = round_of(chosen, case, allocators, number)
        rounds.append({course.allocator.name: course for course in courses})
    differ = differences(rounds)
    for text in differ:
        tell(text)
    return rounds, not differ and all(len(one) == len(allocators) for one in rounds)


def print_row(case, allocator, metric, value):
    print(f"serve\t{case}\t{allocator}\t{metric}\t{value:.6g}", flush=True)


def print_rows(case, rounds, allocators):
    for name in (allocator.name for allocator in allocators):
        mine = [courses[name].figures for courses in rounds if name in courses]
        for metric in dict.fromkeys(metric for figures in mine for metric in figures):
            print_row(case, name, metric, statistics.median(
                figures[metric] for figures in mine if metric in figures))
        ratios = [own / other for courses in rounds if name in courses and "glibc" in courses
                  for own, other in zip(courses[name].cpu, courses["glibc"].cpu)]
        if ratios:
            print_row(case, name, "cpu_over_glibc", statistics.median(ratios))


def main():
    chosen = arguments()
    allocators, table = present(chosen)
    if not table:
        tell("nothing is left to run")
        sys.exit(NOTHING_RUNS)
    if lacks_ours(chosen, allocators):
        tell("failed: there is no libebb-malloc; it is built where libjemalloc-dev is installed")
        sys.exit(1)
    all_good = True
    for name, case in table.items():
        tell(name)
        its_own = takers(case, allocators)
        rounds, good = rounds_of(chosen, case, its_own)
        all_good = all_good and good
        print_rows(name, rounds, its_own)
    sys.exit(0 if all_good else 1)


if __name__ == "__main__":
    main()
