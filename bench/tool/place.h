// SPDX-License-Identifier: Apache-2.0
/* place.h - where the other parts of ebb lie: in the build folder, or installed beside the tool. */
#ifndef EBB_BENCH_TOOL_PLACE_H
#define EBB_BENCH_TOOL_PLACE_H

#include <stdbool.h>

enum { PLACE_MAX = 4096 };

enum place {
    PLACE_RECORDER, /* libebb-record.so */
    PLACE_PYTHON,   /* the sitecustomize.py that watches Python functions */
    PLACE_CHURN,    /* the program that replays */
    PLACE_BUDGET,   /* the one that judges steps */
    PLACE_REPORT,   /* program.py, which draws a page */
};

/* Full path. False after a message that says where it was looked for. */
bool place_find(enum place place, char path[PLACE_MAX]);

#endif
