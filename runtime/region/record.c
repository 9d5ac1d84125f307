// SPDX-License-Identifier: Apache-2.0
/*
 * record.c - the record of a step: which blocks came, how large, and how many releases later each
 * one went.
 *
 *     record     | 0 | 1 | 2 | ...      in the order of allocation
 *     notes      ... number of the entry, at the address of its block ...
 *
 * Large blocks lie far apart, so their notes are in a table of their own, where they are close; the
 * piece at the address tells which table it is, and nobody looks into the other, where looking may
 * make a page. A note may be old; it is believed if its entry names the address. So nothing is
 * cleared and nothing is searched. While a plan is served the record has what was born in the
 * parent instead. Invariant: an entry's `addr` is that of a live block that belongs to the step, or
 * 0.
 *
 * A block that was born in the parent is counted there and lies there, but it is the step's in all
 * else: only through the step can it be found, released, resized and promoted, until it has been
 * promoted. The parent knows the tracks of steps that have some (its bearers), and asks them before
 * it takes a block for its own; meanwhile its quick ways to release are shut.
 *
 * Behind a mark a plan serves nothing, so no more entries come. Those that there are still get
 * their ends: a rewind ends only what has none.
 *
 * Without memory for another entry, or where the record is far larger than the step, the record is
 * lost, and the step goes on.
 */
#include "region/record.h"
#include "base/check.h"
#include "base/error.h"
#include "base/os.h"
#include "region/block.h"
#include "region/hold.h"
#include "region/large.h"
#include "region/remote.h"
#include "region/small.h"

#include <string.h>

#define RECORD_LEAST 256u
#define RECORD_FREE ((size_t)4 << 20) /* bytes of one that nobody minds */
#define RECORD_TIMES 2u /* so many times what the step has at its peak are too much above that */

/* As long as the record before at once: a step is recorded after another, which was much the same.
 * What is not written to costs no memory. */
static uint32_t first_limit(const struct track *track) {
    uint32_t before = track->recording ? track->record_before + track->record_before / 8 : 0;
    return (uint32_t)size_larger(RECORD_LEAST, size_smaller(before, PLAN_SLOTS_MOST));
}

/* Room for `limit` entries, with those that there are. */
static bool grow_to(struct track *track, uint32_t limit) {
    ebb_region memory;
    error_mute();
    struct record_entry *record = plan_pool_take("record", limit * sizeof *record, &memory);
    error_unmute();
    if (!record)
        return false;
    if (track->record_limit) {
        memcpy(record, track->record, track->record_count * sizeof *record);
        ebb_region_close(track->record_memory);
    }
    track->record = record;
    track->record_memory = memory;
    track->record_limit = limit;
    return true;
}

/* So many blocks in so few bytes are small ones, whose plan would hold more than the step does. The
 * large ones may be still to come: in a step like the one before. */
static bool is_too_large(const struct track *track) {
    size_t bytes = track->record_limit * sizeof *track->record;
    uint64_t peak = size_larger(track->region->reserved.peak, track->peak_before);
    return track->recording && bytes > RECORD_FREE && bytes / RECORD_TIMES > peak;
}

static bool grow(struct track *track) {
    uint32_t limit = track->record_limit;
    if (limit >= PLAN_SLOTS_MOST || is_too_large(track))
        return false;
    if (!limit)
        return grow_to(track, first_limit(track)) || grow_to(track, RECORD_LEAST);
    return grow_to(track, (uint32_t)size_smaller(2 * (size_t)limit, PLAN_SLOTS_MOST));
}

/* Room for another entry; else the record is lost. */
static bool has_entry(struct track *track) {
    track->record_lost |= track->record_count == track->record_limit && !grow(track);
    return !track->record_lost;
}

/* Of a track's notes: one that serves a plan notes nothing but what was born in the parent. */
static uint32_t bits_of(const struct track *track) {
    return track->seen.served ? TRACK_NOTE_BORN : 0;
}

/* A new entry, with a note of it there; NULL: the record is lost, or was before. */
static inline struct record_entry *append_at(struct track *track, uint32_t *note, uintptr_t addr,
                                             size_t bytes) {
    if (!has_entry(track))
        return NULL;
    struct record_entry *entry = &track->record[track->record_count];
    *entry = (struct record_entry){.addr = addr, .bytes = bytes, .rank = PLAN_NEVER};
    entry->key = *note;
    *note = track->record_count++ | bits_of(track);
    entry->passed = track->released;
    return entry;
}

static struct record_entry *append(struct track *track, const void *block, size_t bytes) {
    uintptr_t addr = (uintptr_t)block;
    uint32_t *note = track_note_at(addr);
    track->noted_small |= note != range_block_note(addr);
    return append_at(track, note, addr, bytes);
}

/* The entry of the live block at `addr`, an address of the range, or NULL. */
static struct record_entry *find(const struct track *track, uintptr_t addr) {
    uint32_t number = *track_note_at(addr) ^ bits_of(track);
    bool is_one = number < track->record_count && track->record[number].addr == addr;
    return is_one ? &track->record[number] : NULL;
}

