// SPDX-License-Identifier: Apache-2.0
//
// known.h - a trace whose figures are known, and what the tool says of it.

#ifndef EBB_TESTS_RECORD_KNOWN_H
#define EBB_TESTS_RECORD_KNOWN_H

// Steps of 400 bytes: 300 die within, 60 in the next step, 40 never. Two blocks lie outside.
void write_steps(unsigned steps);

// Of program.h's `said`; it is printed where this is no part of it.
void assert_said(const char *part);

#endif
