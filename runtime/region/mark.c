// SPDX-License-Identifier: Apache-2.0
/*
 * mark.c - marks, rewinding, resetting.
 *
 * A mark is an entry in the list of large blocks, newest first: everything in front of it was
 * allocated later. It also notes the window and cursor of the small lane and pins that window.
 * Invariant: while marks exist no block goes into a hole of an older window, so windows newer
 * than the noted one hold newer blocks only. A mark that was rewound past is gone from the list,
 * and its serial, which no other mark of the process has, is never in it again.
 */
#include "base/error.h"
#include "region/cleanup.h"
#include "region/count.h"
#include "region/hold.h"
#include "region/kinds.h"
#include "region/large.h"
#include "region/runs.h"
#include "region/small.h"

ebb_mark ebb_region_mark(ebb_region handle) {
    struct region *region = region_find(handle);
    if (!region)
        return (ebb_mark){NULL, 0};
    struct ebb_piece *mark = piece_take(&region->store);
    if (!mark) {
        error_set(EBB_E_MEMORY, "no bookkeeping left for a mark in region '%s'", region->name);
        return (ebb_mark){NULL, 0};
    }
    *mark = (struct ebb_piece){.state = PIECE_MARK};
    piece_set_owner(mark, region->owner);
    small_mark(region, mark);
    if (region->track)
        track_stop(region_track(region));
    mark->mark.serial = ++region->mark_serial;
    piece_push(&region->blocks, mark);
    region->marks++;
    return (ebb_mark){mark, mark->mark.serial};
}

/* Takes the newest mark off the list. */
static void drop_mark(struct region *region, struct ebb_piece *mark) {
    small_unmark(mark);
    piece_unlink(&region->blocks, mark);
    piece_give(&region->store, mark);
    region->marks--;
}

static struct ebb_piece *find_mark(struct region *region, ebb_mark wanted) {
    const struct ebb_piece *mark = wanted.place;
    uintptr_t offset = (uintptr_t)mark - (uintptr_t)range.pieces;
    if (offset < range.pieces_bytes && offset % 16 == 0)
        for (struct ebb_piece *piece = region->blocks; piece; piece = piece->next)
            if (piece == mark && piece->state == PIECE_MARK &&
                piece->mark.serial == wanted.serial)
                return piece;
    error_set(EBB_E_MARK, "mark %llu is none of region '%s': %u are set",
              region_mark_number(wanted.serial), region->name, region->marks);
    return NULL;
}

/* Of what is being sent only the marks go: its blocks stay where they are, and count. */
static void release_newer(struct region *region, struct ebb_piece *mark) {
    bool stays = region_is_leaving(region);
    struct ebb_piece *next;
    for (struct ebb_piece *newest = region->blocks; newest != mark; newest = next) {
        next = newest->next;
        if (newest->state == PIECE_MARK)
            drop_mark(region, newest);
        else if (!stays)
            large_release(region, newest);
    }
    if (!stays)
        small_rewind(region, mark);
}

int ebb_region_rewind(ebb_region handle, ebb_mark wanted) {
    struct region *region = region_find(handle);
    if (!region)
        return EBB_E_STALE;
    if (region->closing)
        return region_refuse_closing(region);
    struct ebb_piece *mark = find_mark(region, wanted);
    if (!mark)
        return EBB_E_MARK;
    int busy = hold_check_rewind(region, wanted.serial);
    if (busy)
        return busy;
    struct ebb_piece *window = mark->mark.window;
    struct ebb_closed closed = {0, 0};
    region->ending = wanted.serial;
    do { /* what a producer does who has bytes back may call for more cleanups */
        cleanup_run_newer(region, wanted.serial, &closed);
        if (region->hooks)
            region->hooks->rewind(region, wanted.serial);
    } while (region->cleanups && region->cleanups->serial >= wanted.serial);
    region->ending = 0;
    remote_look(region); /* else what others released, while cleanups waited for them, too, would be
                          * followed into what comes there */
    release_newer(region, mark);
    drop_mark(region, mark);
    if (window)
        windows_settle(region, window);
    if (EBB_CHECK_FULL)
        region_check(region);
    return region_closed(&closed);
}

int ebb_region_reset(ebb_region handle, size_t keep_bytes) {
    struct region *region = region_find(handle);
    if (!region)
        return EBB_E_STALE;
    if (region->closing)
        return region_refuse_closing(region);
    struct ebb_pool *pool = region->pool;
    struct ebb_piece *given = NULL;
    struct ebb_closed closed = {0, 0};
    region_close_children(region, &closed);
    while (region->cleanups) {
        cleanup_run_newer(region, 0, &closed);
        region_close_children(region, &closed);
    }
    remote_look(region);
    if (region->track)
        track_forget(region->track);
    kinds_end_all(region);
    windows_forget(region);
    count_uncharge(region, flow_now(&region->used));
    region_new_epoch(region);
    if (region->shared)
        region_be_shared(region);
    pthread_mutex_lock(&pool->lock);
    depart_locked(region);
    runs_forget(region, region_is_leaving(region) ? 0 : keep_bytes, &given); /* else used again */
    pool_give_list_locked(pool, given);
    pthread_mutex_unlock(&pool->lock);
    hold_sweep(region);
    flow_leave(&region->counted, flow_now(&region->counted));
    flow_leave(&region->requested, flow_now(&region->requested));
    flow_leave(&region->used, flow_now(&region->used));
    region->large_used = 0;
    region->marks = 0;
    if (EBB_CHECK_FULL)
        region_check(region);
    return region_closed(&closed);
}
