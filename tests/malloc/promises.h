// SPDX-License-Identifier: Apache-2.0
/* promises.h - what is promised for a misuse, how one is committed, and whether it was kept. */
#ifndef MALLOC_PROMISES_H
#define MALLOC_PROMISES_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum promise { ENDS, REFUSED, HARMLESS, NOTHING };

static const char *const promised[] = {"ends the process", "refused", "harmless",
                                       "nothing is promised"};

/* The promise, and what names the misuse where the process ends; NULL: no more than that. */
struct outcome {
    enum promise promise;
    const char *message;
};

struct misuse {
    const char *what;
    bool (*commit)(void);
    struct outcome usual, hardened;
    bool is_early; /* before the process has begun any scope */
};

#define BOTH(promise) {promise, NULL}, {promise, NULL}
#define TWICE {ENDS, "double free"}, {ENDS, "double free"}
#define NO_BLOCK {ENDS, "begins no block"}, {ENDS, "no block begins there"}
#define LARGER(bytes) {ENDS, "as " #bytes " bytes"}, {ENDS, "as " #bytes " bytes"}
#define ONLY_USUAL(message) {ENDS, message}, {NOTHING, NULL}
#define ONLY_HARDENED(message) {NOTHING, NULL}, {ENDS, message}

/* By a child that ended so. */
static bool is_kept(struct outcome outcome, int status, const char *said) {
    if (outcome.promise == NOTHING)
        return status != -1;
    if (outcome.promise != ENDS)
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!outcome.message)
        return WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
           strncmp(said, "ebb-malloc: ", 12) == 0 && strstr(said, outcome.message);
}

/* How the child ended, and what it said first. */
static int commit(const struct misuse *misuse, void (*begin)(void), char *said, size_t bytes) {
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        alarm(60);
        dup2(ends[1], STDERR_FILENO);
        if (!misuse->is_early)
            begin();
        _exit(misuse->commit() ? 0 : 1);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t more; (more = read(ends[0], said + got, bytes - 1 - got)) > 0;)
        got += (size_t)more;
    said[got] = 0;
    close(ends[0]);
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

static void write_row(const struct misuse *misuse, char *row, size_t bytes) {
    snprintf(row, bytes, "| %s | %s | %s |", misuse->what, promised[misuse->usual.promise],
             promised[misuse->hardened.promise]);
}

/* What is in a file; nothing, if there is none. */
static const char *read_all(const char *name) {
    static char text[1 << 18];
    FILE *file = fopen(name, "r");
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
    }
    return text;
}

#endif
