// SPDX-License-Identifier: Apache-2.0
/*
 * dying.c - the hardened library ends the process, whose handler of SIGABRT allocates and frees, as
 * those that report crashes do: no lock is held then.
 */
#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <signal.h>
#include <stdint.h>

enum { BYTES = 100, HELD = 100000, SECONDS = 20 };

static ebb_site *site;

static void report(int signal_number) {
    for (int i = 0; i < HELD; i++) /* what waits is looked through */
        free(malloc(BYTES));
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void written_late_in_a_scope(char *block, ebb_step step) {
    free(block);
    block[3] = 1;
    (void)ebb_step_end(step);
}

static void written_before_in_a_scope(char *block, ebb_step step) {
    free(block);
    block[-3] ^= 1;
    (void)ebb_step_end(step);
}

/* The head of its place. Nothing looks at it before the survivor has gone. */
static void written_far_before_in_a_scope(char *survivor, ebb_step step) {
    char *block = malloc(BYTES);
    (void)ebb_step_end(step);
    free(block);
    memset(block - 24, 0x55, 8);
    free(survivor);
    step = ebb_step_begin(site, 0);
    (void)ebb_step_end(step);
}

static void written_late(char *block, ebb_step step) {
    (void)step;
    free(block);
    block[3] = 1;
    for (int i = 0; i < HELD; i++)
        free(malloc(BYTES));
}

static void freed_twice(char *block, ebb_step step) {
    (void)step;
    free(block);
    free(block);
}

static void written_above(char *block, ebb_step step) {
    (void)step;
    block[BYTES] ^= 1;
    free(block);
}

static void freed_in_the_first_page(char *block, ebb_step step) {
    (void)block, (void)step;
    free((void *)(uintptr_t)16);
}

static void freed_in_the_second_page(char *block, ebb_step step) {
    (void)block, (void)step;
    free((void *)(uintptr_t)0x1000);
}

static void freed_below_the_program(char *block, ebb_step step) {
    (void)block, (void)step;
    free((void *)(uintptr_t)0x123450);
}

static void freed_beyond_all_addresses(char *block, ebb_step step) {
    (void)block, (void)step;
    free((void *)(uintptr_t)0xdeadbeefdeadbee0);
}

/* The process ends by SIGABRT, and in time. */
static void dies(void (*crime)(char *, ebb_step), bool in_scope) {
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        site = ebb_site_create(EBB_SITE_OPTIONS(.name = "last", .scope = true));
        EXPECT(site && freopen("/dev/null", "w", stderr));
        ebb_step step = {.lane = NULL};
        if (in_scope)
            step = ebb_step_begin(site, 0);
        char *block = malloc(BYTES);
        EXPECT(block);
        signal(SIGABRT, report);
        alarm(SECONDS);
        crime(block, step);
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void what_a_scope_finds_at_its_end(void) {
    dies(written_late_in_a_scope, true);
    dies(written_before_in_a_scope, true);
    dies(written_far_before_in_a_scope, true);
}

static void what_is_found_at_once_or_later(void) {
    for (int in_scope = 0; in_scope < 2; in_scope++) {
        dies(freed_twice, in_scope);
        dies(written_above, in_scope);
        dies(written_late, in_scope);
    }
}

static void what_is_nowhere(void) {
    for (int in_scope = 0; in_scope < 2; in_scope++) {
        dies(freed_in_the_first_page, in_scope);
        dies(freed_in_the_second_page, in_scope);
        dies(freed_below_the_program, in_scope);
        dies(freed_beyond_all_addresses, in_scope);
    }
}

int main(void) {
    static const struct act acts[] = {
        ACT(what_a_scope_finds_at_its_end),
        ACT(what_is_found_at_once_or_later),
        ACT(what_is_nowhere),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
