// SPDX-License-Identifier: Apache-2.0
/*
 * allocator.c - the table of peers.
 *
 * Each is what Debian ships, preloaded. The tuned variants give nothing back to the system:
 *
 *   glibc-tuned     no block gets a mapping of its own (mmap_max 0), the top is never trimmed and
 *                   grows by 64 MiB at a time
 *   jemalloc-tuned  no decay, and large blocks are cached like all others (oversize_threshold 0)
 *
 * ebb-unplanned is ebb without what its sites learn from step to step.
 *
 * tcmalloc is gperftools' minimal library: the same allocator without the profiler.
 */
#include "allocator.h"

#include <ebb/base.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

const struct allocator allocators[] = {
    {"ebb", "ebb-heap.so", NULL, NULL, NULL},
    {"ebb-unplanned", "ebb-heap.so", NULL, "EBB_BENCH_PLANS", "no"},
    {"glibc", NULL, "libc6", NULL, NULL},
    {"glibc-tuned", NULL, "libc6", "GLIBC_TUNABLES",
     "glibc.malloc.mmap_max=0:glibc.malloc.mmap_threshold=33554432:"
     "glibc.malloc.trim_threshold=9223372036854775807:glibc.malloc.top_pad=67108864"},
    {"jemalloc", "libjemalloc.so.2", "libjemalloc2", NULL, NULL},
    {"jemalloc-tuned", "libjemalloc.so.2", "libjemalloc2", "MALLOC_CONF",
     "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0"},
    {"mimalloc", "libmimalloc.so.2.0", "libmimalloc2.0", NULL, NULL},
    {"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4", NULL, NULL},
};

const int allocator_count = sizeof allocators / sizeof *allocators;

int allocator_find(const char *name, int length) {
    for (int i = 0; i < allocator_count; i++)
        if ((int)strlen(allocators[i].name) == length &&
            strncmp(allocators[i].name, name, (size_t)length) == 0)
            return i;
    return -1;
}

bool allocator_own_folder(char path[ALLOCATOR_PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", path, ALLOCATOR_PATH_MAX - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    return true;
}

static bool is_in(const char *folder, const char *library, char path[ALLOCATOR_PATH_MAX]) {
    int length = snprintf(path, ALLOCATOR_PATH_MAX, "%s/%s", folder, library);
    return length < ALLOCATOR_PATH_MAX && access(path, R_OK) == 0;
}

/* Debian's folder for this machine's libraries, then the common ones. */
static bool is_installed(const char *library, char path[ALLOCATOR_PATH_MAX]) {
    static const char *const folders[] = {"/usr/lib64", "/usr/lib", "/usr/local/lib"};
    char folder[ALLOCATOR_PATH_MAX];
    struct utsname machine;
    if (uname(&machine) == 0) {
        snprintf(folder, sizeof folder, "/usr/lib/%.64s-linux-gnu", machine.machine);
        if (is_in(folder, library, path))
            return true;
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (is_in(folders[i], library, path))
            return true;
    return false;
}

bool allocator_path(const struct allocator *allocator, char path[ALLOCATOR_PATH_MAX]) {
    char folder[ALLOCATOR_PATH_MAX];
    path[0] = '\0';
    if (!allocator->library)
        return true;
    if (allocator->package)
        return is_installed(allocator->library, path);
    return allocator_own_folder(folder) && is_in(folder, allocator->library, path);
}

static void ask_package_manager(const char *package, char version[ALLOCATOR_VERSION_MAX]) {
    char command[256], line[ALLOCATOR_VERSION_MAX];
    snprintf(command, sizeof command, "dpkg-query -W -f='${Version}' %s 2>/dev/null", package);
    FILE *answer = popen(command, "r");
    if (!answer)
        return;
    if (fgets(line, sizeof line, answer))
        snprintf(version, ALLOCATOR_VERSION_MAX, "%s", line);
    pclose(answer);
}

void allocator_version(const struct allocator *allocator, char version[ALLOCATOR_VERSION_MAX]) {
    snprintf(version, ALLOCATOR_VERSION_MAX, "unknown");
    if (allocator->package)
        ask_package_manager(allocator->package, version);
    else
        snprintf(version, ALLOCATOR_VERSION_MAX, "%d.%d.%d", EBB_VERSION_MAJOR, EBB_VERSION_MINOR,
                 EBB_VERSION_PATCH);
}
