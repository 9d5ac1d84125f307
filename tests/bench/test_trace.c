// SPDX-License-Identifier: Apache-2.0
//
// test_trace.c - what trace_read() makes of good traces, of files and of failing memory.
//
// The example of the format, then files that are missing, truncated or damaged, then the shipped
// traces, whose max-live is counted once more. What a text may not say is in
// test_trace_refusals.c. Linked with --wrap=calloc,--wrap=realloc, so that the n-th allocation can
// be made to fail (not inside zlib). The shipped traces are looked for in $EBB_TRACES, else in
// bench/traces.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "trace_scratch.h"

// ---- failing the n-th allocation

static int allocations_left = -1; // -1: all succeed

void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static int allocation_fails(void)
{
    if (allocations_left < 0)
        return 0;
    return allocations_left-- == 0;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return allocation_fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return allocation_fails() ? NULL : __real_realloc(old, bytes);
}

// ---- the format

static const char example[] = MAGIC "#name tiny\n"
                                    "#view tensor\n"
                                    "#about words, and more words\n"
                                    "#warmup 1\n"
                                    "#objects 4\n"
                                    "#preexisting 1 128\n"
                                    "#untouched 3 999\n"
                                    "#events 6\n"
                                    "#allocs 2\n"
                                    "#frees 3\n"
                                    "#reallocs 1\n"
                                    "#max-live 3 4304\n"
                                    "#left 0 0\n"
                                    "#something-new of a later version\n"
                                    "p 128 64 T\n"
                                    "B train 0 32\n"
                                    "P forward\n"
                                    "m 4096 64 T\n"
                                    "a 80 C\n"
                                    "f 2\n"
                                    "r 1 160 C\n"
                                    "f 4\n"
                                    "E train 0\n"
                                    "t 7\n"
                                    "B train 1 32\n"
                                    "f 1\n"
                                    "E train 31\n";

static void check_event(const struct trace_event *event, enum trace_op op, uint32_t index,
                        uint64_t value)
{
    assert_int_equal(event->op, op);
    assert_int_equal(event->index, index);
    assert_int_equal(event->value, value);
}

static void check_example(const struct ebb_trace *trace)
{
    const struct trace_event *event = trace->events;

    assert_int_equal(trace->event_count, 13);
    check_event(&event[0], TRACE_PREEXISTING, 0, 128);
    check_event(&event[1], TRACE_BEGIN, 0, 32);
    check_event(&event[2], TRACE_PHASE, 0, 0);
    check_event(&event[3], TRACE_ALIGNED, 1, 4096);
    check_event(&event[4], TRACE_ALLOC, 2, 80);
    check_event(&event[5], TRACE_FREE, 1, 4096);
    check_event(&event[6], TRACE_REALLOC, 2, 160);
    check_event(&event[7], TRACE_FREE, 0, 128);
    check_event(&event[8], TRACE_END, 1, 0);
    check_event(&event[9], TRACE_THREAD, 7, 0);
    check_event(&event[10], TRACE_BEGIN, 1, 31);
    check_event(&event[11], TRACE_FREE, 3, 160);
    check_event(&event[12], TRACE_END, 10, 31);
    assert_int_equal(event[3].align_log2, 6);
    assert_int_equal(event[4].align_log2, 0);
    assert_int_equal(event[6].origin, 'C');
}

static void events_carry_what_the_lines_say(void **state)
{
    struct ebb_trace *trace = read_text(example);

    (void)state;
    check_example(trace);
    assert_string_equal(trace->name, "tiny");
    assert_int_equal(trace->view, TRACE_VIEW_TENSOR);
    assert_int_equal(trace->warmup, 1);
    assert_int_equal(trace->kinds.count, 1);
    assert_string_equal(trace->kinds.word[0], "train");
    assert_string_equal(trace->phases.word[0], "forward");
    assert_int_equal(trace->totals.max_live_bytes, 4304);
    assert_int_equal(trace->untouched, 3);
    assert_int_equal(trace->untouched_bytes, 999);
    assert_string_equal(trace->notes,
                        "#about words, and more words\n#something-new of a later version\n");
    trace_free(trace);
}

// As many notes as there is room for are kept, and each of them whole.
static void header_lines_without_end_are_no_hindrance(void **state)
{
    static char text[1 << 16] = MAGIC;
    struct ebb_trace *trace;
    size_t length;

    (void)state;
    for (int i = 0; i < 60; i++)
        snprintf(text + strlen(text), 1002, "#%0999d\n", i);
    strcat(text, "#last\na 1 T\n");
    trace = read_text(text);
    length = strlen(trace->notes);
    assert_int_equal(length, TRACE_NOTES_MAX / 1001 * 1001 + strlen("#last\n"));
    assert_string_equal(trace->notes + length - strlen("#last\n"), "#last\n");
    trace_free(trace);
}

static void gzip_reads_like_plain_text(void **state)
{
    struct ebb_trace *trace;

    (void)state;
    write_gzip(example);
    trace = expect_read();
    check_example(trace);
    trace_free(trace);
}

