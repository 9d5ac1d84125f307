// SPDX-License-Identifier: Apache-2.0
/*
 * guests.c - which blocks of a step had better lie in the parent for a while (see guests.h).
 *
 * For each slot, in granules: `load`, what is placed and alive when its block comes, and `spare`,
 * what the parent has free then, if it has as much in large blocks as at its highest: what it had
 * in the record (`above`) and what is born in it by then. Small ones lie in windows of their own,
 * where no guest has room; those that are there by then take pages all the same. The largest block
 * that is there at the highest load, and for which there is room as long as it lives, becomes a
 * guest; again and again, while the load gets lower.
 *
 * Invariant: `spare` is not negative, so the guests and what the parent has never need more than
 * that at its highest.
 */
#include "step/guests.h"

#define GUEST_PART 256u /* of the peak, at least: smaller ones are not worth it */

/* Of the peak, at least, all together; and where no two steps have been alike yet. */
#define GAIN_PART 64u
#define GAIN_PART_UNPROVEN 16u
#define GAIN_LEAST (((uint32_t)64 << 10) / RANGE_GRANULE)
#define VISITS_MOST ((uint64_t)1 << 22) /* of slots: some ms */

struct survey {
    struct draft *draft;
    uint32_t *load, *spare; /* for each slot */
    uint32_t guest[GUESTS_MOST];
    uint32_t count;
    uint64_t visits; /* of slots */
    ebb_region memory;
};

/* Number of the first slot whose block comes after the block of this one has gone. */
static uint32_t end_of(const struct draft *draft, uint32_t number) {
    uint32_t rank = draft->slots[number].rank, low = number + 1, high = draft->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (draft->slots[middle].passed > rank)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- what there is ---- */

/* Granules of large blocks that are born in the parent with the slot's. */
static uint32_t born_large(const struct draft_slot *slot) {
    return slot->tenured && draft_slot_is_large(slot) ? slot->needed : 0;
}

static uint64_t highest_above(const struct draft *draft) {
    uint64_t born = 0, highest = 0;
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct draft_slot *slot = &draft->slots[i];
        born += born_large(slot);
        highest = slot->above + born > highest ? slot->above + born : highest;
    }
    return highest;
}

/* Small ones born by then take pages, too, of which no guest adds any. */
static void fill_spare(struct survey *survey) {
    const struct draft *draft = survey->draft;
    uint64_t highest = highest_above(draft), born = 0;
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct draft_slot *slot = &draft->slots[i];
        born += slot->tenured ? slot->needed : 0;
        uint64_t taken = slot->above + born, spare = highest > taken ? highest - taken : 0;
        survey->spare[i] = spare < UINT32_MAX ? (uint32_t)spare : UINT32_MAX;
    }
}

/* What comes at a slot, and in `spare`, until that is filled, what goes before it: sums of both are
 * the load. Sums of all rooms fit (PLAN_ROOMS_MOST). */
static void fill_load(struct survey *survey) {
    const struct draft *draft = survey->draft;
    uint32_t load = 0;
    for (uint32_t i = 0; i < draft->count; i++)
        survey->load[i] = survey->spare[i] = 0;
    for (uint32_t i = 0; i < draft->count; i++) {
        uint32_t room = draft->slots[i].room, end = room ? end_of(draft, i) : draft->count;
        survey->load[i] = room;
        if (end < draft->count)
            survey->spare[end] += room;
    }
    for (uint32_t i = 0; i < draft->count; i++)
        survey->load[i] = load = load - survey->spare[i] + survey->load[i];
}

static uint32_t peak_of(const struct survey *survey) {
    uint32_t at = 0;
    for (uint32_t i = 1; i < survey->draft->count; i++)
        if (survey->load[i] > survey->load[at])
            at = i;
    return at;
}

/* ---- choosing ---- */

/* True if the block is there when that of slot `at` comes, and the parent has room for it as long
 * as it lives, and nothing speaks against it. */
