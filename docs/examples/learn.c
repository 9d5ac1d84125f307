// SPDX-License-Identifier: Apache-2.0
/* learn.c - a training step that is planned after two passes; the current region. */
#include <ebb/ebb.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAINING = 1, LAYERS = 12 };

static void need(bool holds) {
    if (!holds)
        exit(1);
}

static int print(void *context, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, context) == bytes ? 0 : 1;
}

/* Activations live until the way back has used them; the loss survives. */
static float *train(ebb_region step) {
    float *activations[LAYERS];
    float *loss = ebb_region_alloc(step, 64 * sizeof *loss, 64);
    need(loss != NULL);
    for (size_t i = 0; i < LAYERS; i++) {
        activations[i] = ebb_region_alloc(step, (i + 1) << 14, 64);
        need(activations[i] != NULL);
        memset(activations[i], (int)i, (i + 1) << 14);
    }
    for (int i = LAYERS - 1; i >= 0; i--) {
        float *gradient = ebb_region_alloc(step, (size_t)(i + 1) << 14, 64);
        need(gradient != NULL && ebb_region_release(step, activations[i]) == 0);
        need(ebb_region_release(step, gradient) == 0);
    }
    loss[0] = 0.5f;
    return loss;
}

int main(void) {
    ebb_region run = ebb_region_open(EBB_REGION_OPTIONS(.name = "run"));
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "train", .ring = 1));
    for (int i = 0; i < 20; i++) {
        ebb_step step = ebb_step_begin_under(site, run, TRAINING);
        float *loss = train(step.region);
        struct ebb_survivor kept = {.block = loss};
        need(ebb_step_end_keeping(step, run, &kept, 1, NULL, NULL) == 0);
        need(ebb_region_release(run, kept.block) == 0);
    }
    struct ebb_site_stats stats = {.size = sizeof stats};
    need(ebb_site_read_stats(site, &stats) == 0);
    need(stats.recorded_steps == 2 && stats.planned_steps == 18);
    need(stats.missed == 0 && stats.tenured_right == 18);
    need(ebb_report_site(site, EBB_REPORT_TEXT, print, stdout) == 0);
    need(ebb_site_destroy(site) == 0);
    ebb_current_token token = ebb_current_enter(run);
    need(ebb_current().lane == run.lane);
    need(ebb_current_leave(token) == 0 && !ebb_region_is_open(ebb_current()));
    return ebb_region_close(run);
}
