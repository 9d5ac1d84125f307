// SPDX-License-Identifier: Apache-2.0
//
// test_marks.c - steps that the program does not have itself: --function, --within and --every; and
// where those that it has end. What becomes of the functions of Python programs is in
// test_python.c.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "plugged.h"
#include "recording.h"

static void calls_of_a_function_make_regions(void **state)
{
    struct ebb_trace *trace = recorded("--function strtold", "calls");

    (void)state;
    assert_int_equal(count(trace, TRACE_BEGIN, 0), CLIENT_STEPS - 1); // the last call ends one
    assert_string_equal(trace->kinds.word[0], "strtold");
    trace_free(trace);
}

static void names_are_as_long_as_those_of_templates(void **state)
{
    struct ebb_trace *trace = recorded("--function " CLIENT_LONG_NAME, "calls");
    char command[5000];

    (void)state;
    assert_int_equal(count(trace, TRACE_BEGIN, 0), CLIENT_STEPS - 1);
    assert_memory_equal(trace->kinds.word[0], CLIENT_LONG_NAME, TRACE_WORD_MAX);
    trace_free(trace);
    snprintf(command, sizeof command, "record --function %04096d -- true", 0);
    assert_int_equal(ebb(command), 2);
    assert_said("a name of 4096 bytes is too long, the most is 4095");
    assert_int_equal(ebb("record --function '' -- true"), 2);
    assert_said("without a name");
}

// One call begins a region that no other ends: it was seen, but there is none.
static void a_function_that_is_called_once_makes_no_region(void **state)
{
    struct ebb_trace *trace = recorded("--function strtof", "calls");
    char command[1024];

    (void)state;
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 0);
    assert_said("no thread called strtof twice, and a region lasts from one call to the next\n");
    trace_free(trace);
    snprintf(command, sizeof command, "record --function json.dumps -o %s -- /usr/bin/python3 -c "
                                      "'import json; json.dumps(1)'", path);
    assert_int_equal(ebb(command), 0);
    assert_said("a region lasts from one call to the next; with --within it is the call\n");
    trace_free(recorded("--function strtod", "calls"));
    assert_said("no call of strtod was seen");
}

// The C library keeps what went wrong in a thread, and frees it in the thread's last free().
static void a_function_that_is_nowhere_harms_no_thread(void **state)
{
    (void)state;
    trace_free(recorded("--function client_nowhere", "workers"));
    assert_said("no call of client_nowhere was seen");
}

// The linker still writes where its tables will be read-only, and adds to what it finds there.
static void libraries_that_are_being_loaded_are_left_alone(void **state)
{
    (void)state;
    trace_free(recorded("--function strstr", "opens"));
}

// Python opens each module for itself alone, and what it is linked with.
static void functions_of_a_modules_library_are_found(void **state)
{
    char command[1024];
    struct ebb_trace *trace;

    (void)state;
    snprintf(command, sizeof command,
             "record --function sqlite3_step -o %s -- /usr/bin/python3 -c 'import sqlite3\n"
             "base = sqlite3.connect(\":memory:\")\n"
             "kept = [bytes(size) for size in range(600, 9000)]\n"
             "for i in range(100): base.execute(\"select 1\").fetchall()'", path);
    assert_int_equal(ebb(command), 0);
    trace = read_it();
    assert_true(count(trace, TRACE_BEGIN, 0) >= 100);
    trace_free(trace);
}

// What turns of libebb-malloc would be of a server that has no steps.
static void turns_of_a_loop_are_regions(void **state)
{
    enum { TURNS = 20 };
    char command[1024];
    struct ebb_trace *trace;

    (void)state;
    snprintf(command, sizeof command,
             "record -q --function epoll_wait -o %s -- /usr/bin/python3 -c 'import asyncio\n"
             "async def turn():\n"
             "    for _ in range(%d): kept = bytes(9000); await asyncio.sleep(0.001)\n"
             "asyncio.run(turn())'", path, TURNS);
    assert_int_equal(ebb(command), 0);
    trace = read_it();
    assert_true(count(trace, TRACE_BEGIN, 0) >= TURNS);
    trace_free(trace);
}

