// SPDX-License-Identifier: Apache-2.0
/*
 * view.c - views: another shape, other strides, another first element (see ebb/view.h).
 *
 * Each function takes the form of a tensor, changes it and makes a view of that form. Whether the
 * elements lie in the storage is checked once more, by ebb_tensor_view(), for all of them.
 *
 * Invariant: a form without elements has offset 0, wherever it was cut from, so that the view
 * lies inside of its storage. Refuses whatever does not fit the shape; nothing is clamped.
 */
#include "base/error.h"
#include "base/size.h"
#include "object/object.h"

#include <ebb/view.h>

#include <string.h>

struct form {
    int ndim;
    int64_t offset; /* in elements */
    int64_t shape[EBB_DIMENSIONS_MAX];
    int64_t strides[EBB_DIMENSIONS_MAX];
};

static bool form_of(const struct ebb_tensor *tensor, struct form *form) {
    struct object_place place;
    if (!tensor_find(tensor, &place))
        return false;
    form->ndim = tensor->ndim;
    form->offset = 0;
    memcpy(form->shape, tensor->shape, sizeof *form->shape * (size_t)tensor->ndim);
    memcpy(form->strides, tensor->strides, sizeof *form->strides * (size_t)tensor->ndim);
    return true;
}

/* The form of a tensor that has dimension `dim`. */
static bool form_with(const struct ebb_tensor *tensor, int dim, struct form *form) {
    if (!form_of(tensor, form))
        return false;
    if (dim >= 0 && dim < form->ndim)
        return true;
    error_set(EBB_E_SHAPE, "dimension %d of %d", dim, form->ndim);
    return false;
}

static bool has_elements(const struct form *form) {
    return !shape_is_empty(form->ndim, form->shape);
}

static struct ebb_tensor *view(ebb_region region, const struct ebb_tensor *tensor,
                               const struct form *form) {
    return ebb_tensor_view(region, tensor, form->ndim, form->shape, form->strides, form->offset);
}

/* Starts the form at an index of a dimension. */
static void advance(struct form *form, int64_t index, int64_t stride) {
    if (has_elements(form))
        form->offset = index * stride;
}

static void remove_dimension(struct form *form, int dim) {
    form->ndim--;
    for (int i = dim; i < form->ndim; i++) {
        form->shape[i] = form->shape[i + 1];
        form->strides[i] = form->strides[i + 1];
    }
}

/* ---- parts ---- */

struct ebb_tensor *ebb_tensor_slice(ebb_region region, const struct ebb_tensor *tensor,
                                    struct ebb_slice slice) {
    struct form form;
    int64_t step = slice.step ? slice.step : 1;
    if (!form_with(tensor, slice.dim, &form))
        return NULL;
    int64_t size = form.shape[slice.dim], stride = form.strides[slice.dim];
    if (slice.start < 0 || slice.start > slice.stop || slice.stop > size || step < 0) {
        error_set(EBB_E_SHAPE, "slice %lld to %lld by %lld of dimension %d, which has size %lld",
                  (long long)slice.start, (long long)slice.stop, (long long)step, slice.dim,
                  (long long)size);
        return NULL;
    }
    int64_t span = slice.stop - slice.start, count = span / step + (span % step != 0);
    form.shape[slice.dim] = count;
    if (count > 1 && has_elements(&form))
        form.strides[slice.dim] = stride * step;
    advance(&form, slice.start, stride);
    return view(region, tensor, &form);
}

struct ebb_tensor *ebb_tensor_select(ebb_region region, const struct ebb_tensor *tensor, int dim,
                                     int64_t index) {
    struct form form;
    if (!form_with(tensor, dim, &form))
        return NULL;
    int64_t size = form.shape[dim], stride = form.strides[dim];
    if (index < 0 || index >= size) {
        error_set(EBB_E_SHAPE, "index %lld of dimension %d, which has size %lld",
                  (long long)index, dim, (long long)size);
        return NULL;
    }
    remove_dimension(&form, dim);
    advance(&form, index, stride);
    return view(region, tensor, &form);
}

/* ---- the same elements in another order ---- */

