// SPDX-License-Identifier: Apache-2.0
/*
 * promoted_blocks.c - blocks of objects that are promoted by their address: objects go by
 * themselves, so what goes is a copy of bytes, and the object stays as it was.
 */
#include "kit/boxes.h"
#include "kit/dlpack.h"

/* VIEWED: the tensor has ended, a view sees. BYTES, PARTS: the array of a composite. */
enum what { TENSOR, VIEWED, HEAD, OFFSETS, BYTES, PARTS, KINDS };

enum end { ENDED, REWOUND, CLOSED, KEEPING, ENDS };

enum { UNTIL_LEARNT = 8, STEPS = 3 };

struct item {
    void *object, *block; /* what is to end, and the block that is promoted */
    size_t bytes;
};

static struct ebb_tensor *offsets_of(ebb_region region, int64_t count) {
    struct ebb_tensor *offsets =
        ebb_tensor_new_zeroed(region, (struct ebb_dtype){EBB_INT, 64, 1}, 1, &count);
    assert_non_null(offsets);
    ((int64_t *)offsets->data)[count - 1] = 10;
    return offsets;
}

/* The array comes first: it is what the steps before had there. */
static struct item box_of(ebb_region region, enum what what, size_t bytes) {
    void *array = block_of(region, bytes, bytes > 32 * KIB ? 256 : 64);
    struct box *box = box_in(region);
    if (what == BYTES) {
        box->bytes = array;
        box->byte_count = bytes;
    } else {
        box->parts = array;
        box->part_count = 2;
        box->parts[0] = NULL;
        box->parts[1] = &tensor_of_bytes(region, 100)->object;
    }
    assert_int_equal(ebb_object_compose(box), 0);
    return (struct item){box, array, bytes};
}

static struct item item_of(ebb_region region, enum what what, size_t bytes) {
    struct ebb_tensor *tensor = NULL;
    struct item item = {NULL, NULL, bytes};
    if (what == HEAD) {
        item.object = item.block = ebb_object_new(region, &ebb_type_ragged, bytes);
        assert_non_null(item.object);
        return item;
    }
    if (what == BYTES || what == PARTS)
        return box_of(region, what, bytes);
    if (what == OFFSETS) {
        struct ebb_tensor *offsets = offsets_of(region, (int64_t)(bytes / 8));
        item.block = offsets;
        item.object = ebb_ragged_from(region, tensor_of_bytes(region, 10), offsets);
        assert_non_null(item.object);
        return item;
    }
    item.object = tensor = tensor_of_bytes(region, bytes);
    item.block = tensor->storage->block;
    if (what != VIEWED)
        return item;
    item.object = ebb_tensor_view(region, tensor, 1, tensor->shape, tensor->strides, 0);
    assert_non_null(item.object);
    assert_int_equal(ebb_object_end(tensor), 0);
    return item;
}

/* Nobody but who has the survivor writes to it, or releases it. */
static void check_survivor(ebb_region to, void *block, size_t bytes) {
    const unsigned char *at = block;
    assert_int_equal(at[0], 0x55);
    assert_memory_equal(at, at + 1, bytes - 1);
    assert_int_equal(ebb_region_release(to, block), 0);
}

/* The block is promoted, and what it is of ends. `step`: NULL if the region is none's. */
static void promote_and_end(ebb_region from, ebb_region to, const ebb_step *step,
                            struct item item, enum end end, ebb_mark mark, int mode) {
    struct ebb_survivor survivor = survivor_of(item.block, mode);
    if (end == KEEPING) {
        assert_int_equal(step ? ebb_step_end_keeping(*step, to, &survivor, 1, NULL, NULL)
                              : ebb_close_keeping(from, to, &survivor, 1, NULL, NULL), 0);
        memset(survivor.block, 0x55, item.bytes);
    } else {
        assert_int_equal(ebb_promote(from, to, &survivor, 1, NULL), 0);
        assert_ptr_not_equal(survivor.block, item.block);
        assert_int_equal(survivor.mode, EBB_PROMOTE_COPY);
        ebb_check_pool(ebb_pool_default());
        memset(survivor.block, 0x55, item.bytes);
        assert_int_equal(end == ENDED     ? ebb_object_end(item.object)
                         : end == REWOUND ? ebb_region_rewind(from, mark)
                                          : 0, 0);
        ebb_check_pool(ebb_pool_default());
        assert_int_equal(step ? ebb_step_end(*step) : ebb_region_close(from), 0);
    }
    check_survivor(to, survivor.block, item.bytes);
}

