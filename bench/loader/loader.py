#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""loader.py [--quick] [--methods LIST] [--cases LIST] [--rounds N] - batches to a trainer.

The stock torch DataLoader, with torch's two ways to share tensors, two that one can write by hand,
and ebb's (methods.py), on six kinds of batch (cases.py). Rows
`loader TAB case TAB method TAB metric TAB value`; a case with 2 workers is named CASE.w2, one where
glibc keeps all that it was given (for every method) CASE.kept. In each round the methods take
turns, each in a process of its own; figures are medians over the rounds, and `*_over_ebb` are
medians of the ratios within a round. System calls are counted by strace in runs of two lengths:
their difference is what a batch costs. Needs python3-torch; importing `ebb` must work. Progress
goes to standard error. A method that fails is named and left out of that case; the exit status is
1 then, and 2 for wrong arguments.
"""

import pathlib
import re
import shutil
import statistics
import subprocess
import sys

from chosen import parser_of, read
from rounds import Turns, figures_of

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


def system_calls(case, method, batches):
    command = ["strace", "-f", "-c", "-o", "/dev/stderr",
               *child(case, method, 1, batches, "--bare")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    line = TOTAL.search(done.stderr)
    if done.returncode != 0 or not line:
        return None
    return int(line.group(0).split()[3])


def calls_per_batch(case, method):
    if not shutil.which("strace"):
        return None
    few, many = system_calls(case, method, SHORT), system_calls(case, method, LONG)
    return None if few is None or many is None else (many - few) / (LONG - SHORT)


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


def main():
    chosen = read(parser_of(__doc__, METHODS, BATCHES), METHODS, BATCHES, 3)
    settings = [("", 1, {})] if chosen.quick else [("", 1, {}), (".w2", 2, {}), (".kept", 1, KEEP)]
    good = True
    for suffix, workers, extra in settings:
        for case in chosen.cases:
            tell(case + suffix)
            turns = turns_of(case + suffix, case, workers, extra, chosen)
            good = good and turns.left == chosen.methods
            print_rows(case + suffix, turns.rounds, turns.left)
    for case in () if chosen.quick else chosen.cases:
        tell(f"{case}, system calls")
        for method in chosen.methods:
            calls = calls_per_batch(case, method)
            if calls is None:
                tell(f"{case}, {method}: left out: strace counts nothing here")
            else:
                print(f"loader\t{case}\t{method}\tsyscalls_per_batch\t{calls:.4g}", flush=True)
    return not good


if __name__ == "__main__":
    sys.exit(main())
