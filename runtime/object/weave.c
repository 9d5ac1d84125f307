// SPDX-License-Identifier: Apache-2.0
/*
 * weave.c - rows go from one form of sequences to another, each of them once (see strand.h).
 *
 * Work is done in blocks of strands and, inside of a block, in tiles of a few steps: so a strand
 * is read or written in pieces of a cache line or more, while packed rows of the same tile lie in
 * a few places that all grow. In order of ranks, strands get shorter: the first that does not
 * reach a tile ends it. Invariant: each pair of strand and step below its length is in exactly
 * one tile.
 */
#include "object/weave.h"
#include "object/copy.h"
#include "object/wide.h"

#include <string.h>

enum { TILE_BYTES = 2048, FILL_AHEAD_BYTES = 32, STREAM_STEPS = 4 };

#define STREAM_BYTES ((size_t)8 << 20) /* results of so many bytes do not stay in any cache */

_Thread_local uint64_t weave_copied_bytes;

/* How rows are moved. */
struct way {
    const struct row *row;
    bool wide;
    bool stream; /* past the caches */
    int64_t steps; /* of a tile */
};

static struct way way_of(const struct row *row, size_t result_bytes, const void *result) {
    struct way way = {.row = row, .wide = wide_is_here()};
    bool fits = row->bytes % WIDE_BYTES == 0 && (uintptr_t)result % WIDE_BYTES == 0;
    way.stream = way.wide && fits && result_bytes >= STREAM_BYTES;
    way.steps = row->bytes ? (int64_t)(TILE_BYTES / row->bytes) : 1;
    if (way.stream)
        way.steps = STREAM_STEPS;
    else if (way.wide && fits)
        way.steps = STEPS; /* one after the other */
    way.steps = way.steps < 1 ? 1 : way.steps > STEPS ? STEPS : way.steps;
    return way;
}

/* ---- tiles ---- */

static void copy_row(char *to, const char *from, const int64_t *strides, const struct row *row) {
    if (strides)
        copy_elements(to, NULL, from, strides, row->shape, row->ndim, row->element_bytes);
    else
        memcpy(to, from, row->bytes);
}

/* No block on one side: packed rows. `bytes` is a constant wherever this is inlined; 0: as the
 * row says. */
static inline __attribute__((always_inline)) uint64_t
move_rows_of(const struct tile *tile, const struct block *to, const struct block *from,
          const struct row *row, size_t bytes) {
    const struct block *block = to ? to : from;
    uint64_t rows = 0;
    for (int64_t at = 0; at < block->count; at++) {
        int64_t here = rows_in_tile(&block->strands[at], tile);
        if (here <= 0 && block->sorted)
            break;
        for (int64_t i = 0; i < here; i++) {
            char *line =
                to && from ? NULL : tile->lines[i] + block->ranks[at] * tile->rank_step;
            int64_t step = tile->first + i;
            char *target = to ? to->strands[at].start + step * to->strands[at].step : line;
            char *source = from ? from->strands[at].start + step * from->strands[at].step : line;
            if (bytes)
                memcpy(target, source, bytes);
            else
                copy_row(target, source, from ? from->strands[at].strides : tile->strides, row);
        }
        rows += here > 0 ? (uint64_t)here : 0;
    }
    return rows;
}

static inline __attribute__((always_inline)) uint64_t
move_rows(const struct tile *tile, const struct block *to, const struct block *from,
          const struct row *row, size_t bytes) {
    if (!to)
        return move_rows_of(tile, NULL, from, row, bytes);
    if (!from)
        return move_rows_of(tile, to, NULL, row, bytes);
    return move_rows_of(tile, to, from, row, bytes);
}

static uint64_t move_plain(const struct tile *tile, const struct block *to,
                           const struct block *from, const struct row *row) {
    switch (row->bytes) {
    case 1:
        return move_rows(tile, to, from, row, 1);
    case 2:
        return move_rows(tile, to, from, row, 2);
    case 4:
        return move_rows(tile, to, from, row, 4);
    case 8:
        return move_rows(tile, to, from, row, 8);
    default:
        return move_rows(tile, to, from, row, 0);
    }
}

