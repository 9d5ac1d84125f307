// SPDX-License-Identifier: Apache-2.0
/*
 * step_nested.c - steps within steps, all of them planned: what the inner ones bear lies in slots
 * of the outer one, or beside them. Steps are made up by dice and repeat with mistakes; counters,
 * their peaks too, are what a model says, and every block keeps its bytes. What is no survivor of
 * an inner step has no slot of the outer one.
 */
#include "kit/test.h"

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

enum { OPS = 16, INNER = 10, OWNED = 512, OUTER_STEPS = 8, SEEDS = 40 };

struct dice {
    uint64_t state;
};

static unsigned roll(struct dice *dice, unsigned n) {
    dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(dice->state >> 33) % n;
}

struct block {
    void *at;
    size_t bytes;
    unsigned seed, number;
    bool born; /* lies in the parent, but is the step's */
};

/* What a region should have. */
struct model {
    ebb_region region;
    struct block blocks[OWNED];
    unsigned count;
    bool marked; /* what was born there before is copied, to be newer than the mark */
    uint64_t current, peak, total, bytes, bytes_peak, bytes_total;
};

static void come(struct model *model, size_t bytes) {
    model->total++;
    model->bytes_total += bytes;
    model->bytes += bytes;
    model->current++;
    if (model->current > model->peak)
        model->peak = model->current;
    if (model->bytes > model->bytes_peak)
        model->bytes_peak = model->bytes;
}

static void leave(struct model *model, size_t bytes) {
    model->current--;
    model->bytes -= bytes;
}

static void check(const struct model *model) {
    struct ebb_region_stats stats = stats_of(model->region);
    assert_int_equal(stats.blocks.current, model->current);
    assert_int_equal(stats.blocks.peak, model->peak);
    assert_int_equal(stats.blocks.total, model->total);
    assert_int_equal(stats.requested.current, model->bytes);
    assert_int_equal(stats.requested.peak, model->bytes_peak);
    assert_int_equal(stats.requested.total, model->bytes_total);
}

enum fate { FATE_RELEASED, FATE_ENDS, FATE_SURVIVES, FATES };

struct play {
    struct stage *stage;
    struct dice dice;
    unsigned filled, wild; /* so many of 64 events go another way */
    ebb_site *outer, *inner;
    struct model above, step;
    uint64_t born, right;
    struct {
        size_t bytes;
        unsigned act;
    } ops[OPS];
    struct {
        size_t bytes;
        size_t align;
        unsigned fate;
    } plan[INNER];
};

static bool is_wild(struct play *play) {
    return roll(&play->dice, 64) < play->wild;
}

static size_t a_size(struct dice *dice) {
    static const size_t sizes[] = {0, 1, 16, 40, 100, 600, 1024, 1025, 3000, 9000};
    return sizes[roll(dice, sizeof sizes / sizeof *sizes)];
}

static void own(struct play *play, struct model *model, struct block block) {
    assert_true(model->count < OWNED);
    block.seed = ++play->filled;
    model->blocks[model->count++] = block;
    pattern_fill(block.at, block.bytes, block.seed);
}

static void make_above(struct play *play, size_t bytes) {
    void *at = ebb_region_alloc(play->above.region, bytes, 16);
    assert_non_null(at);
    come(&play->above, bytes);
    own(play, &play->above, (struct block){.at = at, .bytes = bytes});
}

static void make(struct play *play, unsigned number) {
    size_t bytes = is_wild(play) ? a_size(&play->dice) : play->plan[number].bytes;
    size_t align = play->plan[number].align;
    void *at = ebb_region_alloc(play->step.region, bytes, align);
    assert_non_null(at);
    assert_int_equal((uintptr_t)at % align, 0);
    bool born = ebb_region_of(at).lane == play->above.region.lane;
    play->born += born;
    come(born ? &play->above : &play->step, bytes);
    own(play, &play->step, (struct block){at, bytes, 0, number, born});
    assert_int_equal(ebb_region_block_bytes(play->step.region, at), bytes);
}

static struct block take(struct model *model, unsigned i) {
    struct block block = model->blocks[i];
    assert_true(pattern_holds(block.at, block.bytes, block.seed));
    model->blocks[i] = model->blocks[--model->count];
    return block;
}

static void release_above(struct play *play, unsigned i) {
    struct block block = take(&play->above, i);
    assert_int_equal(ebb_region_release(play->above.region, block.at), 0);
    leave(&play->above, block.bytes);
}

static void release(struct play *play, unsigned i) {
    struct block block = take(&play->step, i);
    if (block.born)
        assert_refused(ebb_region_release(play->above.region, block.at), EBB_E_FOREIGN);
    assert_int_equal(ebb_region_release(play->step.region, block.at), 0);
    leave(block.born ? &play->above : &play->step, block.bytes);
}

