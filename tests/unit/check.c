// SPDX-License-Identifier: Apache-2.0
/* check.c - a broken invariant ends the process, and says which and where. */
#include "kit/test.h"

#include "base/check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What ended the child that makes the claim; what it said. */
static int claim(bool holds, char *said, size_t room) {
    int ends[2], status;
    const struct rlimit no_core = {0, 0};
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        alarm(20); /* or it goes on, nobody knows where */
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(ends[1], STDERR_FILENO);
        CHECK_ALWAYS(holds);
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], said, room - 1);
    assert_true(length >= 0);
    said[length] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void a_broken_invariant_ends_the_process(void **state) {
    char said[300];
    assert_int_equal(claim(true, said, sizeof said), 0);
    assert_string_equal(said, "");
    assert_int_equal(claim(false, said, sizeof said), SIGABRT);
    assert_non_null(strstr(said, "ebb: broken invariant: holds ("));
    assert_non_null(strstr(said, "check.c:"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_invariant_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
