# SPDX-License-Identifier: Apache-2.0
"""What a loader's worker has sent and nobody has opened: given back when the worker ends.

A loop over a loader that is left early, by `break`, leaves what was fetched ahead in a queue that
nobody reads any more. torch sets an event for its workers then, and each of them ends.
"""

import os
import sys
from collections import deque
from multiprocessing import util

from ._ebb import _recall

_WORKER = "torch.utils.data._utils.worker"
_LOADER = "torch.utils.data.dataloader"
_SLOTS_MOST = 4096  # of a pool


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


class Delivery:
    """The newest messages of this worker, as many as there can be slots: what is older was opened,
    for they are read in their order. `over`: torch's event that nobody reads them any more."""

    def __init__(self, over):
        self.process = os.getpid()
        self.over = over
        self.messages = deque(maxlen=_SLOTS_MOST)
        util.Finalize(None, self._end, exitpriority=0)

    def _end(self):
        if self.over.is_set():
            for pool, message in self.messages:
                _recall(pool, message)


_delivery = None


def note(pool, parcel, loop):
    """The loop in this frame is about to send the parcel. A thread of the worker's has no frame of
    torch's, and some torch may have no such event: then what nobody opened stays until no other
    slot is left."""
    global _delivery
    if _delivery is None or _delivery.process != os.getpid():
        over = loop.f_locals.get("done_event")
        if over is None:
            return
        _delivery = Delivery(over)
    _delivery.messages.append((pool, parcel._message()))
