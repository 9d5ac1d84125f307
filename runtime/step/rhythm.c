// SPDX-License-Identifier: Apache-2.0
/*
 * rhythm.c - rows of steps (see rhythm.h): a history of counts, compared with itself, and the row
 * that was found in it.
 *
 *     row     84  84  84 234        step n is at place (n + shift) modulo 4
 *
 * Invariant: counts of the last RHYTHM_HISTORY steps that have begun, 0 for those that have not
 * ended or had no allocation. 0 is like no other count, so what overlaps or was broken off is never
 * part of a row.
 */
#include "step/rhythm.h"

void rhythm_start(struct rhythm *rhythm) {
    *rhythm = (struct rhythm){.wait = RHYTHM_WAIT};
}

static uint32_t *place_of(struct rhythm *rhythm, uint64_t number, uint32_t shift) {
    return &rhythm->row[(number + shift) % rhythm->period];
}

/* 0 as well for what was too long ago, or never. */
static uint32_t count_of(const struct rhythm *rhythm, uint64_t number) {
    if (number >= rhythm->begun || rhythm->begun - number > RHYTHM_HISTORY)
        return 0;
    return rhythm->counts[number % RHYTHM_HISTORY];
}

uint64_t rhythm_begin(struct rhythm *rhythm) {
    uint64_t number = rhythm->begun++;
    rhythm->counts[number % RHYTHM_HISTORY] = 0;
    rhythm->servers[number % RHYTHM_HISTORY] = 0;
    return number;
}

/* What was known of the oldest step is not known any more, which is farther back than a row is
 * looked for. */
void rhythm_return(struct rhythm *rhythm, uint64_t number) {
    rhythm->begun -= number + 1 == rhythm->begun;
}

/* ---- looking for one ---- */

/* The last steps were each as the one so many steps before. */
static bool is_period(const struct rhythm *rhythm, uint64_t last, uint32_t steps) {
    for (uint64_t i = 0; i < steps + RHYTHM_SURE; i++) {
        if (last < i + steps)
            return false;
        uint32_t count = count_of(rhythm, last - i);
        if (!count || count != count_of(rhythm, last - i - steps))
            return false;
    }
    return true;
}

static bool is_among(const struct step_kind *kinds, unsigned count, struct step_kind kind) {
    for (unsigned i = 0; i < count; i++)
        if (kinds[i].count == kind.count && kinds[i].before == kind.before)
            return true;
    return false;
}

static bool has_few_kinds(const struct rhythm *rhythm, uint64_t last, uint32_t steps) {
    struct step_kind kinds[RHYTHM_KINDS];
    unsigned count = 0;
    for (uint64_t i = 0; i < steps; i++) {
        struct step_kind kind = {count_of(rhythm, last - i), count_of(rhythm, last - i - 1)};
        if (is_among(kinds, count, kind))
            continue;
        if (count == RHYTHM_KINDS)
            return false;
        kinds[count++] = kind;
    }
    return true;
}

/* The shortest row that the last steps have come in becomes the rhythm's; false: there is none. */
static bool take_row(struct rhythm *rhythm, uint64_t last) {
    uint32_t steps = 1;
    while (steps <= RHYTHM_MOST && !is_period(rhythm, last, steps))
        steps++;
    if (steps == 1 || steps > RHYTHM_MOST || !has_few_kinds(rhythm, last, steps))
        return false; /* all the same is no row */
    rhythm->period = steps;
    rhythm->shift = rhythm->strikes = 0;
    for (uint64_t i = 0; i < steps; i++)
        *place_of(rhythm, last - i, 0) = count_of(rhythm, last - i);
    return true;
}

bool rhythm_look(struct rhythm *rhythm, uint64_t number) {
    if (rhythm->period || number < rhythm->look_at || number + 1 != rhythm->begun ||
        !take_row(rhythm, number))
        return false;
    rhythm->found_at = number;
    return true;
}

struct step_kind rhythm_kind(struct rhythm *rhythm, uint32_t back, uint8_t *server) {
    uint64_t number = rhythm->begun - 1 - back;
    *server = rhythm->servers[number % RHYTHM_HISTORY];
    if (!*server)
        *server = rhythm->servers[(number - rhythm->period) % RHYTHM_HISTORY];
    return (struct step_kind){count_of(rhythm, number), count_of(rhythm, number - 1)};
}

/* ---- in a row ---- */

bool rhythm_foretell(struct rhythm *rhythm, uint64_t number, struct step_kind *kind) {
    if (!rhythm->period)
        return false;
    kind->count = *place_of(rhythm, number, rhythm->shift);
    kind->before = *place_of(rhythm, number, rhythm->shift + rhythm->period - 1);
    return true;
}

/* So many steps up to the last one are as a row with this shift says. */
static uint32_t agreeing(struct rhythm *rhythm, uint64_t last, uint32_t shift) {
    uint32_t steps = 0;
    while (steps < rhythm->period && steps <= last &&
           count_of(rhythm, last - steps) == *place_of(rhythm, last - steps, shift))
        steps++;
    return steps;
}

/* The row goes on where the last steps are as it says, if there is such a place. */
static bool slip(struct rhythm *rhythm, uint64_t last) {
    uint32_t best = 0, shift = 0;
    for (uint32_t i = 0; i < rhythm->period; i++) {
        uint32_t steps = agreeing(rhythm, last, i);
        if (steps > best) {
            best = steps;
            shift = i;
        }
    }
    if (best)
        rhythm->shift = shift;
    return best != 0;
}

/* A rhythm that lasted longer than the wait for another one was worth it. By the steps that have
 * begun: the one that ends may be older than the row. */
static void lose(struct rhythm *rhythm) {
    uint64_t last = rhythm->begun - 1;
    if (last - rhythm->found_at > rhythm->wait)
        rhythm->wait = RHYTHM_WAIT;
    rhythm->period = rhythm->strikes = 0;
    rhythm->look_at = last + rhythm->wait;
    rhythm->wait = rhythm->wait * 2 > RHYTHM_WAIT_MOST ? RHYTHM_WAIT_MOST : rhythm->wait * 2;
}

/* The same came a row before, at the same place. */
static bool came_before(const struct rhythm *rhythm, uint64_t number, uint32_t count) {
    return count && number >= rhythm->period &&
           count_of(rhythm, number - rhythm->period) == count;
}

/* The step was another one than the row says. The last steps may be another row, of which this one
 * foretells the most. What comes twice at its place is there from now on; what is nowhere in the
 * row was an odd step. */
static void miss(struct rhythm *rhythm, uint64_t number, uint32_t count) {
    if (number + 1 == rhythm->begun && take_row(rhythm, number))
        return;
    if (!slip(rhythm, number) && came_before(rhythm, number, count)) {
        *place_of(rhythm, number, rhythm->shift) = count;
        return;
    }
    rhythm->strikes += RHYTHM_MISS;
    if (rhythm->strikes >= RHYTHM_LOST)
        lose(rhythm);
}

void rhythm_end(struct rhythm *rhythm, uint64_t number, uint32_t count) {
    if (rhythm->begun - number <= RHYTHM_HISTORY)
        rhythm->counts[number % RHYTHM_HISTORY] = count;
    if (!rhythm->period)
        return;
    if (*place_of(rhythm, number, rhythm->shift) != count)
        miss(rhythm, number, count);
    else
        rhythm->strikes -= rhythm->strikes != 0;
}
