// SPDX-License-Identifier: Apache-2.0
/*
 * relink.c - a large block goes to a region above where it lies (see relink.h).
 *
 * No byte moves and, at first, no page: the block's entry is replaced by one of the heir's, and
 * the block is listed as departed in its host. Only when the host closes are the pages around
 * departed blocks cut out of its runs and given to the heir (depart.c); by then all their other
 * blocks are dead.
 *
 *     host's run    | dead | D1 | dead | D2 | dead |  free       |
 *     pages         |    |    |    |    |    |    |    |    |    |
 *     after close   | pool    |  heir's run (pinned: rest) | pool |
 *
 * A block that has a run of its own, which came with it when its last host closed, takes it along
 * at once.
 *
 * A region has one heir at a time: blocks promoted to another ancestor meanwhile are copied.
 *
 * Invariant: the host's old entry and the heir's lead to each other by `spare`, as long as the host
 * is open and the block live.
 */
#include "region/relink.h"
#include "region/count.h"
#include "region/large.h"
#include "region/small.h"

/* The heir's entry takes the place of the host's in the chain of addresses. */
static void replace_entry(struct ebb_piece *old, struct ebb_piece *entry) {
    *entry = *old;
    if (entry->before)
        entry->before->after = entry;
    if (entry->after)
        entry->after->before = entry;
}

/* The host's run of which the piece is the first: as its end says, or found among all of them,
 * whichever is nearer. */
static struct ebb_piece *run_of_first(const struct region *host, const struct ebb_piece *first) {
    struct ebb_piece *run = host->runs;
    const struct ebb_piece *piece = first;
    while (!range_covers(run, first->addr)) {
        if (piece && piece->state == PIECE_END)
            return piece->end.run;
        piece = piece ? piece->after : NULL;
        run = run->next;
    }
    return run;
}

static void fix_run_first(const struct region *host, struct ebb_piece *entry) {
    if (!entry->before)
        run_of_first(host, entry)->run.first = entry;
}

/* Moves a block with its own run, at once; returns the bytes that it pins. */
static size_t move_run(struct region *source, struct region *target, struct ebb_piece *old,
                       struct ebb_piece *entry) {
    struct ebb_piece *run = entry->block.run;
    size_t pinned = run->bytes - entry->bytes;
    piece_give(&source->store, old);
    piece_push(&target->blocks, entry);
    piece_unlink(&source->runs, run);
    piece_push(&target->runs, run);
    pthread_mutex_lock(&source->pool->lock);
    piece_put_owner(run, target->owner);
    pthread_mutex_unlock(&source->pool->lock);
    source->run_count--;
    target->run_count++;
    meter_subtract(&source->reserved, run->bytes);
    meter_add(&target->reserved, run->bytes);
    source->pinned -= pinned;
    target->pinned += pinned;
    return pinned;
}

/* Lists a block between others as departed: it stays where it is until its host closes. */
static void depart(struct region *source, struct region *target, struct ebb_piece *old,
                   struct ebb_piece *entry) {
    fix_run_first(source, entry);
    entry->block.spare = old;
    old->block.spare = entry;
    old->state = PIECE_UNUSED;
    piece_push(&source->departed, old);
    piece_push(&target->blocks, entry);
    source->heir = target;
    source->lent += entry->bytes;
    target->guests += entry->bytes;
}

size_t relink_block(struct region *source, struct region *target, struct ebb_piece *old,
                    struct ebb_piece *entry) {
    size_t pinned = 0;
    piece_unlink(&source->blocks, old);
    replace_entry(old, entry);
    piece_set_owner(entry, target->owner);
    range_name_block(entry);
    if (entry->block.run)
        pinned = move_run(source, target, old, entry);
    else
        depart(source, target, old, entry);
    small_fold(source);
    small_fold(target);
    source->large_used -= entry->bytes;
    target->large_used += entry->bytes;
    target->large_blocks++;
    count_block_gone(source, entry->block.requested, entry->bytes);
    count_uncharge_below(source, target, entry->bytes);
    count_block(target, entry->block.requested, entry->bytes);
    return pinned;
}

void relink_return(struct region *owner, struct ebb_piece *block) {
    struct ebb_piece *own = block->block.spare;
    struct region *host = region_of_piece(own);
    piece_unlink(&host->departed, own);
    piece_unlink(&owner->blocks, block);
    if (!host->departed)
        host->heir = NULL;
    replace_entry(block, own);
    piece_set_owner(own, host->owner);
    fix_run_first(host, own);
    host->lent -= own->bytes;
    owner->guests -= own->bytes;
    piece_give(&owner->store, block);
    large_free(host, own);
}
