// SPDX-License-Identifier: Apache-2.0
/* plan.c - the life of a site: two passes are recorded, the third is served, larger ones follow. */
#include <ebb/ebb.h>

#include <stdio.h>
#include <stdlib.h>

#define KIB ((size_t)1024)

static void need(bool holds) {
    if (!holds)
        exit(1);
}

static int print(void *context, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, context) == bytes ? 0 : 1;
}

/* One pass: four blocks, of which the loss survives. Then the caller is done with that, too. */
static void pass(ebb_site *site, ebb_region run, size_t mask_bytes) {
    ebb_step step = ebb_step_begin_under(site, run, 0);
    char *input = ebb_region_alloc(step.region, 128 * KIB, 64);
    char *mask = ebb_region_alloc(step.region, mask_bytes, 64);
    need(input && mask && ebb_region_release(step.region, input) == 0);
    char *output = ebb_region_alloc(step.region, 96 * KIB, 64);
    float *loss = ebb_region_alloc(step.region, sizeof *loss, 16);
    need(output && loss && ebb_region_release(step.region, mask) == 0);
    struct ebb_survivor kept = {.block = loss};
    need(ebb_step_end_keeping(step, run, &kept, 1, NULL, NULL) == 0);
    need(ebb_region_release(run, kept.block) == 0);
}

static struct ebb_site_stats stats_of(ebb_site *site) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    need(ebb_site_read_stats(site, &stats) == 0);
    return stats;
}

int main(void) {
    ebb_region run = ebb_region_open(EBB_REGION_OPTIONS(.name = "run"));
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "pass"));
    pass(site, run, 4 * KIB);
    pass(site, run, 4 * KIB); /* like the first: a plan is made */
    need(stats_of(site).recorded_steps == 2 && stats_of(site).plans == 1);
    need(stats_of(site).plan_height == 132 * KIB && stats_of(site).plan_max_live == 132 * KIB);

    pass(site, run, 4 * KIB); /* follows it */
    need(stats_of(site).hits == 4 && stats_of(site).tenured_right == 1);
    need(ebb_report_plan(site, 0, print, stdout) == 0);
    pass(site, run, 5 * KIB); /* the mask does not fit: a larger plan is made */
    need(stats_of(site).missed == 1 && stats_of(site).plans == 2);
    pass(site, run, 5 * KIB);
    need(stats_of(site).missed == 1 && stats_of(site).plan_max_live == 133 * KIB);

    pass(site, run, 16 * KIB); /* too much beside the plan: the rest goes without it */
    need(stats_of(site).takeovers == 1 && stats_of(site).missed == 4);
    need(stats_of(site).plan_height == 144 * KIB);
    return ebb_site_destroy(site) == 0 && ebb_region_close(run) == 0 ? 0 : 1;
}
