// SPDX-License-Identifier: Apache-2.0
//
// test_trace_refusals.c - what trace_read() refuses, and at which line.
//
// One test for each enum trace_error_code that a text can cause, with the boundary pair where a
// rule has a number. The whole program is built with TRACE_EVENTS_MAX lowered, so that a file with
// too many lines is small.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "trace_scratch.h"

// ---- lines

static void line_at_the_limit_is_read_and_one_byte_more_is_refused(void **state)
{
    struct text *text = new_text();

    (void)state;
    add(text, "#about %*s\n", TRACE_LINE_MAX - 7, "x");
    accept_text(text->bytes);
    text = new_text();
    add(text, "#about %*s\n", TRACE_LINE_MAX - 6, "x");
    refuse_text(text->bytes, TRACE_ERROR_LINE_TOO_LONG, 2, "1023");
}

static void line_without_end_is_refused_without_reading_on(void **state)
{
    static char bytes[200 << 10];

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    memcpy(bytes, MAGIC, strlen(MAGIC));
    write_bytes(bytes, sizeof bytes);
    expect_refused(TRACE_ERROR_LINE_TOO_LONG, 2, "1023");
}

static void nul_byte_is_refused(void **state)
{
    static const char text[] = MAGIC "a 1 T\na 2\0 T\n";

    (void)state;
    write_bytes(text, sizeof text - 1);
    expect_refused(TRACE_ERROR_NUL, 3, "column 4");
}

// A terminal does as it is told.
static void what_is_cited_is_plain(void **state)
{
    (void)state;
    write_bytes("\033]0;title\a\177\377\n", 13);
    expect_refused(TRACE_ERROR_MAGIC, 1, "'?]0;title\?\?\?' is not '#ebb-trace 1'");
    refuse_text(MAGIC "a \033[31m T\n", TRACE_ERROR_FIELDS, 2, "malformed: '?[31m'");
}

static void last_line_without_newline_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "a 1 T\nf 1", TRACE_ERROR_NO_NEWLINE, 3, "3 bytes");
}

static void wrong_magic_is_refused(void **state)
{
    (void)state;
    refuse_text("", TRACE_ERROR_MAGIC, 1, "the file is empty");
    refuse_text("\n", TRACE_ERROR_MAGIC, 1, "'' is not '#ebb-trace 1'");
    refuse_text("#ebb-trace 2\n", TRACE_ERROR_MAGIC, 1, "#ebb-trace 2");
    refuse_text("#ebb-trace 1 \n", TRACE_ERROR_MAGIC, 1, "#ebb-trace 1 ");
    refuse_text("#ebb-trace 1\r\n", TRACE_ERROR_MAGIC, 1, "is not");
    refuse_text("a 1 T\n", TRACE_ERROR_MAGIC, 1, "a 1 T");
}

static void header_line_behind_the_header_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "a 1 T\n#left 1 1\n", TRACE_ERROR_HEADER_LATE, 3, "header");
}

static void header_line_that_appears_twice_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "#objects 0\n#objects 0\n", TRACE_ERROR_HEADER_TWICE, 3, "#objects");
    refuse_text(MAGIC "#objects 0\n#events 0\n#objects 0\n", TRACE_ERROR_HEADER_TWICE, 4,
                "#objects");
}

static void malformed_header_line_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "#view tensors\n", TRACE_ERROR_HEADER_FIELDS, 2, "tensors");
    refuse_text(MAGIC "#warmup 4294967296\n", TRACE_ERROR_HEADER_FIELDS, 2, "4294967296");
    refuse_text(MAGIC "#left 0\n", TRACE_ERROR_HEADER_FIELDS, 2, "1 fields instead of 2");
    refuse_text(MAGIC "#untouched 3\n", TRACE_ERROR_HEADER_FIELDS, 2, "1 fields instead of 2");
    refuse_text(MAGIC "#name\n", TRACE_ERROR_HEADER_FIELDS, 2, "0 fields instead of 1");
    refuse_text(MAGIC "#events x\n", TRACE_ERROR_HEADER_FIELDS, 2, "'x'");
    accept_text(MAGIC "#warmup 4294967295\n");
}

