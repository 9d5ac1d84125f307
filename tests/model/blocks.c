// SPDX-License-Identifier: Apache-2.0
/* blocks.c - operations on blocks. Each does one thing to ebb and the same to the shadow. */
#include "model/model.h"

#include <string.h>

/* What a block takes, as rounded, without padding. */
static size_t rounded(size_t bytes, size_t align) {
    if (bytes <= EBB_SMALL_MAX_BYTES && align <= EBB_SMALL_MAX_ALIGN)
        return bytes ? (bytes + 15) / 16 * 16 : 16;
    return bytes <= 1024 ? 1024 : (bytes + 63) / 64 * 64;
}

static bool is_limit(int code) {
    return code == EBB_E_REGION_LIMIT || code == EBB_E_POOL_LIMIT;
}

/* A request of `used` bytes failed: something must have allowed it to. */
static void check_refusal(const struct model *model, int region, size_t used) {
    int code = ebb_last_error();
    if (model->regions[region].sealed)
        MODEL_DEMAND(model, code == EBB_E_SEALED);
    else if (code == EBB_E_POOL_LIMIT)
        MODEL_DEMAND(model, model->limited);
    else if (code == EBB_E_MEMORY)
        MODEL_DEMAND(model, model->faulty);
    else
        MODEL_DEMAND(model, code == EBB_E_REGION_LIMIT && shadow_may_refuse(model, region, used));
}

static void *allocate(struct model *model, ebb_region region, size_t bytes, size_t align) {
    size_t way = model_below(model, 12);
    if (way == 0) {
        unsigned char *block = ebb_region_alloc_zeroed(region, bytes, align);
        for (size_t i = 0; block && !model->phantom && i < bytes; i++)
            MODEL_DEMAND(model, block[i] == 0);
        return block;
    }
    if (way == 1 && bytes % 8 == 0)
        return ebb_region_alloc_array(region, bytes / 8, 8, align);
    if (way == 2)
        return ebb_region_realloc(region, NULL, bytes, align);
    return ebb_region_alloc(region, bytes, align);
}

void op_alloc(struct model *model) {
    int region = shadow_some_region(model);
    size_t bytes = model_size(model), align = model_align(model);
    if (region == MODEL_NONE || model->block_count + 40 > MODEL_BLOCKS ||
        model->bytes + bytes > MODEL_MOST_BYTES)
        return;
    size_t used = rounded(bytes, align);
    bool must = shadow_must_refuse(model, region, used);
    void *block = allocate(model, model->regions[region].handle, bytes, align);
    model_say(model, "region %d: alloc %zu at %zu: %p", region, bytes, align, block);
    if (block) {
        MODEL_DEMAND(model, !must && !model->regions[region].sealed);
        shadow_add(model, region, block, bytes, align);
    } else {
        check_refusal(model, region, used);
    }
    shadow_check_region(model, region);
}

void op_release(struct model *model) {
    int at = shadow_some_block(model);
    if (at == MODEL_NONE)
        return;
    struct shadow_block *block = &model->blocks[at];
    int owner = block->owner;
    model_say(model, "region %d: release %p", owner, (void *)block->addr);
    shadow_read(model, block, block->bytes);
    MODEL_DEMAND(model, ebb_region_release(model->regions[owner].handle, block->addr) == 0);
    shadow_remove(model, at);
    shadow_check_region(model, owner);
}

void op_resize(struct model *model) {
    int at = shadow_some_block(model);
    if (at == MODEL_NONE)
        return;
    struct shadow_block *block = &model->blocks[at];
    int owner = block->owner;
    size_t bytes = model_chance(model, 2) ? model_below(model, block->bytes + 1)
                                          : block->bytes + model_below(model, 3000);
    int result = ebb_region_resize(model->regions[owner].handle, block->addr, bytes);
    model_say(model, "region %d: resize %p from %zu to %zu: %d", owner, (void *)block->addr,
              block->bytes, bytes, result);
    if (result == 0) {
        shadow_read(model, block, block->bytes < bytes ? block->bytes : bytes);
        shadow_resize(model, at, bytes);
    } else {
        MODEL_DEMAND(model, bytes > block->bytes);
        MODEL_DEMAND(model, result == EBB_E_NO_ROOM || is_limit(result));
    }
    shadow_check_region(model, owner);
}

/* In place the counters see a change of size, otherwise a new block and then a release. */
static void follow_realloc(struct model *model, int at, void *moved, size_t bytes, size_t align) {
    struct shadow_block *block = &model->blocks[at], old = *block;
    size_t common = old.bytes < bytes ? old.bytes : bytes;
    struct shadow_block now = old;
    now.addr = moved;
    now.align = align;
    shadow_read(model, &now, common);
    if (moved == old.addr) {
        block->align = align;
        shadow_resize(model, at, bytes);
        return;
    }
    now.bytes = bytes;
    shadow_write(model, &now);
    shadow_add_copy(model, old.owner, moved, &now);
    shadow_remove(model, at);
}

void op_realloc(struct model *model) {
    int at = shadow_some_block(model);
    if (at == MODEL_NONE || model->block_count + 2 > MODEL_BLOCKS)
        return;
    struct shadow_block *block = &model->blocks[at];
    int owner = block->owner;
    size_t bytes = model_size(model), align = model_align(model);
    if (model->bytes + bytes > MODEL_MOST_BYTES)
        return;
    void *moved = ebb_region_realloc(model->regions[owner].handle, block->addr, bytes, align);
    model_say(model, "region %d: realloc %p from %zu to %zu at %zu: %p", owner,
              (void *)block->addr, block->bytes, bytes, align, moved);
    if (moved) {
        MODEL_DEMAND(model, !model->regions[owner].sealed);
        follow_realloc(model, at, moved, bytes, align);
    } else {
        check_refusal(model, owner, rounded(bytes, align));
        shadow_read(model, block, block->bytes);
    }
    shadow_check_region(model, owner);
}

static bool is_live(const struct model *model, const void *address) {
    for (unsigned i = 0; i < model->block_count; i++)
        if (model->blocks[i].addr == address)
            return true;
    return false;
}

/* A block that ended: no region takes it for a live one. */
void op_release_ghost(struct model *model) {
    int region = shadow_some_region(model);
    if (region == MODEL_NONE || model->ghost_count == 0)
        return;
    size_t known = model->ghost_count < MODEL_GHOSTS ? model->ghost_count : MODEL_GHOSTS;
    void *ghost = model->ghosts[model_below(model, known)];
    if (is_live(model, ghost) || (model->shared && !model->phantom))
        return; /* in a shared pool it may be another thread's by now */
    model_say(model, "region %d: release ghost %p", region, ghost);
    int result = ebb_region_release(model->regions[region].handle, ghost);
    MODEL_DEMAND(model, result == EBB_E_FOREIGN || result == EBB_E_INTERIOR ||
                            result == EBB_E_RELEASED);
    result = ebb_region_resize(model->regions[region].handle, ghost, 10);
    MODEL_DEMAND(model, result == EBB_E_FOREIGN || result == EBB_E_INTERIOR ||
                            result == EBB_E_RELEASED);
    shadow_check_region(model, region);
}
