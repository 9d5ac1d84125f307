// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/promote.h - promotion: what a step made and must outlive it.
 *
 * A block is promoted from the region that holds it to an ancestor. By copy: the ancestor gets a
 * block of its own with the same bytes. By relinking: no byte moves; the block keeps its address
 * and the run of pages around it changes owner, at the latest when the source closes. The bytes
 * of those pages that hold no survivor are pinned until the block is released. `auto` relinks where
 * that is faster than copying, which it is from 4 KiB that share pages on, and where it pins no
 * more than it may: by default no more bytes than it relinks.
 *
 * A list is promoted as a whole or not at all.
 */
#ifndef EBB_PROMOTE_H
#define EBB_PROMOTE_H

#include <ebb/region.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ebb_promotion_mode {
    EBB_PROMOTE_AUTO = 0,
    EBB_PROMOTE_COPY = 1,
    EBB_PROMOTE_RELINK = 2 /* where it is possible, else copied; see ebb_promote() */
};

#define EBB_PIN_PERCENT 100 /* what auto may pin, in percent of the bytes that it relinks */

/* One block of a list. */
struct ebb_survivor {
    void *block;   /* in: a block of the source. out: where its bytes live from now on */
    size_t align;  /* in: alignment it must have there; 0: a copy that of the address, at most 64 */
    int mode;      /* in: enum ebb_promotion_mode. out: EBB_PROMOTE_COPY or EBB_PROMOTE_RELINK;
                    * COPY, too, where the block was the target's already and stays */
    uint16_t pin_percent; /* in: of auto, what it may pin; 0: EBB_PIN_PERCENT. Of one list the
                           * least counts for all, each run of pages by itself */
    void *scratch; /* ebb's own during the call; need not be set */
};

/* What a promotion did and what it cost; added to whatever the struct held before. */
struct ebb_promoted {
    uint64_t copied_blocks;
    uint64_t copied_bytes;
    uint64_t relinked_blocks;
    uint64_t relinked_bytes;
    uint64_t pinned_bytes; /* of pages around relinked survivors: at once if a block's run goes
                            * along; else known when the source closes, and counted by who closes
                            * it keeping, with all that ends in that */
};

/*
 * Promotes `count` blocks of `source` to `target`, which must be an ancestor. Copied even where
 * relinking was asked: blocks of the small lane; blocks that a plan has placed (ebb/step.h) or that
 * are exported; blocks that begin with an object of the source, or with the storage of a tensor
 * that has ended, elements that are or were in shared memory, and arrays that a composite was
 * composed with (the copy is no object: these go by ebb_objects_promote()); blocks at no multiple
 * of `align`; blocks that were relinked before and share their pages with others; and, while blocks
 * relinked to one ancestor still wait for the source's close, blocks for another. A copied block's
 * original stays valid until the source ends it; a relinked block belongs to the target at once
 * (release it there). Promoting to the region that already owns a block changes nothing; so does
 * promoting what a step bore there, but from then on the block is the target's; such blocks are
 * copied, too, if they are exported, an object's as above, or at no multiple of `align`, and while
 * the target has marks, which are newer. `cost` may be NULL. One thread at a time for both regions.
 * Errors, all without effect:
 * EBB_E_STALE, EBB_E_NOT_ANCESTOR, EBB_E_SEALED (target), EBB_E_FOREIGN, EBB_E_INTERIOR,
 * EBB_E_RELEASED, EBB_E_DUPLICATE, EBB_E_ALIGNMENT, EBB_E_MEMORY, EBB_E_POOL_LIMIT,
 * EBB_E_REGION_LIMIT, EBB_E_NO_SPACE, EBB_E_SHARED, EBB_E_MEASURING, EBB_E_DEVICE, EBB_E_ARGUMENT.
 */
EBB_API int ebb_promote(ebb_region source, ebb_region target, struct ebb_survivor *survivors,
                        size_t count, struct ebb_promoted *cost);

/*
 * Promotes the list to `target` and closes `source`. With all survivors known, neighbours that
 * are relinked share the pages between them, and the cost reports the bytes that are pinned in
 * the end. `lost_blocks`, if not NULL, receives the number of blocks that were alive in the
 * source and below it before their cleanups ran, which may have released some, and were not
 * promoted by this call. Neither the list nor `cost` may lie in what ends: `cost` is written after
 * that, the list read by whoever asks where its blocks are. Errors: those of ebb_promote(), and
 * EBB_E_BUSY (a cleanup of the source or below it runs): the source stays open and nothing has
 * changed. EBB_E_CLEANUP: all was done, but a cleanup failed.
 */
EBB_API int ebb_close_keeping(ebb_region source, ebb_region target,
                              struct ebb_survivor *survivors, size_t count,
                              struct ebb_promoted *cost, uint64_t *lost_blocks);

#ifdef __cplusplus
}
#endif

#endif
