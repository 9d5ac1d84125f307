// SPDX-License-Identifier: Apache-2.0
/*
 * child.c - see child.h. Processes are forked and executed; what they inherit is the
 * environment without allocator settings, and then the contestant's own.
 */
#include "child.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_allocators(const char *setting) {
    static const char *const beginnings[] = {"LD_PRELOAD=", "GLIBC_TUNABLES=", "MALLOC_",
                                             "MIMALLOC_",   "TCMALLOC_",       "EBB_"};

    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(setting, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static void set_environment(const struct contestant *contestant) {
    char **to = environ;

    for (char **from = environ; *from != NULL; from++)
        if (!is_allocators(*from))
            *to++ = *from;
    *to = NULL;
    if (contestant->preload != NULL)
        setenv("LD_PRELOAD", contestant->preload, 1);
    if (contestant->environment != NULL)
        putenv(strdup(contestant->environment));
}

/* The program that the contestant runs in: this one, or its sibling for ebb. */
static void program_path(const struct contestant *contestant, char *path, size_t room) {
    ssize_t length = readlink("/proc/self/exe", path, room - 1);

    path[length < 0 ? 0 : length] = '\0';
    if (contestant->family == FAMILY_EBB)
        strncat(path, "-ebb", room - strlen(path) - 1);
}

static void become_child(const struct contestant *contestant, const char *case_name, bool quick,
                         const int ask[2], const int answer[2]) {
    char path[4096];

    program_path(contestant, path, sizeof path);
    set_environment(contestant);
    dup2(ask[0], STDIN_FILENO);
    dup2(answer[1], STDOUT_FILENO);
    execl(path, path, "--serve", case_name, contestant->peer, quick ? "quick" : "full",
          (char *)NULL);
    fprintf(stderr, "cannot run %s\n", path);
    _exit(127);
}

static int launch(struct child *child, const struct contestant *contestant,
                  const char *case_name, bool quick) {
    int ask[2];
    int answer[2];

    if (pipe2(ask, O_CLOEXEC) != 0 || pipe2(answer, O_CLOEXEC) != 0)
        return -1;
    child->pid = fork();
    if (child->pid == 0)
        become_child(contestant, case_name, quick, ask, answer);
    close(ask[0]);
    close(answer[1]);
    child->ask = ask[1];
    child->answer = fdopen(answer[0], "r");
    return child->pid > 0 && child->answer != NULL ? 0 : -1;
}

/* The library that must provide malloc; where none is named it is glibc. */
static bool malloc_is_right(const struct contestant *contestant, const char *path) {
    const char *file = strrchr(path, '/');
    const char *wanted = contestant->preload != NULL ? contestant->preload : "libc.so";

    file = file != NULL ? file + 1 : path;
    return strncmp(file, wanted, strlen(wanted)) == 0;
}

/* Reads the first line. *wrong is what is wrong with it, NULL if nothing is. */
static enum child_state greet(const struct child *child, const struct contestant *contestant,
                              const char **wrong) {
    char line[512];

    *wrong = "its process ended at once";
    if (fgets(line, sizeof line, child->answer) == NULL)
        return CHILD_FAILED;
    line[strcspn(line, "\n")] = '\0';
    *wrong = "not built in: its library or compiler was not found";
    if (strcmp(line, "absent") == 0)
        return CHILD_ABSENT;
    *wrong = "its process does not speak the protocol";
    if (strncmp(line, "ready ", 6) != 0)
        return CHILD_FAILED;
    *wrong = "its library was not loaded";
    if (!malloc_is_right(contestant, line + 6))
        return contestant->preload != NULL ? CHILD_ABSENT : CHILD_FAILED;
    *wrong = NULL;
    return CHILD_READY;
}

enum child_state child_start(struct child *child, const struct contestant *contestant,
                             const char *case_name, bool quick) {
    const char *wrong = "no process";
    enum child_state state = CHILD_FAILED;

    memset(child, 0, sizeof *child);
    if (launch(child, contestant, case_name, quick) == 0)
        state = greet(child, contestant, &wrong);
    if (state == CHILD_READY)
        return state;
    fprintf(stderr, "LEFT OUT: %s %s: %s\n", case_name, contestant->name, wrong);
    child_end(child);
    return state;
}

static struct series *series_of(struct child *child, const char *name) {
    for (size_t i = 0; i < child->series_count; i++)
        if (strcmp(child->series[i].name, name) == 0)
            return &child->series[i];
    if (child->series_count == ROUND_FIGURES_MAX)
        abort();
    snprintf(child->series[child->series_count].name, ROUND_NAME_MAX, "%s", name);
    return &child->series[child->series_count++];
}

int child_round(struct child *child, bool discard) {
    char line[512];
    char name[ROUND_NAME_MAX];
    double value;

    if (write(child->ask, "r", 1) != 1)
        return -1;
    while (fgets(line, sizeof line, child->answer) != NULL) {
        if (strcmp(line, "end\n") == 0)
            return 0;
        if (!discard && sscanf(line, "figure %39s %lf", name, &value) == 2) {
            struct series *series = series_of(child, name);

            if (series->count < CHILD_ROUNDS_MAX)
                series->values[series->count++] = value;
        }
    }
    return -1;
}

void child_end(struct child *child) {
    if (child->pid <= 0)
        return;
    close(child->ask);
    if (child->answer != NULL)
        fclose(child->answer);
    waitpid(child->pid, NULL, 0);
    child->pid = 0;
}

const struct series *child_series(const struct child *child, const char *name) {
    for (size_t i = 0; i < child->series_count; i++)
        if (strcmp(child->series[i].name, name) == 0)
            return &child->series[i];
    return NULL;
}