/* Granules that the parent has in large blocks, but for those that the step has promoted. */
static uint32_t used_above(const struct track *track) {
    const struct region *parent = track->region->parent;
    size_t used = parent ? parent->large_used : 0;
    used -= size_smaller(used, track->left_above);
    return (uint32_t)size_smaller(used / RANGE_GRANULE, UINT32_MAX);
}

void track_note_block(struct track *track, void *block, size_t bytes, size_t align, uint32_t key,
                      bool tenure) {
    bool notes = track->recording && !track->seen.given_up;
    struct record_entry *entry = notes ? append(track, block, bytes) : NULL;
    if (!entry)
        return;
    entry->align_log2 = (uint16_t)__builtin_ctzll(align);
    entry->key = key;
    entry->bound = !tenure;
    entry->above = used_above(track);
}

void track_note_end(struct track *track, uintptr_t addr) {
    struct record_entry *entry = track->recording ? find(track, addr) : NULL;
    if (!entry)
        return;
    entry->addr = 0;
    entry->rank = track->released++;
    entry->until = track->record_count;
}

void track_note_resize(struct track *track, uintptr_t addr, size_t bytes) {
    struct record_entry *entry = track->recording ? find(track, addr) : NULL;
    if (!entry)
        return;
    entry->grew |= bytes > entry->bytes;
    entry->outgrew |= entry->bytes <= EBB_SMALL_MAX_BYTES && bytes > EBB_SMALL_MAX_BYTES;
    entry->bytes = size_larger(entry->bytes, bytes);
}

/* Bytes of the live block at an address of the range; 0: it is a small one. */
static size_t large_bytes(uintptr_t addr) {
    const struct ebb_piece *piece = range_block_at(addr);
    bool large = piece->state == PIECE_BLOCK && piece->addr == addr;
    return large ? piece->block.requested : 0;
}

/* Of a step that is served a block survives that was not born in the parent: a slot's, or one from
 * the ordinary lanes. */
static void note_escape(struct track *track, uintptr_t addr, bool further) {
    if (!track->seen.served)
        return;
    const struct track_slot *slot = track_find(track, addr);
    if (slot)
        track->seen.escaped_bytes += slot->bytes;
    else if (track->had_refused && !further && range_holds(addr))
        track->seen.strayed_bytes += large_bytes(addr);
}

/* The parent has to ask the track, or need not any more. */
static void set_bearing(struct track *track, bool bears) {
    struct region *parent = track->region->parent;
    if (bears) {
        track->bearer = parent->bearers;
        track->bearer_at = &parent->bearers;
        parent->bearers = track;
    } else {
        *track->bearer_at = track->bearer;
    }
    struct track *next = track->bearer;
    if (next)
        next->bearer_at = bears ? &track->bearer : track->bearer_at;
    block_set_quick(parent);
}

/* A block that was born in the parent becomes the parent's, and its note is the parent's again. */
static void leave_to_parent(struct track *track, struct record_entry *entry) {
    *track_note_at(entry->addr) = entry->key;
    entry->addr = 0;
    track->guest_used -= entry->guest ? entry->bytes : 0;
    if (--track->born == 0)
        set_bearing(track, false);
}

/* True if the address is in the parent. Asked before its note is read: elsewhere there is none, and
 * reading could make a page resident. */
static bool is_above(const struct track *track, uintptr_t addr) {
    return range_holds(addr) && range_block_at(addr)->owner == track->region->parent->owner;
}

struct record_entry *track_find_born(const struct track *track, uintptr_t addr) {
    return track->born && is_above(track, addr) ? find(track, addr) : NULL;
}

void track_note_survivor(struct track *track, uintptr_t addr, bool further) {
    struct record_entry *entry =
        track->recording ? find(track, addr) : track_find_born(track, addr);
    if (!entry) {
        note_escape(track, addr, further);
        return;
    }
    if (!entry->survived && !further && entry->bytes > EBB_SMALL_MAX_BYTES)
        track->left_above += size_align(entry->bytes, EBB_UNIT);
    entry->survived = true;
    entry->further |= further;
}

void track_leave_to_parent(struct track *track, struct record_entry *entry, uintptr_t addr) {
    if (entry->addr != addr)
        return;
    entry->survived = true;
    leave_to_parent(track, entry);
    track->seen.tenured_right++;
    track->seen.tenured_right_bytes += entry->bytes;
    if (entry->guest) { /* it is none any more */
        track->seen.guests--;
        track->seen.guest_bytes -= entry->bytes;
    }
}

/* ---- born in the parent ---- */

/* True if blocks may be born there, and the next one can be noted: nothing of it fails once it is
 * there. */
static bool may_bear(struct track *track, const struct region *parent) {
    return parent && !parent->sealed && !parent->shared &&
           !parent->marks && /* a rewind must not take it from the step */
           has_entry(track);
}

void track_note_above(struct track *track) {
    const struct region *parent = track->region->parent;
    track->sees_above = parent && !parent->track;
    if (track->sees_above && parent->large_used > track->above_now + track->guest_used)
        track->above_now = parent->large_used - track->guest_used;
}

