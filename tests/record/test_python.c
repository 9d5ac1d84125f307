// SPDX-License-Identifier: Apache-2.0
//
// test_python.c - regions by the calls of a Python function: it is of the sort that it was, and the
// program runs on as it would without a recorder.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording.h"

// Records the script in each way; the tool says what each case expects.
static void record_in_ways(const char *const cases[][2], size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        trace_free(recorded_script(cases[i][0], text));
        assert_said(cases[i][1]);
    }
}

#define COUNT(cases) (sizeof cases / sizeof *cases)

// Methods of every sort are marked, and what cannot be is left alone: the program ends as ever.
static void python_programs_run_on_whatever_is_marked(void **state)
{
    static const char *const cases[][2] = {
        {"--within kinds.Kind.plain", " 4 regions"}, {"--within kinds.Kind.static", " 6 regions"},
        {"--within kinds.Kind.cls", " 6 regions"}, {"--within kinds.Heir.cls", " 2 regions"},
        {"--within kinds.Kind.cached", " 4 regions"}, {"--within kinds.Kind.root", " 2 regions"},
        {"--within kinds.Kind.value", "kinds.Kind.value is no function: its type is property"},
        {"--within kinds.Kind", "kinds.Kind is no function: its type is type"},
        {"--within datetime.datetime.now", "datetime.datetime.now cannot be replaced: "},
        {"--within kinds.Kind.nothing",
         "kinds.Kind.nothing was not found in a module that is imported"}};

    (void)state;
    write_module("kinds", "import functools, math\n"
                          "class Kind:\n"
                          "    def plain(self): return self\n"
                          "    @staticmethod\n"
                          "    def static(word): return word\n"
                          "    @classmethod\n"
                          "    def cls(cls): return cls\n"
                          "    value = property(lambda self: 7)\n"
                          "    @functools.cache\n"
                          "    def cached(self): return self\n"
                          "    root = math.sqrt\n"
                          "class Heir(Kind): pass\n");
    record_in_ways(cases, COUNT(cases),
                   "import sys\n"
                   "old = type('', (), {'find_module': lambda *names: None})\n"
                   "sys.meta_path.insert(0, old())\n"
                   "import datetime, kinds\n"
                   "kind, heir = kinds.Kind(), kinds.Heir()\n"
                   "for i in range(2):\n"
                   "    datetime.datetime.now()\n"
                   "    assert isinstance(kind.plain(), kinds.Kind) and heir.plain() is heir\n"
                   "    assert kind.static(7) == kinds.Kind.static(7) == heir.static(kind.value)\n"
                   "    assert kind.cls() is kinds.Kind.cls() and heir.cls() is kinds.Heir\n"
                   "    assert kind.cached() is kind.cached() and kind.root(4) == 2\n"
                   "assert kinds.Kind.cached.cache_info().hits == 3\n");
}

// Servers ask whether a function is to be awaited, and its region lasts until it has been.
static void coroutines_stay_coroutines(void **state)
{
    static const char *const cases[][3] = {{"function", "step", " 3 regions"},
                                           {"within", "step", " 4 regions"},
                                           {"within", "part", " 4 regions"}};
    char command[1024];

    (void)state;
    write_module("later", "import asyncio, functools\n"
                          "async def step(number):\n"
                          "    await asyncio.sleep(0)\n"
                          "    return number, bytearray(77777)\n"
                          "part = functools.partial(step)\n");
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command,
                 "record --%s later.%s -o %s -- /usr/bin/python3 -c 'import sys\n"
                 "sys.path.append(\"%s\")\nimport asyncio, inspect, later\n"
                 "assert inspect.iscoroutinefunction(later.%s)\n"
                 "async def all():\n"
                 "    for i in range(4): assert (await later.%s(i))[0] == i\n"
                 "asyncio.run(all())\n'", cases[i][0], cases[i][1], path, folder, cases[i][1],
                 cases[i][1]);
        assert_int_equal(ebb(command), 0);
        assert_said(cases[i][2]);
        struct ebb_trace *trace = read_it();
        assert_int_equal(count(trace, TRACE_ALLOC, 77778), i ? 4 : 3);
        trace_free(trace);
    }
}

