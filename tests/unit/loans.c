// SPDX-License-Identifier: Apache-2.0
/*
 * loans.c - deleters of producers that call ebb while objects end: they may end others, but not
 * those that are about to end, nor do anything else to them, nor end the region while there are
 * such. And that the bytes are out until then, whichever way they were promoted.
 */
#include "kit/boxes.h"
#include "kit/dlpack.h"

#include "region/region.h"

#include <ebb/handoff.h>

/* What the deleter does, and what came of it. */
static struct {
    void *ends;
    void (*asks)(void);
    ebb_region closes;
    ebb_pool *pool;
    int calls, ended, closed;
} act;

static void return_loan(DLManagedTensor *self) {
    (void)self;
    act.calls++;
    if (act.ends)
        act.ended = ebb_object_end(act.ends);
    if (act.asks)
        act.asks();
    for (int i = 0; act.ends && i < 20; i++) /* where it was */
        block_of(act.closes, 256, 16);
    act.closed = ebb_region_close(act.closes);
}

/* A tensor of a producer's bytes; all that the deleter does is about its region. */
static struct ebb_tensor *borrow_bytes(ebb_region region) {
    static int64_t shape[] = {4};
    static float values[4];
    static DLManagedTensor managed = {.deleter = return_loan};
    managed.dl_tensor = (DLTensor){.data = values, .device = {kDLCPU, 0}, .ndim = 1,
                                   .dtype = {kDLFloat, 32, 1}, .shape = shape};
    memset(&act, 0, sizeof act);
    act.closes = region;
    struct ebb_tensor *tensor = ebb_tensor_import(region, &managed, EBB_EXCHANGE_SHARE);
    assert_non_null(tensor);
    return tensor;
}