static void header_lines_other_than_the_first_may_be_missing(void **state)
{
    struct ebb_trace *trace = read_text(MAGIC "c 0 T\nf 1\n");

    (void)state;
    assert_string_equal(trace->name, "");
    assert_int_equal(trace->view, TRACE_VIEW_UNSAID);
    assert_int_equal(trace->warmup, 0);
    assert_int_equal(trace->totals.allocs, 1);
    trace_free(trace);
}

static void a_trace_without_events_is_read(void **state)
{
    struct ebb_trace *trace = read_text(MAGIC);

    (void)state;
    assert_int_equal(trace->event_count, 0);
    assert_int_equal(trace->totals.objects, 0);
    trace_free(trace);
}

static void freeing_no_trace_is_allowed(void **state)
{
    (void)state;
    trace_free(NULL);
}

static void lines_across_buffer_ends_are_read(void **state)
{
    struct text *text = new_text();
    struct ebb_trace *trace;

    (void)state;
    for (int i = 0; i < 8000; i++)
        add(text, "m %d 64 T\n", 1000 + i);
    trace = read_text(text->bytes);
    assert_int_equal(trace->event_count, 8000);
    for (uint32_t i = 0; i < 8000; i++)
        check_event(&trace->events[i], TRACE_ALIGNED, i, 1000 + i);
    trace_free(trace);
}

// ---- files

static void missing_file_is_refused(void **state)
{
    struct trace_error error;

    (void)state;
    assert_null(trace_read("/nonexistent/file.trace", &error));
    assert_int_equal(error.code, TRACE_ERROR_OPEN);
    assert_non_null(strstr(error.text, "cannot open"));
}

static void folder_is_refused(void **state)
{
    struct trace_error error;

    (void)state;
    assert_null(trace_read("/tmp", &error));
    assert_int_equal(error.code, TRACE_ERROR_READ);
    assert_non_null(strstr(error.text, "cannot read"));
}

static void refuse_prefix(const unsigned char *bytes, size_t count)
{
    struct trace_error error;

    write_bytes(bytes, count);
    assert_null(trace_read(scratch_path(), &error));
    if (count == 0)
        assert_int_equal(error.code, TRACE_ERROR_MAGIC);
    else if (count == 1)
        assert_int_equal(error.code, TRACE_ERROR_NO_NEWLINE);
    else
        assert_string_equal(trace_error_name(error.code), "TRACE_ERROR_TRUNCATED");
}

static void gzip_truncated_at_any_byte_is_refused(void **state)
{
    unsigned char bytes[4096];
    size_t count = write_gzip(example);
    FILE *file = fopen(scratch_path(), "rb");

    (void)state;
    assert_true(count < sizeof bytes);
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), count);
    fclose(file);
    for (size_t i = 0; i < count; i++)
        refuse_prefix(bytes, i);
}

// Two members, each a whole step, and `more` bytes behind them.
static size_t write_members(unsigned char *bytes, size_t *first, const char *more, size_t count)
{
    static const char *const steps[] = {MAGIC "B k 0 0\na 7 C\nE k 0\n", "B k 1 0\na 9 C\nE k 0\n"};
    size_t used = 0;

    for (int i = 0; i < 2; i++) {
        size_t size = write_gzip(steps[i]);
        FILE *file = fopen(scratch_path(), "rb");

        assert_int_equal(fread(bytes + used, 1, size, file), size);
        fclose(file);
        *first = used;
        used += size;
    }
    memcpy(bytes + used, more, count);
    write_bytes(bytes, used + count);
    return used;
}

static void expect_steps(uint64_t events)
{
    struct ebb_trace *trace = expect_read();

    assert_int_equal(trace->totals.events, events);
    trace_free(trace);
}

static void gzip_of_several_members_is_read_to_its_end(void **state)
{
    static const char zeros[100000];
    unsigned char bytes[2048 + sizeof zeros];
    size_t first;

    (void)state;
    write_members(bytes, &first, "", 0);
    expect_steps(2);
    write_members(bytes, &first, zeros, sizeof zeros);
    expect_steps(2);
}

static void what_is_wrong_behind_a_good_member_is_refused(void **state)
{
    unsigned char bytes[2048];
    size_t first, count;

    (void)state;
    write_members(bytes, &first, "\0\0xy", 4);
    expect_refused(TRACE_ERROR_CORRUPT, 8, "damaged gzip");
    write_members(bytes, &first, "\x1f", 1);
    expect_refused(TRACE_ERROR_TRUNCATED, 8, "too early");
    count = write_members(bytes, &first, "", 0);
    write_bytes(bytes, first);
    expect_steps(1);
    for (size_t cut = first + 1; cut < count; cut++) {
        struct trace_error error;

        write_bytes(bytes, cut);
        assert_null(trace_read(scratch_path(), &error));
        assert_string_equal(trace_error_name(error.code), "TRACE_ERROR_TRUNCATED");
    }
    bytes[first] ^= 1;
    write_bytes(bytes, count);
    expect_refused(TRACE_ERROR_CORRUPT, 5, "incorrect header check");
}

