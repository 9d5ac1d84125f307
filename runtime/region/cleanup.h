// SPDX-License-Identifier: Apache-2.0
/* cleanup.h - callbacks that run when a region ends (see cleanup.c). */
#ifndef EBB_REGION_CLEANUP_H
#define EBB_REGION_CLEANUP_H

#include "region/region.h"

/* Registers a node, which lies where no other process can write. */
void cleanup_enlist(struct region *region, struct ebb_cleanup *node);

/* The same, but it runs after all others, whenever they are registered. */
void cleanup_enlist_last(struct region *region, struct ebb_cleanup *node);

/* Takes the node out of its list, if it is in one. */
void cleanup_delist(struct ebb_cleanup *node);

/* True if the node is in the list of a region that the parent process of a fork has open. */
bool cleanup_is_lost(const struct ebb_cleanup *node);

/* Runs the cleanups that were registered after the mark `serial` (0: all), newest first. */
void cleanup_run_newer(struct region *region, uint64_t serial, struct ebb_closed *closed);

/*
 * The same of all, while a region closes with those below it, from the bottom: what is above is not
 * marked anew as at work for each of them. The region `at_work` is, and all above it; NULL: none
 * is. This one is the same, or below. cleanup_end_work() follows when it ends, and when the last
 * one has, region_end_work() of `at_work`.
 */
void cleanup_run_below(struct region *region, struct region **at_work, struct ebb_closed *closed);
void cleanup_end_work(const struct region *region, struct region **at_work);

#endif
