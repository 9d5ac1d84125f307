// SPDX-License-Identifier: Apache-2.0
/* machine.h - the machine that was measured on, in words. */
#ifndef EBB_BENCH_MACHINE_H
#define EBB_BENCH_MACHINE_H

enum { MACHINE_WORD_MAX = 128 };

struct machine {
    char cpu[MACHINE_WORD_MAX], caches[MACHINE_WORD_MAX], kernel[MACHINE_WORD_MAX];
    char os[MACHINE_WORD_MAX], huge_pages[MACHINE_WORD_MAX], date[MACHINE_WORD_MAX];
    const char *compiler;
    long cores, page_bytes;
    double memory_bytes, load; /* load: of the last minute, when the run began */
};

void machine_describe(struct machine *machine);

#endif