// Modules of an archive share a loader. One that the other imports has a function of that name.
static void a_function_of_an_archives_module_is_no_others(void **state)
{
    struct ebb_trace *trace;
    char command[2000];

    (void)state;
    snprintf(command, sizeof command,
             "/usr/bin/python3 -c \"import zipfile; z = zipfile.ZipFile('%s.zip', 'w'); "
             "z.writestr('pack/__init__.py', ''); z.writestr('pack/a.py', 'def f(): pass'); "
             "z.writestr('pack/b.py', 'import pack.a\\ndef f(): pass'); z.close()\"", path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command,
             "record -q --within pack.b.f -o %s -- /usr/bin/python3 -c \"import sys; "
             "sys.path.insert(0, '%s.zip'); import pack.b; [pack.b.f() for i in range(5)]; "
             "pack.a.f()\"", path, path);
    assert_int_equal(ebb(command), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 5);
    trace_free(trace);
}

// One that is built in, or has slots, takes no other exec_module(): it loads as ever.
static void modules_are_imported_whatever_their_loader_is(void **state)
{
    (void)state;
    trace_free(recorded_script("--within virtual.f",
                               "import importlib.util, sys\n"
                               "class Loader:\n"
                               "    __slots__ = ()\n"
                               "    def create_module(self, spec): return None\n"
                               "    def exec_module(self, module): module.f = lambda: 7\n"
                               "class Finder:\n"
                               "    def find_spec(self, name, path=None, target=None):\n"
                               "        if name != 'virtual': return None\n"
                               "        return importlib.util.spec_from_loader(name, Loader())\n"
                               "sys.meta_path.append(Finder())\n"
                               "import virtual\n"
                               "assert virtual.f() == 7\n"));
    assert_said("virtual.f cannot be replaced: ");
}

// Objects that are called may do anything when they are asked what they have.
static void objects_that_are_called_stay_themselves(void **state)
{
    static const char *const cases[][2] = {
        {"--within things.one", " 4 regions"}, {"--function things.one", " 3 regions"},
        {"--within things.later", " 2 regions"}, {"--within things.broken.name", " 0 regions"},
        {"--within things.Holder.inner", " 2 regions"}};

    (void)state;
    write_module("things",
                 "class Thing:\n"
                 "    limit = 7\n"
                 "    def __call__(self, more=0): return self.limit + more\n"
                 "    @property\n"
                 "    def fitted(self): raise AttributeError('not fitted yet')\n"
                 "    @property\n"
                 "    def broken(self): raise RuntimeError('never')\n"
                 "class Later:\n"
                 "    async def __call__(self): return 9\n"
                 "class Broken:\n"
                 "    def __getattr__(self, name): raise RuntimeError(name)\n"
                 "class Holder: inner = Thing()\n"
                 "one, other, later, broken = Thing(), Thing(), Later(), Broken()\n");
    record_in_ways(cases, COUNT(cases),
                   "import asyncio, inspect, things\n"
                   "assert isinstance(things.one, things.Thing)\n"
                   "assert inspect.iscoroutinefunction(things.later.__call__)\n"
                   "for i in range(2):\n"
                   "    assert things.one() == things.other() == 7\n"
                   "    things.one.limit = 8\n"
                   "    assert things.one(more=1) == 9\n"
                   "    things.one.limit = 7\n"
                   "    assert asyncio.run(things.later()) == 9\n"
                   "    assert things.Holder().inner() == 7\n");
    trace_free(recorded_script("--within things.broken.name", "import things"));
    assert_said("things.broken.name cannot be replaced: __mro__");
}

// The class of the object has the mark, and what it inherits of is the others' as well.
static void classes_that_are_inherited_of_are_not_marked(void **state)
{
    static const char *const cases[][2] = {
        {"--within models.model", " 2 regions"}, {"--within models.Outer.model", " 0 regions"}};

    (void)state;
    write_module("models", "class Module:\n"
                           "    def __call__(self, x=0): return self, x\n"
                           "class Model(Module): pass\n"
                           "class Outer:\n"
                           "    class Model(Module): pass\n"
                           "    model = Model()\n"
                           "model, other, part = Model(), Model(), Module()\n");
    record_in_ways(cases, COUNT(cases),
                   "import models, pickle\n"
                   "code = models.Module.__call__.__code__\n"
                   "assert code.co_varnames == ('self', 'x') and not code.co_names\n"
                   "for kind in models.Module, models.Model, models.Outer.Model:\n"
                   "    assert pickle.loads(pickle.dumps(kind.__call__)) is kind.__call__\n"
                   "for one in models.model, models.other, models.part:\n"
                   "    assert one() == (one, 0) and one(x=1) == (one, 1)\n");
}

