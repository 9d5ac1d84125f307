#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""sequence.py PROGRAM [--quick] - packing and padding: ebb, what the bytes cost, and torch.

PROGRAM is ebb-sequence. 64 sequences of 5 to 200 steps: float32 with 64 and with 512 features, and
int64 tokens. Rows `bench TAB case TAB peer TAB metric TAB value`; ns are medians, ratios say how
ebb stands to the other. ebb and torch take turns, on the same lengths; torch uses one thread.
Without torch, its rows are missing.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import time

try:
    import torch
    from torch.nn.utils.rnn import (pack_sequence, pad_packed_sequence, pad_sequence,
                                    unpack_sequence)
except ImportError:
    torch = None

CASES = [("float32", 64), ("float32", 512), ("int64", 0)]
TURNS = 3


def lengths_of_batch():
    source = random.Random(64)
    return [source.randint(5, 200) for _ in range(64)]


def ebb_rows(program, kind, features, rounds, lengths):
    command = [program, kind, str(features), str(rounds), *map(str, lengths)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0: # it has said why
        sys.exit(f"sequence.py: {program} failed ({done.returncode})")
    for line in done.stdout.splitlines():
        _, case, peer, _, value = line.split("\t")
        yield case, peer, float(value)


def median_ns(task, rounds):
    """Of making what the task makes; as with ebb, its end is not in the time."""
    spans = []
    for _ in range(rounds):
        task()
        before = time.perf_counter_ns()
        made = task()
        spans.append(time.perf_counter_ns() - before)
        del made
    return statistics.median(spans)


def torch_rows(kind, features, rounds, lengths):
    if torch is None:
        return
    torch.set_num_threads(1)
    dtype = getattr(torch, kind)
    row = (features,) if features else ()
    batch = [torch.full((length, *row), at + 1, dtype=dtype) for at, length in enumerate(lengths)]
    packed = pack_sequence(batch, enforce_sorted=False)
    tasks = {
        "pack": lambda: pack_sequence(batch, enforce_sorted=False),
        "pad": lambda: pad_packed_sequence(packed),
        "pad_batch_first": lambda: pad_packed_sequence(packed, batch_first=True),
        "pad_list": lambda: pad_sequence(batch),
        "unpack": lambda: unpack_sequence(packed),
        "join": lambda: torch.cat(batch),
    }
    for name, task in tasks.items():
        yield f"{name}_{kind}_{features}", "torch", median_ns(task, rounds)


def measure(program, quick):
    """Medians over the turns: {(case, peer): ns}."""
    found = {}
    lengths = lengths_of_batch()
    for kind, features in CASES:
        rounds = max(5, (20 if quick else 200) // (1 + features // 64))
        for _ in range(TURNS):
            for rows in (ebb_rows(program, kind, features, rounds * 5, lengths),
                         torch_rows(kind, features, rounds, lengths)):
                for case, peer, value in rows:
                    found.setdefault((case, peer), []).append(value)
    return {key: statistics.median(values) for key, values in found.items()}


def floor_of(found, case):
    """The floor of padding is one for both orders and for lists."""
    task, kind, features = case.rsplit("_", 2)
    floor = "pad" if task.startswith("pad") else "pack"
    return found.get((f"{floor}_{kind}_{features}", "floor"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PROGRAM", type=os.path.abspath)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    given = parser.parse_args()
    if not os.path.isfile(given.program) or not os.access(given.program, os.X_OK):
        parser.error(f"{given.program}: no such program")
    return given


def main():
    given = arguments()
    found = measure(given.program, given.quick)
    for (case, peer), value in found.items():
        print(f"sequence\t{case}\t{peer}\tns\t{value:.6g}")
    for (case, peer), value in found.items():
        if peer == "ebb":
            print(f"sequence\t{case}\tebb\tover_floor\t{value / floor_of(found, case):.4g}")
            if (case, "torch") in found:
                ratio = found[case, "torch"] / value
                print(f"sequence\t{case}\tebb\tfaster_than_torch\t{ratio:.4g}")


if __name__ == "__main__":
    main()
