// SPDX-License-Identifier: Apache-2.0
/*
 * clock.c - see clock.h. Reads /proc with plain descriptors: stdio would allocate inside the very
 * allocator that is being measured.
 */
#include "clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_clock(clockid_t id) {
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_cpu_ns(void) {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clock_wall_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

double clock_wall_cost_ns(void) {
    static double cost;
    double gaps[1001];

    if (cost > 0)
        return cost;
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++) {
        uint64_t before = clock_wall_ns();

        gaps[i] = (double)(clock_wall_ns() - before);
    }
    cost = clock_calm_mean(gaps, sizeof gaps / sizeof gaps[0]);
    return cost;
}

uint64_t clock_faults(void) {
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

/* Reads a small file of /proc as a string; "" if there is none. */
static void read_text(const char *path, char *text, size_t room) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, room - 1);

    text[got < 0 ? 0 : got] = '\0';
    if (file >= 0)
        close(file);
}

uint64_t clock_resident_bytes(void) {
    char text[256];
    char *second;

    read_text("/proc/self/statm", text, sizeof text);
    second = strchr(text, ' ');
    return second == NULL ? 0 : strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t clock_peak_resident_bytes(void) {
    char text[4096];
    char *line;

    read_text("/proc/self/status", text, sizeof text);
    line = strstr(text, "VmHWM:");
    return line == NULL ? 0 : strtoull(line + strlen("VmHWM:"), NULL, 10) * 1024u;
}

static int compare(const void *left, const void *right) {
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

double clock_median(double *values, size_t count) {
    qsort(values, count, sizeof values[0], compare);
    return count % 2 != 0 ? values[count / 2]
                          : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double clock_calm_mean(double *values, size_t count) {
    size_t calm = count - count / 4;
    double sum = 0;

    qsort(values, count, sizeof values[0], compare);
    for (size_t i = 0; i < calm; i++)
        sum += values[i];
    return sum / (double)calm;
}
