// SPDX-License-Identifier: Apache-2.0
/*
 * few_mappings.c - what the hardened library forbids, and opens again, needs few mappings, whatever
 * kind the pages are of: of a fork's parent, locked, or advised (thp:always in the environment).
 * They are as they were when they are open again, and cost nothing while they are not.
 */
#include "kit/maps.h"
#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <stdint.h>
#include <sys/mman.h>

enum { BLOCKS = 8000, BLOCK_LEAST = 8200, BLOCK_RANGE = 4000, ROUNDS = 2 * BLOCKS };
enum { HELD_MOST = 2 * 4096, OTHERS = 1000 }; /* mappings: of blocks, or of trays; else */
enum { TRAY_BLOCKS = 28, TRAYS = 4400, OTHERS_FREED = 5000 };
enum { PAGE = 4096, MIB = 1 << 20, LARGE = 64 * MIB };

static char *blocks[BLOCKS];

static char *block_of(size_t bytes) {
    char *block = malloc(bytes);
    EXPECT(block);
    memset(block, 1, bytes);
    return block;
}

/* So that they are freed in no order. */
static size_t draw(size_t below) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void allocate_blocks(void) {
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = block_of(BLOCK_LEAST + draw(BLOCK_RANGE));
}

static void replace_blocks(unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++) {
        char **block = &blocks[draw(BLOCKS)];
        free(*block);
        *block = block_of(BLOCK_LEAST + draw(BLOCK_RANGE));
    }
}

static void replacing_needs_few(void) {
    unsigned before = act_mappings();
    replace_blocks(ROUNDS);
    EXPECT(act_mappings() < before + HELD_MOST + OTHERS);
}

static void replaced_blocks_need_few(void) {
    allocate_blocks();
    replacing_needs_few();
}

static void blocks_of_a_parent_need_few(void) {
    allocate_blocks();
    replace_blocks(ROUNDS / 2);
    pid_t child = fork();
    if (child == 0) {
        replacing_needs_few();
        _exit(0);
    }
    act_await(child);
}

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

/* The system has to give up pages that are locked (Linux 5.18). */
static void lock(int what) {
    static _Alignas(PAGE) char page[PAGE];
    if (mlockall(what) != 0 || madvise(page, PAGE, MADV_DONTNEED_LOCKED) != 0)
        act_skips("pages cannot be locked, or given back then");
}

static void blocks_that_were_locked_need_few(void) {
    allocate_blocks();
    lock(MCL_CURRENT);
    replacing_needs_few();
}

static void blocks_that_are_always_locked_need_few(void) {
    lock(MCL_CURRENT | MCL_FUTURE);
    replaced_blocks_need_few();
}

/* ---- trays ---- */

static ebb_site *site;

static ebb_step begin(void) {
    if (!site)
        site = ebb_site_create(EBB_SITE_OPTIONS(.name = "trays", .scope = true));
    EXPECT(site);
    return ebb_step_begin(site, 0);
}

/* More than are ever forbidden. All are empty at the scope's end. */
static void use_trays(void) {
    static char *small[TRAYS * TRAY_BLOCKS];
    for (unsigned i = 0; i < TRAYS * TRAY_BLOCKS; i++)
        EXPECT(small[i] = malloc(2000));
    for (unsigned i = 0; i < TRAYS * TRAY_BLOCKS; i++)
        free(small[i]);
}

/* Those of each scope are forbidden at its end, and those of another open again. */
static void use_trays_in_turn(ebb_step step) {
    unsigned before = act_mappings();
    EXPECT(ebb_step_end(step) == 0);
    EXPECT(act_mappings() > before + HELD_MOST / 2);
    for (unsigned i = 0; i < 2; i++) {
        step = begin();
        use_trays();
        EXPECT(ebb_step_end(step) == 0);
    }
    EXPECT(act_mappings() < before + HELD_MOST + OTHERS);
}

static void trays_of_a_parent_need_few(void) {
    ebb_step step = begin();
    use_trays();
    pid_t child = fork();
    if (child == 0) {
        use_trays_in_turn(step);
        _exit(0);
    }
    act_await(child);
    EXPECT(ebb_step_end(step) == 0);
}

/* ---- as they were ---- */

static size_t flagged(const char *block, const char *flag) {
    return maps_flagged((uintptr_t)block, (uintptr_t)block + LARGE, flag, true);
}

static void free_others(void) {
    for (unsigned i = 0; i < OTHERS_FREED; i++)
        free(malloc(64));
}

static void dumps_leave_out_what_is_forbidden(void) {
    char *block = block_of(LARGE);
    EXPECT(flagged(block, " dd") == 0);
    free(block);
    EXPECT(flagged(block, " dd") >= LARGE - 2 * PAGE);
    free_others();
    EXPECT(flagged(block, " dd") == 0);
}

static void what_is_locked_goes_and_is_locked_when_it_is_open_again(void) {
    char *block = block_of(LARGE);
    lock(MCL_CURRENT);
    EXPECT(flagged(block, " lo") == LARGE);
    size_t before = act_resident();
    free(block);
    EXPECT(act_resident() < before - LARGE + MIB);
    free_others();
    EXPECT(maps_open((uintptr_t)block, (uintptr_t)block + LARGE) == LARGE);
    EXPECT(flagged(block, " lo") == LARGE);
}

/* Nobody has touched them since. */
static void what_is_locked_has_no_pages_when_it_is_open_again(void) {
    char *block = block_of(LARGE);
    lock(MCL_CURRENT | MCL_FUTURE);
    free(block);
    size_t before = act_resident();
    free_others();
    EXPECT(maps_open((uintptr_t)block, (uintptr_t)block + LARGE) == LARGE);
    EXPECT(act_resident() < before + LARGE / 2);
    EXPECT(flagged(block, " lo") == LARGE);
}

static void what_is_forbidden_is_no_data(void) {
    char *block = block_of(LARGE);
    size_t before = act_data();
    free(block);
    EXPECT(act_data() < before - LARGE + MIB);
    free_others();
    EXPECT(act_data() > before - MIB);
}

/* There what is forbidden becomes a fresh mapping. */
static bool overcommit_is_strict(void) {
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
    EXPECT(file);
    int mode = getc(file);
    fclose(file);
    return mode == '2';
}

int main(void) {
    if (overcommit_is_strict()) {
        puts("1..0 # SKIP overcommit is strict");
        return 0;
    }
    static const struct act acts[] = {
        ACT(replaced_blocks_need_few),
        ACT(blocks_of_a_parent_need_few),
        ACT(blocks_that_were_locked_need_few),
        ACT(blocks_that_are_always_locked_need_few),
        ACT(trays_of_a_parent_need_few),
        ACT(dumps_leave_out_what_is_forbidden),
        ACT(what_is_locked_goes_and_is_locked_when_it_is_open_again),
        ACT(what_is_locked_has_no_pages_when_it_is_open_again),
        ACT(what_is_forbidden_is_no_data),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
