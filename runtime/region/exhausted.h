// SPDX-License-Identifier: Apache-2.0
/* exhausted.h - the report of an allocation that is about to fail. */
#ifndef EBB_REGION_EXHAUSTED_H
#define EBB_REGION_EXHAUSTED_H

#include <stddef.h>

struct region;

/* Calls the handler, if one is set, with all numbers. Keeps ebb_last_error() as it is. */
void exhausted_report(struct region *region, size_t bytes, size_t align);

/*
 * From now on forks wait for this layer's lock. Before handlers of forks for locks that may be held
 * while something is reported: what is registered last is locked first.
 */
void exhausted_prepare(void);

#endif
