// SPDX-License-Identifier: Apache-2.0
/*
 * acts.h - a test is an act in a child of its own, so that it may crash, hang or leave things open.
 *
 * Plain C without a framework: what runs here has malloc() replaced underneath, and nothing else
 * may stand between. An act passes if it returns, within its time; EXPECT() ends it otherwise, and
 * act_skips() where it cannot be played.
 */
#ifndef MALLOC_ACTS_H
#define MALLOC_ACTS_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct act {
    const char *name;
    void (*run)(void);
};

#define ACT(function) {#function, function}
#define ACT_SECONDS 240u   /* it hangs: no machine is so slow */
#define ACT_SKIPPED 77
#define CHILD_SECONDS 100u /* the same of one of its children, if a lock is held there for ever */

#define EXPECT(claim)                                                                              \
    ((claim) ? (void)0 : act_fails(__FILE__, __LINE__, #claim))

static inline void act_fails(const char *file, int line, const char *claim) {
    char text[300];
    int length = snprintf(text, sizeof text, "# %s:%d: %s\n", file, line, claim);
    if (length > 0)
        (void)!write(STDOUT_FILENO, text, (size_t)length);
    _exit(1);
}

/* This system does not do what the act is about, as errno says. */
static inline void act_skips(const char *why) {
    printf("# %s: %s\n", why, strerror(errno));
    fflush(stdout);
    _exit(ACT_SKIPPED);
}

/* Rounds of what takes ten times as long where forks and page faults are dear: `most` of them, or
 * what four seconds allow, eight at least. Each thread has its own. */
static inline bool act_goes_on(unsigned round, unsigned most) {
    static _Thread_local struct timespec begin;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (round == 0)
        begin = now;
    return round < most && (round < 8 || now.tv_sec - begin.tv_sec < 4);
}

/* A child that ends well. */
static inline void act_await(pid_t child) {
    int status = 0;
    char text[40];
    EXPECT(child > 0);
    EXPECT(waitpid(child, &status, 0) == child);
    snprintf(text, sizeof text, "a child: signal %d", WTERMSIG(status));
    if (WIFSIGNALED(status))
        act_fails(__FILE__, __LINE__, text);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A number of /proc/self/statm, which are pages, in bytes: the first is 0. */
static inline size_t act_statm(unsigned which) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file);
    for (unsigned i = 0; i <= which; i++)
        EXPECT(fscanf(file, "%zu", &pages) == 1);
    fclose(file);
    return pages * 4096;
}

/* Bytes of this process that are in memory now. The system is made to look for them, where it can;
 * what it counts may be off by many pages for each processor (Linux 6.2 to 6.16). */
static inline size_t act_resident(void) {
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    if (!file)
        return act_statm(1);
    while (kib == 0 && fgets(line, sizeof line, file))
        (void)sscanf(line, "Rss: %zu kB", &kib);
    fclose(file);
    EXPECT(kib > 0);
    return kib * 1024;
}

/* Bytes of this process that RLIMIT_DATA is about, or some more: stacks. */
static inline size_t act_data(void) {
    return act_statm(5);
}

/* Mappings of this process. */
static inline unsigned act_mappings(void) {
    unsigned lines = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    EXPECT(file);
    for (int c; (c = getc(file)) != EOF;)
        lines += c == '\n';
    fclose(file);
    return lines;
}

/* Where EBB_ACTS is N the first act is played and one of N, others with each seed of a run: of a
 * program that is played as a whole elsewhere. */
static inline bool act_is_drawn(unsigned which) {
    const char *share = getenv("EBB_ACTS"), *seed = getenv("EBB_FRESH_SEED");
    unsigned long one_of = share ? strtoul(share, NULL, 10) : 1;
    return which == 0 || one_of < 2 || (which + strtoul(seed ? seed : "0", NULL, 10)) % one_of == 0;
}

/* TAP; how many failed. */
static inline int act_all(const struct act *acts, unsigned count) {
    int failed = 0;
    unsigned drawn = 0, played = 0;
    for (unsigned i = 0; i < count; i++)
        drawn += act_is_drawn(i);
    printf("1..%u\n", drawn);
    for (unsigned i = 0; i < count; i++) {
        int status = 0;
        if (!act_is_drawn(i))
            continue;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            alarm(ACT_SECONDS);
            acts[i].run();
            exit(0); /* what is registered for the end runs too */
        }
        bool ends = child > 0 && waitpid(child, &status, 0) == child;
        int code = ends && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        bool well = code == 0 || code == ACT_SKIPPED;
        failed += !well;
        printf("%sok %u - %s%s\n", well ? "" : "not ", ++played, acts[i].name,
               code == ACT_SKIPPED ? " # SKIP" : "");
        if (ends && WIFSIGNALED(status))
            printf("# signal %d\n", WTERMSIG(status));
    }
    return failed;
}

#endif
