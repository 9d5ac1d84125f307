// SPDX-License-Identifier: Apache-2.0
/*
 * gate.h - the first instructions of malloc() and free(), on x86-64: whose a block is.
 *
 * Most are the general heap's, so the branch that finds that out leads into jemalloc itself. A
 * compiler branches around a jump to it instead, and reads the caller, whom only scopes ask for,
 * before it branches. Elsewhere, and in the hardened library, there is door.h alone.
 */
#ifndef EBB_MALLOC_GATE_H
#define EBB_MALLOC_GATE_H

#include "malloc/door.h"

#if defined(__x86_64__) && !defined(__ILP32__) && !GUARDED

#define GATE __attribute__((naked)) FRONT_HOT
#define GATE_ARGUMENT __attribute__((unused)) /* as far as the compiler sees */

/* The body of what allocates. */
#define GATE_ALLOC                       \
    "movq here@gottpoff(%rip), %rsi\n\t" \
    "movq %fs:(%rsi), %rsi\n\t"          \
    "testq %rsi, %rsi\n\t"               \
    "je ebb_jemalloc_malloc\n\t"         \
    "movq (%rsp), %rdx\n\t"              \
    "jmp gate_alloc_scoped"

/* The body of what frees. To compare with memory itself takes longer. */
#define GATE_FREE                   \
    "movq heap_end(%rip), %rax\n\t" \
    "cmpq %rax, %rdi\n\t"           \
    "jae ebb_jemalloc_free\n\t"     \
    "jmp gate_free_low"

_Static_assert(offsetof(struct here, scope) == 0, "where GATE_ALLOC reads it");

/* Behind the gates: a block in the scope that is open, and the free of what heap_may_hold(). */
void *gate_alloc_scoped(size_t bytes, struct scope *scope, const void *caller);
void gate_free_low(void *block);

#endif

#endif