// The program reads what is no function, and would read the recorder's code.
static void data_is_not_watched(void **state)
{
    (void)state;
    trace_free(recorded("--function client_seven", "number"));
    assert_said("no call of client_seven was seen");
}

// Such a program's own linkage table has the address by which all others find the function.
static void functions_are_found_behind_a_program_at_a_fixed_address(void **state)
{
    static const char *const names[] = {"strtold", "malloc"};
    char arguments[1024];

    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(arguments, sizeof arguments, "record --function %s -o %s -- timeout 20 %s",
                 names[i], path, getenv("EBB_FIXED"));
        assert_int_equal(ebb(arguments), 0);
        struct ebb_trace *trace = read_it();
        if (i == 0)
            assert_int_equal(count(trace, TRACE_BEGIN, 0), 2 * CLIENT_STEPS - 1);
        else
            assert_true(count(trace, TRACE_BEGIN, 0) > CLIENT_MANY / 2);
        assert_true(count(trace, TRACE_ALLOC, CLIENT_FRESH) >= CLIENT_STEPS - 1);
        trace_free(trace);
    }
}

// Of several functions of one name a program calls the one that it would without a recorder.
static void every_call_is_of_the_function_that_it_was_of(void **state)
{
    static const char *const cases[][2] = {
        {"client_choice", "version"}, {"client_plug", "deep"}, {"client_plug", "deep_and_late"},
        {"client_late", "hidden"}, {"client_late", "closed"}};
    char option[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(option, sizeof option, "--function %s", cases[i][0]);
        int code = record(option, "EBB_PLUGGED", cases[i][1]);
        if (code)
            print_error("%s: %s\n", cases[i][1], said());
        assert_int_equal(code, 0);
    }
}

// What the linker has not bound when libraries are looked at is seen at the next look.
static void functions_that_are_bound_late_are_found(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    assert_int_equal(record("--function client_late", "EBB_PLUGGED", "closed"), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 2 * PLUGGED_CALLS - 1);
    trace_free(trace);
    assert_int_equal(record("--function client_plug", "EBB_PLUGGED", "deep"), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 4 * PLUGGED_CALLS - 1); // but for its own
    trace_free(trace);
}

// Whatever the recorder and the C library below it do with vector registers.
static void arguments_of_watched_calls_are_kept_whole(void **state)
{
    struct ebb_trace *trace = recorded("--function client_sum", "wide");

    (void)state;
#if defined __x86_64__
    if (__builtin_cpu_supports("avx"))
        assert_true(count(trace, TRACE_BEGIN, 0) > CLIENT_MANY / 2);
#endif
    trace_free(trace);
}

static void a_signal_handler_may_have_marks(void **state)
{
    struct ebb_trace *trace = recorded("", "handled");

    (void)state;
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 3);
    assert_int_equal(trace->kinds.count, 2);
    trace_free(trace);
}

static struct ebb_trace *recorded_python(const char *option)
{
    char command[1024];

    snprintf(command, sizeof command,
             "record %s json.JSONEncoder.encode -o %s -- /usr/bin/python3 -c 'import json\n"
             "for i in range(9): json.dumps([0] * 5000, indent=i); bytearray(77777)'", option,
             path);
    assert_int_equal(ebb(command), 0);
    return read_it();
}

