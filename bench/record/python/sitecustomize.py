# SPDX-License-Identifier: Apache-2.0
"""sitecustomize.py - regions by the calls of one Python function, under `ebb record`.

Python imports this module at its start, since `ebb record` puts its folder first in PYTHONPATH.
EBB_RECORD_PYTHON_FUNCTION names a function whose calls begin regions, each up to the next one;
EBB_RECORD_PYTHON_WITHIN one whose calls are regions: `module.function`, or a method,
`module.Class.method`. It is marked whenever its module has been executed. One that is defined in
the script itself is in no module that is imported, and is not found. What cannot be marked stays as
it is, and is told at the end: a program runs on as it would without this.

A function that is written in Python stays the object that it is, for programs compare functions and
compile them: it is given other code, of the same sort and with the same parameters, free variables
and place in the source, and the code that it had is called from there. One that a class inherits
gets a copy there, for the others are not marked. What is built in has no code, and a function takes
its place. A bound method stays one of its object. Of an object that is called, the class has the
mark and the object stays itself.
"""

import atexit
import ctypes
import functools
import importlib.abc
import os
import sys
import types

WITHIN = os.environ.get("EBB_RECORD_PYTHON_WITHIN", "")
# Of inspect and ast, without what their import allocates: CO_GENERATOR and so on
VARIABLE, VARIABLE_NAMED = 0x04, 0x08
GENERATOR, COROUTINE, AWAITABLE_GENERATOR, ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200
PARSE_ONLY = 0x400
TURNS = iter(int, None)  # of a loop: without an end, as a region is
WANTED = (WITHIN or os.environ.get("EBB_RECORD_PYTHON_FUNCTION", "")).split(".")


def say(text):
    if sys.stderr is not None:  # closed: print() would write to the standard output
        print(f"ebb record: {text}", file=sys.stderr)


class Marks:
    """The recorder's marks; AttributeError where it is not loaded. What they are called with is
    made here once: a call that has to convert it calls more, and where the stack is full it says
    so by an error of its own."""

    def __init__(self):
        program = ctypes.PyDLL(None)
        self.needed = (program.PyCapsule_New, program.PyCapsule_GetPointer,
                       program.PyCallIter_New, program.Py_DecRef)  # by the recorder
        mark = program.ebb_record_open if WITHIN else program.ebb_record_call
        mark.restype = ctypes.py_object if WITHIN else None
        each_turn = [ctypes.py_object(int)] if WITHIN else []
        self.mark = functools.partial(mark, ctypes.c_char_p(WANTED[-1].encode()), *each_turn)

    def begin(self, *_):
        """What has a turn for the loop: the region, which ends when nobody has it any more, or what
        stands for one that lasts to the next call."""
        return self.mark() or TURNS


class MarksOf:
    """Those of a method, of one object alone."""

    def __init__(self, marks):
        self.marks, self.one = marks, None

    def begin(self, this=None, *_):
        return self.marks.begin() if this is self.one else TURNS


# ---- the code that calls another function inside of a region. It is written as text, to have the
# same parameters: who asks for them is told, and a call with others fails before a generator has
# begun. Regions last until it is done, and may overlap. The region is what a loop of one turn is
# over: it has no name, under which whoever reads the locals would keep it, and whatever leaves the
# loop drops it, as does what is raised anywhere, by the handler of a signal, say. Arguments are not
# kept longer than the function keeps them, where it runs on by itself. What the code needs are
# constants of its own, for neither the module nor the function has room for more.

OTHER = """
def made({free}):
    {sort} other({parameters}):
        _ebb_function = "_ebb_function"
        _ebb_marks = "_ebb_marks"
        if 0: ({free})
        for _ebb_once in _ebb_marks.begin({positional}):{body}
    return other
"""

CALLING = """
            return _ebb_function({passed})"""

RUNNING = """
            _ebb_running = _ebb_function({passed})
            del ({names})"""

WAITING = RUNNING + """
            return await _ebb_running"""

GENERATING = RUNNING + """
            return (yield from _ebb_running)"""

GENERATING_LATER = RUNNING + """
            _ebb_first_of = "_ebb_first_of"
            try:
                _ebb_value = await _ebb_first_of(_ebb_running)
                while True:
                    try:
                        _ebb_sent = yield _ebb_value
                    except GeneratorExit:
                        await _ebb_running.aclose()
                        raise
                    except BaseException as _ebb_fault:
                        _ebb_value = await _ebb_running.athrow(_ebb_fault)
                    else:
                        _ebb_value = await _ebb_running.asend(_ebb_sent)
            except StopAsyncIteration:  # of what is running alone: it has come to its end
                return"""


