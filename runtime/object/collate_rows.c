// SPDX-License-Identifier: Apache-2.0
/*
 * collate_rows.c - tensors of which the first dimension may differ: packed, ragged, and ragged
 * samples with a canvas for each image.
 *
 * Invariant: rows have one shape, that of the first tensor without its first dimension. Refuses
 * scalars, which have no rows.
 */
#include "base/error.h"
#include "object/collate.h"
#include "object/copy.h"

#include <string.h>

static bool are_rows_equal(const struct ebb_tensor *left, const struct ebb_tensor *right) {
    return left->ndim == right->ndim && left->ndim > 0 &&
           memcmp(left->shape + 1, right->shape + 1,
                  sizeof *left->shape * (size_t)(left->ndim - 1)) == 0;
}

int collate_check_rows(const struct collation *collation) {
    int64_t rows = 0;
    char path[COLLATE_PATH_BYTES];
    for (size_t i = 0; i < collation->count; i++) {
        const struct ebb_tensor *tensor = collation->tensors[i];
        if (!are_rows_equal(tensor, collation->tensors[0]))
            return collate_misshapen(collation, i);
        if (__builtin_add_overflow(rows, tensor->shape[0], &rows))
            return error_set(EBB_E_SIZE, "'%s': the rows of %zu samples overflow",
                             collate_path(collation, path), collation->count);
    }
    return 0;
}

void *collate_build_rows(struct collation *collation, const struct ebb_collate_rule *rule) {
    if (rule->how == EBB_COLLATE_PACK)
        return ebb_sequences_pack(collation->region, collation->tensors, collation->count, NULL);
    return ebb_sequences_join(collation->region, collation->tensors, collation->count);
}

/* ---- ragged samples ---- */

static struct ebb_tensor *new_integers(const struct collation *collation, int ndim, size_t first,
                                       int64_t second) {
    return tensor_new_private(collation->region, (struct ebb_dtype){EBB_INT, 64, 1}, ndim,
                              (const int64_t[]){(int64_t)first, second});
}

static struct ebb_tensor *new_data(const struct collation *collation) {
    const struct ebb_tensor *first = collation->tensors[0];
    int64_t shape[EBB_DIMENSIONS_MAX];
    memcpy(shape, first->shape, sizeof *shape * (size_t)first->ndim);
    for (size_t i = 1; i < collation->count; i++)
        shape[0] += collation->tensors[i]->shape[0];
    return ebb_tensor_new(collation->region, first->dtype, first->ndim, shape);
}

static void write_rows(const struct collation *collation, void *const *column,
                       const struct ebb_tensor *data, int64_t *offsets, int64_t *canvases) {
    size_t element = ebb_dtype_bytes(data->dtype);
    char *at = data->data;
    offsets[0] = 0;
    for (size_t i = 0; i < collation->count; i++) {
        const struct ebb_tensor *tensor = collation->tensors[i];
        const struct ebb_sample *sample = column[i];
        copy_elements(at, NULL, tensor->data, tensor->strides, tensor->shape, tensor->ndim,
                      element);
        at += ebb_tensor_bytes(tensor);
        offsets[i + 1] = offsets[i] + tensor->shape[0];
        memcpy(canvases + 2 * i, sample->canvas, sizeof sample->canvas);
    }
}

struct ebb_sample *collate_build_ragged(struct collation *collation, void *const *column) {
    struct ebb_sample_info info = sample_info(column[0]);
    struct ebb_tensor *data = new_data(collation), *canvases = NULL;
    struct ebb_tensor *offsets = data ? new_integers(collation, 1, collation->count + 1, 0) : NULL;
    if (offsets)
        canvases = new_integers(collation, 2, collation->count, 2);
    if (!canvases)
        return NULL;
    write_rows(collation, column, data, offsets->data, canvases->data);
    memset(info.canvas, 0, sizeof info.canvas);
    return sample_make(region_find(collation->region), &info, data, offsets, canvases);
}
