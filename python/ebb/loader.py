# SPDX-License-Identifier: Apache-2.0
"""Batches cross from loader workers to the trainer: Collate, and the Parcel that it returns.

    worker   inner(samples), in a region of a shared pool -> Writer -> Parcel
    queue    torch's own: the Parcel pickles to a call of ebb._open with some 20 bytes
    trainer  ebb._open() -> the batch, whose tensors hold the region

A handler of signals may raise between any two bytecodes. So what is claimed has an owner at each of
them that gives it back when it goes: see parcel.c.
"""

import contextlib
import functools
import gc
import io
import multiprocessing
import os
import pickle
import resource
import sys
import warnings
from multiprocessing.reduction import ForkingPickler

from . import _ebb, delivery, structure
from ._ebb import Error, Parcel
from .default_collate import default_collate
from .pool import Pool, shared_pools
from .region import Region


def _part(place):
    """Stands in a stream for what is beside it; there it is called as _Unpickler finds it."""
    raise pickle.UnpicklingError(f"part {place} of a batch is not in its stream")


class _Pickler(ForkingPickler):
    """What `is_apart` is not in the stream, but in `parts`, once. Numbers, strings and the like are
    not asked about: there may be many."""

    def __init__(self, stream, is_apart, *how):
        super().__init__(stream, *how)
        self.is_apart, self.parts = is_apart, []

    def reducer_override(self, value):
        if not self.is_apart(value):
            return NotImplemented
        self.parts.append(value)
        return _part, (len(self.parts) - 1,)


class _Unpickler(pickle.Unpickler):
    def __init__(self, message, parts, buffers=()):
        super().__init__(io.BytesIO(message), buffers=buffers)
        self.parts = parts

    def find_class(self, module, name):
        found = super().find_class(module, name)
        return self.parts.__getitem__ if found is _part else found


def _is_parcel(value):
    return type(value) is Parcel


def _take_apart(batch, is_apart=_is_parcel, *how):
    """(stream, parts): parcels stay outside, where they are as good as they were until somebody
    opens or sends them."""
    stream = io.BytesIO()
    pickler = _Pickler(stream, is_apart, *how)
    pickler.dump(batch)
    for parcel in filter(_is_parcel, pickler.parts):
        parcel._check()  # last: an object of the batch may have opened one
    return stream.getvalue(), pickler.parts


class _Beside:
    """A batch that goes torch's own way, and is counted where it arrives; for who collates by hand
    in a worker it opens as a Parcel does. `key`: the pool's; None: the trainer has no such pool.
    It is pickled at once, as the thread that sends it would: that would only print what is wrong
    with it, and the loader wait for ever. Parcels inside go when it does."""

    __slots__ = ("key", "message", "parcels")

    def __init__(self, key, batch):
        self.key = key
        self.message, self.parcels = _take_apart(batch)

    def __reduce__(self):
        return _beside, (self.key, self.message, self.parcels)

    def open(self):
        return _Unpickler(self.message, [parcel.open() for parcel in self.parcels]).load()


def _sent_beside(key, batch):
    """In a worker, whose loop is about to send it."""
    beside = _Beside(key, batch)
    delivery.note(beside.parcels, delivery.loop_of_worker())
    return beside


def _beside(key, message, opened):
    """`opened` is what became of the parcels inside. Where only such batches arrive nothing else
    asks whether devices are done with slots."""
    batch = _Unpickler(message, opened).load()
    pools = [pool for pool in shared_pools() if key in (None, pool._key)]
    for pool in pools[:1]:  # the newest, which would have opened a parcel
        pool._count_fallback()
    for pool in pools:
        pool._settle()
    return batch


_beside.__module__ = "ebb"


