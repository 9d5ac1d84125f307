// SPDX-License-Identifier: Apache-2.0
/* maps.h - which addresses of this process may be touched, are counted, or dumped, by Linux. */
#ifndef EBB_TESTS_KIT_MAPS_H
#define EBB_TESTS_KIT_MAPS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of [from, to) that are not closed. */
static inline size_t maps_open(uintptr_t from, uintptr_t to) {
    char line[1024], access[5];
    size_t bytes = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file)) {
        uintptr_t start, end;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &start, &end, access) != 3)
            continue;
        uintptr_t first = start > from ? start : from, last = end < to ? end : to;
        if (first < last && strncmp(access, "---", 3) != 0)
            bytes += last - first;
    }
    if (file)
        fclose(file);
    return bytes;
}

/* Bytes of [from, to) with that flag, such as " ac", if it is to be there, else without it. */
static inline size_t maps_flagged(uintptr_t from, uintptr_t to, const char *flag, bool is_there) {
    char line[1024];
    uintptr_t start, end, first = 0, last = 0;
    size_t bytes = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) == 2) {
            first = start > from ? start : from;
            last = end < to ? end : to;
        } else if (first < last && !strncmp(line, "VmFlags:", 8) &&
                   (strstr(line, flag) != NULL) == is_there) {
            bytes += last - first;
        }
    }
    if (file)
        fclose(file);
    return bytes;
}

/* Those that are held against a strict limit on overcommit. */
static inline size_t maps_counted(uintptr_t from, uintptr_t to) {
    return maps_flagged(from, to, " ac", true);
}

/* Those that a debugger has in its core dumps. */
static inline size_t maps_dumped(uintptr_t from, uintptr_t to) {
    return maps_flagged(from, to, " dd", false);
}

#endif
