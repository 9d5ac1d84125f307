// SPDX-License-Identifier: Apache-2.0
/*
 * seats.c - what a thread did comes before all that is done with its ring when it has ended, also
 * where another thread has sat in its place meanwhile. Run under ThreadSanitizer by tests/run.
 */
#include "kit/test.h"
#include "step/seat.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { BYTES = 5000 };

struct ring {
    ebb_site *site;
    atomic_uint turn; /* of the threads: relaxed, so that nothing but seats orders them */
    void *first_lane, *last_lane;
    struct seat first, between;
};

static void await_turn(struct ring *ring, unsigned turn) {
    while (atomic_load_explicit(&ring->turn, memory_order_relaxed) != turn)
        sched_yield();
}

static void *take_step(ebb_site *site, char **block) {
    ebb_step step = ebb_step_begin(site, 0);
    *block = ebb_region_alloc(step.region, BYTES, 64);
    if (*block)
        memset(*block, 1, BYTES);
    return ebb_step_end(step) == 0 ? step.lane : NULL;
}

/* What lies in the ring is the thread's to write to. */
static void *fill_ring(void *context) {
    struct ring *ring = context;
    char *block;
    ring->first_lane = take_step(ring->site, &block);
    ring->first = seat_own();
    if (block)
        memset(block, 2, BYTES);
    return NULL;
}

static void *sit_there(void *context) {
    struct ring *ring = context;
    await_turn(ring, 1);
    ring->between = seat_own();
    return NULL;
}

static void *take_ring_over(void *context) {
    struct ring *ring = context;
    char *block;
    await_turn(ring, 2);
    for (unsigned i = 0; i < 4; i++)
        ring->last_lane = take_step(ring->site, &block);
    return NULL;
}

static void a_ring_is_taken_over_after_all_that_its_thread_did(void **state) {
    struct stage *stage = *state;
    struct ring ring = {.site = NULL};
    ring.site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .ring = 1));
    void *(*const bodies[])(void *) = {fill_ring, sit_there, take_ring_over};
    pthread_t threads[3];
    for (unsigned i = 3; i > 0; i--)
        assert_int_equal(pthread_create(&threads[i - 1], NULL, bodies[i - 1], &ring), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        atomic_store_explicit(&ring.turn, i + 1, memory_order_relaxed);
    }
    assert_int_equal(ring.between.place, ring.first.place);
    assert_non_null(ring.first_lane);
    assert_ptr_equal(ring.last_lane, ring.first_lane);
    assert_int_equal(ebb_site_destroy(ring.site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(a_ring_is_taken_over_after_all_that_its_thread_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