// Of which the first byte comes alone.
static void gzip_is_read_from_a_pipe(void **state)
{
    char command[1024];

    (void)state;
    write_gzip(example);
    snprintf(command, sizeof command, "{ head -c 1 %s; sleep 0.1; tail -c +2 %s; }",
             scratch_path(), scratch_path());
    FILE *pipe = popen(command, "r");
    char path[32];
    struct trace_error error;
    struct ebb_trace *trace;

    assert_non_null(pipe);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(pipe));
    trace = trace_read(path, &error);
    pclose(pipe);
    assert_non_null(trace);
    check_example(trace);
    trace_free(trace);
}

static void gzip_with_a_wrong_check_sum_is_refused(void **state)
{
    unsigned char bytes[4096];
    size_t count = write_gzip(example);
    FILE *file = fopen(scratch_path(), "rb");
    struct trace_error error;

    (void)state;
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), count);
    fclose(file);
    bytes[count - 8] ^= 1;
    write_bytes(bytes, count);
    assert_null(trace_read(scratch_path(), &error));
    assert_int_equal(error.code, TRACE_ERROR_CORRUPT);
    assert_true(error.line >= 1);
    assert_non_null(strstr(error.text, "damaged gzip"));
}

static void every_failed_allocation_is_reported(void **state)
{
    struct ebb_trace *trace = NULL;
    int failures = 0;

    (void)state;
    write_bytes(example, strlen(example));
    while (!trace) {
        struct trace_error error;

        allocations_left = failures;
        trace = trace_read(scratch_path(), &error);
        allocations_left = -1;
        assert_int_equal(error.code, trace ? TRACE_OK : TRACE_ERROR_MEMORY);
        failures += !trace;
    }
    assert_int_equal(failures, 5); // the lines, the reader, the trace, the events, the objects
    trace_free(trace);
}

// ---- the shipped traces

static uint64_t born_bytes(const struct trace_event *event, uint64_t *size, uint32_t *objects)
{
    size[(*objects)++] = event->value;
    return event->value;
}

// Max-live once more, from the events alone.
static uint64_t recount_max_live(const struct ebb_trace *trace)
{
    uint64_t *size = malloc((trace->totals.objects + 1) * sizeof *size);
    uint64_t live = 0, max = 0;
    uint32_t objects = 0;

    assert_non_null(size);
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];

        if (event->op == TRACE_FREE || event->op == TRACE_REALLOC)
            live -= size[event->index];
        if (event->op <= TRACE_REALLOC)
            live += born_bytes(event, size, &objects);
        max = live > max ? live : max;
    }
    assert_int_equal(objects, trace->totals.objects);
    free(size);
    return max;
}

// The claim, read without the reader under test.
static uint64_t claimed_max_live(const char *path)
{
    gzFile file = gzopen(path, "rb");
    char line[TRACE_LINE_MAX + 2];
    uint64_t count = 0, bytes = 0;

    assert_non_null(file);
    while (gzgets(file, line, sizeof line) && line[0] == '#')
        if (sscanf(line, "#max-live %" SCNu64 " %" SCNu64, &count, &bytes) == 2)
            break;
    gzclose(file);
    return bytes;
}

static void check_shipped(const char *path)
{
    struct trace_error error;
    struct ebb_trace *trace = trace_read(path, &error);

    if (!trace)
        print_error("%s: %s\n", path, error.text);
    assert_non_null(trace);
    assert_true(trace->view != TRACE_VIEW_UNSAID && trace->name[0] && trace->warmup == 3);
    assert_int_equal(recount_max_live(trace), trace->totals.max_live_bytes);
    assert_int_equal(claimed_max_live(path), trace->totals.max_live_bytes);
    trace_free(trace);
}

static void shipped_traces_are_read_and_their_max_live_is_the_claimed_one(void **state)
{
    const char *folder = getenv("EBB_TRACES") ? getenv("EBB_TRACES") : "bench/traces";
    DIR *dir = opendir(folder);
    int traces = 0;

    (void)state;
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        char path[4096];

        if (!strstr(entry->d_name, ".trace.gz"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        check_shipped(path);
        traces++;
    }
    closedir(dir);
    assert_int_equal(traces, 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_carry_what_the_lines_say),
        cmocka_unit_test(header_lines_without_end_are_no_hindrance),
        cmocka_unit_test(gzip_reads_like_plain_text),
        cmocka_unit_test(header_lines_other_than_the_first_may_be_missing),
        cmocka_unit_test(a_trace_without_events_is_read),
        cmocka_unit_test(freeing_no_trace_is_allowed),
        cmocka_unit_test(lines_across_buffer_ends_are_read),
        cmocka_unit_test(missing_file_is_refused),
        cmocka_unit_test(folder_is_refused),
        cmocka_unit_test(gzip_truncated_at_any_byte_is_refused),
        cmocka_unit_test(gzip_of_several_members_is_read_to_its_end),
        cmocka_unit_test(what_is_wrong_behind_a_good_member_is_refused),
        cmocka_unit_test(gzip_is_read_from_a_pipe),
        cmocka_unit_test(gzip_with_a_wrong_check_sum_is_refused),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(shipped_traces_are_read_and_their_max_live_is_the_claimed_one),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("trace", tests, make_scratch, remove_scratch);
}