/* One of a list is the target's now, or a copy of it is. */
static void follow(struct play *play, struct block block, const struct ebb_survivor *survivor,
                   bool further) {
    bool copied = survivor->block != block.at, stays = block.born && !play->above.marked;
    assert_true(pattern_holds(survivor->block, block.bytes, block.seed));
    if (!copied && !block.born)
        leave(&play->step, block.bytes);
    if (copied)
        play->step.blocks[play->step.count++] = block; /* the original still is there */
    if (further) {
        assert_int_equal(ebb_region_release(play->stage->root, survivor->block), 0);
        return;
    }
    assert_true(!block.born || copied == !stays);
    play->right += stays;
    if (!stays)
        come(&play->above, block.bytes);
    block.at = survivor->block;
    block.born = false;
    assert_true(play->above.count < OWNED);
    play->above.blocks[play->above.count++] = block;
}

/* All that survive, in one list. */
static void promote(struct play *play) {
    bool further = is_wild(play);
    struct ebb_survivor list[OWNED];
    struct block blocks[OWNED];
    struct model *step = &play->step;
    unsigned count = 0;
    for (unsigned i = step->count; i-- > 0;) {
        bool survives = play->plan[step->blocks[i].number].fate == FATE_SURVIVES;
        if (survives == is_wild(play))
            continue;
        blocks[count] = take(step, i);
        list[count] = survivor_of(blocks[count].at, (int)roll(&play->dice, 3));
        count++;
    }
    assert_int_equal(ebb_promote(step->region, further ? play->stage->root : play->above.region,
                                 list, count, NULL), 0);
    for (unsigned i = 0; i < count; i++)
        follow(play, blocks[i], &list[i], further);
}

/* What the parent does while a step is open below it. */
static void disturb(struct play *play) {
    if (roll(&play->dice, 2))
        make_above(play, a_size(&play->dice));
    else if (play->above.count)
        release_above(play, roll(&play->dice, play->above.count));
    if (roll(&play->dice, 24) == 0) {
        assert_true(ebb_region_mark(play->above.region).serial != 0);
        play->above.marked = true;
    }
}

static void release_number(struct play *play, unsigned number) {
    for (unsigned i = 0; i < play->step.count; i++)
        if (play->step.blocks[i].number == number) {
            release(play, i);
            return;
        }
}

static void end_inner(struct play *play, ebb_step step) {
    check(&play->step);
    while (play->step.count) {
        struct block block = take(&play->step, play->step.count - 1);
        if (block.born)
            leave(&play->above, block.bytes);
    }
    assert_int_equal(ebb_step_end(step), 0);
    check(&play->above);
}

static void play_inner(struct play *play) {
    ebb_step step = ebb_step_begin_under(play->inner, play->above.region, 1);
    play->step = (struct model){.region = step.region};
    assert_true(ebb_region_is_open(step.region));
    for (unsigned i = 0; i < INNER; i++) {
        if (!is_wild(play))
            make(play, i);
        if (is_wild(play))
            disturb(play);
        if (is_wild(play) && play->step.count)
            release(play, roll(&play->dice, play->step.count));
        if (i >= 2 && play->plan[i - 2].fate == FATE_RELEASED && !is_wild(play))
            release_number(play, i - 2);
        check(&play->step);
        check(&play->above);
    }
    promote(play);
    end_inner(play, step);
}

static void play_outer(struct play *play) {
    ebb_step step = ebb_step_begin_under(play->outer, play->stage->root, 1);
    play->above = (struct model){.region = step.region};
    assert_true(ebb_region_is_open(step.region));
    for (unsigned i = 0; i < OPS; i++) {
        if (play->ops[i].act == 0)
            make_above(play, play->ops[i].bytes);
        else if (play->ops[i].act > 1)
            play_inner(play);
        else if (play->above.count)
            release_above(play, (unsigned)play->ops[i].bytes % play->above.count);
        check(&play->above);
    }
    while (play->above.count)
        take(&play->above, play->above.count - 1);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(stats_of(play->stage->root).blocks.current, 0);
    ebb_check_pool(play->stage->pool);
}

static struct ebb_site_stats end(ebb_site *site) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    return stats;
}

