# SPDX-License-Identifier: Apache-2.0
"""Two ranks on one machine train one model with torch.distributed (gloo), each with its own pool.

On several machines nothing changes here: the launcher starts the ranks and torch.distributed
connects them; a pool is of one machine, and of one rank.
"""

import os
import tempfile

import torch
import torch.distributed as distributed
from torch.utils.data import DataLoader, DistributedSampler

import ebb
from images import Images

RANKS = 2


def train(rank, store):
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                                   world_size=RANKS)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    pool = ebb.Pool("shared", name=f"rank {rank}")
    data = Images()
    loader = DataLoader(data, batch_size=16, num_workers=1, collate_fn=ebb.Collate(pool),
                        sampler=DistributedSampler(data))
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (pool.stats["received"], pool.stats["fallbacks"]) == (8, 0), pool.stats

    weights = model.module[1].weight.detach()
    everyones = [torch.empty_like(weights) for _ in range(RANKS)]
    distributed.all_gather(everyones, weights)
    assert torch.equal(everyones[0], everyones[1])
    distributed.destroy_process_group()


def main():
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (os.path.join(folder, "store"),), RANKS)
    print(f"{RANKS} ranks agree")


if __name__ == "__main__":
    main()