def first_of(running):
    """What is awaited for its first value. The event loop is to close the other, not this one."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return running.__anext__()
    finally:
        sys.set_asyncgen_hooks(*hooks)


def written(parameters, positional, named, names, free=()):
    """What OTHER has of arguments; how they are passed on are the positional ones and the named."""
    return {
        "free": "".join(f"{name}, " for name in free),
        "parameters": ", ".join(parameters), "positional": ", ".join(positional),
        "passed": ", ".join(positional + named), "names": ", ".join(names)}


def code_of(function):
    """None of what is not written in Python."""
    return function.__code__ if isinstance(function, types.FunctionType) else None


def arguments_of(function):
    """Those of a function that is written in Python; others may have any."""
    code = code_of(function)
    if not code:
        rest = ["*arguments"], ["**others"]
        return written(rest[0] + rest[1], *rest, ["arguments", "others"])
    names, keys = list(code.co_varnames), code.co_argcount + code.co_kwonlyargcount
    positional, only_named = names[:code.co_argcount], names[code.co_argcount:keys]
    parameters, named = positional[:], [f"{name}={name}" for name in only_named]
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    if code.co_flags & VARIABLE:
        positional.append("*" + names[keys])
        parameters.append(positional[-1])
        keys += 1
    elif named:
        parameters.append("*")
    parameters += only_named
    if code.co_flags & VARIABLE_NAMED:
        named.append("**" + names[keys])
        parameters.append(named[-1])
        keys += 1
    return written(parameters, positional, named, names[:keys], code.co_freevars)


def put_at(node, line):
    """All of the code is at one line: that at which the function begins, for who sees it there."""
    if hasattr(node, "lineno"):
        node.lineno = node.end_lineno = line
        node.col_offset = node.end_col_offset = 0
    for name in node._fields:
        parts = getattr(node, name, None)
        for part in parts if isinstance(parts, list) else [parts]:
            if hasattr(part, "_fields"):
                put_at(part, line)


def compiled(text, file, line):
    """The code of the function that the text makes."""
    space, tree = {}, compile(text, file, "exec", PARSE_ONLY)
    put_at(tree, line)
    exec(compile(tree, file, "exec"), space)
    made = space["made"]
    return made(*made.__code__.co_varnames[:made.__code__.co_argcount]).__code__


def sort_of(function):
    """What begins its definition, what the code does, and flags that cannot be written."""
    while isinstance(function, functools.partial):
        function = function.func
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & ASYNC_GENERATOR:
        return "async def", GENERATING_LATER, 0
    if flags & COROUTINE:
        return "async def", WAITING, 0
    if flags & GENERATOR:
        return "def", GENERATING, flags & AWAITABLE_GENERATOR
    return "def", CALLING, 0


def code_around(function, marks):
    """Code that calls the function, and may take the place of its own."""
    (sort, body, flags), arguments = sort_of(function), arguments_of(function)
    text = OTHER.format(sort=sort, body=body.format(**arguments), **arguments)
    own, names = code_of(function), {}
    code = compiled(text, *((own.co_filename, own.co_firstlineno) if own else ("<ebb record>", 1)))
    needs = {"_ebb_function": function, "_ebb_marks": marks, "_ebb_first_of": first_of}
    constants = [needs.get(one, one) if isinstance(one, str) else one for one in code.co_consts]
    for name in "co_name", "co_qualname":  # which Python 3.11 began to have
        if hasattr(own, name):
            names[name] = getattr(own, name)
    return code.replace(co_consts=tuple(constants), co_flags=code.co_flags | flags, **names)


def like(function, code):
    """A function with this code, and whatever else that one has."""
    other = types.FunctionType(code, function.__globals__, function.__name__,
                               function.__defaults__, function.__closure__)
    other.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(other, function)


def is_marked(function):
    inner = function.__func__ if isinstance(function, types.MethodType) else function
    return code_of(inner) and "_ebb_marks" in code_of(inner).co_varnames


def mark(function, marks):
    """Marks a function that is written in Python, which stays itself."""
    if not is_marked(function):
        function.__code__ = code_around(like(function, function.__code__), marks)


def marked(function, marks):
    """What is called as the function is, which stays as it is."""
    if isinstance(function, types.FunctionType):
        return like(function, code_around(function, marks))
    other = types.FunctionType(code_around(function, marks), {})
    other.__qualname__ = other.__name__ = "other"  # of what has no name itself
    return functools.update_wrapper(other, function)


def marked_like(function, marks):
    """The same of what is built in, with what it has beside calls: cache_clear() of caches."""
    if isinstance(function, types.MethodType):  # of the same object, wherever it is put
        return types.MethodType(marked_like(function.__func__, marks), function.__self__)
    other = marked(function, marks)
    for name in set(dir(function)) - set(dir(other)):
        try:
            setattr(other, name, getattr(function, name))
        except Exception:
            continue  # nobody else gets it either
    return other


def own_of(owner, name):
    """What it has under a name itself, not from a class that it inherits of."""
    return getattr(owner, "__dict__", {}).get(name)


def as_written(owner, name):
    """What a module or class has under a name: a static or class method is still one."""
    for place in getattr(owner, "__mro__", (owner,)):
        found = own_of(place, name)
        if found is not None:
            return found
    return getattr(owner, name, None)


def lead_to(owner, place, names):
    """Pickle finds functions by their names. Those copied from a function of another place lead to
    that one, and those of what is built in need not lead anywhere."""
    other = as_written(owner, names[-1])
    other = other.__func__ if isinstance(other, staticmethod) else other
    if not isinstance(other, types.FunctionType) or "<locals>" in other.__qualname__:
        return
    own, found = other.__qualname__.split("."), sys.modules.get(other.__module__)
    for name in own[:-1]:
        found = getattr(found, name, None)
    if found is not owner or own[-1] != names[-1]:
        other.__module__, other.__qualname__ = place, ".".join(names)


class Watcher(importlib.abc.MetaPathFinder):
    """Finds nothing itself; looks at each module that may have the function, once it is there."""

    def __init__(self, marks):
        self.marks, self.marks_of, self.found, self.ways = marks, MarksOf(marks), False, []
        self.why_not = "was not found in a module that is imported"
        self.modules = {".".join(WANTED[:length]) for length in range(1, len(WANTED))}

    def find_spec(self, name, path, target=None):
        if name not in self.modules:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                self.follow(spec.loader)
                return spec
        return None

    def follow(self, loader):
        """A loader may have no place for what is put there, and loads its modules all the same."""
        try:
            self.follow_to(loader)
        except Exception as fault:
            self.why_not = f"cannot be replaced: {fault}"

    def follow_to(self, loader):
        execute = getattr(loader, "exec_module", None)
        if execute is None or execute in self.ways:
            return

        def exec_module(module):
            execute(module)
            self.look(module)

        loader.exec_module = exec_module
        self.ways.append(exec_module)

    def look(self, module):
        """Whatever modules and objects do when they are asked, it is no fault of the import."""
        try:
            self.look_into(module)
        except Exception as fault:
            self.why_not = f"cannot be replaced: {fault}"

    def look_into(self, module):
        """Marks the function if it is in this module; a loader may have others, too."""
        owner, path = module, module.__name__.split(".")
        if WANTED[:len(path)] != path:
            return
        names = WANTED[len(path):]
        for name in names[:-1]:
            owner = getattr(owner, name, None)
        function = as_written(owner, names[-1]) if owner is not None else None
        if function is None:
            return
        self.mark(owner, names[-1], function)
        if as_written(owner, names[-1]) is not function:
            lead_to(owner, module.__name__, names)

    def mark(self, owner, name, function):
        held = isinstance(function, (staticmethod, classmethod))
        inner = function.__func__ if held else function
        call = as_written(type(function), "__call__")
        if isinstance(inner, type) or not callable(inner):
            self.why_not = f"is no function: its type is {type(inner).__name__}"
            return
        if isinstance(call, types.FunctionType):
            self.mark_class(type(function), call, function)
        elif isinstance(inner, types.FunctionType) and function is own_of(owner, name):
            mark(inner, self.marks)
        elif not is_marked(inner):
            self.replace(owner, name, function)
        self.found = True

    def mark_class(self, kind, call, one):
        """Of the object that is called. A call that its class inherits gets a copy there, too."""
        self.marks_of.one = one
        if call is own_of(kind, "__call__"):
            mark(call, self.marks_of)
        elif not is_marked(call):
            kind.__call__ = marked(call, self.marks_of)
            lead_to(kind, kind.__module__, kind.__qualname__.split(".") + ["__call__"])

    def replace(self, owner, name, function):
        if isinstance(function, (staticmethod, classmethod)):
            other = type(function)(marked_like(function.__func__, self.marks))
        elif isinstance(function, types.ClassMethodDescriptorType):  # of a class that is built in
            other = classmethod(marked_like(function, self.marks))
        else:
            other = marked_like(function, self.marks)
            if isinstance(owner, type) and not hasattr(function, "__get__"):
                other = staticmethod(other)  # built in, perhaps: it is not given the object
        setattr(owner, name, other)

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
