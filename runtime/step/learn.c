// SPDX-License-Identifier: Apache-2.0
/*
 * learn.c - the policy (see learn.h), a pure function of the steps that it is told of.
 *
 * Invariant: a suspended course has no plan; one that has a plan and nothing to record serves it.
 * Nothing here fails.
 */
#include "step/learn.h"

#include "base/size.h"
#include "step/kin.h"
#include "step/ppm.h"

void learn_start(struct learning *learning) {
    *learning = (struct learning){.to_record = LEARN_FIRST, .mean_ppm = LEARN_MILLION,
                                  .long_ppm = LEARN_MILLION, .patience = {.steps = LEARN_IN_A_ROW},
                                  .wait_next = LEARN_WAIT, .guests_most = UINT64_MAX,
                                  .fewer = {.next = LEARN_WAIT}};
    enlarging_start(&learning->enlarging);
}

void learn_share(struct learning *learning, const struct learning *from) {
    *learning = *from;
    learning->foretold = true;
    learning->to_record = 0;
    learning->mean_ppm = learning->long_ppm = LEARN_MILLION;
    learning->bad = learning->hopeless = learning->bloated = learning->wrong = learning->good = 0;
    learning->noted = learning->finer = learning->refining = learning->looking = false;
    learning->pardoning = learning->inherited = false;
}

void learn_inherit(struct learning *learning, uint64_t hash, bool coarse) {
    learning->to_record = 0;
    learning->planned = learning->inherited = true;
    learning->plan_hash = hash;
    learning->plan_coarse = coarse;
}

enum learn_mode learn_next(const struct learning *learning) {
    if (learning->to_record)
        return LEARN_RECORD;
    return learning->planned ? LEARN_SERVE : LEARN_PLAIN;
}

/* ---- what a step tells ---- */

/* What pages are measured against. Where steps come one at a time, those that the largest of late
 * needed are there anyway; where several are open at once, others could have them. */
static uint64_t needed(const struct learning *learning, const struct learn_step *step) {
    uint64_t recent = step->alone ? peaks_live(&learning->peaks) : 0;
    return size_larger(recent, step->live_peak);
}

static uint64_t reserved_ppm(const struct learning *learning, const struct learn_step *step) {
    uint64_t live = needed(learning, step);
    return live ? step->reserved_peak * 1000 / (live / 1000 + 1) : 0;
}

static void note_share(struct learning *learning, uint32_t share) {
    learning->mean_ppm = (uint32_t)ppm_mean(learning->mean_ppm, share, LEARN_KEEP_PPM);
    learning->long_ppm = (uint32_t)ppm_mean(learning->long_ppm, share, LEARN_KEEP_LONG_PPM);
}

/* Of late, after some tries, or for long. */
static bool serves_too_little(const struct learning *learning) {
    return (learning->mean_ppm < LEARN_SUSPEND_PPM && learning->patience.fruitless > LEARN_TRIES) ||
           learning->long_ppm < LEARN_SUSPEND_PPM;
}

/* 0: there was no step so far. */
static uint64_t moving_mean(uint64_t mean, uint64_t next) {
    return mean ? ppm_mean(mean, next, LEARN_KEEP_PPM) : next;
}

/* Of late steps took more pages than they may, and than best fit took; this one, too. */
static bool is_bloated(const struct learning *learning, const struct learn_step *step) {
    return learning->served_ppm > LEARN_MILLION + LEARN_SLACK_PPM &&
           learning->served_ppm > learning->plain_ppm &&
           step->reserved_peak > needed(learning, step) + LEARN_SLACK_BYTES;
}

static void count_in_a_row(uint32_t *count, bool again) {
    *count = again ? *count + 1 : 0;
}

/* ---- where the course turns to ---- */

/* Until a suspended course is looked at; the next time twice as long. */
static void await_look(struct learning *learning) {
    learning->wait = learning->wait_next;
    learning->wait_next = learning->wait_next * 2 > LEARN_WAIT_MOST ? LEARN_WAIT_MOST
                                                                    : learning->wait_next * 2;
}

static enum learn_verdict suspend(struct learning *learning) {
    learning->suspended = true;
    learning->planned = false;
    learning->mean_ppm = learning->long_ppm = LEARN_MILLION; /* of the next plan */
    await_look(learning);
    learning->bad = learning->hopeless = learning->bloated = learning->wrong = learning->good = 0;
    learning->crowded = learning->unserved = learning->shortened = 0;
    learning->patience.fruitless = learning->enlarging.futile = 0;
    learning->noted = learning->finer = learning->refining = learning->looking = false;
    learning->pardoning = false;
    return LEARN_KEEP;
}

