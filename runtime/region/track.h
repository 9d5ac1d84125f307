// SPDX-License-Identifier: Apache-2.0
/*
 * track.h - a region that follows a plan, or whose blocks are recorded so that one can be made.
 *
 * A lane of a site (step/) has a track for each region that it can have open at once, and ties it
 * to one after the other. With a plan the region has an arena: a run that it keeps from step to
 * step, filled by one piece, in which slots are served:
 *
 *     slots   | served | served | skipped | next | ...
 *     order   | released, in order ... | passed -> expected next | ...
 *
 * Three rules keep live blocks apart, whatever the program does (docs/planning.md has the proof):
 *     R1  slots are served in increasing order, each at most once in an epoch
 *     R2  a slot is served only for a request that fits its room and alignment
 *     R3  before slot j is served, each slot that should have been released before it is dead, or
 *         is overdue and does not overlap it
 * A step of blocks with keys that leaves the order of its plan has another one than R1 and R3:
 *     R4  a slot is served only if it is dead and overlaps no live one (wander.h)
 * All other requests go to the lanes of an ordinary region, whose memory is not the arena's.
 *
 * A slot is live exactly while its mark is the track's epoch. Where a step of blocks with keys goes
 * ahead, the slots that it leaves out are not visited: what their marks and bytes say is of another
 * epoch, but for the first one, which leads behind them. Invariant: every slot among the first
 * `passed` of the order is dead or on the list of overdue ones, and has been served or skipped.
 * While anything rare is the case (overdue slots, holds, checked builds) the track is shut: `next`
 * is a slot that nothing fits and `expected` names one that is not live, so the inline paths below
 * miss.
 *
 * A coarse plan knows nothing of small blocks, which go to the small lane as in an ordinary region,
 * inline. Then what the plan serves takes the slow way, which folds what was bumped meanwhile.
 *
 * Counting is lazy. What came is how far the cursor is, in slots and in their rooms, and the bytes
 * that were asked for; what is skipped moves along from where that is counted. Before something
 * leaves, the peaks are looked at if more came than was there at once before, and what left since.
 * Where a step repeats to the letter it is lazier still: due.c.
 */
#ifndef EBB_REGION_TRACK_H
#define EBB_REGION_TRACK_H

#include "region/due.h"
#include "region/record.h"
#include "region/tide.h"
#include "region/wander.h"

/* `mark` and `bytes` are written together, and are no neighbours: the compiler would write those as
 * a vector, which takes longer. */
struct track_slot {
    uintptr_t addr;  /* moves with the arena */
    uint32_t room;   /* bytes */
    uint32_t passed; /* as in the plan; PLAN_NEVER where nothing fits */
    uint32_t mark;   /* the epoch in which it is live, or with TRACK_GONE or TRACK_LEFT */
    uint32_t align;  /* as it was asked for, and TRACK_... */
    uint32_t bytes;  /* requested; if the slot was too small: what it needs; 0 below the cursor: not
                        served in this epoch. Of plans with keys: if the mark is of this epoch */
    uint32_t before; /* granules of room of all slots before it */
};

/* Flags in `align`, above all alignments. */
#define TRACK_LISTED ((uint32_t)1 << 24)   /* while a list of survivors is checked */
#define TRACK_TENURED ((uint32_t)2 << 24)  /* born in the parent */
#define TRACK_UNPLACED ((uint32_t)4 << 24) /* left to the ordinary lanes */
#define TRACK_HELD ((uint32_t)8 << 24)     /* somebody outside needs its bytes */
#define TRACK_GUEST ((uint32_t)16 << 24)   /* in the parent for a while */
#define TRACK_TRIMMED ((uint32_t)32 << 24) /* more was requested than `bytes` says */
_Static_assert(EBB_ALIGN_MAX < TRACK_LISTED, "they lie side by side");

/* Epochs are multiples of this. What is added to them in marks: */
#define TRACK_EPOCH 4u
#define TRACK_GONE 1u /* came in that epoch, and is not live */
#define TRACK_LEFT 2u /* left out with those behind it; `bytes` is the next one that was not. Of
                         plans with keys */

