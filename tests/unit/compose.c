// SPDX-License-Identifier: Apache-2.0
/*
 * compose.c - composites and their members: what fields say is believed as far as it is so, and
 * whatever a program writes into them, nothing ends, goes or is counted that is no member.
 */
#include "kit/boxes.h"

static void a_member_in_two_fields_is_one_object(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct box *box = box_in(stage->root);
    box->left = box->right = &floats_in(stage->root, 3)->object;
    assert_int_equal(ebb_object_compose(box), 0);
    ebb_check_pool(stage->pool);
    assert_int_equal(live_in(stage->root), 2);
    assert_int_equal(ebb_object_attach(box, inner), 0);
    assert_int_equal(live_in(inner), 2);
    assert_int_equal(live_in(stage->root), 0);
    box = ebb_object_detach(box);
    assert_ptr_equal(box->left, box->right);
    assert_int_equal(live_in(stage->root), 2);
    assert_int_equal(ebb_object_replace(box, BOX_LEFT, floats_in(stage->root, 4)), 0);
    assert_null(box->right);
    assert_int_equal(live_in(stage->root), 2);
    assert_int_equal(ebb_object_end(box), 0);
    assert_int_equal(live_in(stage->root), 0);
}

static void members_of_what_joins_an_attached_composite_are_counted_there(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct box *outer = box_in(stage->root), *box = box_in(stage->root);
    box->left = &floats_in(stage->root, 3)->object;
    assert_int_equal(ebb_object_compose(box), 0);
    assert_int_equal(ebb_object_attach(outer, inner), 0);
    outer->left = &box->object;
    assert_int_equal(ebb_object_compose(outer), 0);
    assert_int_equal(live_in(inner), 3);
    assert_int_equal(live_in(stage->root), 0);
    assert_int_equal(ebb_object_end(outer), 0);
    assert_int_equal(live_in(inner), 0);
}

static void what_was_not_composed_does_not_end(void **state) {
    struct stage *stage = *state;
    struct box *box = box_in(stage->root), *other = box_in(stage->root);
    struct ebb_tensor *tensor = floats_in(stage->root, 3), *member = floats_in(stage->root, 4);
    static char outside[64];
    other->left = &member->object;
    assert_int_equal(ebb_object_compose(other), 0);
    box->left = &tensor->object;
    box->right = other->left;
    box->parts = (void *)outside;
    box->part_count = 8;
    box->bytes = outside;
    assert_int_equal(ebb_object_end(box), 0);
    assert_true(is_object(tensor) && is_object(member));
    assert_ptr_equal(other->left, member);
    ebb_check_pool(stage->pool);
    assert_int_equal(live_in(stage->root), 3);
}

static void counts_that_lie_are_not_followed(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct box *box = box_in(inner);
    box->parts = ebb_region_alloc_zeroed(inner, 2 * sizeof *box->parts, 16);
    box->part_count = 2;
    box->parts[1] = &floats_in(inner, 3)->object;
    assert_int_equal(ebb_object_compose(box), 0);
    static const size_t lies[] = {3, 1000000, SIZE_MAX / 8 + 2, SIZE_MAX};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        void *object = box;
        box->part_count = lies[i];
        assert_refused(ebb_object_compose(box), EBB_E_SIZE);
        assert_refused(ebb_objects_promote(inner, stage->root, &object, 1, NULL, NULL),
                       EBB_E_SIZE);
        ebb_check_pool(stage->pool);
    }
    assert_int_equal(ebb_object_end(box), 0);
}

static void an_object_is_no_block_of_bytes(void **state) {
    struct stage *stage = *state;
    struct box *box = box_in(stage->root);
    struct ebb_tensor *tensor = floats_in(stage->root, 3);
    void *objects[2] = {tensor, box};
    for (int i = 0; i < 2; i++) {
        box->bytes = objects[i];
        box->byte_count = 8;
        assert_refused(ebb_object_compose(box), EBB_E_TYPE);
    }
    assert_int_equal(ebb_object_end(box), 0);
    assert_true(is_object(tensor) && floats_hold(tensor, 3));
}

