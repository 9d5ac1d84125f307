// SPDX-License-Identifier: Apache-2.0
/*
 * tree.c - regions open and close: slots, generations, parents and children.
 *
 * Invariant: a slot's generation is odd exactly while a region is open in it, and only grows; a
 * handle matches if its generation is the slot's. A region that stays empty takes no lock, unless
 * slots are wanting or over (slots.c); pages go back under the pool's. Closing always completes:
 * nothing in it acquires anything it cannot do without.
 *
 * Refuses handles that are stale or never were one (EBB_E_STALE).
 */
#include "base/check.h"
#include "base/error.h"
#include "base/name.h"
#include "base/os.h"
#include "pool/shared.h"
#include "region/cleanup.h"
#include "region/count.h"
#include "region/hold.h"
#include "region/keeper.h"
#include "region/kinds.h"
#include "region/runs.h"
#include "region/small.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct region) <= RANGE_REGION_BYTES, "a region fits its slot");
static_assert(offsetof(struct region, lane) == 0, "a handle points to the lane");

/* Where handles that never opened point: the lane of no region, without room, never open, and of
 * another generation than they are. */
static struct ebb_lane no_lane = {.generation = 2, .due = &due_nothing};

static const struct ebb_region_options defaults = {.size = sizeof(struct ebb_region_options)};

/* ---- handles ---- */

struct region *region_not_found(ebb_region handle) {
    error_set(EBB_E_STALE, "handle (%p, generation %llu) is of no open region",
              (void *)handle.lane, (unsigned long long)handle.generation);
    return NULL;
}

ebb_region region_handle(struct region *region) {
    if (!region)
        return (ebb_region){&no_lane, 0};
    return (ebb_region){&region->lane, region->lane.generation};
}

void region_new_epoch(struct region *region) {
    region->epoch = (region->epoch + 1) % ((uint32_t)1 << PIECE_EPOCH_BITS);
    if (region->epoch == 0)
        piece_wipe(&region->store);
    region->owner = PIECE_OWNER(region_slot(region), region->epoch);
    region->block_key = piece_key_of(region->owner, PIECE_BLOCK);
    region->window_key = piece_key_of(region->owner, PIECE_WINDOW);
    region->arena_key = piece_key_of(region->owner, PIECE_ARENA);
    region->quick_key = region->window_key;
    region->alone = OBJECT_ALONE | OBJECT_LIVE | region->owner;
}

__attribute__((cold)) void region_be_shared(struct region *region) {
    region->shared = region->mixed = true;
    region->quick_key = PIECE_KEY_NONE;
    region->alone = UINT64_MAX;
}

bool region_is_above(const struct region *ancestor, const struct region *region) {
    while (region->depth > ancestor->depth)
        if ((region = region->parent) == ancestor)
            return true;
    return false;
}

struct region *region_next_below(struct region *at, const struct region *root) {
    if (at->children)
        return at->children;
    while (at != root && !at->sibling_next)
        at = at->parent;
    return at == root ? NULL : at->sibling_next;
}

/* The slot has no region: what is left of its pieces is not taken for blocks. */
static void leave_slot(struct region *region) {
    region->block_key = region->window_key = PIECE_KEY_NONE;
    region->arena_key = region->quick_key = PIECE_KEY_NONE;
    slot_give(region->pool, region);
}

/* ---- opening ---- */

/* Everything between the tables that outlive a region (store) and its name is zero, and so is the
 * set of kinds since the last close. */
static void clear(struct region *region) {
    uint64_t generation = region->lane.generation;
    struct piece_store store = region->store;
    struct starts_store starts = region->starts;
    uint32_t epoch = region->epoch;
    uint64_t mark_serial = region->mark_serial; /* marks of earlier regions never match */
    memset(region, 0, offsetof(struct region, name));
    region->lane.generation = generation;
    due_shut(region);
    region->store = store;
    region->starts = starts;
    region->epoch = epoch;
    region->mark_serial = mark_serial;
    fit_clear(&region->fit);
}

static void adopt(struct region *region, struct region *parent) {
    region->parent = parent;
    if (!parent)
        return;
    region->depth = parent->depth + 1;
    region->sibling_next = parent->children;
    if (parent->children)
        parent->children->sibling_prev = region;
    parent->children = region;
    parent->child_count++;
}

static void orphan(struct region *region) {
    struct region *parent = region->parent;
    if (!parent)
        return;
    if (region->sibling_prev)
        region->sibling_prev->sibling_next = region->sibling_next;
    else
        parent->children = region->sibling_next;
    if (region->sibling_next)
        region->sibling_next->sibling_prev = region->sibling_prev;
    parent->child_count--;
}

