// SPDX-License-Identifier: Apache-2.0
/*
 * work.c - plans of records, and plans of the present one (see work.h).
 *
 * Invariant: a draft has one owner at a time, which drops it: the work, the course that it was
 * taken from, or the function that has it at hand.
 */
#include "step/work.h"

#include "base/size.h"
#include "step/guests.h"
#include "step/merge.h"
#include "step/trim.h"

/* Plans that are wanted at once are good enough if they are not higher than the bytes alive by more
 * than half a per cent. */
#define ENOUGH_PPM 5000u

/* Slots of other programs grow by this at most, when those of one do. */
#define GROWN_MOST 2.0

/* So many times as many bytes are another kind of step altogether. */
#define FAR_LARGER 4u

/* ---- of the record ---- */

static struct draft *draft_of_step(const struct work *work, bool coarse) {
    const struct track *track = work->lane->track;
    const struct course *course = work->course;
    enum draft_tenure tenure = work->lane->site->options.tenure_none ? DRAFT_TENURE_NONE
                               : course->learning.doubtful           ? DRAFT_TENURE_TWICE
                                                                     : DRAFT_TENURE_ONCE;
    struct draft *draft = draft_from_record(
        coarse ? work->coarse.record : track->record,
        coarse ? work->coarse.count : track->record_count, coarse ? work->coarse_hash : work->hash,
        course->noted ? course->noted : work->present, tenure);
    if (!draft)
        return NULL;
    draft->coarse = coarse;
    draft->confirmed = work->repeats;
    return draft;
}

/* The step's region has left its pages hot: packing works in them. */
static struct plan *plan_at_desk(struct work *work, uint64_t height_most) {
    bool guess = work->draft->keyed && !work->draft->confirmed;
    const struct packing_effort effort = {.keys = PACKING_ORDERS, .slack_ppm = ENOUGH_PPM,
                                          .target = guess ? work->guess_enough : 0,
                                          .worked = &work->worked};
    work->draft->desk = work->desk;
    guests_choose(work->draft, work->guests_most);
    struct plan *plan = draft_plan(work->draft, &effort, height_most);
    work->draft->desk = NULL;
    return plan;
}

/* What is made is the present plan's draft, changed. */
static void take_present(struct work *work) {
    work->draft = work->present;
    work->present = NULL;
    if (work->draft)
        guests_dismiss(work->draft); /* they are chosen anew */
}

/* The record before is planned or noted, in place of this one. */
static void take_noted(struct work *work) {
    struct draft *noted = work->course->noted;
    work->course->noted = work->draft;
    work->draft = noted;
}

/* Of loops that do not repeat the longest is kept: shorter ones follow its plan, too. */
static void prefer_longer(struct work *work) {
    struct draft *noted = work->course->noted;
    if (work->repeats || !work->draft || !draft_leads(noted, work->draft))
        return;
    noted->wider |= draft_widen_along(noted, work->draft);
    take_noted(work);
}

static uint64_t granules_of(const struct draft *draft) {
    uint64_t granules = 0;
    for (uint32_t i = 0; draft && i < draft->count; i++)
        granules += draft->slots[i].needed;
    return granules;
}

/* Of two records that are not alike, one is far larger: most of what is missed is missed by steps
 * like that one. */
static void prefer_larger(struct work *work) {
    if (!work->repeats && !work->is_coarse &&
        granules_of(work->course->noted) / FAR_LARGER > granules_of(work->draft))
        take_noted(work);
}

/* Some of what the present plan has born in the parent does not survive any more. */
static bool is_doubted(const struct work *work) {
    return work->course->learning.doubtful && work->present && work->present->tenured;
}

/* The present plan leads the draft as well, unless recent steps needed much less than that. */
static bool is_led(const struct work *work) {
    return !work->repeats && !is_doubted(work) && draft_leads(work->present, work->draft) &&
           work->course->plan->height_bytes <= work->height_most;
}

/* What is made is the present plan's draft with room for this one. True if that had less. */
static bool take_present_along(struct work *work) {
    struct draft *shorter = work->draft;
    take_present(work);
    bool wider = draft_widen_along(work->draft, shorter);
    draft_drop(shorter);
    return wider;
}

static void note(struct work *work) {
    work->draft = draft_of_step(work, work->is_coarse);
    prefer_longer(work);
}

/* A draft for steps of both, if neither leads the other. */
static struct draft *draft_of_both(const struct work *work, const struct draft *one,
                                   const struct draft *other) {
    uint64_t held = size_larger(LEARN_MERGED_BYTES, work->alive_most / LEARN_TRY_PART);
    if (!one || draft_leads(one, other) || draft_leads(other, one))
        return NULL;
    return draft_merge(one, other, size_smaller(held / LEARN_SLOT_BYTES, PLAN_SLOTS_MOST),
                       work->alive_most);
}

