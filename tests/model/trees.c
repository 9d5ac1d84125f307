// SPDX-License-Identifier: Apache-2.0
/* trees.c - operations on regions, marks, promotions and the pool. */
#include "model/model.h"

#include <string.h>

static ebb_region handle(const struct model *model, int region) {
    return region == MODEL_NONE ? (ebb_region){NULL, 0} : model->regions[region].handle;
}

static unsigned count_open(const struct model *model) {
    unsigned count = 0;
    for (int at = 0; at < MODEL_REGIONS; at++)
        count += model->regions[at].open;
    return count;
}

/* ---- open and close ---- */

void op_open(struct model *model) {
    if (count_open(model) == MODEL_REGIONS)
        return;
    int parent = model_chance(model, 8) ? MODEL_NONE : shadow_some_region(model);
    if (parent != MODEL_NONE && model->regions[parent].depth == MODEL_DEPTH)
        return;
    size_t limit = model_chance(model, 4) ? 1000 + model_below(model, 2 << 20) : 0;
    size_t hint = model_chance(model, 4) ? model_below(model, 300000) : 0;
    bool sealed = model_chance(model, 20);
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(
            .name = "model", .pool = parent == MODEL_NONE ? model->pool : NULL,
            .parent = handle(model, parent), .hint_bytes = hint, .limit_bytes = limit,
            .sealed = sealed, .measure = model->phantom && parent == MODEL_NONE,
            .sites = model_chance(model, 6)));
    if (!ebb_region_is_open(region)) {
        bool refused = model->limited && ebb_last_error() == EBB_E_POOL_LIMIT;
        MODEL_DEMAND(model, refused || (model->faulty && ebb_last_error() == EBB_E_MEMORY));
        return;
    }
    int at = shadow_open(model, region, parent, limit, sealed);
    model_say(model, "region %d: open under %d, limit %zu, hint %zu", at, parent, limit, hint);
    MODEL_DEMAND(model, parent == MODEL_NONE ||
                            ebb_region_is_ancestor(handle(model, parent), region));
    shadow_check_region(model, at);
}

void op_close(struct model *model) {
    int region = shadow_some_region(model);
    if (region == MODEL_NONE || (model->regions[region].depth == 1 && !model_chance(model, 5)))
        return;
    int parent = model->regions[region].parent;
    bool strict = model_chance(model, 4);
    bool bare = model->regions[region].blocks.current == 0;
    for (int at = 0; at < MODEL_REGIONS; at++)
        bare &= !model->regions[at].open || model->regions[at].parent != region;
    int result = strict ? ebb_region_close_strict(handle(model, region))
                        : ebb_region_close(handle(model, region));
    model_say(model, "region %d: close%s: %d", region, strict ? " strictly" : "", result);
    if (strict && !bare) {
        MODEL_DEMAND(model, result == EBB_E_CHILD_OPEN || result == EBB_E_LIVE_BLOCKS);
        shadow_check_region(model, region);
        return;
    }
    MODEL_DEMAND(model, result == 0);
    shadow_close(model, region);
    if (parent != MODEL_NONE)
        shadow_check_region(model, parent);
}

void op_reset(struct model *model) {
    int region = shadow_some_region(model);
    if (region == MODEL_NONE)
        return;
    size_t keep = model_chance(model, 3)   ? EBB_KEEP_ALL
                  : model_chance(model, 2) ? 0
                                           : model_below(model, 1 << 20);
    model_say(model, "region %d: reset, keep %zu", region, keep);
    MODEL_DEMAND(model, ebb_region_reset(handle(model, region), keep) == 0);
    for (int at = 0; at < MODEL_REGIONS; at++)
        if (model->regions[at].open && model->regions[at].parent == region)
            shadow_close(model, at);
    shadow_clear(model, region);
    shadow_check_region(model, region);
}

void op_seal(struct model *model) {
    int region = shadow_some_region(model);
    if (region == MODEL_NONE || model->regions[region].depth < 3)
        return;
    model_say(model, "region %d: seal", region);
    MODEL_DEMAND(model, ebb_region_seal(handle(model, region)) == 0);
    model->regions[region].sealed = true;
}

/* ---- marks ---- */

