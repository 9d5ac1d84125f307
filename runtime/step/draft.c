// SPDX-License-Identifier: Apache-2.0
/*
 * draft.c - records become drafts (see draft.h).
 *
 * The releases of a record are numbered through all its blocks; those of a draft through the
 * placed ones. Invariant: `passed` does not decrease from slot to slot and no slot is released
 * before it is there, passed <= rank. Refuses records that no plan can hold (EBB_E_SIZE).
 */
#include "step/draft.h"

#include "base/error.h"

#include <string.h>

#define LINE_LEAST ((size_t)1024) /* from here on blocks start at a line of the cache */

/* ---- structure ---- */

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

uint64_t draft_hash(const struct record_entry *record, uint32_t count) {
    uint64_t hash = mix(1, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t end = record[i].rank == PLAN_NEVER ? PLAN_NEVER : record[i].until;
        hash = mix(hash, (uint64_t)record[i].passed << 32 | end);
        hash = mix(hash, (uint64_t)record[i].key << 32 | (uint64_t)record[i].align_log2 << 1 |
                             (record[i].bytes != 0));
    }
    return hash;
}

uint64_t draft_keys(const struct record_entry *record, uint32_t count) {
    uint64_t keys = 0;
    for (uint32_t i = 0; i < count; i++)
        keys |= record[i].key ? UINT64_C(1) << (mix(1, record[i].key) >> 58) : 0;
    return keys;
}

/* ---- rooms ---- */

/* Granules that a slot for such a block has, at most those of PLAN_ROOM_MOST. */
static uint32_t room_for(size_t bytes) {
    size_t step = bytes >= LINE_LEAST ? EBB_UNIT : RANGE_GRANULE;
    size_t room = size_align(size_larger(bytes, 1), step);
    return (uint32_t)(size_smaller(room, PLAN_ROOM_MOST) / RANGE_GRANULE);
}

static uint16_t align_for(size_t bytes, size_t align) {
    size_t least = bytes >= LINE_LEAST ? EBB_UNIT : RANGE_GRANULE;
    return (uint16_t)size_larger(align, least);
}

static bool fits_a_slot(const struct record_entry *entry) {
    return entry->bytes <= PLAN_ROOM_MOST &&
           (size_t)1 << entry->align_log2 <= PLAN_ALIGN_MOST;
}

/* In the parent there is room for any: it is only noted. */
static bool fit_above(struct draft_slot *slot, size_t bytes) {
    bool larger = room_for(bytes) > slot->needed;
    slot->needed = larger ? room_for(bytes) : slot->needed;
    return larger;
}

bool draft_fit(struct draft *draft, uint32_t number, size_t bytes) {
    struct draft_slot *slot = &draft->slots[number];
    if (!slot->room)
        return slot->tenured && fit_above(slot, bytes);
    if (bytes > PLAN_ROOM_MOST)
        return false;
    uint32_t room = room_for(bytes);
    if (room <= slot->room)
        return false;
    slot->room = slot->needed = room;
    slot->align = align_for(bytes, slot->align);
    return true;
}

bool draft_fit_ahead(struct draft *draft, uint32_t number, size_t bytes, size_t ahead) {
    if (!draft_fit(draft, number, bytes))
        return false;
    draft_fit(draft, number, bytes + bytes / ahead); /* not if that is too large for a slot */
    return true;
}

void draft_refit(struct draft *draft, uint32_t number, size_t bytes) {
    struct draft_slot *slot = &draft->slots[number];
    if (slot->tenured)
        slot->needed = room_for(bytes);
    if (!slot->room || bytes > PLAN_ROOM_MOST)
        return;
    slot->room = slot->needed = room_for(bytes);
    slot->align = align_for(bytes, (size_t)1 << slot->align_log2);
}

bool draft_widen(struct draft *draft, const struct draft *other) {
    bool wider = false;
    if (!other || draft->hash != other->hash || draft->count != other->count)
        return false;
    for (uint32_t i = 0; i < draft->count; i++)
        wider |= draft_fit(draft, i, (size_t)other->slots[i].needed * RANGE_GRANULE);
    return wider;
}

bool draft_leads(const struct draft *longer, const struct draft *draft) {
    if (!longer || !longer->keyed || longer->coarse != draft->coarse ||
        longer->count <= draft->count)
        return false;
    uint32_t found = 0;
    for (uint32_t i = 0; i < longer->count && found < draft->count; i++)
        found += longer->slots[i].key == draft->slots[found].key;
    return found == draft->count;
}

