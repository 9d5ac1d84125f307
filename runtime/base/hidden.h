// SPDX-License-Identifier: Apache-2.0
/*
 * hidden.h - HIDDEN, for declarations of data that this library defines.
 *
 * -fvisibility=hidden applies to definitions only. Data that is merely declared could be another
 * library's as far as the compiler knows, so each access would first look up its address.
 */
#ifndef EBB_BASE_HIDDEN_H
#define EBB_BASE_HIDDEN_H

#define HIDDEN __attribute__((visibility("hidden")))

#endif