void op_mark(struct model *model) {
    int region = shadow_some_region(model);
    if (region == MODEL_NONE || model->regions[region].mark_count == MODEL_MARKS)
        return;
    struct shadow_region *at = &model->regions[region];
    model_say(model, "region %d: mark %u", region, at->mark_count);
    struct shadow_mark mark = {ebb_region_mark(at->handle), ++model->now};
    if (mark.mark.serial)
        at->marks[at->mark_count++] = mark;
    else
        MODEL_DEMAND(model, model->faulty && ebb_last_error() == EBB_E_MEMORY);
    shadow_check_region(model, region);
}

void op_rewind(struct model *model) {
    int region = shadow_some_region(model);
    if (region == MODEL_NONE || model->regions[region].mark_count == 0)
        return;
    struct shadow_region *at = &model->regions[region];
    unsigned to = (unsigned)model_below(model, at->mark_count);
    struct shadow_mark newest = at->marks[at->mark_count - 1];
    model_say(model, "region %d: rewind to mark %u of %u", region, to, at->mark_count);
    MODEL_DEMAND(model, ebb_region_rewind(at->handle, at->marks[to].mark) == 0);
    shadow_rewind(model, region, at->marks[to].when);
    at->mark_count = to;
    shadow_check_region(model, region);
    MODEL_DEMAND(model, ebb_region_rewind(at->handle, newest.mark) == EBB_E_MARK);
}

/* ---- promotions ---- */

static int find_block(const struct model *model, const void *address) {
    for (unsigned i = 0; i < model->block_count; i++)
        if (model->blocks[i].addr == address)
            return (int)i;
    return MODEL_NONE;
}

static bool is_listed(const struct listing *listing, const void *address) {
    for (size_t i = 0; i < listing->count; i++)
        if (listing->before[i].addr == address)
            return true;
    return false;
}

/* Some blocks of the source and now and then one that the target owns already. */
static void fill_list(struct model *model, struct listing *listing) {
    size_t most = 1 + model_below(model, MODEL_LISTED);
    while (listing->count < most) {
        int from = model_chance(model, 15) ? listing->target : listing->source;
        int block = shadow_some_block_of(model, from);
        if (block == MODEL_NONE || is_listed(listing, model->blocks[block].addr))
            break;
        struct ebb_survivor *survivor = &listing->list[listing->count];
        *survivor = (struct ebb_survivor){.block = model->blocks[block].addr};
        survivor->mode = (int)model_below(model, 3);
        survivor->pin_percent = model_chance(model, 2) ? (uint16_t)model_below(model, 200) : 0;
        survivor->align = model_chance(model, 4) ? model_align(model) : 0;
        listing->before[listing->count++] = model->blocks[block];
        listing->owned += from == listing->source;
    }
}

static uint64_t count_below(const struct model *model, int region) {
    uint64_t count = 0;
    for (int at = 0; at < MODEL_REGIONS; at++)
        if (model->regions[at].open && (at == region || shadow_is_above(model, region, at)))
            count += model->regions[at].blocks.current;
    return count;
}

bool listing_make(struct model *model, struct listing *listing) {
    int source = shadow_some_region(model), target = source;
    if (source == MODEL_NONE || model->phantom || model->block_count + MODEL_LISTED > MODEL_BLOCKS)
        return false;
    unsigned up = 1 + (unsigned)model_below(model, model->regions[source].depth);
    while (up-- && model->regions[target].parent != MODEL_NONE)
        target = model->regions[target].parent;
    *listing = (struct listing){.source = source, .target = target,
                                .alive = count_below(model, source)};
    fill_list(model, listing);
    return true;
}

/* The list was promoted: the shadow follows what each entry says became of it. */
static void follow_one(struct model *model, int target, const struct ebb_survivor *survivor,
                       const struct shadow_block *before) {
    int at = find_block(model, before->addr);
    if (before->owner == target) {
        MODEL_DEMAND(model, survivor->block == before->addr);
    } else if (survivor->mode == EBB_PROMOTE_RELINK) {
        MODEL_DEMAND(model, survivor->block == before->addr);
        shadow_move(model, at, target);
    } else {
        struct shadow_block copy = *before;
        size_t natural = (uintptr_t)before->addr & (~(uintptr_t)before->addr + 1);
        copy.align = survivor->align ? survivor->align : natural < 64 ? natural : 64;
        MODEL_DEMAND(model, survivor->block != before->addr);
        shadow_add_copy(model, target, survivor->block, &copy);
        int added = (int)model->block_count - 1;
        shadow_read(model, &model->blocks[added], copy.bytes);
    }
}

