// SPDX-License-Identifier: Apache-2.0
/*
 * relinked.c - runs that relinked survivors share: whole pages between those that live go back as
 * soon as they are a fair part of the run, or the region pins much; the others are untouched, and
 * what holds count stays.
 */
#include "kit/dlpack.h"

#include <stdlib.h>

enum { BLOCKS = 8, MANY = 100, ROUNDS = 8 };

#define BYTES ((size_t)100000) /* no multiple of pages: neighbours share them */
#define GAP_LEAST ((size_t)65536)
#define GAP_PART 256
#define PINNED_LEAST ((size_t)1 << 20)

struct family {
    ebb_pool *pool;
    ebb_region parent;
    void *blocks[MANY];
    size_t bytes[MANY];
    unsigned count;
};

/* Blocks that lie side by side in a region are relinked to its parent, which closes that region. */
static void settle(struct family *family, struct stage *stage, unsigned count,
                   size_t (*bytes_of)(unsigned)) {
    struct ebb_survivor list[MANY];
    *family = (struct family){.pool = stage->pool, .parent = stage->root, .count = count};
    ebb_region step = OPEN(.parent = stage->root, .name = "step");
    for (unsigned i = 0; i < count; i++) {
        family->bytes[i] = bytes_of(i);
        family->blocks[i] = block_of(step, family->bytes[i], 64);
        pattern_fill(family->blocks[i], family->bytes[i], i);
        list[i] = survivor_of(family->blocks[i], EBB_PROMOTE_RELINK);
    }
    assert_int_equal(ebb_close_keeping(step, stage->root, list, count, NULL, NULL), 0);
    for (unsigned i = 0; i < count; i++)
        assert_ptr_equal(list[i].block, family->blocks[i]);
}

static void assert_well(const struct family *family) {
    for (unsigned i = 0; i < family->count; i++)
        if (family->blocks[i])
            assert_true(pattern_holds(family->blocks[i], family->bytes[i], i));
}

static void let_go(struct family *family, unsigned i) {
    assert_int_equal(ebb_region_release(family->parent, family->blocks[i]), 0);
    assert_int_equal(ebb_check_pool(family->pool), 0);
    family->blocks[i] = NULL;
}

static void release(struct family *family, unsigned i) {
    let_go(family, i);
    assert_well(family);
}

static uint64_t reserved(const struct family *family) {
    return stats_of(family->parent).reserved.current;
}

static size_t alike(unsigned i) {
    (void)i;
    return BYTES;
}

/* Where nobody has a byte. */
static const char *middle_of(const struct family *family, unsigned i) {
    return (const char *)family->blocks[i] + BYTES / 2;
}

static void pages_between_survivors_go_back(void **state) {
    struct family family;
    settle(&family, *state, BLOCKS, alike);
    uint64_t before = reserved(&family), cached = pool_stats_of(family.pool).cached;
    const char *middle = middle_of(&family, 3);
    assert_true(ebb_region_is_open(ebb_region_of(middle)));
    release(&family, 3);
    uint64_t less = before - reserved(&family);
    assert_true(less > BYTES - 2 * PAGE && less <= BYTES && less % PAGE == 0);
    assert_int_equal(pool_stats_of(family.pool).cached, cached + less);
    assert_false(ebb_region_is_open(ebb_region_of(middle)));
    assert_ptr_equal(ebb_region_of(family.blocks[2]).lane, family.parent.lane);
    assert_ptr_equal(ebb_region_of(family.blocks[4]).lane, family.parent.lane);
}

static void they_serve_the_next_step(void **state) {
    struct stage *stage = *state;
    struct family family;
    settle(&family, stage, BLOCKS, alike);
    release(&family, 2);
    ebb_pool_trim(stage->pool, 0);
    release(&family, 5);
    uint64_t held = pool_stats_of(stage->pool).reserved.current;
    ebb_region step = OPEN(.parent = stage->root);
    pattern_fill(block_of(step, BYTES - 3 * PAGE, 64), BYTES - 3 * PAGE, 77);
    assert_int_equal(pool_stats_of(stage->pool).reserved.current, held);
    assert_well(&family);
    assert_int_equal(ebb_region_close(step), 0);
}

