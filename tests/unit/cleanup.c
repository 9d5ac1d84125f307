// SPDX-License-Identifier: Apache-2.0
/*
 * cleanup.c - callbacks run once each, newest first, whatever ends their region; also those that
 * are added meanwhile, and none that another removed or ran. Those that fail keep nothing from
 * its end: the call says how many they were, and the region is as if they had not.
 */
#include "kit/test.h"

#include <stdio.h>

enum { NODES = 5, ADDED = NODES, OLDER, ALL, BYTES = 5000, SLOTS = 2 };

/* What the fourth node does with the two that would come after it. */
enum meddling { NOTHING, RUNS_NEXT, REMOVES_NEXT, MEDDLINGS };

struct scene;

struct node {
    struct ebb_cleanup cleanup;
    struct scene *scene;
    int returns;
};

/* A region with a block and a child; its cleanups, and the order in which they ran. */
struct scene {
    struct stage *stage;
    ebb_pool *shared;
    ebb_site *site;
    ebb_step step;
    ebb_region region, child;
    ebb_mark mark;
    struct ebb_survivor kept;
    struct ebb_parcel parcel;
    enum meddling meddling;
    struct node nodes[ALL];
    char ran[2 * ALL + 1];
    size_t count;
};

/* Takes one of two out and runs the other, and adds a new one. */
static void meddle(struct scene *scene) {
    struct node *next = &scene->nodes[2], *last = &scene->nodes[1];
    struct node *other = scene->meddling == RUNS_NEXT ? next : last;
    struct node *removed = scene->meddling == RUNS_NEXT ? last : next;
    assert_int_equal(ebb_cleanup_run(&other->cleanup), other->returns);
    assert_int_equal(ebb_cleanup_run(&other->cleanup), 0); /* once */
    assert_int_equal(ebb_cleanup_remove(&removed->cleanup), 0);
    memset(&removed->cleanup, 0xff, sizeof removed->cleanup); /* it is the caller's again */
    assert_int_equal(ebb_cleanup_add(scene->region, &scene->nodes[ADDED].cleanup), 0);
}

static int note(void *data) {
    struct node *node = data;
    struct scene *scene = node->scene;
    size_t index = (size_t)(node - scene->nodes);
    assert_true(scene->count < 2 * ALL);
    scene->ran[scene->count++] = (char)('0' + index);
    assert_non_null(ebb_region_alloc(scene->region, 100, 16));
    assert_int_equal(ebb_cleanup_run(&node->cleanup), 0); /* it has left the list */
    if (index == 3 && scene->meddling)
        meddle(scene);
    return node->returns;
}

/* ---- what ends a region ---- */

static void open_below(struct scene *scene) {
    scene->region = OPEN(.parent = scene->stage->root);
}

static void open_step(struct scene *scene) {
    scene->site = ebb_site_create(EBB_SITE_OPTIONS(.pool = scene->stage->pool));
    scene->step = ebb_step_begin_under(scene->site, scene->stage->root, 1);
    scene->region = scene->step.region;
}

static void open_slot(struct scene *scene) {
    scene->region = OPEN(.pool = scene->shared);
}

static int close_it(struct scene *scene) {
    return ebb_region_close(scene->region);
}

static int reset_it(struct scene *scene) {
    return ebb_region_reset(scene->region, 0);
}

static int rewind_it(struct scene *scene) {
    return ebb_region_rewind(scene->region, scene->mark);
}

static int close_and_keep(struct scene *scene) {
    return ebb_close_keeping(scene->region, scene->stage->root, &scene->kept, 1, NULL, NULL);
}

static int end_and_keep(struct scene *scene) {
    return ebb_step_end_keeping(scene->step, scene->stage->root, &scene->kept, 1, NULL, NULL);
}

static int close_objects(struct scene *scene) {
    return ebb_objects_close_keeping(scene->region, scene->stage->root, NULL, 0, NULL, NULL, NULL);
}

static int send_it(struct scene *scene) {
    return ebb_region_send(scene->region, scene->kept.block, &scene->parcel);
}

/* ---- how it is left ---- */

