// SPDX-License-Identifier: Apache-2.0
/*
 * course.c - what follows from a step that has ended.
 *
 *     describe, judge (lock held)  ->  make (work.h; no lock)  ->  publish (lock held)
 *
 * Invariant: while `planning` is set, one thread is at work with the course's drafts and plan, and
 * no other judges them or puts others in their place; it clears the flag in any case. A plan that
 * cannot be made leaves the present one, if any, as it is.
 */
#include "step/work.h"

#include "base/os.h"
#include "base/size.h"

/* ---- describing ---- */

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

/* The hash of a coarse record is not 0, which says that there is none. */
static void describe_record(struct learn_step *step, const struct track *track,
                            struct coarse_record *coarse) {
    step->mode = LEARN_RECORD;
    step->slots = track->record_count;
    step->hash = draft_hash(track->record, track->record_count);
    step->keys = draft_keys(track->record, track->record_count);
    if (coarse_make(coarse, track->record, track->record_count))
        step->coarse_hash = draft_hash(coarse->record, coarse->count) | 1;
    step->coarse_blocks = coarse->count;
    step->small = !step->coarse_hash || coarse->count < track->record_count;
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
    if (seen->recorded && !step.lost)
        describe_record(&step, lane->track, coarse);
    return step;
}

/* ---- judging ---- */

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

/* Something is to be made, by this thread: all that must not change meanwhile. Lock held. */
static void take_up(struct work *work, const struct learn_step *step) {
    struct course *course = work->course;
    work->is_coarse = course->learning.coarse;
    work->is_finer = course->learning.finer;
    work->repeats = course->learning.repeats;
    work->alone = step->alone;
    work->hash = step->hash;
    work->coarse_hash = step->coarse_hash;
    work->ahead = enlarging_looks_ahead(&course->learning.enlarging);
    work->height_most = peaks_height_most(&course->learning.peaks);
    uint64_t peak = peaks_used(&course->learning.peaks);
    work->alive_most = peak + peak / LEARN_MERGED_PART;
    work->merged_most = peak + size_larger(peak / LEARN_MERGED_PART, LEARN_SLACK_BYTES);
    work->guess_enough = peak + size_larger(peak / LEARN_GUESS_PART, LEARN_GUESS_BYTES);
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

/* ---- publishing ---- */

/* What was there before is left in the work, to be dropped. True: a search is to begin. */
static bool put_plan(struct work *work) {
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
    if (work->unseated)
        learn_left_out(&course->learning);
    forget_note(course);
    return work->lane->site->options.search_ns && search_ask(work->lane->site, course);
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
    bool searches = false;
    if (work->plan)
        searches = put_plan(work);
    else if (work->verdict == LEARN_NOTE)
        put_note(work);
    else
        learn_failed(&work->course->learning, work->verdict);
    pthread_mutex_unlock(&site->lock);
    if (searches)
        search_begin(site);
    work_drop(work);
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
        work_make(&work);
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
