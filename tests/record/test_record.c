// SPDX-License-Identifier: Apache-2.0
//
// test_record.c - ebb record, on programs that know what they allocate: each test knows what must
// be in the trace. How recordings end early is in test_ends.c, --function in test_marks.c, --sites
// in test_sites.c.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client.h"
#include "recording.h"

// ---- the family

static void check_family(struct ebb_trace *trace)
{
    assert_int_equal(count(trace, TRACE_BEGIN, 7), 1);
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), 1);
    assert_int_equal(count(trace, TRACE_CALLOC, 3 * CLIENT_CALLOC), 1);
    assert_int_equal(count(trace, TRACE_ALIGNED, CLIENT_ALIGNED), 1);
    assert_int_equal(count(trace, TRACE_ALIGNED, CLIENT_POSIX), 1);
    assert_int_equal(count(trace, TRACE_REALLOC, CLIENT_GROWN), 1);
    assert_int_equal(count(trace, TRACE_REALLOC, 5 * CLIENT_ARRAY), 1);
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_FRESH), 1);
    assert_int_equal(count(trace, TRACE_ALIGNED, CLIENT_MEMALIGN), 1);
    assert_int_equal(count(trace, TRACE_ALIGNED, CLIENT_VALLOC), 2);
    assert_int_equal(trace->totals.reallocs, 2);
    assert_int_equal(trace->totals.allocs, 9);
    assert_int_equal(trace->totals.frees, 6);
    assert_int_equal(trace->totals.left, 3);
    assert_int_equal(trace->totals.left_bytes, CLIENT_GROWN + 5 * CLIENT_ARRAY + CLIENT_POSIX);
    trace_free(trace);
}

static void every_function_is_noted_with_its_size(void **state)
{
    (void)state;
    check_family(recorded("", "family"));
}

// What it asks itself for is part of the call that the program has made.
static void an_allocator_that_calls_itself_is_noted_once(void **state)
{
    char command[2048];

    (void)state;
    snprintf(command, sizeof command, "LD_PRELOAD=%s exec %s record -q -o %s -- %s family",
             getenv("EBB_NESTED"), getenv("EBB_TOOL"), path, getenv("EBB_CLIENT"));
    assert_int_equal(system(command), 0);
    check_family(read_it());
    assert_null(header_line("#unknown-frees"));
    assert_null(header_line("#lost-frees"));
}

// It has no marks, and the last chunk of its spool has room left.
static void nothing_is_noted_that_did_not_happen(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    assert_int_equal(record("", "EBB_FIXED", ""), 0);
    trace = read_it();
    assert_int_equal(trace->event_count, 2 * CLIENT_MANY + CLIENT_STEPS + 1);
    for (uint32_t i = 0; i < 2 * CLIENT_MANY; i += 2) {
        assert_int_equal(trace->events[i].op, TRACE_ALLOC);
        assert_int_equal(trace->events[i].value, CLIENT_MALLOC);
        assert_int_equal(trace->events[i + 1].op, TRACE_FREE);
        assert_int_equal(trace->events[i + 1].index, trace->events[i].index);
    }
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_FRESH), CLIENT_STEPS);
    assert_int_equal(trace->events[trace->event_count - 1].value, CLIENT_CALLOC);
    trace_free(trace);
}

static void alignments_are_noted(void **state)
{
    struct ebb_trace *trace = recorded("", "family");

    (void)state;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];

        if (event->op == TRACE_ALIGNED && event->value == CLIENT_ALIGNED)
            assert_int_equal(event->align_log2, 8);
        if (event->op == TRACE_ALIGNED && event->value == CLIENT_POSIX)
            assert_int_equal(event->align_log2, 12);
        if (event->op == TRACE_ALIGNED && event->value == CLIENT_MEMALIGN)
            assert_int_equal(event->align_log2, 6);
        if (event->op == TRACE_ALLOC)
            assert_int_equal(event->origin, 'O');
    }
    trace_free(trace);
}

