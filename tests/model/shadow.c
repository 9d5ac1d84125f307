// SPDX-License-Identifier: Apache-2.0
/* shadow.c - the shadow's own state, and the comparison with what ebb says. */
#include "kit/test.h"
#include "model/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void model_demand(const struct model *model, bool holds, const char *claim, const char *file,
                  int line) {
    if (holds)
        return;
    fprintf(stderr, "%s:%d: %s\n  at operation %llu; last error: %s\n  replay: EBB_SEED=%llu\n",
            file, line, claim, (unsigned long long)model->op, ebb_last_error_text(),
            (unsigned long long)model->seed);
    _exit(1);
}

void model_say(const struct model *model, const char *format, ...) {
    va_list arguments;
    if (!model->trace)
        return;
    fprintf(stderr, "%llu: ", (unsigned long long)model->op);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

/* ---- meters ---- */

static void enter(struct shadow_meter *meter, uint64_t amount) {
    meter->current += amount;
    meter->total += amount;
    if (meter->current > meter->peak)
        meter->peak = meter->current;
}

static void change(struct shadow_meter *meter, uint64_t from, uint64_t to) {
    if (to > from)
        enter(meter, to - from);
    else
        meter->current -= from - to;
}

/* ---- choosing ---- */

int shadow_some_region(struct model *model) {
    size_t start = model_below(model, MODEL_REGIONS);
    for (size_t i = 0; i < MODEL_REGIONS; i++) {
        size_t at = (start + i) % MODEL_REGIONS;
        if (model->regions[at].open)
            return (int)at;
    }
    return MODEL_NONE;
}

int shadow_some_block(struct model *model) {
    return model->block_count ? (int)model_below(model, model->block_count) : MODEL_NONE;
}

int shadow_some_block_of(struct model *model, int region) {
    size_t start = model->block_count ? model_below(model, model->block_count) : 0;
    for (size_t i = 0; i < model->block_count; i++) {
        size_t at = (start + i) % model->block_count;
        if (model->blocks[at].owner == region)
            return (int)at;
    }
    return MODEL_NONE;
}

bool shadow_is_above(const struct model *model, int ancestor, int region) {
    while (region != MODEL_NONE)
        if ((region = model->regions[region].parent) == ancestor)
            return ancestor != MODEL_NONE;
    return false;
}

/* ---- regions ---- */

int shadow_open(struct model *model, ebb_region handle, int parent, size_t limit, bool sealed) {
    int at = 0;
    while (model->regions[at].open)
        at++;
    model->regions[at] = (struct shadow_region){
        .handle = handle, .open = true, .opened = ++model->now, .parent = parent,
        .limit = limit, .sealed = sealed,
        .depth = parent == MODEL_NONE ? 1 : model->regions[parent].depth + 1};
    return at;
}

void shadow_close(struct model *model, int region) {
    for (int at = 0; at < MODEL_REGIONS; at++)
        if (model->regions[at].open && model->regions[at].parent == region)
            shadow_close(model, at);
    shadow_clear(model, region);
    model->regions[region].open = false;
    model->closed[model->closed_count++ % MODEL_GHOSTS] = model->regions[region].handle;
}

/* ---- blocks ---- */

void shadow_add(struct model *model, int region, void *block, size_t bytes, size_t align) {
    struct shadow_block added = {.addr = block, .bytes = bytes, .align = align,
                                 .seed = (unsigned)model_random(model), .owner = region};
    MODEL_DEMAND(model, (uintptr_t)block % align == 0);
    shadow_write(model, &added);
    shadow_add_copy(model, region, block, &added);
}

void shadow_add_copy(struct model *model, int region, void *block, const struct shadow_block *of) {
    MODEL_DEMAND(model, block && model->block_count < MODEL_BLOCKS);
    struct shadow_block *added = &model->blocks[model->block_count++];
    *added = *of;
    added->addr = block;
    added->owner = region;
    added->got = ++model->now;
    model->bytes += added->bytes;
    enter(&model->regions[region].blocks, 1);
    enter(&model->regions[region].requested, added->bytes);
}

void shadow_remove(struct model *model, int block) {
    struct shadow_block *gone = &model->blocks[block];
    struct shadow_region *owner = &model->regions[gone->owner];
    change(&owner->blocks, 1, 0);
    change(&owner->requested, gone->bytes, 0);
    model->bytes -= gone->bytes;
    model->ghosts[model->ghost_count++ % MODEL_GHOSTS] = gone->addr;
    *gone = model->blocks[--model->block_count];
}

void shadow_resize(struct model *model, int block, size_t bytes) {
    struct shadow_block *resized = &model->blocks[block];
    change(&model->regions[resized->owner].requested, resized->bytes, bytes);
    model->bytes += bytes - resized->bytes;
    resized->bytes = bytes;
    shadow_write(model, resized);
}

void shadow_rewind(struct model *model, int region, uint64_t when) {
    for (unsigned at = 0; at < model->block_count;)
        if (model->blocks[at].owner == region && model->blocks[at].got > when)
            shadow_remove(model, (int)at);
        else
            at++;
}

void shadow_clear(struct model *model, int region) {
    shadow_rewind(model, region, 0);
    model->regions[region].mark_count = 0;
}

void shadow_move(struct model *model, int block, int region) {
    struct shadow_block *moved = &model->blocks[block];
    struct shadow_region *from = &model->regions[moved->owner];
    change(&from->blocks, 1, 0);
    change(&from->requested, moved->bytes, 0);
    moved->owner = region;
    moved->got = ++model->now;
    enter(&model->regions[region].blocks, 1);
    enter(&model->regions[region].requested, moved->bytes);
}

/* ---- contents ---- */

void shadow_write(const struct model *model, struct shadow_block *block) {
    if (!model->phantom)
        pattern_fill(block->addr, block->bytes, block->seed);
}

void shadow_read(const struct model *model, const struct shadow_block *block, size_t bytes) {
    if (!model->phantom)
        MODEL_DEMAND(model, pattern_holds(block->addr, bytes, block->seed));
}

/* ---- comparing ---- */

static bool is_same(const struct shadow_meter *ours, const struct ebb_meter *theirs) {
    return ours->current == theirs->current && ours->peak == theirs->peak &&
           ours->total == theirs->total;
}

static unsigned count_children(const struct model *model, int region) {
    unsigned count = 0;
    for (int at = 0; at < MODEL_REGIONS; at++)
        count += model->regions[at].open && model->regions[at].parent == region;
    return count;
}

static struct ebb_region_stats region_stats(const struct model *model, int region) {
    struct ebb_region_stats stats = {.size = sizeof stats};
    MODEL_DEMAND(model, ebb_region_read_stats(model->regions[region].handle, &stats) == 0);
    return stats;
}

void shadow_check_region(const struct model *model, int region) {
    const struct shadow_region *ours = &model->regions[region];
    if (!ours->open)
        return;
    struct ebb_region_stats stats = region_stats(model, region);
    MODEL_DEMAND(model, is_same(&ours->blocks, &stats.blocks));
    MODEL_DEMAND(model, is_same(&ours->requested, &stats.requested));
    MODEL_DEMAND(model, stats.used.current >= stats.requested.current);
    MODEL_DEMAND(model, stats.used.peak >= stats.used.current);
    MODEL_DEMAND(model, stats.small_blocks + stats.large_blocks == stats.blocks.total);
    MODEL_DEMAND(model, stats.children == count_children(model, region));
    MODEL_DEMAND(model, stats.limit == (model->phantom ? 0 : ours->limit));
    MODEL_DEMAND(model, !stats.limit || stats.subtree_used <= stats.limit);
}

static uint64_t used_below(const struct model *model, int region) {
    uint64_t used = 0;
    for (int at = 0; at < MODEL_REGIONS; at++)
        if (model->regions[at].open && (at == region || shadow_is_above(model, region, at)))
            used += region_stats(model, at).used.current;
    return used;
}

static int by_address(const void *a, const void *b) {
    const struct shadow_block *left = a, *right = b;
    return left->addr < right->addr ? -1 : left->addr > right->addr;
}

static void check_overlap(const struct model *model) {
    static _Thread_local struct shadow_block sorted[MODEL_BLOCKS];
    memcpy(sorted, model->blocks, model->block_count * sizeof *sorted);
    qsort(sorted, model->block_count, sizeof *sorted, by_address);
    for (unsigned i = 1; i < model->block_count; i++) {
        size_t bytes = sorted[i - 1].bytes ? sorted[i - 1].bytes : 1;
        MODEL_DEMAND(model, sorted[i - 1].addr + bytes <= sorted[i].addr);
    }
}

static void check_block(const struct model *model, const struct shadow_block *block) {
    ebb_region owner = model->regions[block->owner].handle;
    shadow_read(model, block, block->bytes);
    MODEL_DEMAND(model, (uintptr_t)block->addr % block->align == 0);
    MODEL_DEMAND(model, ebb_region_block_bytes(owner, block->addr) == block->bytes);
}

static void check_pool(const struct model *model) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    uint64_t blocks = 0, requested = 0, used = 0, owned = 0, pinned = 0;
    MODEL_DEMAND(model, ebb_check_pool(model->pool) == 0);
    MODEL_DEMAND(model, ebb_pool_read_stats(model->pool, &stats) == 0);
    for (int at = 0; at < MODEL_REGIONS; at++)
        if (model->regions[at].open) {
            struct ebb_region_stats region = region_stats(model, at);
            blocks += model->regions[at].blocks.current;
            requested += model->regions[at].requested.current;
            used += region.used.current;
            owned += region.reserved.current;
            pinned += region.pinned;
        }
    MODEL_DEMAND(model, stats.blocks.current == blocks && stats.used.current == used);
    MODEL_DEMAND(model, stats.requested.current == requested);
    MODEL_DEMAND(model, stats.owned == owned && stats.pinned == pinned);
    MODEL_DEMAND(model, stats.used.current + stats.waste + stats.cached == stats.reserved.current);
}

void shadow_check_all(struct model *model) {
    check_overlap(model);
    for (unsigned i = 0; i < model->block_count; i++)
        check_block(model, &model->blocks[i]);
    for (int at = 0; at < MODEL_REGIONS; at++) {
        if (!model->regions[at].open)
            continue;
        shadow_check_region(model, at);
        struct ebb_region_stats stats = region_stats(model, at);
        MODEL_DEMAND(model, !stats.limit || stats.subtree_used == used_below(model, at));
    }
    if (!model->shared && !model->phantom)
        check_pool(model);
}

/* ---- limits ---- */

static bool any_limit(const struct model *model, int region, size_t used) {
    for (; region != MODEL_NONE; region = model->regions[region].parent) {
        if (!model->regions[region].limit || model->phantom)
            continue;
        struct ebb_region_stats stats = region_stats(model, region);
        if (used > stats.limit - stats.subtree_used)
            return true;
    }
    return false;
}

bool shadow_may_refuse(const struct model *model, int region, size_t used) {
    return any_limit(model, region, used + 64); /* padding in front of the block */
}

bool shadow_must_refuse(const struct model *model, int region, size_t used) {
    return any_limit(model, region, used);
}
