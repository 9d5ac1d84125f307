// SPDX-License-Identifier: Apache-2.0
/* cut.c - runs are cut in parts, each of which is a run (see pages.h). */
#include "base/check.h"
#include "pool/pages.h"
#include "pool/range.h"

bool pages_prepare_cut(struct pages *pages) {
    return piece_prepare(&pages->store, 2);
}

static inline struct ebb_piece *cut(struct pages *pages, struct ebb_piece *run,
                                    uintptr_t addr) {
    struct ebb_piece *rest = piece_take(&pages->store);
    CHECK(rest && addr > run->addr && addr < piece_end(run) && addr % EBB_PAGE == 0);
    piece_split(run, rest, addr);
    pages_become_run(rest);
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
    pages_begin_piece(rest, addr, piece_end(run) - addr, PIECE_UNUSED);
    pages_become_run(rest);
    piece_put_owner(rest, run->owner);
    range_name_pages(rest, addr, rest->bytes);
    atomic_thread_fence(memory_order_release); /* who sees `run` shorter sees the names, too */
    piece_split(run, rest, addr);
    return rest;
}

struct ebb_piece *pages_split_before(struct pages *pages, struct ebb_piece *run, uintptr_t addr) {
    struct ebb_piece *part = piece_take(&pages->store);
    CHECK(part && addr > run->addr && addr < piece_end(run) && addr % EBB_PAGE == 0);
    pages_begin_piece(part, run->addr, addr - run->addr, PIECE_UNUSED);
    pages_become_run(part);
    piece_put_owner(part, run->owner);
    part->before = run->before;
    part->after = run;
    if (part->before)
        part->before->after = part;
    else
        pages_fix_slab(pages, run, part);
    run->before = part;
    range_name_pages(part, part->addr, part->bytes);
    atomic_thread_fence(memory_order_release); /* who sees `run` shorter sees the names, too */
    piece_put_addr(run, addr); /* first, so that its last pages are its own all the time */
    piece_put_bytes(run, run->bytes - part->bytes);
    return part;
}
