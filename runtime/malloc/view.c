// SPDX-License-Identifier: Apache-2.0
/*
 * view.c - statistics as text (see view.h). Reads counters without stopping anybody, so those of
 * one moment may differ by what was going on. Nothing here can fail; a text too long is cut, behind
 * a whole line, and no site is read for what is cut.
 */
#include "malloc/view.h"
#include "malloc/general.h"
#include "malloc/heap.h"
#include "malloc/resident.h"
#include "malloc/served.h"
#include "malloc/used.h"

#include "base/error.h"
#include "base/os.h"

#include <inttypes.h>
#include <stddef.h>
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
    const char *about; /* a sentence that stands alone */
    bool only_grows;
    uint64_t value;
};

static void put_head(struct text *text, const char *name, const char *about, bool only_grows) {
    if (text->for_prometheus)
        put(text, snprintf(text->at, text->left, "# HELP ebb_%s %s\n# TYPE ebb_%s %s\n", name,
                           about, name, only_grows ? "counter" : "gauge"));
}

static void put_number(struct text *text, const struct number *number) {
    put_head(text, number->name, number->about, number->only_grows);
    put(text, snprintf(text->at, text->left, text->for_prometheus ? "ebb_%s %" PRIu64 "\n"
                                                                  : "%-32s %" PRIu64 "\n",
                       number->name, number->value));
}

/* ---- sites ---- */

/* Where a number of a site is from, and `which` it is there. */
enum source {
    COUNTED, /* enum served_count */
    LEARNT,  /* where it is in the statistics of the hidden site */
    HELD,
    PINNED
};

struct site_number {
    const char *name, *about; /* as above */
    bool only_grows;
    enum source source;
    size_t which;
};

static const struct site_number site_numbers[] = {
    {"scopes_total", "Scopes of the site that have ended.", true, COUNTED, SERVED_SCOPES},
    {"scope_blocks_total", "Blocks that scopes allocated.", true, COUNTED, SERVED_BLOCKS},
    {"scope_bytes_total", "Bytes that scopes allocated.", true, COUNTED, SERVED_BYTES},
    {"scope_planned_blocks_total", "Large blocks that a plan placed.", true, LEARNT,
     offsetof(struct ebb_site_stats, hits)},
    {"scope_planned_bytes_total", "Bytes of large blocks that a plan placed.", true, LEARNT,
     offsetof(struct ebb_site_stats, hit_bytes)},
    {"scope_tenured_blocks_total",
     "Large blocks that a plan placed outside of the scope, which they outlived.", true, LEARNT,
     offsetof(struct ebb_site_stats, tenured_right)},
    {"scope_pinned_trays_total", "Trays of small blocks that outlived a scope.", true, COUNTED,
     SERVED_SURVIVED_TRAYS},
    {"scope_survivors_total", "Large blocks that outlived a scope.", true, COUNTED,
     SERVED_SURVIVED_BLOCKS},
    {"scope_survivor_bytes_total", "Bytes of large blocks that outlived a scope.", true, COUNTED,
     SERVED_SURVIVED_BYTES},
    {"scope_peak_bytes", "Most bytes of pages that the large blocks of a scope had.", false,
     LEARNT, offsetof(struct ebb_site_stats, reserved_peak)},
    {"scopes_open", "Scopes of the site that have not ended.", false, COUNTED, SERVED_OPEN},
    {"scope_held_bytes",
     "Bytes of pages, touched or not, of open scopes and of what outlived others.", false, HELD, 0},
    {"scope_pinned_bytes", "Bytes of trays and large blocks that outlived scopes.", false, PINNED,
     0},
    {"scope_given_back_bytes_total", "Bytes given back to the system as scopes ended.", true,
     LEARNT, offsetof(struct ebb_site_stats, given_back)},
    {"scope_plan_bytes", "Bytes that the newest plan for large blocks needs.", false, LEARNT,
     offsetof(struct ebb_site_stats, plan_height)},
};

#define SITE_NUMBERS (sizeof site_numbers / sizeof *site_numbers)

static uint64_t read_learnt(const struct served *served, size_t offset) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    uint64_t value;
    error_mute();
    (void)ebb_site_read_stats(served->hidden, &stats);
    error_unmute();
    memcpy(&value, (const char *)&stats + offset, sizeof value);
    return value;
}

static uint64_t read_pinned(const struct served *served) {
    return served->holding ? served->holding->pinned_bytes : 0;
}

/* That one alone, and no other: whoever makes or ends a site waits meanwhile. */
static uint64_t read_site(const struct served *served, const struct site_number *number) {
    switch (number->source) {
    case COUNTED:
        return served_sum(served, (enum served_count)number->which);
    case LEARNT:
        return read_learnt(served, number->which);
    case HELD:
        return served_sum(served, SERVED_OPEN_BYTES) + read_pinned(served);
    case PINNED:
        return read_pinned(served);
    }
    return 0;
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
    const struct site_number *number;
};

