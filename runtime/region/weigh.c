// SPDX-License-Identifier: Apache-2.0
/*
 * weigh.c - copy or relink: what EBB_PROMOTE_AUTO chooses for large blocks.
 *
 * A copy is paid by the byte, a run of pages once. So relinking wins where the blocks of a run have
 * RUN_WORTH bytes, and pins no more than is allowed. Blocks that share pages become one run and are
 * weighed as one:
 *
 *     pages     |        |        |        |        |        |
 *     blocks        |     A     |B |  dead  |       C      |
 *     weighed   `----- as one -----'        `----- alone -----'
 *
 * Relinked, the survivors of a step that ends would leave the next steps its pages in parts. So if
 * they are few bytes, all of them are copied.
 */
#include "region/weigh.h"

/* A run of its own costs as much as copying 3 KiB, its way back included; auto asks for a page. */
#define RUN_WORTH EBB_PAGE

#define FEW_PART 4 /* of a step's pages: survivors that do not cut them, but are copied */
#define FEW_MOST ((size_t)4 << 20)

/* The next block above that is weighed and shares a page with this one, or NULL. */
static struct ebb_piece *weighed_after(const struct ebb_piece *block) {
    uintptr_t end = size_align(piece_end(block), EBB_PAGE);
    for (struct ebb_piece *at = block->after; at && at->addr < end; at = at->after)
        if (at->state == PIECE_BLOCK && at->flag)
            return at;
    return NULL;
}

static bool has_weighed_before(const struct ebb_piece *block) {
    uintptr_t from = size_align_down(block->addr, EBB_PAGE);
    for (struct ebb_piece *at = block->before; at && piece_end(at) > from; at = at->before)
        if (at->state == PIECE_BLOCK && at->flag)
            return true;
    return false;
}

/* The blocks of one run, from its first on: all keep their flags, or none. No product overflows:
 * addresses have 47 bits. */
static void weigh_run(struct ebb_piece *first, unsigned percent) {
    const struct ebb_piece *last = first;
    size_t bytes = 0;
    for (struct ebb_piece *at = first; at; at = weighed_after(at)) {
        bytes += at->block.requested;
        last = at;
    }
    size_t pages = size_align(piece_end(last), EBB_PAGE) - size_align_down(first->addr, EBB_PAGE);
    if (bytes >= RUN_WORTH && (pages - bytes) * 100 <= bytes * percent)
        return;
    for (struct ebb_piece *at = first, *next; at; at = next) {
        next = weighed_after(at);
        at->flag = false;
    }
}

static bool is_weighed(const struct ebb_survivor *survivor) {
    const struct ebb_piece *piece = survivor->scratch;
    return survivor_is(survivor, SURVIVOR_LARGE) && piece->flag;
}

/* True if what the step leaves, as far as that is weighed, is little beside its pages. */
static bool are_few(const struct ebb_survivor *list, size_t count, const struct region *step) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ebb_piece *piece = list[i].scratch;
        bool is_auto = (list[i].mode & SURVIVOR_MODE) == EBB_PROMOTE_AUTO;
        bytes += is_auto && is_weighed(&list[i]) ? piece->bytes : 0;
    }
    return bytes <= size_smaller(step->reserved.current / FEW_PART, FEW_MOST);
}

void weigh_survivors(const struct ebb_survivor *list, size_t count, unsigned percent,
                     const struct region *step) {
    bool few = step && are_few(list, count, step);
    for (size_t i = 0; i < count; i++) {
        struct ebb_piece *piece = list[i].scratch;
        if (!is_weighed(&list[i]))
            continue;
        if (few)
            piece->flag = false;
        else if (!has_weighed_before(piece))
            weigh_run(piece, percent);
    }
}