static void is_closed(struct scene *scene) {
    assert_false(ebb_region_is_open(scene->region) || ebb_region_is_open(scene->child));
    assert_int_equal(stats_of(scene->stage->root).blocks.current, 0);
}

static void is_empty(struct scene *scene) {
    assert_true(ebb_region_is_open(scene->region));
    assert_false(ebb_region_is_open(scene->child));
    assert_int_equal(stats_of(scene->region).blocks.current, 0);
    assert_int_equal(stats_of(scene->region).used.current, 0);
    assert_int_equal(stats_of(scene->region).reserved.current, 0);
    assert_refused(ebb_region_rewind(scene->region, scene->mark), EBB_E_MARK);
}

/* The block from before the mark, and the child: blocks of the cleanups came after it. */
static void is_as_marked(struct scene *scene) {
    assert_true(ebb_region_is_open(scene->region) && ebb_region_is_open(scene->child));
    assert_true(pattern_holds(scene->kept.block, BYTES, BYTES));
    assert_int_equal(stats_of(scene->region).blocks.current, 1);
    assert_refused(ebb_region_rewind(scene->region, scene->mark), EBB_E_MARK);
}

static void is_kept(struct scene *scene) {
    assert_false(ebb_region_is_open(scene->region) || ebb_region_is_open(scene->child));
    assert_int_equal(stats_of(scene->stage->root).blocks.current, 1);
    assert_true(pattern_holds(scene->kept.block, BYTES, BYTES));
    assert_int_equal(ebb_region_release(scene->stage->root, scene->kept.block), 0);
}

static void has_left(struct scene *scene) {
    assert_false(ebb_region_is_open(scene->region) || ebb_region_is_open(scene->child));
    ebb_lease *lease = ebb_parcel_open(scene->shared, &scene->parcel);
    assert_non_null(lease);
    assert_true(pattern_holds(ebb_lease_at(lease, scene->parcel.root, BYTES), BYTES, BYTES));
    ebb_lease_drop(lease);
}

struct end {
    const char *name;
    void (*open)(struct scene *scene);
    int (*call)(struct scene *scene);
    void (*check)(struct scene *scene);
};

static const struct end ends[] = {
    {"close", open_below, close_it, is_closed},
    {"reset", open_below, reset_it, is_empty},
    {"rewind", open_below, rewind_it, is_as_marked},
    {"close, keeping a block", open_below, close_and_keep, is_kept},
    {"close, keeping no object", open_below, close_objects, is_closed},
    {"end of a step, keeping a block", open_step, end_and_keep, is_kept},
    {"close in a slot", open_slot, close_it, is_closed},
    {"reset in a slot", open_slot, reset_it, is_empty},
    {"send", open_slot, send_it, has_left},
};

/* ---- scenes ---- */

/* Node by node as `failing` has bits; they return 10, 11, ... */
static void prepare(struct scene *scene, const struct end *end, unsigned failing) {
    end->open(scene);
    scene->kept = survivor_of(block_of(scene->region, BYTES, 64), EBB_PROMOTE_AUTO);
    scene->child = OPEN(.parent = scene->region);
    for (int i = 0; i < ALL; i++)
        scene->nodes[i] = (struct node){.cleanup = {.run = note, .data = &scene->nodes[i]},
                                        .scene = scene,
                                        .returns = failing >> i & 1 ? 10 + i : 0};
    assert_int_equal(ebb_cleanup_add(scene->region, &scene->nodes[OLDER].cleanup), 0);
    scene->mark = ebb_region_mark(scene->region);
    block_of(scene->region, 2 * BYTES, 64);
    for (int i = 0; i < NODES; i++)
        assert_int_equal(ebb_cleanup_add(scene->region, &scene->nodes[i].cleanup), 0);
}

static const char *const orders[MEDDLINGS] = {"432106", "432506", "431506"};

/* What a node returns that another runs is that one's to tell. */
static void demand_result(const struct scene *scene, const struct end *end, int result) {
    size_t failed = 0, ran = strlen(orders[scene->meddling]) - (end->call == rewind_it);
    int first = 0;
    char text[80];
    for (size_t i = 0; i < ran; i++) {
        int returns = scene->nodes[orders[scene->meddling][i] - '0'].returns;
        if (!returns || (scene->meddling && i == 2))
            continue;
        first = failed++ ? first : returns;
    }
    if (!failed && !result)
        return;
    assert_refused(result, EBB_E_CLEANUP);
    snprintf(text, sizeof text, "%zu cleanups failed, the first returned %d", failed, first);
    assert_text_names(text);
}

