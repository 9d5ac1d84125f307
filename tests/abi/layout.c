// SPDX-License-Identifier: Apache-2.0
/*
 * layout.c - sizes and offsets that programs have compiled into them (x86-64 and every LP64).
 *
 * The inline allocation reads and writes struct ebb_lane directly, so its offsets are as much a
 * promise as the names of the functions. A change here is a change of the soname. Structs that
 * begin with their size may grow at the end, where the library can tell which one it was given;
 * what must not move is what they hold now.
 */
#include "kit/test.h"

#define PIN(claim) _Static_assert(claim, #claim)

PIN(sizeof(void *) == 8);
PIN(sizeof(size_t) == 8);
PIN(sizeof(bool) == 1);

PIN(sizeof(struct ebb_lane) == 48);
PIN(offsetof(struct ebb_lane, cursor) == 0);
PIN(offsetof(struct ebb_lane, limit) == 8);
PIN(offsetof(struct ebb_lane, generation) == 16);
PIN(offsetof(struct ebb_lane, start_map) == 24);
PIN(offsetof(struct ebb_lane, tally) == 32);
PIN(offsetof(struct ebb_lane, due) == 40);

PIN(sizeof(struct ebb_due) == 16);
PIN(offsetof(struct ebb_due, addr) == 0);
PIN(offsetof(struct ebb_due, request) == 8);

PIN(sizeof(ebb_region) == 16);
PIN(offsetof(ebb_region, lane) == 0);
PIN(offsetof(ebb_region, generation) == 8);

PIN(sizeof(ebb_mark) == 16);
PIN(offsetof(ebb_mark, place) == 0);
PIN(offsetof(ebb_mark, serial) == 8);

PIN(sizeof(struct ebb_pool_options) == 88);
PIN(offsetof(struct ebb_pool_options, size) == 0);
PIN(offsetof(struct ebb_pool_options, name) == 8);
PIN(offsetof(struct ebb_pool_options, limit_used_bytes) == 16);
PIN(offsetof(struct ebb_pool_options, limit_reserved_bytes) == 24);
PIN(offsetof(struct ebb_pool_options, keep_margin_percent) == 32);
PIN(offsetof(struct ebb_pool_options, keep_all) == 36);
PIN(offsetof(struct ebb_pool_options, kind) == 40);
PIN(offsetof(struct ebb_pool_options, device) == 44);
PIN(offsetof(struct ebb_pool_options, slot_bytes) == 48);
PIN(offsetof(struct ebb_pool_options, slots) == 56);
PIN(offsetof(struct ebb_pool_options, wait_ns) == 64);
PIN(offsetof(struct ebb_pool_options, go_on) == 72);
PIN(offsetof(struct ebb_pool_options, go_on_context) == 80);

PIN(sizeof(struct ebb_region_options) == 64);
PIN(offsetof(struct ebb_region_options, size) == 0);
PIN(offsetof(struct ebb_region_options, name) == 8);
PIN(offsetof(struct ebb_region_options, pool) == 16);
PIN(offsetof(struct ebb_region_options, parent) == 24);
PIN(offsetof(struct ebb_region_options, hint_bytes) == 40);
PIN(offsetof(struct ebb_region_options, limit_bytes) == 48);
PIN(offsetof(struct ebb_region_options, sealed) == 56);
PIN(offsetof(struct ebb_region_options, measure) == 57);
PIN(offsetof(struct ebb_region_options, sites) == 58);

PIN(sizeof(struct ebb_meter) == 24);
PIN(offsetof(struct ebb_meter, current) == 0);
PIN(offsetof(struct ebb_meter, peak) == 8);
PIN(offsetof(struct ebb_meter, total) == 16);

PIN(sizeof(struct ebb_parcel) == 32);
PIN(offsetof(struct ebb_parcel, pool) == 0);
PIN(offsetof(struct ebb_parcel, slot) == 8);
PIN(offsetof(struct ebb_parcel, generation) == 12);
PIN(offsetof(struct ebb_parcel, root) == 16);
PIN(offsetof(struct ebb_parcel, bytes) == 24);
PIN(sizeof(struct ebb_pool_stats) == 176);
PIN(offsetof(struct ebb_pool_stats, blocks) == 8);
PIN(offsetof(struct ebb_pool_stats, requested) == 32);
PIN(offsetof(struct ebb_pool_stats, used) == 56);
PIN(offsetof(struct ebb_pool_stats, reserved) == 80);
PIN(offsetof(struct ebb_pool_stats, owned) == 104);
PIN(offsetof(struct ebb_pool_stats, cached) == 112);
PIN(offsetof(struct ebb_pool_stats, waste) == 120);
PIN(offsetof(struct ebb_pool_stats, pinned) == 128);
PIN(offsetof(struct ebb_pool_stats, recent_peak) == 136);
PIN(offsetof(struct ebb_pool_stats, given_back) == 144);
PIN(offsetof(struct ebb_pool_stats, open_regions) == 152);
PIN(offsetof(struct ebb_pool_stats, opened_regions) == 160);
PIN(offsetof(struct ebb_pool_stats, held) == 168);

PIN(sizeof(struct ebb_region_stats) == 168);
PIN(offsetof(struct ebb_region_stats, blocks) == 8);
PIN(offsetof(struct ebb_region_stats, requested) == 32);
PIN(offsetof(struct ebb_region_stats, used) == 56);
PIN(offsetof(struct ebb_region_stats, reserved) == 80);
PIN(offsetof(struct ebb_region_stats, waste) == 104);
PIN(offsetof(struct ebb_region_stats, pinned) == 112);
PIN(offsetof(struct ebb_region_stats, small_blocks) == 120);
PIN(offsetof(struct ebb_region_stats, large_blocks) == 128);
PIN(offsetof(struct ebb_region_stats, runs) == 136);
PIN(offsetof(struct ebb_region_stats, children) == 144);
PIN(offsetof(struct ebb_region_stats, limit) == 152);
PIN(offsetof(struct ebb_region_stats, subtree_used) == 160);

