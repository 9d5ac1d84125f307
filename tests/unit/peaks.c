// SPDX-License-Identifier: Apache-2.0
/*
 * peaks.c - the small lane looks at the peaks of its counters only now and then. Programs drawn at
 * random, near and far from their peaks, are compared with a model that looks after every call.
 * Statistics are read at the end alone: whoever reads makes the lane look.
 */
#include "kit/test.h"

#include <string.h>

enum { BLOCKS = 600, CALLS = 4000, PROGRAMS = 200 };

struct quantity {
    uint64_t now, peak, total;
};

struct model {
    uint64_t seed;
    ebb_region region;
    size_t most, count; /* blocks: how many live at most, and now; newest last */
    struct {
        char *at;
        size_t bytes;
    } block[BLOCKS];
    struct quantity blocks, requested, used;
    ebb_mark mark;
    size_t marked; /* blocks that are older than the mark */
    size_t habit;  /* sizes that are asked for at present */
    bool aligned;  /* blocks have large alignments: padding counts as used, and is not modelled */
};

static size_t below(struct model *model, size_t end) {
    model->seed = model->seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(model->seed >> 33) % end;
}

static size_t step_of(size_t bytes) {
    return bytes ? (bytes + 15) / 16 * 16 : 16;
}

static void change(struct quantity *quantity, size_t from, size_t to) {
    quantity->now = quantity->now - from + to;
    if (to > from)
        quantity->total += to - from;
    if (quantity->now > quantity->peak)
        quantity->peak = quantity->now;
}

static void change_block(struct model *model, bool lived, size_t from, bool lives, size_t to) {
    change(&model->blocks, lived, lives);
    change(&model->requested, lived ? from : 0, lives ? to : 0);
    change(&model->used, lived ? step_of(from) : 0, lives ? step_of(to) : 0);
}

/* With full granules, then with hardly begun ones: what is used and what was requested have their
 * peaks at different times. */
static size_t draw_bytes(struct model *model) {
    size_t bytes = below(model, 8) ? below(model, 120) : below(model, 1008);
    if (!below(model, 200))
        model->habit = below(model, 3);
    return model->habit == 0 ? bytes : bytes / 16 * 16 + (model->habit == 1);
}

static void allocate(struct model *model) {
    size_t bytes = draw_bytes(model);
    size_t align = (size_t)1 << below(model, model->aligned ? 7 : 5);
    char *at = below(model, 4) ? ebb_region_alloc(model->region, bytes, align)
                               : ebb_region_alloc_zeroed(model->region, bytes, align);
    assert_non_null(at);
    memset(at, (int)(bytes & 0xff), bytes);
    model->block[model->count].at = at;
    model->block[model->count++].bytes = bytes;
    change_block(model, false, 0, true, bytes);
}

static void check_bytes(const struct model *model, size_t i) {
    for (size_t k = 0; k < model->block[i].bytes; k += 7)
        assert_int_equal((unsigned char)model->block[i].at[k], model->block[i].bytes & 0xff);
}

/* A block that a rewind would not bring back. */
static void release(struct model *model, size_t i) {
    check_bytes(model, i);
    assert_int_equal(ebb_region_release(model->region, model->block[i].at), 0);
    change_block(model, true, model->block[i].bytes, false, 0);
    model->count--;
    model->marked -= i < model->marked;
    memmove(model->block + i, model->block + i + 1, (model->count - i) * sizeof *model->block);
}

static void fill(struct model *model, size_t i, char *at, size_t bytes) {
    model->block[i].at = at;
    model->block[i].bytes = bytes;
    memset(at, (int)(bytes & 0xff), bytes);
}

static void resize(struct model *model, size_t i) {
    size_t old = model->block[i].bytes;
    size_t bytes = below(model, 2) ? draw_bytes(model) : step_of(old) - below(model, 16);
    check_bytes(model, i);
    if (ebb_region_resize(model->region, model->block[i].at, bytes) != 0)
        return;
    change_block(model, true, old, true, bytes);
    fill(model, i, model->block[i].at, bytes);
}

/* Where it moves, both blocks are there for a while. */
static void reallocate(struct model *model, size_t i) {
    size_t bytes = draw_bytes(model), old = model->block[i].bytes;
    char *at = ebb_region_realloc(model->region, model->block[i].at, bytes, 16);
    assert_non_null(at);
    if (at == model->block[i].at) {
        change_block(model, true, old, true, bytes);
    } else {
        change_block(model, false, 0, true, bytes);
        change_block(model, true, old, false, 0);
    }
    fill(model, i, at, bytes);
}

