// SPDX-License-Identifier: Apache-2.0
/*
 * waits.h - the functions at which programs wait, defined in place of the C library's (waits.c).
 */
#ifndef EBB_MALLOC_WAITS_H
#define EBB_MALLOC_WAITS_H

/* Looks up the C library's, so that none is looked up in a child of a fork or a handler of a
 * signal. When the library is loaded. */
void waits_find(void);

#endif
