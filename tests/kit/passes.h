// SPDX-License-Identifier: Apache-2.0
/* passes.h - steps of a site: those that keep two tensors, which it has learnt to make in the
 * parent, and those with small blocks beside large ones. */
#ifndef KIT_PASSES_H
#define KIT_PASSES_H

#include "kit/dlpack.h"

enum { LEARNING = 2, SMALL = 100, LARGE = 9000 };

static inline ebb_step begin(ebb_site *site, ebb_region parent) {
    ebb_step step = ebb_step_begin_under(site, parent, 1);
    assert_true(ebb_region_is_open(step.region));
    return step;
}

static inline bool lies_in(ebb_region region, const void *address) {
    ebb_region found = ebb_region_of(address);
    return found.lane == region.lane && found.generation == region.generation;
}

/* Small blocks as the number says, and two large ones. */
static inline void take_loose_step(ebb_site *site, uint64_t tag, unsigned small) {
    ebb_step step = ebb_step_begin(site, tag);
    for (unsigned i = 0; i < small; i++)
        block_of(step.region, 32, 16);
    block_of(step.region, 30000, 64);
    block_of(step.region, 50000, 64);
    assert_int_equal(ebb_step_end(step), 0);
}

/* What promoting the object costs; where it is then. */
static inline struct ebb_promoted promote(ebb_region source, ebb_region target, void **object) {
    struct ebb_promoted cost = {0};
    assert_int_equal(ebb_objects_promote(source, target, object, 1, NULL, &cost), 0);
    assert_true(ebb_region_owns(target, *object));
    return cost;
}

static inline void assert_free_of_cost(struct ebb_promoted cost) {
    const struct ebb_promoted nothing = {0};
    assert_memory_equal(&cost, &nothing, sizeof cost);
}

/* A step is two tensors that survive, among others that do not. */
struct pass {
    ebb_step step;
    struct ebb_tensor *small, *large;
};

static inline struct pass pass_of(ebb_site *site, ebb_region parent) {
    struct pass pass = {.step = begin(site, parent)};
    tensor_of_bytes(pass.step.region, 3000);
    pass.small = tensor_of_bytes(pass.step.region, SMALL);
    struct ebb_tensor *other = tensor_of_bytes(pass.step.region, 50);
    pass.large = tensor_of_bytes(pass.step.region, LARGE);
    assert_int_equal(ebb_object_end(other), 0);
    tensor_of_bytes(pass.step.region, 2000);
    return pass;
}

static inline void keep_both(struct pass *pass, ebb_region target, struct ebb_promoted *cost) {
    void *both[] = {pass->small, pass->large};
    assert_int_equal(ebb_objects_promote(pass->step.region, target, both, 2, NULL, cost), 0);
    pass->small = both[0];
    pass->large = both[1];
}

static inline void assert_whole(const struct pass *pass) {
    assert_true(pattern_holds(pass->small->data, SMALL, SMALL));
    assert_true(pattern_holds(pass->large->data, LARGE, LARGE));
}

static inline void end_both(struct pass *pass) {
    assert_whole(pass);
    assert_int_equal(ebb_object_end(pass->small), 0);
    assert_int_equal(ebb_object_end(pass->large), 0);
}

/* The tensors of its next steps are born in `parent`. */
static inline ebb_site *site_that_tenures(ebb_pool *pool, ebb_region parent, unsigned ring) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool, .ring = ring));
    for (int i = 0; i < LEARNING; i++) {
        struct pass pass = pass_of(site, parent);
        keep_both(&pass, parent, NULL);
        assert_int_equal(ebb_step_end(pass.step), 0);
        end_both(&pass);
    }
    assert_int_equal(site_stats(site).tenured_right, 0);
    return site;
}

#endif
