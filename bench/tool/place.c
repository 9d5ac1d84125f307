// SPDX-License-Identifier: Apache-2.0
/*
 * place.c - see place.h. Everything is found from where the running program lies, so that an
 * installation can be moved: EBB_TO_*DIR lead from the folder of the installed program to the other
 * folders of the build's settings. They are full paths where one of the two lies outside of the
 * prefix.
 */
#include "place.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "complain.h"

struct candidates {
    const char *built, *installed; /* from the folder of this program, or full */
};

static const struct candidates known[] = {
    [PLACE_RECORDER] = {"../record/libebb-record.so", EBB_TO_LIBDIR "/libebb-record.so"},
    [PLACE_PYTHON] = {"../record/sitecustomize.py", EBB_TO_DATADIR "/ebb/record/sitecustomize.py"},
    [PLACE_CHURN] = {"../churn/churn", EBB_TO_LIBEXECDIR "/ebb/churn"},
    [PLACE_BUDGET] = {"../budget/budget", EBB_TO_LIBEXECDIR "/ebb/budget"},
    [PLACE_REPORT] = {"../report/program.py", EBB_TO_DATADIR "/ebb/report/program.py"},
};

static bool own_folder(char *path) {
    ssize_t length = readlink("/proc/self/exe", path, PLACE_MAX - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    return true;
}

static bool is_at(const char *folder, const char *way, char *path) {
    int length = *way == '/' ? snprintf(path, PLACE_MAX, "%s", way)
                             : snprintf(path, PLACE_MAX, "%s/%s", folder, way);
    return length < PLACE_MAX && access(path, R_OK) == 0;
}

bool place_find(enum place place, char path[PLACE_MAX]) {
    char folder[PLACE_MAX];
    if (!own_folder(folder))
        return complain("/proc/self/exe cannot be read");
    if (is_at(folder, known[place].built, path) || is_at(folder, known[place].installed, path))
        return true;
    return complain("a part of ebb is missing: neither %s nor %s, from %s", known[place].built,
                    known[place].installed, folder);
}
