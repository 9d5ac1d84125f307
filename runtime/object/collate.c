// SPDX-License-Identifier: Apache-2.0
/*
 * collate.c - samples side by side: first all of them are checked, then the batch is built.
 *
 * Both rounds walk the first sample and take the others along, column by column. What the first
 * round accepted the second can refuse only for want of memory; then all that was built is undone.
 * Refuses whatever is not alike, and says where.
 */
#include "object/collate.h"
#include "base/error.h"
#include "base/size.h"
#include "object/attempt.h"
#include "region/scratch.h"

#include <stdio.h>
#include <string.h>

/* ---- where we are ---- */

const char *collate_path(const struct collation *collation, char *text) {
    size_t at = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < collation->depth && at < COLLATE_PATH_BYTES; i++) {
        const struct ebb_node *node = collation->path[i].node;
        size_t place = collation->path[i].place, room = COLLATE_PATH_BYTES - at;
        const char *slash = i ? "/" : "";
        int length = kind_has_names(node->kind)
                         ? snprintf(text + at, room, "%s%s", slash, node_name_at(node, place + 1))
                         : snprintf(text + at, room, "%s%zu", slash, place);
        at += length < 0 ? room : (size_t)length;
    }
    return text;
}

/* EBB_E_STRUCTURE: sample `at` has `what`, the first has another. */
static int differs(const struct collation *collation, size_t at, const char *what,
                           const char *first) {
    char path[COLLATE_PATH_BYTES];
    return error_set(EBB_E_STRUCTURE, "sample %zu of %zu, '%s': %.60s, in the first %.60s", at,
                     collation->count, collate_path(collation, path), what, first);
}

/* ---- columns ---- */

static bool is_inner(const struct ebb_object *object) {
    return object_is_node(object) && kind_has_members(((const struct ebb_node *)object)->kind);
}

static size_t rule_count(const struct collation *collation) {
    return collation->options ? collation->options->rule_count : 0;
}

/* One block has everything: a column for each level, the tensors of one, the rules' targets. */
static int take_scratch(struct collation *collation, struct scratch *scratch, size_t levels) {
    size_t pointers, bytes;
    if (!size_multiply(levels + 1, collation->count, &pointers) ||
        !size_add(pointers, rule_count(collation), &pointers) ||
        !size_multiply(pointers, sizeof(void *), &bytes))
        return error_set(EBB_E_SIZE, "%zu samples, %zu levels, %zu rules are too many",
                         collation->count, levels, rule_count(collation));
    collation->columns = scratch_take(scratch, bytes);
    if (!collation->columns)
        return error_latest();
    void **tensors = collation->columns + levels * collation->count;
    collation->tensors = (struct ebb_tensor **)(void *)tensors;
    collation->targets = tensors + collation->count;
    return 0;
}

/* The member of `node` that belongs to member `place` of the first; SIZE_MAX: none. */
static size_t place_in(const struct ebb_node *node, const struct ebb_node *first, size_t place) {
    if (node->kind != EBB_NODE_DICT)
        return place;
    const char *key = node_name_at(first, place + 1);
    if (strcmp(node_name_at(node, place + 1), key) == 0)
        return place;
    return node_place(node, key, strlen(key));
}

/* Goes down to a member of the first sample; the others are known to have it. */
static void **descend(struct collation *collation, void *const *column, size_t place) {
    const struct ebb_node *first = column[0];
    void **below = collation->columns + collation->depth * collation->count;
    for (size_t i = 0; i < collation->count; i++) {
        const struct ebb_node *node = column[i];
        below[i] = node->members[place_in(node, first, place)];
    }
    collation->path[collation->depth++] = (struct collate_step){first, place};
    return below;
}

/* ---- checking ---- */

static int check(struct collation *collation, void *const *column);

/* Of a node or sample; of all other types 0. */
static int kind_number(const struct ebb_object *object) {
    if (object_is_node(object))
        return ((const struct ebb_node *)object)->kind;
    return object->type == &ebb_type_sample ? ((const struct ebb_sample *)object)->kind : 0;
}

