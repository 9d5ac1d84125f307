// SPDX-License-Identifier: Apache-2.0
/*
 * promoted_blocks.c - blocks of objects that are promoted by their address: objects go by
 * themselves, so what goes is a copy of bytes, and the object stays as it was.
 */
#include "kit/dlpack.h"

enum what { TENSOR, VIEWED, HEAD, OFFSETS, KINDS }; /* VIEWED: the tensor has ended, a view sees */

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

static struct item item_of(ebb_region region, enum what what, size_t bytes) {
    struct ebb_tensor *tensor = NULL;
    struct item item = {NULL, NULL, bytes};
    if (what == HEAD) {
        item.object = item.block = ebb_object_new(region, &ebb_type_ragged, bytes);
        assert_non_null(item.object);
        return item;
    }
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
    for (int way = 0; way < KINDS * ENDS; way++) {
        enum what what = (enum what)(way / ENDS);
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        bool was_born = false;
        for (unsigned i = 0; i < UNTIL_LEARNT + STEPS; i++) {
            ebb_step step = ebb_step_begin_under(site, stage->root, 0);
            if (i < UNTIL_LEARNT) {
                struct ebb_survivor plain =
                    survivor_of(block_of(step.region, 50000, 256), EBB_PROMOTE_COPY);
                assert_int_equal(ebb_promote(step.region, stage->root, &plain, 1, NULL), 0);
                assert_int_equal(ebb_step_end(step), 0);
                assert_int_equal(ebb_region_release(stage->root, plain.block), 0);
                continue;
            }
            ebb_mark mark = way % ENDS == REWOUND ? ebb_region_mark(step.region) : (ebb_mark){0};
            struct item item = item_of(step.region, what, 50000 - 300);
            was_born |= ebb_region_of(item.block).lane == stage->root.lane;
            promote_and_end(step.region, stage->root, &step, item, (enum end)(way % ENDS), mark,
                            EBB_PROMOTE_AUTO);
        }
        assert_true(was_born || way % ENDS == REWOUND); /* else it would be in vain */
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* Elements in shared memory are a block that no object begins: it goes, and is not the tensor's
 * from then on. */
static void elements_in_shared_memory_are_not_their_tensors_any_more(void **state) {
    (void)state;
    for (int way = 0; way < 2 * 2; way++) {
        size_t bytes = way & 1 ? 50000 : 2 * MIB;
        ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 16 * MIB);
        ebb_region root = OPEN(.pool = pool), child = OPEN(.parent = root);
        struct ebb_tensor *tensor = tensor_of_bytes(child, bytes);
        struct ebb_survivor survivor = survivor_of(tensor->data, EBB_PROMOTE_RELINK);
        assert_int_equal(ebb_promote(child, root, &survivor, 1, NULL), 0);
        assert_ptr_equal(survivor.block, tensor->data);
        assert_null(ebb_tensor_export(tensor, EBB_EXCHANGE_SHARE));
        assert_int_equal(ebb_last_error(), EBB_E_EXCHANGE);
        assert_text_names("promoted by their address");
        assert_refused(ebb_objects_promote(child, root, &(void *){tensor}, 1, NULL, NULL),
                       EBB_E_FOREIGN);
        memset(survivor.block, 0x55, bytes);
        if (way & 2)
            assert_int_equal(ebb_object_end(tensor), 0);
        ebb_check_pool(pool);
        assert_int_equal(ebb_region_close(child), 0);
        check_survivor(root, survivor.block, bytes);
        assert_int_equal(ebb_region_close(root), 0);
        pool_end(pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(what_is_of_an_object_is_not_relinked),
        STAGED(what_is_of_an_object_does_not_stay_where_it_was_born),
        STAGED(elements_in_shared_memory_are_not_their_tensors_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
