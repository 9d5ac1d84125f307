// SPDX-License-Identifier: Apache-2.0
//
// test_report.c - ebb replay and ebb report: tables, and pages.

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
#include <sys/wait.h>
#include <unistd.h>

#include "known.h"
#include "program.h"
#include "trace_scratch.h"

static void replays_are_tables(void **state)
{
    (void)state;
    write_steps(200);
    assert_int_equal(
        run_on_scratch("EBB_TOOL", "replay --quick --rounds 1 --allocators ebb,glibc"), 0);
    assert_said("allocator");
    assert_said("  ebb  ");
    assert_said("  glibc");
}

// As a file may have any.
static void names_over_tables_are_plain(void **state)
{
    char arguments[1024], odd[512];

    (void)state;
    write_steps(200);
    snprintf(odd, sizeof odd, "%s\033[31m", scratch_path());
    assert_int_equal(link(scratch_path(), odd), 0);
    snprintf(arguments, sizeof arguments, "replay --quick --rounds 1 --allocators glibc '%s'", odd);
    assert_int_equal(run_program("EBB_TOOL", arguments), 0);
    unlink(odd);
    assert_said("?[31m\n");
    assert_null(strchr(said, '\033'));
}

// One table has the figures of one trace.
static void a_folder_is_no_trace(void **state)
{
    char arguments[512];

    (void)state;
    snprintf(arguments, sizeof arguments, "replay --quick --rounds 1 %s", getenv("EBB_TRACES"));
    assert_int_equal(run_program("EBB_TOOL", arguments), 2);
    assert_said("a folder; name the traces in it");
}

// The first child of a process; 0 where there is none.
static int child_of(int process)
{
    char path[64];
    int child = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", process, process);
    file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%d", &child) != 1)
        child = 0;
    fclose(file);
    return child;
}

static void nothing_is_replayed_for_a_tool_that_is_gone(void **state)
{
    int child = 0, silent = open("/dev/null", O_WRONLY);
    char trace[512];
    pid_t tool;

    (void)state;
    if (access("/proc/thread-self/children", F_OK) != 0)
        skip(); // the kernel does not tell
    tool = fork();
    assert_true(tool >= 0);
    snprintf(trace, sizeof trace, "%s/resnet18_train.full.trace.gz", getenv("EBB_TRACES"));
    if (tool == 0) {
        dup2(silent, STDOUT_FILENO);
        dup2(silent, STDERR_FILENO);
        execl(getenv("EBB_TOOL"), "ebb", "replay", "--rounds", "1000", trace, (char *)NULL);
        _exit(127);
    }
    close(silent);
    for (int i = 0; i < 1000 && !(child && child_of(child)); i++) {
        child = child_of(tool);
        usleep(10000);
    }
    assert_true(child > 0);
    kill(tool, SIGKILL);
    waitpid(tool, NULL, 0);
    for (int i = 0; i < 1000 && child_of(child); i++)
        usleep(10000);
    assert_int_equal(child_of(child), 0); // churn is gone, or its children would be there
}

static void reports_say_gain_and_survivors(void **state)
{
    (void)state;
    write_steps(200);
    assert_int_equal(
        run_on_scratch("EBB_TOOL", "report --quick --rounds 1 --allocators ebb,glibc"), 0);
    assert_said("Against glibc");
    assert_said("survivors of");
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --no-replay"), 0);
    assert_null(strstr(said, "Against"));
}

// What the report does by itself must not want what few machines have.
static void a_peer_that_is_not_installed_is_left_out(void **state)
{
    char arguments[512];

    (void)state;
    write_steps(200);
    setenv("LD_PRELOAD", getenv("EBB_WITHOUT"), 1);
    int code = run_on_scratch("EBB_TOOL", "report --quick --rounds 1");
    snprintf(arguments, sizeof arguments, "replay --quick --rounds 1 --allocators ebb,mimalloc %s",
             scratch_path());
    unsetenv("LD_PRELOAD");
    assert_int_equal(code, 0);
    assert_said("ebb report: mimalloc is not installed (Debian package libmimalloc2.0): left out");
    assert_said("Against glibc");
    setenv("LD_PRELOAD", getenv("EBB_WITHOUT"), 1);
    code = run_program("EBB_TOOL", arguments);
    unsetenv("LD_PRELOAD");
    assert_int_equal(code, 2); // who names it wants it
    assert_said("libmimalloc.so.2.0 not found");
}

