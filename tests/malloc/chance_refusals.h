// SPDX-License-Identifier: Apache-2.0
/* chance_refusals.h - for chance.c: requests that cannot be served, and leave all as it was. */
#ifndef MALLOC_CHANCE_REFUSALS_H
#define MALLOC_CHANCE_REFUSALS_H

#include "malloc/chance.h"

#include <malloc.h>

/* No compiler knows them, or it would warn. */
static volatile size_t most = PTRDIFF_MAX, widest = (size_t)1 << 62;

static inline void expect_refusal(const void *at, int why) {
    EXPECT(!at && errno == why);
    errno = UNTOUCHED;
}

static inline void ask_for_too_much(uint64_t *chance) {
    size_t all = 2 * most + 1, some = below(chance, 5000), of = 2 + below(chance, 1000);
    size_t huge = below(chance, 2) ? all - some : most + 1 + some;
    expect_refusal(malloc(huge), ENOMEM);
    expect_refusal(calloc(all / of + 1, of), ENOMEM);
    expect_refusal(calloc(1, huge), ENOMEM);
    expect_refusal(valloc(huge), ENOMEM);
    expect_refusal(pvalloc(all - below(chance, 4095)), ENOMEM);
    expect_refusal(aligned_alloc((size_t)16 << below(chance, 40), huge), ENOMEM);
    expect_refusal(memalign(widest, most - some), ENOMEM);
    expect_refusal(memalign(all - some, below(chance, 100)), EINVAL);
}

static inline void ask_for_wild_alignments(uint64_t *chance) {
    size_t align = draw(chance) >> below(chance, 64), bytes = below(chance, 100);
    bool is_valid = align >= 8 && !(align & (align - 1));
    void *untouched = chance, *at = untouched;
    if (!is_valid)
        EXPECT(posix_memalign(&at, align, bytes) == EINVAL);
    EXPECT(posix_memalign(&at, (size_t)1 << 63, bytes) == ENOMEM);
    EXPECT(posix_memalign(&at, (size_t)8 << below(chance, 40), 2 * most + 1 - bytes) == ENOMEM);
    EXPECT(at == untouched && (errno == UNTOUCHED || !is_served));
}

static inline void grow_too_much(uint64_t *chance, const struct block *block) {
    size_t all = 2 * most + 1, of = 2 + below(chance, 1000);
    errno = UNTOUCHED;
    expect_refusal(realloc(block->at, all - below(chance, 5000)), ENOMEM);
    expect_refusal(realloc(block->at, most - below(chance, 5000)), ENOMEM);
    expect_refusal(reallocarray(block->at, all / of + 1, of), ENOMEM);
    check_contents(block, block->written);
    EXPECT(malloc_usable_size(block->at) == block->usable);
}

/* The block stays as it is, if there is one. */
static inline void ask_in_vain(uint64_t *chance, const struct block *block) {
    errno = UNTOUCHED;
    if (block->at)
        grow_too_much(chance, block);
    else if (below(chance, 2))
        ask_for_too_much(chance);
    else
        ask_for_wild_alignments(chance);
    free(NULL);
    EXPECT(malloc_usable_size(NULL) == 0);
}

#endif
