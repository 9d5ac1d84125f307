// SPDX-License-Identifier: Apache-2.0
/*
 * registry.h - the lock of what is registered for the life of the process: types, kinds of samples.
 * A fork waits until nobody has it (see pool/fork.c). Nothing else is locked while it is held.
 */
#ifndef EBB_OBJECT_REGISTRY_H
#define EBB_OBJECT_REGISTRY_H

void registry_lock(void);
void registry_unlock(void);

#endif
