// SPDX-License-Identifier: Apache-2.0
/*
 * wide_x86_64.c - rows in registers of 32 bytes, where the processor has AVX2 (see wide.h).
 *
 * A row of a few hundred bytes costs a call of memcpy() about a fifth more than its bytes do, and
 * one word at a time more than half of what it takes to move words four by four. Results that no
 * cache can hold are written past them: they would be read in first, and throw out the rest.
 *
 * Invariant: what is read and written is exactly the rows, no byte beside them.
 */
#include "object/wide.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#include <string.h>

#define WIDE __attribute__((target("avx2")))
#define WIDE_INLINE static inline __attribute__((always_inline, target("avx2")))

/* __builtin_cpu_supports() would have the compiler's own library ask for all there is, as soon as
 * this one is loaded, and touch pages for it. */
__attribute__((target("xsave"))) static bool look(void) {
    const unsigned saved = 6; /* by the system: both halves of the registers */
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & bit_OSXSAVE &&
           (_xgetbv(0) & saved) == saved && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) &&
           ebx & bit_AVX2;
}

bool wide_is_here(void) {
    enum { UNKNOWN, ABSENT, PRESENT };
    static atomic_int known;
    int found = atomic_load_explicit(&known, memory_order_relaxed); /* relaxed: a fact by itself */
    if (found == UNKNOWN) {
        found = look() ? PRESENT : ABSENT;
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found == PRESENT;
}

/* ---- rows ---- */

WIDE_INLINE __m256i load(const void *from) {
    return _mm256_loadu_si256(from);
}

WIDE_INLINE void store(void *to, __m256i value, bool stream) {
    if (stream)
        _mm256_stream_si256(to, value);
    else
        _mm256_storeu_si256(to, value);
}

WIDE_INLINE void copy(char *to, const char *from, size_t bytes, bool stream) {
    size_t at = 0;
    for (; bytes - at >= 4 * WIDE_BYTES; at += 4 * WIDE_BYTES) {
        __m256i a = load(from + at), b = load(from + at + WIDE_BYTES);
        __m256i c = load(from + at + 2 * WIDE_BYTES), d = load(from + at + 3 * WIDE_BYTES);
        store(to + at, a, stream);
        store(to + at + WIDE_BYTES, b, stream);
        store(to + at + 2 * WIDE_BYTES, c, stream);
        store(to + at + 3 * WIDE_BYTES, d, stream);
    }
    for (; at < bytes; at += WIDE_BYTES)
        store(to + at, load(from + at), stream);
}

/* One row; no block on one side: packed rows. */
WIDE_INLINE void copy_at(const struct tile *tile, const struct block *to,
                         const struct block *from, int64_t at, int64_t step, size_t bytes,
                         bool stream) {
    const struct block *block = to ? to : from;
    char *line = to && from ? NULL
                            : tile->lines[step - tile->first] + block->ranks[at] * tile->rank_step;
    char *target = to ? to->strands[at].start + step * to->strands[at].step : line;
    char *source = from ? from->strands[at].start + step * from->strands[at].step : line;
    copy(target, source, bytes, stream);
}

/* Step by step: packed rows are written or read in one go. */
WIDE_INLINE uint64_t move_steps(const struct tile *tile, const struct block *to,
                                const struct block *from, size_t bytes) {
    const struct block *block = to ? to : from;
    uint64_t rows = 0;
    for (int64_t step = tile->first; step < tile->first + tile->steps; step++)
        for (int64_t at = 0; at < block->count; at++) {
            bool there = step < block->strands[at].length;
            if (!there && block->sorted)
                break;
            if (there)
                copy_at(tile, to, from, at, step, bytes, false);
            rows += there;
        }
    return rows;
}

/* Strand by strand: longer runs are better for memory, where that is what counts. */
WIDE_INLINE uint64_t stream_strands(const struct tile *tile, const struct block *to,
                                    const struct block *from, size_t bytes) {
    const struct block *block = to ? to : from;
    uint64_t rows = 0;
    for (int64_t at = 0; at < block->count; at++) {
        int64_t here = rows_in_tile(&block->strands[at], tile);
        for (int64_t step = tile->first; step < tile->first + here; step++)
            copy_at(tile, to, from, at, step, bytes, true);
        rows += here > 0 ? (uint64_t)here : 0;
    }
    return rows;
}

/* Which side is packed, and `stream`, are constants in each of these. */
WIDE_INLINE uint64_t move(const struct tile *tile, const struct block *to,
                          const struct block *from, size_t bytes, bool stream) {
    return stream ? stream_strands(tile, to, from, bytes) : move_steps(tile, to, from, bytes);
}

WIDE_INLINE uint64_t move_on_side(const struct tile *tile, const struct block *to,
                                  const struct block *from, size_t bytes, bool stream) {
    if (!to)
        return move(tile, NULL, from, bytes, stream);
    if (!from)
        return move(tile, to, NULL, bytes, stream);
    return move(tile, to, from, bytes, stream);
}

WIDE uint64_t wide_move(const struct tile *tile, const struct block *to,
                        const struct block *from, size_t bytes, bool stream) {
    if (!stream)
        return move_on_side(tile, to, from, bytes, false);
    uint64_t rows = move_on_side(tile, to, from, bytes, true);
    _mm_sfence();
    return rows;
}

/* ---- words ---- */

/* Four words each at four places become the columns of what was their rows. */
WIDE_INLINE void turn(char *const to[4], const char *const from[4]) {
    __m256i a = load(from[0]), b = load(from[1]), c = load(from[2]), d = load(from[3]);
    __m256i ab_even = _mm256_unpacklo_epi64(a, b), ab_odd = _mm256_unpackhi_epi64(a, b);
    __m256i cd_even = _mm256_unpacklo_epi64(c, d), cd_odd = _mm256_unpackhi_epi64(c, d);
    store(to[0], _mm256_permute2x128_si256(ab_even, cd_even, 0x20), false);
    store(to[1], _mm256_permute2x128_si256(ab_odd, cd_odd, 0x20), false);
    store(to[2], _mm256_permute2x128_si256(ab_even, cd_even, 0x31), false);
    store(to[3], _mm256_permute2x128_si256(ab_odd, cd_odd, 0x31), false);
}

/* Four steps of packed words, or fewer at the end, and how many strands reach each. */
struct quad {
    int64_t first;
    uint64_t *lines[4];
    int64_t counts[4];
};

/* Four steps of the strands `at` and the three that follow. */
WIDE_INLINE void turn_strands(const struct quad *quad, const struct strand *strands, int64_t at,
                              bool packs) {
    char *lines[4], *loose[4];
    for (int i = 0; i < 4; i++) {
        lines[i] = (char *)(quad->lines[i] + at);
        loose[i] = strands[at + i].start + quad->first * (int64_t)sizeof(uint64_t);
    }
    if (packs)
        turn(lines, (const char *const *)loose);
    else
        turn(loose, (const char *const *)lines);
}

/* The first `steps` of four steps of the strands from `at` up to `end`, which is returned. */
WIDE_INLINE int64_t move_loose(const struct quad *quad, const struct strand *strands, int64_t at,
                               int64_t end, int steps, bool packs) {
    for (; at < end; at++) {
        char *loose = strands[at].start + quad->first * (int64_t)sizeof(uint64_t);
        for (int i = 0; i < steps; i++) {
            char *line = (char *)(quad->lines[i] + at), *word = loose + i * (int)sizeof(uint64_t);
            memcpy(packs ? line : word, packs ? word : line, sizeof(uint64_t));
        }
    }
    return at;
}

/* Strands reach fewer steps the further down they are. */
WIDE_INLINE void move_quad(const struct quad *quad, const struct strand *strands, bool packs) {
    int64_t at = 0;
    for (; at + 4 <= quad->counts[3]; at += 4)
        turn_strands(quad, strands, at, packs);
    at = move_loose(quad, strands, at, quad->counts[3], 4, packs);
    at = move_loose(quad, strands, at, quad->counts[2], 3, packs);
    at = move_loose(quad, strands, at, quad->counts[1], 2, packs);
    move_loose(quad, strands, at, quad->counts[0], 1, packs);
}

/* The next step of a quad, if it has one. */
WIDE_INLINE uint64_t *add_step(struct quad *quad, int i, uint64_t *line, int64_t batch_size,
                               int64_t rank, const struct block *block) {
    int64_t count = batch_size - rank; /* above 0: the block's first strand gets so far */
    quad->lines[i] = line;
    quad->counts[i] = count < block->count ? count : block->count;
    return line + batch_size;
}

WIDE_INLINE uint64_t move_words(const struct ranks *ranks, int64_t rank,
                                const struct block *block, bool packs) {
    uint64_t *line = (uint64_t *)(void *)ranks->base + rank;
    const int64_t *sizes = ranks->batch_sizes;
    int64_t steps = block->strands[0].length, rows = 0;
    struct quad quad = {0};
    for (; quad.first + 4 <= steps; quad.first += 4) {
        for (int i = 0; i < 4; i++)
            line = add_step(&quad, i, line, sizes[quad.first + i], rank, block);
        move_quad(&quad, block->strands, packs);
        rows += quad.counts[0] + quad.counts[1] + quad.counts[2] + quad.counts[3];
    }
    for (; quad.first < steps; quad.first++) {
        line = add_step(&quad, 0, line, sizes[quad.first], rank, block);
        move_loose(&quad, block->strands, 0, quad.counts[0], 1, packs);
        rows += quad.counts[0];
    }
    return (uint64_t)rows;
}

WIDE uint64_t wide_move_words(const struct ranks *ranks, int64_t rank,
                              const struct block *block, bool packs) {
    if (packs)
        return move_words(ranks, rank, block, true);
    return move_words(ranks, rank, block, false);
}

/* ---- padding ---- */

WIDE_INLINE void fill(char *to, __m256i pattern, size_t bytes, bool stream) {
    size_t at = 0;
    for (; bytes - at >= 4 * WIDE_BYTES; at += 4 * WIDE_BYTES)
        for (size_t i = 0; i < 4; i++)
            store(to + at + i * WIDE_BYTES, pattern, stream);
    for (; at < bytes; at += WIDE_BYTES)
        store(to + at, pattern, stream);
}

/* No block `from`: packed rows. That, and `stream`, are constants wherever this is inlined. */
WIDE_INLINE uint64_t pad_step(const struct tile *tile, const struct block *to,
                              const struct block *from, const struct frame *frame, int64_t step,
                              __m256i pattern, size_t bytes, bool stream) {
    const char *line = from ? NULL : tile->lines[step - tile->first];
    int64_t count = to->count, rank_step = tile->rank_step, batch_step = frame->batch_step;
    char *target = frame_place(frame, 0, step);
    uint64_t rows = 0;
    for (int64_t at = 0; at < count; at++, target += batch_step) {
        const struct strand *strand = &to->strands[at];
        int64_t row = from ? frame_row(frame, strand, step) : step;
        if ((uint64_t)row >= (uint64_t)strand->length) {
            fill(target, pattern, bytes, stream);
            continue;
        }
        copy(target, from ? from->strands[at].start + row * from->strands[at].step
                          : line + to->ranks[at] * rank_step, bytes, stream);
        rows++;
    }
    return rows;
}

WIDE_INLINE uint64_t pad_steps(const struct tile *tile, const struct block *to,
                               const struct block *from, const struct frame *frame,
                               __m256i pattern, size_t bytes, bool stream) {
    uint64_t rows = 0;
    for (int64_t step = tile->first; step < tile->first + tile->steps; step++)
        rows += from ? pad_step(tile, to, from, frame, step, pattern, bytes, stream)
                     : pad_step(tile, to, NULL, frame, step, pattern, bytes, stream);
    return rows;
}

WIDE uint64_t wide_pad(const struct tile *tile, const struct block *to,
                       const struct block *from, const struct frame *frame,
                       const unsigned char pattern[WIDE_BYTES], size_t bytes, bool stream) {
    __m256i value = load(pattern);
    if (!stream)
        return pad_steps(tile, to, from, frame, value, bytes, false);
    uint64_t rows = pad_steps(tile, to, from, frame, value, bytes, true);
    _mm_sfence();
    return rows;
}
