// SPDX-License-Identifier: Apache-2.0
//
// test_churn.c - plans as an option of churn: the allocator names ebb and ebb-unplanned side by
// side, and --no-plan, told apart by what plans served in the rows and reports that are written.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace_scratch.h"

static char rows[1 << 16];
static const char *program; // NULL: the one that was built

static void read_file(const char *path, char *to, size_t room)
{
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    to[fread(to, 1, room - 1, file)] = '\0';
    fclose(file);
}

// Replays what is in the scratch file; the rows are beside it, and the JSON. The exit code.
static int churn_on_scratch(const char *options)
{
    char command[4096];
    int status;

    snprintf(command, sizeof command,
             "%s --traces %s --quick --rounds 1 --tsv %s.tsv --json %s.json %s >/dev/null 2>&1",
             program ? program : getenv("EBB_CHURN"), scratch_path(), scratch_path(),
             scratch_path(), options);
    status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

// The same with forty equal steps.
static int churn(const char *options)
{
    struct text *text = new_text();

    add(text, "#warmup 3\n");
    for (int step = 0; step < 40; step++)
        add(text, "B train %d 0\na 70000 C\nm 3000 64 C\nf 2\na 90000 C\nf 1\nf 2\nE train 0\n",
            step);
    write_bytes(text->bytes, text->used);
    return churn_on_scratch(options);
}

static double value(const char *allocator, const char *metric)
{
    char key[256];
    const char *at;

    snprintf(key, sizeof key, "\t%s\t%s\t", allocator, metric);
    at = strstr(rows, key);
    if (!at)
        print_error("no row of %s %s\n", allocator, metric);
    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

static void read_rows(void)
{
    char path[256];

    snprintf(path, sizeof path, "%s.tsv", scratch_path());
    read_file(path, rows, sizeof rows);
}

static int clean(void **state)
{
    static const char *const ends[] = {".tsv", ".json"};
    char path[256];

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(path, sizeof path, "%s%s", scratch_path(), ends[i]);
        remove(path);
    }
    return remove_scratch(state);
}

static void ebb_is_measured_with_and_without_plans_in_one_run(void **state)
{
    (void)state;
    assert_int_equal(churn("--allocators ebb,ebb-unplanned"), 0);
    read_rows();
    assert_true(value("ebb", "planned_steps") > 0);
    assert_true(value("ebb", "steady_hits_percent") == 100);
    assert_true(value("ebb", "steady_hit_bytes_percent") == 100);
    assert_true(value("ebb-unplanned", "planned_steps") == 0);
    assert_true(value("ebb-unplanned", "plan_hits_percent") == 0);
    assert_true(value("ebb", "steady_peak_live_bytes") == 93000);
    assert_true(value("ebb", "run_peak_live_bytes") == 93000);
    assert_true(value("ebb", "steady_peak_ratio") >= 1);
}

static void no_plan_is_ebb_without_plans_under_its_own_name(void **state)
{
    char path[256];

    (void)state;
    assert_int_equal(churn("--allocators ebb --no-plan"), 0);
    read_rows();
    assert_true(value("ebb", "planned_steps") == 0);
    assert_true(value("ebb", "steady_hits_percent") == 0);
    snprintf(path, sizeof path, "%s.json", scratch_path());
    read_file(path, rows, sizeof rows);
    assert_non_null(strstr(rows, "\"plan\": false}")); // or its rows are taken for those of ebb
}

static void what_sites_say_is_in_the_json_file(void **state)
{
    static char json[1 << 20];
    char path[256];

    (void)state;
    assert_int_equal(churn("--allocators ebb"), 0);
    snprintf(path, sizeof path, "%s.json", scratch_path());
    read_file(path, json, sizeof json);
    assert_non_null(strstr(json, "\"name\": \"site\", \"report\": {\"site\":\"train\",\"steps\":"));
    assert_non_null(strstr(json, "\"name\": \"plan\", \"report\": {\"site\":\"train\",\"tag\":0,"));
    assert_non_null(strstr(json, "\"target\": \"steady_peak\""));
    assert_non_null(strstr(json, "\"target\": \"run_peak\""));
}

// Runs a script in a folder of its own, which goes afterwards; in it $churn is the program, $trace
// the scratch file.
static void passes(const char *script)
{
    char folder[] = "/tmp/ebb-churn-XXXXXX", command[2048];

    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("churn", getenv("EBB_CHURN"), 1), 0);
    assert_int_equal(setenv("trace", scratch_path(), 1), 0);
    snprintf(command, sizeof command, "(cd %s && %s); code=$?; rm -r %s; exit $code", folder,
             script, folder);
    assert_int_equal(system(command), 0);
}

