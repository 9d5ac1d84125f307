# SPDX-License-Identifier: Apache-2.0
"""The current region of a thread or task, and what is made in it.

The functions here are for code that cannot pass a region along, above all functions that collate.
Without a current region they make ordinary tensors, so such code works anywhere.
"""

import sys

from ._ebb import Error, current

SMALL = 4096  # bytes up to which a copy is cheaper than to be born in the region


def is_of_torch(dtype):
    """Whether results of that dtype are torch's: else they are numpy's."""
    if dtype is None or isinstance(dtype, str):
        return sys.modules.get("torch") is not None
    return type(dtype).__module__.partition(".")[0] == "torch"


def _torchs_by_name(name):
    """Of the names that Region.empty() takes those that this torch has, "bool_" and all of torch's
    own; most torches have no uint16, uint32 and uint64."""
    import torch
    short = name.removeprefix("torch.")
    found = getattr(torch, "bool" if short == "bool_" else short, None)
    if not isinstance(found, torch.dtype):
        raise TypeError(f"{name!r} is no data type of torch's")
    return found


def _library_dtype(dtype, of_torch):
    if of_torch:
        import torch
        return _torchs_by_name(dtype) if isinstance(dtype, str) else dtype or torch.float32
    import numpy
    return numpy.dtype("float32" if dtype is None else dtype)


def _plain(shape, dtype, of_torch, zeroed):
    if of_torch:
        import torch
        return (torch.zeros if zeroed else torch.empty)(shape, dtype=dtype)
    import numpy
    return (numpy.zeros if zeroed else numpy.empty)(shape, dtype)


def _try(region, make, *arguments):
    """What it makes there. None: a batch that outgrows its region, or elements that ebb has no name
    for, or more dimensions than it has, are made beside it and find their way; a region of the
    user's says what is wrong."""
    try:
        return make(*arguments)
    except (Error, TypeError, ValueError):
        if not region._keeps:
            raise
    return None


def _make(shape, dtype, zeroed):
    of_torch = is_of_torch(dtype)
    dtype = _library_dtype(dtype, of_torch)
    region = current()
    made = region and _try(region, region.zeros if zeroed else region.empty, shape, dtype)
    if made is None:
        return _plain(shape, dtype, of_torch, zeroed)
    return made.torch() if of_torch else made.numpy()


def empty(shape, dtype=None):
    """A torch.Tensor or numpy.ndarray in the current region, contents undefined.

    torch's if the dtype is torch's, numpy's if it is numpy's; if it is None (float32) or a name,
    torch's if torch is loaded. Without a current region: an ordinary one.
    """
    return _make(shape, dtype, False)


def zeros(shape, dtype=None):
    """As ebb.empty(), all zero."""
    return _make(shape, dtype, True)


def _room(parts):
    """What they are stacked in; None: elements that ebb has no name for, or dimensions."""
    try:
        return empty((len(parts), *parts[0].shape), parts[0].dtype)
    except (TypeError, ValueError):
        return None


def _stack_torch(tensors):
    import torch
    first = tensors[0]
    plain = all(type(tensor) is torch.Tensor and tensor.dtype == first.dtype
                and tensor.layout == torch.strided and tensor.is_cpu and not tensor.requires_grad
                and not tensor.is_quantized
                for tensor in tensors)
    in_rows = first.is_contiguous()
    if not plain or not (in_rows or torch.utils.data.get_worker_info()):
        return torch.stack(tensors, 0)  # which may be channels_last; in workers torch's is not
    if in_rows and len(tensors) * first.numel() * first.element_size() <= SMALL:
        return torch.stack(tensors, 0)
    return torch.stack(tensors, 0, out=_room(tensors))


def _is_in_rows(array):
    """Whether numpy makes a copy of it row-major, be there gaps between its rows or not."""
    if array.flags.c_contiguous:
        return True
    strides = [abs(stride) for stride, length in zip(array.strides, array.shape) if length != 1]
    return strides == sorted(strides, reverse=True)


def _stack_numpy(arrays):
    import numpy
    first = arrays[0]
    plain = all(type(array) is numpy.ndarray and array.dtype == first.dtype
                and array.shape == first.shape and _is_in_rows(array) for array in arrays)
    plain = plain and first.dtype.kind in "fiubc" and first.dtype.isnative
    if not plain or len(arrays) * first.nbytes <= SMALL:
        return numpy.stack(arrays)
    return numpy.stack(arrays, out=_room(arrays))


def stack(tensors):
    """Tensors of torch, or arrays of numpy, as one with a new first dimension.

    The result is made in the current region if there is one, but for small ones (up to 4 KiB) and
    those of unlike or unusual parts, such as typed tensors, or of parts that are not row-major:
    arrays, and outside of workers tensors. Strides and errors are torch's and numpy's.
    """
    tensors = list(tensors)
    if current() is None or not tensors:
        if tensors and not is_of_torch(type(tensors[0])) and not _is_tensor(tensors[0]):
            import numpy
            return numpy.stack(tensors)
        import torch
        return torch.stack(tensors, 0)
    return _stack_torch(tensors) if _is_tensor(tensors[0]) else _stack_numpy(tensors)


def _is_tensor(value):
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)  # a thread may be importing torch
    return tensor is not None and isinstance(value, tensor)


def _in_region(sequences, make, otherwise):
    """make(region, sequences); without a region, or room or use for it, otherwise(sequences)."""
    import torch
    region = current()
    if region is None:
        return otherwise(sequences)
    sequences = list(sequences)  # it may be gone through twice
    if any(isinstance(sequence, torch.Tensor)
           and (type(sequence) is not torch.Tensor or sequence.requires_grad)
           for sequence in sequences):
        return otherwise(sequences)
    made = _try(region, make, region, sequences)
    return otherwise(sequences) if made is None else made


def pack_sequence(sequences, enforce_sorted=True):
    """torch.nn.utils.rnn.pack_sequence(), one copy, made in the current region.

    Sequences that require grad, and typed ones, are torch's to pack.
    """
    from torch.nn.utils import rnn

    def make(region, sequences):
        parts = region.pack(sequences, enforce_sorted=enforce_sorted)
        packed = rnn.PackedSequence(*(part if part is None else part.torch() for part in parts))
        return packed if packed.data.numel() else None  # torch refuses what has no elements

    return _in_region(sequences, make, lambda them: rnn.pack_sequence(them, enforce_sorted))


def pad_sequence(sequences, batch_first=False, padding_value=0.0):
    """torch.nn.utils.rnn.pad_sequence(), made in the current region.

    In a region of the user's the padding must be a value that the dtype holds exactly: 0.1 is no
    float32. Elsewhere, and under ebb.Collate, it is rounded as torch does. Sequences that require
    grad, and typed ones, are torch's to pad.
    """
    from torch.nn.utils import rnn
    return _in_region(
        sequences,
        lambda region, them: region.pad(them, padding=padding_value,
                                        batch_first=batch_first).torch(),
        lambda them: rnn.pad_sequence(them, batch_first, padding_value))
