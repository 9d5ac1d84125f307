// SPDX-License-Identifier: Apache-2.0
/*
 * misuse.h - what a program must not do to malloc()'s blocks, and was seen to do.
 *
 * Says what it was in one line on the standard error, with the addresses and numbers, and ends the
 * process by SIGABRT, as the C library does.
 */
#ifndef EBB_MALLOC_MISUSE_H
#define EBB_MALLOC_MISUSE_H

#include <stddef.h>

struct large;
struct tray;

/* Of the zone of trays: also of what no tray ever was. */
void misuse_of_small(const void *block) __attribute__((cold, noreturn));
/* What lies before the block, in a tray whose blocks are counted, is no head: its scope ends, or
 * its empty trays are looked for. */
void misuse_before(const void *block) __attribute__((cold, noreturn));
/* Of a block of the tray: by its owner and by another thread, at once. */
void misuse_of_tray(const struct tray *tray) __attribute__((cold, noreturn));
void misuse_of_large(const void *block, const struct large *large) __attribute__((cold, noreturn));
/* `what` says it. */
void misuse_of_guarded(const void *block, const char *what) __attribute__((cold, noreturn));
void misuse_of_size(const void *block, size_t claimed, size_t usable)
    __attribute__((cold, noreturn));

#endif
