// SPDX-License-Identifier: Apache-2.0
/*
 * sample.c - typed samples: a tensor with a kind and metadata (see ebb/sample.h).
 *
 * Everything is checked before anything is made. Invariant: kind, metadata and data of a sample
 * fit, and what is behind the struct are `byte_count` bytes of a user's kind. Refuses metadata
 * that its kind does not have, as much as metadata that is missing.
 */
#include "object/sample.h"
#include "base/error.h"
#include "object/attempt.h"
#include "object/dtype.h"
#include "object/exchange.h"
#include "object/shape_text.h"

#include <ebb/view.h>

#include <string.h>

/* ---- metadata ---- */

struct ebb_sample_info sample_info(const struct ebb_sample *sample) {
    return (struct ebb_sample_info){.kind = sample->kind,
                                    .format = sample->format,
                                    .clamping = sample->clamping,
                                    .canvas = {sample->canvas[0], sample->canvas[1]},
                                    .bytes = sample->byte_count ? sample_bytes(sample) : NULL,
                                    .byte_count = sample->byte_count};
}

static int check_boxes(const struct ebb_sample_info *info) {
    bool boxes = info->kind == EBB_SAMPLE_BOXES;
    int format_most = boxes ? EBB_BOX_XYXYXYXY : 0, clamping_most = boxes ? EBB_CLAMP_NONE : 0;
    if (info->format < boxes || info->format > format_most)
        return error_set(EBB_E_METADATA, "%s: box format %d, %d to %d may be",
                         ebb_sample_kind_name(info->kind), info->format, boxes, format_most);
    if (info->clamping < boxes || info->clamping > clamping_most)
        return error_set(EBB_E_METADATA, "%s: clamping mode %d, %d to %d may be",
                         ebb_sample_kind_name(info->kind), info->clamping, boxes, clamping_most);
    return 0;
}

static int check_canvas(const struct ebb_sample_info *info, bool ragged) {
    bool has = info->kind == EBB_SAMPLE_BOXES || info->kind == EBB_SAMPLE_POINTS;
    bool needed = has && !ragged;
    for (int i = 0; i < 2; i++)
        if (needed ? info->canvas[i] < 1 : info->canvas[i] != 0)
            return error_set(EBB_E_METADATA, "%s%s: canvas %lld x %lld, %s",
                             ragged ? "ragged " : "", ebb_sample_kind_name(info->kind),
                             (long long)info->canvas[0], (long long)info->canvas[1],
                             needed ? "at least 1 x 1 is needed" : "it has none");
    if (ragged && !has)
        return error_set(EBB_E_METADATA, "%s: only boxes and points are ragged",
                         ebb_sample_kind_name(info->kind));
    return 0;
}

/* 0, or EBB_E_METADATA if kind and metadata make no sense, whatever the data. */
static int check_info(const struct ebb_sample_info *info, bool ragged) {
    if (!sample_kind_is_known(info->kind))
        return error_set(EBB_E_METADATA, "kind %d of a sample is none", info->kind);
    int result = check_boxes(info);
    if (!result)
        result = check_canvas(info, ragged);
    if (!result && info->byte_count && (info->kind < EBB_SAMPLE_USER || !info->bytes))
        result = error_set(EBB_E_METADATA, "%s: %zu bytes of metadata at %p",
                           ebb_sample_kind_name(info->kind), info->byte_count, info->bytes);
    return result;
}

/* ---- shapes ---- */

static int box_numbers(int format) {
    return format == EBB_BOX_XYXYXYXY ? 8 : format >= EBB_BOX_XYWHR ? 5 : 4;
}

static int misshapen(const struct ebb_sample_info *info, const struct ebb_tensor *data,
                     const char *needed) {
    char shape[SHAPE_TEXT_BYTES];
    return error_set(EBB_E_METADATA, "%s%s%s of shape %s, %s is needed",
                     ebb_sample_kind_name(info->kind), info->format ? " " : "",
                     info->format ? ebb_box_format_name(info->format) : "",
                     shape_text(shape, data->ndim, data->shape), needed);
}