/* A try that served nothing, or was not made. */
static enum learn_verdict give_up(struct learning *learning) {
    if (learning->hopeless_tries++ == 0)
        learning->wait_next = LEARN_PAUSE;
    return suspend(learning);
}

static enum learn_verdict record_again(struct learning *learning) {
    learning->to_record = 2;
    learning->looking = false;
    learning->bad = learning->wrong = learning->good = 0;
    learning->noted = learning->pardoning = learning->finer = learning->refining = false;
    return LEARN_KEEP;
}

/* LEARN_WAIT steps in a row were good. What raised doubt may have been a step that was odd in all:
 * one more record like the plan tells what survives. */
static enum learn_verdict pardon(struct learning *learning) {
    record_again(learning);
    learning->doubtful = false;
    learning->pardoned = learning->pardoning = true;
    return LEARN_KEEP;
}

/* One step is recorded, which may be longer. */
static enum learn_verdict look(struct learning *learning) {
    record_again(learning);
    learning->to_record = 1;
    learning->looking = true;
    return LEARN_KEEP;
}

/* The coarse plan that was refined takes its place again. */
static enum learn_verdict coarsen(struct learning *learning) {
    learning->refining = false;
    learning->repeats = true;
    return LEARN_COARSEN;
}

/* The parent has less room for guests than its record said. */
static enum learn_verdict dismiss(struct learning *learning, const struct learn_step *step) {
    learning->guests_most = step->guest_bytes;
    learning->crowded = 0;
    if (!learning->fewer.left) /* else some were dismissed, or were to be, just before */
        pause_begin(&learning->fewer);
    return LEARN_FEWER;
}

static enum learn_verdict readmit(struct learning *learning) {
    learning->guests_most = UINT64_MAX;
    return LEARN_MORE;
}

/* ---- after a step that was served ---- */

/* The first step of a course that began with the plan of another one. */
static enum learn_verdict judge_inherited(struct learning *learning,
                                          const struct learn_step *step) {
    learning->inherited = false;
    if (learn_step_outweighs(step, step->slots))
        return suspend(learning);
    return step->complete ? LEARN_FIT : record_again(learning);
}

/* The step was larger than the plan, and a larger one is to be made now. */
static bool enlarges(struct learning *learning, const struct learn_step *step, bool bad) {
    return step->complete && step->grown &&
           enlarging_is_due(&learning->enlarging, step->missed_bytes, learn_step_bytes(step), bad,
                            learning->peaks.rose);
}

/* A loop was longer than the plan's, and a longer plan is to be looked for now. What a complete
 * step missed, which is larger, has counted already. */
static bool wants_longer(struct learning *learning, const struct learn_step *step) {
    return step->longer && !step->complete &&
           enlarging_wants_look(&learning->enlarging, step->missed_bytes, learn_step_bytes(step));
}

/* The first step under a coarse plan has as many blocks as the one that was recorded: the first
 * steps of a program are odd in small blocks, and then all are the same. */
static bool repeats_finely(struct learning *learning, const struct learn_step *step) {
    bool repeats = learning->finer && step->complete && step->blocks == learning->record_blocks &&
                   learning->refined != learning->plan_hash;
    learning->finer = false;
    if (repeats)
        learning->refined = learning->plan_hash;
    learning->refining |= repeats;
    return repeats;
}

/* They were not all the same: a step with nearly as many blocks does badly, or takes pages for
 * nothing. With the coarse plan it would not, to which small blocks do not matter. */
static bool was_refined_in_vain(const struct learning *learning, const struct learn_step *step) {
    bool failed = learning->bad || learning->bloated >= LEARN_IN_A_ROW;
    uint64_t most = size_larger(step->blocks, learning->record_blocks);
    uint64_t apart = 2 * most - step->blocks - learning->record_blocks;
    return learning->refining && failed && apart <= most / LEARN_NEARLY_PART;
}

/* A plan of loops takes too many pages: it is shortened so many times, until one is proven. */
static bool may_be_shorter(struct learning *learning, const struct learn_step *step) {
    bool shorter = step->keyed && learning->shortened++ < LEARN_TRIES;
    learning->good = shorter ? 0 : learning->good; /* that one has yet to prove itself */
    return shorter;
}

