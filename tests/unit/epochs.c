// SPDX-License-Identifier: Apache-2.0
/*
 * epochs.c - what tells a region's blocks from those that lay in its slot before: an epoch that
 * grows with every open and reset, and that may wrap without bringing anything back to life.
 */
#include "kit/test.h"

#include "region/region.h"

#define EPOCHS ((uint32_t)1 << PIECE_EPOCH_BITS)

static struct region *inside(ebb_region region) {
    return (struct region *)region.lane;
}

static void every_reset_and_open_begins_an_epoch(void **state) {
    struct stage *stage = *state;
    uint64_t owner = inside(stage->root)->owner;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
        assert_true(inside(stage->root)->owner != owner);
        owner = inside(stage->root)->owner;
    }
    ebb_region child = OPEN(.parent = stage->root);
    struct region *slot = inside(child);
    owner = slot->owner;
    ebb_region_close(child);
    child = OPEN(.parent = stage->root);
    assert_ptr_equal(inside(child), slot); /* the slot that was closed last */
    assert_true(slot->owner != owner);
}

/* Resets the region until it is in the same epoch again, the long way round. */
static void go_round(ebb_region region) {
    struct region *slot = inside(region);
    uint32_t epoch = slot->epoch;
    slot->epoch = EPOCHS - 1;
    assert_int_equal(ebb_region_reset(region, EBB_KEEP_ALL), 0);
    assert_int_equal(slot->epoch, 0);
    slot->epoch = (epoch + EPOCHS - 1) % EPOCHS;
    assert_int_equal(ebb_region_reset(region, EBB_KEEP_ALL), 0);
    assert_int_equal(slot->epoch, epoch);
}

static void blocks_of_the_same_epoch_a_round_before_are_not_live(void **state) {
    struct stage *stage = *state;
    for (int round = 0; round < 3; round++) {
        void *blocks[6];
        for (size_t i = 0; i < 6; i++)
            blocks[i] = block_of(stage->root, i % 2 ? 100 : 3000 + i * 500, 64);
        uint64_t owner = inside(stage->root)->owner;
        go_round(stage->root);
        assert_true(inside(stage->root)->owner == owner);
        for (size_t i = 0; i < 6; i++) {
            assert_true(ebb_region_release(stage->root, blocks[i]) < 0);
            assert_int_equal(ebb_region_block_bytes(stage->root, blocks[i]), 0);
        }
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
        ebb_check_pool(stage->pool);
    }
}

/* Their entries are not the slot's any more. */
static void blocks_of_which_other_slots_have_the_entries_are_not_live_either(void **state) {
    struct stage *stage = *state;
    enum { BLOCKS = 4000 };
    static void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = ebb_region_alloc(stage->root, 2000, 64);
    uint64_t owner = inside(stage->root)->owner;
    assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
    go_round(stage->root);
    inside(stage->root)->epoch -= 2;
    assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
    assert_true(inside(stage->root)->owner == owner);
    for (size_t i = 0; i < BLOCKS; i++) {
        assert_int_equal(ebb_region_block_bytes(stage->root, blocks[i]), 0);
        assert_true(ebb_region_release(stage->root, blocks[i]) < 0);
    }
    ebb_check_pool(stage->pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(every_reset_and_open_begins_an_epoch),
        STAGED(blocks_of_the_same_epoch_a_round_before_are_not_live),
        STAGED(blocks_of_which_other_slots_have_the_entries_are_not_live_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
