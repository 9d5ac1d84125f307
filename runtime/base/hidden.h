// SPDX-License-Identifier: Apache-2.0
/*
 * hidden.h - what a declaration says of data that is this library's own.
 *
 * -fvisibility=hidden is about definitions. What is only declared may be another library's, for all
 * that the compiler knows: its address is loaded or worked out each time before its value is.
 */
#ifndef EBB_BASE_HIDDEN_H
#define EBB_BASE_HIDDEN_H

#define HIDDEN __attribute__((visibility("hidden")))

#endif
