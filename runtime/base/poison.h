// SPDX-License-Identifier: Apache-2.0
/*
 * poison.h - the only file that names a sanitizer.
 *
 * Under AddressSanitizer and in checked builds the inline paths are shut, so every block passes
 * through here: memory that belongs to no block is unaddressable to ASan, and in checked builds it
 * is overwritten with a pattern that makes late reads visible.
 */
#ifndef EBB_BASE_POISON_H
#define EBB_BASE_POISON_H

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define EBB_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EBB_ASAN 1
#endif
#endif
#ifndef EBB_ASAN
#define EBB_ASAN 0
#endif

/* True if every allocation must pass through the library. */
#define EBB_POISON (EBB_ASAN || EBB_CHECK_FULL)
#define EBB_POISON_BYTE 0xE5

#if EBB_ASAN
#include <sanitizer/asan_interface.h>
#define EBB_UNCHECKED __attribute__((no_sanitize("address"), noinline))
#else
#define EBB_UNCHECKED
#endif

/* In programs with ThreadSanitizer. */
extern void __tsan_init(void) __attribute__((weak));

static inline bool poison_watches_threads(void) {
    return __tsan_init != NULL;
}

static inline void poison_unused(uintptr_t addr, size_t bytes) {
#if EBB_ASAN
    __asan_poison_memory_region((void *)addr, bytes);
#else
    (void)addr, (void)bytes;
#endif
}

static inline void poison_opened(uintptr_t addr, size_t bytes) {
#if EBB_ASAN
    __asan_unpoison_memory_region((void *)addr, bytes);
#else
    (void)addr, (void)bytes;
#endif
}

/* A block was released: late reads see the pattern, or a report. */
static inline void poison_released(uintptr_t addr, size_t bytes) {
#if EBB_CHECK_FULL
    poison_opened(addr, bytes); /* the end of its last granule is not */
    memset((void *)addr, EBB_POISON_BYTE, bytes);
#endif
    poison_unused(addr, bytes);
}

#endif
