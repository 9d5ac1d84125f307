// SPDX-License-Identifier: Apache-2.0
/*
 * step_guests.c - a training loop: gradients survive each step and go early in the next, and layers
 * lie in the parent in between. Whatever becomes of such guests, nothing is lost or counted twice.
 */
#include "kit/gradients.h"

#include <pthread.h>

enum { LAYERS = 40, LATE = 12, LEARNING = 4, STEPS = 12, SPECKS = 128 };

static const size_t size = GRADIENT_BYTES;

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

/* What a step does with layers that are guests; without these, all that it does otherwise. */
enum odd {
    AS_LEARNT,
    KEEPS_LAST,     /* promotes one */
    LEAVES_ALL,     /* releases none */
    ELSEWHERE,      /* another thread releases them */
    RESIZES,        /* they get smaller, and larger */
    HOARDS,         /* gradients stay for good: there is no room for guests */
    UNDER_A_MARK,
    OUTGROWN        /* so much comes first that the plan is of no use */
};

struct loop {
    ebb_pool *pool;
    ebb_region parent;
    ebb_site *site;
    size_t bytes; /* of a layer */
    void *gradient[GRADIENTS];
    void *speck[SPECKS];
    unsigned specks; /* so many small blocks survive, too */
    unsigned loose;  /* and so many others come first */
    void *kept;
    void *hoard[STEPS * GRADIENTS];
    unsigned hoarded;
    bool keeps_none; /* gradients go right after the step */
    unsigned guests; /* in the last step */
    uintptr_t guest_end, gradient_end; /* the highest ones so far */
};

static void hoard_gradients(struct loop *loop) {
    for (unsigned i = 0; i < GRADIENTS; i++)
        loop->hoard[loop->hoarded++] = loop->gradient[i];
    memset(loop->gradient, 0, sizeof loop->gradient);
}

static bool is_guest(const struct loop *loop, const void *block) {
    ebb_region found = ebb_region_of(block);
    return found.lane == loop->parent.lane && found.generation == loop->parent.generation;
}

struct elsewhere {
    ebb_region region;
    void *block;
};

static void *release_elsewhere(void *argument) {
    struct elsewhere *elsewhere = argument;
    return ebb_region_release_remote(elsewhere->region, elsewhere->block) ? elsewhere : NULL;
}

static void note_end(uintptr_t *highest, const void *block, size_t bytes) {
    uintptr_t end = (uintptr_t)block + bytes;
    *highest = end > *highest ? end : *highest;
}

static void release_guest(struct loop *loop, ebb_step step, void *layer, enum odd odd) {
    struct elsewhere elsewhere = {step.region, layer};
    pthread_t thread;
    void *failed = NULL;
    loop->guests++;
    note_end(&loop->guest_end, layer, loop->bytes);
    assert_refused(ebb_region_release(loop->parent, layer), EBB_E_FOREIGN);
    if (odd == KEEPS_LAST && !loop->kept) {
        struct ebb_survivor survivor = survivor_of(layer, EBB_PROMOTE_AUTO);
        assert_int_equal(ebb_promote(step.region, loop->parent, &survivor, 1, NULL), 0);
        assert_ptr_equal(survivor.block, layer);
        loop->kept = layer;
    } else if (odd == ELSEWHERE) {
        assert_int_equal(pthread_create(&thread, NULL, release_elsewhere, &elsewhere), 0);
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
    } else if (odd != LEAVES_ALL) {
        assert_int_equal(ebb_region_release(step.region, layer), 0);
        assert_refused(ebb_region_release(step.region, layer), EBB_E_FOREIGN); /* free, above */
    }
}

static void *resized(const struct loop *loop, ebb_step step, void *layer) {
    assert_int_equal(ebb_region_resize(step.region, layer, loop->bytes / 2), 0);
    void *moved = ebb_region_realloc(step.region, layer, 2 * loop->bytes, 64);
    assert_non_null(moved);
    assert_int_equal(ebb_region_block_bytes(step.region, moved), 2 * loop->bytes);
    return moved;
}

