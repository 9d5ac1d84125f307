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

#include "recording.h"

// Methods of every sort are marked, and what cannot be is left alone: the program ends as ever.
static void python_programs_run_on_whatever_is_marked(void **state)
{
    static const char *const cases[][2] = {
        {"kinds.Kind.plain", " 4 regions"}, {"kinds.Kind.static", " 6 regions"},
        {"kinds.Kind.cls", " 6 regions"}, {"kinds.Heir.cls", " 2 regions"},
        {"kinds.Kind.cached", " 4 regions"}, {"kinds.Kind.root", " 2 regions"},
        {"kinds.Kind.value", "kinds.Kind.value is no function: its type is property"},
        {"kinds.Kind", "kinds.Kind is no function: its type is type"},
        {"datetime.datetime.now", "datetime.datetime.now cannot be replaced: "},
        {"kinds.Kind.nothing", "kinds.Kind.nothing was not found in a module that is imported"}};
    char command[1024];

    (void)state;
    snprintf(command, sizeof command, "cat >%s/kinds.py <<'EOF'\n"
             "import functools, math\nclass Kind:\n"
             "    def plain(self): return self\n"
             "    @staticmethod\n    def static(word): return word\n"
             "    @classmethod\n    def cls(cls): return cls\n"
             "    value = property(lambda self: 7)\n"
             "    @functools.cache\n    def cached(self): return self\n"
             "    root = math.sqrt\n"
             "class Heir(Kind): pass\nEOF\n", folder);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(command, sizeof command,
                 "record --within %s -o %s -- /usr/bin/python3 -c 'import sys\n"
                 "sys.path.append(\"%s\")\n"
                 "old = type(\"\", (), {\"find_module\": lambda *names: None})\n"
                 "sys.meta_path.insert(0, old())\n"
                 "import datetime, kinds\nkind, heir = kinds.Kind(), kinds.Heir()\n"
                 "for i in range(2):\n"
                 "    datetime.datetime.now()\n"
                 "    assert isinstance(kind.plain(), kinds.Kind) and heir.plain() is heir\n"
                 "    assert kind.static(7) == kinds.Kind.static(7) == heir.static(kind.value)\n"
                 "    assert kind.cls() is kinds.Kind.cls() and heir.cls() is kinds.Heir\n"
                 "    assert kind.cached() is kind.cached() and kind.root(4) == 2\n"
                 "assert kinds.Kind.cached.cache_info().hits == 3\n'",
                 cases[i][0], path, folder);
        assert_int_equal(ebb(command), 0);
        assert_said(cases[i][1]);
    }
}

// Servers ask whether a function is to be awaited, and its region lasts until it has been.
static void coroutines_stay_coroutines(void **state)
{
    static const char *const cases[][2] = {{"function", " 3 regions"}, {"within", " 4 regions"}};
    char command[1024];

    (void)state;
    snprintf(command, sizeof command, "cat >%s/later.py <<'EOF'\n"
             "import asyncio\nasync def step(number):\n"
             "    await asyncio.sleep(0)\n"
             "    return number, bytearray(77777)\nEOF\n", folder);
    assert_int_equal(system(command), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "record --%s later.step -o %s -- /usr/bin/python3 -c 'import sys\n"
                 "sys.path.append(\"%s\")\nimport asyncio, inspect, later\n"
                 "assert inspect.iscoroutinefunction(later.step)\n"
                 "async def all():\n"
                 "    for i in range(4): assert (await later.step(i))[0] == i\n"
                 "asyncio.run(all())\n'", cases[i][0], path, folder);
        assert_int_equal(ebb(command), 0);
        assert_said(cases[i][1]);
        struct ebb_trace *trace = read_it();
        assert_int_equal(count(trace, TRACE_ALLOC, 77778), 3 + i);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python_programs_run_on_whatever_is_marked),
        cmocka_unit_test(coroutines_stay_coroutines),
        cmocka_unit_test(a_function_of_an_archives_module_is_no_others),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
