// SPDX-License-Identifier: Apache-2.0
//
// long_name.c - a library with a function whose name is as long as those of C++'s templates, one
// whose arguments are as wide as those of vector code, and data, found as functions are. It works
// on when its program has come to its end, if it is to.

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client.h"

// Meanwhile the tool looks, a few times.
__attribute__((destructor)) static void work_late(void)
{
    char name[512];

    if (!getenv("CLIENT_LATE"))
        return;
    usleep(400000);
    snprintf(name, sizeof name, "%s/%ld.0", getenv("EBB_RECORD_SPOOL"), (long)getpid());
    if (access(name, F_OK) != 0)
        _exit(99);
}

void client_long_name(void)
{
}

int client_seven = 7;

int client_number(void)
{
    return client_seven;
}

#if defined __x86_64__
__attribute__((target("avx"))) double client_sum(client_wide first, client_wide second)
{
    client_wide sum = first + second;

    return sum[0] + sum[1] + sum[2] + sum[3];
}
#endif