void listing_follow(struct model *model, const struct listing *listing) {
    if (listing->source == listing->target)
        return;
    /* copies are all made before anything is relinked: that is what the peaks see */
    for (int relinks = 0; relinks < 2; relinks++)
        for (size_t i = 0; i < listing->count; i++)
            if ((listing->list[i].mode == EBB_PROMOTE_RELINK) == relinks)
                follow_one(model, listing->target, &listing->list[i], &listing->before[i]);
}

/* It failed: no entry changed, and there was a reason. */
void listing_check_failure(const struct model *model, const struct listing *listing, int result) {
    if (model->regions[listing->target].sealed && listing->source != listing->target)
        MODEL_DEMAND(model, result == EBB_E_SEALED);
    else
        MODEL_DEMAND(model, result == EBB_E_REGION_LIMIT || result == EBB_E_POOL_LIMIT ||
                                (model->faulty && result == EBB_E_MEMORY));
    for (size_t i = 0; i < listing->count; i++)
        MODEL_DEMAND(model, listing->list[i].block == listing->before[i].addr);
}

void listing_check_end(const struct model *model, const struct listing *listing,
                       const struct ebb_promoted *cost, uint64_t lost) {
    MODEL_DEMAND(model, lost == listing->alive - listing->owned);
    MODEL_DEMAND(model, cost->copied_blocks + cost->relinked_blocks == listing->owned);
}

void op_promote(struct model *model) {
    static _Thread_local struct listing listing;
    struct ebb_promoted cost = {0};
    if (!listing_make(model, &listing))
        return;
    int source = listing.source, target = listing.target;
    int result = ebb_promote(handle(model, source), handle(model, target), listing.list,
                             listing.count, &cost);
    model_say(model, "region %d: promote %zu to %d: %d", source, listing.count, target, result);
    if (result == 0)
        listing_follow(model, &listing);
    else
        listing_check_failure(model, &listing, result);
    shadow_check_region(model, source);
    shadow_check_region(model, target);
}

void op_close_keeping(struct model *model) {
    static _Thread_local struct listing listing;
    struct ebb_promoted cost = {0};
    uint64_t lost = 0;
    if (!listing_make(model, &listing) || listing.source == listing.target)
        return;
    int source = listing.source, target = listing.target;
    int result = ebb_close_keeping(handle(model, source), handle(model, target), listing.list,
                                   listing.count, &cost, &lost);
    model_say(model, "region %d: close keeping %zu in %d: %d", source, listing.count, target,
              result);
    if (result == 0) {
        listing_follow(model, &listing);
        shadow_close(model, source);
        listing_check_end(model, &listing, &cost, lost);
    } else {
        listing_check_failure(model, &listing, result);
        shadow_check_region(model, source);
    }
    shadow_check_region(model, target);
}

/* ---- pool ---- */

void op_trim(struct model *model) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    size_t target = model_chance(model, 2) ? 0 : model_below(model, 8 << 20);
    if (model->phantom)
        return;
    model_say(model, "trim to %zu", target);
    size_t left = 1;
    ebb_pool_trim_within(model->pool, target, 0, &left);
    if (model->shared || model->faulty)
        return;
    MODEL_DEMAND(model, ebb_pool_read_stats(model->pool, &stats) == 0);
    MODEL_DEMAND(model, left == 0);
    /* pinned memory comes in slabs, some of which are in use */
    MODEL_DEMAND(model, stats.cached <= target || ebb_pool_pinning(model->pool, NULL));
}

void op_limit(struct model *model) {
    if (!model->limited || model->shared)
        return;
    size_t limit = model_chance(model, 3) ? 0 : (1 << 20) + model_below(model, 64 << 20);
    model_say(model, "limit reserved to %zu", limit);
    MODEL_DEMAND(model, ebb_pool_set_reserved_limit(model->pool, limit) == 0);
}

/* Not where other threads open regions: the slot of a stale handle may be in use by one of them. */
void op_use_closed(struct model *model) {
    if (model->closed_count == 0 || (model->shared && !model->phantom))
        return;
    size_t known = model->closed_count < MODEL_GHOSTS ? model->closed_count : MODEL_GHOSTS;
    ebb_region closed = model->closed[model_below(model, known)];
    MODEL_DEMAND(model, !ebb_region_is_open(closed));
    MODEL_DEMAND(model, !ebb_region_alloc(closed, model_below(model, 2000), 16));
    MODEL_DEMAND(model, ebb_last_error() == EBB_E_STALE);
    MODEL_DEMAND(model, ebb_region_close(closed) == EBB_E_STALE);
}