/* What happened in a step. */
struct track_seen {
    uint64_t hits, hit_bytes;     /* served from the plan, in the arena or in the parent */
    uint64_t borrowed_bytes;      /* of these: in other keys' slots, as the plan has not theirs */
    uint64_t missed, missed_bytes; /* all others, while there was a plan */
    uint64_t grown;               /* of the missed: the slot was too small */
    uint64_t strange;             /* of the missed: for another reason, or beyond the last slot */
    uint64_t escaped_bytes;       /* of survivors that were served in the arena, so copied */
    uint64_t refused_bytes; /* of the missed: far larger than what survived in their slots before */
    uint64_t strayed_bytes; /* then: of large survivors in no slot and not born in the parent */
    uint64_t tenured_right, tenured_right_bytes, tenured_wrong, tenured_wrong_bytes;
    uint64_t guests, guest_bytes; /* lay in the parent for a while */
    uint64_t turned_away_bytes;   /* of the missed: there was no room for them in the parent */
    bool served, recorded;        /* had a plan; was recorded, to its end or until that was lost */
    bool unserved;                /* had a plan, but there were no pages for the arena */
    bool complete;                /* did what the plan expects, except for sizes */
    bool taken_over, given_up, longer; /* longer: no slot was left with the key of a block */
};

/* Blocks born in the parent that other threads released. */
struct track_drained {
    uint64_t blocks, bytes;
};

/* A request that the arena has no gap for, nor for any larger one. If `alone`, only for this size:
 * there is a gap, but the lane would look at another piece, in which it does not fit, such as the
 * smallest one that it has already (own_...). */
struct track_gapless {
    size_t bytes, align;
    bool alone;
    size_t own_bytes;
    uintptr_t own_addr;
};

#define TRACK_OVERDUE_MOST 64
#define TRACK_FAR 16u /* so many places of the order are looked at one by one */
#define TRACK_MISSES_MOST 64 /* in a row */
#define TRACK_BESIDE_PART 16 /* of the height: more than that alive beside the plan is too much */

struct track {
    /* what the inline paths touch */
    struct track_slot *next;     /* served next */
    struct track_slot *slots;
    const uint32_t *expected;    /* names the slot that is released next: order[passed] */
    uint32_t passed;             /* places of the order that are done */
    uint32_t epoch;
    const struct track_slot *looked; /* `next` when the peaks were looked at; NULL: look */
    bool open;           /* `next` is the next slot */
    bool expecting;      /* `expected` is the next release */
    uint64_t came_bytes; /* in this epoch, as requested */
    struct track_tide blocks, granules, bytes;
    struct due due;

    struct region *region; /* that it is tied to, or NULL */
    struct plan *plan;     /* that it follows, or NULL */
    struct ebb_piece *arena; /* fills a run; NULL: there is none, or the run is the region's */
    struct kept kept;        /* the run between two steps */
    struct piece_store store; /* of the arena's entries */
    struct ebb_piece *named;  /* the entry that block_at had for the kept run */
    uintptr_t base;        /* of the arena, or of the last one */
    size_t span;           /* its bytes */
    size_t live_rooms;     /* bytes of live slots at the last gathering */
    struct track_gapless gapless;
    uint32_t cursor;    /* number of the next slot, while shut */
    uint32_t served_to; /* slots below were served or skipped when last looked at */
    uint32_t left_out;  /* slots below the cursor that were not visited */
    bool serving;       /* slots are served */
    bool shadowing;     /* what is allocated is compared with the plan, though it may not serve */
    bool recording;
    bool taken_over;    /* the arena is cut into stretches, each with a count of live blocks */
    bool coarse;        /* a coarse plan is served */
    bool had_grown;     /* some slots have sizes that did not fit, or are TRACK_TRIMMED */
    bool had_trimmed;   /* some are */
    bool sizes_wanted;  /* slots that shrink are TRACK_TRIMMED: others' sizes make the next plan */
    bool tight;         /* the pool has no pages for what came: nothing is taken over for that */
    bool had_refused;   /* some block was far too large for its slot in the parent */
    uint32_t overdue[TRACK_OVERDUE_MOST], overdue_count;
    uint32_t missed_at, misses; /* in a row */
    struct wander wander;
    uint32_t held;    /* live slots with TRACK_HELD */
    /* bytes of large blocks of the parent, without guests: */
    size_t above;      /* the most in the step before: this one, with guests, is to have no more.
                          Once it has ended: the most in this one */
    size_t above_now;  /* the most in this step */
    bool sees_above;   /* this step looks at its parent, which is neither planned nor recorded */
    bool saw_above;    /* the step before did */
    size_t guest_used; /* of live guests */
    size_t left_above; /* promoted so far by a recorded step: to be born there in later ones */
    struct track_seen seen;
    struct track_drained drained; /* since the track was made; part of `seen` */

