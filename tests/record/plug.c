// SPDX-License-Identifier: Apache-2.0
//
// plug.c - a library that programs open, compiled as two of them: what PLUG_NUMBER says differs,
// and the name of the place that allocates.

#include <stdlib.h>

#include "plugged.h"

void *PLUG_PLACE(void);
int plug_run(void);

int client_plug(void)
{
    return PLUG_NUMBER;
}

int client_late(void)
{
    return PLUG_NUMBER;
}

// Through the linkage table, where another library's may stand.
int plug_run(void)
{
    return client_plug();
}

// The block is looked at, so that the call is none that returns to the program.
void *PLUG_PLACE(void)
{
    char *block = malloc(PLUGGED_BLOCKS);

    if (block)
        *block = PLUG_NUMBER;
    return block;
}