// Names of files are of any bytes; JSON is UTF-8.
static void names_of_any_bytes_are_utf_8(void **state)
{
    static const char steps[] = "#ebb-trace 1\nB k 0 0\na 100 O\nf 1\nE k 0\n";

    (void)state;
    write_bytes(steps, sizeof steps - 1);
    passes("mkdir d\355\240\200 && cd d* && "
           "cp $trace '\377\303\251\300\200\360.trace' && cd .. && "
           "$churn --traces d* --quick --rounds 1 --no-spike --allocators glibc --json all "
           ">said 2>&1 && iconv -f UTF-8 -t UTF-16 all >said && "
           "grep -q '\"case\": \"?\303\251\077\077\077\"' all");
}

static void run(const char *format, const char *one, const char *two)
{
    char command[1024];

    snprintf(command, sizeof command, format, one, two);
    assert_int_equal(system(command), 0);
}

// As many as a trace may have: each has metrics of its own.
static void every_kind_of_step_has_its_rows(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (int step = 0; step < 512; step++)
        add(text, "B k%d %d 0\na 100 O\nf 1\nE k%d 0\n", step % 256, step, step % 256);
    write_bytes(text->bytes, text->used);
    assert_int_equal(churn_on_scratch("--allocators glibc --no-spike"), 0);
    read_rows();
    assert_true(value("glibc", "step_us.k255") > 0);
    assert_true(value("glibc", "footprint_bytes.k255") > 0);
}

// x.trace and x.trace.gz are one name in the rows; two long ones that begin alike are two.
static void traces_of_one_name_are_not_mixed(void **state)
{
    static const char steps[] = "#ebb-trace 1\nB k 0 0\na 100 O\nf 1\nE k 0\n";

    (void)state;
    write_bytes(steps, sizeof steps - 1);
    passes("cp $trace x.trace && gzip <x.trace >x.trace.gz && y=$(printf %0200d 7) && "
           "cp x.trace $y.one.trace && cp x.trace $y.two.trace && cp x.trace z.trace && "
           "$churn --traces . --quick --rounds 1 --no-spike --allocators glibc --tsv rows "
           ">said 2>&1; "
           "[ $? = 1 ] && grep -q 'x.trace.gz: another trace is called x' said && "
           "[ $(grep -c 'another trace is called' said) = 2 ] && cut -f2 rows | grep -qx z && "
           "cut -f2 rows | grep -qx $y.one && cut -f2 rows | grep -qx $y.two && "
           "[ $(cut -f4 rows | grep -cx step_us) = 4 ]");
}

// Nor are those whose names differ in nothing that can be written, nor one with the synthetic one.
static void names_that_are_one_when_written_are_one(void **state)
{
    static const char steps[] = "#ebb-trace 1\nB k 0 0\na 100 O\nf 1\nE k 0\n";

    (void)state;
    write_bytes(steps, sizeof steps - 1);
    passes("cp $trace '\376.trace' && cp $trace '\377.trace' && cp $trace spike.synthetic.trace && "
           "cp $trace spike.other.trace && "
           "$churn --traces . --quick --rounds 1 --no-spike --allocators glibc --tsv rows "
           "--json all >said 2>&1; [ $? = 1 ] && "
           "grep -q 'another trace is called ? in the rows, too' said && "
           "grep -q 'spike.synthetic.trace: the synthetic trace is called spike.synthetic' said && "
           "[ $(cut -f4 rows | grep -cx step_us) = 2 ] && iconv -f UTF-8 -t UTF-16 rows >said && "
           "[ $(grep -c '\"case\": \"?\", \"trace\"' all) = 1 ] && "
           "cut -f2 rows | grep -qx spike.other");
}

