// SPDX-License-Identifier: Apache-2.0
/*
 * due_survivors.c - steps that repeat to the letter, of which something survives: it is born in the
 * parent, so the tables have a slot without a place. What comes late, or from others, in front of
 * it is seen all the same.
 */
#include "kit/test.h"

#include <ebb/remote.h>
#include <ebb/report.h>
#include <ebb/step.h>

#include "pool/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { BEFORE = 40, BEHIND = 6, STEPS = 20, LARGE = 50000 };

struct game {
    ebb_region root;
    ebb_site *site;
    void *kept[2];
};

static void begin(struct game *game) {
    *game = (struct game){.root = OPEN(.name = "root")};
    game->site = ebb_site_create(EBB_SITE_OPTIONS(.name = "survivors"));
}

static void end(struct game *game) {
    assert_int_equal(ebb_check_pool(ebb_pool_default()), 0);
    assert_int_equal(ebb_region_close(game->root), 0);
    assert_int_equal(ebb_site_destroy(game->site), 0);
}

static void *take(ebb_region region, size_t bytes, size_t align) {
    void *block = ebb_region_alloc(region, bytes, align);
    assert_non_null(block);
    return block;
}

static void take_many(ebb_region region, size_t count, size_t bytes) {
    for (size_t i = 0; i < count; i++)
        take(region, bytes, 64);
}

/* Those of the step before go. */
static void keep(struct game *game, ebb_step step, void *block, void *other) {
    struct ebb_survivor list[2] = {survivor_of(block, EBB_PROMOTE_AUTO),
                                   survivor_of(other, EBB_PROMOTE_AUTO)};
    assert_int_equal(ebb_step_end_keeping(step, game->root, list, other ? 2 : 1, NULL, NULL), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ebb_region_release(game->root, game->kept[i]), 0);
        game->kept[i] = i && !other ? NULL : list[i].block;
    }
}

/* The block behind the survivor has the place of one that should be gone, and is not. */
static void play_late(struct game *game, bool late) {
    ebb_step step = ebb_step_begin_under(game->site, game->root, 0);
    take_many(step.region, BEFORE, 2000);
    void *first = take(step.region, LARGE, 64);
    pattern_fill(first, LARGE, 1);
    if (!late)
        assert_int_equal(ebb_region_release(step.region, first), 0);
    void *survivor = take(step.region, 3000, 64), *second = take(step.region, LARGE, 64);
    pattern_fill(second, LARGE, 2);
    if (late) {
        assert_true(pattern_holds(first, LARGE, 1));
        assert_int_equal(ebb_region_release(step.region, first), 0);
    }
    keep(game, step, survivor, NULL);
}

static void what_is_late_before_a_survivor_is_waited_for(void **state) {
    struct game game;
    begin(&game);
    for (unsigned i = 0; i < 2 * STEPS; i++)
        play_late(&game, i % STEPS == STEPS - 1);
    assert_true(site_stats(game.site).tenured_right > STEPS);
    end(&game);
}

static bool is_own(ebb_step step, const void *block) {
    return ebb_region_of(block).lane == step.region.lane;
}

/* Blocks that are the step's own; it has `others`, and that is what it counts. */
static void take_own(ebb_step step, unsigned others) {
    for (size_t i = 0; i < BEHIND; i++)
        assert_true(is_own(step, take(step.region, 5000 + 100 * i, 64)));
    assert_int_equal(stats_of(step.region).blocks.current, others + BEHIND);
}

/* What others released is let go of while the survivor is placed. */
static void play_remote(struct game *game, bool remote) {
    ebb_step step = ebb_step_begin_under(game->site, game->root, 0);
    take_many(step.region, BEFORE, 2000);
    void *planned = take(step.region, LARGE, 64);
    assert_int_equal(remote ? ebb_region_release_remote(step.region, planned)
                            : ebb_region_release(step.region, planned), 0);
    void *survivor = take(step.region, 30000, 64);
    take_own(step, BEFORE + is_own(step, survivor));
    keep(game, step, survivor, NULL);
}

/* The same of one that was born in the parent, while another one of another alignment is. */
static void play_remote_birth(struct game *game, bool remote) {
    ebb_step step = ebb_step_begin_under(game->site, game->root, 0);
    take_many(step.region, BEFORE, 2000);
    void *first = take(step.region, 3000, 64);
    if (remote)
        assert_int_equal(ebb_region_release_remote(step.region, first), 0);
    void *second = take(step.region, 3000, remote ? 32 : 64);
    unsigned born_here = remote ? 0 : is_own(step, first);
    take_own(step, BEFORE + born_here + is_own(step, second));
    if (!remote) {
        keep(game, step, first, second);
        return;
    }
    assert_false(is_own(step, second));
    assert_int_equal(ebb_check_pool(ebb_pool_default()), 0);
    assert_int_equal(ebb_step_end(step), 0);
}

static void what_others_release_comes_between_no_placement(void **state) {
    void (*const plays[])(struct game *game, bool remote) = {play_remote, play_remote_birth};
    for (unsigned kind = 0; kind < 2; kind++) {
        struct game game;
        begin(&game);
        for (unsigned i = 0; i < 2 * STEPS; i++)
            plays[kind](&game, i % STEPS == STEPS - 1);
        assert_true(site_stats(game.site).tenured_right > STEPS);
        end(&game);
    }
}

enum { LARGE_BIRTHS = 3 };