/* `whole`: it is a sample's already, and has all its dimensions. */
static int check_box_data(const struct ebb_sample_info *info, const struct ebb_tensor *data,
                          bool whole) {
    static const char *const needed[2][3] = {{"[N, 4] or [4]", "[N, 5] or [5]", "[N, 8] or [8]"},
                                             {"[N, 4]", "[N, 5]", "[N, 8]"}};
    int numbers = box_numbers(info->format), last = data->ndim - 1;
    char dtype[DTYPE_TEXT];
    if (data->ndim < 1 + whole || data->ndim > 2 || data->shape[last] != numbers)
        return misshapen(info, data, needed[whole][numbers == 8 ? 2 : numbers - 4]);
    if (info->format < EBB_BOX_XYWHR || data->dtype.code == EBB_FLOAT ||
        data->dtype.code == EBB_BFLOAT)
        return 0;
    dtype_describe(data->dtype, dtype);
    return error_set(EBB_E_METADATA, "%s boxes of %s: angles need a floating point type",
                     ebb_box_format_name(info->format), dtype);
}

static int check_data(const struct ebb_sample_info *info, const struct ebb_tensor *data,
                      bool whole) {
    if (info->kind == EBB_SAMPLE_BOXES)
        return check_box_data(info, data, whole);
    if (info->kind == EBB_SAMPLE_IMAGE && data->ndim < 2 + whole)
        return misshapen(info, data, whole ? "[..., C, H, W]" : "[..., C, H, W] or [H, W]");
    if (info->kind == EBB_SAMPLE_VIDEO && data->ndim < 4)
        return misshapen(info, data, "[..., T, C, H, W]");
    if (info->kind == EBB_SAMPLE_POINTS &&
        (data->ndim < 1 + whole || data->shape[data->ndim - 1] != 2))
        return misshapen(info, data, whole ? "[..., N, 2]" : "[..., 2]");
    return 0;
}

/* Does the kind ask for one more dimension in front? */
static bool lacks_dimension(const struct ebb_sample_info *info, const struct ebb_tensor *data) {
    switch (info->kind) {
    case EBB_SAMPLE_IMAGE:
        return data->ndim == 2;
    case EBB_SAMPLE_BOXES:
    case EBB_SAMPLE_POINTS:
        return data->ndim == 1;
    default:
        return false;
    }
}

/* ---- what is ragged ---- */

/* The tensors of a ragged sample have the form that such have. What is in them, nobody knows. */
static bool has_ragged_form(const struct ebb_sample *sample) {
    const struct ebb_tensor *offsets = sample->offsets, *canvases = sample->canvases;
    const struct ebb_dtype wanted = {EBB_INT, 64, 1};
    return offsets && canvases && ebb_dtype_equal(offsets->dtype, wanted) &&
           ebb_dtype_equal(canvases->dtype, wanted) && offsets->ndim == 1 &&
           canvases->ndim == 2 && canvases->shape[1] == 2 &&
           offsets->shape[0] == canvases->shape[0] + 1 && sample->data->ndim >= 2 &&
           ebb_tensor_is_contiguous(offsets) && ebb_tensor_is_contiguous(canvases);
}

/* What is in them can be read; 0 or EBB_E_RELEASED. */
static int check_readable(const struct ebb_sample *sample) {
    int result = import_check(sample->offsets->storage);
    return result ? result : import_check(sample->canvases->storage);
}

static int check_ragged(const struct ebb_sample *sample) {
    if (!sample->offsets && !sample->canvases)
        return 0;
    bool fits = has_ragged_form(sample);
    if (fits && check_readable(sample) != 0)
        return EBB_E_RELEASED;
    int64_t last = fits ? sample->canvases->shape[0] : 0;
    const int64_t *row = fits ? sample->offsets->data : NULL;
    for (int64_t i = 1; fits && i <= last; i++)
        fits = row[i] >= row[i - 1];
    if (!fits || row[0] != 0 || row[last] != sample->data->shape[0])
        return error_set(EBB_E_METADATA, "ragged %s: offsets and canvases do not fit",
                         ebb_sample_kind_name(sample->kind));
    return 0;
}