static int check_kinds(const struct collation *collation, void *const *column) {
    char path[COLLATE_PATH_BYTES];
    for (size_t i = 0; i < collation->count; i++) {
        const struct ebb_object *first = column[0], *object = column[i];
        if (!object)
            return error_set(EBB_E_RELEASED, "sample %zu of %zu, '%s' was ended", i,
                             collation->count, collate_path(collation, path));
        if (object->type != first->type || kind_number(object) != kind_number(first))
            return differs(collation, i, object_kind_name(object),
                                   object_kind_name(first));
        if (object_is_node(object) && !node_is_sound((const struct ebb_node *)object))
            return error_set(EBB_E_TYPE, "sample %zu of %zu, '%s': not all members or bytes that "
                             "it has are there", i, collation->count,
                             collate_path(collation, path));
    }
    return 0;
}

static int check_name(const struct collation *collation, const struct ebb_node *node,
                      const struct ebb_node *first, size_t at, size_t name) {
    const char *wanted = node_name_at(first, name);
    if (node->kind == EBB_NODE_DICT && name == 0)
        return 0;
    if (node->kind == EBB_NODE_DICT && place_in(node, first, name - 1) == SIZE_MAX)
        return differs(collation, at, "no such key", wanted);
    if (node->kind == EBB_NODE_NAMED_TUPLE && strcmp(node_name_at(node, name), wanted) != 0)
        return differs(collation, at, node_name_at(node, name), wanted);
    return 0;
}

/* The usual case: the same names in the same order, so the same bytes. */
static bool has_names_of(const struct ebb_node *node, const struct ebb_node *first) {
    return node->byte_count == first->byte_count &&
           memcmp(node_bytes(node), node_bytes(first), first->byte_count) == 0;
}

/* Inner nodes have as many members, and the same names. */
static int check_members(const struct collation *collation, void *const *column) {
    const struct ebb_node *first = column[0];
    for (size_t i = 1; i < collation->count; i++) {
        const struct ebb_node *node = column[i];
        char counts[2][40];
        if (node->count != first->count) {
            snprintf(counts[0], sizeof counts[0], "%zu members", node->count);
            snprintf(counts[1], sizeof counts[1], "%zu members", first->count);
            return differs(collation, i, counts[0], counts[1]);
        }
        if (!kind_has_names(first->kind) || has_names_of(node, first))
            continue;
        for (size_t name = 0; name <= first->count; name++) {
            int result = check_name(collation, node, first, i, name);
            if (result)
                return result;
        }
    }
    return 0;
}

/* What is below a column are members of it, or were ended. */
static int check_composed(const struct collation *collation, void *const *column,
                          void *const *below) {
    char path[COLLATE_PATH_BYTES];
    for (size_t i = 0; i < collation->count; i++)
        if (below[i] && !compose_has(column[i], below[i]))
            return error_set(EBB_E_NOT_OWNED, "sample %zu of %zu, '%s': %p was not composed", i,
                             collation->count, collate_path(collation, path), below[i]);
    return 0;
}

static int check_inner(struct collation *collation, void *const *column) {
    const struct ebb_node *first = column[0];
    int result = check_members(collation, column);
    for (size_t i = 0; !result && i < first->count; i++) {
        void **below = descend(collation, column, i);
        result = check_composed(collation, column, below);
        if (!result)
            result = check(collation, below);
        collation->depth--;
    }
    return result;
}

static int check(struct collation *collation, void *const *column) {
    int result = check_kinds(collation, column);
    if (result)
        return result;
    return is_inner(column[0]) ? check_inner(collation, column)
                               : collate_check_leaf(collation, column);
}

/* ---- building ---- */

static void *build(struct collation *collation, void *const *column);

