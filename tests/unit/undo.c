// SPDX-License-Identifier: Apache-2.0
/*
 * undo.c - calls that take several blocks, fail at the last and leave no trace, while the region
 * takes in what other threads have released: that stays released, and is counted so.
 */
#include "kit/tensors.h"

#include <pthread.h>
#include <stdatomic.h>

enum { HUGE_BYTES = 8 << 20, LISTED = 12 };

static const size_t sizes[] = {16, 100, 500, 3000, 40000};
enum { SIZES_COUNT = sizeof sizes / sizeof *sizes };

/* The pool's walk ends the process if what is counted is not what is there. */
static void assert_counts(const struct stage *stage, ebb_region region, uint64_t blocks,
                          size_t requested) {
    struct ebb_region_stats stats = stats_of(region);
    assert_int_equal(stats.blocks.current, blocks);
    assert_int_equal(stats.requested.current, requested);
    ebb_check_pool(stage->pool);
}

static void hand_in(ebb_region region, void *block) {
    assert_int_equal(ebb_region_release_remote(region, block), 0);
}

/* From here on there are no pages for a huge block. */
static void run_short(const struct stage *stage) {
    ebb_pool_trim(stage->pool, 0);
    size_t reserved = pool_stats_of(stage->pool).reserved.current;
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, reserved + HUGE_BYTES / 8), 0);
}

static void recover(const struct stage *stage) {
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 0), 0);
}

/* Four blocks of the region; what stays of them after two were released elsewhere. */
struct four {
    void *older, *newest;
};

static struct four four_in(ebb_region region, size_t kept, size_t gone) {
    struct four four;
    block_of(region, kept, 16);
    four.older = block_of(region, gone, 16);
    block_of(region, kept, 16);
    four.newest = block_of(region, gone, 16);
    return four;
}

static void promotions_that_fail_keep_what_others_released(void **state) {
    struct stage *stage = *state;
    for (unsigned i = 0; i < SIZES_COUNT * SIZES_COUNT; i++) {
        size_t kept = sizes[i % SIZES_COUNT], gone = sizes[i / SIZES_COUNT];
        ebb_pool_trim(stage->pool, 0); /* hot pages would be taken beyond the need */
        ebb_region target = OPEN(.parent = stage->root), source = OPEN(.parent = target);
        struct four four = four_in(target, kept, gone);
        struct ebb_survivor list[LISTED];
        for (unsigned k = 0; k < LISTED; k++)
            list[k] = survivor_of(block_of(source, k + 1 < LISTED ? kept : HUGE_BYTES, 16),
                                  EBB_PROMOTE_COPY);
        assert_counts(stage, target, 4, 2 * kept + 2 * gone);
        hand_in(target, four.older);
        hand_in(target, four.newest);
        run_short(stage);
        assert_refused(ebb_promote(source, target, list, LISTED, NULL), EBB_E_POOL_LIMIT);
        recover(stage);
        assert_counts(stage, target, 2, 2 * kept);
        assert_int_equal(stats_of(target).blocks.total, 4);
        assert_int_equal(ebb_promote(source, target, list, LISTED, NULL), 0);
        assert_counts(stage, target, 2 + LISTED, (1 + LISTED) * kept + HUGE_BYTES);
        assert_int_equal(ebb_region_close(target), 0);
    }
}

static unsigned draw(uint64_t *state, unsigned below) {
    *state = (*state * 1664525 + 1013904223) % ((uint64_t)1 << 32);
    return (unsigned)(*state >> 8) % below;
}

enum { MANY = 300 };

/* Copies of at most so many small blocks of the source into the target, up to one that there is no
 * room for. */
