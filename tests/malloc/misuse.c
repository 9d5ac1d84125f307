// SPDX-License-Identifier: Apache-2.0
/*
 * misuse.c - what libebb-malloc promises for each misuse, and that it keeps it.
 *
 * Each misuse happens in a child of its own, which ends as the table says: it ends the process
 * with a message that names it, it is refused with a code and nothing has happened, it is harmless,
 * or nothing is promised. The table is the one in docs/malloc.md: each row has to stand there, word
 * for word.
 *
 *     misuse DOCUMENT [--hardened]      checks all; alone: prints the rows
 *
 * Run preloaded, with --hardened if it is the hardened library. Small blocks are of up to 8 KiB.
 */
#include "malloc/promises.h"

#include <ebb/ebb.h>

#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void free_sized(void *block, size_t bytes) __attribute__((weak));
void free_aligned_sized(void *block, size_t align, size_t bytes) __attribute__((weak));
void _ZdlPvm(void *block, size_t bytes) __attribute__((weak));

static ebb_site *site;
static ebb_step step;

/* What is refused or harmless returns true if it was. */
static bool is_whole(void) {
    char *block = malloc(100), *large = malloc(50000);
    bool whole = block && large;
    free(block);
    free(large);
    return whole;
}

static char *block_of(size_t bytes) {
    char *block = malloc(bytes);
    return block ? memset(block, 0x33, bytes) : NULL;
}

static bool freed(void *block) {
    free(block);
    return true;
}

static void begin_scope(void) {
    site = ebb_site_create(EBB_SITE_OPTIONS(.name = "misuse", .scope = true));
    step = ebb_step_begin(site, 0);
}

static void end_scope(void) {
    if (ebb_step_end(step) != 0)
        _exit(9);
}

static void leave_scope(void) {
    if (ebb_scope_leave(step) != 0)
        _exit(9);
}

static void *on_thread(void *(*body)(void *), void *context) {
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, body, context) != 0 || pthread_join(thread, &result) != 0)
        _exit(9);
    return result;
}

static void *free_it(void *block) {
    free(block);
    return NULL;
}

/* ---- blocks of scopes ---- */

static bool small_twice(void) {
    char *block = block_of(100);
    (void)block_of(100);
    return freed(block) && freed(block);
}

static bool survivor_twice(void) {
    char *block = block_of(100), *other = block_of(100);
    end_scope();
    return freed(block) && freed(block) && other;
}

static bool small_twice_elsewhere(void) {
    char *block = block_of(100);
    (void)block_of(100);
    free(block);
    return !on_thread(free_it, block);
}

static bool twice_across(void) {
    char *block = block_of(100), *last = block_of(100);
    return last && freed(block) && ebb_step_end(ebb_step_begin(site, 0)) == 0 && block_of(100) &&
           freed(block);
}

static bool large_twice(void) {
    char *block = block_of(50000);
    return freed(block) && freed(block);
}

static bool large_twice_elsewhere(void) {
    char *block = block_of(50000);
    on_thread(free_it, block);
    on_thread(free_it, block);
    return true;
}

static bool large_survivor_twice(void) {
    char *block = block_of(50000);
    end_scope();
    return freed(block) && freed(block);
}

static bool small_inside(void) {
    return freed(block_of(200) + 16);
}

static bool small_misaligned(void) {
    return freed(block_of(200) + 1);
}

static bool large_inside(void) {
    return freed(block_of(50000) + 4096);
}

static bool large_misaligned(void) {
    return freed(block_of(50000) + 16);
}

static bool resize_freed_small(void) {
    char *block = block_of(100);
    (void)block_of(100);
    free(block);
    return realloc(block, 200) != NULL;
}

static bool resize_freed_large(void) {
    char *block = block_of(50000);
    free(block);
    return realloc(block, 100000) != NULL;
}

static bool resize_inside(void) {
    return realloc(block_of(200) + 32, 500) != NULL;
}

static bool usable_of_freed(void) {
    char *block = block_of(100);
    (void)block_of(100);
    free(block);
    return malloc_usable_size(block) != 0;
}

static bool usable_inside(void) {
    return malloc_usable_size(block_of(50000) + 64) != 0;
}