// A pipe would be waited for, whoever writes to it.
static void only_ordinary_files_of_a_folder_are_taken(void **state)
{
    static const char steps[] = "#ebb-trace 1\nB k 0 0\na 100 O\nf 1\nE k 0\n";

    (void)state;
    write_bytes(steps, sizeof steps - 1);
    passes("c=\"timeout 60 $churn --traces . --quick --rounds 1 --no-spike --allocators glibc\" && "
           "mkfifo a.trace && mkdir b.trace.gz && { $c >said 2>&1; [ $? = 2 ]; } && "
           "grep -q 'no \\*.trace.gz file' said && cp $trace c.trace && ln -s c.trace d.trace && "
           "$c --tsv rows >said 2>&1 && "
           "grep -qx 'churn: ./a.trace: no ordinary file: left out' said && "
           "grep -q './b.trace.gz: no ordinary' said && "
           "[ $(cut -f4 rows | grep -cx step_us) = 2 ]");
}

// What is wider goes on in the next line, of which alone the carriage return takes back.
static void the_bar_is_no_wider_than_the_terminal(void **state)
{
    static const char steps[] = "#ebb-trace 1\nB k 0 0\na 100 O\nf 1\nE k 0\n";

    (void)state;
    write_bytes(steps, sizeof steps - 1);
    if (system("script --version >/dev/null 2>&1") != 0)
        skip();
    passes("cp $trace a-name-that-needs-more-than-forty-columns.trace && "
           "script -qec \"stty cols 50; TERM=xterm $churn --traces . --quick --rounds 9 --no-spike "
           "--allocators glibc >/dev/null\" said >/dev/null && tr '\r' '\n' <said | "
           "sed 's/\033.K//' | grep '^\\[[#.]*\\]' >bars && [ -s bars ] && "
           "! grep -q '.\\{50\\}' bars");
}

// Letters of some scripts are two columns wide: of each three bytes, two "w" here.
static void the_bar_is_no_wider_with_wide_letters(void **state)
{
    static const char steps[] = "#ebb-trace 1\nB k 0 0\na 100 O\nf 1\nE k 0\n";

    (void)state;
    write_bytes(steps, sizeof steps - 1);
    if (system("script --version >/dev/null 2>&1") != 0)
        skip();
    passes("cp $trace 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字.trace && "
           "script -qec \"stty cols 70; TERM=xterm $churn --traces . --quick --rounds 9 "
           "--no-spike --allocators glibc >/dev/null\" said >/dev/null && tr '\r' '\n' <said | "
           "sed 's/\033.K//' | grep -a '^\\[[#.]*\\]' >bars && grep -q 漢字 bars && "
           "LC_ALL=C sed 's/[^ -~]\\{3\\}/ww/g' bars >wide && ! grep -q '.\\{70\\}' wide");
}

static void a_terminal_that_takes_nothing_back_has_plain_lines(void **state)
{
    static const char steps[] = "#ebb-trace 1\nB k 0 0\na 100 O\nf 1\nE k 0\n";

    (void)state;
    write_bytes(steps, sizeof steps - 1);
    if (system("script --version >/dev/null 2>&1") != 0)
        skip();
    passes("cp $trace a.trace && script -qec \"TERM=dumb $churn --traces . --quick --rounds 9 "
           "--no-spike --allocators glibc >/dev/null\" said >/dev/null && "
           "grep -q 'churn: 100 % done' said && ! grep -q '\033' said");
}

// Work that is given up is over, too: there is no room for ebb's reservation.
static void plain_lines_end_with_all_of_it(void **state)
{
    static const char steps[] = "#ebb-trace 1\nB k 0 0\na 100 O\nf 1\nE k 0\n";

    (void)state;
    write_bytes(steps, sizeof steps - 1);
    passes("cp $trace a.trace && { (ulimit -v 1000000; $churn --traces . --quick --rounds 9 "
           "--no-spike --allocators ebb,glibc >/dev/null 2>said); [ $? = 1 ]; } && "
           "grep -q ': ebb: ebb_site_create failed: ' said && "
           "[ $(grep -c 'churn: 100 % done' said) = 1 ]");
}

// One that cannot be replayed has no rows, and takes no name from another.
static void a_damaged_trace_shuts_no_other_out(void **state)
{
    static const char steps[] = "#ebb-trace 1\nB k 0 0\na 100 O\nf 1\nE k 0\n";

    (void)state;
    write_bytes(steps, sizeof steps - 1);
    passes("echo junk >x.full.trace && gzip <$trace >x.full.trace.gz && "
           "$churn --traces . --quick --rounds 1 --no-spike --allocators glibc --tsv rows "
           ">said 2>&1; "
           "[ $? = 1 ] && grep -q 'x.full.trace: .*TRACE_ERROR_MAGIC' said && "
           "! grep -q another said && cut -f2 rows | grep -qx x.full");
}

