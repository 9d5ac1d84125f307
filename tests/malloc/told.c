// SPDX-License-Identifier: Apache-2.0
/*
 * told.c - a program with as many sites as it is told, each with a scope behind it; it says so and
 * waits until its input ends. More words are names of more sites; but with the one word `hold` it
 * has another site, `holder`, of which at each line of its input:
 *
 *     1  a scope is open, with a small block and one of 1 MiB
 *     2  the scope has ended, the blocks are alive
 *     3  the site is gone, the blocks are alive; there is a new one with its name
 *     4  the blocks are freed
 *     5  a scope had a block of 64 MiB, and some after it had 1 MiB each
 *
 * With the one word `plan` it has a site whose scopes have one block of 300 MB at most:
 *
 *     1  such a scope is open, the block written
 *     2  it has ended, and all memory was given back
 *     3  some scopes of three blocks of 100 kB have ended, and another one is open
 *
 * With the one word `fork` it is a child that says so and waits, of a parent that has cleared its
 * environment.
 *
 * With the one word `end` its first thread ends at once, and another one when its input does; what
 * that says is left in a buffer, and "deaf" is added if SIGTERM is blocked while the process ends.
 *
 * For test_view.py.
 */
#include <ebb/ebb.h>

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLANNED 3u

static char *planned[PLANNED];

#ifdef WIDE
__thread char wide[WIDE]; /* all of its threads have it */
#endif

static ebb_site *make_holder(void) {
    return ebb_site_create(EBB_SITE_OPTIONS(.name = "holder", .scope = true));
}

static void wait_for_line(const char *said) {
    int byte;
    puts(said);
    fflush(stdout);
    do
        byte = getchar();
    while (byte != EOF && byte != '\n');
}

static void spend(ebb_site *site, size_t bytes) {
    ebb_step step = ebb_step_begin(site, 0);
    char *block = malloc(bytes);
    memset(block, 1, bytes);
    free(block);
    if (ebb_step_end(step) != 0)
        abort();
}

static void begin_and_write(ebb_site *site, ebb_step *step, unsigned blocks, size_t bytes) {
    *step = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < blocks; i++)
        memset(planned[i] = malloc(bytes), 1, bytes);
}

static void free_and_end(ebb_step step) {
    for (unsigned i = 0; i < PLANNED; i++) {
        free(planned[i]);
        planned[i] = NULL;
    }
    if (ebb_step_end(step) != 0)
        abort();
}

static void plan(void) {
    setvbuf(stdin, NULL, _IONBF, 0);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "planner", .scope = true));
    ebb_step step;
    begin_and_write(site, &step, 1, 300000000);
    wait_for_line("1");
    free_and_end(step);
    malloc_trim(0);
    wait_for_line("2");
    for (unsigned i = 0; i < 3; i++) {
        begin_and_write(site, &step, PLANNED, 100000);
        free_and_end(step);
    }
    begin_and_write(site, &step, PLANNED, 100000);
    wait_for_line("3");
    free_and_end(step);
}

/* A site with a scope behind it. */
static void pass(const char *name) {
    spend(ebb_site_create(EBB_SITE_OPTIONS(.name = name, .scope = true)), 100);
}

static int hold(void) {
    setvbuf(stdin, NULL, _IONBF, 0); /* its buffer would be had in the scope, and outlive it */
    ebb_site *site = make_holder();
    ebb_step step = ebb_step_begin(site, 0);
    char *small = malloc(100), *large = malloc(1 << 20);
    small[0] = large[0] = 1;
    wait_for_line("1");
    if (ebb_step_end(step) != 0)
        return 1;
    wait_for_line("2");
    if (ebb_site_destroy(site) != 0)
        return 1;
    site = make_holder();
    if (ebb_step_end(ebb_step_begin(site, 0)) != 0)
        return 1;
    wait_for_line("3");
    free(small);
    free(large);
    wait_for_line("4");
    spend(site, 64 << 20);
    for (int i = 0; i < 100; i++)
        spend(site, 1 << 20);
    wait_for_line("5");
    return 0;
}

static void *say_it_is_over(void *unused) {
    while (getchar() != EOF)
        continue;
    puts("over");
    return unused;
}

/* Signals are to reach the process while it ends. */
static void say_if_it_is_deaf(void) {
    sigset_t blocked;
    if (pthread_sigmask(SIG_SETMASK, NULL, &blocked) != 0 || sigismember(&blocked, SIGTERM))
        puts("deaf");
}

static void end_by_threads(void) {
    pthread_t thread;
    if (atexit(say_if_it_is_deaf) != 0)
        abort();
    if (pthread_create(&thread, NULL, say_it_is_over, NULL) != 0)
        abort();
    pthread_exit(NULL);
}

/* From here on it is the child. */
static void fork_cleared(void) {
    int status;
    if (clearenv() != 0)
        abort();
    pid_t child = fork();
    if (child > 0 && waitpid(child, &status, 0) == child)
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    if (child != 0)
        abort();
}

int main(int argc, char **argv) {
    int sites = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 0; i < sites; i++) {
        char name[32];
        snprintf(name, sizeof name, "site-%d", i);
        pass(name);
    }
    bool holds = argc > 2 && strcmp(argv[2], "hold") == 0;
    bool plans = argc > 2 && strcmp(argv[2], "plan") == 0;
    bool ends = argc > 2 && strcmp(argv[2], "end") == 0;
    bool forks = argc > 2 && strcmp(argv[2], "fork") == 0;
    if (forks)
        fork_cleared();
    for (int i = 2; i < argc && !holds && !plans && !ends; i++)
        pass(argv[i]);
    puts("ready");
    fflush(stdout);
    if (holds && hold() != 0)
        return 1;
    if (plans)
        plan();
    if (ends)
        end_by_threads();
    while (getchar() != EOF)
        continue;
    return 0;
}
