// SPDX-License-Identifier: Apache-2.0
//
// long_name.c - a library with a function whose name is as long as those of C++'s templates.

#include "client.h"

void client_long_name(void)
{
}
