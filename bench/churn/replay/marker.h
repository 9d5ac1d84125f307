// SPDX-License-Identifier: Apache-2.0
/*
 * marker.h - system calls that tell a tracer where steps begin and end.
 *
 * A call of getppid with arguments, which the kernel ignores and the tracer sees.
 */
#ifndef EBB_BENCH_MARKER_H
#define EBB_BENCH_MARKER_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MARKER_MAGIC = 0x656262, MARKER_BEGIN = 1, MARKER_END = 2 };

static inline void marker_send(int which, uint32_t pass, uint32_t step) {
    syscall(SYS_getppid, (long)MARKER_MAGIC, (long)which, (long)pass, (long)step);
}

#endif
