// SPDX-License-Identifier: Apache-2.0
/* wordy.c - a language in which reasons are long. To be preloaded, by test_view.py. */
#include <string.h>

char *strerror(int number) {
    static char text[1000]; /* the same for every reason */
    (void)number;
    if (!*text)
        memset(text, 'w', sizeof text - 1);
    return text;
}
