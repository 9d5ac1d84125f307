# SPDX-License-Identifier: Apache-2.0
"""cases.py - what loaders load: six batches, from one large tensor to a hundred tiny ones.

A case has a dataset, whose samples are new tensors each time as a decoder's would be, and a collate
function that gets a module of places to put results in: torch itself, or what allocates in ebb's
region (`zeros`, `stack`). All contents follow from the number of the batch, so that what arrives
can be compared.
"""

import random

import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import default_collate

IMAGES, DETECTIONS, SEQUENCES, TINY = 64, 16, 64, 100


class Samples(torch.utils.data.Dataset):
    """`per_batch * batches` samples that `make(number)` makes."""

    def __init__(self, make, per_batch, batches):
        self.make, self.length = make, per_batch * batches

    def __len__(self):
        return self.length

    def __getitem__(self, number):
        return self.make(number)


class Images:
    """One picture, decoded before: what collation costs is not hidden behind a decoder."""

    def __init__(self, dtype):
        self.image = torch.arange(3 * 224 * 224).remainder(251).to(dtype).view(3, 224, 224)

    def __call__(self, _):
        return self.image


def targets_of(source, boxes):
    return {"boxes": torch.full((boxes, 4), source.random()),
            "labels": torch.randint(0, 91, (boxes,)),
            "area": torch.full((boxes,), source.random()),
            "iscrowd": torch.zeros(boxes, dtype=torch.int64),
            "image_id": torch.tensor([source.randrange(1000)]),
            "orig_size": torch.tensor([480, 640]),
            "size": torch.tensor([560, 560])}


def detection(number):
    source = random.Random(number)
    height, width = source.randrange(180, 290), source.randrange(180, 290)
    image = torch.full((3, height, width), float(number % 251))
    return image, targets_of(source, source.randrange(1, 20))


def square_detection(number):
    source = random.Random(number)
    return torch.full((3, 560, 560), float(number % 251)), targets_of(source, 7)


def tokens(number):
    return torch.full((random.Random(number).randrange(5, 201),), number)


def features(number):
    return {f"feature{at}": torch.full((8,), float(number + at)) for at in range(TINY)}


def collate_default(batch, place):
    if place is torch:
        return default_collate(batch)
    return place.stack(batch)


def collate_list(batch, _):
    images, targets = zip(*batch)
    return list(images), list(targets)


def collate_nested(batch, place):
    """As DETR's: images in one tensor, a mask of what is padding, the targets as they are."""
    images, targets = zip(*batch)
    stacked = place.stack(images)
    mask = place.zeros((len(images), *images[0].shape[1:]), dtype=torch.bool)
    return stacked, mask, list(targets)


def collate_packed(batch, _):
    return pack_sequence(batch, enforce_sorted=False)


def collate_one(batch, _):
    return batch[0]


class Case:
    """make: number -> sample; per_batch samples; collate(batch, place); batches in one run."""

    def __init__(self, make, per_batch, collate, batches):
        self.make, self.per_batch, self.collate, self.batches = make, per_batch, collate, batches


def all_cases():
    return {
        "image_u8": Case(Images(torch.uint8), IMAGES, collate_default, 60),
        "image_f32": Case(Images(torch.float32), IMAGES, collate_default, 24),
        "detection_list": Case(detection, DETECTIONS, collate_list, 30),
        "detection_dict": Case(square_detection, DETECTIONS, collate_nested, 12),
        "packed": Case(tokens, SEQUENCES, collate_packed, 200),
        "tiny": Case(features, 1, collate_one, 60),
    }
