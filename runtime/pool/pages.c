// SPDX-License-Identifier: Apache-2.0
/*
 * pages.c - runs are taken from hot and cold pages, kept, and given back (see pages.h).
 *
 * Invariant, also of slabs.c, grow.c and cut.c: pieces tile each slab; two hot or two cold pieces
 * never touch. Every function prepares the entries it may need before it changes anything, so a
 * failure has no effect.
 */
#include "pool/pages.h"
#include "base/check.h"
#include "base/error.h"
#include "base/os.h"
#include "pool/chunk.h"

#define NEAR 64 /* neighbours looked at for cold pages behind a run */
#define LOWEST_LOOK 256 /* pieces looked at for the lowest hot one */
#define HEADROOM_LEAST ((size_t)64 << 20) /* cold pieces below this are used from their start */

/* A free piece enters its bin, merged with neighbours of its kind. */
static void put_free(struct pages *pages, struct ebb_piece *piece, enum piece_state state) {
    struct fit *fit = state == PIECE_HOT ? &pages->hot : &pages->cold;
    piece_put_state(piece, state);
    if (piece_is(piece->after, state)) {
        fit_remove(fit, piece->after);
        piece_absorb_after(piece, &pages->store);
    }
    if (piece_is(piece->before, state)) {
        piece = piece->before;
        fit_remove(fit, piece);
        piece_absorb_after(piece, &pages->store);
    }
    fit_insert(fit, piece);
}

/* ---- taking ---- */

/* Turns [addr, addr + bytes) of a free piece into a run. The store has two entries left. */
static struct ebb_piece *carve(struct pages *pages, struct ebb_piece *piece, uintptr_t addr,
                               size_t bytes) {
    struct fit *fit = pages_fit_of(pages, piece);
    fit_remove(fit, piece);
    if (addr > piece->addr) {
        struct ebb_piece *rest = piece_take(&pages->store);
        piece_split(piece, rest, addr);
        fit_insert(fit, piece);
        piece = rest;
    }
    if (piece->bytes > bytes) {
        struct ebb_piece *rest = piece_take(&pages->store);
        piece_split(piece, rest, addr + bytes);
        fit_insert(fit, rest);
    }
    if (piece->state == PIECE_HOT)
        pages->hot_bytes -= bytes;
    pages->run_bytes += bytes;
    pages_become_run(piece);
    range_name_pages(piece, addr, bytes);
    return piece;
}

/* The hot piece of at least `least` bytes with the lowest address; NULL if none is found soon. */
static struct ebb_piece *lowest_hot(const struct pages *pages, size_t least) {
    unsigned look = 0;
    for (const struct ebb_piece *slab = pages->slabs; slab; slab = slab->next)
        for (struct ebb_piece *piece = slab->run.first; piece; piece = piece->after) {
            if (piece->state == PIECE_HOT && piece->bytes >= least)
                return piece;
            if (++look == LOWEST_LOOK)
                return NULL;
        }
    return NULL;
}

/*
 * Steps take the lowest hot piece that is not a splinter: so one step after the other uses the
 * same pages, and what lies highest was used longest ago. Keepers take the smallest that fits.
 */
static struct ebb_piece *choose_hot(const struct pages *pages, const struct pages_wish *wish) {
    if (wish->keeper)
        return fit_find(&pages->hot, wish->least);
    struct ebb_piece *largest = fit_largest(&pages->hot);
    if (!largest || largest->bytes < wish->least)
        return fit_find(&pages->hot, wish->least);
    struct ebb_piece *lowest = lowest_hot(pages, size_larger(wish->least, largest->bytes / 8));
    return lowest ? lowest : largest;
}

struct ebb_piece *pages_take_hot(struct pages *pages, const struct pages_wish *wish) {
    struct ebb_piece *piece = choose_hot(pages, wish);
    if (!piece || piece->bytes < wish->least || !piece_prepare(&pages->store, 2))
        return NULL;
    return carve(pages, piece, piece->addr, size_smaller(piece->bytes, wish->want));
}

/* Where in a cold piece a new run has room to grow before it meets a neighbour. One that will not
 * grow lies at the end: out of the way of those that may, and beside others like it, so that they
 * share pages of the tables. */
static uintptr_t cold_place(const struct pages *pages, const struct pages_wish *wish,
                            const struct ebb_piece *piece, size_t bytes) {
    size_t spare = piece->bytes - bytes;
    if (!piece->before || wish->whole || pages->kind->dense)
        return piece->addr;
    if (wish->exact)
        return piece->addr + spare;
    if (spare < HEADROOM_LEAST)
        return piece->addr;
    return piece->addr + size_align_down(spare / 2, CHUNK_ALIGN);
}

/* The hot piece that a run may begin in and go on into the cold pages behind. Of a dense kind all
 * cold pages are one piece, the last one. */
static struct ebb_piece *hot_before_cold(const struct pages *pages) {
    struct ebb_piece *cold = pages->kind->dense ? fit_largest(&pages->cold) : NULL;
    struct ebb_piece *piece = cold ? cold->before : fit_largest(&pages->hot);
    bool both = piece_is(piece, PIECE_HOT) && piece_is(piece->after, PIECE_COLD);
    return both ? piece : NULL;
}

/* That piece, if it is enough together with cold pages. Of a dense kind whatever there is of hot
 * pages serves: they lie in the way to the cold ones, and there is no other slab. */