/* Moves the rows of a tile; returns their bytes. */
static uint64_t move_tile(const struct tile *tile, const struct block *to,
                          const struct block *from, const struct way *way) {
    size_t bytes = way->row->bytes;
    bool plain = from ? from->plain : tile->strides == NULL;
    uint64_t rows;
    if (plain && way->wide && bytes % WIDE_BYTES == 0)
        rows = wide_move(tile, to, from, bytes, way->stream);
    else if (plain)
        rows = move_plain(tile, to, from, way->row);
    else
        rows = move_rows(tile, to, from, way->row, 0);
    return rows * bytes;
}

/* The tile that follows, or the first one; false at the end. */
static bool tile_next(struct tile *tile, int64_t steps, const struct way *way) {
    tile->first += tile->steps;
    tile->steps = way->steps < steps - tile->first ? way->steps : steps - tile->first;
    return tile->steps > 0;
}

/* Where the tile's packed rows begin, the first at row `at`; returns the row that follows. Beyond
 * the longest sequence there are none. */
static int64_t tile_lines(struct tile *tile, const struct ranks *ranks, int64_t at) {
    for (int64_t i = 0; i < tile->steps && tile->first + i < ranks->steps; i++) {
        tile->lines[i] = ranks->base + at * ranks->step;
        at += ranks->batch_sizes[tile->first + i];
    }
    return at;
}

/* ---- blocks ---- */

static int64_t block_count(int64_t first, int64_t count) {
    return count - first < STRANDS ? count - first : STRANDS;
}

enum { PLAIN = 1, DENSE = 2 };

/* Makes a strand of the first `length` rows of a sequence; says what is true of it. */
static inline unsigned make_strand(struct strand *strand, const struct bundle *bundle,
                                   const struct row *row, int64_t sequence, int64_t length) {
    bundle_strand(strand, bundle, sequence, length);
    bool dense = strand->step == (int64_t)row->bytes || length <= 1;
    return strand->strides ? 0 : dense ? PLAIN | DENSE : PLAIN;
}

/* `all` is what is true of all strands. */
static void block_finish(struct block *block, int64_t count, bool sorted, unsigned all) {
    block->count = count;
    block->sorted = sorted;
    block->plain = all & PLAIN;
    block->dense = all & DENSE;
}

/* The sequences of ranks `first` and following, as long as they are in the bundle. */
static void block_to_pack(struct block *block, const struct ranks *ranks,
                          const struct bundle *from, const struct row *row, int64_t first) {
    int64_t count = block_count(first, ranks->count);
    unsigned all = PLAIN | DENSE;
    for (int64_t at = 0; at < count; at++) {
        int64_t sequence = ranks->sorted ? ranks->sorted[first + at] : first + at;
        block->ranks[at] = first + at;
        all &= make_strand(&block->strands[at], from, row, sequence,
                           bundle_length(from, sequence));
    }
    block_finish(block, count, true, all);
}

/* The same, as long as the batch sizes say; `length` is that of the rank before, at least. */
static void block_to_unpack(struct block *block, const struct ranks *ranks,
                            const struct bundle *to, const struct row *row, int64_t first,
                            int64_t most, int64_t *length) {
    int64_t count = block_count(first, ranks->count), here = *length;
    unsigned all = PLAIN | DENSE;
    for (int64_t at = 0; at < count; at++) {
        int64_t sequence = ranks->sorted ? ranks->sorted[first + at] : first + at;
        here = ranks_length(ranks, first + at, here);
        block->ranks[at] = first + at;
        all &= make_strand(&block->strands[at], to, row, sequence, here < most ? here : most);
    }
    *length = here;
    block_finish(block, count, true, all);
}

/* The same, in the original order of the sequences. */
static void block_to_pad(struct block *block, const struct ranks *ranks, const struct bundle *to,
                         const struct row *row, int64_t first, int64_t most) {
    int64_t count = block_count(first, ranks->count);
    unsigned all = PLAIN | DENSE;
    for (int64_t at = 0; at < count; at++) {
        int64_t rank = ranks->unsorted ? ranks->unsorted[first + at] : first + at;
        int64_t length = ranks_length_of(ranks, rank);
        block->ranks[at] = rank;
        all &= make_strand(&block->strands[at], to, row, first + at,
                           length < most ? length : most);
    }
    block_finish(block, count, false, all);
}

