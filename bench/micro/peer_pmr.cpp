// SPDX-License-Identifier: Apache-2.0
/*
 * peer_pmr.cpp - C++'s std::pmr::monotonic_buffer_resource over one buffer that is larger than
 * any step and was touched beforehand; release() after each step goes back to its beginning.
 */
#include <cstdlib>
#include <cstring>
#include <memory_resource>
#include <new>

#include "cases.h"

namespace {

using resource = std::pmr::monotonic_buffer_resource;

resource *pmr_root;
alignas(resource) unsigned char pmr_scratch[sizeof(resource)];

void pmr_set_up(enum micro_case which) {
    std::size_t mib = which == CASE_LARGE ? 256 : which == CASE_CLOSE_N ? 64 : 32;
    std::size_t bytes = mib << 20;
    void *buffer = std::aligned_alloc(4096, bytes);

    std::memset(buffer, 1, bytes);
    pmr_root = new resource(buffer, bytes);
}

MICRO_INLINE void pmr_begin(struct step *step) {
    step->place = pmr_root;
}

MICRO_INLINE void *pmr_alloc(struct step *step, std::size_t bytes) {
    return static_cast<resource *>(step->place)->allocate(bytes, 16);
}

MICRO_INLINE void pmr_end(struct step *step, const struct held *) {
    static_cast<resource *>(step->place)->release();
}

MICRO_INLINE void pmr_open(struct step *step) {
    step->place = new (pmr_scratch) resource();
}

MICRO_INLINE void pmr_close(struct step *step) {
    static_cast<resource *>(step->place)->~resource();
}

constexpr struct peer_ops make_ops() {
    struct peer_ops ops = {};

    ops.begin = pmr_begin;
    ops.end = pmr_end;
    ops.alloc = pmr_alloc;
    ops.open = pmr_open;
    ops.close = pmr_close;
    ops.forgets = true;
    return ops;
}

constexpr struct peer_ops pmr_ops = make_ops();

void pmr_run(enum micro_case which, struct round *round) {
    cases_run(&pmr_ops, which, round);
}

} // namespace

const struct peer peer_pmr = {pmr_set_up, pmr_run};
