// SPDX-License-Identifier: Apache-2.0
/*
 * adopt.c - objects with owners that are not their hosts: attached and lent ones, whatever ends
 * first, is rewound, or takes what they see from them.
 */
#include "kit/boxes.h"

#include <ebb/exhausted.h>
#include <ebb/remote.h>

static uint64_t live_objects(void) {
    struct ebb_object_counts counts;
    assert_int_equal(ebb_process_read_objects(EBB_OBJECT_ALL, &counts), 0);
    return counts.live;
}

static void a_list_names_what_is_attached_once(void **state) {
    struct stage *stage = *state;
    ebb_region middle = OPEN(.parent = stage->root), inner = OPEN(.parent = middle);
    ebb_region targets[2] = {stage->root, middle};
    for (int i = 0; i < 2; i++) {
        struct ebb_tensor *tensor = floats_in(stage->root, 3), *own = floats_in(inner, 4);
        void *objects[4] = {own, tensor, floats_in(inner, 5), tensor};
        struct ebb_object_counts before, after;
        assert_int_equal(ebb_object_attach(tensor, inner), 0);
        assert_int_equal(ebb_process_read_objects(EBB_OBJECT_ALL, &before), 0);
        assert_refused(ebb_objects_promote(inner, targets[i], objects, 4, NULL, NULL),
                       EBB_E_DUPLICATE);
        assert_int_equal(ebb_process_read_objects(EBB_OBJECT_ALL, &after), 0);
        assert_memory_equal(&before, &after, sizeof after);
        assert_true(ebb_region_owns(inner, tensor) && ebb_region_owns(inner, own));
        ebb_check_pool(stage->pool);
        assert_int_equal(ebb_objects_promote(inner, targets[i], objects, 3, NULL, NULL), 0);
        assert_true(ebb_region_owns(targets[i], tensor));
    }
}

/* Those that were lent to it go back; those that are attached to it end, and those that it lent. */
static void closing_counts_what_ends_and_not_what_goes_back(void **state) {
    struct stage *stage = *state;
    ebb_region other = OPEN(.pool = stage->pool);
    ebb_region inner = OPEN(.parent = stage->root), below = OPEN(.parent = inner);
    struct box *box = box_in(other);
    box->left = &floats_in(other, 3)->object;
    assert_int_equal(ebb_object_compose(box), 0);
    assert_int_equal(ebb_object_borrow(box, below), 0);
    assert_int_equal(ebb_object_borrow(floats_in(inner, 4), below), 0);
    struct ebb_tensor *attached = floats_in(stage->root, 5);
    assert_int_equal(ebb_object_attach(attached, inner), 0);
    struct box *lent = box_in(below);
    lent->left = &floats_in(below, 6)->object;
    assert_int_equal(ebb_object_compose(lent), 0);
    assert_int_equal(ebb_object_borrow(lent, inner), 0);
    assert_int_equal(ebb_object_borrow(lent, other), 0);
    assert_int_equal(ebb_object_borrow(lent, stage->root), 0);
    struct ebb_tensor *through = floats_in(other, 8), *onward = floats_in(inner, 9);
    assert_int_equal(ebb_object_borrow(through, inner), 0);
    assert_int_equal(ebb_object_borrow(through, stage->root), 0);
    assert_int_equal(ebb_object_attach(onward, below), 0);
    assert_int_equal(ebb_object_borrow(onward, other), 0);
    struct ebb_tensor *passed = floats_in(stage->root, 10);
    assert_int_equal(ebb_object_attach(passed, inner), 0);
    assert_int_equal(ebb_object_borrow(passed, other), 0);
    floats_in(below, 7);
    uint64_t ended = 0, live = live_objects();
    assert_int_equal(
        ebb_objects_close_keeping(inner, stage->root, NULL, 0, NULL, NULL, &ended), 0);
    assert_int_equal(ended, 7);
    assert_int_equal(ended, live - live_objects());
    assert_true(ebb_region_owns(other, box) && floats_hold((void *)box->left, 3));
    assert_true(ebb_region_owns(stage->root, through));
    assert_false(is_object(attached) || is_object(lent) || is_object(onward) || is_object(passed));
    assert_int_equal(live_in(other), 2);
    ebb_region_close(other);
}

