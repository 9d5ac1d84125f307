#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpu.py [--quick] [--methods LIST] [--cases LIST] [--workers N] [--rounds N] - batches to a GPU.

As loader.py, with a torch that has a GPU; whatever python3 runs this is used. Four ways: torch's
loader and copies that wait (`torch`), the same with `pin_memory=True` and copies that do not
(`torch-pinned`), ebb's shared pool (`ebb`), and one whose slots are registered with the driver,
with copies that do not wait and a guard behind them (`ebb-pinned`). In each round they take turns,
each in a process of its own; rows `gpu TAB case TAB method TAB metric TAB value` with medians over
the rounds, and the median of the ratios to ebb-pinned within a round.

    ms_per_batch          from batch to batch, as fast as they come, each copied to the device
    cpu_ms_per_batch      processor time of all processes
    trainer_ms_per_batch  processor time of the trainer, with torch's thread that pins
"""

import json
import pathlib
import statistics
import subprocess
import sys

from chosen import parser_of, read

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


def measure(case, method, workers, batches):
    command = [sys.executable, str(HERE / "gpu_child.py"), case, method, str(workers), str(batches)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"gpu: {case}, {method}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


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
    chosen = arguments()
    for case in chosen.cases:
        print(f"gpu: {case}", file=sys.stderr, flush=True)
        batches, rounds = BATCHES[case] // (4 if chosen.quick else 1), []
        for number in range(chosen.rounds):
            start = number % len(chosen.methods)
            order = chosen.methods[start:] + chosen.methods[:start]
            rounds.append({method: measure(case, method, chosen.workers, batches)
                           for method in order})
        print_rows(case, rounds, chosen.methods)


if __name__ == "__main__":
    main()
