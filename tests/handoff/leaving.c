// SPDX-License-Identifier: Apache-2.0
/* leaving.c - a region that is sent leaves its bytes as they are, whatever its cleanups let go of,
 * and whatever they allocate. */
#include "handoff/duo.h"
#include "handoff/post.h"
#include "kit/dlpack.h"
#include "kit/tensors.h"

#include <ebb/step.h>

#define BYTES ((size_t)50000)

/* Cleanups that were registered first, so they run last: they take all places that are free. */
struct taker {
    struct ebb_cleanup cleanup;
    ebb_region region;
    unsigned taken;
};

static int take_places(void *data) {
    struct taker *taker = data;
    static const size_t sizes[] = {BYTES, 4 * BYTES, 9000, 700, 40};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = ebb_region_alloc(taker->region, sizes[i], 64);
        taker->taken += block != NULL;
        if (block)
            memset(block, 0x11, sizes[i]);
    }
    return 0;
}

static void register_taker(struct taker *taker, ebb_region region) {
    *taker = (struct taker){.cleanup = {.run = take_places, .data = taker}, .region = region};
    assert_int_equal(ebb_cleanup_add(region, &taker->cleanup), 0);
}

static void assert_delivered(struct post *post, struct taker *taker, void *object) {
    struct ebb_tensor *made = deliver(post, object);
    assert_int_equal(taker->taken, 5);
    assert_true(pattern_holds(made->data, BYTES, (unsigned)BYTES));
    close_post(post);
}

static void what_is_lent_is_left(void **state) {
    struct post post = open_post();
    struct taker taker;
    register_taker(&taker, post.from);
    ebb_region ordinary = OPEN(.name = "ordinary");
    struct ebb_tensor *tensor = tensor_of_bytes(post.from, BYTES);
    assert_int_equal(ebb_object_borrow(tensor, ordinary), 0);
    assert_delivered(&post, &taker, tensor);
    assert_int_equal(ebb_region_list_objects(ordinary, NULL, 0), 0);
    assert_int_equal(ebb_region_close(ordinary), 0);
}

static void what_is_attached_is_left(void **state) {
    struct post post = open_post();
    struct taker taker;
    register_taker(&taker, post.from);
    ebb_region child = OPEN(.parent = post.from);
    struct ebb_tensor *tensor = tensor_of_bytes(post.from, BYTES);
    assert_int_equal(ebb_object_attach(tensor, child), 0);
    assert_delivered(&post, &taker, tensor);
}

static void what_only_a_child_sees_is_left(void **state) {
    struct post post = open_post();
    struct taker taker;
    register_taker(&taker, post.from);
    ebb_region child = OPEN(.parent = post.from);
    struct ebb_tensor *base = tensor_of_bytes(post.from, BYTES);
    struct ebb_tensor *view =
        ebb_tensor_view(child, base, 1, SIZES((int64_t)BYTES), SIZES(1), 0);
    assert_non_null(view);
    assert_int_equal(ebb_object_end(base), 0);
    assert_delivered(&post, &taker, view);
}

/* Its pages are free when the root's cleanups run. */
static void what_lies_in_a_child_is_left(void **state) {
    struct post post = open_post();
    struct taker taker;
    register_taker(&taker, post.from);
    ebb_region child = OPEN(.parent = post.from);
    assert_delivered(&post, &taker, tensor_of_bytes(child, BYTES));
}

static ebb_step begin_planned(ebb_site *site, ebb_region root) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    for (unsigned i = 0; i < 12; i++) {
        ebb_step step = ebb_step_begin_under(site, root, 0);
        struct ebb_tensor *tensor = tensor_of_bytes(step.region, BYTES);
        assert_int_equal(ebb_object_end(tensor), 0);
        assert_non_null(block_of(step.region, BYTES, 64));
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_true(stats.planned_steps > 2);
    return ebb_step_begin_under(site, root, 0);
}

/* The plan has another block where the elements are, once they are released. */
static void what_a_plan_has_placed_is_left(void **state) {
    struct post post = open_post();
    struct taker taker;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "site"));
    ebb_step step = begin_planned(site, post.from);
    register_taker(&taker, step.region);
    ebb_region ordinary = OPEN(.name = "ordinary");
    struct ebb_tensor *tensor = tensor_of_bytes(step.region, BYTES);
    assert_int_equal(ebb_object_borrow(tensor, ordinary), 0);
    assert_delivered(&post, &taker, tensor);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(ordinary), 0);
}

/* ---- blocks that cleanups release themselves ---- */

struct blocks {
    struct ebb_cleanup cleanup;
    ebb_region region;
    void *large, *small, *shrunk;
    int results[4];
};