// A bound method has its object wherever it is found, and is not given another.
static void bound_methods_stay_bound(void **state)
{
    static const char *const cases[][2] = {
        {"--within bound.Taker.parse", " 2 regions"}, {"--within bound.Taker.run", " 2 regions"},
        {"--within bound.Taker.fromkeys", " 2 regions"}, {"--within bound.run", " 2 regions"}};

    (void)state;
    write_module("bound", "class Giver:\n"
                          "    @classmethod\n"
                          "    def parse(cls, text): return cls, text\n"
                          "    def run(self, text): return self, text\n"
                          "one = Giver()\n"
                          "run = one.run\n"
                          "class Taker(dict):\n"
                          "    parse, run = Giver.parse, one.run\n");
    record_in_ways(cases, COUNT(cases),
                   "import bound, inspect, pickle\n"
                   "for taker in bound.Taker(), bound.Taker:\n"
                   "    assert taker.parse('a') == (bound.Giver, 'a')\n"
                   "    assert taker.run('a') == (bound.one, 'a')\n"
                   "    assert bound.run(text='a') == (bound.one, 'a')\n"
                   "    made = taker.fromkeys('ab')\n"
                   "    assert type(made) is bound.Taker and len(made) == 2\n"
                   "for method in bound.run, bound.Taker.parse, bound.Taker.run:\n"
                   "    assert inspect.ismethod(method)\n"
                   "    pickle.loads(pickle.dumps(method))('a')\n");
}

// A class method may be made of a property, and a static one of a class: there is no call to mark.
static void methods_of_what_is_no_function_are_left_alone(void **state)
{
    (void)state;
    write_module("held", "class Holder:\n"
                         "    size = classmethod(property(lambda cls: 42))\n"
                         "    kind = staticmethod(int)\n");
    trace_free(recorded_script("--within held.Holder.size",
                               "import held, sys\n"
                               "if sys.version_info < (3, 13): assert held.Holder.size == 42\n"));
    assert_said("held.Holder.size is no function: its type is property");
    trace_free(recorded_script("--within held.Holder.kind",
                               "import held\n"
                               "assert isinstance(7, held.Holder.kind)\n"));
    assert_said("held.Holder.kind is no function: its type is type");
}

// Pickle looks for a function by its names, which must lead to what is in its place now.
static void what_is_marked_can_be_pickled(void **state)
{
    static const char *const marked[] = {
        "random.shuffle", "random.random", "again.f", "again.Kind.f", "again.Kind.root",
        "again.Heir.g", "again.part", "again.cached", "again.Kind.g"};
    char options[64];

    (void)state;
    write_module("place", "def f(): pass\n");
    write_module("again", "import functools, math\n"
                          "from place import f\n"
                          "class Kind:\n"
                          "    f, root = staticmethod(f), math.sqrt\n"
                          "    def g(self): pass\n"
                          "class Heir(Kind): pass\n"
                          "part = functools.partial(f)\n"
                          "@functools.cache\n"
                          "def cached(): pass\n"
                          "def inside():\n"
                          "    def local(): pass\n"
                          "    return local\n"
                          "local = inside()\n");
    for (size_t i = 0; i < sizeof marked / sizeof *marked; i++) {
        snprintf(options, sizeof options, "--within %s", marked[i]);
        trace_free(recorded_script(options,
                                   "import again, pickle, random\n"
                                   "for one in (random.shuffle, random.random, again.f,\n"
                                   "            again.Kind.f, again.Kind.root, again.Heir.g,\n"
                                   "            again.part, again.cached, again.Kind.g):\n"
                                   "    pickle.loads(pickle.dumps(one))\n"
                                   "assert again.local.__qualname__ == 'inside.<locals>.local'\n"
                                   "assert again.Kind.g.__qualname__ == 'Kind.g'\n"));
        snprintf(options, sizeof options, "ebb record: %s ", marked[i]);
        assert_null(strstr(said(), options)); // as nothing was in the way
    }
}