// As one whose blocks this machine has no room for: the rest is as true as without it.
static void a_report_has_all_but_a_replay_that_fails(void **state)
{
    struct text *text = new_text();
    char options[512], path[256];

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        add(text, "B s %u 0\na 100000000000000 O\nf 1\nE s 0\n", i);
    write_bytes(text->bytes, text->used);
    snprintf(path, sizeof path, "%s.html", scratch_path());
    snprintf(options, sizeof options, "report --quick --allocators ebb --html %s", path);
    assert_int_equal(run_on_scratch("EBB_TOOL", options), 1);
    assert_said("ebb report: times and memory are left out, as with --no-replay");
    snprintf(options, sizeof options, "grep -q 'blocks die with their step' %s", path);
    assert_int_equal(system(options), 0);
    unlink(path);
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --quick --allocators ebb"), 1);
    assert_said("ebb report: times and memory are left out, as with --no-replay");
    assert_said("nothing outlives its step");
}

static void pages_are_whole(void **state)
{
    static char page[1 << 20];
    char options[512], path[256];
    FILE *file;

    (void)state;
    write_steps(200);
    snprintf(path, sizeof path, "%s.html", scratch_path());
    snprintf(options, sizeof options,
             "report --quick --rounds 1 --allocators ebb,glibc --html %s", path);
    assert_int_equal(run_on_scratch("EBB_TOOL", options), 0);
    file = fopen(path, "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    assert_non_null(strstr(page, "What it would gain"));
    assert_non_null(strstr(page, "PyTorch tensor storage"));
    assert_non_null(strstr(page, "</html>"));
    assert_null(strstr(page, "http://"));
}

// No name of a file is an option on the way to what writes it.
static void a_page_has_the_name_that_was_given(void **state)
{
    char command[1024];

    (void)state;
    write_steps(10);
    snprintf(command, sizeof command,
             "mkdir %s.d && cd %s.d && { %s report --no-replay --html -page %s; "
             "grep -q '</html>' ./-page; code=$?; rm -r %s.d; exit $code; }",
             scratch_path(), scratch_path(), getenv("EBB_TOOL"), scratch_path(), scratch_path());
    assert_int_equal(system(command), 0);
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --no-replay --html ''"), 2);
    assert_string_equal(said, "ebb report: --html: a file without a name\n");
}

// What users have set for a Python of their own is not for the one that draws.
static void settings_of_python_are_not_the_pages(void **state)
{
    (void)state;
    write_steps(10);
    setenv("PYTHONHOME", "/none", 1);
    setenv("PYTHONSAFEPATH", "1", 1);
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --no-replay --html /dev/null"), 0);
    unsetenv("PYTHONHOME");
    unsetenv("PYTHONSAFEPATH");
}

// A replay takes minutes: what cannot be written is named before it.
static void a_page_that_cannot_be_is_named_at_once(void **state)
{
    (void)state;
    write_steps(10);
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --html /nowhere/x"), 1);
    assert_string_equal(said, "ebb report: /nowhere/x: No such file or directory\n");
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --html /"), 1);
    assert_string_equal(said, "ebb report: /: Is a directory\n");
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise --search -o /nowhere/x"), 1);
    assert_string_equal(said, "ebb advise: /nowhere/x: No such file or directory\n");
}

// A replay cannot read it again, and would wait for another writer for ever.
static void a_pipe_is_not_replayed_for_a_report(void **state)
{
    char command[1024];

    (void)state;
    snprintf(command, sizeof command,
             "--help >/dev/null; mkfifo %s.pipe; timeout 10 %s report %s.pipe 2>&1; code=$?; "
             "rm %s.pipe; exit $code",
             scratch_path(), getenv("EBB_TOOL"), scratch_path(), scratch_path());
    assert_int_equal(run_program("EBB_TOOL", command), 2);
    assert_said(".pipe: a pipe, and a replay reads the trace again (--no-replay does not)");
}

// Whether the shell finds something in a page of the trace. It is made without a replay.
static void assert_on_page(const char *command)
{
    char line[2048], arguments[512];

    snprintf(arguments, sizeof arguments, "report --no-replay --html %s.html", scratch_path());
    assert_int_equal(run_on_scratch("EBB_TOOL", arguments), 0);
    snprintf(line, sizeof line, "page=%s.html; %s", scratch_path(), command);
    if (system(line) != 0)
        print_error("not on the page: %s\n", command);
    assert_int_equal(system(line), 0);
    snprintf(line, sizeof line, "%s.html", scratch_path());
    unlink(line);
}

// On a page, too, functions of one template are told apart; and names are those that they are.
static void names_on_a_page_are_those_of_the_program(void **state)
{
    char command[2048];

    (void)state;
    snprintf(command, sizeof command,
             "t=\"one::table<std::vector<long, std::allocator<long> >, two::small_table>\"; "
             "(printf \"#ebb-sites 1\\ns 5 O /lib/libö.so+0x1 $t::find(long)\\n"
             "s 6 O x+0x1 $t::put(long)\\n\"; for i in $(seq 20); do echo 5; echo 6; done; "
             "echo 5) | gzip >%s.sites", scratch_path());
    assert_int_equal(system(command), 0);
    write_steps(10);
    assert_on_page("grep -q '>one::table[^>]*[.][.][.]::find (libö)</th>' $page");
    assert_on_page("grep -q '>one::table[^>]*[.][.][.]::put (x)</th>' $page");
    snprintf(command, sizeof command, "rm %s.sites", scratch_path());
    assert_int_equal(system(command), 0);
}

// Whatever files and functions are called, a report does nothing to a terminal: no control
// character, of Unicode's neither, nothing that turns the direction of text, and no half character.
static void names_in_a_report_are_plain(void **state)
{
    static const char name[] = "e\\033[31m\\302\\2331m\\342\\200\\256\\377\\nö";
    char command[2048];

    (void)state;
    write_steps(10);
    snprintf(command, sizeof command,
             "--help >/dev/null; d=%s.d; n=\"$d/$(printf '%s')\"; mkdir $d; cp %s \"$n\"; "
             "(printf '#ebb-sites 1\\ns 5 O /lib/x+0x1 '; "
             "printf 'e\\033\\302\\2331m\\342\\200\\256\\377ö\\n'; "
             "for i in $(seq 41); do echo 5; done) | gzip >\"$n.sites\"; "
             "%s report --no-replay \"$n\" 2>&1; %s report --no-replay \"$n.none\" 2>&1; rm -r $d",
             scratch_path(), name, scratch_path(), getenv("EBB_TOOL"), getenv("EBB_TOOL"));
    assert_int_equal(run_program("EBB_TOOL", command), 0);
    assert_said(".d/e?[31m?1m???ö: ");
    assert_said("  e??1m??ö (x)  ");
    assert_said(".d/e?[31m?1m???ö.none: ");
    for (const char *at = said; *at; at++)
        assert_true(*at == '\n' || *at < 0 || *at >= ' ');
}

// One block of ten thousand, and a step that allocates nothing: neither all nor none.
// What a recording does not have any more did not outlive the program.
static void a_recording_that_stopped_early_is_said_to(void **state)
{
    char command[1024], path[256];

    (void)state;
    snprintf(path, sizeof path, "%s.stop.trace", scratch_path());
    snprintf(command, sizeof command,
             "zcat %s/mlp_digits.full.trace.gz | sed '2i #stopped limit: x<y\x1b' >%s",
             getenv("EBB_TRACES"), path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "report --no-replay %s", path);
    program_says("EBB_TOOL", command, 0, "The recording stopped early (limit: x<y?).\n");
    snprintf(command, sizeof command, "advise %s", path);
    program_says("EBB_TOOL", command, 0, "The recording stopped early (limit: x<y?).\n");
    snprintf(command, sizeof command, "report --no-replay --html %s.html %s", path, path);
    assert_int_equal(run_program("EBB_TOOL", command), 0);
    snprintf(command, sizeof command,
             "grep -q 'the recording stopped early (limit: x&lt;y?)' %s.html && rm %s.html", path,
             path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "report --no-replay %s/mlp_digits.full.trace.gz",
             getenv("EBB_TRACES"));
    assert_int_equal(run_program("EBB_TOOL", command), 0);
    assert_null(strstr(said, "stopped early"));
    unlink(path);
}

static void few_survivors_are_not_rounded_away(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (unsigned i = 0; i < 101; i++) {
        add(text, "B s %u 0\n%s", i, i ? "" : "a 9 O\n");
        for (int block = 0; block < 100; block++)
            add(text, "a 9 O\nf 1\n");
        add(text, "E s 0\n");
    }
    add(text, "B none 0 0\nE none 0\nB some 0 0\na 7 C\nE some 0\n");
    write_bytes(text->bytes, text->used);
    trace_free(expect_read());
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --no-replay"), 0);
    assert_said("  s       101     100  900 B  18 B    >99.99 %   >99.99 %     <1 B  0.00 %  "
                "0.00 %   <0.01 %\n");
    assert_said("  none      1       0    0 B   0 B           -          -      0 B       -  "
                "     -         -\n");
    assert_said("    <0.1   <1 B      <0.1 %   0 B    0 B   9 B\n");
    assert_said("    <0.1   <1 B     100.0 %   0 B    0 B   7 B\n");
    assert_on_page("grep -qF '<strong>&gt;99.9 %</strong>' $page");
    assert_on_page("grep -qF '<td>&lt;0.1 %</td>' $page");
}

// The worst have a row each; of the others there is one.
static void survivors_of_all_places_are_told(void **state)
{
    char command[2048];

    (void)state;
    snprintf(command, sizeof command,
             "(echo \"#ebb-sites 1\"; for i in $(seq 1000); do echo \"s $i O /lib/x+0x$i f$i\"; "
             "done; seq 1000) | gzip >%s.sites; (echo \"#ebb-trace 1\"; echo \"B s 0 0\"; "
             "for i in $(seq 1000); do echo \"a $i O\"; done; echo \"E s 0\") >%s",
             scratch_path(), scratch_path());
    assert_int_equal(system(command), 0);
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --no-replay"), 0);
    assert_said("  f989 (x)           1.0     989 B     100.0 %   0 B    0 B     989 B\n"
                "  and 988 others   988.0   477 KiB     100.0 %   0 B    0 B   477 KiB\n");
    assert_on_page("grep -qF '>f961 (x)</th>' $page && ! grep -qF '>f960 (x)</th>' $page");
    assert_on_page("grep -qF '>and 960 others</th><td>960</td><td>450 KiB</td>' $page");
    snprintf(command, sizeof command, "rm %s.sites", scratch_path());
    assert_int_equal(system(command), 0);
}

// A program that loads a model allocates most in its first region: it is warm-up in a replay.
static void figures_are_of_the_steps_that_are_replayed(void **state)
{
    struct text *text = new_text();

    (void)state;
    add(text, "#warmup 1\nB load 0 0\na 1000000 O\nE load 0\n");
    for (unsigned i = 0; i < 10; i++)
        add(text, "B train %u 0\na 1000 O\nf 1\nE train 0\n", i);
    write_bytes(text->bytes, text->used);
    trace_free(expect_read());
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --quick --allocators ebb"), 0);
    assert_said("a step is one of `train`:");
    assert_on_page("grep -qF 'blocks die with their step, <code>train</code>' $page");
}

// There are more steps than a picture shows one by one.
static void no_peak_of_many_steps_is_left_out(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (unsigned i = 0; i < 1300; i++)
        add(text, "B train %u 0\na %u O\nf 1\nE train 0\n", i, i == 778 ? 1048576 : 1000);
    write_bytes(text->bytes, text->used);
    trace_free(expect_read());
    assert_on_page("grep -qF '<td>1 MiB</td><td>0</td>' $page"); // outlive it
    assert_on_page("[ $(grep -o '<polyline[^>]*at once' $page | grep -o ',[0-9.]*' | sort -u | "
                   "wc -l) = 2 ]");
}

// As many as it does show have a point each.
static void steps_are_shown_one_by_one_while_there_is_room(void **state)
{
    static const unsigned steps[][2] = {{599, 599}, {600, 600}, {601, 301}};
    char command[256];

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        write_steps(steps[i][0]);
        snprintf(command, sizeof command,
                 "[ $(grep -o '<polyline[^>]*at once' $page | grep -o '[0-9],' | wc -l) = %u ]",
                 steps[i][1]);
        assert_on_page(command);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_are_tables),
        cmocka_unit_test(names_over_tables_are_plain),
        cmocka_unit_test(a_folder_is_no_trace),
        cmocka_unit_test(nothing_is_replayed_for_a_tool_that_is_gone),
        cmocka_unit_test(reports_say_gain_and_survivors),
        cmocka_unit_test(a_peer_that_is_not_installed_is_left_out),
        cmocka_unit_test(a_report_has_all_but_a_replay_that_fails),
        cmocka_unit_test(pages_are_whole),
        cmocka_unit_test(a_page_has_the_name_that_was_given),
        cmocka_unit_test(settings_of_python_are_not_the_pages),
        cmocka_unit_test(a_page_that_cannot_be_is_named_at_once),
        cmocka_unit_test(a_pipe_is_not_replayed_for_a_report),
        cmocka_unit_test(names_on_a_page_are_those_of_the_program),
        cmocka_unit_test(names_in_a_report_are_plain),
        cmocka_unit_test(a_recording_that_stopped_early_is_said_to),
        cmocka_unit_test(few_survivors_are_not_rounded_away),
        cmocka_unit_test(survivors_of_all_places_are_told),
        cmocka_unit_test(figures_are_of_the_steps_that_are_replayed),
        cmocka_unit_test(no_peak_of_many_steps_is_left_out),
        cmocka_unit_test(steps_are_shown_one_by_one_while_there_is_room),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
