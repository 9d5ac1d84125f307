// SPDX-License-Identifier: Apache-2.0
/*
 * resident.c - reads /proc/self with plain system calls and a buffer on the stack.
 *
 * The numbers are of the whole process: program, libraries, script and all.
 */
#include "resident.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 4096 };

static void read_text(const char *path, char text[TEXT_MAX]) {
    ssize_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = read(fd, text, TEXT_MAX - 1);
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
}

uint64_t resident_now(void) {
    char text[TEXT_MAX];
    read_text("/proc/self/statm", text);
    const char *second = strchr(text, ' ');
    return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t resident_peak(void) {
    char text[TEXT_MAX];
    read_text("/proc/self/status", text);
    const char *line = strstr(text, "VmHWM:");
    return line ? strtoull(line + strlen("VmHWM:"), NULL, 10) * 1024 : 0;
}
