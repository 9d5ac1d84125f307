#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""price.py EBB - what recording costs a training step of torch, in CPU time.

EBB is the tool, build/tools/bench/tool/ebb. Each model is trained in processes of their own, with
and without the recorder in turn; a figure is the median of the rounds. CPU time of the process, all
threads, over the steps after the first twenty.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS, WARM = 7, 20
STEPS = {"mlp": 600, "lstm": 80, "convolution": 40, "transformer": 60}


def model_of(name, torch):
    """(model, input, targets)"""
    nn = torch.nn
    if name == "mlp":
        return (nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
                              nn.Linear(128, 10)), torch.randn(32, 64), 32)
    if name == "lstm":
        class Last(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(32, 64, batch_first=True)
                self.out = nn.Linear(64, 10)

            def forward(self, x):
                return self.out(self.lstm(x)[0][:, -1])

        return Last(), torch.randn(16, 24, 32), 16
    if name == "convolution":
        layers = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                  nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                  nn.Flatten(), nn.Linear(32 * 64, 10)]
        return nn.Sequential(*layers), torch.randn(16, 3, 32, 32), 16
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return (nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(64 * 32, 10)),
            torch.randn(16, 32, 64), 16)


def train(name):
    import torch  # only in the child
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, given, rows = model_of(name, torch)
    wanted = torch.randint(0, 10, (rows,))
    optimizer = torch.optim.Adam(model.parameters())
    loss_of = torch.nn.CrossEntropyLoss()
    for step in range(WARM + STEPS[name]):
        if step == WARM:
            begin = time.process_time()
        optimizer.zero_grad()
        loss = loss_of(model(given), wanted)
        loss.backward()
        optimizer.step()
    print((time.process_time() - begin) / STEPS[name] * 1e3)


def run(command):
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(tool, name, folder):
    """Medians of both, in ms a step; and megabytes of the trace."""
    trace = pathlib.Path(folder) / f"{name}.trace.gz"
    own = ["/usr/bin/python3", os.path.abspath(__file__), "--train", name, tool]
    alone, recorded = [], []
    for _ in range(ROUNDS):
        alone.append(run(own))
        recorded.append(run([tool, "record", "-q", "-o", str(trace), "--"] + own))
    ratios = [after / before for before, after in zip(alone, recorded)]
    return (statistics.median(alone), statistics.median(recorded), statistics.median(ratios),
            trace.stat().st_size / 1e6)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("tool", help="the tool ebb")
    parser.add_argument("--train", choices=list(STEPS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.train:
        train(given.train)
        return 0
    print("| model | alone, ms a step | recorded | ratio | trace, MB |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in STEPS:
            alone, recorded, ratio, size = measure(given.tool, name, folder)
            print(f"| {name} | {alone:.2f} | {recorded:.2f} | {ratio:.2f} | {size:.1f} |",
                  flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