static bool small_sized_larger(void) {
    free_sized(block_of(100), 1000);
    return true;
}

static bool large_sized_larger(void) {
    free_sized(block_of(50000), 500000);
    return true;
}

static bool deleted_as_larger(void) {
    _ZdlPvm(block_of(100), 1000);
    return true;
}

static bool sized_smaller(void) {
    free_sized(block_of(100), 10);
    free_sized(block_of(50000), 10);
    return is_whole();
}

static bool written_above(void) {
    char *block = block_of(104), *next = block_of(104);
    memset(block + malloc_usable_size(block), 0x41, 8);
    free(next);
    free(block);
    return true;
}

static bool written_below(void) {
    char *block = block_of(104);
    memset(block - 8, 0x41, 8);
    free(block);
    return true;
}

static void write_below_one(void) {
    char *block = block_of(104);
    (void)block_of(104);
    memset(block - 8, 0x41, 8);
}

static bool written_below_and_trimmed(void) {
    write_below_one();
    (void)malloc_trim(0);
    return true;
}

static bool written_below_to_the_end(void) {
    write_below_one();
    end_scope();
    return true;
}

static bool used_late(void) {
    char *block = block_of(100);
    free(block);
    *(volatile char *)block = 1;
    return true;
}

static bool used_after_the_end(void) {
    char *block = block_of(100);
    free(block);
    end_scope();
    *(volatile char *)block = 1;
    return true;
}

/* In the middle, where there are whole pages. */
static bool large_used_late(void) {
    char *block = block_of(50000);
    free(block);
    *(volatile char *)(block + 25000) = 1;
    return true;
}

static bool no_block_near_one(void) {
    return freed(block_of(100) + ((size_t)512 << 20));
}

static bool no_block_is_resized(void) {
    return realloc(block_of(100) + ((size_t)512 << 20), 10) != NULL;
}

/* ---- blocks of regions ---- */

static bool region_block_is_freed(void) {
    return freed(ebb_region_alloc(step.region, 1000, 64));
}

static bool region_block_is_freed_early(void) {
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.name = "early"));
    void *block = ebb_region_alloc(region, 1000, 64);
    if (!block)
        _exit(9);
    return freed(block);
}

static bool far_above_is_freed(void) {
    return freed((char *)ebb_region_alloc(step.region, 1000, 64) + ((size_t)64 << 30));
}

static bool region_block_is_resized(void) {
    return realloc(ebb_region_alloc(step.region, 100000, 64), 10) != NULL;
}

static bool small_is_released(void) {
    char *block = block_of(100);
    return ebb_region_release(step.region, block) != 0 && block[99] == 0x33 && is_whole();
}

static bool large_is_released(void) {
    char *block = block_of(50000);
    return ebb_region_release(step.region, block) != 0 &&
           ebb_region_release(ebb_region_of(block), block) != 0 && block[49999] == 0x33 &&
           freed(block) && is_whole();
}

/* ---- blocks of the general heap ---- */

static bool general_twice(void) {
    leave_scope();
    char *block = block_of(100);
    return freed(block) && freed(block) && is_whole();
}

static bool general_inside(void) {
    leave_scope();
    return freed(block_of(1000) + 16) && is_whole();
}

static bool general_written_above(void) {
    leave_scope();
    memset(block_of(100) + 100, 1, 100);
    return is_whole();
}

static bool foreign(void) {
    char array[256] __attribute__((aligned(16)));
    return freed(array + 64) && is_whole();
}

static bool wild(void) {
    return freed((void *)(uintptr_t)0x123450) && is_whole();
}

static bool general_sized_wrongly(void) {
    leave_scope();
    free_sized(block_of(100), 3);
    free_sized(block_of(100), 100000);
    return is_whole();
}

/* ---- sizes and alignments ---- */

static bool aligned_otherwise(void) {
    free_aligned_sized(aligned_alloc(64, 128), 16, 128);
    leave_scope();
    free_aligned_sized(aligned_alloc(64, 128), 16, 128);
    return is_whole();
}

static bool is_refused(void *block, int code) {
    return !block && errno == code && is_whole();
}

