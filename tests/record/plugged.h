// SPDX-License-Identifier: Apache-2.0
//
// plugged.h - functions of which several libraries have one, and what each of them returns.

#ifndef EBB_TESTS_RECORD_PLUGGED_H
#define EBB_TESTS_RECORD_PLUGGED_H

enum {
    PLUGGED_OLD = 1,   // client_choice@V1, to which the program was linked
    PLUGGED_NEW = 2,   // client_choice@@V2
    PLUGGED_BASE = 3,  // client_plug() of the library of the program
    PLUGGED_ALPHA = 4, // client_plug() and client_late() of the first library that is opened
    PLUGGED_BETA = 5,  // of the second
    PLUGGED_CALLS = 7, // of each scenario, before and after libraries were looked at again
    PLUGGED_BLOCKS = 11,
    PLUGGED_CROWD = 300, // libraries
};

int client_choice(void);
int client_plug(void);
int client_late(void);

#endif
