// SPDX-License-Identifier: Apache-2.0
/*
 * grow.c - runs grow in place: into free pages behind and in front of them, and by joining.
 *
 *     before   | hot | run |  hot  |    cold    |
 *     extend   | hot |      run        |  cold  |    behind, as much as is wished
 *     claim    |        run        |    cold    |    hot pages alone, on both sides
 */
#include "base/check.h"
#include "base/error.h"
#include "pool/pages.h"
#include "pool/range.h"

/* Moves `bytes` from the free piece behind a run into it. */
static void shift(struct pages *pages, struct ebb_piece *run, size_t bytes) {
    struct ebb_piece *next = run->after;
    fit_remove(pages_fit_of(pages, next), next);
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
    fit_insert(pages_fit_of(pages, next), next);
}

/* True if the pages behind the run have the least that is wished; `kept`: kept ones count. */
static bool can_extend(const struct ebb_piece *run, const struct pages_wish *wish, bool kept) {
    size_t total = 0, cold = 0;
    for (const struct ebb_piece *next = run->after; total < wish->extend; next = next->after) {
        if (!piece_is(next, PIECE_HOT) && !piece_is(next, PIECE_COLD) &&
            !(kept && piece_is(next, PIECE_KEPT)))
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
        if (at != other && !piece_is(at, PIECE_HOT)) /* a run takes no cold pages in front of it */
            break;
        free.before += at->bytes;
    }
    for (const struct ebb_piece *at = run->after; at && free.behind < most; at = at->after) {
        if (at != other && !piece_is(at, PIECE_HOT) && !piece_is(at, PIECE_COLD))
            break;
        if (at->state != PIECE_COLD && free.hot_behind == free.behind)
            free.hot_behind += at->bytes;
        if (at->state == PIECE_COLD)
            free.cold_behind += size_smaller(at->bytes, most - free.behind);
        free.behind += at->bytes;
    }
    return free;
}

/* Bytes that a run takes of the next piece behind it; *cold_left may still become resident. */
static size_t part_of(const struct ebb_piece *next, const struct pages_wish *wish, size_t gained,
                      size_t *cold_left) {
    bool hot = piece_is(next, PIECE_HOT);
    size_t goal = hot ? wish->want : size_larger(wish->extend, wish->want_cold);
    if ((!hot && !piece_is(next, PIECE_COLD)) || gained >= goal)
        return 0;
    size_t part = size_smaller(goal - gained, next->bytes);
    if (!hot) {
        part = size_smaller(part, *cold_left);
        *cold_left -= part;
    }
    return part;
}

/* Readies the cold pages that pages_extend() will take; false: no piece has changed. No error is
 * set: who cannot grow in place takes another run, and hears then what is wrong. */
static bool warm_behind(struct pages *pages, const struct ebb_piece *run,
                        const struct pages_wish *wish) {
    size_t gained = 0, cold_left = wish->most_cold, part;
    const struct ebb_piece *next = run->after;
    bool is_warm = true;
    error_mute();
    for (; (part = part_of(next, wish, gained, &cold_left)) != 0; next = next->after) {
        is_warm = next->state != PIECE_COLD || pages_warm(pages, next->addr, part);
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
    if (!piece_is(run->after, PIECE_HOT))
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
        pages_fix_slab(pages, hot, run);
    piece_give(&pages->store, hot);
}

size_t pages_claim_before(struct pages *pages, struct ebb_piece *run, size_t most) {
    struct ebb_piece *hot = run->before;
    if (!piece_is(hot, PIECE_HOT))
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
    CHECK(piece_is(joined, PIECE_RUN) && joined->owner == run->owner);
    piece_put_bytes(run, run->bytes + joined->bytes); /* both have the pages while they are named */
    range_name_pages(run, joined->addr, joined->bytes);
    atomic_thread_fence(memory_order_release);
    run->after = joined->after;
    if (run->after)
        run->after->before = run;
    piece_give(&pages->store, joined);
}

static bool is_hot_or_kept(const struct ebb_piece *piece) {
    return piece_is(piece, PIECE_HOT) || piece_is(piece, PIECE_KEPT);
}

/* Bytes of the one piece that kept pages and their hot neighbours would make, and of cold ones
 * behind. 0: another kept piece, in front of this one, tells the same. */
static size_t room_around(const struct ebb_piece *kept, size_t most_cold) {
    const struct ebb_piece *at = piece_is(kept->before, PIECE_HOT) ? kept->before : kept;
    size_t bytes = 0;
    if (piece_is(at->before, PIECE_KEPT))
        return 0;
    for (; is_hot_or_kept(at); at = at->after)
        bytes += at->bytes;
    return bytes + (piece_is(at, PIECE_COLD) ? size_smaller(at->bytes, most_cold) : 0);
}

bool pages_kept_fit(const struct pages *pages, const struct ebb_piece *run,
                    const struct pages_wish *wish) {
    const struct ebb_piece *kept = pages->kept;
    size_t most_cold = pages->kind->dense ? wish->most_cold : 0;
    while (kept && room_around(kept, most_cold) < wish->least)
        kept = kept->next;
    return kept || (run && can_extend(run, wish, true));
}
