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

/* ---- promotion ---- */

/* How a block is promoted whose tensor is exported. */
enum {
    LEARNT = 1,  /* steps before have exported nothing: it is born in the parent */
    PLANNED = 2, /* which is a step itself */
    ENDED = 4,   /* the tensor had ended: the export has the block alone */
    EARLY = 8,   /* the export comes back while the step is open, else when it has ended */
    BESIDE = 16, /* what else was born in the parent is not promoted */
    KEEPING = 32, /* at the end of the step */
    RELINKED = 64, /* if that were possible */
    WAYS = 128
};

enum { UNTIL_LEARNT = 8, EXPORTING = 2, MANY = 48 };

struct scene {
    struct stage *stage;
    ebb_site *outer, *inner;
    unsigned way;
    ebb_step above, step;
    ebb_region parent;
    void *left, *right; /* in the parent, around what is born there */
    void *block;        /* of a tensor */
    size_t offset;      /* of its elements */
    DLManagedTensor *managed;
    struct ebb_survivor list[2];
    unsigned count;
};

/* A tensor; or, as it is not exported, a block like its own. */
static void make_block(struct scene *scene, bool exports) {
    scene->offset = 0;
    if (!exports) {
        scene->block = block_of(scene->step.region, 50000, 256);
        return;
    }
    struct ebb_tensor *tensor = tensor_of_bytes(scene->step.region, 50000);
    scene->block = tensor->storage->block;
    scene->offset = (size_t)((char *)tensor->data - (char *)scene->block);
}

static void begin_scene(struct scene *scene, bool exports) {
    ebb_region root = scene->stage->root;
    scene->above = scene->way & PLANNED ? begin(scene->outer, root) : (ebb_step){root, NULL};
    scene->parent = scene->above.region;
    scene->left = block_of(scene->parent, 3000, 64);
    scene->step = begin(scene->inner, scene->parent);
    make_block(scene, exports);
    scene->list[1] = survivor_of(block_of(scene->step.region, 4000, 64), EBB_PROMOTE_COPY);
    scene->right = block_of(scene->parent, 7000, 64);
}

/* The step promotes the block, and ends. */
static void promote_in(struct scene *scene, bool exports) {
    unsigned way = exports ? scene->way : scene->way & ~(unsigned)(ENDED | EARLY | BESIDE);
    scene->managed = exports ? share(scene->block) : NULL; /* where its tensor lies */
    if (way & ENDED)
        assert_int_equal(ebb_object_end(scene->block), 0);
    scene->list[0] =
        survivor_of(scene->block, way & RELINKED ? EBB_PROMOTE_RELINK : EBB_PROMOTE_COPY);
    scene->count = way & BESIDE ? 1 : 2;
    if (!(way & KEEPING))
        assert_int_equal(ebb_promote(scene->step.region, scene->parent, scene->list, scene->count,
                                     NULL), 0);
    ebb_check_pool(scene->stage->pool);
    if (way & EARLY && !(way & KEEPING)) {
        give_back(scene->managed);
        scene->managed = NULL;
        assert_int_equal(ebb_region_count_exports(scene->step.region), 0);
    }
    assert_int_equal(way & KEEPING ? ebb_step_end_keeping(scene->step, scene->parent, scene->list,
                                                          scene->count, NULL, NULL)
                                   : ebb_step_end(scene->step), 0);
}

static bool all_hold(const struct scene *scene) {
    return pattern_holds(scene->left, 3000, 3000) && pattern_holds(scene->right, 7000, 7000) &&
           pattern_holds((char *)scene->list[0].block + scene->offset, 50000, 50000) &&
           (scene->count < 2 || pattern_holds(scene->list[1].block, 4000, 4000)) &&
           (!scene->managed || export_holds(scene->managed));
}

static void end_scene(struct scene *scene, bool exports) {
    if (exports)
        overwrite_cached(scene->stage);
    assert_true(all_hold(scene));
    if (scene->managed)
        give_back(scene->managed);
    scene->managed = NULL;
    assert_int_equal(ebb_region_count_exports(scene->parent), 0);
    if (exports)
        overwrite_cached(scene->stage);
    assert_true(all_hold(scene));
    for (unsigned i = 0; i < scene->count; i++)
        assert_int_equal(ebb_region_release(scene->parent, scene->list[i].block), 0);
    assert_int_equal(ebb_region_release(scene->parent, scene->left), 0);
    assert_int_equal(ebb_region_release(scene->parent, scene->right), 0);
    assert_int_equal(stats_of(scene->parent).blocks.current, 0);
    if (scene->way & PLANNED)
        assert_int_equal(ebb_step_end(scene->above), 0);
}

