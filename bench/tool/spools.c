// SPDX-License-Identifier: Apache-2.0
/*
 * spools.c - see spools.h. A spool is called PID.N: a process that executes another program has
 * another one.
 *
 * It is over when nobody has it mapped any more, which its lock says. Where files have no such
 * locks, or it has no head yet, it is over when its process has ended and been waited for. A child
 * that was forked keeps the mapping and notes nothing, so the end of the process counts in any
 * case.
 *
 * Who notes into a spool that is removed would go on to the limit in a file that nobody sees. So it
 * is stopped first, as the recorder itself would: it looks whether it has been, before it takes
 * more of the file. One that is just being made is removed before it can be stopped; the recorder
 * looks whether it still has a name when it has all of its head.
 */
#include "spools.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool_read.h"

enum { PATH_ROOM = PLACE_MAX + NAME_MAX + 16, REMOVALS = 100 };

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

bool spools_is_name(const char *name) {
    return name[0] >= '0' && name[0] <= '9' && !strstr(name, ".ticks");
}

/* ---- which */

static void note_unread(struct spools *spools, const char *path) {
    spools->reason = errno;
    snprintf(spools->unread, sizeof spools->unread, "%.*s", PLACE_MAX - 1, path);
}

void spools_weigh(const char *folder, struct spools *spools) {
    struct walk walk = walk_begin(folder);
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
        if (glance.records <= spools->most || strlen(walk.path) >= sizeof spools->heaviest)
            continue;
        spools->most = glance.records;
        strcpy(spools->heaviest, walk.path);
    }
}

/* ---- what is over */

/* Of the numbers that processes have for this one; 0: there is no telling. */
static uint32_t own_space(void) {
    static uint32_t space;
    struct stat status;
    if (!space && stat("/proc/self/ns/pid", &status) == 0)
        space = (uint32_t)status.st_ino;
    return space;
}

/* In a space of its own a process has a number that may be another's here. */
static bool has_ended(long process, uint32_t space) {
    return space == own_space() && kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

bool spools_is_over(const char *folder, const char *name) {
    char path[PATH_ROOM];
    struct spool_glance glance;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!spool_file_glance(path, &glance))
        return errno == ENOENT;
    return glance.unlocked || has_ended(strtol(name, NULL, 10), glance.space);
}

/* ---- stopping */

/* As spool_stop() of the recorder. False: it has no head yet. */
static bool stop(int file) {
    struct stat status;
    if (fstat(file, &status) != 0 || (uint64_t)status.st_size < SPOOL_HEAD)
        return false;
    struct spool_head *head = mmap(NULL, SPOOL_STATE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (head == MAP_FAILED)
        return false;
    uint32_t none = SPOOL_GOES_ON;
    if (atomic_compare_exchange_strong(&head->stopped, &none, SPOOL_STOP_END))
        atomic_store(&head->stop_sequence, atomic_load(&head->sequence));
    munmap(head, SPOOL_STATE);
    return true;
}

/* False for a second spool of a process that has executed another program, where no lock says that
 * the first is over. */
static bool is_first(const char *folder, const char *name) {
    struct spool_glance glance, before;
    char other[NAME_MAX + 1], path[PATH_ROOM], *end;
    long process = strtol(name, &end, 10), number = *end ? strtol(end + 1, NULL, 10) : 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    spool_file_glance(path, &glance);
    while (number-- > 0) {
        snprintf(other, sizeof other, "%ld.%ld", process, number);
        snprintf(path, sizeof path, "%s/%s", folder, other);
        if (spool_file_glance(path, &before) && before.space == glance.space &&
            !spools_is_over(folder, other))
            return false;
    }
    return true;
}

/* Weighed first: what is started in between, and becomes the heaviest, would not be stopped. */
void spools_stop(const char *folder, struct spools *spools) {
    spools_weigh(folder, spools);
    struct walk walk = walk_begin(folder);
    while (walk_next(&walk)) {
        if (!spools_is_name(walk.name) || spools_is_over(folder, walk.name))
            continue;
        int file = open(walk.path, O_RDWR | O_CLOEXEC);
        if (file >= 0 && stop(file))
            spools->running += is_first(folder, walk.name);
        if (file >= 0)
            close(file);
    }
}

/* ---- removing */

/* First the name, then the stop: see above. */
static void remove_file(const char *path) {
    int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    unlink(path);
    if (file >= 0) {
        stop(file);
        close(file);
    }
}

static void remove_spool(const char *path) {
    char ticks[PATH_ROOM + 8];
    snprintf(ticks, sizeof ticks, "%s.ticks", path);
    remove_file(path);
    unlink(ticks);
}

/* It may have become the heaviest since they were weighed, and only what is over has its last
 * weight: so that is seen to first. */
static bool may_go(const struct walk *walk, const struct spools *spools,
                   struct spool_glance *glance) {
    return spools_is_name(walk->name) && strcmp(walk->path, spools->heaviest) != 0 &&
           spools_is_over(walk->place, walk->name) && spool_file_glance(walk->path, glance) &&
           glance->records <= spools->most;
}

int spools_thin(const char *folder, int *noted) {
    struct spools spools;
    struct spool_glance glance;
    int removed = 0;
    spools_weigh(folder, &spools);
    struct walk walk = walk_begin(folder);
    while (walk_next(&walk))
        if (may_go(&walk, &spools, &glance)) {
            remove_spool(walk.path);
            removed++;
            *noted += glance.records > 0;
        }
    return removed;
}

void spools_remove(const char *folder) {
    for (int i = 0; i < REMOVALS && rmdir(folder) != 0 && errno == ENOTEMPTY; i++) {
        struct walk walk = walk_begin(folder); /* what still runs may start more */
        while (walk_next(&walk))
            remove_file(walk.path);
    }
}
