// SPDX-License-Identifier: Apache-2.0
/*
 * kind.c - the kinds of memory that need no more than the range and the system (see kind.h).
 *
 * Invariant: a chunk that is given back is as it was before it was taken, whatever its kind, so
 * the next one may be of any other. Refuses sets of flags that make no sense.
 */
#include "pool/kind.h"
#include "base/error.h"
#include "base/os.h"
#include "pool/chunk.h"
#include "pool/pages.h"

#include <ebb/pool.h>

#ifndef SLAB_BYTES
#define SLAB_BYTES ((size_t)1 << 30)
#endif

/* ---- chunks of the range ---- */

/* A chunk of the usual length, or much less where addresses are few or the system counts what is
 * open (strict overcommit, RLIMIT_DATA). */
static uintptr_t take_chunk(size_t usual, size_t least, size_t *bytes) {
    size_t shortest = size_align(least, CHUNK_ALIGN);
    usual = size_align_down(size_smaller(usual, range.bytes / 16), CHUNK_ALIGN);
    const size_t lengths[] = {usual, size_align_down(usual / 64, CHUNK_ALIGN), shortest};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uintptr_t addr = lengths[i] >= shortest ? chunk_take(*bytes = lengths[i]) : 0;
        if (addr)
            return addr;
    }
    if (shortest > range.bytes)
        error_set(EBB_E_MEMORY, "no chunk of %zu bytes: there are %zu bytes of addresses in all",
                  least, range.bytes);
    else
        error_set(EBB_E_MEMORY, "no chunk of %zu bytes: no addresses left (%zu of %zu in use), or "
                  "no memory to open them", least, chunk_bytes(), range.bytes);
    return 0;
}

static uintptr_t take_host(struct pages *pages, size_t least, size_t *bytes) {
    (void)pages;
    return take_chunk(SLAB_BYTES, least, bytes);
}

/* What is longer than such a slab has a whole one, where its successor fits, too: one just as long
 * would be of no use to a longer one. */
static uintptr_t take_short(struct pages *pages, size_t least, size_t *bytes) {
    (void)pages;
    return take_chunk(least > SLAB_BYTES / 16 ? SLAB_BYTES : SLAB_BYTES / 16, least, bytes);
}

/* For kinds that are whole: they say themselves how long a slab is. */
uintptr_t kind_take_exactly(struct pages *pages, size_t least, size_t *bytes) {
    (void)pages;
    return take_chunk(0, least, bytes);
}

void kind_give_chunk(struct pages *pages, uintptr_t addr, size_t bytes) {
    (void)pages;
    chunk_give(addr, bytes);
}

/* By os.cover() they might be gone where it is refused, and others' next. */
void kind_give_anew(struct pages *pages, uintptr_t addr, size_t bytes) {
    (void)os.close((void *)addr, bytes); /* else the advice stays, which is no more than that */
    if (os.open((void *)addr, bytes) == 0)
        kind_give_chunk(pages, addr, bytes);
}

uintptr_t kind_take_closed(size_t usual, size_t least, size_t *bytes) {
    uintptr_t addr = take_chunk(usual, least, bytes);
    if (!addr || os.close((void *)addr, *bytes) == 0)
        return addr;
    if (os.open((void *)addr, *bytes) == 0) /* some of it may be closed */
        chunk_give(addr, *bytes);
    error_set(EBB_E_MEMORY, "%zu bytes of addresses without memory cannot be closed", *bytes);
    return 0;
}

void kind_give_closed(struct pages *pages, uintptr_t addr, size_t bytes) {
    if (os.open((void *)addr, bytes) == 0)
        kind_give_chunk(pages, addr, bytes);
}

/* Pages that the system has swapped out are not resident, and go all the same. */
static bool give_back(struct pages *pages, uintptr_t addr, size_t bytes, size_t *given) {
    (void)pages;
    size_t resident = os.resident((void *)addr, bytes);
    if (os.give_back((void *)addr, bytes) != 0)
        return false;
    *given += resident;
    return true;
}

/* ---- the host's ---- */

/* Below, a run may have no huge page inside, and there are few small ones to look up. */
#define HUGE_LEAST (2 * CHUNK_ALIGN)