static void unknown_line_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "x 1\n", TRACE_ERROR_UNKNOWN_LINE, 2, "byte 120");
    refuse_text(MAGIC "\n", TRACE_ERROR_UNKNOWN_LINE, 2, "an empty line");
    refuse_text(MAGIC " a 1 T\n", TRACE_ERROR_UNKNOWN_LINE, 2, "byte 32");
}

static void malformed_fields_are_refused(void **state)
{
    static const char *const lines[] = {
        "a",         "a ",         "a  1 T",    "a 1",        "a 1 ",       "a 1 T ",
        "a 1 T 1",   "a -1 T",     "a +1 T",    "a 0x1 T",    "a 1\tT",     "a 1 TT",
        "a 1 X",     "a 1 t",      "ab 1 T",    "c 1",        "m 1 T",      "m 1 64",
        "m 1 64 T 0", "r 1 T",     "r 1 1",     "f",          "f x",        "f 1 1",
        "t",         "t x",        "t 1 1",     "B",          "B k",        "B k 1",
        "B k 1 1 1", "B k x 1",    "E",         "E k",        "E k 1 1",    "P",
        "P a b",     "p 1 T",      "p 1 0",     "a 1.0 T",    "B k\x7f 1 1", "P \xc3\xa9",
    };
    char text[128];

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        snprintf(text, sizeof text, MAGIC "%s\n", lines[i]);
        refuse_text(text, TRACE_ERROR_FIELDS, 2, "field");
    }
}

static void every_printable_byte_but_the_space_may_be_in_a_word(void **state)
{
    (void)state;
    accept_text(MAGIC "P !\"#~}az09AZ_-./\n");
}

static void word_at_the_limit_is_read_and_one_byte_more_is_refused(void **state)
{
    struct text *text = new_text();

    (void)state;
    add(text, "P %.*s\n", TRACE_WORD_MAX,
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    accept_text(text->bytes);
    text = new_text();
    add(text, "P %.*s\n", TRACE_WORD_MAX + 1,
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    refuse_text(text->bytes, TRACE_ERROR_FIELDS, 2, "field 1");
}

// ---- numbers

static void number_that_overflows_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "a 18446744073709551616 T\n", TRACE_ERROR_NUMBER_TOO_LARGE, 2, "2^64");
    refuse_text(MAGIC "f 99999999999999999999999999\n", TRACE_ERROR_NUMBER_TOO_LARGE, 2, "2^64");
    refuse_text(MAGIC "#objects 18446744073709551616\n", TRACE_ERROR_NUMBER_TOO_LARGE, 2, "2^64");
    refuse_text(MAGIC "B k 4294967296 0\n", TRACE_ERROR_NUMBER_TOO_LARGE, 2, "4294967296");
    accept_text(MAGIC "B k 4294967295 18446744073709551615\nE k 0\n");
}

static void size_above_ptrdiff_max_is_refused(void **state)
{
    (void)state;
    accept_text(MAGIC "a 9223372036854775807 T\n");
    refuse_text(MAGIC "a 9223372036854775808 T\n", TRACE_ERROR_SIZE_TOO_LARGE, 2,
                "9223372036854775808");
    refuse_text(MAGIC "a 1 T\nr 1 18446744073709551615 T\n", TRACE_ERROR_SIZE_TOO_LARGE, 3,
                "18446744073709551615");
}

static void live_sizes_that_add_up_above_ptrdiff_max_are_refused(void **state)
{
    (void)state;
    accept_text(MAGIC "a 9223372036854775806 T\na 1 T\n");
    accept_text(MAGIC "a 9223372036854775807 T\nf 1\na 9223372036854775807 T\n");
    refuse_text(MAGIC "a 9223372036854775806 T\na 2 T\n", TRACE_ERROR_SIZE_TOO_LARGE, 3,
                "2 bytes more, with 9223372036854775806 bytes alive");
    refuse_text(MAGIC "p 9223372036854775807 0 T\np 1 0 T\n", TRACE_ERROR_SIZE_TOO_LARGE, 3,
                "alive");
}

static void sizes_that_add_up_above_64_bits_are_refused(void **state)
{
#define MOST "a 9223372036854775807 T\nf 1\n"
    (void)state;
    accept_text(MAGIC MOST MOST "a 1 T\n");
    refuse_text(MAGIC MOST MOST "a 1 T\nr 1 1 T\n", TRACE_ERROR_SIZE_TOO_LARGE, 7,
                "1 bytes more than the 18446744073709551615 before");
#undef MOST
}