static bool size_too_large(void) {
    return is_refused(malloc((size_t)PTRDIFF_MAX + 1), ENOMEM) &&
           is_refused(malloc(SIZE_MAX), ENOMEM) && is_refused(valloc(SIZE_MAX), ENOMEM);
}

static bool product_wraps(void) {
    return is_refused(calloc((size_t)1 << 33, (size_t)1 << 31), ENOMEM);
}

static bool page_rounding_wraps(void) {
    return is_refused(pvalloc(SIZE_MAX - 100), ENOMEM);
}

static bool aligned_size_wraps(void) {
    return is_refused(memalign(4096, SIZE_MAX - 100), ENOMEM);
}

static bool resized_too_large(void) {
    char *block = block_of(100), *large = block_of(50000);
    bool refused = is_refused(realloc(block, SIZE_MAX), ENOMEM) &&
                   is_refused(realloc(large, SIZE_MAX), ENOMEM);
    return refused && block[99] == 0x33 && large[49999] == 0x33;
}

static bool resized_product_wraps(void) {
    char *block = block_of(100);
    return is_refused(reallocarray(block, SIZE_MAX / 2, 3), ENOMEM) && block[99] == 0x33;
}

static bool alignment_too_large(void) {
    return is_refused(memalign(((size_t)1 << 63) + 1, 10), EINVAL) &&
           is_refused(aligned_alloc(SIZE_MAX, 10), EINVAL) &&
           is_refused(memalign((size_t)1 << 62, 10), ENOMEM);
}

static bool alignment_is_no_power(void) {
    void *place = &place;
    return posix_memalign(&place, 24, 100) == EINVAL && posix_memalign(&place, 0, 100) == EINVAL &&
           posix_memalign(&place, 4, 100) == EINVAL && place == &place && is_whole();
}

static bool alignment_is_rounded(void) {
    bool strict = strtod(gnu_get_libc_version(), NULL) >= 2.38; /* as glibc itself from there on */
    void *block = (strict ? memalign : aligned_alloc)(48, 100), *other = memalign(4097, 100);
    bool rounded = block && other && (uintptr_t)block % 64 + (uintptr_t)other % 8192 == 0;
    free(block);
    free(other);
    return rounded && (!strict || is_refused(aligned_alloc(48, 100), EINVAL)) && is_whole();
}

static bool alignment_beyond_all_memory(void) {
    void *place = &place;
    return posix_memalign(&place, (size_t)1 << 63, 100) == ENOMEM && place == &place && is_whole();
}

/* ---- scopes ---- */

static bool ended_before_it_began(void) {
    return ebb_step_end((ebb_step){0}) != 0 && is_whole();
}

static bool ended_twice(void) {
    end_scope();
    return ebb_step_end(step) == EBB_E_STALE && is_whole();
}

static bool left_after_its_end(void) {
    end_scope();
    return ebb_scope_leave(step) == EBB_E_STALE && is_whole();
}

static bool entered_after_its_end(void) {
    end_scope();
    return ebb_scope_enter(step) == EBB_E_STALE && is_whole();
}

static void *end_it(void *context) {
    (void)context;
    return (void *)(uintptr_t)(ebb_step_end(step) == EBB_E_THREAD);
}

static void *enter_it(void *context) {
    (void)context;
    return (void *)(uintptr_t)(ebb_scope_enter(step) == EBB_E_THREAD &&
                               ebb_scope_leave(step) == EBB_E_THREAD);
}

static bool ended_by_another_thread(void) {
    bool refused = on_thread(end_it, NULL) != NULL;
    end_scope();
    return refused && is_whole();
}

static bool entered_by_another_thread(void) {
    return on_thread(enter_it, NULL) != NULL && is_whole();
}

static bool left_without_a_scope(void) {
    ebb_site *plain = ebb_site_create(NULL);
    ebb_step other = ebb_step_begin(plain, 0);
    bool refused = ebb_scope_leave(other) == EBB_E_ARGUMENT &&
                   ebb_scope_enter(other) == EBB_E_ARGUMENT;
    return refused && ebb_step_end(other) == 0 && is_whole();
}

static bool site_goes_too_early(void) {
    return ebb_site_destroy(site) == EBB_E_BUSY && is_whole();
}

