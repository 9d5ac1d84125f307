// SPDX-License-Identifier: Apache-2.0
/* runs.h - the runs of pages under both lanes (see runs.c). */
#ifndef EBB_REGION_RUNS_H
#define EBB_REGION_RUNS_H

#include "region/region.h"

/* Gives a run back to the pool: `run`, or the one that the free piece `piece` fills. */
void runs_give(struct region *region, struct ebb_piece *run);
void runs_give_empty(struct region *region, struct ebb_piece *piece);

/* The region's run around `addr`, found without reading what other threads may change. */
struct ebb_piece *runs_around(const struct region *region, uintptr_t addr);

/* The run holds no arena any more. Takes the pool's lock, as neighbours may look. */
void runs_unmark(struct region *region, struct ebb_piece *run);

/* Claims the hot pages around all runs and joins runs that touch; true if anything changed, so that
 * there may be room now. Where the pool's limit might refuse other pages, claims only those that
 * make the room. */
bool runs_claim(struct region *region, size_t bytes, size_t align);

/* Makes the top long enough for `bytes` at `align`. */
int runs_grow(struct region *region, size_t bytes, size_t align);

/* True if a new run, or the grown top, could hold the block once the run `other` is given back. */
bool runs_could_serve(const struct region *region, const struct ebb_piece *other, size_t bytes,
                      size_t align);

/* Reserves exactly `bytes`, rounded to pages, as the region's first run. */
int runs_reserve(struct region *region, size_t bytes);

/* Forgets all blocks, keeps at most `keep` bytes of runs and lists the others in *given. */
void runs_forget(struct region *region, size_t keep, struct ebb_piece **given);

/* Bytes of pages needed so far, without the part of the main run that was never used. */
size_t runs_measured(const struct region *region);

/* ---- cut.c ---- */

/* Gives the whole pages of a free piece from `from` on back to the pool, for good: later steps are
 * not expected to need them. What lies before and behind them becomes two runs. Does nothing if no
 * entries are left. */
void runs_give_part(struct region *region, struct ebb_piece *piece, uintptr_t from);

/* The same for all free pieces. */
void runs_give_free(struct region *region);

/* ---- runs.c, for cut.c ---- */

/* A new piece of the region, alone. Its entry is prepared. */
struct ebb_piece *runs_new_piece(struct region *region, uintptr_t addr, size_t bytes,
                                 enum piece_state state);

/* The top becomes an ordinary free piece. */
void runs_retire_top(struct region *region);

/* If the main run ends with a free piece, that is the top. */
void runs_find_top(struct region *region);

/* The run is one of the region's from here on, from `first` to its `end`. */
static inline void runs_add(struct region *region, struct ebb_piece *run, struct ebb_piece *first,
                            struct ebb_piece *end) {
    run->run.first = first;
    run->run.end = end;
    end->end.run = run;
    piece_push(&region->runs, run);
    region->run_count++;
}

static inline bool runs_is_free(const struct ebb_piece *piece) {
    return piece->state == PIECE_FREE || piece->state == PIECE_TOP;
}

#endif
