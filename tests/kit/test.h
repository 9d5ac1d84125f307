// SPDX-License-Identifier: Apache-2.0
/*
 * test.h - what every suite starts with: cmocka in the order it wants, ebb, and a stage.
 *
 * A stage is a pool of its own with one root region in it. Its teardown closes the root, walks
 * the pool, demands that nothing is owned any more and destroys the pool: so every test that is
 * staged also shows that it leaked nothing and broke no law.
 */
#ifndef KIT_TEST_H
#define KIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <ebb/ebb.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)

/* Regions and pools with options by name, as users open them. */
#define OPEN(...) ebb_region_open(EBB_REGION_OPTIONS(__VA_ARGS__))
#define POOL(...) ebb_pool_create(EBB_POOL_OPTIONS(__VA_ARGS__))

struct stage {
    ebb_pool *pool;
    ebb_region root;
};

int stage_open(void **state);
int stage_close(void **state);

#define STAGED(test) cmocka_unit_test_setup_teardown(test, stage_open, stage_close)

/* Walks the pool, demands that no region is open and nothing is owned, destroys it. */
void pool_end(ebb_pool *pool);

struct ebb_region_stats stats_of(ebb_region region);
struct ebb_pool_stats pool_stats_of(ebb_pool *pool);
struct ebb_site_stats site_stats(ebb_site *site);

/* A block that must be there: `bytes` at `align`, of this region, filled with its pattern. */
void *block_of(ebb_region region, size_t bytes, size_t align);

/* Every byte of a block follows from its seed and place: mixing up two blocks shows. */
void pattern_fill(void *block, size_t bytes, unsigned seed);
bool pattern_holds(const void *block, size_t bytes, unsigned seed);

/* The call failed with this code, on record with a text. */
void assert_refused(int result, int code);
/* The same for calls that return pointers. */
void assert_no_block(const void *block, int code);
/* The text of the last error names this. */
void assert_text_names(const char *part);

/* A list of one survivor, for promotions. */
struct ebb_survivor survivor_of(void *block, int mode);

/* What a variable of the environment, or an argument, says. What is no number ends the program with
 * code 2: a seed with a slip in it would play another game, and show nothing. */
uint64_t number_from(const char *variable, uint64_t otherwise);
uint64_t number_in(const char *what, const char *text);

/* EBB_SEED, or one that is new: by the clock, or EBB_FRESH_SEED, which tests/run makes from what it
 * tests, so that the same sources play the same games wherever they are tested. */
uint64_t fresh_seed(void);

#endif