bool draft_widen_along(struct draft *longer, const struct draft *draft) {
    uint32_t found = 0;
    bool wider = false;
    for (uint32_t i = 0; i < longer->count && found < draft->count; i++)
        if (longer->slots[i].key == draft->slots[found].key)
            wider |= draft_fit(longer, i, (size_t)draft->slots[found++].needed * RANGE_GRANULE);
    return wider;
}

/* ---- survivors ---- */

/* One that grows later might have to move where it was born, and would ask for another place, which
 * the plan has not; one that is bound is not asked for there. */
static bool is_tenured(const struct record_entry *entry, const struct draft_slot *before,
                       enum draft_tenure tenure) {
    if (!entry->survived || entry->further || entry->grew || entry->bound ||
        tenure == DRAFT_TENURE_NONE)
        return false;
    return before ? before->survived : tenure == DRAFT_TENURE_ONCE;
}

static void fill_slots(struct draft *draft, const struct record_entry *record,
                       const struct draft *before, enum draft_tenure tenure) {
    bool alike = before && before->hash == draft->hash && before->count == draft->count;
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct record_entry *entry = &record[i];
        struct draft_slot *slot = &draft->slots[i];
        bool placed = fits_a_slot(entry) && !entry->survived;
        *slot = (struct draft_slot){.rank = PLAN_NEVER, .key = entry->key,
                                    .above = entry->above, .survived = entry->survived,
                                    .bound = entry->bound || entry->grew};
        slot->tenured = is_tenured(entry, alike ? &before->slots[i] : NULL, tenure);
        slot->needed = room_for(entry->bytes);
        slot->room = placed ? slot->needed : 0;
        slot->align = placed ? align_for(entry->bytes, (size_t)1 << entry->align_log2) : 0;
        slot->align_log2 = (uint8_t)entry->align_log2;
        draft->placed += placed;
        draft->tenured += slot->tenured;
        draft->keyed |= entry->key != 0;
    }
}

/* ---- releases ---- */

/* One more than the highest number of a release that the record speaks of. */
static uint32_t count_releases(const struct record_entry *record, uint32_t count) {
    uint32_t releases = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (record[i].rank != PLAN_NEVER && record[i].rank >= releases)
            releases = record[i].rank + 1;
        if (record[i].passed > releases)
            releases = record[i].passed;
    }
    return releases;
}

/* Where numbers[rank] was 1 for some ranks and 0 for others, it becomes how many of the former come
 * before that rank; how many there are. */
static uint32_t number_marked(uint32_t *numbers, uint32_t releases) {
    uint32_t before = 0;
    for (uint32_t rank = 0; rank <= releases; rank++) {
        uint32_t marked = numbers[rank];
        numbers[rank] = before;
        before += marked;
    }
    return before;
}

/* Numbers releases through placed slots only; `numbers` has releases + 1 entries, all zero. */
static void renumber(struct draft *draft, const struct record_entry *record, uint32_t releases,
                     uint32_t *numbers) {
    for (uint32_t i = 0; i < draft->count; i++)
        if (draft->slots[i].room && record[i].rank != PLAN_NEVER)
            numbers[record[i].rank] = 1;
    draft->released = number_marked(numbers, releases);
    for (uint32_t i = 0; i < draft->count; i++) {
        draft->slots[i].passed = numbers[record[i].passed];
        if (draft->slots[i].room && record[i].rank != PLAN_NEVER)
            draft->slots[i].rank = numbers[record[i].rank];
    }
}

/* ---- coarse records ---- */

/* As it came, for that is what a step that follows the plan is asked for. */
static bool is_coarse(const struct record_entry *entry) {
    return (entry->bytes > EBB_SMALL_MAX_BYTES && !entry->outgrew) ||
           (size_t)1 << entry->align_log2 > EBB_SMALL_MAX_ALIGN;
}

/* numbers[rank] becomes how many releases of what is kept come before that rank. */
static void number_coarse(const struct record_entry *record, uint32_t count, uint32_t releases,
                          uint32_t *numbers) {
    for (uint32_t i = 0; i < count; i++)
        if (is_coarse(&record[i]) && record[i].rank != PLAN_NEVER)
            numbers[record[i].rank] = 1;
    number_marked(numbers, releases);
}

/* Number of the first block that came after the release with this rank; `count`: none did. */
static uint32_t next_after(const struct record_entry *record, uint32_t count, uint32_t rank) {
    uint32_t from = 0, to = count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (record[middle].passed > rank)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

/* How many blocks are kept; 0, too, if they have less than half of the bytes. */
static uint32_t count_coarse(const struct record_entry *record, uint32_t count) {
    uint64_t all = 0, kept_bytes = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool keeps = is_coarse(&record[i]);
        all += record[i].bytes;
        kept_bytes += keeps ? record[i].bytes : 0;
        kept += keeps;
    }
    return kept_bytes >= all - kept_bytes ? kept : 0;
}