static bool is_born_above(const struct scene *scene) {
    return ebb_region_of(scene->block).lane == scene->parent.lane;
}

static void promote_exported(struct scene *scene) {
    unsigned learns = scene->way & LEARNT ? UNTIL_LEARNT : 0;
    for (unsigned i = 0; i < learns + EXPORTING; i++) {
        bool exports = i >= learns;
        begin_scene(scene, exports);
        assert_true(scene->way & LEARNT ? i != learns || is_born_above(scene)
                                        : !is_born_above(scene)); /* it would be in vain */
        promote_in(scene, exports);
        assert_true(!exports || (scene->list[0].block != scene->block &&
                                 scene->list[0].mode == EBB_PROMOTE_COPY));
        end_scene(scene, exports);
    }
}

/* Its bytes stay the step's as long as others need them, though they lie in the parent, and the
 * parent gets others. */
static void exported_blocks_are_copied_wherever_they_were_born(void **state) {
    struct stage *stage = *state;
    for (unsigned way = 0; way < WAYS; way++) {
        struct scene scene = {.stage = stage, .way = way};
        scene.outer = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        scene.inner = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        promote_exported(&scene);
        assert_int_equal(ebb_site_destroy(scene.inner) + ebb_site_destroy(scene.outer), 0);
    }
}

/* A site whose steps' first tensor is born in the parent. */
static ebb_site *site_that_bears(const struct stage *stage) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < UNTIL_LEARNT; i++) {
        ebb_step step = begin(site, stage->root);
        struct ebb_survivor kept = survivor_of(block_of(step.region, 50000, 256), EBB_PROMOTE_COPY);
        assert_int_equal(ebb_step_end_keeping(step, stage->root, &kept, 1, NULL, NULL), 0);
        assert_int_equal(ebb_region_release(stage->root, kept.block), 0);
    }
    return site;
}

/* Nobody looks at the parent: what was born there, and came back when its step had ended, goes as
 * more comes. */
static void what_comes_back_after_its_step_does_not_pile_up(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_bears(stage);
    for (unsigned i = 0; i < MANY; i++) {
        ebb_step step = begin(site, stage->root);
        DLManagedTensor *managed = share(tensor_of_bytes(step.region, 49000));
        assert_int_equal(ebb_step_end(step), 0);
        assert_true(export_holds(managed));
        give_back(managed);
        assert_true(pool_stats_of(stage->pool).owned <= 300000);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* It has pages of a region that ended around it, and nobody but the export needs it. */
static DLManagedTensor *share_relinked(const struct stage *stage) {
    ebb_region before = OPEN(.parent = stage->root);
    struct ebb_own_options options = {.size = sizeof options, .mode = EBB_PROMOTE_RELINK};
    void *tensor = tensor_of_bytes(before, 5000);
    assert_int_equal(ebb_objects_close_keeping(before, stage->root, &tensor, 1, &options, NULL,
                                               NULL), 0);
    assert_true(stats_of(stage->root).pinned);
    DLManagedTensor *managed = share(tensor);
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(ebb_region_count_exports(stage->root), 1);
    return managed;
}

/* It came back unnoticed, and goes as the step's exports come to the parent. */
static void an_older_export_that_goes_takes_nothing_off_the_cost(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_that_bears(stage);
    give_back(share_relinked(stage));
    ebb_step step = begin(site, stage->root);
    struct ebb_tensor *born = tensor_of_bytes(step.region, 49000);
    DLManagedTensor *one = share(born), *two = share(born);
    struct ebb_survivor kept = survivor_of(block_of(step.region, 5000, 64), EBB_PROMOTE_RELINK);
    struct ebb_promoted cost = {0};
    assert_int_equal(ebb_step_end_keeping(step, stage->root, &kept, 1, &cost, NULL), 0);
    assert_int_equal(kept.mode, EBB_PROMOTE_RELINK);
    assert_true(cost.pinned_bytes);
    assert_int_equal(stats_of(stage->root).pinned, cost.pinned_bytes); /* the older one's went */
    give_back(one);
    give_back(two);
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
        STAGED(exported_blocks_are_copied_wherever_they_were_born),
        STAGED(what_comes_back_after_its_step_does_not_pile_up),
        STAGED(an_older_export_that_goes_takes_nothing_off_the_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