/* What it counted as a child stays counted there; what is alive it got. Who reads counters on
 * another thread has the lock. */
static void become_root(struct region *region) {
    struct ebb_pool *pool = region->pool;
    unsigned depth = region->depth;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t left = region->kinds; left; left &= left - 1) {
        uint32_t kind = (uint32_t)__builtin_ctz(left);
        struct kind_counts *counts = &region->kind_counts[kind];
        kinds_add(&pool->closed_kinds[kind], region, kind);
        *counts = (struct kind_counts){.received = kind_live(counts)};
    }
    for (struct region *at = region; at; at = region_next_below(at, region))
        at->depth -= depth;
    pthread_mutex_unlock(&pool->lock);
}

/* Budgets of former ancestors do not count it any more. */
void region_cut_off(struct region *region) {
    struct region *budget = region->parent->budget;
    size_t used = 0;
    for (struct region *at = region; at; at = region_next_below(at, region)) {
        small_fold(at);
        used += flow_now(&at->used);
        at->budget = at->budget == budget ? NULL : at->budget;
    }
    for (; budget; budget = budget->parent ? budget->parent->budget : NULL)
        budget->charged -= used;
    become_root(region);
    orphan(region);
    region->parent = NULL;
    region->sibling_next = region->sibling_prev = NULL;
}

static void set_up(struct region *region, const struct ebb_region_options *options,
                   struct ebb_pool *pool, struct region *parent) {
    clear(region);
    region->pool = pool;
    region_new_epoch(region);
    if (pool->slot)
        region_be_shared(region);
    adopt(region, parent);
    region->measuring = pool->pages.kind == &kind_phantom;
    region->hollow = pool->pages.kind->phantom;
    region->inner = pool->inner;
    region->limit_bytes = region->measuring ? 0 : options->limit_bytes;
    region->budget = region->limit_bytes ? region : parent ? parent->budget : NULL;
    region->sealed = options->sealed;
    region->sites = options->sites;
    region->hinted = options->hint_bytes != 0;
    region->metered = region->budget || region->sites || pool->limit_used;
    name_copy(region->name, sizeof region->name, options->name ? options->name : "region");
}

/* The parent named in the options; false if it is not open. */
static bool find_parent(const struct ebb_region_options *options, struct region **parent) {
    *parent = NULL;
    if (!options->parent.lane)
        return true;
    *parent = region_find(options->parent);
    return *parent != NULL;
}

/* What measures takes nothing from a pool, whichever is named. NULL, or why the two disagree. */
static const char *disagreement(const struct ebb_region_options *options,
                                const struct region *parent) {
    if (parent->measuring)
        return NULL;
    if (options->measure)
        return "has memory and does not measure";
    return !options->pool || options->pool == pool_outside(parent->pool) ? NULL
                                                                         : "is of another pool";
}

static struct ebb_pool *choose_pool(const struct ebb_region_options *options,
                                    const struct region *parent) {
    const char *wrong = parent ? disagreement(options, parent) : NULL;
    if (wrong) {
        error_set(EBB_E_ARGUMENT, "region '%s': its parent '%s' %s",
                  options->name ? options->name : "region", parent->name, wrong);
        return NULL;
    }
    if (parent)
        return parent->pool;
    if (options->measure)
        return pool_for_measuring();
    return options->pool ? options->pool : ebb_pool_default();
}

/* A region that did not get its hint was never open: no handle of it has left the library. */
static void abandon(struct region *region) {
    orphan(region);
    piece_forget_all(&region->store);
    region->lane.generation--;
    leave_slot(region);
}

/* A root of a shared pool has a slot of its own: that is empty again. */
static void leave_pool(struct ebb_pool *pool, const struct region *parent) {
    if (pool->slot && !parent)
        shared_leave(pool);
}

static void say_no_slot(void) {
    size_t left = range_regions_left();
    if (left)
        error_set(EBB_E_MEMORY, "no memory for the slot of another region: %zu of %zu are left",
                  left, range.region_count);
    else
        error_set(EBB_E_MEMORY, "no slot for another region: %zu can be open", range.region_count);
}

