// SPDX-License-Identifier: Apache-2.0
/* fork.h - forks wait until no lock of the pools is held (see fork.c). */
#ifndef EBB_POOL_FORK_H
#define EBB_POOL_FORK_H

/* From the first call on. Any thread. */
void fork_prepare(void);

#endif
