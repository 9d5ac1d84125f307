// SPDX-License-Identifier: Apache-2.0
/* budget.c - ebb budget: hands over to the program that replays traces with ebb itself, which the
 * tool is built without. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "complain.h"
#include "place.h"

/* Where nothing can be checked, no budget is passed. */
int command_budget(int argc, char **argv) {
    char program[PLACE_MAX];
    (void)argc;
    if (place_find(PLACE_BUDGET, program)) {
        execv(program, argv);
        complain("%s: %s", program, strerror(errno));
    }
    return EXIT_UNKNOWN;
}
