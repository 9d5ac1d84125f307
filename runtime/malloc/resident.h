// SPDX-License-Identifier: Apache-2.0
/* resident.h - what of the process, and of the pages of large blocks, is in memory. */
#ifndef EBB_MALLOC_RESIDENT_H
#define EBB_MALLOC_RESIDENT_H

#include <stddef.h>

/* As the system says, or said a short time ago: it takes a millisecond for each GiB, so it is asked
 * for a hundredth of the time at most, but a minute later in any case. Any thread. */
size_t resident_large(void);

/* All of the process, as the system says now; 0: it does not, as there is no /proc. Any thread. */
size_t resident_process(void);

#endif
