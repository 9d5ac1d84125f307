// SPDX-License-Identifier: Apache-2.0
//
// test_tool.c - ebb advise, on traces whose figures are known; and what all commands refuse.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "known.h"
#include "program.h"
#include "trace_scratch.h"

static void fates_are_counted(void **state)
{
    (void)state;
    write_steps(100);
    trace_free(expect_read());
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_said("train    100       4  400 B  300 B     50.00 %    75.00 %    100 B  14.85 %  "
                "0.00 %  10.15 %");
    assert_said("Outside of steps: 1 blocks of 0.98 KiB");
    assert_said("a ring of one step (`ring` of");
    assert_said("10.2 % of the bytes never end");
    assert_said("PyTorch tensor storage     1.0   60 B     100.0 %  5.80 KiB    0 B      60 B");
    assert_said("CPython interpreter        1.0   40 B     100.0 %       0 B    0 B  3.91 KiB");
}

// Blocks of a step that end before the next one, in it, behind it and in the one after that.
static void the_next_step_is_the_one_that_follows(void **state)
{
    struct text *text = new_text();

    (void)state;
    add(text, "B s 0 0\na 100 O\na 200 O\na 400 O\na 800 O\nE s 0\n");
    add(text, "f 4\nB s 1 0\nf 3\nE s 0\n");
    add(text, "f 2\nB s 2 0\nf 1\nE s 0\n");
    write_bytes(text->bytes, text->used);
    trace_free(expect_read());
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_said("0.00 %     0.00 %    500 B  20.00 %  80.00 %  0.00 %");
}

// Other threads have steps of the same kind meanwhile.
static void the_next_step_is_that_of_the_thread(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        for (unsigned thread = 0; thread < 3; thread++) // each frees what its last step has left
            add(text, "t %u\nB s %u 0\n%sa 100 O\nE s 0\n", thread, i, i ? "f 3\n" : "");
    }
    write_bytes(text->bytes, text->used);
    trace_free(expect_read());
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_said("s        30       1  100 B  100 B      0.00 %     0.00 %    100 B  90.00 %  "
                "0.00 %  10.00 %");
}

static struct ebb_trace *read_trace(const char *path)
{
    struct trace_error error;
    struct ebb_trace *trace = trace_read(path, &error);

    if (!trace)
        print_error("%s\n", error.text);
    assert_non_null(trace);
    return trace;
}

static void steps_of_a_real_trace_are_found_again(void **state)
{
    char arguments[1024], path[256];

    (void)state;
    snprintf(path, sizeof path, "%s.marked.trace.gz", scratch_path());
    snprintf(arguments, sizeof arguments,
             "advise --search %s/transformer_train.full.trace.gz -o %s", getenv("EBB_TRACES"),
             path);
    assert_int_equal(run_program("EBB_TOOL", arguments), 0);
    assert_said(" 27 times");
    struct ebb_trace *trace = read_trace(path);
    assert_string_equal(trace->kinds.word[0], "advised");
    assert_int_equal(trace->kinds.count, 1);
    trace_free(trace);
    unlink(path);
}

// The steps of a trace are looked for again; what is written is read.
static struct ebb_trace *advised(const char *from)
{
    char arguments[1024], to[256];
    struct ebb_trace *trace;

    snprintf(to, sizeof to, "%s.advised", from);
    snprintf(arguments, sizeof arguments, "advise --search %s -o %s", from, to);
    assert_int_equal(run_program("EBB_TOOL", arguments), 0);
    trace = read_trace(to);
    assert_int_equal(rename(to, from), 0);
    return trace;
}

// But for what it says of the first regions. Blocks that the first trace has left out are counted
// with those that this one leaves out.
static void what_a_header_says_of_the_recording_stays(void **state)
{
    char command[2048], all[256], few[256];
    static const char *const kept[] = {"#stopped here\n", "#about MLP ", "#software torch ",
                                       "#settings intra-op ", "#settings steps found "};
    struct ebb_trace *first, *trace, *other;

    (void)state;
    snprintf(all, sizeof all, "%s.all", scratch_path());
    snprintf(few, sizeof few, "%s.few", scratch_path());
    snprintf(command, sizeof command,
             "zcat %s/mlp_digits.full.trace.gz | sed '2i #stopped here\\n#too-deep 3\\n"
             "#settings a region every 10 ms' >%s; grep -v '^#untouched' %s >%s",
             getenv("EBB_TRACES"), all, all, few);
    assert_int_equal(system(command), 0);
    first = read_trace(all);
    trace = advised(all);
    other = advised(few);
    assert_true(first->untouched > 0 && other->untouched > 0);
    assert_int_equal(trace->untouched, first->untouched + other->untouched);
    assert_int_equal(trace->untouched_bytes, first->untouched_bytes + other->untouched_bytes);
    trace_free(first);
    trace_free(other);
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
            const char *line = strstr(trace->notes, kept[i]);

            assert_non_null(line);
            assert_null(strstr(line + 1, kept[i]));
        }
        assert_null(strstr(trace->notes, "#arg"));
        assert_null(strstr(trace->notes, "#too-deep"));
        assert_null(strstr(trace->notes, "#settings a region every"));
        trace_free(trace);
        trace = advised(all);
    }
    trace_free(trace);
    unlink(all);
    unlink(few);
}

