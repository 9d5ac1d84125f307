// SPDX-License-Identifier: Apache-2.0
/*
 * course.c - what follows from a step that has ended.
 *
 *     judge (lock held)  ->  drafts, plan (no lock; `planning`)  ->  publish (lock held)
 *
 * Invariant: while `planning` is set, one thread is at work with the course's drafts and plan, and
 * no other judges them or puts others in their place; it clears the flag in any case. A plan that
 * cannot be made leaves the present one, if any, as it is. A plan's draft is not kept, but made
 * from it again where it is needed, which is seldom.
 */
#include "step/site.h"

#include "base/os.h"
#include "step/guests.h"
#include "step/merge.h"
#include "step/trim.h"

/* Plans that are wanted at once are good enough if they are not higher than the bytes alive by more
 * than half a per cent. */
#define ENOUGH_PPM 5000u

/* So many times as many bytes are another kind of step altogether. */
#define FAR_LARGER 4u

/* What one thread makes for a course. */
struct work {
    struct lane *lane;
    struct course *course;
    enum learn_verdict verdict;
    ebb_pool *desk; /* that the step has left pages in, or NULL */
    struct coarse_record coarse;
    bool is_coarse; /* the plan is made from it */
    bool is_finer;  /* and the record is kept, with its small blocks */
    bool repeats;   /* the record is like the one before */
    bool narrow;    /* the pool's limit leaves less than the height that there might be */
    bool alone;     /* of late no other steps are open at once: what is in use is not theirs */
    uint64_t hash, coarse_hash; /* of the record */
    uint64_t height_most, merged_most; /* of an enlarged plan; of one for steps that differ */
    uint64_t shorter_most; /* bytes alive in a shortened one */
    uint64_t worked; /* for all plans that were tried: they have one bound */
    uint64_t guests_most; /* bytes */
    bool ahead;    /* what grew gets more room than it asked for */
    bool unseated; /* the plan that comes back has no guests, and might have some */
    bool for_one;  /* what other steps asked for does not count */
    bool outlived; /* what was too large for a survivor has survived */
    bool goes_on;  /* another step is to be recorded */
    bool searches; /* a thread of the site's is to begin */
    struct draft *present; /* of the course's plan; NULL: it has none */
    struct draft *draft;   /* of the plan that is made, or to be noted; NULL: none */
    struct draft *finer;   /* of the same record, if the plan is coarse; NULL: none */
    struct plan *plan;     /* the result */
};

/* ---- judging ---- */

/* The first step of its course in the lane, or the first one that looks at its parent. */
static bool is_newcomer(const struct track *track) {
    return !track->peak_before || (track->sees_above && !track->saw_above);
}

/* Nothing can be learnt from what was recorded: it was lost, or all blocks came behind a mark. */
static bool tells_nothing(const struct track *track, uint64_t blocks) {
    return track->record_lost || (blocks && !track->record_count);
}

/* Most of it came with keys that the plan does not have: wherever that lay, it was not planned. */
static void tell_from_strangers(struct learn_step *step, const struct track_seen *seen) {
    uint64_t strange = seen->borrowed_bytes > seen->hit_bytes / 2 ? seen->borrowed_bytes : 0;
    step->hit_bytes -= strange;
    step->missed_bytes += strange;
    step->longer |= strange != 0;
}

static struct learn_step describe(const struct lane *lane, const struct ended *ended,
                                  struct coarse_record *coarse) {
    const struct track_seen *seen = &ended->seen;
    struct learn_step step = {
        .mode = seen->served ? LEARN_SERVE : LEARN_PLAIN,
        .hit_bytes = seen->hit_bytes,
        .missed_bytes = seen->missed_bytes,
        .escaped_bytes = seen->escaped_bytes,
        .refused_bytes = size_smaller(seen->refused_bytes, seen->strayed_bytes),
        .tenured_bytes = seen->tenured_right_bytes + seen->tenured_wrong_bytes,
        .wrong_bytes = seen->tenured_wrong_bytes,
        .guest_bytes = seen->guest_bytes,
        .turned_away_bytes = seen->turned_away_bytes,
        .newcomer = seen->served && is_newcomer(lane->track),
        .used_peak = ended->cost.used_peak,
        .live_peak = ended->cost.bytes_peak,
        .reserved_peak = ended->cost.reserved_peak,
        .complete = seen->complete,
        .taken_over = seen->taken_over,
        .longer = seen->longer,
        .keyed = seen->served && lane->track->plan->by_key,
        .blocks = ended_allocations(ended),
        .slots = seen->served ? lane->track->plan->slot_count : 0,
        .unserved = seen->unserved,
        .lost = seen->recorded && tells_nothing(lane->track, ended_allocations(ended)),
    };
    step.grown = seen->grown || step.refused_bytes;
    tell_from_strangers(&step, seen);
    if (seen->recorded && !step.lost) {
        step.mode = LEARN_RECORD;
        step.slots = lane->track->record_count;
        step.hash = draft_hash(lane->track->record, lane->track->record_count);
        step.keys = draft_keys(lane->track->record, lane->track->record_count);
        if (coarse_make(coarse, lane->track->record, lane->track->record_count))
            step.coarse_hash = draft_hash(coarse->record, coarse->count) | 1;
        step.coarse_blocks = coarse->count;
        step.small = !step.coarse_hash || coarse->count < lane->track->record_count;
    }
    return step;
}

