// SPDX-License-Identifier: Apache-2.0
/* play.c - random numbers, and one model from its seed to the end. */
#include "model/model.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- random numbers ---- */

uint64_t model_random(struct model *model) {
    uint64_t z = model->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

size_t model_below(struct model *model, size_t n) {
    return (size_t)(model_random(model) % n);
}

bool model_chance(struct model *model, size_t one_in) {
    return model_below(model, one_in) == 0;
}

size_t model_size(struct model *model) {
    static const size_t edges[] = {0,    1,    15,   16,   17,    31,    1023,  1024,
                                   1025, 1087, 1088, 1089, 4095,  4096,  4097,  8191,
                                   8192, 8193, 16367, 16368, 32768, 65535, 65536, 65537};
    switch (model_below(model, 20)) {
    case 0:
    case 1:
        return edges[model_below(model, sizeof edges / sizeof *edges)];
    case 2:
        return model_below(model, 400000);
    case 3:
    case 4:
        return model_below(model, 40000);
    case 5:
    case 6:
        return model_below(model, 5000);
    default:
        return model_below(model, model_chance(model, 3) ? 1100 : 200);
    }
}

size_t model_align(struct model *model) {
    size_t most = model_chance(model, 50) ? 22 : model_chance(model, 6) ? 13 : 7;
    return (size_t)1 << model_below(model, most);
}

/* ---- playing ---- */

static const struct act all_acts[] = {
    {op_alloc, 300},  {op_release, 215}, {op_resize, 60},   {op_realloc, 50},
    {op_open, 40},    {op_close, 12},    {op_reset, 4},     {op_seal, 1},
    {op_mark, 16},    {op_rewind, 10},   {op_promote, 24},  {op_close_keeping, 10},
    {op_trim, 2},     {op_limit, 2},     {op_use_closed, 4}, {op_release_ghost, 30},
};

void model_act(struct model *model, const struct act *acts, size_t count) {
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += acts[i].weight;
    size_t pick = model_below(model, sum), at = 0;
    while (pick >= acts[at].weight)
        pick -= acts[at++].weight;
    acts[at].act(model);
}

static void end(struct model *model) {
    shadow_check_all(model);
    for (int at = 0; at < MODEL_REGIONS; at++)
        if (model->regions[at].open && model->regions[at].parent == MODEL_NONE) {
            MODEL_DEMAND(model, ebb_region_close(model->regions[at].handle) == 0);
            shadow_close(model, at);
        }
    MODEL_DEMAND(model, model->block_count == 0 && model->bytes == 0);
    for (unsigned i = 0; !model->shared && i < MODEL_GHOSTS && i < model->closed_count; i++)
        MODEL_DEMAND(model, !ebb_region_is_open(model->closed[i]));
}

static _Thread_local const struct model *playing;

/* The library ended the process, or the model touched what it must not: say how to replay it. */
static void say_where(int signal_number) {
    char line[128];
    int length = snprintf(line, sizeof line, "  at operation %llu; replay: EBB_SEED=%llu\n",
                          playing ? (unsigned long long)playing->op : 0,
                          playing ? (unsigned long long)playing->seed : 0);
    if (write(STDERR_FILENO, line, (size_t)length) < length)
        _exit(2);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

struct model *model_begin(uint64_t seed, ebb_pool *pool, unsigned flags) {
    struct model *model = calloc(1, sizeof *model);
    if (!model)
        abort();
    *model = (struct model){.seed = seed, .state = seed, .pool = pool, .phantom = pool == NULL};
    model->shared = flags & MODEL_SHARED;
    model->limited = flags & MODEL_LIMITED;
    model->faulty = flags & MODEL_FAULTY;
    model->trace = getenv("EBB_TRACE") != NULL;
    playing = model;
    signal(SIGABRT, say_where);
    return model;
}

void model_end(struct model *model) {
    playing = NULL;
    free(model);
}

void model_play(uint64_t seed, uint64_t ops, ebb_pool *pool, unsigned flags) {
    struct model *model = model_begin(seed, pool, flags);
    for (model->op = 0; model->op < ops; model->op++) {
        model_act(model, all_acts, sizeof all_acts / sizeof *all_acts);
        if (model->op % 500 == 499 || (model->trace && !model->shared))
            shadow_check_all(model);
    }
    end(model);
    model_end(model);
}
