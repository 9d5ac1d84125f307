// SPDX-License-Identifier: Apache-2.0
/* promises.h - what is promised for a misuse, and whether it was kept; the rows that say it. */
#ifndef MALLOC_PROMISES_H
#define MALLOC_PROMISES_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

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