static const char generators[] =
    "import asyncio, types\n"
    "def plain(count):\n"
    "    got = []\n"
    "    try:\n"
    "        for i in range(count):\n"
    "            try: got.append((yield i, bytearray(77777)))\n"
    "            except KeyError: got.append('key')\n"
    "    finally: got.append('end')\n"
    "    return got\n"
    "@types.coroutine\n"
    "def old(count): return (yield from asyncio.sleep(0, count).__await__())\n"
    "async def later(got):\n"
    "    try:\n"
    "        for i in range(3):\n"
    "            await asyncio.sleep(0)\n"
    "            try: got.append((yield i, bytearray(77777)))\n"
    "            except KeyError: got.append('key')\n"
    "    finally:\n"
    "        await asyncio.sleep(0)\n"
    "        got.append('end')\n";

static const char generators_script[] =
    "import asyncio, gc, inspect, generators\n"
    "assert inspect.isgeneratorfunction(generators.plain)\n"
    "assert inspect.isasyncgenfunction(generators.later)\n"
    "for i in range(2):\n"
    "    it = generators.plain(3)\n"
    "    assert next(it)[0] == 0 and it.send('a')[0] == 1 and it.throw(KeyError)[0] == 2\n"
    "    try: next(it)\n"
    "    except StopIteration as end: assert end.value == ['a', 'key', None, 'end']\n"
    "    it = generators.plain(3); next(it)\n"
    "    try: it.throw(ValueError('mine'))\n"
    "    except ValueError as fault: assert str(fault) == 'mine' and not fault.__context__\n"
    "    it = generators.plain(3); next(it); it.close()\n"
    "async def all():\n"
    "    assert await generators.old(5) == 5\n"
    "    got = []\n"
    "    assert [i async for i, block in generators.later(got)] == [0, 1, 2]\n"
    "    assert got == [None, None, None, 'end']\n"
    "    got.clear(); it = generators.later(got)\n"
    "    assert (await it.__anext__())[0] == 0 and (await it.asend('a'))[0] == 1\n"
    "    assert (await it.athrow(KeyError))[0] == 2\n"
    "    await it.aclose()\n"
    "    assert got == ['a', 'key', 'end']\n"
    "    got.clear(); it = generators.later(got); await it.__anext__()\n"
    "    try: await it.athrow(ValueError('mine'))\n"
    "    except ValueError as fault: assert str(fault) == 'mine' and not fault.__context__\n"
    "    got.clear(); it = generators.later(got); await it.__anext__()\n"
    "    del it; gc.collect(); await asyncio.sleep(0.1)\n"
    "    assert got == ['end']\n"
    "    got.clear(); kept.append(generators.later(got)); await kept[0].__anext__()\n"
    "kept = []\n"
    "asyncio.run(all())\n"; // which closes the one that is kept

// Frameworks ask what they are given, and a generator's region lasts until it has come to its end.
static void generators_stay_generators(void **state)
{
    static const char *const cases[][2] = {
        {"--within generators.plain", " 6 regions"}, {"--function generators.plain", " 5 regions"},
        {"--within generators.later", " 5 regions"}, {"--function generators.later", " 4 regions"},
        {"--within generators.old", " 1 region"}};

    (void)state;
    write_module("generators", generators);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ebb_trace *trace = recorded_script(cases[i][0], generators_script);

        assert_null(strstr(said(), "Error"));
        assert_said(cases[i][1]);
        trace_free(trace);
    }
    struct ebb_trace *trace = recorded_script("--within generators.plain",
                                              "import generators\n"
                                              "assert len(list(generators.plain(4))) == 4\n");
    assert_int_equal(count(trace, TRACE_ALLOC, 77778) + count(trace, TRACE_CALLOC, 77778), 4);
    trace_free(trace);
}

static const char parameters[] =
    "def plain(a, b=1): return a, b\n"
    "def all(a, b, /, c=3, *d, e, f=6, **g): return a, b, c, d, e, f, g\n"
    "def named(*, a=1): return a\n"
    "def any(*a, **b): return a, b\n"
    "def none(): return 0\n"
    "def generator(a, *, b=2): yield a, b\n"
    "async def coroutine(a, *, b=2): return a, b\n"
    "async def later(a, *, b=2): yield a, b\n"
    "class Kind:\n"
    "    def __call__(self, a, *, __b=2): return self, a, __b\n"
    "kind = Kind()\n";

