// SPDX-License-Identifier: Apache-2.0
/*
 * collate_leaf.c - which way a column of leaves goes, and whether it can.
 *
 * The rule that counts says how; kinds of samples say what they can keep their metadata through.
 * Refuses ways on which a kind would be lost, and leaves that nothing is known of.
 */
#include "base/error.h"
#include "object/collate.h"
#include "object/dtype.h"
#include "object/exchange.h"
#include "object/shape_text.h"

#include <string.h>

/* ---- rules ---- */

static bool is_under(const struct ebb_object *object, const void *target) {
    while (object && object != target)
        object = object_whole(object);
    return object != NULL;
}

/* The rule that counts for the leaf of the first sample; the default if none covers it. */
static struct ebb_collate_rule rule_for(const struct collation *collation,
                                        const struct ebb_object *leaf) {
    struct ebb_collate_rule rule = {.how = EBB_COLLATE_DEFAULT};
    for (size_t left = collation->options ? collation->options->rule_count : 0; left; left--)
        if (is_under(leaf, collation->targets[left - 1])) {
            rule = collation->options->rules[left - 1];
            break;
        }
    if (rule.how == EBB_COLLATE_DEFAULT) {
        const struct ebb_sample *sample = (const struct ebb_sample *)leaf;
        bool rows = leaf->type == &ebb_type_sample &&
                    (sample->kind == EBB_SAMPLE_BOXES || sample->kind == EBB_SAMPLE_POINTS);
        rule.how = rows ? EBB_COLLATE_RAGGED : EBB_COLLATE_STACK;
    }
    return rule;
}

/* ---- what all ways ask for ---- */

/* All tensors have the data type of the first. 0 or EBB_E_DTYPE. */
static int check_dtypes(const struct collation *collation) {
    const struct ebb_tensor *first = collation->tensors[0];
    char dtypes[2][DTYPE_TEXT], path[COLLATE_PATH_BYTES];
    for (size_t i = 1; i < collation->count; i++) {
        const struct ebb_tensor *tensor = collation->tensors[i];
        if (ebb_dtype_equal(tensor->dtype, first->dtype))
            continue;
        dtype_describe(tensor->dtype, dtypes[0]);
        dtype_describe(first->dtype, dtypes[1]);
        return error_set(EBB_E_DTYPE, "sample %zu of %zu, '%s': %s, in the first %s", i,
                         collation->count, collate_path(collation, path), dtypes[0], dtypes[1]);
    }
    return 0;
}

int collate_misshapen(const struct collation *collation, size_t at) {
    const struct ebb_tensor *first = collation->tensors[0], *tensor = collation->tensors[at];
    char shapes[2][SHAPE_TEXT_BYTES], path[COLLATE_PATH_BYTES];
    return error_set(EBB_E_SHAPE, "sample %zu of %zu, '%s': shape %s, in the first %s", at,
                     collation->count, collate_path(collation, path),
                     shape_text(shapes[0], tensor->ndim, tensor->shape),
                     shape_text(shapes[1], first->ndim, first->shape));
}

/* Does the way go row by row, so that there may be different numbers of them? */
static bool is_by_rows(const struct ebb_collate_rule *rule) {
    return rule->how == EBB_COLLATE_RAGGED || rule->how == EBB_COLLATE_PACK;
}

static int check_tensors(const struct collation *collation, const struct ebb_collate_rule *rule) {
    for (size_t i = 0; i < collation->count; i++)
        if (import_check(collation->tensors[i]->storage) != 0)
            return EBB_E_RELEASED;
    int result = check_dtypes(collation);
    if (result)
        return result;
    return is_by_rows(rule) ? collate_check_rows(collation) : collate_check_dense(collation, rule);
}

/* ---- samples ---- */

static int no_way(const struct collation *collation, const struct ebb_sample *sample,
                  const char *why) {
    char path[COLLATE_PATH_BYTES];
    return error_set(EBB_E_METADATA, "'%s': %s %s", collate_path(collation, path),
                     ebb_sample_kind_name(sample->kind), why);
}

/* Can this kind go this way and still be what it is? */
static int check_way(const struct collation *collation, const struct ebb_sample *sample,
                     enum ebb_collate_how how) {
    bool rows = sample->kind == EBB_SAMPLE_BOXES || sample->kind == EBB_SAMPLE_POINTS;
    if (sample->offsets)
        return no_way(collation, sample, "that are ragged already cannot be collated");
    if (rows && (sample->canvas[0] < 1 || sample->canvas[1] < 1))
        return no_way(collation, sample, "have no canvas: they were ragged until it ended");
    if (how == EBB_COLLATE_PACK)
        return no_way(collation, sample, "cannot be packed: a packed sequence has no kind");
    if (how == EBB_COLLATE_RAGGED && !rows)
        return no_way(collation, sample, "cannot be ragged: stack or pad");
    if (how != EBB_COLLATE_RAGGED && sample->kind == EBB_SAMPLE_BOXES)
        return no_way(collation, sample, "have two dimensions: they can be ragged only");
    return 0;
}

