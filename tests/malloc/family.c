// SPDX-License-Identifier: Apache-2.0
/*
 * family.c - says what each function of malloc()'s family does with arguments good and bad.
 *
 * Prints one line for each call, outside of scopes and again in one. Run with the C library's
 * malloc() and with libebb-malloc the output must be the same to the byte (same.py). Where glibc
 * leaves a choice (a terabyte may be had or not) the line says whether the choice was a legal one.
 * Each call starts with errno 77, so a function that touches it shows.
 */
#include <ebb/ebb.h>

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TOP ((size_t)PTRDIFF_MAX)

/* glibc has the first two from 2.41 on */
void free_sized(void *block, size_t bytes) __attribute__((weak));
void free_aligned_sized(void *block, size_t align, size_t bytes) __attribute__((weak));

static const char *where;

static const char *name_of(int code) {
    switch (code) {
    case 77: return "kept";
    case 0: return "0";
    case ENOMEM: return "ENOMEM";
    case EINVAL: return "EINVAL";
    default: return "another";
    }
}

/* jemalloc's blocks of up to 8 bytes lie at multiples of 8 only, which C allows. */
static size_t promised(size_t bytes) {
    return bytes <= 8 ? 8 : 16;
}

/* The whole block may be written, and says afterwards what was written. */
static const char *look(void *block, size_t bytes, size_t align) {
    size_t usable = malloc_usable_size(block);
    if ((uintptr_t)block % align)
        return "misaligned";
    if (usable < bytes)
        return "too short";
    if (usable > (size_t)64 << 20)
        usable = bytes < 4096 ? bytes : 4096; /* not all of a huge one */
    memset(block, 0x5a, usable);
    for (size_t i = 0; i < usable; i++)
        if (((unsigned char *)block)[i] != 0x5a)
            return "does not keep";
    return "whole";
}

/* What came of a call that errno was 77 before; frees the block. */
static void say(const char *call, void *block, size_t bytes, size_t align) {
    int code = errno;
    printf("%s: %s: %s, errno %s", where, call, block ? look(block, bytes, align) : "NULL",
           name_of(code));
    errno = 77;
    free(block);
    printf(", after free %s\n", name_of(errno));
}

#define CALL(text, ...) (snprintf(text, sizeof text, __VA_ARGS__), errno = 77)

/* ---- sizes ---- */

static const size_t sizes[] = {0, 1, 8, 15, 16, 17, 24, 25, 63, 64, 65, 100, 1000, 1023, 1024,
    1025, 4095, 4096, 4097, 8168, 8169, 8176, 8177, 8192, 14336, 16384, 65535, 65536, 65537,
    131072, 135168, (size_t)1 << 20, ((size_t)1 << 21) - 1, ((size_t)5 << 20) + 3, TOP - 8192,
    TOP - 4097, TOP - 4096, TOP - 1, TOP, TOP + 1, TOP + 2, SIZE_MAX - 8192, SIZE_MAX - 4096,
    SIZE_MAX - 4095, SIZE_MAX - 63, SIZE_MAX - 16, SIZE_MAX - 15, SIZE_MAX - 1, SIZE_MAX};

static void plain_sizes(void) {
    char text[120];
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        CALL(text, "malloc(%zu)", sizes[i]);
        say(text, malloc(sizes[i]), sizes[i], promised(sizes[i]));
        CALL(text, "calloc(1, %zu)", sizes[i]);
        say(text, calloc(1, sizes[i]), sizes[i], promised(sizes[i]));
        CALL(text, "calloc(%zu, 1)", sizes[i]);
        say(text, calloc(sizes[i], 1), sizes[i], promised(sizes[i]));
        CALL(text, "realloc(NULL, %zu)", sizes[i]);
        say(text, realloc(NULL, sizes[i]), sizes[i], promised(sizes[i]));
        CALL(text, "reallocarray(NULL, 1, %zu)", sizes[i]);
        say(text, reallocarray(NULL, 1, sizes[i]), sizes[i], promised(sizes[i]));
        CALL(text, "valloc(%zu)", sizes[i]);
        say(text, valloc(sizes[i]), sizes[i], 4096);
        CALL(text, "pvalloc(%zu)", sizes[i]);
        say(text, pvalloc(sizes[i]), sizes[i], 4096);
    }
}

