// SPDX-License-Identifier: Apache-2.0
/*
 * folder.c - lists trace files; whether they can be read and are sound is not asked here.
 *
 * Of a folder only ordinary files are taken, and what cannot be looked at, which its reader will
 * name: a pipe that nobody writes to would be waited for. A single path may lead to anything.
 */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "complain.h"

static int refuse(const char *path, const char *reason) {
    complain("%s: %s", path, reason);
    return -1;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

static int is_trace(const struct dirent *entry) {
    return entry->d_name[0] != '.' &&
           (ends_with(entry->d_name, ".trace.gz") || ends_with(entry->d_name, ".trace"));
}

static bool may_be_ordinary(const char *path) {
    struct stat what;
    return stat(path, &what) != 0 || S_ISREG(what.st_mode);
}

/* Takes over the full path, or leaves it out after a message. -1: no memory. */
static int take_entry(struct folder *folder, const char *path, const char *name) {
    char *full = NULL;
    if (asprintf(&full, "%s/%s", path, name) < 0)
        return -1;
    if (may_be_ordinary(full)) {
        folder->path[folder->count++] = full;
        return 0;
    }
    refuse(full, "no ordinary file: left out");
    free(full);
    return 0;
}

/* Takes over the entries of scandir(). */
static int take_entries(struct folder *folder, const char *path, struct dirent **entry, int count) {
    folder->path = calloc((size_t)count, sizeof *folder->path);
    int result = folder->path ? 0 : -1;
    for (int i = 0; i < count; i++) {
        if (result == 0)
            result = take_entry(folder, path, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return result == 0 ? 0 : refuse(path, "out of memory");
}

static int take_file(struct folder *folder, const char *path) {
    folder->path = calloc(1, sizeof *folder->path);
    if (!folder->path || !(folder->path[0] = strdup(path)))
        return refuse(path, "out of memory");
    folder->count = 1;
    return 0;
}

int folder_list(struct folder *folder, const char *path) {
    struct dirent **entry;
    struct stat what;
    *folder = (struct folder){.count = 0};
    if (stat(path, &what) != 0)
        return refuse(path, strerror(errno));
    if (!S_ISDIR(what.st_mode))
        return take_file(folder, path);
    int count = scandir(path, &entry, is_trace, alphasort);
    if (count < 0)
        return refuse(path, strerror(errno));
    int result = count ? take_entries(folder, path, entry, count) : 0;
    if (count == 0)
        free(entry);
    if (result == 0 && folder->count == 0)
        result = refuse(path, "no *.trace.gz file in this folder");
    if (result != 0)
        folder_free(folder);
    return result;
}

void folder_free(struct folder *folder) {
    for (int i = 0; i < folder->count; i++)
        free(folder->path[i]);
    free(folder->path);
}