// A recording inside of another has only what it was asked for itself.
static void settings_of_another_recording_do_not_count(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    setenv("EBB_RECORD_FUNCTION", "strtold", 1);
    setenv("EBB_RECORD_LIMIT", "1000000", 1);
    setenv("EBB_RECORD_PYTHON_WITHIN", "json.dumps", 1);
    trace = recorded("", "calls");
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 0);
    assert_true(count(trace, TRACE_ALLOC, CLIENT_MALLOC) >= CLIENT_MANY);
    trace_free(trace);
    trace = recorded_python("--function");
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 8);
    trace_free(trace);
    unsetenv("EBB_RECORD_FUNCTION");
    unsetenv("EBB_RECORD_LIMIT");
    unsetenv("EBB_RECORD_PYTHON_WITHIN");
}

// What makes room for the record of a call must not note a call itself.
static void calls_of_the_recorder_are_not_the_programs(void **state)
{
    static const char *const its_own[] = {"--function pthread_sigmask",
                                          "--function posix_fallocate",
                                          "--function dl_iterate_phdr"};

    (void)state;
    for (size_t i = 0; i < sizeof its_own / sizeof *its_own; i++) {
        struct ebb_trace *trace = recorded(its_own[i], "calls");

        assert_int_equal(count(trace, TRACE_BEGIN, 0), 0);
        assert_true(count(trace, TRACE_ALLOC, CLIENT_MALLOC) >= CLIENT_MANY);
        trace_free(trace);
    }
}

// Regions last to the next call, and have what lies between; or they are the calls.
static void calls_of_a_python_function_make_regions(void **state)
{
    struct ebb_trace *trace = recorded_python("--function");

    (void)state;
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 8);
    assert_string_equal(trace->kinds.word[0], "encode");
    assert_int_equal(count(trace, TRACE_ALLOC, 77778) + count(trace, TRACE_CALLOC, 77778), 8);
    trace_free(trace);
    trace = recorded_python("--within");
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 9);
    assert_int_equal(count(trace, TRACE_END, 0), 9);
    trace_free(trace);
    trace = recorded_python("--within json.dumps --function"); // the last one counts
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 8);
    trace_free(trace);
    assert_int_equal(ebb("record --within strtold -- true"), 2);
}

// By hand, without the tool: what names no function of a module is told, and all else goes on.
static void a_name_by_hand_that_names_nothing_is_told(void **state)
{
    static const char *const settings[] = {"FUNCTION", "WITHIN"};
    char command[2048];

    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        snprintf(command, sizeof command,
                 "mkdir %s/by_hand && EBB_RECORD_PYTHON_%s=encode EBB_RECORD_SPOOL=%s/by_hand "
                 "PYTHONPATH=$(dirname %s) LD_PRELOAD=%s /usr/bin/python3 -c 'print(7)' "
                 ">%s/said 2>&1; rm -r %s/by_hand", folder, settings[i], folder,
                 getenv("EBB_RECORDER"), getenv("EBB_RECORDER"), folder, folder);
        assert_int_equal(system(command), 0);
        assert_string_equal(said(), "ebb record: 'encode' is no module.function; its calls make no "
                                    "regions\n7\n");
    }
}

// A program without a standard error has the standard output for itself.
static void nothing_is_told_where_nobody_listens(void **state)
{
    char command[1024];

    (void)state;
    snprintf(command, sizeof command,
             "record -q --function json.nothing -o %s -- "
             "sh -c \"/usr/bin/python3 -c 'print(7)' 2>&-\"", path);
    assert_int_equal(ebb(command), 0);
    assert_string_equal(said(), "7\n");
}

// More processes come and go than the tool watches at once, and then the one that counts.
static void ticks_reach_the_last_of_many_processes(void **state)
{
    struct ebb_trace *trace;
    char command[2048];

    (void)state;
    snprintf(command, sizeof command,
             "cat >%s/script <<'EOF'\n"
             "for i in $(seq 300); do /bin/true; done\n"
             "/usr/bin/python3 -c 'import sys, time\n"
             "for i in range(int(sys.argv[1])): "
             "[str(j) * 600 for j in range(100)]; time.sleep(0.02)' $1\nEOF\n",
             folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "sh %s/script", folder);
    trace = recorded_ticks(command, 60);
    assert_true(count(trace, TRACE_BEGIN, 0) >= 5);
    trace_free(trace);
}

