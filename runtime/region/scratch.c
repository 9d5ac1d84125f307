// SPDX-License-Identifier: Apache-2.0
/*
 * scratch.c - bytes that come and go within a call (see scratch.h).
 *
 * They are a place in the large lane, as a window is, and no block: no counter has them, no limit
 * asks what they need, and nobody takes their address for a live block. Pages are what they can
 * lack. So a call that moves blocks out of a full region, or makes one that just fits, works.
 */
#include "region/scratch.h"
#include "base/error.h"
#include "region/safe.h"

void *scratch_take(struct scratch *scratch, struct region *asking, size_t bytes) {
    struct region *region = safe_for(asking);
    size_t rounded;
    if (!region)
        return NULL;
    if (!size_round_up(size_larger(bytes, 1), EBB_UNIT, &rounded)) {
        error_set(EBB_E_SIZE, "%zu bytes are more than half the address space", bytes);
        return NULL;
    }
    remote_look(region); /* what others have released may be room */
    struct ebb_piece *place = large_place(region, rounded, EBB_UNIT);
    if (!place)
        return NULL;
    place->state = PIECE_SCRATCH;
    place->flag = false;
    place->pins = 0;
    poison_opened(place->addr, place->bytes);
    *scratch = (struct scratch){.region = region, .place = place};
    return (void *)place->addr;
}

void scratch_give(struct scratch *scratch) {
    struct ebb_piece *place = scratch->place;
    poison_released(place->addr, place->bytes);
    large_free(scratch->region, place);
}
