# SPDX-License-Identifier: Apache-2.0
"""Sequences of different lengths, packed by the workers, read by an LSTM."""

import torch
from torch.nn.utils import rnn
from torch.utils.data import DataLoader, Dataset

import ebb


class Sentences(Dataset):
    def __len__(self):
        return 128

    def __getitem__(self, index):
        random = torch.Generator().manual_seed(index)
        length = int(torch.randint(1, 60, (), generator=random))
        return torch.randint(0, 1000, (length,), generator=random), index % 2


def pack(samples):
    """One copy of each token, straight to where the trainer reads it."""
    tokens = ebb.pack_sequence([tokens for tokens, _ in samples], enforce_sorted=False)
    return tokens, torch.tensor([label for _, label in samples])


class Reader(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(1000, 16)
        self.lstm = torch.nn.LSTM(16, 32)
        self.out = torch.nn.Linear(32, 2)

    def forward(self, tokens):
        embedded = tokens._replace(data=self.embedding(tokens.data))
        _, (hidden, _) = self.lstm(embedded)
        return self.out(hidden[-1])


def main():
    torch.manual_seed(0)
    pool = ebb.Pool("shared")
    loader = DataLoader(Sentences(), batch_size=16, num_workers=2,
                        collate_fn=ebb.Collate(pool, pack))
    model = Reader()
    optimiser = torch.optim.Adam(model.parameters())
    for tokens, labels in loader:
        assert type(tokens) is rnn.PackedSequence
        loss = torch.nn.functional.cross_entropy(model(tokens), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    first = rnn.pack_sequence([Sentences()[i][0] for i in range(16)], enforce_sorted=False)
    again = next(iter(loader))[0]
    assert all(torch.equal(ours, torchs) for ours, torchs in zip(again, first))
    print(f"loss {loss:.2f} after {pool.stats['received'] - 1} batches")


if __name__ == "__main__":
    main()
