// SPDX-License-Identifier: Apache-2.0
//
// long_name.c - a library with a function whose name is as long as those of C++'s templates, one
// whose arguments are as wide as those of vector code, and data, found as functions are.

#include "client.h"

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