/* A list by hand, a million long: ending it is ending its head. */
static void lists_of_what_was_not_composed_are_not_walked(void **state) {
    struct stage *stage = *state;
    struct box *first = box_in(stage->root), *last = first;
    for (int i = 0; i < 1000000; i++) {
        struct box *next = box_in(stage->root);
        last->left = &next->object;
        last = next;
    }
    last->right = &first->object;
    assert_int_equal(ebb_object_end(first), 0);
    assert_int_equal(live_in(stage->root), 1000000);
}

static void composites_are_as_deep_as_they_may_be(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct box *box = box_in(inner);
    for (int depth = 1; depth <= EBB_DEPTH_MAX; depth++) {
        struct box *whole = box_in(inner);
        whole->left = whole->right = &box->object; /* both: there are 2^64 ways down */
        assert_int_equal(ebb_object_compose(whole), 0);
        box = whole;
    }
    struct box *more = box_in(inner);
    more->left = &box->object;
    assert_refused(ebb_object_compose(more), EBB_E_DEPTH);
    assert_text_names("65");
    assert_refused(ebb_object_replace(more, BOX_RIGHT, box), EBB_E_DEPTH);
    struct box *deepest = box;
    while (deepest->left)
        deepest = (void *)deepest->left;
    assert_refused(ebb_object_replace(deepest, BOX_LEFT, floats_in(inner, 3)), EBB_E_DEPTH);
    assert_non_null(box = ebb_object_detach(box));
    ebb_check_pool(stage->pool);
    assert_int_equal(live_in(stage->root), EBB_DEPTH_MAX + 1);
    assert_int_equal(ebb_object_end(box), 0);
    assert_int_equal(live_in(stage->root), 0);
}

/* ---- lost members ---- */

/* A box whose field was overwritten, so that it has lost one of two members; the newest block. */
static struct box *box_that_lost(ebb_region region, void *lost) {
    struct ebb_object *kept = &floats_in(region, 4)->object;
    block_of(region, 16, 16); /* what it keeps may go before its place is the newest again */
    struct box *box = box_in(region);
    for (int i = 0; i < 2; i++) {
        box->left = i ? kept : lost;
        assert_int_equal(ebb_object_compose(box), 0);
    }
    return box;
}

/* Where the box was is a block of 0xff, or another box. */
static void take_its_place(ebb_region region, const struct box *box, bool by_another) {
    void *block = by_another ? (void *)box_in(region) : ebb_region_alloc(region, sizeof *box, 16);
    assert_ptr_equal(block, box);
    if (!by_another)
        memset(block, 0xff, sizeof *box);
}

/* Whatever has the place of its composite now, it is refused by name, and ends. */
static void assert_lost(ebb_region region, ebb_region below, void *lost) {
    struct ebb_sample_info info = {.kind = EBB_SAMPLE_MASK};
    void *list[] = {lost};
    assert_refused(ebb_object_attach(lost, below), EBB_E_MEMBER);
    assert_refused(ebb_object_borrow(lost, below), EBB_E_MEMBER);
    assert_no_block(ebb_object_move(lost, below), EBB_E_MEMBER);
    assert_refused(ebb_objects_promote(region, ebb_region_parent(region), list, 1, NULL, NULL),
                   EBB_E_MEMBER);
    assert_refused(ebb_objects_end_but(region, list, 1), EBB_E_MEMBER);
    struct box *box = box_in(region);
    assert_refused(ebb_object_replace(box, BOX_RIGHT, lost), EBB_E_MEMBER);
    box->left = lost;
    assert_refused(ebb_object_compose(box), EBB_E_MEMBER);
    assert_int_equal(ebb_object_end(box), 0);
    if (((struct ebb_object *)lost)->type == &ebb_type_tensor) {
        assert_no_block(ebb_sample_new(region, lost, &info), EBB_E_MEMBER);
    } else { /* composes and takes members as before */
        box = lost;
        box->right = &floats_in(region, 6)->object;
        assert_int_equal(ebb_object_compose(box), 0);
        assert_int_equal(ebb_object_replace(box, BOX_RIGHT, floats_in(region, 7)), 0);
    }
    assert_true(ebb_region_owns(region, lost));
    assert_int_equal(ebb_object_end(lost), 0);
}

