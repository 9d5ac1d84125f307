# SPDX-License-Identifier: Apache-2.0
"""Class Tensor."""

import os

from . import _ebb

_copies = None  # (process, pool): copies in pinned memory


def _pool_of_copies():
    """This process's: what a forked child has of its parent's is not pinned."""
    global _copies
    from .pool import Pool
    if _copies is None or _copies[0] != os.getpid() or _copies[1]._is_closed:
        _copies = os.getpid(), Pool("pinned", name="pin_memory")
    return _copies[1]


class Tensor(_ebb.Tensor):
    """Elements in a region: what Region.empty() and its likes return.

    It has a shape, strides (in elements) and a dtype (a name), and hands its bytes on without a
    copy: to torch, to numpy, by DLPack and by the buffer protocol. What was handed on stays valid
    for as long as it is kept. The Tensor itself ends with its region: after that every use raises
    ebb.Error EBB_E_STALE.
    """

    __slots__ = ()

    def torch(self):
        """The same bytes as a torch.Tensor."""
        import torch
        tensor = torch._C._from_dlpack(self._capsule())
        return tensor.view(torch.bool) if self.dtype == "bool" else tensor

    def numpy(self):
        """The same bytes as a numpy.ndarray; imported elements as a read-only copy."""
        import numpy
        return numpy.asarray(memoryview(self))

    def pin_memory(self, device=None):
        """This tensor if its pool is pinned, else a copy in pinned memory."""
        from .region import Region
        pool = self.region.pool
        if pool is not None and "pinned" in pool.kind:
            return self
        return Region(_pool_of_copies(), name="pin_memory").tensor(self, copy=True)

    def to(self, device, non_blocking=False):
        """This tensor if `device` is the cpu, else a torch.Tensor there."""
        if str(device) == "cpu":
            return self
        return self.torch().to(device, non_blocking=non_blocking)

    def __reduce__(self):
        raise TypeError("an ebb.Tensor ends with its region, so it is not pickled or copied: what "
                        "goes into a batch is its torch() or numpy()")

    def __len__(self):
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __repr__(self):
        if not self.is_live:
            return "<ebb.Tensor that ended with its region>"
        return f"<ebb.Tensor {self.dtype} {list(self.shape)}>"


Tensor.__module__ = "ebb"
_ebb.set_tensor_class(Tensor)
