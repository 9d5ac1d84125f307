// SPDX-License-Identifier: Apache-2.0
/*
 * current.c - the current region of a thread: scopes are left innermost first, each once, and move
 * to another thread only by save and restore, each time once.
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
    assert_non_null(strstr(ebb_last_error_text(), "the thread is in none"));
    assert_refused(ebb_current_leave((ebb_current_token){.serial = 0}), EBB_E_ORDER);
    assert_non_null(strstr(ebb_last_error_text(), "the token is of no scope"));
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

static void *restore_a_copy(void *context) {
    struct task *task = context;
    task->restored_twice = ebb_current_restore(task->scopes);
    return NULL;
}

static void a_copy_of_what_was_restored_is_refused(void **state) {
    struct stage *stage = *state;
    ebb_current_token token = ebb_current_enter(stage->root);
    struct task task = {.scopes = ebb_current_save()};
    assert_int_equal(ebb_current_restore(task.scopes), 0);
    on_a_thread(restore_a_copy, &task);
    assert_int_equal(task.restored_twice, EBB_E_ORDER);
    ebb_current_scopes again = ebb_current_save();
    assert_refused(ebb_current_restore(task.scopes), EBB_E_ORDER);
    assert_false(ebb_region_is_open(ebb_current()));
    assert_int_equal(ebb_current_restore(again), 0);
    assert_int_equal(ebb_current_leave(token), 0);
    assert_refused(ebb_current_restore(again), EBB_E_ORDER);
    assert_refused(ebb_current_restore(task.scopes), EBB_E_ORDER);
    assert_false(ebb_region_is_open(ebb_current()));
}

/* Of two tasks by turns, in an inner scope and in the outer one, however often. */
static void what_is_saved_can_be_restored_each_time(void **state) {
    struct stage *stage = *state;
    ebb_current_scopes tasks[2], copy;
    ebb_current_token outer[2], inner[2];
    for (unsigned i = 0; i < 2; i++) {
        outer[i] = ebb_current_enter(stage->root);
        inner[i] = ebb_current_enter(stage->root);
        tasks[i] = ebb_current_save();
    }
    for (unsigned turn = 0; turn < 300000; turn++) {
        copy = tasks[turn % 2];
        assert_int_equal(ebb_current_restore(copy), 0);
        if (turn / 2 == 90000)
            assert_int_equal(ebb_current_leave(inner[turn % 2]), 0);
        tasks[turn % 2] = ebb_current_save();
        if (turn % 1000 < 2)
            assert_refused(ebb_current_restore(copy), EBB_E_ORDER);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ebb_current_restore(tasks[i]), 0);
        assert_int_equal(ebb_current_leave(outer[i]), 0);
    }
}

/* Serials have so few bits for that; a task that waits for each message is saved often. */
static void a_copy_is_refused_however_often_its_scope_moved_since(void **state) {
    struct stage *stage = *state;
    ebb_current_token token = ebb_current_enter(stage->root);
    ebb_current_scopes copy = ebb_current_save(), scopes = copy;
    for (unsigned saves = 1; saves < 65536; saves++) {
        assert_int_equal(ebb_current_restore(scopes), 0);
        scopes = ebb_current_save();
        if (saves % 64 == 0)
            assert_refused(ebb_current_restore(copy), EBB_E_ORDER);
    }
    assert_int_equal(ebb_current_restore(scopes), 0);
    assert_int_equal(ebb_current_leave(token), 0);
}

/* As long as none has its place. */
static void copies_are_known_while_others_move(void **state) {
    struct stage *stage = *state;
    ebb_current_token token = ebb_current_enter(stage->root);
    ebb_current_scopes copy = ebb_current_save();
    assert_int_equal(ebb_current_restore(copy), 0);
    assert_int_equal(ebb_current_leave(token), 0);
    for (unsigned i = 0; i < 4095; i++) {
        token = ebb_current_enter(stage->root);
        assert_int_equal(ebb_current_restore(ebb_current_save()), 0);
        assert_int_equal(ebb_current_leave(token), 0);
    }
    assert_refused(ebb_current_restore(copy), EBB_E_ORDER);
}

enum { COPIES = 4 };

struct copies {
    pthread_barrier_t barrier;
    ebb_current_scopes scopes;
    ebb_current_token token;
    _Atomic unsigned restored, wrong;
};

static void *restore_at_once(void *context) {
    struct copies *copies = context;
    pthread_barrier_wait(&copies->barrier);
    int result = ebb_current_restore(copies->scopes);
    if (result == 0) {
        copies->restored++;
        copies->wrong += ebb_current_leave(copies->token) != 0;
    } else {
        copies->wrong += result != EBB_E_ORDER;
    }
    return NULL;
}

static void of_copies_that_are_restored_at_once_one_is(void **state) {
    struct stage *stage = *state;
    for (unsigned round = 0; round < 100; round++) {
        struct copies copies = {.token = ebb_current_enter(stage->root)};
        pthread_t threads[COPIES];
        copies.scopes = ebb_current_save();
        pthread_barrier_init(&copies.barrier, NULL, COPIES);
        for (unsigned i = 0; i < COPIES; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, restore_at_once, &copies), 0);
        for (unsigned i = 0; i < COPIES; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        pthread_barrier_destroy(&copies.barrier);
        assert_int_equal(copies.restored, 1);
        assert_int_equal(copies.wrong, 0);
    }
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
        STAGED(a_copy_of_what_was_restored_is_refused),
        STAGED(what_is_saved_can_be_restored_each_time),
        STAGED(a_copy_is_refused_however_often_its_scope_moved_since),
        STAGED(copies_are_known_while_others_move),
        STAGED(of_copies_that_are_restored_at_once_one_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
