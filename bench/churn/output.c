// SPDX-License-Identifier: Apache-2.0
/*
 * output.c - writes beside and renames: on a full disk the file of a run before stays whole.
 *
 * Only what is an ordinary file, or is not there yet, can be renamed over. Pipes, devices, files in
 * memory and the standard output are written straight; so is a file whose folder takes no new ones.
 */
#include "output.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool complain(const char *path, int reason) {
    fprintf(stderr, "churn: %s: %s\n", path, strerror(reason));
    return false;
}

bool output_possible(const char *path) {
    struct stat status;
    bool there = stat(path, &status) == 0;
    if (there && S_ISDIR(status.st_mode))
        return complain(path, EISDIR);
    char *copy = strdup(path);
    int reason = !copy ? ENOMEM : access(there ? path : dirname(copy), W_OK) != 0 ? errno : 0;
    free(copy);
    return reason == 0 || complain(path, reason);
}

static bool is_one(const struct stat *one, const struct stat *other) {
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* What leads to the standard output is written where that stands, behind what was said. */
static bool is_standard_output(const char *path) {
    struct stat status, out;
    return stat(path, &status) == 0 && fstat(STDOUT_FILENO, &out) == 0 && is_one(&status, &out);
}

/* The name to be renamed over, at the end of all links; NULL if there is none. */
static char *name_of(const char *path) {
    struct stat status, named;
    if (stat(path, &status) != 0)
        return lstat(path, &named) != 0 ? strdup(path) : NULL; /* else a link to nothing */
    char *name = realpath(path, NULL);
    if (name && S_ISREG(status.st_mode) && stat(name, &named) == 0 && is_one(&status, &named))
        return name;
    free(name); /* of a file in memory it is made up */
    return NULL;
}

static FILE *open_beside(struct output *output) {
    output->name = name_of(output->path);
    if (!output->name || asprintf(&output->beside, "%s.%d.part", output->name, (int)getpid()) < 0) {
        output->beside = NULL;
        return NULL;
    }
    return fopen(output->beside, "wxe");
}

static void forget(struct output *output) {
    free(output->name);
    free(output->beside);
    output->name = output->beside = NULL;
}

static FILE *open_straight(const char *path) {
    if (!is_standard_output(path))
        return fopen(path, "w");
    fflush(stdout);
    int file = dup(STDOUT_FILENO);
    return file < 0 ? NULL : fdopen(file, "w");
}

bool output_begin(struct output *output, const char *path) {
    *output = (struct output){.path = path};
    if (!is_standard_output(path))
        output->file = open_beside(output);
    if (output->file)
        return true;
    int reason = output->beside ? errno : 0;
    forget(output);
    if (reason == ENOSPC || reason == EDQUOT)
        return complain(path, reason);
    output->file = open_straight(path);
    return output->file || complain(path, errno);
}

/* 0, or why not all of it was written. */
static int close_file(FILE *file) {
    errno = 0;
    bool lost = fflush(file) != 0 || ferror(file);
    int reason = errno;
    if (fclose(file) != 0 && !lost)
        return errno;
    return !lost ? 0 : reason ? reason : EIO;
}

int output_end(struct output *output) {
    int reason = close_file(output->file);
    if (output->beside) {
        if (reason == 0 && rename(output->beside, output->name) != 0)
            reason = errno;
        if (reason)
            unlink(output->beside);
    }
    forget(output);
    if (reason)
        complain(output->path, reason);
    return reason ? -1 : 0;
}