// A name may have dots of its own.
static void only_full_and_tensor_are_views(void **state)
{
    static const char steps[] = "#ebb-trace 1\n#view tensor\nB k 0 0\na 100 O\nf 1\nE k 0\n";

    (void)state;
    write_bytes(steps, sizeof steps - 1);
    passes("cp $trace my.v1.5.trace && grep -v view my.v1.5.trace >my.v2.5.trace && "
           "$churn --traces . --quick --rounds 1 --no-spike --allocators glibc --json all "
           ">said 2>&1; "
           "grep -q '\"my.v1.5.tensor\", \"trace\": \"my.v1.5\", \"view\": \"tensor\"' all && "
           "grep -q '\"case\": \"my.v2.5\", \"trace\": \"my.v2.5\", \"view\": \"\"' all");
}

// Where all steps are warm-up, the bytes of these tell.
static void the_main_kind_allocates_most_bytes(void **state)
{
    struct text *text = new_text();
    char path[256];

    (void)state;
    add(text, "#warmup 9\n");
    for (int step = 0; step < 3; step++)
        add(text, "B log %d 0\na 10 C\nf 1\nE log 0\nB train %d 0\na 9000 C\nf 1\nE train 0\n",
            step, step);
    write_bytes(text->bytes, text->used);
    assert_int_equal(churn_on_scratch("--allocators glibc --no-spike"), 0);
    snprintf(path, sizeof path, "%s.json", scratch_path());
    read_file(path, rows, sizeof rows);
    assert_non_null(strstr(rows, "\"main_kind\": \"train\""));
}

// Beside the copy of churn lies an adapter that cannot be loaded: glibc serves the process.
static void figures_of_another_heap_are_nobodys(void **state)
{
    char folder[] = "/tmp/ebb-churn-XXXXXX", copy[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    run("cp %s %s", getenv("EBB_CHURN"), folder);
    run("cp %s-replay %s", getenv("EBB_CHURN"), folder);
    run(": >%s/%s", folder, "ebb-heap.so");
    snprintf(copy, sizeof copy, "%s/churn", folder);
    program = copy;
    int code = churn("--allocators ebb,glibc --no-spike");
    program = NULL;
    run("rm -r %s%s", folder, "");
    assert_int_equal(code, 1);
    read_rows();
    assert_true(value("glibc", "step_us") > 0);
    assert_null(strstr(rows, "\tebb\t"));
}

// The counting runs go well, the timed ones do not.
static void who_fails_later_has_no_figures(void **state)
{
    char folder[] = "/tmp/ebb-churn-XXXXXX", copy[64], path[64];
    FILE *script;

    (void)state;
    assert_non_null(mkdtemp(folder));
    run("cp %s %s", getenv("EBB_CHURN"), folder);
    snprintf(path, sizeof path, "%s/churn-replay", folder);
    script = fopen(path, "w");
    assert_non_null(script);
    fprintf(script, "#!/bin/sh\ncase $GLIBC_TUNABLES+$4 in ?*+time) echo boom; exit 3; esac\n"
                    "exec %s-replay \"$@\"\n", getenv("EBB_CHURN"));
    fclose(script);
    run("chmod +x %s%s", path, "");
    snprintf(copy, sizeof copy, "%s/churn", folder);
    program = copy;
    int code = churn("--allocators glibc,glibc-tuned --no-spike");
    program = NULL;
    run("rm -r %s%s", folder, "");
    assert_int_equal(code, 1);
    read_rows();
    assert_true(value("glibc", "faults_per_step") >= 0);
    assert_null(strstr(rows, "\tglibc-tuned\t"));
}

// Whoever builds in such a folder can measure ebb all the same.
static void a_folder_may_have_spaces_and_colons(void **state)
{
    char folder[] = "/tmp/ebb churn:XXXXXX", copy[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    run("cp %s '%s'", getenv("EBB_CHURN"), folder);
    run("cp %s-replay '%s'", getenv("EBB_CHURN"), folder);
    run("cp $(dirname %s)/ebb-heap.so '%s'", getenv("EBB_CHURN"), folder);
    snprintf(copy, sizeof copy, "'%s/churn'", folder);
    program = copy;
    int code = churn("--allocators ebb --no-spike");
    program = NULL;
    run("rm -r '%s'%s", folder, "");
    assert_int_equal(code, 0);
    read_rows();
    assert_true(value("ebb", "step_us") > 0);
    assert_true(value("ebb", "syscalls_per_step") >= 0);
}

// A system call of this process and its children fails, where this is its first argument.
static void forbid(int call, unsigned first)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog whole = {sizeof filter / sizeof filter[0], filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) != 0)
        _exit(99);
}

