// SPDX-License-Identifier: Apache-2.0
/* tell.h - statistics of a running process: a file or a socket (options.stats). One thread. */
#ifndef EBB_MALLOC_TELL_H
#define EBB_MALLOC_TELL_H

#include <stdbool.h>

/* The thread gets a table of files of its own, which tell() needs. False: it cannot be had. */
bool tell_begin(void);

/* Each tick: answers who connects; each second, the file is written. */
void tell(unsigned tick);

/* Says once what keeps statistics from being told. */
void tell_complain(const char *what, const char *reason);

/* In the child of a fork, which has none of the thread's files. */
void tell_forget(void);

#endif