static void demand_order(const struct scene *scene, const struct end *end, size_t count) {
    const char *order = orders[scene->meddling];
    if (scene->count != count || memcmp(scene->ran, order, count) != 0)
        fail_msg("%s: cleanups ran in the order %s, expected %.*s", end->name, scene->ran,
                 (int)count, order);
}

static void play(struct scene *scene, const struct end *end, unsigned failing) {
    size_t all = strlen(orders[scene->meddling]);
    prepare(scene, end, failing);
    int result = end->call(scene);
    demand_order(scene, end, all - (end->call == rewind_it)); /* one is older than the mark */
    demand_result(scene, end, result);
    end->check(scene);
    if (ebb_region_is_open(scene->region))
        (void)ebb_region_close(scene->region);
    demand_order(scene, end, all);
    assert_int_equal(ebb_site_destroy(scene->site), 0);
    assert_int_equal(ebb_check_pool(scene->stage->pool), 0);
}

static ebb_pool *pool_of_slots(void) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = SLOTS, .slot_bytes = 16 * MIB);
    assert_non_null(pool);
    return pool;
}

static void play_all(struct stage *stage, enum meddling meddling) {
    ebb_pool *shared = pool_of_slots();
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (unsigned failing = 0; failing < 1u << ALL; failing++) {
            struct scene scene = {.stage = stage, .shared = shared, .meddling = meddling};
            play(&scene, &ends[i], failing);
        }
    pool_end(shared);
}

static void each_runs_once_and_the_newest_first(void **state) {
    play_all(*state, NOTHING);
}

static void one_runs_the_next_removes_another_and_adds_one(void **state) {
    play_all(*state, RUNS_NEXT);
}

static void one_removes_the_next_runs_another_and_adds_one(void **state) {
    play_all(*state, REMOVES_NEXT);
}

/* ---- of other regions, and again ---- */

struct other {
    struct ebb_cleanup node;
    struct scene *scene;
    ebb_region region;
    struct ebb_cleanup *runs, *removes, *adds;
    char name;
};

static int act(void *data) {
    struct other *other = data;
    struct scene *scene = other->scene;
    scene->ran[scene->count++] = other->name;
    if (other->runs)
        assert_int_equal(ebb_cleanup_run(other->runs), 0);
    if (other->removes)
        assert_int_equal(ebb_cleanup_remove(other->removes), 0);
    if (other->adds)
        assert_int_equal(ebb_cleanup_add(other->region, other->adds), 0);
    return 0;
}

/* The child's are first, whatever they do: what one adds to the parent is the parent's newest. */
static void those_of_a_child_may_change_those_of_its_parent(void **state) {
    struct stage *stage = *state;
    for (int reset = 0; reset < 2; reset++) {
        struct scene scene = {.stage = stage};
        ebb_region parent = OPEN(.parent = stage->root), child = OPEN(.parent = parent);
        struct other nodes[6];
        for (int i = 0; i < 6; i++) {
            nodes[i] = (struct other){.scene = &scene, .region = parent, .name = (char)('a' + i)};
            nodes[i].node = (struct ebb_cleanup){.run = act, .data = &nodes[i]};
            if (i < 5)
                assert_int_equal(ebb_cleanup_add(i < 3 ? parent : child, &nodes[i].node), 0);
        }
        nodes[4].runs = &nodes[0].node;
        nodes[4].removes = &nodes[2].node;
        nodes[4].adds = &nodes[5].node;
        assert_int_equal(reset ? ebb_region_reset(parent, 0) : ebb_region_close(parent), 0);
        assert_string_equal(scene.ran, "eadfb");
        assert_false(ebb_region_is_open(child));
    }
    assert_int_equal(ebb_region_reset(stage->root, 0), 0);
}

