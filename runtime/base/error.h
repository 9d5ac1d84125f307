// SPDX-License-Identifier: Apache-2.0
/* error.h - why a call failed: a code and one sentence with the numbers, per thread. */
#ifndef EBB_BASE_ERROR_H
#define EBB_BASE_ERROR_H

#include "base/hidden.h"

#include <ebb/base.h>

/* Notes code and text for ebb_last_error() and returns `code`. Allocates nothing. */
int error_set(int code, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));

/* The code of the latest error_set(), muted or not. For use inside ebb. */
int error_latest(void);

/* Restores that code after a failing call has called the program, which may have set another one,
 * for instance by a malloc() that failed. */
void error_put_latest(int code);

/* Undoes the latest error_set(): it was no failure of the call after all, and the error before it
 * is the last one again. At most once for each error_set(); does nothing while muted. */
void error_take_back(void);

extern HIDDEN _Thread_local unsigned error_muted; /* depth of error_mute() */

/* Between these two, failures are not noted: for attempts that the caller need not hear of. They
 * nest. */
static inline void error_mute(void) {
    error_muted++;
}

static inline void error_unmute(void) {
    error_muted--;
}

#endif