static void steps_that_nobody_marked_are_found(void **state)
{
    char arguments[1024], path[256];

    (void)state;
    snprintf(path, sizeof path, "%s.loop.trace.gz", scratch_path());
    snprintf(arguments, sizeof arguments, "record -o %s -- %s loop", path, getenv("EBB_CLIENT"));
    assert_int_equal(run_program("EBB_TOOL", arguments), 0);
    assert_said("no steps in it");
    snprintf(arguments, sizeof arguments, "advise %s -o %s", path, path);
    assert_int_equal(run_program("EBB_TOOL", arguments), 0);
    assert_said(" 60 times");
    assert_said("every 101 events (+- 0 %)");
    const char *verdict = strstr(said, "A region there would end"); // once, of what was written
    assert_non_null(verdict);
    assert_null(strstr(verdict + 1, "A region there would end"));
    assert_true(strstr(said, "Steps `advised`") < verdict);
    snprintf(arguments, sizeof arguments, "advise %s", path); // of 50 blocks 50 die
    assert_int_equal(run_program("EBB_TOOL", arguments), 0);
    assert_said("Steps `advised`");
    unlink(path);
}

// A long start in five parts, each with blocks that stay; then 100 steps, 3 % of all events.
static void steps_after_a_long_start_are_found(void **state)
{
    struct text *text = new_text();

    (void)state;
    add(text, "#name started\n");
    for (unsigned part = 0; part < 5; part++) {
        add(text, "a 505 O\n");
        for (unsigned i = 0; i < 3000; i++)
            add(text, i % 6 ? "a %u O\nf 1\n" : "a %u O\n", 16 + (part * 31 + i * 7) % 1009);
    }
    for (unsigned step = 0; step < 100; step++)
        add(text, "a 77 C\na 300 C\nf 1\na 400 C\nf 1\na 500 C\nf 1\nf 4\n");
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_said(" 100 times");
}

// What never ends would not end with a step: the share of it is no more than it is.
static void blocks_that_stay_do_not_end_with_a_step(void **state)
{
    struct text *text = new_text();

    (void)state;
    add(text, "#name kept\n");
    for (unsigned step = 0; step < 100; step++)
        add(text, "a 77 C\na 923 C\na 3000 C\nf 1\nf 3\n");
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_said(" 100 times");
    assert_said("would end 76.9 % of the bytes and 66.7 % of the blocks");
}

static void places_stay_where_a_trace_is_written_over(void **state)
{
    char arguments[1024], path[256], sites[256];

    (void)state;
    snprintf(path, sizeof path, "%s.over.trace.gz", scratch_path());
    snprintf(sites, sizeof sites, "%s.over.sites.gz", scratch_path());
    snprintf(arguments, sizeof arguments, "record --sites -o %s -- %s loop", path,
             getenv("EBB_CLIENT"));
    assert_int_equal(run_program("EBB_TOOL", arguments), 0);
    snprintf(arguments, sizeof arguments, "advise %s -o %s", path, path);
    assert_int_equal(run_program("EBB_TOOL", arguments), 0);
    assert_said(" 60 times");
    assert_said("(record_client)");
    snprintf(arguments, sizeof arguments, "report --no-replay %s", path);
    assert_int_equal(run_program("EBB_TOOL", arguments), 0);
    assert_said("advised");
    unlink(path);
    unlink(sites);
}