static bool left_twice(void) {
    return ebb_scope_leave(step) == 0 && ebb_scope_leave(step) == 0 &&
           ebb_scope_enter(step) == 0 && ebb_scope_enter(step) == 0 && is_whole();
}

static bool outer_ends_first(void) {
    ebb_step inner = ebb_step_begin(site, 0);
    char *block = block_of(100), *large = block_of(50000);
    end_scope();
    bool whole = is_whole();
    free(block);
    free(large);
    return ebb_step_end(inner) == 0 && whole && is_whole();
}

static void *leave_open(void *context) {
    *(ebb_step *)context = ebb_step_begin(site, 0);
    return block_of(100);
}

static bool never_ended(void) {
    ebb_step open;
    char *block = on_thread(leave_open, &open);
    bool whole = block[99] == 0x33 && is_whole();
    free(block);
    return whole;
}

static bool region_closed_by_hand(void) {
    char *block = block_of(100), *large = block_of(50000);
    (void)ebb_region_close(step.region);
    bool whole = block[99] == 0x33 && large[49999] == 0x33 && is_whole();
    free(block);
    free(large);
    return whole;
}

/* ---- the table ---- */

static const struct misuse table[] = {
    {"small block of a scope freed twice", small_twice, TWICE},
    {"the same, of one that outlived its scope", survivor_twice, TWICE},
    {"the same, the second time by another thread", small_twice_elsewhere, TWICE},
    {"the same, across the end of an inner scope", twice_across, ONLY_HARDENED("double free")},
    {"large block of a scope freed twice", large_twice, TWICE},
    {"the same, of one that outlived its scope", large_survivor_twice, TWICE},
    {"the same, by two other threads", large_twice_elsewhere, TWICE},
    {"free inside of a small block of a scope", small_inside, NO_BLOCK},
    {"the same, at no multiple of 16", small_misaligned, NO_BLOCK},
    {"free inside of a large block of a scope", large_inside, NO_BLOCK},
    {"the same, in its first page", large_misaligned, NO_BLOCK},
    {"realloc() of a freed small block of a scope", resize_freed_small, TWICE},
    {"realloc() of a freed large block of a scope", resize_freed_large, TWICE},
    {"realloc() inside of a block of a scope", resize_inside, NO_BLOCK},
    {"malloc_usable_size() of a freed block of a scope", usable_of_freed, TWICE},
    {"malloc_usable_size() inside of a block of a scope", usable_inside, NO_BLOCK},
    {"free_sized() of a small block of a scope as a larger one", small_sized_larger, LARGER(1000)},
    {"free_sized() of a large block of a scope as a larger one", large_sized_larger,
     LARGER(500000)},
    {"sized delete of a block of a scope as a larger one", deleted_as_larger, LARGER(1000)},
    {"free_sized() of a block of a scope as a smaller one", sized_smaller, {HARMLESS, NULL},
     {ENDS, "as 10 bytes"}},
    {"8 bytes written above a small block of a scope; the next and it are freed", written_above,
     {ENDS, "begins no block"}, {ENDS, "behind it were overwritten"}},
    {"8 bytes written below a small block of a scope; it is freed", written_below, NO_BLOCK},
    {"the same, but malloc_trim() is called", written_below_and_trimmed,
     ONLY_USUAL(", of a scope, were overwritten")},
    {"the same, but the scope ends", written_below_to_the_end,
     ONLY_USUAL(", of a scope, were overwritten")},
    {"freed block of a scope is used", used_late, BOTH(NOTHING)},
    {"the same, after the end of the scope", used_after_the_end, ONLY_HARDENED(NULL)},
    {"freed large block of a scope is used", large_used_late, ONLY_HARDENED(NULL)},
    {"free of an address between blocks of scopes", no_block_near_one, NO_BLOCK},
    {"realloc() of an address between blocks of scopes", no_block_is_resized, NO_BLOCK},
    {"free() of a block of a region", region_block_is_freed, NO_BLOCK},
    {"the same, before the first scope of the process", region_block_is_freed_early,
     ONLY_HARDENED("no block begins there"), .is_early = true},
    {"free() of an address far above blocks of regions", far_above_is_freed, NO_BLOCK},
    {"realloc() of a block of a region", region_block_is_resized, NO_BLOCK},
    {"ebb_region_release() of a small block of malloc()", small_is_released, BOTH(REFUSED)},
    {"ebb_region_release() of a large block of malloc()", large_is_released, BOTH(REFUSED)},
    {"block of no scope freed twice", general_twice,
     ONLY_HARDENED("double free")},
    {"free inside of a block of no scope", general_inside,
     ONLY_HARDENED("no block begins there")},
    {"bytes written above a block of no scope", general_written_above, BOTH(NOTHING)},
    {"free of an address on the stack", foreign, ONLY_HARDENED("no block begins there")},
    {"free of a wild address", wild, ONLY_HARDENED("no block begins there")},
    {"free_sized() of a block of no scope with a wrong size", general_sized_wrongly,
     {HARMLESS, NULL}, {ENDS, "as 3 bytes"}},
    {"free_aligned_sized() with another alignment", aligned_otherwise, BOTH(HARMLESS)},
    {"size above PTRDIFF_MAX", size_too_large, BOTH(REFUSED)},
    {"calloc() whose product wraps", product_wraps, BOTH(REFUSED)},
    {"pvalloc() that wraps when it is rounded up", page_rounding_wraps, BOTH(REFUSED)},
    {"memalign() whose size and alignment wrap", aligned_size_wraps, BOTH(REFUSED)},
    {"realloc() to a size above PTRDIFF_MAX; the block stays", resized_too_large, BOTH(REFUSED)},
    {"reallocarray() whose product wraps; the block stays", resized_product_wraps, BOTH(REFUSED)},
    {"alignment beyond 2^62", alignment_too_large, BOTH(REFUSED)},
    {"posix_memalign() with no power of two, or below 8", alignment_is_no_power, BOTH(REFUSED)},
    {"memalign() with no power of two: rounded up", alignment_is_rounded, BOTH(HARMLESS)},
    {"posix_memalign() at 2^63", alignment_beyond_all_memory, BOTH(REFUSED)},
    {"end of a step that never began", ended_before_it_began, BOTH(REFUSED)},
    {"end of a scope that has ended", ended_twice, BOTH(REFUSED)},
    {"leaving a scope that has ended", left_after_its_end, BOTH(REFUSED)},
    {"entering a scope that has ended", entered_after_its_end, BOTH(REFUSED)},
    {"end of another thread's scope", ended_by_another_thread, BOTH(REFUSED)},
    {"leaving or entering another thread's scope", entered_by_another_thread, BOTH(REFUSED)},
    {"leaving the scope of a step without one", left_without_a_scope, BOTH(REFUSED)},
    {"end of a site with an open scope", site_goes_too_early, BOTH(REFUSED)},
    {"leaving or entering a scope twice", left_twice, BOTH(HARMLESS)},
    {"outer scope ended before the inner one", outer_ends_first, BOTH(HARMLESS)},
    {"scope that is never ended: its thread's end ends it", never_ended, BOTH(HARMLESS)},
    {"region of a scope's step closed by hand", region_closed_by_hand, BOTH(HARMLESS)},
};

enum { MISUSES = sizeof table / sizeof *table };

int main(int count, char **words) {
    char row[200], said[500];
    bool hardened = count > 2 && strcmp(words[2], "--hardened") == 0;
    int failed = 0;
    for (unsigned i = 0; count < 2 && i < MISUSES; i++) {
        write_row(&table[i], row, sizeof row);
        puts(row);
    }
    if (count < 2)
        return 0;
    const char *document = read_all(words[1]);
    printf("1..%d\n", MISUSES);
    for (unsigned i = 0; i < MISUSES; i++) {
        struct outcome outcome = hardened ? table[i].hardened : table[i].usual;
        int status = commit(&table[i], begin_scope, said, sizeof said);
        bool kept = is_kept(outcome, status, said);
        write_row(&table[i], row, sizeof row);
        bool stands = strstr(document, row) != NULL;
        failed += !kept || !stands;
        printf("%sok %u - %s: %s\n", kept && stands ? "" : "not ", i + 1, table[i].what,
               promised[outcome.promise]);
        if (!kept)
            printf("# status %x, said: %s\n", (unsigned)status, said);
        if (!stands)
            printf("# the document has no such row: %s\n", row);
    }
    return failed != 0;
}
