// SPDX-License-Identifier: Apache-2.0
/*
 * costs.c - what must not cost more for each where there are more of them; test_costs.py counts
 * the instructions of counted_...(), or of a function of ebb's, and of nothing else.
 *
 *   costs CASE COUNT
 */
#include "region/keeper.h"
#include "costs/cases.h"
#include "kit/boxes.h"
#include "kit/dlpack.h"
#include "kit/tables.h"

#include "plan/packing.h"
#include "pool/pages.h"
#include "pool/range.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef __clang__
#define COUNTED static __attribute__((noinline))
#else
#define COUNTED static __attribute__((noinline, noclone))
#endif

static void *array_of(size_t count, size_t bytes) {
    void *array = calloc(count, bytes);
    assert_non_null(array);
    return array;
}

/* ---- runs that are kept are given back */

COUNTED void counted_cool(struct pages *pages) {
    pages_cool(pages, 0, SIZE_MAX, 0);
}

static void give_back_kept(size_t count, bool highest_first) {
    static struct pages pages;
    struct ebb_piece **parts = array_of(count, sizeof *parts);
    pages_init(&pages, &kind_host);
    assert_int_equal(range_prepare(), 0);
    struct pages_wish wish = {.least = count * PAGE, .extend = count * PAGE, .want = count * PAGE,
                              .want_cold = count * PAGE, .most_cold = SIZE_MAX};
    struct ebb_piece *run = pages_take(&pages, &wish);
    assert_non_null(run);
    for (size_t i = 0; i < count; i++) {
        struct ebb_piece *rest;
        assert_true(pages_prepare_cut(&pages));
        uintptr_t to = run->bytes > PAGE ? run->addr + PAGE : piece_end(run);
        parts[i] = pages_cut_out(&pages, run, run->addr, to, &rest);
        run = rest;
    }
    for (size_t i = 0; i < count; i++)
        pages_keep(&pages, parts[highest_first ? count - 1 - i : i], i);
    assert_int_equal(pages.hot_bytes, count * PAGE);
    counted_cool(&pages);
    assert_int_equal(pages.hot_bytes, 0);
    pages_fini(&pages);
    free(parts);
}

static void give_back_kept_runs(size_t count) {
    give_back_kept(count, false);
}

static void give_back_kept_runs_from_the_top(size_t count) {
    give_back_kept(count, true);
}

/* ---- blocks are relinked, each alone in a run, between survivors of a step before */

COUNTED void counted_promote(ebb_region step, ebb_region root, struct ebb_survivor *list,
                             size_t count) {
    assert_int_equal(ebb_promote(step, root, list, count, NULL), 0);
}

