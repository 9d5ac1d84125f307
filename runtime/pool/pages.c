// SPDX-License-Identifier: Apache-2.0
/*
 * pages.c - taking, growing and giving runs of pages (see pages.h).
 *
 * Invariant: pieces tile each slab; two hot or two cold pieces never touch. Every function
 * prepares the entries it may need before it changes anything, so a failure has no effect.
 */
#include "pool/pages.h"
#include "base/check.h"
#include "base/error.h"
#include "base/os.h"
#include "pool/chunk.h"

#include <string.h>

#define NEAR 64 /* neighbours looked at for cold pages behind a run */
#define LOWEST_LOOK 256 /* pieces looked at for the lowest hot one */
#define HEADROOM_LEAST ((size_t)64 << 20) /* cold pieces below this are used from their start */

void pages_init(struct pages *pages, const struct kind *kind) {
    fit_clear(&pages->hot);
    fit_clear(&pages->cold);
    pages->slabs = pages->kept = pages->longest_kept = NULL;
    pages->run_bytes = pages->hot_bytes = pages->kept_bytes = 0;
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

static struct fit *fit_of(struct pages *pages, const struct ebb_piece *piece) {
    return piece->state == PIECE_HOT ? &pages->hot : &pages->cold;
}

static bool is_state(const struct ebb_piece *piece, enum piece_state state) {
    return piece && piece->state == state;
}

/* A free piece enters its bin, merged with neighbours of its kind. */
static void put_free(struct pages *pages, struct ebb_piece *piece, enum piece_state state) {
    struct fit *fit = state == PIECE_HOT ? &pages->hot : &pages->cold;
    piece_put_state(piece, state);
    if (is_state(piece->after, state)) {
        fit_remove(fit, piece->after);
        piece_absorb_after(piece, &pages->store);
    }
    if (is_state(piece->before, state)) {
        piece = piece->before;
        fit_remove(fit, piece);
        piece_absorb_after(piece, &pages->store);
    }
    fit_insert(fit, piece);
}

/* ---- slabs ---- */

struct ebb_piece *pages_slab_at(const struct pages *pages, uintptr_t addr) {
    struct ebb_piece *slab = pages->slabs;
    while (slab && !piece_covers(slab, addr))
        slab = slab->next;
    CHECK(slab);
    return slab;
}

/* If `old` was the first piece of its slab, `piece` is now. */
static void fix_slab(struct pages *pages, const struct ebb_piece *old, struct ebb_piece *piece) {
    for (struct ebb_piece *slab = pages->slabs; slab; slab = slab->next)
        if (slab->run.first == old)
            slab->run.first = piece;
}

/* Alone, whatever the entry was before. */
static void begin_piece(struct ebb_piece *piece, uintptr_t addr, size_t bytes,
                        enum piece_state state) {
    piece_put_word(piece, 0);
    piece_put_addr(piece, addr);
    piece_put_bytes(piece, bytes);
    piece_put_state(piece, state);
    piece->before = piece->after = piece->next = piece->prev = NULL;
}

/* A slab of one cold piece, which is in no bin yet. Two entries are prepared. */
static struct ebb_piece *begin_slab(struct pages *pages, uintptr_t addr, size_t bytes) {
    struct ebb_piece *slab = piece_take(&pages->store), *piece = piece_take(&pages->store);
    begin_piece(piece, addr, bytes, PIECE_COLD);
    begin_piece(slab, addr, bytes, PIECE_UNUSED);
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
    fit_insert(fit_of(pages, piece), piece);
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

/* ---- taking ---- */

/* Cold pages are about to become part of a run; false: error set. */
static bool warm(struct pages *pages, uintptr_t addr, size_t bytes) {
    return !pages->kind->warm || pages->kind->warm(pages, addr, bytes) == 0;
}

static void become_run(struct ebb_piece *piece) {
    piece_put_state(piece, PIECE_RUN);
    piece->flag = false;
    piece->pins = 0;
    piece->run.first = piece->run.end = NULL;
}

/* Turns [addr, addr + bytes) of a free piece into a run. The store has two entries left. */
static struct ebb_piece *carve(struct pages *pages, struct ebb_piece *piece, uintptr_t addr,
                               size_t bytes) {
    struct fit *fit = fit_of(pages, piece);
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
    become_run(piece);
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
    bool both = is_state(piece, PIECE_HOT) && is_state(piece->after, PIECE_COLD);
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
    if (!warm(pages, hot->after->addr, rest.extend))
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
        error_set(EBB_E_POOL_LIMIT, "%zu bytes of pages asked, limit leaves %zu", wish->least,
                  wish->room);
        return NULL;
    }
    struct ebb_piece *near = cold_near(wish);
    struct ebb_piece *piece = near ? near : cold_anywhere(pages, wish);
    if (!piece)
        return NULL;
    size_t bytes = size_smaller(size_smaller(wish->want_cold, wish->most_cold), piece->bytes);
    uintptr_t addr = near ? piece->addr : cold_place(pages, wish, piece, bytes);
    return warm(pages, addr, bytes) ? carve(pages, piece, addr, bytes) : NULL;
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

/* ---- growing ---- */

/* Moves `bytes` from the free piece behind a run into it. */
static void shift(struct pages *pages, struct ebb_piece *run, size_t bytes) {
    struct ebb_piece *next = run->after;
    fit_remove(fit_of(pages, next), next);
    if (next->state == PIECE_HOT)
        pages->hot_bytes -= bytes;
    pages->run_bytes += bytes;
    range_name_pages(run, next->addr, bytes);
    if (next->bytes == bytes) {
        piece_absorb_after(run, &pages->store);
        return;
    }
    piece_put_addr(next, next->addr + bytes);
    piece_put_bytes(next, next->bytes - bytes);
    piece_put_bytes(run, run->bytes + bytes);
    fit_insert(fit_of(pages, next), next);
}

static bool is_hot_or_kept(const struct ebb_piece *piece) {
    return is_state(piece, PIECE_HOT) || is_state(piece, PIECE_KEPT);
}

/* True if the pages behind the run can give what the wish asks at least, with kept ones or not. */
static bool can_extend(const struct ebb_piece *run, const struct pages_wish *wish, bool kept) {
    size_t total = 0, cold = 0;
    for (const struct ebb_piece *next = run->after; total < wish->extend; next = next->after) {
        if (!is_state(next, PIECE_HOT) && !is_state(next, PIECE_COLD) &&
            !(kept && is_state(next, PIECE_KEPT)))
            return false;
        size_t part = size_smaller(next->bytes, wish->extend - total);
        cold += next->state == PIECE_COLD ? part : 0;
        total += part;
    }
    return cold <= wish->most_cold;
}

bool pages_may_extend(const struct ebb_piece *run, size_t bytes) {
    return can_extend(run, &(struct pages_wish){.extend = bytes, .most_cold = SIZE_MAX}, false);
}

struct pages_around pages_around(const struct ebb_piece *run, const struct ebb_piece *other,
                                 size_t most) {
    struct pages_around free = {0};
    for (const struct ebb_piece *at = run->before; at; at = at->before) {
        if (at != other && !is_state(at, PIECE_HOT)) /* a run takes no cold pages in front of it */
            break;
        free.before += at->bytes;
    }
    for (const struct ebb_piece *at = run->after; at && free.behind < most; at = at->after) {
        if (at != other && !is_state(at, PIECE_HOT) && !is_state(at, PIECE_COLD))
            break;
        if (at->state != PIECE_COLD && free.hot_behind == free.behind)
            free.hot_behind += at->bytes;
        if (at->state == PIECE_COLD)
            free.cold_behind += size_smaller(at->bytes, most - free.behind);
        free.behind += at->bytes;
    }
    return free;
}

/* How much of the piece behind what was gained so far a run takes; *cold_left is what may be. */
static size_t part_of(const struct ebb_piece *next, const struct pages_wish *wish, size_t gained,
                      size_t *cold_left) {
    bool hot = is_state(next, PIECE_HOT);
    size_t goal = hot ? wish->want : size_larger(wish->extend, wish->want_cold);
    if ((!hot && !is_state(next, PIECE_COLD)) || gained >= goal)
        return 0;
    size_t part = size_smaller(goal - gained, next->bytes);
    if (!hot) {
        part = size_smaller(part, *cold_left);
        *cold_left -= part;
    }
    return part;
}

/* Does with cold pages what pages_extend() will need; false: no piece has changed. No error is set:
 * whoever cannot grow in place takes another run, and hears then why that cannot be. */
static bool warm_behind(struct pages *pages, const struct ebb_piece *run,
                        const struct pages_wish *wish) {
    size_t gained = 0, cold_left = wish->most_cold, part;
    const struct ebb_piece *next = run->after;
    bool is_warm = true;
    error_mute();
    for (; (part = part_of(next, wish, gained, &cold_left)) != 0; next = next->after) {
        is_warm = next->state != PIECE_COLD || warm(pages, next->addr, part);
        if (!is_warm || part < next->bytes)
            break;
        gained += part;
    }
    error_unmute();
    return is_warm;
}

size_t pages_extend(struct pages *pages, struct ebb_piece *run, const struct pages_wish *wish) {
    size_t gained = 0, cold_left = wish->most_cold, part;
    if (!can_extend(run, wish, false) || (pages->kind->warm && !warm_behind(pages, run, wish)))
        return 0;
    while ((part = part_of(run->after, wish, gained, &cold_left)) != 0) {
        shift(pages, run, part);
        gained += part;
    }
    return gained;
}

size_t pages_claim(struct pages *pages, struct ebb_piece *run, size_t most) {
    if (!is_state(run->after, PIECE_HOT))
        return 0;
    size_t bytes = size_smaller(run->after->bytes, most);
    shift(pages, run, bytes);
    return bytes;
}

/* The hot piece in front of a run is gone. */
static void close_up(struct pages *pages, struct ebb_piece *hot, struct ebb_piece *run) {
    run->before = hot->before;
    if (run->before)
        run->before->after = run;
    else
        fix_slab(pages, hot, run);
    piece_give(&pages->store, hot);
}

size_t pages_claim_before(struct pages *pages, struct ebb_piece *run, size_t most) {
    struct ebb_piece *hot = run->before;
    if (!is_state(hot, PIECE_HOT))
        return 0;
    size_t bytes = size_smaller(hot->bytes, most);
    fit_remove(&pages->hot, hot);
    piece_put_bytes(hot, hot->bytes - bytes);
    range_name_pages(run, piece_end(hot), bytes);
    pages->hot_bytes -= bytes;
    pages->run_bytes += bytes;
    /* first, so that its last pages are its own all the time: range_covers() sees that, too */
    piece_put_bytes(run, run->bytes + bytes);
    atomic_thread_fence(memory_order_release);
    piece_put_addr(run, run->addr - bytes);
    if (hot->bytes)
        fit_insert(&pages->hot, hot);
    else
        close_up(pages, hot, run);
    return bytes;
}

void pages_join(struct pages *pages, struct ebb_piece *run) {
    struct ebb_piece *joined = run->after;
    CHECK(is_state(joined, PIECE_RUN) && joined->owner == run->owner);
    piece_put_bytes(run, run->bytes + joined->bytes); /* both have the pages while they are named */
    range_name_pages(run, joined->addr, joined->bytes);
    atomic_thread_fence(memory_order_release);
    run->after = joined->after;
    if (run->after)
        run->after->before = run;
    piece_give(&pages->store, joined);
}

/* ---- cutting and giving ---- */

bool pages_prepare_cut(struct pages *pages) {
    return piece_prepare(&pages->store, 2);
}

static struct ebb_piece *cut(struct pages *pages, struct ebb_piece *run, uintptr_t addr) {
    struct ebb_piece *rest = piece_take(&pages->store);
    CHECK(rest && addr > run->addr && addr < piece_end(run) && addr % EBB_PAGE == 0);
    piece_split(run, rest, addr);
    become_run(rest);
    return rest;
}

struct ebb_piece *pages_cut_out(struct pages *pages, struct ebb_piece *run, uintptr_t from,
                                uintptr_t to, struct ebb_piece **right) {
    struct ebb_piece *middle = from > run->addr ? cut(pages, run, from) : run;
    *right = to < piece_end(middle) ? cut(pages, middle, to) : NULL;
    range_name_pages(middle, middle->addr, middle->bytes);
    return middle;
}

struct ebb_piece *pages_split(struct pages *pages, struct ebb_piece *run, uintptr_t addr) {
    struct ebb_piece *rest = piece_take(&pages->store);
    CHECK(rest && addr > run->addr && addr < piece_end(run) && addr % EBB_PAGE == 0);
    begin_piece(rest, addr, piece_end(run) - addr, PIECE_UNUSED);
    become_run(rest);
    piece_put_owner(rest, run->owner);
    range_name_pages(rest, addr, rest->bytes);
    atomic_thread_fence(memory_order_release); /* who sees `run` shorter sees the names, too */
    piece_split(run, rest, addr);
    return rest;
}

struct ebb_piece *pages_split_before(struct pages *pages, struct ebb_piece *run, uintptr_t addr) {
    struct ebb_piece *part = piece_take(&pages->store);
    CHECK(part && addr > run->addr && addr < piece_end(run) && addr % EBB_PAGE == 0);
    begin_piece(part, run->addr, addr - run->addr, PIECE_UNUSED);
    become_run(part);
    piece_put_owner(part, run->owner);
    part->before = run->before;
    part->after = run;
    if (part->before)
        part->before->after = part;
    else
        fix_slab(pages, run, part);
    run->before = part;
    range_name_pages(part, part->addr, part->bytes);
    atomic_thread_fence(memory_order_release); /* who sees `run` shorter sees the names, too */
    piece_put_addr(run, addr); /* first, so that its last pages are its own all the time */
    piece_put_bytes(run, run->bytes - part->bytes);
    return part;
}

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
    become_run(run);
}

void pages_unkeep(struct pages *pages, struct ebb_piece *piece) {
    unlink_kept(pages, piece);
    put_free(pages, piece, PIECE_HOT);
}

/* In one piece, once those that are kept are hot; cold ones behind count. 0: others in front of it
 * are looked at for it. */
static size_t room_around(const struct ebb_piece *kept, size_t most_cold) {
    const struct ebb_piece *at = is_state(kept->before, PIECE_HOT) ? kept->before : kept;
    size_t bytes = 0;
    if (is_state(at->before, PIECE_KEPT))
        return 0;
    for (; is_hot_or_kept(at); at = at->after)
        bytes += at->bytes;
    return bytes + (is_state(at, PIECE_COLD) ? size_smaller(at->bytes, most_cold) : 0);
}

bool pages_kept_fit(const struct pages *pages, const struct ebb_piece *run,
                    const struct pages_wish *wish) {
    const struct ebb_piece *kept = pages->kept;
    size_t most_cold = pages->kind->dense ? wish->most_cold : 0;
    while (kept && room_around(kept, most_cold) < wish->least)
        kept = kept->next;
    return kept || (run && can_extend(run, wish, true));
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
