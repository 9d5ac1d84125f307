// SPDX-License-Identifier: Apache-2.0
//
// fork_fails.c - preloaded into a program, lets one call of fork() fail: the n-th, which FORK_FAILS
// says, as where a user has no process left.

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pid_t fork(void)
{
    static long calls;
    const char *which = getenv("FORK_FAILS");
    pid_t (*next)(void);
    void *symbol = dlsym(RTLD_NEXT, "fork");

    if (++calls == (which ? strtol(which, NULL, 10) : 0)) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(&next, &symbol, sizeof next);
    return next();
}