void kind_welcome_huge(uintptr_t addr, size_t bytes, bool are_welcome) {
    uintptr_t from = size_align(addr, CHUNK_ALIGN), to = size_align_down(addr + bytes, CHUNK_ALIGN);
    if (bytes >= HUGE_LEAST)
        (are_welcome ? os.advise_huge : os.advise_small)((void *)from, to - from);
}

static void settle_host(struct pages *pages, uintptr_t addr, size_t bytes) {
    kind_welcome_huge(addr, bytes, true);
    pages->welcomes_huge |= bytes >= HUGE_LEAST;
    pages->small_from = pages->small_to = 0;
}

/* Else the first touch of a cold page, by whom it may be, would make many resident. All that could
 * be huge with one of these pages: nothing else that is welcome lies there, for it would be a whole
 * one of an arena, and each page that is told of alone would be a mapping of its own. */
static void advise_small(struct pages *pages, uintptr_t addr, size_t bytes) {
    uintptr_t from = size_align_down(addr, CHUNK_ALIGN), to = size_align(addr + bytes, CHUNK_ALIGN);
    if (from >= pages->small_from && to <= pages->small_to)
        return;
    os.advise_small((void *)from, to - from);
    pages->small_from = from;
    pages->small_to = to;
}

static bool cool_host(struct pages *pages, uintptr_t addr, size_t bytes, size_t *given) {
    if (!give_back(pages, addr, bytes, given))
        return false;
    if (pages->welcomes_huge)
        advise_small(pages, addr, bytes);
    return true;
}

static void give_host(struct pages *pages, uintptr_t addr, size_t bytes) {
    (pages->welcomes_huge ? kind_give_anew : kind_give_chunk)(pages, addr, bytes);
}

const struct kind kind_host = {.name = "host",
                               .take = take_host,
                               .settle = settle_host,
                               .cool = cool_host,
                               .give = give_host};

const struct kind kind_short = {.name = "host",
                                .take = take_short,
                                .settle = settle_host,
                                .cool = cool_host,
                                .give = give_host};

/* ---- huge pages ---- */

/* A system without huge pages, or one that does not want them, gives small ones. */
static uintptr_t take_huge(struct pages *pages, size_t least, size_t *bytes) {
    uintptr_t addr = take_host(pages, least, bytes);
    if (addr)
        os.advise_huge((void *)addr, *bytes);
    return addr;
}

/* Huge pages where the system has them. */
static const struct kind kind_huge = {
    .name = "huge", .huge = true, .take = take_huge, .cool = give_back, .give = kind_give_anew};

/* ---- addresses without memory ---- */

/* Measuring regions take a slab each, so that they never end. */
static uintptr_t take_phantom(struct pages *pages, size_t least, size_t *bytes) {
    (void)pages;
    return kind_take_closed(PHANTOM_BYTES, least, bytes);
}

static bool cool_phantom(struct pages *pages, uintptr_t addr, size_t bytes, size_t *given) {
    (void)pages, (void)addr, (void)bytes, (void)given;
    return true;
}

const struct kind kind_phantom = {.name = "measuring",
                                  .phantom = true,
                                  .take = take_phantom,
                                  .cool = cool_phantom,
                                  .give = kind_give_closed};

/* ---- which one ---- */

static const struct kind *const kinds[] = {[EBB_KIND_HOST] = &kind_host,
                                           [EBB_KIND_HUGE] = &kind_huge,
                                           [EBB_KIND_PINNED] = &kind_pinned,
                                           [EBB_KIND_HUGE | EBB_KIND_PINNED] = &kind_pinned_huge,
                                           [EBB_KIND_DEVICE] = &kind_device};

const struct kind *kind_find(unsigned flags) {
    const struct kind *kind = flags < sizeof kinds / sizeof *kinds ? kinds[flags] : NULL;
    if (!kind)
        error_set(EBB_E_KIND, "kind %#x is none: %s%s%s%s%sdo not go together, or are not built",
                  flags, flags & EBB_KIND_HUGE ? "huge, " : "",
                  flags & EBB_KIND_PINNED ? "pinned, " : "",
                  flags & EBB_KIND_SHARED ? "shared, " : "",
                  flags & EBB_KIND_DEVICE ? "device, " : "",
                  flags / (EBB_KIND_DEVICE << 1) ? "unknown flags, " : "");
    return kind;
}
