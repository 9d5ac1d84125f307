// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/promote.h - promotion: what a step made and must outlive it.
 *
 * A block is promoted from the region that holds it to an ancestor. By copy: the ancestor gets a
 * block of its own with the same bytes. By relinking: no byte moves; the block keeps its address
 * and the run of pages around it changes owner, at the latest when the source closes. The bytes
 * of those pages that hold no survivor are pinned until the block is released. `auto` relinks if
 * that is faster than copying, which it is once survivors that share pages have 4 KiB, and if it
 * pins no more than allowed: by default no more bytes than it relinks.
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
    size_t align;  /* in: alignment it must have there; 0: a copy has that of `block`, at most 64 */
    int mode;      /* in: enum ebb_promotion_mode. out: EBB_PROMOTE_COPY or EBB_PROMOTE_RELINK;
                    * COPY also if the block was the target's already and stays */
    uint16_t pin_percent; /* in: what auto may pin, in percent of the bytes that it relinks; 0:
                           * EBB_PIN_PERCENT. The least of a list applies to each run of pages */
    void *scratch; /* ebb's own during the call; need not be set */
};

/* What a promotion did and what it cost; added to whatever the struct held before. */
struct ebb_promoted {
    uint64_t copied_blocks;
    uint64_t copied_bytes;
    uint64_t relinked_blocks;
    uint64_t relinked_bytes;
    uint64_t pinned_bytes; /* of pages around relinked survivors. Known at once if a block takes its
                            * run along; else when the source closes: the calls that promote and
                            * close in one count it, for all that ends in them */
};

/*
 * Promotes `count` blocks of `source` to `target`, which must be an ancestor. A copied block's
 * original stays valid until the source ends it; a relinked block belongs to the target at once
 * (release it there). These are copied even if relinking was asked for:
 *
 *   - blocks of the small lane, blocks that a plan has placed (ebb/step.h), and exported ones;
 *   - blocks that objects of the source need: those that begin with an object, or with the storage
 *     of a tensor that has ended; elements that are or were in shared memory; arrays that a
 *     composite was composed with. The copy is no object: use ebb_objects_promote() for those;
 *   - blocks whose address is not a multiple of `align`;
 *   - blocks that were relinked before and share their pages with others;
 *   - blocks for one ancestor while others, relinked to another one, wait for the source's close.
 *
 * Promoting to the region that already owns the block changes nothing. A block that a step bore in
 * the target (ebb/step.h) stays where it is and becomes the target's; but it is copied if it is
 * exported, if an object needs it as above, if its address is not a multiple of `align`, and while
 * the target has marks, which are newer than the block.
 *
 * `cost` may be NULL. One thread at a time for both regions. Errors, all without effect:
 * EBB_E_STALE, EBB_E_NOT_ANCESTOR, EBB_E_SEALED (target), EBB_E_FOREIGN, EBB_E_INTERIOR,
 * EBB_E_RELEASED, EBB_E_DUPLICATE, EBB_E_ALIGNMENT, EBB_E_MEMORY, EBB_E_POOL_LIMIT,
 * EBB_E_REGION_LIMIT, EBB_E_NO_SPACE, EBB_E_SHARED, EBB_E_MEASURING, EBB_E_DEVICE, EBB_E_ARGUMENT.
 */
EBB_API int ebb_promote(ebb_region source, ebb_region target, struct ebb_survivor *survivors,
                        size_t count, struct ebb_promoted *cost);

/*
 * Promotes the list to `target` and closes `source`. Since all survivors are known, neighbours that
 * are relinked share the pages between them, and the cost reports the bytes that are pinned in
 * the end. `lost_blocks`, if not NULL, receives the number of blocks in the source and below it
 * that this call did not promote and that were alive before cleanups ran, which may have released
 * some. Neither the list nor `cost` may lie in what ends: `cost` is written after the close, and
 * the list says where the blocks are then. Errors: those of ebb_promote(), and EBB_E_BUSY (a
 * cleanup of the source or below it runs): the source stays open and nothing has changed.
 * EBB_E_CLEANUP: all was done, but a cleanup failed.
 */
EBB_API int ebb_close_keeping(ebb_region source, ebb_region target,
                              struct ebb_survivor *survivors, size_t count,
                              struct ebb_promoted *cost, uint64_t *lost_blocks);

#ifdef __cplusplus
}
#endif

#endif
