# SPDX-License-Identifier: Apache-2.0
"""What a loader's worker has sent and nobody has opened: given back when the worker ends.

A loop over a loader that is left early, by `break`, leaves what was fetched ahead in a queue that
nobody reads any more. torch sets an event for its workers then, and each of them ends. Not always
by itself: where an exception that a worker has sent was caught, the iterator is part of a cycle,
and the queue by which it would tell its workers to end is collected before it. Then it waits for
5 seconds and ends them by a signal. So a thread of the worker's looks at the event, too.

Ctrl-C at a terminal interrupts the workers as well, and each ends before the trainer, which
unwinds, has set the event. So one that finds it unset at its end waits for it, but not for long: a
trainer that keeps the iterator learns of the worker's end by nothing else.
"""

import contextlib
import inspect
import os
import sys
import threading
import time
from collections import deque
from multiprocessing import util

from ._ebb import _recall, forks

_WORKER = "torch.utils.data._utils.worker"
_LOADER = "torch.utils.data.dataloader"
_SLOTS_MOST = 4096  # of a pool
_LOOKS_AFTER = 1.0  # seconds
_LOCK_WITHIN = 1.0  # seconds
_OVER_WITHIN = 2.0  # seconds


def loop_of_worker():
    """The frame of torch's loop that will send what is returned here; of a torch that has none by
    that name, the outermost one. None: no worker sends it, as with a loader inside of a dataset."""
    ask = getattr(sys.modules.get("torch.utils.data"), "get_worker_info", None)
    if ask is None or ask() is None:
        return None
    frame = sys._getframe(1)
    while True:
        name = frame.f_globals.get("__name__")
        if name == _LOADER:
            return None
        if name == _WORKER or frame.f_back is None:
            return frame
        frame = frame.f_back


def _seems_set(event):
    """Without the lock that is_set() takes: it is all workers', and one that is killed keeps it. A
    flag that another is looking at, by taking it for a moment, seems not to be set."""
    return event._flag.get_value() > 0


def _is_set(event):
    held = event._cond.acquire(True, _LOCK_WITHIN)
    try:
        return _seems_set(event)
    finally:
        if held:
            event._cond.release()


def _recall_with_inside(message):
    """What is inside of a batch that was opened is of who has that."""
    left = [message]
    while left:
        pool, number, inside = left.pop()
        if _recall(pool, number):
            left.extend(inside)


def _this_process():
    """A child in a namespace of its own may have its parent's number."""
    return os.getpid(), forks()


class Delivery:
    """The newest messages of this worker, as many as there can be slots: what is older was opened,
    for they are read in their order. `over`: torch's event that nobody reads them any more."""

    def __init__(self, over):
        self.process, self.parent = _this_process(), os.getppid()
        self.over = over
        self.messages = deque(maxlen=_SLOTS_MOST)
        self.ends = threading.Event()
        util.Finalize(None, self._end, exitpriority=0)
        self.looks = threading.Thread(target=self._look, name="ebb.delivery", daemon=True)
        with contextlib.suppress(RuntimeError):  # no thread to be had: at the end, then
            self.looks.start()

    def _look(self):
        while not self.ends.wait(_LOOKS_AFTER):
            if _seems_set(self.over):  # if it is, and does not, it will the next time
                self._give_back()

    def _wait_until_over(self):
        """Or the trainer is dead, or that has taken too long."""
        until = time.monotonic() + _OVER_WITHIN
        while (not _seems_set(self.over) and os.getppid() == self.parent
               and time.monotonic() < until):
            time.sleep(0.01)

    def _end(self):
        self.ends.set()
        with contextlib.suppress(KeyboardInterrupt):  # who interrupts it again does not wait
            self._wait_until_over()
        if self.looks.is_alive():  # it may be giving back what is in a batch
            self.looks.join(_LOOKS_AFTER)
        if _is_set(self.over):
            self._give_back()

    def _give_back(self):
        with contextlib.suppress(IndexError):  # none is left
            while True:
                _recall_with_inside(self.messages.popleft())


def _variable(frame, name):
    """One of a frame that goes on. Up to Python 3.12 f_locals is a copy that stays in the frame and
    keeps all others: here torch's fetcher, with the iterator of an epoch that is over."""
    names = frame.f_locals
    found = names.get(name)
    if isinstance(names, dict) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        names.clear()  # else they are the variables themselves, those of a module, say
    return found


_delivery = None


def note(parcels, loop):
    """The loop in this frame is about to send the parcels. A thread of the worker's has no frame of
    torch's, and some torch may have no such event: then what nobody opened stays until no other
    slot is left. Those that the worker did not make are not its own to give back."""
    global _delivery
    messages = [message for parcel in parcels if (message := parcel._message())]
    if not messages:
        return
    if _delivery is None or _delivery.process != _this_process():
        over = _variable(loop, "done_event")
        if over is None:
            return
        _delivery = Delivery(over)
    _delivery.messages.extend(messages)