static void block_of_bundle(struct block *block, const struct bundle *bundle,
                            const struct bundle *lengths, const struct row *row, int64_t first,
                            int64_t most) {
    int64_t count = block_count(first, bundle->count);
    unsigned all = PLAIN | DENSE;
    for (int64_t at = 0; at < count; at++) {
        int64_t length = bundle_length(lengths, first + at);
        block->ranks[at] = 0;
        all &= make_strand(&block->strands[at], bundle, row, first + at,
                           length < most ? length : most);
    }
    block_finish(block, count, false, all);
}

/* ---- padding ---- */

/* How padding is written: not at all, ahead of everything, in runs, tile by tile; or each step
 * of all sequences, rows and padding, as it lies there. */
enum fill { FILL_NONE, FILL_AHEAD, FILL_RUNS, FILL_TILES, FILL_STEPS };

static struct frame frame_of(const struct bundle *padded, int64_t first) {
    return (struct frame){.left = padded->side == EBB_SIDE_LEFT,
                          .padded_length = padded->padded_length,
                          .origin = padded->base ? padded->base + first * padded->batch_step
                                                 : NULL, /* a list */
                          .batch_step = padded->batch_step,
                          .time_step = padded->time_step};
}

static enum fill fill_begin(const struct bundle *to, const struct row *row,
                            const struct padding *padding, bool packed) {
    if (to->form != BUNDLE_PADDED)
        return FILL_NONE;
    if (to->time_step == (int64_t)row->bytes)
        return FILL_RUNS;
    if (row->bytes > FILL_AHEAD_BYTES)
        return packed && to->side == EBB_SIDE_LEFT ? FILL_TILES : FILL_STEPS;
    padding_write(padding, to->base, (size_t)to->padded_length * (size_t)to->count * row->bytes);
    return FILL_AHEAD;
}

/* The padding of a strand is one run of bytes. */
static void fill_runs(const struct frame *frame, const struct block *block,
                      const struct row *row, const struct padding *padding) {
    for (int64_t at = 0; at < block->count; at++) {
        const struct strand *strand = &block->strands[at];
        int64_t pads = frame->padded_length - strand->length;
        int64_t first = frame->left ? -pads : strand->length;
        padding_write(padding, strand->start + first * strand->step, (size_t)pads * row->bytes);
    }
}

static void fill_rows(const struct frame *frame, const struct tile *tile,
                      const struct block *block, const struct padding *padding, size_t bytes) {
    for (int64_t step = tile->first; step < tile->first + tile->steps; step++)
        for (int64_t at = 0; at < block->count; at++) {
            const struct strand *strand = &block->strands[at];
            int64_t row = frame_row(frame, strand, step);
            if (row < 0 || row >= strand->length)
                padding_write(padding, strand->start + row * strand->step, bytes);
        }
}

/* Moves the rows of a tile and fills what pads them; returns the bytes of the rows. */
static uint64_t pad_tile(const struct frame *frame, const struct tile *tile,
                         const struct block *to, const struct block *from,
                         const struct padding *padding, const struct way *way) {
    unsigned char pattern[WIDE_BYTES];
    size_t bytes = way->row->bytes;
    bool plain = from ? from->plain : tile->strides == NULL;
    if (to->sorted || !plain || !way->wide || bytes % WIDE_BYTES || WIDE_BYTES % padding->bytes) {
        fill_rows(frame, tile, to, padding, bytes);
        return move_tile(tile, to, from, way);
    }
    padding_write(padding, pattern, sizeof pattern);
    return bytes * wide_pad(tile, to, from, frame, pattern, bytes, way->stream);
}

/* ---- from form to form ---- */

/* Rows of words have a way of their own. */
static bool are_words(const struct way *way, const struct ranks *ranks,
                      const struct block *block) {
    return way->wide && way->row->bytes == sizeof(uint64_t) && block->dense && block->sorted &&
           !ranks->strides && ranks->step == (int64_t)sizeof(uint64_t);
}

/* Of a list: 0, its tensors are blocks of their own. Beside rows of no bytes sizes may be anything,
 * and their product more than there are numbers. */
static size_t result_bytes(const struct bundle *to, const struct row *row) {
    if (!row->bytes)
        return 0;
    if (to->form == BUNDLE_RAGGED)
        return (size_t)to->offsets[to->count] * row->bytes;
    if (to->form == BUNDLE_LIST)
        return 0;
    return (size_t)to->padded_length * (size_t)to->count * row->bytes;
}

