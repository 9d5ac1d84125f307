// SPDX-License-Identifier: Apache-2.0
/*
 * own.c - objects change hands: with everything they consist of, each storage once, what aliased
 * still aliasing; or not at all, and then nothing has changed.
 */
#include "kit/test.h"

#include "failure/fault.h"

#define F32 ((struct ebb_dtype){EBB_FLOAT, 32, 1})

/* A user's composite with every kind of field. */
struct layer {
    struct ebb_object object;
    struct ebb_object *weight, *bias;
    struct ebb_object **parts;
    size_t part_count;
    void *name;
    size_t name_bytes;
};

static const struct ebb_field layer_fields[] = {
    EBB_FIELD(struct layer, EBB_FIELD_OBJECT, weight),
    EBB_FIELD(struct layer, EBB_FIELD_OBJECT, bias),
    EBB_FIELD_COUNTED(struct layer, EBB_FIELD_OBJECTS, parts, part_count),
    EBB_FIELD_COUNTED(struct layer, EBB_FIELD_BYTES, name, name_bytes),
};
static struct ebb_type layer_type = {
    .name = "layer", .bytes = sizeof(struct layer), .fields = layer_fields, .field_count = 4};

static int register_types(void **state) {
    (void)state;
    return ebb_type_register(&layer_type);
}

static struct ebb_tensor *floats(ebb_region region, int64_t count) {
    struct ebb_tensor *tensor = ebb_tensor_new(region, F32, 1, &count);
    assert_non_null(tensor);
    pattern_fill(tensor->data, ebb_tensor_bytes(tensor), (unsigned)count);
    return tensor;
}

static void assert_floats(const struct ebb_tensor *tensor, int64_t count) {
    assert_int_equal(ebb_tensor_count(tensor), count);
    assert_true(pattern_holds(tensor->data, (size_t)count * 4, (unsigned)count));
}

static struct ebb_tensor *part_of(ebb_region region, const struct ebb_tensor *base, int64_t from,
                                  int64_t count) {
    int64_t stride = 1;
    struct ebb_tensor *view = ebb_tensor_view(region, base, 1, &count, &stride, from);
    assert_non_null(view);
    return view;
}

/* weight, its view among the parts, a bias, a name; all of one region. */
static struct layer *layer_in(ebb_region region, int64_t count) {
    struct layer *layer = ebb_object_new(region, &layer_type, 0);
    struct ebb_tensor *weight = floats(region, count);
    layer->weight = &weight->object;
    layer->bias = &floats(region, 3)->object;
    layer->part_count = 3;
    layer->parts = ebb_region_alloc_zeroed(region, 3 * sizeof *layer->parts, 16);
    layer->parts[0] = &part_of(region, weight, 1, count / 2)->object;
    layer->parts[2] = &floats(region, 7)->object;
    layer->name_bytes = 100;
    layer->name = block_of(region, 100, 16);
    assert_int_equal(ebb_object_compose(layer), 0);
    return layer;
}

static void assert_layer(struct layer *layer, int64_t count) {
    const struct ebb_tensor *weight = (void *)layer->weight, *part = (void *)layer->parts[0];
    assert_floats(weight, count);
    assert_floats((void *)layer->bias, 3);
    assert_floats((void *)layer->parts[2], 7);
    assert_null(layer->parts[1]);
    assert_ptr_equal(part->data, (char *)weight->data + 4);
    assert_ptr_equal(part->storage, weight->storage);
    assert_int_equal(weight->storage->tensors, 2);
    assert_true(pattern_holds(layer->name, 100, 100));
    assert_ptr_equal(layer->weight->whole, layer);
    assert_ptr_equal(layer->parts[2]->whole, layer);
}

static uint64_t live_in(ebb_region region) {
    struct ebb_object_counts counts;
    assert_int_equal(ebb_region_read_objects(region, EBB_OBJECT_ALL, &counts), 0);
    return counts.live;
}

