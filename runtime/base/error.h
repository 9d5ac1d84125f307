// SPDX-License-Identifier: Apache-2.0
/* error.h - how a failing call says why. One sentence, with the numbers, per thread. */
#ifndef EBB_BASE_ERROR_H
#define EBB_BASE_ERROR_H

#include "base/hidden.h"

#include <ebb/base.h>

/* Notes code and text for ebb_last_error() and returns `code`. Allocates nothing. */
int error_set(int code, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));

/* The code that error_set() was given last, also while it was muted. For use inside ebb. */
int error_latest(void);

/* That again, as it was before the program was called in the midst of a failing call, who may have
 * made malloc() try something in vain. */
void error_put_latest(int code);

/* What error_set() was given last is no failure of the call after all: the one before is the last
 * again. Once for each, and nothing while it is muted. */
void error_take_back(void);

extern HIDDEN _Thread_local unsigned error_muted; /* how many are open of the calls below */

/*
 * Between the two, failures are not noted: for attempts that a caller need not hear of. Calls
 * nest.
 */
static inline void error_mute(void) {
    error_muted++;
}

static inline void error_unmute(void) {
    error_muted--;
}

#endif
