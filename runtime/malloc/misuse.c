// SPDX-License-Identifier: Apache-2.0
/* misuse.c - messages about misuse (see misuse.h). Nothing here allocates. */
#include "malloc/misuse.h"
#include "malloc/large.h"
#include "malloc/tray.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void die(const char *text, int length) __attribute__((noreturn));

static void die(const char *text, int length) {
    if (length > 0)
        (void)!write(STDERR_FILENO, text, (size_t)length);
    abort();
}

void misuse_of_small(const void *block) {
    char text[160];
    const char *what = "free of an address that begins no block";
    bool begins = tray_holds((uintptr_t)block) && (uintptr_t)block % TRAY_GRANULE == 0;
    uint32_t state = begins ? tray_state((const struct tray_head *)block - 1) : TRAY_LIVE;
    if (state == TRAY_FREED || state == TRAY_PASSED)
        what = "double free, or use of a freed block";
    die(text, snprintf(text, sizeof text, "ebb-malloc: %s: %p, of a scope\n", what, block));
}

void misuse_before(const void *block) {
    char text[160];
    die(text, snprintf(text, sizeof text, "ebb-malloc: bytes before %p, of a scope, were "
                       "overwritten\n", block));
}

void misuse_of_tray(const struct tray *tray) {
    char text[160];
    die(text, snprintf(text, sizeof text, "ebb-malloc: double free, by two threads at once, of a "
                       "block between %p and %p, of a scope\n", (const void *)tray,
                       (const void *)((const char *)tray + TRAY_BYTES)));
}

void misuse_of_large(const void *block, const struct large *large) {
    char text[160];
    const char *what = large ? "double free, or use of a freed block"
                             : "free of an address that begins no block";
    die(text, snprintf(text, sizeof text, "ebb-malloc: %s: %p, %zu bytes, of a scope\n", what,
                       block, large ? large->bytes : (size_t)0));
}

void misuse_of_guarded(const void *block, const char *what) {
    char text[160];
    die(text, snprintf(text, sizeof text, "ebb-malloc: free of %p: %s\n", block, what));
}

void misuse_of_size(const void *block, size_t claimed, size_t usable) {
    char text[160];
    die(text, snprintf(text, sizeof text, "ebb-malloc: free of %p as %zu bytes, but it has %zu\n",
                       block, claimed, usable));
}
