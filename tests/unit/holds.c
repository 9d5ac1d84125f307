// SPDX-License-Identifier: Apache-2.0
/*
 * holds.c - exports that outlive their region: close, reset, rewind, release, promotion, pools.
 *
 * After each act the laws of the pool are walked; teardown demands that no page is left.
 */
#include "base/os.h"
#include "kit/dlpack.h"
#include "pool/pool.h"

#include <stdlib.h>

static uint64_t held(const struct stage *stage) {
    ebb_check_pool(stage->pool);
    return pool_stats_of(stage->pool).held;
}

static void an_export_outlives_the_close_and_holds_its_pages_only(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    tensor_of_bytes(step, 100000);
    DLManagedTensor *managed = share(tensor_of_bytes(step, 9000));
    tensor_of_bytes(step, 200000);
    assert_int_equal(held(stage), 0);
    assert_int_equal(ebb_region_close(step), 0);
    assert_in_range(held(stage), 3 * PAGE, 4 * PAGE);
    overwrite_cached(stage);
    assert_true(export_holds(managed));
    struct ebb_pool_stats stats = pool_stats_of(stage->pool);
    assert_int_equal(stats.reserved.current, stats.owned + stats.cached + stats.held);
    assert_false(ebb_region_is_open(ebb_region_of(managed->dl_tensor.data)));
    give_back(managed);
    assert_int_equal(held(stage), 0);
    assert_int_equal(pool_stats_of(stage->pool).reserved.current, stats.reserved.current);
}

static void an_export_outlives_a_reset(void **state) {
    struct stage *stage = *state;
    static const size_t keeps[] = {0, 40 * KIB, EBB_KEEP_ALL};
    for (size_t i = 0; i < 3; i++) {
        ebb_region step = OPEN(.name = "step", .parent = stage->root);
        DLManagedTensor *first = share(tensor_of_bytes(step, 50000));
        assert_int_equal(ebb_region_reset(step, keeps[i]), 0);
        assert_true(held(stage) >= 50000);
        DLManagedTensor *second = share(tensor_of_bytes(step, 60000));
        assert_int_equal(ebb_region_reset(step, keeps[i]), 0);
        memset(block_of(step, 300000, 64), 0xAA, 300000);
        overwrite_cached(stage);
        assert_true(export_holds(first));
        assert_true(export_holds(second));
        give_back(second);
        assert_true(export_holds(first));
        assert_int_equal(ebb_region_close(step), 0);
        assert_true(export_holds(first));
        give_back(first);
        assert_int_equal(held(stage), 0);
    }
}

enum { MANY = 400 };

/* Neighbours share pages: each page is held once, and goes with the last who needs it. */
static void many_exports_share_pages(void **state) {
    struct stage *stage = *state;
    DLManagedTensor *exports[MANY];
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    for (size_t i = 0; i < MANY; i++)
        exports[i] = share(tensor_of_bytes(step, 1200 + i));
    uint64_t reserved = stats_of(step).reserved.current;
    assert_int_equal(ebb_region_close(step), 0);
    assert_true(held(stage) <= reserved);
    for (size_t i = 0; i < MANY; i++) { /* in an order that leaves gaps */
        size_t at = i * 37 % MANY;
        overwrite_cached(stage);
        assert_true(export_holds(exports[at]));
        give_back(exports[at]);
    }
    assert_int_equal(held(stage), 0);
}

static void exports_of_the_same_bytes_are_held_together(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct ebb_tensor *tensor = tensor_of_bytes(step, 40000);
    struct ebb_tensor *part = ebb_tensor_view(step, tensor, 1, (int64_t[]){5000},
                                              (int64_t[]){1}, 256 * 16);
    DLManagedTensor *one = share(tensor), *two = share(tensor), *three = share(part);
    assert_int_equal(ebb_region_close(step), 0);
    uint64_t bytes = held(stage);
    give_back(one);
    assert_int_equal(held(stage), bytes);
    give_back(three);
    assert_int_equal(held(stage), bytes);
    assert_true(export_holds(two));
    give_back(two);
    assert_int_equal(held(stage), 0);
}

