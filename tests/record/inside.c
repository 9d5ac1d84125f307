// SPDX-License-Identifier: Apache-2.0
//
// inside.c - a library with a libebb inside, as a Python wheel has. test_marks.c records its steps.

#include <ebb/region.h>
#include <ebb/step.h>

#include "client.h"

int steps(void);

// How many were no steps of this libebb.
int steps(void)
{
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "inside"));
    int wrong = 0;

    for (int i = 0; i < CLIENT_STEPPED; i++) {
        ebb_step step = ebb_step_begin(site, 7);

        wrong += !ebb_region_is_open(step.region);
        wrong += ebb_step_end(step) != 0;
    }
    return wrong + (ebb_site_destroy(site) != 0);
}