static void backward(struct loop *loop, ebb_step step, void **layer, void **gradient,
                     enum odd odd) {
    unsigned made = 0;
    for (unsigned i = LAYERS; i-- > 0;) {
        if (i < LAYERS - LATE && made < GRADIENTS) {
            gradient[made] = block_of(step.region, size, 64);
            pattern_fill(gradient[made], size, made);
            made++;
        }
        assert_true(pattern_holds(layer[i], loop->bytes, 1000 + i));
        if (odd == RESIZES && is_guest(loop, layer[i]))
            layer[i] = resized(loop, step, layer[i]);
        if (is_guest(loop, layer[i]))
            release_guest(loop, step, layer[i], odd);
        else
            assert_int_equal(ebb_region_release(step.region, layer[i]), 0);
    }
}

static void release_specks(struct loop *loop) {
    for (unsigned i = 0; i < loop->specks; i++) {
        assert_int_equal(ebb_region_release(loop->parent, loop->speck[i]), 0);
        loop->speck[i] = NULL;
    }
}

static void pass(struct loop *loop, enum odd odd) {
    ebb_step step = ebb_step_begin_under(loop->site, loop->parent, 1);
    struct ebb_survivor survivors[GRADIENTS + SPECKS];
    unsigned count = GRADIENTS + loop->specks;
    void *layer[LAYERS], *gradient[GRADIENTS];
    ebb_mark mark = {NULL, 0};
    void *more = NULL;
    assert_true(ebb_region_is_open(step.region));
    loop->guests = 0;
    if (odd == UNDER_A_MARK)
        mark = ebb_region_mark(loop->parent);
    if (odd == HOARDS)
        hoard_gradients(loop);
    gradients_release(loop->parent, loop->gradient);
    release_specks(loop);
    for (unsigned i = 0; i < loop->loose; i++)
        block_of(step.region, 48, 16);
    if (odd == OUTGROWN)
        more = block_of(step.region, LAYERS * size, 64);
    for (unsigned i = 0; i < LAYERS; i++) {
        layer[i] = block_of(step.region, loop->bytes, 64);
        pattern_fill(layer[i], loop->bytes, 1000 + i);
    }
    backward(loop, step, layer, gradient, odd);
    assert_int_equal(ebb_region_release(step.region, more), 0);
    for (unsigned i = 0; i < GRADIENTS; i++)
        survivors[i] = survivor_of(gradient[i], EBB_PROMOTE_AUTO);
    for (unsigned i = GRADIENTS; i < count; i++)
        survivors[i] = survivor_of(block_of(step.region, EBB_SMALL_MAX_BYTES, 64),
                                   EBB_PROMOTE_AUTO);
    if (odd == UNDER_A_MARK)
        assert_int_equal(ebb_region_rewind(loop->parent, mark), 0);
    assert_int_equal(ebb_step_end_keeping(step, loop->parent, survivors, count, NULL, NULL), 0);
    for (unsigned i = 0; i < GRADIENTS; i++) {
        loop->gradient[i] = survivors[i].block;
        note_end(&loop->gradient_end, loop->gradient[i], size);
    }
    for (unsigned i = 0; i < loop->specks; i++)
        loop->speck[i] = survivors[GRADIENTS + i].block;
    assert_int_equal(stats_of(loop->parent).blocks.current,
                     count + (loop->kept ? 1u : 0u) + loop->hoarded);
    if (loop->keeps_none)
        gradients_release(loop->parent, loop->gradient);
    ebb_check_pool(loop->pool);
}

static struct loop begin(const struct stage *stage) {
    struct loop loop = {.pool = stage->pool, .bytes = size};
    loop.parent = stage->root;
    loop.site = SITE(.name = "train", .pool = stage->pool);
    return loop;
}

static struct loop begin_with_guests(const struct stage *stage) {
    struct loop loop = begin(stage);
    for (unsigned i = 0; i < LEARNING; i++)
        pass(&loop, AS_LEARNT);
    assert_int_equal(loop.guests, GRADIENTS);
    return loop;
}

static void end(struct loop *loop) {
    gradients_release(loop->parent, loop->gradient);
    release_specks(loop);
    while (loop->hoarded)
        assert_int_equal(ebb_region_release(loop->parent, loop->hoard[--loop->hoarded]), 0);
    assert_int_equal(ebb_region_release(loop->parent, loop->kept), 0);
    assert_int_equal(ebb_site_destroy(loop->site), 0);
    assert_int_equal(stats_of(loop->parent).blocks.current, 0);
}

