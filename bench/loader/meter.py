# SPDX-License-Identifier: Apache-2.0
"""meter.py - what a process and its children have used, as the kernel counts it."""

import os
import pathlib
import threading
import time


def cpu_ns(pid):
    """Time on a processor of all threads that the process has had."""
    return time.clock_gettime_ns(~pid << 3 | 2)  # as clock_getcpuclockid() of Linux names it


def waits(pid):
    """Whether none of its threads runs, or would if it were its turn; the one that asks apart."""
    asks = str(threading.get_native_id())
    tasks = [task for task in pathlib.Path(f"/proc/{pid}/task").iterdir() if task.name != asks]
    try:
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks]
    except (FileNotFoundError, ProcessLookupError):
        return False  # one has ended meanwhile
    return all(state == "S" for state in states)


def faults(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[7]) + int(fields[9])


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Reading:
    """Sums over some processes, now."""

    def __init__(self, pids):
        self.cpu_ns = sum(cpu_ns(pid) for pid in pids)
        self.faults = sum(faults(pid) for pid in pids)
