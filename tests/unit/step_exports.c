// SPDX-License-Identifier: Apache-2.0
/* step_exports.c - tensors in planned steps that are exported: what is held stays, and outlives. */
#include "kit/dlpack.h"

#include "step/site.h"

enum { STEPS = 10, OUT = 6 };

static ebb_step begin(ebb_site *site, ebb_region parent) {
    ebb_step step = ebb_step_begin_under(site, parent, 1);
    assert_true(ebb_region_is_open(step.region));
    return step;
}

/* A site that has a plan for steps of two tensors. */
static ebb_site *site_of_tensors(const struct stage *stage, unsigned ring) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .ring = ring));
    for (int i = 0; i < 3; i++) {
        ebb_step step = begin(site, stage->root);
        tensor_of_bytes(step.region, 5000);
        tensor_of_bytes(step.region, 9000);
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_true(stats.planned_steps == 1 && stats.missed == 0 && stats.hits);
    return site;
}

static void a_planned_block_that_is_held_stays_as_it_is(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of_tensors(stage, 0);
    ebb_step step = begin(site, stage->root);
    struct ebb_tensor *tensor = tensor_of_bytes(step.region, 5000);
    tensor_of_bytes(step.region, 9000);
    void *block = tensor->storage->block;
    size_t bytes = ebb_region_block_bytes(step.region, block);
    DLManagedTensor *managed = share(tensor);
    struct ebb_region_stats before = stats_of(step.region);
    assert_refused(ebb_region_resize(step.region, block, bytes + 1), EBB_E_BUSY);
    assert_refused(ebb_region_resize(step.region, block, 10), EBB_E_BUSY);
    assert_no_block(ebb_region_realloc(step.region, block, bytes + 9000, 64), EBB_E_BUSY);
    assert_refused(ebb_region_release(step.region, block), EBB_E_BUSY);
    assert_text_names("is exported");
    assert_true(export_holds(managed));
    assert_int_equal(stats_of(step.region).blocks.total, before.blocks.total);
    assert_int_equal(stats_of(step.region).blocks.current, before.blocks.current);
    assert_int_equal(ebb_region_block_bytes(step.region, block), bytes);
    give_back(managed);
    assert_int_equal(ebb_region_count_exports(step.region), 0);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Exports of many steps are out at once, while rings turn; they are given back in another order. */
static void exports_outlive_planned_steps_and_their_rings(void **state) {
    struct stage *stage = *state;
    for (unsigned ring = 0; ring < 3; ring++) {
        ebb_site *site = site_of_tensors(stage, ring);
        DLManagedTensor *out[OUT] = {NULL};
        for (int i = 0; i < 4 * STEPS; i++) {
            ebb_step step = begin(site, stage->root);
            struct ebb_tensor *first = tensor_of_bytes(step.region, 5000);
            struct ebb_tensor *second = tensor_of_bytes(step.region, i % 9 ? 9000 : 30000);
            DLManagedTensor **place = &out[i * 5 % OUT];
            if (*place) {
                assert_true(export_holds(*place));
                give_back(*place);
            }
            *place = share(i % 2 ? first : second);
            if (i % 4 == 0)
                assert_int_equal(ebb_object_end(i % 2 ? first : second), 0);
            for (int k = 0; k < OUT; k++)
                assert_true(!out[k] || export_holds(out[k]));
            ebb_check_pool(stage->pool);
            assert_int_equal(ebb_step_end(step), 0);
            ebb_check_pool(stage->pool);
        }
        assert_int_equal(ebb_site_destroy(site), 0);
        for (int k = 0; k < OUT; k++) {
            assert_true(!out[k] || export_holds(out[k]));
            if (out[k])
                give_back(out[k]);
        }
        ebb_check_pool(stage->pool);
    }
}

/* A step of three tensors, the first of which goes before the last comes. */
static ebb_step begin_three(ebb_site *site, ebb_region parent, struct ebb_tensor **tensors) {
    ebb_step step = begin(site, parent);
    tensors[0] = tensor_of_bytes(step.region, 5000);
    tensors[1] = tensor_of_bytes(step.region, 9000);
    return step;
}

static void end_three(ebb_step step, size_t bytes) {
    struct ebb_tensor *last = tensor_of_bytes(step.region, bytes);
    assert_true(pattern_holds(last->data, bytes, (unsigned)bytes));
    ebb_check_pool(ebb_pool_default());
    assert_int_equal(ebb_step_end(step), 0);
}

static void a_held_block_is_not_released_as_the_plan_expects(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    struct ebb_tensor *tensors[2];
    for (int i = 0; i < 6; i++) {
        ebb_step step = begin_three(site, stage->root, tensors);
        void *block = tensors[0]->storage->block;
        if (i == 4) {
            DLManagedTensor *managed = share(tensors[0]);
            assert_int_equal(stats_of(step.region).blocks.current, 2); /* peaks are looked at */
            assert_refused(ebb_region_release(step.region, block), EBB_E_BUSY);
            assert_int_equal(ebb_object_end(tensors[0]), 0); /* the export has it alone */
            end_three(step, 4000);
            assert_true(export_holds(managed));
            give_back(managed);
            continue;
        }
        assert_int_equal(ebb_object_end(tensors[0]), 0);
        end_three(step, 4000);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Far more than the plan has room for comes while a block is held. */
static void a_step_with_exports_may_grow(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    struct ebb_tensor *tensors[2];
    for (int i = 0; i < 6; i++) {
        ebb_step step = begin_three(site, stage->root, tensors);
        DLManagedTensor *managed = share(tensors[1]);
        void *block = tensors[1]->storage->block;
        struct ebb_tensor *large = tensor_of_bytes(step.region, i < 3 ? 4000 : 50000 * (size_t)i);
        ebb_check_pool(stage->pool);
        assert_true(export_holds(managed));
        give_back(managed);
        assert_int_equal(ebb_region_count_exports(step.region), 0);
        assert_int_equal(ebb_object_end(tensors[1]), 0);
        assert_int_equal(ebb_region_block_bytes(step.region, block), 0);
        assert_int_equal(ebb_object_end(large), 0);
        assert_int_equal(ebb_object_end(tensors[0]), 0);
        assert_int_equal(stats_of(step.region).blocks.current, 0);
        ebb_check_pool(stage->pool);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A step whose tensor is exported; the export is given back before it ends, or is the result. */
static DLManagedTensor *take_exporting_step(ebb_site *site, ebb_region parent, bool gives_back) {
    ebb_step step = begin(site, parent);
    DLManagedTensor *managed = share(tensor_of_bytes(step.region, 5000));
    tensor_of_bytes(step.region, 9000);
    if (gives_back)
        give_back(managed);
    assert_int_equal(ebb_step_end(step), 0);
    return gives_back ? NULL : managed;
}

/* The pool knows no thread that has an arena, though this one was not kept. */
static void nobody_meets_a_step_that_has_ended_with_an_export(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of_tensors(stage, 0);
    for (int i = 0; i < STEPS; i++) {
        DLManagedTensor *managed = take_exporting_step(site, stage->root, false);
        assert_null(stage->pool->taker);
        assert_true(export_holds(managed));
        give_back(managed);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Though nobody has looked whether it was. */
static void an_export_that_was_given_back_leaves_the_arena_to_the_next_step(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of_tensors(stage, 0);
    const struct track *track = site->lanes->ring[0].followed;
    for (int i = 0; i < STEPS; i++) {
        take_exporting_step(site, stage->root, true);
        assert_non_null(track->kept.run);
        ebb_check_pool(stage->pool);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The step follows its plan until it is reset, with a tensor at the end of its arena exported. What
 * is left in front of that goes once it is empty, as every run does that is not the one that grows.
 */
static void what_a_reset_leaves_of_an_arena_is_a_run_like_others(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of_tensors(stage, 0);
    ebb_step step = begin(site, stage->root);
    tensor_of_bytes(step.region, 5000);
    DLManagedTensor *managed = share(tensor_of_bytes(step.region, 9000));
    assert_int_equal(ebb_region_reset(step.region, EBB_KEEP_ALL), 0);
    ebb_pool_trim(stage->pool, 0); /* nothing is claimed */
    size_t left = stats_of(step.region).reserved.current;
    assert_true(left);
    block_of(step.region, MIB, 64);
    void *room = block_of(step.region, 16 * left, 64);
    struct ebb_region_stats before = stats_of(step.region);
    assert_int_equal(before.runs, 2);
    assert_int_equal(ebb_region_release(step.region, room), 0);
    void *block = block_of(step.region, left, 64); /* where it fits best */
    assert_int_equal(stats_of(step.region).reserved.current, before.reserved.current);
    assert_int_equal(ebb_region_release(step.region, block), 0);
    block_of(step.region, 2 * left, 64); /* what was released last waits no longer */
    assert_int_equal(stats_of(step.region).reserved.current, before.reserved.current - left);
    assert_int_equal(stats_of(step.region).runs, 1);
    assert_true(export_holds(managed));
    assert_int_equal(ebb_step_end(step), 0);
    give_back(managed);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_planned_block_that_is_held_stays_as_it_is),
        STAGED(exports_outlive_planned_steps_and_their_rings),
        STAGED(a_held_block_is_not_released_as_the_plan_expects),
        STAGED(a_step_with_exports_may_grow),
        STAGED(nobody_meets_a_step_that_has_ended_with_an_export),
        STAGED(an_export_that_was_given_back_leaves_the_arena_to_the_next_step),
        STAGED(what_a_reset_leaves_of_an_arena_is_a_run_like_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
