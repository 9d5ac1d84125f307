// SPDX-License-Identifier: Apache-2.0
/*
 * view.c - statistics as text (see view.h). Reads counters without stopping anybody, so those of
 * one moment may differ by what was going on. Nothing here can fail; a text too long is cut, behind
 * a whole line.
 */
#include "malloc/view.h"
#include "malloc/heap.h"
#include "malloc/resident.h"
#include "malloc/served.h"
#include "malloc/used.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct text {
    char *at;
    size_t left, length;
    bool for_prometheus;
};

static void put(struct text *text, int written) {
    if (written < 0)
        return;
    text->length += (size_t)written;
    size_t step = (size_t)written < text->left ? (size_t)written : text->left;
    text->at += step;
    text->left -= step;
}

struct number {
    const char *name;  /* with the unit */
    const char *about;
    bool only_grows;
    uint64_t value;
};

static void put_head(struct text *text, const struct number *number) {
    if (text->for_prometheus)
        put(text, snprintf(text->at, text->left, "# HELP ebb_%s %s\n# TYPE ebb_%s %s\n",
                           number->name, number->about, number->name,
                           number->only_grows ? "counter" : "gauge"));
}

static void put_number(struct text *text, const struct number *number) {
    put_head(text, number);
    put(text, snprintf(text->at, text->left, text->for_prometheus ? "ebb_%s %" PRIu64 "\n"
                                                                  : "%-28s %" PRIu64 "\n",
                       number->name, number->value));
}

/* ---- sites ---- */

enum { SITE_NUMBERS = 15 };

static void read_site(const struct served *served, struct number numbers[SITE_NUMBERS]) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    error_mute();
    (void)ebb_site_read_stats(served->hidden, &stats);
    error_unmute();
    uint64_t sum[SERVED_COUNTS];
    for (unsigned i = 0; i < SERVED_COUNTS; i++)
        sum[i] = served_sum(served, (enum served_count)i);
    const struct holding *holding = served->holding;
    uint64_t pinned = holding ? holding->pinned_bytes : 0;
    const struct number read[SITE_NUMBERS] = {
        {"scopes_total", "scopes that have ended", true, sum[SERVED_SCOPES]},
        {"scope_blocks_total", "blocks allocated in scopes", true, sum[SERVED_BLOCKS]},
        {"scope_bytes_total", "bytes allocated in scopes", true, sum[SERVED_BYTES]},
        {"scope_planned_blocks_total", "large blocks placed by a plan", true, stats.hits},
        {"scope_planned_bytes_total", "their bytes", true, stats.hit_bytes},
        {"scope_tenured_blocks_total", "of these: known to outlive the scope", true,
         stats.tenured_right},
        {"scope_pinned_trays_total", "trays that outlived a scope", true,
         sum[SERVED_SURVIVED_TRAYS]},
        {"scope_survivors_total", "large blocks that outlived a scope", true,
         sum[SERVED_SURVIVED_BLOCKS]},
        {"scope_survivor_bytes_total", "their bytes", true, sum[SERVED_SURVIVED_BYTES]},
        {"scope_peak_bytes", "most pages that a scope's large blocks had", false,
         stats.reserved_peak},
        {"scopes_open", "scopes that have not ended", false, sum[SERVED_OPEN]},
        {"scope_held_bytes", "pages of open scopes, touched or not, and what outlived others",
         false, sum[SERVED_OPEN_BYTES] + pinned},
        {"scope_pinned_bytes", "of these: trays and large blocks that outlived scopes", false,
         pinned},
        {"scope_given_back_bytes_total", "given back to the system as scopes ended", true,
         stats.given_back},
        {"scope_plan_bytes", "of the newest plan for large blocks", false, stats.plan_height},
    };
    memcpy(numbers, read, sizeof read);
}