static void layers_and_gradients_take_turns_in_the_parent(void **state) {
    struct loop loop = begin_with_guests(*state);
    size_t above = stats_of(loop.parent).reserved.current;
    struct ebb_site_stats before = site_stats(loop.site);
    assert_int_equal(before.plan_height, (LAYERS - GRADIENTS) * size);
    for (unsigned i = 0; i < STEPS; i++) {
        pass(&loop, AS_LEARNT);
        assert_int_equal(loop.guests, GRADIENTS);
        assert_true(stats_of(loop.parent).reserved.current <= above + above / 8);
    }
    struct ebb_site_stats after = site_stats(loop.site);
    assert_int_equal(after.guests - before.guests, STEPS * GRADIENTS);
    assert_int_equal(after.guest_bytes - before.guest_bytes, STEPS * GRADIENTS * size);
    assert_int_equal(after.tenured_right - before.tenured_right, STEPS * GRADIENTS);
    assert_int_equal(after.hits - before.hits, STEPS * (LAYERS + GRADIENTS));
    assert_int_equal(after.allocations - before.allocations, STEPS * (LAYERS + GRADIENTS));
    assert_int_equal(after.missed, before.missed);
    assert_int_equal(after.tenured_wrong + after.takeovers, 0);
    end(&loop);
}

/* They lie in windows, where there is no room for layers. */
static void small_survivors_make_no_room_for_guests(void **state) {
    struct loop loop = begin(*state);
    loop.specks = SPECKS;
    for (unsigned i = 0; i < 2 * LEARNING; i++)
        pass(&loop, AS_LEARNT);
    struct ebb_site_stats before = site_stats(loop.site);
    assert_int_equal(before.plan_height, (LAYERS - GRADIENTS) * size);
    for (unsigned i = 0; i < STEPS; i++) {
        pass(&loop, AS_LEARNT);
        assert_int_equal(loop.guests, GRADIENTS);
    }
    assert_int_equal(site_stats(loop.site).missed, before.missed);
    end(&loop);
}

static void a_site_that_tenures_nothing_has_no_guests(void **state) {
    struct loop loop = begin(*state);
    assert_int_equal(ebb_site_destroy(loop.site), 0);
    loop.site = SITE(.pool = loop.pool, .tenure_none = true);
    for (unsigned i = 0; i < STEPS; i++)
        pass(&loop, AS_LEARNT);
    assert_int_equal(site_stats(loop.site).guests, 0);
    end(&loop);
}

static void a_guest_that_is_kept_stays_where_it_is(void **state) {
    struct loop loop = begin_with_guests(*state);
    struct ebb_site_stats before = site_stats(loop.site);
    pass(&loop, KEEPS_LAST);
    struct ebb_site_stats after = site_stats(loop.site);
    assert_non_null(loop.kept);
    assert_int_equal(after.guests - before.guests, GRADIENTS - 1);
    assert_int_equal(after.guest_bytes - before.guest_bytes, (GRADIENTS - 1) * size);
    assert_int_equal(after.tenured_right - before.tenured_right, GRADIENTS + 1);
    assert_int_equal(after.allocations - before.allocations, LAYERS + GRADIENTS);
    for (unsigned i = 0; i < STEPS; i++)
        pass(&loop, AS_LEARNT);
    assert_int_equal(loop.guests, GRADIENTS);
    end(&loop);
}

/* The steps after it are as those before. */
static void pass_oddly(struct stage *stage, enum odd odd) {
    struct loop loop = begin_with_guests(stage);
    for (unsigned i = 0; i < STEPS; i++) {
        pass(&loop, i % 4 == 0 ? odd : AS_LEARNT);
        assert_true(loop.guests == (i % 4 == 0 && odd == UNDER_A_MARK ? 0 : GRADIENTS) ||
                    odd == RESIZES);
    }
    assert_true(!site_stats(loop.site).tenured_wrong || odd == RESIZES);
    end(&loop);
}

static void guests_that_nobody_releases_end_with_the_step(void **state) {
    pass_oddly(*state, LEAVES_ALL);
}

static void other_threads_release_guests(void **state) {
    pass_oddly(*state, ELSEWHERE);
}

static void guests_are_resized(void **state) {
    pass_oddly(*state, RESIZES);
}

static void a_parent_with_a_mark_has_no_guests(void **state) {
    pass_oddly(*state, UNDER_A_MARK);
}