    struct record_entry *record; /* of a recorded step; else blocks that were born above */
    uint32_t record_count, record_limit;
    uint32_t record_before; /* entries of the last record; 0: there was none, or it was lost */
    uint64_t peak_before;   /* bytes of pages at the peak of the step before; 0: not known */
    uint32_t born;        /* entries whose blocks live in the parent and are the step's */
    struct track *bearer; /* the next of the parent's bearers; in the list while `born` */
    struct track **bearer_at; /* the link to this one */
    uint32_t released; /* releases so far */
    bool record_lost;  /* there was no memory: useless */
    bool noted_small;  /* some block has its note where those of small ones are */
    uint32_t slots_limit;
    ebb_region slots_memory, record_memory; /* not open where the limits are 0 */
    uint64_t begun; /* when it was tied last; the caller's number */
};

/* ---- track.c: for step/ ---- */

/* A track in `memory`, which outlives it; NULL with an error. One thread at a time. */
struct track *track_create(ebb_region memory);
void track_destroy(struct track *track);

/* Gives back the memory of what was recorded. Of a track that is not tied. */
void track_forget_record(struct track *track);

/* From the next track_tie() on the track follows this plan (NULL: none) and counts as one of its
 * users. Fails without effect. */
int track_follow(struct track *track, struct plan *plan);

/*
 * Ties the track to a region that was just opened and has no block. If `serve`, its plan's slots
 * are served; if `record`, every block is noted; not both. Without memory for an arena, or if the
 * region has a budget, notes sites or measures, it stays an ordinary region. The caller sets what
 * is known of the step before: `above`, `saw_above` and `peak_before`.
 */
void track_tie(struct track *track, struct region *region, bool serve, bool record);

/*
 * The step is over: nothing is served or noted any more. The record and the `bytes` of slots
 * that were too small stay readable until the next track_tie(). The region may stay open (in a
 * ring): the track stays tied to it while it has blocks in the arena, or some that were born in
 * the parent, and is free again when the region closes.
 */
void track_finish(struct track *track, struct track_seen *seen);

/* True if track_follow() of NULL, or track_rest(), would give something back. */
bool track_holds(const struct track *track);

/* Nothing is to be served for now: leaves the pages of the arena to others. */
void track_rest(struct track *track);

/* ---- track.c: for the rest of region/ ---- */

/* Stops serving and recording: the region was marked or sealed. */
void track_stop(struct track *track);

/* The region forgets all its blocks and goes on without the track. */
void track_forget(struct track *track);

/* The same of one that closes. Returns the run of the arena, which is to be kept under the pool's
 * lock; NULL: none is. */
struct ebb_piece *track_part(struct track *track);

/* Moves what was served inline into the region's counters: before anybody reads their peaks. */
void track_gather(struct track *track);

/* Adds what is not gathered yet to copies of the counters. */
void track_include(const struct track *track, struct flow *counted, struct flow *requested,
                   struct flow *used);

/* Gathers everything, what was bumped too. */
void track_look(struct track *track);

/* Opens or shuts the inline paths, as the track's state asks. */
void track_set_paths(struct track *track);

typedef void track_visit(void *context, uintptr_t addr, size_t bytes, size_t room);
void track_each_live(const struct track *track, track_visit *visit, void *context);

/* ---- serve.c ---- */

/* A block for a valid request, in the arena or, if `tenure`, in the parent; NULL, without an error,
 * if the lanes are to serve it. */
void *track_place(struct track *track, size_t bytes, size_t align, uint32_t key, bool tenure);

/* The lanes have served the block before the plan was asked: passes its slot. */
void track_pass(struct track *track, size_t bytes, size_t align, uint32_t key, bool tenure);

/* When the plan is asked for a block: before the lanes; or after them, only to pass its slot: LAST,
 * since neither pool nor plan has room for it, or TOLD, since free pages are too few although the
 * plan may know a place, above or by the key. Nothing is taken over for a block of the latter. */
enum track_turn { TRACK_FIRST, TRACK_LAST, TRACK_TOLD };
enum track_turn track_turn(struct track *track, size_t bytes, uint32_t key);

/* What the plan missed and how far it was, to be restored: a request without a block is no miss. */
struct track_missed {
    uint64_t blocks, bytes, turned_away_bytes, grown, strange;
    uint32_t cursor, passed, missed_at, misses;
    bool had_grown, seen_longer;
};
struct track_missed track_missed(const struct track *track);
void track_unmiss(struct track *track, const struct track_missed *before);

