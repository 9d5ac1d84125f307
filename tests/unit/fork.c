// SPDX-License-Identifier: Apache-2.0
/* fork.c - a child of fork() gives back what was exported before it, as does its parent. */
#include "kit/dlpack.h"
#include "pool/pool.h"

#include <sys/wait.h>
#include <unistd.h>

static uint64_t held(const struct stage *stage) {
    ebb_check_pool(stage->pool);
    return pool_stats_of(stage->pool).held;
}

/* A forked child has its own copy of everything: what it gives back, the parent still has. */
static void a_forked_child_gives_back_its_own_copy(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    DLManagedTensor *early = share(tensor_of_bytes(step, 5000));
    ebb_region late_step = OPEN(.name = "late", .parent = stage->root);
    DLManagedTensor *late = share(tensor_of_bytes(late_step, 70000));
    assert_int_equal(ebb_region_close(step), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool right = export_holds(early) && export_holds(late);
        give_back(early);
        give_back(late);
        right = right && ebb_region_count_exports(late_step) == 0;
        right = right && ebb_region_close(stage->root) == 0 && ebb_pool_destroy(stage->pool) == 0;
        _exit(right ? 0 : 1);
    }
    int status;
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(export_holds(early) && export_holds(late));
    give_back(early);
    give_back(late);
    assert_int_equal(ebb_region_count_exports(late_step), 0);
    assert_int_equal(held(stage), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_forked_child_gives_back_its_own_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
