// SPDX-License-Identifier: Apache-2.0
/*
 * current.c - the current region of a thread: scopes are left innermost first, each once, and move
 * to another thread only by save and restore.
 */
#include "kit/test.h"

#include <pthread.h>

static bool is_same(ebb_region a, ebb_region b) {
    return a.lane == b.lane && a.generation == b.generation;
}

static void a_thread_has_no_current_region_at_first(void **state) {
    assert_false(ebb_region_is_open(ebb_current()));
}

static void scopes_nest(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    ebb_current_token first = ebb_current_enter(stage->root);
    assert_true(first.serial != 0 && is_same(ebb_current(), stage->root));
    ebb_current_token second = ebb_current_enter(inner);
    assert_true(second.serial != first.serial && is_same(ebb_current(), inner));
    assert_int_equal(ebb_current_leave(second), 0);
    assert_true(is_same(ebb_current(), stage->root));
    assert_int_equal(ebb_current_leave(first), 0);
    assert_false(ebb_region_is_open(ebb_current()));
    assert_int_equal(ebb_region_close(inner), 0);
}

static void a_region_that_is_closed_is_not_entered(void **state) {
    struct stage *stage = *state;
    ebb_region gone = OPEN(.parent = stage->root);
    assert_int_equal(ebb_region_close(gone), 0);
    ebb_current_token scope = ebb_current_enter(stage->root);
    ebb_current_token token = ebb_current_enter(gone);
    assert_true(token.serial == 0);
    assert_refused(ebb_last_error(), EBB_E_STALE);
    assert_true(is_same(ebb_current(), stage->root));
    assert_refused(ebb_current_leave(token), EBB_E_ORDER);
    assert_int_equal(ebb_current_leave(scope), 0);
}

static void an_outer_scope_is_not_left_before_the_inner(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    ebb_current_token first = ebb_current_enter(stage->root), second = ebb_current_enter(inner);
    assert_refused(ebb_current_leave(first), EBB_E_ORDER);
    assert_true(is_same(ebb_current(), inner));
    assert_int_equal(ebb_current_leave(second), 0);
    assert_int_equal(ebb_current_leave(first), 0);
    assert_int_equal(ebb_region_close(inner), 0);
}

static void a_scope_is_left_once(void **state) {
    struct stage *stage = *state;
    ebb_current_token outer = ebb_current_enter(stage->root);
    ebb_current_token again = ebb_current_enter(stage->root);
    assert_int_equal(ebb_current_leave(again), 0);
    assert_refused(ebb_current_leave(again), EBB_E_ORDER);
    assert_true(is_same(ebb_current(), stage->root));
    assert_int_equal(ebb_current_leave(outer), 0);
    assert_refused(ebb_current_leave(outer), EBB_E_ORDER);
    assert_refused(ebb_current_leave((ebb_current_token){.serial = 0}), EBB_E_ORDER);
}

static void the_region_may_close_before_its_scope_is_left(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    ebb_current_token token = ebb_current_enter(region);
    assert_int_equal(ebb_region_close(region), 0);
    assert_false(ebb_region_is_open(ebb_current()));
    assert_true(is_same(ebb_current(), region));
    assert_int_equal(ebb_current_leave(token), 0);
}

struct task {
    ebb_region region;
    ebb_current_token token;
    ebb_current_scopes scopes;
    int left_elsewhere, left, restored_twice;
    bool had_none, found, had_none_after;
};

static void *go_on_here(void *context) {
    struct task *task = context;
    task->had_none = !ebb_region_is_open(ebb_current());
    task->left_elsewhere = ebb_current_leave(task->token);
    int restored = ebb_current_restore(task->scopes);
    task->found = restored == 0 && is_same(ebb_current(), task->region);
    task->restored_twice = ebb_current_restore(task->scopes);
    task->left = ebb_current_leave(task->token);
    task->had_none_after = !ebb_region_is_open(ebb_current());
    return NULL;
}

static void on_a_thread(void *(*body)(void *context), void *context) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void scopes_move_to_another_thread(void **state) {
    struct stage *stage = *state;
    struct task task = {.region = OPEN(.parent = stage->root)};
    ebb_current_token outer = ebb_current_enter(stage->root);
    task.token = ebb_current_enter(task.region);
    task.scopes = ebb_current_save();
    assert_false(ebb_region_is_open(ebb_current()));
    assert_refused(ebb_current_leave(task.token), EBB_E_ORDER);
    on_a_thread(go_on_here, &task);
    assert_true(task.had_none && task.found);
    assert_int_equal(task.left_elsewhere, EBB_E_ORDER);
    assert_int_equal(task.restored_twice, EBB_E_ORDER);
    assert_int_equal(task.left, 0);
    assert_false(task.had_none_after); /* the outer scope moved along */
    assert_refused(ebb_current_leave(outer), EBB_E_ORDER);
    assert_int_equal(ebb_region_close(task.region), 0);
}

static void saving_where_there_is_nothing_gives_nothing(void **state) {
    ebb_current_scopes scopes = ebb_current_save();
    assert_true(scopes.serial == 0);
    assert_int_equal(ebb_current_restore(scopes), 0);
    assert_false(ebb_region_is_open(ebb_current()));
}

static void scopes_are_not_restored_over_others(void **state) {
    struct stage *stage = *state;
    ebb_current_token token = ebb_current_enter(stage->root);
    ebb_current_scopes saved = ebb_current_save();
    ebb_current_token other = ebb_current_enter(stage->root);
    assert_refused(ebb_current_restore(saved), EBB_E_ORDER);
    assert_int_equal(ebb_current_leave(other), 0);
    assert_int_equal(ebb_current_restore(saved), 0);
    assert_int_equal(ebb_current_leave(token), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_has_no_current_region_at_first),
        STAGED(scopes_nest),
        STAGED(a_region_that_is_closed_is_not_entered),
        STAGED(an_outer_scope_is_not_left_before_the_inner),
        STAGED(a_scope_is_left_once),
        STAGED(the_region_may_close_before_its_scope_is_left),
        STAGED(scopes_move_to_another_thread),
        STAGED(saving_where_there_is_nothing_gives_nothing),
        STAGED(scopes_are_not_restored_over_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
