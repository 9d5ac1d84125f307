// SPDX-License-Identifier: Apache-2.0
/*
 * value.c - values that the caller gives become elements (see value.h).
 *
 * Whatever the kind of the value, its parts pass through the wide forms of number.h, so that it is
 * held exactly or refused.
 */
#include "object/value.h"
#include "base/error.h"
#include "object/dtype.h"
#include "object/number.h"

#include <stdio.h>
#include <string.h>

/* The parts of a value in wide form, and the kind that has this form; false if it is none. */
static bool take_apart(struct ebb_value value, union number parts[2], enum number_kind *kind) {
    parts[0] = parts[1] = (union number){.u = 0};
    *kind = NUMBER_FLOAT64;
    switch (value.kind) {
    case EBB_VALUE_INT:
        *kind = NUMBER_INT64;
        parts[0].i = value.i;
        return true;
    case EBB_VALUE_UINT:
        *kind = NUMBER_UINT64;
        parts[0].u = value.u;
        return true;
    case EBB_VALUE_BOOL:
        *kind = NUMBER_INT64;
        parts[0].i = value.b;
        return true;
    case EBB_VALUE_COMPLEX:
        parts[1].f = value.imaginary;
        parts[0].f = value.f;
        return true;
    case EBB_VALUE_FLOAT:
        parts[0].f = value.f;
        return true;
    }
    return false;
}

static int report_value(enum number_kind kind, const union number parts[2], bool is_complex,
                        struct ebb_dtype dtype) {
    char text[2][40] = {"", ""}, name[DTYPE_TEXT];
    number_describe(kind, parts[0], text[0], sizeof text[0]);
    if (is_complex)
        snprintf(text[1], sizeof text[1], "%+.17gi", parts[1].f);
    dtype_describe(dtype, name);
    return error_set(EBB_E_VALUE, "%s%s is not held exactly by %s", text[0], text[1], name);
}

bool value_is_blank(struct ebb_value value) {
    union number parts[2];
    enum number_kind kind;
    return take_apart(value, parts, &kind) && (parts[0].u | parts[1].u) == 0;
}

int value_write(struct ebb_value value, struct ebb_dtype dtype, void *element) {
    struct number_type type;
    union number given[2], parts[2];
    enum number_kind kind;
    char bytes[NUMBER_ELEMENT_BYTES] = {0};
    if (!number_type_of(dtype, &type))
        return EBB_E_DTYPE;
    if (!take_apart(value, given, &kind))
        return error_set(EBB_E_ARGUMENT, "a value of kind %d, 0 to %d may be", (int)value.kind,
                         EBB_VALUE_BOOL);
    memcpy(parts, given, sizeof parts);
    bool exact = (type.parts == 2 || number_is_zero(given[1])) &&
                 numbers_change(kind, type.kind, parts, (size_t)type.parts);
    for (int at = 0; exact && at < type.lanes * type.parts; at++)
        exact = numbers_write(&type, at, &parts[at % type.parts], bytes, 0, 1);
    if (!exact)
        return report_value(kind, given, value.kind == EBB_VALUE_COMPLEX, dtype);
    memcpy(element, bytes, ebb_dtype_bytes(dtype));
    return 0;
}
