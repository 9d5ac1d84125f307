// SPDX-License-Identifier: Apache-2.0
//
// test_advise.c - ebb advise finds the steps of programs in which much else is even; and nothing is
// put where a recording is, or its list of places.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "trace_scratch.h"

// A start that repeats evenly, and leaves all of it. Then steps with one block from their begin to
// their end: of their 31 places all but the first have as much alive as any other time.
static void steps_begin_at_one_of_many_places(void **state)
{
    static const unsigned bytes[] = {50000, 65536, 70000, 99999, 100000, 123456};

    (void)state;
    for (size_t run = 0; run < sizeof bytes / sizeof *bytes; run++) {
        struct text *text = new_text();

        for (unsigned i = 0; i < 400; i++)
            add(text, "a 505 O\na %u O\n", 1000 + i);
        for (unsigned step = 0; step < 200; step++) {
            add(text, "a %u C\n", bytes[run]);
            for (unsigned i = 0; i < 30; i++)
                add(text, "a %u C\n", 10 + i);
            for (unsigned i = 1; i <= 31; i++)
                add(text, "f %u\n", i);
        }
        write_bytes(text->bytes, text->used);
        assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
        assert_non_null(strstr(said, "every 62 events (+- 0 %), 200 times"));
        assert_non_null(strstr(said, "would end 100.0 % of the bytes"));
    }
}

// Other lines are none: of threads, regions and phases.
static void distances_are_counted_in_events(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (unsigned step = 0; step < 200; step++)
        add(text, "a 4000 C\na 80 C\nP forward\nt 1\nB part %u 0\na 90 C\nf 1\nE part 0\nt 0\n"
            "f 2\nf 3\n", step);
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise --search"), 0);
    assert_non_null(strstr(said, "every 6 events (+- 0 %), 200 times"));
}

// Steps of `blocks` blocks, which die in them.
static void add_steps(struct text *text, unsigned count, unsigned blocks)
{
    for (unsigned step = 0; step < count; step++) {
        for (unsigned i = 0; i < blocks; i++)
            add(text, "a %u O\n", 100 + i);
        for (unsigned i = 0; i < blocks; i++)
            add(text, "f %u\n", blocks - i);
    }
}

static void add_other(struct text *text, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        add(text, "a %u O\nf 1\n", 7000 + i);
}

// Between epochs lies what comes again; before all steps, what does not.
static void steps_of_all_epochs_are_found(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (unsigned epoch = 0; epoch < 10; epoch++) {
        add_steps(text, 50, 20);
        add_other(text, 300);
    }
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_non_null(strstr(said, "every 40 events (+- 0 %), 500 times"));
    text = new_text();
    for (unsigned epoch = 0; epoch < 25; epoch++) {
        add_steps(text, 20, 20);
        add_other(text, 100);
    }
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_non_null(strstr(said, " 500 times"));
}

// A network in training: what comes most evenly is of a layer, and what ends with it is worth
// something. Between epochs it is only tried, so that no whole step comes as evenly.
static void steps_are_found_among_what_comes_more_evenly(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (unsigned epoch = 0; epoch < 5; epoch++) {
        for (unsigned step = 0; step < 25; step++) {
            add(text, "a 3072 O\n");
            for (unsigned i = 0; i < 20; i++)
                add(text, "a %u O\na 64 O\nf 1\n", 20000 + 8 * i);
            for (unsigned i = 0; i < 20; i++)
                add(text, "a 50000 O\na %u O\nf 1\nf %u\n", 40000 + 8 * i, 4 * i + 4);
            add(text, "f 81\n");
            for (unsigned i = 0; i < 20; i++)
                add(text, "f %u\n", 40 - 2 * i);
        }
        for (unsigned step = 0; step < 5; step++) {
            add(text, "a 3072 O\n");
            for (unsigned i = 0; i < 20; i++)
                add(text, "a %u O\nf 1\n", 20000 + 8 * i);
            add(text, "f 21\n");
        }
    }
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_non_null(strstr(said, "malloc of 3,072 bytes"));
    assert_non_null(strstr(said, " 150 times"));
}

static unsigned number_below(unsigned end)
{
    static uint64_t random = 1;

    random = random * 48271 % 2147483647;
    return (unsigned)(random % end);
}

static char *sites_path(void)
{
    static char name[256];

    snprintf(name, sizeof name, "%s.sites", scratch_path());
    return name;
}