static const char parameters_script[] =
    "import asyncio, inspect, parameters as p\n"
    "def asked(function): return str(inspect.signature(function, follow_wrapped=False))\n"
    "def refused(function, *a, **b):\n"
    "    try: function(*a, **b)\n"
    "    except TypeError as fault: return str(fault)\n"
    "assert inspect.getfullargspec(p.plain).args == ['a', 'b']\n"
    "assert p.plain.__defaults__ == (1,) and p.plain.__code__.co_name == 'plain'\n"
    "assert asked(p.all) == '(a, b, /, c=3, *d, e, f=6, **g)'\n"
    "assert asked(p.named) == '(*, a=1)' and asked(p.any) == '(*a, **b)'\n"
    "assert asked(p.Kind.__call__) == '(self, a, *, _Kind__b=2)' and asked(p.none) == '()'\n"
    "assert p.plain(7) == p.plain(a=7) == (7, 1) and p.plain(7, b=8) == (7, 8)\n"
    "assert p.all(1, 2, e=5, a=9) == (1, 2, 3, (), 5, 6, {'a': 9})\n"
    "assert p.all(1, 2, 4, 5, f=7, e=6) == (1, 2, 4, (5,), 6, 7, {})\n"
    "assert p.named() == 1 and p.named(a=2) == 2 and p.none() == 0\n"
    "assert p.any() == ((), {}) and p.any(1, b=2) == ((1,), {'b': 2})\n"
    "assert p.kind(1) == (p.kind, 1, 2) and p.kind(1, _Kind__b=3) == (p.kind, 1, 3)\n"
    "assert list(p.generator(1)) == [(1, 2)]\n"
    "assert asyncio.run(p.coroutine(a=1)) == (1, 2)\n"
    "async def all(): return [one async for one in p.later(1, b=3)]\n"
    "assert asyncio.run(all()) == [(1, 3)]\n"
    "for one in p.generator, p.coroutine, p.later:\n"
    "    assert refused(one, 1, 2, 3).startswith(one.__name__ + '() takes 1 positional')\n"
    "    assert \"argument 'c'\" in refused(one, 1, c=3)\n";

// Whoever asks for parameters is told the same, and what is called wrongly fails when it is called.
static void parameters_stay_the_same(void **state)
{
    static const char *const cases[][2] = {
        {"--within parameters.plain", " 3 regions"}, {"--within parameters.all", " 2 regions"},
        {"--within parameters.named", " 2 regions"}, {"--within parameters.any", " 2 regions"},
        {"--within parameters.none", " 1 region"}, {"--within parameters.generator", " 1 region"},
        {"--within parameters.coroutine", " 1 region"}, {"--within parameters.later", " 1 region"},
        {"--within parameters.kind", " 2 regions"}};

    (void)state;
    write_module("parameters", parameters);
    record_in_ways(cases, COUNT(cases), parameters_script);
}

static const char same[] =
    "def half(x): return x / 2\n"
    "def f(x): return half(x)\n"
    "alias, handled = f, {f: 'f'}\n"
    "class Kind:\n"
    "    def m(self, x): return __class__, super().__hash__(), x.real\n"
    "    @staticmethod\n"
    "    def s(x): return x.real\n"
    "    @classmethod\n"
    "    def c(cls, x): return super().__hash__, x.real\n"
    "class Heir(Kind): pass\n"
    "def outer():\n"
    "    unit, count = 1, 7\n"
    "    def inner(x):\n"
    "        nonlocal count\n"
    "        count += unit\n"
    "        return count * x.real\n"
    "    return inner, lambda: count\n"
    "inner, counted = outer()\n";

static const char same_script[] =
    "import inspect, same, traceback\n"
    "assert same.f is same.alias and same.handled[same.f] == 'f'\n"
    "assert same.Kind.s is same.Heir.s and same.inner.__code__.co_freevars == ('count', 'unit')\n"
    "kind, heir = same.Kind(), same.Heir()\n"
    "ways = same.f, same.inner, kind.m, kind.s, kind.c, heir.m\n"
    "for way in ways + (same.alias,):\n"
    "    way(4)\n"
    "    function = getattr(way, '__func__', way)\n"
    "    assert function.__globals__ is vars(same)\n"
    "    assert function.__code__.co_name == function.__name__\n"
    "    assert f'def {way.__name__}(' in inspect.getsource(way)\n"
    "    try: way('x')\n"
    "    except Exception as fault: frames = traceback.extract_tb(fault.__traceback__)[1:]\n"
    "    assert all(frame.line and frame.filename == same.__file__ for frame in frames)\n"
    "assert same.counted() == 9 and kind.m(1)[0] is same.Kind\n";

