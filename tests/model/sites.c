// SPDX-License-Identifier: Apache-2.0
/*
 * sites.c - the steps of tracks.h through sites: the library records, plans and replays them, in
 * several threads at once. Each thread plays mistakes of its own in the same step; half of its
 * releases come from a second thread, which is at work meanwhile.
 *
 *     EBB_SEED=n                the first seed
 *     EBB_TRACK_ALLOCATIONS=n   so many for each test
 */
#include "model/tracks.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, ROUNDS = 24, BOX = 64, RING = 2 };

struct block {
    unsigned char *at;
    uint32_t bytes, fill;
};

/* What is handed to the second thread. */
struct parcel {
    ebb_region region;
    struct block block;
};

struct worker {
    struct dice dice;
    const struct stream *stream;
    ebb_site *site;
    ebb_pool *pool;
    uint32_t wild;
    bool repeats;
    struct stream *mutant;
    struct block (*steps)[2 * STREAM_MOST]; /* [RING + 1] */
    struct block *blocks;                   /* of the step at work */
    uint64_t allocations, remote;
    uint32_t filled;
    /* the second thread's */
    struct parcel box[BOX];
    _Atomic uint64_t posted, done;
    atomic_bool ending;
};

static void fill(struct block *block, uint32_t seed) {
    block->fill = seed * 0x9e3779b1u;
    for (uint32_t i = 0; i < block->bytes; i++)
        block->at[i] = (unsigned char)(block->fill >> 8 * (i % 4));
}

static bool is_whole(const struct block *block) {
    for (uint32_t i = 0; i < block->bytes; i++)
        if (block->at[i] != (unsigned char)(block->fill >> 8 * (i % 4)))
            return false;
    return true;
}

/* ---- the second thread ---- */

static void *release_on(void *argument) {
    struct worker *worker = argument;
    for (uint64_t next = 0;;) {
        if (atomic_load_explicit(&worker->posted, memory_order_acquire) == next) {
            if (atomic_load(&worker->ending))
                return NULL;
            sched_yield();
            continue;
        }
        struct parcel parcel = worker->box[next % BOX];
        PLAY_DEMAND(&worker->dice, is_whole(&parcel.block));
        PLAY_DEMAND(&worker->dice, ebb_region_release_remote(parcel.region, parcel.block.at) == 0);
        atomic_store_explicit(&worker->done, ++next, memory_order_release);
    }
}

static void wait_for(struct worker *worker, uint64_t most) {
    uint64_t posted = atomic_load_explicit(&worker->posted, memory_order_relaxed);
    while (posted - atomic_load_explicit(&worker->done, memory_order_acquire) > most)
        sched_yield();
}

static void post(struct worker *worker, ebb_region region, const struct block *block) {
    wait_for(worker, BOX - 1);
    uint64_t posted = atomic_load_explicit(&worker->posted, memory_order_relaxed);
    worker->box[posted % BOX] = (struct parcel){region, *block};
    atomic_store_explicit(&worker->posted, posted + 1, memory_order_release);
    worker->remote++;
}

/* ---- steps ---- */

static void play_alloc(struct worker *worker, ebb_step step, const struct event *event) {
    struct block *block = &worker->blocks[event->number];
    if (block->at)
        return;
    block->bytes = event->bytes;
    block->at = event->key ? ebb_step_alloc(step, event->bytes, event->align, event->key)
                           : ebb_region_alloc(step.region, event->bytes, event->align);
    PLAY_DEMAND(&worker->dice, block->at && (uintptr_t)block->at % event->align == 0);
    fill(block, ++worker->filled);
    worker->allocations++;
}

static void play_release(struct worker *worker, ebb_step step, const struct event *event) {
    struct block *block = &worker->blocks[event->number];
    if (!block->at)
        return;
    PLAY_DEMAND(&worker->dice, is_whole(block));
    if (dice_chance(&worker->dice, 2))
        post(worker, step.region, block);
    else
        PLAY_DEMAND(&worker->dice, ebb_region_release(step.region, block->at) == 0);
    block->at = NULL;
}

static void play_events(struct worker *worker, ebb_step step) {
    for (uint32_t i = 0; i < worker->mutant->count; i++) {
        const struct event *event = &worker->mutant->events[i];
        if (event->alloc)
            play_alloc(worker, step, event);
        else
            play_release(worker, step, event);
    }
}

static void check_whole(const struct worker *worker, const struct block *blocks) {
    for (uint32_t i = 0; i < 2 * STREAM_MOST; i++)
        PLAY_DEMAND(&worker->dice, !blocks[i].at || is_whole(&blocks[i]));
}

