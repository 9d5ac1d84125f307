// SPDX-License-Identifier: Apache-2.0
/* callers.h - who has connected to the socket of the statistics, and what they get. */
#ifndef EBB_MALLOC_CALLERS_H
#define EBB_MALLOC_CALLERS_H

#include <stddef.h>

/* Served at a time, each with a descriptor; others wait. */
#define CALLERS_MOST 256u

/* One round: accepts connections to `listener` (-1: none) and answers callers that are ready, with
 * one of two texts of `bytes`, written for the purpose. Takes hardly more than a second, and does
 * not wait for callers that say nothing. One thread. */
void callers_serve(int listener, char *plain, char *for_prometheus, size_t bytes);

/* In the child of a fork: its parent's callers are not its own. */
void callers_forget(void);

#endif