static void ends_go_and_all_go(void **state) {
    static const unsigned order[BLOCKS] = {0, 7, 1, 6, 3, 4, 2, 5};
    struct family family;
    settle(&family, *state, BLOCKS, alike);
    for (unsigned i = 0; i < BLOCKS; i++) {
        uint64_t before = reserved(&family);
        release(&family, order[i]);
        assert_true(before - reserved(&family) > BYTES - 2 * PAGE);
    }
    assert_int_equal(stats_of(family.parent).pinned, 0);
    assert_int_equal(reserved(&family), 0);
}

static size_t little(unsigned i) {
    (void)i;
    return 5000;
}

/* A gap is what several of them left together. */
static void small_ones_go_with_their_neighbours(void **state) {
    struct family family;
    settle(&family, *state, 64, little);
    uint64_t before = reserved(&family);
    release(&family, 30);
    for (unsigned i = 10; i < 22; i++)
        release(&family, i);
    assert_int_equal(reserved(&family), before); /* 60,000 bytes in a row are not enough */
    for (unsigned i = 22; i < 26; i++)
        release(&family, i);
    assert_true(before - reserved(&family) >= GAP_LEAST);
}

static size_t ten_pages(unsigned i) {
    (void)i;
    return 10 * PAGE - 64;
}

/* Every other one goes: no gap is large, but what they pin together is, from a MiB on. */
static void many_small_gaps_go_once_they_pin_much(void **state) {
    struct family family;
    settle(&family, *state, MANY, ten_pages);
    for (unsigned i = 1; i < MANY; i += 2) {
        uint64_t before = reserved(&family);
        bool much = stats_of(family.parent).pinned + ten_pages(i) >= PINNED_LEAST;
        release(&family, i);
        assert_int_equal(reserved(&family) < before, much);
        assert_true(stats_of(family.parent).pinned < PINNED_LEAST + MANY * PAGE);
    }
    for (unsigned i = 0; i < MANY; i += 2) /* with those beside them that stayed */
        release(&family, i);
    assert_int_equal(reserved(&family), 0);
}

static unsigned seed;

static unsigned number_below(unsigned limit) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % limit;
}

static size_t any(unsigned i) {
    (void)i;
    return number_below(8) ? 1100 + number_below(30000) : 100000 + number_below(300000);
}

/* No more is pinned than a gap that is too small on both sides of each, and parts of pages. */
static void assert_little_is_pinned(const struct family *family, size_t run_most) {
    unsigned live = 0;
    for (unsigned i = 0; i < family->count; i++)
        live += family->blocks[i] != NULL;
    size_t gap = run_most / GAP_PART > GAP_LEAST ? run_most / GAP_PART : GAP_LEAST;
    assert_true(stats_of(family->parent).pinned <= (live + 1) * (gap + 2 * PAGE));
}

static void in_any_order(void **state) {
    struct stage *stage = *state;
    seed = (unsigned)number_from("EBB_SEED", 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct family family;
        settle(&family, stage, 1 + number_below(MANY), any);
        size_t run_most = reserved(&family);
        for (unsigned left = family.count; left > 0; left--) {
            unsigned i = number_below(family.count);
            while (!family.blocks[i])
                i = (i + 1) % family.count;
            let_go(&family, i);
            assert_little_is_pinned(&family, run_most);
            if (left % 16 == 0)
                assert_well(&family);
        }
        assert_int_equal(reserved(&family), 0);
    }
}

