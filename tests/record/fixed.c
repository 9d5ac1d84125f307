// SPDX-License-Identifier: Apache-2.0
//
// fixed.c - a program at a fixed address that takes the addresses of functions: all of the process
// has those of its linkage table for them.

#include <stdlib.h>

#include "client.h"

int main(void)
{
    void *(*volatile asked)(size_t) = malloc;
    long double (*volatile number_of)(const char *, char **) = strtold;

    for (int i = 0; i < CLIENT_MANY; i++) // a chunk and more
        free(malloc(CLIENT_MALLOC));
    for (int i = 0; i < CLIENT_STEPS; i++)
        if (!malloc(CLIENT_FRESH) || strtold("1.5", NULL) != 1.5L || number_of("2", NULL) != 2)
            return 1;
    return asked(CLIENT_CALLOC) == NULL;
}