static void a_node_that_ran_may_be_registered_again(void **state) {
    struct stage *stage = *state;
    struct scene scene = {.stage = stage};
    ebb_region region = OPEN(.parent = stage->root);
    struct other first = {.scene = &scene, .region = region, .name = 'a'};
    struct other second = {.scene = &scene, .region = region, .name = 'b'};
    first.node = (struct ebb_cleanup){.run = act, .data = &first};
    second.node = (struct ebb_cleanup){.run = act, .data = &second};
    first.adds = &second.node; /* which ran before it */
    assert_int_equal(ebb_cleanup_add(region, &first.node), 0);
    assert_int_equal(ebb_cleanup_add(region, &second.node), 0);
    assert_int_equal(ebb_region_close(region), 0);
    assert_string_equal(scene.ran, "bab");
}

/* Where there were old bytes: three fields are set, once. */
static void a_node_lies_in_a_block_of_its_region(void **state) {
    struct stage *stage = *state;
    struct scene scene = {.stage = stage};
    ebb_region region = OPEN(.parent = stage->root);
    struct other other = {.scene = &scene, .region = region, .name = 'a'};
    struct ebb_cleanup *node = ebb_region_alloc(region, sizeof *node, 16);
    assert_non_null(node);
    memset(node, 0xff, sizeof *node);
    node->run = act;
    node->data = &other;
    node->list = NULL;
    assert_int_equal(ebb_cleanup_remove(node), 0);
    assert_int_equal(ebb_cleanup_run(node), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ebb_cleanup_add(region, node), 0);
        assert_refused(ebb_cleanup_add(region, node), EBB_E_DUPLICATE);
        assert_int_equal(i ? ebb_cleanup_remove(node) : ebb_cleanup_run(node), 0);
        assert_null(node->list);
    }
    assert_int_equal(ebb_cleanup_add(region, node), 0);
    assert_int_equal(ebb_region_close(region), 0);
    assert_string_equal(scene.ran, "aa");
}

/* Its cleanup opens a child with two of its own, of which one adds one to the region again. */
struct opening {
    struct ebb_cleanup node, below[2], late;
    ebb_region region;
};

static int fail_with_nine(void *data) {
    struct opening *opening = data;
    if (opening)
        assert_int_equal(ebb_cleanup_add(opening->region, &opening->late), 0);
    return 9;
}

static int open_child(void *data) {
    struct opening *opening = data;
    ebb_region child = OPEN(.parent = opening->region);
    opening->late = (struct ebb_cleanup){.run = fail_with_nine};
    for (int i = 0; i < 2; i++) {
        opening->below[i] = (struct ebb_cleanup){.run = fail_with_nine, .data = i ? opening : NULL};
        assert_int_equal(ebb_cleanup_add(child, &opening->below[i]), 0);
    }
    return 0;
}

/* In a slot, too, where ebb has one of its own once there are objects. */
static void those_of_children_that_one_opened_are_counted_one_by_one(void **state) {
    struct stage *stage = *state;
    ebb_pool *shared = pool_of_slots();
    for (int slot = 0; slot < 2; slot++) {
        ebb_region region = slot ? OPEN(.pool = shared) : OPEN(.parent = stage->root);
        struct opening opening = {.node = {.run = open_child, .data = &opening}, .region = region};
        struct ebb_closed closed = {0, 0};
        assert_non_null(ebb_tensor_new(region, (struct ebb_dtype){EBB_INT, 8, 1}, 0, NULL));
        assert_int_equal(ebb_cleanup_add(region, &opening.node), 0);
        assert_refused(ebb_region_close_reporting(region, &closed), EBB_E_CLEANUP);
        assert_int_equal(closed.failed, 3);
        assert_int_equal(closed.first_error, 9);
    }
    pool_end(shared);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(each_runs_once_and_the_newest_first),
        STAGED(one_runs_the_next_removes_another_and_adds_one),
        STAGED(one_removes_the_next_runs_another_and_adds_one),
        STAGED(those_of_a_child_may_change_those_of_its_parent),
        STAGED(those_of_children_that_one_opened_are_counted_one_by_one),
        STAGED(a_node_that_ran_may_be_registered_again),
        STAGED(a_node_lies_in_a_block_of_its_region),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