static void what_was_given_back_before_the_close_holds_nothing(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    DLManagedTensor *gone = share(tensor_of_bytes(step, 50000));
    DLManagedTensor *kept = share(tensor_of_bytes(step, 5000));
    DLManagedTensor *too = share(tensor_of_bytes(step, 70000));
    give_back(gone);
    give_back(too);
    assert_int_equal(ebb_region_close(step), 0);
    assert_true(held(stage) <= 3 * PAGE);
    assert_true(export_holds(kept));
    give_back(kept);
}

static void copies_outlive_the_close_like_shared_bytes(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct ebb_tensor *small = tensor_of_bytes(step, 100);
    DLManagedTensor *copy = ebb_tensor_export(small, EBB_EXCHANGE_IF_NEEDED);
    assert_int_equal(ebb_object_end(small), 0);
    assert_true(export_holds(copy));
    assert_int_equal(ebb_region_close(step), 0);
    assert_int_equal(held(stage), PAGE);
    overwrite_cached(stage);
    assert_true(export_holds(copy));
    give_back(copy);
    assert_int_equal(held(stage), 0);
}

static void the_storage_may_end_before_its_export(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct ebb_tensor *tensor = tensor_of_bytes(step, 5000);
    DLManagedTensor *managed = share(tensor);
    assert_int_equal(ebb_object_end(tensor), 0);
    for (int i = 0; i < 100; i++)
        memset(block_of(step, 5000, 64), 0xAA, 5000);
    assert_true(export_holds(managed));
    assert_int_equal(ebb_region_close(step), 0);
    assert_true(export_holds(managed));
    give_back(managed);
}

static void a_view_with_gaps_holds_up_to_its_last_element(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct ebb_tensor *tensor = tensor_of_bytes(step, 100000);
    struct ebb_tensor *view = ebb_tensor_view(step, tensor, 1, (int64_t[]){12},
                                              (int64_t[]){8000}, 2048);
    DLManagedTensor *managed = share(view);
    uint8_t first = *(uint8_t *)view->data, last = ((uint8_t *)view->data)[88000];
    assert_int_equal(ebb_region_close(step), 0);
    assert_in_range(held(stage), 88001, 88001 + 2 * PAGE);
    overwrite_cached(stage);
    assert_int_equal(*(uint8_t *)managed->dl_tensor.data, first);
    assert_int_equal(((uint8_t *)managed->dl_tensor.data)[88000], last);
    give_back(managed);
}