static void forget_plan(struct course *course) {
    plan_drop(course->plan);
    course->plan = NULL;
}

static void forget_note(struct course *course) {
    draft_drop(course->noted);
    course->noted = NULL;
}

static void forget_finer(struct course *course) {
    draft_drop(course->finer);
    course->finer = NULL;
}

static void forget_coarser(struct course *course) {
    plan_drop(course->coarser);
    course->coarser = NULL;
}

/* What was kept for a comparison, or a verdict, that will not come any more. */
static void tidy(struct course *course, enum learn_verdict verdict) {
    if (!course->learning.noted)
        forget_note(course);
    if (!course->learning.finer && verdict != LEARN_REFINE)
        forget_finer(course);
    if (!course->learning.refining && verdict != LEARN_COARSEN)
        forget_coarser(course);
}

/* A suspended course has no plan, and its arena is given up. */
static void rest(const struct ebb_site *site, struct course *course) {
    search_stop(site, course);
    forget_plan(course);
}

/* False: the step was taken for one of another kind, whose course has nothing to learn from it. By
 * what it was taken for, not by the row: others may have changed that since the step began. */
static bool is_of_its_kind(const struct lane *lane, const struct ended *ended) {
    struct step_kind kind = lane->course->kind;
    return !kind.before || kind.count == rhythm_count(ended_allocations(ended));
}

/* The parent has been looked at, and had something. */
static bool may_have_guests(const struct lane *lane) {
    return !lane->site->options.tenure_none && lane->track && lane->track->above;
}

/* Fewer steps may have begun than when they met: some turned out not to begin. */
static bool is_recent(const struct ebb_site *site, uint64_t meeting) {
    return meeting && site->begun < meeting + LEARN_RECENT;
}

bool course_is_alone(const struct ebb_site *site) {
    return !is_recent(site, site->crowded) && !is_recent(site, site->met) && !site->options.ring;
}

/* Something is to be made, by this thread. Lock held. */
static void take_up(struct work *work, const struct learn_step *step) {
    struct course *course = work->course;
    work->is_coarse = course->learning.coarse;
    work->is_finer = course->learning.finer;
    work->repeats = course->learning.repeats;
    work->alone = step->alone;
    work->hash = step->hash;
    work->coarse_hash = step->coarse_hash;
    work->ahead = learn_looks_ahead(&course->learning);
    work->height_most = learn_height_most(&course->learning);
    uint64_t peak = learn_recent_peak(&course->learning);
    work->merged_most = peak + peak / LEARN_MERGED_PART;
    work->shorter_most = peak + peak / LEARN_SHORTER_PART;
    work->outlived = step->refused_bytes != 0;
    work->guests_most = may_have_guests(work->lane) ? course->learning.guests_most : 0;
    course->planning = true;
}

/* True: that was all, and the step is counted and over for its lane. */
static bool judge(struct work *work, struct learn_step *step, const struct ended *ended,
                  struct excess *excess) {
    struct lane *lane = work->lane;
    struct course *course = work->course;
    struct ebb_site *site = lane->site;
    pthread_mutex_lock(&site->lock);
    if (ended->seen.served && lane->track->kept.met)
        site->met = site->begun;
    step->alone = course_is_alone(site);
    bool outdated = step->mode == LEARN_SERVE && lane->track->plan != course->plan;
    bool own = is_of_its_kind(lane, ended), busy = outdated || course->planning;
    if (lane->rhythm)
        rhythm_end(lane->rhythm, lane->number, rhythm_count(ended_allocations(ended)));
    work->verdict = own ? learn_judge(&course->learning, step, busy) : LEARN_KEEP;
    if (lane->rhythm && own && !busy && course_sort(lane, step, work->verdict))
        work->verdict = LEARN_KEEP;
    if (!course->planning && course->learning.suspended)
        rest(site, course);
    if (!course->planning)
        tidy(course, work->verdict);
    if (work->verdict != LEARN_KEEP)
        take_up(work, step);
    work->goes_on = course->learning.to_record != 0;
    bool is_all = work->verdict == LEARN_KEEP && !ended->seen.recorded;
    if (is_all)
        site_count_locked(lane, ended, excess);
    pthread_mutex_unlock(&site->lock);
    return is_all;
}