static void fail_to_copy(const struct stage *stage, ebb_region source, ebb_region target,
                         unsigned most, uint64_t *random) {
    struct ebb_survivor list[MANY + 1];
    unsigned count = 1 + draw(random, most);
    for (unsigned i = 0; i < count; i++) {
        list[i] = survivor_of(block_of(source, draw(random, 300), 16), EBB_PROMOTE_COPY);
        list[i].align = (size_t)16 << draw(random, 5);
    }
    void *huge = ebb_region_alloc(source, HUGE_BYTES, 16); /* which is never copied */
    assert_non_null(huge);
    list[count] = survivor_of(huge, EBB_PROMOTE_COPY);
    struct ebb_region_stats before = stats_of(target);
    run_short(stage);
    assert_refused(ebb_promote(source, target, list, count + 1, NULL), EBB_E_POOL_LIMIT);
    recover(stage);
    ebb_check_pool(stage->pool);
    struct ebb_region_stats after = stats_of(target);
    assert_true(after.used.current <= before.used.current); /* a hole may have had some */
    assert_int_equal(after.requested.current, before.requested.current);
    assert_int_equal(after.used.peak, before.used.peak);
}

/* Where blocks lie that come after such calls, as one number. */
static uint64_t place_after_failures(const struct stage *stage, unsigned seed, bool sites) {
    void *old[MANY];
    uint64_t random = seed, where = 0;
    ebb_region target = OPEN(.parent = stage->root, .hint_bytes = MIB, .sites = sites);
    for (unsigned i = 0; i < MANY; i++)
        old[i] = block_of(target, 1 + draw(&random, 200), (size_t)16 << draw(&random, 3));
    for (unsigned i = 0; i < MANY; i++)
        if (draw(&random, 200) < seed)
            assert_int_equal(ebb_region_release(target, old[i]), 0);
    for (unsigned i = 0; i < 3; i++) {
        ebb_region source = OPEN(.parent = target);
        fail_to_copy(stage, source, target, MANY, &random);
        assert_int_equal(ebb_region_close(source), 0);
    }
    for (unsigned i = 0; i < MANY; i++) {
        char *block = block_of(target, 1 + draw(&random, 400), 64);
        where = where * 31 + (uint64_t)(block - (char *)old[0]);
    }
    ebb_check_pool(stage->pool);
    assert_int_equal(ebb_region_close(target), 0);
    return where;
}

/* Padding in front of copies lies in rooms that were left meanwhile, holes between others among
 * them; that between what was there stays, and counts. It is the same where none is charged. */
static void padding_of_what_failed_does_not_count(void **state) {
    struct stage *stage = *state;
    for (unsigned seed = 0; seed < 200; seed++)
        assert_int_equal(place_after_failures(stage, seed, false),
                         place_after_failures(stage, seed, true));
}

/* Blocks that come one after the other, of which nothing is left. */
static void come_and_go(ebb_region region, const size_t *bytes, unsigned count) {
    void *blocks[MANY];
    for (unsigned i = 0; i < count; i++)
        blocks[i] = block_of(region, bytes[i], 16);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(ebb_region_release(region, blocks[i]), 0);
}

/* Blocks of these sizes come, and none lies over another. */
static void come_apart(ebb_region region, const size_t *bytes, unsigned count) {
    void *blocks[MANY];
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = block_of(region, bytes[i], 16);
        pattern_fill(blocks[i], bytes[i], i);
    }
    for (unsigned i = 0; i < count; i++) {
        assert_true(pattern_holds(blocks[i], bytes[i], i));
        assert_int_equal(ebb_region_block_bytes(region, blocks[i]), bytes[i]);
    }
}

#define ALL(list) (list), sizeof(list) / sizeof *(list)