// The trace that is read is the only one there is.
static void a_full_disk_leaves_the_trace_that_was_read(void **state)
{
    char command[2048], path[256];

    (void)state;
    snprintf(path, sizeof path, "%s.only.trace.gz", scratch_path());
    snprintf(command, sizeof command, "cp %s/transformer_train.full.trace.gz %s",
             getenv("EBB_TRACES"), path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command,
             "ulimit -f 40; %s advise --search %s -o %s 2>&1 | grep -q 'cannot be written' && "
             "cmp %s %s/transformer_train.full.trace.gz && [ ! -e %s.part ]",
             getenv("EBB_TOOL"), path, path, path, getenv("EBB_TRACES"), path);
    assert_int_equal(system(command), 0);
    unlink(path);
}

static void what_is_no_file_is_not_written_over(void **state)
{
    char arguments[1024], path[256];
    struct stat status;

    (void)state;
    snprintf(path, sizeof path, "%s.pipe", scratch_path());
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(arguments, sizeof arguments,
             "advise --search %s/mlp_digits.full.trace.gz -o %s", getenv("EBB_TRACES"), path);
    assert_int_equal(run_program("EBB_TOOL", arguments), 1);
    assert_said("no ordinary file");
    assert_int_equal(stat(path, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    unlink(path);
}

// What is written has another name at first. Others may have that, where they may write as well.
static void nothing_is_written_through_what_has_the_name_beside(void **state)
{
    char command[4096], path[256];
    static const char *const ways[] = {"ln -s $p.mine $p.part", "ln $p.mine $p.part",
                                       "mkfifo $p.part"};

    (void)state;
    snprintf(path, sizeof path, "%s.beside", scratch_path());
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        snprintf(command, sizeof command,
                 "p=%s; echo mine > $p.mine; %s; before=$(stat -c %%f $p.part); "
                 "%s advise --search %s/mlp_digits.full.trace.gz -o $p >/dev/null 2>$p.said; "
                 "[ $? = 1 ] && grep -q \"^ebb.*: $p.part: \" $p.said && [ ! -e $p ] && "
                 "[ $(cat $p.mine) = mine ] && [ $(stat -c %%f $p.part) = $before ]; "
                 "code=$?; [ $code = 0 ] || cat $p.said; rm -f $p $p.*; exit $code",
                 path, ways[i], getenv("EBB_TOOL"), getenv("EBB_TRACES"));
        assert_int_equal(system(command), 0);
    }
}

// Two at once would mix their lines in the file beside. Whoever comes second is told; what a writer
// that was killed has left is no hindrance.
static void a_file_has_one_writer_at_a_time(void **state)
{
    char command[4096], path[256];

    (void)state;
    snprintf(path, sizeof path, "%s.shared", scratch_path());
    snprintf(command, sizeof command,
             "p=%s; w='%s advise --search %s/mlp_digits.full.trace.gz -o '$p; "
             "echo half > $p.part; (flock 9; $w >$p.said 2>&1; code=$?; "
             "[ $code = 1 ] && grep -q 'part: another process is writing it' $p.said && "
             "[ $(cat $p.part) = half ]) 9<>$p.part && $w >$p.said 2>&1 && gzip -t $p && "
             "[ ! -e $p.part ]; code=$?; [ $code = 0 ] || cat $p.said; rm -f $p $p.*; exit $code",
             path, getenv("EBB_TOOL"), getenv("EBB_TRACES"));
    assert_int_equal(system(command), 0);
}

static void steps_of_the_program_are_not_written_again(void **state)
{
    char path[256];

    (void)state;
    write_steps(100);
    snprintf(path, sizeof path, "%s.not", scratch_path());
    char arguments[512];
    snprintf(arguments, sizeof arguments, "advise -o %s", path);
    assert_int_equal(run_on_scratch("EBB_TOOL", arguments), 1);
    assert_said("--search looks for others");
    assert_int_not_equal(access(path, F_OK), 0);
}

static void what_does_not_repeat_has_no_steps(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (unsigned i = 0; i < 200; i++)
        add(text, "a %u O\nf 1\n", 100 + i);
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
    assert_said("no steps, and no allocation that comes again");
    char never[256], command[512];
    snprintf(never, sizeof never, "%s.never", scratch_path());
    snprintf(command, sizeof command, "advise -o %s", never);
    assert_int_equal(run_on_scratch("EBB_TOOL", command), 1);
    snprintf(command, sizeof command, "ebb advise: %s is not written: no steps were found", never);
    assert_said(command);
    assert_int_equal(access(never, F_OK), -1);
}

static void bad_input_is_named(void **state)
{
    (void)state;
    write_bytes("#ebb-trace 1\nf 1\n", 17);
    assert_int_equal(run_on_scratch("EBB_TOOL", "report"), 2);
    assert_said("TRACE_ERROR_UNKNOWN_OBJECT");
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 2);
    assert_int_equal(run_on_scratch("EBB_TOOL", "replay"), 2);
    assert_int_equal(strncmp(said, "ebb replay: ", 12), 0); // in one line, and of nobody else
    assert_said("(TRACE_ERROR_UNKNOWN_OBJECT)\n");
    assert_string_equal(strchr(said, '\n'), "\n");
    assert_int_equal(run_program("EBB_TOOL", "report"), 2);
    assert_int_equal(run_program("EBB_TOOL", "replay"), 2);
    assert_int_equal(run_program("EBB_TOOL", "advise /nowhere"), 2);
    assert_said("/nowhere");
    assert_int_equal(run_program("EBB_TOOL", "replay --rounds x /nowhere"), 2);
    assert_int_equal(run_program("EBB_TOOL", "replay /nowhere"), 2);
    assert_string_equal(said, "ebb replay: /nowhere: No such file or directory\n");
    assert_int_equal(run_on_scratch("EBB_TOOL", "replay --allocators nobody"), 2);
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --allocators ebb,nobody,glibc"), 2);
    assert_string_equal(said, "ebb report: --allocators: no such allocator: 'nobody', there are "
                              "ebb,ebb-unplanned,glibc,glibc-tuned,jemalloc,jemalloc-tuned,"
                              "mimalloc,tcmalloc\n");
    assert_int_equal(run_on_scratch("EBB_TOOL", "replay --allocators ebb,glibc,ebb"), 2);
    assert_string_equal(said, "ebb replay: --allocators: 'ebb' is there twice\n");
}

