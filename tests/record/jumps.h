// SPDX-License-Identifier: Apache-2.0
//
// jumps.h - the numbers that jumps.c, those beside it and their tests agree on.

#ifndef EBB_TESTS_RECORD_JUMPS_H
#define EBB_TESTS_RECORD_JUMPS_H

enum { JUMPS_BLOCKS = 100, JUMPS_BESIDE = 4001, JUMPS_BELOW = 6001, JUMPS_LEFT = 8001,
       JUMPS_MUCH = 64 << 20 };

#endif
