# SPDX-License-Identifier: Apache-2.0
"""default_collate(): torch's structure, stacked straight into the current region."""

import collections.abc
import sys

from ._ebb import current
from .current import stack


def _is_torchs_to_share(tensor):
    """Whether torch makes shared memory like it. Others are stacked as outside of workers."""
    import torch
    return (tensor.layout == torch.strided and tensor.is_cpu
            and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg()))


def _stack_tensors(batch, *, collate_fn_map=None):
    """In workers torch stacks into row-major elements of the first sample's dtype, or raises."""
    import torch
    from torch.utils.data._utils import collate as torchs
    in_worker = torch.utils.data.get_worker_info() is not None
    if in_worker and current() is None and _is_torchs_to_share(batch[0]):
        return torchs.collate_tensor_fn(batch)
    made = stack(batch)
    if made.dtype == batch[0].dtype or not in_worker:
        return made
    return torch.stack(batch, 0, out=batch[0].new_empty(made.shape))


def _torch_collate(batch):
    import torch
    from torch.utils.data._utils import collate as torchs
    functions = dict(torchs.default_collate_fn_map)  # as of now: programs put types of theirs there
    if functions.get(torch.Tensor) is torchs.collate_tensor_fn:
        functions[torch.Tensor] = _stack_tensors
    return torchs.collate(batch, collate_fn_map=functions)


def _remake(cls, values, otherwise):
    try:
        return cls(values)
    except TypeError:
        return otherwise(values)


def _numbers(batch):
    """An array of them. numpy alone may make it of text, of objects, or of floats nearby."""
    import numpy
    made = numpy.asarray(batch)
    integers = (int, numpy.integer, numpy.bool_)  # as which numpy counts durations, too
    if made.dtype.kind not in "biu" and all(
            isinstance(number, integers) and not isinstance(number, numpy.timedelta64)
            for number in batch):
        made = numpy.asarray([int(number) for number in batch])  # of int64 and uint64: by values
        if made.dtype.kind not in "iu":
            raise OverflowError("default_collate: integers that no dtype holds together")
    if made.dtype.kind not in "biufc":
        raise TypeError("default_collate: numbers, and others that are none, in one batch")
    return made


def _numpy_collate(batch):
    import numpy
    first = batch[0]
    if isinstance(first, numpy.ndarray):
        return stack(batch)
    if isinstance(first, (bool, int, float, complex, numpy.number, numpy.bool_)):
        return _numbers(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        parts = {key: _numpy_collate([sample[key] for sample in batch]) for key in first}
        return _remake(type(first), parts, dict)
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [_numpy_collate(list(part)) for part in zip(*batch)]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return parts if isinstance(first, tuple) else _remake(type(first), parts, list)
    raise TypeError("default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
                    f"lists; found {type(first)}")


def default_collate(batch):
    """What torch.utils.data.default_collate() returns, made in the current region.

    Where torch is not loaded, the same structure of numpy's arrays.
    """
    try:
        return (_torch_collate if sys.modules.get("torch") else _numpy_collate)(batch)
    except Exception as error:
        if not isinstance(batch, list):
            error.add_note(f"ebb.default_collate() takes a list of samples, and got {type(batch)}. "
                           "A DataLoader with batch_size=None hands over one sample: give it "
                           "collate_fn=ebb.Collate(inner=torch.utils.data.default_convert)")
        elif not batch:
            error.add_note("ebb.default_collate() got a list of no samples")
        raise


default_collate.__module__ = "ebb"
