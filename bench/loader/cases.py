# SPDX-License-Identifier: Apache-2.0
"""cases.py - what loaders load: six batches, from one large tensor to a hundred tiny ones.

A case has a dataset and a collate function, which gets a module to make its results with: torch
itself, or what makes them in ebb's region (`zeros`, `stack`, `pack_sequence`). Decoding is not what
is measured: samples that collation copies are made before. Those that are sent as they are (the
pictures of detection_list, all small tensors) are new ones each time, as a decoder's would be.
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
    """One picture, decoded before."""

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


class SquareDetections:
    def __init__(self):
        self.image = torch.arange(3 * 560 * 560).float().view(3, 560, 560)

    def __call__(self, number):
        return self.image, targets_of(random.Random(number), 7)


class Tokens:
    """int64, of 5 to 200 steps."""

    def __init__(self):
        source = random.Random(1)
        self.kept = [torch.full((source.randrange(5, 201),), at) for at in range(8 * SEQUENCES)]

    def __call__(self, number):
        return self.kept[number % len(self.kept)]


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


def collate_packed(batch, place):
    pack = pack_sequence if place is torch else place.pack_sequence
    return pack(batch, enforce_sorted=False)


def collate_one(batch, _):
    return batch[0]


class Case:
    """make: number -> sample; per_batch samples; collate(batch, place)."""

    def __init__(self, make, per_batch, collate):
        self.make, self.per_batch, self.collate = make, per_batch, collate


def all_cases():
    return {
        "image_u8": Case(Images(torch.uint8), IMAGES, collate_default),
        "image_f32": Case(Images(torch.float32), IMAGES, collate_default),
        "detection_list": Case(detection, DETECTIONS, collate_list),
        "detection_dict": Case(SquareDetections(), DETECTIONS, collate_nested),
        "packed": Case(Tokens(), SEQUENCES, collate_packed),
        "tiny": Case(features, 1, collate_one),
    }
