// SPDX-License-Identifier: Apache-2.0
/*
 * os.c - the real table: Linux.
 *
 * Reservations are private, anonymous and not counted against overcommit; pages come into being
 * when first touched. Refuses nothing itself: failures are passed on.
 */
#include "base/os.h"
#include "base/size.h"

#include <sys/mman.h>
#include <time.h>

static void *reserve(size_t bytes) {
    void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return addr == MAP_FAILED ? NULL : addr;
}

static int give_back(void *addr, size_t bytes) {
    return madvise(addr, bytes, MADV_DONTNEED);
}

static int forbid(void *addr, size_t bytes) {
    return mprotect(addr, bytes, PROT_NONE);
}

static size_t resident(void *addr, size_t bytes) {
    unsigned char in_core[1024];
    size_t total = 0;
    for (size_t done = 0; done < bytes; done += sizeof in_core * EBB_PAGE) {
        size_t part = size_smaller(bytes - done, sizeof in_core * EBB_PAGE);
        if (mincore((char *)addr + done, part, in_core) != 0)
            return total;
        for (size_t page = 0; page < part / EBB_PAGE; page++)
            total += (in_core[page] & 1) * EBB_PAGE;
    }
    return total;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool allow(enum os_acquisition what) {
    (void)what;
    return true;
}

struct os_table os = {reserve, give_back, forbid, resident, now_ns, allow};
