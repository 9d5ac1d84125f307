// SPDX-License-Identifier: Apache-2.0
/* looking.c - who looks at the slots of a shared pool while a thread is the first to use them finds
 * each slot's pool complete, or not at all. */
#include "handoff/duo.h"
#include "pool/shared.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SLOTS = 64, TURNS = 20 };

struct look {
    const struct shared *shared;
    size_t complete, others;
};

static void look_at(void *context, struct ebb_pool *pool) {
    struct look *look = context;
    pthread_mutex_lock(&pool->lock);
    if (pool->shared == look->shared && pool->slot && pool->slot->shared == look->shared)
        look->complete++;
    else
        look->others++;
    pthread_mutex_unlock(&pool->lock);
}

/* Until all of them are there. */
static void *look_on(void *context) {
    struct look *look = context;
    do {
        look->complete = 0;
        shared_each(look->shared, look_at, look);
    } while (look->complete < SLOTS && !look->others);
    return NULL;
}

static void pools_of_slots_are_complete_when_they_are_found(void **state) {
    (void)state;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        ebb_pool *pool = shared_pool(SLOTS, 2 * MIB);
        struct look look = {.shared = pool->shared};
        ebb_region regions[SLOTS];
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, look_on, &look), 0);
        for (unsigned i = 0; i < SLOTS; i++)
            regions[i] = OPEN(.pool = pool);
        pthread_join(thread, NULL);
        assert_int_equal(look.others, 0);
        for (unsigned i = 0; i < SLOTS; i++)
            assert_int_equal(ebb_region_close(regions[i]), 0);
        assert_int_equal(ebb_pool_destroy(pool), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_of_slots_are_complete_when_they_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