/* The record is a block of the host: nothing has changed if a limit refuses it. */
static void a_full_host_attaches_and_lends_nothing(void **state) {
    struct stage *stage = *state;
    ebb_region full = OPEN(.parent = stage->root, .limit_bytes = 100000);
    ebb_region below = OPEN(.parent = full);
    struct ebb_tensor *tensor = floats_in(full, 3);
    while (ebb_region_alloc(full, 1, 1))
        ;
    struct ebb_region_stats before = stats_of(full);
    assert_refused(ebb_object_attach(tensor, below), EBB_E_REGION_LIMIT);
    assert_null(ebb_object_move(tensor, below));
    assert_refused(ebb_last_error(), EBB_E_REGION_LIMIT);
    assert_refused(ebb_object_borrow(tensor, stage->root), EBB_E_REGION_LIMIT);
    struct ebb_region_stats after = stats_of(full);
    assert_memory_equal(&before, &after, sizeof after);
    assert_true(ebb_region_owns(full, tensor) && floats_hold(tensor, 3));
    assert_int_equal(ebb_region_close(full), 0);
}

static void note_exhausted(void *context, const char *text) {
    const char **heard = context;
    static char last[2048];
    strncpy(last, text, sizeof last - 1);
    *heard = last;
}

/* In private and in shared memory, where records lie apart. */
static void what_others_released_is_in_the_way_of_no_loan(void **state) {
    struct stage *stage = *state;
    ebb_pool *shared = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = MIB);
    ebb_pool *pools[] = {stage->pool, shared};
    const char *heard = NULL;
    assert_null(ebb_report_on_exhausted(note_exhausted, &heard));
    for (int i = 0; i < 2; i++) {
        ebb_region host = OPEN(.pool = pools[i], .limit_bytes = 100000);
        ebb_region beside = OPEN(.parent = host), below = OPEN(.parent = host);
        struct ebb_tensor *tensor = floats_in(host, 3);
        void *waiting[] = {block_of(beside, 600, 16), block_of(beside, 600, 16)};
        while (ebb_region_alloc(host, 1, 1))
            ;
        for (int lent = 0; lent < 2; lent++) {
            assert_int_equal(ebb_region_release_remote(beside, waiting[lent]), 0);
            heard = NULL;
            assert_int_equal(lent ? ebb_object_borrow(tensor, stage->root)
                                  : ebb_object_attach(tensor, below), 0);
            assert_null(heard);
            while (ebb_region_alloc(host, 1, 1))
                ;
        }
        heard = NULL;
        assert_refused(ebb_object_borrow(tensor, below), EBB_E_REGION_LIMIT);
        assert_non_null(heard);
        assert_non_null(strstr(heard, "EBB_E_REGION_LIMIT"));
        assert_int_equal(ebb_check_pool(pools[i]), 0);
        assert_int_equal(ebb_region_close(host), 0);
    }
    assert_true(ebb_report_on_exhausted(NULL, NULL) == note_exhausted);
    pool_end(shared);
}

static void what_is_attached_and_lent_on_ends_with_what_it_is_attached_to(void **state) {
    struct stage *stage = *state;
    ebb_region other = OPEN(.pool = stage->pool), inner = OPEN(.parent = stage->root);
    struct ebb_tensor *tensor = floats_in(stage->root, 3);
    assert_int_equal(ebb_object_attach(tensor, inner), 0);
    assert_int_equal(ebb_object_borrow(tensor, other), 0);
    ebb_region_close(inner);
    assert_false(is_object(tensor));
    assert_int_equal(live_in(other), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    ebb_region_close(other);
}

static void a_long_chain_of_loans_is_only_long(void **state) {
    struct stage *stage = *state;
    ebb_region a = OPEN(.pool = stage->pool), b = OPEN(.pool = stage->pool);
    struct ebb_tensor *tensor = floats_in(stage->root, 3);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(ebb_object_borrow(tensor, i % 2 ? a : b), 0);
    ebb_region_close(a);
    assert_true(ebb_region_owns(b, tensor));
    ebb_region_close(b);
    assert_true(ebb_region_owns(stage->root, tensor));
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
}

static void a_measuring_region_takes_no_objects(void **state) {
    struct stage *stage = *state;
    ebb_region measuring = OPEN(.measure = true);
    struct ebb_tensor *small = floats_in(stage->root, 3), *large = floats_in(stage->root, 30000);
    assert_no_block(ebb_object_move(small, measuring), EBB_E_MEASURING);
    assert_no_block(ebb_object_move(large, measuring), EBB_E_MEASURING);
    assert_refused(ebb_object_borrow(small, measuring), EBB_E_MEASURING);
    assert_true(floats_hold(small, 3) && floats_hold(large, 30000));
    assert_int_equal(live_in(stage->root), 2);
    assert_int_equal(live_in(measuring), 0);
    ebb_region_close(measuring);
}

static void what_is_given_is_counted_where_it_was_owned(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root), other = OPEN(.pool = stage->pool);
    struct ebb_object_counts given, host;
    struct ebb_tensor *tensor = floats_in(stage->root, 3);
    assert_int_equal(ebb_object_attach(tensor, inner), 0);
    assert_non_null(ebb_object_move(tensor, other));
    assert_int_equal(ebb_region_read_objects(inner, EBB_OBJECT_ALL, &given), 0);
    assert_int_equal(ebb_region_read_objects(stage->root, EBB_OBJECT_ALL, &host), 0);
    assert_int_equal(given.copied, 1);
    assert_int_equal(given.detached, 1);
    assert_int_equal(host.copied, 0);
    ebb_region_close(other);
}

