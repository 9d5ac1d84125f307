# SPDX-License-Identifier: Apache-2.0
"""tree.py - walks over the structures that batches are made of."""

import torch
from torch.nn.utils.rnn import PackedSequence


class PackedParts(tuple):
    """A packed sequence whose parts are something else than tensors."""


def map_tensors(change, tree):
    """The same structure with change(tensor), whatever that is, for each tensor."""
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if isinstance(tree, PackedSequence):
        return PackedParts(None if part is None else change(part) for part in tree)
    if isinstance(tree, dict):
        return {key: map_tensors(change, value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(map_tensors(change, value) for value in tree)
    return tree


def map_back(change, kind, tree):
    """The way back: change(leaf), which gives a tensor, for each leaf of the kind."""
    if isinstance(tree, kind):
        return change(tree)
    if isinstance(tree, PackedParts):
        return PackedSequence(*[None if part is None else change(part) for part in tree])
    if isinstance(tree, dict):
        return {key: map_back(change, kind, value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(map_back(change, kind, value) for value in tree)
    return tree


def tensors_of(tree):
    found = []
    map_tensors(found.append, tree)
    return found
