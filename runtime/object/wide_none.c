// SPDX-License-Identifier: Apache-2.0
/* wide_none.c - for machines of which ebb knows no wide registers: nothing here is ever called. */
#include "object/wide.h"

#include "base/check.h"

bool wide_is_here(void) {
    return false;
}

uint64_t wide_move(const struct tile *tile, const struct block *to, const struct block *from,
                   size_t bytes, bool stream) {
    (void)tile, (void)to, (void)from, (void)bytes, (void)stream;
    CHECK_ALWAYS(wide_is_here());
    return 0;
}

uint64_t wide_move_words(const struct ranks *ranks, int64_t rank, const struct block *block,
                         bool packs) {
    (void)ranks, (void)rank, (void)packs;
    return wide_move(NULL, block, block, sizeof(uint64_t), false);
}

uint64_t wide_pad(const struct tile *tile, const struct block *to, const struct block *from,
                  const struct frame *frame, const unsigned char pattern[WIDE_BYTES],
                  size_t bytes, bool stream) {
    (void)frame, (void)pattern;
    return wide_move(tile, to, from, bytes, stream);
}