static void a_lost_member_may_outlive_its_composite(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < 12; way++) {
        ebb_region region = OPEN(.parent = stage->root), below = OPEN(.parent = region);
        ebb_region other = OPEN(.pool = stage->pool);
        void *lost = way % 2 ? (void *)box_in(region) : (void *)floats_in(region, 3);
        struct box *box = box_that_lost(region, lost);
        if (way < 4)
            assert_int_equal(ebb_object_end(box), 0);
        else
            assert_non_null(ebb_object_move(box, way < 8 ? stage->root : other));
        take_its_place(region, box, way / 2 % 2);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        uint64_t live = live_in(region);
        assert_lost(region, below, lost);
        assert_int_equal(live_in(region), live - 1);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_region_close(region), 0);
        assert_int_equal(ebb_region_close(other), 0);
    }
}

static void assert_live(ebb_region root, uint64_t in_root, ebb_region inner, uint64_t in_inner) {
    assert_int_equal(live_in(root), in_root);
    assert_int_equal(live_in(inner), in_inner);
}

/* Before its composite was attached elsewhere, or after; then it ends, or is found again, or what
 * counts it ends. */
static void a_lost_member_is_counted_where_it_was_lost(void **state) {
    struct stage *stage = *state;
    for (unsigned way = 0; way < 8; way++) {
        ebb_region root = OPEN(.pool = stage->pool), inner = OPEN(.parent = root);
        struct box *box = box_in(root);
        struct ebb_object *lost = box->left = &floats_in(root, 3)->object;
        unsigned late = way % 2;
        box->right = &floats_in(root, 4)->object;
        assert_int_equal(ebb_object_compose(box), 0);
        box->left = late ? lost : NULL;
        assert_int_equal(ebb_object_attach(box, inner), 0);
        box->left = NULL;
        assert_live(root, !late, inner, 2 + late);
        ebb_check_pool(stage->pool);
        if (way / 2 == 0) {
            assert_int_equal(ebb_object_end(lost), 0);
            assert_live(root, 0, inner, 2);
        } else if (way / 2 == 1) {
            box->left = lost;
            ebb_check_pool(stage->pool);
            assert_int_equal(ebb_object_compose(box), 0);
            assert_live(root, 0, inner, 3);
            ebb_check_pool(stage->pool);
            assert_int_equal(ebb_object_end(box), 0);
            assert_live(root, 0, inner, 0);
        } else {
            assert_int_equal(way / 2 == 2 ? ebb_region_reset(inner, 0) : ebb_region_close(inner),
                             0);
            assert_int_equal(live_in(root), !late);
            assert_int_equal(ebb_object_end(lost), 0);
            assert_int_equal(live_in(root), 0);
        }
        ebb_check_pool(stage->pool);
        assert_int_equal(ebb_region_close(root), 0);
    }
}