static struct ebb_piece *find_across(const struct pages *pages, const struct pages_wish *wish) {
    struct ebb_piece *piece = hot_before_cold(pages);
    if (!piece || (piece->bytes < wish->least / 2 && !wish->whole && !pages->kind->dense) ||
        piece->bytes >= wish->least || piece->bytes + piece->after->bytes < wish->least ||
        wish->least - piece->bytes > wish->most_cold)
        return NULL;
    return piece;
}

static struct ebb_piece *take_across(struct pages *pages, const struct pages_wish *wish,
                                     struct ebb_piece *hot) {
    struct pages_wish rest = *wish;
    rest.extend = rest.want = rest.want_cold = wish->least - hot->bytes;
    if (!pages_warm(pages, hot->after->addr, rest.extend))
        return NULL;
    struct ebb_piece *run = carve(pages, hot, hot->addr, hot->bytes);
    pages_extend(pages, run, &rest);
    return run;
}

/* The first cold piece behind a run that is large enough; NULL if none is near. */
static struct ebb_piece *cold_near(const struct pages_wish *wish) {
    struct ebb_piece *piece = wish->near ? wish->near->after : NULL;
    for (unsigned look = 0; piece && look < NEAR; look++, piece = piece->after)
        if (piece->state == PIECE_COLD && piece->bytes >= wish->least)
            return piece;
    return NULL;
}

static struct ebb_piece *cold_anywhere(struct pages *pages, const struct pages_wish *wish) {
    bool smallest = wish->exact && !pages->kind->dense;
    struct ebb_piece *piece = smallest ? NULL : fit_largest(&pages->cold);
    if (!piece || piece->bytes < wish->least)
        piece = fit_find(&pages->cold, wish->least);
    return piece ? piece : pages_add_slab(pages, wish->least);
}

static struct ebb_piece *take_cold(struct pages *pages, const struct pages_wish *wish) {
    if (wish->least > wish->most_cold) {
        error_set(EBB_E_POOL_LIMIT,
                  "%zu bytes of pages asked, limit leaves %zu of %zu in pool '%s'", wish->least,
                  wish->room, wish->limit, wish->pool);
        return NULL;
    }
    struct ebb_piece *near = cold_near(wish);
    struct ebb_piece *piece = near ? near : cold_anywhere(pages, wish);
    if (!piece)
        return NULL;
    size_t bytes = size_smaller(size_smaller(wish->want_cold, wish->most_cold), piece->bytes);
    uintptr_t addr = near ? piece->addr : cold_place(pages, wish, piece, bytes);
    return pages_warm(pages, addr, bytes) ? carve(pages, piece, addr, bytes) : NULL;
}

/* Pages that are not all hot. What the system refuses here, it refuses elsewhere: then no other
 * place is tried, and the error is its own. */
static struct ebb_piece *take_colder(struct pages *pages, const struct pages_wish *wish) {
    bool is_dense = pages->kind->dense;
    struct ebb_piece *hot = wish->keeper && !is_dense ? NULL : find_across(pages, wish);
    return hot ? take_across(pages, wish, hot) : take_cold(pages, wish);
}

struct ebb_piece *pages_take(struct pages *pages, const struct pages_wish *wish) {
    if (!os.allow(OS_RUN) || !piece_prepare(&pages->store, 6)) {
        error_set(EBB_E_MEMORY, "no bookkeeping left for a run of %zu bytes", wish->least);
        return NULL;
    }
    struct ebb_piece *run = pages_take_hot(pages, wish);
    if (!run && wish->whole && pages->kept) { /* what others keep is for one that needs as much */
        pages_unkeep_all(pages);
        run = pages_take_hot(pages, wish);
    }
    if (run)
        return run;
    return (pages->kind->whole ? pages_take_whole : take_colder)(pages, wish);
}

/* ---- keeping and giving ---- */

void pages_keep(struct pages *pages, struct ebb_piece *run, uint64_t ticket) {
    CHECK(run->state == PIECE_RUN);
    pages->run_bytes -= run->bytes;
    pages->hot_bytes += run->bytes;
    piece_put_state(run, PIECE_KEPT);
    run->kept.ticket = ticket;
    pages->kept_bytes += run->bytes;
    if (!pages->kept)
        pages->longest_kept = run;
    piece_push(&pages->kept, run);
}

static void unlink_kept(struct pages *pages, struct ebb_piece *piece) {
    pages->kept_bytes -= piece->bytes;
    if (pages->longest_kept == piece)
        pages->longest_kept = piece->prev;
    piece_unlink(&pages->kept, piece);
}

void pages_retake(struct pages *pages, struct ebb_piece *run) {
    unlink_kept(pages, run);
    pages->hot_bytes -= run->bytes;
    pages->run_bytes += run->bytes;
    pages_become_run(run);
}

void pages_unkeep(struct pages *pages, struct ebb_piece *piece) {
    unlink_kept(pages, piece);
    put_free(pages, piece, PIECE_HOT);
}

void pages_unkeep_all(struct pages *pages) {
    while (pages->kept && !pages->leaving)
        pages_unkeep(pages, pages->kept);
}

void pages_give(struct pages *pages, struct ebb_piece *run) {
    CHECK(run->state == PIECE_RUN);
    pages->run_bytes -= run->bytes;
    pages->hot_bytes += run->bytes;
    put_free(pages, run, PIECE_HOT);
}
