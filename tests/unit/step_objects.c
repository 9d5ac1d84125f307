// SPDX-License-Identifier: Apache-2.0
/*
 * step_objects.c - objects that a site has learnt to survive are born in the parent: promoting them
 * costs nothing, and until then they are the step's in all else, whatever becomes of them.
 */
#include "kit/dlpack.h"

enum { LEARNING = 2, SMALL = 100, LARGE = 9000 };

static const ebb_region none = {NULL, 0};

static struct ebb_site_stats site_stats(ebb_site *site) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    return stats;
}

static ebb_step begin(ebb_site *site, ebb_region parent) {
    ebb_step step = ebb_step_begin_under(site, parent, 1);
    assert_true(ebb_region_is_open(step.region));
    return step;
}

static bool lies_in(ebb_region region, const void *address) {
    ebb_region found = ebb_region_of(address);
    return found.lane == region.lane && found.generation == region.generation;
}

/* What promoting the object costs; where it is then. */
static struct ebb_promoted promote(ebb_region source, ebb_region target, void **object) {
    struct ebb_promoted cost = {0};
    assert_int_equal(ebb_objects_promote(source, target, object, 1, NULL, &cost), 0);
    assert_true(ebb_region_owns(target, *object));
    return cost;
}

static void assert_free_of_cost(struct ebb_promoted cost) {
    const struct ebb_promoted nothing = {0};
    assert_memory_equal(&cost, &nothing, sizeof cost);
}

/* A step is two tensors that survive, among others that do not. */
struct pass {
    ebb_step step;
    struct ebb_tensor *small, *large;
};

static struct pass pass_of(ebb_site *site, ebb_region parent) {
    struct pass pass = {.step = begin(site, parent)};
    tensor_of_bytes(pass.step.region, 3000);
    pass.small = tensor_of_bytes(pass.step.region, SMALL);
    struct ebb_tensor *other = tensor_of_bytes(pass.step.region, 50);
    pass.large = tensor_of_bytes(pass.step.region, LARGE);
    assert_int_equal(ebb_object_end(other), 0);
    tensor_of_bytes(pass.step.region, 2000);
    return pass;
}

static void keep_both(struct pass *pass, ebb_region target, struct ebb_promoted *cost) {
    void *both[] = {pass->small, pass->large};
    assert_int_equal(ebb_objects_promote(pass->step.region, target, both, 2, NULL, cost), 0);
    pass->small = both[0];
    pass->large = both[1];
}

static void assert_whole(const struct pass *pass) {
    assert_true(pattern_holds(pass->small->data, SMALL, SMALL));
    assert_true(pattern_holds(pass->large->data, LARGE, LARGE));
}

static void end_both(struct pass *pass) {
    assert_whole(pass);
    assert_int_equal(ebb_object_end(pass->small), 0);
    assert_int_equal(ebb_object_end(pass->large), 0);
}

/* The tensors of its next steps are born in `parent`. */
static ebb_site *site_that_tenures(ebb_pool *pool, ebb_region parent, unsigned ring) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool, .ring = ring));
    for (int i = 0; i < LEARNING; i++) {
        struct pass pass = pass_of(site, parent);
        keep_both(&pass, parent, NULL);
        assert_int_equal(ebb_step_end(pass.step), 0);
        end_both(&pass);
    }
    assert_int_equal(site_stats(site).tenured_right, 0);
    return site;
}

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

/* ---- wrong ---- */

static void what_is_not_promoted_ends_with_the_step_and_is_counted(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_tenures(stage->pool, stage->root, 0);
    struct pass pass = pass_of(site, stage->root);
    struct ebb_object_counts counts;
    assert_true(lies_in(stage->root, pass.large));
    assert_int_equal(stats_of(stage->root).blocks.current, 2);
    assert_int_equal(ebb_region_read_objects(pass.step.region, EBB_KIND_TENSOR, &counts), 0);
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
    assert_int_equal(ebb_site_destroy(site), 0);
}

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
    struct ebb_step step = ebb_step_begin(site, 1); /* and who has no parent cannot */
    assert_true(ebb_region_is_open(step.region) && !lies_in(none, step.region.lane));
    tensor_of_bytes(step.region, LARGE);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).tenured_right, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(promoting_what_was_born_in_the_parent_costs_nothing),
        STAGED(whole_sequences_are_born_in_the_parent),
        STAGED(what_is_not_promoted_ends_with_the_step_and_is_counted),
        STAGED(a_tensor_may_end_in_its_step_wherever_it_was_born),
        STAGED(a_step_that_is_reset_or_rewound_takes_its_own),
        STAGED(in_a_ring_it_stays_until_its_place_is_needed),
        STAGED(it_may_go_further_up_or_elsewhere),
        STAGED(a_view_that_stays_keeps_its_bytes),
        STAGED(what_must_be_copied_is_not_born_in_the_parent),
        STAGED(views_that_go_along_see_the_same_bytes_at_no_cost),
        STAGED(composites_may_lie_in_both),
        STAGED(exports_outlive_the_step_wherever_the_tensor_was_born),
        STAGED(exports_outlive_the_parent_too),
        STAGED(a_promoted_tensor_leaves_its_exports_behind),
        STAGED(the_parent_cannot_touch_what_was_born_in_it),
        STAGED(a_sibling_cannot_promote_it),
        STAGED(a_step_may_bear_for_the_steps_below_it),
        STAGED(a_failed_call_leaves_no_trace_in_the_parent),
        STAGED(sites_that_tenure_nothing_do_not),
    };
    if (ebb_type_register(&pair_type) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