/* The canvas of ragged rows may differ, everything else may not. */
static bool is_metadata_equal(const struct ebb_sample *sample, const struct ebb_sample *first,
                              bool canvas) {
    return sample->format == first->format && sample->clamping == first->clamping &&
           (!canvas || memcmp(sample->canvas, first->canvas, sizeof first->canvas) == 0) &&
           sample->byte_count == first->byte_count &&
           memcmp(sample_bytes(sample), sample_bytes(first), first->byte_count) == 0;
}

static int check_metadata(const struct collation *collation, void *const *column, bool canvas) {
    const struct ebb_sample *first = column[0];
    char path[COLLATE_PATH_BYTES];
    for (size_t i = 1; i < collation->count; i++) {
        const struct ebb_sample *sample = column[i];
        if (!is_metadata_equal(sample, first, canvas))
            return error_set(
                EBB_E_METADATA,
                "sample %zu of %zu, '%s': %s, %s, %lld x %lld, %zu bytes, in the first %s, %s, "
                "%lld x %lld, %zu bytes",
                i, collation->count, collate_path(collation, path),
                ebb_box_format_name(sample->format), ebb_clamping_name(sample->clamping),
                (long long)sample->canvas[0], (long long)sample->canvas[1], sample->byte_count,
                ebb_box_format_name(first->format), ebb_clamping_name(first->clamping),
                (long long)first->canvas[0], (long long)first->canvas[1], first->byte_count);
    }
    return 0;
}

/* Notes the tensors of a column of samples; one may have been ended alone, or never composed. */
static int note_data(struct collation *collation, void *const *column) {
    char path[COLLATE_PATH_BYTES];
    for (size_t i = 0; i < collation->count; i++) {
        const struct ebb_sample *sample = column[i];
        collation->tensors[i] = sample->data;
        if (!sample_has(sample, sample->data))
            return error_set(sample->data ? EBB_E_NOT_OWNED : EBB_E_RELEASED,
                             "sample %zu of %zu, '%s': its data %s", i, collation->count,
                             collate_path(collation, path),
                             sample->data ? "was not composed" : "was ended");
        if (sample_check_bytes(sample) != 0)
            return EBB_E_METADATA;
    }
    return 0;
}

static int check_samples(struct collation *collation, void *const *column,
                         const struct ebb_collate_rule *rule) {
    int result = note_data(collation, column);
    for (size_t i = 0; !result && i < collation->count; i++)
        result = check_way(collation, column[i], rule->how);
    if (!result)
        result = check_metadata(collation, column, rule->how != EBB_COLLATE_RAGGED);
    return result ? result : check_tensors(collation, rule);
}

/* ---- leaves ---- */

static void note_tensors(struct collation *collation, void *const *column) {
    for (size_t i = 0; i < collation->count; i++)
        collation->tensors[i] = column[i];
}

static int check_plain(const struct collation *collation, const struct ebb_object *first) {
    char path[COLLATE_PATH_BYTES];
    if (!collate_is_plain(first))
        return error_set(EBB_E_TYPE, "'%s': no way is known to collate '%s'",
                         collate_path(collation, path), object_kind_name(first));
    if (collate_becomes_list(first) && collation->depth == EBB_DEPTH_MAX)
        return error_set(EBB_E_DEPTH, "'%s': a list more than %d deep",
                         collate_path(collation, path), EBB_DEPTH_MAX);
    return 0;
}

int collate_check_leaf(struct collation *collation, void *const *column) {
    const struct ebb_object *first = column[0];
    struct ebb_collate_rule rule = rule_for(collation, first);
    char path[COLLATE_PATH_BYTES];
    if (first->type == &ebb_type_sample)
        return check_samples(collation, column, &rule);
    if (!object_is_tensor(first))
        return check_plain(collation, first);
    note_tensors(collation, column);
    if (is_by_rows(&rule) && collation->depth == EBB_DEPTH_MAX)
        return error_set(EBB_E_DEPTH, "'%s': a composite more than %d deep",
                         collate_path(collation, path), EBB_DEPTH_MAX);
    return check_tensors(collation, &rule);
}

static void note_done(struct collation *collation) {
    collation->done.tensors += collation->count;
    for (size_t i = 0; i < collation->count; i++)
        collation->done.copied_bytes += ebb_tensor_bytes(collation->tensors[i]);
}

static void *build_samples(struct collation *collation, void *const *column,
                           const struct ebb_collate_rule *rule) {
    struct ebb_sample_info info = sample_info(column[0]);
    for (size_t i = 0; i < collation->count; i++)
        collation->tensors[i] = ((const struct ebb_sample *)column[i])->data;
    note_done(collation);
    if (rule->how == EBB_COLLATE_RAGGED)
        return collate_build_ragged(collation, column);
    struct ebb_tensor *data = collate_build_dense(collation, rule);
    return data ? sample_make(region_find(collation->region), &info, data, NULL, NULL) : NULL;
}

void *collate_build_leaf(struct collation *collation, void *const *column) {
    const struct ebb_object *first = column[0];
    struct ebb_collate_rule rule = rule_for(collation, first);
    if (first->type == &ebb_type_sample)
        return build_samples(collation, column, &rule);
    if (!object_is_tensor(first))
        return collate_build_plain(collation, column);
    note_tensors(collation, column);
    note_done(collation);
    if (is_by_rows(&rule))
        return collate_build_rows(collation, &rule);
    return collate_build_dense(collation, &rule);
}
