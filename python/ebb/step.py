# SPDX-License-Identifier: Apache-2.0
"""step(): regions of a site, planned from the steps before."""

import functools
import inspect
import operator
import types

from . import _ebb
from .pool import Pool
from .region import Region

_sites = {}  # (name, ring, scope): a place of the program that is passed again and again


def _is(function, *kinds):
    """Whether it, or what an object does when it is called, is of such a kind."""
    function = getattr(function, "__func__", function)  # of a staticmethod
    return any(is_kind(each) for each in (function, getattr(type(function), "__call__", None))
               for is_kind in kinds)


@types.coroutine
def _turns(region, awaitable):
    """Waits for it. While it waits itself malloc() goes where it went before the step."""
    made = awaitable.__await__()
    go, what = made.send, None
    try:
        while True:
            try:
                asked = region._turn(go, what)
            except StopIteration as done:
                return done.value
            finally:
                what = None  # an exception has this frame
            try:
                go, what = made.send, (yield asked)
            except BaseException as raised:  # GeneratorExit, too, when it is closed
                go, what = made.throw, raised
            del asked  # nor is kept what it waited for
    finally:
        made.close()  # where it cannot go on: in another thread, or as a signal's handler raised


class step(_ebb.Step):
    """step(name, tag=0, *, pool=None, parent=None, ring=0, scope=False)

    A region whose placement is learnt: steps of one name and tag are expected to be alike, and
    after two of them each tensor has its place in advance. As a context manager or a decorator:

        with ebb.step("train", tag=1) as region:
            ...

        @ebb.step("evaluate")
        def evaluate(model, batch):     # ebb.current() is the step's region
            ...

        @ebb.step("request", scope=True)
        async def answer(request):      # the step waits when the coroutine does
            ...

    A generator, which goes on after it has returned, is no function for the decorator: it has its
    own `with ebb.step(...)` inside. Of one object that several generators have open in a thread or
    task, the step that was begun last ends first, whichever generator ends.
    While a generator waits its step is current, and what is begun meanwhile without a parent or a
    pool lies in it and ends with it at the latest.

    tag     what kind of step it is; kinds are planned apart (a padded length, say). Any integer:
            its lowest 64 bits count
    pool    where steps without a parent get their pages, and whose sites learn; None: the default
            pool, and sites of the process
    parent  the region above; None: the current one, if there is one and no pool is named. Its pool
            is the step's
    ring    so many ended steps stay readable, at most 64
    scope   what this thread mallocs during the step is the step's, too: torch's own tensors, say.
            Only where libebb-malloc is preloaded, which ebb.is_scope_served() tells; elsewhere it
            changes nothing. Whatever lives on stays valid. The step is to end in the thread that
            began it, and a coroutine to go on there. What other tasks of an event loop allocate
            while this one waits counts as the step's, but not where a coroutine waits that is
            decorated: that leaves its scope then, and those of all steps that are open inside of it
    """

    _region = Region

    def __init__(self, name, tag=0, *, pool=None, parent=None, ring=0, scope=False):
        if pool is not None and not isinstance(pool, Pool):
            raise TypeError(f"{pool!r} is no ebb.Pool")
        if parent is not None and not isinstance(parent, Region):
            raise TypeError(f"{parent!r} is no ebb.Region")
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is no name of steps")
        if not 0 <= operator.index(ring) <= 64:
            raise ValueError(f"ring is {ring}: 0 to 64")
        self._name, self._tag, self._pool = name, operator.index(tag), pool
        self._parent, self._ring, self._scope, self._open = parent, ring, scope, []

    def __getstate__(self):
        return {**self.__dict__, "_open": []}  # of a copy none is begun

    def __repr__(self):
        other = "".join(f", {name} {value!r}" for name, value in (
            ("tag", self._tag), ("pool", self._pool), ("parent", self._parent),
            ("ring", self._ring), ("scope", self._scope)) if value not in (None, 0))
        return f"<ebb.step {self._name!r}{other}>"

    @property
    def site(self):
        """Where steps of this name learn; its `stats` say what."""
        key = self._name, self._ring, bool(self._scope)
        sites = _sites if self._pool is None else self._pool._sites
        if key not in sites:
            sites[key] = _ebb.Site(self._name, self._pool, self._ring, self._scope)
        return sites[key]

    def _again(self):
        return step(self._name, self._tag, pool=self._pool, parent=self._parent, ring=self._ring,
                    scope=self._scope)

    def __call__(self, function):
        if _is(function, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
            name = getattr(function, "__name__", repr(function))  # functools.partial has none
            raise TypeError(f"{name}() goes on after it has returned: write `with ebb.step(...)` "
                            "inside of it")
        if not callable(function):
            raise TypeError(f"{function!r} cannot be called")

        @functools.wraps(function)
        def stepped(*arguments, **keywords):
            with self._again():
                return function(*arguments, **keywords)

        @functools.wraps(function)
        async def waited_for(*arguments, **keywords):
            with self._again() as region:
                return await _turns(region, function(*arguments, **keywords))

        return waited_for if _is(function, inspect.iscoroutinefunction) else stepped


step.__module__ = "ebb"
