# SPDX-License-Identifier: Apache-2.0
"""chosen.py - what the command lines of serve.py and turns.py have in common."""


def check(parser, rounds, what, *choices):
    """Each of the choices is an option, the names that it got, and those that there are."""
    strange = [name for _, names, known in choices for name in names if name not in known]
    if strange:
        parser.error(f"no such {what}: {', '.join(strange)}")
    for option, names, _ in choices:
        for name in names:
            if names.count(name) > 1:
                parser.error(f"{option}: named twice: {name}")
    if rounds < 1:
        parser.error(f"--rounds: {rounds} is below 1")