/* The last of those that are alive survives. */
static void end_keeping_one(struct worker *worker, ebb_step step, ebb_region parent) {
    struct ebb_survivor survivor = {.mode = (int)dice_below(&worker->dice, 3)};
    struct block kept = {NULL, 0, 0};
    for (uint32_t i = 0; i < worker->stream->blocks; i++)
        if (worker->blocks[i].at) {
            kept = worker->blocks[i];
            worker->blocks[i].at = NULL;
            break;
        }
    survivor.block = kept.at;
    PLAY_DEMAND(&worker->dice, ebb_step_end_keeping(step, parent, &survivor, kept.at != NULL, NULL,
                                                    NULL) == 0);
    if (!kept.at)
        return;
    kept.at = survivor.block;
    PLAY_DEMAND(&worker->dice, is_whole(&kept));
    PLAY_DEMAND(&worker->dice, ebb_region_release(parent, kept.at) == 0);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    pthread_t second;
    ebb_region parent = ebb_region_open(EBB_REGION_OPTIONS(.name = "parent", .pool = worker->pool));
    PLAY_DEMAND(&worker->dice, pthread_create(&second, NULL, release_on, worker) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        bool right = worker->repeats && (round < 4 || dice_chance(&worker->dice, 2));
        uint32_t wild = right ? 0 : worker->wild; /* or the site would give up */
        stream_mutate(&worker->dice, worker->stream, worker->mutant, wild);
        ebb_step step = ebb_step_begin_under(worker->site, parent, 1);
        PLAY_DEMAND(&worker->dice, ebb_region_is_open(step.region));
        worker->blocks = worker->steps[round % (RING + 1)];
        memset(worker->blocks, 0, sizeof *worker->steps);
        play_events(worker, step);
        wait_for(worker, 0);
        for (int back = 0; back < RING + 1; back++) /* older ones are in the ring */
            check_whole(worker, worker->steps[back]);
        end_keeping_one(worker, step, parent);
    }
    atomic_store(&worker->ending, true);
    PLAY_DEMAND(&worker->dice, pthread_join(second, NULL) == 0);
    for (int back = 0; back < RING + 1; back++)
        check_whole(worker, worker->steps[back]);
    PLAY_DEMAND(&worker->dice, ebb_region_close(parent) == 0);
    return NULL;
}

static struct worker *worker_create(void) {
    struct worker *worker = calloc(1, sizeof *worker);
    assert_non_null(worker);
    worker->mutant = malloc(sizeof *worker->mutant);
    worker->steps = calloc(RING + 1, sizeof *worker->steps);
    assert_true(worker->mutant && worker->steps);
    return worker;
}

static void play_one(uint64_t seed, ebb_pool *pool, uint32_t wild, uint64_t *allocations,
                     struct ebb_site_stats *sum) {
    static struct stream stream;
    struct dice dice = {seed, seed};
    struct worker *workers[THREADS];
    pthread_t threads[THREADS];
    struct ebb_site_stats stats = {.size = sizeof stats};
    stream_make(&dice, &stream, false);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "model", .ring = RING,
                                                      .search_ns = seed % 2 ? 1000000 : 0));
    for (unsigned i = 0; i < THREADS; i++) {
        struct worker *worker = workers[i] = worker_create();
        worker->dice = (struct dice){seed * THREADS + i, seed};
        worker->stream = &stream;
        worker->site = site;
        worker->pool = pool;
        worker->wild = wild;
        worker->repeats = seed % 4 != 0;
        assert_int_equal(pthread_create(&threads[i], NULL, work, worker), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        *allocations += workers[i]->allocations;
        free(workers[i]->steps);
        free(workers[i]->mutant);
        free(workers[i]);
    }
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_int_equal(stats.strays, 0);
    sum->hits += stats.hits;
    sum->missed += stats.missed;
    sum->takeovers += stats.takeovers;
    sum->plans += stats.plans;
    sum->tenured_right += stats.tenured_right;
    sum->tenured_wrong += stats.tenured_wrong;
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void play(ebb_pool *pool, uint32_t wild) {
    struct ebb_site_stats sum = {0};
    uint64_t seed = fresh_seed(), allocations = 0;
    uint64_t most = number_from("EBB_TRACK_ALLOCATIONS", 60000);
    for (; allocations < most; seed++)
        play_one(seed, pool, wild, &allocations, &sum);
    fprintf(stderr, "# %llu allocations, %llu hits, %llu missed, %llu takeovers, %llu plans, "
            "%llu + %llu born above\n", (unsigned long long)allocations,
            (unsigned long long)sum.hits, (unsigned long long)sum.missed,
            (unsigned long long)sum.takeovers, (unsigned long long)sum.plans,
            (unsigned long long)sum.tenured_right, (unsigned long long)sum.tenured_wrong);
    assert_true(sum.hits && sum.missed && sum.plans);
}

static void steps_with_mistakes_never_overlap_in_threads(void **state) {
    struct stage *stage = *state;
    play(stage->pool, 2);
}

static void wild_steps_never_overlap_in_threads(void **state) {
    struct stage *stage = *state;
    play(stage->pool, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(steps_with_mistakes_never_overlap_in_threads),
        STAGED(wild_steps_never_overlap_in_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