/* True if the slot is a survivor's, and `bytes` are too many to be taken for it. */
bool track_refuses(const struct track *track, uint32_t id, size_t bytes);

/* The live slot of the arena at `addr`, or NULL. */
struct track_slot *track_find(const struct track *track, uintptr_t addr);

/* Sets and returns the error that says why there is none. */
int track_no_block(const struct track *track, uintptr_t addr);

/* Releases what track_find() found. */
void track_release(struct track *track, struct track_slot *slot);

/* Changes the requested bytes of a live slot within its room; EBB_E_NO_ROOM beyond it. */
int track_resize(struct track *track, struct track_slot *slot, size_t bytes);

/* Somebody outside needs the live block at `addr` (`held`), or no longer does. */
void track_hold(struct track *track, uintptr_t addr, bool held);

/* ---- late.c ---- */

/* Passes places of the order whose slots came and went, or are guests'. */
void track_pass_ended(struct track *track);

/* All releases before the slot are passed: what is still live of them is overdue. False: that is
 * too much. */
bool track_settle(struct track *track, const struct track_slot *slot);

/* R3: no overdue slot overlaps this one. */
bool track_is_apart(const struct track *track, const struct track_slot *slot);

/* Some slots have died. */
void track_prune_overdue(struct track *track);

/* ---- takeover.c ---- */

/* A block did not fit the plan: the arena's gaps become free memory of the large lane, and what is
 * live in it stays. Or, if the arena is empty and the pool's limit leaves too few pages, its pages
 * go back to the pool. False: nothing has changed. */
bool track_outgrow(struct track *track, size_t bytes);

/* A block was refused for want of pages. True: the arena was taken over, since it has a gap for the
 * block, or for a window of small ones; or it was empty, and its pages are the pool's now. */
bool track_gives_way(struct track *track, size_t bytes, size_t align);

/* Makes the arena's run the region's, without entries, and returns it. For a takeover. */
struct ebb_piece *track_leave_run(struct track *track);

/* The same, as one piece, which is returned. Two entries are prepared. */
struct ebb_piece *track_become_ordinary(struct track *track);

/* ---- dissolve.c ---- */

/* Stops serving, and turns what is live in the arena into large blocks of the region, which can be
 * relinked. False: that is impossible, and nothing has changed. */
bool track_dissolve(struct track *track);

/* After a takeover: a block has left its stretch of the arena. */
void track_leave_stretch(struct track *track, uintptr_t addr);

/* ---- inline ---- */

/* True if the step follows the tables, or did until now: the track does not know everything. */
static inline bool track_is_behind(const struct track *track) {
    return track->due.on || track->due.unmarked;
}

/* The region's track, once it knows everything; or NULL. */
static inline struct track *region_track(const struct region *region) {
    struct track *track = region->track;
    if (track && track_is_behind(track))
        due_settle(track);
    return track;
}

/* True if every block of the tied region must be seen. NULL: there is no track. */
static inline bool track_watches(const struct track *track) {
    return track && !track->coarse;
}

/* True if a request is none of the plan's business. */
static inline bool track_ignores(const struct track *track, size_t bytes, size_t align) {
    return track->coarse && bytes <= EBB_SMALL_MAX_BYTES && align <= EBB_SMALL_MAX_ALIGN;
}

/* What was asked for in the slot, in this epoch; 0: nothing. */
static inline uint32_t track_asked(const struct track *track, const struct track_slot *slot) {
    bool came = !track->plan->by_key || (slot->mark & ~TRACK_GONE) == track->epoch;
    return came ? slot->bytes : 0;
}

/* True if track_refuses() what came for a slot below the cursor. */
static inline bool track_has_refused(const struct track *track, uint32_t id) {
    return track->had_refused &&
           track_refuses(track, id, track_asked(track, &track->slots[id]));
}

static inline uint32_t track_cursor(const struct track *track) {
    return track->open ? (uint32_t)(track->next - track->slots) : track->cursor;
}

/* After a change of `passed`. */
static inline void track_set_expected(struct track *track) {
    if (track->expecting)
        track->expected = track->plan->order + track->passed;
}

/* True if the address is in what was the arena before a takeover. */
static inline bool track_was_arena(const struct track *track, uintptr_t addr) {
    return track->taken_over && addr - track->base < track->span;
}

static inline bool track_is_live(const struct track *track, const struct track_slot *slot) {
    return slot->mark == track->epoch;
}