// Kernels before 5.3 trace, but do not tell which system call it is that stopped the process.
static void calls_that_cannot_be_counted_are_not_none(void **state)
{
    int status = 0;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        forbid(SYS_ptrace, PTRACE_GET_SYSCALL_INFO);
        _exit(churn("--allocators glibc --no-spike"));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 99)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
    read_rows();
    assert_true(value("glibc", "peak_rss_bytes") > 0);
    assert_null(strstr(rows, "syscalls_per_step"));
}

// What was there is whole, nothing is left beside it, and the other file is written all the same.
static void files_of_a_run_before_outlive_a_full_disk(void **state)
{
    (void)state;
    passes("yes \"$(printf 'micro\\tc\\tebb\\tns\\t1')\" | head -9000 >rows && "
           "echo old >a && echo old >b && c=\"$churn --no-replay --add-rows rows\" && "
           "(trap '' XFSZ; ulimit -f 64; $c --tsv a --json b 2>said; [ $? = 2 ]) && "
           "grep -qx 'churn: a: File too large' said && "
           "grep -qx 'churn: b: File too large' said && [ \"$(cat a b | uniq)\" = old ] && "
           "[ $(ls | wc -l) = 4 ] && { $c --tsv /dev/full --json b 2>said; [ $? = 2 ]; } && "
           "grep -qx 'churn: /dev/full: No space left on device' said && "
           "tail -n 1 b | grep -q '}'");
}

// Neither a pipe, nor a device, nor a link is renamed over.
static void what_is_no_ordinary_file_stays_what_it_is(void **state)
{
    (void)state;
    passes("printf 'micro\tc\tebb\tns\t1\n' >rows && "
           "c=\"$churn --no-replay --add-rows rows --tsv\" && $c /dev/stdout | cmp - rows && "
           "echo head >all && $c /dev/stdout >>all && tail -n 1 all | cmp - rows && "
           "head -n 1 all | grep -qx head && $c /dev/null && [ -c /dev/null ] && "
           "mkfifo pipe && { $c pipe & cmp pipe rows; } && [ -p pipe ] && "
           "echo old >file && ln -s file link && $c link && [ -L link ] && cmp file rows && "
           "ln -s made new && $c new && [ -L new ] && cmp made rows");
}

// What is renamed over keeps its mode; a file of two names, or one whose name leaves no room for
// more, is written all the same. Two outputs that would be one file are refused.
static void files_are_written_in_the_way_that_they_allow(void **state)
{
    (void)state;
    passes("printf 'micro\tc\tebb\tns\t1\n' >rows && mkdir to && "
           "c=\"$churn --no-replay --add-rows rows\" && echo old >own && chmod 640 own && "
           "$c --tsv own && cmp own rows && [ $(stat -c %a own) = 640 ] && "
           "echo old >one && ln one two && $c --tsv one && cmp two rows && "
           "long=$(printf 'o%.0s' $(seq 250)) && $c --tsv $long && cmp $long rows && "
           "for other in ./new to/../new $PWD/new; do "
           "$c --tsv new --json $other 2>said; [ $? = 2 ] && grep -q 'is new, too' said && "
           "[ ! -e new ] || exit 1; done && ln -s new link && "
           "{ $c --tsv new --json link 2>said; [ $? = 2 ]; } && cmp new rows && "
           "[ $(ls -A | wc -l) = 9 ]");
}

