// SPDX-License-Identifier: Apache-2.0
/*
 * keeper.c - what a root gives back at the ends of steps below it: pages around which blocks stay.
 */
#include "kit/test.h"

enum { COUNT = 24, BYTES = 100 * 1024, PINNED_BYTES = 3000 };

struct keeper {
    ebb_pool *pool;
    ebb_region root;
    void *blocks[COUNT];
    void *pinned[COUNT]; /* between and behind them; NULL: none */
};

static void end_steps(const struct keeper *keeper, unsigned count) {
    while (count--) {
        ebb_region step = OPEN(.pool = keeper->pool, .parent = keeper->root);
        block_of(step, 5000, 64);
        assert_int_equal(ebb_region_close(step), 0);
        assert_int_equal(ebb_check_pool(keeper->pool), 0);
    }
}

static size_t reserved(const struct keeper *keeper) {
    return stats_of(keeper->root).reserved.current;
}

/* A root with blocks that outlived a step; those of `pins` have a small one behind them. */
static struct keeper open_keeper(size_t hint_bytes, uint32_t pins) {
    struct keeper keeper = {.pool = POOL(.name = "keeper")};
    keeper.root = OPEN(.pool = keeper.pool, .hint_bytes = hint_bytes);
    end_steps(&keeper, 1);
    for (unsigned i = 0; i < COUNT; i++) {
        keeper.blocks[i] = block_of(keeper.root, BYTES, 64);
        if (pins >> i & 1)
            keeper.pinned[i] = block_of(keeper.root, PINNED_BYTES, 64);
    }
    return keeper;
}

static void release_all(struct keeper *keeper) {
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(ebb_region_release(keeper->root, keeper->blocks[i]), 0);
}

static void end_keeper(struct keeper *keeper) {
    for (unsigned i = 0; i < COUNT; i++)
        if (keeper->pinned[i]) {
            assert_int_equal(ebb_region_block_bytes(keeper->root, keeper->pinned[i]),
                             PINNED_BYTES);
            assert_int_equal(ebb_region_of(keeper->pinned[i]).generation, keeper->root.generation);
            assert_int_equal(ebb_region_release(keeper->root, keeper->pinned[i]), 0);
            ebb_check_pool(keeper->pool);
        }
    assert_int_equal(ebb_region_close(keeper->root), 0);
    pool_end(keeper->pool);
}

/* One block at the start, at the end, in between, at both, and nothing at all. */
static void what_is_free_around_a_block_goes_back(void **state) {
    static const uint32_t pins[] = {1, 1u << (COUNT - 1), 1 << 2, 1u << (COUNT - 1) | 1, 0};
    (void)state;
    for (unsigned i = 0; i < sizeof pins / sizeof *pins; i++) {
        struct keeper keeper = open_keeper(0, pins[i]);
        assert_true(reserved(&keeper) >= COUNT * BYTES);
        release_all(&keeper);
        end_steps(&keeper, 8);
        assert_true(reserved(&keeper) < COUNT * BYTES / 4);
        for (unsigned j = 0; j < COUNT; j++)
            keeper.blocks[j] = block_of(keeper.root, BYTES, 64); /* as before */
        ebb_check_pool(keeper.pool);
        release_all(&keeper);
        end_steps(&keeper, 40);
        assert_true(reserved(&keeper) < COUNT * BYTES / 4);
        end_keeper(&keeper);
    }
}

static void pages_that_were_given_back_are_nobodys(void **state) {
    (void)state;
    struct keeper keeper = open_keeper(0, 1u << (COUNT - 1));
    release_all(&keeper);
    assert_int_equal(ebb_region_of(keeper.blocks[0]).generation, keeper.root.generation);
    end_steps(&keeper, 8);
    assert_false(ebb_region_is_open(ebb_region_of(keeper.blocks[COUNT / 2])));
    assert_refused(ebb_region_release(keeper.root, keeper.blocks[COUNT / 2]), EBB_E_FOREIGN);
    end_keeper(&keeper);
}