static void alignment_that_is_no_power_of_two_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "m 8 48 T\n", TRACE_ERROR_ALIGNMENT_NOT_POWER, 2, "alignment 48");
    refuse_text(MAGIC "m 8 0 T\n", TRACE_ERROR_ALIGNMENT_NOT_POWER, 2, "alignment 0");
    refuse_text(MAGIC "p 8 3 T\n", TRACE_ERROR_ALIGNMENT_NOT_POWER, 2, "alignment 3");
    accept_text(MAGIC "p 8 0 T\nm 8 1 T\n");
}

static void alignment_above_the_limit_is_refused(void **state)
{
    (void)state;
    accept_text(MAGIC "m 8 2097152 T\n");
    refuse_text(MAGIC "m 8 4194304 T\n", TRACE_ERROR_ALIGNMENT_TOO_LARGE, 2, "4194304");
    refuse_text(MAGIC "p 8 9223372036854775808 T\n", TRACE_ERROR_ALIGNMENT_TOO_LARGE, 2,
                "9223372036854775808");
}

// ---- objects

static void preexisting_after_the_first_event_is_refused(void **state)
{
    (void)state;
    accept_text(MAGIC "B k 0 0\np 1 0 T\na 1 T\nE k 0\n");
    refuse_text(MAGIC "p 1 0 T\na 1 T\np 1 0 T\n", TRACE_ERROR_PREEXISTING_LATE, 4, "1 events");
}

static void free_of_an_unknown_object_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "f 1\n", TRACE_ERROR_UNKNOWN_OBJECT, 2, "0 objects so far");
    refuse_text(MAGIC "a 1 T\nf 0\n", TRACE_ERROR_UNKNOWN_OBJECT, 3, "0 objects back");
    refuse_text(MAGIC "a 1 T\nf 2\n", TRACE_ERROR_UNKNOWN_OBJECT, 3, "2 objects back");
    refuse_text(MAGIC "a 1 T\nr 18446744073709551615 1 T\n", TRACE_ERROR_UNKNOWN_OBJECT, 3,
                "18446744073709551615 objects back");
}

static void free_of_a_dead_object_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "a 1 T\nf 1\nf 1\n", TRACE_ERROR_DEAD_OBJECT, 4, "object 0");
    refuse_text(MAGIC "a 1 T\nr 1 2 T\nf 2\n", TRACE_ERROR_DEAD_OBJECT, 4, "object 0");
    refuse_text(MAGIC "a 1 T\na 1 T\nf 1\nr 1 2 T\n", TRACE_ERROR_DEAD_OBJECT, 5, "object 1");
}

// ---- markers

static void thread_number_at_the_limit_is_refused(void **state)
{
    (void)state;
    accept_text(MAGIC "t 4095\nB k 0 0\nE k 0\n");
    refuse_text(MAGIC "t 4096\n", TRACE_ERROR_THREAD_TOO_LARGE, 2, "4096");
    refuse_text(MAGIC "t 4294967296\n", TRACE_ERROR_THREAD_TOO_LARGE, 2, "4294967296");
}

static void nest(struct text *text, int depth)
{
    for (int i = 0; i < depth; i++)
        add(text, "B k 0 0\n");
    for (int i = 0; i < depth; i++)
        add(text, "E k 0\n");
}

static void nesting_above_the_limit_is_refused(void **state)
{
    struct text *text = new_text();

    (void)state;
    nest(text, TRACE_DEPTH_MAX);
    add(text, "t 1\n");
    nest(text, TRACE_DEPTH_MAX);
    accept_text(text->bytes);
    text = new_text();
    nest(text, TRACE_DEPTH_MAX + 1);
    refuse_text(text->bytes, TRACE_ERROR_NESTING_TOO_DEEP, 18, "16 regions");
}

static void end_without_begin_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "E k 0\n", TRACE_ERROR_END_WITHOUT_BEGIN, 2, "E k");
    refuse_text(MAGIC "B k 0 0\nt 1\nE k 0\n", TRACE_ERROR_END_WITHOUT_BEGIN, 4, "thread 1");
}