static int release_both(void *data) {
    struct blocks *blocks = data;
    blocks->results[3] = ebb_region_resize(blocks->region, blocks->shrunk, 9000);
    blocks->results[0] = ebb_region_release(blocks->region, blocks->large);
    blocks->results[1] = ebb_region_release(blocks->region, blocks->small);
    blocks->results[2] = ebb_region_release(blocks->region, (char *)blocks->large + 64);
    return 0;
}

static void what_a_cleanup_releases_is_left(void **state) {
    ebb_pool *pool = shared_pool(1, 4 * MIB);
    struct blocks blocks = {.cleanup = {.run = release_both, .data = &blocks}};
    struct ebb_parcel parcel;
    struct taker taker;
    for (unsigned i = 0; i < 3; i++) { /* the slot serves as before */
        blocks.region = OPEN(.pool = pool);
        register_taker(&taker, blocks.region);
        assert_int_equal(ebb_cleanup_add(blocks.region, &blocks.cleanup), 0);
        blocks.small = block_of(blocks.region, 700, 64);
        blocks.large = block_of(blocks.region, BYTES, 64);
        blocks.shrunk = block_of(blocks.region, 2 * BYTES, 64);
        size_t offset = ebb_region_offset(blocks.region, blocks.small);
        size_t end = ebb_region_offset(blocks.region, blocks.shrunk);
        assert_int_equal(ebb_region_send(blocks.region, blocks.large, &parcel), 0);
        assert_int_equal(blocks.results[0], 0);
        assert_int_equal(blocks.results[1], 0);
        assert_int_equal(blocks.results[2], EBB_E_INTERIOR);
        assert_int_equal(blocks.results[3], 0);
        assert_int_equal(taker.taken, 5);
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        assert_true(lease_holds(lease, BYTES, (unsigned)BYTES));
        assert_true(pattern_holds(ebb_lease_at(lease, offset, 700), 700, 700));
        assert_true(pattern_holds(ebb_lease_at(lease, end, 2 * BYTES), 2 * BYTES, 2 * BYTES));
        ebb_lease_drop(lease);
        ebb_check_pool(pool);
        ebb_region whole = OPEN(.pool = pool);
        assert_non_null(ebb_region_alloc(whole, 4 * MIB - 64 * KIB, 64));
        assert_int_equal(ebb_region_close(whole), 0);
    }
    pool_end(pool);
}

/* ---- cleanups that rewind or reset a child ---- */

struct ender {
    struct ebb_cleanup cleanup;
    struct taker taker;
    ebb_mark mark;
    bool resets;
    int result;
};

static int end_blocks(void *data) {
    struct ender *ender = data;
    ender->result = ender->resets ? ebb_region_reset(ender->taker.region, EBB_KEEP_ALL)
                                  : ebb_region_rewind(ender->taker.region, ender->mark);
    return take_places(&ender->taker);
}

static void leave_what_is_ended(bool resets) {
    ebb_pool *pool = shared_pool(1, 4 * MIB);
    ebb_region root = OPEN(.pool = pool), child = OPEN(.parent = root);
    ebb_region newer = OPEN(.parent = root);
    struct ender ender = {.cleanup = {.run = end_blocks, .data = &ender},
                          .taker = {.region = child},
                          .resets = resets,
                          .mark = ebb_region_mark(child)};
    struct ebb_parcel parcel;
    assert_int_equal(ebb_cleanup_add(newer, &ender.cleanup), 0);
    size_t small = ebb_region_offset(child, block_of(child, 700, 64));
    assert_true(ebb_region_mark(child).serial);
    void *large = block_of(child, BYTES, 64);
    assert_int_equal(ebb_region_send(root, large, &parcel), 0);
    assert_int_equal(ender.result, 0);
    assert_int_equal(ender.taker.taken, 5);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_true(lease_holds(lease, BYTES, (unsigned)BYTES));
    assert_true(pattern_holds(ebb_lease_at(lease, small, 700), 700, 700));
    ebb_lease_drop(lease);
    ebb_check_pool(pool);
    pool_end(pool);
}

static void what_a_cleanup_rewinds_is_left(void **state) {
    leave_what_is_ended(false);
}

static void what_a_cleanup_resets_is_left(void **state) {
    leave_what_is_ended(true);
}

/* ---- calls that fail ---- */

struct failing {
    struct ebb_cleanup cleanup;
    ebb_region child, root;
    void *blocks[2];
    int result;
    struct ebb_region_stats before, after;
};