/* ---- rewinds ---- */

static void a_rewind_takes_back_what_was_given_since_and_ends_what_is_newer(void **state) {
    struct stage *stage = *state;
    ebb_region other = OPEN(.pool = stage->pool), inner = OPEN(.parent = stage->root);
    struct ebb_tensor *older[2] = {floats_in(stage->root, 3), floats_in(stage->root, 4)};
    ebb_mark mark = ebb_region_mark(stage->root);
    struct ebb_tensor *newer[2] = {floats_in(stage->root, 5), floats_in(stage->root, 6)};
    assert_int_equal(ebb_object_attach(older[0], inner), 0);
    assert_int_equal(ebb_object_borrow(older[0], other), 0);
    assert_int_equal(ebb_object_borrow(older[1], other), 0);
    assert_int_equal(ebb_object_attach(newer[0], inner), 0);
    assert_int_equal(ebb_object_borrow(newer[1], other), 0);
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    ebb_check_pool(stage->pool);
    for (int i = 0; i < 2; i++) {
        assert_true(ebb_region_owns(stage->root, older[i]) && floats_hold(older[i], 3 + i));
        assert_false(is_object(newer[i]));
    }
    assert_int_equal(live_in(inner), 0);
    assert_int_equal(live_in(other), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 2);
    ebb_region_close(other);
}

/* What was attached before, too: then its host has it, or the lender that had it before. */
static void a_rewind_takes_back_what_went_on_since(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < 6; way++) {
        ebb_region first = OPEN(.parent = stage->root), second = OPEN(.parent = stage->root);
        ebb_region other = OPEN(.pool = stage->pool);
        struct ebb_tensor *tensor = floats_in(stage->root, 3);
        assert_int_equal(ebb_object_attach(tensor, first), 0);
        ebb_mark mark = ebb_region_mark(stage->root);
        if (way % 3 == 0)
            assert_int_equal(ebb_object_attach(tensor, second), 0);
        else if (way % 3 == 1)
            assert_ptr_equal(ebb_object_move(tensor, second), tensor);
        if (way >= 3 || way == 2)
            assert_int_equal(ebb_object_borrow(tensor, other), 0);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        ebb_check_pool(stage->pool);
        ebb_region owner = way % 3 == 2 ? first : stage->root;
        assert_true(ebb_region_owns(owner, tensor) && floats_hold(tensor, 3));
        assert_int_equal(live_in(owner), 1);
        assert_int_equal(live_in(second) + live_in(other), 0);
        assert_int_equal(ebb_object_end(tensor), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
        assert_int_equal(ebb_region_close(first), 0);
        assert_int_equal(ebb_region_close(second), 0);
        assert_int_equal(ebb_region_close(other), 0);
    }
}

static void a_loan_does_not_make_an_object_younger(void **state) {
    struct stage *stage = *state;
    ebb_region other = OPEN(.pool = stage->pool);
    struct ebb_tensor *tensor = floats_in(stage->root, 3), *last = floats_in(stage->root, 4);
    ebb_mark mark = ebb_region_mark(stage->root);
    struct ebb_tensor *newer = floats_in(stage->root, 5);
    assert_int_equal(ebb_object_borrow(tensor, other), 0);
    assert_int_equal(ebb_object_return(tensor), 0);
    ebb_check_pool(stage->pool);
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    assert_true(is_object(tensor) && is_object(last) && !is_object(newer));
    assert_true(floats_hold(tensor, 3));
    ebb_region_close(other);
}