/* Returns how many blocks were born above. */
static uint64_t play_steps(struct stage *stage, uint64_t seed, unsigned wild) {
    static struct play play;
    play = (struct play){.stage = stage, .dice = {seed}};
    struct dice *dice = &play.dice;
    for (unsigned i = 0; i < OPS; i++) {
        play.ops[i].act = roll(dice, 4);
        play.ops[i].bytes = a_size(dice);
    }
    for (unsigned i = 0; i < INNER; i++) {
        play.plan[i].bytes = a_size(dice);
        play.plan[i].align = (size_t)1 << roll(dice, 8);
        play.plan[i].fate = roll(dice, FATES);
    }
    play.outer = SITE(.name = "outer", .pool = stage->pool);
    play.inner = SITE(.name = "inner", .pool = stage->pool);
    for (unsigned i = 0; i < OUTER_STEPS; i++) {
        play.wild = i < 3 ? 0 : wild;
        play_outer(&play);
    }
    struct ebb_site_stats inner = end(play.inner);
    assert_int_equal(inner.tenured_right, play.right);
    assert_int_equal(inner.tenured_right + inner.tenured_wrong, play.born);
    end(play.outer);
    return play.born;
}

static void play_seeds(void **state, unsigned wild) {
    uint64_t born = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        born += play_steps(*state, seed, wild);
    assert_true(born > SEEDS);
}

static void steps_that_repeat_are_what_a_model_says(void **state) {
    play_seeds(state, 0);
}

static void steps_with_mistakes_are_what_a_model_says(void **state) {
    play_seeds(state, 2);
}

static void wild_steps_are_what_a_model_says(void **state) {
    play_seeds(state, 12);
}

/* ---- what is no survivor ---- */

enum { LEARNING = 6, SURVIVOR = 8000, FAR_LARGER = 64 << 10 };

/* In front of its survivor the step has a gap, that of a block which no plan has: its alignment is
 * above a page. */
static ebb_step begin_inner(ebb_site *site, ebb_region parent) {
    ebb_step step = ebb_step_begin_under(site, parent, 1);
    void *gap = block_of(step.region, FAR_LARGER, 2 * PAGE);
    assert_int_equal(ebb_region_release(step.region, gap), 0);
    block_of(step.region, 3000, 64);
    return step;
}

static ebb_site *inner_site(struct stage *stage) {
    ebb_site *site = SITE(.name = "inner", .pool = stage->pool);
    for (unsigned i = 0; i < LEARNING; i++) {
        ebb_step step = begin_inner(site, stage->root);
        void *block = ebb_region_alloc(step.region, SURVIVOR, 64);
        struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_COPY);
        assert_int_equal(
            ebb_step_end_keeping(step, stage->root, &survivor, 1, NULL, NULL), 0);
        assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
    }
    assert_int_equal(site_stats(site).tenured_right, LEARNING - 2);
    return site;
}

/* Each step has one block, as large as what is no survivor of the inner one. */
static ebb_site *outer_site(struct stage *stage) {
    ebb_site *site = SITE(.name = "outer", .pool = stage->pool);
    for (unsigned i = 0; i < LEARNING; i++) {
        ebb_step step = ebb_step_begin_under(site, stage->root, 1);
        block_of(step.region, FAR_LARGER, 64);
        assert_int_equal(ebb_step_end(step), 0);
    }
    return site;
}

/* The gap has room for it. */
static void ask_without_pages(struct stage *stage, ebb_region region) {
    (void)ebb_pool_trim(stage->pool, 0);
    size_t pages = (size_t)pool_stats_of(stage->pool).reserved.current;
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, pages), 0);
    void *block = ebb_region_alloc_zeroed(region, FAR_LARGER, 64);
    assert_true(block && ebb_region_of(block).lane == region.lane);
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 0), 0);
}

static void what_is_far_larger_than_a_survivor_takes_no_slot_of_the_outer_step(void **state) {
    struct stage *stage = *state;
    for (unsigned limited = 0; limited < 2; limited++) {
        ebb_site *outer = outer_site(stage), *inner = inner_site(stage);
        ebb_step above = ebb_step_begin_under(outer, stage->root, 1);
        ebb_step step = begin_inner(inner, above.region);
        if (limited)
            ask_without_pages(stage, step.region);
        else
            block_of(step.region, FAR_LARGER, 64);
        assert_int_equal(stats_of(above.region).blocks.current, 0);
        assert_int_equal(ebb_step_end(step), 0);
        block_of(above.region, FAR_LARGER, 64);
        assert_int_equal(ebb_step_end(above), 0);
        assert_int_equal(end(inner).tenured_wrong, 0);
        struct ebb_site_stats stats = end(outer);
        assert_int_equal(stats.hits, LEARNING - 2 + 1);
        assert_int_equal(stats.missed, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(steps_that_repeat_are_what_a_model_says),
        STAGED(steps_with_mistakes_are_what_a_model_says),
        STAGED(wild_steps_are_what_a_model_says),
        STAGED(what_is_far_larger_than_a_survivor_takes_no_slot_of_the_outer_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
