// SPDX-License-Identifier: Apache-2.0
/*
 * output.c - writes beside and renames: on a full disk the file of a run before stays whole.
 *
 * All goes into memory first, so it can be written in another way where one fails. Only what is an
 * ordinary file of one name, or is not there yet, can be renamed over; it keeps its owner and mode.
 * Pipes, devices, files in memory and the standard output are written straight; so is a file that
 * nothing can be put beside, or over.
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complain.h"

static bool refuse(const char *path, int reason) {
    return complain("%s: %s", path, strerror(reason));
}

/* Of what is not there: why nothing can be put into its folder, or 0. */
static int folder_refuses(const char *path) {
    char *copy = strdup(path);
    int reason = !copy ? ENOMEM : access(dirname(copy), W_OK) != 0 ? errno : 0;
    free(copy);
    return reason;
}

bool output_possible(const char *path) {
    struct stat status;
    bool there = stat(path, &status) == 0;
    int reason = there ? 0 : errno; /* as of a name that is too long */
    if (reason == ENOENT)
        reason = folder_refuses(path);
    else if (there && S_ISDIR(status.st_mode))
        reason = EISDIR;
    else if (there && access(path, W_OK) != 0)
        reason = errno;
    return reason == 0 || refuse(path, reason);
}

/* ---- names ---- */

static bool is_one(const struct stat *one, const struct stat *other) {
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* A file that is not there yet, by its folder; links that lead to nothing are not followed. */
static bool find_place(const char *path, char place[PATH_MAX]) {
    char folder[PATH_MAX], *copy = strdup(path), *name = strdup(path);
    bool found = copy && name && realpath(dirname(copy), folder) &&
                 snprintf(place, PATH_MAX, "%s/%s", folder, basename(name)) < PATH_MAX;
    free(copy);
    free(name);
    return found;
}

bool output_is_one_file(const char *path, const char *other) {
    char place[PATH_MAX], second[PATH_MAX];
    struct stat one, two;
    bool there = stat(path, &one) == 0, other_there = stat(other, &two) == 0;
    if (strcmp(path, other) == 0)
        return true;
    if (there && other_there)
        return S_ISREG(one.st_mode) && is_one(&one, &two);
    return there == other_there && find_place(path, place) && find_place(other, second) &&
           strcmp(place, second) == 0;
}

/* What leads to the standard output is written where that stands, behind what was said. */
static bool is_standard_output(const char *path) {
    struct stat status, out;
    return stat(path, &status) == 0 && fstat(STDOUT_FILENO, &out) == 0 && is_one(&status, &out);
}

/* The name to be renamed over, at the end of all links; NULL if there is none. *before is what is
 * there, or of mode 0. */
static char *name_of(const char *path, struct stat *before) {
    struct stat named;
    *before = (struct stat){.st_mode = 0};
    if (stat(path, before) != 0)
        return lstat(path, &named) != 0 ? strdup(path) : NULL; /* else a link to nothing */
    char *name = realpath(path, NULL);
    if (name && S_ISREG(before->st_mode) && before->st_nlink == 1 && stat(name, &named) == 0 &&
        is_one(before, &named))
        return name;
    free(name); /* of a file in memory it is made up */
    return NULL;
}

/* ---- writing ---- */

/* 0, or why not all of it was written. */
static int put(int file, const struct output *output) {
    for (size_t done = 0; done < output->bytes;) {
        ssize_t written = write(file, output->text + done, output->bytes - done);
        if (written < 0 && errno != EINTR)
            return errno;
        done += written < 0 ? 0 : (size_t)written;
    }
    return 0;
}

static int close_after(int file, int reason) {
    return close(file) != 0 && !reason ? errno : reason;
}

static int put_straight(const struct output *output) {
    bool out = is_standard_output(output->path);
    if (out)
        fflush(stdout);
    int file = out ? dup(STDOUT_FILENO)
                   : open(output->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return file < 0 ? errno : close_after(file, put(file, output));
}

/* Of a name of its own, since one made of the other's could be too long. */
static int open_beside(const char *name, char part[PATH_MAX]) {
    char *copy = strdup(name);
    int bytes = !copy ? PATH_MAX
                      : snprintf(part, PATH_MAX, "%s/.churn.%d.part", dirname(copy), (int)getpid());
    free(copy);
    return bytes < PATH_MAX ? open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
}

static bool takes_after(int file, const struct stat *before) {
    return !before->st_mode || (fchown(file, before->st_uid, before->st_gid) == 0 &&
                                fchmod(file, before->st_mode & 07777) == 0);
}

enum way { DONE, FULL, ELSE };

/* ELSE: it is to be written straight; FULL: there is no room for it, as *reason says. */
static enum way put_beside(const struct output *output, const char *name,
                           const struct stat *before, int *reason) {
    char part[PATH_MAX];
    int file = open_beside(name, part);
    if (file < 0) {
        *reason = errno;
        return *reason == ENOSPC || *reason == EDQUOT ? FULL : ELSE;
    }
    bool alike = takes_after(file, before);
    *reason = close_after(file, alike ? put(file, output) : 0);
    if (alike && !*reason && rename(part, name) == 0)
        return DONE;
    unlink(part);
    return *reason ? FULL : ELSE;
}

static int put_somehow(const struct output *output) {
    struct stat before;
    int reason = 0;
    char *name = is_standard_output(output->path) ? NULL : name_of(output->path, &before);
    enum way way = name ? put_beside(output, name, &before, &reason) : ELSE;
    free(name);
    return way == ELSE ? put_straight(output) : reason;
}

bool output_begin(struct output *output, const char *path) {
    *output = (struct output){.path = path};
    output->file = open_memstream(&output->text, &output->bytes);
    return output->file || refuse(path, errno);
}

int output_end(struct output *output) {
    bool lost = ferror(output->file) != 0;
    int reason = fclose(output->file) != 0 || lost || !output->text ? ENOMEM : 0;
    if (!reason)
        reason = put_somehow(output);
    free(output->text);
    return reason == 0 || refuse(output->path, reason) ? 0 : -1;
}