static void an_attached_taker_ends_with_its_own_bytes(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct ebb_tensor *tensor = floats_in(stage->root, 3);
    assert_int_equal(ebb_object_attach(tensor, inner), 0);
    ebb_mark mark = ebb_region_mark(stage->root);
    struct ebb_tensor *taker = ebb_tensor_take(tensor);
    assert_non_null(taker);
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    assert_false(is_object(taker));
    assert_int_equal(live_in(inner), 0);
    ebb_check_pool(stage->pool);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

static void views_further_down_end_when_what_they_see_is_rewound(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root), below = OPEN(.parent = inner);
    ebb_region other = OPEN(.pool = stage->pool);
    struct ebb_tensor *older = floats_in(stage->root, 30);
    ebb_mark mark = ebb_region_mark(stage->root);
    struct ebb_tensor *newer = floats_in(stage->root, 300);
    struct ebb_tensor *kept[2] = {floats_of(inner, older, 1, 9), floats_of(below, older, 2, 9)};
    struct ebb_tensor *lost[3] = {floats_of(inner, newer, 1, 9), floats_of(below, newer, 2, 9),
                                  floats_of(below, newer, 3, 9)};
    struct box *box = box_in(below);
    box->left = &lost[1]->object;
    assert_int_equal(ebb_object_compose(box), 0);
    assert_int_equal(ebb_object_borrow(lost[2], other), 0);
    assert_int_equal(ebb_object_end(newer), 0); /* its views keep the storage */
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    ebb_check_pool(stage->pool);
    assert_true(is_object(kept[0]) && is_object(kept[1]));
    for (int i = 0; i < 3; i++)
        assert_false(is_object(lost[i]));
    assert_null(box->left);
    assert_int_equal(live_in(other), 0);
    assert_int_equal(older->storage->tensors, 3);
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
    ebb_region_close(other);
}

/* Among as many that stay; some are lent on, so that records of that go, too. */
static void many_views_further_down_end_in_one_go(void **state) {
    enum { VIEWS = 150000 }; /* minutes, if the search for each began anew */
    struct stage *stage = *state;
    ebb_region step = OPEN(.parent = stage->root), other = OPEN(.pool = stage->pool);
    struct ebb_tensor *older = floats_in(stage->root, 5);
    ebb_mark mark = ebb_region_mark(stage->root);
    struct ebb_tensor *newer = floats_in(stage->root, 5);
    for (int i = 0; i < VIEWS; i++) {
        struct ebb_tensor *view = floats_of(step, newer, 0, 2);
        if (i % 1000 == 0)
            assert_int_equal(ebb_object_borrow(view, other), 0);
        floats_of(step, older, 0, 2);
    }
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    assert_int_equal(live_in(step), VIEWS);
    assert_int_equal(live_in(other), 0);
    assert_int_equal(older->storage->tensors, VIEWS + 1);
    assert_int_equal(ebb_region_close(other), 0);
}

