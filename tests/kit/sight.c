// SPDX-License-Identifier: Apache-2.0
/* sight.c - see sight.h. */
#include "kit/sight.h"

struct sight sight_of(ebb_region region) {
    struct sight sight;
    memset(&sight, 0, sizeof sight);
    sight.stats = stats_of(region);
    for (uint32_t kind = 0; kind < EBB_OBJECT_KINDS_MAX; kind++)
        assert_int_equal(ebb_region_read_objects(region, kind, &sight.objects[kind]), 0);
    assert_int_equal(ebb_region_read_objects(region, EBB_OBJECT_ALL, &sight.all), 0);
    sight.listed = ebb_region_list_objects(region, sight.newest, 8);
    return sight;
}

/* A region keeps the pages that it grew by, and bookkeeping in them. */
static void forget_pages(struct ebb_region_stats *stats) {
    stats->reserved = (struct ebb_meter){0, 0, 0};
    stats->waste = stats->runs = 0;
}

void assert_sight_same(ebb_region region, const struct sight *before) {
    struct sight old = *before, now = sight_of(region);
    forget_pages(&old.stats);
    forget_pages(&now.stats);
    assert_int_equal(old.stats.blocks.total, now.stats.blocks.total);
    assert_int_equal(old.stats.requested.total, now.stats.requested.total);
    assert_int_equal(old.stats.used.total, now.stats.used.total);
    assert_int_equal(old.all.created_inside + old.all.created_outside,
                     now.all.created_inside + now.all.created_outside);
    assert_memory_equal(&old, &now, sizeof old);
}

void assert_sight_refused(ebb_region region, const struct sight *before, int result, int code,
                          ...) {
    va_list parts;
    assert_refused(result, code);
    va_start(parts, code);
    for (const char *part; (part = va_arg(parts, const char *));)
        assert_text_names(part);
    va_end(parts);
    assert_sight_same(region, before);
}
