// SPDX-License-Identifier: Apache-2.0
/*
 * due.c - steps that repeat to the letter, but for now and then: what is served along the tables is
 * what a model has, whoever looks and whatever else happens.
 *
 * Scripts of allocations and releases are played many times. What a step does otherwise is drawn:
 * nothing, a little, or much. Statistics are read now and then, since whoever reads stops the step.
 */
#include "kit/tables.h"

#include "base/poison.h"

#include <ebb/remote.h>
#include <ebb/report.h>
#include <ebb/step.h>

enum { BLOCKS = 90, STEPS = 80, GAMES = 30, EXTRA = 64 };

/* Of a script: a block comes, or goes. */
struct act {
    bool comes;
    unsigned block;
    size_t bytes, align;
};

struct live {
    void *at; /* NULL: it is none */
    size_t bytes;
    unsigned seed;
    bool above; /* born in the parent: not counted here */
};

struct quantity {
    uint64_t now, peak, total;
};

struct game {
    uint64_t seed;
    ebb_region root;
    ebb_site *site;
    ebb_step step;
    unsigned act_count, seeds;
    struct act acts[2 * BLOCKS];
    struct live blocks[BLOCKS], extra[EXTRA], kept[EXTRA];
    struct quantity count, requested;
    unsigned habit; /* how often something else happens; 0: never */
    uint64_t gone_on; /* acts that were due */
    bool bare; /* statistics are read at the end alone */
};

static size_t below(struct game *game, size_t end) {
    game->seed = game->seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(game->seed >> 33) % end;
}

static void change(struct quantity *quantity, size_t from, size_t to) {
    quantity->now = quantity->now - from + to;
    quantity->total += to > from ? to - from : 0;
    if (quantity->now > quantity->peak)
        quantity->peak = quantity->now;
}

static bool is_due(const struct game *game) {
    const struct track *track = track_of(game->step);
    return track && track->due.on;
}

/* ---- scripts ---- */

static void draw_script(struct game *game) {
    unsigned came = 0, live[BLOCKS], count = 0;
    game->act_count = 0;
    while (came < BLOCKS || (count && below(game, 8))) {
        struct act *act = &game->acts[game->act_count++];
        if (came < BLOCKS && (!count || below(game, 5) < 3)) {
            *act = (struct act){true, came, below(game, 3) ? 2000 + below(game, 5000)
                                                           : below(game, 900),
                                (size_t)16 << below(game, 4)};
            live[count++] = came++;
        } else {
            size_t at = below(game, 3) ? 0 : below(game, count);
            *act = (struct act){.block = live[at]};
            memmove(live + at, live + at + 1, (--count - at) * sizeof *live);
        }
    }
}

/* ---- acts ---- */

static void expect_counts(struct game *game) {
    struct ebb_region_stats stats = stats_of(game->step.region);
    assert_int_equal(stats.blocks.current, game->count.now);
    assert_int_equal(stats.blocks.peak, game->count.peak);
    assert_int_equal(stats.blocks.total, game->count.total);
    assert_int_equal(stats.requested.current, game->requested.now);
    assert_int_equal(stats.requested.peak, game->requested.peak);
    assert_int_equal(stats.requested.total, game->requested.total);
}

static void check_bytes(const struct live *live) {
    assert_true(pattern_holds(live->at, live->bytes, live->seed));
}

static void come(struct game *game, struct live *live, size_t bytes, size_t align, bool zeroed) {
    bool due = is_due(game);
    live->at = zeroed ? ebb_region_alloc_zeroed(game->step.region, bytes, align)
                      : ebb_region_alloc(game->step.region, bytes, align);
    assert_non_null(live->at);
    assert_int_equal((uintptr_t)live->at % align, 0);
    live->bytes = bytes;
    live->seed = ++game->seeds;
    pattern_fill(live->at, bytes, live->seed);
    live->above = ebb_region_of(live->at).lane != game->step.region.lane;
    change(&game->count, 0, !live->above);
    change(&game->requested, 0, live->above ? 0 : bytes);
    game->gone_on += due && is_due(game);
}

static void go(struct game *game, struct live *live) {
    if (!live->at)
        return;
    check_bytes(live);
    assert_int_equal(ebb_region_release(game->step.region, live->at), 0);
    change(&game->count, !live->above, 0);
    change(&game->requested, live->above ? 0 : live->bytes, 0);
    live->at = NULL;
}

/* A block that is alive; NULL: none was found. */
static struct live *draw_live(struct game *game) {
    for (unsigned i = 0; i < 8; i++) {
        struct live *live = &game->blocks[below(game, BLOCKS)];
        if (live->at)
            return live;
    }
    return NULL;
}

static struct live *place_in(struct live *list) {
    for (unsigned i = 0; i < EXTRA; i++)
        if (!list[i].at)
            return &list[i];
    return NULL;
}

static void resize(struct game *game, struct live *live) {
    size_t bytes = live->bytes / 2 + below(game, live->bytes + 1);
    if (ebb_region_resize(game->step.region, live->at, bytes) != 0) {
        assert_int_equal(ebb_last_error(), EBB_E_NO_ROOM);
        return;
    }
    if (!live->above)
        change(&game->requested, live->bytes, bytes);
    live->bytes = bytes;
    pattern_fill(live->at, bytes, live->seed);
}

