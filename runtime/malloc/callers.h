// SPDX-License-Identifier: Apache-2.0
/* callers.h - who has connected to the socket of the statistics, and what they get. */
#ifndef EBB_MALLOC_CALLERS_H
#define EBB_MALLOC_CALLERS_H

#include <stddef.h>

/* That are looked after at a time, each with a descriptor; who comes then waits. */
#define CALLERS_MOST 256u

/* One look: takes in who has connected to `listener` (-1: nobody), and answers who is to be, with
 * what is written for it into one of two texts of `bytes`. Takes little more than a second at most,
 * and no time for who says nothing. One thread. */
void callers_serve(int listener, char *plain, char *for_prometheus, size_t bytes);

/* Those of the parent are not those of its child. */
void callers_forget(void);

#endif