static void what_is_of_an_object_is_not_relinked(void **state) {
    struct stage *stage = *state;
    static const size_t sizes[] = {100, 50000, 2 * MIB};
    for (int mode = EBB_PROMOTE_AUTO; mode <= EBB_PROMOTE_RELINK; mode++)
        for (int way = 0; way < 3 * KINDS * ENDS; way++) {
            enum what what = (enum what)(way / ENDS % KINDS);
            ebb_region child = OPEN(.parent = stage->root);
            tensor_of_bytes(child, 100000);
            ebb_mark mark = ebb_region_mark(child);
            struct item item = item_of(child, what, sizes[way / ENDS / KINDS]);
            tensor_of_bytes(child, 100000);
            promote_and_end(child, stage->root, NULL, item, (enum end)(way % ENDS), mark, mode);
            assert_int_equal(stats_of(stage->root).blocks.current, 0);
        }
}

/* As the steps before had blocks of no object there. */
static void what_is_of_an_object_does_not_stay_where_it_was_born(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < 2 * KINDS * ENDS; way++) {
        enum what what = (enum what)(way / ENDS % KINDS);
        size_t bytes = way / ENDS / KINDS ? 2000 : 50000, align = bytes > 32 * KIB ? 256 : 64;
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        bool was_born = false;
        for (unsigned i = 0; i < UNTIL_LEARNT + STEPS; i++) {
            ebb_step step = ebb_step_begin_under(site, stage->root, 0);
            if (i < UNTIL_LEARNT) {
                struct ebb_survivor plain =
                    survivor_of(block_of(step.region, bytes, align), EBB_PROMOTE_COPY);
                assert_int_equal(ebb_promote(step.region, stage->root, &plain, 1, NULL), 0);
                assert_int_equal(ebb_step_end(step), 0);
                assert_int_equal(ebb_region_release(stage->root, plain.block), 0);
                continue;
            }
            ebb_mark mark = way % ENDS == REWOUND ? ebb_region_mark(step.region) : (ebb_mark){0};
            struct item item = item_of(step.region, what, bytes - 300);
            was_born |= ebb_region_of(item.block).lane == stage->root.lane;
            promote_and_end(step.region, stage->root, &step, item, (enum end)(way % ENDS), mark,
                            EBB_PROMOTE_AUTO);
        }
        assert_true(was_born || way % ENDS == REWOUND); /* else it would be in vain */
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* The ways in which elements in a block of their own come to a region. */
enum came { MADE, PROMOTED, MOVED, CAMES };

enum then { END, PROMOTE, EXPORT, THENS };

static struct ebb_tensor *elements_in(ebb_region child, ebb_region shared, size_t bytes,
                                      enum came came) {
    if (came == MADE)
        return tensor_of_bytes(child, bytes);
    struct ebb_own_options options = {.size = sizeof options, .mode = EBB_PROMOTE_RELINK};
    ebb_region from = OPEN(.parent = came == PROMOTED ? child : shared);
    void *tensor = tensor_of_bytes(from, bytes);
    if (came == PROMOTED)
        assert_int_equal(ebb_objects_promote(from, child, &tensor, 1, &options, NULL), 0);
    else
        tensor = ebb_object_move(tensor, child);
    assert_non_null(tensor);
    assert_int_equal(ebb_region_close(from), 0);
    return tensor;
}

/* The block is promoted, and its heir is done with it. The next block of its size in the child,
 * which would lie where it lay. */
static void *follower(ebb_region child, ebb_region root, void *block, size_t bytes, bool rewinds) {
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    ebb_mark mark = rewinds ? ebb_region_mark(root) : (ebb_mark){0};
    assert_int_equal(ebb_promote(child, root, &survivor, 1, NULL), 0);
    assert_int_equal(rewinds ? ebb_region_rewind(root, mark)
                             : ebb_region_release(root, survivor.block), 0);
    void *other = block_of(child, bytes, 256);
    memset(other, 0x55, bytes);
    return other;
}

/* What ends, goes or is shared with the tensor is its own. */
static void check_elements(ebb_region child, ebb_region root, struct ebb_tensor *tensor,
                           void *other, size_t bytes, enum then then) {
    DLManagedTensor *managed = then == EXPORT ? share(tensor) : NULL;
    void *object = tensor;
    if (then == END)
        assert_int_equal(ebb_object_end(object), 0);
    else if (then == PROMOTE)
        assert_int_equal(ebb_objects_promote(child, root, &object, 1, NULL, NULL), 0);
    block_of(child, bytes, 256);
    check_survivor(child, other, bytes);
    tensor = then == END ? NULL : object;
    assert_true(!tensor || pattern_holds(tensor->data, bytes, (unsigned)bytes));
    if (managed)
        give_back(managed);
    if (then == PROMOTE)
        assert_int_equal(ebb_object_end(object), 0);
}

/* In shared memory no object begins the block that they are. */
static void elements_stay_their_tensors(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < THENS * CAMES * 2 * 2; way++) {
        enum came came = (enum came)(way / THENS % CAMES);
        size_t bytes = way / THENS / CAMES & 1 ? 50000 : 2 * MIB;
        bool rewinds = way / THENS / CAMES & 2;
        ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 16 * MIB);
        ebb_region shared = OPEN(.pool = pool), root = came == MOVED ? stage->root : shared;
        ebb_region child = OPEN(.parent = root);
        struct ebb_tensor *tensor = elements_in(child, shared, bytes, came);
        void *other = follower(child, root, tensor->data, bytes, rewinds);
        check_elements(child, root, tensor, other, bytes, (enum then)(way % THENS));
        ebb_check_pool(came == MOVED ? stage->pool : pool);
        assert_int_equal(ebb_region_close(child), 0);
        assert_int_equal(stats_of(root).blocks.current, 0);
        assert_int_equal(ebb_region_close(shared), 0);
        pool_end(pool);
    }
}

