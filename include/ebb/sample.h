// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/sample.h - typed samples: tensors that know what they show.
 *
 * A sample is an object (ebb/object.h) with one tensor, its kind and the metadata of the kind. It
 * goes everywhere as one: kind and metadata cannot be lost on the way, nor can the tensor leave
 * without them. Wrapping never copies: the sample's data is where the tensor's was.
 *
 *     kind            data                          metadata
 *     image           [..., C, H, W]; [H, W] is seen as [1, H, W]       none
 *     video           [..., T, C, H, W]                                 none
 *     mask            any shape                                         none
 *     boxes           [N, 4], [N, 5] or [N, 8] by format; [K] as [1, K] format, canvas, clamping
 *     points          [..., 2]; [2] is seen as [1, 2]                   canvas
 *     one of yours    any shape                                         bytes
 *
 * ebb_sample_new() and ebb_sample_wrap() see it so. Data that ebb_object_replace() brings in, or
 * that a sample composed by hand has, must have that dimension (else EBB_E_METADATA).
 *
 * A *ragged* sample is what collate (ebb/collate.h) makes of boxes or points of many images: rows
 * one after the other, where each image's rows begin, and one canvas for each image.
 *
 * Source of the semantics: torchvision's TVTensors. Where they drop the type, or take metadata
 * that fits no kind, there is an error here.
 *
 * One thread at a time for the regions concerned.
 */
#ifndef EBB_SAMPLE_H
#define EBB_SAMPLE_H

#include <ebb/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ebb_sample_kind {
    EBB_SAMPLE_IMAGE = 1,
    EBB_SAMPLE_VIDEO = 2,
    EBB_SAMPLE_MASK = 3,
    EBB_SAMPLE_BOXES = 4,
    EBB_SAMPLE_POINTS = 5,
    EBB_SAMPLE_USER = 16 /* the first kind that ebb_sample_register() gives */
};

#define EBB_SAMPLE_KINDS_MAX 64 /* ebb's and users' */

enum ebb_box_format {
    EBB_BOX_XYXY = 1,    /* left, top, right, bottom */
    EBB_BOX_XYWH = 2,    /* left, top, width, height */
    EBB_BOX_CXCYWH = 3,  /* centre, width, height */
    EBB_BOX_XYWHR = 4,   /* XYWH and an angle in degrees; floating point only, as all below */
    EBB_BOX_CXCYWHR = 5, /* CXCYWH and an angle in degrees */
    EBB_BOX_XYXYXYXY = 6 /* four corners */
};

enum ebb_clamping { EBB_CLAMP_SOFT = 1, EBB_CLAMP_HARD = 2, EBB_CLAMP_NONE = 3 };

/* What a sample is said to be. Zero means: does not apply, the default, or as the other one. */
struct ebb_sample_info {
    int32_t kind;      /* enum ebb_sample_kind, or a number of ebb_sample_register() */
    int32_t format;    /* of boxes: enum ebb_box_format */
    int32_t clamping;  /* of boxes: enum ebb_clamping; default: soft */
    int64_t canvas[2]; /* of boxes and points: height and width of the image, at least 1 */
    const void *bytes; /* of users' kinds: copied */
    size_t byte_count;
};

/* A sample. Read only. The bytes of users' kinds lie behind it: see ebb_sample_read(). */
struct ebb_sample {
    struct ebb_object object;
    struct ebb_tensor *data;     /* member; NULL if it was ended alone */
    struct ebb_tensor *offsets;  /* member: int64 [images + 1], rows of `data`; NULL: not ragged */
    struct ebb_tensor *canvases; /* member: int64 [images, 2]; with `offsets` only */
    int32_t kind, format, clamping;
    int64_t canvas[2];           /* 0 if ragged */
    size_t byte_count;
};

/* The type of samples; kind 1 of all counters. */
EBB_API extern struct ebb_type ebb_type_sample;
#define EBB_OBJECT_SAMPLE 1u

/*
 * A number for a kind of the user's with this name (copied, 1 to 31 bytes), at least
 * EBB_SAMPLE_USER; the same again for the same name. Any thread. Lives as long as the process.
 * Negative on failure: EBB_E_METADATA (no name, a name of ebb's, too long, or all numbers taken).
 */
EBB_API int ebb_sample_register(const char *name);

/* "image", "boxes", a user's name; "unknown" for a number that is none. Static. Any thread. */
EBB_API const char *ebb_sample_kind_name(int kind);

/* "XYXY" and so on, "soft" and so on; "none" for 0, "unknown" for others. Static. Any thread. */
EBB_API const char *ebb_box_format_name(int format);
EBB_API const char *ebb_clamping_name(int clamping);

/*
 * A sample in `region` of `tensor`, which lies there, too, and becomes its member `data`. Where
 * the kind asks for one more dimension (see above) the tensor ends and `data` is a view of its
 * storage; otherwise `data` is the tensor itself. In both cases no element moves. Valid until:
 * ebb_object_end(), the end of its owner. NULL on failure, without effect: EBB_E_METADATA (kind,
 * format, clamping, canvas, bytes or shape do not fit, with the numbers), EBB_E_NOT_OWNED,
 * EBB_E_MEMBER and EBB_E_BORROWED (the tensor; it is lent, or attached elsewhere), and those of
 * ebb_object_new().
 */
EBB_API EBB_NODISCARD struct ebb_sample *ebb_sample_new(ebb_region region,
                                                        struct ebb_tensor *tensor,
                                                        const struct ebb_sample_info *info);

/*
 * The same with kind and metadata of `like`, a sample in any region; what is not zero in
 * `changes` (may be NULL) takes the place of like's, height and width of the canvas each for
 * itself. The kind cannot change. If `like` is ragged so is the new sample: it has as many rows,
 * its region is that of like's storages or below, and its canvas cannot change. Errors as
 * ebb_sample_new(); EBB_E_TYPE if `like` is no sample.
 */
EBB_API EBB_NODISCARD struct ebb_sample *ebb_sample_wrap(ebb_region region,
                                                         struct ebb_tensor *tensor,
                                                         const struct ebb_sample *like,
                                                         const struct ebb_sample_info *changes);

/* Kind and metadata. `bytes` is valid as long as the sample. Errors: EBB_E_TYPE, EBB_E_RELEASED,
 * EBB_E_METADATA (made by hand, with more bytes than its block has), EBB_E_ARGUMENT (info NULL). */
EBB_API int ebb_sample_read(const struct ebb_sample *sample, struct ebb_sample_info *info);

/*
 * Image number `index` of a ragged sample, as a sample in `region` that shares its storage and has
 * the canvas of that image. NULL on failure: EBB_E_ARGUMENT (not ragged, or no such image),
 * EBB_E_SHAPE (its offsets were written since, and are no rows), those of ebb_sample_read(), and as
 * ebb_tensor_view().
 */
EBB_API EBB_NODISCARD struct ebb_sample *
ebb_sample_row(ebb_region region, const struct ebb_sample *sample, size_t index);

#ifdef __cplusplus
}
#endif

#endif
