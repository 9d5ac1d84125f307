// SPDX-License-Identifier: Apache-2.0
/*
 * step_objects.c - objects that a site has learnt to survive are born in the parent: promoting them
 * costs nothing, and until then they are the step's in all else, whatever becomes of them.
 */
#include "kit/passes.h"

/* ---- right ---- */

static void promoting_what_was_born_in_the_parent_costs_nothing(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    for (unsigned i = 0; i < 6; i++) {
        struct ebb_promoted cost = {0};
        struct pass pass = pass_of(site, stage->root), before = pass;
        assert_true(lies_in(stage->root, pass.small) && lies_in(stage->root, pass.large));
        assert_true(ebb_region_owns(pass.step.region, pass.small));
        assert_false(ebb_region_owns(stage->root, pass.large));
        assert_no_block(ebb_region_alloc(stage->root, 1, 3), EBB_E_ALIGNMENT);
        keep_both(&pass, stage->root, &cost);
        assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT); /* success leaves it alone */
        assert_free_of_cost(cost);
        assert_true(pass.small == before.small && pass.large == before.large);
        assert_true(ebb_region_owns(stage->root, pass.small));
        assert_int_equal(ebb_step_end(pass.step), 0);
        assert_int_equal(stats_of(stage->root).pinned, 0);
        assert_int_equal(site_stats(site).tenured_right, 2 * (i + 1));
        end_both(&pass);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_true(stats.missed == 0 && stats.tenured_wrong == 0);
    assert_true(stats.tenured_right_bytes >= 6 * (SMALL + LARGE));
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void whole_sequences_are_born_in_the_parent(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 6; i++) {
        ebb_step step = begin(site, stage->root);
        struct ebb_tensor *parts[3];
        for (int k = 0; k < 3; k++)
            parts[k] = tensor_of_bytes(step.region, 2000u - (unsigned)k);
        struct ebb_packed *packed = ebb_sequences_pack(step.region, parts, 3, NULL);
        assert_non_null(packed);
        void *before = packed, *object = packed;
        struct ebb_promoted cost = promote(step.region, stage->root, &object);
        packed = object;
        if (i >= LEARNING) {
            assert_free_of_cost(cost);
            assert_ptr_equal(object, before);
        }
        assert_int_equal(ebb_step_end(step), 0);
        int64_t lengths[3];
        assert_int_equal(ebb_packed_read_lengths(packed, lengths, 3), 0);
        assert_true(lengths[0] == 2000 && lengths[1] == 1999 && lengths[2] == 1998);
        assert_true(ebb_region_owns(stage->root, packed->data));
        assert_int_equal(ebb_object_end(packed), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
    assert_int_equal(site_stats(site).tenured_right, 4 * 5); /* the object and its four members */
    assert_int_equal(site_stats(site).tenured_wrong, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void only_what_was_born_in_the_step_is_paid_for(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    struct pass pass = pass_of(site, stage->root);
    struct ebb_tensor *small = tensor_of_bytes(pass.step.region, 60);
    struct ebb_tensor *large = tensor_of_bytes(pass.step.region, 50000);
    void *list[] = {small, pass.large, large, pass.small};
    struct ebb_promoted cost = {0};
    assert_int_equal(ebb_objects_promote(pass.step.region, stage->root, list, 4, NULL, &cost), 0);
    assert_int_equal(cost.copied_blocks + cost.relinked_blocks, 2);
    assert_true(cost.copied_bytes + cost.relinked_bytes < 51000);
    assert_true(list[1] == pass.large && list[3] == pass.small);
    assert_int_equal(ebb_step_end(pass.step), 0);
    end_both(&pass);
    assert_true(pattern_holds(((struct ebb_tensor *)list[0])->data, 60, 60));
    assert_true(pattern_holds(((struct ebb_tensor *)list[2])->data, 50000, 50000));
    assert_int_equal(ebb_object_end(list[0]), 0);
    assert_int_equal(ebb_object_end(list[2]), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Each has its own, in whatever order they end. */
static void steps_that_are_open_at_once_are_kept_apart(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    enum { OPEN_STEPS = 3 };
    for (unsigned round = 0; round < 6; round++) {
        struct pass passes[OPEN_STEPS];
        for (int i = 0; i < OPEN_STEPS; i++)
            passes[i] = pass_of(site, stage->root);
        for (unsigned i = 0; i < OPEN_STEPS; i++) {
            struct pass *pass = &passes[(i + round) % OPEN_STEPS];
            struct pass *other = &passes[(i + round + 1) % OPEN_STEPS];
            void *large = pass->large;
            assert_refused(ebb_region_release(other->step.region, large),
                           i + 1 < OPEN_STEPS ? EBB_E_FOREIGN : EBB_E_STALE);
            assert_free_of_cost(promote(pass->step.region, stage->root, &large));
            assert_int_equal(ebb_step_end(pass->step), 0);
            assert_true(pattern_holds(pass->large->data, LARGE, LARGE));
            assert_int_equal(ebb_object_end(large), 0);
        }
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
        if (site_stats(site).recorded_steps > LEARNING)
            break; /* the small ones were born there for nothing: it learns again */
    }
    assert_true(site_stats(site).tenured_wrong >= OPEN_STEPS);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- wrong ---- */

static void what_is_not_promoted_ends_with_the_step_and_is_counted(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    struct pass pass = pass_of(site, stage->root);
    struct ebb_object_counts counts;
    assert_true(lies_in(stage->root, pass.large));
    assert_int_equal(stats_of(stage->root).blocks.current, 2);
    assert_int_equal(ebb_region_read_objects(pass.step.region, EBB_OBJECT_TENSOR, &counts), 0);
    assert_int_equal(counts.live, 5 - 1);
    assert_int_equal(ebb_step_end(pass.step), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    assert_int_equal(site_stats(site).tenured_right, 0);
    assert_int_equal(site_stats(site).tenured_wrong, 2);
    assert_true(site_stats(site).tenured_wrong_bytes >= SMALL + LARGE);
    assert_refused(ebb_object_end(pass.large), EBB_E_RELEASED);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_tensor_may_end_in_its_step_wherever_it_was_born(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    struct pass pass = pass_of(site, stage->root);
    end_both(&pass);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    assert_refused(ebb_object_end(pass.small), EBB_E_RELEASED);
    assert_refused(ebb_object_end(pass.large), EBB_E_RELEASED);
    assert_int_equal(ebb_step_end(pass.step), 0);
    assert_int_equal(site_stats(site).tenured_wrong, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_step_that_is_reset_or_rewound_takes_its_own(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    for (int i = 0; i < 4; i++) {
        ebb_mark mark = {NULL, 0};
        ebb_step step = begin(site, stage->root);
        tensor_of_bytes(step.region, 3000);
        struct ebb_tensor *kept = tensor_of_bytes(step.region, SMALL);
        if (i % 2)
            mark = ebb_region_mark(step.region);
        struct ebb_tensor *lost = tensor_of_bytes(step.region, LARGE);
        if (i % 2)
            assert_int_equal(ebb_region_rewind(step.region, mark), 0);
        else
            assert_int_equal(ebb_region_reset(step.region, 0), 0);
        assert_false(ebb_region_owns(step.region, lost));
        assert_int_equal(ebb_region_owns(step.region, kept), i % 2);
        assert_true(!(i % 2) || pattern_holds(kept->data, SMALL, SMALL));
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void in_a_ring_it_stays_until_its_place_is_needed(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 1);
    struct pass pass = pass_of(site, stage->root), next;
    assert_int_equal(ebb_step_end(pass.step), 0);
    assert_int_equal(site_stats(site).tenured_wrong, 2);
    assert_whole(&pass);
    next = pass_of(site, stage->root);
    assert_whole(&pass);
    assert_int_equal(stats_of(stage->root).blocks.current, 4);
    void *late = pass.large; /* the step is over, its region is not */
    assert_free_of_cost(promote(pass.step.region, stage->root, &late));
    assert_int_equal(ebb_step_end(next.step), 0);
    assert_int_equal(ebb_step_end(begin(site, stage->root)), 0);
    assert_false(ebb_region_is_open(pass.step.region));
    assert_true(pattern_holds(pass.large->data, LARGE, LARGE));
    assert_int_equal(ebb_object_end(pass.large), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

/* ---- otherwise than learnt ---- */

static void it_may_go_further_up_or_elsewhere(void **state) {
    struct stage *stage = *state;
    ebb_region parent = OPEN(.parent = stage->root), other = OPEN(.pool = stage->pool);
    ebb_site *site = site_that_tenures(stage->pool, parent, 0);
    for (int i = 0; i < 4; i++) {
        struct pass pass = pass_of(site, parent);
        struct ebb_tensor *was = pass.large;
        bool further = lies_in(parent, was);
        assert_true(further || i);
        if (i % 2) {
            pass.large = ebb_object_move(pass.large, other);
            assert_non_null(pass.large);
            void *small = pass.small;
            promote(pass.step.region, stage->root, &small);
            pass.small = small;
        } else {
            keep_both(&pass, stage->root, NULL);
        }
        if (further)
            assert_refused(ebb_object_end(was), EBB_E_RELEASED);
        assert_true(pass.large != was || !further);
        assert_int_equal(stats_of(parent).blocks.current, 0);
        assert_int_equal(ebb_step_end(pass.step), 0);
        end_both(&pass);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(other), 0);
}

/* Its storage stays for a view: the tensor gets a copy, as it would from the step's own pages. */
static void a_view_that_stays_keeps_its_bytes(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    struct pass pass = pass_of(site, stage->root);
    struct ebb_tensor *view =
        ebb_tensor_view(pass.step.region, pass.large, 1, &(int64_t){10}, &(int64_t){1}, 20);
    assert_non_null(view);
    void *large = pass.large;
    struct ebb_promoted cost = promote(pass.step.region, stage->root, &large);
    assert_int_equal(cost.copied_blocks, 1);
    pass.large = large;
    assert_true(view->storage != pass.large->storage && view->storage->tensors == 1);
    memset(view->data, 0, 10);
    assert_whole(&pass);
    assert_int_equal(ebb_step_end(pass.step), 0);
    assert_true(pattern_holds(pass.large->data, LARGE, LARGE));
    assert_int_equal(ebb_object_end(large), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* So it had better not be born there. */
static void what_must_be_copied_is_not_born_in_the_parent(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (int i = 0; i < 6; i++) {
        struct pass pass = pass_of(site, stage->root);
        struct ebb_tensor *view =
            ebb_tensor_view(pass.step.region, pass.large, 1, &(int64_t){10}, &(int64_t){1}, 20);
        assert_non_null(view);
        assert_int_equal(lies_in(stage->root, pass.small), i >= LEARNING);
        assert_false(lies_in(stage->root, pass.large));
        keep_both(&pass, stage->root, NULL);
        assert_int_equal(ebb_step_end(pass.step), 0);
        end_both(&pass);
    }
    assert_int_equal(site_stats(site).tenured_right, 4);
    assert_int_equal(site_stats(site).tenured_wrong, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void views_that_go_along_see_the_same_bytes_at_no_cost(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (int i = 0; i < 5; i++) {
        struct pass pass = pass_of(site, stage->root);
        struct ebb_tensor *view =
            ebb_tensor_view(pass.step.region, pass.large, 1, &(int64_t){10}, &(int64_t){1}, 20);
        void *list[] = {view, pass.small, pass.large};
        struct ebb_promoted cost = {0};
        assert_int_equal(
            ebb_objects_promote(pass.step.region, stage->root, list, 3, NULL, &cost), 0);
        if (i >= LEARNING)
            assert_free_of_cost(cost);
        view = list[0];
        pass.small = list[1];
        pass.large = list[2];
        assert_ptr_equal(view->storage, pass.large->storage);
        assert_int_equal(ebb_step_end(pass.step), 0);
        end_both(&pass);
        assert_ptr_equal(view->data, (char *)view->storage->data + 20);
        assert_int_equal(ebb_object_end(view), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
    assert_int_equal(site_stats(site).tenured_right, 3 * 3);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- composites of both ---- */

struct pair {
    struct ebb_object object;
    struct ebb_object *first, *second;
};

static const struct ebb_field pair_fields[] = {
    EBB_FIELD(struct pair, EBB_FIELD_OBJECT, first),
    EBB_FIELD(struct pair, EBB_FIELD_OBJECT, second),
};

static struct ebb_type pair_type = {
    .name = "pair", .bytes = sizeof(struct pair), .fields = pair_fields, .field_count = 2};

static void composites_may_lie_in_both(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    for (int i = 0; i < 2; i++) {
        struct pass pass = pass_of(site, stage->root);
        struct pair *pair = ebb_object_new(pass.step.region, &pair_type, 0);
        assert_non_null(pair);
        pair->first = &pass.small->object;
        pair->second = &pass.large->object;
        assert_int_equal(ebb_object_compose(pair), 0);
        assert_true(!lies_in(stage->root, pair) && lies_in(stage->root, pass.small));
        void *object = pair;
        if (i) {
            struct ebb_promoted cost = promote(pass.step.region, stage->root, &object);
            assert_true(cost.copied_blocks == 1 && cost.relinked_blocks == 0);
            pair = object;
            assert_ptr_equal(pair->second, &pass.large->object);
        } else {
            assert_int_equal(ebb_object_end(pair), 0);
        }
        assert_int_equal(ebb_step_end(pass.step), 0);
        if (i) {
            assert_whole(&pass);
            assert_int_equal(ebb_object_end(pair), 0);
        }
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- budgets ---- */

static void hear(void *context, const struct ebb_churn_excess *excess) {
    *(uint64_t *)context = excess->spent.promoted_bytes;
}

/* Copied and relinked alike, also where one view goes and gets bytes of its own; not what goes
 * elsewhere. */
static void what_is_promoted_before_the_step_ends_counts_for_its_budget(void **state) {
    struct stage *stage = *state;
    uint64_t spent = 0;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(
        .pool = stage->pool, .tenure_none = true, .on_excess = hear, .context = &spent,
        .budget = {.promoted_bytes = 1}));
    struct ebb_own_options compact = {.size = sizeof compact, .compact = true};
    ebb_region elsewhere = OPEN(.pool = stage->pool);
    struct ebb_promoted cost = {0};
    struct pass pass = pass_of(site, stage->root);
    keep_both(&pass, stage->root, &cost);
    void *third = ebb_tensor_view(pass.step.region, tensor_of_bytes(pass.step.region, LARGE), 1,
                                  &(int64_t){77}, &(int64_t){1}, 20);
    assert_int_equal(ebb_objects_promote(pass.step.region, stage->root, &third, 1, &compact,
                                         &cost), 0);
    struct ebb_survivor block = survivor_of(block_of(pass.step.region, 700, 16), EBB_PROMOTE_COPY);
    assert_int_equal(ebb_promote(pass.step.region, stage->root, &block, 1, &cost), 0);
    assert_true(cost.copied_bytes >= SMALL + 77 + 700 && cost.relinked_bytes >= LARGE);
    void *other = ebb_object_move(tensor_of_bytes(pass.step.region, 50), elsewhere);
    assert_true(ebb_region_owns(elsewhere, other));
    assert_int_equal(ebb_step_end(pass.step), 0);
    assert_int_equal(spent, cost.copied_bytes + cost.relinked_bytes);
    end_both(&pass);
    assert_int_equal(ebb_object_end(third), 0);
    assert_int_equal(ebb_region_release(stage->root, block.block), 0);
    assert_int_equal(ebb_region_close(elsewhere), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- neither ---- */

static void sites_that_tenure_nothing_do_not(void **state) {
    struct stage *stage = *state;
    ebb_site *site =
        ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .tenure_none = true));
    for (int i = 0; i < 5; i++) {
        struct pass pass = pass_of(site, stage->root);
        assert_false(lies_in(stage->root, pass.large));
        keep_both(&pass, stage->root, NULL);
        assert_int_equal(ebb_step_end(pass.step), 0);
        end_both(&pass);
    }
    ebb_step step = ebb_step_begin(site, 1); /* and who has no parent cannot */
    assert_true(ebb_region_is_open(step.region));
    assert_true(lies_in(step.region, tensor_of_bytes(step.region, LARGE)));
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).tenured_right, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(promoting_what_was_born_in_the_parent_costs_nothing),
        STAGED(whole_sequences_are_born_in_the_parent),
        STAGED(only_what_was_born_in_the_step_is_paid_for),
        STAGED(steps_that_are_open_at_once_are_kept_apart),
        STAGED(what_is_not_promoted_ends_with_the_step_and_is_counted),
        STAGED(a_tensor_may_end_in_its_step_wherever_it_was_born),
        STAGED(a_step_that_is_reset_or_rewound_takes_its_own),
        STAGED(in_a_ring_it_stays_until_its_place_is_needed),
        STAGED(it_may_go_further_up_or_elsewhere),
        STAGED(a_view_that_stays_keeps_its_bytes),
        STAGED(what_must_be_copied_is_not_born_in_the_parent),
        STAGED(views_that_go_along_see_the_same_bytes_at_no_cost),
        STAGED(composites_may_lie_in_both),
        STAGED(what_is_promoted_before_the_step_ends_counts_for_its_budget),
        STAGED(sites_that_tenure_nothing_do_not),
    };
    if (ebb_type_register(&pair_type) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
