// SPDX-License-Identifier: Apache-2.0
/* slabs.c - a page heap begins and ends, and gets its slabs (see pages.h). */
#include "base/check.h"
#include "base/error.h"
#include "pool/pages.h"
#include "pool/range.h"

#include <string.h>

void pages_init(struct pages *pages, const struct kind *kind) {
    fit_clear(&pages->hot);
    fit_clear(&pages->cold);
    pages->slabs = pages->kept = pages->longest_kept = NULL;
    pages->run_bytes = pages->hot_bytes = pages->kept_bytes = 0;
    pages->small_from = pages->small_to = 0;
    pages->welcomes_huge = pages->leaving = pages->undoing = false;
    pages->kind = kind;
    pages->source = NULL;
    pages->cuda = (struct cuda_hold){.context = NULL};
    pages->misfit = 0;
}

/* Entries of kept pages may be believed no longer. */
static void disown_kept(struct pages *pages) {
    CHECK(pages->run_bytes == 0);
    for (struct ebb_piece *kept = pages->kept; kept; kept = kept->next)
        piece_put_state(kept, PIECE_UNUSED);
}

void pages_fini(struct pages *pages) {
    disown_kept(pages);
    for (struct ebb_piece *slab = pages->slabs; slab; slab = slab->next) {
        size_t given = 0;
        if (pages->kind->whole)
            (void)pages->kind->cool(pages, slab->addr, slab->bytes, &given);
        range_forget(slab->addr, slab->bytes, slab->addr, piece_end(slab));
        pages->kind->give(pages, slab->addr, slab->bytes); /* last: others may have it at once */
    }
    piece_forget_all(&pages->store);
    cuda_leave(&pages->cuda);
    pages_init(pages, pages->kind);
}

struct ebb_piece *pages_slab_at(const struct pages *pages, uintptr_t addr) {
    struct ebb_piece *slab = pages->slabs;
    while (slab && !piece_covers(slab, addr))
        slab = slab->next;
    CHECK(slab);
    return slab;
}

void pages_fix_slab(struct pages *pages, const struct ebb_piece *old, struct ebb_piece *piece) {
    for (struct ebb_piece *slab = pages->slabs; slab; slab = slab->next)
        if (slab->run.first == old)
            slab->run.first = piece;
}

/* A slab of one cold piece, which is in no bin yet. Two entries are prepared. */
static struct ebb_piece *begin_slab(struct pages *pages, uintptr_t addr, size_t bytes) {
    struct ebb_piece *slab = piece_take(&pages->store), *piece = piece_take(&pages->store);
    pages_begin_piece(piece, addr, bytes, PIECE_COLD);
    pages_begin_piece(slab, addr, bytes, PIECE_UNUSED);
    memset(&slab->slab, 0, sizeof slab->slab);
    slab->slab.first = piece;
    slab->next = pages->slabs;
    pages->slabs = slab;
    return piece;
}

bool pages_restart(struct pages *pages, uintptr_t addr, size_t bytes, size_t hot) {
    void *source = pages->source;
    disown_kept(pages);
    piece_forget_all(&pages->store);
    pages_init(pages, pages->kind);
    pages->source = source;
    if (!piece_prepare(&pages->store, 3))
        return false;
    struct ebb_piece *piece = begin_slab(pages, addr, bytes);
    if (hot && hot < bytes) {
        struct ebb_piece *cold = piece_take(&pages->store);
        piece_split(piece, cold, addr + hot);
        piece_put_state(cold, PIECE_COLD);
        fit_insert(&pages->cold, cold);
    }
    piece_put_state(piece, hot ? PIECE_HOT : PIECE_COLD);
    pages->hot_bytes = hot;
    fit_insert(pages_fit_of(pages, piece), piece);
    return true;
}

struct ebb_piece *pages_add_slab(struct pages *pages, size_t least) {
    size_t bytes;
    if (!piece_prepare(&pages->store, 2)) {
        error_set(EBB_E_MEMORY, "no bookkeeping left for a slab of %zu bytes", least);
        return NULL;
    }
    uintptr_t addr = pages->kind->take(pages, least, &bytes);
    if (!addr)
        return NULL;
    struct ebb_piece *piece = begin_slab(pages, addr, bytes);
    fit_insert(&pages->cold, piece);
    return piece;
}
