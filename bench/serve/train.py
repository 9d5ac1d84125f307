#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""train.py MODEL PACKAGE WARM - a training loop that measures itself.

Takes WARM steps and prints `ready`. For each line with a number it takes one step, and so many that
count, and prints a line of JSON: processor time and minor page faults for each of them, the most
that was resident, the loss of the last one. One thread.
"""

import itertools
import json
import pathlib
import re
import resource
import sys
import time

import torch

import scopes
import torch_models


def peak_bytes():
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024


def one_step(model, optimizer, number):
    loss = model.loss(number)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.item()


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def main():
    name, package, warm = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch_models.MODELS[name]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scope, numbers = scopes.opener("train", package), itertools.count()

    def take(steps):
        for number in itertools.islice(numbers, steps):
            with scope():
                loss = one_step(model, optimizer, number)
        return loss

    take(warm)
    print("ready", flush=True)
    for line in sys.stdin:
        take(1)
        steps, faults_before, before = int(line), faults(), time.process_time_ns()
        loss = take(steps)
        spent, failed = time.process_time_ns() - before, faults() - faults_before
        print(json.dumps({"cpu_ms": spent / 1e6 / steps, "faults": failed / steps,
                          "peak_bytes": peak_bytes(), "loss": loss}), flush=True)


if __name__ == "__main__":
    main()