/* True if the parent needs no more for it than it has without guests. */
static bool has_room_above(const struct track *track, const struct region *parent, size_t bytes) {
    return !parent->track && bytes <= track->above && parent->large_used <= track->above - bytes;
}

static void count_guest(struct track *track, struct record_entry *entry) {
    entry->guest = true;
    track->guest_used += entry->bytes;
    track->seen.guests++;
    track->seen.guest_bytes += entry->bytes;
}

static void count_born(struct track *track, size_t bytes) {
    if (track->born++ == 0)
        set_bearing(track, true);
    track->seen.hits++;
    track->seen.hit_bytes += bytes;
}

static void *take_born(struct track *track, void *block, size_t bytes, bool guest) {
    struct record_entry *entry = append(track, block, bytes);
    CHECK(entry);
    if (guest)
        count_guest(track, entry);
    else
        track_note_above(track);
    count_born(track, bytes);
    return block;
}

void *track_bear(struct track *track, size_t bytes, size_t align, bool guest) {
    struct region *parent = track->region->parent;
    if (!may_bear(track, parent) || (guest && !has_room_above(track, parent, bytes)))
        return NULL;
    error_mute();
    void *block = guest ? large_alloc_behind(parent, bytes, align)
                        : block_allocate(parent, bytes, align, __builtin_return_address(0));
    error_unmute();
    return block ? take_born(track, block, bytes, guest) : NULL;
}

/* From a lane of the parent's, if the request is valid, nothing else has to be seen to there, no
 * block of the step that others have released may make room for it, and the pool has pages. */
static __attribute__((noinline)) void *bear_in_lane(struct track *track, size_t bytes,
                                                    size_t align) {
    struct region *parent = track->region->parent;
    size_t pages;
    if (!size_round_up(bytes, EBB_PAGE, &pages) || align > EBB_ALIGN_MAX || parent->track ||
        parent->metered || remote_waits(track->region) ||
        !pool_could_have(parent->pool, pages, 0))
        return NULL;
    error_mute();
    void *block = block_place(parent, bytes, align);
    error_unmute();
    return block ? take_born(track, block, bytes, false) : NULL;
}

/* In the simple case, for the slot `id`, which has yet to be passed; else NULL. */
static inline void *bear_simply(struct track *track, uint32_t id, size_t bytes, size_t align) {
    struct region *parent = track->region->parent;
    if ((bytes > EBB_PAGE && track_refuses(track, id, bytes)) || !may_bear(track, parent))
        return NULL;
    void *block = block_quickly(parent, bytes, align);
    if (!block)
        return bear_in_lane(track, bytes, align);
    append_at(track, range_note((uintptr_t)block), (uintptr_t)block, bytes);
    track_note_above(track);
    count_born(track, bytes);
    return block;
}

void *track_bear_next(struct track *track, size_t bytes, size_t align) {
    void *block = bear_simply(track, track_cursor(track), bytes, align);
    if (block)
        track_pass_next(track, bytes);
    return block;
}

void *track_bear_due(struct track *track, size_t bytes, size_t align) {
    struct ebb_lane *lane = &track->region->lane;
    const struct ebb_due *due = lane->due;
    void *block = bear_simply(track, (uint32_t)due->addr, bytes, align);
    if (!block)
        return NULL;
    CHECK(lane->due == due);
    track_note_passed(track, &track->slots[due->addr], bytes);
    lane->due++;
    return block;
}

struct region *track_home(const struct track *track, uintptr_t addr) {
    return track_find_born(track, addr) ? track->region->parent : NULL;
}

struct region *track_of_step(const struct region *parent, uintptr_t addr) {
    if (!parent->bearers || !range_holds(addr) || !track_may_be_born(addr))
        return NULL;
    for (const struct track *at = parent->bearers; at; at = at->bearer)
        if (track_home(at, addr))
            return at->region;
    return NULL;
}

static void note_wrong(struct track *track, const struct record_entry *entry) {
    if (entry->guest)
        return;
    track->seen.tenured_wrong++;
    track->seen.tenured_wrong_bytes += entry->bytes;
}

static void end_born(struct track *track, struct record_entry *entry) {
    struct region *parent = track->region->parent;
    note_wrong(track, entry);
    void *block = (void *)entry->addr;
    bool guest = entry->guest;
    leave_to_parent(track, entry);
    if (!parent->holds || !hold_is_on(block)) /* else it ends with the last of its exports */
        ebb_region_release(region_handle(parent), block);
    if (guest && track->plan)
        track_pass_ended(track);
}

void track_end(struct track *track, uintptr_t addr) {
    end_born(track, find(track, addr));
}

void track_note_lost(struct track *track) {
    for (uint32_t i = 0; i < track->record_count && track->born; i++)
        if (track->record[i].addr)
            note_wrong(track, &track->record[i]);
}

void track_end_born(struct track *track) {
    if (!track->born)
        return;
    hold_leave_to(track->region, track->region->parent);
    error_mute();
    for (uint32_t i = 0; i < track->record_count && track->born; i++)
        if (track->record[i].addr)
            end_born(track, &track->record[i]);
    error_unmute();
    hold_look(track->region->parent);
}