// Where rows or files are refused, nothing has been replayed for them.
static void bad_files_are_refused_before_the_replay(void **state)
{
    static const char *const files[] = {"--tsv /nowhere/rows", "--json /nowhere/rows",
                                        "--json /", "--add-rows /nowhere/rows",
                                        "--add-rows /proc", "--tsv /dev/null/rows"};
    char options[512];

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(options, sizeof options, "--allocators ebb --no-spike %s >%s.tsv 2>&1 #",
                 files[i], scratch_path());
        assert_int_equal(churn(options), 2);
        read_rows();
        assert_null(strstr(rows, "step us"));
        assert_null(strstr(rows, "done"));
        assert_non_null(strstr(rows, strchr(files[i], '/')));
    }
    passes("$churn --traces $trace --quick --no-spike --allocators glibc "
           "--json $(printf %0256d 0) >said 2>&1; [ $? = 2 ] && "
           "grep -q 'File name too long' said && ! grep -q 'step us' said");
}

// Nor are rows written over the trace, or both into one file.
static void no_file_takes_the_place_of_another(void **state)
{
    char options[1024];

    (void)state;
    snprintf(options, sizeof options, "--allocators glibc --no-spike --tsv %s", scratch_path());
    assert_int_equal(churn(options), 2);
    assert_int_equal(churn_on_scratch("--allocators glibc --no-spike"), 0);
    snprintf(options, sizeof options, "--allocators glibc --no-spike --json %s.tsv",
             scratch_path());
    assert_int_equal(churn(options), 2);
}

// Of a folder, too, whatever its name there: a link leads to it.
static void no_trace_of_a_folder_is_written_over(void **state)
{
    static const char *const files[] = {"--tsv d/a.trace", "--json d/a.trace", "--json link",
                                        "--tsv $PWD/d/../d/b.trace"};
    char folder[] = "/tmp/ebb-churn-XXXXXX", command[1024];

    (void)state;
    write_bytes(MAGIC "B k 0 0\na 1 C\nE k 0\n", strlen(MAGIC "B k 0 0\na 1 C\nE k 0\n"));
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "cd %s && mkdir d && cp %s d/a.trace && cp %s d/b.trace && "
                                      "ln -s d/b.trace link", folder, scratch_path(),
             scratch_path());
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(command, sizeof command,
                 "cd %s; %s --traces d --quick --rounds 1 --no-spike --allocators glibc %s "
                 ">said 2>&1; [ $? = 2 ] && grep -q 'churn: .*: is d/[ab].trace, too' said && "
                 "cmp d/a.trace %s && cmp d/b.trace %s", folder, getenv("EBB_CHURN"), files[i],
                 scratch_path(), scratch_path());
        assert_int_equal(system(command), 0);
    }
    run("rm -r %s%s", folder, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ebb_is_measured_with_and_without_plans_in_one_run),
        cmocka_unit_test(no_plan_is_ebb_without_plans_under_its_own_name),
        cmocka_unit_test(what_sites_say_is_in_the_json_file),
        cmocka_unit_test(names_of_any_bytes_are_utf_8),
        cmocka_unit_test(every_kind_of_step_has_its_rows),
        cmocka_unit_test(traces_of_one_name_are_not_mixed),
        cmocka_unit_test(names_that_are_one_when_written_are_one),
        cmocka_unit_test(only_ordinary_files_of_a_folder_are_taken),
        cmocka_unit_test(the_bar_is_no_wider_than_the_terminal),
        cmocka_unit_test(the_bar_is_no_wider_with_wide_letters),
        cmocka_unit_test(a_terminal_that_takes_nothing_back_has_plain_lines),
        cmocka_unit_test(plain_lines_end_with_all_of_it),
        cmocka_unit_test(a_damaged_trace_shuts_no_other_out),
        cmocka_unit_test(only_full_and_tensor_are_views),
        cmocka_unit_test(the_main_kind_allocates_most_bytes),
        cmocka_unit_test(figures_of_another_heap_are_nobodys),
        cmocka_unit_test(who_fails_later_has_no_figures),
        cmocka_unit_test(a_folder_may_have_spaces_and_colons),
        cmocka_unit_test(calls_that_cannot_be_counted_are_not_none),
        cmocka_unit_test(no_file_takes_the_place_of_another),
        cmocka_unit_test(files_of_a_run_before_outlive_a_full_disk),
        cmocka_unit_test(what_is_no_ordinary_file_stays_what_it_is),
        cmocka_unit_test(files_are_written_in_the_way_that_they_allow),
        cmocka_unit_test(no_trace_of_a_folder_is_written_over),
        cmocka_unit_test(bad_files_are_refused_before_the_replay),
    };

    return cmocka_run_group_tests(tests, make_scratch, clean);
}
