# SPDX-License-Identifier: Apache-2.0
"""chosen.py - what the command lines of the loaders' benchmarks have in common."""

import argparse


def parser_of(doc, methods, cases):
    parser = argparse.ArgumentParser(description=doc.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--methods", default=",".join(methods))
    parser.add_argument("--cases", default=",".join(cases))
    parser.add_argument("--rounds", type=int)
    return parser


def read(parser, methods, cases, rounds):
    """The chosen, all of which there are; `rounds` unless it is quick, or told otherwise."""
    chosen = parser.parse_args()
    chosen.methods, chosen.cases = chosen.methods.split(","), chosen.cases.split(",")
    strange = [name for name in chosen.methods if name not in methods] + \
        [name for name in chosen.cases if name not in cases]
    if strange:
        parser.error(f"no such method or case: {', '.join(strange)}")
    for option, names in (("--methods", chosen.methods), ("--cases", chosen.cases)):
        for name in names:
            if names.count(name) > 1:
                parser.error(f"{option}: named twice: {name}")
    if chosen.rounds is None:
        chosen.rounds = 1 if chosen.quick else rounds
    if chosen.rounds < 1:
        parser.error(f"--rounds: {chosen.rounds} is below 1")
    return chosen
