# SPDX-License-Identifier: Apache-2.0
"""Datasets and collate functions as loaders have them, small; and what it means to be equal.

a_u8, a_f32   images of one size, stacked by the default collate
b             a list of 16 images of different sizes, and 16 dicts of 7 small targets: 128 tensors
b2            images stacked to one size, a mask, and 112 targets: 114 tensors
c             token sequences of different lengths, packed
d             a dict of 100 tensors of 8 floats
typed         boxes of a class of their own, named tuples, objects, arrays: things that get lost
"""

import collections
import dataclasses
import pickle
from multiprocessing.reduction import ForkingPickler

import numpy
import torch
from torch.nn.utils import rnn

BATCH = 16
TARGETS = ["boxes", "labels", "image_id", "area", "iscrowd", "orig_size", "size"]


class Boxes(torch.Tensor):
    """As torchvision's typed tensors: a subclass with metadata in its __dict__."""

    @classmethod
    def make(cls, data, **metadata):
        boxes = data.as_subclass(cls)
        boxes.__dict__.update(metadata)
        return boxes


class Marked(torch.Tensor):
    """A subclass with a slot beside its __dict__."""

    __slots__ = ("mark",)


Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Note:
    text: str
    value: object


class Buffered:
    """Pickles as a buffer out of band, in whatever order its array is."""

    def __init__(self, array):
        self.array = array

    def __reduce_ex__(self, protocol):
        return bytes, (pickle.PickleBuffer(self.array),)


class Data(torch.utils.data.Dataset):
    def __init__(self, case, length=96):
        self.case, self.length = case, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        random = torch.Generator().manual_seed(index)
        return getattr(self, "make_" + self.case)(index, random)

    def make_a_u8(self, index, random):
        return torch.randint(0, 256, (3, 48, 48), dtype=torch.uint8, generator=random), index

    def make_a_f32(self, index, random):
        return torch.randn((3, 48, 48), generator=random), index

    def make_b(self, index, random):
        image = torch.randn((3, 32 + index % 17, 40), generator=random)
        count = index % 5
        return image, {"boxes": torch.rand((count, 4), generator=random),
                       "labels": torch.arange(count), "image_id": torch.tensor([index]),
                       "area": torch.rand((count,), generator=random),
                       "iscrowd": torch.zeros(count, dtype=torch.bool),
                       "orig_size": torch.tensor([480, 640]), "size": torch.tensor([32, 40])}

    make_b2 = make_b

    def make_c(self, index, random):
        return torch.randint(0, 30000, (5 + index * 37 % 195,), generator=random)

    def make_d(self, index, random):
        return {f"x{i}": torch.randn((8,), generator=random) for i in range(100)}

    def make_typed(self, index, random):
        boxes = Boxes.make(torch.rand((index % 3, 4), generator=random), format="XYXY",
                           canvas=(480, 640))
        return Pair(boxes, Note(f"number {index}", numpy.arange(index % 7, dtype="f8")))


def stack_images(images):
    """b2's: all at one size, and a mask that says where each is."""
    from ebb import zeros
    height = max(image.shape[1] for image in images)
    stacked = zeros((len(images), 3, height, 40), torch.float32)
    mask = zeros((len(images), height, 40), torch.bool)
    for i, image in enumerate(images):
        stacked[i, :, :image.shape[1]] = image
        mask[i, image.shape[1]:] = True
    return stacked, mask


def pack(samples):
    from ebb import pack_sequence
    return pack_sequence(samples, enforce_sorted=False)


def listed(samples):
    return [sample[0] for sample in samples], [sample[1] for sample in samples]


def masked(samples):
    return stack_images([sample[0] for sample in samples]), [sample[1] for sample in samples]


def as_they_are(samples):
    return samples


INNER = {"a_u8": None, "a_f32": None, "b": listed, "b2": masked, "c": pack, "d": None,
         "typed": as_they_are}
CASES = [case for case in INNER if case != "typed"]


def by_another(samples):
    """Calls a Collate: in a worker that is spawned, one that is made there."""
    from ebb import collate
    return collate(samples)


class Inner(torch.utils.data.IterableDataset):
    """A dataset that has a loader of its own."""

    def __init__(self, collate):
        self.collate = collate

    def __iter__(self):
        for images, labels in torch.utils.data.DataLoader(Data("a_u8", 32), 8,
                                                          collate_fn=self.collate):
            yield images, labels.tolist()


class PickledAlone(torch.utils.data.Dataset):
    """Numbers from 0 to 7, and a collate function that is pickled by a pickler of its own."""

    def __init__(self, collate):
        self.collate = collate

    def __reduce__(self):
        return pickled_alone, (ForkingPickler.dumps(self.collate).tobytes(),)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index


def pickled_alone(collate):
    return PickledAlone(pickle.loads(collate))


def send_in_both(pool, alone):
    assert pool.send([1]).open() == alone.collate.send([1]).open() == [1]


class Mixed(torch.utils.data.Dataset):
    """All cases in one dataset, so that one worker makes batches of each."""

    def __init__(self):
        self.parts = {case: Data(case, 2 * BATCH) for case in INNER}

    def __getitem__(self, place):
        case, index = place
        return case, self.parts[case][index]

    def batches(self):
        return [[(case, i) for i in range(start, start + BATCH)]
                for case in INNER for start in (0, BATCH)]


def mixed(samples):
    from ebb import default_collate
    case = samples[0][0]
    return case, (INNER[case] or default_collate)([sample for _, sample in samples])


def reference(case, samples):
    """The batch as torch alone makes it."""
    if case == "c":
        return rnn.pack_sequence(samples, enforce_sorted=False)
    return (INNER[case] or torch.utils.data.default_collate)(samples)


def bits(tensor):
    flat = tensor.detach().as_subclass(torch.Tensor).contiguous().reshape(-1)
    return (flat.float() if flat.dtype == torch.bfloat16 else flat).numpy().tobytes()


def same(one, two, path="batch"):
    """Raises AssertionError unless both are built alike and hold the same, bit by bit."""
    assert type(one) is type(two), (path, type(one), type(two))
    if isinstance(one, torch.Tensor):
        assert one.dtype == two.dtype and one.shape == two.shape, path
        assert one.stride() == two.stride() or one.numel() < 2, (path, one.stride(), two.stride())
        assert one.requires_grad == two.requires_grad and bits(one) == bits(two), path
        same(one.__dict__, two.__dict__, path)
    elif isinstance(one, numpy.ndarray):
        assert one.dtype == two.dtype and one.shape == two.shape, path
        assert one.tolist() == two.tolist() or one.tobytes() == two.tobytes(), path
    elif isinstance(one, dict):
        assert list(one) == list(two), path
        for key in one:
            same(one[key], two[key], f"{path}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two), path
        for i, (a, b) in enumerate(zip(one, two)):
            same(a, b, f"{path}[{i}]")
    elif dataclasses.is_dataclass(one):
        same(one.__dict__, two.__dict__, path)
    else:
        assert one == two, (path, one, two)