/* Nor does it become a part of what it gets, which comes to lie where its composite was. */
static void a_lost_member_is_in_nothing_that_it_gets(void **state) {
    struct stage *stage = *state;
    size_t same = 0;
    for (unsigned way = 0; way < 8; way++) { /* what is copied is aligned somehow */
        ebb_region below = OPEN(.parent = stage->root);
        struct box *lost = box_in(stage->root), *inside = box_in(stage->root);
        lost->left = &inside->object;
        assert_int_equal(ebb_object_compose(lost), 0);
        block_of(stage->root, 16 + way / 2 * 16, 16);
        struct box *box = box_in(stage->root), *fresh = box_in(below);
        struct box *taker = way % 2 ? inside : lost;
        box->left = &lost->object;
        assert_int_equal(ebb_object_compose(box), 0);
        box->left = NULL;
        assert_int_equal(ebb_object_end(box), 0);
        assert_int_equal(ebb_object_replace(taker, BOX_RIGHT, fresh), 0);
        fresh = (void *)taker->right;
        same += fresh == box;
        fresh->right = &floats_in(stage->root, 6)->object;
        assert_int_equal(ebb_object_compose(fresh), 0);
        assert_refused(ebb_object_attach(lost, below), EBB_E_MEMBER);
        assert_int_equal(ebb_object_end(lost), 0);
        assert_false(is_object(fresh) || is_object(inside));
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_region_close(below), 0);
        assert_int_equal(ebb_region_reset(stage->root, 0), 0);
    }
    assert_true(same >= 2);
}

/* Lost by a composite that was attached, to what ends then; taken in again, or found again at
 * least, by one that has come back, or goes elsewhere then. */
static void what_is_found_again_is_counted_again(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < 12; way++) {
        ebb_region root = OPEN(.pool = stage->pool), inner = OPEN(.parent = root);
        ebb_region other = OPEN(.parent = root);
        struct box *box = box_in(root);
        struct ebb_object *lost = box->left = &floats_in(root, 3)->object;
        assert_int_equal(ebb_object_compose(box), 0);
        assert_int_equal(ebb_object_attach(box, inner), 0);
        box->left = NULL;
        assert_int_equal(ebb_object_attach(box, root), 0);
        assert_int_equal(way % 2 ? ebb_region_reset(inner, 0) : ebb_region_close(inner), 0);
        assert_int_equal(live_in(root), 1);
        box->left = lost;
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        if (way / 2 % 2)
            assert_int_equal(ebb_object_compose(box), 0);
        if (way / 4 == 1)
            assert_int_equal(ebb_object_attach(box, other), 0);
        else if (way / 4 == 2)
            assert_non_null(box = ebb_object_move(box, stage->root));
        ebb_region owner = way / 4 == 1 ? other : way / 4 == 2 ? stage->root : root;
        assert_int_equal(live_in(owner), way < 2 ? 1 : 2);
        assert_true(ebb_region_owns(owner, box->left));
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_object_end(box), 0);
        assert_int_equal(live_in(owner) + live_in(root), 0);
        assert_int_equal(ebb_region_close(root), 0);
    }
}

/* While it was lost it got what a rewind ends: then that ends what took it in again, too, and no
 * other. */
static void what_is_found_again_may_be_newer(void **state) {
    struct stage *stage = *state;
    for (int composed = 0; composed < 2; composed++) {
        struct box *outer = box_in(stage->root), *box = box_in(stage->root);
        struct box *lost = box_in(stage->root);
        outer->left = &box->object;
        box->left = &lost->object;
        assert_int_equal(ebb_object_compose(box), 0);
        assert_int_equal(ebb_object_compose(outer), 0);
        ebb_mark mark = ebb_region_mark(stage->root);
        box->left = NULL;
        lost->right = &floats_in(stage->root, 3)->object;
        assert_int_equal(ebb_object_compose(lost), 0);
        box->left = &lost->object;
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        if (composed)
            assert_int_equal(ebb_object_compose(box), 0);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        assert_int_equal(is_object(outer), !composed);
        assert_int_equal(is_object(box), !composed);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_region_reset(stage->root, 0), 0);
    }
}

