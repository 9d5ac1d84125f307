# SPDX-License-Identifier: Apache-2.0
"""rounds.py - methods take turns, each in a process of its own that prints a line of JSON.

A method whose process fails once is named and left out of that case; the others go on.
"""

import json
import os
import subprocess
import sys

LAST_WORDS = 2000


class Failed(Exception):
    """A process did not do what it should; says what it said."""


def figures_of(command, extra=None):
    """What the last line says that the command prints; `extra` are further variables for it."""
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, **(extra or {})})
    try:
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])
        raise Failed(f"exit {done.returncode}\n{done.stderr[-LAST_WORDS:]}")
    except (ValueError, IndexError) as why:
        raise Failed(f"prints no figures\n{done.stderr[-LAST_WORDS:]}") from why


class Turns:
    """`rounds`: [{method: figures}], all of which have the same methods, `left`."""

    def __init__(self, name, methods, count, measure):
        self.name, self.left, self.rounds = name, list(methods), []
        for number in range(count):
            start = number % len(methods)
            self.rounds.append({})
            for method in methods[start:] + methods[:start]:
                self.take(method, measure)

    def take(self, method, measure):
        if method not in self.left:
            return
        try:
            self.rounds[-1][method] = measure(method)
        except (Failed, OSError) as why:
            print(f"{self.name}, {method}: left out: {why}", file=sys.stderr, flush=True)
            self.left.remove(method)
            for figures in self.rounds:
                figures.pop(method, None)