/* Survivors that have a run of their own again go on with it, those that share one are copied. */
static void what_is_left_alone_can_be_relinked_again(void **state) {
    struct stage *stage = *state;
    struct family family;
    ebb_region middle = OPEN(.parent = stage->root, .name = "middle");
    struct stage inner = {stage->pool, middle};
    settle(&family, &inner, 5, alike);
    release(&family, 1);
    release(&family, 3); /* each of the three others is alone now */
    struct ebb_survivor list[3];
    for (unsigned i = 0; i < 3; i++)
        list[i] = survivor_of(family.blocks[2 * i], EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_close_keeping(middle, stage->root, list, 3, NULL, NULL), 0);
    family.parent = stage->root;
    for (unsigned i = 0; i < 3; i++)
        assert_ptr_equal(list[i].block, family.blocks[2 * i]);
    assert_well(&family);
}

/* Bytes that are needed outside say in which run they are: that one is not cut. */
static void runs_with_exports_stay_whole(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.parent = stage->root, .name = "step");
    void *first = block_of(step, BYTES, 64);
    struct ebb_tensor *tensor = tensor_of_bytes(step, BYTES);
    void *last = block_of(step, BYTES, 64);
    DLManagedTensor *managed = share(tensor);
    assert_int_equal(ebb_object_end(tensor), 0);
    struct ebb_survivor list[] = {survivor_of(first, EBB_PROMOTE_RELINK),
                                  survivor_of(last, EBB_PROMOTE_RELINK)};
    assert_int_equal(ebb_close_keeping(step, stage->root, list, 2, NULL, NULL), 0);
    uint64_t before = stats_of(stage->root).reserved.current;
    assert_int_equal(ebb_region_release(stage->root, first), 0);
    assert_int_equal(stats_of(stage->root).reserved.current, before);
    assert_true(export_holds(managed));
    give_back(managed);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    assert_int_equal(ebb_region_release(stage->root, last), 0);
    assert_int_equal(stats_of(stage->root).reserved.current, 0);
}

/* Nobody counts there, nor exports: what was given back goes as more comes, and is gone before it
 * counts as pinned by that. */
static void bytes_beside_survivors_go_as_more_come(void **state) {
    enum { TURNS = 200 };
    for (unsigned resets = 0; resets < 2; resets++) {
        ebb_pool *pool = POOL(.name = "heirs", .limit_reserved_bytes = 32 * MIB);
        ebb_region heir = OPEN(.pool = pool);
        for (unsigned turn = 0; turn < TURNS; turn++) {
            struct ebb_promoted cost = {0};
            ebb_region step = OPEN(.parent = heir, .hint_bytes = 2 * MIB);
            DLManagedTensor *managed = share(tensor_of_bytes(step, MIB));
            struct ebb_survivor survivor =
                survivor_of(block_of(step, 5000, 64), EBB_PROMOTE_RELINK);
            if (resets) {
                assert_int_equal(ebb_promote(step, heir, &survivor, 1, NULL), 0);
                assert_int_equal(ebb_region_reset(step, 0), 0);
                assert_int_equal(ebb_region_close(step), 0);
            } else {
                assert_int_equal(ebb_close_keeping(step, heir, &survivor, 1, &cost, NULL), 0);
                assert_true(cost.pinned_bytes >= MIB);
            }
            assert_int_equal(pool_stats_of(pool).held, 0); /* they share a page, so a run */
            assert_true(export_holds(managed));
            give_back(managed);
            assert_int_equal(ebb_region_release(heir, survivor.block), 0);
            assert_true(pool_stats_of(pool).owned <= 8 * MIB);
        }
        assert_int_equal(ebb_region_close(heir), 0);
        pool_end(pool);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(pages_between_survivors_go_back),
        STAGED(they_serve_the_next_step),
        STAGED(ends_go_and_all_go),
        STAGED(small_ones_go_with_their_neighbours),
        STAGED(many_small_gaps_go_once_they_pin_much),
        STAGED(in_any_order),
        STAGED(what_is_left_alone_can_be_relinked_again),
        STAGED(runs_with_exports_stay_whole),
        STAGED(bytes_beside_survivors_go_as_more_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
