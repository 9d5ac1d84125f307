// SPDX-License-Identifier: Apache-2.0
/* test.c - see test.h. */
#include "kit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int stage_open(void **state) {
    struct stage *stage = malloc(sizeof *stage);
    if (!stage)
        return -1;
    stage->pool = POOL(.name = "stage");
    stage->root = OPEN(.name = "root", .pool = stage->pool);
    *state = stage;
    return stage->pool && ebb_region_is_open(stage->root) ? 0 : -1;
}

int stage_close(void **state) {
    struct stage *stage = *state;
    ebb_check_pool(stage->pool);
    if (ebb_region_is_open(stage->root))
        ebb_region_close(stage->root);
    pool_end(stage->pool);
    free(stage);
    return 0;
}

void pool_end(ebb_pool *pool) {
    ebb_check_pool(pool);
    struct ebb_pool_stats stats = pool_stats_of(pool);
    assert_int_equal(stats.open_regions, 0);
    assert_int_equal(stats.owned, 0);
    assert_int_equal(stats.used.current, 0);
    assert_int_equal(stats.blocks.current, 0);
    assert_int_equal(stats.reserved.current, stats.cached);
    assert_int_equal(ebb_pool_destroy(pool), 0);
}

struct ebb_region_stats stats_of(ebb_region region) {
    struct ebb_region_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_region_read_stats(region, &stats), 0);
    return stats;
}

struct ebb_pool_stats pool_stats_of(ebb_pool *pool) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_pool_read_stats(pool, &stats), 0);
    return stats;
}

struct ebb_site_stats site_stats(ebb_site *site) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    return stats;
}

void *block_of(ebb_region region, size_t bytes, size_t align) {
    void *block = ebb_region_alloc(region, bytes, align);
    if (!block)
        print_error("%zu bytes at %zu: %s\n", bytes, align, ebb_last_error_text());
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % align, 0);
    pattern_fill(block, bytes, (unsigned)bytes);
    return block;
}

/* Rows of a block are copied from the wheel, each from elsewhere: a checker of accesses looks at a
 * row as at one byte. */
enum { ROW = 256 };
static unsigned char wheel[2 * ROW];

__attribute__((constructor)) static void wheel_fill(void) {
    for (unsigned i = 0; i < sizeof wheel; i++)
        wheel[i] = (unsigned char)(i % ROW * 167 + 13);
}

static const unsigned char *row_at(size_t at, unsigned seed) {
    return wheel + (at / ROW * 101 + (size_t)seed * 37) % ROW;
}

static size_t row_bytes(size_t at, size_t bytes) {
    return bytes - at < ROW ? bytes - at : ROW;
}

void pattern_fill(void *block, size_t bytes, unsigned seed) {
    for (size_t at = 0; at < bytes; at += ROW)
        memcpy((char *)block + at, row_at(at, seed), row_bytes(at, bytes));
}

bool pattern_holds(const void *block, size_t bytes, unsigned seed) {
    for (size_t at = 0; at < bytes; at += ROW)
        if (memcmp((const char *)block + at, row_at(at, seed), row_bytes(at, bytes)))
            return false;
    return true;
}

void assert_refused(int result, int code) {
    if (result != code)
        print_error("%s instead of %s\n", ebb_error_name(result), ebb_error_name(code));
    assert_int_equal(result, code);
    assert_int_equal(ebb_last_error(), code);
    assert_string_not_equal(ebb_last_error_text(), "");
}

void assert_no_block(const void *block, int code) {
    assert_null(block);
    assert_refused(ebb_last_error(), code);
}

void assert_text_names(const char *part) {
    if (!strstr(ebb_last_error_text(), part))
        fail_msg("'%s' is not in '%s'", part, ebb_last_error_text());
}

struct ebb_survivor survivor_of(void *block, int mode) {
    return (struct ebb_survivor){.block = block, .mode = mode};
}

uint64_t number_in(const char *what, const char *text) {
    char *end = NULL;
    errno = 0;
    uint64_t number = strtoull(text, &end, 0);
    if (*text >= '0' && *text <= '9' && !*end && !errno) /* no space, no sign */
        return number;
    fprintf(stderr, "%s is '%s', which is no number\n", what, text);
    exit(2);
}

uint64_t number_from(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text ? number_in(variable, text) : otherwise;
}

uint64_t fresh_seed(void) {
    uint64_t by_clock = (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000;
    return number_from("EBB_SEED", number_from("EBB_FRESH_SEED", by_clock));
}