static struct region *open_region(const struct ebb_region_options *options, bool uncounted) {
    struct region *parent;
    if (options->size != sizeof *options) {
        error_set(EBB_E_ARGUMENT, "region options: size field is %zu, expected %zu",
                  options->size, sizeof *options);
        return NULL;
    }
    if (!find_parent(options, &parent))
        return NULL;
    struct ebb_pool *pool = choose_pool(options, parent);
    if (pool && pool_is_shared(pool))
        pool = shared_enter(pool);
    if (!pool)
        return NULL;
    struct region *region = slot_take(pool);
    if (!region) {
        leave_pool(pool, parent);
        say_no_slot();
        return NULL;
    }
    set_up(region, options, pool, parent);
    if (uncounted)
        slot_begin_uncounted(region);
    else
        region->lane.generation++;
    if (options->hint_bytes && runs_reserve(region, options->hint_bytes) != 0) {
        abandon(region);
        leave_pool(pool, parent);
        return NULL;
    }
    if (parent)
        parent->keeper = parent->depth == 0;
    return region;
}

ebb_region ebb_region_open(const struct ebb_region_options *options) {
    return region_handle(open_region(options ? options : &defaults, false));
}

ebb_region region_open_uncounted(const char *name, struct ebb_pool *pool) {
    return region_handle(open_region(EBB_REGION_OPTIONS(.name = name, .pool = pool), true));
}

/* ---- closing ---- */

int region_refuse_closing(const struct region *region) {
    return error_set(EBB_E_BUSY, "region '%s' is being closed: a cleanup of it or below it runs",
                     region->name);
}

void region_close_children(struct region *region, struct ebb_closed *closed) {
    while (region->children)
        region_close(region->children, closed);
}

#define LEVELS_SUMMED 32 /* ancestors looked at for a pool's peaks: closing stays constant time */

/* `above`: what the ancestors hold now. With what the region has now, or its own peak alone, that
 * is a lower bound of the pool's: when it was at its peak they may have had nothing. */
static void fold_flow(struct ebb_meter *closed, const struct flow *flow, uint64_t above) {
    struct ebb_meter seen = flow_read(flow);
    closed->total += seen.total;
    closed->peak = size_larger(closed->peak, size_larger(seen.peak, seen.current + above));
}

static void fold_kinds(struct region *region, struct ebb_pool *pool) {
    kinds_end_all(region);
    for (uint32_t left = region->kinds; left; left &= left - 1) {
        uint32_t kind = (uint32_t)__builtin_ctz(left);
        kinds_add(&pool->closed_kinds[kind], region, kind);
    }
    kinds_set(region, 0);
}

static void fold_into_pool(struct region *region, struct ebb_pool *pool) {
    uint64_t blocks = 0, requested = 0, used = 0;
    struct region *above = region->parent;
    if (region->uncounted)
        return;
    for (unsigned level = 0; above && level < LEVELS_SUMMED; level++, above = above->parent) {
        small_fold(above);
        blocks += flow_now(&above->counted);
        requested += flow_now(&above->requested);
        used += flow_now(&above->used);
    }
    fold_flow(&pool->closed_blocks, &region->counted, blocks);
    fold_flow(&pool->closed_requested, &region->requested, requested);
    fold_flow(&pool->closed_used, &region->used, used);
}

/* Pages behind all that the region ever placed or asked for: it took them since they were hot, and
 * nobody's. */
static size_t untouched_bytes(const struct region *region) {
    uintptr_t end = region->main_run ? piece_end(region->main_run) : 0;
    uintptr_t needed = size_align(size_larger(region->highest, region->needed), EBB_PAGE);
    return needed && needed < end ? size_smaller(end - needed, region->main_run->bytes) : 0;
}

/* The run of the arena, if it is to be kept under the lock that closing needs anyway; not where the
 * step ends now, for the track may be the next one's before that. */
static struct ebb_piece *leave_track(const struct region *region) {
    if (!region->step)
        return track_part(region->track);
    track_forget(region->track);
    return NULL;
}

/* Everything that needs the pool: a region that never had pages skips it. `arena`: a run that is
 * kept for the track. */
static void give_pages(struct region *region, struct ebb_piece *arena, struct track *track) {
    struct ebb_pool *pool = region->pool;
    struct ebb_piece *given = NULL;
    size_t untouched = untouched_bytes(region), had = region->reserved.total, back = 0;
    if (region->depth == 1)
        keeper_step_ended(region->parent);
    pthread_mutex_lock(&pool->lock);
    if (arena)
        pool_keep_locked(pool, arena, &track->kept);
    depart_locked(region);
    runs_forget(region, 0, &given);
    pool_give_list_locked(pool, given);
    fold_into_pool(region, pool);
    fold_kinds(region, pool);
    if (region->uncounted)
        pool_work_ended_locked(pool, had);
    else if (region->depth <= 1)
        back = pool_step_ended_locked(pool, untouched, &region->growth);
    pthread_mutex_unlock(&pool->lock);
    if (back && region->given_back) /* relaxed: a sum that nothing depends on */
        atomic_fetch_add_explicit(region->given_back, back, memory_order_relaxed);
    hold_sweep(region);
}