static void less_than_half_stays(void **state) {
    (void)state;
    struct keeper keeper = open_keeper(0, 0);
    for (unsigned i = COUNT / 4; i < COUNT / 2; i++)
        assert_int_equal(ebb_region_release(keeper.root, keeper.blocks[i]), 0);
    size_t before = reserved(&keeper);
    end_steps(&keeper, 20);
    assert_int_equal(reserved(&keeper), before);
    end_keeper(&keeper);
}

/* One block comes and goes in a root of the pool; what goes with it in many steps. */
static size_t given_by_root(ebb_pool *pool, bool measure, size_t bytes) {
    struct keeper keeper = {.pool = pool};
    keeper.root = OPEN(.pool = pool, .measure = measure);
    void *small = ebb_region_alloc(keeper.root, PINNED_BYTES, 64);
    void *block = ebb_region_alloc(keeper.root, bytes, 64);
    assert_true(small && block);
    size_t before = reserved(&keeper);
    assert_int_equal(ebb_region_release(keeper.root, block), 0);
    for (unsigned i = 0; i < 20; i++) {
        ebb_region step = OPEN(.parent = keeper.root);
        assert_non_null(ebb_region_alloc(step, PINNED_BYTES, 64));
        assert_int_equal(ebb_region_close(step), 0);
    }
    size_t after = reserved(&keeper);
    assert_int_equal(ebb_region_close(keeper.root), 0);
    return before - after;
}

static void little_stays(void **state) {
    (void)state;
    ebb_pool *pool = POOL(.name = "keeper");
    assert_int_equal(given_by_root(pool, false, 240 * KIB), 0);
    assert_true(given_by_root(pool, false, 300 * KIB) >= 256 * KIB);
    pool_end(pool);
}

static void shared_pages_and_those_of_a_measuring_root_stay(void **state) {
    (void)state;
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 16 * MIB);
    assert_int_equal(given_by_root(pool, false, 4 * MIB), 0);
    pool_end(pool);
    assert_int_equal(given_by_root(NULL, true, 4 * MIB), 0);
}

/* Somebody puts a block in whenever it is looked at; what is behind that is as idle as ever. */
static void what_is_used_between_steps_stays(void **state) {
    (void)state;
    struct keeper keeper = open_keeper(0, 1);
    release_all(&keeper);
    for (unsigned i = 0; i < 8; i++) {
        void *block = block_of(keeper.root, COUNT / 3 * BYTES, 64);
        end_steps(&keeper, 1);
        assert_int_equal(ebb_region_release(keeper.root, block), 0);
    }
    size_t after = reserved(&keeper);
    uint64_t total = stats_of(keeper.root).reserved.total;
    assert_in_range(after, COUNT / 3 * BYTES, COUNT / 2 * BYTES);
    for (unsigned i = 0; i < 40; i++) {
        void *block = block_of(keeper.root, COUNT / 3 * BYTES, 64);
        end_steps(&keeper, i % 3);
        assert_int_equal(ebb_region_release(keeper.root, block), 0);
    }
    assert_int_equal(reserved(&keeper), after);
    assert_int_equal(stats_of(keeper.root).reserved.total, total);
    end_keeper(&keeper);
}

/* What was the largest piece once keeps its flag, which says nothing of the one that is now. */
static void what_joins_another_piece_does_not_count(void **state) {
    (void)state;
    struct keeper keeper = open_keeper(0, 1u << 9);
    for (unsigned i = 10; i < COUNT; i++)
        assert_int_equal(ebb_region_release(keeper.root, keeper.blocks[i]), 0);
    end_steps(&keeper, 4);
    void *much = block_of(keeper.root, 10 * BYTES, 64);
    void *pinned = block_of(keeper.root, PINNED_BYTES, 64);
    void *next = block_of(keeper.root, BYTES / 2, 64);
    assert_int_equal(ebb_region_release(keeper.root, keeper.pinned[9]), 0);
    keeper.pinned[9] = NULL;
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(ebb_region_release(keeper.root, keeper.blocks[i]), 0);
    assert_int_equal(ebb_region_release(keeper.root, much), 0);
    end_steps(&keeper, 4);
    assert_true(reserved(&keeper) >= COUNT * BYTES);
    assert_int_equal(ebb_region_release(keeper.root, next), 0); /* what is behind it has a flag */
    end_steps(&keeper, 4);
    assert_true(reserved(&keeper) < COUNT * BYTES / 2);
    assert_int_equal(ebb_region_release(keeper.root, pinned), 0);
    end_keeper(&keeper);
}