static void mark_or_rewind(struct model *model) {
    if (!model->mark.serial) {
        model->mark = ebb_region_mark(model->region);
        assert_true(model->mark.serial != 0);
        model->marked = model->count;
        return;
    }
    assert_int_equal(ebb_region_rewind(model->region, model->mark), 0);
    while (model->count > model->marked)
        change_block(model, true, model->block[--model->count].bytes, false, 0);
    model->mark = (ebb_mark){0};
    model->marked = 0;
}

static void reset(struct model *model) {
    assert_int_equal(ebb_region_reset(model->region, EBB_KEEP_ALL), 0);
    while (model->count)
        change_block(model, true, model->block[--model->count].bytes, false, 0);
    model->mark = (ebb_mark){0};
    model->marked = 0;
}

/* `moves`: blocks get other sizes. A block that moves is as old as its new place. */
static void call(struct model *model, bool marks, bool moves) {
    size_t kind = below(model, 1000);
    bool grows = model->count < model->most && below(model, model->most) + 1 >= model->count / 2;
    if (marks && kind < 8)
        mark_or_rewind(model);
    else if (kind == 8)
        reset(model);
    else if (model->count && moves && kind < 200)
        resize(model, kind < 100 ? model->count - 1 : below(model, model->count));
    else if (model->count && moves && !model->mark.serial && kind < 260)
        reallocate(model, below(model, model->count));
    else if (model->count && (!grows || kind < 600))
        release(model, kind % 2 ? model->count - 1 : below(model, model->count));
    else if (model->count < model->most)
        allocate(model);
}

static void assert_meter(struct ebb_meter meter, const struct quantity *quantity) {
    assert_int_equal(meter.current, quantity->now);
    assert_int_equal(meter.peak, quantity->peak);
    assert_int_equal(meter.total, quantity->total);
}

static void play(struct model *model, size_t calls, bool marks, bool moves) {
    for (size_t i = 0; i < calls; i++)
        call(model, marks, moves);
    struct ebb_region_stats stats = stats_of(model->region);
    assert_meter(stats.blocks, &model->blocks);
    assert_meter(stats.requested, &model->requested);
    if (!model->aligned)
        assert_meter(stats.used, &model->used);
    for (size_t i = 0; i < model->count; i++)
        check_bytes(model, i);
}

static void play_all(struct stage *stage, bool marks, bool moves) {
    for (uint64_t program = 0; program < PROGRAMS; program++) {
        static struct model model;
        model = (struct model){.seed = program * 4 + marks * 2u + moves};
        model.region = OPEN(.parent = stage->root);
        model.aligned = program % 4 == 3;
        model.most = 1 + below(&model, program % 3 ? 40 : BLOCKS - 1);
        play(&model, 1 + below(&model, CALLS), marks, moves);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_region_close(model.region), 0);
    }
}

static void peaks_are_exact_whoever_comes_and_leaves(void **state) {
    play_all(*state, false, false);
}

static void peaks_are_exact_when_sizes_change(void **state) {
    play_all(*state, false, true);
}

static void peaks_are_exact_over_marks_and_rewinds(void **state) {
    play_all(*state, true, false);
    play_all(*state, true, true);
}

/* The lane has just looked, and knows how far it may come; then a block that it saw grows inside
 * its granule, and so much less may come. */
static void growth_without_a_step_counts(void **state) {
    struct stage *stage = *state;
    void *old[8];
    for (int i = 0; i < 8; i++)
        old[i] = ebb_region_alloc(stage->root, 16, 16);
    void *small = ebb_region_alloc(stage->root, 1, 16);
    assert_non_null(ebb_region_alloc(stage->root, 16, 16));
    for (int i = 0; i < 4; i++) /* the first is a look: 145 bytes so far */
        assert_int_equal(ebb_region_release(stage->root, old[i]), 0);
    assert_int_equal(ebb_region_release(stage->root, small), 0);
    assert_non_null(ebb_region_alloc(stage->root, 16, 16));
    void *top = ebb_region_alloc(stage->root, 1, 16);
    assert_int_equal(ebb_region_release(stage->root, old[4]), 0); /* a look: 81 are left */
    assert_int_equal(ebb_region_resize(stage->root, top, 16), 0);
    for (int i = 0; i < 4; i++)
        assert_non_null(ebb_region_alloc(stage->root, 16, 16));
    assert_int_equal(ebb_region_release(stage->root, old[5]), 0);
    assert_int_equal(stats_of(stage->root).requested.peak, 160);
    assert_int_equal(stats_of(stage->root).used.peak, 160);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(peaks_are_exact_whoever_comes_and_leaves),
        STAGED(peaks_are_exact_when_sizes_change),
        STAGED(peaks_are_exact_over_marks_and_rewinds),
        STAGED(growth_without_a_step_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
