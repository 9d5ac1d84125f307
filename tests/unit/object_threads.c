// SPDX-License-Identifier: Apache-2.0
/*
 * object_threads.c - objects on several threads: unrelated regions of one pool, and the process's
 * counters, which any thread may read at any time. Run under ThreadSanitizer by tests/run.
 */
#include "kit/boxes.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 3, ROUNDS = 400, EACH = 5 };

static struct ebb_object_counts counts_now(void) {
    struct ebb_object_counts counts;
    assert_int_equal(ebb_process_read_objects(EBB_OBJECT_ALL, &counts), 0);
    return counts;
}

/* One region after the other: five objects in each, of which one goes to the root. */
static void *play(void *context) {
    ebb_pool *pool = context;
    ebb_region root = OPEN(.pool = pool);
    for (int round = 0; round < ROUNDS; round++) {
        ebb_region inner = OPEN(.parent = root);
        struct box *box = box_in(inner);
        box->left = &floats_in(inner, 10)->object;
        box->right = &floats_of(inner, (void *)box->left, 1, 5)->object;
        if (ebb_object_compose(box) != 0 || !ebb_object_detach(box))
            return NULL;
        if (ebb_object_attach(floats_in(root, 2000), inner) != 0)
            return NULL;
        floats_in(inner, 3);
        ebb_region_close(inner);
    }
    ebb_region_close(root);
    return context;
}

static void counters_are_read_while_regions_come_and_go(void **state) {
    struct stage *stage = *state;
    pthread_t threads[THREADS];
    struct ebb_object_counts before = counts_now(), last = before, now;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play, stage->pool), 0);
    do {
        now = counts_now();
        assert_true(now.created_inside >= last.created_inside && now.joined >= last.joined);
        assert_true(now.created_outside >= last.created_outside);
        assert_true(now.ended_inside >= last.ended_inside && now.detached >= last.detached);
        assert_true(now.created_inside - before.created_inside <= (EACH - 1) * ROUNDS * THREADS);
        assert_true(now.live <= before.live + EACH * ROUNDS * THREADS); /* never less than none */
        last = now;
    } while (now.attached - before.attached < ROUNDS * THREADS);
    for (int i = 0; i < THREADS; i++) {
        void *done;
        assert_int_equal(pthread_join(threads[i], &done), 0);
        assert_non_null(done);
    }
    now = counts_now();
    assert_int_equal(now.created_inside - before.created_inside, (EACH - 1) * ROUNDS * THREADS);
    assert_int_equal(now.created_outside - before.created_outside, ROUNDS * THREADS);
    assert_int_equal(now.ended_inside - before.ended_inside, 2 * ROUNDS * THREADS);
    assert_int_equal(now.ended_outside - before.ended_outside, 3 * ROUNDS * THREADS);
    assert_int_equal(now.live, before.live);
}

/* Calls that make three objects and fail at the fourth, in a region that had none before. */
static void *fail_again_and_again(void *context) {
    ebb_pool *pool = context;
    ebb_region input = OPEN(.pool = pool), step = OPEN(.pool = pool, .limit_bytes = 100000);
    struct ebb_tensor *sequence = floats_in(input, 10000);
    for (int round = 0; round < 5 * ROUNDS; round++)
        if (ebb_sequences_pack(step, &sequence, 1, NULL) ||
            ebb_last_error() != EBB_E_REGION_LIMIT)
            return NULL;
    ebb_region_close(step);
    ebb_region_close(input);
    return context;
}

static void counters_are_read_while_calls_fail(void **state) {
    struct stage *stage = *state;
    pthread_t thread;
    struct ebb_object_counts before = counts_now(), now;
    void *done;
    assert_int_equal(pthread_create(&thread, NULL, fail_again_and_again, stage->pool), 0);
    do {
        now = counts_now();
        assert_true(now.live <= before.live + EACH); /* never less than none */
        assert_true(now.created_outside - before.created_outside <= EACH);
    } while (now.ended_outside == before.ended_outside || now.live > before.live);
    assert_int_equal(pthread_join(thread, &done), 0);
    assert_non_null(done);
    now = counts_now();
    assert_int_equal(now.created_outside - before.created_outside, 1);
    assert_int_equal(now.ended_outside - before.ended_outside, 1);
    assert_int_equal(now.live, before.live);
}