// The list of places beside the scratch trace, to which the place of each object is added.
static FILE *new_sites(void)
{
    FILE *sites = fopen(sites_path(), "w");

    assert_non_null(sites);
    fputs("#ebb-sites 1\ns 1 O /program+0x1 load\ns 2 O /program+0x2 layer\n"
          "s 3 O /program+0x3 read_line\n", sites);
    return sites;
}

static void advise_with_sites(struct text *text, FILE *sites)
{
    fclose(sites);
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    unlink(sites_path());
}

// Of no size that comes again evenly.
static void add_lines(struct text *text, FILE *sites, unsigned count, unsigned place)
{
    for (unsigned i = 0; i < count; i++) {
        add(text, "a %u O\nf 1\n", 20 + number_below(149));
        fprintf(sites, "%u\n", place);
    }
}

// `unit` 0: of sizes that never change.
static void add_batch(struct text *text, FILE *sites, unsigned unit)
{
    add(text, "a %u O\n", 1000000 + 3000 * unit);
    fputs("1\n", sites);
    for (unsigned i = 0; i < 40; i++) {
        add(text, "a %u O\n", 100000 + 64 * i + unit);
        fputs("2\n", sites);
    }
    for (unsigned i = 0; i < 41; i++)
        add(text, "f %u\n", 41 - i);
}

