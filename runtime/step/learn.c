// SPDX-License-Identifier: Apache-2.0
/*
 * learn.c - the policy (see learn.h), a pure function of the steps that it is told of.
 *
 * Invariant: a suspended course has no plan; one that has a plan and nothing to record serves it.
 * Nothing here fails.
 */
#include "step/learn.h"

#include "step/kin.h"
#include "step/pause.h"

static uint64_t part(uint64_t amount, uint32_t ppm) {
    return amount / LEARN_MILLION * ppm + amount % LEARN_MILLION * ppm / LEARN_MILLION;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

void learn_start(struct learning *learning) {
    *learning = (struct learning){.to_record = LEARN_FIRST, .mean_ppm = LEARN_MILLION,
                                  .long_ppm = LEARN_MILLION, .patience = LEARN_IN_A_ROW,
                                  .wait_next = LEARN_WAIT, .guests_most = UINT64_MAX,
                                  .fewer = {.next = LEARN_WAIT},
                                  .no_growth = {.next = LEARN_WAIT}};
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

static void note_peaks(struct learning *learning, const struct learn_step *step) {
    learning->highest = step->live_peak > larger(learning->live_now, learning->live_before);
    if (learning->peak_steps++ >= LEARN_RECENT) {
        learning->peak_before = learning->peak_now;
        learning->live_before = learning->live_now;
        learning->peak_now = learning->live_now = 0;
        learning->peak_steps = 1;
    }
    learning->peak_now = larger(learning->peak_now, step->used_peak);
    learning->live_now = larger(learning->live_now, step->live_peak);
}

uint64_t learn_height_most(const struct learning *learning) {
    return part(larger(learning->peak_now, learning->peak_before), LEARN_HEIGHT_PPM) +
           LEARN_SLACK_BYTES;
}

bool learn_looks_ahead(const struct learning *learning) {
    return learning->rises > LEARN_GROWTHS;
}

/* Share of the bytes that were well served; survivors that had to be copied were not. */
static uint32_t share_ppm(const struct learn_step *step) {
    uint64_t all = step->hit_bytes + step->missed_bytes;
    uint64_t well = step->hit_bytes - (step->escaped_bytes < step->hit_bytes ? step->escaped_bytes
                                                                             : step->hit_bytes);
    return all ? (uint32_t)((double)well / (double)all * LEARN_MILLION) : LEARN_MILLION;
}

/* What pages are measured against. Where steps come one at a time, those that the largest of late
 * needed are there anyway; where several are open at once, others could have them. */
static uint64_t needed(const struct learning *learning, const struct learn_step *step) {
    uint64_t recent = larger(learning->live_now, learning->live_before);
    return step->alone ? larger(recent, step->live_peak) : step->live_peak;
}

static uint64_t reserved_ppm(const struct learning *learning, const struct learn_step *step) {
    uint64_t live = needed(learning, step);
    return live ? step->reserved_peak * 1000 / (live / 1000 + 1) : 0;
}

/* Survivors are far larger than those that the plan was learnt from. */
static bool has_other_survivors(const struct learn_step *step) {
    return step->refused_bytes > step->tenured_bytes / 4;
}

/* Guests that were turned away, which are missed as well, are another matter: there will be
 * fewer. */
static bool is_bad(const struct learn_step *step) {
    struct learn_step apart = *step;
    apart.missed_bytes -= step->turned_away_bytes;
    return share_ppm(&apart) < LEARN_GOOD_PPM || step->taken_over || has_other_survivors(step);
}

/* Growth is left out of it. */
static void note_share(struct learning *learning, uint32_t share) {
    learning->mean_ppm = (uint32_t)(part(learning->mean_ppm, LEARN_KEEP_PPM) +
                                    part(share, LEARN_MILLION - LEARN_KEEP_PPM));
    learning->long_ppm = (uint32_t)(part(learning->long_ppm, LEARN_KEEP_LONG_PPM) +
                                    part(share, LEARN_MILLION - LEARN_KEEP_LONG_PPM));
}

/* Of late, after some tries, or for long. */
static bool serves_too_little(const struct learning *learning) {
    return (learning->mean_ppm < LEARN_SUSPEND_PPM && learning->fruitless > LEARN_TRIES) ||
           learning->long_ppm < LEARN_SUSPEND_PPM;
}

static uint64_t moving_mean(uint64_t mean, uint64_t next) {
    return mean ? part(mean, LEARN_KEEP_PPM) + part(next, LEARN_MILLION - LEARN_KEEP_PPM) : next;
}

/* Of late steps took more pages than they may, and than best fit took; this one, too. */
static bool is_bloated(const struct learning *learning, const struct learn_step *step) {
    return learning->served_ppm > LEARN_MILLION + LEARN_SLACK_PPM &&
           learning->served_ppm > learning->plain_ppm &&
           step->reserved_peak > needed(learning, step) + LEARN_SLACK_BYTES;
}

static uint32_t more_patience(uint32_t patience) {
    return patience < LEARN_PATIENCE_MOST ? 2 * patience : patience;
}

/* The plan has proven itself. */
static void settle_patience(struct learning *learning) {
    if (!learning->known || learning->patience < LEARN_PATIENCE_PROVEN)
        learning->patience = LEARN_PATIENCE_PROVEN;
}

static void count_in_a_row(uint32_t *count, bool again) {
    *count = again ? *count + 1 : 0;
}

/* ---- what follows ---- */

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
    learning->unserved = 0;
    learning->crowded = learning->fruitless = learning->shortened = learning->futile = 0;
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

/* A plan of so many blocks of the step's would hold more than the step itself, and what it has in
 * the parent, which was its own when it was recorded. */
static bool outweighs(const struct learn_step *step, uint64_t blocks) {
    uint64_t held = blocks * LEARN_SLOT_BYTES;
    return held > LEARN_DEAR_BYTES &&
           held > step->live_peak + step->tenured_bytes + step->guest_bytes;
}

/* The first step of a course that began with the plan of another one. */
static enum learn_verdict judge_inherited(struct learning *learning,
                                          const struct learn_step *step) {
    learning->inherited = false;
    if (outweighs(step, step->slots))
        return suspend(learning);
    return step->complete ? LEARN_FIT : record_again(learning);
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

/* The step was larger than the plan. True: a larger one is to be made now. Where nothing was missed
 * a larger one would serve no more. */
static bool may_grow(struct learning *learning, const struct learn_step *step, bool bad) {
    uint64_t all = step->hit_bytes + step->missed_bytes;
    if (!step->missed_bytes)
        return false;
    if (bad && learning->futile >= LEARN_FUTILE)
        return false; /* each served no step but the one that it was made for */
    learning->outgrown += step->missed_bytes;
    if (learning->growths >= LEARN_GROWTHS &&
        learning->outgrown / (bad ? 1 : LEARN_OUTGROWN) < all)
        return false;
    learning->outgrown = 0;
    if (learning->growths < LEARN_GROWTHS)
        learning->growths++;
    learning->futile += bad;
    if (bad && learning->highest && learning->rises <= LEARN_GROWTHS)
        learning->rises++;
    return true;
}

/* A loop was longer than the plan's: some times at once, and then as soon as what such steps missed
 * adds up to what it costs to look for a longer plan. Loops that rise from step to step are longer
 * than each plan. What a complete step missed, which is larger, may_grow() has counted. Where
 * nothing was missed a longer plan would serve no more. */
static bool wants_longer(struct learning *learning, const struct learn_step *step) {
    if (!step->longer || step->complete || !step->missed_bytes)
        return false;
    learning->outgrown += step->missed_bytes;
    if (learning->looks >= LEARN_GROWTHS &&
        learning->outgrown / LEARN_OUTGROWN < step->hit_bytes + step->missed_bytes)
        return false;
    learning->outgrown = 0;
    learning->looks = learning->looks < LEARN_GROWTHS ? learning->looks + 1 : 1;
    return true;
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
    uint64_t most = larger(step->blocks, learning->record_blocks);
    uint64_t apart = 2 * most - step->blocks - learning->record_blocks;
    return learning->refining && failed && apart <= most / LEARN_NEARLY_PART;
}

static enum learn_verdict coarsen(struct learning *learning) {
    learning->refining = false;
    learning->repeats = true;
    return LEARN_COARSEN;
}

/* A plan of loops takes too many pages: it is shortened so many times, until one is proven. */
static bool may_be_shorter(struct learning *learning, const struct learn_step *step) {
    bool shorter = step->keyed && learning->shortened++ < LEARN_TRIES;
    learning->good = shorter ? 0 : learning->good; /* that one has yet to prove itself */
    return shorter;
}

static enum learn_verdict judge_served(struct learning *learning, const struct learn_step *step) {
    uint32_t share = share_ppm(step);
    bool larger_than_plan = step->complete && step->grown && !learning->no_growth.left;
    bool bad = is_bad(step);
    bool grows = larger_than_plan && may_grow(learning, step, bad);
    if (!grows) /* else there is a better plan already */
        note_share(learning, share);
    count_in_a_row(&learning->bad, bad && !grows);
    count_in_a_row(&learning->hopeless, share < LEARN_HOPELESS_PPM);
    learning->served_ppm = moving_mean(learning->served_ppm, reserved_ppm(learning, step));
    count_in_a_row(&learning->bloated, is_bloated(learning, step));
    count_in_a_row(&learning->wrong, step->wrong_bytes > step->tenured_bytes / 4);
    if (!step->newcomer)
        count_in_a_row(&learning->crowded, !bad && step->turned_away_bytes > step->guest_bytes);
    count_in_a_row(&learning->good, !bad);
    learning->futile = bad ? learning->futile : 0;
    if (!bad)
        (void)pause_ends(&learning->no_growth);
    if (learning->good == LEARN_IN_A_ROW) {
        learning->fruitless = learning->hopeless_tries = 0;
        learning->tried = false;
    }
    if (learning->good == LEARN_WAIT) {
        learning->wait_next = LEARN_WAIT;
        learning->proven = true;
        settle_patience(learning);
        learning->shortened = learning->unproven = 0;
        learning->rises = learn_looks_ahead(learning) ? learning->rises : 0;
        learning->refined = learning->refining ? 0 : learning->refined;
        learning->refining = false;
    }
    if (was_refined_in_vain(learning, step))
        return coarsen(learning);
    if (learning->bloated >= LEARN_IN_A_ROW)
        return may_be_shorter(learning, step) ? LEARN_SHORTEN : suspend(learning);
    if (learning->tried && !step->keyed && learning->hopeless >= LEARN_IN_A_ROW)
        return give_up(learning);
    learning->repeats = repeats_finely(learning, step);
    if (learning->repeats)
        return LEARN_REFINE;
    if (grows)
        return LEARN_GROW;
    if (serves_too_little(learning))
        return suspend(learning);
    if (learning->wrong >= (learning->doubtful ? learning->patience : LEARN_IN_A_ROW)) {
        learning->doubtful = true;
        return record_again(learning);
    }
    if (learning->doubtful && !learning->pardoned && learning->good >= LEARN_WAIT)
        return pardon(learning);
    if (learning->bad >= learning->patience)
        return record_again(learning);
    if (wants_longer(learning, step))
        return look(learning);
    if (learning->crowded >= LEARN_IN_A_ROW)
        return dismiss(learning, step);
    if (!bad && !learning->crowded)
        pause_hold(&learning->fewer);
    return !bad && pause_ends(&learning->fewer) ? readmit(learning) : LEARN_KEEP;
}

/* What was recorded is not like the plan, if there is one: patience with that grows. */
static void note_fruitless(struct learning *learning) {
    learning->fruitless++;
    if (!learning->planned)
        return;
    learning->unproven++;
    if (learning->fruitless > LEARN_TRIES || learning->unproven > LEARN_TRIES)
        learning->patience = more_patience(learning->patience);
}

/* The course was suspended after its first try, and no warming up lasts longer: once more. */
static bool try_again(struct learning *learning) {
    bool waited = learning->wait_next > LEARN_WAIT;
    if (!waited || learning->hopeless_tries != 1)
        return false;
    learning->hopeless_tries++; /* whatever becomes of it */
    return true;
}

static bool is_dear(const struct learn_step *step) {
    uint64_t held = step->slots * LEARN_SLOT_BYTES;
    return held > LEARN_SLACK_BYTES && held > step->live_peak / LEARN_TRY_PART;
}

/* The last record that was asked for is neither like the other nor like the plan. */
static enum learn_verdict judge_change(struct learning *learning, const struct learn_step *step) {
    bool dear = is_dear(step) && (!learning->planned || outweighs(step, step->slots));
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

/* Another structure than the plan's repeats. Where too many before it have not proven themselves,
 * several take turns that are too short for a plan of each, which helps as little as if nothing
 * repeated. */
static void note_other(struct learning *learning) {
    if (!learning->planned || ++learning->unproven <= LEARN_TRIES)
        return;
    learning->fruitless++;
    learning->patience = more_patience(learning->patience);
}

/* The plan has done nothing wrong: it gives way only to a longer one, as coarse as it is. */
static enum learn_verdict judge_look(struct learning *learning, const struct learn_step *step) {
    learning->looking = learning->noted = learning->finer = false;
    learning->coarse = learning->plan_coarse && step->coarse_hash;
    return outweighs(step, learning->coarse ? step->coarse_blocks : step->slots) ? LEARN_KEEP
                                                                                 : LEARN_LONGER;
}

/* One that was asked for. */
static enum learn_verdict judge_record(struct learning *learning, const struct learn_step *step) {
    bool fine = learning->noted && learning->hash == step->hash;
    bool coarse = learning->noted && step->coarse_hash &&
                  learning->coarse_hash == step->coarse_hash;
    bool like_coarse = learning->planned && learning->plan_coarse && step->coarse_hash &&
                       learning->plan_hash == step->coarse_hash;
    bool as_planned = learning->planned && (like_coarse || learning->plan_hash == step->hash);
    bool dear = outweighs(step, step->slots);
    learning->coarse = (!fine || dear) && (coarse || like_coarse);
    learning->repeats = fine || coarse;
    learning->kin = learning->noted && are_kin(learning->keys, step->keys);
    learning->finer = learning->coarse && !dear;
    learning->record_blocks = step->blocks;
    learning->hash = step->hash;
    learning->coarse_hash = step->coarse_hash;
    learning->keys = step->keys;
    bool will_do = learning->noted && !step->small;
    learning->noted = true;
    learning->to_record = will_do ? 0 : learning->to_record - 1;
    if (learning->records < 2)
        learning->records++;
    if (learning->looking)
        return judge_look(learning, step);
    bool heavy = outweighs(step, learning->coarse ? step->coarse_blocks : step->slots);
    enum learn_verdict note = heavy ? LEARN_KEEP : LEARN_NOTE; /* what is kept may be planned */
    if (learning->records < 2 && learning->foretold && !is_dear(step))
        learning->to_record = 0;
    else if (learning->records < 2)
        return note;
    if (learning->repeats || (as_planned && !learning->doubtful)) {
        if (as_planned && !learning->pardoning) { /* it helps little */
            learning->patience = more_patience(learning->patience);
            learning->known = !learning->doubtful;
        }
        if (!as_planned)
            note_other(learning);
        learning->to_record = 0;
        learning->pardoning = false;
        return heavy ? suspend(learning) : LEARN_ADOPT;
    }
    return learning->to_record ? note : judge_change(learning, step);
}

/* Where several are open at once, more begin to be recorded than are asked for: those that end when
 * there is a verdict, or a plan, tell nothing against it. */
static enum learn_verdict judge_recorded(struct learning *learning,
                                         const struct learn_step *step) {
    learning->plain_ppm = moving_mean(learning->plain_ppm, reserved_ppm(learning, step));
    return learning->to_record ? judge_record(learning, step) : LEARN_KEEP;
}

/* The plan has done nothing wrong. What broke the record off may do so each time, so the next look
 * waits until that may have cost as much as looking. */
static enum learn_verdict lose_look(struct learning *learning) {
    learning->looking = false;
    learning->looks = LEARN_GROWTHS;
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

enum learn_verdict learn_judge(struct learning *learning, const struct learn_step *step,
                               bool busy) {
    note_peaks(learning, step);
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
    if (learning->repeats && learning->unproven <= LEARN_TRIES) {
        learning->mean_ppm = learning->long_ppm = LEARN_MILLION;
        learning->fruitless = 0;
        if (!learning->planned || hash != learning->plan_hash)
            learning->patience = LEARN_IN_A_ROW; /* this one has yet to prove itself */
    }
    if (hash != learning->plan_hash) { /* what varied was another structure */
        learning->growths = learning->rises = learning->futile = 0, learning->outgrown = 0;
        learning->guests_most = UINT64_MAX;
        learning->fewer = learning->no_growth = (struct learn_pause){.next = LEARN_WAIT};
        learning->known = learning->proven = false;
    }
    learning->planned = true;
    learning->plan_coarse = coarse;
    learning->plan_hash = hash;
    learning->suspended = false;
    learning->no_growth.left = 0;
    learning->bad = learning->hopeless = learning->bloated = learning->wrong = 0;
    learning->crowded = learning->unserved = 0, learning->served_ppm = 0;
}

void learn_grew(struct learning *learning) {
    learning->no_growth.next = LEARN_WAIT;
}

void learn_left_out(struct learning *learning) {
    if (!learning->fewer.left)
        pause_begin(&learning->fewer);
}

void learn_failed(struct learning *learning, enum learn_verdict verdict) {
    if (verdict == LEARN_GROW) {
        learning->growths -= learning->growths > 0; /* it was none */
        pause_begin(&learning->no_growth);
    } else if (verdict == LEARN_REFINE)
        learning->refining = false;
    else if (verdict == LEARN_MORE)
        pause_begin(&learning->fewer);
    else if (verdict == LEARN_SHORTEN)
        (void)record_again(learning);
    else if (verdict == LEARN_FEWER || verdict == LEARN_COARSEN)
        return; /* the present one goes on */
    else if (!learning->planned)
        learning->wait = LEARN_WAIT; /* tried again after that */
    else if (learning->repeats)
        note_fruitless(learning); /* of what was like nothing that is noted already */
}
