// SPDX-License-Identifier: Apache-2.0
//
// choice.c - a library with two versions of a function, and one function that others have, too.

#include "plugged.h"

int client_choice_old(void);
int client_choice_new(void);

__asm__(".symver client_choice_old, client_choice@V1");
__asm__(".symver client_choice_new, client_choice@@V2");

int client_choice_old(void)
{
    return PLUGGED_OLD;
}

int client_choice_new(void)
{
    return PLUGGED_NEW;
}

int client_plug(void)
{
    return PLUGGED_BASE;
}
