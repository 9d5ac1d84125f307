# SPDX-License-Identifier: Apache-2.0
"""numpy alone: processes of multiprocessing send whole batches of arrays through a pool."""

import multiprocessing

import numpy

import ebb


def produce(pool, queue):
    for number in range(10):
        with ebb.Region(pool) as region:  # one of its own: scratch
            scratch = region.zeros((1000,)).numpy()
            scratch += number
            total = float(scratch.sum())
        queue.put(pool.send({"number": number, "total": total,
                             "image": numpy.full((3, 480, 640), number, "uint8")}))


def main():
    pool, queue = ebb.Pool("shared"), multiprocessing.Queue()
    worker = multiprocessing.Process(target=produce, args=(pool, queue))
    worker.start()
    for number in range(10):
        batch = queue.get()
        assert batch["total"] == 1000 * number
        assert (batch["image"] == number).all()
    worker.join()
    print(f"{pool.stats['received']} batches of {batch['image'].nbytes >> 10} KiB")


if __name__ == "__main__":
    main()
