// SPDX-License-Identifier: Apache-2.0
/* demand.h - programs to be recorded say what has gone wrong in them. */
#ifndef EBB_TESTS_RECORD_DEMAND_H
#define EBB_TESTS_RECORD_DEMAND_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define DEMAND(what)                                                                               \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("%s: line %d: %s\n", program_invocation_short_name, __LINE__, #what);           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
