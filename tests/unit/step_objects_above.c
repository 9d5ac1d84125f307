// SPDX-License-Identifier: Apache-2.0
/*
 * step_objects_above.c - objects that were born in the parent of their step, seen from there: the
 * parent cannot touch them, and what is exported outlives both.
 */
#include "kit/passes.h"

/* ---- exports ---- */

static void exports_outlive_the_step_wherever_the_tensor_was_born(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    for (int i = 0; i < 4; i++) {
        struct pass pass = pass_of(site, stage->root);
        bool born = lies_in(stage->root, pass.large);
        DLManagedTensor *one = share(pass.large), *two = share(pass.large);
        void *block = pass.large->storage->block;
        assert_int_equal(ebb_region_count_exports(pass.step.region), 2);
        assert_refused(ebb_region_release(pass.step.region, block), EBB_E_BUSY);
        assert_refused(ebb_region_resize(pass.step.region, block, 100), EBB_E_BUSY);
        if (i == 1)
            give_back(one);
        if (i == 2)
            assert_int_equal(ebb_object_end(pass.large), 0);
        ebb_check_pool(stage->pool);
        assert_int_equal(ebb_step_end(pass.step), 0);
        ebb_check_pool(stage->pool);
        assert_int_equal(ebb_region_count_exports(stage->root), born ? (i == 1 ? 1 : 2) : 0);
        assert_int_equal(stats_of(stage->root).blocks.current, born);
        assert_true(export_holds(two));
        if (i != 1)
            give_back(one);
        assert_true(export_holds(two));
        give_back(two);
        assert_int_equal(ebb_region_count_exports(stage->root), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void exports_outlive_the_parent_too(void **state) {
    struct stage *stage = *state;
    ebb_region parent = OPEN(.parent = stage->root);
    ebb_site *site = site_that_tenures(stage->pool, parent, 0);
    struct pass pass = pass_of(site, parent);
    assert_true(lies_in(parent, pass.large));
    DLManagedTensor *out = share(pass.large);
    assert_int_equal(ebb_region_close(parent), 0);
    assert_true(export_holds(out));
    give_back(out);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_promoted_tensor_leaves_its_exports_behind(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    struct pass pass = pass_of(site, stage->root);
    DLManagedTensor *out = share(pass.large);
    struct ebb_tensor *was = pass.large;
    struct ebb_promoted cost = {0};
    keep_both(&pass, stage->root, &cost);
    assert_true(cost.copied_blocks == 1 && pass.large != was);
    assert_int_equal(ebb_step_end(pass.step), 0);
    assert_true(export_holds(out));
    end_both(&pass);
    give_back(out);
    assert_int_equal(ebb_region_count_exports(stage->root), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- the parent ---- */

/* Until it is promoted the parent has nothing to do with it. */
static void the_parent_cannot_touch_what_was_born_in_it(void **state) {
    struct stage *stage = *state;
    ebb_region parent = OPEN(.parent = stage->root);
    ebb_site *site = site_that_tenures(stage->pool, parent, 0);
    void *own = block_of(parent, SMALL, 16), *large = block_of(parent, LARGE, 64);
    struct pass pass = pass_of(site, parent);
    void *born[] = {pass.small, pass.large};
    for (int i = 0; i < 2; i++) {
        struct ebb_survivor survivor = survivor_of(born[i], EBB_PROMOTE_AUTO);
        assert_true(lies_in(parent, born[i]));
        assert_refused(ebb_region_release(parent, born[i]), EBB_E_FOREIGN);
        assert_text_names("was not promoted yet");
        assert_refused(ebb_region_resize(parent, born[i], 50), EBB_E_FOREIGN);
        assert_no_block(ebb_region_realloc(parent, born[i], 50, 16), EBB_E_FOREIGN);
        assert_int_equal(ebb_region_block_bytes(parent, born[i]), 0);
        assert_true(ebb_region_block_bytes(pass.step.region, born[i]) > 0);
        assert_refused(ebb_promote(parent, stage->root, &survivor, 1, NULL), EBB_E_FOREIGN);
        assert_refused(ebb_objects_promote(parent, stage->root, &born[i], 1, NULL, NULL),
                       EBB_E_NOT_OWNED);
        assert_int_equal(ebb_region_release_remote(parent, NULL), 0);
    }
    assert_int_equal(ebb_region_release(parent, own), 0);
    assert_refused(ebb_region_release(parent, own), EBB_E_RELEASED);
    assert_int_equal(ebb_region_release(parent, large), 0);
    assert_whole(&pass);
    keep_both(&pass, parent, NULL);
    assert_int_equal(ebb_step_end(pass.step), 0);
    end_both(&pass);
    assert_int_equal(stats_of(parent).blocks.current, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_sibling_cannot_promote_it(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    struct pass pass = pass_of(site, stage->root);
    ebb_region sibling = OPEN(.parent = stage->root);
    struct ebb_survivor survivor = survivor_of(pass.large, EBB_PROMOTE_AUTO);
    assert_refused(ebb_promote(sibling, stage->root, &survivor, 1, NULL), EBB_E_FOREIGN);
    assert_int_equal(ebb_region_close(sibling), 0);
    keep_both(&pass, stage->root, NULL);
    assert_int_equal(ebb_step_end(pass.step), 0);
    end_both(&pass);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The parent follows a plan, too: what is born in it lies in its arena. */
static void a_step_may_bear_for_the_steps_below_it(void **state) {
    struct stage *stage = *state;
    ebb_site *outer = ebb_site_create(EBB_SITE_OPTIONS(.name = "outer", .pool = stage->pool));
    ebb_site *inner = ebb_site_create(EBB_SITE_OPTIONS(.name = "inner", .pool = stage->pool));
    unsigned born = 0;
    for (int i = 0; i < 8; i++) {
        ebb_step whole = begin(outer, stage->root);
        void *block = block_of(whole.region, 700, 16);
        for (int k = 0; k < 4; k++) {
            struct pass pass = pass_of(inner, whole.region);
            void *small = pass.small;
            if (lies_in(whole.region, small)) {
                born++;
                assert_refused(ebb_region_release(whole.region, small), EBB_E_FOREIGN);
                assert_refused(ebb_region_release(whole.region, pass.large), EBB_E_FOREIGN);
            }
            if (k == 3)
                assert_int_equal(ebb_region_release(whole.region, block), 0);
            if (k < 3 || i < 3)
                keep_both(&pass, whole.region, NULL);
            assert_int_equal(ebb_step_end(pass.step), 0);
            if (k < 3 || i < 3)
                end_both(&pass);
        }
        assert_int_equal(stats_of(whole.region).blocks.current, 0);
        assert_int_equal(ebb_step_end(whole), 0);
    }
    assert_true(born > 10 && site_stats(inner).tenured_wrong > 0);
    assert_true(site_stats(outer).hits > 0);
    assert_int_equal(ebb_site_destroy(inner), 0);
    assert_int_equal(ebb_site_destroy(outer), 0);
}

/* A call that makes several objects and fails leaves no trace above either. */
static void a_failed_call_leaves_no_trace_in_the_parent(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (int i = 0; i < 5; i++) {
        ebb_step step = begin(site, stage->root);
        struct ebb_tensor *parts[] = {tensor_of_bytes(step.region, 2000),
                                      tensor_of_bytes(step.region, 1000)};
        if (i == 4) { /* the view takes the first of the places above */
            struct ebb_tensor *huge = ebb_tensor_view(
                step.region, parts[0], 1, &(int64_t){(int64_t)1 << 45}, &(int64_t){0}, 0);
            struct ebb_tensor *list[] = {parts[0], huge};
            struct ebb_region_stats before = stats_of(stage->root), after;
            assert_int_equal(before.blocks.current, 1);
            assert_null(ebb_sequences_pack(step.region, list, 2, NULL));
            assert_int_equal(ebb_last_error(), EBB_E_MEMORY);
            after = stats_of(stage->root);
            after.reserved = before.reserved;
            after.waste = before.waste;
            after.runs = before.runs;
            assert_memory_equal(&after, &before, sizeof before);
        }
        void *packed = ebb_sequences_pack(step.region, parts, 2, NULL);
        assert_non_null(packed);
        promote(step.region, stage->root, &packed);
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(ebb_object_end(packed), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_true(stats.tenured_right > 0 && stats.tenured_wrong == 1); /* the view */
    assert_true(stats.hits >= stats.tenured_right && stats.hits <= stats.allocations);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(exports_outlive_the_step_wherever_the_tensor_was_born),
        STAGED(exports_outlive_the_parent_too),
        STAGED(a_promoted_tensor_leaves_its_exports_behind),
        STAGED(the_parent_cannot_touch_what_was_born_in_it),
        STAGED(a_sibling_cannot_promote_it),
        STAGED(a_step_may_bear_for_the_steps_below_it),
        STAGED(a_failed_call_leaves_no_trace_in_the_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
