// SPDX-License-Identifier: Apache-2.0
/*
 * step_guests_bound.c - a training loop as in step_guests.c, in which some layers had better not be
 * guests of the parent: once it is learnt, each step is served as planned.
 */
#include "kit/gradients.h"

enum { LAYERS = 40, LATE = 12, LEARNING = 4, STEPS = 12 };

static const size_t size = GRADIENT_BYTES;

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

/* What is not as with a layer that simply comes and goes. */
enum odd {
    GROWS, /* two layers get larger where they are */
    COPIED, /* two are copied from a region below, which is not a guest's way to come */
    COPIED_GRADIENT, /* so is the first of what survives */
    AT_ONCE /* what survives is promoted as soon as it is there */
};

struct loop {
    ebb_pool *pool;
    ebb_region parent;
    ebb_site *site;
    enum odd odd;
    void *gradient[GRADIENTS];
};

/* ---- layers ---- */

static void *layer_that_grows(ebb_step step) {
    void *block = block_of(step.region, size / 2, 64);
    block = ebb_region_realloc(step.region, block, size, 64);
    assert_non_null(block);
    return block;
}

/* So that what grows in a recorded step can do so where it is. */
static void make_room(ebb_step step) {
    assert_int_equal(ebb_region_release(step.region, block_of(step.region, 7 * size, 64)), 0);
}

static void *block_from_below(ebb_step step) {
    ebb_region below = OPEN(.name = "below", .parent = step.region);
    struct ebb_survivor survivor = survivor_of(block_of(below, size, 64), EBB_PROMOTE_COPY);
    assert_int_equal(ebb_close_keeping(below, step.region, &survivor, 1, NULL, NULL), 0);
    return survivor.block;
}

static void *make_layer(const struct loop *loop, ebb_step step, unsigned number) {
    if (loop->odd == GROWS && number == 20)
        make_room(step);
    if (loop->odd == GROWS && (number == 21 || number == 22))
        return layer_that_grows(step);
    if (loop->odd == COPIED && (number == 21 || number == 22))
        return block_from_below(step);
    return block_of(step.region, size, 64);
}

/* ---- steps ---- */

static void *make_gradient(const struct loop *loop, ebb_step step, unsigned number) {
    bool is_copied = loop->odd == COPIED_GRADIENT && number == 0;
    void *gradient = is_copied ? block_from_below(step) : block_of(step.region, size, 64);
    pattern_fill(gradient, size, number);
    if (loop->odd == AT_ONCE) {
        struct ebb_survivor survivor = survivor_of(gradient, EBB_PROMOTE_AUTO);
        assert_int_equal(ebb_promote(step.region, loop->parent, &survivor, 1, NULL), 0);
        gradient = survivor.block;
    }
    return gradient;
}

static void backward(const struct loop *loop, ebb_step step, void **layer, void **gradient) {
    unsigned made = 0;
    for (unsigned i = LAYERS; i-- > 0;) {
        if (i < LAYERS - LATE && made < GRADIENTS) {
            gradient[made] = make_gradient(loop, step, made);
            made++;
        }
        assert_true(pattern_holds(layer[i], size, 1000 + i));
        assert_int_equal(ebb_region_release(step.region, layer[i]), 0);
    }
}

static void end_step(struct loop *loop, ebb_step step, void **gradient) {
    struct ebb_survivor survivors[GRADIENTS];
    for (unsigned i = 0; i < GRADIENTS; i++)
        survivors[i] = survivor_of(gradient[i], EBB_PROMOTE_AUTO);
    assert_int_equal(
        ebb_step_end_keeping(step, loop->parent, survivors, GRADIENTS, NULL, NULL), 0);
    for (unsigned i = 0; i < GRADIENTS; i++)
        loop->gradient[i] = survivors[i].block;
}

static void pass(struct loop *loop) {
    ebb_step step = ebb_step_begin_under(loop->site, loop->parent, 1);
    void *layer[LAYERS], *gradient[GRADIENTS];
    assert_true(ebb_region_is_open(step.region));
    gradients_release(loop->parent, loop->gradient);
    for (unsigned i = 0; i < LAYERS; i++) {
        layer[i] = make_layer(loop, step, i);
        pattern_fill(layer[i], size, 1000 + i);
    }
    backward(loop, step, layer, gradient);
    end_step(loop, step, gradient);
    assert_int_equal(stats_of(loop->parent).blocks.current, GRADIENTS);
    ebb_check_pool(loop->pool);
}

/* Each step has so many guests, and nothing is asked for that has no place. */
static void train(const struct stage *stage, enum odd odd, unsigned guests) {
    struct loop loop = {.pool = stage->pool, .parent = stage->root, .odd = odd};
    loop.site = SITE(.name = "train", .pool = stage->pool);
    for (unsigned i = 0; i < LEARNING; i++)
        pass(&loop);
    struct ebb_site_stats before = site_stats(loop.site);
    for (unsigned i = 0; i < STEPS; i++)
        pass(&loop);
    struct ebb_site_stats after = site_stats(loop.site);
    assert_int_equal(after.missed - before.missed, 0);
    assert_int_equal(after.guests - before.guests, STEPS * guests);
    assert_int_equal(after.tenured_wrong, 0);
    assert_int_equal(after.plans, before.plans);
    gradients_release(loop.parent, loop.gradient);
    assert_int_equal(ebb_site_destroy(loop.site), 0);
}

static void what_grows_where_it_is_is_no_guest(void **state) {
    train(*state, GROWS, GRADIENTS);
}

static void what_is_copied_from_below_is_no_guest(void **state) {
    train(*state, COPIED, GRADIENTS);
}

static void what_is_copied_from_below_is_not_born_above(void **state) {
    train(*state, COPIED_GRADIENT, GRADIENTS - 1);
}

static void survivors_that_are_promoted_at_once_count_once(void **state) {
    train(*state, AT_ONCE, GRADIENTS);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(what_grows_where_it_is_is_no_guest),
        STAGED(what_is_copied_from_below_is_no_guest),
        STAGED(what_is_copied_from_below_is_not_born_above),
        STAGED(survivors_that_are_promoted_at_once_count_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
