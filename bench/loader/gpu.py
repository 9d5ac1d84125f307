#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpu.py [--quick] [--methods LIST] [--cases LIST] [--workers N] [--rounds N] - batches to a GPU.

As loader.py, with a torch that has a GPU; whatever python3 runs this is used. Four ways: torch's
loader and copies that wait (`torch`), the same with `pin_memory=True` and copies that do not
(`torch-pinned`), ebb's shared pool (`ebb`), and one whose slots are registered with the driver,
with copies that do not wait and a guard behind them (`ebb-pinned`). In each round they take turns,
each in a process of its own; rows `gpu TAB case TAB method TAB metric TAB value` with medians over
the rounds, and the median of the ratios to ebb-pinned within a round. Exit status: as loader.py's.

    ms_per_batch          from batch to batch, as fast as they come, each copied to the device
    cpu_ms_per_batch      processor time of all processes
    trainer_ms_per_batch  processor time of the trainer, with torch's thread that pins
"""

import pathlib
import statistics
import sys

from chosen import parser_of, read
from rounds import Turns, figures_of

HERE = pathlib.Path(__file__).resolve().parent
METHODS = ["torch", "torch-pinned", "ebb", "ebb-pinned"]
BATCHES = {"image_u8": 300, "image_f32": 120, "detection_list": 160, "detection_dict": 160,
           "packed": 1000, "tiny": 800}
METRICS = ("ms_per_batch", "cpu_ms_per_batch", "trainer_ms_per_batch")


def arguments():
    parser = parser_of(__doc__, METHODS, BATCHES)
    parser.add_argument("--workers", type=int, default=4)
    chosen = read(parser, METHODS, BATCHES, 5)
    if chosen.workers < 1:
        parser.error(f"--workers: {chosen.workers} is below 1")
    return chosen


def child(case, method, workers, batches):
    return [sys.executable, str(HERE / "gpu_child.py"), case, method, str(workers), str(batches)]


def print_rows(case, rounds, methods):
    for method in methods:
        for metric in METRICS:
            value = statistics.median(figures[method][metric] for figures in rounds)
            print(f"gpu\t{case}\t{method}\t{metric}\t{value:.5g}", flush=True)
        for metric in METRICS if "ebb-pinned" in methods and method != "ebb-pinned" else ():
            ratio = statistics.median(figures[method][metric] / figures["ebb-pinned"][metric]
                                      for figures in rounds)
            name = "time" if metric == "ms_per_batch" else metric.split("_", maxsplit=1)[0]
            print(f"gpu\t{case}\t{method}\t{name}_over_ebb_pinned\t{ratio:.4g}", flush=True)


def main():
    chosen, good = arguments(), True
    for case in chosen.cases:
        print(f"gpu: {case}", file=sys.stderr, flush=True)
        batches = BATCHES[case] // (4 if chosen.quick else 1)
        turns = Turns(f"gpu: {case}", chosen.methods, chosen.rounds, lambda method: figures_of(
            child(case, method, chosen.workers, batches)))
        good = good and turns.left == chosen.methods
        print_rows(case, turns.rounds, turns.left)
    return not good


if __name__ == "__main__":
    sys.exit(main())
