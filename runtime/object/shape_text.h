// SPDX-License-Identifier: Apache-2.0
/* shape_text.h - shapes as texts say them. */
#ifndef EBB_OBJECT_SHAPE_TEXT_H
#define EBB_OBJECT_SHAPE_TEXT_H

#include <ebb/tensor.h>

#define SHAPE_TEXT_BYTES 96 /* longer shapes are cut: "[1, 2, ...]" */

/* "[2, 3]"; "[]" of a scalar. Returns `text`, which has SHAPE_TEXT_BYTES. */
const char *shape_text(char *text, int ndim, const int64_t *shape);

#endif