static void sizes_above_32_bits_are_whole(void **state)
{
    struct ebb_trace *trace = recorded("", "giant");

    (void)state;
    assert_int_equal(count(trace, TRACE_ALLOC, (uint64_t)5 << 30), 1);
    assert_int_equal(count(trace, TRACE_BEGIN, (uint64_t)5 << 30), 1);
    assert_int_equal(trace->totals.left, 0);
    trace_free(trace);
}

static void operators_are_noted_once(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    if (!getenv("EBB_CLIENT_CXX"))
        skip();
    assert_int_equal(record("", "EBB_CLIENT_CXX", ""), 0);
    trace = read_it();
    for (uint64_t size = 101; size <= 104; size++)
        assert_int_equal(count(trace, TRACE_ALLOC, size), 1);
    for (uint64_t size = 105; size <= 108; size++)
        assert_int_equal(count(trace, TRACE_ALIGNED, size) + count(trace, TRACE_ALLOC, size), 1);
    assert_int_equal(trace->totals.left, 0); // what failed and what threw is not there either
    trace_free(trace);
}

// What malloc() noted for it has the header, and is given to free() with it.
static void blocks_behind_a_header_are_noted_once(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    if (!getenv("EBB_HEADER"))
        skip();
    assert_int_equal(record("", "EBB_HEADER", ""), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_FRESH), 0);
    assert_int_equal(count(trace, TRACE_ALLOC, 16 + CLIENT_FRESH), 2 * CLIENT_STEPS);
    assert_int_equal(count(trace, TRACE_FREE, 16 + CLIENT_FRESH), 2 * CLIENT_STEPS);
    assert_null(header_line("#unknown-frees"));
    trace_free(trace);
}

// Any allocator can be below. The operators of these call malloc() or not, each form as it likes.
static void it_is_recorded_alike(void **state)
{
    const char *library = *state, *cxx = getenv("EBB_CLIENT_CXX");
    bool calm = strstr(library, "mimalloc");
    char command[2048], file[256];
    struct ebb_trace *trace;
    struct utsname machine;

    assert_int_equal(uname(&machine), 0);
    snprintf(file, sizeof file, "/usr/lib/%s-linux-gnu/%s", machine.machine, library);
    if (access(file, R_OK) != 0) {
        print_message("# %s is not there\n", file);
        skip();
    }
    snprintf(command, sizeof command, "LD_PRELOAD=%s exec %s record -q -o %s -- %s %s", file,
             getenv("EBB_TOOL"), path, cxx ? cxx : getenv("EBB_CLIENT"),
             !cxx ? "threads" : calm ? "calm" : "");
    assert_int_equal(system(command), 0);
    trace = read_it();
    assert_null(header_line("#unknown-frees"));
    assert_null(header_line("#lost-frees"));
    for (uint64_t size = 101; cxx && size <= 108; size++)
        assert_int_equal(count(trace, TRACE_ALIGNED, size) + count(trace, TRACE_ALLOC, size), 1);
    assert_true(!cxx || trace->totals.left == 0);
    trace_free(trace);
}

// ---- threads and processes

static void threads_that_free_each_others_blocks(void **state)
{
    struct ebb_trace *trace = recorded("", "threads");

    (void)state;
    assert_int_equal(count(trace, TRACE_ALLOC, 16 + 99), 4 * 3 * 2000 / 100);
    assert_true(count(trace, TRACE_THREAD, 0) >= 4);
    assert_true(trace->totals.frees >= 4 * 3 * 2000);
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), 1);
    assert_null(header_line("#unknown-frees"));
    assert_null(header_line("#lost-frees"));
    trace_free(trace);
}

static void threads_that_end_leave_their_place_to_others(void **state)
{
    struct ebb_trace *trace = recorded("", "crowd");
    uint32_t highest = 0;

    (void)state;
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), CLIENT_CROWD);
    assert_int_equal(count(trace, TRACE_BEGIN, 0), CLIENT_CROWD);
    for (uint32_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == TRACE_THREAD && trace->events[i].index > highest)
            highest = trace->events[i].index;
    assert_true(highest <= 2);
    trace_free(trace);
}

