// SPDX-License-Identifier: Apache-2.0
/*
 * short_of.h - no memory for steps that wander, while a test says so. The program is linked with
 * --wrap=plan_pool_take; one file of it includes this.
 */
#ifndef KIT_SHORT_OF_H
#define KIT_SHORT_OF_H

#include "base/error.h"
#include "region/plan.h"

#include <string.h>

void *__real_plan_pool_take(const char *name, size_t bytes, ebb_region *memory);
void *__wrap_plan_pool_take(const char *name, size_t bytes, ebb_region *memory);

static bool short_of_memory;

void *__wrap_plan_pool_take(const char *name, size_t bytes, ebb_region *memory) {
    if (!short_of_memory || strcmp(name, "wander") != 0)
        return __real_plan_pool_take(name, bytes, memory);
    error_set(EBB_E_MEMORY, "no memory for what %s needs", name);
    return NULL;
}

#endif
