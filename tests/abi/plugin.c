// SPDX-License-Identifier: Apache-2.0
/* plugin.c - what plugins.c loads and closes: a user of ebb. */
#include "abi/plugin.h"

static bool has_step(void) {
    static ebb_site *site;
    if (!site)
        site = ebb_site_create(NULL);
    ebb_step step = ebb_step_begin(site, 0);
    return ebb_region_alloc(step.region, 100, 16) && ebb_step_end(step) == 0;
}

__attribute__((visibility("default"))) const struct plugin plugin = {has_step};
