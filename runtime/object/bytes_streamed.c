// SPDX-License-Identifier: Apache-2.0
/*
 * bytes_streamed.c - copies of dense bytes on x86-64; its twin is bytes_plain.c.
 *
 * What does not fit into the caches anyway is written past them: the destination's lines are not
 * read first, and what is in the caches stays there. Below STREAMED_BYTES memcpy() is faster, as
 * whoever reads the copy next finds it in a cache.
 *
 * Invariant: stores that bypass the caches are fenced before the function returns, so that other
 * threads see them in order.
 */
#include "base/size.h"
#include "object/copy.h"

#include <emmintrin.h>
#include <string.h>

enum { STREAMED_BYTES = 16 << 20, LEAST_BYTES = 1024, LINE = 64 };

/* Whole lines, to the start of one. */
static void stream(char *to, const char *from, size_t lines) {
    for (; lines; lines--, to += LINE, from += LINE) {
        const __m128i *source = (const __m128i *)(const void *)from;
        __m128i *target = (__m128i *)(void *)to;
        __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
        __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
    _mm_sfence();
}

void copy_past_caches(void *to, const void *from, size_t bytes) {
    size_t head = size_align((uintptr_t)to, LINE) - (uintptr_t)to;
    if (bytes < LEAST_BYTES) {
        memcpy(to, from, bytes);
        return;
    }
    size_t lines = (bytes - head) / LINE;
    size_t tail = bytes - head - lines * LINE;
    memcpy(to, from, head);
    stream((char *)to + head, (const char *)from + head, lines);
    memcpy((char *)to + bytes - tail, (const char *)from + bytes - tail, tail);
}

void copy_bytes(void *to, const void *from, size_t bytes) {
    if (bytes < STREAMED_BYTES)
        memcpy(to, from, bytes);
    else
        copy_past_caches(to, from, bytes);
}