/* ---- what was written since, or never composed ---- */

int sample_check_bytes(const struct ebb_sample *sample) {
    struct object_place place;
    if (!sample->byte_count)
        return 0;
    size_t room = object_block((uintptr_t)sample, &place) - sizeof *sample;
    if (sample->byte_count <= room)
        return 0;
    return error_set(EBB_E_METADATA, "sample %p: %zu bytes of metadata, room for %zu",
                     (const void *)sample, sample->byte_count, room);
}

/* The live sample at an address; NULL with an error. */
static const struct ebb_sample *sample_find(const void *address) {
    const struct ebb_sample *found = ebb_object_as((void *)address, &ebb_type_sample);
    return found && sample_check_bytes(found) == 0 ? found : NULL;
}

bool sample_has(const struct ebb_sample *sample, const struct ebb_tensor *tensor) {
    return compose_has(&sample->object, tensor) && object_is_tensor(&tensor->object);
}

/* True if the sample is ragged and has all its members. */
static bool is_ragged(const struct ebb_sample *sample) {
    return sample_has(sample, sample->offsets) && sample_has(sample, sample->canvases) &&
           sample_has(sample, sample->data) && has_ragged_form(sample);
}

/* ---- making ---- */

static bool is_tensor_or_none(const struct ebb_tensor *tensor) {
    return !tensor || object_is_tensor(&tensor->object);
}

/* Of every sample that is composed, however it was made. */
static int check_sample(const struct ebb_object *object) {
    const struct ebb_sample *sample = (const struct ebb_sample *)object;
    struct ebb_sample_info info = sample_info(sample);
    if (!sample->data || !object_is_tensor(&sample->data->object) ||
        !is_tensor_or_none(sample->offsets) || !is_tensor_or_none(sample->canvases))
        return error_set(EBB_E_TYPE, "sample %p: data %p is no tensor", (const void *)object,
                         (void *)sample->data);
    int result = sample_check_bytes(sample);
    if (!result)
        result = check_info(&info, sample->offsets != NULL);
    if (!result)
        result = check_data(&info, sample->data, true);
    return result ? result : check_ragged(sample);
}

static const struct ebb_field fields[] = {
    EBB_FIELD(struct ebb_sample, EBB_FIELD_OBJECT, data),
    EBB_FIELD(struct ebb_sample, EBB_FIELD_OBJECT, offsets),
    EBB_FIELD(struct ebb_sample, EBB_FIELD_OBJECT, canvases),
};

struct ebb_type ebb_type_sample = {.name = "sample",
                                   .bytes = sizeof(struct ebb_sample),
                                   .fields = fields,
                                   .field_count = sizeof fields / sizeof *fields,
                                   .check = check_sample,
                                   .kind = EBB_OBJECT_SAMPLE};

struct ebb_sample *sample_make(struct region *region, const struct ebb_sample_info *info,
                               struct ebb_tensor *data, struct ebb_tensor *offsets,
                               struct ebb_tensor *canvases) {
    struct ebb_sample *sample =
        ebb_object_new(region_handle(region), &ebb_type_sample, info->byte_count);
    if (!sample)
        return NULL;
    sample->kind = info->kind;
    sample->format = info->format;
    sample->clamping = info->clamping;
    memcpy(sample->canvas, info->canvas, sizeof sample->canvas);
    sample->byte_count = info->byte_count;
    if (info->byte_count)
        memcpy(sample_bytes(sample), info->bytes, info->byte_count);
    sample->data = data;
    sample->offsets = offsets;
    sample->canvases = canvases;
    if (ebb_object_compose(sample) == 0)
        return sample;
    sample->data = sample->offsets = sample->canvases = NULL; /* they stay what they were */
    ebb_object_end(sample);
    return NULL;
}

