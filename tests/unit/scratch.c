// SPDX-License-Identifier: Apache-2.0
/*
 * scratch.c - what calls need while they work is no block: it meets no limit, no counter has it, it
 * takes no pages of the region, and whoever looks at that meanwhile finds all laws kept.
 */
#include "kit/boxes.h"
#include "kit/dlpack.h"
#include "kit/tensors.h"
#include "region/plan.h"

#include <stdlib.h>

enum { MOST = 400 };

/* Makes tensors until the region's limit refuses them, and fills what is left. Their number. */
static size_t fill(ebb_region region, void **objects) {
    const int64_t size = 64;
    size_t count = 0;
    while (count < MOST && (objects[count] = ebb_tensor_new(region, INT32, 1, &size)) != NULL)
        count++;
    assert_refused(ebb_last_error(), EBB_E_REGION_LIMIT);
    while (ebb_region_alloc(region, 1, 1))
        ;
    assert_in_range(count, 100, MOST - 1);
    return count;
}

static void objects_leave_a_full_region_however_many(void **state) {
    struct stage *stage = *state;
    struct ebb_own_options copy = {.size = sizeof copy, .mode = EBB_PROMOTE_COPY};
    void *objects[MOST];
    for (int closes = 0; closes < 2; closes++) {
        ebb_region full = OPEN(.parent = stage->root, .limit_bytes = 100000);
        size_t count = fill(full, objects);
        if (closes)
            assert_int_equal(ebb_objects_close_keeping(full, stage->root, objects, count, NULL,
                                                       NULL, NULL), 0);
        else
            assert_int_equal(ebb_objects_promote(full, stage->root, objects, count, &copy, NULL),
                             0);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(live_in(stage->root), count);
        assert_int_equal(ebb_objects_end_but(stage->root, NULL, 0), 0);
        assert_int_equal(ebb_region_is_open(full), !closes);
        assert_true(closes || ebb_region_close(full) == 0);
    }
}

/* What the batch has in a region with this limit (0: none); 0 if the limit refuses it. */
static size_t collated_bytes(struct stage *stage, void **samples, size_t limit) {
    ebb_region region = OPEN(.parent = stage->root, .limit_bytes = limit);
    void *batch = ebb_batch_collate(region, samples, 2, NULL, NULL);
    struct ebb_region_stats stats = stats_of(region);
    assert_int_equal(stats.used.current, stats.used.peak);
    if (!batch)
        assert_refused(ebb_last_error(), EBB_E_REGION_LIMIT);
    assert_int_equal(ebb_region_close(region), 0);
    return batch ? stats.used.current : 0;
}

static void a_batch_needs_the_room_that_it_has_in_the_end(void **state) {
    struct stage *stage = *state;
    void *samples[] = {counting(stage->root, SHAPE(30)), counting(stage->root, SHAPE(30))};
    size_t bytes = collated_bytes(stage, samples, 0);
    assert_int_equal(collated_bytes(stage, samples, bytes), bytes);
    assert_int_equal(collated_bytes(stage, samples, bytes - 1), 0);
}

/* ---- pages ---- */

/* Takes all pages that the pool's limit leaves, and the rest of those that the regions have, but
 * for what is left of windows. */
static void take_all_pages(ebb_region a, ebb_region b) {
    for (size_t bytes = 256 * KIB; bytes > EBB_SMALL_MAX_BYTES; bytes = bytes * 3 / 4)
        while (ebb_region_alloc(a, bytes, 16) || ebb_region_alloc(b, bytes, 16))
            ;
    assert_refused(ebb_last_error(), EBB_E_POOL_LIMIT);
}

static void no_pages_of_a_pool_at_its_limit_are_needed(void **state) {
    enum { COUNT = 40 };
    void *objects[COUNT], *room[2 * COUNT];
    (void)state;
    for (int count = 9; count <= COUNT; count += COUNT - 9) {
        ebb_pool *pool = ebb_pool_create(
            EBB_POOL_OPTIONS(.name = "full", .limit_reserved_bytes = MIB));
        ebb_region root = OPEN(.pool = pool), step = OPEN(.parent = root);
        assert_non_null(ebb_region_alloc(root, 16, 16)); /* the room stays there */
        for (int i = 0; i < count; i++)
            objects[i] = floats_in(step, 4);
        for (int i = 0; i < 2 * count; i++)
            room[i] = floats_in(root, 4);
        take_all_pages(step, root);
        for (int i = 0; i < 2 * count; i++)
            assert_int_equal(ebb_object_end(room[i]), 0);
        struct ebb_tensor *batch = ebb_batch_collate(root, objects, 2, NULL, NULL);
        assert_non_null(batch);
        assert_int_equal(ebb_object_end(batch), 0);
        assert_int_equal(ebb_objects_promote(step, root, objects, (size_t)count, NULL, NULL), 0);
        assert_int_equal(ebb_check_pool(pool), 0);
        assert_int_equal(ebb_region_close(root), 0);
        assert_int_equal(ebb_pool_destroy(pool), 0);
    }
}

