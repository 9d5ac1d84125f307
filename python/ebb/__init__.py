# SPDX-License-Identifier: Apache-2.0
"""Region memory for ML steps, and whole batches from loader workers to the trainer.

    with ebb.Region() as region:             memory that lives as long as a step
        x = region.zeros((64, 3), "float32")
        x.torch(), x.numpy()                 the same bytes, valid as long as they are kept

    with ebb.step("train", tag=1) as region: the same, planned from the steps before
        ...

    loader = torch.utils.data.DataLoader(dataset, collate_fn=ebb.collate, num_workers=4)

With ebb.collate a worker puts each batch into one region of a shared pool, one message of some 50
bytes crosses, and the trainer gets tensors in place. The region is used again when the last of
them is dropped. Functions of your own that collate make their results there with ebb.empty(),
ebb.stack(), ebb.pack_sequence() and ebb.pad_sequence(); ebb.Collate(pool, inner) takes them.

What is refused raises ebb.Error, with the numbers. help(ebb.Region), help(ebb.Collate) tell more.
"""

from ._ebb import Error, Parcel, _open, is_scope_served, version as __version__
from .current import current, empty, pack_sequence, pad_sequence, stack, zeros
from .default_collate import default_collate
from .guard import guard
from .loader import Collate, _beside
from .pool import Pool
from .region import Region
from .step import step
from .tensor import Tensor

__all__ = ["Collate", "Error", "Parcel", "Pool", "Region", "Tensor", "collate", "current",
           "default_collate", "empty", "from_dlpack", "guard", "is_scope_served", "pack_sequence",
           "pad_sequence", "stack", "step", "zeros"]


def from_dlpack(source, *, copy=None):
    """A Tensor of whatever speaks DLPack, in the current region; every field is checked.

    Elements that can be used as they are are not copied, unless copy is True. Without a current
    region the tensor gets a region of its own, which lives as long as it does.
    """
    return (current() or Region(name="from_dlpack")).tensor(source, copy=copy)


def __getattr__(name):
    # The pool must be there before the workers are: it is made when ebb.collate is first named.
    if name == "collate":
        made = globals()["collate"] = Collate()
        return made
    raise AttributeError(f"module 'ebb' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), "collate"})
