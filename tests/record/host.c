// SPDX-License-Identifier: Apache-2.0
//
// host.c - a library that calls what others have, and looks for it when it first does.

#include "plugged.h"

int host_run(void);

int host_run(void)
{
    return client_late();
}
