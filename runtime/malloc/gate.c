// SPDX-License-Identifier: Apache-2.0
/* gate.c - what is behind the gates of malloc() and free() (see gate.h). */
#include "malloc/gate.h"

#ifdef GATE

FRONT_HOT void *gate_alloc_scoped(size_t bytes, struct scope *scope, const void *caller) {
    void *block = front_alloc_quick(scope, bytes, TRAY_GRANULE, caller);
    return __builtin_expect(block != NULL, 1) ? block : front_alloc_scoped(bytes, scope, caller);
}

FRONT_HOT void gate_free_low(void *block) {
    front_free_low(block, 0);
}

#endif