static void end_of_another_kind_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "B a 0 0\nB b 0 0\nE a 0\n", TRACE_ERROR_KIND_MISMATCH, 4, "'b' is open");
}

static void region_left_open_is_refused(void **state)
{
    (void)state;
    refuse_text(MAGIC "t 3\nB step 0 0\n", TRACE_ERROR_REGION_LEFT_OPEN, 3,
                "thread 3 ends inside 'step'");
    refuse_text(MAGIC "t 4095\nB outer 0 0\nB inner 0 0\n", TRACE_ERROR_REGION_LEFT_OPEN, 4,
                "thread 4095 ends inside 'inner', 2 open");
}

static void add_names(struct text *text, const char *letter, int count)
{
    for (int i = 0; i < count; i++)
        add(text, letter[0] == 'P' ? "P n%d\n" : "B n%d 0 0\nE n%d 0\n", i, i);
}

static void names_above_the_limit_are_refused(void **state)
{
    struct text *text = new_text();

    (void)state;
    add_names(text, "P", TRACE_NAMES_MAX);
    add_names(text, "B", TRACE_NAMES_MAX);
    accept_text(text->bytes);
    text = new_text();
    add_names(text, "P", TRACE_NAMES_MAX + 1);
    refuse_text(text->bytes, TRACE_ERROR_TOO_MANY_NAMES, 258, "n256");
    text = new_text();
    add_names(text, "B", TRACE_NAMES_MAX + 1);
    refuse_text(text->bytes, TRACE_ERROR_TOO_MANY_NAMES, 514, "n256");
}

static void lines_above_the_limit_are_refused(void **state)
{
    gzFile file = gzopen(scratch_path(), "wb1");

    (void)state;
    gzputs(file, MAGIC);
    for (uint32_t i = 0; i <= TRACE_EVENTS_MAX; i++)
        gzputs(file, "P x\n");
    assert_int_equal(gzclose(file), Z_OK);
    expect_refused(TRACE_ERROR_TOO_MANY_EVENTS, (uint64_t)TRACE_EVENTS_MAX + 2, "more than");
}

// ---- the header's claims

#define BODY "p 5 0 T\na 7 T\na 1 T\nf 1\nr 2 9 T\n"

static void refuse_claim(const char *claim, enum trace_error_code code, const char *part)
{
    char text[256];

    snprintf(text, sizeof text, MAGIC "%s\n" BODY, claim);
    refuse_text(text, code, 0, part);
}

static void header_that_claims_what_is_there_is_read(void **state)
{
    (void)state;
    accept_text(MAGIC "#objects 4\n#preexisting 1 5\n#events 4\n#allocs 2\n#frees 1\n#reallocs 1\n"
                      "#max-live 3 14\n#left 2 14\n" BODY);
}

static void header_that_claims_too_many_objects_is_refused(void **state)
{
    (void)state;
    refuse_claim("#objects 5", TRACE_ERROR_COUNT_OBJECTS, "claims 5, counted 4");
    refuse_claim("#objects 1000000000000000000", TRACE_ERROR_COUNT_OBJECTS, "counted 4");
    refuse_claim("#objects 18446744073709551615", TRACE_ERROR_COUNT_OBJECTS, "counted 4");
    refuse_claim("#objects 3", TRACE_ERROR_COUNT_OBJECTS, "claims 3, counted 4");
}

static void header_with_a_wrong_count_of_preexisting_is_refused(void **state)
{
    (void)state;
    refuse_claim("#preexisting 2 5", TRACE_ERROR_COUNT_PREEXISTING, "counted 1 of 5 bytes");
    refuse_claim("#preexisting 1 6", TRACE_ERROR_COUNT_PREEXISTING, "claims 1 of 6 bytes");
}

static void header_with_a_wrong_count_of_events_is_refused(void **state)
{
    (void)state;
    refuse_claim("#events 5", TRACE_ERROR_COUNT_EVENTS, "claims 5, counted 4");
}

static void header_with_a_wrong_count_of_allocs_is_refused(void **state)
{
    (void)state;
    refuse_claim("#allocs 3", TRACE_ERROR_COUNT_ALLOCS, "claims 3, counted 2");
}

static void header_with_a_wrong_count_of_frees_is_refused(void **state)
{
    (void)state;
    refuse_claim("#frees 0", TRACE_ERROR_COUNT_FREES, "claims 0, counted 1");
}

