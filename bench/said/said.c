// SPDX-License-Identifier: Apache-2.0
/* said.c - see said.h. */
#include "said.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

void said_begin(void) {
    signal(SIGXFSZ, SIG_IGN);
}

int said_end(int code, int failed, const char *speaker) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "%s: not all of it could be written to the standard output%s%s\n", speaker,
            errno ? ": " : "", errno ? strerror(errno) : "");
    return code ? code : failed;
}
