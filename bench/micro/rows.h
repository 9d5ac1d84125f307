// SPDX-License-Identifier: Apache-2.0
/*
 * rows.h - the results of one case as tab-separated rows, and the ratios that the targets ask
 * for.
 */
#ifndef MICRO_ROWS_H
#define MICRO_ROWS_H

#include <stdio.h>

#include "child.h"

/* One row: micro, case, allocator, metric, value. None if the value is no number. */
void rows_write(FILE *out, const char *case_name, const char *allocator, const char *metric,
                double value);

/*
 * All rows of a case. `children` is one per entry of `contestants`; those without a series took
 * no part. For every series its median; for the first also its spread: the middle half of the
 * rounds over the median, in per cent.
 *
 * For ebb, in cases that compare, by the case's first metric: `over_floor`,
 * `faster_than_malloc` and `faster_than_arena` (the fastest one). They are medians of the ratios
 * of single rounds, which were measured next to each other, not ratios of medians.
 */
void rows_write_case(FILE *out, const struct contest *contest, const struct child *children);

#endif