static const size_t factors[][2] = {{0, 0}, {0, SIZE_MAX}, {SIZE_MAX, 0}, {3, 1000}, {1000, 33},
    {SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX, SIZE_MAX}, {(size_t)1 << 32, (size_t)1 << 32},
    {(size_t)1 << 33, (size_t)1 << 31}, {((size_t)1 << 32) + 1, (size_t)1 << 32},
    {TOP, 2}, {TOP, 3}, {(size_t)1 << 31, (size_t)1 << 32}, {5, SIZE_MAX / 5 + 1}};

static void products(void) {
    char text[120];
    for (unsigned i = 0; i < COUNT(factors); i++) {
        size_t count = factors[i][0], bytes = factors[i][1];
        CALL(text, "calloc(%zu, %zu)", count, bytes);
        void *block = calloc(count, bytes);
        say(text, block, block ? count * bytes : 0, 8);
        CALL(text, "reallocarray(NULL, %zu, %zu)", count, bytes);
        block = reallocarray(NULL, count, bytes);
        say(text, block, block ? count * bytes : 0, 8);
        char *old = malloc(100);
        memset(old, 3, 100);
        CALL(text, "reallocarray(100 bytes, %zu, %zu)", count, bytes);
        block = reallocarray(old, count, bytes);
        int code = errno;
        if (!block && code == ENOMEM)
            printf("%s: old block %s\n", where, old[0] == 3 && old[99] == 3 ? "kept" : "lost");
        if (!block && code == ENOMEM)
            free(old);
        errno = code;
        say(text, block, block ? count * bytes : 0, 8);
    }
}

static void zeros(void) {
    for (unsigned i = 0; i < COUNT(sizes) && sizes[i] < TOP / 2; i++) {
        void *dirty = malloc(sizes[i]);
        memset(dirty, 0xff, malloc_usable_size(dirty));
        free(dirty);
        unsigned char *block = calloc(1, sizes[i]);
        size_t at = 0;
        while (at < sizes[i] && block[at] == 0)
            at++;
        printf("%s: calloc(1, %zu) is zero: %s\n", where, sizes[i], at == sizes[i] ? "yes" : "NO");
        free(block);
    }
    void *one = malloc(0), *two = malloc(0), *three = calloc(0, 0), *four = realloc(NULL, 0);
    printf("%s: blocks of 0 bytes differ: %s\n", where,
           one != two && one != three && one != four && two != three && two != four &&
                   three != four ? "yes" : "NO");
    free(one), free(two), free(three), free(four);
}

/* ---- alignment ---- */

static const size_t alignments[] = {0, 1, 2, 3, 4, 7, 8, 12, 16, 24, 32, 48, 64, 100, 4096, 4097,
    8192, 65536, (size_t)1 << 20, (size_t)1 << 21, (size_t)1 << 24, (size_t)1 << 62,
    ((size_t)1 << 62) + 1, TOP, (size_t)1 << 63, ((size_t)1 << 63) + 1, SIZE_MAX - 1, SIZE_MAX};
static const size_t aligned_sizes[] = {0, 1, 24, 100, 4096, 8177, 20000, 300000, TOP - 4096, TOP,
    TOP + 1, SIZE_MAX - 4096, SIZE_MAX - 64, SIZE_MAX};

static size_t power(size_t align) {
    size_t power = 1;
    while (power < align)
        power *= 2;
    return power;
}

static void posix_alignment(size_t align, size_t bytes) {
    char text[120];
    void *place = (void *)&text;
    CALL(text, "posix_memalign(%zu, %zu)", align, bytes);
    int result = posix_memalign(&place, align, bytes);
    if (result)
        errno = 77; /* POSIX says that it is not set; glibc sets it at times */
    printf("%s: result %s, place %s\n", where, name_of(result),
           place == (void *)&text ? "untouched" : "set");
    say(text, result ? NULL : place, bytes, align ? align : 1);
}