static void guests_that_find_no_room_are_planned_elsewhere(void **state) {
    struct loop loop = begin_with_guests(*state);
    uint64_t height = site_stats(loop.site).plan_height;
    for (unsigned i = 0; i < STEPS; i++) {
        pass(&loop, HOARDS);
        assert_int_equal(loop.guests, 0);
    }
    struct ebb_site_stats stats = site_stats(loop.site);
    assert_int_equal(stats.plan_height, height + GRADIENTS * size);
    assert_int_equal(stats.missed, GRADIENTS * 2); /* two such steps, one after the other */
    assert_int_equal(stats.takeovers, 0);
    end(&loop);
}

static void guests_are_back_where_there_is_room_again(void **state) {
    struct loop loop = begin_with_guests(*state);
    uint64_t height = site_stats(loop.site).plan_height;
    for (unsigned i = 0; i < 2; i++)
        pass(&loop, HOARDS);
    while (loop.hoarded)
        assert_int_equal(ebb_region_release(loop.parent, loop.hoard[--loop.hoarded]), 0);
    pass(&loop, AS_LEARNT);
    assert_int_equal(loop.guests, 0);
    for (unsigned i = 0; i < 64; i++)
        pass(&loop, AS_LEARNT);
    assert_int_equal(loop.guests, GRADIENTS);
    assert_int_equal(site_stats(loop.site).plan_height, height);
    end(&loop);
}

/* Nothing is known of a parent that is recorded itself, nor could it be told how many would find
 * room there. */
static void guests_wait_until_there_is_a_parent_that_may_have_them(void **state) {
    struct loop loop = begin_with_guests(*state);
    uint64_t height = site_stats(loop.site).plan_height;
    ebb_site *outer = SITE(.name = "epochs", .pool = loop.pool);
    ebb_region root = loop.parent;
    ebb_step epoch = ebb_step_begin_under(outer, root, 1);
    gradients_release(root, loop.gradient);
    loop.parent = epoch.region;
    for (unsigned i = 0; i < 24; i++) {
        pass(&loop, AS_LEARNT);
        assert_int_equal(loop.guests, 0);
    }
    gradients_release(loop.parent, loop.gradient);
    assert_int_equal(ebb_step_end(epoch), 0);
    loop.parent = root;
    for (unsigned i = 0; i < 64; i++)
        pass(&loop, AS_LEARNT);
    assert_int_equal(loop.guests, GRADIENTS);
    assert_int_equal(site_stats(loop.site).plan_height, height);
    assert_int_equal(ebb_site_destroy(outer), 0);
    end(&loop);
}

static void pass_often(struct loop *loop, unsigned steps) {
    for (unsigned i = 0; i < steps; i++)
        pass(loop, AS_LEARNT);
}

/* The plan is made, or grows, where there is none. */
static void plans_that_are_made_without_such_a_parent_have_guests_later(void **state) {
    for (unsigned grows = 0; grows < 2; grows++) {
        struct loop loop = begin(*state);
        pass_often(&loop, grows ? LEARNING : 0);
        ebb_site *outer = SITE(.name = "epochs", .pool = loop.pool);
        ebb_region root = loop.parent;
        ebb_step epoch = ebb_step_begin_under(outer, root, 1);
        gradients_release(root, loop.gradient);
        loop.parent = epoch.region;
        loop.bytes = grows ? size * 11 / 10 : size;
        pass_often(&loop, grows ? 1 : LEARNING);
        gradients_release(loop.parent, loop.gradient);
        assert_int_equal(ebb_step_end(epoch), 0);
        loop.parent = root;
        pass_often(&loop, 64);
        assert_true(loop.guests >= GRADIENTS * size / loop.bytes);
        assert_int_equal(ebb_site_destroy(outer), 0);
        end(&loop);
    }
}

/* Small blocks repeat, so they are planned as well; but for one step that does badly. */
static void so_has_a_plan_without_small_blocks_that_comes_back(void **state) {
    static const unsigned loose[] = {8, 5, 5, 5};
    struct loop loop = begin(*state);
    ebb_site *outer = SITE(.name = "epochs", .pool = loop.pool);
    ebb_region root = loop.parent;
    ebb_step epoch = ebb_step_begin_under(outer, root, 1);
    loop.parent = epoch.region;
    for (unsigned i = 0; i < LEARNING; i++) {
        loop.loose = loose[i];
        pass(&loop, i == LEARNING - 1 ? OUTGROWN : AS_LEARNT);
    }
    assert_int_equal(site_stats(loop.site).plans, 3); /* the first one again */
    gradients_release(loop.parent, loop.gradient);
    assert_int_equal(ebb_step_end(epoch), 0);
    loop.parent = root;
    pass_often(&loop, 64);
    assert_int_equal(loop.guests, GRADIENTS);
    assert_int_equal(ebb_site_destroy(outer), 0);
    end(&loop);
}

