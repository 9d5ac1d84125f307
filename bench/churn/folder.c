// SPDX-License-Identifier: Apache-2.0
/*
 * folder.c - lists trace files; whether they can be read and are sound is not asked here.
 */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int complain(const char *path, const char *reason) {
    fprintf(stderr, "churn: %s: %s\n", path, reason);
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

/* Takes over `name`s of scandir() as full paths. */
static int take_entries(struct folder *folder, const char *path, struct dirent **entry, int count) {
    folder->path = calloc((size_t)count, sizeof *folder->path);
    for (int i = 0; i < count; i++) {
        if (folder->path && asprintf(&folder->path[folder->count], "%s/%s", path,
                                     entry[i]->d_name) > 0)
            folder->count++;
        free(entry[i]);
    }
    free(entry);
    return folder->count == count ? 0 : complain(path, "out of memory");
}

static int take_file(struct folder *folder, const char *path) {
    folder->path = calloc(1, sizeof *folder->path);
    if (!folder->path || !(folder->path[0] = strdup(path)))
        return complain(path, "out of memory");
    folder->count = 1;
    return 0;
}

int folder_list(struct folder *folder, const char *path) {
    struct dirent **entry;
    struct stat what;
    *folder = (struct folder){.count = 0};
    if (stat(path, &what) != 0)
        return complain(path, strerror(errno));
    if (!S_ISDIR(what.st_mode))
        return take_file(folder, path);
    int count = scandir(path, &entry, is_trace, alphasort);
    if (count < 0)
        return complain(path, strerror(errno));
    if (count == 0) {
        free(entry);
        return complain(path, "no *.trace.gz file in this folder");
    }
    return take_entries(folder, path, entry, count);
}

void folder_free(struct folder *folder) {
    for (int i = 0; i < folder->count; i++)
        free(folder->path[i]);
    free(folder->path);
}
