// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/current.h - the current region of a thread, for programs that cannot pass one along.
 *
 * Opt-in: nothing in ebb allocates in the current region unless it is told to. Entering returns a
 * token that leaving takes back, innermost first; so a scope that was not left, or was left twice,
 * is found where it happens. A task that moves between threads saves its scopes where it stops and
 * restores them where it goes on.
 *
 *     ebb_current_token token = ebb_current_enter(step.region);
 *     ...                       ebb_current()
 *     ebb_current_leave(token);
 *
 * All functions concern the calling thread only.
 */
#ifndef EBB_CURRENT_H
#define EBB_CURRENT_H

#include <ebb/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What ebb_current_leave() checks; made by ebb_current_enter() only. */
typedef struct ebb_current_token {
    ebb_region before; /* was current */
    uint64_t serial_before, serial;
} ebb_current_token;

/* The region that was entered last and not yet left; a handle that is not open if there is none.
 * It may have been closed since: test it with ebb_region_is_open(). Never fails. */
EBB_API ebb_region ebb_current(void);

/* Makes an open region the current one. EBB_E_STALE: the token's serial is 0, nothing changed. */
EBB_API EBB_NODISCARD ebb_current_token ebb_current_enter(ebb_region region);

/*
 * Leaves: what was current before is so again. The region need not be open any more.
 * EBB_E_ORDER: the token is not that of the innermost scope of this thread; nothing changed.
 */
EBB_API int ebb_current_leave(ebb_current_token token);

/* The scopes of a task, to be restored once. All zero: none. */
typedef struct ebb_current_scopes {
    ebb_region region;
    uint64_t serial;
} ebb_current_scopes;

/* Takes all scopes away from this thread, which has none afterwards. Never fails. */
EBB_API ebb_current_scopes ebb_current_save(void);

/*
 * Gives saved scopes to this thread, which must have none (EBB_E_ORDER; nothing changed). Their
 * tokens are then left here. A region belongs to one thread at a time: it moves along.
 * EBB_E_ORDER, too: these scopes were restored before, on whichever thread. That is known within
 * bounds: the process remembers restored scopes in 4096 places, by their number modulo that. If
 * another took the place since, or exactly a multiple of 65536 saves of the scope lie between, a
 * second restore passes, and two threads may then have one region.
 */
EBB_API int ebb_current_restore(ebb_current_scopes scopes);

#ifdef __cplusplus
}
#endif

#endif