/* Cleanups may open children. */
static void run_cleanups(struct region *region, struct region **at_work,
                         struct ebb_closed *closed) {
    while (region->cleanups) {
        cleanup_run_below(region, at_work, closed);
        region_close_children(region, closed);
    }
    cleanup_end_work(region, at_work);
}

/* Closes a region that has no children, and no cleanups any more. */
static void close_one(struct region *region) {
    struct ebb_pool *pool = region->pool;
    const struct region *parent = region->parent;
    struct ebb_piece *arena = NULL;
    if (EBB_CHECK_FULL)
        region_check(region);
    struct track *track = region->track;
    if (track)
        arena = leave_track(region);
    if (region->step)
        region->step->closed(region->step);
    windows_forget(region);
    count_uncharge(region, flow_now(&region->used));
    orphan(region);
    if (region->counted.in || region->runs || region->kinds) {
        give_pages(region, arena, track);
    } else {
        if (arena)
            pool_keep(pool, arena, &track->kept);
        piece_forget_all(&region->store);
    }
    region->lane.generation++;
    leave_slot(region);
    leave_pool(pool, parent);
}

/* Children first, without recursion: nesting may be deep. */
void region_close(struct region *region, struct ebb_closed *closed) {
    struct region *at = region, *at_work = NULL;
    for (bool last = false; !last;) {
        while (at->children)
            at = at->children;
        struct region *parent = at->parent;
        last = at == region;
        run_cleanups(at, &at_work, closed);
        close_one(at);
        at = parent;
    }
    region_end_work(at_work);
}

int ebb_region_close_reporting(ebb_region handle, struct ebb_closed *report) {
    struct region *region = region_find(handle);
    struct ebb_closed closed = {0, 0};
    if (!region)
        return EBB_E_STALE;
    if (region->closing)
        return region_refuse_closing(region);
    region_close(region, &closed);
    if (report)
        *report = closed;
    return region_closed(&closed);
}

int ebb_region_close(ebb_region handle) {
    return ebb_region_close_reporting(handle, NULL);
}

static int check_empty(struct region *region) {
    small_fold(region);
    if (!flow_now(&region->counted))
        return 0;
    return error_set(EBB_E_LIVE_BLOCKS, "region '%s' has %llu live blocks of %llu bytes",
                     region->name, (unsigned long long)flow_now(&region->counted),
                     (unsigned long long)flow_now(&region->requested));
}

int ebb_region_close_strict(ebb_region handle) {
    struct region *region = region_find(handle);
    if (!region)
        return EBB_E_STALE;
    hold_sweep(region);
    remote_look(region);
    if (region->children)
        return error_set(EBB_E_CHILD_OPEN, "region '%s' has %llu open children, '%s' among them",
                         region->name, (unsigned long long)region->child_count,
                         region->children->name);
    int result = check_empty(region);
    if (!result && region->safe)
        result = check_empty(region->safe);
    return result ? result : ebb_region_close(handle);
}

/* ---- questions ---- */

bool ebb_region_is_open(ebb_region handle) {
    return (handle.generation & 1) && region_peek(handle);
}

int ebb_region_seal(ebb_region handle) {
    struct region *region = region_find(handle);
    if (!region)
        return EBB_E_STALE;
    region->sealed = true;
    if (region->track)
        track_stop(region_track(region));
    windows_set_inline(region);
    return 0;
}

ebb_region ebb_region_parent(ebb_region handle) {
    struct region *region = region_find(handle);
    return region_handle(region ? region->parent : NULL);
}

bool ebb_region_is_ancestor(ebb_region ancestor, ebb_region region) {
    if (!ebb_region_is_open(ancestor) || !ebb_region_is_open(region))
        return false;
    return region_is_above((struct region *)ancestor.lane, (struct region *)region.lane);
}

ebb_region ebb_region_of(const void *address) {
    uintptr_t addr = (uintptr_t)address;
    if (range_holds(addr)) {
        struct ebb_piece *run = range_run_at(addr);
        struct region *region = run ? region_of_piece(run) : NULL;
        if (region && !region->inner)
            return region_handle(region->safe_of ? region->safe_of : region);
    }
    return region_handle(NULL);
}
