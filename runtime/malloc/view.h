// SPDX-License-Identifier: Apache-2.0
/*
 * view.h - the live view: what libebb-malloc can tell about itself.
 *
 * As plain text, one number a line, or in the form that Prometheus scrapes. Bytes and counts.
 */
#ifndef EBB_MALLOC_VIEW_H
#define EBB_MALLOC_VIEW_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the statistics, as many whole lines as fit into `bytes`, terminated; returns their length.
 * Any thread. */
size_t view_write(char *text, size_t bytes, bool for_prometheus);

#endif