/* Blocks that are born in the parent: each is gone before the next one comes, by the hand of
 * another, or all of them survive. */
static void play_large_births(const struct game *game, unsigned before, bool remote) {
    ebb_step step = ebb_step_begin_under(game->site, game->root, 0);
    struct ebb_survivor born[LARGE_BIRTHS];
    take_many(step.region, before, 2000);
    for (unsigned i = 0; i < LARGE_BIRTHS; i++) {
        void *block = take(step.region, LARGE, 64);
        assert_false(remote && is_own(step, block));
        assert_int_equal(remote ? ebb_region_release_remote(step.region, block) : 0, 0);
        born[i] = survivor_of(block, EBB_PROMOTE_AUTO);
    }
    assert_true(!remote || stats_of(game->root).blocks.current == 1);
    size_t count = remote ? 0 : LARGE_BIRTHS;
    assert_int_equal(ebb_step_end_keeping(step, game->root, born, count, NULL, NULL), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ebb_region_release(game->root, born[i].block), 0);
}

/* On tables, and where a step is too short for them. */
static void what_others_released_makes_room_for_what_is_born(void **state) {
    for (unsigned before = BEHIND; before <= BEFORE; before += BEFORE - BEHIND) {
        struct game game;
        begin(&game);
        for (unsigned i = 0; i < STEPS; i++)
            play_large_births(&game, before, i == STEPS - 1);
        end(&game);
    }
}

/* ---- what is reported ---- */

static char text[1 << 16];
static size_t length;

static int write_text(void *context, const char *part, size_t bytes) {
    assert_true(length + bytes < sizeof text);
    memcpy(text + length, part, bytes);
    length += bytes;
    text[length] = '\0';
    return 0;
}

enum how { AS_EVER, OUT_OF_TURN, RESET };

static void play_plain(ebb_site *site, size_t last, enum how how) {
    ebb_step step = ebb_step_begin(site, 0);
    void *third = NULL;
    for (unsigned i = 0; i < BEFORE; i++) {
        void *block = take(step.region, i == BEFORE - 1 ? last : 4000, 64);
        third = i == 3 ? block : third;
        if (i == 3 && how == OUT_OF_TURN)
            assert_int_equal(ebb_region_release(step.region, third), 0);
    }
    if (how == RESET)
        assert_int_equal(ebb_region_reset(step.region, 0), 0);
    assert_int_equal(ebb_step_end(step), 0);
}

static void a_step_that_is_reset_tells_what_its_slots_got(void **state) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "reset"));
    for (unsigned i = 0; i < STEPS; i++)
        play_plain(site, 4000, AS_EVER);
    play_plain(site, 4000, OUT_OF_TURN);
    play_plain(site, 3900, AS_EVER);
    play_plain(site, 4000, RESET);
    length = 0;
    assert_int_equal(ebb_report_plan(site, 0, write_text, NULL), 0);
    assert_non_null(strstr(text, ",4000]],\"order\""));
    assert_int_equal(ebb_site_destroy(site), 0);
}

enum { BIRTHS = 200, LEARNT = 6, MS_MOST = 30000 };

/* What another thread does while this one has the pool's lock. */
struct births {
    ebb_pool *pool;
    atomic_bool there, locked, done;
};

static void *bear_survivors(void *argument) {
    struct births *births = argument;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = births->pool));
    ebb_region run = OPEN(.pool = births->pool);
    struct ebb_survivor born[BIRTHS];
    for (unsigned i = 0; i <= LEARNT; i++) {
        ebb_step step = ebb_step_begin_under(site, run, 1);
        for (unsigned k = 0; k < BIRTHS && i; k++)
            assert_int_equal(ebb_region_release(run, born[k].block), 0);
        void *large = block_of(step.region, BIRTHS * (size_t)65536, 64);
        atomic_store(&births->there, i == LEARNT);
        while (i == LEARNT && !atomic_load(&births->locked))
            sched_yield();
        for (unsigned k = 0; k < BIRTHS; k++)
            born[k] = survivor_of(block_of(step.region, 4096, 64), EBB_PROMOTE_AUTO);
        atomic_store(&births->done, i == LEARNT);
        assert_int_equal(ebb_region_release(step.region, large), 0);
        assert_int_equal(ebb_step_end_keeping(step, run, born, BIRTHS, NULL, NULL), 0);
    }
    assert_int_equal(site_stats(site).missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(run), 0);
    return NULL;
}

/* Threads with planned steps do not meet in a pool that has no limit. */
static void survivors_are_born_without_the_lock_of_the_pool(void **state) {
    struct births births = {.pool = POOL(0)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, bear_survivors, &births), 0);
    while (!atomic_load(&births.there))
        sched_yield();
    pthread_mutex_lock(&births.pool->lock);
    atomic_store(&births.locked, true);
    for (unsigned ms = 0; ms < MS_MOST && !atomic_load(&births.done); ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    bool done = atomic_load(&births.done);
    pthread_mutex_unlock(&births.pool->lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(done);
    pool_end(births.pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_late_before_a_survivor_is_waited_for),
        cmocka_unit_test(what_others_release_comes_between_no_placement),
        cmocka_unit_test(what_others_released_makes_room_for_what_is_born),
        cmocka_unit_test(a_step_that_is_reset_tells_what_its_slots_got),
        cmocka_unit_test(survivors_are_born_without_the_lock_of_the_pool),
    };
    return cmocka_run_group_tests_name("due_survivors", tests, NULL, NULL);
}