static void arrays_stay_their_composites(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < 2 * 2 * 2; way++) {
        size_t bytes = way & 1 ? 50000 : 2 * MIB;
        ebb_region child = OPEN(.parent = stage->root);
        struct item item = item_of(child, way & 2 ? BYTES : PARTS, bytes);
        void *other = follower(child, stage->root, item.block, bytes, way & 4);
        assert_int_equal(ebb_object_end(item.object), 0);
        assert_int_equal(live_in(child), 0);
        ebb_check_pool(stage->pool);
        block_of(child, bytes, 256);
        check_survivor(child, other, bytes);
        assert_int_equal(stats_of(child).blocks.current, 1);
        assert_int_equal(ebb_region_close(child), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
}

/* They are claimed where they have gone, too. */
static void arrays_that_have_gone_are_not_relinked(void **state) {
    struct stage *stage = *state;
    for (int mode = EBB_PROMOTE_COPY; mode <= EBB_PROMOTE_RELINK; mode++) {
        struct ebb_own_options options = {.size = sizeof options, .mode = mode};
        ebb_region child = OPEN(.parent = stage->root), below = OPEN(.parent = child);
        struct item item = item_of(below, PARTS, 50000);
        assert_int_equal(ebb_objects_promote(below, child, &item.object, 1, &options, NULL), 0);
        assert_int_equal(ebb_region_close(below), 0);
        item.block = ((struct box *)item.object)->parts;
        struct ebb_survivor survivor = survivor_of(item.block, EBB_PROMOTE_RELINK);
        assert_int_equal(ebb_promote(child, stage->root, &survivor, 1, NULL), 0);
        assert_ptr_not_equal(survivor.block, item.block);
        assert_int_equal(ebb_object_end(item.object), 0);
        assert_int_equal(live_in(child), 0);
        assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
        assert_int_equal(ebb_region_close(child), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(what_is_of_an_object_is_not_relinked),
        STAGED(what_is_of_an_object_does_not_stay_where_it_was_born),
        STAGED(elements_stay_their_tensors),
        STAGED(arrays_stay_their_composites),
        STAGED(arrays_that_have_gone_are_not_relinked),
    };
    return cmocka_run_group_tests(tests, boxes_prepare, NULL);
}