static void promote(struct game *game, struct live *live) {
    struct live *kept = place_in(game->kept);
    if (!kept)
        return;
    struct ebb_survivor survivor = survivor_of(live->at, EBB_PROMOTE_COPY);
    assert_int_equal(ebb_promote(game->step.region, game->root, &survivor, 1, NULL), 0);
    *kept = (struct live){survivor.block, live->bytes, live->seed, true};
    check_bytes(kept);
    if (survivor.block == live->at) /* it was there */
        live->at = NULL;
}

static void refuse(struct game *game, const struct live *live) {
    char inside = 0;
    ebb_region step = game->step.region;
    if (live->bytes > 64) {
        int result = ebb_region_release(step, (char *)live->at + 16);
        assert_true(result == EBB_E_INTERIOR || result == EBB_E_FOREIGN ||
                    result == EBB_E_RELEASED);
    }
    assert_refused(ebb_region_release(step, &inside), EBB_E_FOREIGN);
    assert_refused(ebb_region_release(game->root, live->at), EBB_E_FOREIGN);
    assert_no_block(ebb_region_alloc(step, live->bytes, 48), EBB_E_ALIGNMENT);
    assert_no_block(ebb_region_alloc(step, live->bytes, 0), EBB_E_ALIGNMENT);
    step.generation -= 2;
    assert_refused(ebb_region_release(step, live->at), EBB_E_STALE);
    assert_no_block(ebb_region_alloc(step, live->bytes, 16), EBB_E_STALE);
    assert_int_equal(ebb_region_release(game->step.region, NULL), 0);
    assert_int_equal(ebb_region_block_bytes(game->step.region, live->at), live->bytes);
}

static void release_twice(struct game *game, struct live *live) {
    void *at = live->at;
    go(game, live);
    int result = ebb_region_release(game->step.region, at);
    assert_true(result == EBB_E_RELEASED || result == EBB_E_FOREIGN);
}

static void do_something_with(struct game *game, struct live *live) {
    switch (below(game, 5)) {
    case 0:
        go(game, live); /* before its turn */
        return;
    case 1:
        resize(game, live);
        return;
    case 2:
        promote(game, live);
        return;
    case 3:
        refuse(game, live);
        return;
    default:
        release_twice(game, live);
    }
}

static void do_something_else(struct game *game) {
    struct live *live = draw_live(game), *extra = place_in(game->extra);
    switch (below(game, 10)) {
    case 0:
        if (extra)
            come(game, extra, below(game, 8000), 16, false);
        return;
    case 1:
        go(game, &game->extra[below(game, EXTRA)]);
        return;
    case 2:
        assert_int_equal(ebb_check_pool(ebb_pool_default()), 0);
        return;
    case 3:
        pool_stats_of(ebb_pool_default());
        return;
    case 4:
        if (!game->bare)
            expect_counts(game);
        return;
    default:
        if (live)
            do_something_with(game, live);
    }
}

static bool is_other(struct game *game) {
    return game->habit && !below(game, game->habit);
}

static void play_act(struct game *game, const struct act *act) {
    struct live *live = &game->blocks[act->block];
    size_t bytes = act->bytes;
    if (is_other(game))
        do_something_else(game);
    if (!act->comes) {
        if (!is_other(game)) /* else late, or never */
            go(game, live);
        return;
    }
    if (is_other(game))
        bytes = below(game, 2) ? below(game, bytes + 1) : bytes + below(game, 5000);
    if (!is_other(game))
        come(game, live, bytes, act->align, !below(game, 9));
}

static void play_step(struct game *game) {
    memset(game->blocks, 0, sizeof game->blocks);
    memset(game->extra, 0, sizeof game->extra);
    game->count = game->requested = (struct quantity){0, 0, 0};
    game->step = ebb_step_begin_under(game->site, game->root, 0);
    const struct track *track = track_of(game->step);
    unsigned acts = is_other(game) ? (unsigned)below(game, game->act_count) : game->act_count;
    for (unsigned i = 0; i < acts; i++)
        play_act(game, &game->acts[i]);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (game->blocks[i].at)
            check_bytes(&game->blocks[i]);
    expect_counts(game);
    assert_int_equal(ebb_step_end(game->step), 0);
    if (track)
        assert_tables_hold(track);
}

static void end_kept(struct game *game) {
    for (unsigned i = 0; i < EXTRA; i++) {
        struct live *kept = &game->kept[i];
        if (!kept->at)
            continue;
        check_bytes(kept);
        assert_int_equal(ebb_region_release(game->root, kept->at), 0);
        kept->at = NULL;
    }
}

static void a_step_is_what_a_model_says(void **state) {
    static const unsigned habits[] = {0, 2000, 300, 40, 6};
    uint64_t gone_on = 0, first = number_from("EBB_TEST_SEED", 1);
    for (uint64_t i = 0; i < GAMES; i++) {
        struct game game = {.seed = first + i, .bare = i % 2};
        game.root = OPEN(.name = "root");
        game.site = ebb_site_create(EBB_SITE_OPTIONS(.name = "due"));
        draw_script(&game);
        for (unsigned step = 0; step < STEPS; step++) {
            game.habit = habits[below(&game, 3) ? i % 5 : 0];
            play_step(&game);
            end_kept(&game);
        }
        gone_on += game.gone_on;
        assert_int_equal(ebb_region_close(game.root), 0);
        assert_int_equal(ebb_site_destroy(game.site), 0);
    }
    assert_true(EBB_POISON || gone_on > GAMES * STEPS * BLOCKS / 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_is_what_a_model_says)};
    return cmocka_run_group_tests_name("due", tests, NULL, NULL);
}