/* The composite went further down while it had lost what is deep, too. */
static void what_is_found_again_is_not_too_deep(void **state) {
    struct stage *stage = *state;
    struct box *most = box_in(stage->root), *chain = box_in(stage->root), *box = chain;
    for (int depth = 1; depth <= EBB_DEPTH_MAX / 2; depth++) {
        struct box *above = box_in(stage->root), *other = box_in(stage->root);
        above->left = &most->object;
        other->left = &chain->object;
        assert_int_equal(ebb_object_compose(above), 0);
        assert_int_equal(ebb_object_compose(other), 0);
        most = above, chain = other;
    }
    struct box *middle = box_in(stage->root);
    middle->left = &most->object;
    assert_int_equal(ebb_object_compose(middle), 0);
    middle->left = NULL;
    assert_int_equal(ebb_object_replace(box, BOX_LEFT, middle), 0);
    middle->left = &most->object;
    assert_refused(ebb_object_compose(middle), EBB_E_DEPTH);
    assert_int_equal(ebb_object_end(most->left), 0);
    for (int twice = 0; twice < 2; twice++)
        assert_int_equal(ebb_object_compose(middle), 0);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    assert_int_equal(ebb_object_end(chain), 0);
    assert_int_equal(live_in(stage->root), 0);
}

/* ---- types ---- */

static void no_two_pointers_share_a_word(void **state) {
    struct two {
        struct ebb_object object;
        void *a, *b;
        size_t count;
    };
    const struct ebb_field lies[][2] = {
        {EBB_FIELD(struct two, EBB_FIELD_OBJECT, a), EBB_FIELD(struct two, EBB_FIELD_OBJECT, a)},
        {EBB_FIELD(struct two, EBB_FIELD_OBJECT, a),
         EBB_FIELD_COUNTED(struct two, EBB_FIELD_BYTES, b, a)},
        {EBB_FIELD_COUNTED(struct two, EBB_FIELD_BYTES, b, count),
         EBB_FIELD(struct two, EBB_FIELD_OBJECT, count)},
        {EBB_FIELD_COUNTED(struct two, EBB_FIELD_OBJECTS, a, a),
         EBB_FIELD(struct two, EBB_FIELD_OBJECT, b)},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct ebb_type type = {
            .name = "liar", .bytes = sizeof(struct two), .fields = lies[i], .field_count = 2};
        assert_refused(ebb_type_register(&type), EBB_E_TYPE);
        assert_text_names("share the word");
    }
}

static void no_two_fields_have_a_name(void **state) {
    const struct ebb_field lies[] = {
        {"part", EBB_FIELD_OBJECT, offsetof(struct box, left), 0},
        EBB_FIELD_COUNTED(struct box, EBB_FIELD_BYTES, bytes, byte_count),
        {"part", EBB_FIELD_OBJECT, offsetof(struct box, right), 0},
    };
    struct ebb_type type = {
        .name = "liar", .bytes = sizeof(struct box), .fields = lies, .field_count = 3};
    assert_refused(ebb_type_register(&type), EBB_E_TYPE);
    assert_text_names("type 'liar': fields 0 and 2 are both called 'part'");
}

static void fields_may_share_a_count(void **state) {
    static const struct ebb_field fields[] = {
        EBB_FIELD_COUNTED(struct box, EBB_FIELD_OBJECTS, parts, part_count),
        EBB_FIELD_COUNTED(struct box, EBB_FIELD_BYTES, bytes, part_count),
    };
    static struct ebb_type type = {
        .name = "sharer", .bytes = sizeof(struct box), .fields = fields, .field_count = 2};
    assert_int_equal(ebb_type_register(&type), 0);
}

static void a_tensor_is_not_made_as_other_objects_are(void **state) {
    struct stage *stage = *state;
    assert_no_block(ebb_object_new(stage->root, &ebb_type_tensor, 1000), EBB_E_TYPE);
    assert_text_names("ebb_tensor_new");
    assert_int_equal(stats_of(stage->root).blocks.total, 0);
}

static int ignore(void *context, const char *text, size_t bytes) {
    (void)context, (void)text, (void)bytes;
    return 0;
}

static void a_report_does_not_follow_what_is_no_member(void **state) {
    struct stage *stage = *state;
    struct box *box = box_in(stage->root);
    box->left = (void *)(uintptr_t)8;
    box->right = &box->object;
    box->parts = (void *)(uintptr_t)16;
    box->part_count = 1000;
    assert_int_equal(ebb_report_object(box, EBB_REPORT_TEXT, ignore, NULL), 0);
    assert_int_equal(ebb_report_object(box, EBB_REPORT_JSON, ignore, NULL), 0);
    assert_int_equal(ebb_object_end(box), 0);
}