/* As the format of Prometheus wants it between quotes. */
static void quote(const char *name, char quoted[2 * SERVED_NAME_BYTES]) {
    for (; *name; name++) {
        if (*name == '"' || *name == '\\')
            *quoted++ = '\\';
        *quoted++ = *name;
    }
    *quoted = 0;
}

struct site_line {
    struct text *text;
    unsigned which; /* number */
};

static void put_site_line(void *context, const struct served *served) {
    const struct site_line *line = context;
    struct number numbers[SITE_NUMBERS];
    read_site(served, numbers);
    const struct number *number = &numbers[line->which];
    char quoted[2 * SERVED_NAME_BYTES];
    quote(served->name, quoted);
    put(line->text, snprintf(line->text->at, line->text->left,
                             "ebb_%s{site=\"%s\"} %" PRIu64 "\n", number->name, quoted,
                             number->value));
}

static void put_site(void *context, const struct served *served) {
    struct text *text = context;
    struct number numbers[SITE_NUMBERS];
    read_site(served, numbers);
    put(text, snprintf(text->at, text->left, "site %s\n", served->name));
    for (unsigned i = 0; i < SITE_NUMBERS; i++)
        put(text, snprintf(text->at, text->left, "    %-28s %" PRIu64 "\n", numbers[i].name,
                           numbers[i].value));
}

/* Prometheus wants all sites of one number together. */
static void put_sites(struct text *text) {
    static const struct served none;
    if (!text->for_prometheus) {
        served_each(put_site, text);
        return;
    }
    for (unsigned which = 0; which < SITE_NUMBERS; which++) {
        struct number numbers[SITE_NUMBERS];
        read_site(&none, numbers);
        put_head(text, &numbers[which]);
        served_each(put_site_line, &(struct site_line){text, which});
    }
}

/* ---- the whole ---- */

/* Only what the pool's lock protects: regions are at work. */
static void put_pool(struct text *text) {
    struct ebb_pool *pool = heap_pool();
    if (!pool)
        return;
    uint64_t resident = resident_large();
    pthread_mutex_lock(&pool->lock);
    uint64_t pages = pool->reserved.current, cooled = heap_cooled_bytes();
    const struct number numbers[] = {
        {"large_resident_bytes", "pages of large blocks of scopes, and free ones, in memory", false,
         resident},
        {"large_held_bytes", "pages of large blocks of scopes, and free ones, touched or not",
         false, pages > cooled ? pages - cooled : 0},
        {"large_free_bytes", "of the pages that are held: no block or scope has them", false,
         pool->pages.hot_bytes},
        {"large_given_back_bytes", "given back to the system so far", true, pool->given_back},
    };
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_number(text, &numbers[i]);
}

static void put_general(struct text *text) {
    struct tray_pinned pinned = tray_read_pinned();
    struct used used = used_read();
    const struct number numbers[] = {
        {"general_allocated_bytes", "in blocks outside of scopes, and in trays", false,
         used.allocated},
        {"general_held_bytes", "pages of that heap and its bookkeeping, touched or not", false,
         used.resident},
        {"pinned_trays", "trays that are kept for survivors", false, pinned.trays},
        {"pinned_bytes", "their bytes", false, pinned.bytes},
        {"pinned_live_blocks", "alive in them", false, pinned.blocks},
        {"pinned_live_bytes", "their bytes", false, pinned.live},
        {"leaking_keys", "allocations that are known to outlive scopes", false, leaks_count()},
    };
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_number(text, &numbers[i]);
}

size_t view_write(char *bytes, size_t limit, bool for_prometheus) {
    struct text text = {.at = bytes, .left = limit, .for_prometheus = for_prometheus};
    put_general(&text);
    put_pool(&text);
    put_sites(&text);
    if (text.length < limit)
        return text.length;
    const char *last = memrchr(bytes, '\n', limit - 1);
    size_t whole = last ? (size_t)(last + 1 - bytes) : 0;
    bytes[whole] = 0;
    return whole;
}
