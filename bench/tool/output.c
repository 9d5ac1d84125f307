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
#include <sys/file.h>
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

static int refuse(int file, int reason) {
    close(file);
    errno = reason;
    return -1;
}

/* Whether the name still leads to the file: another writer may have renamed it since. */
static bool is_named(int file, const char *path, struct stat *status) {
    struct stat named;
    return fstat(file, status) == 0 && lstat(path, &named) == 0 && named.st_ino == status->st_ino &&
           named.st_dev == status->st_dev;
}

/* The file beside, empty, and locked for this process; -1 with errno, EWOULDBLOCK where another
 * writes it. What else has that name stays as it is: nothing is written through a link or to a
 * pipe. */
static int open_beside(const char *path) {
    struct stat status;
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (file < 0)
        return -1;
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return refuse(file, EWOULDBLOCK); /* else this file system has no locks */
    if (!is_named(file, path, &status))
        return refuse(file, EWOULDBLOCK);
    if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
        return refuse(file, EEXIST);
    return ftruncate(file, 0) == 0 ? file : refuse(file, errno);
}

/* Opens what is compressed; `lock` holds the file until it has its name. */
static bool open_both(struct output *output) {
    int file = open_beside(output->beside);
    output->lock = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 0);
    output->file = output->lock < 0 ? NULL : gzdopen(file, "wb6");
    if (output->file)
        return true;
    complain("%s: %s", output->beside,
             errno == EWOULDBLOCK ? "another process is writing it" : strerror(errno));
    if (output->lock >= 0)
        close(output->lock);
    if (file >= 0)
        close(file);
    return false;
}

/* The file has its name, or is gone: the next writer may begin. */
static void unlock(struct output *output) {
    output->beside[0] = '\0';
    close(output->lock);
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

bool output_is(const char *path, const char *input) {
    struct stat one, other;
    return stat(path, &one) == 0 && stat(input, &other) == 0 && S_ISREG(one.st_mode) &&
           one.st_ino == other.st_ino && one.st_dev == other.st_dev;
}

bool output_apart(const char *path, const char *input) {
    return !output_is(path, input) || complain("%s: is what is to be read: %s", path, input);
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
    if (!open_both(output)) {
        output->beside[0] = '\0';
        return false;
    }
    gzbuffer(output->file, 1 << 18);
    return true;
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
        unlock(output);
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
    if (output->beside[0]) {
        unlink(output->beside);
        unlock(output);
    }
}
