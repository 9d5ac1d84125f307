# SPDX-License-Identifier: Apache-2.0
"""child.py CASE METHOD WORKERS BATCHES [--bare] - one loader, measured from within.

Prints one line of JSON. Two loaders: from the first the trainer takes batches as fast as they come,
and the time of all processes is counted; with the second it waits until AHEAD are ready, takes as
many, and only its own thread's time is: to get a batch, to read it, to drop it. The first WARM
batches of each do not count. With --bare nothing is measured: the batches are taken, for strace
around it.
"""

import gc
import json
import multiprocessing
import os
import statistics
import sys
import time

import torch
import torch.multiprocessing

import cases
import meter
from methods import METHODS
from tree import tensors_of

WARM, AHEAD, WAIT_NS = 8, 4, 20_000_000_000
SMALL = 1024  # elements
TENSORS, ROUNDS = 100, 300
HELD = 4  # batches that are kept when descriptors are counted
PREFETCH = 2  # batches that a worker is ahead of the trainer, where it takes them as they come


def touch(batch):
    """Reads every cache line once, of small tensors every element."""
    for tensor in tensors_of(batch):
        if tensor.numel() > SMALL:
            tensor = tensor.reshape(-1)[::max(1, 64 // tensor.element_size())]
        tensor.sum()


def make_loader(case, method, workers, batches, ahead=PREFETCH):
    dataset = cases.Samples(case.make, case.per_batch, batches)
    return torch.utils.data.DataLoader(dataset, batch_size=case.per_batch, num_workers=workers,
                                       collate_fn=method.collate, persistent_workers=True,
                                       prefetch_factor=ahead)


def begin(loader):
    """(its batches, this process and the workers, which there are from then on)"""
    source = iter(loader)
    workers = [child.pid for child in multiprocessing.active_children()]
    if len(workers) != loader.num_workers:
        raise RuntimeError(f"{len(workers)} child processes, and num_workers is "
                           f"{loader.num_workers}")
    return source, [os.getpid(), *workers]


def run_through(loader, method, batches):
    """CPU and faults of all processes for each batch, from the WARMth on. Both readings are taken
    when the workers are as far ahead as they may be: they have made as many in between as the
    trainer has taken."""
    (source, pids), readings = begin(loader), []
    last = batches - 1 - PREFETCH * loader.num_workers
    for number in range(last + 1):
        message = next(source)
        if number in (WARM, last):
            wait_until_idle(pids[1:])
            readings.append(meter.Reading(pids))
        touch(method.open(message))
        del message
    for _ in source:
        pass
    before, after = readings
    count = last - WARM
    return {"cpu_ms_per_batch": (after.cpu_ns - before.cpu_ns) / 1e6 / count,
            "faults_per_batch": (after.faults - before.faults) / count}


def wait_until_idle(pids):
    """The workers are ahead when none of them runs any more, or waits for a processor, and no
    thread of this process, which hands on what they are to make."""
    began, last = time.monotonic_ns(), None
    while time.monotonic_ns() - began < WAIT_NS:
        time.sleep(0.01)
        now = sum(meter.cpu_ns(pid) for pid in pids)
        if now == last and all(meter.waits(pid) for pid in [os.getpid(), *pids]):
            return
        last = now
    raise TimeoutError(f"workers are not ahead after {WAIT_NS / 1e9:g} s")


def take_at_leisure(loader, method, batches):
    """The trainer's own time for each batch."""
    (source, pids), spent = begin(loader), 0
    for number in range(batches):
        if number % AHEAD == 0:
            wait_until_idle(pids[1:])
        began = time.thread_time_ns()
        batch = method.open(next(source))
        touch(batch)
        del batch
        if number >= WARM:
            spent += time.thread_time_ns() - began
    for _ in source:
        pass
    return {"trainer_ms_per_batch": spent / 1e6 / (batches - WARM)}


def hold_some(loader, method):
    """Descriptors that each batch costs that is kept, in all processes. Those of batches that are
    ready or under way are no part of it: they are as many at both counts."""
    (source, pids), held = begin(loader), []

    def count():
        wait_until_idle(pids[1:])
        return sum(meter.open_files(pid) for pid in pids)

    for _ in pids:  # each worker has sent one, with what it opens for the first
        held.append(method.open(next(source)))
    before = count()
    for _ in range(HELD):
        held.append(method.open(next(source)))
    after = count()
    held.clear()
    for _ in source:
        pass
    return {"fds_per_batch": (after - before) / HELD}


def cross_alone(pool):
    """Packing and opening, for each of many small tensors, in this process alone."""
    batch = {number: torch.full((8,), float(number)) for number in range(TENSORS)}
    packed, opened = [], []
    for _ in range(ROUNDS):
        began = time.thread_time_ns()
        parcel = pool.send(batch)
        sent = time.thread_time_ns()
        arrived = parcel.open()
        opened.append(time.thread_time_ns() - sent)
        packed.append(sent - began)
        del arrived
    return {"pack_us_per_tensor": statistics.median(packed) / 1e3 / TENSORS,
            "open_us_per_tensor": statistics.median(opened) / 1e3 / TENSORS}


def main():
    case_name, method_name, workers, batches = sys.argv[1:5]
    case, workers, batches = cases.all_cases()[case_name], int(workers), int(batches)
    torch.set_num_threads(1)
    method = METHODS[method_name](case)
    torch.multiprocessing.set_sharing_strategy(method.strategy)
    loader = make_loader(case, method, workers, batches)
    if "--bare" in sys.argv:
        for message in loader:
            touch(method.open(message))
        return
    found = run_through(loader, method, batches)
    found.update(hold_some(loader, method))
    del loader
    gc.collect()
    if case_name == "tiny" and hasattr(method, "pool"):
        found.update(cross_alone(method.pool))
    batches = min(batches, WARM + 5 * AHEAD)
    loader = make_loader(case, method, workers, batches, AHEAD)
    found.update(take_at_leisure(loader, method, batches))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
