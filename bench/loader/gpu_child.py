# SPDX-License-Identifier: Apache-2.0
"""gpu_child.py CASE METHOD WORKERS BATCHES - one loader whose batches go to device 0.

Prints one line of JSON. The first WARM batches do not count, nor do the last CHECKED, of which the
sums of some elements of each tensor are taken on the device and compared with those on the host.
"""

import json
import multiprocessing
import os
import sys
import time

import torch
from torch.nn.utils.rnn import PackedSequence

import cases
import meter
from tree import tensors_of

WARM, CHECKED = 16, 16
GPU = torch.device("cuda", 0)


def to_device(tree, non_blocking):
    if isinstance(tree, (torch.Tensor, PackedSequence)):
        return tree.to(GPU, non_blocking=non_blocking)
    if isinstance(tree, dict):
        return {key: to_device(value, non_blocking) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(to_device(value, non_blocking) for value in tree)
    return tree


class Torch:
    kind, pinned = None, False

    def __init__(self, case):
        self.inner, self.guard = case.collate, None

    def collate(self, batch):
        return self.inner(batch, torch)


class TorchPinned(Torch):
    pinned = True


class Ebb:
    kind, pinned = "shared", False

    def __init__(self, case):
        import ebb
        inner = case.collate
        self.collate = ebb.Collate(ebb.Pool(self.kind), lambda batch: inner(batch, ebb))
        self.guard = None


class EbbPinned(Ebb):
    kind = "shared+pinned"

    def __init__(self, case):
        super().__init__(case)
        import ebb
        self.guard = ebb.guard


METHODS = {"torch": Torch, "torch-pinned": TorchPinned, "ebb": Ebb, "ebb-pinned": EbbPinned}


def marks(tree):
    """Few elements of each tensor, as one sum each."""
    return [tensor.reshape(-1)[::max(1, tensor.numel() // 64)].double().sum()
            for tensor in tensors_of(tree)]


def run(loader, method, batches):
    asynchronous = method.pinned or method.guard is not None
    wanted, found, before, began = [], [], None, 0
    for number, batch in enumerate(loader):
        if number == WARM:
            torch.cuda.synchronize()
            pids = [os.getpid(), *[child.pid for child in multiprocessing.active_children()]]
            before, own, began = meter.Reading(pids), meter.cpu_ns(os.getpid()), time.monotonic_ns()
        if batches - number <= CHECKED:
            wanted.append(marks(batch))
        there = to_device(batch, asynchronous)
        if method.guard:
            method.guard(batch)
        del batch
        if batches - number <= CHECKED:
            found.append(marks(there))
        if number == batches - CHECKED - 1:
            torch.cuda.synchronize()
            took = time.monotonic_ns() - began
            after, own = meter.Reading(pids), meter.cpu_ns(os.getpid()) - own
    for one, other in zip(wanted, found):
        if not all(torch.equal(a, b.cpu()) for a, b in zip(one, other)):
            sys.exit("a batch arrived otherwise than it was sent")
    count = batches - CHECKED - WARM
    return {"ms_per_batch": took / 1e6 / count, "trainer_ms_per_batch": own / 1e6 / count,
            "cpu_ms_per_batch": (after.cpu_ns - before.cpu_ns) / 1e6 / count}


def main():
    case_name, method_name, workers, batches = sys.argv[1:5]
    case, workers, batches = cases.all_cases()[case_name], int(workers), int(batches)
    batches = max(batches, 2 * (WARM + CHECKED))
    torch.set_num_threads(1)
    if not torch.cuda.is_available():
        sys.exit("torch has no GPU here")
    torch.zeros(1, device=GPU)
    method = METHODS[method_name](case)
    dataset = cases.Samples(case.make, case.per_batch, batches)
    loader = torch.utils.data.DataLoader(dataset, batch_size=case.per_batch, num_workers=workers,
                                         collate_fn=method.collate, pin_memory=method.pinned)
    print(json.dumps(run(loader, method, batches)))


if __name__ == "__main__":
    main()
