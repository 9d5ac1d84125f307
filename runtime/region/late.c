// SPDX-License-Identifier: Apache-2.0
/*
 * late.c - releases that are passed in their planned order, and those that are late.
 *
 * A slot that is live when its release must be passed becomes overdue, and whatever overlaps it is
 * served elsewhere (R3). A step with keys may leave out a long stretch of its plan at once. Then
 * the slots that were visited are looked at in place of the order, if they are fewer.
 */
#include "base/check.h"
#include "region/track.h"

/* How many slots have been visited, or some fewer. */
static uint32_t count_visited(const struct track *track) {
    uint32_t cursor = track_cursor(track);
    return cursor > track->left_out ? cursor - track->left_out : 0;
}

/* ---- what has ended ---- */

/* False: the first `most` places are passed, and perhaps more are to be. */
static bool pass_few(struct track *track, uint32_t most) {
    const struct plan *plan = track->plan;
    uint32_t cursor = track_cursor(track);
    for (uint32_t i = 0; i < most; i++) {
        uint32_t id = plan->order[track->passed]; /* behind the last place: no slot's */
        if (id >= cursor || track_is_live(track, &track->slots[id]))
            return true;
        track->passed++;
    }
    return false;
}

/* Up to the first place of a live slot, or of one that is still to come. */
static void pass_far(struct track *track) {
    uint32_t cursor = track_cursor(track), to = track->wander.ends_from[cursor];
    for (uint32_t i = track_visited(track, 0, cursor); i < cursor;
         i = track_visited(track, i + 1, cursor)) {
        uint32_t end = track->wander.ends[i];
        if (track_is_live(track, &track->slots[i]) && end >= track->passed && end < to)
            to = end;
    }
    track->passed = to;
}

void track_pass_ended(struct track *track) {
    uint32_t few = track->wander.made ? TRACK_FAR + count_visited(track) : UINT32_MAX;
    if (!pass_few(track, few))
        pass_far(track);
    track_set_expected(track);
}

/* ---- what is late ---- */

void track_prune_overdue(struct track *track) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < track->overdue_count; i++)
        if (track_is_live(track, &track->slots[track->overdue[i]]))
            track->overdue[kept++] = track->overdue[i];
    track->overdue_count = kept;
}

/* Lists it, if it is live. False: the list is full. */
static bool list(struct track *track, uint32_t late) {
    if (!track_is_live(track, &track->slots[late]))
        return true;
    if (track->overdue_count == TRACK_OVERDUE_MOST)
        return false;
    track->overdue[track->overdue_count++] = late;
    return true;
}

/* True if that is far, and fewer slots have been visited. */
static bool is_far(const struct track *track, uint32_t to) {
    uint32_t passed = track->passed;
    return track->wander.made && to > passed && to - passed > TRACK_FAR &&
           to - passed - TRACK_FAR > count_visited(track);
}

/* Lists what is live of the slots that were visited, if it is to be passed. False: nothing has
 * changed. */
static bool list_visited(struct track *track, uint32_t to) {
    uint32_t cursor = track_cursor(track), before = track->overdue_count;
    for (uint32_t i = track_visited(track, 0, cursor); i < cursor;
         i = track_visited(track, i + 1, cursor)) {
        uint32_t end = track->wander.ends[i];
        if (end < track->passed || end >= to || list(track, i))
            continue;
        track->overdue_count = before;
        return false;
    }
    track->passed = to;
    return true;
}

/* The same along the order, as far as there is room on the list. */
static bool list_along(struct track *track, uint32_t to, uint32_t id) {
    for (; track->passed < to; track->passed++) {
        uint32_t late = track->plan->order[track->passed];
        CHECK_ALWAYS(late < id); /* or the plan is none */
        if (!list(track, late))
            return false;
    }
    return true;
}

/* Everything that should be gone before the slot is dead or listed. */
bool track_settle(struct track *track, const struct track_slot *slot) {
    uint32_t id = (uint32_t)(slot - track->slots), to = slot->passed;
    bool listed = is_far(track, to) && list_visited(track, to);
    if (!listed && !list_along(track, to, id))
        return false;
    track_prune_overdue(track);
    return true;
}

static bool is_apart(const struct track_slot *a, const struct track_slot *b) {
    return a->addr + a->room <= b->addr || b->addr + b->room <= a->addr;
}

bool track_is_apart(const struct track *track, const struct track_slot *slot) {
    for (uint32_t i = 0; i < track->overdue_count; i++)
        if (!is_apart(&track->slots[track->overdue[i]], slot))
            return false;
    return true;
}
