// SPDX-License-Identifier: Apache-2.0
/*
 * cool.c - giving hot pages back to the system, and the walker over a page heap.
 *
 * Runs are taken from low addresses first, so the highest hot pages are those that were used
 * longest ago: they go first. The clock is read once a MiB, so a trim overruns its deadline by
 * at most the time of one MiB. A refusal of the system leaves the pages hot. The tables' pages that
 * describe nothing but cold pages go too.
 */
#include "base/check.h"
#include "base/os.h"
#include "pool/chunk.h"
#include "pool/pages.h"
#include "pool/range.h"

#define PART ((size_t)1 << 20)
#define LOOK_A_PAGE 16 /* hot pieces looked at for each page that goes */

/* The last `bytes` of a hot piece turn cold: the cold piece. The store has an entry left. */
static const struct ebb_piece *cool_tail(struct pages *pages, struct ebb_piece *piece,
                                         size_t bytes) {
    fit_remove(&pages->hot, piece);
    pages->hot_bytes -= bytes;
    if (bytes < piece->bytes) {
        struct ebb_piece *rest = piece_take(&pages->store);
        piece_split(piece, rest, piece_end(piece) - bytes);
        fit_insert(&pages->hot, piece);
        piece = rest;
    }
    piece_put_state(piece, PIECE_COLD);
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
    return piece;
}

/* Parts end at multiples of a MiB, so that whole pages of the tables describe them. */
static size_t part_bytes(uintptr_t end) {
    return end - size_align_down(end - 1, PART);
}

/* Where huge pages are, what is cold beside a part became resident with it: it goes, too, in whole
 * ones of which nothing is hot or in a run any more. */
static void cool_beside(struct pages *pages, uintptr_t addr, size_t bytes,
                        const struct ebb_piece *cold, size_t *given) {
    uintptr_t from = size_larger(size_align_down(addr, CHUNK_ALIGN),
                                 size_align(cold->addr, CHUNK_ALIGN));
    uintptr_t to = size_smaller(size_align(addr + bytes, CHUNK_ALIGN),
                                size_align_down(piece_end(cold), CHUNK_ALIGN));
    if (from < to)
        (void)pages->kind->cool(pages, from, to - from, given); /* else they stay, as cold pages */
}

/* Cools up to `most` bytes of the piece's end; false if the system refused. */
static bool cool_part(struct pages *pages, struct ebb_piece *piece, size_t most, size_t *given) {
    size_t bytes = size_smaller(size_smaller(piece->bytes, part_bytes(piece_end(piece))), most);
    uintptr_t addr = piece_end(piece) - bytes;
    if (!piece_prepare(&pages->store, 1) || !pages->kind->cool(pages, addr, bytes, given))
        return false;
    const struct ebb_piece *cold = cool_tail(pages, piece, bytes);
    if (pages->kind->huge)
        cool_beside(pages, addr, bytes, cold, given);
    range_forget(addr, bytes, cold->addr, piece_end(cold));
    return true;
}

/* What is left to do: stop at `target` hot bytes, after `most` more, or at the deadline. */
struct cooling {
    size_t target, most, given;
    uint64_t deadline_ns;
    bool stopped;
    bool begun; /* a whole slab went */
};

static bool is_done(const struct pages *pages, const struct cooling *cooling) {
    return cooling->stopped || pages->hot_bytes <= cooling->target || cooling->most < EBB_PAGE;
}

/* Cools one hot piece from its end, part by part. */
static void cool_piece(struct pages *pages, struct ebb_piece *piece, struct cooling *cooling) {
    while (!is_done(pages, cooling)) {
        size_t before = pages->hot_bytes, bytes = piece->bytes;
        size_t excess = before - cooling->target;
        if (!cool_part(pages, piece, size_smaller(excess, cooling->most), &cooling->given)) {
            cooling->stopped = true;
            return;
        }
        size_t cooled = before - pages->hot_bytes;
        cooling->most -= cooled;
        cooling->stopped = cooling->deadline_ns && os.now_ns() >= cooling->deadline_ns;
        if (cooled == bytes)
            return;
    }
}

/*
 * A slab that has memory as a whole goes if all of it is hot and it is no more than is asked for;
 * but one may go beyond `most`, for else a large one would stay for ever.
 */
static void cool_whole(struct pages *pages, struct ebb_piece *slab, struct cooling *cooling) {
    const struct ebb_piece *piece = slab->slab.first;
    size_t bytes = slab->bytes;
    if (piece->state != PIECE_HOT || piece->bytes != bytes ||
        bytes > pages->hot_bytes - cooling->target || (cooling->begun && bytes > cooling->most))
        return;
    if (!pages_drop_whole(pages, slab)) {
        cooling->stopped = true;
        return;
    }
    cooling->begun = true;
    cooling->given += bytes;
    cooling->most -= size_smaller(cooling->most, bytes);
    cooling->stopped = cooling->deadline_ns && os.now_ns() >= cooling->deadline_ns;
}

struct highest {
    uintptr_t limit;
    struct ebb_piece *piece;
};