/* What was counted while it had a parent is so for ever. */
static void a_child_that_is_handed_over_counts_anew(void **state) {
    struct stage *stage = *state;
    struct ebb_object_counts before = counts_now(), now, own;
    ebb_region child = OPEN(.parent = stage->root), below = OPEN(.parent = child);
    struct ebb_tensor *tensors[EACH];
    floats_in(below, 10);
    for (int i = 0; i < EACH; i++)
        tensors[i] = floats_in(child, 10);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ebb_object_end(tensors[i]), 0);
    child = ebb_region_hand_over(child);
    assert_int_equal(ebb_region_read_objects(child, EBB_OBJECT_ALL, &own), 0);
    assert_int_equal(own.live, EACH - 2);
    assert_int_equal(own.created_outside + own.created_inside, 0);
    assert_int_equal(own.ended_outside + own.ended_inside, 0);
    for (int closed = 0; closed < 2; closed++) {
        now = counts_now();
        assert_int_equal(now.created_inside - before.created_inside, EACH + 1);
        assert_int_equal(now.ended_inside - before.ended_inside, closed ? 3 : 2);
        assert_int_equal(now.created_outside - before.created_outside, closed);
        assert_int_equal(now.ended_outside - before.ended_outside, closed ? EACH - 1 : 0);
        assert_int_equal(now.live - before.live, closed ? 0 : EACH - 1);
        if (!closed) {
            floats_in(child, 10);
            assert_int_equal(ebb_object_end(tensors[2]), 0);
            assert_int_equal(ebb_check_pool(stage->pool), 0);
            assert_int_equal(ebb_region_close(child), 0);
        }
    }
}

static void *hand_over_again_and_again(void *context) {
    ebb_pool *pool = context;
    for (int round = 0; round < ROUNDS; round++) {
        ebb_region root = OPEN(.pool = pool), child = OPEN(.parent = root);
        ebb_region below = OPEN(.parent = child);
        floats_in(below, 10);
        floats_in(child, 10);
        child = ebb_region_hand_over(child);
        if (ebb_region_close(root) != 0 || ebb_region_close(child) != 0)
            return NULL;
    }
    return context;
}

static void counters_are_read_while_children_are_handed_over(void **state) {
    struct stage *stage = *state;
    pthread_t thread;
    struct ebb_object_counts before = counts_now(), last = before, now;
    void *done;
    assert_int_equal(pthread_create(&thread, NULL, hand_over_again_and_again, stage->pool), 0);
    do {
        now = counts_now();
        assert_true(now.created_inside >= last.created_inside);
        assert_true(now.ended_inside >= last.ended_inside);
        assert_true(now.ended_outside >= last.ended_outside);
        assert_int_equal(now.created_outside, before.created_outside);
        assert_true(now.live <= before.live + 2); /* never less than none */
        last = now;
    } while (now.ended_outside - before.ended_outside < ROUNDS);
    assert_int_equal(pthread_join(thread, &done), 0);
    assert_non_null(done);
    now = counts_now();
    assert_int_equal(now.created_inside - before.created_inside, 2 * ROUNDS);
    assert_int_equal(now.ended_inside - before.ended_inside, ROUNDS);
    assert_int_equal(now.ended_outside - before.ended_outside, ROUNDS);
    assert_int_equal(now.live, before.live);
}

static void counters_outlive_pools(void **state) {
    struct ebb_object_counts before = counts_now();
    for (int i = 1; i <= 5; i++) {
        ebb_pool *pool = POOL(.name = "passing"), *other = POOL(.name = "other");
        ebb_region root = OPEN(.pool = pool);
        floats_in(root, 10);
        ebb_region_close(root);
        pool_end(pool);
        pool_end(other);
        struct ebb_object_counts after = counts_now();
        assert_int_equal(after.created_outside - before.created_outside, i);
        assert_int_equal(after.ended_outside - before.ended_outside, i);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(counters_are_read_while_regions_come_and_go),
        STAGED(counters_are_read_while_calls_fail),
        STAGED(a_child_that_is_handed_over_counts_anew),
        STAGED(counters_are_read_while_children_are_handed_over),
        cmocka_unit_test(counters_outlive_pools),
    };
    return cmocka_run_group_tests(tests, boxes_prepare, NULL);
}
