// SPDX-License-Identifier: Apache-2.0
/*
 * scratch.c - what calls need while they work is no block: it meets no limit, no counter has it,
 * and whoever looks at the region meanwhile finds all laws kept.
 */
#include "kit/boxes.h"
#include "kit/dlpack.h"
#include "kit/tensors.h"

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
        STAGED(what_is_made_beside_it_is_all_that_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