static void a_view_below_exports_the_storage_above(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct ebb_tensor *tensor = tensor_of_bytes(stage->root, 9000);
    struct ebb_tensor *view = ebb_tensor_view(step, tensor, 1, (int64_t[]){4000},
                                              (int64_t[]){1}, 512);
    DLManagedTensor *managed = share(view);
    assert_int_equal(ebb_region_count_exports(step), 0);
    assert_int_equal(ebb_region_count_exports(stage->root), 1);
    assert_int_equal(ebb_region_close(step), 0);
    assert_int_equal(held(stage), 0); /* the storage is still there */
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
    give_back(managed);
    assert_int_equal(ebb_region_count_exports(stage->root), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

/* ---- refusals ---- */

static unsigned long long mark_said(void) {
    const char *said = strstr(ebb_last_error_text(), "mark ");
    return said ? strtoull(said + strlen("mark "), NULL, 10) : 0;
}

static void a_rewind_past_an_export_is_refused(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    struct ebb_tensor *old = tensor_of_bytes(region, 5000);
    DLManagedTensor *before = share(old);
    ebb_mark mark = ebb_region_mark(region);
    DLManagedTensor *after = share(tensor_of_bytes(region, 6000));
    struct ebb_region_stats stats = stats_of(region), same;
    assert_refused(ebb_region_rewind(region, mark), EBB_E_BUSY);
    assert_text_names("1 exports of 6000 bytes");
    unsigned long long number = mark_said();
    same = stats_of(region);
    assert_memory_equal(&stats, &same, sizeof stats);
    give_back(after);
    assert_int_equal(ebb_region_rewind(region, mark), 0); /* what is older does not matter */
    assert_refused(ebb_region_rewind(region, mark), EBB_E_MARK);
    assert_int_equal(mark_said(), number);
    assert_true(export_holds(before));
    give_back(before);
}

static void held_blocks_are_neither_released_nor_resized(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor = tensor_of_bytes(stage->root, 50000);
    DLManagedTensor *managed = share(tensor);
    assert_refused(ebb_region_release(stage->root, tensor), EBB_E_BUSY);
    assert_text_names("'root'");
    assert_refused(ebb_region_resize(stage->root, tensor, 2000), EBB_E_BUSY);
    assert_no_block(ebb_region_realloc(stage->root, tensor, 90000, 64), EBB_E_BUSY);
    assert_true(export_holds(managed));
    give_back(managed);
    assert_int_equal(ebb_region_count_exports(stage->root), 0);
    assert_int_equal(ebb_object_end(tensor), 0);
}

static void a_pool_with_held_pages_is_not_destroyed(void **state) {
    struct stage *stage = *state;
    ebb_pool *pool = POOL(.name = "lender");
    ebb_region region = OPEN(.pool = pool);
    DLManagedTensor *managed = share(tensor_of_bytes(region, 4096 * 3));
    assert_int_equal(ebb_region_close(region), 0);
    assert_refused(ebb_pool_destroy(pool), EBB_E_BUSY);
    assert_text_names("'lender'");
    assert_text_names("16384 bytes");
    assert_true(export_holds(managed));
    give_back(managed);
    pool_end(pool);
}

static void trimming_leaves_held_pages_alone(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    tensor_of_bytes(step, 500000);
    DLManagedTensor *managed = share(tensor_of_bytes(step, 500000));
    tensor_of_bytes(step, 500000);
    assert_int_equal(ebb_region_close(step), 0);
    ebb_pool_trim(stage->pool, 0);
    struct ebb_pool_stats stats = pool_stats_of(stage->pool);
    assert_int_equal(stats.cached, 0);
    assert_int_equal(stats.reserved.current, stats.owned + stats.held);
    assert_true(export_holds(managed));
    give_back(managed);
    assert_int_equal(ebb_pool_trim(stage->pool, 0), stats.held);
}

static void a_strict_close_counts_no_export_that_was_given_back(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct ebb_tensor *tensor = tensor_of_bytes(step, 100);
    DLManagedTensor *copy = ebb_tensor_export(tensor, EBB_EXCHANGE_COPY);
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_refused(ebb_region_close_strict(step), EBB_E_LIVE_BLOCKS);
    give_back(copy);
    assert_int_equal(ebb_region_close_strict(step), 0);
}

/* ---- promotion ---- */

static void exported_tensors_are_promoted_by_copy(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct ebb_tensor *tensor = tensor_of_bytes(step, 50000);
    DLManagedTensor *managed = share(tensor);
    void *objects[] = {tensor};
    struct ebb_own_options options = {.size = sizeof options, .mode = EBB_PROMOTE_RELINK};
    assert_int_equal(ebb_objects_promote(step, stage->root, objects, 1, &options, NULL), 0);
    struct ebb_tensor *promoted = objects[0];
    assert_ptr_not_equal(promoted, tensor);
    assert_true(pattern_holds(promoted->data, 50000, 50000));
    assert_true(export_holds(managed));
    assert_int_equal(promoted->storage->tensors, 1);
    assert_int_equal(stats_of(step).blocks.current, 1);
    assert_int_equal(ebb_region_close(step), 0);
    overwrite_cached(stage);
    assert_true(export_holds(managed));
    give_back(managed);
    assert_true(pattern_holds(promoted->data, 50000, 50000));
}

static void blocks_that_are_held_are_not_relinked(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct ebb_tensor *tensor = tensor_of_bytes(step, 50000);
    DLManagedTensor *managed = share(tensor);
    struct ebb_survivor survivor = survivor_of(tensor, EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_promote(step, stage->root, &survivor, 1, NULL), 0);
    assert_int_equal(survivor.mode, EBB_PROMOTE_COPY);
    assert_int_equal(ebb_region_close(step), 0);
    assert_true(export_holds(managed));
    give_back(managed);
}

/* A survivor and held bytes on one page: the run is the heir's until both are gone. */
static void held_bytes_beside_a_survivor_stay_with_the_heir(void **state) {
    struct stage *stage = *state;
    for (int survivor_first = 0; survivor_first < 2; survivor_first++) {
        ebb_region step = OPEN(.name = "step", .parent = stage->root);
        uint64_t owned = stats_of(stage->root).reserved.current;
        struct ebb_tensor *left = tensor_of_bytes(step, 5000);
        struct ebb_survivor survivor = survivor_of(block_of(step, 5000, 64), EBB_PROMOTE_RELINK);
        struct ebb_tensor *right = tensor_of_bytes(step, 6000);
        DLManagedTensor *a = share(left), *b = share(right);
        struct ebb_promoted cost = {0};
        assert_int_equal(ebb_close_keeping(step, stage->root, &survivor, 1, &cost, NULL), 0);
        assert_int_equal(survivor.mode, EBB_PROMOTE_RELINK);
        assert_true(cost.pinned_bytes > 5000 + 6000); /* they are under no survivor */
        assert_int_equal(cost.pinned_bytes, stats_of(stage->root).pinned);
        assert_int_equal(held(stage), 0);
        assert_int_equal(ebb_region_count_exports(stage->root), 2);
        ebb_mark mark = ebb_region_mark(stage->root);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0); /* they are no blocks of it */
        if (survivor_first)
            assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
        overwrite_cached(stage);
        assert_true(export_holds(a) && export_holds(b));
        give_back(a);
        assert_int_equal(ebb_region_count_exports(stage->root), 1);
        assert_true(export_holds(b));
        give_back(b);
        assert_int_equal(ebb_region_count_exports(stage->root), 0);
        ebb_check_pool(stage->pool);
        if (!survivor_first) {
            assert_true(pattern_holds(survivor.block, 5000, 5000));
            assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
        }
        assert_int_equal(stats_of(stage->root).reserved.current, owned);
        assert_int_equal(stats_of(stage->root).pinned, 0);
    }
}

static void held_bytes_move_on_when_the_heir_ends(void **state) {
    struct stage *stage = *state;
    ebb_region heir = OPEN(.name = "heir", .parent = stage->root);
    ebb_region step = OPEN(.name = "step", .parent = heir);
    struct ebb_tensor *tensor = tensor_of_bytes(step, 5000);
    struct ebb_survivor survivor = survivor_of(block_of(step, 5000, 64), EBB_PROMOTE_RELINK);
    DLManagedTensor *one = share(tensor), *two = share(tensor);
    assert_int_equal(ebb_close_keeping(step, heir, &survivor, 1, NULL, NULL), 0);
    assert_int_equal(ebb_region_count_exports(heir), 2);
    give_back(two);
    assert_int_equal(ebb_region_close(heir), 0);
    assert_in_range(held(stage), 2 * PAGE, 3 * PAGE);
    overwrite_cached(stage);
    assert_true(export_holds(one));
    give_back(one);
    assert_int_equal(held(stage), 0);
}

/* Whether anybody has noticed that an export came back or not. */
static void tensors_that_came_back_are_relinked(void **state) {
    struct stage *stage = *state;
    for (int out = 0; out < 2; out++) {
        ebb_region child = OPEN(.parent = stage->root);
        struct ebb_tensor *tensor = tensor_of_bytes(child, 100000);
        DLManagedTensor *managed = share(tensor);
        struct ebb_own_options options = {.size = sizeof options, .mode = EBB_PROMOTE_RELINK};
        void *promoted = tensor;
        if (!out)
            give_back(managed);
        assert_int_equal(ebb_objects_promote(child, stage->root, &promoted, 1, &options, NULL), 0);
        assert_int_equal(promoted != tensor, out);
        if (out)
            give_back(managed);
        assert_int_equal(ebb_region_close(child), 0);
    }
}

/* A tensor that was relinked, then exported by its new owner: its run is cut when that ends. */
static void relinked_tensors_are_exported_and_outlive_their_owner(void **state) {
    struct stage *stage = *state;
    for (int closed_first = 0; closed_first < 2; closed_first++) {
        ebb_region heir = OPEN(.name = "heir", .parent = stage->root);
        ebb_region step = OPEN(.name = "step", .parent = heir);
        struct ebb_own_options options = {.size = sizeof options, .mode = EBB_PROMOTE_RELINK};
        void *objects[] = {tensor_of_bytes(step, 50000), tensor_of_bytes(step, 60000)};
        assert_int_equal(ebb_objects_promote(step, heir, objects, 2, &options, NULL), 0);
        if (closed_first)
            assert_int_equal(ebb_region_close(step), 0);
        DLManagedTensor *managed = share(objects[0]);
        if (!closed_first)
            assert_int_equal(ebb_region_close(step), 0);
        assert_true(export_holds(managed));
        assert_int_equal(ebb_region_close(heir), 0);
        assert_in_range(held(stage), 13 * PAGE, 14 * PAGE);
        overwrite_cached(stage);
        assert_true(export_holds(managed));
        give_back(managed);
        assert_int_equal(held(stage), 0);
    }
}

/* ---- without bookkeeping ---- */

static bool refuse_entries(enum os_acquisition what) {
    return what != OS_PIECES;
}

/* The pool has no entry left for a cut, and gets none. */
static void use_up_entries(const struct stage *stage, struct os_table *real) {
    *real = os;
    os.allow = refuse_entries;
    while (piece_take(&stage->pool->pages.store))
        ;
}

static void runs_that_cannot_be_cut_are_kept_whole(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct os_table real;
    DLManagedTensor *first = share(tensor_of_bytes(step, 9000));
    DLManagedTensor *second = share(tensor_of_bytes(step, 90000));
    uint64_t reserved = stats_of(step).reserved.current;
    use_up_entries(stage, &real);
    assert_int_equal(ebb_region_close(step), 0);
    os = real;
    assert_int_equal(held(stage), reserved);
    overwrite_cached(stage);
    give_back(first);
    assert_int_equal(held(stage), reserved);
    assert_true(export_holds(second));
    give_back(second);
    assert_int_equal(held(stage), 0);
}

static void runs_with_survivors_that_cannot_be_cut_go_to_the_heir(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct os_table real;
    DLManagedTensor *managed = share(tensor_of_bytes(step, 90000));
    struct ebb_survivor survivor = survivor_of(block_of(step, 9000, 64), EBB_PROMOTE_RELINK);
    uint64_t reserved = stats_of(step).reserved.current;
    assert_int_equal(ebb_promote(step, stage->root, &survivor, 1, NULL), 0);
    use_up_entries(stage, &real);
    assert_int_equal(ebb_region_reset(step, EBB_KEEP_ALL), 0);
    os = real;
    assert_int_equal(held(stage), 0);
    assert_int_equal(stats_of(stage->root).reserved.current, reserved);
    assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
    overwrite_cached(stage);
    assert_true(export_holds(managed));
    give_back(managed);
    assert_int_equal(ebb_region_count_exports(stage->root), 0);
    assert_int_equal(stats_of(stage->root).reserved.current, 0);
}

/* ---- at random ---- */

enum { OUT = 24, ROUNDS = 1000 };

static unsigned draw(uint64_t *seed, unsigned below) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33) % below;
}