// They come more often and more evenly than steps, and end all of their few bytes.
static void lines_that_are_read_are_no_steps(void **state)
{
    static const struct {
        unsigned before, in_step, in_epoch, unit;
    } run[] = {{20000, 0, 0, 0}, {0, 100, 0, 0}, {0, 0, 1000, 0}, {0, 0, 1000, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
        struct text *text = new_text();
        FILE *sites = new_sites();

        add_lines(text, sites, run[i].before, 3);
        for (unsigned step = 0; step < 300; step++) {
            add_lines(text, sites, run[i].in_step, 3);
            add_batch(text, sites, run[i].unit * number_below(997));
            add_lines(text, sites, step % 50 == 49 ? run[i].in_epoch : 0, 3);
        }
        advise_with_sites(text, sites);
        assert_non_null(strstr(said, " by load (program),\n"));
        assert_non_null(strstr(said, " 300 times"));
    }
}

// Steps of which no two have one length.
static void lines_that_are_more_even_than_steps_are_none(void **state)
{
    struct text *text = new_text();
    FILE *sites = new_sites();

    (void)state;
    for (unsigned step = 0; step < 300; step++) {
        add_batch(text, sites, number_below(997));
        add_lines(text, sites, 60 + number_below(61), 3);
    }
    advise_with_sites(text, sites);
    assert_non_null(strstr(said, " by load (program),\n"));
    assert_non_null(strstr(said, " 300 times"));
}

// They are many, and no place of any size.
static void places_without_a_number_are_none(void **state)
{
    struct text *text = new_text();
    FILE *sites = new_sites();

    (void)state;
    for (unsigned step = 0; step < 300; step++) {
        add_lines(text, sites, 1, 0);
        add_batch(text, sites, 0);
    }
    for (unsigned i = 0; i < 20000; i++) {
        add(text, "a %u O\nf 1\n", 4000000 + i);
        fputs("0\n", sites);
    }
    advise_with_sites(text, sites);
    assert_null(strstr(said, "unknown"));
    assert_non_null(strstr(said, " by load (program),\n"));
}

// Each block has the size of its batch. Where places have names, that is of no account.
static void steps_of_any_size_begin_at_a_place(void **state)
{
    struct text *text = new_text();
    FILE *sites = new_sites();

    (void)state;
    for (unsigned step = 0; step < 150; step++) {
        unsigned batch = 1 + number_below(7);

        add(text, "a %u O\n", 3000 * batch);
        fputs("1\n", sites);
        for (unsigned i = 0; i < 10; i++) {
            add(text, "a %u O\n", (500 + i) * batch);
            fputs("2\n", sites);
        }
        for (unsigned i = 1; i <= 11; i++)
            add(text, "f %u\n", i);
    }
    advise_with_sites(text, sites);
    assert_non_null(strstr(said, "malloc of any size by load (program),\n"));
    assert_non_null(strstr(said, "every 22 events (+- 0 %), 150 times"));
}

static void what_came_once_before_the_steps_is_none(void **state)
{
    struct text *text = new_text();

    (void)state;
    add_steps(text, 1, 20);
    add_other(text, 300);
    add_steps(text, 3, 20);
    add_other(text, 1000);
    add_steps(text, 50, 20);
    add_other(text, 300);
    add_steps(text, 50, 20);
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_non_null(strstr(said, "every 40 events (+- 0 %), 100 times"));
}

// Two buffers in turn: whatever block is taken for its begin, no step ends a block of its own.
static void steps_in_two_buffers_begin_where_the_next_ones_end_them(void **state)
{
    struct text *text = new_text();
    char arguments[512], path[256];

    (void)state;
    for (unsigned step = 0; step < 200; step++) {
        for (unsigned i = 0; i < 20; i++)
            add(text, "a %u O\n", 300 + i);
        for (unsigned i = 0; i < (step ? 20 : 0); i++)
            add(text, "f %u\n", 40 - i);
    }
    write_bytes(text->bytes, text->used);
    snprintf(path, sizeof path, "%s.two.trace.gz", scratch_path());
    snprintf(arguments, sizeof arguments, "advise -o %s", path);
    assert_int_equal(run_on_scratch("EBB_TOOL", arguments), 0);
    assert_non_null(strstr(said, "begins with malloc of 300 bytes"));
    assert_non_null(strstr(said, "99.5 % of the bytes die in the next step"));
    unlink(path);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_non_null(strstr(said, "99.5 % of the bytes die in the next step"));
}

// The verdict on the steps that are found in the scratch trace, in the tool's words.
static char *verdict_with(const char *options)
{
    char *line, arguments[512];

    snprintf(arguments, sizeof arguments, "advise %s", options);
    assert_int_equal(run_on_scratch("EBB_TOOL", arguments), 0);
    line = strstr(said, "  A region there");
    line = line ? line : strstr(said, "  Not worth a region");
    assert_non_null(line);
    line = strdup(line);
    assert_non_null(line);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static void assert_one_verdict(const char *expected)
{
    char *found = verdict_with(""), *of_steps, written[256];

    snprintf(written, sizeof written, "-o %s.steps", scratch_path());
    of_steps = verdict_with(written);
    assert_string_equal(found, of_steps);
    assert_non_null(strstr(found, expected));
    free(found);
    free(of_steps);
    snprintf(written, sizeof written, "%s.steps", scratch_path());
    unlink(written);
}

// Blocks that outlive more than half of all steps say little of where these begin, and do outlive
// them; what other threads allocate is in none of them.
static void what_is_said_of_steps_holds_where_they_are_written(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (unsigned step = 0; step < 40; step++) {
        add(text, "a 77 O\n");
        for (unsigned i = 0; i < 120; i++)
            add(text, "a 1000 O\n");
        for (unsigned i = 0; i < 120; i++)
            add(text, "f %u\n", i + 1);
        add(text, "f 121\na 100000 O\n");
        if (step > 20)
            add(text, "f %u\n", 21 * 122 + 1);
    }
    write_bytes(text->bytes, text->used);
    assert_one_verdict("only 54.6 % of the bytes die within");
    text = new_text();
    for (unsigned step = 0; step < 40; step++)
        add(text, "a 77 O\na 1000 O\nf 1\nf 2\nt 1\na 5000 O\nf 1\nt 0\n");
    write_bytes(text->bytes, text->used);
    assert_one_verdict("100.0 % of the bytes");
}

// Steps of one thread, of which the others allocate all but a few bytes.
static void little_is_promised_of_steps_with_few_of_the_bytes(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (unsigned step = 0; step < 200; step++) {
        add(text, "t 0\na 77 O\nt 1\n");
        for (unsigned i = 0; i < 20; i++)
            add(text, "a 5000 O\n");
        for (unsigned i = 0; i < 20; i++)
            add(text, "f %u\n", 20 - i);
        add(text, "t 0\nf 21\n");
    }
    write_bytes(text->bytes, text->used);
    assert_one_verdict("100.0 % of the bytes");
    assert_non_null(strstr(said, "gain little: these steps have 0.08 % of all bytes"));
    assert_non_null(strstr(said, "Outside of steps: 3,980 blocks of 19.0 MiB, >99.9 % of all"));
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_non_null(strstr(said, "gain little: these steps have 0.08 % of all bytes"));
    assert_non_null(strstr(said, "Outside of steps: 3,980 blocks of 19.0 MiB, >99.9 % of all"));
}

// Of 4 GiB and more all bytes count.
static void large_blocks_count_whole(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (unsigned step = 0; step < 40; step++)
        add(text, "a 77 O\na 4294967296 O\na 17179869184 O\nf 2\nf 3\n%s", step ? "f 4\n" : "");
    write_bytes(text->bytes, text->used);
    assert_one_verdict("only 20.0 % of the bytes die within");
}

// Of four steps a replay that leaves out three as warm-up would measure one.
static void few_steps_have_little_warm_up(void **state)
{
    struct text *text = new_text();
    char arguments[512], path[256];
    struct trace_error error;
    struct ebb_trace *trace;

    (void)state;
    for (unsigned step = 0; step < 5; step++)
        add(text, "a 4000 C\na 80 C\nf 1\nf 2\n");
    write_bytes(text->bytes, text->used);
    snprintf(path, sizeof path, "%s.few.trace.gz", scratch_path());
    snprintf(arguments, sizeof arguments, "advise -o %s", path);
    assert_int_equal(run_on_scratch("EBB_TOOL", arguments), 0);
    trace = trace_read(path, &error);
    assert_non_null(trace);
    assert_int_equal(trace->warmup, 1);
    trace_free(trace);
    unlink(path);
}

// What is written is not what is read, under whatever name: a recording is not to be had again.
static void a_page_does_not_take_the_place_of_its_recording(void **state)
{
    struct text *text = new_text();
    char command[1000];

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        add(text, "B step %u 0\na 100 C\nf 1\nE step 0\n", i);
    write_bytes(text->bytes, text->used);
    snprintf(command, sizeof command, "report --no-replay --html %s", scratch_path());
    assert_int_equal(run_on_scratch("EBB_TOOL", command), 2);
    assert_non_null(strstr(said, "is what is to be read"));
    snprintf(command, sizeof command, "ln -s %s %s.link", scratch_path(), scratch_path());
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "report --no-replay --html %s.link", scratch_path());
    assert_int_equal(run_on_scratch("EBB_TOOL", command), 2);
    snprintf(command, sizeof command, "rm %s.link", scratch_path());
    assert_int_equal(system(command), 0);
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --no-replay"), 0);
}

// In a folder of its own, a recording with its list of places: what the tool does there by `ways`.
static void run_beside_a_recording(const char *ways)
{
    char command[4096];

    snprintf(command, sizeof command,
             "--help >/dev/null; d=%s.d; mkdir $d; cd $d; ebb=%s; client=%s; said() { grep -q "
             "\"$1\" said; }; fails() { if \"$@\"; then exit 9; fi; }; "
             "$ebb record -q --sites -o in.trace.gz -- $client loop; sum in.* >before; "
             "(set -e; %s) >said 2>&1; code=$?; sum in.* | cmp - before || code=1; "
             "[ $code = 0 ] || cat said; rm -r $d; exit $code",
             scratch_path(), getenv("EBB_TOOL"), getenv("EBB_CLIENT"), ways);
    assert_int_equal(run_program("EBB_TOOL", command), 0);
}

static void lists_of_places_are_of_one_trace(void **state)
{
    (void)state;
    run_beside_a_recording("$ebb advise in.trace.gz -o in; [ -e in.sites ]; "
                           "$ebb report --no-replay in | grep record_client; rm in in.sites");
    run_beside_a_recording("$ebb record -o in -- true; [ ! -e in.sites ]; rm in; "
                           "$ebb record --sites -o in -- true; [ -e in.sites ]; rm in in.sites");
    run_beside_a_recording("for to in .trace.gz ./.trace.gz; do rm -f .trace*; "
                           "$ebb record -q --sites -o $to -- true; [ -e .trace.gz.sites ]; done");
    run_beside_a_recording("fails $ebb advise in.trace.gz -o in.sites.gz; "
                           "said 'in.sites.gz: a list of places has such a name'");
    run_beside_a_recording("fails $ebb record -o in.sites.gz -- touch ran; [ ! -e ran ]");
    run_beside_a_recording("mkdir x.sites.gz; fails $ebb record -o x.trace.gz -- touch ran; "
                           "[ ! -e ran ]; said 'x.sites.gz: is there already, and no ordinary'; "
                           "fails $ebb advise in.trace.gz -o x.trace.gz; [ ! -e x.trace.gz ]");
    run_beside_a_recording("fails $ebb record --recover $d -o x.sites; said 'a list of places'");
}

// As a trace is: with its check sum, and nothing behind it.
static void a_list_of_places_is_whole(void **state)
{
    static const char *const ways[][2] = {
        {"head -c -8 in.sites.gz >x.sites.gz", "line .*: the gzip stream ends too early"},
        {"(cat in.sites.gz; echo more) >x.sites.gz", "line .*: damaged gzip stream"},
        {"gzip -dc in.sites.gz | head -c -1 >x.sites.gz", "line .*: the last line"},
        {"(gzip -dc in.sites.gz; echo 1) >x.sites.gz", "x.sites.gz: damaged, or of another"},
        {"gzip -dc in.sites.gz | sed '$s/^/+/' >x.sites.gz", "x.sites.gz: damaged, or of another"},
        {"gzip -dc in.sites.gz | sed '$s/^/ /' >x.sites.gz", "x.sites.gz: damaged, or of another"},
        {"gzip -dc in.sites.gz | sed '2s/ / +/' >x.sites.gz", "x.sites.gz: damaged, or of another"},
        {"mkdir x.sites.gz", "line .*: cannot read"}};
    char command[512];

    (void)state;
    run_beside_a_recording("cp in.trace.gz x.trace.gz; gzip -dc in.sites.gz >x.sites.gz; "
                           "$ebb advise x.trace.gz; said record_client");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        snprintf(command, sizeof command,
                 "cp in.trace.gz x.trace.gz; %s; code=0; $ebb report --no-replay x.trace.gz || "
                 "code=$?; [ $code = 2 ]; said '%s'", ways[i][0], ways[i][1]);
        run_beside_a_recording(command);
    }
}

