// SPDX-License-Identifier: Apache-2.0
/* smaps.h - which addresses of this process would be in a core dump, as Linux tells. */
#ifndef EBB_TESTS_KIT_SMAPS_H
#define EBB_TESTS_KIT_SMAPS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of [from, to) that a dump would have; SIZE_MAX where this is not told. */
static inline size_t smaps_dumped(uintptr_t from, uintptr_t to) {
    char line[1024];
    uintptr_t start = 0, end = 0;
    size_t bytes = 0;
    bool told = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof line, file)) {
        uintptr_t at, behind;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &at, &behind) == 2)
            start = at, end = behind;
        if (strncmp(line, "VmFlags:", 8) != 0)
            continue;
        uintptr_t first = start > from ? start : from, last = end < to ? end : to;
        told = true;
        if (first < last && !strstr(line, " dd"))
            bytes += last - first;
    }
    if (file)
        fclose(file);
    return told ? bytes : SIZE_MAX;
}

#endif