struct play {
    uint64_t seed;
    const struct stage *stage;
    ebb_region regions[3]; /* each the parent of the next */
    DLManagedTensor *out[OUT];
};

static void open_from(struct play *play, int first) {
    for (int i = first; i < 3; i++)
        play->regions[i] = OPEN(.parent = i ? play->regions[i - 1] : play->stage->root);
}

static void play_export(struct play *play) {
    unsigned slot = draw(&play->seed, OUT);
    ebb_region region = play->regions[draw(&play->seed, 3)];
    struct ebb_tensor *tensor = tensor_of_bytes(region, 1 + draw(&play->seed, 20000));
    if (play->out[slot])
        give_back(play->out[slot]);
    play->out[slot] = ebb_tensor_export(tensor, EBB_EXCHANGE_IF_NEEDED);
    assert_non_null(play->out[slot]);
    if (draw(&play->seed, 2))
        assert_int_equal(ebb_object_end(tensor), 0);
}

static void play_close(struct play *play) {
    int at = (int)draw(&play->seed, 3);
    struct ebb_survivor survivors[4];
    size_t count = at ? draw(&play->seed, 5) : 0;
    for (size_t i = 0; i < count; i++) {
        tensor_of_bytes(play->regions[at], 1 + draw(&play->seed, 5000));
        survivors[i] = survivor_of(block_of(play->regions[at], 1100 + draw(&play->seed, 9000), 64),
                                   EBB_PROMOTE_RELINK);
    }
    if (draw(&play->seed, 4) == 0)
        assert_int_equal(ebb_region_reset(play->regions[at], draw(&play->seed, 2) * 100000), 0);
    else if (at)
        ebb_close_keeping(play->regions[at], play->regions[at - 1], survivors, count, NULL, NULL);
    else
        assert_int_equal(ebb_region_close(play->regions[at]), 0);
    open_from(play, ebb_region_is_open(play->regions[at]) ? at + 1 : at);
}