def _is_parcel_or_elements(value):
    """What is let alone where nothing is sent. In an array of objects there may be parcels."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    array = getattr(numpy, "ndarray", ())
    if issubclass(type(value), array):
        return not value.dtype.hasobject
    return issubclass(type(value), (Parcel, getattr(torch, "Tensor", ()),
                                    getattr(torch, "UntypedStorage", ()),
                                    getattr(torch, "TypedStorage", ())))


def _with_parcels_opened(batch):
    """As it comes out of a slot. Nobody else would open them where no worker sends it."""
    if not _ebb._count_parcels():
        return batch
    buffers = []
    stream, parts = _take_apart(batch, _is_parcel_or_elements, 5, True, buffers.append)
    parts = [part.open() if _is_parcel(part) else part for part in parts]
    return _Unpickler(stream, parts, buffers).load()  # also without: what it has may be open


def _expect_open(pool):
    """That it is closed is no want of room."""
    if pool._is_closed:
        pool.fileno()  # says so


def _open_region(pool, waits=True):
    region = Region(pool, name="batch", _waits=waits)
    region._keeps = True
    return region


class _Collects:
    """Collects cycles that keep a batch, which a full collection finds whatever their age. But it
    looks at all objects of the program: after one in vain none is made for the next 2 such batches,
    then for 4, up to 256, until one helps."""

    MOST = 256

    def __init__(self):
        self.pause = self.left = 0

    def before(self, make, kept=None):
        """What it makes, or None, after a full collection; None without asking it while none is
        made. `kept()` counts what a collection is to make less; without it one has helped if
        something is made."""
        if self.left > 0:
            self.left -= 1
            return None
        before = kept and kept()
        gc.collect()
        helps = kept and kept() < before
        made = make()
        helps = helps if kept else made is not None
        self.pause = 0 if helps else min(2 * self.pause or 2, self.MOST)
        self.left = self.pause
        return made


_sending, _opening = _Collects(), _Collects()


def _send(writer):
    """The writer's Parcel; None: somebody keeps what was made in the region, or may."""
    parcel = writer.send()
    if parcel is None:
        gc.collect(1)
        parcel = writer.send()
    return _sending.before(writer.send) if parcel is None else parcel


def _kept(pool):
    """Bytes of its regions here that are open, or outlived by something."""
    stats = pool.stats
    return stats["owned"] + stats["held"]


def _open(pool):
    """A region; where there is no slot, after a look for cycles that _send() did not look for. Only
    then it waits, once: for what cycles of this process keep that would be in vain."""
    region = _or_none(_open_region, pool, False)
    if region is None:
        # meanwhile the trainer may have freed a slot, which is not the collection's merit
        region = _opening.before(lambda: _or_none(_open_region, pool, False), lambda: _kept(pool))
    return _open_region(pool) if region is None else region


def _ship(writer, region):
    """Sends what was written; the batch that it was written from is gone by now."""
    parcel = _send(writer)
    if parcel is not None:
        return parcel
    other = _open(region.pool)
    try:
        writer.move(other)
        region.close()  # what is kept outlives it
        return writer.send()
    finally:
        other.close()


def _rescue(writer, region):
    """The batch that nothing is left of but what was written: from a pool for itself alone. Where
    none can be made it is lost, and who collates learns why."""
    stats = writer.stats  # views of one block were there once, and go one by one
    room = sum(stats.values()) + (stats["leaves"] << 13)
    room += (room >> 3) + (1 << 24)  # not much more: addresses may be few
    other = _open_region(Pool("shared", slots=1, slot_bytes=room))
    try:
        writer.move(other)
        region.close()
        return writer.send().open()
    finally:
        other.close()


def send(pool, batch):
    region = _open_region(pool)
    try:
        writer = structure.write(region, batch)
        del batch
        return _ship(writer, region)
    finally:
        region.close()  # nothing, once it is sent


def _or_none(make, *arguments):
    """What it makes; None, if there is no room. The error ends here: what is raised later, by a
    function of the user's, is not shown as its consequence."""
    try:
        return make(*arguments)
    except Error:
        return None


def _write(region, batch):
    """What sends it; None, if there is no room, or none that is this process's: `inner` has closed
    the region, or forked. Another error is of what is in the batch: torch's own way would meet it,
    too."""
    writer = _or_none(structure.writer_to, region)
    try:
        if writer is not None:
            structure.put(writer, batch)
    except Error:
        if not writer.is_refused:
            raise
        return None
    return writer


@functools.cache
def _warn_if_addresses_were_limited_late(process):
    """Once in each. It has more of them than its limit only if that was set when it had them."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    with contextlib.suppress(OSError), open(f"/proc/{process}/statm", encoding="ascii") as file:
        has = int(file.read().split()[0]) * resource.getpagesize()
        if has > limit:
            warnings.warn(f"RLIMIT_AS is {limit} here, and there are {has} bytes of addresses, "
                          "most of them reserved by ebb before: no thread can start, and a worker "
                          "that cannot send waits for ever. Set this limit before ebb is used "
                          "first, or RLIMIT_DATA instead", RuntimeWarning, 3)


def _hook():
    """The module that lets torch allocate in regions; built where torch's headers are."""
    import torch  # noqa: F401, before what needs its library
    try:
        from . import _torch_hook
    except ImportError as error:
        raise ImportError("allocate=True needs the module ebb._torch_hook, which meson builds for "
                          "the torch whose headers it finds (Debian: libtorch-dev), and which is "
                          f"not in the wheel: {error}", name="ebb._torch_hook") from error
    return _torch_hook