// One code for all of that: the arguments are good, and the file cannot be made.
static void what_is_no_file_ends_it_alike(void **state)
{
    static const char *const ways[] = {"x.trace.gz", "x.sites.gz"};
    char command[512];

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        snprintf(command, sizeof command,
                 "mkdir %s; code=0; $ebb advise in.trace.gz -o x.trace.gz || code=$?; "
                 "[ $code = 1 ]; said '%s: is there already, and no ordinary file'",
                 ways[i], ways[i]);
        run_beside_a_recording(command);
    }
    run_beside_a_recording("mkdir x.sites.gz; code=0; cp in.trace.gz x.trace.gz; "
                           "$ebb advise in.trace.gz -o x.sites.gz || code=$?; [ $code = 2 ]");
}

// Links may lead to either of two files that belong to each other.
static void links_do_not_part_a_trace_from_its_places(void **state)
{
    (void)state;
    run_beside_a_recording("ln -s in.sites.gz link; fails $ebb advise in.trace.gz -o link; "
                           "said 'is what is to be read'");
    run_beside_a_recording("ln -s in.trace.gz link.trace.gz; "
                           "fails $ebb advise in.trace.gz -o link.trace.gz; "
                           "said 'is what is to be read'");
    run_beside_a_recording("ln -s in.sites.gz other.sites.gz; "
                           "fails $ebb advise in.trace.gz -o other.trace.gz; "
                           "said 'is what is to be read'");
    run_beside_a_recording("cp in.trace.gz my.trace.gz; cp in.sites.gz my.sites.gz; "
                           "$ebb advise my.trace.gz -o ./my.trace.gz; "
                           "$ebb report --no-replay my.trace.gz | grep advised");
}