/* True: there is a plan of the draft, which is the work's now; else it is dropped. */
static bool plan_instead(struct work *work, struct draft *draft) {
    struct draft *alone = work->draft;
    if (!draft)
        return false;
    work->draft = draft;
    work->plan = plan_at_desk(work, work->merged_most);
    work->draft = work->plan ? draft : alone;
    draft_drop(work->plan ? alone : draft);
    return work->plan;
}

/* Of blocks with keys that are not alike: a plan for steps of both records, and of those that the
 * present plan was made of, if that is not too high. */
static bool plan_of_several(struct work *work) {
    const struct draft *noted = work->repeats ? NULL : work->course->noted;
    if (work->present)
        guests_dismiss(work->present); /* they are chosen anew */
    struct draft *both = draft_of_both(work, noted, work->draft);
    struct draft *all = NULL;
    if (!is_doubted(work))
        all = draft_of_both(work, work->present, both ? both : work->draft);
    if (!plan_instead(work, all))
        return plan_instead(work, both);
    draft_drop(both);
    return true;
}

/* What was recorded has more blocks than the plan has slots. */
static bool is_longer(const struct work *work) {
    uint32_t count = work->is_coarse ? work->coarse.count : work->lane->track->record_count;
    return count > work->course->plan->slot_count;
}

/* A plan for all sizes that steps of this structure had; for the last ones alone if that is too
 * high, but no first one where others would get no pages beside it. Where a `finer` one is kept the
 * record repeats another, or has the plan's structure, so no other draft takes its place. */
static void adopt(struct work *work) {
    work->finer = work->is_finer ? draft_of_step(work, false) : NULL;
    work->draft = draft_of_step(work, work->is_coarse);
    if (!work->draft)
        return;
    prefer_longer(work);
    if (plan_of_several(work))
        return;
    prefer_larger(work);
    bool led = is_led(work), wider = led && take_present_along(work);
    bool look = work->verdict == LEARN_LONGER;
    if (led ? !wider : look && !is_longer(work))
        return; /* as it is, the present one is better */
    wider |= work->draft->wider;
    wider |= draft_widen(work->draft, work->course->noted);
    wider |= draft_widen(work->draft, work->present);
    work->plan = plan_at_desk(work, wider ? work->height_most : UINT64_MAX);
    if (work->plan || !wider || look || (work->narrow && !work->course->plan))
        return;
    draft_drop(work->draft);
    work->draft = draft_of_step(work, work->is_coarse);
    if (work->draft)
        work->plan = plan_at_desk(work, UINT64_MAX);
}

/* ---- of the present plan ---- */

/* What the step asked for in the slot; 0: nothing, or nothing that others will. */
static size_t asked_for(const struct work *work, uint32_t number) {
    const struct track *track = work->lane->track;
    bool tells = work->outlived || !track_has_refused(track, number);
    return tells ? track_asked(track, &track->slots[number]) : 0;
}

/* The same, and what others asked for since the plan was made, where that counts. */
static size_t wanted(const struct work *work, uint32_t number) {
    size_t others = work->for_one ? 0 : plan_wanted(work->course->plan, number);
    return size_larger(asked_for(work, number), others);
}

/* Of the slots that the step asked for something in. */
static uint64_t granules_asked(const struct work *work) {
    uint64_t granules = 0;
    for (uint32_t i = 0; work->draft && i < work->draft->count; i++)
        granules += asked_for(work, i) ? work->draft->slots[i].room : 0;
    return granules;
}

/* Sizes of programs that the step is none of may rise as well: their slots grow as its own did, of
 * which it had so many granules before. Else each program misses what the first one missed. */
static void grow_others(struct work *work, uint64_t before) {
    double factor = before ? (double)granules_asked(work) / (double)before : 1;
    factor = factor < GROWN_MOST ? factor : GROWN_MOST;
    for (uint32_t i = 0; i < work->draft->count; i++) {
        size_t bytes = (size_t)work->draft->slots[i].room * RANGE_GRANULE;
        if (bytes && !asked_for(work, i))
            draft_fit(work->draft, i, (size_t)((double)bytes * factor));
    }
}