static void copy_coarse(struct coarse_record *coarse, const struct record_entry *record,
                        uint32_t count, const uint32_t *numbers) {
    for (uint32_t i = 0; i < count; i++) {
        if (!is_coarse(&record[i]))
            continue;
        struct record_entry *entry = &coarse->record[coarse->count++];
        *entry = record[i];
        entry->passed = numbers[entry->passed];
        if (entry->rank != PLAN_NEVER)
            entry->rank = numbers[entry->rank];
    }
    for (uint32_t i = 0; i < coarse->count; i++)
        coarse->record[i].until =
            next_after(coarse->record, coarse->count, coarse->record[i].rank);
}

bool coarse_make(struct coarse_record *coarse, const struct record_entry *record,
                 uint32_t count) {
    uint32_t kept = count_coarse(record, count), releases = count_releases(record, count);
    size_t numbers_bytes = ((size_t)releases + 1) * sizeof(uint32_t);
    *coarse = (struct coarse_record){.record = NULL};
    if (kept) /* room for all: what is not written costs nothing, and the next one fits there */
        coarse->record = plan_pool_take(
            "coarse record", count * sizeof *coarse->record + numbers_bytes, &coarse->memory);
    if (!coarse->record)
        return false;
    uint32_t *numbers = (uint32_t *)(void *)(coarse->record + count);
    memset(numbers, 0, numbers_bytes);
    number_coarse(record, count, releases, numbers);
    copy_coarse(coarse, record, count, numbers);
    return true;
}

void coarse_drop(struct coarse_record *coarse) {
    if (coarse->record)
        ebb_region_close(coarse->memory);
    *coarse = (struct coarse_record){.record = NULL};
}

/* ---- memory ---- */

struct draft *draft_create(uint32_t count) {
    ebb_region memory;
    struct draft *draft =
        plan_pool_take("draft", sizeof *draft + count * sizeof *draft->slots, &memory);
    if (draft)
        *draft = (struct draft){.memory = memory, .count = count};
    return draft;
}

void draft_drop(struct draft *draft) {
    if (draft)
        ebb_region_close(draft->memory);
}

static struct draft_slot slot_of_plan(const struct plan_slot *from) {
    struct draft_slot slot = {.room = from->room, .passed = from->passed, .rank = PLAN_NEVER,
                              .needed = from->room ? from->room : from->offset,
                              .key = from->key, .above = from->above,
                              .align_log2 = from->align_log2, .survived = from->survived,
                              .tenured = from->tenured, .guest = from->guest,
                              .bound = from->bound, .age = from->age};
    if (slot.room || slot.guest)
        slot.align = align_for(slot.needed * (size_t)RANGE_GRANULE,
                               (size_t)1 << slot.align_log2);
    return slot;
}

struct draft *draft_of_plan(const struct plan *plan) {
    struct draft *draft = draft_create(plan->slot_count);
    if (!draft)
        return NULL;
    draft->placed = plan->placed_count;
    draft->guests = plan->guest_count;
    draft->released = plan->order_count;
    draft->hash = plan->hash;
    draft->keyed = plan->by_key != NULL;
    draft->confirmed = plan->confirmed;
    draft->coarse = plan->coarse;
    draft->several = plan->several;
    for (uint32_t i = 0; i < draft->count; i++) {
        draft->slots[i] = slot_of_plan(&plan->slots[i]);
        draft->tenured += plan->slots[i].tenured;
    }
    for (uint32_t rank = 0; rank < draft->released; rank++)
        draft->slots[plan->order[rank]].rank = rank;
    return draft;
}

struct draft *draft_from_record(const struct record_entry *record, uint32_t count, uint64_t hash,
                                const struct draft *before, enum draft_tenure tenure) {
    uint32_t releases = count_releases(record, count);
    if (count == 0 || count > PLAN_SLOTS_MOST) {
        error_set(EBB_E_SIZE, "a plan has 1 to %u slots, not %u", PLAN_SLOTS_MOST, count);
        return NULL;
    }
    struct draft *draft = draft_create(count);
    if (!draft)
        return NULL;
    ebb_region scratch;
    size_t bytes = ((size_t)releases + 1) * sizeof(uint32_t);
    uint32_t *numbers = plan_pool_take("renumbering", bytes, &scratch);
    if (!numbers) {
        draft_drop(draft);
        return NULL;
    }
    memset(numbers, 0, bytes);
    draft->hash = hash;
    fill_slots(draft, record, before, tenure);
    renumber(draft, record, releases, numbers);
    ebb_region_close(scratch);
    return draft;
}
