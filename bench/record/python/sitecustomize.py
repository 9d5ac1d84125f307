# SPDX-License-Identifier: Apache-2.0
"""sitecustomize.py - regions by the calls of one Python function, under `ebb record`.

Python imports this module at its start, since `ebb record` puts its folder first in PYTHONPATH.
EBB_RECORD_PYTHON_FUNCTION names a function whose calls begin regions, each up to the next one;
EBB_RECORD_PYTHON_WITHIN one whose calls are regions: `module.function`, or a method,
`module.Class.method`. The function is replaced when its module has been imported. One that is
defined in the script itself is in no module that is imported, and is not found. What cannot be
replaced stays as it is, and is told at the end: a program runs on as it would without this.
"""

import atexit
import ctypes
import functools
import importlib.abc
import os
import sys

WITHIN = os.environ.get("EBB_RECORD_PYTHON_WITHIN", "")
COROUTINE = 128  # inspect.CO_COROUTINE, without what the import of inspect allocates
WANTED = (WITHIN or os.environ.get("EBB_RECORD_PYTHON_FUNCTION", "")).split(".")


def say(text):
    if sys.stderr is not None:  # closed: print() would write to the standard output
        print(f"ebb record: {text}", file=sys.stderr)


class Marks:
    """The recorder's marks; nothing where it is not loaded."""

    def __init__(self):
        program = ctypes.CDLL(None)
        self.begin = program.ebb_record_begin
        self.begin.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
        self.begin.restype = None
        self.end = program.ebb_record_end
        self.end.argtypes = []
        self.end.restype = None
        self.call = program.ebb_record_call
        self.call.argtypes = [ctypes.c_char_p]
        self.call.restype = None


def waiting(function, marks, kind):
    """What takes the place of a function that is awaited, which programs ask about."""

    @functools.wraps(function)
    async def beginning(*arguments, **named):
        marks.call(kind)
        return await function(*arguments, **named)

    @functools.wraps(function)
    async def within(*arguments, **named):
        marks.begin(kind, 0)
        try:
            return await function(*arguments, **named)
        finally:
            marks.end()

    return within if WITHIN else beginning


def calling(function, marks, kind):
    @functools.wraps(function)
    def beginning(*arguments, **named):
        marks.call(kind)
        return function(*arguments, **named)

    @functools.wraps(function)
    def within(*arguments, **named):
        marks.begin(kind, 0)
        try:
            return function(*arguments, **named)
        finally:
            marks.end()

    return within if WITHIN else beginning


def marked(function, marks):
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    other = (waiting if flags & COROUTINE else calling)(function, marks, WANTED[-1].encode())
    for name in set(dir(function)) - set(dir(other)):  # cache_clear() of functools.cache
        setattr(other, name, getattr(function, name))
    return other


def as_written(owner, name):
    """What a module or class has under a name: a static or class method is still one."""
    for place in getattr(owner, "__mro__", (owner,)):
        found = getattr(place, "__dict__", {}).get(name)
        if found is not None:
            return found
    return getattr(owner, name, None)


class Watcher(importlib.abc.MetaPathFinder):
    """Finds nothing itself; looks at each module that may have the function, once it is there."""

    def __init__(self, marks):
        self.marks, self.found = marks, False
        self.why_not = "was not found in a module that is imported"
        self.modules = {".".join(WANTED[:length]) for length in range(1, len(WANTED))}

    def find_spec(self, name, path, target=None):
        if self.found or name not in self.modules:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                self.follow(spec.loader)
                return spec
        return None

    def follow(self, loader):
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module):
            execute(module)
            self.look(module)

        loader.exec_module = exec_module

    def look(self, module):
        """Replaces the function if it is in this module; a loader may have others, too."""
        owner, path = module, module.__name__.split(".")
        if WANTED[:len(path)] != path:
            return
        names = WANTED[len(path):]
        for name in names[:-1]:
            owner = getattr(owner, name, None)
        function = as_written(owner, names[-1]) if owner is not None else None
        if function is not None and not self.found:
            self.replace(owner, names[-1], function)

    def replace(self, owner, name, function):
        if isinstance(function, (staticmethod, classmethod)):
            other = type(function)(marked(function.__func__, self.marks))
        elif isinstance(function, type) or not callable(function):
            self.why_not = f"is no function: its type is {type(function).__name__}"
            return
        else:
            other = marked(function, self.marks)
            if isinstance(owner, type) and not hasattr(function, "__get__"):
                other = staticmethod(other)  # built in, perhaps: it is not given the object
        try:
            setattr(owner, name, other)
            self.found = True
        except (AttributeError, TypeError) as fault:
            self.why_not = f"cannot be replaced: {fault}"

    def tell(self):
        if not self.found:
            say(f"{'.'.join(WANTED)} {self.why_not}")


def start():
    try:
        marks = Marks()
    except AttributeError:
        return  # no recorder
    watcher = Watcher(marks)
    for name in sorted(watcher.modules):
        if name in sys.modules:
            watcher.look(sys.modules[name])
    sys.meta_path.insert(0, watcher)
    atexit.register(watcher.tell)


def go_on():
    """The sitecustomize that would have been imported without this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    this = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = this


if len(WANTED) > 1:
    start()
elif WANTED[0]:
    say(f"'{WANTED[0]}' is no module.function; its calls make no regions")
go_on()