/* What so many good steps in a row say of the plan. */
static void note_good(struct learning *learning) {
    if (learning->good == LEARN_IN_A_ROW) {
        learning->patience.fruitless = learning->hopeless_tries = 0;
        learning->tried = false;
    }
    if (learning->good == LEARN_WAIT) {
        learning->wait_next = LEARN_WAIT;
        learning->proven = true;
        patience_settle(&learning->patience);
        enlarging_settle(&learning->enlarging);
        learning->shortened = 0;
        learning->refined = learning->refining ? 0 : learning->refined;
        learning->refining = false;
    }
}

/* If it enlarges the plan, the larger one is better than the one that served it so badly. */
static void note_served(struct learning *learning, const struct learn_step *step, bool bad,
                        bool enlarges_plan) {
    uint32_t share = learn_step_share_ppm(step, step->missed_bytes);
    if (!enlarges_plan)
        note_share(learning, share);
    learning->served_ppm = moving_mean(learning->served_ppm, reserved_ppm(learning, step));
    count_in_a_row(&learning->bad, bad && !enlarges_plan);
    count_in_a_row(&learning->good, !bad);
    count_in_a_row(&learning->hopeless, share < LEARN_HOPELESS_PPM);
    count_in_a_row(&learning->bloated, is_bloated(learning, step));
    count_in_a_row(&learning->wrong, step->wrong_bytes > step->tenured_bytes / 4);
    if (!step->newcomer)
        count_in_a_row(&learning->crowded, !bad && step->turned_away_bytes > step->guest_bytes);
    enlarging_note(&learning->enlarging, bad);
    note_good(learning);
}

static enum learn_verdict judge_served(struct learning *learning, const struct learn_step *step) {
    bool bad = learn_step_is_bad(step), enlarges_plan = enlarges(learning, step, bad);
    note_served(learning, step, bad, enlarges_plan);
    if (was_refined_in_vain(learning, step))
        return coarsen(learning);
    if (learning->bloated >= LEARN_IN_A_ROW)
        return may_be_shorter(learning, step) ? LEARN_SHORTEN : suspend(learning);
    if (learning->tried && !step->keyed && learning->hopeless >= LEARN_IN_A_ROW)
        return give_up(learning);
    learning->repeats = repeats_finely(learning, step);
    if (learning->repeats)
        return LEARN_REFINE;
    if (enlarges_plan)
        return LEARN_GROW;
    if (serves_too_little(learning))
        return suspend(learning);
    if (learning->wrong >= (learning->doubtful ? learning->patience.steps : LEARN_IN_A_ROW)) {
        learning->doubtful = true;
        return record_again(learning);
    }
    if (learning->doubtful && !learning->pardoned && learning->good >= LEARN_WAIT)
        return pardon(learning);
    if (learning->bad >= learning->patience.steps)
        return record_again(learning);
    if (wants_longer(learning, step))
        return look(learning);
    if (learning->crowded >= LEARN_IN_A_ROW)
        return dismiss(learning, step);
    if (!bad && !learning->crowded)
        pause_hold(&learning->fewer);
    return !bad && pause_ends(&learning->fewer) ? readmit(learning) : LEARN_KEEP;
}

/* ---- after one that was recorded ---- */

/* What was recorded is not like the plan, if there is one. */
static void note_fruitless(struct learning *learning) {
    patience_note_fruitless(&learning->patience, learning->planned);
}

/* The course was suspended after its first try, and no warming up lasts longer: once more. */
static bool try_again(struct learning *learning) {
    bool waited = learning->wait_next > LEARN_WAIT;
    if (!waited || learning->hopeless_tries != 1)
        return false;
    learning->hopeless_tries++; /* whatever becomes of it */
    return true;
}

/* The last record that was asked for is neither like the other nor like the plan. */
static enum learn_verdict judge_change(struct learning *learning, const struct learn_step *step) {
    bool dear = learn_step_is_dear(step) &&
                (!learning->planned || learn_step_outweighs(step, step->slots));
    if (learning->suspended && (dear || !(learning->kin || try_again(learning)))) {
        learning->noted = false;
        await_look(learning);
        return LEARN_KEEP;
    }
    if (learning->pardoning) { /* the plan has done nothing wrong */
        learning->noted = false;
        return LEARN_KEEP;
    }
    if (dear)
        return give_up(learning);
    note_fruitless(learning);
    return LEARN_ADOPT;
}