static void *build_inner(struct collation *collation, void *const *column) {
    const struct ebb_node *first = column[0];
    struct ebb_node *node =
        node_begin(collation->region, first->kind, first->count, first->byte_count);
    if (!node)
        return NULL;
    memcpy(node_bytes(node), node_bytes(first), first->byte_count);
    node->byte_count = first->byte_count;
    for (size_t i = 0; i < first->count; i++) {
        node->members[i] = build(collation, descend(collation, column, i));
        collation->depth--;
        if (!node->members[i])
            return NULL;
    }
    return node_compose(node, first->count) == 0 ? node : NULL;
}

static void *build(struct collation *collation, void *const *column) {
    return is_inner(column[0]) ? build_inner(collation, column)
                               : collate_build_leaf(collation, column);
}

/* ---- the whole ---- */

static int check_samples(const struct collation *collation, void *const *samples) {
    struct object_place place;
    if (collation->count == 0)
        return error_set(EBB_E_EMPTY, "no samples to collate");
    if (!samples)
        return error_set(EBB_E_ARGUMENT, "the list of %zu samples is NULL", collation->count);
    for (size_t i = 0; i < collation->count; i++) {
        int result = object_find(samples[i], &place);
        if (!result)
            result = object_check_staying(place.object);
        if (result)
            return result;
    }
    return 0;
}

static int check_rule(const struct ebb_collate_rule *rule, void *sample, void **target) {
    if (rule->how < EBB_COLLATE_DEFAULT || rule->how > EBB_COLLATE_PACK)
        return error_set(EBB_E_ARGUMENT, "rule '%.40s': how %d", rule->path ? rule->path : "",
                         (int)rule->how);
    *target = ebb_node_get(sample, rule->path);
    return *target ? 0 : error_set(EBB_E_ARGUMENT, "rule '%.40s' leads to nothing in the samples",
                                   rule->path ? rule->path : "");
}

static int check_options(const struct ebb_collate_options *options) {
    if (!options || (options->size == sizeof *options && (options->rules || !options->rule_count)))
        return 0;
    return error_set(EBB_E_ARGUMENT, "options of %zu bytes, %zu are known; %zu rules",
                     options->size, sizeof *options, options->rule_count);
}

static int check_all(struct collation *collation, void *const *samples) {
    int result = 0;
    for (size_t i = 0; !result && i < rule_count(collation); i++)
        result = check_rule(&collation->options->rules[i], samples[0], &collation->targets[i]);
    return result ? result : check(collation, samples);
}

/* Checks and builds. What was taken meanwhile is given back whatever comes out of it. */
static void *collate(struct collation *collation, void *const *samples) {
    struct scratch scratch;
    unsigned depth = compose_depth(samples[0]);
    if (depth > EBB_DEPTH_MAX) { /* what was lost was found again further down */
        error_set(EBB_E_DEPTH, "sample 0 of %zu: objects nested %u deep, %d may be",
                  collation->count, depth, EBB_DEPTH_MAX);
        return NULL;
    }
    /* one level more, for what is in fields and no member: it is looked at and refused */
    if (take_scratch(collation, &scratch, (size_t)depth + 1) != 0)
        return NULL;
    void *batch = check_all(collation, samples) == 0 ? build(collation, samples) : NULL;
    scratch_give(&scratch);
    return batch;
}

static void add_done(struct ebb_collated *done, const struct ebb_collated *more) {
    done->tensors += more->tensors;
    done->copied_bytes += more->copied_bytes;
    done->padded_bytes += more->padded_bytes;
}

void *ebb_batch_collate(ebb_region region, void *const *samples, size_t count,
                        const struct ebb_collate_options *options, struct ebb_collated *done) {
    struct collation collation = {.region = region, .count = count, .options = options};
    struct attempt attempt;
    if (!attempt_begin(&attempt, region) || check_samples(&collation, samples) != 0 ||
        check_options(options) != 0)
        return NULL;
    void *batch = collate(&collation, samples);
    if (!batch)
        attempt_abandon(&attempt);
    else if (done)
        add_done(done, &collation.done);
    return batch;
}
