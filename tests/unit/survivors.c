// SPDX-License-Identifier: Apache-2.0
/*
 * survivors.c - lists that have survivors of every kind at once: what is listed twice or wrong is
 * found out wherever a block lies, and a list that fails leaves the list and both regions as they
 * were. The target is an ordinary region or a planned step, whose slots are taken for copies.
 */
#include "kit/test.h"

#include "failure/fault.h"
#include "region/track.h"

enum { HUGE_BYTES = 8 << 20, STEPS = 6 };

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

/* Where the blocks of a list lie. */
enum place {
    IN_ARENA, /* of the source, as the plan says */
    BORN_SMALL,
    BORN_LARGE,
    BESIDE_SMALL, /* in the source, beside its plan */
    BESIDE_LARGE,
    PLACES, /* the target's own are known to the parent only */
    OWN_SMALL = PLACES,
    OWN_LARGE,
    ALL_PLACES
};

static const size_t sizes[ALL_PLACES] = {3000, 100, 5000, 60, 9000, 200, 20000};

struct scene {
    struct stage *stage;
    ebb_site *outer, *inner;
    bool planned; /* the parent is a step, too */
    ebb_step above, step;
    ebb_region parent;
    void *blocks[ALL_PLACES];
};

static void *make(struct scene *scene, ebb_region region, enum place place) {
    void *block = block_of(region, sizes[place], 16);
    pattern_fill(block, sizes[place], place);
    scene->blocks[place] = block;
    return block;
}

/* What each step has, so that it is planned. */
static void begin_inner(struct scene *scene) {
    scene->step = ebb_step_begin_under(scene->inner, scene->parent, 1);
    assert_true(ebb_region_is_open(scene->step.region));
    for (enum place place = IN_ARENA; place <= BORN_LARGE; place++)
        make(scene, scene->step.region, place);
}