// A site that no step was begun of is no mark.
static void ticks_count_where_marks_could_be_and_are_not(void **state)
{
    char command[1024];

    (void)state;
    snprintf(command, sizeof command, "%s idle", getenv("EBB_STEPPED"));
    struct ebb_trace *trace = recorded_ticks(command, 40);

    assert_true(count(trace, TRACE_BEGIN, 0) >= 5);
    assert_int_equal(trace->kinds.count, 1);
    assert_string_equal(trace->kinds.word[0], "tick");
    assert_non_null(header_line("#settings a region every 10 ms"));
    trace_free(trace);
}

// Where nothing was noted since the last one a tick says nothing, for as long as that may be.
static void ticks_end_with_what_was_noted(void **state)
{
    char command[1024], file[256];
    uint32_t tick[4096], last = 0;

    (void)state;
    unlink(path);
    snprintf(command, sizeof command,
             "record -q --keep --every 1 -o %s -- sh -c '%s loop; sleep 1'", path,
             getenv("EBB_CLIENT"));
    assert_int_equal(ebb(command), 0);
    trace_free(read_it());
    snprintf(file, sizeof file, "%s/ticks", folder);
    snprintf(command, sizeof command,
             "for i in %s.spool-*/*.ticks; do cat $i; printf '\\0\\0\\0\\0'; done >%s && "
             "rm -r %s.spool-*", path, file, path);
    assert_int_equal(system(command), 0);
    FILE *ticks = fopen(file, "r");
    assert_non_null(ticks);
    size_t there = fread(tick, sizeof *tick, 4096, ticks);
    fclose(ticks);
    unlink(file);
    assert_in_range(there, 2, 4095); // at least of what sleeps, and what was put after it
    for (size_t i = 0; i < there; last = tick[i++])
        assert_true(tick[i] == 0 || tick[i] > last);
}

// Without them it would be a trace like any other.
static void ticks_that_there_is_no_memory_for_are_told(void **state)
{
    char command[1024];

    (void)state;
    assert_int_equal(record("--keep", "EBB_CLIENT", "loop"), 0);
    snprintf(command, sizeof command,
             "for i in %s.spool-*/*; do truncate -s 16G $i.ticks; done; ulimit -v 4000000; "
             "exec %s record --recover %s.spool-* -o %s 2>%s/said", path, getenv("EBB_TOOL"), path,
             path, folder);
    assert_int_equal(WEXITSTATUS(system(command)), 1);
    assert_said(".ticks: no memory for 17179869184 bytes\n");
    snprintf(command, sizeof command, "rm -r %s.spool-*", path);
    assert_int_equal(system(command), 0);
}

// Steps with this tag, and all have this name.
static void check_named(const struct ebb_trace *trace, uint64_t tag, const char *name,
                        uint32_t steps)
{
    assert_int_equal(count(trace, TRACE_BEGIN, tag), steps);
    for (uint32_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == TRACE_BEGIN && trace->events[i].value == tag)
            assert_string_equal(trace->kinds.word[trace->events[i].name], name);
}

static void steps_have_the_names_of_their_sites_however_many(void **state)
{
    static const char *const clients[] = {"EBB_CLIENT", "EBB_CLIENT_LINKED"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct ebb_trace *trace;

        assert_int_equal(record("", clients[i], "sites"), 0);
        trace = read_it();
        check_named(trace, 1, "even", CLIENT_SITES);
        check_named(trace, 2, "odd", CLIENT_SITES);
        check_named(trace, 3, "first", 10);
        check_named(trace, 4, "many", CLIENT_SITES - 10);
        check_named(trace, 5, "site", CLIENT_MORE);
        check_named(trace, 6, "site", 1);
        trace_free(trace);
    }
}