/* What the parent had in the step before is known, though another track followed that one. */
static void steps_that_stay_readable_have_guests(void **state) {
    static const uint32_t rings[] = {0, 3, 8};
    for (unsigned r = 0; r < sizeof rings / sizeof *rings; r++) {
        struct loop loop = begin(*state);
        assert_int_equal(ebb_site_destroy(loop.site), 0);
        loop.site = SITE(.name = "train", .pool = loop.pool, .ring = rings[r]);
        loop.keeps_none = true;
        for (unsigned i = 0; i < 2 * (rings[r] + 1) + LEARNING; i++)
            pass(&loop, AS_LEARNT);
        struct ebb_site_stats before = site_stats(loop.site);
        for (unsigned i = 0; i < STEPS; i++) {
            pass(&loop, AS_LEARNT);
            assert_int_equal(loop.guests, GRADIENTS);
        }
        assert_int_equal(site_stats(loop.site).missed, before.missed);
        assert_int_equal(before.plan_height, (LAYERS - GRADIENTS) * size);
        end(&loop);
    }
}

static void guests_grow_with_their_step(void **state) {
    struct loop loop = begin_with_guests(*state);
    for (unsigned i = 0; i < STEPS; i++) {
        loop.bytes += i < 3 ? 10000 : 0;
        pass(&loop, AS_LEARNT);
    }
    unsigned fit = (unsigned)(GRADIENTS * size / loop.bytes);
    assert_int_equal(loop.guests, fit);
    struct ebb_site_stats before = site_stats(loop.site);
    pass(&loop, AS_LEARNT);
    assert_int_equal(site_stats(loop.site).missed, before.missed);
    assert_int_equal(site_stats(loop.site).plan_height / loop.bytes, LAYERS - fit);
    end(&loop);
}

/* It was not asked for room. */
static void a_parent_is_not_crowded_by_steps_that_outgrow_their_plan(void **state) {
    struct loop loop = begin_with_guests(*state);
    for (unsigned i = 0; i < 2; i++) {
        pass(&loop, OUTGROWN);
        assert_int_equal(loop.guests, 0);
    }
    for (unsigned i = 0; i < LEARNING; i++)
        pass(&loop, AS_LEARNT);
    assert_int_equal(loop.guests, GRADIENTS);
    assert_int_equal(site_stats(loop.site).takeovers, 2);
    end(&loop);
}

/* Of a parent with many pages that nothing has needed yet no more are touched. */
static void guests_lie_where_gradients_were(void **state) {
    struct stage *stage = *state;
    struct loop loop = begin(stage);
    loop.parent = OPEN(.name = "hinted", .pool = stage->pool, .hint_bytes = 16 * MIB);
    for (unsigned i = 0; i < LEARNING; i++)
        pass(&loop, AS_LEARNT);
    loop.guest_end = loop.gradient_end = 0;
    for (unsigned i = 0; i < STEPS; i++)
        pass(&loop, AS_LEARNT);
    assert_int_equal(loop.guests, GRADIENTS);
    assert_true(loop.guest_end <= loop.gradient_end);
    end(&loop);
    assert_int_equal(ebb_region_close(loop.parent), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(layers_and_gradients_take_turns_in_the_parent),
        STAGED(small_survivors_make_no_room_for_guests),
        STAGED(a_site_that_tenures_nothing_has_no_guests),
        STAGED(a_guest_that_is_kept_stays_where_it_is),
        STAGED(guests_that_nobody_releases_end_with_the_step),
        STAGED(other_threads_release_guests),
        STAGED(guests_are_resized),
        STAGED(a_parent_with_a_mark_has_no_guests),
        STAGED(guests_that_find_no_room_are_planned_elsewhere),
        STAGED(guests_are_back_where_there_is_room_again),
        STAGED(guests_wait_until_there_is_a_parent_that_may_have_them),
        STAGED(plans_that_are_made_without_such_a_parent_have_guests_later),
        STAGED(so_has_a_plan_without_small_blocks_that_comes_back),
        STAGED(steps_that_stay_readable_have_guests),
        STAGED(guests_grow_with_their_step),
        STAGED(a_parent_is_not_crowded_by_steps_that_outgrow_their_plan),
        STAGED(guests_lie_where_gradients_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