/* True if something that should be gone before the slot may be there: R3 has to be looked at. */
static inline bool track_is_late(const struct track *track, const struct track_slot *slot) {
    return track->passed < slot->passed || track->overdue_count;
}

/* The first slot from this one on, up to the cursor, that was visited. While the step keeps the
 * order of its plan. */
static inline uint32_t track_visited(const struct track *track, uint32_t id, uint32_t cursor) {
    while (id < cursor && track->slots[id].mark == (track->epoch | TRACK_LEFT))
        id = track->slots[id].bytes;
    return id;
}

/* True if the request fits the next slot and nothing needs a closer look. */
static inline bool track_fits(const struct track *track, size_t bytes, size_t align) {
    const struct track_slot *slot = track->next;
    return bytes <= slot->room && align == slot->align && track->passed >= slot->passed;
}

/* Serves the next slot, which fits. */
static inline void *track_serve(struct track *track, size_t bytes) {
    struct track_slot *slot = track->next;
    track->next = slot + 1;
    slot->mark = track->epoch;
    slot->bytes = (uint32_t)bytes;
    track->came_bytes += bytes;
    return (void *)slot->addr;
}

/* True if the next slot's block is to be born in the parent, no path is shut, and the request has
 * the slot's alignment; or an invalid one with that flag in it, which the simple case refuses. */
static inline bool track_bears_next(const struct track *track, size_t align) {
    return track->next->align == (align | TRACK_TENURED);
}

/* The same where the step goes along the tables: that birth is due. */
static inline bool track_bears_due(const struct track *track, size_t align) {
    const struct ebb_due *due = track->region->lane.due;
    return due->request == DUE_BIRTH && track->slots[due->addr].align == (align | TRACK_TENURED);
}

/* True if the next slot's block is left to the ordinary lanes. */
static inline bool track_leaves_next(const struct track *track) {
    return track->next->align & TRACK_UNPLACED;
}

/* The slot, which has no room in the arena, is passed: its block is elsewhere. */
static inline void track_note_passed(struct track *track, struct track_slot *slot, size_t bytes) {
    uint32_t id = (uint32_t)(slot - track->slots);
    slot->mark = track->epoch | TRACK_GONE;
    slot->bytes = (uint32_t)size_smaller(bytes, UINT32_MAX);
    track->missed_at += track->missed_at == id; /* it ends no row of misses */
}

/* Passes the next slot, which has no room in the arena. `bytes`: of its block, which is elsewhere;
 * 0 if that is not the plan's. */
static inline void track_pass_next(struct track *track, size_t bytes) {
    track_note_passed(track, track->next, bytes);
    tide_skip(&track->blocks, 1);
    track->next++;
}

/* True if a peak may have been passed since the last look at them. */
static inline bool track_may_peak(const struct track *track) {
    return track->next != track->looked;
}

/* True if no peak was passed, and no path is shut. */
static inline bool track_is_calm(const struct track *track) {
    const struct track_slot *next = track->next;
    return track->open && track->came_bytes <= track->bytes.calm &&
           next->before <= track->granules.calm &&
           (uint64_t)(next - track->slots) <= track->blocks.calm;
}

static inline uint64_t track_came_blocks(const struct track *track) {
    return track_cursor(track) + track->wander.blocks;
}

static inline uint64_t track_came_granules(const struct track *track) {
    return track->slots[track_cursor(track)].before + track->wander.granules;
}

/* Looks at the peaks, before something leaves. */
static inline void track_note_peaks(struct track *track) {
    if (track->coarse) {
        track_look(track); /* so are those of the small lane */
        return;
    }
    tide_note(&track->blocks, track_came_blocks(track));
    tide_note(&track->granules, track_came_granules(track));
    tide_note(&track->bytes, track->came_bytes);
    track->looked = track->open ? track->next : NULL;
}

static inline void track_leave(struct track *track, struct track_slot *slot) {
    slot->mark |= TRACK_GONE;
    track->blocks.calm++;
    track->granules.calm += slot->room / RANGE_GRANULE;
    track->bytes.calm += slot->bytes;
}

/* The live slot at `addr` if it is the one that is expected, else NULL. */
static inline struct track_slot *track_expected(const struct track *track, uintptr_t addr) {
    struct track_slot *slot = &track->slots[*track->expected];
    return slot->addr == addr && slot->mark == track->epoch ? slot : NULL;
}

/* Releases what track_expected() found. */
static inline void track_take_back(struct track *track, struct track_slot *slot) {
    track->expected++;
    track->passed++;
    track_leave(track, slot);
}

#endif