static void alignment(void) {
    char text[120];
    for (unsigned i = 0; i < COUNT(alignments); i++)
        for (unsigned k = 0; k < COUNT(aligned_sizes); k++) {
            size_t align = alignments[i], bytes = aligned_sizes[k];
            CALL(text, "memalign(%zu, %zu)", align, bytes);
            void *block = memalign(align, bytes);
            say(text, block, bytes, block ? power(align) : 1);
            CALL(text, "aligned_alloc(%zu, %zu)", align, bytes);
            block = aligned_alloc(align, bytes);
            say(text, block, bytes, block ? power(align) : 1);
            posix_alignment(align, bytes);
        }
}

/* A terabyte of alignment may be had, if the system hands out addresses so freely. */
static void wild_alignment(void) {
    for (unsigned log = 30; log < 62; log++) {
        size_t align = (size_t)1 << log;
        errno = 77;
        void *block = memalign(align, 100), *place = NULL;
        int code = errno, result = posix_memalign(&place, align, 5000);
        printf("%s: alignment 2^%u: %s, %s\n", where, log,
               block ? (uintptr_t)block % align ? "WRONG" : "legal"
                     : code == ENOMEM ? "legal" : "WRONG",
               place ? (uintptr_t)place % align || result ? "WRONG" : "legal"
                     : result == ENOMEM ? "legal" : "WRONG");
        free(block);
        free(place);
    }
}

/* ---- other sizes ---- */

static const size_t steps[] = {1, 16, 24, 25, 100, 1000, 4096, 8168, 8169, 9000, 70000, 140000,
                               1 << 20, 5 << 20};

static void fill(unsigned char *block, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        block[i] = (unsigned char)(i * 7 + bytes);
}

static bool holds(const unsigned char *block, size_t bytes, size_t filled) {
    size_t i = 0;
    while (i < bytes && block[i] == (unsigned char)(i * 7 + filled))
        i++;
    return i == bytes;
}

static void resize_from(void *block, size_t from, size_t to, const char *what) {
    char text[120];
    if (!block)
        return;
    fill(block, from);
    CALL(text, "realloc(%s of %zu, %zu)", what, from, to);
    void *moved = realloc(block, to);
    bool whole = moved && holds(moved, from < to ? from : to, from);
    printf("%s: contents %s\n", where, whole ? "kept" : "LOST");
    say(text, moved, to, promised(to));
}

static void resizing(void) {
    for (unsigned i = 0; i < COUNT(steps); i++)
        for (unsigned k = 0; k < COUNT(steps); k++) {
            resize_from(malloc(steps[i]), steps[i], steps[k], "block");
            resize_from(memalign(256, steps[i]), steps[i], steps[k], "aligned block");
            resize_from(calloc(1, steps[i]), steps[i], steps[k], "zeroed block");
        }
}

static void resizing_badly(void) {
    static const size_t bad[] = {TOP + 1, SIZE_MAX, SIZE_MAX - 4096, TOP};
    for (unsigned i = 0; i < COUNT(steps); i++) {
        unsigned char *block = malloc(steps[i]);
        fill(block, steps[i]);
        for (unsigned k = 0; k < COUNT(bad); k++) {
            errno = 77;
            void *moved = realloc(block, bad[k]);
            printf("%s: realloc(block of %zu, %zu): %s, errno %s, old %s\n", where, steps[i],
                   bad[k], moved ? "block" : "NULL", name_of(errno),
                   holds(block, steps[i], steps[i]) ? "kept" : "LOST");
        }
        errno = 77;
        void *nothing = realloc(block, 0);
        printf("%s: realloc(block of %zu, 0): %s, errno %s\n", where, steps[i],
               nothing ? "block" : "NULL", name_of(errno));
    }
}

/* ---- the rest ---- */