static int promote_too_much(void *data) {
    struct failing *failing = data;
    struct ebb_survivor list[] = {survivor_of(failing->blocks[0], EBB_PROMOTE_COPY),
                                  survivor_of(failing->blocks[1], EBB_PROMOTE_COPY)};
    failing->before = stats_of(failing->root);
    failing->result = ebb_promote(failing->child, failing->root, list, 2, NULL);
    failing->after = stats_of(failing->root);
    return 0;
}

/* What it took is nobody's: it goes as it would in any other region. */
static void a_call_that_fails_leaves_no_trace(void **state) {
    ebb_pool *pool = shared_pool(1, 4 * MIB);
    ebb_region root = OPEN(.pool = pool, .limit_bytes = MIB), child = OPEN(.parent = root);
    ebb_region newer = OPEN(.parent = root);
    struct failing failing = {.cleanup = {.run = promote_too_much, .data = &failing},
                              .child = child, .root = root};
    struct ebb_parcel parcel;
    assert_int_equal(ebb_cleanup_add(newer, &failing.cleanup), 0);
    (void)block_of(root, 1, 16); /* so the copy is moved on by padding */
    failing.blocks[0] = block_of(child, 700, 64);
    failing.blocks[1] = block_of(child, MIB / 2, 64);
    size_t offset = ebb_region_offset(root, failing.blocks[0]);
    assert_int_equal(ebb_region_send(root, failing.blocks[1], &parcel), 0);
    assert_int_equal(failing.result, EBB_E_REGION_LIMIT);
    assert_memory_equal(&failing.before.blocks, &failing.after.blocks, sizeof(struct ebb_meter));
    assert_memory_equal(&failing.before.used, &failing.after.used, sizeof(struct ebb_meter));
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_true(lease_holds(lease, MIB / 2, (unsigned)(MIB / 2)));
    assert_true(pattern_holds(ebb_lease_at(lease, offset, 700), 700, 700));
    ebb_lease_drop(lease);
    pool_end(pool);
}

/* Nor does what is full take it. */
static int fill_up(void *data) {
    struct taker *taker = data;
    void *block;
    while ((block = ebb_region_alloc(taker->region, 60000, 64)) != NULL) {
        memset(block, 0x11, 60000);
        taker->taken++;
    }
    return ebb_last_error() == EBB_E_POOL_LIMIT ? 0 : 1;
}

/* Nor does what is at the pool's limit. */
static void a_limit_leaves_it_too(void **state) {
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(
        .name = "limited", .kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 4 * MIB,
        .limit_reserved_bytes = 2 * MIB));
    struct taker taker = {.region = OPEN(.pool = pool), .cleanup = {.run = fill_up}};
    struct ebb_parcel parcel;
    taker.cleanup.data = &taker;
    assert_int_equal(ebb_cleanup_add(taker.region, &taker.cleanup), 0);
    ebb_region child = OPEN(.parent = taker.region);
    void *block = block_of(child, MIB + MIB / 2, 64);
    assert_int_equal(ebb_region_send(taker.region, block, &parcel), 0);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_true(lease_holds(lease, MIB + MIB / 2, (unsigned)(MIB + MIB / 2)));
    ebb_lease_drop(lease);
    ebb_check_pool(pool);
    pool_end(pool);
}

static void a_full_slot_leaves_it_too(void **state) {
    ebb_pool *pool = shared_pool(1, 2 * MIB);
    struct taker taker = {.region = OPEN(.pool = pool), .cleanup = {.run = fill_up}};
    struct ebb_parcel parcel;
    taker.cleanup.data = &taker;
    assert_int_equal(ebb_cleanup_add(taker.region, &taker.cleanup), 0);
    ebb_region child = OPEN(.parent = taker.region);
    void *block = block_of(child, MIB, 64);
    assert_int_equal(ebb_region_send(taker.region, block, &parcel), 0);
    assert_in_range(taker.taken, 3, MIB / 60000); /* in the other half */
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_true(lease_holds(lease, MIB, (unsigned)MIB));
    ebb_lease_drop(lease);
    ebb_check_pool(pool);
    pool_end(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lent_is_left),
        cmocka_unit_test(what_is_attached_is_left),
        cmocka_unit_test(what_only_a_child_sees_is_left),
        cmocka_unit_test(what_lies_in_a_child_is_left),
        cmocka_unit_test(what_a_plan_has_placed_is_left),
        cmocka_unit_test(what_a_cleanup_releases_is_left),
        cmocka_unit_test(what_a_cleanup_rewinds_is_left),
        cmocka_unit_test(what_a_cleanup_resets_is_left),
        cmocka_unit_test(a_call_that_fails_leaves_no_trace),
        cmocka_unit_test(a_full_slot_leaves_it_too),
        cmocka_unit_test(a_limit_leaves_it_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
