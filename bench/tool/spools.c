// SPDX-License-Identifier: Apache-2.0
/* spools.c - see spools.h. */
#include "spools.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spool_read.h"

enum { PATH_ROOM = PLACE_MAX + NAME_MAX + 16 };

/* The files of a folder, one after the other. */
struct walk {
    const char *place;
    DIR *folder;
    const char *name;
    char path[PATH_ROOM];
};

static struct walk walk_begin(const char *place) {
    return (struct walk){.place = place, .folder = opendir(place)};
}

/* False at the end, where the walk is over. */
static bool walk_next(struct walk *walk) {
    struct dirent *entry;
    while (walk->folder && (entry = readdir(walk->folder))) {
        if (entry->d_name[0] == '.')
            continue;
        walk->name = entry->d_name;
        snprintf(walk->path, sizeof walk->path, "%s/%s", walk->place, walk->name);
        return true;
    }
    if (walk->folder)
        closedir(walk->folder);
    return false;
}

static void note_unread(struct spools *spools, const char *path) {
    spools->reason = errno;
    snprintf(spools->unread, sizeof spools->unread, "%.*s", PLACE_MAX - 1, path);
}

void spools_weigh(const char *folder, struct spools *spools) {
    struct walk walk = walk_begin(folder);
    uint64_t most = 0;
    *spools = (struct spools){0};
    if (!walk.folder)
        note_unread(spools, folder);
    while (walk_next(&walk)) {
        struct spool_glance glance;
        if (!spool_file_glance(walk.path, &glance)) {
            if (errno != ENOENT)
                note_unread(spools, walk.path);
            continue;
        }
        spools->count += glance.records > 0;
        if (glance.records <= most || strlen(walk.path) >= sizeof spools->heaviest)
            continue;
        most = glance.records;
        strcpy(spools->heaviest, walk.path);
    }
}

void spools_remove(const char *folder) {
    struct walk walk = walk_begin(folder);
    while (walk_next(&walk))
        unlink(walk.path);
    rmdir(folder);
}