static void threads_that_have_left_are_noted_as_others(void **state)
{
    (void)state;
    assert_int_equal(record("", "EBB_LATE", ""), 0);
    struct ebb_trace *trace = read_it();
    assert_int_equal(count(trace, TRACE_REALLOC, CLIENT_GROWN), CLIENT_LATE * CLIENT_LATE_BLOCKS);
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_GROWN), 0);
    trace_free(trace);
}

// What looks like malloc() to the program neither ends it nor sets errno.
static void the_recorder_does_what_an_allocator_may(void **state)
{
    (void)state;
    trace_free(recorded("", "cancelled"));
    trace_free(recorded("", "unnamed"));
}

static void a_forked_child_notes_nothing(void **state)
{
    struct ebb_trace *trace = recorded("", "forks");

    (void)state;
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), 1);
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_GROWN), 0);
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_FRESH), 1);
    assert_int_equal(count(trace, TRACE_FREE, CLIENT_MALLOC), 0);
    trace_free(trace);
}

static void the_process_that_notes_most_is_the_trace(void **state)
{
    struct ebb_trace *trace;
    char arguments[2048];

    (void)state;
    snprintf(arguments, sizeof arguments, "record -o %s -- sh -c 'ls / >/dev/null; %s much; true'",
             path, getenv("EBB_CLIENT"));
    assert_int_equal(ebb(arguments), 0);
    assert_said("; 2 other programs noted less and are left out");
    trace = read_it();
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), CLIENT_MANY);
    trace_free(trace);
    snprintf(arguments, sizeof arguments, "record -o %s -- sh -c '%s much; true'", path,
             getenv("EBB_CLIENT"));
    assert_int_equal(ebb(arguments), 0);
    assert_said("; 1 other program noted less and is left out");
    snprintf(arguments, sizeof arguments, "record -o %s -- sh -c 'exec %s much'", path,
             getenv("EBB_CLIENT"));
    assert_int_equal(ebb(arguments), CLIENT_CODE); // there is no other process
    assert_said("; 1 other program noted less and is left out");
}

static void the_exit_code_is_the_commands(void **state)
{
    char arguments[512];

    (void)state;
    assert_int_equal(record("", "EBB_CLIENT", "much"), CLIENT_CODE);
    snprintf(arguments, sizeof arguments, "record -o %s -- /nowhere/at/all", path);
    assert_int_equal(ebb(arguments), 127);
    snprintf(arguments, sizeof arguments, "record -o %s -- /", path);
    assert_int_equal(ebb(arguments), 126);
    assert_int_equal(files_left(), 0);
}

static void a_command_may_end_as_if_it_could_not_be_run(void **state)
{
    char arguments[512];

    (void)state;
    for (int code = 126; code <= 127; code++) {
        unlink(path);
        snprintf(arguments, sizeof arguments, "record -o %s -- sh -c 'exit %d'", path, code);
        assert_int_equal(ebb(arguments), code);
        trace_free(read_it());
    }
    assert_int_equal(files_left(), 0);
}

// Which may have a prompt on it, or a picture: nothing else is shown there while the command runs.
static void the_terminal_is_the_commands(void **state)
{
    char command[2048];

    (void)state;
    snprintf(command, sizeof command,
             "/usr/bin/python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' %s record -q -o %s -- "
             "sh -c 'printf \"y/n? \"; sleep 0.4' </dev/null >%s/said", getenv("EBB_TOOL"), path,
             folder);
    assert_int_equal(system(command), 0);
    assert_string_equal(said(), "y/n? ");
}