static void a_call_leaves_no_pages_that_it_needed(void **state) {
    enum { COUNT = 100000 };
    struct stage *stage = *state;
    ebb_region tenant = OPEN(.parent = stage->root, .limit_bytes = 64 * KIB);
    void **samples = calloc(COUNT, sizeof *samples);
    assert_non_null(samples);
    struct ebb_tensor *sample = floats_in(stage->root, 1);
    for (size_t i = 0; i < COUNT; i++)
        samples[i] = sample;
    assert_null(ebb_batch_collate(tenant, samples, COUNT, NULL, NULL));
    assert_refused(ebb_last_error(), EBB_E_REGION_LIMIT);
    struct ebb_region_stats stats = stats_of(tenant);
    assert_int_equal(stats.reserved.peak, 0);
    struct ebb_pool_stats learnt = pool_stats_of(plan_pool());
    assert_int_equal(learnt.open_regions, 0);
    assert_true(learnt.cached <= 64 * KIB);
    free(samples);
}

/* ---- while it is there ---- */

static struct {
    struct stage *stage;
    ebb_region source;
    struct ebb_region_stats stats;
    void *block;
} scene;

static void look_and_allocate(DLManagedTensor *self) {
    (void)self;
    assert_int_equal(ebb_check_pool(scene.stage->pool), 0);
    scene.stats = stats_of(scene.source);
    scene.block = block_of(scene.source, MIB, 64);
}

/* A view of a producer's bytes, which are his again when it has gone. */
static struct ebb_tensor *lent_view(ebb_region region) {
    static int64_t shape[] = {4};
    static float values[4];
    static DLManagedTensor managed = {.deleter = look_and_allocate};
    managed.dl_tensor = (DLTensor){.data = values, .device = {kDLCPU, 0}, .ndim = 1,
                                   .dtype = {kDLFloat, 32, 1}, .shape = shape};
    struct ebb_tensor *lent = ebb_tensor_import(region, &managed, EBB_EXCHANGE_SHARE);
    assert_non_null(lent);
    struct ebb_tensor *view = floats_of(region, lent, 0, 2);
    assert_int_equal(ebb_object_end(lent), 0);
    return view;
}

static void assert_at_peak(const struct ebb_meter *meter) {
    assert_int_equal(meter->current, meter->peak);
}

static void what_is_made_beside_it_is_all_that_counts(void **state) {
    enum { COUNT = 20 };
    struct stage *stage = *state;
    ebb_region source = OPEN(.parent = stage->root);
    struct ebb_own_options compact = {
        .size = sizeof compact, .mode = EBB_PROMOTE_COPY, .compact = true};
    scene.stage = stage;
    scene.source = source;
    void *objects[COUNT] = {lent_view(source)};
    for (int i = 1; i < COUNT; i++)
        objects[i] = floats_in(source, 4);
    assert_int_equal(ebb_objects_promote(source, stage->root, objects, COUNT, &compact, NULL), 0);
    struct ebb_region_stats after = stats_of(source);
    assert_int_equal(scene.stats.blocks.current, 0);
    assert_int_equal(after.blocks.current, 1);
    assert_int_equal(after.requested.current, MIB);
    assert_at_peak(&after.used);
    assert_at_peak(&after.requested);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    assert_int_equal(ebb_region_release(source, scene.block), 0);
    assert_int_equal(ebb_region_close_strict(source), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(objects_leave_a_full_region_however_many),
        STAGED(a_batch_needs_the_room_that_it_has_in_the_end),
        STAGED(no_pages_of_a_pool_at_its_limit_are_needed),
        STAGED(a_call_leaves_no_pages_that_it_needed),
        STAGED(what_is_made_beside_it_is_all_that_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