static void steps_without_bytes_are_not_worth_a_region(void **state)
{
    struct text *text = new_text();

    (void)state;
    add(text, "B s 0 0\na 0 O\nf 1\nE s 0\n");
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_non_null(strstr(said, "  Not worth a region: no bytes are born within.\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_does_not_take_the_place_of_its_recording),
        cmocka_unit_test(steps_begin_at_one_of_many_places),
        cmocka_unit_test(distances_are_counted_in_events),
        cmocka_unit_test(steps_of_all_epochs_are_found),
        cmocka_unit_test(steps_are_found_among_what_comes_more_evenly),
        cmocka_unit_test(steps_of_any_size_begin_at_a_place),
        cmocka_unit_test(lines_that_are_read_are_no_steps),
        cmocka_unit_test(lines_that_are_more_even_than_steps_are_none),
        cmocka_unit_test(places_without_a_number_are_none),
        cmocka_unit_test(what_came_once_before_the_steps_is_none),
        cmocka_unit_test(steps_in_two_buffers_begin_where_the_next_ones_end_them),
        cmocka_unit_test(few_steps_have_little_warm_up),
        cmocka_unit_test(what_is_said_of_steps_holds_where_they_are_written),
        cmocka_unit_test(little_is_promised_of_steps_with_few_of_the_bytes),
        cmocka_unit_test(large_blocks_count_whole),
        cmocka_unit_test(lists_of_places_are_of_one_trace),
        cmocka_unit_test(a_list_of_places_is_whole),
        cmocka_unit_test(what_is_no_file_ends_it_alike),
        cmocka_unit_test(links_do_not_part_a_trace_from_its_places),
        cmocka_unit_test(steps_without_bytes_are_not_worth_a_region),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
