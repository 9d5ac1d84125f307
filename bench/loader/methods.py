# SPDX-License-Identifier: Apache-2.0
"""methods.py - ways from a worker to the trainer.

    torch-fd, torch-fs   torch's sharing strategies: a segment of shared memory for each tensor
    packed               one shared tensor for all tensors of a batch, and where they are in it
    piped                numpy arrays, pickled through the pipe
    ebb                  one region of a shared pool

Each is a class with collate(batch) for the worker and open(message) for the trainer. `packed` and
`piped` are what one can write in an afternoon, and fair opponents.
"""

import torch

from tree import map_back, map_tensors, tensors_of

ALIGN = 64


class Torch:
    """The batch as it is: torch pickles it and shares the tensors."""

    strategy = "file_descriptor"

    def __init__(self, case):
        self.inner = case.collate

    def collate(self, batch):
        return self.inner(batch, torch)

    def open(self, message):
        return message


class TorchNames(Torch):
    strategy = "file_system"


class Place:
    """Stands for a tensor in a structure: where it lies in the one that is sent."""

    __slots__ = ("at", "bytes", "dtype", "shape")

    def __init__(self, at, tensor):
        self.at, self.bytes = at, tensor.numel() * tensor.element_size()
        self.dtype, self.shape = tensor.dtype, tensor.shape

    def __getstate__(self):
        return self.at, self.bytes, self.dtype, tuple(self.shape)

    def __setstate__(self, state):
        self.at, self.bytes, self.dtype, self.shape = state


class Packed(Torch):
    def collate(self, batch):
        tree = self.inner(batch, torch)
        places, at = [], 0
        for tensor in tensors_of(tree):
            places.append(Place(at, tensor))
            at += -(-places[-1].bytes // ALIGN) * ALIGN
        if len(places) == 1 and isinstance(tree, torch.Tensor):
            return None, tree  # nothing to gain
        storage = torch.UntypedStorage._new_shared(max(at, 1))
        whole = torch.tensor([], dtype=torch.uint8).set_(storage)
        left = iter(places)

        def put(tensor):
            place = next(left)
            part = whole[place.at:place.at + place.bytes].view(tensor.dtype)
            part.view(tensor.shape).copy_(tensor)
            return place

        return map_tensors(put, tree), whole

    def open(self, message):
        tree, whole = message
        if tree is None:
            return whole

        def get(place):
            part = whole[place.at:place.at + place.bytes]
            return part.view(place.dtype).view(place.shape)

        return map_back(get, Place, tree)


class Piped(Torch):
    def collate(self, batch):
        return map_tensors(lambda tensor: tensor.numpy(), self.inner(batch, torch))

    def open(self, message):
        import numpy
        return map_back(torch.from_numpy, numpy.ndarray, message)


class Ebb(Torch):
    """The pool is made before the workers are, so that they have it too."""

    def __init__(self, case):
        import ebb
        self.place, inner = ebb, case.collate
        self.pool = ebb.Pool(kind="shared")
        self.whole = ebb.Collate(self.pool, lambda batch: inner(batch, ebb))

    def collate(self, batch):
        return self.whole(batch)


METHODS = {"torch-fd": Torch, "torch-fs": TorchNames, "packed": Packed, "piped": Piped, "ebb": Ebb}