class Collate:
    """Collate(pool=None, inner=None, *, allocate=False): a collate_fn for torch's DataLoader.

        pool = ebb.Pool("shared")
        loader = DataLoader(dataset, batch_size=64, num_workers=4, collate_fn=ebb.Collate(pool))

    inner(samples) makes the batch; None: ebb.default_collate, torch's structure. While it runs, a
    region of the pool is the current one: what it makes with ebb.empty(), ebb.stack() and
    ebb.pack_sequence() stays where it is, everything else is copied there once. A batch may be
    anything that can be pickled. It comes back as itself: tensors, typed ones, PackedSequence,
    arrays, named tuples, objects of your own.

    allocate=True: every tensor above 4 KiB that inner makes, with whatever function of torch, is
    born in the region; those that are no part of the batch take room there until it is sent. That
    needs the module _torch_hook, which meson builds where torch's headers are (Debian:
    libtorch-dev), and which is not in the wheel, else ImportError.

    The Collate must be made before the workers start, since they inherit its pool (fork) or get it
    passed (spawn, forkserver: as the collate_fn or an attribute of it; what such a worker imports
    it makes anew, or its fork server has, which preloads it). One that was made there warns, and
    its batches go torch's own way. What a Collate returns in a worker is for the worker's loader:
    what that has not opened when it lets its workers end is given back.

    Where a batch does not fit (no slot is free, or it is larger than a slot) it goes torch's own
    way, whole, and is counted: pool.stats["fallbacks"]. Of a pool that is closed ebb.Error
    EBB_E_STALE is raised. Without workers the batch is put into a region just the same.

    What differs from torch: two views of one storage arrive as two tensors (of one that was made in
    the region they share its elements, unless the batch had to be copied), is_shared() is False,
    and a tensor cannot be resized beyond its bytes. A batch is one batch in memory: what its
    smallest view keeps is the region.
    """

    def __init__(self, pool=None, inner=None, *, allocate=False):
        self.pool = Pool("shared") if pool is None else pool
        if not isinstance(self.pool, _ebb.Pool):
            raise TypeError(f"{pool!r} is no ebb.Pool: what collates is `inner`")
        if "shared" not in self.pool.kind:
            raise ValueError(f"the pool is of kind {self.pool.kind!r}, not 'shared'")
        _expect_open(self.pool)
        if inner is not None and not callable(inner):
            raise TypeError(f"{inner!r} cannot be called: `inner` is what collates")
        self.inner = default_collate if inner is None else inner
        self.allocate = allocate
        if allocate:
            _hook()

    def __repr__(self):
        inner = getattr(self.inner, "__qualname__", None) or repr(self.inner)
        return (f"<ebb.Collate of {inner} into {self.pool!r}"
                f"{', allocate=True' if self.allocate else ''}>")

    def _beside(self, batch):
        self.pool._count_fallback()
        if delivery.loop_of_worker() is None:
            return _with_parcels_opened(batch)
        return _sent_beside(self.pool._key, batch)

    def _is_unknown_to_the_trainer(self):
        """Whether the pool was made in this worker or its fork server: a worker's parent that is
        not the trainer. What was made before both, by who forked the trainer, that has as well."""
        maker, trainer = self.pool._made_by, multiprocessing.parent_process()
        if maker is None or trainer is not None and maker == trainer.pid:
            return False
        return maker in (os.getpid(), os.getppid()) and delivery.loop_of_worker() is not None

    def _beside_unknown(self, batch):
        warnings.warn("the pool of this Collate was made in the worker or its fork server, so the "
                      "trainer cannot open it and batches go torch's own way: make the Collate in "
                      "the trainer before the workers start, and give it to the DataLoader itself",
                      RuntimeWarning, 3)
        return _sent_beside(None, batch)

    def __call__(self, samples):
        _warn_if_addresses_were_limited_late(os.getpid())
        if self._is_unknown_to_the_trainer():
            return self._beside_unknown(self.inner(samples))
        _expect_open(self.pool)
        region = _or_none(_open, self.pool)
        if region is None:
            return self._beside(self.inner(samples))
        try:
            batch = region._run(self.inner, samples, _hook().enter if self.allocate else None)
            writer = _write(region, batch)
            if writer is None:
                return self._beside(batch)
            del batch
            parcel = _or_none(_ship, writer, region)
            if parcel is None:
                return self._beside(_rescue(writer, region))
        finally:
            region.close()
        loop = delivery.loop_of_worker()
        if loop is None:
            return parcel.open()
        delivery.note([parcel], loop)
        return parcel


Collate.__module__ = "ebb"
