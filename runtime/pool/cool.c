// SPDX-License-Identifier: Apache-2.0
/*
 * cool.c - giving hot pages back to the system, and the walker over a page heap.
 *
 * Runs are taken from low addresses first, so the highest hot pages are those that were used
 * longest ago: they go first. The clock is read once a MiB, so a trim overruns its deadline by
 * at most the time of one MiB. A refusal of the system leaves the pages hot.
 */
#include "base/check.h"
#include "base/os.h"
#include "pool/pages.h"
#include "pool/range.h"

#define PART ((size_t)1 << 20)

static bool higher(void *context, struct ebb_piece *piece) {
    struct ebb_piece **highest = context;
    if (!*highest || piece->addr > (*highest)->addr)
        *highest = piece;
    return true;
}

/* The last `bytes` of a hot piece turn cold. The store has an entry left. */
static void cool_tail(struct pages *pages, struct ebb_piece *piece, size_t bytes) {
    fit_remove(&pages->hot, piece);
    pages->hot_bytes -= bytes;
    if (bytes < piece->bytes) {
        struct ebb_piece *rest = piece_take(&pages->store);
        piece_split(piece, rest, piece_end(piece) - bytes);
        fit_insert(&pages->hot, piece);
        piece = rest;
    }
    piece->state = PIECE_COLD;
    struct ebb_piece *after = piece->after, *before = piece->before;
    if (after && after->state == PIECE_COLD) {
        fit_remove(&pages->cold, after);
        piece_absorb_after(piece, &pages->store);
    }
    if (before && before->state == PIECE_COLD) {
        fit_remove(&pages->cold, before);
        piece_absorb_after(before, &pages->store);
        piece = before;
    }
    fit_insert(&pages->cold, piece);
}

/* Parts end at multiples of a MiB, so that whole pages of the tables describe them. */
static size_t part_bytes(uintptr_t end) {
    return end - size_align_down(end - 1, PART);
}

/* Cools up to `most` bytes of the piece's end; false if the system refused. */
static bool cool_part(struct pages *pages, struct ebb_piece *piece, size_t most, size_t *given) {
    size_t bytes = size_smaller(size_smaller(piece->bytes, part_bytes(piece_end(piece))), most);
    void *addr = (void *)(piece_end(piece) - bytes);
    if (!piece_prepare(&pages->store, 1))
        return false;
    size_t resident = pages->phantom ? 0 : os.resident(addr, bytes);
    if (resident && os.give_back(addr, bytes) != 0)
        return false;
    range_forget((uintptr_t)addr, bytes);
    *given += resident;
    cool_tail(pages, piece, bytes);
    return true;
}

size_t pages_cool(struct pages *pages, size_t target, size_t most, uint64_t deadline_ns) {
    size_t given = 0;
    target = size_align_down(size_smaller(target, pages->hot_bytes), EBB_PAGE);
    while (pages->hot_bytes > target && most >= EBB_PAGE) {
        struct ebb_piece *piece = NULL;
        fit_each(&pages->hot, higher, &piece);
        size_t before = pages->hot_bytes;
        size_t excess = size_smaller(before - target, size_align_down(most, EBB_PAGE));
        if (!cool_part(pages, piece, excess, &given))
            return given;
        most -= before - pages->hot_bytes;
        if (deadline_ns && os.now_ns() >= deadline_ns)
            return given;
    }
    return given;
}

/* ---- walker ---- */

struct search {
    const struct ebb_piece *wanted;
    bool found;
};

static bool same(void *context, struct ebb_piece *piece) {
    struct search *search = context;
    search->found = piece == search->wanted;
    return !search->found;
}

static bool contains(const struct fit *fit, const struct ebb_piece *wanted) {
    struct search search = {wanted, false};
    fit_each(fit, same, &search);
    return search.found;
}

static void check_piece(const struct pages *pages, const struct ebb_piece *piece) {
    const struct ebb_piece *after = piece->after;
    CHECK_ALWAYS(piece->bytes > 0 && piece->bytes % EBB_PAGE == 0);
    CHECK_ALWAYS(!after || (after->before == piece && after->addr == piece_end(piece)));
    CHECK_ALWAYS(!after || piece->state == PIECE_RUN || piece->state != after->state);
    if (piece->state == PIECE_RUN) {
        CHECK_ALWAYS(range_run_at(piece->addr) == piece);
        CHECK_ALWAYS(range_run_at(piece_end(piece) - EBB_PAGE) == piece);
        return;
    }
    CHECK_ALWAYS(piece->state == PIECE_HOT || piece->state == PIECE_COLD);
    CHECK_ALWAYS(contains(piece->state == PIECE_HOT ? &pages->hot : &pages->cold, piece));
}

void pages_check(const struct pages *pages) {
    size_t runs = 0, hot = 0;
    for (const struct ebb_piece *slab = pages->slabs; slab; slab = slab->next) {
        const struct ebb_piece *piece = slab->run.first;
        size_t bytes = 0;
        CHECK_ALWAYS(piece && !piece->before && piece->addr == slab->addr);
        for (; piece; piece = piece->after) {
            check_piece(pages, piece);
            bytes += piece->bytes;
            runs += piece->state == PIECE_RUN ? piece->bytes : 0;
            hot += piece->state == PIECE_HOT ? piece->bytes : 0;
        }
        CHECK_ALWAYS(bytes == slab->bytes);
    }
    CHECK_ALWAYS(runs == pages->run_bytes && hot == pages->hot_bytes);
}
