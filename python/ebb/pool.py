# SPDX-License-Identifier: Apache-2.0
"""Class Pool, and the shared pools of this process."""

import os
import weakref
from multiprocessing import context, reduction

from . import _ebb

_shared = _ebb.shared_pools  # weak references, the newest first: ebb._open() asks them, too
_GO = "name", "limit_used", "keep_all", "wait", "device"  # options that go with it elsewhere


class Pool(_ebb.Pool):
    """Pool(kind='host', limit=None, *, name=None, limit_used=None, keep_all=False,
         slot_bytes=None, slots=None, wait=0.0, device=None, descriptor=None)

    Where regions get their pages from, and where the pages stay, hot, between steps.

    kind        'host', 'huge', 'pinned', 'shared' or 'device'; some may be joined: 'shared+pinned'
    limit       most bytes of pages, owned and cached; None: no limit
    limit_used  most bytes in live blocks; None: no limit
    keep_all    never give pages back by itself
    slot_bytes  shared: most bytes of one region (address space only); None: 1 GiB, or less where
                all slots would have more than a quarter of the addresses
    slots       shared: most regions at once, those included that others hold; None: 256, or as many
                of slot_bytes as half of the addresses hold
    wait        shared: seconds that opening a region waits when all slots are taken, unless the
                handler of a signal raises, as that of Ctrl-C does
    device      device, pinned: its number; None: 0
    descriptor  shared: attach to the pool behind this descriptor of another process

    ValueError: a number is out of its bounds (a limit of 0, say), or the kind has no use for it.
    ebb.Error: what libebb refuses, such as kinds that do not go together.

    A shared pool is inherited by a fork, and goes to processes that are spawned as an argument. It
    may be pickled elsewhere, too: who unpickles it gets it of this process, which must have it open
    then. A copy of whatever has a pool has the same one.
    Limits of a shared pool are those of each region with its children.
    Pool.stats shows how many batches this process sent, received, and got beside the pool, and
    which pages it holds; of a shared pool, those that this process wrote to.
    """

    __slots__ = ("_key", "_options", "_sites", "_made_by", "_inherits", "__weakref__")

    def __init__(self, kind="host", limit=None, **others):
        self._options = {"kind": kind, "limit": limit,
                         **{name: others[name] for name in _GO if name in others}}
        self._sites = {}  # of steps; they end with the pool, and do not keep it
        self._inherits = weakref.WeakSet()  # what spawns those that inherit the descriptor
        self._made_by = os.getpid() if others.get("descriptor") is None else None
        if "shared" in self.kind:
            self._key = _file_of(self.fileno())  # the same in all processes, however they got it
            _shared.insert(0, weakref.ref(self, _shared.remove))

    def __reduce__(self):
        if "shared" not in self.kind:
            raise TypeError(f"a pool of kind {self.kind!r} stays in its process; 'shared' ones go")
        popen = context.get_spawning_popen()
        if popen is None or popen in self._inherits:
            there = _There(os.getpid(), self.fileno())
        else:
            there = reduction.DupFd(self.fileno())
            if getattr(popen, "method", None) != "forkserver":  # others refuse it the second time
                self._inherits.add(popen)
        return _attach, (there, self._options)

    def __copy__(self):
        return self  # a copy of what has it goes to the same pages, and counts here

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        name = getattr(self, "_options", {}).get("name")
        return (f"<ebb.Pool {'' if name is None else f'{name!r} '}of kind {self.kind!r}"
                f"{', closed' if self._is_closed else ''}>")

    def send(self, batch):
        """Puts a batch into a region of this shared pool: a Parcel, to be pickled or opened.

        For queues of your own; ebb.Collate does this for torch's DataLoader. ebb.Error if there
        is no slot, or no room in it: then nothing has changed.
        """
        from .loader import send
        return send(self, batch)


def _file_of(descriptor):
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


class _There:
    """A descriptor that stays where it is until the message is read: nothing is kept for one that
    never is, and it may be read again. By then another file may have its number, or another process
    that of the sender; so it is looked at before it is opened."""

    def __init__(self, process, number):
        self.process, self.number, self.file = process, number, _file_of(number)

    def detach(self):
        """One of this process's, of the same file."""
        place = None
        try:
            place = os.open(f"/proc/{self.process}/fd/{self.number}", os.O_PATH | os.O_CLOEXEC)
            if _file_of(place) != self.file:
                raise OSError("its descriptor is of another file by now")
            return os.open(f"/proc/self/fd/{place}", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise LookupError(f"the pool cannot be had of process {self.process}, which pickled "
                              "it: that must live, and have it open, when it is unpickled, and "
                              "let this process read its /proc") from error
        finally:
            if place is not None:
                os.close(place)


def _attach(duplicate, options):
    descriptor = duplicate.detach()
    try:
        return Pool(descriptor=descriptor, **options)
    finally:
        os.close(descriptor)


def shared_pools():
    """Those of this process that are alive and not closed, the newest first."""
    for reference in list(_shared):
        pool = reference()
        if pool is not None and not pool._is_closed:
            yield pool


Pool.__module__ = "ebb"
