// SPDX-License-Identifier: Apache-2.0
//
// test_run.c - bench/run refuses what is wrong before it installs, builds or measures anything.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

static void refuses(const char *arguments, const char *words)
{
    program_says("EBB_RUN", arguments, 2, words);
}

static void bad_arguments_are_named_at_once(void **state)
{
    (void)state;
    refuses("--rounds 0", "--rounds: not a number from 1 to 1000: 0");
    refuses("--rounds -3", "--rounds: not a number from 1 to 1000: -3");
    refuses("--rounds 1e9", "--rounds: not a number from 1 to 1000: 1e9");
    refuses("--rounds 1001", "--rounds: not a number from 1 to 1000: 1001");
    refuses("--rounds", "--rounds needs a value");
    refuses("--allocators ebb,foo", "--allocators: no such allocator: foo");
    refuses("--allocators glibc,glibc", "--allocators: named twice: glibc");
    refuses("--allocators ,", "--allocators: names no allocator");
    refuses("--allocators ebb,,glibc", "--allocators: a name is empty, or has a blank: ebb,,glibc");
    refuses("--allocators 'ebb, glibc'", "--allocators: a name is empty, or has a blank");
    refuses("--tsv /", "/: is a folder");
    refuses("--tsv /tmp/x --html /tmp/x", "two of them are one file");
    refuses("--tsv /tmp/x --html /tmp/./x", "two of them are one file");
    refuses("--only churn,foo", "--only: no such benchmark: foo");
    refuses("--only churn,micro,churn", "--only: named twice: churn");
    refuses("--only plan,sequence,plan", "--only: named twice: plan");
    refuses("--only ,", "--only: names no benchmark");
    refuses("--only churn,,", "--only: a name is empty, or has a blank: churn,,");
    refuses("--only ' churn'", "--only: a name is empty, or has a blank:  churn");
    refuses("--traces /nonexistent", "/nonexistent: no such folder");
    refuses("--tsv /nonexistent/x", "/nonexistent: no such folder");
    refuses("--touch", "unknown argument: --touch");
}

// And traces are not written over.
static void a_file_that_is_a_trace_is_refused(void **state)
{
    char arguments[512];

    (void)state;
    snprintf(arguments, sizeof arguments, "--only churn --json %s/mlp_digits.full.trace.gz",
             getenv("EBB_TRACES"));
    refuses(arguments, "mlp_digits.full.trace.gz: is a trace: ");
}

// Before minutes have gone by. Root may write everywhere, with that capability.
static void what_cannot_be_written_is_named_at_once(void **state)
{
    char folder[] = "/tmp/ebb-run-XXXXXX", path[64], arguments[256];

    (void)state;
    if (geteuid() == 0 && prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) != 0)
        skip();
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/rows", folder);
    assert_int_equal(close(creat(path, 0400)), 0);
    snprintf(arguments, sizeof arguments, "--tsv %s", path);
    refuses(arguments, "/rows: cannot be written");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(chmod(folder, 0500), 0);
    refuses(arguments, "cannot be written");
    assert_int_equal(rmdir(folder), 0);
}

// Its list is the replay's, so that neither refuses what the other has.
static void its_allocators_are_those_of_the_replay(void **state)
{
    char list[256];
    const char *at;

    (void)state;
    assert_int_equal(run_program("EBB_RUN", "--help"), 0);
    at = strstr(said, "ebb,ebb-unplanned");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "%255[^\n]", list), 1);
    assert_int_equal(run_program("EBB_CHURN", "--help"), 0);
    assert_non_null(strstr(said, list));
    assert_true(strchr(" \n", strstr(said, list)[strlen(list)]));
}

// Where `cd` looks elsewhere first it also says where it has gone.
static void it_finds_its_folder_whatever_cd_says(void **state)
{
    char arguments[512], kept[512];

    (void)state;
    snprintf(kept, sizeof kept, "%s", getenv("EBB_RUN"));
    snprintf(arguments, sizeof arguments, "%s/../..", getenv("EBB_TRACES"));
    assert_int_equal(chdir(arguments), 0);
    setenv("CDPATH", ".", 1);
    setenv("EBB_RUN", "bench/run", 1);
    refuses("--only churn --json bench/traces/mlp_digits.full.trace.gz", "is a trace");
    setenv("EBB_RUN", kept, 1);
    unsetenv("CDPATH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_named_at_once),
        cmocka_unit_test(a_file_that_is_a_trace_is_refused),
        cmocka_unit_test(what_cannot_be_written_is_named_at_once),
        cmocka_unit_test(its_allocators_are_those_of_the_replay),
        cmocka_unit_test(it_finds_its_folder_whatever_cd_says),
    };

    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