// Programs dispatch by the functions that they have been given, look names up where these are, and
// compile what inspect finds: it is all as it was.
static void functions_stay_themselves(void **state)
{
    static const char *const cases[][2] = {
        {"--within same.f", " 4 regions"}, {"--within same.inner", " 2 regions"},
        {"--within same.Kind.m", " 5 regions"}, {"--within same.Kind.s", " 2 regions"},
        {"--within same.Kind.c", " 2 regions"}, {"--within same.Heir.m", " 2 regions"}};

    (void)state;
    write_module("same", same);
    record_in_ways(cases, COUNT(cases), same_script);
}

// Whose functions are others than those that were marked.
static void a_module_that_is_loaded_again_is_marked_again(void **state)
{
    static const char *const cases[][2] = {
        {"--within fresh.f", " 6 regions"}, {"--within fresh.Kind.f", " 6 regions"},
        {"--within fresh.one", " 6 regions"}, {"--within fresh.root", " 6 regions"}};

    (void)state;
    write_module("other", "class Other:\n"
                          "    def __call__(self): return 7\n");
    write_module("fresh", "import other, math\n"
                          "def f(): return 7\n"
                          "class Kind: f = f\n"
                          "one, root = other.Other(), math.sqrt\n");
    record_in_ways(cases, COUNT(cases),
                   "import fresh, importlib\n"
                   "for i in range(3):\n"
                   "    for j in range(2): fresh.Kind.f(), fresh.one(), fresh.root(4)\n"
                   "    importlib.reload(fresh)\n");
}

// One ends while others that began later go on: what ends is its region and not the last begun.
static void calls_that_overlap_have_regions_of_their_own(void **state)
{
    struct ebb_trace *trace;
    uint32_t open = 0, steps = 0;

    (void)state;
    write_module("server", "import asyncio\n"
                           "async def handle(begun, end):\n"
                           "    begun.set()\n"
                           "    await end.wait()\n");
    trace = recorded_script("--within server.handle",
                            "import asyncio, server\n"
                            "async def start():\n"
                            "    begun, end = asyncio.Event(), asyncio.Event()\n"
                            "    task = asyncio.create_task(server.handle(begun, end))\n"
                            "    await begun.wait()\n"
                            "    return task, end\n"
                            "async def finish(task, end):\n"
                            "    end.set()\n"
                            "    await task\n"
                            "async def all():\n"
                            "    last = await start()\n"
                            "    for i in range(9):\n"
                            "        following = await start()\n"
                            "        await finish(*last)\n"
                            "        last = following\n"
                            "    await finish(*last)\n"
                            "asyncio.run(all())\n");
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 10);
    for (uint32_t i = 0; i < trace->event_count; i++) {
        steps += trace->events[i].op == TRACE_BEGIN && open == 0;
        open += trace->events[i].op == TRACE_BEGIN;
        open -= trace->events[i].op == TRACE_END;
    }
    assert_int_equal(steps, 5); // every second one begins inside of another, and ends with it
    trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python_programs_run_on_whatever_is_marked),
        cmocka_unit_test(modules_are_imported_whatever_their_loader_is),
        cmocka_unit_test(objects_that_are_called_stay_themselves),
        cmocka_unit_test(classes_that_are_inherited_of_are_not_marked),
        cmocka_unit_test(bound_methods_stay_bound),
        cmocka_unit_test(methods_of_what_is_no_function_are_left_alone),
        cmocka_unit_test(what_is_marked_can_be_pickled),
        cmocka_unit_test(coroutines_stay_coroutines),
        cmocka_unit_test(generators_stay_generators),
        cmocka_unit_test(parameters_stay_the_same),
        cmocka_unit_test(functions_stay_themselves),
        cmocka_unit_test(a_module_that_is_loaded_again_is_marked_again),
        cmocka_unit_test(calls_that_overlap_have_regions_of_their_own),
        cmocka_unit_test(a_function_of_an_archives_module_is_no_others),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