// A list of places that belongs to another trace.
static void wrong_sites_are_refused(void **state)
{
    char command[512];

    (void)state;
    write_steps(10);
    snprintf(command, sizeof command,
             "printf '#ebb-sites 1\\ns 5 O x+0x1 f\\n5\\n5\\n' | gzip >%s.sites",
             scratch_path());
    assert_int_equal(system(command), 0);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 2);
    assert_said("of another trace");
    snprintf(command, sizeof command, "rm %s.sites", scratch_path());
    assert_int_equal(system(command), 0);
}

static void names_of_places_are_brief(void **state)
{
    static const char *const names[][2] = {
        {"/lib/libx.so.1+0x1 make", "  make (libx)  "},
        {"/lib/libx.so.1+0x1 a::(anonymous namespace)::make(std::function<void (int)>, int) const",
         "  a::(anonymous namespace)::make (libx)  "},
        {"/bin/program+0x1 one::two<char>::operator()(one<int, void (*)()>)",
         "  one::two<char>::operator() (program)  "},
        {"/bin/program+0x1 a_name_that_would_take_more_than_the_room_there_is(int)",
         "  a_name_that_would_take_more_tha... (program)  "},
        {"/bin/program+0x1 one::table<std::vector<long, std::allocator<long> > >::find(long)",
         "  one::table<std::vector<lo...::find (program)  "},
        {"/bin/program+0x1 one::table<std::vector<long, std::allocator<long> > >::operator<(int)",
         "  one::table<std::vect...::operator< (program)  "},
        {"/bin/program+0x1 one::binary_operator<two::three>::find_it_all(long)",
         "  one::binary_operat...::find_it_all (program)  "},
        {"/bin/program+0x1 one::operators<two::three, char>::find_it_all(long)",
         "  one::operators<two...::find_it_all (program)  "},
        {"/bin/program+0x1 one::table<std::vector<long>, one::two>::operator==<one::two>(int)",
         "  one::tabl...::operator==<one::two> (program)  "},
        {"/bin/program+0x1 one::table<one::two, char>::operator<< <one::two, three, four>(int)",
         "  one::table<on...::operator<< <...> (program)  "},
        {"/bin/program+0x1 void std::vector<one::two>::insert<one::two::three const&, char>(long)",
         "  void std::vector<o...::insert<...> (program)  "},
        {"/bin/program+0x1 one::a_name_that_would_take_more_than_the_room<one::other>(int)",
         "  a_name_that_would_take_more_tha... (program)  "},
        {"/bin/program+0x1 one::two::find<one::a_name_that_would_take_more_than_the_room>(int)",
         "  one::two::find<...> (program)  "},
        {"/bin/program+0x1 one::a_name_that_takes_all_of_the_room_(int)",
         "  a_name_that_takes_all_of_the_room_ (program)  "},
        {"/lib/ööööööööööööööööööööööööö.so+0x1 make", "  ... (ööööööööööööööööö...)  "},
        {"/bin/program+0x1 ", "  program+0x1  "}};
    char command[1024];

    (void)state;
    write_steps(10);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(command, sizeof command,
                 "(printf '#ebb-sites 1\ns 5 O %s\n'; yes 5 | head -41) | gzip >%s.sites",
                 names[i][0], scratch_path());
        assert_int_equal(system(command), 0);
        assert_int_equal(run_on_scratch("EBB_TOOL", "report --no-replay"), 0);
        assert_said(names[i][1]);
    }
    snprintf(command, sizeof command, "rm %s.sites", scratch_path());
    assert_int_equal(system(command), 0);
}

