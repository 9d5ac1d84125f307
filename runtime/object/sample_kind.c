// SPDX-License-Identifier: Apache-2.0
/*
 * sample_kind.c - the kinds of samples: ebb's own and those that users register; names.
 *
 * Invariant: names[k] is set for every user's kind below `next`; both only grow, and a name is
 * written before the number that covers it. Refuses names that are empty, taken or too long.
 */
#include "base/error.h"
#include "object/registry.h"
#include "object/sample.h"

#include <stdatomic.h>
#include <string.h>

#define NAME_BYTES 32

static const char *const own_names[] = {"unknown", "image", "video", "mask", "boxes", "points"};

static char names[EBB_SAMPLE_KINDS_MAX][NAME_BYTES];
static atomic_int next = EBB_SAMPLE_USER;

bool sample_kind_is_known(int kind) {
    /* acquire: the names below the number are seen */
    return (kind >= EBB_SAMPLE_IMAGE && kind <= EBB_SAMPLE_POINTS) ||
           (kind >= EBB_SAMPLE_USER &&
            kind < atomic_load_explicit(&next, memory_order_acquire));
}

const char *ebb_sample_kind_name(int kind) {
    if (!sample_kind_is_known(kind))
        return own_names[0];
    return kind < EBB_SAMPLE_USER ? own_names[kind] : names[kind];
}

static bool is_own_name(const char *name) {
    for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++)
        if (strcmp(name, own_names[i]) == 0)
            return true;
    return false;
}

/* The number of a name, a new one if there is none yet. The lock is held. */
static int number_of(const char *name) {
    int count = atomic_load_explicit(&next, memory_order_relaxed); /* written under the lock */
    for (int kind = EBB_SAMPLE_USER; kind < count; kind++)
        if (strcmp(names[kind], name) == 0)
            return kind;
    if (count == EBB_SAMPLE_KINDS_MAX)
        return error_set(EBB_E_METADATA, "kind '%s': all %d numbers are taken", name, count);
    strcpy(names[count], name);
    atomic_store_explicit(&next, count + 1, memory_order_release);
    return count;
}

int ebb_sample_register(const char *name) {
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || length >= NAME_BYTES || is_own_name(name))
        return error_set(EBB_E_METADATA,
                         "kind '%.40s': a name of %zu bytes; 1 to %d that ebb has not may be",
                         name ? name : "", length, NAME_BYTES - 1);
    registry_lock();
    int kind = number_of(name);
    registry_unlock();
    return kind;
}

const char *ebb_box_format_name(int format) {
    static const char *const formats[] = {"none",  "XYXY",    "XYWH",    "CXCYWH",
                                          "XYWHR", "CXCYWHR", "XYXYXYXY"};
    return format >= 0 && format <= EBB_BOX_XYXYXYXY ? formats[format] : "unknown";
}

const char *ebb_clamping_name(int clamping) {
    static const char *const modes[] = {"none", "soft", "hard", "none"};
    return clamping >= 0 && clamping <= EBB_CLAMP_NONE ? modes[clamping] : "unknown";
}