/* A plan of the record, as coarse as that would be, outweighs the step. */
static bool is_heavy(const struct learning *learning, const struct learn_step *step) {
    return learn_step_outweighs(step, learning->coarse ? step->coarse_blocks : step->slots);
}

/* The plan has done nothing wrong: it gives way only to a longer one, as coarse as it is. */
static enum learn_verdict judge_look(struct learning *learning, const struct learn_step *step) {
    learning->looking = learning->noted = learning->finer = false;
    learning->coarse = learning->plan_coarse && step->coarse_hash;
    return is_heavy(learning, step) ? LEARN_KEEP : LEARN_LONGER;
}

/* What the record is like, and what is known of the last one from now on. True: it is like what the
 * plan was made of. */
static bool compare(struct learning *learning, const struct learn_step *step) {
    bool fine = learning->noted && learning->hash == step->hash;
    bool coarse = learning->noted && step->coarse_hash &&
                  learning->coarse_hash == step->coarse_hash;
    bool like_coarse = learning->planned && learning->plan_coarse && step->coarse_hash &&
                       learning->plan_hash == step->coarse_hash;
    bool dear = learn_step_outweighs(step, step->slots);
    learning->coarse = (!fine || dear) && (coarse || like_coarse);
    learning->repeats = fine || coarse;
    learning->kin = learning->noted && are_kin(learning->keys, step->keys);
    learning->finer = learning->coarse && !dear;
    learning->record_blocks = step->blocks;
    learning->hash = step->hash;
    learning->coarse_hash = step->coarse_hash;
    learning->keys = step->keys;
    return learning->planned && (like_coarse || learning->plan_hash == step->hash);
}

/* The record is like the one before, or like the plan. */
static enum learn_verdict judge_repetition(struct learning *learning, bool as_planned,
                                           bool heavy) {
    if (as_planned && !learning->pardoning) { /* it helps little */
        patience_grow(&learning->patience);
        learning->patience.known = !learning->doubtful;
    }
    if (!as_planned && learning->planned)
        patience_note_other(&learning->patience);
    learning->to_record = 0;
    learning->pardoning = false;
    return heavy ? suspend(learning) : LEARN_ADOPT;
}

/* One that was asked for. */
static enum learn_verdict judge_record(struct learning *learning, const struct learn_step *step) {
    bool as_planned = compare(learning, step);
    bool will_do = learning->noted && !step->small;
    learning->noted = true;
    learning->to_record = will_do ? 0 : learning->to_record - 1;
    if (learning->records < 2)
        learning->records++;
    if (learning->looking)
        return judge_look(learning, step);
    bool heavy = is_heavy(learning, step);
    enum learn_verdict note = heavy ? LEARN_KEEP : LEARN_NOTE; /* what is kept may be planned */
    if (learning->records < 2 && learning->foretold && !learn_step_is_dear(step))
        learning->to_record = 0;
    else if (learning->records < 2)
        return note;
    if (learning->repeats || (as_planned && !learning->doubtful))
        return judge_repetition(learning, as_planned, heavy);
    return learning->to_record ? note : judge_change(learning, step);
}

/* Where several are open at once, more begin to be recorded than are asked for: those that end when
 * there is a verdict, or a plan, tell nothing against it. */
static enum learn_verdict judge_recorded(struct learning *learning,
                                         const struct learn_step *step) {
    learning->plain_ppm = moving_mean(learning->plain_ppm, reserved_ppm(learning, step));
    return learning->to_record ? judge_record(learning, step) : LEARN_KEEP;
}

/* ---- after any other ---- */

/* The plan has done nothing wrong. */
static enum learn_verdict lose_look(struct learning *learning) {
    learning->looking = false;
    enlarging_lose_look(&learning->enlarging);
    return LEARN_KEEP;
}

/* No plan can be made of such a step; who makes them all the time is not recorded each time. */
static enum learn_verdict judge_lost(struct learning *learning) {
    if (--learning->to_record)
        return LEARN_KEEP;
    if (learning->looking)
        return lose_look(learning);
    if (!learning->planned)
        await_look(learning);
    else if (!learning->pardoning) /* else the plan has done nothing wrong */
        note_fruitless(learning);
    learning->noted &= !learning->planned; /* nothing is to be compared with it */
    return LEARN_KEEP;
}