static void usable(void) {
    errno = 77;
    printf("%s: usable of NULL: %zu, errno %s\n", where, malloc_usable_size(NULL), name_of(errno));
    for (unsigned i = 0; i < COUNT(sizes) && sizes[i] < TOP / 2; i++) {
        void *block = malloc(sizes[i]);
        size_t first = malloc_usable_size(block);
        memset(block, 1, first);
        size_t again = malloc_usable_size(block);
        void *aligned = memalign(4096, sizes[i]);
        size_t third = malloc_usable_size(aligned);
        printf("%s: usable of %zu: %s, the same again %s, aligned %s\n", where, sizes[i],
               first >= sizes[i] ? "enough" : "LESS", first == again ? "yes" : "NO",
               third >= sizes[i] ? "enough" : "LESS");
        free(block);
        free(aligned);
    }
}

static void sized_frees(void) {
    for (unsigned i = 0; i < COUNT(sizes) && sizes[i] < TOP / 2; i++) {
        void *block = malloc(sizes[i]), *aligned = aligned_alloc(64, sizes[i]);
        errno = 77;
        (free_sized ? free_sized(block, sizes[i]) : free(block));
        (free_aligned_sized ? free_aligned_sized(aligned, 64, sizes[i]) : free(aligned));
        printf("%s: sized frees of %zu: errno %s\n", where, sizes[i], name_of(errno));
    }
    errno = 77;
    free(NULL);
    (free_sized ? free_sized(NULL, 5) : free(NULL));
    (free_aligned_sized ? free_aligned_sized(NULL, 8, 5) : free(NULL));
    printf("%s: frees of NULL: errno %s\n", where, name_of(errno));
}

/* By the C library's other names for them, which some old programs and languages use. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t), *__libc_valloc(size_t), *__libc_pvalloc(size_t);
extern void __libc_free(void *);

static void other_names(void) {
    errno = 77;
    free(__libc_malloc(100));
    free(__libc_calloc(1, 100));
    free(__libc_realloc(malloc(100), 200));
    free(__libc_memalign(64, 100));
    free(__libc_valloc(100));
    free(__libc_pvalloc(100));
    __libc_free(malloc(100));
    printf("%s: other names: errno %s\n", where, name_of(errno));
}

/* Counts of the general heap; large blocks of scopes are counted in ebb's own statistics. */
static void whole_heap(void) {
    enum { MANY = 700, EACH = 100000 };
    static void *blocks[MANY];
    struct mallinfo2 before = mallinfo2();
    for (unsigned i = 0; i < MANY; i++)
        blocks[i] = memset(malloc(EACH), 1, EACH);
    struct mallinfo2 full = mallinfo2();
    size_t more = full.uordblks + full.hblkhd - before.uordblks - before.hblkhd;
    for (unsigned i = 0; i < MANY; i++)
        free(blocks[i]);
    int trimmed = malloc_trim(0), again = malloc_trim((size_t)1 << 20);
    struct mallinfo2 after = mallinfo2();
    printf("%s: mallinfo2: grew %s, shrank %s, trimmed %s\n", where,
           more >= (size_t)MANY * EACH && more < (size_t)MANY * EACH * 2 ? "plausibly" : "WRONGLY",
           after.uordblks + after.hblkhd < before.uordblks + before.hblkhd + (1 << 20) ? "again"
                                                                                       : "NOT",
           (trimmed | again) >> 1 == 0 ? "0 or 1" : "WRONG");
}

static void all(const char *place) {
    where = place;
    plain_sizes();
    products();
    zeros();
    alignment();
    wild_alignment();
    resizing();
    resizing_badly();
    usable();
    sized_frees();
    other_names();
}

int main(void) {
    static char out[1 << 16];
    setvbuf(stdout, out, _IOFBF, sizeof out);
    all("outside");
    whole_heap();
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "family", .scope = true));
    ebb_step step = ebb_step_begin(site, 0);
    all("in a scope");
    printf("the step ends: %d\n", ebb_step_end(step));
    step = ebb_step_begin(site, 0);
    all("in the next");
    printf("the step ends: %d\n", ebb_step_end(step));
    printf("the site goes: %d\n", ebb_site_destroy(site));
    return 0;
}
