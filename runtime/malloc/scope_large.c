// SPDX-License-Identifier: Apache-2.0
/*
 * scope_large.c - large blocks of scopes: in the region of a step of the hidden site, planned,
 * begun when it is needed.
 *
 * What is alive at the end is promoted, by relinking, to the keeper of the heap.
 *
 * Invariant: a block's address never changes. Fails towards the general heap where there is no
 * memory.
 */
#include "malloc/general.h"
#include "malloc/scope.h"

#include "base/check.h"
#include "base/error.h"
#include "region/track.h"

#define PARKED_LEAST ((size_t)1 << 20) /* pages of a scope that serves */
#define PARKED_SHARE 8u /* and what is alive is so small a part of them */

static bool begin_step(struct scope *scope) {
    if (!scope->served || !ebb_region_is_open(heap_keeper(scope->heap)))
        return false;
    error_mute();
    scope->step = ebb_step_begin_under(scope->served->hidden, heap_keeper(scope->heap), scope->tag);
    error_unmute();
    return scope->step.lane != NULL;
}

static ebb_region region_of(const struct large *large) {
    return large->scope ? large->scope->step.region : large->heap->keeper;
}

static bool is_tenured(const struct scope *scope, const void *block) {
    const struct track *track = ((const struct region *)scope->step.region.lane)->track;
    return track && track_home(track, (uintptr_t)block);
}

static struct large **list_of(struct large *large) {
    return large->scope ? &large->scope->larges : &large->heap->kept;
}

/* Without a step, where that is not worth its cost: its site is modest, and so is this scope so
 * far. */
static bool is_for_general(struct scope *scope, size_t bytes) {
    scope->asked_bytes += bytes;
    return scope->is_modest && scope->asked_bytes <= SERVED_MODEST_BYTES && !scope->step.lane;
}

void scope_note_growth(struct scope *scope, size_t bytes_before, size_t bytes) {
    if (scope != &scope_awaited && bytes > bytes_before)
        scope->asked_bytes += bytes - bytes_before;
}

/* Its thread may do something else for long: it does not serve malloc() just now, or hardly
 * anything is left of much. */
static bool may_rest(const struct scope *scope) {
    if (scope != here.scope)
        return true;
    const struct region *region = (const struct region *)scope->step.region.lane;
    uint64_t pages = region->reserved.current;
    return pages >= PARKED_LEAST &&
           scope->alive_bytes - scope->tenured_bytes <= pages / PARKED_SHARE;
}

/* A large block has come or gone. */
static void park_again(struct scope *scope) {
    if (may_rest(scope))
        heap_park(scope);
}

/* It is, or is not any more, or has another size. */
static void note_alive(struct scope *scope, const struct large *large, size_t before, size_t now) {
    scope->alive_bytes = scope->alive_bytes - before + now;
    if (large->is_tenured)
        scope->tenured_bytes = scope->tenured_bytes - before + now;
}

/* With the keeper taken. */
static void *alloc_large(struct scope *scope, size_t bytes, size_t align) {
    struct heap *heap = scope->heap;
    if (!scope->step.lane && !begin_step(scope))
        return NULL;
    heap_unpark(scope);
    error_mute();
    void *block = ebb_region_alloc(scope->step.region, bytes, align);
    struct large *large = block ? large_add(&heap->unused, block, bytes) : NULL;
    if (block && !large)
        ebb_region_release(scope->step.region, block);
    error_unmute();
    if (large) {
        large->heap = heap;
        large->scope = scope;
        large->is_tenured = is_tenured(scope, block);
        large_link(&scope->larges, large);
        scope->large_blocks++;
        scope->large_bytes += bytes;
        note_alive(scope, large, 0, bytes);
        scope_hold_pages(scope);
    }
    park_again(scope);
    return large ? block : NULL;
}

void *scope_alloc_large(struct scope *scope, size_t bytes, size_t align) {
    if (!(scope = scope_serving(scope)) || is_for_general(scope, bytes))
        return NULL;
    struct heap *heap = scope->heap;
    heap_drain(heap);
    heap_take_keeper(heap);
    void *block = alloc_large(scope, bytes, align);
    heap_leave_keeper(heap);
    return block;
}

static void release_block(const struct large *large) {
    error_mute();
    int result = ebb_region_release(region_of(large), (void *)large->block);
    error_unmute();
    CHECK(result == 0);
}

void scope_release_large(struct large *large) {
    struct scope *scope = large->scope;
    struct heap *heap = large->heap;
    size_t bytes = large->bytes;
    heap_take_keeper(heap);
    if (scope)
        heap_unpark(scope);
    release_block(large);
    if (scope)
        note_alive(scope, large, bytes, 0);
    else
        holding_unpin(large->holding, bytes);
    large_unlink(list_of(large), large);
    large_remove(&heap->unused, large);
    if (scope)
        park_again(scope);
    heap_leave_keeper(heap);
    if (!scope && bytes)
        heap_settle_now_and_then(heap, bytes);
}

bool scope_resize_large(struct large *large, size_t bytes) {
    struct scope *scope = large->scope;
    heap_take_keeper(scope->heap);
    heap_unpark(scope);
    error_mute();
    int result = ebb_region_resize(scope->step.region, (void *)large->block, bytes);
    error_unmute();
    if (result == 0) {
        size_t more = bytes - size_smaller(bytes, large->bytes);
        scope->asked_bytes += more;
        scope->large_bytes += more;
        note_alive(scope, large, large->bytes, bytes);
        if (large->is_tenured)
            scope_hold_pages(scope);
        large->bytes = bytes;
    }
    park_again(scope);
    heap_leave_keeper(scope->heap);
    return result == 0;
}

/* ---- the end ---- */

/* What a plan served can be relinked from here on. False: no memory for it. */
static bool loosen(const struct scope *scope) {
    struct track *track = region_track((struct region *)scope->step.region.lane);
    return !track || track_dissolve(track);
}

/* Promotes what is alive of large blocks; false: no memory for it. */
static bool keep_larges(struct scope *scope) {
    size_t count = 0, bytes = 0, i = 0;
    for (const struct large *large = scope->larges; large; large = large->next) {
        count++;
        bytes += large->bytes;
    }
    struct ebb_survivor *list = loosen(scope) ? je_calloc(count, sizeof *list) : NULL;
    if (!list)
        return false;
    for (const struct large *large = scope->larges; large; large = large->next)
        list[i++] = (struct ebb_survivor){.block = (void *)large->block,
                                          .mode = EBB_PROMOTE_RELINK};
    int result = ebb_step_end_keeping(scope->step, scope->heap->keeper, list, count, NULL, NULL);
    i = 0;
    for (struct large *large = scope->larges, *next; large && result == 0; large = next) {
        next = large->next;
        CHECK((uintptr_t)list[i++].block == large->block);
        large->scope = NULL;
        large->holding = scope_holding(scope);
        holding_pin(large->holding, large->bytes);
        large_link(&scope->heap->kept, large);
    }
    je_free(list);
    if (result != 0)
        return false;
    scope->larges = NULL;
    scope_count(scope, SERVED_SURVIVED_BLOCKS, count);
    scope_count(scope, SERVED_SURVIVED_BYTES, bytes);
    return true;
}

bool scope_end_step(struct scope *scope) {
    bool done = true;
    if (!scope->step.lane)
        return true;
    heap_take_keeper(scope->heap);
    heap_unpark(scope);
    error_mute();
    if (scope->larges)
        done = keep_larges(scope);
    else
        (void)ebb_step_end(scope->step);
    error_unmute();
    heap_leave_keeper(scope->heap);
    return done;
}
