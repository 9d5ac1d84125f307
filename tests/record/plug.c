// SPDX-License-Identifier: Apache-2.0
//
// plug.c - a library that programs open, compiled as two of them: what PLUG_NUMBER says differs.

#include "plugged.h"

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
