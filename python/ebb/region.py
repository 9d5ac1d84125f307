# SPDX-License-Identifier: Apache-2.0
"""Class Region."""

from . import _ebb


class Region(_ebb.Region):
    """Region(pool=None, *, parent=None, name=None, hint=0, limit=None)

    Memory that lives as long as one step: tensors are made in it, and closing it ends them all at
    once. A region has at most one parent; closing that closes it, too. As a context manager it is
    the thread's current region and is closed at the end:

        with ebb.Region() as run, ebb.Region(parent=run) as step:
            loss = step.zeros(())
            step.promote(loss)          # becomes the run's; everything else ends here

    pool    where pages come from; None: the parent's pool, or the default one
    hint    bytes to reserve at once; 0: none yet
    limit   most bytes in live tensors of it and all regions below it; None: no limit

    One thread at a time may use a region and those below it.
    """

    __slots__ = ("__weakref__",)

    def stack(self, tensors):
        """Tensors of one shape and dtype become one with a new first dimension.

        They may be of torch, of numpy, of ebb, or whatever Region.tensor() takes.
        """
        return self._stack(tensors)

    def pad(self, sequences, *, padding=0, batch_first=False, left=False, total_length=None):
        """Sequences [length, ...] become one tensor [T, B, ...], or [B, T, ...].

        As torch.nn.utils.rnn.pad_sequence(), but the padding must be a value that the dtype holds
        exactly. left: it goes in front of the elements. total_length: T, at least the longest
        length; None: just that.
        """
        return self._pad(sequences, padding, batch_first, left, total_length)

    def pack(self, sequences, *, enforce_sorted=False):
        """(data, batch_sizes, sorted_indices, unsorted_indices) of sequences [length, ...].

        As torch.nn.utils.rnn.pack_sequence(); sequences of one length keep their order, and
        none may be empty. The indices are None if enforce_sorted.
        """
        return self._pack(sequences, enforce_sorted)

    def __reduce__(self):
        raise TypeError("a region stays in its process, and is not copied")

    def __repr__(self):
        return f"<ebb.Region, {'open' if self.is_open else 'closed'}>"


Region.__module__ = "ebb"
