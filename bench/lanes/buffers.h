// SPDX-License-Identifier: Apache-2.0
//
// buffers.h - arrays of the simulator itself.

#ifndef EBB_BENCH_LANES_BUFFERS_H
#define EBB_BENCH_LANES_BUFFERS_H

#include <stddef.h>

// realloc() to `count` elements of `bytes`; ends the program where memory runs out or the product
// wraps. A simulator has nothing better to do then.
void *buffer_resize(void *old, size_t count, size_t bytes);

// Makes room for one more element behind `count` by doubling, from 64.
void *buffer_reserve(void *old, size_t *capacity, size_t count, size_t bytes);

#endif