/* The first copy does not fit behind blocks that are gone, so the copies lie where these did. */
static void a_window_that_was_begun_again_is_another_room(void **state) {
    static const size_t gone[] = {1024, 1024, 1024, 32, 16}, copied[] = {1024, 1024, 1024, 48, 16};
    static const size_t later[] = {64,  64,  864, 512, 512, 512, 512, 512, 512,
                                   512, 512, 512, 512, 512, 512, 512, 512, 96};
    enum { SMALL_COUNT = sizeof copied / sizeof *copied };
    struct stage *stage = *state;
    ebb_region target = OPEN(.parent = stage->root), source = OPEN(.parent = target);
    struct ebb_survivor list[SMALL_COUNT + 1];
    come_and_go(target, ALL(gone));
    for (unsigned i = 0; i < SMALL_COUNT; i++)
        list[i] = survivor_of(block_of(source, copied[i], 16), EBB_PROMOTE_COPY);
    list[SMALL_COUNT - 1].align = 64; /* a granule of padding is in front of it */
    list[SMALL_COUNT] = survivor_of(block_of(source, HUGE_BYTES, 16), EBB_PROMOTE_COPY);
    run_short(stage);
    assert_refused(ebb_promote(source, target, list, SMALL_COUNT + 1, NULL), EBB_E_POOL_LIMIT);
    recover(stage);
    assert_int_equal(stats_of(target).used.current, 0);
    assert_counts(stage, target, 0, 0);
    come_apart(target, ALL(later));
    ebb_check_pool(stage->pool);
}

/* The same of any sizes: little is left behind what is gone. */
static void windows_are_begun_again_in_vain_at_random(void **state) {
    enum { WINDOW_BYTES = 4096, FEW = 40 };
    struct stage *stage = *state;
    for (unsigned seed = 0; seed < 2000; seed++) {
        uint64_t random = seed;
        ebb_region target = OPEN(.parent = stage->root), source = OPEN(.parent = target);
        size_t bytes[MANY], left = WINDOW_BYTES, rest = 16 + draw(&random, 200);
        unsigned count = 0;
        for (; left > rest; left -= bytes[count++]) {
            size_t drawn = 16 * (1 + (size_t)draw(&random, 20));
            bytes[count] = drawn < left ? drawn : left;
        }
        come_and_go(target, bytes, count);
        fail_to_copy(stage, source, target, FEW, &random);
        for (unsigned i = 0; i < MANY; i++)
            bytes[i] = 1 + draw(&random, 400);
        come_apart(target, bytes, MANY);
        ebb_check_pool(stage->pool);
        assert_int_equal(ebb_region_close(target), 0);
    }
}

/* What was taken in vain is in no peak; nor is a block overlooked for it that comes afterwards, and
 * goes before anybody looks. */
static void peaks_are_those_of_what_was_not_undone(void **state) {
    enum { FEW = 10, SMALL_BYTES = 100, LATER_BYTES = 1000 };
    struct stage *stage = *state;
    for (unsigned taken = 10; taken <= MANY; taken += 10) {
        ebb_region target = OPEN(.parent = stage->root), source = OPEN(.parent = target);
        struct ebb_survivor list[MANY + 1];
        for (unsigned i = 0; i < FEW; i++)
            block_of(target, SMALL_BYTES, 16);
        for (unsigned i = 0; i < taken; i++)
            list[i] = survivor_of(block_of(source, SMALL_BYTES, 16), EBB_PROMOTE_COPY);
        list[taken] = survivor_of(block_of(source, HUGE_BYTES, 16), EBB_PROMOTE_COPY);
        struct ebb_region_stats before = stats_of(target);
        run_short(stage);
        assert_refused(ebb_promote(source, target, list, taken + 1, NULL), EBB_E_POOL_LIMIT);
        recover(stage);
        void *later = ebb_region_alloc(target, LATER_BYTES, 16);
        assert_int_equal(ebb_region_release(target, later), 0);
        struct ebb_region_stats after = stats_of(target);
        assert_int_equal(after.blocks.peak, FEW + 1);
        assert_int_equal(after.requested.peak, FEW * SMALL_BYTES + LATER_BYTES);
        assert_true(after.used.peak >= after.requested.peak);
        assert_int_equal(after.blocks.total, before.blocks.total + 1);
        assert_int_equal(after.requested.total, before.requested.total + LATER_BYTES);
        assert_int_equal(after.blocks.current, before.blocks.current);
        assert_int_equal(after.used.current, before.used.current);
        assert_int_equal(ebb_region_close(target), 0);
    }
}

