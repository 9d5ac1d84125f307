// SPDX-License-Identifier: Apache-2.0
/*
 * court.h - where misuses are tried: a small world of pools and regions, looked at before and
 * after each call. A refusal has its own code, a text with the numbers, and changes no byte of
 * any counter and no byte of any block.
 */
#ifndef BAD_INPUT_COURT_H
#define BAD_INPUT_COURT_H

#include "kit/test.h"

enum { COURT_REGIONS = 6, COURT_POOLS = 3 };

struct court {
    ebb_pool *pool, *other_pool, *limited_pool;
    ebb_region root, child, sealed, limited, elsewhere, measuring;
    ebb_region closed;        /* was a child of root */
    char *small, *large;      /* of child, 100 and 5000 bytes */
    char *root_large;         /* of root, 9000 bytes */
    char *foreign;            /* of elsewhere, 5000 bytes */
    void *phantom;            /* of measuring, 5000 bytes */
    char *gone_small, *gone_large, *gone_window; /* released blocks of child */
    struct ebb_region_stats regions[COURT_REGIONS];
    struct ebb_pool_stats pools[COURT_POOLS];
};

int court_open(void **state);
int court_close(void **state);

/* What is to stay as it is: looked at again after every refusal. */
void court_note(struct court *court);

/* The call gave this code, its text names these parts (up to NULL), and nothing changed. */
void court_refused(struct court *court, int result, int code, ...);

/* The same for a call that returned this pointer. */
void court_refused_block(struct court *court, const void *block, int code, const char *part);

#define TRIAL(test) cmocka_unit_test_setup_teardown(test, court_open, court_close)

#endif
