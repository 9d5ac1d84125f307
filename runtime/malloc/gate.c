// SPDX-License-Identifier: Apache-2.0
/* gate.c - what is behind the gates of malloc() and free() (see gate.h). */
#include "malloc/gate.h"

#ifdef GATE

FRONT_HOT void *gate_alloc_scoped(size_t bytes, struct scope *scope) {
    return door_alloc_scoped(bytes, scope, __builtin_return_address(0));
}

FRONT_HOT void gate_free_low(void *block) {
    front_free_low(block, 0);
}

#endif