// In a library that was loaded for itself, as a Python wheel is. One with a jemalloc inside, which
// has some places in what threads have from the beginning, cannot be.
static void steps_of_a_libebb_inside_a_library_are_seen(void **state)
{
    enum { CANNOT_BE = 77 };
    struct ebb_trace *trace;
    char command[2048];
    int code;

    (void)state;
    snprintf(command, sizeof command,
             "record -q -o %s -- /usr/bin/python3 -c 'import ctypes, sys\n"
             "try:\n"
             "    library = ctypes.CDLL(\"%s\")\n"
             "except OSError as error:\n"
             "    sys.exit(%d if \"static TLS\" in str(error) else str(error))\n"
             "sys.exit(library.steps())'", path, getenv("EBB_INSIDE"), CANNOT_BE);
    code = ebb(command);
    if (code == CANNOT_BE)
        skip();
    assert_int_equal(code, 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_BEGIN, 7), CLIENT_STEPPED);
    trace_free(trace);
}

// Calls and begins in each other, above the depth that a trace has and below it, and a begin whose
// region ends with the call around it before its own end comes: what comes later has its own ends.
// A call ends that of the last call, and no other region of that name.
static void an_end_is_of_the_begin_that_it_belongs_to(void **state)
{
    struct ebb_trace *trace;
    char command[2048];
    int depth = 0;

    (void)state;
    snprintf(command, sizeof command,
             "record -q -o %s -- /usr/bin/python3 -c 'import ctypes\n"
             "program = ctypes.CDLL(None)\n"
             "begin, end = program.ebb_record_begin, program.ebb_record_end\n"
             "call = program.ebb_record_call\n"
             "def nest(levels):\n"
             "    begin(b\"level\", 1)\n"
             "    if levels > 1: nest(levels - 1)\n"
             "    else: [call(b\"call\") for i in range(3)]\n"
             "    end()\n"
             "def cross():\n"
             "    begin(b\"outer\", 1); call(b\"call\"); begin(b\"inner\", 1); call(b\"call\")\n"
             "    end(); begin(b\"later\", 3); end(); end()\n"
             "for levels in (1, 2, 15, 16, 17, 40): nest(levels); begin(b\"step\", 7); end()\n"
             "cross(); begin(b\"step\", 7); end()\n"
             "begin(b\"call\", 1); call(b\"call\"); begin(b\"inner\", 3); end(); end()'", path);
    assert_int_equal(ebb(command), 0);
    trace = read_it();
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];

        if (event->op == TRACE_BEGIN && event->value == 7)
            assert_int_equal(depth, 0);
        if (event->op == TRACE_BEGIN && event->value == 3) // in a plain one, and in its call
            assert_int_equal(depth, 2);
        depth += (event->op == TRACE_BEGIN) - (event->op == TRACE_END);
    }
    assert_int_equal(count(trace, TRACE_BEGIN, 7), 7);
    assert_int_equal(count(trace, TRACE_BEGIN, 3), 2);
    trace_free(trace);
}

// Regions of the outermost ones' tag, which is 0, lie in no other; of others there is none deeper.
static void check_depths(const struct ebb_trace *trace, const char *scenario)
{
    uint64_t depth = 0;

    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];

        if (event->op == TRACE_BEGIN && depth != event->value)
            print_error("%s: step of tag %d in %d others\n", scenario, (int)event->value,
                        (int)depth);
        if (event->op == TRACE_BEGIN)
            assert_int_equal(depth, event->value);
        depth += event->op == TRACE_BEGIN;
        depth -= event->op == TRACE_END;
    }
}

