// SPDX-License-Identifier: Apache-2.0
/*
 * keys.c - ebb-keys: how many blocks with keys a plan serves where no step is like another.
 *
 *     ebb-keys RUNS STEPS [SHAPE...]
 *
 * A run is a site of its own and so many steps, drawn anew; the second half of them is measured.
 * What the columns mean is in docs/benchmarking.md. Exit codes: 0 done; 2 bad arguments, no memory,
 * or the output was lost.
 */
#include <ebb/ebb.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "said.h"
#include "shape.h"

enum { EXIT_BAD_INPUT = 2, RUNS_MOST = 10000, STEPS_MOST = 100000, ALIGN = 64 };

static const double wanted = 0.95; /* share of blocks */

struct result {
    double shares, least; /* sum; lowest of a run */
    double pages;         /* sum of the runs' most pages over most live bytes */
    unsigned short_runs;  /* below what is wanted */
    uint64_t plans, records;
};

static void fail(const char *what) {
    fprintf(stderr, "ebb-keys: %s: %s\n", what, ebb_last_error_text());
    exit(EXIT_BAD_INPUT);
}

static void play(ebb_site *site, const struct script *script, void **blocks) {
    ebb_step step = ebb_step_begin(site, 0);
    for (size_t i = 0; i < script->count; i++) {
        const struct event *event = &script->events[i];
        void **block = &blocks[event->block];
        if (event->key && !(*block = ebb_step_alloc(step, event->bytes, ALIGN, event->key)))
            fail("no block");
        if (!event->key && ebb_region_release(step.region, *block) != 0)
            fail("no release");
    }
    if (ebb_step_end(step) != 0)
        fail("no end");
}

static struct ebb_site_stats stats_of(ebb_site *site) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    if (ebb_site_read_stats(site, &stats) != 0)
        fail("no counters");
    return stats;
}

static void play_steps(ebb_site *site, const struct shape *shape, unsigned steps,
                       uint32_t *random) {
    struct script script = {.count = 0};
    for (unsigned i = 0; i < steps; i++) {
        script_draw(&script, shape, random);
        void **blocks = calloc((size_t)script.blocks + 1, sizeof *blocks);
        if (!blocks)
            fail("no memory");
        play(site, &script, blocks);
        free(blocks);
    }
    script_free(&script);
}

static void add_run(struct result *result, const struct ebb_site_stats *half,
                    const struct ebb_site_stats *stats) {
    uint64_t blocks = stats->allocations - half->allocations;
    double share = blocks ? (double)(stats->hits - half->hits) / (double)blocks : 1;
    result->shares += share;
    result->least = share < result->least ? share : result->least;
    result->short_runs += share < wanted;
    result->pages += (double)stats->reserved_peak / (double)(stats->used_peak + 1);
    result->plans += stats->plans;
    result->records += stats->recorded_steps;
}

static void run_once(const struct shape *shape, unsigned run, unsigned steps,
                     struct result *result) {
    uint32_t random = 1 + run * 7919;
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(.name = "keys"));
    ebb_site *site = pool ? ebb_site_create(EBB_SITE_OPTIONS(.pool = pool)) : NULL;
    if (!site)
        fail("no site");
    play_steps(site, shape, steps / 2, &random);
    struct ebb_site_stats half = stats_of(site);
    play_steps(site, shape, steps - steps / 2, &random);
    struct ebb_site_stats stats = stats_of(site);
    add_run(result, &half, &stats);
    if (ebb_site_destroy(site) != 0 || ebb_pool_destroy(pool) != 0)
        fail("no end of the site");
}

static void measure(const struct shape *shape, unsigned runs, unsigned steps) {
    struct result result = {.least = 1};
    for (unsigned run = 0; run < runs; run++)
        run_once(shape, run, steps, &result);
    printf("%-8s %7.1f %7.1f %8u %7.3f %7.1f %7.1f\n", shape->name, 100 * result.shares / runs,
           100 * result.least, result.short_runs, result.pages / runs,
           (double)result.plans / runs, (double)result.records / runs);
}

/* ---- the command line ---- */

static int complain(const char *what, const char *word) {
    fprintf(stderr, "ebb-keys: %s: %s\n", what, word);
    return EXIT_BAD_INPUT;
}

static bool take_number(unsigned *number, const char *name, const char *text, unsigned most) {
    char *end = NULL;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    *number = (unsigned)value;
    if (!errno && *end == '\0' && text[0] >= '0' && text[0] <= '9' && value >= 1 && value <= most)
        return true;
    fprintf(stderr, "ebb-keys: %s: not a number from 1 to %u: %s\n", name, most, text);
    return false;
}

static const struct shape *find_shape(const char *name) {
    for (size_t i = 0; i < shape_count; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    return NULL;
}

static int run(int argc, char **argv) {
    unsigned runs, steps;
    if (argc < 3)
        return complain("usage", "ebb-keys RUNS STEPS [SHAPE...]");
    if (!take_number(&runs, "RUNS", argv[1], RUNS_MOST) ||
        !take_number(&steps, "STEPS", argv[2], STEPS_MOST))
        return EXIT_BAD_INPUT;
    for (int i = 3; i < argc; i++)
        if (!find_shape(argv[i]))
            return complain("SHAPE: there is none of that name", argv[i]);
    printf("%-8s %7s %7s %8s %7s %7s %7s\n", "shape", "share", "least", "below95", "pages", "plans",
           "records");
    for (size_t i = 0; i < shape_count && argc == 3; i++)
        measure(&shapes[i], runs, steps);
    for (int i = 3; i < argc; i++)
        measure(find_shape(argv[i]), runs, steps);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    said_begin();
    return said_end(run(argc, argv), EXIT_BAD_INPUT, "ebb-keys");
}
