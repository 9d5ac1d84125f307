// SPDX-License-Identifier: Apache-2.0
/*
 * output.c - see output.h. What had the name before is whole until the new file is: on a full disk
 * it stays, and it may be what the new file is made of.
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complain.h"

bool output_allowed(const char *path) {
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return complain("%s: is there already, and no ordinary file", path);
    return true;
}

/* Where a link leads, so that it goes on leading there. */
static const char *end_of_links(const char *path, char whole[PATH_MAX]) {
    return realpath(path, whole) ? whole : path;
}

/* The file beside, empty. What else has that name stays as it is: nothing is written through a link
 * or to a pipe. */
static gzFile open_beside(const char *path) {
    struct stat status;
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (file < 0)
        return NULL;
    errno = EEXIST;
    bool empty = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
                 ftruncate(file, 0) == 0;
    gzFile opened = empty ? gzdopen(file, "wb6") : NULL;
    int reason = errno;
    if (!opened)
        close(file);
    errno = reason;
    return opened;
}

/* The folder part of a path. */
static void folder_of(const char *path, char folder[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        strcpy(folder, ".");
    else
        snprintf(folder, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

bool output_possible(const char *path) {
    char whole[PATH_MAX], folder[PATH_MAX];
    struct stat status;
    bool there = stat(path, &status) == 0;
    if (there && S_ISDIR(status.st_mode))
        return complain("%s: %s", path, strerror(EISDIR));
    folder_of(end_of_links(path, whole), folder);
    if (access(there && !S_ISREG(status.st_mode) ? path : folder, W_OK) == 0)
        return true;
    return complain("%s: %s", path, strerror(errno));
}

bool output_begin(struct output *output, const char *path) {
    char whole[PATH_MAX];
    output->file = NULL;
    output->beside[0] = '\0';
    path = end_of_links(path, whole);
    if ((size_t)snprintf(output->path, sizeof output->path, "%s", path) >= sizeof output->path ||
        (size_t)snprintf(output->beside, sizeof output->beside, "%s.part", path) >=
            sizeof output->beside) {
        output->beside[0] = '\0';
        return complain("%s: too long a name", path);
    }
    output->file = open_beside(output->beside);
    if (output->file) {
        gzbuffer(output->file, 1 << 18);
        return true;
    }
    complain("%s: %s", output->beside, strerror(errno));
    output->beside[0] = '\0';
    return false;
}

bool output_close(struct output *output) {
    int code = Z_OK;
    errno = 0;
    gzerror(output->file, &code);
    int closed = gzclose(output->file);
    output->file = NULL;
    if (closed == Z_OK && code == Z_OK)
        return true;
    complain("%s: cannot be written: %s", output->path, strerror(errno ? errno : ENOSPC));
    output_drop(output);
    return false;
}

bool output_name(struct output *output) {
    if (rename(output->beside, output->path) == 0) {
        output->beside[0] = '\0';
        return true;
    }
    complain("%s: %s", output->path, strerror(errno));
    output_drop(output);
    return false;
}

void output_drop(struct output *output) {
    if (output->file)
        gzclose(output->file);
    output->file = NULL;
    if (output->beside[0])
        unlink(output->beside);
    output->beside[0] = '\0';
}