/* Survivors of each step at the start of what an exceptional one left, gone with the next. */
static void what_small_survivors_leave_free_goes_back(void **state) {
    (void)state;
    struct keeper keeper = open_keeper(0, 1);
    release_all(&keeper);
    void *survivor = NULL;
    for (unsigned i = 0; i < 12; i++) {
        ebb_region step = OPEN(.pool = keeper.pool, .parent = keeper.root);
        void *next = block_of(step, 20000 + i * 64, 64);
        block_of(step, BYTES, 64);
        if (survivor)
            assert_int_equal(ebb_region_release(keeper.root, survivor), 0);
        struct ebb_survivor list[] = {{.block = next, .mode = EBB_PROMOTE_COPY}};
        assert_int_equal(ebb_promote(step, keeper.root, list, 1, NULL), 0);
        survivor = list[0].block;
        assert_int_equal(ebb_region_close(step), 0);
        ebb_check_pool(keeper.pool);
    }
    assert_true(reserved(&keeper) < COUNT * BYTES / 4);
    assert_int_equal(ebb_region_release(keeper.root, survivor), 0);
    end_keeper(&keeper);
}

/* Nothing else happens in the root, which so far waits for another block of its size. */
static void the_block_released_last_goes_back(void **state) {
    (void)state;
    struct keeper keeper = {.pool = POOL(.name = "keeper")};
    keeper.root = OPEN(.pool = keeper.pool);
    end_steps(&keeper, 1);
    void *small = block_of(keeper.root, PINNED_BYTES, 64);
    void *large = block_of(keeper.root, COUNT * BYTES, 64);
    assert_int_equal(ebb_region_release(keeper.root, large), 0);
    end_steps(&keeper, 8);
    assert_true(reserved(&keeper) < COUNT * BYTES / 4);
    assert_int_equal(ebb_region_release(keeper.root, small), 0);
    end_keeper(&keeper);
}

/* Steps put something in and release it before they end: nobody who looks then sees it. */
static void what_steps_use_stays(void **state) {
    static const size_t aligns[] = {64, PAGE};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct keeper keeper = open_keeper(0, 1);
        release_all(&keeper);
        uint64_t total = stats_of(keeper.root).reserved.total;
        for (unsigned j = 0; j < 40; j++) {
            ebb_region step = OPEN(.pool = keeper.pool, .parent = keeper.root);
            void *large = block_of(keeper.root, COUNT / 2 * BYTES, aligns[i]);
            void *small = block_of(keeper.root, PINNED_BYTES, 64);
            assert_int_equal(ebb_region_release(keeper.root, large), 0);
            assert_int_equal(ebb_region_release(keeper.root, small), 0);
            block_of(step, PINNED_BYTES, 64);
            assert_int_equal(ebb_region_close(step), 0);
        }
        assert_int_equal(stats_of(keeper.root).reserved.total, total);
        end_steps(&keeper, 8);
        assert_true(reserved(&keeper) < COUNT * BYTES / 4);
        end_keeper(&keeper);
    }
}

static void what_was_asked_for_stays(void **state) {
    (void)state;
    struct keeper keeper = open_keeper(5 * MIB, 1);
    release_all(&keeper);
    end_steps(&keeper, 20);
    assert_true(reserved(&keeper) >= 5 * MIB);
    end_keeper(&keeper);
}

