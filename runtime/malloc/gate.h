// SPDX-License-Identifier: Apache-2.0
/*
 * gate.h - the first instructions of malloc(), free() and the like, on x86-64: whose a block is.
 *
 * Most are the general heap's, and there a jump is what takes longest. So a gate goes on into
 * instructions of jemalloc's, which it has behind it once more (body.sh), and branches for blocks
 * of scopes only. Elsewhere, in the hardened library and with -DGATES_OF_C there is door.h alone.
 */
#ifndef EBB_MALLOC_GATE_H
#define EBB_MALLOC_GATE_H

#include "malloc/door.h"

#if defined(__x86_64__) && !defined(__ILP32__) && !GUARDED && !defined(GATES_OF_C)

#include "malloc/body.h"

#define GATE __attribute__((naked)) FRONT_HOT
#define GATE_ARGUMENT __attribute__((unused)) /* as far as the compiler sees */

/* What allocates begins so; a jump follows for the scope that there is. Who calls is where that
 * returns to. */
#define GATE_SCOPE                       \
    "movq here@gottpoff(%rip), %rsi\n\t" \
    "movq %fs:(%rsi), %rsi\n\t"          \
    "testq %rsi, %rsi\n\t"

/* And what frees. To compare with memory itself takes longer. */
#define GATE_FREE                   \
    "movq heap_end(%rip), %rax\n\t" \
    "cmpq %rax, %rdi\n\t"           \
    "jb gate_free_low\n" BODY_FREE(BODY_FREE_SLOW)

_Static_assert(offsetof(struct here, scope) == 0, "where GATE_SCOPE reads it");

/* Behind the gates: a block in the scope that is open, and the free of what heap_may_hold(). */
void *gate_alloc_scoped(size_t bytes, struct scope *scope);
void gate_free_low(void *block);

/* jemalloc's malloc() of what is not at hand. */
void *gate_malloc_slow(size_t bytes) __asm__(BODY_MALLOC_SLOW);

/* The same of operator new, and what it does where malloc() has nothing at hand (operators.c). */
void *gate_new_scoped(size_t bytes, struct scope *scope);
void *gate_new_slow(size_t bytes);
void *gate_nothrow_scoped(size_t bytes, struct scope *scope);
void *gate_nothrow_slow(size_t bytes);
void *gate_nothrow_theirs(size_t bytes, const void *tag);

#endif

#endif