struct ebb_tensor *ebb_tensor_transpose(ebb_region region, const struct ebb_tensor *tensor,
                                        int first, int second) {
    struct form form;
    if (!form_with(tensor, first, &form) || !form_with(tensor, second, &form))
        return NULL;
    form.shape[first] = tensor->shape[second];
    form.strides[first] = tensor->strides[second];
    form.shape[second] = tensor->shape[first];
    form.strides[second] = tensor->strides[first];
    return view(region, tensor, &form);
}

struct ebb_tensor *ebb_tensor_permute(ebb_region region, const struct ebb_tensor *tensor,
                                      const int *dims) {
    struct form form;
    uint32_t seen = 0;
    if (!form_of(tensor, &form))
        return NULL;
    if (form.ndim && !dims) {
        error_set(EBB_E_ARGUMENT, "no list of the %d dimensions", form.ndim);
        return NULL;
    }
    for (int i = 0; i < form.ndim; i++) {
        if (dims[i] < 0 || dims[i] >= form.ndim || (seen >> dims[i] & 1)) {
            error_set(EBB_E_PERMUTATION, "entry %d names dimension %d of %d%s", i, dims[i],
                      form.ndim, dims[i] >= 0 && dims[i] < form.ndim ? " again" : "");
            return NULL;
        }
        seen |= (uint32_t)1 << dims[i];
        form.shape[i] = tensor->shape[dims[i]];
        form.strides[i] = tensor->strides[dims[i]];
    }
    return view(region, tensor, &form);
}

/* ---- other shapes ---- */

static bool check_ndim(int ndim, const int64_t *shape) {
    if (ndim >= 0 && ndim <= EBB_DIMENSIONS_MAX && (!ndim || shape))
        return true;
    error_set(EBB_E_SHAPE, "%d dimensions%s, 0 to %d may be", ndim,
              ndim && !shape ? " of a shape that is NULL" : "", EBB_DIMENSIONS_MAX);
    return false;
}

/* The product of all sizes but the one at `inferred`; false with an error if it is none. */
static bool multiply(int ndim, const int64_t *shape, int inferred, int64_t *product) {
    bool fits = true, empty = false;
    *product = 1;
    for (int i = 0; i < ndim; i++) {
        if (i == inferred)
            continue;
        if (shape[i] < 0) {
            error_set(EBB_E_SHAPE, "dimension %d is %lld", i, (long long)shape[i]);
            return false;
        }
        empty |= shape[i] == 0;
        fits = fits && !__builtin_mul_overflow(*product, shape[i], product);
    }
    if (empty)
        *product = 0;
    if (!fits && !empty)
        error_set(EBB_E_SHAPE, "the elements of %d dimensions overflow", ndim);
    return fits || empty;
}

/* Puts the sizes of `shape`, one of them perhaps inferred, for `count` elements into the form. */
static bool infer_shape(struct form *form, int ndim, const int64_t *shape, int64_t count) {
    int inferred = -1;
    int64_t product;
    if (!check_ndim(ndim, shape))
        return false;
    for (int i = 0; i < ndim && inferred < 0; i++)
        if (shape[i] == -1)
            inferred = i;
    if (!multiply(ndim, shape, inferred, &product))
        return false;
    if (inferred < 0 ? product != count : !product || count % product) {
        error_set(EBB_E_SHAPE, "%lld elements in a shape of %s%lld", (long long)count,
                  inferred < 0 ? "" : "some times ", (long long)product);
        return false;
    }
    form->ndim = ndim;
    if (ndim)
        memcpy(form->shape, shape, sizeof *shape * (size_t)ndim);
    if (inferred >= 0)
        form->shape[inferred] = count / product;
    return true;
}

/* Merges neighbours that are one dimension in memory; dimensions of size 1 go. */
static void merge(struct form *form) {
    int kept = 0;
    for (int i = 0; i < form->ndim; i++) {
        if (form->shape[i] == 1)
            continue;
        int64_t size = form->shape[i];
        if (kept && form->strides[kept - 1] == form->strides[i] * size)
            size *= form->shape[--kept];
        form->shape[kept] = size;
        form->strides[kept++] = form->strides[i];
    }
    form->ndim = kept;
}