/* A step of eight blocks; the addresses are those of the last step's. */
static void take_planned_step(ebb_site *site, void **blocks) {
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < 8; i++) {
        void *before = blocks[i];
        blocks[i] = block_of(step.region, BYTES, 64);
        assert_true(!before || blocks[i] == before);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

/* A step without parent is a root to steps below it. One that has outgrown its plan has free
 * memory in the arena, which is whole all the same when the next step comes. */
static void the_arena_of_a_plan_that_was_outgrown_stays(void **state) {
    void *blocks[8] = {NULL};
    (void)state;
    struct keeper keeper = {.pool = POOL(.name = "keeper")};
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = keeper.pool));
    for (unsigned i = 0; i < 4; i++)
        take_planned_step(site, blocks);
    ebb_step step = ebb_step_begin(site, 0);
    keeper.root = step.region;
    assert_true(block_of(step.region, BYTES, 64) == blocks[0]);
    void *grown = block_of(step.region, 2 * BYTES, 64);
    assert_true((uintptr_t)grown - (uintptr_t)blocks[0] < 8 * BYTES);
    assert_int_equal(ebb_region_release(step.region, grown), 0);
    size_t before = reserved(&keeper);
    assert_true(before < 16 * BYTES); /* the half is free, and much */
    end_steps(&keeper, 40);
    assert_int_equal(reserved(&keeper), before);
    assert_int_equal(ebb_step_end(step), 0);
    take_planned_step(site, blocks);
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_int_equal(stats.takeovers, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(keeper.pool);
}

/* Blocks of all sizes come and go in the root and in steps, and pages with them. */
static void at_random_every_block_stays_as_it_was(void **state) {
    enum { SLOTS = 200, TURNS = 6000 };
    static void *blocks[SLOTS];
    static size_t sizes[SLOTS];
    uint64_t random = 1;
    (void)state;
    struct keeper keeper = {.pool = POOL(.name = "keeper")};
    keeper.root = OPEN(.pool = keeper.pool);
    size_t most = 0, least = SIZE_MAX;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned slot = (unsigned)(random >> 50) % SLOTS, wave = turn / 500 % 2 ? 40 : 4;
        if (blocks[slot]) {
            assert_true(pattern_holds(blocks[slot], sizes[slot], slot));
            assert_int_equal(ebb_region_release(keeper.root, blocks[slot]), 0);
            blocks[slot] = NULL;
        } else if ((random >> 33) % 64 < wave) {
            sizes[slot] = (size_t)(random >> 24) % ((random >> 40) % 3 ? 4000 : 60000);
            blocks[slot] = ebb_region_alloc(keeper.root, sizes[slot], 64);
            assert_non_null(blocks[slot]);
            pattern_fill(blocks[slot], sizes[slot], slot);
        }
        if (turn % 10 == 0)
            end_steps(&keeper, 1);
        most = reserved(&keeper) > most ? reserved(&keeper) : most;
        least = turn > 1000 && reserved(&keeper) < least ? reserved(&keeper) : least;
    }
    assert_true(least < most / 2);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        if (blocks[slot]) {
            assert_true(pattern_holds(blocks[slot], sizes[slot], slot));
            blocks[slot] = NULL;
        }
    end_keeper(&keeper);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_free_around_a_block_goes_back),
        cmocka_unit_test(pages_that_were_given_back_are_nobodys),
        cmocka_unit_test(less_than_half_stays),
        cmocka_unit_test(little_stays),
        cmocka_unit_test(shared_pages_and_those_of_a_measuring_root_stay),
        cmocka_unit_test(what_is_used_between_steps_stays),
        cmocka_unit_test(what_joins_another_piece_does_not_count),
        cmocka_unit_test(what_small_survivors_leave_free_goes_back),
        cmocka_unit_test(the_block_released_last_goes_back),
        cmocka_unit_test(what_steps_use_stays),
        cmocka_unit_test(what_was_asked_for_stays),
        cmocka_unit_test(the_arena_of_a_plan_that_was_outgrown_stays),
        cmocka_unit_test(at_random_every_block_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