/* Steps of the tiles that a block needs. */
static int64_t block_steps(const struct bundle *to, const struct block *block, enum fill fill) {
    int64_t steps = fill >= FILL_TILES ? to->padded_length : 0;
    for (int64_t at = 0; at < block->count; at++)
        if (block->strands[at].length > steps)
            steps = block->strands[at].length;
    return steps;
}

void weave_pack(const struct ranks *to, const struct bundle *from, const struct row *row,
                int64_t rows) {
    struct way way = way_of(row, (size_t)rows * row->bytes, to->base);
    struct block block;
    uint64_t copied = 0;
    for (int64_t first = 0; row->bytes && first < to->count; first += STRANDS) {
        struct tile tile = {.rank_step = to->step};
        int64_t at = 0;
        block_to_pack(&block, to, from, row, first);
        if (are_words(&way, to, &block)) {
            copied += row->bytes * wide_move_words(to, first, &block, true);
            continue;
        }
        while (tile_next(&tile, block.strands[0].length, &way)) {
            at = tile_lines(&tile, to, at);
            copied += move_tile(&tile, NULL, &block, &way);
        }
    }
    weave_copied_bytes += copied;
}

void weave_unpack(const struct bundle *to, const struct ranks *from, const struct row *row,
                  int64_t most, const struct padding *padding) {
    struct way way = way_of(row, result_bytes(to, row), to->base);
    enum fill fill = row->bytes ? fill_begin(to, row, padding, true) : FILL_NONE;
    struct block block;
    uint64_t copied = 0;
    int64_t length = from->steps;
    for (int64_t first = 0; row->bytes && first < from->count; first += STRANDS) {
        struct tile tile = {.rank_step = from->step, .strides = from->strides};
        struct frame frame = frame_of(to, first);
        int64_t at = 0;
        if (fill == FILL_STEPS)
            block_to_pad(&block, from, to, row, first, most);
        else
            block_to_unpack(&block, from, to, row, first, most, &length);
        bool words = are_words(&way, from, &block);
        int64_t steps = words ? 0 : block_steps(to, &block, fill);
        if (words)
            copied += row->bytes * wide_move_words(from, first, &block, false);
        while (tile_next(&tile, steps, &way)) {
            at = tile_lines(&tile, from, at);
            copied += fill >= FILL_TILES ? pad_tile(&frame, &tile, &block, NULL, padding, &way)
                                         : move_tile(&tile, &block, NULL, &way);
        }
        if (fill == FILL_RUNS)
            fill_runs(&frame, &block, row, padding);
    }
    weave_copied_bytes += copied;
}

/* Strands without gaps on both sides are copied whole. */
static uint64_t copy_dense(const struct block *to, const struct block *from,
                           const struct row *row, bool stream) {
    uint64_t copied = 0;
    for (int64_t at = 0; at < to->count; at++) {
        size_t bytes = (size_t)to->strands[at].length * row->bytes;
        if (stream)
            copy_past_caches(to->strands[at].start, from->strands[at].start, bytes);
        else if (bytes)
            memcpy(to->strands[at].start, from->strands[at].start, bytes);
        copied += bytes;
    }
    return copied;
}

void weave_strands(const struct bundle *to, const struct bundle *from, const struct row *row,
                   int64_t most, const struct padding *padding) {
    size_t bytes = result_bytes(to, row);
    struct way way = way_of(row, bytes, to->base);
    enum fill fill = row->bytes ? fill_begin(to, row, padding, false) : FILL_NONE;
    struct block target, source;
    uint64_t copied = 0;
    for (int64_t first = 0; row->bytes && first < to->count; first += STRANDS) {
        struct tile tile = {0};
        struct frame frame = frame_of(to, first);
        block_of_bundle(&target, to, from, row, first, most);
        block_of_bundle(&source, from, from, row, first, INT64_MAX);
        bool dense = target.dense && source.dense && fill != FILL_STEPS;
        int64_t steps = dense ? 0 : block_steps(to, &target, fill);
        if (dense)
            copied += copy_dense(&target, &source, row, bytes >= STREAM_BYTES);
        while (tile_next(&tile, steps, &way))
            copied += fill == FILL_STEPS
                          ? pad_tile(&frame, &tile, &target, &source, padding, &way)
                          : move_tile(&tile, &target, &source, &way);
        if (fill == FILL_RUNS)
            fill_runs(&frame, &target, row, padding);
    }
    weave_copied_bytes += copied;
}
