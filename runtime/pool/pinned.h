// SPDX-License-Identifier: Apache-2.0
/*
 * pinned.h - pages that stay where they are: registered with the CUDA driver where there is one,
 * else locked. Which of both says the hold: it has a context, or none.
 */
#ifndef EBB_POOL_PINNED_H
#define EBB_POOL_PINNED_H

#include "pool/cuda.h"

/* Takes hold of the device if there is a driver, which must work then. 0, or EBB_E_DEVICE. */
int pin_begin(struct cuda_hold *hold, int device);

/* Whole pages. 0, or EBB_E_DEVICE, or EBB_E_MEMORY with the numbers of the limit. */
int pin_pages(const struct cuda_hold *hold, void *addr, size_t bytes);

/* What RLIMIT_MEMLOCK leaves for more; 0 where it is not what refuses: there is none, or pages are
 * registered. */
size_t pin_room(const struct cuda_hold *hold);

/* Whether RLIMIT_MEMLOCK is what may refuse. */
bool pin_is_limited(const struct cuda_hold *hold);

/* The same pages again; false: the driver refused, error set. */
bool unpin_pages(const struct cuda_hold *hold, void *addr, size_t bytes);

/* A forked child: what was pinned is so in its parent, and nowhere here. */
void pin_fork_child(void);

#endif
