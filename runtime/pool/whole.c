// SPDX-License-Identifier: Apache-2.0
/*
 * whole.c - slabs of kinds whose memory comes and goes with the slab: a device gives memory by the
 * piece, and pages are registered with a driver by the piece.
 *
 *     none  -- add -->  | hot |  -->  | run | hot | run |  -->  | hot |  -- drop -->  none
 *
 * Invariant: no slab has a cold page, so what is reserved is what the slabs have, used or not. A
 * slab is as long as all before it together, within bounds: few calls of the driver for a large
 * pool, and little too much for a small one. A limit, or a refusal, makes it as short as will do.
 *
 * Slabs of addresses alone, for measuring, are dropped here as well.
 */
#include "base/error.h"
#include "pool/chunk.h"
#include "pool/pages.h"
#include "pool/pinned.h"

#ifndef WHOLE_MOST
#define WHOLE_MOST ((size_t)64 << 20)
#endif

#define SPARE_PART 64 /* of all addresses, for measuring regions to come */

size_t pages_step(const struct pages *pages, size_t least) {
    return pages->kind->whole ? size_align(least, CHUNK_ALIGN) : least;
}

/* A slab leaves the heap. Its one piece is in no bin. */
static void forget(struct pages *pages, struct ebb_piece *slab) {
    struct ebb_piece **link = &pages->slabs;
    while (*link != slab)
        link = &(*link)->next;
    *link = slab->next;
    range_forget(slab->addr, slab->bytes, slab->addr, piece_end(slab));
    pages->kind->give(pages, slab->addr, slab->bytes); /* last: others may have it at once */
    piece_give(&pages->store, slab->slab.first);
    piece_give(&pages->store, slab);
}

static bool add(struct pages *pages, size_t bytes) {
    struct ebb_piece *piece = pages_add_slab(pages, bytes);
    if (!piece)
        return false;
    fit_remove(&pages->cold, piece);
    if (pages->kind->warm(pages, piece->addr, piece->bytes) != 0) {
        forget(pages, pages->slabs);
        return false;
    }
    piece_put_state(piece, PIECE_HOT);
    pages->hot_bytes += piece->bytes;
    fit_insert(&pages->hot, piece);
    return true;
}

/* The same without an error: there is another way. */
static bool try_to_add(struct pages *pages, size_t bytes) {
    error_mute();
    bool added = add(pages, bytes);
    error_unmute();
    return added;
}

struct ebb_piece *pages_take_whole(struct pages *pages, const struct pages_wish *wish) {
    size_t least = pages_step(pages, wish->least);
    size_t like = size_smaller(pages->run_bytes + pages->hot_bytes, WHOLE_MOST);
    like = size_align_down(size_smaller(like, wish->most_cold), CHUNK_ALIGN);
    if (least > wish->most_cold) {
        error_set(EBB_E_POOL_LIMIT,
                  "%zu bytes of pages asked, in a slab of %zu; limit leaves %zu of %zu in pool "
                  "'%s'",
                  wish->least, least, wish->room, wish->limit, wish->pool);
        return NULL;
    }
    if (!(like > least && try_to_add(pages, like)) && !add(pages, least))
        return NULL;
    return pages_take_hot(pages, wish);
}

size_t pages_drop_phantoms(struct pages *pages) {
    size_t dropped = 0, spare = 0;
    for (struct ebb_piece *slab = pages->slabs, *next; slab; slab = next) {
        struct ebb_piece *first = slab->slab.first;
        next = slab->next;
        if (first->state != PIECE_HOT || first->bytes != slab->bytes)
            continue;
        if (slab->bytes == PHANTOM_BYTES && spare + slab->bytes <= range.bytes / SPARE_PART) {
            spare += slab->bytes;
            continue;
        }
        fit_remove(&pages->hot, first);
        pages->hot_bytes -= slab->bytes;
        dropped += slab->bytes;
        forget(pages, slab);
    }
    return dropped;
}

/* Kept pieces become hot before a slab is dropped. */
static bool is_free_all_over(const struct ebb_piece *slab) {
    const struct ebb_piece *piece = slab->slab.first;
    while (piece && (piece->state == PIECE_HOT || piece->state == PIECE_KEPT))
        piece = piece->after;
    return !piece;
}

size_t pages_left(const struct pages *pages, size_t target) {
    size_t excess = pages->hot_bytes > target ? pages->hot_bytes - target : 0, left = 0;
    if (pages->kind->dense)
        return 0; /* its slot is in use */
    if (!pages->kind->whole)
        return excess;
    for (const struct ebb_piece *slab = pages->slabs; slab; slab = slab->next)
        left += slab->bytes <= excess && is_free_all_over(slab) ? slab->bytes : 0;
    return size_smaller(left, excess);
}

bool pages_may_fit(const struct pages *pages, size_t bytes) {
    size_t cached = pages_left(pages, 0);
    bool device = pages->kind == &kind_device;
    size_t free = device ? cuda_free_bytes(&pages->cuda) : pin_room(&pages->cuda);
    return bytes - size_smaller(bytes, cached) <= free;
}

bool pages_are_scarce(const struct pages *pages, size_t bytes) {
    return pages->kind->whole && !pages_may_fit(pages, bytes) &&
           (pages->kind == &kind_device || pin_is_limited(&pages->cuda));
}

bool pages_clear(struct pages *pages) {
    return !pages->kind->clear || pages->kind->clear(pages);
}

bool pages_drop_whole(struct pages *pages, struct ebb_piece *slab) {
    size_t given = 0;
    if (!pages->kind->cool(pages, slab->addr, slab->bytes, &given))
        return false;
    fit_remove(&pages->hot, slab->slab.first);
    pages->hot_bytes -= slab->bytes;
    forget(pages, slab);
    return true;
}