// The exit code of the tool under a shell that ignores a signal, with a command of a shell.
static int ebb_ignoring(const char *signal, const char *command)
{
    char line[1024];
    int status;

    snprintf(line, sizeof line, "trap '' %s; exec %s record -q -o %s -- sh -c '%s'", signal,
             getenv("EBB_TOOL"), path, command);
    status = system(line);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void signals_that_were_ignored_stay_so(void **state)
{
    (void)state;
    assert_int_equal(ebb_ignoring("CHLD", "exit 7"), 7);
    assert_int_equal(ebb_ignoring("INT", "kill -INT $$; exit 7"), 7);
    assert_int_equal(ebb_ignoring("QUIT", "kill -QUIT $$; exit 7"), 7);
    assert_int_equal(ebb_ignoring("PIPE", "kill -PIPE $$; exit 7"), 7);
    assert_int_equal(ebb_ignoring("XFSZ", "kill -XFSZ $$; exit 7"), 7);
    assert_int_equal(ebb_ignoring("USR1", "kill -PIPE $$; exit 7"), 128 + SIGPIPE);
    assert_int_equal(ebb_ignoring("USR1", "kill -XFSZ $$; exit 7"), 128 + SIGXFSZ);
    assert_int_equal(ebb_ignoring("USR1", "kill -INT $$; exit 7"), 128 + SIGINT);
}

// The linker would look for the parts of the path, and nothing would be recorded.
static void a_recorder_that_cannot_be_preloaded_is_named(void **state)
{
    char command[2048];

    (void)state;
    snprintf(command, sizeof command,
             "cd %s && mkdir -p 'a b/tool' 'a b/record' && cp %s 'a b/tool/ebb' && "
             ": >'a b/record/libebb-record.so' && 'a b/tool/ebb' record -o x.gz -- touch ran "
             "2>said; [ $? = 125 ] && [ ! -e ran ] && rm -r 'a b'", folder, getenv("EBB_TOOL"));
    assert_int_equal(system(command), 0);
    assert_said("LD_PRELOAD takes no path with a space or a colon");
    assert_int_equal(files_left(), 0);
}

static void a_deep_folder_will_do(void **state)
{
    char deep[1024], arguments[2048];

    (void)state;
    snprintf(deep, sizeof deep, "%s/%0200d", folder, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(mkdir(deep, 0700), 0);
        snprintf(deep + strlen(deep), sizeof deep - strlen(deep), "/%0200d", 0);
    }
    snprintf(arguments, sizeof arguments, "record -o %s -- %s loop", deep, getenv("EBB_CLIENT"));
    assert_int_equal(ebb(arguments), 0);
    assert_int_equal(access(deep, R_OK), 0);
    snprintf(arguments, sizeof arguments, "rm -r %s/0*", folder);
    assert_int_equal(system(arguments), 0);
}

// ---- regions

static void check_steps(struct ebb_trace *trace)
{
    assert_int_equal(count(trace, TRACE_BEGIN, 0), 2 * CLIENT_STEPS);
    assert_int_equal(count(trace, TRACE_END, 0), 2 * CLIENT_STEPS);
    for (uint64_t i = 0; i < CLIENT_STEPS; i++)
        assert_int_equal(count(trace, TRACE_BEGIN, 10 + i), 1);
    assert_int_equal(trace->kinds.count, 2);
    assert_string_equal(trace->kinds.word[0], "re_quest");
    assert_string_equal(trace->kinds.word[1], "token");
    trace_free(trace);
}

static void steps_are_marks_without_libebb(void **state)
{
    struct ebb_trace *trace = recorded("", "steps");

    (void)state;
    assert_int_equal(count(trace, TRACE_ALLOC, CLIENT_MALLOC), CLIENT_STEPS);
    check_steps(trace);
}

static void steps_of_libebb_are_marks(void **state)
{
    (void)state;
    assert_int_equal(record("", "EBB_CLIENT_LINKED", "steps"), 0);
    check_steps(read_it());
}

// Python loads libebb for its extension alone.
static void steps_of_python_are_marks(void **state)
{
    struct ebb_trace *trace;
    char command[1024];

    (void)state;
    if (!getenv("EBB_PYTHON"))
        skip();
    snprintf(command, sizeof command,
             "record -o %s -- env PYTHONPATH=%s /usr/bin/python3 -c '"
             "import ebb\n"
             "for i in range(7):\n"
             "    with ebb.step(\"train\", tag=5): bytearray(77777)'", path, getenv("EBB_PYTHON"));
    assert_int_equal(ebb(command), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_BEGIN, 5), 7);
    assert_int_equal(count(trace, TRACE_CALLOC, 77778) + count(trace, TRACE_ALLOC, 77778), 7);
    assert_string_equal(trace->kinds.word[0], "train");
    trace_free(trace);
}