static void promote_in_mode(struct stage *stage, int mode, int64_t count) {
    ebb_region inner = OPEN(.parent = stage->root);
    struct ebb_own_options options = {.size = sizeof options, .mode = mode};
    struct ebb_promoted cost = {0};
    struct layer *old = layer_in(inner, count);
    void *object = old;
    assert_int_equal(ebb_objects_promote(inner, stage->root, &object, 1, &options, &cost), 0);
    assert_layer(object, count);
    assert_true(ebb_region_owns(stage->root, object));
    assert_true(ebb_region_owns(stage->root, ((struct layer *)object)->bias));
    assert_int_equal(cost.copied_blocks + cost.relinked_blocks, 7);
    if (object != old)
        assert_refused(ebb_object_end(old), EBB_E_RELEASED);
    assert_int_equal(live_in(inner), 0);
    assert_int_equal(live_in(stage->root), 5);
    ebb_check_pool(stage->pool);
    assert_int_equal(ebb_region_close_strict(inner), 0);
    assert_layer(object, count);
    ebb_check_pool(stage->pool);
    assert_int_equal(ebb_object_end(object), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    assert_int_equal(live_in(stage->root), 0);
}

static void a_composite_travels_with_all_it_consists_of(void **state) {
    for (int mode = EBB_PROMOTE_AUTO; mode <= EBB_PROMOTE_RELINK; mode++)
        for (int64_t count = 4; count < 300000; count *= 9)
            promote_in_mode(*state, mode, count);
}

static void what_auto_may_pin_goes_along_to_the_blocks(void **state) {
    struct stage *stage = *state;
    for (unsigned percent = 0; percent <= 80; percent += 40) { /* 3,840 bytes beside 4,352 */
        ebb_region inner = OPEN(.parent = stage->root);
        struct ebb_own_options options = {.size = sizeof options,
                                          .pin_percent = (uint16_t)percent};
        void *object = ebb_tensor_new(inner, (struct ebb_dtype){EBB_UINT, 8, 1}, 1,
                                      (const int64_t[]){4096});
        struct ebb_promoted cost = {0};
        assert_int_equal(ebb_objects_close_keeping(inner, stage->root, &object, 1, &options,
                                                   &cost, NULL), 0);
        assert_int_equal(cost.relinked_blocks, percent == 0);
        assert_int_equal(cost.pinned_bytes, percent == 0 ? 3840 : 0);
        assert_int_equal(ebb_object_end(object), 0);
    }
}

static void c174_views_of_one_storage_still_alias(void **state) {
    struct stage *stage = *state;
    for (int64_t count = 100; count <= 100000; count *= 10) {
        ebb_region inner = OPEN(.parent = stage->root);
        struct ebb_tensor *base = floats(inner, count);
        void *views[2] = {part_of(inner, base, 0, 60), part_of(inner, base, 20, 60)};
        assert_int_equal(ebb_objects_promote(inner, stage->root, views, 2, NULL, NULL), 0);
        struct ebb_tensor *a = views[0], *b = views[1];
        assert_ptr_equal((char *)a->data + 80, b->data);
        ((float *)a->data)[20] = 5;
        assert_true(((float *)b->data)[0] == 5.0f);
        assert_ptr_not_equal(a->storage, base->storage); /* the base stayed */
        assert_int_equal(base->storage->tensors, 1);
        assert_floats(base, count);
        ebb_region_close(inner);
        assert_true(((float *)b->data)[0] == 5.0f);
        ebb_object_end(a);
        ebb_object_end(b);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
}

static void c176_a_copy_is_apart_and_a_relinked_tensor_the_same_memory(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct ebb_own_options relink = {.size = sizeof relink, .mode = EBB_PROMOTE_RELINK};
    struct ebb_tensor *large = floats(inner, 50000);
    void *object = large, *data = large->data;
    assert_int_equal(ebb_objects_promote(inner, stage->root, &object, 1, &relink, NULL), 0);
    assert_ptr_equal(object, large);
    assert_ptr_equal(large->data, data);
    ebb_region_close(inner);
    assert_floats(large, 50000);
    assert_int_equal((uintptr_t)large->data % EBB_STORAGE_ALIGN, 0);
}

/* The tensor has ended, its views live on: the storage goes with them, once. */
static void a_storage_outlives_its_tensor_and_travels(void **state) {
    struct stage *stage = *state;
    for (int64_t count = 100; count <= 100000; count *= 10) {
        ebb_region inner = OPEN(.parent = stage->root);
        struct ebb_tensor *base = floats(inner, count);
        void *views[2] = {part_of(inner, base, 0, count), part_of(inner, base, 20, 60)};
        assert_int_equal(ebb_object_end(base), 0);
        assert_int_equal(ebb_objects_promote(inner, stage->root, views, 2, NULL, NULL), 0);
        ebb_check_pool(stage->pool);
        assert_int_equal(stats_of(inner).blocks.current, 0);
        ebb_region_close(inner);
        assert_floats(views[0], count);
        assert_int_equal(ebb_object_end(views[0]), 0);
        assert_int_equal(ebb_object_end(views[1]), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
}

static void a_view_below_its_storage_goes_up_to_it_and_not_beyond(void **state) {
    struct stage *stage = *state;
    ebb_region middle = OPEN(.parent = stage->root), inner = OPEN(.parent = middle);
    struct ebb_tensor *base = floats(middle, 5000);
    void *view = part_of(inner, base, 0, 5000);
    assert_refused(ebb_objects_promote(inner, stage->root, &view, 1, NULL, NULL),
                   EBB_E_NOT_OWNED);
    assert_int_equal(ebb_objects_promote(inner, middle, &view, 1, NULL, NULL), 0);
    assert_ptr_equal(((struct ebb_tensor *)view)->data, base->data);
    assert_int_equal(base->storage->tensors, 2);
    ebb_region_close(inner);
    assert_int_equal(base->storage->tensors, 2);
    assert_floats(view, 5000);
    ebb_region_close(middle);
}

static void a_region_that_closes_leaves_the_storages_it_saw(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = floats(stage->root, 5000);
    ebb_region inner = OPEN(.parent = stage->root);
    for (int i = 0; i < 10; i++)
        part_of(inner, base, i, 60);
    assert_int_equal(base->storage->tensors, 11);
    assert_int_equal(ebb_object_end(base), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
    ebb_region_close(inner);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

/* Every third float of a large tensor, in `columns` columns. */
static struct ebb_tensor *sparse_view(ebb_region region, const struct ebb_tensor *base,
                                      int64_t columns) {
    int64_t shape[] = {10, columns}, strides[] = {3 * columns, 3};
    struct ebb_tensor *view = ebb_tensor_view(region, base, 2, shape, strides, 2);
    assert_non_null(view);
    return view;
}

static void assert_sparse(const struct ebb_tensor *view, const struct ebb_tensor *base,
                          int64_t columns) {
    assert_true(ebb_tensor_is_contiguous(view));
    for (int64_t i = 0; i < 10 * columns; i++)
        assert_memory_equal((float *)view->data + i, (float *)base->data + 2 + 3 * i, 4);
}

static void a_view_that_goes_alone_takes_only_what_it_sees(void **state) {
    struct stage *stage = *state;
    struct ebb_own_options options = {.size = sizeof options, .compact = true};
    for (int64_t columns = 1; columns < 5000; columns *= 7) {
        ebb_region inner = OPEN(.parent = stage->root);
        struct ebb_tensor *base = floats(inner, 200000);
        void *objects[3] = {floats(inner, 5), sparse_view(inner, base, columns),
                            floats(inner, 20000)};
        struct ebb_promoted cost = {0};
        assert_int_equal(
            ebb_objects_promote(inner, stage->root, objects, 3, &options, &cost), 0);
        ebb_check_pool(stage->pool);
        assert_sparse(objects[1], base, columns);
        assert_int_equal(base->storage->tensors, 1);
        assert_true(stats_of(stage->root).requested.current < (size_t)columns * 40 + 82000);
        assert_int_equal(cost.copied_blocks, 2);
        assert_int_equal(cost.relinked_blocks, 1);
        ebb_region_close(inner);
        for (int i = 0; i < 3; i++)
            assert_int_equal(ebb_object_end(objects[i]), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
}

static void views_that_go_together_share_one_storage_even_if_compact(void **state) {
    struct stage *stage = *state;
    struct ebb_own_options options = {.size = sizeof options, .compact = true};
    ebb_region inner = OPEN(.parent = stage->root);
    struct ebb_tensor *base = floats(inner, 1000);
    void *views[2] = {part_of(inner, base, 0, 60), part_of(inner, base, 20, 60)};
    assert_int_equal(ebb_objects_promote(inner, stage->root, views, 2, &options, NULL), 0);
    assert_ptr_equal((char *)((struct ebb_tensor *)views[0])->data + 80,
                     ((struct ebb_tensor *)views[1])->data);
}

/* ---- failures ---- */

struct sight {
    struct ebb_region_stats regions[2];
    struct ebb_object_counts counts[2];
};

static struct sight look(ebb_region a, ebb_region b) {
    struct sight sight = {.regions = {stats_of(a), stats_of(b)}};
    assert_int_equal(ebb_region_read_objects(a, EBB_OBJECT_ALL, &sight.counts[0]), 0);
    assert_int_equal(ebb_region_read_objects(b, EBB_OBJECT_ALL, &sight.counts[1]), 0);
    return sight;
}

/* Pages that were taken for an attempt may stay; everything else is as before. */
static void assert_unchanged(const struct sight *before, ebb_region a, ebb_region b) {
    struct sight after = look(a, b);
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(&before->regions[i].blocks, &after.regions[i].blocks,
                            3 * sizeof after.regions[i].blocks);
        assert_int_equal(before->regions[i].small_blocks, after.regions[i].small_blocks);
        assert_int_equal(before->regions[i].large_blocks, after.regions[i].large_blocks);
    }
    assert_memory_equal(before->counts, after.counts, sizeof after.counts);
}

static bool promotes_with_failure(struct stage *stage, unsigned nth, bool forever) {
    ebb_region inner = OPEN(.parent = stage->root);
    struct ebb_own_options compact = {.size = sizeof compact, .compact = true};
    void *objects[22];
    for (int i = 0; i < 20; i++)
        objects[i] = layer_in(inner, i % 2 ? 10 : 3000);
    struct ebb_tensor *base = floats(inner, 20000);
    objects[20] = sparse_view(inner, base, 10);
    objects[21] = sparse_view(inner, floats(inner, 20000), 600);
    struct sight before = look(inner, stage->root);
    ebb_pool_trim(stage->pool, 0);
    fault_arm(nth, forever);
    int result = ebb_objects_promote(inner, stage->root, objects, 22, &compact, NULL);
    unsigned refused = fault_disarm();
    ebb_check_pool(stage->pool);
    if (result) {
        assert_refused(result, EBB_E_MEMORY);
        assert_unchanged(&before, inner, stage->root);
    }
    for (int i = 0; i < 20; i++) {
        assert_layer(objects[i], i % 2 ? 10 : 3000);
        assert_true(ebb_region_owns(result ? inner : stage->root, objects[i]));
    }
    if (!result)
        assert_sparse(objects[20], base, 10);
    assert_int_equal(ebb_objects_end_but(stage->root, NULL, 0), 0);
    ebb_region_close(inner);
    ebb_region_reset(stage->root, 0);
    return refused > 0;
}

static void c59_c175_every_failure_leaves_both_regions_as_they_were(void **state) {
    struct stage *stage = *state;
    for (int forever = 0; forever < 2; forever++) {
        unsigned nth = 1;
        while (promotes_with_failure(stage, nth, forever))
            nth++;
        assert_true(nth > 1);
    }
}

static void a_limit_refuses_the_whole(void **state) {
    struct stage *stage = *state;
    bool refused = true;
    for (size_t limit = 1024; refused; limit += 512) {
        ebb_region outer = OPEN(.parent = stage->root, .limit_bytes = 1 << 20);
        ebb_region target = OPEN(.parent = stage->root, .limit_bytes = limit);
        ebb_region inner = OPEN(.pool = stage->pool);
        assert_int_equal(ebb_region_close(outer), 0);
        assert_int_equal(ebb_region_close(inner), 0);
        inner = OPEN(.parent = target);
        ebb_region source = OPEN(.parent = stage->root);
        void *object = layer_in(source, 3000);
        struct sight before = look(source, target);
        void *there = ebb_object_move(object, target);
        refused = there == NULL;
        if (refused) {
            assert_no_block(there, EBB_E_REGION_LIMIT);
            assert_unchanged(&before, source, target);
            assert_layer(object, 3000);
        } else {
            assert_layer(there, 3000);
        }
        ebb_region_close(source);
        ebb_region_close(target);
    }
}

/* ---- refusals ---- */

/* They would stay, but not what is wrong with them. */
static void refuse_where_they_are(ebb_region region, void **objects, size_t count, int code) {
    assert_refused(ebb_objects_promote(region, region, objects, count, NULL, NULL), code);
}

static void whatever_cannot_go_is_named(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root), other = OPEN(.parent = stage->root);
    struct layer *layer = layer_in(inner, 10);
    void *two[2] = {layer, layer}, *member = layer->weight, *foreign = floats(other, 3);
    void *raw = block_of(inner, 200, 16), *lent = floats(inner, 5), *outside = &two;
    assert_int_equal(ebb_object_borrow(lent, other), 0);
    struct sight before = look(inner, stage->root);
    assert_refused(ebb_objects_promote(inner, stage->root, two, 2, NULL, NULL), EBB_E_DUPLICATE);
    assert_refused(ebb_objects_promote(inner, stage->root, &member, 1, NULL, NULL),
                   EBB_E_MEMBER);
    assert_refused(ebb_objects_promote(inner, stage->root, &foreign, 1, NULL, NULL),
                   EBB_E_NOT_OWNED);
    assert_refused(ebb_objects_promote(inner, stage->root, &raw, 1, NULL, NULL), EBB_E_TYPE);
    assert_refused(ebb_objects_promote(inner, stage->root, &lent, 1, NULL, NULL),
                   EBB_E_BORROWED);
    assert_refused(ebb_objects_promote(inner, stage->root, &outside, 1, NULL, NULL),
                   EBB_E_FOREIGN);
    assert_refused(ebb_objects_promote(inner, other, two, 1, NULL, NULL), EBB_E_NOT_ANCESTOR);
    assert_refused(ebb_objects_promote(inner, stage->root, NULL, 1, NULL, NULL),
                   EBB_E_ARGUMENT);
    refuse_where_they_are(inner, two, 2, EBB_E_DUPLICATE);
    refuse_where_they_are(inner, &member, 1, EBB_E_MEMBER);
    refuse_where_they_are(inner, &foreign, 1, EBB_E_NOT_OWNED);
    refuse_where_they_are(inner, &lent, 1, EBB_E_BORROWED);
    refuse_where_they_are(inner, &(void *){NULL}, 1, EBB_E_FOREIGN);
    assert_int_equal(ebb_objects_promote(inner, inner, two, 1, NULL, NULL), 0);
    struct ebb_own_options wrong = {.size = 1};
    assert_refused(ebb_objects_promote(inner, stage->root, two, 1, &wrong, NULL),
                   EBB_E_ARGUMENT);
    assert_int_equal(ebb_region_seal(stage->root), 0);
    assert_refused(ebb_objects_promote(inner, stage->root, two, 1, NULL, NULL), EBB_E_SEALED);
    assert_unchanged(&before, inner, stage->root);
    assert_layer(layer, 10);
}

static void a_changed_composite_is_refused(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct layer *layer = layer_in(inner, 10);
    struct ebb_object *bias = layer->bias;
    void *object = layer;
    layer->bias = &floats(inner, 9)->object;
    struct sight before = look(inner, stage->root);
    assert_refused(ebb_objects_promote(inner, stage->root, &object, 1, NULL, NULL),
                   EBB_E_NOT_OWNED);
    assert_unchanged(&before, inner, stage->root);
    layer->bias = bias;
    assert_int_equal(ebb_objects_promote(inner, stage->root, &object, 1, NULL, NULL), 0);
    assert_layer(object, 10);
}

/* ---- moving, lending, replacing ---- */

static void an_object_moves_between_unrelated_trees(void **state) {
    struct stage *stage = *state;
    ebb_pool *pool = POOL(.name = "other");
    ebb_region there = OPEN(.pool = pool);
    for (int64_t count = 4; count < 300000; count *= 9) {
        ebb_region inner = OPEN(.parent = stage->root);
        struct layer *moved = ebb_object_move(layer_in(inner, count), there);
        assert_non_null(moved);
        assert_int_equal(stats_of(inner).blocks.current, 0);
        ebb_region_close(inner);
        assert_layer(moved, count);
        assert_int_equal(ebb_object_end(moved), 0);
    }
    assert_int_equal(stats_of(there).blocks.current, 0);
    ebb_region_close(there);
    pool_end(pool);
}

static void a_lent_object_finds_its_way_back_past_those_that_closed(void **state) {
    struct stage *stage = *state;
    ebb_region m = OPEN(.parent = stage->root), s = OPEN(.pool = stage->pool);
    ebb_region u = OPEN(.pool = stage->pool);
    struct layer *x = layer_in(m, 10);
    assert_int_equal(ebb_object_borrow(x, s), 0);
    assert_int_equal(ebb_object_borrow(x, u), 0);
    assert_int_equal(ebb_object_borrow(x, m), 0);
    assert_true(ebb_region_owns(m, x));
    assert_int_equal(ebb_object_return(x), 0);
    assert_true(ebb_region_owns(u, x));
    ebb_region_close(s);
    assert_int_equal(live_in(u), 5);
    ebb_region_close(u);
    assert_true(ebb_region_owns(m, x));
    assert_refused(ebb_object_return(x), EBB_E_NOT_OWNED);
    assert_layer(x, 10);
    assert_int_equal(live_in(m), 5);
    assert_int_equal(stats_of(m).blocks.current, 7);
}

static void an_object_ends_with_its_lender(void **state) {
    struct stage *stage = *state;
    ebb_region m = OPEN(.parent = stage->root), s = OPEN(.pool = stage->pool);
    struct layer *x = layer_in(m, 10);
    assert_int_equal(ebb_object_borrow(x, s), 0);
    ebb_region_close(m);
    assert_int_equal(live_in(s), 0);
    assert_int_equal(ebb_region_list_objects(s, NULL, 0), 0);
    ebb_region_close(s);
}

static void a_slot_takes_a_new_object_and_ends_the_old(void **state) {
    struct stage *stage = *state;
    struct layer *layer = layer_in(stage->root, 10);
    for (int step = 0; step < 10; step++) {
        ebb_region inner = OPEN(.parent = stage->root);
        struct ebb_tensor *fresh = floats(inner, 20000 + step), *old = (void *)layer->bias;
        void *data = fresh->data;
        assert_int_equal(ebb_object_replace(layer, 1, fresh), 0);
        assert_int_not_equal(ebb_object_end(old), 0);
        assert_ptr_equal(((struct ebb_tensor *)layer->bias)->data, data);
        ebb_region_close(inner);
        assert_floats((void *)layer->bias, 20000 + step);
        assert_int_equal(live_in(stage->root), 5);
    }
    ebb_region inner = OPEN(.parent = stage->root);
    struct layer *below = layer_in(inner, 10);
    struct ebb_tensor *above = floats(stage->root, 30);
    assert_int_equal(ebb_object_replace(below, 1, above), 0);
    assert_false(ebb_region_owns(stage->root, above));
    assert_floats((void *)below->bias, 30);
    assert_true(ebb_region_owns(inner, below->bias));
    above = floats(stage->root, 31);
    assert_int_equal(ebb_object_attach(above, inner), 0);
    assert_int_equal(ebb_object_replace(layer, 1, above), 0);
    ebb_region_close(inner);
    assert_floats((void *)layer->bias, 31);
    assert_refused(ebb_object_replace(layer, 4, NULL), EBB_E_ARGUMENT);
    assert_refused(ebb_object_replace(layer, 3, NULL), EBB_E_ARGUMENT);
    assert_refused(ebb_object_replace(layer, 1, layer), EBB_E_CYCLE);
    assert_refused(ebb_object_replace(layer, 1, layer->weight), EBB_E_MEMBER);
    assert_int_equal(ebb_object_replace(layer, 1, NULL), 0);
    assert_null(layer->bias);
    assert_int_equal(live_in(stage->root), 4);
}

static void closing_keeps_what_is_named_and_counts_the_rest(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root), below = OPEN(.parent = inner);
    void *keep[2] = {layer_in(inner, 3000), floats(inner, 5)};
    floats(inner, 4);
    floats(below, 3);
    struct ebb_promoted cost = {0};
    uint64_t ended = 0;
    assert_int_equal(
        ebb_objects_close_keeping(inner, stage->root, keep, 2, NULL, &cost, &ended), 0);
    assert_int_equal(ended, 2);
    assert_false(ebb_region_is_open(inner));
    assert_layer(keep[0], 3000);
    assert_floats(keep[1], 5);
    assert_int_equal(live_in(stage->root), 6);
    assert_int_equal(cost.copied_blocks + cost.relinked_blocks, 8);
}

/* Its tensor ended first; each copy of the storage leads to itself, not to the one before. */
static void a_storage_without_its_tensor_travels_again_and_again(void **state) {
    struct stage *stage = *state;
    ebb_region elsewhere = OPEN(.pool = stage->pool);
    struct ebb_tensor *base = floats(stage->root, 40);
    struct ebb_tensor *view = part_of(stage->root, base, 0, 40);
    assert_int_equal(ebb_object_end(base), 0);
    for (int i = 0; i < 6; i++) {
        view = ebb_object_move(view, i % 2 ? stage->root : elsewhere);
        assert_non_null(view);
        assert_floats(view, 40);
        assert_int_equal(stats_of(i % 2 ? elsewhere : stage->root).blocks.current, 0);
        ebb_check_pool(stage->pool);
    }
    assert_int_equal(ebb_object_end(view), 0);
    assert_int_equal(ebb_region_close(elsewhere), 0);
}

static void rewinding_and_resetting_end_objects(void **state) {
    struct stage *stage = *state;
    struct layer *older = layer_in(stage->root, 10);
    struct ebb_tensor *base = floats(stage->root, 2000);
    ebb_mark mark = ebb_region_mark(stage->root);
    struct layer *newer = layer_in(stage->root, 3000);
    part_of(stage->root, base, 0, 10);
    assert_int_equal(base->storage->tensors, 2);
    struct ebb_tensor *taken = ebb_tensor_take(floats(stage->root, 6));
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    ebb_check_pool(stage->pool);
    assert_int_equal(base->storage->tensors, 1);
    assert_refused(ebb_object_end(newer), EBB_E_RELEASED);
    assert_refused(ebb_object_end(taken), EBB_E_RELEASED);
    assert_layer(older, 10);
    assert_int_equal(live_in(stage->root), 6);
    assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
    assert_int_equal(live_in(stage->root), 0);
    assert_int_equal(ebb_region_list_objects(stage->root, NULL, 0), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(a_composite_travels_with_all_it_consists_of),
        STAGED(what_auto_may_pin_goes_along_to_the_blocks),
        STAGED(c174_views_of_one_storage_still_alias),
        STAGED(c176_a_copy_is_apart_and_a_relinked_tensor_the_same_memory),
        STAGED(a_storage_outlives_its_tensor_and_travels),
        STAGED(a_view_below_its_storage_goes_up_to_it_and_not_beyond),
        STAGED(a_region_that_closes_leaves_the_storages_it_saw),
        STAGED(a_view_that_goes_alone_takes_only_what_it_sees),
        STAGED(views_that_go_together_share_one_storage_even_if_compact),
        STAGED(c59_c175_every_failure_leaves_both_regions_as_they_were),
        STAGED(a_limit_refuses_the_whole),
        STAGED(whatever_cannot_go_is_named),
        STAGED(a_changed_composite_is_refused),
        STAGED(an_object_moves_between_unrelated_trees),
        STAGED(a_lent_object_finds_its_way_back_past_those_that_closed),
        STAGED(an_object_ends_with_its_lender),
        STAGED(a_slot_takes_a_new_object_and_ends_the_old),
        STAGED(closing_keeps_what_is_named_and_counts_the_rest),
        STAGED(a_storage_without_its_tensor_travels_again_and_again),
        STAGED(rewinding_and_resetting_end_objects),
    };
    return cmocka_run_group_tests(tests, register_types, NULL);
}