static void header_with_a_wrong_count_of_reallocs_is_refused(void **state)
{
    (void)state;
    refuse_claim("#reallocs 2", TRACE_ERROR_COUNT_REALLOCS, "claims 2, counted 1");
}

static void header_with_a_wrong_max_live_is_refused(void **state)
{
    (void)state;
    refuse_claim("#max-live 4 14", TRACE_ERROR_COUNT_MAX_LIVE, "counted 3 of 14 bytes");
    refuse_claim("#max-live 3 21", TRACE_ERROR_COUNT_MAX_LIVE, "claims 3 of 21 bytes");
}

static void header_with_a_wrong_count_of_left_is_refused(void **state)
{
    (void)state;
    refuse_claim("#left 3 14", TRACE_ERROR_COUNT_LEFT, "counted 2 of 14 bytes");
    refuse_claim("#left 2 13", TRACE_ERROR_COUNT_LEFT, "claims 2 of 13 bytes");
}

static void every_code_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < TRACE_ERROR_CODES; i++)
        assert_non_null(strstr(trace_error_name((enum trace_error_code)i), "TRACE_"));
    assert_string_equal(trace_error_name(TRACE_ERROR_CODES), "TRACE_ERROR_?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_at_the_limit_is_read_and_one_byte_more_is_refused),
        cmocka_unit_test(line_without_end_is_refused_without_reading_on),
        cmocka_unit_test(nul_byte_is_refused),
        cmocka_unit_test(what_is_cited_is_plain),
        cmocka_unit_test(last_line_without_newline_is_refused),
        cmocka_unit_test(wrong_magic_is_refused),
        cmocka_unit_test(header_line_behind_the_header_is_refused),
        cmocka_unit_test(header_line_that_appears_twice_is_refused),
        cmocka_unit_test(malformed_header_line_is_refused),
        cmocka_unit_test(unknown_line_is_refused),
        cmocka_unit_test(malformed_fields_are_refused),
        cmocka_unit_test(every_printable_byte_but_the_space_may_be_in_a_word),
        cmocka_unit_test(word_at_the_limit_is_read_and_one_byte_more_is_refused),
        cmocka_unit_test(number_that_overflows_is_refused),
        cmocka_unit_test(size_above_ptrdiff_max_is_refused),
        cmocka_unit_test(live_sizes_that_add_up_above_ptrdiff_max_are_refused),
        cmocka_unit_test(sizes_that_add_up_above_64_bits_are_refused),
        cmocka_unit_test(alignment_that_is_no_power_of_two_is_refused),
        cmocka_unit_test(alignment_above_the_limit_is_refused),
        cmocka_unit_test(preexisting_after_the_first_event_is_refused),
        cmocka_unit_test(free_of_an_unknown_object_is_refused),
        cmocka_unit_test(free_of_a_dead_object_is_refused),
        cmocka_unit_test(thread_number_at_the_limit_is_refused),
        cmocka_unit_test(nesting_above_the_limit_is_refused),
        cmocka_unit_test(end_without_begin_is_refused),
        cmocka_unit_test(end_of_another_kind_is_refused),
        cmocka_unit_test(region_left_open_is_refused),
        cmocka_unit_test(names_above_the_limit_are_refused),
        cmocka_unit_test(lines_above_the_limit_are_refused),
        cmocka_unit_test(header_that_claims_what_is_there_is_read),
        cmocka_unit_test(header_that_claims_too_many_objects_is_refused),
        cmocka_unit_test(header_with_a_wrong_count_of_preexisting_is_refused),
        cmocka_unit_test(header_with_a_wrong_count_of_events_is_refused),
        cmocka_unit_test(header_with_a_wrong_count_of_allocs_is_refused),
        cmocka_unit_test(header_with_a_wrong_count_of_frees_is_refused),
        cmocka_unit_test(header_with_a_wrong_count_of_reallocs_is_refused),
        cmocka_unit_test(header_with_a_wrong_max_live_is_refused),
        cmocka_unit_test(header_with_a_wrong_count_of_left_is_refused),
        cmocka_unit_test(every_code_has_a_name),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("trace_refusals", tests, make_scratch, remove_scratch);
}
