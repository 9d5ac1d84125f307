# SPDX-License-Identifier: Apache-2.0
"""The stock DataLoader with ebb.collate and nothing else; a training loop of a few steps."""

import torch
from torch.utils.data import DataLoader, Dataset

import ebb


class Images(Dataset):
    """Stands for yours: an image and its class."""

    def __len__(self):
        return 256

    def __getitem__(self, index):
        random = torch.Generator().manual_seed(index)
        return torch.randn((3, 32, 32), generator=random), index % 10


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)

    loader = DataLoader(Images(), batch_size=32, num_workers=2, collate_fn=ebb.collate)

    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    stats = ebb.collate.pool.stats
    assert (stats["received"], stats["fallbacks"]) == (8, 0), stats
    plain = DataLoader(Images(), batch_size=32)
    assert all(torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in zip(loader, plain))
    print(f"loss {loss:.2f}, {stats['received']} batches through shared memory")


if __name__ == "__main__":
    main()