static bool look_higher(void *context, struct ebb_piece *piece) {
    struct highest *highest = context;
    if (piece->addr < highest->limit && (!highest->piece || piece->addr > highest->piece->addr))
        highest->piece = piece;
    return true;
}

/* The hot piece with the highest address below `limit`, or NULL: found among those that are hot,
 * since a slab may have very many that are not. */
static struct ebb_piece *hot_below(const struct pages *pages, uintptr_t limit) {
    struct highest highest = {.limit = limit};
    fit_each(&pages->hot, look_higher, &highest);
    return highest.piece;
}

/* From a hot piece down to the first of its slab, as long as the next hot one is found sooner so
 * than among all that are hot; where that ends. Cooling merges with neighbours behind or with a
 * cold one in front, which stays an entry. */
static uintptr_t cool_down(struct pages *pages, struct ebb_piece *piece, struct cooling *cooling) {
    uintptr_t addr = piece->addr;
    size_t passed = 0; /* since the last hot one */
    for (struct ebb_piece *before; piece && passed <= pages->hot.count && !is_done(pages, cooling);
         piece = before, passed++) {
        before = piece->before;
        addr = piece->addr;
        if (piece->state != PIECE_HOT)
            continue;
        cool_piece(pages, piece, cooling);
        passed = 0;
    }
    return addr;
}

/* The slab with the highest address below `limit`. */
static struct ebb_piece *slab_below(const struct pages *pages, uintptr_t limit) {
    struct ebb_piece *highest = NULL;
    for (struct ebb_piece *slab = pages->slabs; slab; slab = slab->next)
        if (slab->addr < limit && (!highest || slab->addr > highest->addr))
            highest = slab;
    return highest;
}

static void cool_wholes(struct pages *pages, struct cooling *cooling) {
    struct ebb_piece *slab = slab_below(pages, UINTPTR_MAX);
    while (slab && !is_done(pages, cooling)) {
        uintptr_t addr = slab->addr;
        cool_whole(pages, slab, cooling);
        slab = slab_below(pages, addr);
    }
}

static void cool_hot(struct pages *pages, struct cooling *cooling) {
    uintptr_t limit = UINTPTR_MAX;
    for (struct ebb_piece *piece; !is_done(pages, cooling) && (piece = hot_below(pages, limit));)
        limit = cool_down(pages, piece, cooling);
}

static void cool(struct pages *pages, struct cooling *cooling) {
    (pages->kind->whole ? cool_wholes : cool_hot)(pages, cooling);
}

/* A page for some pieces that are looked at, so that it is not they that a page costs. Few pieces
 * are found quickly, and slabs that have memory as a whole are few. */
size_t pages_cool_least(const struct pages *pages) {
    return pages->kind->whole ? 0 : pages->hot.count / LOOK_A_PAGE * EBB_PAGE;
}

size_t pages_cool(struct pages *pages, size_t target, size_t most, uint64_t deadline_ns) {
    struct cooling cooling = {
        .target = size_align_down(size_smaller(target, pages->hot_bytes), EBB_PAGE),
        .most = size_align_down(most, EBB_PAGE),
        .deadline_ns = deadline_ns};
    (void)pages_clear(pages);
    cool(pages, &cooling);
    while (pages->kept && !pages->leaving && !is_done(pages, &cooling)) {
        pages_unkeep(pages, pages->longest_kept);
        cool(pages, &cooling);
    }
    return cooling.given;
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
    bool run = piece->state != PIECE_HOT && piece->state != PIECE_COLD;
    CHECK_ALWAYS(!after || run || piece->state != after->state);
    if (piece->state == PIECE_RUN) {
        CHECK_ALWAYS(range_run_at(piece->addr) == piece);
        CHECK_ALWAYS(range_run_at(piece_end(piece) - EBB_PAGE) == piece);
        return;
    }
    if (piece->state == PIECE_HELD || piece->state == PIECE_KEPT)
        return;
    CHECK_ALWAYS(piece->state == PIECE_HOT || piece->state == PIECE_COLD);
    CHECK_ALWAYS(contains(piece->state == PIECE_HOT ? &pages->hot : &pages->cold, piece));
}

void pages_check(const struct pages *pages) {
    size_t runs = 0, hot = 0, kept = 0;
    for (const struct ebb_piece *slab = pages->slabs; slab; slab = slab->next) {
        const struct ebb_piece *piece = slab->run.first;
        size_t bytes = 0;
        CHECK_ALWAYS(piece && !piece->before && piece->addr == slab->addr);
        for (; piece; piece = piece->after) {
            check_piece(pages, piece);
            bytes += piece->bytes;
            runs += piece->state == PIECE_RUN || piece->state == PIECE_HELD ? piece->bytes : 0;
            hot += piece->state == PIECE_HOT ? piece->bytes : 0;
            kept += piece->state == PIECE_KEPT ? piece->bytes : 0;
        }
        CHECK_ALWAYS(bytes == slab->bytes);
    }
    CHECK_ALWAYS(runs == pages->run_bytes && hot + kept == pages->hot_bytes);
    CHECK_ALWAYS(kept == pages->kept_bytes);
}