static void steps_of_libebb_end_however_they_end_there(void **state)
{
    static const struct {
        const char *scenario;
        uint32_t steps;
        const char *options;
    } cases[] = {{"cleanups", CLIENT_STEPPED, ""}, {"parents", 2 * CLIENT_STEPPED, ""},
                 {"dropped", 2 * CLIENT_STEPPED, ""}, {"marked", 2 * CLIENT_STEPPED, ""},
                 {"watched", CLIENT_STEPPED, "--function strtold"},
                 {"rings", 1 + CLIENT_STEPPED, ""}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(record(cases[i].options, "EBB_STEPPED", cases[i].scenario), 0);
        struct ebb_trace *trace = read_it();

        check_depths(trace, cases[i].scenario);
        assert_int_equal(count(trace, TRACE_BEGIN, 0), cases[i].steps);
        assert_null(header_line("#too-deep"));
        trace_free(trace);
    }
}

// What is too deep for a trace takes nothing with it: steps behind it are outermost ones.
static void steps_that_lie_too_deep_end_with_their_parent(void **state)
{
    (void)state;
    assert_int_equal(record("", "EBB_STEPPED", "deep"), 0);
    struct ebb_trace *trace = read_it();

    check_depths(trace, "deep");
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 3 * CLIENT_NESTS + CLIENT_STEPPED);
    assert_non_null(header_line("#too-deep"));
    trace_free(trace);
}

// Whoever recorded has gone, and the folder of the recording with it: nobody is told.
static void what_outlives_the_recording_is_quiet(void **state)
{
    char command[2000];

    (void)state;
    snprintf(command, sizeof command,
             "record -q -o %s -- sh -c '(while kill -0 $PPID; do sleep 0.1; done; "
             "ls /; echo over) >%s.late 2>&1 & exit 0'", path, path);
    assert_int_equal(ebb(command), 0);
    snprintf(command, sizeof command,
             "timeout --foreground 60 sh -c 'until grep -q ^over %s.late; do sleep 0.1; done'; "
             "! grep libebb-record %s.late", path, path);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_a_function_make_regions),
        cmocka_unit_test(names_are_as_long_as_those_of_templates),
        cmocka_unit_test(a_function_that_is_called_once_makes_no_region),
        cmocka_unit_test(a_function_that_is_nowhere_harms_no_thread),
        cmocka_unit_test(libraries_that_are_being_loaded_are_left_alone),
        cmocka_unit_test(functions_of_a_modules_library_are_found),
        cmocka_unit_test(turns_of_a_loop_are_regions),
        cmocka_unit_test(data_is_not_watched),
        cmocka_unit_test(functions_are_found_behind_a_program_at_a_fixed_address),
        cmocka_unit_test(every_call_is_of_the_function_that_it_was_of),
        cmocka_unit_test(functions_that_are_bound_late_are_found),
        cmocka_unit_test(arguments_of_watched_calls_are_kept_whole),
        cmocka_unit_test(a_signal_handler_may_have_marks),
        cmocka_unit_test(settings_of_another_recording_do_not_count),
        cmocka_unit_test(calls_of_the_recorder_are_not_the_programs),
        cmocka_unit_test(calls_of_a_python_function_make_regions),
        cmocka_unit_test(a_name_by_hand_that_names_nothing_is_told),
        cmocka_unit_test(nothing_is_told_where_nobody_listens),
        cmocka_unit_test(ticks_reach_the_last_of_many_processes),
        cmocka_unit_test(ticks_count_where_marks_could_be_and_are_not),
        cmocka_unit_test(ticks_end_with_what_was_noted),
        cmocka_unit_test(ticks_that_there_is_no_memory_for_are_told),
        cmocka_unit_test(steps_have_the_names_of_their_sites_however_many),
        cmocka_unit_test(steps_of_a_libebb_inside_a_library_are_seen),
        cmocka_unit_test(an_end_is_of_the_begin_that_it_belongs_to),
        cmocka_unit_test(steps_of_libebb_end_however_they_end_there),
        cmocka_unit_test(steps_that_lie_too_deep_end_with_their_parent),
        cmocka_unit_test(what_outlives_the_recording_is_quiet),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