static void objects_that_are_not_promoted_keep_what_others_released(void **state) {
    struct stage *stage = *state;
    for (unsigned i = 0; i < SIZES_COUNT; i++) {
        ebb_pool_trim(stage->pool, 0);
        ebb_region target = OPEN(.parent = stage->root), source = OPEN(.parent = target);
        struct four four = four_in(target, 100, sizes[i]);
        const struct ebb_own_options options = {.size = sizeof options, .mode = EBB_PROMOTE_COPY};
        void *list[] = {counting(source, SHAPE(10)), counting(source, SHAPE(2000)),
                        counting(source, SHAPE(HUGE_BYTES / 4))};
        hand_in(target, four.newest);
        hand_in(target, four.older);
        run_short(stage);
        assert_refused(ebb_objects_promote(source, target, list, 3, &options, NULL),
                       EBB_E_POOL_LIMIT);
        recover(stage);
        assert_counts(stage, target, 2, 200);
        assert_int_equal(ebb_region_close(target), 0);
    }
}

static void sequences_that_are_not_made_keep_what_others_released(void **state) {
    struct stage *stage = *state;
    for (unsigned i = 0; i < SIZES_COUNT; i++) {
        ebb_pool_trim(stage->pool, 0);
        ebb_region region = OPEN(.parent = stage->root);
        struct four four = four_in(region, 100, sizes[i]);
        struct ebb_tensor *huge = ebb_tensor_view(
            stage->root, counting(stage->root, SHAPE(1)), 1, SIZES(HUGE_BYTES), SIZES(0), 0);
        struct ebb_tensor *list[] = {huge, huge};
        assert_non_null(huge);
        hand_in(region, four.older);
        hand_in(region, four.newest);
        run_short(stage);
        assert_null(ebb_sequences_pack(region, list, 2, NULL));
        assert_int_equal(ebb_last_error(), EBB_E_POOL_LIMIT);
        recover(stage);
        assert_counts(stage, region, 2, 200);
        assert_int_equal(ebb_region_close(region), 0);
    }
}