static void end_inner(struct scene *scene) {
    struct ebb_survivor list[] = {survivor_of(scene->blocks[BORN_SMALL], EBB_PROMOTE_COPY),
                                  survivor_of(scene->blocks[BORN_LARGE], EBB_PROMOTE_COPY)};
    assert_int_equal(ebb_step_end_keeping(scene->step, scene->parent, list, 2, NULL, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ebb_region_release(scene->parent, list[i].block), 0);
}

static void begin_outer(struct scene *scene) {
    struct stage *stage = scene->stage;
    if (scene->planned) {
        scene->above = ebb_step_begin_under(scene->outer, stage->root, 1);
        scene->parent = scene->above.region;
    } else {
        scene->parent = OPEN(.name = "parent", .parent = stage->root);
    }
    assert_true(ebb_region_is_open(scene->parent));
    make(scene, scene->parent, OWN_SMALL);
    make(scene, scene->parent, OWN_LARGE);
    for (int i = 0; i < 4; i++) {
        begin_inner(scene);
        end_inner(scene);
    }
}

static void end_outer(struct scene *scene) {
    assert_int_equal(scene->planned ? ebb_step_end(scene->above) : ebb_region_close(scene->parent),
                     0);
}

static bool is_in_arena(const struct scene *scene, enum place place) {
    return range_block_at((uintptr_t)scene->blocks[place])->state == PIECE_ARENA;
}

/* A step with a block of each kind, below a parent that is, or is not, planned. */
static void set(struct scene *scene, struct stage *stage, bool planned) {
    *scene = (struct scene){.stage = stage, .planned = planned};
    scene->outer = SITE(.name = "outer", .pool = stage->pool);
    scene->inner = SITE(.name = "inner", .pool = stage->pool);
    for (int i = 0; i < STEPS; i++) {
        begin_outer(scene);
        end_outer(scene);
    }
    begin_outer(scene);
    begin_inner(scene);
    make(scene, scene->step.region, BESIDE_SMALL);
    make(scene, scene->step.region, BESIDE_LARGE);
    assert_true(is_in_arena(scene, IN_ARENA) && is_in_arena(scene, OWN_LARGE) == planned);
    assert_ptr_equal(ebb_region_of(scene->blocks[BORN_SMALL]).lane, scene->parent.lane);
    assert_ptr_equal(ebb_region_of(scene->blocks[BORN_LARGE]).lane, scene->parent.lane);
}

static void strike(struct scene *scene) {
    assert_int_equal(ebb_step_end(scene->step), 0);
    end_outer(scene);
    assert_int_equal(ebb_site_destroy(scene->inner), 0);
    assert_int_equal(ebb_site_destroy(scene->outer), 0);
}

static void list_all(const struct scene *scene, struct ebb_survivor *list, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        list[i] = survivor_of(scene->blocks[i], i == BESIDE_LARGE ? EBB_PROMOTE_RELINK
                                                                  : EBB_PROMOTE_AUTO);
}

static void assert_same_flow(const struct ebb_meter *now, const struct ebb_meter *then) {
    assert_int_equal(now->current, then->current);
    assert_int_equal(now->peak, then->peak);
    assert_int_equal(now->total, then->total);
}

struct before {
    struct ebb_region_stats source, target;
    struct ebb_survivor list[ALL_PLACES + 1];
    unsigned count;
};

static void look(const struct scene *scene, ebb_region target, const struct ebb_survivor *list,
                 unsigned count, struct before *before) {
    before->source = stats_of(scene->step.region);
    before->target = stats_of(target);
    before->count = count;
    memcpy(before->list, list, count * sizeof *list);
}

static void assert_same(const struct ebb_region_stats *now, const struct ebb_region_stats *then) {
    assert_same_flow(&now->blocks, &then->blocks);
    assert_same_flow(&now->requested, &then->requested);
    assert_int_equal(now->used.current, then->used.current);
}

/* Nothing has happened, and the list says what it said. */
static void assert_unmoved(const struct scene *scene, ebb_region target,
                           const struct ebb_survivor *list, const struct before *before) {
    struct ebb_region_stats source = stats_of(scene->step.region), above = stats_of(target);
    assert_same(&source, &before->source);
    assert_same(&above, &before->target);
    for (unsigned i = 0; i < before->count; i++) {
        assert_ptr_equal(list[i].block, before->list[i].block);
        assert_int_equal(list[i].mode, before->list[i].mode);
        assert_int_equal(list[i].align, before->list[i].align);
    }
    for (unsigned i = 0; i < ALL_PLACES; i++)
        assert_true(pattern_holds(scene->blocks[i], sizes[i], i));
    ebb_check_pool(scene->stage->pool);
}

static void refuse(const struct scene *scene, ebb_region target, struct ebb_survivor *list,
                   unsigned count, int code) {
    struct before before;
    look(scene, target, list, count, &before);
    assert_refused(ebb_promote(scene->step.region, target, list, count, NULL), code);
    assert_unmoved(scene, target, list, &before);
}

/* The list is right: what it says afterwards, and whose the blocks are. */
static void promote_all(const struct scene *scene, ebb_region target, struct ebb_survivor *list,
                        unsigned count) {
    bool parent = target.lane == scene->parent.lane;
    assert_int_equal(ebb_promote(scene->step.region, target, list, count, NULL), 0);
    for (unsigned i = 0; i < count; i++) {
        bool stays = i >= PLACES || (parent && (i == BORN_SMALL || i == BORN_LARGE));
        bool relinked = i == BESIDE_LARGE;
        assert_int_equal(list[i].mode, relinked ? EBB_PROMOTE_RELINK : EBB_PROMOTE_COPY);
        assert_int_equal(list[i].block == scene->blocks[i], stays || relinked);
        assert_true(pattern_holds(list[i].block, sizes[i], i));
        assert_int_equal(ebb_region_block_bytes(target, list[i].block), sizes[i]);
        assert_int_equal(ebb_region_release(target, list[i].block), 0);
    }
    ebb_check_pool(scene->stage->pool);
}

/* Lists for the parent have its own blocks, too; for the root they cannot. */
struct target {
    ebb_region region;
    unsigned count;
};

static struct target target_of(const struct scene *scene, bool further) {
    return further ? (struct target){scene->stage->root, PLACES}
                   : (struct target){scene->parent, ALL_PLACES};
}

typedef void act(struct scene *scene, struct target target);

/* In each kind of parent, with each target. */
static void everywhere(void **state, act *does) {
    for (unsigned i = 0; i < 4; i++) {
        struct scene scene;
        set(&scene, *state, i % 2);
        does(&scene, target_of(&scene, i / 2));
        strike(&scene);
    }
}

static void list_twice(struct scene *scene, struct target target) {
    struct ebb_survivor list[ALL_PLACES + 1];
    for (unsigned i = 0; i < target.count * 9; i++) {
        list_all(scene, list, target.count);
        list[target.count] = list[i / 9];
        list[i / 9].mode = (int)(i % 3);
        list[target.count].mode = (int)(i / 3 % 3);
        refuse(scene, target.region, list, target.count + 1, EBB_E_DUPLICATE);
    }
    list_all(scene, list, target.count);
    promote_all(scene, target.region, list, target.count);
}

static void a_block_is_listed_once_wherever_it_lies(void **state) {
    everywhere(state, list_twice);
}

/* What is wrong with an address inside a block. */
static int code_inside(enum place place) {
    return place == IN_ARENA || place == BESIDE_SMALL || place == BESIDE_LARGE ? EBB_E_INTERIOR
                                                                           : EBB_E_FOREIGN;
}

static void list_wrong(struct scene *scene, struct target target) {
    struct ebb_survivor list[ALL_PLACES + 1];
    for (unsigned i = 0; i < target.count; i++) {
        char *block = scene->blocks[i];
        list_all(scene, list, target.count);
        list[target.count] = (struct ebb_survivor){.block = block + 1};
        refuse(scene, target.region, list, target.count + 1, code_inside(i));
        list[target.count] = (struct ebb_survivor){.block = block, .mode = 3};
        refuse(scene, target.region, list, target.count + 1, EBB_E_ARGUMENT);
        list[target.count] = (struct ebb_survivor){.block = block, .mode = -1};
        refuse(scene, target.region, list, target.count + 1, EBB_E_ARGUMENT);
        list[target.count] = (struct ebb_survivor){.block = block, .align = 24};
        refuse(scene, target.region, list, target.count + 1, EBB_E_ALIGNMENT);
        list[target.count] = (struct ebb_survivor){.block = NULL};
        refuse(scene, target.region, list, target.count + 1, EBB_E_ARGUMENT);
    }
    promote_all(scene, target.region, list, target.count);
}

static void one_that_is_wrong_leaves_the_others_alone(void **state) {
    everywhere(state, list_wrong);
}

static void list_too_much(struct scene *scene, struct target target) {
    struct ebb_survivor list[ALL_PLACES + 1] = {0};
    ebb_pool *pool = scene->stage->pool;
    void *huge = block_of(scene->step.region, HUGE_BYTES, 16);
    for (unsigned at = 0; at <= target.count; at++) {
        list_all(scene, list, target.count);
        list[target.count] = list[at];
        list[at] = survivor_of(huge, EBB_PROMOTE_COPY);
        ebb_pool_trim(pool, 0);
        size_t reserved = pool_stats_of(pool).reserved.current;
        assert_int_equal(ebb_pool_set_reserved_limit(pool, reserved + HUGE_BYTES / 8), 0);
        refuse(scene, target.region, list, target.count + 1, EBB_E_POOL_LIMIT);
        assert_int_equal(ebb_pool_set_reserved_limit(pool, 0), 0);
    }
    list_all(scene, list, target.count);
    promote_all(scene, target.region, list, target.count);
}

static void a_copy_that_cannot_be_had_leaves_all_as_it_was(void **state) {
    everywhere(state, list_too_much);
}

/* Into the source itself: what was born above stays the step's. */
static void list_for_itself(struct scene *scene, struct target target) {
    struct ebb_survivor list[ALL_PLACES];
    struct before before;
    list_all(scene, list, PLACES);
    look(scene, target.region, list, PLACES, &before);
    assert_int_equal(ebb_promote(scene->step.region, scene->step.region, list, PLACES, NULL), 0);
    for (unsigned i = 0; i < PLACES; i++) {
        assert_int_equal(list[i].mode, EBB_PROMOTE_COPY);
        before.list[i].mode = EBB_PROMOTE_COPY;
        assert_int_equal(ebb_region_block_bytes(scene->step.region, list[i].block), sizes[i]);
    }
    assert_unmoved(scene, target.region, list, &before);
    list_all(scene, list, target.count);
    promote_all(scene, target.region, list, target.count);
}

static void what_stays_in_the_step_is_not_moved(void **state) {
    everywhere(state, list_for_itself);
}

/* From below the step into it: what was born above for the step is its own, too. */
static void list_from_below(struct scene *scene, struct target target) {
    struct ebb_survivor list[ALL_PLACES];
    struct before before;
    ebb_region below = OPEN(.name = "below", .parent = scene->step.region);
    list_all(scene, list, PLACES);
    look(scene, target.region, list, PLACES, &before);
    assert_int_equal(ebb_promote(below, scene->step.region, list, PLACES, NULL), 0);
    for (unsigned i = 0; i < PLACES; i++) {
        assert_int_equal(list[i].mode, EBB_PROMOTE_COPY);
        before.list[i].mode = EBB_PROMOTE_COPY;
    }
    assert_unmoved(scene, target.region, list, &before);
    list[PLACES] = list[BORN_LARGE];
    assert_refused(ebb_promote(below, scene->step.region, list, PLACES + 1, NULL),
                   EBB_E_DUPLICATE);
    assert_int_equal(ebb_region_close(below), 0);
    list_all(scene, list, target.count);
    promote_all(scene, target.region, list, target.count);
}

static void what_was_born_above_for_the_target_is_there_already(void **state) {
    everywhere(state, list_from_below);
}

static unsigned refused; /* promotions */

/* Promotes with one acquisition after the other failing; with `forever` all after it, too. */
static void promote_short(struct scene *scene, struct target target, bool forever) {
    struct ebb_survivor list[ALL_PLACES + 1];
    void *huge = block_of(scene->step.region, HUGE_BYTES, 16);
    unsigned count = target.count + 1;
    int result = -1;
    for (unsigned nth = 1; result; nth++) {
        struct before before;
        list_all(scene, list, target.count);
        list[target.count] = survivor_of(huge, EBB_PROMOTE_COPY);
        ebb_pool_trim(scene->stage->pool, 0);
        look(scene, target.region, list, count, &before);
        fault_arm(nth, forever);
        result = ebb_promote(scene->step.region, target.region, list, count, NULL);
        assert_true(fault_disarm() || !result);
        refused += result != 0;
        if (result)
            assert_unmoved(scene, target.region, list, &before);
    }
    for (unsigned i = 0; i < target.count; i++)
        assert_true(pattern_holds(list[i].block, sizes[i], i));
}

static void promote_without_memory(struct scene *scene, struct target target) {
    promote_short(scene, target, true);
}

static void promote_with_a_fault(struct scene *scene, struct target target) {
    promote_short(scene, target, false);
}

static void without_memory_all_is_as_it_was(void **state) {
    refused = 0;
    everywhere(state, promote_without_memory);
    everywhere(state, promote_with_a_fault);
    assert_true(refused > 0);
}

/* ---- without room for notes ---- */

/* What is born above is noted, or it is not born; `full`: there is no room for a note. */
static void take_step(struct stage *stage, ebb_site *site, size_t bytes, bool born, bool full) {
    ebb_step step = ebb_step_begin_under(site, stage->root, 1);
    assert_true(ebb_region_is_open(step.region));
    block_of(step.region, 3000, 16);
    struct track *track = ((struct region *)step.region.lane)->track;
    uint32_t limit = track->record_limit;
    if (full)
        track->record_limit = track->record_count = PLAN_SLOTS_MOST;
    struct ebb_survivor survivor = survivor_of(block_of(step.region, bytes, 16), EBB_PROMOTE_COPY);
    assert_int_equal(stats_of(stage->root).blocks.current, born);
    assert_int_equal(stats_of(step.region).blocks.current, 2 - born);
    if (full) {
        track->record_limit = limit;
        track->record_count = 0;
    }
    assert_int_equal(ebb_promote(step.region, stage->root, &survivor, 1, NULL), 0);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

static void what_cannot_be_noted_is_not_born_above(void **state) {
    static const size_t bytes[] = {100, 5000};
    struct stage *stage = *state;
    for (int i = 0; i < 2; i++) {
        ebb_site *site = SITE(.pool = stage->pool);
        for (int k = 0; k < 5; k++)
            take_step(stage, site, bytes[i], k == 2 || k == 4, k == 3);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* A block that was to be born in the parent, where there was room, could not be noted. */
static void what_could_not_be_born_was_never_in_the_parent(void **state) {
    struct stage *stage = *state;
    static const size_t births[] = {100, 300000};
    for (unsigned i = 0; i < 2; i++) {
        ebb_region root = OPEN(.pool = stage->pool, .hint_bytes = 1 << 20);
        ebb_site *site = SITE(.pool = stage->pool);
        for (unsigned round = 0; round < 3; round++) {
            ebb_step step = ebb_step_begin_under(site, root, 0);
            struct ebb_region_stats before = stats_of(root);
            if (round == 2)
                fault_arm(1, true);
            struct ebb_survivor born = {.block = ebb_region_alloc(step.region, births[i], 16)};
            fault_disarm();
            assert_true(born.block || round == 2);
            struct ebb_region_stats after = stats_of(root);
            if (round == 2)
                assert_memory_equal(&after.blocks, &before.blocks, 3 * sizeof before.blocks);
            else
                assert_int_equal(ebb_promote(step.region, root, &born, 1, NULL), 0);
            assert_int_equal(ebb_step_end(step), 0);
            assert_true(round == 2 || ebb_region_release(root, born.block) == 0);
        }
        assert_true(site_stats(site).planned_steps > 0);
        assert_int_equal(ebb_site_destroy(site), 0);
        assert_int_equal(ebb_region_close(root), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_block_is_listed_once_wherever_it_lies),
        STAGED(one_that_is_wrong_leaves_the_others_alone),
        STAGED(a_copy_that_cannot_be_had_leaves_all_as_it_was),
        STAGED(what_stays_in_the_step_is_not_moved),
        STAGED(what_was_born_above_for_the_target_is_there_already),
        STAGED(without_memory_all_is_as_it_was),
        STAGED(what_cannot_be_noted_is_not_born_above),
        STAGED(what_could_not_be_born_was_never_in_the_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