static void regions_that_are_too_deep_are_left_out(void **state)
{
    struct ebb_trace *trace = recorded("", "deep");

    (void)state;
    assert_int_equal(count(trace, TRACE_BEGIN, 0), TRACE_DEPTH_MAX);
    assert_non_null(header_line("#too-deep"));
    trace_free(trace);
}

static void ticks_make_regions(void **state)
{
    struct ebb_trace *trace;
    char command[1024];

    (void)state;
    snprintf(command, sizeof command, "record --every 1 -q -o %s -- true", path);
    assert_int_equal(ebb(command), 0);
    unlink(path);
    trace = recorded_ticks("/usr/bin/python3 -c 'import sys, time\n"
                           "for i in range(int(sys.argv[1])): "
                           "[str(j) * 600 for j in range(100)]; time.sleep(0.02)'", 20);
    assert_true(count(trace, TRACE_BEGIN, 0) >= 5);
    assert_string_equal(trace->kinds.word[0], "tick");
    trace_free(trace);
}

// Threads that come one after the other have one lane, and the same period. The tick is the test's.
static void every_thread_has_ticks_of_its_own(void **state)
{
    struct ebb_trace *trace;
    char command[1024];
    uint32_t thread = 0, open[2] = {0}, inside = 0;

    (void)state;
    assert_int_equal(record("--keep", "EBB_CLIENT", "workers"), 0);
    snprintf(command, sizeof command,
             "for i in %s.spool-*/*; do printf '\\377\\377\\377\\177' >$i.ticks; done", path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "record --recover %s.spool-* -o %s", path, path);
    assert_int_equal(ebb(command), 0);
    trace = read_it();
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];

        if (event->op == TRACE_THREAD)
            thread = event->index;
        assert_true(thread < 2);
        open[thread] += event->op == TRACE_BEGIN;
        open[thread] -= event->op == TRACE_END;
        inside += open[thread] && event->op == TRACE_ALLOC && event->value == CLIENT_MALLOC;
    }
    assert_int_equal(inside, CLIENT_WORKERS * CLIENT_CROWD);
    assert_int_equal(count(trace, TRACE_BEGIN, 0), CLIENT_WORKERS + 1);
    trace_free(trace);
    snprintf(command, sizeof command, "rm -r %s.spool-*", path);
    assert_int_equal(system(command), 0);
}

static void the_end_of_a_tensor_is_told_whatever_becomes_of_it(void **state)
{
    struct ebb_trace *trace;
    char command[1024];

    (void)state;
    snprintf(command, sizeof command, "cp %s %s/libc10_client", getenv("EBB_CLIENT"), folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "record --tensor -o %s -- %s/libc10_client moved", path,
             folder);
    assert_int_equal(ebb(command), 0);
    trace = read_it();
    assert_int_equal(count(trace, TRACE_ALIGNED, CLIENT_ALIGNED), 1);
    assert_int_equal(count(trace, TRACE_FREE, CLIENT_ALIGNED), 1);
    assert_int_equal(trace->totals.objects, 1);
    trace_free(trace);
}

// ---- the rest

static void python_with_numpy_is_exact(void **state)
{
    struct ebb_trace *trace;
    char command[1024];

    (void)state;
    if (access("/usr/lib/python3/dist-packages/numpy", F_OK) != 0)
        skip();
    snprintf(command, sizeof command,
             "record -o %s -- env OPENBLAS_NUM_THREADS=1 /usr/bin/python3 -c '"
             "import numpy, threading\n"
             "def work(): [numpy.random.rand(100, 100) @ numpy.ones((100, 7)) for i in range(99)]\n"
             "threads = [threading.Thread(target=work) for i in range(4)]\n"
             "[t.start() for t in threads]; [t.join() for t in threads]'", path);
    assert_int_equal(ebb(command), 0);
    trace = read_it();
    assert_null(header_line("#unknown-frees"));
    assert_null(header_line("#lost-frees"));
    assert_true(count(trace, TRACE_ALLOC, 80000) >= 4 * 99);
    trace_free(trace);
}