/* Blocks of the step that were born in the parent leave the parent's counters. */
static void steps_that_fail_keep_what_others_released_above(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    struct ebb_tensor *huge = ebb_tensor_view(stage->root, counting(stage->root, SHAPE(1)), 1,
                                              SIZES((int64_t)1 << 45), SIZES(0), 0);
    for (int i = 0; i < 4; i++) {
        ebb_step step = ebb_step_begin_under(site, stage->root, 1);
        void *blocks[SIZES_COUNT];
        for (unsigned k = 0; k < SIZES_COUNT; k++)
            blocks[k] = block_of(step.region, sizes[k], 16);
        struct ebb_tensor *part = counting(step.region, SHAPE(100)), *list[] = {part, part};
        void *packed = NULL;
        if (i == 3) {
            assert_int_equal(stats_of(stage->root).blocks.current, 2 + SIZES_COUNT);
            for (unsigned k = 0; k < SIZES_COUNT; k++)
                hand_in(step.region, blocks[k]);
            assert_null(ebb_sequences_pack(step.region, (struct ebb_tensor *[]){huge, huge}, 2,
                                           NULL));
            assert_int_equal(stats_of(stage->root).blocks.current, 2);
            ebb_check_pool(stage->pool);
        } else {
            assert_non_null(packed = ebb_sequences_pack(step.region, list, 2, NULL));
            assert_int_equal(ebb_objects_promote(step.region, stage->root, &packed, 1, NULL, NULL),
                             0);
        }
        for (unsigned k = 0; k < SIZES_COUNT && i < 3; k++) {
            struct ebb_survivor survivor = survivor_of(blocks[k], EBB_PROMOTE_AUTO);
            assert_int_equal(ebb_promote(step.region, stage->root, &survivor, 1, NULL), 0);
            assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
        }
        assert_int_equal(ebb_step_end(step), 0);
        assert_true(!packed || ebb_object_end(packed) == 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 2);
    }
    assert_int_equal(site_stats(site).tenured_wrong, SIZES_COUNT);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Copies for a step that a plan has served are gone again: it has served none. */
static void what_a_plan_served_in_vain_is_not_counted(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (int i = 0; i < 8; i++) {
        ebb_step step = ebb_step_begin_under(site, stage->root, 1);
        if (i >= 4) {
            ebb_region source = OPEN(.parent = step.region);
            struct ebb_survivor list[LISTED];
            for (unsigned k = 0; k < LISTED; k++)
                list[k] = survivor_of(block_of(source, k + 1 < LISTED ? 3000 : HUGE_BYTES, 16),
                                      EBB_PROMOTE_COPY);
            run_short(stage);
            assert_refused(ebb_promote(source, step.region, list, LISTED, NULL),
                           EBB_E_POOL_LIMIT);
            recover(stage);
            assert_counts(stage, step.region, 0, 0);
        }
        for (unsigned k = 0; k < 2 * LISTED; k++)
            block_of(step.region, 3000, 16);
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.allocations, 8 * 2 * LISTED);
    assert_true(stats.planned_steps && stats.hits + stats.missed <= stats.allocations);
    assert_true(stats.hit_bytes + stats.missed_bytes <= stats.allocated_bytes);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- with another thread ---- */

enum { BOX = 256 };

struct other {
    ebb_region region;
    _Atomic(void *) box[BOX];
    atomic_bool ending;
};

static void *release_all(void *argument) {
    struct other *other = argument;
    while (!atomic_load(&other->ending))
        for (unsigned i = 0; i < BOX; i++) {
            void *block = atomic_exchange(&other->box[i], NULL);
            if (block && ebb_region_release_remote(other->region, block) != 0)
                return other;
        }
    return NULL;
}

static void fill_box(struct other *other) {
    for (unsigned i = 0; i < BOX; i++)
        if (!atomic_load(&other->box[i]))
            atomic_store(&other->box[i], block_of(other->region, sizes[i % SIZES_COUNT], 16));
}

static void another_thread_may_release_while_promotions_fail(void **state) {
    struct stage *stage = *state;
    static struct other other;
    void *failed = &other;
    pthread_t thread;
    memset(&other, 0, sizeof other);
    other.region = stage->root;
    ebb_region source = OPEN(.parent = stage->root);
    struct ebb_survivor list[LISTED];
    for (unsigned k = 0; k < LISTED; k++)
        list[k] = survivor_of(block_of(source, k + 1 < LISTED ? sizes[k % SIZES_COUNT]
                                                              : 16 * HUGE_BYTES, 16),
                              EBB_PROMOTE_COPY);
    fill_box(&other);
    assert_int_equal(pthread_create(&thread, NULL, release_all, &other), 0);
    uint64_t rounds = number_from("EBB_OPS", 40000) / 100;
    for (uint64_t i = 0; i < 100 || i < rounds; i++) {
        fill_box(&other);
        run_short(stage);
        assert_refused(ebb_promote(source, stage->root, list, LISTED, NULL), EBB_E_POOL_LIMIT);
        recover(stage);
        ebb_check_pool(stage->pool);
    }
    atomic_store(&other.ending, true);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    for (unsigned i = 0; i < BOX; i++)
        if (other.box[i])
            assert_int_equal(ebb_region_release(stage->root, other.box[i]), 0);
    assert_counts(stage, stage->root, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(promotions_that_fail_keep_what_others_released),
        STAGED(padding_of_what_failed_does_not_count),
        STAGED(a_window_that_was_begun_again_is_another_room),
        STAGED(windows_are_begun_again_in_vain_at_random),
        STAGED(peaks_are_those_of_what_was_not_undone),
        STAGED(objects_that_are_not_promoted_keep_what_others_released),
        STAGED(sequences_that_are_not_made_keep_what_others_released),
        STAGED(steps_that_fail_keep_what_others_released_above),
        STAGED(what_a_plan_served_in_vain_is_not_counted),
        STAGED(another_thread_may_release_while_promotions_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