static void relink_runs(size_t count) {
    size_t later = count - count / 8;
    struct ebb_survivor *list = array_of(count, sizeof *list);
    ebb_pool *pool = POOL(.name = "runs");
    ebb_region root = OPEN(.pool = pool), step = OPEN(.parent = root);
    for (size_t i = 0; i < count; i++) {
        list[i] = survivor_of(ebb_region_alloc(step, 8192, 64), EBB_PROMOTE_RELINK);
        assert_non_null(ebb_region_alloc(step, 8192, 64));
    }
    assert_int_equal(ebb_close_keeping(step, root, list, count, NULL, NULL), 0);
    step = OPEN(.parent = root);
    for (size_t i = 0; i < later; i++)
        list[i] = survivor_of(ebb_region_alloc(step, 8192, 64), EBB_PROMOTE_RELINK);
    counted_promote(step, root, list, later);
    assert_int_equal(ebb_region_close(step), 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
    free(list);
}

/* ---- survivors in runs of their own are left behind; the lowest runs are the oldest, since a step
 * takes the largest holes first */

/* Lengths of holes that fall with the address. */
static size_t hole_of(size_t i, size_t count) {
    return 4 * PAGE + (count - 1 - i) * 64 / count * PAGE;
}

static void close_many_runs(size_t count) {
    struct ebb_survivor *list = array_of(count, sizeof *list);
    ebb_pool *pool = POOL(.name = "runs", .keep_all = true);
    ebb_region root = OPEN(.pool = pool), keep = OPEN(.parent = root), step = OPEN(.parent = keep);
    for (size_t i = 0; i < count; i++) {
        assert_non_null(ebb_region_alloc(step, hole_of(i, count), PAGE));
        list[i] = survivor_of(ebb_region_alloc(step, PAGE, PAGE), EBB_PROMOTE_RELINK);
    }
    assert_int_equal(ebb_close_keeping(step, keep, list, count, NULL, NULL), 0);
    step = OPEN(.parent = root);
    for (size_t i = 0; i < count; i++)
        list[i] = survivor_of(ebb_region_alloc(step, hole_of(i, count), PAGE), EBB_PROMOTE_RELINK);
    assert_true(stats_of(step).runs > count / 2);
    assert_int_equal(ebb_promote(step, root, list, count, NULL), 0);
    assert_int_equal(ebb_region_close(step), 0); /* calls depart_locked() */
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
    free(list);
}

/* ---- survivors that share a run are released in the order in which they came, or every 16th
 * first, or in any */

COUNTED void counted_release(ebb_region root, const struct ebb_survivor *list, size_t count,
                             size_t step) {
    for (size_t first = 0; first < step; first++)
        for (size_t i = first; i < count; i += step)
            assert_int_equal(ebb_region_release(root, list[i].block), 0);
}

static void shuffle(struct ebb_survivor *list, size_t count) {
    uint32_t chance = 1;
    for (size_t i = count - 1; i > 0; i--) {
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        size_t other = (chance >> 8) % (i + 1);
        struct ebb_survivor moved = list[i];
        list[i] = list[other];
        list[other] = moved;
    }
}

static void release_survivors(size_t count, size_t step, bool in_order) {
    struct ebb_survivor *list = array_of(count, sizeof *list);
    ebb_pool *pool = POOL(.name = "survivors");
    ebb_region root = OPEN(.pool = pool), child = OPEN(.parent = root);
    for (size_t i = 0; i < count; i++)
        list[i] = survivor_of(ebb_region_alloc(child, 5000, 64), EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_close_keeping(child, root, list, count, NULL, NULL), 0);
    if (!in_order)
        shuffle(list, count);
    counted_release(root, list, count, step);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
    free(list);
}

static void release_in_order(size_t count) {
    release_survivors(count, 1, true);
}

static void release_in_turns(size_t count) {
    release_survivors(count, 16, true);
}

static void release_in_any_order(size_t count) {
    release_survivors(count, 1, false);
}

/* ---- a pool is at its limit with cached pages that no block fits into: each one makes room */

COUNTED void counted_alloc(ebb_region region, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_non_null(ebb_region_alloc(region, 20 * PAGE, PAGE));
}

static void make_room_at_the_limit(size_t count) {
    struct ebb_survivor *list = array_of(count, sizeof *list);
    ebb_pool *pool = POOL(.name = "full", .keep_all = true,
                          .limit_reserved_bytes = (8 * count + 16) * PAGE);
    ebb_region root = OPEN(.pool = pool), step = OPEN(.parent = root);
    for (size_t i = 0; i < count; i++) {
        assert_non_null(ebb_region_alloc(step, 4 * PAGE, PAGE));
        list[i] = survivor_of(ebb_region_alloc(step, 4 * PAGE, PAGE), EBB_PROMOTE_RELINK);
    }
    assert_int_equal(ebb_close_keeping(step, root, list, count, NULL, NULL), 0);
    step = OPEN(.parent = root);
    counted_alloc(step, count / 8);
    assert_true(pool_stats_of(pool).reserved.current <= (8 * count + 16) * PAGE);
    assert_int_equal(ebb_region_close(step), 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
    free(list);
}

/* ---- what was lent comes back, past as many that are newer; one mark lies amid, one behind it */

COUNTED void counted_return(void **lent, size_t count) {
    for (size_t i = count; i-- > 0;)
        assert_int_equal(ebb_object_return(lent[i]), 0);
}

static void return_the_lent(size_t count) {
    void **lent = array_of(count, sizeof *lent);
    ebb_pool *pool = POOL(.name = "lent");
    ebb_region root = OPEN(.pool = pool), other = OPEN(.pool = pool);
    ebb_mark marks[2];
    for (size_t i = 0; i < count; i++) {
        lent[i] = floats_in(root, 1);
        assert_int_equal(ebb_object_borrow(lent[i], other), 0);
        if (i == count / 2)
            marks[0] = ebb_region_mark(root);
    }
    marks[1] = ebb_region_mark(root);
    for (size_t i = 0; i < count; i++)
        floats_in(root, 2);
    counted_return(lent, count);
    ebb_check_pool(pool);
    assert_int_equal(ebb_region_rewind(root, marks[1]), 0);
    assert_int_equal(stats_of(root).blocks.current, count);
    assert_int_equal(ebb_region_rewind(root, marks[0]), 0);
    assert_int_equal(stats_of(root).blocks.current, count / 2 + 1);
    assert_int_equal(ebb_region_close(other), 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
    free(lent);
}

/* ---- pairs that go in this order or in that one, all at two places of a plan, which is smaller
 * than they are: or there would be none */

static void take_pairs(ebb_site *site, size_t pairs, uint32_t *chance) {
    ebb_step step = ebb_step_begin(site, 0);
    for (size_t i = 0; i < pairs; i++) {
        void *pair[] = {ebb_region_alloc(step.region, (size_t)1 << 20, 64),
                        ebb_region_alloc(step.region, (size_t)1 << 20, 64)};
        *chance = (uint32_t)(*chance * UINT64_C(1664525) + 1013904223);
        unsigned first = *chance >> 31;
        assert_int_equal(ebb_region_release(step.region, pair[first]), 0);
        assert_int_equal(ebb_region_release(step.region, pair[1 - first]), 0);
        if (i % 1024 == 0)
            assert_refused(ebb_region_release(step.region, pair[first]), EBB_E_RELEASED);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

COUNTED void counted_pairs(ebb_site *site, size_t pairs, uint32_t *chance) {
    take_pairs(site, pairs, chance);
}

static void serve_pairs_at_two_places(size_t count) {
    ebb_pool *pool = POOL(.name = "pairs");
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    uint32_t chance = 1;
    for (unsigned i = 0; i < 2; i++)
        take_pairs(site, count, &chance);
    counted_pairs(site, count, &chance);
    assert_int_equal(site_stats(site).hits, 2 * count);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

/* ---- as many steps are open; each keeps a block, which the parent has until the next is kept */

struct request {
    ebb_step step;
    void *block, *kept;
};

static void begin_request(struct request *request, ebb_site *site, ebb_region parent) {
    request->step = ebb_step_begin_under(site, parent, 1);
    assert_non_null(ebb_region_alloc(request->step.region, 500, 16));
    request->block = ebb_region_alloc(request->step.region, 600, 16);
    assert_non_null(request->block);
}

static void end_request(struct request *request, ebb_region parent) {
    struct ebb_survivor survivor = survivor_of(request->block, EBB_PROMOTE_AUTO);
    assert_int_equal(ebb_promote(request->step.region, parent, &survivor, 1, NULL), 0);
    assert_int_equal(ebb_step_end(request->step), 0);
    assert_int_equal(ebb_region_release(parent, request->kept), 0);
    request->kept = survivor.block;
}

/* All end once, the first that began first, and begin again. */
COUNTED void counted_turn(struct request *requests, size_t count, ebb_site *site,
                          ebb_region parent) {
    for (size_t i = 0; i < count; i++) {
        end_request(&requests[i], parent);
        begin_request(&requests[i], site, parent);
    }
}

static void hold_steps_open(size_t count, bool tenures) {
    struct request *requests = array_of(count, sizeof *requests);
    ebb_pool *pool = POOL(.name = "requests");
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool, .tenure_none = !tenures));
    ebb_region parent = OPEN(.pool = pool);
    for (unsigned i = 0; i < 4; i++) {
        begin_request(&requests[0], site, parent);
        end_request(&requests[0], parent);
    }
    for (size_t i = 0; i < count; i++)
        begin_request(&requests[i], site, parent);
    for (size_t i = 0; i < count; i++) { /* the first time is another thing */
        end_request(&requests[i], parent);
        begin_request(&requests[i], site, parent);
    }
    counted_turn(requests, count, site, parent);
    for (size_t i = 0; i < count; i++)
        end_request(&requests[i], parent);
    assert_int_equal(stats_of(parent).blocks.current, count);
    assert_true((site_stats(site).tenured_right > count) == tenures);
    assert_int_equal(ebb_region_close(parent), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
    free(requests);
}

static void bear_in_one_parent(size_t count) {
    hold_steps_open(count, true);
}

static void promote_to_one_parent(size_t count) {
    hold_steps_open(count, false);
}

/* ---- a step ends with blocks that were born in its parent, exported and not promoted */

/* Each promotes its blocks, or makes exports of tensors that lie in such. */
static void take_exported(ebb_site *site, ebb_region parent, size_t count,
                          struct ebb_survivor *list, DLManagedTensor **exports) {
    ebb_step step = ebb_step_begin_under(site, parent, 1);
    for (size_t i = 0; i < count && exports; i++)
        exports[i] = share(tensor_of_bytes(step.region, 5000));
    for (size_t i = 0; i < count && !exports; i++)
        list[i] = survivor_of(ebb_region_alloc(step.region, 8192, 256), EBB_PROMOTE_AUTO);
    size_t kept = exports ? 0 : count;
    assert_int_equal(ebb_step_end_keeping(step, parent, list, kept, NULL, NULL), 0);
    for (size_t i = 0; i < kept; i++)
        assert_int_equal(ebb_region_release(parent, list[i].block), 0);
}

static void end_exported(size_t count) {
    struct ebb_survivor *list = array_of(count, sizeof *list);
    DLManagedTensor **exports = array_of(count, sizeof *exports);
    ebb_pool *pool = POOL(.name = "exports");
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    ebb_region parent = OPEN(.pool = pool);
    for (unsigned i = 0; i < 5; i++)
        take_exported(site, parent, count, list, i < 4 ? NULL : exports); /* track_end_born() */
    assert_int_equal(ebb_region_count_exports(parent), count);
    for (size_t i = 0; i < count; i++)
        give_back(exports[i]);
    assert_int_equal(ebb_region_count_exports(parent), 0);
    assert_int_equal(stats_of(parent).blocks.current, 0);
    assert_int_equal(ebb_region_close(parent), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
    free(exports);
    free(list);
}

/* ---- a step that goes along tables, and stops as often as it may: where blocks come while a first
 * one went early, or where they go, behind all of them */

/* `early`: the first block goes behind the second one, not behind all. `every`: a look at the
 * counters each time that so many have come or gone. */
static void take_row(ebb_step step, void **blocks, size_t count, size_t bytes, bool early,
                     size_t every) {
    for (size_t i = 0; i < count; i++) {
        blocks[i] = ebb_region_alloc(step.region, bytes, 64);
        assert_non_null(blocks[i]);
        if (early && i == 1)
            assert_int_equal(ebb_region_release(step.region, blocks[0]), 0);
        if (early && i % every == every - 1)
            stats_of(step.region);
    }
    for (size_t i = early; i < count; i++) {
        assert_int_equal(ebb_region_release(step.region, blocks[i]), 0);
        if (!early && i % every == every - 1)
            stats_of(step.region);
    }
}

COUNTED void counted_row(ebb_step step, void **blocks, size_t count, bool early) {
    take_row(step, blocks, count, 512, early, 13);
}

static void stop_often(size_t count, bool early) {
    void **blocks = array_of(count, sizeof *blocks);
    ebb_pool *pool = POOL(.name = "row");
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < 5; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        take_row(step, blocks, count, 512, false, count);
        assert_int_equal(ebb_step_end(step), 0);
    }
    ebb_step step = ebb_step_begin(site, 0);
    const struct due *due = &track_of(step)->due;
    assert_true(due->on);
    counted_row(step, blocks, count, early);
    assert_true(!due->strayed && due->stops > count / 14 && due->stops < due->stops_most);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(due->fails, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
    free(blocks);
}

static void stop_behind_an_early_one(size_t count) {
    stop_often(count, true);
}

static void stop_where_blocks_go(size_t count) {
    stop_often(count, false);
}

/* ---- steps of blocks so small that no tables are made for them */

COUNTED ebb_step counted_begin(ebb_site *site) {
    return ebb_step_begin(site, 0);
}

static void begin_without_tables(size_t count) {
    void **blocks = array_of(count, sizeof *blocks);
    ebb_pool *pool = POOL(.name = "row");
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < 5; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        take_row(step, blocks, count, 64, false, count);
        assert_int_equal(ebb_step_end(step), 0);
    }
    ebb_step step = counted_begin(site);
    const struct due *due = &track_of(step)->due;
    assert_true(due->in_order && !due->events);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
    free(blocks);
}

/* ---- places for buffers, by when they die */

COUNTED void counted_pack(const struct packing_buffer *buffers, uint32_t count, void *workspace,
                          uint64_t *offsets) {
    const struct packing_effort once = {.keys = 1};
    struct packing_result result;
    assert_int_equal(packing_solve(buffers, count, &once, workspace, offsets, &result), 0);
}

static void pack(size_t count, struct packing_buffer buffer_of(uint32_t number, uint32_t count)) {
    size_t bytes;
    assert_true(packing_workspace_bytes(count, &bytes));
    struct packing_buffer *buffers = array_of(count, sizeof *buffers);
    uint64_t *offsets = array_of(count, sizeof *offsets);
    void *workspace = array_of(bytes, 1);
    for (uint32_t i = 0; i < count; i++)
        buffers[i] = buffer_of(i, (uint32_t)count);
    counted_pack(buffers, (uint32_t)count, workspace, offsets);
    free(workspace);
    free(offsets);
    free(buffers);
}

static struct packing_buffer of_a_group(uint32_t number, uint32_t count) {
    (void)count;
    return (struct packing_buffer){.lower = number, .upper = number + 128 - number % 128,
                                   .align = 64, .bytes = 16384 + number % 128 * 64};
}

/* 128 die together: none of them leaves room for the next ones. */
static void warm_groups(size_t count) {
    pack(count, of_a_group);
}

static struct packing_buffer of_a_long_life(uint32_t number, uint32_t count) {
    return (struct packing_buffer){.lower = number, .upper = count, .align = 64, .bytes = 64};
}

/* All live to the end: who dies when is not looked for one by one. */
static void pack_long_lives(size_t count) {
    pack(count, of_a_long_life);
}

/* ---- blocks in a row, each with a gap behind it that is smaller than any block */

static void leave_gaps(size_t count) {
    ebb_pool *pool = POOL(.name = "gaps");
    ebb_region region = OPEN(.pool = pool);
    for (size_t i = 0; i < count; i++)
        assert_non_null(ebb_region_alloc(region, 2000 + i % 7 * 64, 256)); /* calls fit_insert() */
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

/* ---- a root with gaps of many sizes between its blocks gives back all that is free */

COUNTED void counted_settle(ebb_region root) {
    keeper_settle((struct region *)root.lane, true);
}

static void settle_gaps(size_t count) {
    void **gaps = array_of(count, sizeof *gaps);
    ebb_pool *pool = POOL(.name = "gaps");
    ebb_region root = OPEN(.pool = pool);
    for (size_t i = 0; i < count; i++) {
        gaps[i] = ebb_region_alloc(root, (3 + i * 7919 % 7) * PAGE, 64);
        assert_non_null(ebb_region_alloc(root, 1088, 64));
    }
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ebb_region_release(root, gaps[i]), 0);
    counted_settle(root);
    assert_in_range(stats_of(root).runs, count, 2 * count);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
    free(gaps);
}

/* ---- reports of a composite that has one of its many members at two places */

struct crowd {
    struct ebb_object object;
    struct ebb_object **members;
    size_t count;
};

static int write_nowhere(void *context, const char *text, size_t bytes) {
    return 0;
}

COUNTED void counted_report(const struct crowd *crowd) {
    assert_int_equal(ebb_report_object(crowd, EBB_REPORT_JSON, write_nowhere, NULL), 0);
    assert_int_equal(ebb_report_batch(crowd, EBB_REPORT_JSON, write_nowhere, NULL), 0);
}

static void report_a_crowd(size_t count) {
    static const struct ebb_field field =
        EBB_FIELD_COUNTED(struct crowd, EBB_FIELD_OBJECTS, members, count);
    static struct ebb_type type = {
        .name = "crowd", .bytes = sizeof(struct crowd), .fields = &field, .field_count = 1};
    assert_int_equal(ebb_type_register(&type), 0);
    ebb_pool *pool = POOL(.name = "crowd");
    ebb_region region = OPEN(.pool = pool);
    struct crowd *crowd = ebb_object_new(region, &type, 0);
    crowd->count = count;
    crowd->members = ebb_region_alloc(region, count * sizeof *crowd->members, 16);
    for (size_t i = 0; i < count; i++)
        crowd->members[i] = (void *)ebb_node_new_integer(region, 7);
    crowd->members[1] = crowd->members[0];
    assert_int_equal(ebb_object_compose(crowd), 0);
    counted_report(crowd);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

int main(int argc, char **argv) {
    static const struct costs_case cases[] = {
        {"give_back_kept_runs", give_back_kept_runs},
        {"give_back_kept_runs_from_the_top", give_back_kept_runs_from_the_top},
        {"relink_runs", relink_runs},
        {"close_many_runs", close_many_runs},
        {"release_in_order", release_in_order},
        {"release_in_turns", release_in_turns},
        {"release_in_any_order", release_in_any_order},
        {"make_room_at_the_limit", make_room_at_the_limit},
        {"return_the_lent", return_the_lent},
        {"serve_pairs_at_two_places", serve_pairs_at_two_places},
        {"bear_in_one_parent", bear_in_one_parent},
        {"promote_to_one_parent", promote_to_one_parent},
        {"end_exported", end_exported},
        {"stop_behind_an_early_one", stop_behind_an_early_one},
        {"stop_where_blocks_go", stop_where_blocks_go},
        {"begin_without_tables", begin_without_tables},
        {"warm_groups", warm_groups},
        {"pack_long_lives", pack_long_lives},
        {"leave_gaps", leave_gaps},
        {"settle_gaps", settle_gaps},
        {"report_a_crowd", report_a_crowd},
    };
    return play_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