/* Two empty ones, of which the second has `address` in a field, both ways round. */
static void assert_not_followed(struct box *boxes[2], struct ebb_object **field, void *address,
                                int code) {
    *field = address;
    for (int i = 0; i < 2; i++) {
        assert_false(ebb_batch_equal(boxes[i], boxes[!i]));
        assert_refused(ebb_last_error(), code);
    }
    *field = NULL;
    assert_true(ebb_batch_equal(boxes[0], boxes[1]));
}

static void a_comparison_does_not_follow_what_is_no_member(void **state) {
    struct stage *stage = *state;
    struct box *boxes[2] = {box_in(stage->root), box_in(stage->root)};
    static char outside[64];
    void *others[] = {(void *)(uintptr_t)8, outside, boxes[0], boxes[1], box_in(stage->root),
                      floats_in(stage->root, 3), ebb_region_alloc_zeroed(stage->root, 99, 16)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_not_followed(boxes, &boxes[1]->left, others[i], EBB_E_NOT_OWNED);
        boxes[0]->right = others[5];
        boxes[1]->right = others[i];
        assert_false(ebb_batch_equal(boxes[0], boxes[1]));
        assert_refused(ebb_last_error(), EBB_E_NOT_OWNED);
        boxes[0]->right = boxes[1]->right = NULL;
    }
    assert_true(ebb_batch_equal(boxes[1], boxes[1]));
}

static void a_comparison_reads_no_block_beyond_its_end(void **state) {
    struct stage *stage = *state;
    struct box *boxes[2] = {box_in(stage->root), box_in(stage->root)};
    static char outside[64];
    for (int i = 0; i < 2; i++) {
        boxes[i]->parts = ebb_region_alloc_zeroed(stage->root, 16, 16);
        boxes[i]->bytes = ebb_region_alloc_zeroed(stage->root, 16, 16);
        boxes[i]->part_count = 2;
        boxes[i]->byte_count = 16;
    }
    assert_true(ebb_batch_equal(boxes[0], boxes[1]));
    boxes[0]->byte_count = boxes[1]->byte_count = 17;
    assert_false(ebb_batch_equal(boxes[0], boxes[1]));
    assert_refused(ebb_last_error(), EBB_E_SIZE);
    boxes[0]->byte_count = boxes[1]->byte_count = 16;
    boxes[0]->part_count = boxes[1]->part_count = SIZE_MAX / 8 + 2;
    assert_false(ebb_batch_equal(boxes[0], boxes[1]));
    assert_refused(ebb_last_error(), EBB_E_SIZE);
    boxes[0]->part_count = boxes[1]->part_count = 2;
    void *bytes = boxes[0]->bytes;
    void *none[] = {NULL, (void *)(uintptr_t)8, outside};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        boxes[0]->bytes = none[i];
        for (int k = 0; k < 2; k++) {
            assert_false(ebb_batch_equal(boxes[k], boxes[!k]));
            assert_refused(ebb_last_error(), EBB_E_FOREIGN);
        }
    }
    boxes[0]->bytes = bytes;
    assert_true(ebb_batch_equal(boxes[0], boxes[1]));
}

/* ---- slots ---- */

static void a_slot_of_a_lent_composite_stays_as_it_is(void **state) {
    struct stage *stage = *state;
    ebb_region other = OPEN(.pool = stage->pool);
    struct box *box = box_in(stage->root);
    struct ebb_tensor *tensor = floats_in(stage->root, 3);
    assert_int_equal(ebb_object_borrow(box, other), 0);
    assert_refused(ebb_object_replace(box, BOX_LEFT, tensor), EBB_E_BORROWED);
    assert_null(box->left);
    assert_true(ebb_region_owns(stage->root, tensor));
    assert_int_equal(live_in(other), 1);
    ebb_region_close(other);
}

