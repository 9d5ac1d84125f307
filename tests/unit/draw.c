// SPDX-License-Identifier: Apache-2.0
/* draw.c - drawn numbers differ, also where the system gives none. */
#include "kit/test.h"

#include "base/os.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DRAWN = 100, CANNOT_BE_SHOWN = 77 };

static int draw_some(void) {
    uint64_t before = 0;
    for (unsigned i = 0; i < DRAWN; i++) {
        uint64_t number = os.draw();
        if (number == 0 || number == before)
            return 1;
        before = number;
    }
    return 0;
}

/* From now on the system says that it has no such call. */
static bool is_without_numbers(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static void numbers_differ(void **state) {
    assert_int_equal(draw_some(), 0);
}

static void without_those_of_the_system_they_differ_too(void **state) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(is_without_numbers() ? draw_some() : CANNOT_BE_SHOWN);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_BE_SHOWN)
        skip();
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_differ),
        cmocka_unit_test(without_those_of_the_system_they_differ_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