/* True: it is too high, or there is no memory for it. */
static bool grow_by(struct work *work, size_t ahead, bool others) {
    bool wider = false;
    take_present(work);
    uint64_t before = granules_asked(work);
    for (uint32_t i = 0; work->draft && i < work->draft->count; i++)
        wider |= draft_fit_ahead(work->draft, i, wanted(work, i), ahead);
    if (wider && others)
        grow_others(work, before);
    if (wider)
        work->plan = plan_at_desk(work, others ? work->merged_most : work->height_most);
    return wider && !work->plan;
}

static void restore_present(struct work *work) {
    draft_drop(work->draft);
    work->draft = NULL;
    work->present = draft_of_plan(work->course->plan);
}

/* True if this step alone wants less, and that was not tried yet: others may note more just now. */
static bool leave_others_out(struct work *work) {
    bool less = false;
    for (uint32_t i = 0; i < work->course->plan->slot_count; i++)
        less |= wanted(work, i) > asked_for(work, i);
    work->for_one = true;
    return less;
}

static size_t less_ahead(size_t part) {
    return part < LEARN_AHEAD_PART_LEAST ? part * 2 : SIZE_MAX;
}

/* A plan with room for what did not fit since the present one was made, and some more; for less
 * more, then none, and then for the last step alone, if it is too high otherwise. */
static void grow(struct work *work) {
    size_t part = work->ahead ? LEARN_AHEAD_PART : SIZE_MAX;
    bool others = work->ahead && work->course->plan->several;
    while (grow_by(work, part, others) &&
           (others || part < SIZE_MAX || leave_others_out(work))) {
        restore_present(work);
        part = others ? part : less_ahead(part);
        others = false;
    }
}

/* A plan with room for what this step asked for in each slot. What it left out keeps the room it
 * had, and so does what it trimmed: what was asked for is not known any more. */
static void fit(struct work *work) {
    const struct track *track = work->lane->track;
    take_present(work);
    for (uint32_t i = 0; work->draft && i < work->draft->count; i++)
        if (asked_for(work, i) && !(track->slots[i].align & TRACK_TRIMMED))
            draft_refit(work->draft, i, asked_for(work, i));
    if (work->draft)
        work->plan = plan_at_desk(work, UINT64_MAX);
}

/* The same plan with fewer guests, or more: not while the parent may have none. */
static void seat_anew(struct work *work) {
    if (work->verdict == LEARN_MORE && !work->guests_most)
        return;
    take_present(work);
    if (work->draft)
        work->plan = plan_at_desk(work, UINT64_MAX);
}

/* The plan of the same record, with its small blocks. */
static void refine(struct work *work) {
    work->draft = work->course->finer;
    work->course->finer = NULL;
    if (work->draft)
        work->plan = plan_at_desk(work, UINT64_MAX);
}

/* The same plan for shorter loops. */
static void shorten(struct work *work) {
    take_present(work);
    if (work->draft && draft_trim(work->draft, work->course->plan->by_key, work->shorter_most))
        work->plan = plan_at_desk(work, work->height_most);
}

/* Some blocks are born in the parent, where others might lie for a while, and none does. */
static bool has_no_guests(const struct plan *plan) {
    uint32_t at = 0;
    while (at < plan->slot_count && !plan->slots[at].tenured)
        at++;
    return at < plan->slot_count && !plan->guest_count;
}

/* The plan without them, as it was: there may have been no room in the parent then. */
static void coarsen(struct work *work) {
    work->plan = work->course->coarser;
    work->course->coarser = NULL;
    work->unseated = work->plan && has_no_guests(work->plan);
}

/* ---- either ---- */

/* A larger plan for which the pool's limit leaves no pages would serve nothing. */
static void bound_height(struct work *work) {
    size_t room = work->desk && work->alone ? pool_room(work->desk) : SIZE_MAX;
    work->narrow = room < work->height_most;
    work->height_most = size_smaller(work->height_most, room);
    work->merged_most = size_smaller(work->merged_most, room);
}

static void (*const makers[])(struct work *work) = {
    [LEARN_NOTE] = note, [LEARN_ADOPT] = adopt, [LEARN_LONGER] = adopt, [LEARN_GROW] = grow,
    [LEARN_FIT] = fit, [LEARN_SHORTEN] = shorten, [LEARN_FEWER] = seat_anew,
    [LEARN_MORE] = seat_anew, [LEARN_REFINE] = refine, [LEARN_COARSEN] = coarsen};

void work_make(struct work *work) {
    bound_height(work);
    if (work->course->plan)
        work->present = draft_of_plan(work->course->plan);
    makers[work->verdict](work);
    work->unseated |= work->draft && work->draft->tenured && !work->guests_most;
}

void work_drop(struct work *work) {
    plan_drop(work->plan);
    draft_drop(work->draft);
    draft_drop(work->finer);
    draft_drop(work->present);
}
