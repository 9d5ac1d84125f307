# SPDX-License-Identifier: Apache-2.0
"""Class Tensor."""

import math
import os

from . import _ebb

_copies = None  # (process, forks, pool): copies in pinned memory


def _pool_of_copies():
    """This process's: what a forked child has of its parent's is not pinned."""
    global _copies
    from .pool import Pool
    here = os.getpid(), _ebb.forks()
    if _copies is None or _copies[:2] != here or _copies[2]._is_closed:
        _copies = *here, Pool("pinned", name="pin_memory")
    return _copies[2]


def _torchs_of(lender):
    """Another torch.Tensor of the same elements. None: they are read-only, as none of torch is."""
    import torch
    if type(lender) is torch.Tensor:
        return lender.detach()
    if isinstance(lender, torch.Tensor):
        with torch._C.DisableTorchFunction():  # a subclass would make one of its own
            return lender.as_subclass(torch.Tensor)
    if not lender.flags.writeable:
        return None
    # Of a dimension of size 1 numpy may have strides that torch refuses.
    return torch.from_numpy(lender.squeeze()).view(lender.shape)


def _with_torchs(value):
    """An argument of a function of torch's, with a torch.Tensor for each Tensor."""
    if isinstance(value, Tensor):
        return value.torch()
    if type(value) in (list, tuple):
        return type(value)(map(_with_torchs, value))
    return value


def _numpys_of(lender):
    """Another numpy.ndarray of the same elements."""
    import numpy
    return lender.view() if isinstance(lender, numpy.ndarray) else _torchs_of(lender).numpy()


class Tensor(_ebb.Tensor):
    """Elements in a region: what Region.empty() and its likes return.

    It has a shape, strides (in elements) and a dtype (a name), and hands its bytes on without a
    copy: to torch, to numpy, by DLPack and by the buffer protocol. What was handed on stays valid
    for as long as it is kept. Region.promote() copies what is kept, or small: the Tensor has the
    copy then, and what was handed on before has the old bytes. The Tensor itself ends with its
    region: after that every use raises ebb.Error EBB_E_STALE.

    Imported elements are handed on as their owner's. Of a torch.Tensor or numpy.ndarray torch()
    and numpy() make another one of the same bytes; for torch() elements of a read-only array are
    copied. Of others they make a copy, which for numpy() is read-only, as DLPack and the buffer
    protocol do of all. If torch frees the elements, as it does when their storage is resized or
    moved to shared memory, every use of them raises ebb.Error EBB_E_RELEASED. That is so for what
    was taken of a torch.Tensor, or of an array that its numpy() made. By a capsule, another
    object's __dlpack__() or a buffer nobody can see whose the elements are: copy=True, where
    torch may free them.

    len() is the first size. A tensor of one element is as true as that, and a number: item(),
    int(), float(), complex(). Of others there is no truth and no number: ValueError. What
    is taken by an index is numpy()'s, or of bfloat16 torch()'s. A Tensor does not calculate, but
    functions of torch and numpy take it for what torch() and numpy() give.

    Those of torch that make tensors are no such functions: torch.as_tensor() may copy the elements,
    one by one, and torch.asarray() takes the bytes of whatever speaks the buffer protocol for
    float32 in one dimension.
    """

    __slots__ = ()

    def torch(self):
        """The same bytes as a torch.Tensor; of imported elements see the class."""
        import torch
        lender = self._lender()
        shared = None if lender is None else _torchs_of(lender)
        if shared is not None:
            return shared
        tensor = torch._C._from_dlpack(self._capsule())
        return tensor.view(torch.bool) if self.dtype == "bool" else tensor

    def numpy(self):
        """The same bytes as a numpy.ndarray; of imported elements see the class."""
        import numpy
        lender = self._lender()
        if lender is None or self.dtype == "bfloat16":
            return numpy.asarray(memoryview(self))
        return _numpys_of(lender)

    def __array__(self, dtype=None, copy=None):
        """numpy()'s, for numpy, which asks when the buffer protocol said no: so it says why."""
        import numpy
        array = self.numpy()
        is_other = dtype is not None and array.dtype != dtype
        if is_other and copy is False:
            raise ValueError(f"{array.dtype} as {numpy.dtype(dtype)} needs a copy")
        return numpy.array(array, dtype) if is_other or copy else array

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        keywords = {name: _with_torchs(value) for name, value in (keywords or {}).items()}
        return function(*_with_torchs(tuple(arguments)), **keywords)

    def pin_memory(self, device=None):
        """This tensor if its pool is pinned, else a copy in pinned memory."""
        from .region import Region
        pool = self.region.pool
        if pool is not None and "pinned" in pool.kind:
            return self
        return Region(_pool_of_copies(), name="pin_memory").tensor(self, copy=True)

    def to(self, device, non_blocking=False):
        """This tensor if `device` is the cpu, else a torch.Tensor there."""
        if str(device).partition(":")[0] == "cpu":
            return self
        return self.torch().to(device, non_blocking=non_blocking)

    def __reduce__(self):
        raise TypeError("an ebb.Tensor ends with its region, so it is not pickled or copied: what "
                        "goes into a batch is its torch() or numpy()")

    def __len__(self):
        if not self.shape:
            raise TypeError("an ebb.Tensor of no dimensions has no length: item() is its number, "
                            "torch() and numpy() are of the same bytes")
        return self.shape[0]

    def __bool__(self):
        """Whether its one element is not zero."""
        if math.prod(self.shape) != 1:
            raise ValueError(f"the truth of a tensor of shape {self.shape} is ambiguous: it has "
                             "not just one element")
        return bool(self.item())

    def item(self):
        """Its one element as a number of Python."""
        if math.prod(self.shape) != 1:
            raise ValueError(f"a tensor of shape {self.shape} is no number: it has not just one "
                             "element")
        return self._as_array().item()

    # Without these, int() and float() would read the bytes as text.
    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __complex__(self):
        return complex(self.item())

    def _as_array(self):
        return self.torch() if self.dtype == "bfloat16" else self.numpy()

    def __getitem__(self, key):
        """numpy()'s, or of bfloat16 torch()'s: a view of the same bytes, or a number."""
        return self._as_array()[key]

    def __iter__(self):
        return iter(self._as_array())

    def __repr__(self):
        if not self.is_live:
            return "<ebb.Tensor that ended with its region>"
        return f"<ebb.Tensor {self.dtype} {list(self.shape)}>"


Tensor.__module__ = "ebb"
_ebb.set_tensor_class(Tensor)
