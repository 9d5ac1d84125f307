// SPDX-License-Identifier: Apache-2.0
/*
 * exchange_threads.c - consumers on other threads give exports back while their region works,
 * resets and closes. Run under ThreadSanitizer by tests/run.
 *
 * The region's thread puts exports into slots, consumers take them out, read them, write to them
 * and give them back; whoever is later than the close gives back held pages.
 */
#include "kit/dlpack.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { CONSUMERS = 3, SLOTS = 32, STEPS = 300 };

struct counter {
    _Atomic(DLManagedTensor *) slots[SLOTS];
    atomic_bool closed;
    atomic_uint wrong;
};

static void consume(struct counter *counter, DLManagedTensor *managed) {
    if (!export_holds(managed))
        atomic_fetch_add(&counter->wrong, 1);
    memset(managed->dl_tensor.data, 0x11, (size_t)managed->dl_tensor.shape[0]);
    give_back(managed);
}

static void *consume_all(void *context) {
    struct counter *counter = context;
    for (bool last = false, any = true; !last || any;) {
        last = atomic_load(&counter->closed);
        any = false;
        for (int i = 0; i < SLOTS; i++) {
            DLManagedTensor *managed = atomic_exchange(&counter->slots[i], NULL);
            if (managed)
                consume(counter, managed);
            any |= managed != NULL;
        }
        if (!any)
            sched_yield();
    }
    return NULL;
}

static void offer(struct counter *counter, DLManagedTensor *managed, unsigned slot) {
    DLManagedTensor *none = NULL;
    while (!atomic_compare_exchange_strong(&counter->slots[slot % SLOTS], &none, managed)) {
        none = NULL;
        slot++;
        sched_yield();
    }
}

/* One step: exports of tensors that live and of some that end, then an end of the region. */
static void play_step(struct counter *counter, ebb_region parent, unsigned step) {
    ebb_region region = OPEN(.name = "step", .parent = parent);
    for (unsigned i = 0; i < 12; i++) {
        struct ebb_tensor *tensor = tensor_of_bytes(region, 500 + i * 700);
        DLManagedTensor *managed = ebb_tensor_export(tensor, EBB_EXCHANGE_IF_NEEDED);
        assert_non_null(managed);
        if (i % 3 == 0)
            assert_int_equal(ebb_object_end(tensor), 0);
        offer(counter, managed, step * 7 + i);
        block_of(region, 3000, 64);
    }
    if (step % 3 == 0)
        assert_int_equal(ebb_region_reset(region, step % 2 ? EBB_KEEP_ALL : 0), 0);
    if (step % 5 == 0)
        ebb_region_count_exports(region);
    struct ebb_survivor survivor = survivor_of(block_of(region, 5000, 64), EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_close_keeping(region, parent, &survivor, 1, NULL, NULL), 0);
    assert_true(pattern_holds(survivor.block, 5000, 5000));
    assert_int_equal(ebb_region_release(parent, survivor.block), 0);
}

static void consumers_give_back_while_regions_work_and_close(void **state) {
    static struct counter counter;
    struct stage *stage = *state;
    pthread_t threads[CONSUMERS];
    memset(&counter, 0, sizeof counter);
    for (int i = 0; i < CONSUMERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, consume_all, &counter), 0);
    for (unsigned step = 0; step < STEPS; step++)
        play_step(&counter, stage->root, step);
    atomic_store(&counter.closed, true);
    for (int i = 0; i < CONSUMERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&counter.wrong), 0);
    assert_int_equal(ebb_region_count_exports(stage->root), 0);
    assert_int_equal(pool_stats_of(stage->pool).held, 0);
}

/* The same export is given back by several threads at once: one of them does it. */
struct race {
    DLManagedTensor *managed;
    pthread_barrier_t barrier;
};

static void *give_back_at_once(void *context) {
    struct race *race = context;
    pthread_barrier_wait(&race->barrier);
    give_back(race->managed);
    return NULL;
}

static void of_deleters_at_once_one_counts(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor = tensor_of_bytes(stage->root, 5000);
    for (int round = 0; round < 200; round++) {
        struct race race = {.managed = share(tensor)};
        pthread_t threads[CONSUMERS];
        pthread_barrier_init(&race.barrier, NULL, CONSUMERS);
        for (int i = 0; i < CONSUMERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, give_back_at_once, &race), 0);
        for (int i = 0; i < CONSUMERS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        pthread_barrier_destroy(&race.barrier);
        assert_int_equal(ebb_region_count_exports(stage->root), 0);
        assert_int_equal(tensor->storage->tensors, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(consumers_give_back_while_regions_work_and_close),
        STAGED(of_deleters_at_once_one_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