/* The tensor if it can become a member of a sample in the region; NULL with an error. */
static struct ebb_tensor *find_free(const struct region *region, const struct ebb_tensor *tensor) {
    struct object_place place;
    struct ebb_tensor *found = tensor_find(tensor, &place);
    if (!found || object_check_staying(&found->object) != 0)
        return NULL;
    if (found->object.whole)
        error_set(EBB_E_MEMBER, "tensor %p is a member of %s %p", (const void *)tensor,
                  object_whole_name(&found->object), (void *)found->object.whole);
    else if (found->object.adoption)
        error_set(EBB_E_BORROWED, "tensor %p belongs to region '%s' for a time",
                  (const void *)tensor, object_owner(&found->object)->name);
    else if (place.host != region)
        error_set(EBB_E_NOT_OWNED, "tensor %p is of region '%s', not '%s'", (const void *)tensor,
                  place.host->name, region->name);
    else
        return found;
    return NULL;
}

/* A view with one more dimension of size 1 in front. */
static struct ebb_tensor *with_dimension(struct region *region, const struct ebb_tensor *tensor) {
    int64_t shape[EBB_DIMENSIONS_MAX], strides[EBB_DIMENSIONS_MAX];
    size_t bytes = sizeof *shape * (size_t)tensor->ndim;
    memcpy(shape + 1, tensor->shape, bytes);
    memcpy(strides + 1, tensor->strides, bytes);
    shape[0] = 1;
    strides[0] = ebb_tensor_count(tensor) ? tensor->shape[0] * tensor->strides[0] : 1;
    return ebb_tensor_view(region_handle(region), tensor, tensor->ndim + 1, shape, strides, 0);
}

/* A view of the whole tensor in the region. */
static struct ebb_tensor *view_all(struct region *region, const struct ebb_tensor *tensor) {
    return ebb_tensor_view(region_handle(region), tensor, tensor->ndim, tensor->shape,
                           tensor->strides, 0);
}

/* A sample that needs views, of a tensor that lacks a dimension or like a ragged one. */
static struct ebb_sample *make_with_views(struct region *region, struct ebb_tensor *tensor,
                                          const struct ebb_sample_info *info,
                                          const struct ebb_sample *ragged) {
    bool lacks = lacks_dimension(info, tensor);
    struct ebb_tensor *offsets = NULL, *canvases = NULL;
    struct ebb_sample *sample = NULL;
    struct attempt attempt;
    if (!attempt_begin(&attempt, region_handle(region)))
        return NULL;
    struct ebb_tensor *data = lacks ? with_dimension(region, tensor) : tensor;
    if (data && ragged) {
        offsets = view_all(region, ragged->offsets);
        canvases = offsets ? view_all(region, ragged->canvases) : NULL;
    }
    if (data && (canvases || !ragged))
        sample = sample_make(region, info, data, offsets, canvases);
    if (!sample)
        attempt_abandon(&attempt);
    else if (lacks)
        ebb_object_end(tensor);
    return sample;
}

static bool has_rows_of(const struct ebb_tensor *tensor, bool is_row,
                        const struct ebb_sample *ragged) {
    int64_t rows = is_row ? 1 : tensor->shape[0];
    bool is_whole = is_ragged(ragged);
    if (is_whole && rows == ragged->data->shape[0])
        return true;
    error_set(EBB_E_METADATA, "%lld rows, the ragged sample that it is to be like has %lld",
              (long long)rows, is_whole ? (long long)ragged->data->shape[0] : 0);
    return false;
}

