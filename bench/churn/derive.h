// SPDX-License-Identifier: Apache-2.0
/*
 * derive.h - rows that are computed from other rows.
 *
 *     step_us_low, step_us_high   lowest and highest of the rounds
 *     NAME_vs_ebb                 a peer's value divided by ebb's
 *     spike_usual_step_us         median time of the steps before the spike
 *     spike_step_ratio_max        longest step after the spike, divided by it
 *     spike_rss_before_bytes, spike_rss_after_bytes   above the base, before the spike and
 *                                 SPIKE_LATER steps after it; spike_rss_ratio_20: their ratio
 */
#ifndef EBB_BENCH_DERIVE_H
#define EBB_BENCH_DERIVE_H

#include <stdbool.h>

struct bench;

/* Adds the rows to bench->samples, which are closed. False: no memory. */
bool derive_rows(struct bench *bench);

#endif
