// SPDX-License-Identifier: Apache-2.0
/* value.h - values that the caller gives (ebb/value.h), as elements of a dtype (see value.c). */
#ifndef EBB_OBJECT_VALUE_H
#define EBB_OBJECT_VALUE_H

#include <ebb/tensor.h>
#include <ebb/value.h>

/* True if it is a 0 of any kind with no bit set: -0.0 is none. */
bool value_is_blank(struct ebb_value value);

/* Writes one element, each lane the value; 0, EBB_E_VALUE, EBB_E_DTYPE, EBB_E_ARGUMENT (kind). */
int value_write(struct ebb_value value, struct ebb_dtype dtype, void *element);

#endif