/* `ragged` is the sample that it is to be like, if that is ragged; else NULL. */
static struct ebb_sample *check_and_make(ebb_region handle, struct ebb_tensor *tensor,
                                         struct ebb_sample_info info,
                                         const struct ebb_sample *ragged) {
    struct region *region = object_host_for(handle);
    struct ebb_tensor *found = region ? find_free(region, tensor) : NULL;
    if (!found)
        return NULL;
    if (info.kind == EBB_SAMPLE_BOXES && !info.clamping)
        info.clamping = EBB_CLAMP_SOFT;
    if (check_info(&info, ragged) != 0 || check_data(&info, found, false) != 0 ||
        (ragged && !has_rows_of(found, lacks_dimension(&info, found), ragged)))
        return NULL;
    if (ragged || lacks_dimension(&info, found))
        return make_with_views(region, found, &info, ragged);
    return sample_make(region, &info, found, NULL, NULL);
}

struct ebb_sample *ebb_sample_new(ebb_region region, struct ebb_tensor *tensor,
                                  const struct ebb_sample_info *info) {
    if (!info) {
        error_set(EBB_E_METADATA, "a sample without kind: info is NULL");
        return NULL;
    }
    return check_and_make(region, tensor, *info, NULL);
}

static struct ebb_sample_info changed(struct ebb_sample_info info,
                                      const struct ebb_sample_info *changes) {
    if (changes->format)
        info.format = changes->format;
    if (changes->clamping)
        info.clamping = changes->clamping;
    for (int i = 0; i < 2; i++)
        if (changes->canvas[i])
            info.canvas[i] = changes->canvas[i];
    if (changes->byte_count) {
        info.bytes = changes->bytes;
        info.byte_count = changes->byte_count;
    }
    return info;
}

struct ebb_sample *ebb_sample_wrap(ebb_region region, struct ebb_tensor *tensor,
                                   const struct ebb_sample *like,
                                   const struct ebb_sample_info *changes) {
    const struct ebb_sample *found = sample_find(like);
    if (!found)
        return NULL;
    struct ebb_sample_info info = sample_info(found);
    if (changes && changes->kind && changes->kind != info.kind) {
        error_set(EBB_E_METADATA, "like %s, but kind %d (%s) is asked",
                  ebb_sample_kind_name(info.kind), changes->kind,
                  ebb_sample_kind_name(changes->kind));
        return NULL;
    }
    return check_and_make(region, tensor, changes ? changed(info, changes) : info,
                          found->offsets ? found : NULL);
}

/* ---- reading ---- */

int ebb_sample_read(const struct ebb_sample *sample, struct ebb_sample_info *info) {
    const struct ebb_sample *found = sample_find(sample);
    if (!found)
        return error_latest();
    if (!info)
        return error_set(EBB_E_ARGUMENT, "nowhere to write to: info is NULL");
    *info = sample_info(found);
    return 0;
}

struct ebb_sample *ebb_sample_row(ebb_region handle, const struct ebb_sample *sample,
                                  size_t index) {
    const struct ebb_sample *found = sample_find(sample);
    struct region *region = found ? object_host_for(handle) : NULL;
    if (!region)
        return NULL;
    size_t images = is_ragged(found) ? (size_t)found->canvases->shape[0] : 0;
    if (index >= images) {
        error_set(EBB_E_ARGUMENT, "image %zu of a sample that has %zu", index, images);
        return NULL;
    }
    if (check_readable(found) != 0)
        return NULL;
    const int64_t *row = (const int64_t *)found->offsets->data + index;
    const int64_t *canvas = (const int64_t *)found->canvases->data + 2 * index;
    struct ebb_sample_info info = sample_info(found);
    memcpy(info.canvas, canvas, sizeof info.canvas);
    struct attempt attempt;
    if (!attempt_begin(&attempt, handle))
        return NULL;
    struct ebb_tensor *data =
        ebb_tensor_slice(handle, found->data, (struct ebb_slice){0, row[0], row[1], 1});
    struct ebb_sample *made = data ? sample_make(region, &info, data, NULL, NULL) : NULL;
    if (!made)
        attempt_abandon(&attempt);
    return made;
}