static void bad_arguments_are_named(void **state)
{
    static const struct {
        const char *arguments, *words;
    } refused[] = {
        {"record", ""},
        {"record --nothing -- true", "ebb record: no option '--nothing'"},
        {"record --limit 12Q -- true", "12Q"},
        {"record --limit ' 5M' -- true", "' 5M' is no number of bytes"},
        {"record --limit +5M -- true", "'+5M' is no number of bytes"},
        {"record --limit ' -5' -- true", "' -5' is no number of bytes"},
        {"record --limit 100 -- true", ""},
        {"record --limit 33G -- true", "35433480192 bytes are too many, the most is 34359738368"},
        {"record --every 0 -- true", "'0' is no number of milliseconds"},
        {"record --every ' 5' -- true", "' 5' is no number of milliseconds"},
        {"record --every +5 -- true", "'+5' is no number of milliseconds"},
        {"record --every 5 --function f -- true", ""},
        {"record --recover /nowhere -o /tmp/x --every 10", "--recover excludes --every"},
        {"record --recover /nowhere -o /tmp/x --keep", "--keep says nothing"},
        {"report --no-replay --rounds 3 /nowhere", "--no-replay excludes --allocators, --rounds"},
        {"report --no-replay --quick /nowhere", "--no-replay excludes --allocators, --rounds"},
        {"report --no-replay --allocators ebb /nowhere", "--no-replay excludes --allocators"},
        {"report --rounds ' 3' /nowhere", "' 3' is no number from 1 to 1000"},
        {"nonsense", "nonsense"},
    };
    char arguments[1024];

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(ebb(refused[i].arguments), 2);
        assert_said(refused[i].words);
    }
    assert_int_equal(ebb("record --recover /nowhere -o /tmp/x"), 1);
    assert_said("/nowhere");
    snprintf(arguments, sizeof arguments, "record --recover %s -o %s", folder, path);
    assert_int_equal(ebb(arguments), 1);
    assert_said(": no spool in it");
    assert_int_equal(ebb("--version"), 0);
    assert_int_equal(ebb("record --help"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_is_noted_with_its_size),
        cmocka_unit_test(an_allocator_that_calls_itself_is_noted_once),
        cmocka_unit_test(nothing_is_noted_that_did_not_happen),
        cmocka_unit_test(alignments_are_noted),
        cmocka_unit_test(sizes_above_32_bits_are_whole),
        cmocka_unit_test(operators_are_noted_once),
        cmocka_unit_test(blocks_behind_a_header_are_noted_once),
        {"jemalloc_is_recorded", it_is_recorded_alike, NULL, NULL, "libjemalloc.so.2"},
        {"tcmalloc_is_recorded", it_is_recorded_alike, NULL, NULL, "libtcmalloc_minimal.so.4"},
        {"mimalloc_is_recorded", it_is_recorded_alike, NULL, NULL, "libmimalloc.so.2.0"},
        cmocka_unit_test(threads_that_free_each_others_blocks),
        cmocka_unit_test(threads_that_end_leave_their_place_to_others),
        cmocka_unit_test(threads_that_have_left_are_noted_as_others),
        cmocka_unit_test(the_recorder_does_what_an_allocator_may),
        cmocka_unit_test(a_forked_child_notes_nothing),
        cmocka_unit_test(the_process_that_notes_most_is_the_trace),
        cmocka_unit_test(the_exit_code_is_the_commands),
        cmocka_unit_test(the_terminal_is_the_commands),
        cmocka_unit_test(a_command_may_end_as_if_it_could_not_be_run),
        cmocka_unit_test(signals_that_were_ignored_stay_so),
        cmocka_unit_test(a_recorder_that_cannot_be_preloaded_is_named),
        cmocka_unit_test(a_deep_folder_will_do),
        cmocka_unit_test(steps_are_marks_without_libebb),
        cmocka_unit_test(steps_of_libebb_are_marks),
        cmocka_unit_test(steps_of_python_are_marks),
        cmocka_unit_test(regions_that_are_too_deep_are_left_out),
        cmocka_unit_test(ticks_make_regions),
        cmocka_unit_test(every_thread_has_ticks_of_its_own),
        cmocka_unit_test(the_end_of_a_tensor_is_told_whatever_becomes_of_it),
        cmocka_unit_test(python_with_numpy_is_exact),
        cmocka_unit_test(bad_arguments_are_named),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