static bool put_site_line(void *context, const struct served *served) {
    const struct site_line *line = context;
    char quoted[2 * SERVED_NAME_BYTES];
    quote(served->name, quoted);
    put(line->text, snprintf(line->text->at, line->text->left,
                             "ebb_%s{site=\"%s\"} %" PRIu64 "\n", line->number->name, quoted,
                             read_site(served, line->number)));
    return line->text->left > 0;
}

static bool put_site(void *context, const struct served *served) {
    struct text *text = context;
    put(text, snprintf(text->at, text->left, "site %s\n", served->name));
    for (size_t i = 0; i < SITE_NUMBERS && text->left; i++)
        put(text, snprintf(text->at, text->left, "    %-28s %" PRIu64 "\n", site_numbers[i].name,
                           read_site(served, &site_numbers[i])));
    return text->left > 0;
}

/* Prometheus wants all sites of one number together. */
static void put_sites(struct text *text) {
    if (!text->for_prometheus)
        served_each(put_site, text);
    for (size_t i = 0; i < SITE_NUMBERS && text->for_prometheus && text->left; i++) {
        const struct site_number *number = &site_numbers[i];
        put_head(text, number->name, number->about, number->only_grows);
        served_each(put_site_line, &(struct site_line){text, number});
    }
}

/* ---- the whole ---- */

static void put_numbers(struct text *text, const struct number *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        put_number(text, &numbers[i]);
}

struct larges {
    uint64_t held, free, given_back;
};

/* Only what the pool's lock protects: regions are at work. Nothing before the first scope. */
static struct larges read_larges(void) {
    struct ebb_pool *pool = heap_pool();
    if (!pool)
        return (struct larges){.held = 0};
    pthread_mutex_lock(&pool->lock);
    uint64_t pages = pool->reserved.current, cooled = heap_cooled_bytes();
    struct larges larges = {.held = pages > cooled ? pages - cooled : 0,
                            .free = pool->pages.hot_bytes,
                            .given_back = pool->given_back};
    pthread_mutex_unlock(&pool->lock);
    return larges;
}

/* What is in memory, where the system says it. */
static void put_resident_larges(struct text *text) {
    if (os_tells_resident())
        put_number(text, &(struct number){
                             "large_resident_bytes",
                             "Bytes of pages for large blocks of scopes that are in memory.", false,
                             resident_large()});
}

static void put_larges(struct text *text) {
    struct larges larges = read_larges();
    const struct number numbers[] = {
        {"large_held_bytes", "Bytes of pages for large blocks of scopes, touched or not.", false,
         larges.held},
        {"large_free_bytes",
         "Bytes of pages, touched or not, that wait for large blocks of scopes.", false,
         larges.free},
        {"large_given_back_bytes_total",
         "Bytes of pages for large blocks of scopes that were given back to the system.", true,
         larges.given_back},
    };
    put_resident_larges(text);
    put_numbers(text, numbers, sizeof numbers / sizeof *numbers);
}

/* Nothing, where the system does not say it. */
static void put_process(struct text *text) {
    size_t bytes = resident_process();
    if (bytes)
        put_number(text, &(struct number){
                             "resident_bytes",
                             "Bytes of the process that are in memory, those of files too.", false,
                             bytes});
}

static void put_general(struct text *text) {
    struct tray_pinned pinned = tray_read_pinned();
    struct used used = used_read();
    const struct number numbers[] = {
        {"general_allocated_bytes",
         "Bytes of the general heap in blocks outside of scopes, and in trays.", false,
         used.allocated},
        {"general_held_bytes",
         "Bytes of pages of the general heap and its bookkeeping, touched or not.", false,
         used.resident},
        {"general_given_back_bytes_total",
         "Bytes of pages of the general heap that were given back to the system.", true,
         general_given_back()},
        {"pinned_trays", "Trays that are kept for blocks that outlived their scopes.", false,
         pinned.trays},
        {"pinned_bytes", "Bytes of trays that are kept for blocks that outlived their scopes, "
         "without pages that were given back.", false, pinned.bytes},
        {"pinned_live_blocks", "Blocks alive in the trays that are kept for them.", false,
         pinned.blocks},
        {"pinned_live_bytes", "Bytes alive in the trays that are kept for them.", false,
         pinned.live},
        {"leaking_keys", "Kinds of allocations, by caller and size, known to outlive scopes.",
         false, leaks_count()},
    };
    put_numbers(text, numbers, sizeof numbers / sizeof *numbers);
}

size_t view_write(char *bytes, size_t limit, bool for_prometheus) {
    struct text text = {.at = bytes, .left = limit, .for_prometheus = for_prometheus};
    put_process(&text);
    put_general(&text);
    put_larges(&text);
    put_sites(&text);
    if (text.length < limit)
        return text.length;
    const char *last = memrchr(bytes, '\n', limit - 1);
    size_t whole = last ? (size_t)(last + 1 - bytes) : 0;
    bytes[whole] = 0;
    return whole;
}