static void a_region_may_close_when_its_import_is_over(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    assert_int_equal(ebb_object_end(borrow_bytes(region)), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(act.closed, 0);
    assert_false(ebb_region_is_open(region));
    assert_int_equal(ebb_check_pool(stage->pool), 0);
}

static void members_end_with_their_composite_and_once(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    struct box *box = box_in(region);
    box->left = &borrow_bytes(region)->object;
    box->right = &floats_in(region, 10)->object;
    assert_int_equal(ebb_object_compose(box), 0);
    act.ends = box->right;
    assert_int_equal(ebb_object_end(box), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(act.ended, EBB_E_BUSY);
    assert_int_equal(act.closed, EBB_E_BUSY);
    assert_int_equal(live_in(region), 0);
    assert_int_equal(ebb_region_close(region), 0);
}

/* What is attached or lent ends in another region than it lies in, which counts it to the end. */
static void members_end_before_the_owner_of_their_composite(void **state) {
    struct stage *stage = *state;
    for (int lent = 0; lent < 2; lent++) {
        ebb_region owner = lent ? OPEN(.pool = stage->pool) : OPEN(.parent = stage->root);
        struct ebb_object_counts counts;
        struct box *box = box_in(stage->root);
        box->left = &borrow_bytes(stage->root)->object;
        box->right = &floats_in(stage->root, 10)->object;
        assert_int_equal(ebb_object_compose(box), 0);
        assert_int_equal(lent ? ebb_object_borrow(box, owner) : ebb_object_attach(box, owner), 0);
        act.closes = owner;
        assert_int_equal(ebb_object_end(box), 0);
        assert_int_equal(act.calls, 1);
        assert_int_equal(act.closed, EBB_E_BUSY);
        assert_int_equal(ebb_region_read_objects(owner, EBB_OBJECT_ALL, &counts), 0);
        assert_int_equal(counts.ended_outside + counts.ended_inside, 3);
        assert_int_equal(counts.live, 0);
        assert_int_equal(ebb_region_close(owner), 0);
    }
}

static void what_ends_with_others_ends_once(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    void *kept = floats_in(region, 10);
    struct ebb_tensor *last = floats_in(region, 10);
    borrow_bytes(region);
    act.ends = last;
    assert_int_equal(ebb_objects_end_but(region, &kept, 1), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(act.ended, EBB_E_BUSY);
    assert_int_equal(act.closed, EBB_E_BUSY);
    assert_int_equal(live_in(region), 1);
    assert_true(floats_hold(kept, 10));
    assert_int_equal(ebb_region_close(region), 0);
}

static int cleanup_calls;

static int count_calls(void *data) {
    (void)data;
    cleanup_calls++;
    return 0;
}

/* What the next deleters ask for. */
static struct {
    ebb_region region, child, lender;
    void *ending, *view;
    struct box *box;
} scene;

static void ask_for_what_ends(void) {
    void *ending = scene.ending, *other = floats_in(scene.region, 3);
    assert_refused(ebb_object_attach(ending, scene.child), EBB_E_BUSY);
    assert_refused(ebb_object_borrow(ending, scene.child), EBB_E_BUSY);
    assert_refused(ebb_object_return(ending), EBB_E_BUSY);
    assert_refused(ebb_objects_end_but(scene.region, &ending, 1), EBB_E_BUSY);
    assert_refused(ebb_objects_promote(scene.region, ebb_region_parent(scene.region), &ending, 1,
                                       NULL, NULL), EBB_E_BUSY);
    assert_refused(ebb_object_compose(ending), EBB_E_BUSY);
    assert_refused(ebb_object_replace(ending, BOX_LEFT, other), EBB_E_BUSY);
    assert_refused(ebb_object_replace(scene.box, BOX_LEFT, ending), EBB_E_BUSY);
    assert_no_block(ebb_object_move_outer(scene.region, ending), EBB_E_BUSY);
    assert_no_block(ebb_node_new_list(scene.region, &ending, 1), EBB_E_BUSY);
    assert_no_block(ebb_batch_collate(scene.region, &ending, 1, NULL, NULL), EBB_E_BUSY);
    assert_false(ebb_batch_equal(ending, other));
    assert_int_equal(ebb_last_error(), EBB_E_BUSY);
    assert_int_equal(ebb_object_end(other), 0);
}

static void what_ends_with_others_is_not_handed_on(void **state) {
    struct stage *stage = *state;
    scene.region = OPEN(.parent = stage->root);
    scene.child = OPEN(.parent = scene.region);
    scene.box = box_in(scene.region);
    void *last = floats_in(scene.region, 10);
    scene.ending = box_in(scene.region);
    borrow_bytes(scene.region);
    act.asks = ask_for_what_ends;
    assert_int_equal(ebb_objects_end_but(scene.region, (void *[]){scene.box}, 1), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(live_in(scene.region), 1);
    assert_refused(ebb_object_end(last), EBB_E_RELEASED);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
}

/* By a region that is not about to end. */
static void ask_to_send(void) {
    struct ebb_parcel parcel;
    assert_refused(ebb_region_send_object(scene.region, scene.ending, &parcel), EBB_E_BUSY);
    assert_true(ebb_region_is_open(scene.region));
}

static void what_ends_with_others_is_not_sent(void **state) {
    struct stage *stage = *state;
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = MIB);
    ebb_region region = OPEN(.parent = stage->root);
    struct box *box = box_in(region);
    scene.region = OPEN(.pool = pool);
    box->left = &borrow_bytes(region)->object;
    box->right = scene.ending = &floats_in(region, 10)->object;
    assert_int_equal(ebb_object_compose(box), 0);
    act.asks = ask_to_send;
    assert_int_equal(ebb_object_end(box), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(live_in(region), 0);
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(stats_of(scene.region).used.current, 0); /* nothing was written for it */
    assert_int_equal(ebb_region_close(scene.region), 0);
    pool_end(pool);
}

static void ask_for_a_tensor_that_ends(void) {
    const struct ebb_sample_info mask = {.kind = EBB_SAMPLE_MASK};
    void *ending = scene.ending;
    assert_no_block(ebb_tensor_take(ending), EBB_E_BUSY);
    assert_no_block(ebb_sample_new(scene.region, ending, &mask), EBB_E_BUSY);
    assert_int_equal(ebb_object_end(floats_of(scene.region, ending, 1, 2)), 0);
}

static void tensors_that_end_with_others_may_only_be_seen(void **state) {
    struct stage *stage = *state;
    scene.region = OPEN(.parent = stage->root);
    scene.ending = floats_in(scene.region, 10);
    borrow_bytes(scene.region);
    act.asks = ask_for_a_tensor_that_ends;
    assert_int_equal(ebb_objects_end_but(scene.region, NULL, 0), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(live_in(scene.region), 0);
}

/* The composite is over; its place has other contents. */
static void ask_for_members(void) {
    memset(ebb_region_alloc(scene.region, sizeof(struct box), 16), 0xee, sizeof(struct box));
    assert_true(ebb_region_owns(scene.region, scene.ending));
    ask_for_what_ends();
}

static void members_forget_what_ended_before_them(void **state) {
    struct stage *stage = *state;
    scene.region = OPEN(.parent = stage->root);
    scene.child = OPEN(.parent = scene.region);
    scene.box = box_in(scene.region);
    struct box *whole = box_in(scene.region), *inner = box_in(scene.region);
    struct ebb_object *parts[2] = {&floats_in(scene.region, 5)->object,
                                   &floats_in(scene.region, 7)->object};
    whole->part_count = 2;
    whole->parts = block_of(scene.region, sizeof parts, 16);
    memcpy(whole->parts, parts, sizeof parts);
    whole->left = &borrow_bytes(scene.region)->object;
    whole->right = scene.ending = inner;
    assert_int_equal(ebb_object_compose(whole), 0);
    act.asks = ask_for_members;
    assert_int_equal(ebb_object_end(whole), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(live_in(scene.region), 1);
}

static void ask_for_a_kept_view(void) {
    assert_refused(ebb_objects_promote(scene.region, ebb_region_parent(scene.region), &scene.view,
                                       1, NULL, NULL), EBB_E_BUSY);
}

static void a_storage_goes_not_while_its_tensor_ends(void **state) {
    struct stage *stage = *state;
    scene.region = OPEN(.parent = stage->root);
    scene.ending = floats_in(scene.region, 2000);
    scene.view = floats_of(scene.region, scene.ending, 0, 2000);
    borrow_bytes(scene.region);
    act.asks = ask_for_a_kept_view;
    assert_int_equal(ebb_objects_end_but(scene.region, &scene.view, 1), 0);
    assert_int_equal(act.calls, 1);
    assert_true(floats_hold(scene.view, 2000));
    assert_int_equal(ebb_objects_promote(scene.region, stage->root, &scene.view, 1, NULL, NULL), 0);
    assert_true(floats_hold(scene.view, 2000));
}

static void close_the_lender(void) {
    assert_refused(ebb_region_close(scene.lender), EBB_E_BUSY);
}

static void a_lender_stays_until_what_it_lent_has_ended(void **state) {
    struct stage *stage = *state;
    scene.lender = OPEN(.pool = stage->pool);
    scene.region = OPEN(.parent = stage->root);
    assert_int_equal(ebb_object_borrow(floats_in(scene.lender, 10), scene.region), 0);
    borrow_bytes(scene.region);
    act.asks = close_the_lender;
    assert_int_equal(ebb_objects_end_but(scene.region, NULL, 0), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(live_in(scene.region) + live_in(scene.lender), 0);
    assert_int_equal(ebb_region_close(scene.lender), 0);
}

static void end_who_had_it(void) {
    uint64_t ended;
    assert_refused(ebb_region_close(scene.child), EBB_E_BUSY);
    assert_refused(ebb_region_reset(scene.child, 0), EBB_E_BUSY);
    assert_refused(ebb_objects_close_keeping(scene.child, scene.lender, NULL, 0, NULL, NULL,
                                             &ended), EBB_E_BUSY);
    assert_int_equal(ebb_check_pool(act.pool), 0);
}

/* It was attached, or lent, to a region that lent it on; others end with it, and after it. */
static void who_had_what_ends_stays_until_it_has_ended(void **state) {
    struct stage *stage = *state;
    for (int lent = 0; lent < 2; lent++) {
        scene.lender = OPEN(.pool = stage->pool);
        scene.child = OPEN(.parent = scene.lender);
        scene.region = OPEN(.parent = stage->root);
        floats_in(scene.region, 3);
        struct ebb_tensor *tensor = floats_in(scene.lender, 10);
        assert_int_equal(lent ? ebb_object_borrow(tensor, scene.child)
                              : ebb_object_attach(tensor, scene.child), 0);
        assert_int_equal(ebb_object_borrow(tensor, scene.region), 0);
        borrow_bytes(scene.region);
        act.asks = end_who_had_it;
        act.pool = stage->pool;
        assert_int_equal(ebb_objects_end_but(scene.region, NULL, 0), 0);
        assert_int_equal(act.calls, 1);
        assert_int_equal(ebb_region_list_objects(scene.region, NULL, 0), 0);
        assert_int_equal(live_in(scene.region) + live_in(scene.child) + live_in(scene.lender), 0);
        assert_int_equal(ebb_region_close(scene.child), 0);
        assert_int_equal(ebb_region_close(scene.lender), 0);
        assert_int_equal(ebb_region_close(scene.region), 0);
    }
}

/* The view is newer than the mark, and the last that sees the bytes. */
static void a_rewind_is_not_left_by_the_region(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root), child = OPEN(.parent = region);
    struct ebb_tensor *tensor = borrow_bytes(region);
    ebb_mark mark = ebb_region_mark(region);
    assert_non_null(ebb_tensor_view(region, tensor, 1, (int64_t[]){2}, (int64_t[]){1}, 0));
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(act.calls, 0);
    assert_int_equal(ebb_region_rewind(region, mark), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(act.closed, EBB_E_BUSY);
    assert_int_equal(live_in(region), 0);
    assert_int_equal(ebb_region_close(child), 0);
    assert_int_equal(ebb_region_close(region), 0);
}

/* What is lent and older than a mark ends with its host all the same: the rewind is over. */
static void what_is_lent_after_a_rewind_ends_with_its_host(void **state) {
    struct stage *stage = *state;
    ebb_region host = OPEN(.parent = stage->root), other = OPEN(.pool = stage->pool);
    for (unsigned closes = 0; closes < 2; closes++) {
        struct box *older = box_in(host);
        ebb_mark mark = ebb_region_mark(host);
        box_in(host);
        assert_int_equal(ebb_region_rewind(host, mark), 0);
        assert_int_equal(((const struct region *)host.lane)->ending, 0);
        assert_int_equal(ebb_object_borrow(older, other), 0);
        assert_int_equal(closes ? ebb_region_close(host) : ebb_region_reset(host, 0), 0);
        assert_int_equal(live_in(other), 0);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
    }
    assert_int_equal(ebb_region_close(other), 0);
}

static void ask_for_more_of_what_goes(void) {
    static struct ebb_cleanup cleanup;
    cleanup = (struct ebb_cleanup){.run = count_calls};
    assert_int_equal(ebb_cleanup_add(scene.region, &cleanup), 0);
    scene.view = floats_of(scene.child, scene.ending, 0, 10);
    assert_int_equal(ebb_object_attach(scene.box, scene.child), 0);
}

/* Here the producer hears of it when no cleanup is left, and the views below have ended. */
static void a_rewind_ends_what_a_producer_made_meanwhile(void **state) {
    struct stage *stage = *state;
    scene.region = OPEN(.parent = stage->root);
    scene.child = OPEN(.parent = scene.region);
    struct ebb_tensor *tensor = borrow_bytes(scene.region);
    ebb_mark mark = ebb_region_mark(scene.region);
    scene.ending = floats_in(scene.region, 10);
    scene.box = box_in(scene.region);
    floats_of(scene.region, tensor, 0, 2);
    assert_int_equal(ebb_object_end(tensor), 0);
    act.asks = ask_for_more_of_what_goes;
    cleanup_calls = 0;
    assert_int_equal(ebb_region_rewind(scene.region, mark), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(cleanup_calls, 1);
    assert_int_equal(live_in(scene.region) + live_in(scene.child), 0);
    assert_false(is_object(scene.view));
    assert_int_equal(ebb_check_pool(stage->pool), 0);
}

/* Two views go as copies; each was the last of its storage. */
static void a_composite_ends_before_those_who_had_it(void **state) {
    struct stage *stage = *state;
    for (int alone = 0; alone < 2; alone++) {
        scene.lender = OPEN(.pool = stage->pool);
        scene.child = OPEN(.pool = stage->pool);
        scene.region = OPEN(.parent = stage->root);
        struct box *box = box_in(scene.lender);
        box->left = &borrow_bytes(scene.lender)->object;
        box->right = &floats_in(scene.lender, 10)->object;
        assert_int_equal(ebb_object_compose(box), 0);
        assert_int_equal(ebb_object_borrow(box, scene.child), 0);
        assert_int_equal(ebb_object_borrow(box, scene.region), 0);
        act.asks = end_who_had_it;
        act.pool = stage->pool;
        assert_int_equal(alone ? ebb_object_end(box)
                               : ebb_objects_end_but(scene.region, NULL, 0), 0);
        assert_int_equal(act.calls, 1);
        assert_int_equal(act.closed, EBB_E_BUSY);
        assert_int_equal(ebb_region_close_strict(scene.child), 0);
        assert_int_equal(ebb_region_close_strict(scene.lender), 0);
        assert_int_equal(ebb_region_close(scene.region), 0);
    }
}

static void a_promotion_is_over_when_a_producer_hears_of_it(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    struct ebb_own_options compact = {
        .size = sizeof compact, .mode = EBB_PROMOTE_COPY, .compact = true};
    struct ebb_tensor *tensor = borrow_bytes(region), *base = floats_in(region, 100);
    void *views[] = {ebb_tensor_view(region, tensor, 1, (int64_t[]){2}, (int64_t[]){1}, 0),
                     floats_of(region, base, 5, 3)};
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(ebb_object_end(base), 0);
    act.ends = views[1];
    assert_int_equal(ebb_objects_promote(region, stage->root, views, 2, &compact, NULL), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(act.ended, EBB_E_BUSY);
    assert_int_equal(act.closed, EBB_E_BUSY);
    assert_int_equal(live_in(region), 0);
    assert_int_equal(live_in(stage->root), 2);
    assert_int_equal(ebb_region_close(region), 0);
}

static void end_what_has_arrived(void) {
    assert_int_equal(ebb_object_end(scene.ending), 0);
    for (int i = 0; i < 20; i++) /* where it was */
        block_of(ebb_region_parent(scene.region), 256, 16);
}

/* It is hosted by the target, and changed its owner before the producer heard of it. */
static void what_was_promoted_may_end_at_once(void **state) {
    struct stage *stage = *state;
    scene.region = OPEN(.parent = stage->root);
    struct ebb_own_options compact = {
        .size = sizeof compact, .mode = EBB_PROMOTE_COPY, .compact = true};
    struct ebb_tensor *tensor = borrow_bytes(scene.region);
    scene.ending = floats_in(stage->root, 10);
    void *list[] = {floats_of(scene.region, tensor, 0, 2), scene.ending};
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(ebb_object_attach(scene.ending, scene.region), 0);
    act.asks = end_what_has_arrived;
    assert_int_equal(ebb_objects_promote(scene.region, stage->root, list, 2, &compact, NULL), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(live_in(stage->root), 1);
}

static void ask_for_a_view_that_went(void) {
    memset(ebb_region_alloc(scene.region, sizeof(struct box), 16), 0xee, sizeof(struct box));
    assert_true(ebb_region_owns(scene.region, scene.ending));
    assert_refused(ebb_object_attach(scene.ending, scene.child), EBB_E_BUSY);
}

/* Members that go as copies forget the composite, which has gone before them. */
static void views_forget_what_went_before_them(void **state) {
    struct stage *stage = *state;
    scene.region = OPEN(.parent = stage->root);
    scene.child = OPEN(.parent = scene.region);
    struct ebb_own_options compact = {
        .size = sizeof compact, .mode = EBB_PROMOTE_COPY, .compact = true};
    struct ebb_tensor *tensor = borrow_bytes(scene.region), *base = floats_in(scene.region, 100);
    struct box *box = box_in(scene.region);
    box->left = &floats_of(scene.region, tensor, 0, 2)->object;
    box->right = scene.ending = floats_of(scene.region, base, 5, 3);
    assert_int_equal(ebb_object_compose(box), 0);
    assert_int_equal(ebb_object_end(tensor), 0);
    act.asks = ask_for_a_view_that_went;
    assert_int_equal(ebb_objects_promote(scene.region, stage->root, (void *[]){box}, 1, &compact,
                                         NULL), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(live_in(scene.region), 1);
    assert_int_equal(live_in(stage->root), 3);
}

struct saving {
    ebb_region region, other;
    struct ebb_tensor *tensor;
    void *saved;
    int error;
};

/* What else would read its elements is refused as well, once its producer has them back. */
static void assert_unreadable(struct ebb_tensor *tensor, ebb_region region) {
    struct ebb_tensor *other = ebb_tensor_new(region, float32, 1, tensor->shape);
    assert_non_null(other);
    assert_no_block(ebb_tensor_export(tensor, EBB_EXCHANGE_COPY), EBB_E_RELEASED);
    assert_no_block(ebb_tensor_contiguous(region, tensor), EBB_E_RELEASED);
    assert_no_block(ebb_tensor_convert(region, tensor, float32), EBB_E_RELEASED);
    assert_refused(ebb_tensor_copy(other, tensor), EBB_E_RELEASED);
    assert_no_block(ebb_batch_collate(region, (void *[]){tensor, other}, 2, NULL, NULL),
                    EBB_E_RELEASED);
    assert_int_equal(ebb_object_end(other), 0);
}

static int save_tensor(void *data) {
    struct saving *saving = data;
    saving->saved = ebb_object_move_outer(saving->region, saving->tensor);
    saving->error = saving->saved ? 0 : ebb_last_error();
    if (!saving->saved)
        assert_unreadable(saving->tensor, saving->other);
    return 0;
}

/* Cleanups run newest first, and the import has one. */
static void what_was_given_back_is_not_saved_by_an_older_cleanup(void **state) {
    struct stage *stage = *state;
    for (int older = 0; older < 2; older++) {
        struct saving saving = {.region = OPEN(.parent = stage->root), .other = stage->root};
        struct ebb_cleanup cleanup = {.run = save_tensor, .data = &saving};
        if (older)
            assert_int_equal(ebb_cleanup_add(saving.region, &cleanup), 0);
        saving.tensor = borrow_bytes(saving.region);
        if (!older)
            assert_int_equal(ebb_cleanup_add(saving.region, &cleanup), 0);
        assert_int_equal(ebb_region_close(saving.region), 0);
        assert_int_equal(saving.error, older ? EBB_E_RELEASED : 0);
        assert_int_equal(act.calls, older);
        if (!older)
            assert_int_equal(ebb_object_end(saving.saved), 0);
        assert_int_equal(act.calls, 1);
    }
}

/* What leads to the bytes is small and copied, whatever is relinked beside it, and however they are
 * aligned. */
static void a_loan_is_out_however_often_it_is_promoted(void **state) {
    struct stage *stage = *state;
    static _Alignas(256) char bytes[10000];
    static int64_t shape[] = {10000};
    for (int mode = EBB_PROMOTE_AUTO; mode <= EBB_PROMOTE_RELINK; mode++) {
        DLManagedTensor managed = {.dl_tensor = {.data = bytes, .device = {kDLCPU, 0}, .ndim = 1,
                                                 .dtype = {kDLUInt, 8, 1}, .shape = shape},
                                   .deleter = return_loan};
        struct ebb_own_options options = {.size = sizeof options, .mode = mode};
        ebb_region outer = OPEN(.parent = stage->root), inner = OPEN(.parent = outer);
        struct ebb_promoted cost = {0};
        memset(&act, 0, sizeof act);
        act.closes = inner;
        void *list[] = {ebb_tensor_import(inner, &managed, EBB_EXCHANGE_SHARE),
                        tensor_of_bytes(inner, 9000)};
        assert_int_equal(ebb_objects_promote(inner, outer, list, 2, &options, NULL), 0);
        assert_int_equal(ebb_region_close(inner), 0);
        list[1] = tensor_of_bytes(outer, 9000);
        assert_int_equal(
            ebb_objects_close_keeping(outer, stage->root, list, 2, &options, &cost, NULL), 0);
        assert_int_equal(cost.relinked_blocks, mode != EBB_PROMOTE_COPY);
        assert_int_equal(act.calls, 0);
        assert_ptr_equal(((struct ebb_tensor *)list[0])->data, bytes);
        assert_int_equal(ebb_object_end(list[0]), 0);
        assert_int_equal(act.calls, 1);
        assert_int_equal(ebb_object_end(list[1]), 0);
    }
}

static int heard_of; /* how often the producer had, when the region's cleanup ran */

static int note_calls(void *data) {
    (void)data;
    heard_of = act.calls;
    return 0;
}

/* What the last view of it leaves is the region's to end, in its turn. */
static void bytes_that_a_view_leaves_go_when_the_region_does(void **state) {
    struct stage *stage = *state;
    struct ebb_own_options compact = {.size = sizeof compact, .mode = EBB_PROMOTE_COPY,
                                      .compact = true};
    struct ebb_cleanup cleanup = {.run = note_calls};
    ebb_region region = OPEN(.parent = stage->root);
    struct ebb_tensor *base = borrow_bytes(region);
    void *view = floats_of(region, base, 1, 2);
    assert_int_equal(ebb_object_end(base), 0);
    assert_int_equal(act.calls, 0); /* it is seen */
    assert_int_equal(ebb_cleanup_add(region, &cleanup), 0);
    heard_of = -1;
    assert_int_equal(ebb_objects_close_keeping(region, stage->root, &view, 1, &compact, NULL,
                                               NULL), 0);
    assert_int_equal(heard_of, 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(ebb_object_end(view), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_region_may_close_when_its_import_is_over),
        STAGED(members_end_with_their_composite_and_once),
        STAGED(members_end_before_the_owner_of_their_composite),
        STAGED(what_ends_with_others_ends_once),
        STAGED(what_ends_with_others_is_not_handed_on),
        STAGED(what_ends_with_others_is_not_sent),
        STAGED(tensors_that_end_with_others_may_only_be_seen),
        STAGED(members_forget_what_ended_before_them),
        STAGED(a_storage_goes_not_while_its_tensor_ends),
        STAGED(a_lender_stays_until_what_it_lent_has_ended),
        STAGED(who_had_what_ends_stays_until_it_has_ended),
        STAGED(a_composite_ends_before_those_who_had_it),
        STAGED(a_promotion_is_over_when_a_producer_hears_of_it),
        STAGED(a_rewind_ends_what_a_producer_made_meanwhile),
        STAGED(what_was_promoted_may_end_at_once),
        STAGED(views_forget_what_went_before_them),
        STAGED(what_was_given_back_is_not_saved_by_an_older_cleanup),
        STAGED(a_rewind_is_not_left_by_the_region),
        STAGED(what_is_lent_after_a_rewind_ends_with_its_host),
        STAGED(a_loan_is_out_however_often_it_is_promoted),
        STAGED(bytes_that_a_view_leaves_go_when_the_region_does),
    };
    return cmocka_run_group_tests(tests, boxes_prepare, NULL);
}
