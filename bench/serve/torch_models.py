# SPDX-License-Identifier: Apache-2.0
"""torch_models.py - the models that are trained and served, and batches for them.

Each entry of MODELS makes a model and says how the loss of step `number` is computed; batches
follow from the number alone. Sizes are small: a step is milliseconds, and what it allocates is
like that of larger ones of its kind.
"""

import random

import torch
from torch import nn
from torch.nn import functional

VOCABULARY = 256


def batch_of(number, *shape):
    generator = torch.Generator().manual_seed(number)
    return torch.randn(*shape, generator=generator)


def tokens_of(number, *shape):
    generator = torch.Generator().manual_seed(number)
    return torch.randint(0, VOCABULARY, shape, generator=generator)


class Lstm(nn.Module):
    """The next of 16 sequences' tokens; each step has another length."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 48)
        self.lstm = nn.LSTM(48, 64, batch_first=True)
        self.head = nn.Linear(64, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0])

    def loss(self, number):
        tokens = tokens_of(number, 16, random.Random(number).randint(8, 48) + 1)
        return functional.cross_entropy(self(tokens[:, :-1]).flatten(0, 1),
                                        tokens[:, 1:].flatten())


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, given, made, stride):
        super().__init__()
        self.first = nn.Conv2d(given, made, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(made)
        self.second = nn.Conv2d(made, made, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(made)
        self.around = None
        if stride != 1 or given != made:
            self.around = nn.Sequential(nn.Conv2d(given, made, 1, stride, bias=False),
                                        nn.BatchNorm2d(made))

    def forward(self, images):
        inside = functional.relu(self.first_norm(self.first(images)))
        inside = self.second_norm(self.second(inside))
        return functional.relu(inside + (self.around(images) if self.around else images))


class ResNet18(nn.Module):
    """He and others' network of 18 layers, on 4 pictures of 96 by 96."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64),
                                  nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        widths = [64, 64, 128, 256, 512]
        self.blocks = nn.Sequential(*[
            nn.Sequential(Block(given, made, 1 if given == made else 2), Block(made, made, 1))
            for given, made in zip(widths, widths[1:])])
        self.head = nn.Linear(512, 10)

    def forward(self, images):
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))

    def loss(self, number):
        return functional.cross_entropy(self(batch_of(number, 4, 3, 96, 96)),
                                        torch.arange(4) % 10)


class Transformer(nn.Module):
    """An encoder of two layers, 64 wide, on 8 sequences of 128 tokens."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(64, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)))

    def loss(self, number):
        tokens = tokens_of(number, 8, 129)
        return functional.cross_entropy(self(tokens[:, :-1]).flatten(0, 1),
                                        tokens[:, 1:].flatten())


class ElementWise(nn.Module):
    """A chain of operations on tensors of 8 MB, each of which makes a new one."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2 << 20))

    def forward(self, values):
        for _ in range(2):
            values = torch.relu(values * self.scale + 0.5) - 0.1 * values
        return values

    def loss(self, number):
        return self(torch.full((2 << 20,), 1.0 + number % 7)).square().mean()


class Mlp(nn.Module):
    """Three layers on 64 rows of 64."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
                                    nn.Linear(128, 10))

    def forward(self, rows):
        return self.layers(rows)

    def loss(self, number):
        return functional.cross_entropy(self(batch_of(number, 64, 64)), torch.arange(64) % 10)


MODELS = {"lstm": Lstm, "resnet18": ResNet18, "transformer": Transformer,
          "elementwise": ElementWise, "mlp": Mlp}