static bool may_be_guest(struct survey *survey, uint32_t number, uint32_t at) {
    const struct draft_slot *slot = &survey->draft->slots[number];
    uint32_t room = slot->room, end;
    if (slot->bound || survey->spare[at] < room || (end = end_of(survey->draft, number)) <= at)
        return false;
    survey->visits += end - number;
    for (uint32_t i = number; i < end; i++)
        if (survey->spare[i] < room)
            return false;
    return true;
}

/* The largest of more than `least` granules and at most `most`; draft->count: there is none. */
static uint32_t find_guest(struct survey *survey, uint32_t at, uint32_t least, uint64_t most) {
    const struct draft *draft = survey->draft;
    uint32_t best = draft->count, room = least;
    for (uint32_t i = 0; i <= at && survey->visits < VISITS_MOST; i++)
        if (draft->slots[i].room > room && draft->slots[i].room <= most &&
            may_be_guest(survey, i, at)) {
            best = i;
            room = draft->slots[i].room;
        }
    return best;
}

static void add_guest(struct survey *survey, uint32_t number) {
    struct draft_slot *slot = &survey->draft->slots[number];
    uint32_t end = end_of(survey->draft, number);
    for (uint32_t i = number; i < end; i++) {
        survey->load[i] -= slot->room;
        survey->spare[i] -= slot->room;
    }
    slot->room = 0;
    slot->guest = true;
    survey->guest[survey->count++] = number;
    survey->draft->guests++;
    survey->draft->placed--;
}

static void dismiss(struct draft *draft, uint32_t number) {
    struct draft_slot *slot = &draft->slots[number];
    slot->room = slot->needed;
    slot->guest = false;
    draft->guests--;
    draft->placed++;
}

/* Those behind the first `count` gained nothing. */
static void keep_first(struct survey *survey, uint32_t count) {
    while (survey->count > count)
        dismiss(survey->draft, survey->guest[--survey->count]);
}

static void choose(struct survey *survey, uint64_t most) {
    uint32_t at = peak_of(survey), peak = survey->load[at], lowest = peak, useful = 0;
    uint32_t least = (uint32_t)size_larger(EBB_SMALL_MAX_BYTES / RANGE_GRANULE,
                                           peak / GUEST_PART);
    while (survey->count < GUESTS_MOST && survey->visits < VISITS_MOST) {
        uint32_t number = find_guest(survey, at, least, most);
        if (number == survey->draft->count)
            break;
        most -= survey->draft->slots[number].room;
        add_guest(survey, number);
        at = peak_of(survey);
        if (survey->load[at] < lowest) {
            lowest = survey->load[at];
            useful = survey->count;
        }
        survey->visits += (uint64_t)survey->draft->count * 4;
    }
    uint32_t part = survey->draft->confirmed ? GAIN_PART : GAIN_PART_UNPROVEN;
    bool is_worth_it = peak - lowest >= size_larger(GAIN_LEAST, peak / part);
    keep_first(survey, is_worth_it ? useful : 0);
}

/* ---- from outside ---- */

static bool survey_make(struct survey *survey, struct draft *draft) {
    size_t bytes = 2 * (size_t)draft->count * sizeof(uint32_t);
    *survey = (struct survey){.draft = draft};
    survey->load = plan_pool_take("guests", bytes, &survey->memory);
    survey->spare = survey->load ? survey->load + draft->count : NULL;
    return survey->load;
}

static uint64_t sum_of_rooms(const struct draft *draft) {
    uint64_t granules = 0;
    for (uint32_t i = 0; i < draft->count; i++)
        granules += draft->slots[i].room;
    return granules;
}

void guests_choose(struct draft *draft, uint64_t bytes_most) {
    struct survey survey;
    if (!draft->tenured || !draft->placed || bytes_most < RANGE_GRANULE ||
        sum_of_rooms(draft) > UINT32_MAX || !survey_make(&survey, draft))
        return;
    fill_load(&survey);
    fill_spare(&survey);
    choose(&survey, bytes_most / RANGE_GRANULE);
    ebb_region_close(survey.memory);
}

void guests_dismiss(struct draft *draft) {
    for (uint32_t i = 0; draft->guests && i < draft->count; i++)
        if (draft->slots[i].guest)
            dismiss(draft, i);
}