PIN(sizeof(struct ebb_survivor) == 32);
PIN(offsetof(struct ebb_survivor, block) == 0);
PIN(offsetof(struct ebb_survivor, align) == 8);
PIN(offsetof(struct ebb_survivor, mode) == 16);
PIN(offsetof(struct ebb_survivor, pin_percent) == 20);
PIN(offsetof(struct ebb_survivor, scratch) == 24);

PIN(sizeof(struct ebb_promoted) == 40);
PIN(offsetof(struct ebb_promoted, copied_blocks) == 0);
PIN(offsetof(struct ebb_promoted, copied_bytes) == 8);
PIN(offsetof(struct ebb_promoted, relinked_blocks) == 16);
PIN(offsetof(struct ebb_promoted, relinked_bytes) == 24);
PIN(offsetof(struct ebb_promoted, pinned_bytes) == 32);

/* Codes and modes are compiled into programs as numbers. */
PIN(EBB_OK == 0 && EBB_E_ARGUMENT == -1 && EBB_E_ALIGNMENT == -2 && EBB_E_SIZE == -3);
PIN(EBB_E_MEMORY == -4 && EBB_E_POOL_LIMIT == -5 && EBB_E_REGION_LIMIT == -6);
PIN(EBB_E_STALE == -7 && EBB_E_SEALED == -8 && EBB_E_FOREIGN == -9 && EBB_E_INTERIOR == -10);
PIN(EBB_E_RELEASED == -11 && EBB_E_MARK == -12 && EBB_E_NO_ROOM == -13);
PIN(EBB_E_NOT_ANCESTOR == -14 && EBB_E_MEASURING == -15 && EBB_E_BUSY == -16);
PIN(EBB_E_LIVE_BLOCKS == -17 && EBB_E_CHILD_OPEN == -18 && EBB_E_DUPLICATE == -19);
PIN(EBB_PROMOTE_AUTO == 0 && EBB_PROMOTE_COPY == 1 && EBB_PROMOTE_RELINK == 2);
PIN(EBB_REPORT_TEXT == 0 && EBB_REPORT_JSON == 1);
PIN(EBB_SMALL_MAX_BYTES == 1024 && EBB_SMALL_MAX_ALIGN == 64 && EBB_GRANULE == 16);
PIN(EBB_ALIGN_MAX == 2097152);

/* The inline function's work, done by hand with the numbers above, as a program that was compiled
 * long ago does it. NULL if the lane is shut. */
static void *bump_by_hand(ebb_region region, uint16_t bytes) {
    unsigned char *lane = (unsigned char *)region.lane;
    uintptr_t cursor, limit, start_map;
    uint64_t generation, tally;
    memcpy(&cursor, lane + 0, 8);
    memcpy(&limit, lane + 8, 8);
    memcpy(&generation, lane + 16, 8);
    memcpy(&start_map, lane + 24, 8);
    memcpy(&tally, lane + 32, 8);
    uintptr_t end = cursor + ((bytes + 15u) & ~(uintptr_t)15);
    if (end > limit || generation != region.generation)
        return NULL;
    tally += (uint64_t)bytes << 16 | 1;
    memcpy(lane + 0, &end, 8);
    memcpy(lane + 32, &tally, 8);
    *(uint16_t *)(start_map + cursor / 8) = (uint16_t)(bytes + 1);
    return (void *)cursor;
}

static void old_program_allocates_as_this_one_does(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 16, 16); /* a window is open now, unless checks keep it shut */
    void *block = bump_by_hand(stage->root, 100);
    if (!block) {
        assert_int_equal(stage->root.lane->limit, 0); /* it calls ebb_region_alloc_slow() then */
        return;
    }
    pattern_fill(block, 100, 1);
    assert_int_equal(ebb_region_block_bytes(stage->root, block), 100);
    assert_int_equal(stats_of(stage->root).blocks.current, 2);
    assert_int_equal(stats_of(stage->root).requested.current, 116);
    assert_int_equal(stats_of(stage->root).used.current, 16 + 112);
    assert_int_equal(ebb_region_release(stage->root, block), 0);
}

static void sizes_of_structs_are_as_promised(void **state) {
    (void)state; /* this file has compiled */
    assert_int_equal(sizeof(struct ebb_lane), 48);
}

/* A struct from before its last fields were added, or none at all, is refused by its size. */
static void structs_without_their_size_are_refused(void **state) {
    struct stage *stage = *state;
    struct ebb_region_stats region = {.size = 0};
    struct ebb_pool_stats pool = {.size = 0};
    assert_refused(ebb_region_read_stats(stage->root, &region), EBB_E_ARGUMENT);
    assert_refused(ebb_pool_read_stats(stage->pool, &pool), EBB_E_ARGUMENT);
    assert_false(ebb_region_is_open(ebb_region_open(&(struct ebb_region_options){.size = 0})));
    assert_int_equal(ebb_last_error(), EBB_E_ARGUMENT);
    assert_no_block(ebb_pool_create(&(struct ebb_pool_options){.size = 0}), EBB_E_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_structs_are_as_promised),
        STAGED(old_program_allocates_as_this_one_does),
        STAGED(structs_without_their_size_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