/* Deals the merged dimensions of `old` out to the shape of `form`, last ones first. */
static bool deal(struct form *old, struct form *form) {
    int from = old->ndim - 1;
    int64_t rest = from < 0 ? 1 : old->shape[from], stride = from < 0 ? 1 : old->strides[from];
    for (int i = form->ndim - 1; i >= 0; i--) {
        if (rest == 1 && form->shape[i] > 1) {
            from--;
            rest = old->shape[from];
            stride = old->strides[from];
        }
        if (rest % form->shape[i])
            return false;
        form->strides[i] = stride;
        stride *= form->shape[i];
        rest /= form->shape[i];
    }
    return true;
}

/* Row-major strides for a form without elements, as far as they can be told. */
static void stride_empty(struct form *form) {
    int64_t stride = 1, next;
    for (int i = form->ndim - 1; i >= 0; i--) {
        form->strides[i] = stride;
        if (form->shape[i] && !__builtin_mul_overflow(stride, form->shape[i], &next))
            stride = next;
    }
}

struct ebb_tensor *ebb_tensor_reshape(ebb_region region, const struct ebb_tensor *tensor, int ndim,
                                      const int64_t *shape) {
    struct form old, form = {.offset = 0};
    if (!form_of(tensor, &old) || !infer_shape(&form, ndim, shape, ebb_tensor_count(tensor)))
        return NULL;
    if (!has_elements(&form)) {
        stride_empty(&form);
        return view(region, tensor, &form);
    }
    merge(&old);
    if (!deal(&old, &form)) {
        error_set(EBB_E_VIEW, "%lld elements in %d pieces of memory: no view has that shape",
                  (long long)ebb_tensor_count(tensor), old.ndim);
        return NULL;
    }
    return view(region, tensor, &form);
}

struct ebb_tensor *ebb_tensor_expand(ebb_region region, const struct ebb_tensor *tensor, int ndim,
                                     const int64_t *shape) {
    struct form old, form = {.ndim = ndim};
    if (!form_of(tensor, &old) || !check_ndim(ndim, shape))
        return NULL;
    if (ndim < old.ndim) {
        error_set(EBB_E_SHAPE, "%d dimensions expanded to %d", old.ndim, ndim);
        return NULL;
    }
    for (int i = 0; i < ndim; i++) {
        int from = i - (ndim - old.ndim);
        bool repeats = from < 0 || (old.shape[from] == 1 && shape[i] != 1);
        if (!repeats && shape[i] != old.shape[from]) {
            error_set(EBB_E_SHAPE, "dimension %d of size %lld expanded to %lld", from,
                      (long long)old.shape[from], (long long)shape[i]);
            return NULL;
        }
        form.shape[i] = shape[i];
        form.strides[i] = repeats ? 0 : old.strides[from];
    }
    return view(region, tensor, &form);
}

struct ebb_tensor *ebb_tensor_squeeze(ebb_region region, const struct ebb_tensor *tensor,
                                      int dim) {
    struct form form;
    if (!form_with(tensor, dim, &form))
        return NULL;
    if (form.shape[dim] != 1) {
        error_set(EBB_E_SHAPE, "dimension %d has size %lld, not 1", dim,
                  (long long)form.shape[dim]);
        return NULL;
    }
    remove_dimension(&form, dim);
    return view(region, tensor, &form);
}

struct ebb_tensor *ebb_tensor_unsqueeze(ebb_region region, const struct ebb_tensor *tensor,
                                        int dim) {
    struct form form;
    if (!form_of(tensor, &form))
        return NULL;
    if (dim < 0 || dim > form.ndim || form.ndim == EBB_DIMENSIONS_MAX) {
        error_set(EBB_E_SHAPE, "a dimension %d beside %d, of which %d may be", dim, form.ndim,
                  EBB_DIMENSIONS_MAX);
        return NULL;
    }
    for (int i = form.ndim++; i > dim; i--) {
        form.shape[i] = form.shape[i - 1];
        form.strides[i] = form.strides[i - 1];
    }
    form.shape[dim] = 1;
    form.strides[dim] = 1;
    return view(region, tensor, &form);
}
