// SPDX-License-Identifier: Apache-2.0
/* maps.h - which addresses of this process may be touched, and are counted, as Linux tells. */
#ifndef EBB_TESTS_KIT_MAPS_H
#define EBB_TESTS_KIT_MAPS_H

#include <inttypes.h>
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

/* Bytes of [from, to) that are held against a strict limit on overcommit. */
static inline size_t maps_counted(uintptr_t from, uintptr_t to) {
    char line[1024];
    uintptr_t start, end, first = 0, last = 0;
    size_t bytes = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) == 2) {
            first = start > from ? start : from;
            last = end < to ? end : to;
        } else if (first < last && !strncmp(line, "VmFlags:", 8) && strstr(line, " ac")) {
            bytes += last - first;
        }
    }
    if (file)
        fclose(file);
    return bytes;
}

#endif
