// SPDX-License-Identifier: Apache-2.0
/* scoped.h - patterned blocks in scopes, and what each test of them begins and ends with. */
#ifndef MALLOC_SCOPED_H
#define MALLOC_SCOPED_H

#include "kit/test.h"

#include "base/os.h"
#include "malloc/front.h"
#include "malloc/heap.h"
#include "malloc/options.h"
#include "malloc/served.h"
#include "malloc/trim.h"

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(.scope = true, __VA_ARGS__))

static inline void *make(size_t bytes, unsigned seed) {
    void *block = front_alloc(bytes, __builtin_return_address(0));
    assert_non_null(block);
    pattern_fill(block, bytes, seed);
    return block;
}

static inline void end(void *block, size_t bytes, unsigned seed) {
    assert_true(pattern_holds(block, bytes, seed));
    front_free(block);
}

/* Pages of a site's open scopes. */
static inline uint64_t open_bytes(ebb_site *site) {
    return served_sum(served_of(site), SERVED_OPEN_BYTES);
}

static inline bool is_of_a_scope(const void *block) {
    return tray_holds((uintptr_t)block) || range_holds((uintptr_t)block);
}

static inline ebb_step begin(ebb_site *site) {
    ebb_step step = ebb_step_begin(site, 0);
    assert_true(ebb_region_is_open(step.region));
    return step;
}

static inline void finish(ebb_step step) {
    assert_int_equal(ebb_step_end(step), 0);
}

static inline bool allow_nothing(enum os_acquisition what) {
    (void)what;
    return false;
}

/* What survives a scope cannot be kept: it waits for its end, stuck. */
static inline void finish_without_memory(ebb_step step) {
    bool (*allow)(enum os_acquisition) = os.allow;
    os.allow = allow_nothing;
    finish(step);
    os.allow = allow;
}

/* What earlier tests have kept is no leak of this one. */
static inline int serve(void **state) {
    scope_serve();
    memset((void *)&leaks, 0, sizeof leaks);
    *state = SITE(.name = "request");
    return *state == NULL;
}

/* The same where tests alone cool. */
static inline int serve_alone(void **state) {
    options.idle_ms = 0;
    return serve(state);
}

static inline int forget(void **state) {
    trim_all();
    assert_int_equal(tray_read_pinned().trays, 0);
    assert_null(here.scope);
    return ebb_site_destroy(*state);
}

static const size_t sizes[] = {0, 1, 24, 100, 1000, 8000, 8176, 8177, 9000, 65536, 300000};
enum { SIZES = sizeof sizes / sizeof *sizes };

#define SERVED(test) cmocka_unit_test_setup_teardown(test, serve, forget)
#define ALONE(test) cmocka_unit_test_setup_teardown(test, serve_alone, forget)

#endif