static void a_composite_is_as_new_as_its_newest_part(void **state) {
    struct stage *stage = *state;
    ebb_region other = OPEN(.pool = stage->pool), inner = OPEN(.parent = stage->root);
    for (int way = 0; way < 6; way++) {
        struct box *top = box_in(stage->root), *box = box_in(stage->root);
        struct ebb_tensor *older = floats_in(stage->root, 3);
        top->left = &box->object;
        assert_int_equal(ebb_object_compose(top), 0);
        if (way % 3 == 1)
            assert_int_equal(ebb_object_attach(top, inner), 0);
        if (way % 3 == 2)
            assert_int_equal(ebb_object_borrow(top, other), 0);
        ebb_mark mark = ebb_region_mark(stage->root);
        if (way < 3) {
            assert_int_equal(ebb_object_replace(box, BOX_RIGHT, floats_in(stage->root, 4)), 0);
        } else {
            box->bytes = block_of(stage->root, box->byte_count = 40, 16);
            assert_int_equal(ebb_object_compose(box), 0);
        }
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        ebb_check_pool(stage->pool);
        assert_false(is_object(top) || is_object(box));
        assert_true(is_object(older));
        assert_int_equal(ebb_object_end(older), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
        assert_int_equal(live_in(stage->root) + live_in(inner) + live_in(other), 0);
    }
    ebb_region_close(other);
}

static void a_storage_that_travelled_alone_is_as_new_as_its_views(void **state) {
    struct stage *stage = *state;
    for (int64_t count = 30; count < 40000; count *= 1000) {
        ebb_region inner = OPEN(.parent = stage->root), below = OPEN(.parent = stage->root);
        struct ebb_tensor *base = floats_in(inner, count);
        void *view = floats_of(inner, base, 0, count);
        assert_int_equal(ebb_object_end(base), 0);
        ebb_mark mark = ebb_region_mark(stage->root);
        assert_int_equal(ebb_objects_promote(inner, stage->root, &view, 1, NULL, NULL), 0);
        struct ebb_tensor *seen = floats_of(below, view, 1, 9);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        assert_false(is_object(view) || is_object(seen));
        ebb_check_pool(stage->pool);
        ebb_region_close(inner);
        ebb_region_close(below);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
}

struct rewinding {
    ebb_region region;
    ebb_mark mark;
    int result;
};

static int rewind_now(void *data) {
    struct rewinding *rewinding = data;
    rewinding->result = ebb_region_rewind(rewinding->region, rewinding->mark);
    return 0;
}

static void a_cleanup_does_not_rewind_the_region_that_it_is_called_for(void **state) {
    struct stage *stage = *state;
    struct rewinding rewinding = {.region = stage->root};
    struct ebb_cleanup cleanup = {.run = rewind_now, .data = &rewinding};
    struct ebb_tensor *older = floats_in(stage->root, 3);
    rewinding.mark = ebb_region_mark(stage->root);
    assert_int_equal(ebb_cleanup_add(stage->root, &cleanup), 0);
    floats_in(stage->root, 4);
    assert_int_equal(ebb_region_rewind(stage->root, rewinding.mark), 0);
    assert_int_equal(rewinding.result, EBB_E_BUSY);
    ebb_check_pool(stage->pool);
    assert_true(is_object(older));
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
}

/* What came back last may have ended, gone again, or become a member, before the next one does. */
static void what_came_back_may_be_anywhere_when_others_come(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < 5; way++) {
        ebb_region root = OPEN(.pool = stage->pool), other = OPEN(.pool = stage->pool);
        struct ebb_tensor *first = floats_in(root, 1), *second = floats_in(root, 2);
        struct box *box = box_in(root);
        assert_int_equal(ebb_object_borrow(first, other), 0);
        assert_int_equal(ebb_object_borrow(second, other), 0);
        ebb_mark mark = ebb_region_mark(root);
        struct ebb_tensor *newer = floats_in(root, 3);
        assert_int_equal(ebb_object_return(first), 0);
        box->left = way == 0 ? &first->object : NULL;
        if (way == 0)
            assert_int_equal(ebb_object_compose(box), 0);
        else if (way == 1)
            assert_int_equal(ebb_object_end(first), 0);
        else if (way == 2)
            assert_int_equal(ebb_object_borrow(first, other), 0);
        else if (way == 3)
            first = ebb_tensor_take(first);
        assert_int_equal(ebb_object_return(second), 0);
        ebb_check_pool(stage->pool);
        assert_int_equal(ebb_region_rewind(root, mark), 0);
        assert_false(is_object(newer));
        assert_true(is_object(second) && is_object(box));
        assert_int_equal(is_object(first), way != 1 && way != 3);
        assert_int_equal(ebb_region_close(other), 0);
        assert_int_equal(ebb_region_close(root), 0);
    }
}

/* It is no longer of the region's own ones, and older than the mark. */
static void a_rewind_leaves_what_was_attached_before(void **state) {
    struct stage *stage = *state;
    ebb_region owner = OPEN(.parent = stage->root);
    struct ebb_tensor *own = floats_in(owner, 4), *attached = floats_in(stage->root, 5);
    assert_int_equal(ebb_object_attach(attached, owner), 0);
    for (unsigned newer = 0; newer < 3; newer++) {
        ebb_mark mark = ebb_region_mark(owner);
        for (unsigned i = 0; i < newer; i++)
            floats_in(owner, 6);
        assert_int_equal(live_in(owner), 2 + newer);
        assert_int_equal(ebb_region_rewind(owner, mark), 0);
        assert_int_equal(live_in(owner), 2);
    }
    assert_true(floats_hold(own, 4) && floats_hold(attached, 5));
    assert_int_equal(ebb_region_close(owner), 0);
}

/* As the end of the region does, but only to what it got since. */
static void a_rewind_of_who_has_it_ends_what_was_attached_since(void **state) {
    struct stage *stage = *state;
    ebb_region owner = OPEN(.parent = stage->root), other = OPEN(.pool = stage->pool);
    struct ebb_tensor *attached = floats_in(stage->root, 3), *lent = floats_in(stage->root, 4);
    struct ebb_tensor *lent_on = floats_in(stage->root, 5), *foreign = floats_in(other, 6);
    ebb_mark mark = ebb_region_mark(owner);
    assert_int_equal(ebb_object_attach(attached, owner), 0);
    assert_int_equal(ebb_object_borrow(lent, owner), 0);
    assert_int_equal(ebb_object_borrow(foreign, owner), 0);
    assert_int_equal(ebb_object_attach(lent_on, owner), 0);
    assert_int_equal(ebb_object_borrow(lent_on, other), 0);
    assert_int_equal(ebb_region_rewind(owner, mark), 0);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    assert_false(is_object(attached) || is_object(lent_on));
    assert_true(ebb_region_owns(stage->root, lent) && floats_hold(lent, 4));
    assert_true(ebb_region_owns(other, foreign) && floats_hold(foreign, 6));
    assert_int_equal(live_in(owner), 0);
    assert_int_equal(live_in(other), 1);
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
    assert_int_equal(ebb_region_close(other), 0);
}

/* What is lent on is not the region's; parts of a composite are new where they lie, in the host. */
static void a_rewind_of_who_had_it_leaves_what_is_elsewhere(void **state) {
    struct stage *stage = *state;
    ebb_region owner = OPEN(.parent = stage->root), other = OPEN(.pool = stage->pool);
    struct ebb_tensor *lent = floats_in(stage->root, 4);
    struct box *box = box_in(stage->root);
    assert_int_equal(ebb_object_attach(box, owner), 0);
    ebb_mark mark = ebb_region_mark(owner), above = ebb_region_mark(stage->root);
    assert_int_equal(ebb_object_borrow(lent, owner), 0);
    assert_int_equal(ebb_object_borrow(lent, other), 0);
    assert_int_equal(ebb_object_replace(box, BOX_LEFT, floats_in(stage->root, 5)), 0);
    assert_int_equal(ebb_object_replace(box, BOX_RIGHT, floats_in(owner, 6)), 0);
    assert_int_equal(ebb_region_rewind(owner, mark), 0);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    assert_true(ebb_region_owns(other, lent) && floats_hold(lent, 4));
    assert_int_equal(ebb_object_return(lent), 0);
    assert_true(ebb_region_owns(stage->root, lent));
    assert_true(ebb_region_owns(owner, box));
    assert_true(floats_hold((void *)box->left, 5) && floats_hold((void *)box->right, 6));
    assert_int_equal(live_in(owner), 3);
    assert_int_equal(ebb_region_rewind(stage->root, above), 0);
    assert_false(is_object(box));
    assert_int_equal(live_in(owner), 0);
    assert_int_equal(ebb_region_close(other), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(a_list_names_what_is_attached_once),
        STAGED(closing_counts_what_ends_and_not_what_goes_back),
        STAGED(a_full_host_attaches_and_lends_nothing),
        STAGED(what_others_released_is_in_the_way_of_no_loan),
        STAGED(what_is_attached_and_lent_on_ends_with_what_it_is_attached_to),
        STAGED(a_measuring_region_takes_no_objects),
        STAGED(what_is_given_is_counted_where_it_was_owned),
        STAGED(a_long_chain_of_loans_is_only_long),
        STAGED(a_rewind_takes_back_what_was_given_since_and_ends_what_is_newer),
        STAGED(a_rewind_takes_back_what_went_on_since),
        STAGED(a_loan_does_not_make_an_object_younger),
        STAGED(what_came_back_may_be_anywhere_when_others_come),
        STAGED(an_attached_taker_ends_with_its_own_bytes),
        STAGED(views_further_down_end_when_what_they_see_is_rewound),
        STAGED(many_views_further_down_end_in_one_go),
        STAGED(a_composite_is_as_new_as_its_newest_part),
        STAGED(a_storage_that_travelled_alone_is_as_new_as_its_views),
        STAGED(a_cleanup_does_not_rewind_the_region_that_it_is_called_for),
        STAGED(a_rewind_leaves_what_was_attached_before),
        STAGED(a_rewind_of_who_has_it_ends_what_was_attached_since),
        STAGED(a_rewind_of_who_had_it_leaves_what_is_elsewhere),
    };
    return cmocka_run_group_tests(tests, boxes_prepare, NULL);
}
