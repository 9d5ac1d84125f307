// SPDX-License-Identifier: Apache-2.0
/*
 * cases.h - all cases that are the same loop for every peer, behind one switch.
 *
 * A peer's file calls cases_run() with its own constant table and so gets its own copy of every
 * loop (see peer.h). `promote` and `promote_objects` are ebb's alone: case_promote.c,
 * case_promote_objects.c.
 */
#ifndef MICRO_CASES_H
#define MICRO_CASES_H

#include "case_close_n.h"
#include "case_flat.h"
#include "case_large.h"
#include "case_open_close.h"
#include "case_planned.h"
#include "case_release.h"
#include "case_request.h"
#include "case_small.h"
#include "case_tensor.h"

MICRO_INLINE void cases_run(const struct peer_ops *ops, enum micro_case which,
                            struct round *round) {
    switch (which) {
    case CASE_SMALL10K: case_small10k(ops, round); break;
    case CASE_CONST: case_const(ops, round); break;
    case CASE_OPEN_CLOSE: case_open_close(ops, round); break;
    case CASE_CLOSE_N: case_close_n(ops, round); break;
    case CASE_FLAT_COUNT: case_flat_count(ops, round); break;
    case CASE_FLAT_BYTES: case_flat_bytes(ops, round); break;
    case CASE_LARGE: case_large(ops, round); break;
    case CASE_REQUEST: case_request(ops, round); break;
    case CASE_RELEASE: case_release(ops, round); break;
    case CASE_TENSOR: case_tensor(ops, round); break;
    case CASE_PLANNED: case_planned(ops, round); break;
    case CASE_PROMOTE:
    case CASE_PROMOTE_OBJECTS:
    case CASE_COUNT: break;
    }
}

#endif
