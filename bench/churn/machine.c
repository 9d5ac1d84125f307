// SPDX-License-Identifier: Apache-2.0
/*
 * machine.c - asks the kernel. What it does not tell stays "unknown"; nothing here can fail.
 */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#if defined __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* The text behind `key` and the separator, on the first line of the file that begins with it. */
static void find_value(const char *path, const char *key, const char *separators, char *value) {
    char line[512];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        char *text = line + strlen(key);
        text += strspn(text, separators);
        text[strcspn(text, "\n\"")] = '\0';
        snprintf(value, MACHINE_WORD_MAX, "%.*s", MACHINE_WORD_MAX - 1, text);
        break;
    }
    if (file)
        fclose(file);
}

/* "L1 32K, L1 32K, L2 1024K, L3 32768K" */
static void describe_caches(char *caches) {
    size_t used = 0;
    for (int i = 0; i < 6; i++) {
        char path[128], level[MACHINE_WORD_MAX] = "", size[MACHINE_WORD_MAX] = "";
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        find_value(path, "", "", level);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        find_value(path, "", "", size);
        if (size[0] && used < MACHINE_WORD_MAX - 32)
            used += (size_t)snprintf(caches + used, MACHINE_WORD_MAX - used, "%sL%.4s %.16s",
                                     used ? ", " : "", level, size);
    }
}

/* "always [madvise] never": the word in brackets. */
static void describe_huge_pages(char *word) {
    char line[MACHINE_WORD_MAX] = "";
    find_value("/sys/kernel/mm/transparent_hugepage/enabled", "", "", line);
    char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
    if (close)
        snprintf(word, MACHINE_WORD_MAX, "%.*s", (int)(close - open - 1), open + 1);
}

void machine_describe(struct machine *machine) {
    struct utsname name;
    time_t now = time(NULL);
    struct tm utc;
    *machine = (struct machine){.cpu = "unknown", .caches = "unknown", .kernel = "unknown",
                                .os = "unknown", .huge_pages = "unknown", .compiler = COMPILER};
    find_value("/proc/cpuinfo", "model name", "\t :", machine->cpu);
    find_value("/etc/os-release", "PRETTY_NAME", "=\"", machine->os);
    describe_caches(machine->caches);
    describe_huge_pages(machine->huge_pages);
    if (uname(&name) == 0)
        snprintf(machine->kernel, sizeof machine->kernel, "%.40s %.60s", name.sysname,
                 name.release);
    if (gmtime_r(&now, &utc))
        strftime(machine->date, sizeof machine->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    machine->cores = sysconf(_SC_NPROCESSORS_ONLN);
    machine->page_bytes = sysconf(_SC_PAGESIZE);
    machine->memory_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)machine->page_bytes;
    if (getloadavg(&machine->load, 1) != 1)
        machine->load = 0;
}
