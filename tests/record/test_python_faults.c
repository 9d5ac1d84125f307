// SPDX-License-Identifier: Apache-2.0
//
// test_python_faults.c - exceptions out of a marked Python function, wherever they are raised: the
// program sees its own, and no region stays open.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "recording.h"

// The most regions that are open at once.
static uint32_t depth_of(const struct ebb_trace *trace)
{
    uint32_t open = 0, most = 0;

    for (uint32_t i = 0; i < trace->event_count; i++) {
        open += trace->events[i].op == TRACE_BEGIN;
        open -= trace->events[i].op == TRACE_END;
        most = open > most ? open : most;
    }
    return most;
}

// A profiler raises where the handler of a signal may: after a call has begun the region and before
// anybody has it.
static void a_call_that_is_cut_short_as_it_begins_ends_its_region(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    write_module("work", "def step(): return bytearray(77777)\n");
    trace = recorded_script("--within work.step",
                            "import sys, work\n"
                            "class Cut(Exception): pass\n"
                            "def cut(frame, event, result):\n"
                            "    if event == 'return' and frame.f_code.co_name == 'begin':\n"
                            "        raise Cut\n"
                            "cuts = 0\n"
                            "for i in range(4):\n"
                            "    sys.setprofile(cut)\n"
                            "    try: work.step()\n"
                            "    except Cut: cuts += 1\n"
                            "    work.step()\n"
                            "assert cuts == 4\n");
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 8);
    assert_int_equal(depth_of(trace), 1);
    trace_free(trace);
}

// As timeouts do it; the call may be cut short anywhere.
static void signals_leave_no_region_open(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    write_module("work", "def step(): return [bytearray(1000) for i in range(3)]\n");
    trace = recorded_script("--within work.step",
                            "import signal, work\n"
                            "class Timeout(Exception): pass\n"
                            "def cut(*_): raise Timeout\n"
                            "signal.signal(signal.SIGALRM, cut)\n"
                            "for i in range(400):\n"
                            "    try:\n"
                            "        signal.setitimer(signal.ITIMER_REAL, 0.0004)\n"
                            "        while True: work.step()\n"
                            "    except Timeout: pass\n"
                            "work.step()\n");
    assert_int_equal(depth_of(trace), 1);
    assert_null(header_line("#too-deep"));
    trace_free(trace);
}

// The traceback has the frames of the call for as long as the program keeps it.
static void an_exception_that_is_kept_keeps_no_region(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    write_module("work", "def step(good): return bytearray(77777) if good else [][1]\n");
    trace = recorded_script("--within work.step",
                            "import work\n"
                            "kept = []\n"
                            "for i in range(3):\n"
                            "    try: work.step(False)\n"
                            "    except IndexError as fault: kept.append(fault)\n"
                            "    work.step(True)\n");
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 6);
    assert_int_equal(depth_of(trace), 1);
    trace_free(trace);
}

// As error reporters and debuggers do it: what they keep of the caller's locals is no region.
static void locals_that_are_read_keep_no_region(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    write_module("work", "import sys\n"
                         "kept = []\n"
                         "def step(good):\n"
                         "    kept.append(sys._getframe(1).f_locals)\n"
                         "    return bytearray(77777) if good else [][1]\n"
                         "def steps(good):\n"
                         "    yield step(good)\n");
    for (int i = 0; i < 2; i++) {
        trace = recorded_script(i ? "--within work.steps" : "--within work.step",
                                "import inspect, work\n"
                                "for i in range(3):\n"
                                "    try: work.step(False)\n"
                                "    except IndexError as fault: work.kept.append(fault)\n"
                                "    try: next(work.steps(False))\n"
                                "    except IndexError as fault: work.kept.append(fault)\n"
                                "    work.step(True)\n"
                                "    steps = work.steps(True)\n"
                                "    next(steps)\n"
                                "    work.kept.append(inspect.getgeneratorlocals(steps))\n"
                                "    assert list(steps) == []\n");
        assert_int_equal(count(trace, TRACE_BEGIN, 0), i ? 6 : 12);
        assert_int_equal(depth_of(trace), 1);
        trace_free(trace);
    }
}

// The stack may be full in the program's code or in that around it: begun at several depths.
static void a_full_stack_is_the_same_error(void **state)
{
    static const char *const options[] = {"--within deep.Kind.down", "--function deep.Kind.down"};

    (void)state;
    write_module("deep", "class Kind:\n"
                         "    def down(self, left): return left and self.down(left - 1)\n");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        trace_free(recorded_script(options[i],
                                   "import deep\n"
                                   "kind, errors = deep.Kind(), 0\n"
                                   "def at(depth):\n"
                                   "    return at(depth - 1) if depth else kind.down(10 ** 6)\n"
                                   "for depth in range(16):\n"
                                   "    try: at(depth)\n"
                                   "    except RecursionError: errors += 1\n"
                                   "    kind.down(3)\n"
                                   "assert errors == 16\n"));
        assert_null(strstr(said(), "Error"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_is_cut_short_as_it_begins_ends_its_region),
        cmocka_unit_test(signals_leave_no_region_open),
        cmocka_unit_test(an_exception_that_is_kept_keeps_no_region),
        cmocka_unit_test(locals_that_are_read_keep_no_region),
        cmocka_unit_test(a_full_stack_is_the_same_error),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
