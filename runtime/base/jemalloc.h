// SPDX-License-Identifier: Apache-2.0
/*
 * jemalloc.h - the functions of our private copy of jemalloc.
 *
 * runtime/jemalloc.sh renames them, so that nobody's malloc() is bound to them by mistake, and a
 * jemalloc that the program has is another heap.
 */
#ifndef EBB_BASE_JEMALLOC_H
#define EBB_BASE_JEMALLOC_H

#include <stdbool.h>
#include <stddef.h>

#define JEMALLOC_NO_RENAME
#define JEMALLOC_NO_DEMANGLE
#define je_malloc ebb_jemalloc_malloc
#define je_calloc ebb_jemalloc_calloc
#define je_realloc ebb_jemalloc_realloc
#define je_aligned_alloc ebb_jemalloc_aligned_alloc
#define je_free ebb_jemalloc_free
#define je_malloc_usable_size ebb_jemalloc_malloc_usable_size
#define je_mallocx ebb_jemalloc_mallocx
#define je_dallocx ebb_jemalloc_dallocx
#define je_mallctl ebb_jemalloc_mallctl
#define je_malloc_conf ebb_jemalloc_malloc_conf
#include <jemalloc/jemalloc.h>

#endif