static void play_round(struct play *play) {
    unsigned slot = draw(&play->seed, OUT);
    switch (draw(&play->seed, 6)) {
    case 0:
        play_close(play);
        break;
    case 1:
        if (play->out[slot])
            give_back(play->out[slot]);
        play->out[slot] = NULL;
        break;
    case 2:
        memset(block_of(play->regions[2], 30000, 64), 0xAA, 30000);
        break;
    default:
        play_export(play);
    }
}

static void exports_hold_whatever_regions_do(void **state) {
    struct stage *stage = *state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct play play = {.seed = seed, .stage = stage};
        open_from(&play, 0);
        for (int round = 0; round < ROUNDS; round++) {
            play_round(&play);
            for (int i = 0; i < OUT; i++)
                if (play.out[i] && !export_holds(play.out[i]))
                    fail_msg("seed %d, round %d: export %d is damaged", (int)seed, round, i);
            ebb_check_pool(stage->pool);
        }
        assert_int_equal(ebb_region_close(play.regions[0]), 0);
        for (int i = 0; i < OUT; i++)
            if (play.out[i])
                give_back(play.out[i]);
        assert_int_equal(held(stage), 0);
    }
}

/* As many as consumers of a batch take, one by one, each by a view that ends at once. */
static void rows_are_exported_whatever_else_is_out(void **state) {
    enum { ROWS = 100000 }; /* minutes, if the end of each view looked at all of them */
    struct stage *stage = *state;
    struct ebb_tensor *rows = ebb_tensor_new(stage->root, float32, 2, (int64_t[]){ROWS, 64});
    DLManagedTensor **exports = block_of(stage->root, ROWS * sizeof *exports, 64);
    assert_non_null(rows);
    for (int i = 0; i < ROWS; i++) {
        struct ebb_tensor *row = ebb_tensor_select(stage->root, rows, 0, i);
        exports[i] = share(row);
        assert_int_equal(ebb_object_end(row), 0);
    }
    assert_int_equal(rows->storage->tensors, ROWS + 1);
    for (int i = 0; i < ROWS; i += 2)
        give_back(exports[i]);
    assert_int_equal(ebb_region_count_exports(stage->root), ROWS / 2);
    for (int i = 1; i < ROWS; i += 2)
        give_back(exports[i]);
    assert_int_equal(ebb_object_end(rows), 0); /* the last that sees them: all end with it */
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(an_export_outlives_the_close_and_holds_its_pages_only),
        STAGED(an_export_outlives_a_reset),
        STAGED(many_exports_share_pages),
        STAGED(exports_of_the_same_bytes_are_held_together),
        STAGED(what_was_given_back_before_the_close_holds_nothing),
        STAGED(copies_outlive_the_close_like_shared_bytes),
        STAGED(the_storage_may_end_before_its_export),
        STAGED(a_view_with_gaps_holds_up_to_its_last_element),
        STAGED(a_view_below_exports_the_storage_above),
        STAGED(a_rewind_past_an_export_is_refused),
        STAGED(held_blocks_are_neither_released_nor_resized),
        STAGED(a_pool_with_held_pages_is_not_destroyed),
        STAGED(trimming_leaves_held_pages_alone),
        STAGED(a_strict_close_counts_no_export_that_was_given_back),
        STAGED(exported_tensors_are_promoted_by_copy),
        STAGED(blocks_that_are_held_are_not_relinked),
        STAGED(held_bytes_beside_a_survivor_stay_with_the_heir),
        STAGED(held_bytes_move_on_when_the_heir_ends),
        STAGED(tensors_that_came_back_are_relinked),
        STAGED(relinked_tensors_are_exported_and_outlive_their_owner),
        STAGED(runs_that_cannot_be_cut_are_kept_whole),
        STAGED(runs_with_survivors_that_cannot_be_cut_go_to_the_heir),
        STAGED(exports_hold_whatever_regions_do),
        STAGED(rows_are_exported_whatever_else_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