/* The plan of such a step is of no use, if that goes on. */
static enum learn_verdict judge_unserved(struct learning *learning) {
    if (++learning->unserved < LEARN_WAIT)
        return LEARN_KEEP;
    learning->inherited = false;
    return suspend(learning);
}

static enum learn_verdict judge_plain(struct learning *learning, const struct learn_step *step) {
    learning->plain_ppm = moving_mean(learning->plain_ppm, reserved_ppm(learning, step));
    if (step->lost && learning->to_record)
        return judge_lost(learning);
    if (step->unserved && learning->planned && !learning->to_record)
        return judge_unserved(learning);
    if (learning->to_record || learning->planned)
        return LEARN_KEEP; /* it was to be something else, and could not */
    if (learning->wait > 1)
        learning->wait--;
    else
        learning->to_record = 2;
    return LEARN_KEEP;
}

/* ---- after each ---- */

enum learn_verdict learn_judge(struct learning *learning, const struct learn_step *step,
                               bool busy) {
    peaks_note(&learning->peaks, step->used_peak, step->live_peak);
    if (busy)
        return LEARN_KEEP;
    if (step->mode == LEARN_RECORD)
        return judge_recorded(learning, step);
    learning->unserved = step->mode == LEARN_SERVE ? 0 : learning->unserved;
    if (step->mode == LEARN_SERVE)
        return learning->suspended || learning->to_record ? LEARN_KEEP
               : learning->inherited                      ? judge_inherited(learning, step)
                                                          : judge_served(learning, step);
    return judge_plain(learning, step);
}

bool learn_does_badly(const struct learning *learning) {
    return !learning->planned || !learning->good;
}

bool learn_was_odd(const struct learning *learning) {
    return learning->planned && learning->bad && !learning->tried && !learning->proven &&
           !learning->to_record;
}

void learn_goes_on(struct learning *learning) {
    learning->bad = 0;
}

/* ---- what came of it ---- */

void learn_adopted(struct learning *learning, uint64_t hash, bool coarse) {
    if (learning->repeats || hash != learning->plan_hash)
        learning->tried = !learning->repeats;
    if (learning->repeats && learning->patience.unproven <= LEARN_TRIES) {
        learning->mean_ppm = learning->long_ppm = LEARN_MILLION;
        learning->patience.fruitless = 0;
        if (!learning->planned || hash != learning->plan_hash)
            learning->patience.steps = LEARN_IN_A_ROW; /* this one has yet to prove itself */
    }
    if (hash != learning->plan_hash) { /* what varied was another structure */
        enlarging_start(&learning->enlarging);
        learning->guests_most = UINT64_MAX;
        learning->fewer = (struct pause){.next = LEARN_WAIT};
        learning->patience.known = learning->proven = false;
    }
    learning->planned = true;
    learning->plan_coarse = coarse;
    learning->plan_hash = hash;
    learning->suspended = false;
    learning->enlarging.pause.left = 0;
    learning->bad = learning->hopeless = learning->bloated = learning->wrong = 0;
    learning->crowded = learning->unserved = learning->enlarging.vain = 0;
    learning->served_ppm = 0;
}

void learn_grew(struct learning *learning) {
    learning->enlarging.pause.next = LEARN_WAIT;
}

void learn_left_out(struct learning *learning) {
    if (!learning->fewer.left)
        pause_begin(&learning->fewer);
}

void learn_failed(struct learning *learning, enum learn_verdict verdict) {
    if (verdict == LEARN_GROW)
        enlarging_fail(&learning->enlarging);
    else if (verdict == LEARN_REFINE)
        learning->refining = false;
    else if (verdict == LEARN_MORE)
        pause_begin(&learning->fewer);
    else if (verdict == LEARN_SHORTEN)
        (void)record_again(learning);
    else if (verdict == LEARN_FEWER || verdict == LEARN_COARSEN)
        return; /* the present one goes on */
    else if (verdict == LEARN_LONGER && learning->planned)
        enlarging_look_in_vain(&learning->enlarging);
    else if (!learning->planned)
        learning->wait = LEARN_WAIT; /* tried again after that */
    else if (learning->repeats)
        note_fruitless(learning); /* of what was like nothing that is noted already */
}