static void a_slot_is_filled_whatever_other_fields_say(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct box *box = box_in(stage->root);
    struct ebb_tensor *stranger = floats_in(stage->root, 3), *fresh = floats_in(inner, 4);
    static char outside[64];
    box->left = &stranger->object; /* never composed */
    box->right = (void *)outside;
    box->bytes = outside;
    assert_int_equal(ebb_object_replace(box, BOX_LEFT, fresh), 0);
    assert_true(is_object(stranger) && floats_hold((void *)box->left, 4));
    assert_ptr_equal(box->left->whole, box);
    assert_int_equal(ebb_object_replace(box, BOX_RIGHT, NULL), 0);
    assert_null(box->right);
    ebb_check_pool(stage->pool);
    assert_int_equal(ebb_object_end(box), 0);
    assert_int_equal(live_in(stage->root), 1);
}

static void a_slot_keeps_its_object_when_another_cannot_come(void **state) {
    struct stage *stage = *state;
    ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = 8 * KIB);
    ebb_region other = OPEN(.pool = stage->pool);
    struct box *box = box_in(limited);
    struct ebb_tensor *old = floats_in(limited, 3), *large = floats_in(other, 5000);
    box->left = &old->object;
    assert_int_equal(ebb_object_compose(box), 0);
    assert_refused(ebb_object_replace(box, BOX_LEFT, large), EBB_E_REGION_LIMIT);
    assert_ptr_equal(box->left, old);
    assert_ptr_equal(old->object.whole, box);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    large = ebb_object_move(large, stage->root); /* it is as free as it was */
    assert_true(large && floats_hold(large, 5000));
    assert_int_equal(ebb_region_close(limited), 0);
    assert_int_equal(ebb_region_close(other), 0);
}

static void no_slot_takes_what_it_is_part_of(void **state) {
    struct stage *stage = *state;
    struct box *boxes[4];
    for (int i = 0; i < 4; i++) {
        boxes[i] = box_in(stage->root);
        boxes[i]->left = i ? &boxes[i - 1]->object : NULL;
        assert_int_equal(ebb_object_compose(boxes[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_refused(ebb_object_replace(boxes[i], BOX_RIGHT, boxes[3]), EBB_E_CYCLE);
        assert_null(boxes[i]->right);
    }
    assert_int_equal(ebb_check_pool(stage->pool), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(a_member_in_two_fields_is_one_object),
        STAGED(members_of_what_joins_an_attached_composite_are_counted_there),
        STAGED(what_was_not_composed_does_not_end),
        STAGED(counts_that_lie_are_not_followed),
        STAGED(an_object_is_no_block_of_bytes),
        STAGED(lists_of_what_was_not_composed_are_not_walked),
        STAGED(composites_are_as_deep_as_they_may_be),
        STAGED(a_lost_member_may_outlive_its_composite),
        STAGED(a_lost_member_is_counted_where_it_was_lost),
        STAGED(a_lost_member_is_in_nothing_that_it_gets),
        STAGED(what_is_found_again_is_counted_again),
        STAGED(what_is_found_again_may_be_newer),
        STAGED(what_is_found_again_is_not_too_deep),
        STAGED(no_two_pointers_share_a_word),
        STAGED(no_two_fields_have_a_name),
        STAGED(fields_may_share_a_count),
        STAGED(a_tensor_is_not_made_as_other_objects_are),
        STAGED(a_report_does_not_follow_what_is_no_member),
        STAGED(a_comparison_does_not_follow_what_is_no_member),
        STAGED(a_comparison_reads_no_block_beyond_its_end),
        STAGED(a_slot_of_a_lent_composite_stays_as_it_is),
        STAGED(a_slot_is_filled_whatever_other_fields_say),
        STAGED(a_slot_keeps_its_object_when_another_cannot_come),
        STAGED(no_slot_takes_what_it_is_part_of),
    };
    return cmocka_run_group_tests(tests, boxes_prepare, NULL);
}
