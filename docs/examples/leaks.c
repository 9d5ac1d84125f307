// SPDX-License-Identifier: Apache-2.0
/* leaks.c - who allocated what is still alive? Sites, the leak report, strict closing, seals. */
#include <ebb/ebb.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char report[4096];

static void need(bool holds) {
    if (!holds)
        exit(1);
}

static int append(void *context, const char *text, size_t bytes) {
    (void)context;
    strncat(report, text, bytes);
    return 0;
}

static void *make_state(ebb_region region) {
    return ebb_region_alloc(region, 300, 16);
}

static void *make_cache(ebb_region region) {
    return ebb_region_alloc(region, 70000, 64);
}

int main(void) {
    ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .sites = true));
    void *state = make_state(step), *cache = make_cache(step);
    need(state && cache && make_state(step)); /* the second state is forgotten */
    need(ebb_region_release(step, state) == 0 && ebb_region_release(step, cache) == 0);

    need(ebb_region_close_strict(step) == EBB_E_LIVE_BLOCKS); /* 1 of 300 bytes: text says so */
    need(strstr(ebb_last_error_text(), "300") != NULL);
    need(ebb_report_leaks(step, EBB_REPORT_TEXT, append, NULL) == 0);
    need(strstr(report, "300 bytes in 1 blocks") != NULL); /* and from where */
    fputs(report, stdout);
    need(ebb_region_close(step) == 0);

    /* A sealed region takes nothing new: who still tries is found at once. */
    ebb_region model = ebb_region_open(EBB_REGION_OPTIONS(.name = "model"));
    need(make_cache(model) && ebb_region_seal(model) == 0);
    need(make_state(model) == NULL && ebb_last_error() == EBB_E_SEALED);
    return ebb_region_close(model);
}