// Nobody may take a report for whole that is not.
static void what_cannot_be_said_is_a_failure(void **state)
{
    static const char *const commands[] = {"report --no-replay", "advise", "report --help",
                                           "replay --quick --rounds 1 --allocators ebb"};
    char arguments[512];

    (void)state;
    write_steps(100);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        snprintf(arguments, sizeof arguments, "%s %s 2>&1 >/dev/full #", commands[i],
                 scratch_path());
        assert_int_equal(run_program("EBB_TOOL", arguments), 1);
        assert_said("standard output: No space left on device");
        snprintf(arguments, sizeof arguments, "%s %s 2>&1 >&- #", commands[i], scratch_path());
        assert_int_equal(run_program("EBB_TOOL", arguments), 1);
        assert_said("standard output");
    }
    assert_int_equal(run_program("EBB_TOOL", "--version 2>&1 >/dev/full #"), 1);
    assert_said("standard output: No space left on device");
}

// Ends of regions are events, too. Its trace may have 80,000.
static void steps_that_make_a_trace_too_long_are_a_failure(void **state)
{
    char arguments[512];
    struct text *text = new_text();

    (void)state;
    for (unsigned step = 0; step < 400; step++) {
        for (unsigned i = 0; i < 100; i++)
            add(text, "a %u O\n", 100 + i);
        for (unsigned i = 100; i > 0; i--)
            add(text, "f %u\n", i);
    }
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_SHORT", "advise"), 0);
    snprintf(arguments, sizeof arguments, "advise -o %s.long", scratch_path());
    assert_int_equal(run_on_scratch("EBB_SHORT", arguments), 1);
    assert_said("more than 80000 lines");
    snprintf(arguments, sizeof arguments, "%s.long", scratch_path());
    assert_int_equal(unlink(arguments), 0);
}

// The trace is good.
static void too_little_memory_is_a_failure(void **state)
{
    static const char *const commands[] = {"advise", "report --no-replay"};
    char arguments[1024];

    (void)state;
    write_steps(100);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        snprintf(arguments, sizeof arguments,
                 "--version; ulimit -v 30000; exec %s %s %s", getenv("EBB_TOOL"), commands[i],
                 scratch_path());
        assert_int_equal(run_program("EBB_TOOL", arguments), 1);
        assert_said("out of memory: ");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fates_are_counted),
        cmocka_unit_test(the_next_step_is_the_one_that_follows),
        cmocka_unit_test(the_next_step_is_that_of_the_thread),
        cmocka_unit_test(steps_of_a_real_trace_are_found_again),
        cmocka_unit_test(what_a_header_says_of_the_recording_stays),
        cmocka_unit_test(steps_that_nobody_marked_are_found),
        cmocka_unit_test(steps_after_a_long_start_are_found),
        cmocka_unit_test(blocks_that_stay_do_not_end_with_a_step),
        cmocka_unit_test(places_stay_where_a_trace_is_written_over),
        cmocka_unit_test(a_full_disk_leaves_the_trace_that_was_read),
        cmocka_unit_test(what_is_no_file_is_not_written_over),
        cmocka_unit_test(nothing_is_written_through_what_has_the_name_beside),
        cmocka_unit_test(a_file_has_one_writer_at_a_time),
        cmocka_unit_test(steps_of_the_program_are_not_written_again),
        cmocka_unit_test(what_does_not_repeat_has_no_steps),
        cmocka_unit_test(bad_input_is_named),
        cmocka_unit_test(wrong_sites_are_refused),
        cmocka_unit_test(names_of_places_are_brief),
        cmocka_unit_test(what_cannot_be_said_is_a_failure),
        cmocka_unit_test(steps_that_make_a_trace_too_long_are_a_failure),
        cmocka_unit_test(too_little_memory_is_a_failure),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
