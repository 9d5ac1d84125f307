// SPDX-License-Identifier: Apache-2.0
/*
 * under_limits.c - what the hardened library forbids, and opens again, in a process that may open
 * no files, or give no pages back, and in one that may have little data (RLIMIT_DATA). There the
 * system refuses to open what was forbidden, and nothing may get lost by it.
 */
#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { HELD = 4096, KIB = 1024, MIB = 1 << 20 };

/* ---- no files ---- */

/* From now on that becomes of the call. */
static void filter(unsigned call, unsigned action) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        act_skips("no filter of system calls");
}

static void free_opens_no_file(void) {
    char *block = malloc(100 * KIB);
    EXPECT(block);
    memset(block, 1, 100 * KIB);
    filter(SYS_openat, SECCOMP_RET_KILL_PROCESS);
    free(block);
    for (unsigned i = 0; i < HELD + 1; i++)
        free(malloc(20 * KIB));
}

/* ---- no pages go back ---- */

/* No page can be taken from what is held back: it is filled, and there is as little of it. */
static void what_cannot_go_back_is_not_forbidden(void) {
    enum { ROUNDS = 300 };
    free(malloc(MIB));
    filter(SYS_madvise, SECCOMP_RET_ERRNO | EPERM);
    size_t before = act_resident();
    for (unsigned i = 0; i < ROUNDS; i++) {
        char *block = malloc(MIB);
        EXPECT(block);
        memset(block, 1, MIB);
        free(block);
    }
    EXPECT(act_resident() - before < (size_t)100 * MIB);
}

/* ---- little data ---- */

enum { BLOCKS = 200000, PAIRS = 4000, LARGE = MIB - 4 * KIB, SMALL = 10000, NO_PAGE = 4000 };

static char *blocks[BLOCKS];

/* Until there are none. */
static unsigned allocate(size_t bytes) {
    unsigned count = 0;
    while (count < BLOCKS && (blocks[count] = malloc(bytes)))
        blocks[count++][0] = 1;
    EXPECT(count < BLOCKS);
    return count;
}

static void free_first(unsigned count) {
    for (unsigned i = 0; i < count; i++)
        free(blocks[i]);
}

static void limit_data(size_t bytes) {
    struct rlimit limit = {bytes, bytes};
    EXPECT(setrlimit(RLIMIT_DATA, &limit) == 0);
}

static void hold_back(size_t bytes, unsigned pairs) {
    for (unsigned i = 0; i < pairs; i++)
        free(malloc(bytes));
}

/* What fills the process is smaller than what is held back, so that this cannot be opened. */
static void what_cannot_be_opened_is_not_used(void) {
    limit_data(400 * MIB);
    hold_back(LARGE, PAIRS);
    unsigned count = allocate(SMALL);
    EXPECT(count > 1000);
    free_first(count);
    struct mallinfo2 info = mallinfo2();
    EXPECT(info.uordblks < 2 * MIB);
    EXPECT(info.arena < 400 * MIB);
}

static void what_can_leave_does_though_the_oldest_cannot(void) {
    hold_back(300 * MIB, 1);
    limit_data(act_data() + 64 * MIB);
    EXPECT(allocate(NO_PAGE) > HELD);
    free_first(HELD - 1);
    EXPECT(allocate(NO_PAGE) > HELD / 2);
}

enum { SCOPED = 5000 };

/* Nothing of them goes back, and what was forbidden for that moment is not opened again. */
static void what_is_above_the_limit_is_freed_though_no_page_goes_back(void) {
    enum { COUNT = 20, BYTES = 100 * KIB };
    for (unsigned i = 0; i < COUNT; i++) {
        EXPECT(blocks[i] = malloc(BYTES));
        memset(blocks[i], 1, BYTES);
    }
    filter(SYS_madvise, SECCOMP_RET_ERRNO | EPERM);
    limit_data(1); /* 0 is taken for none */
    free_first(COUNT);
}

/* Small blocks of a scope: they were not held back before they leave. */
static void what_finds_no_place_leaves_unharmed(void) {
    hold_back(MIB, 1);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "limits", .scope = true));
    ebb_step step = ebb_step_begin(site, 0);
    EXPECT(ebb_region_is_open(step.region));
    for (unsigned i = 0; i < SCOPED; i++)
        EXPECT(blocks[i] = malloc(100));
    struct rlimit least = {1, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_DATA, &least) == 0); /* 0 is taken for none */
    free_first(SCOPED);
    EXPECT(setrlimit(RLIMIT_DATA, &all) == 0);
    EXPECT(ebb_step_end(step) == 0);
    EXPECT(ebb_site_destroy(site) == 0);
}

enum { TRAYS = 6000, TRAY_BLOCKS = 7, TRAY_BLOCK = 8000 }; /* more than can wait, at the end */

static void use_trays(void) {
    static char *small[TRAYS * TRAY_BLOCKS];
    for (unsigned i = 0; i < TRAYS * TRAY_BLOCKS; i++)
        EXPECT(small[i] = malloc(TRAY_BLOCK));
    for (unsigned i = 0; i < TRAYS * TRAY_BLOCKS; i++)
        free(small[i]);
}

/* A scope's chunks of small blocks; none of them can be opened for another to wait in its place. */
static void chunks_that_cannot_be_opened_are_not_used(void) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "limits", .scope = true));
    ebb_step step = ebb_step_begin(site, 0);
    EXPECT(ebb_region_is_open(step.region));
    use_trays();
    struct rlimit least = {1, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_DATA, &least) == 0); /* 0 is taken for none */
    EXPECT(ebb_step_end(step) == 0);
    EXPECT(setrlimit(RLIMIT_DATA, &all) == 0);
    struct mallinfo2 info = mallinfo2();
    printf("# %zu of %zu bytes\n", info.uordblks, info.arena);
    fflush(stdout);
    EXPECT(info.uordblks < 4 * MIB);
    EXPECT(info.arena < 16 * MIB);
    EXPECT(ebb_site_destroy(site) == 0);
}

int main(void) {
    static const struct act acts[] = {
        ACT(free_opens_no_file),
        ACT(what_cannot_go_back_is_not_forbidden),
        ACT(what_cannot_be_opened_is_not_used),
        ACT(what_can_leave_does_though_the_oldest_cannot),
        ACT(what_is_above_the_limit_is_freed_though_no_page_goes_back),
        ACT(what_finds_no_place_leaves_unharmed),
        ACT(chunks_that_cannot_be_opened_are_not_used),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