/* ---- making ---- */

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
    const struct packing_effort effort = {.keys = PACKING_ORDERS, .slack_ppm = ENOUGH_PPM,
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

/* So they do the present plan, unless recent steps needed much less than that. */
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

/* A draft for steps of both, if neither leads the other. It holds no more than a try may. */
static struct draft *draft_of_both(const struct work *work, const struct draft *one,
                                   const struct draft *other) {
    uint64_t held = size_larger(LEARN_SLACK_BYTES, work->merged_most / LEARN_TRY_PART);
    if (!one || draft_leads(one, other) || draft_leads(other, one))
        return NULL;
    return draft_merge(one, other, size_smaller(held / LEARN_SLOT_BYTES, PLAN_SLOTS_MOST),
                       work->merged_most);
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

/* What the step asked for in the slot; 0: nothing, or nothing that others will. */
static size_t asked_for(const struct work *work, uint32_t number) {
    const struct track *track = work->lane->track;
    bool tells = work->outlived || !track_has_refused(track, number);
    return tells ? track->slots[number].bytes : 0;
}

/* The same, and what others asked for since the plan was made, if that counts. */
static size_t wanted(const struct work *work, uint32_t number) {
    size_t others = work->for_one ? 0 : plan_wanted(work->course->plan, number);
    return size_larger(asked_for(work, number), others);
}

/* True: it is too high, or there is no memory for it. */
static bool grow_by(struct work *work, size_t ahead) {
    bool wider = false;
    take_present(work);
    for (uint32_t i = 0; work->draft && i < work->draft->count; i++)
        wider |= draft_fit_ahead(work->draft, i, wanted(work, i), ahead);
    if (wider)
        work->plan = plan_at_desk(work, work->height_most);
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
    while (grow_by(work, part) && (part < SIZE_MAX || leave_others_out(work))) {
        restore_present(work);
        part = less_ahead(part);
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

static void make(struct work *work) {
    bound_height(work);
    if (work->course->plan)
        work->present = draft_of_plan(work->course->plan);
    makers[work->verdict](work);
}

/* ---- publishing ---- */

/* What was there before is left in the work, to be dropped. */
static void put_plan(struct work *work) {
    struct course *course = work->course;
    struct plan *before = course->plan;
    site_count_plan(work->lane->site, work->plan);
    course->plan = work->plan;
    work->plan = before;
    if (work->verdict == LEARN_REFINE) { /* it may come back */
        work->plan = course->coarser;
        course->coarser = before;
    }
    struct draft *finer = course->finer;
    course->finer = work->finer;
    work->finer = finer;
    learn_adopted(&course->learning, course->plan->hash, course->plan->coarse);
    if (work->verdict == LEARN_GROW)
        learn_grew(&course->learning);
    if (work->unseated || (work->draft && work->draft->tenured && !work->guests_most))
        learn_left_out(&course->learning);
    forget_note(course);
    if (work->lane->site->options.search_ns)
        work->searches = search_ask(work->lane->site, course);
}

static void put_note(struct work *work) {
    struct draft *before = work->course->noted;
    work->course->noted = work->draft;
    work->draft = before;
}

static void publish(struct work *work, uint64_t began) {
    struct ebb_site *site = work->lane->site;
    pthread_mutex_lock(&site->lock);
    work->course->planning = false;
    site->stats.planning_ns += os.now_ns() - began;
    if (work->plan)
        put_plan(work);
    else if (work->verdict == LEARN_NOTE)
        put_note(work);
    else
        learn_failed(&work->course->learning, work->verdict);
    pthread_mutex_unlock(&site->lock);
    if (work->searches)
        search_begin(site);
    plan_drop(work->plan);
    draft_drop(work->draft);
    draft_drop(work->finer);
    draft_drop(work->present);
}

/* Bytes that a record like this step's needs. */
static size_t record_bytes(const struct lane *lane) {
    return lane->track->record_count * sizeof *lane->track->record;
}

bool course_learn(struct lane *lane, const struct ended *ended, struct excess *excess) {
    struct work work = {.lane = lane, .course = lane->course, .desk = ended->pool};
    if (!work.course)
        return false;
    struct learn_step step = describe(lane, ended, &work.coarse);
    if (judge(&work, &step, ended, excess))
        return true;
    if (work.verdict != LEARN_KEEP) {
        uint64_t began = os.now_ns();
        make(&work);
        publish(&work, began);
    }
    coarse_drop(&work.coarse);
    size_t wanted = work.goes_on && ended->seen.recorded ? record_bytes(lane) : 0;
    if (ended->seen.recorded)
        track_forget_record(lane->track);
    if (ended->seen.recorded || work.verdict != LEARN_KEEP)
        plan_pool_rest(wanted);
    return false;
}

void course_end(struct course *course) {
    forget_plan(course);
    forget_note(course);
    forget_finer(course);
    forget_coarser(course);
}
