#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""loader.py [--quick] [--methods LIST] [--cases LIST] [--rounds N] - batches to a trainer.

The stock torch DataLoader, with torch's two ways to share tensors, two that one can write by hand,
and ebb's (methods.py), on six kinds of batch (cases.py). Rows
`loader TAB case TAB method TAB metric TAB value`; a case with 2 workers is named CASE.w2, one where
glibc keeps all that it was given (for every method) CASE.kept. In each round the methods take
turns, each in a process of its own; figures are medians over the rounds, and `*_over_ebb` are
medians of the ratios within a round. System calls are counted by strace in runs of two lengths:
their difference is what a batch costs; where there is no strace, or it may not trace, they are left
out. Needs python3-torch; importing `ebb` must work. Progress goes to standard error. A method that
fails is named and left out of that case; the exit status is 1 then, and 2 for wrong arguments.
"""

import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from chosen import parser_of, read
from rounds import LAST_WORDS, Failed, Turns, figures_of

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
METHODS = ["torch-fd", "torch-fs", "packed", "piped", "ebb"]
BATCHES = {"image_u8": 60, "image_f32": 24, "detection_list": 32, "detection_dict": 28,
           "packed": 200, "tiny": 80}
KEEP = {"MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_MMAP_THRESHOLD_": "4294967296"}
SHORT, LONG = 12, 52  # batches of the runs under strace
RATIOS = ("cpu_ms_per_batch", "trainer_ms_per_batch")
TOTAL = re.compile(r"^100\.00\s.*\stotal$", re.MULTILINE)


def child(case, method, workers, batches, *more):
    return [PYTHON, str(HERE / "child.py"), case, method, str(workers), str(batches), *more]


def strace_counts():
    """Whether there is one that may trace: if not, no child is to blame."""
    return shutil.which("strace") and subprocess.run(
        ["strace", "-f", "-c", "-o", os.devnull, "true"], capture_output=True,
        check=False).returncode == 0


def system_calls(case, method, batches):
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as counts:
        command = ["strace", "-f", "-c", "-o", counts.name,
                   *child(case, method, 1, batches, "--bare")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        line = TOTAL.search(counts.read())
    if done.returncode != 0:
        raise Failed(f"exit {done.returncode}\n{done.stderr[-LAST_WORDS:]}")
    if not line:
        raise Failed("strace counts nothing")
    return int(line.group(0).split()[3])


def calls_per_batch(case, method):
    few, many = system_calls(case, method, SHORT), system_calls(case, method, LONG)
    return (many - few) / (LONG - SHORT)


def tell(text):
    print(f"loader: {text}", file=sys.stderr, flush=True)


def turns_of(name, case, workers, extra, chosen):
    batches = max(BATCHES[case] // (2 if chosen.quick else 1), 28)
    return Turns(f"loader: {name}", chosen.methods, chosen.rounds,
                 lambda method: figures_of(child(case, method, workers, batches), extra))


def print_rows(name, rounds, methods):
    for method in methods:
        for metric in rounds[0][method]:
            value = statistics.median(figures[method][metric] for figures in rounds)
            print(f"loader\t{name}\t{method}\t{metric}\t{value:.5g}", flush=True)
        for metric in RATIOS if "ebb" in methods and method != "ebb" else ():
            ratio = statistics.median(figures[method][metric] / figures["ebb"][metric]
                                      for figures in rounds)
            print(f"loader\t{name}\t{method}\t{metric.split('_')[0]}_over_ebb\t{ratio:.4g}",
                  flush=True)


def print_calls(case, methods):
    """Whether all of them could be counted."""
    good = True
    for method in methods:
        try:
            calls = calls_per_batch(case, method)
        except Failed as why:
            tell(f"{case}, {method}, system calls: left out: {why}")
            good = False
        else:
            print(f"loader\t{case}\t{method}\tsyscalls_per_batch\t{calls:.4g}", flush=True)
    return good


def main():
    chosen = read(parser_of(__doc__, METHODS, BATCHES), METHODS, BATCHES, 3)
    settings = [("", 1, {})] if chosen.quick else [("", 1, {}), (".w2", 2, {}), (".kept", 1, KEEP)]
    good, left = True, {}
    for suffix, workers, extra in settings:
        for case in chosen.cases:
            tell(case + suffix)
            turns = turns_of(case + suffix, case, workers, extra, chosen)
            good = good and turns.left == chosen.methods
            left[case + suffix] = turns.left
            print_rows(case + suffix, turns.rounds, turns.left)
    if chosen.quick:
        return not good
    if not strace_counts():
        tell("system calls: left out: strace counts nothing here")
        return not good
    for case in chosen.cases:
        tell(f"{case}, system calls")
        good = print_calls(case, left[case]) and good
    return not good


if __name__ == "__main__":
    sys.exit(main())
