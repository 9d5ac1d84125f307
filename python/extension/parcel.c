// SPDX-License-Identifier: Apache-2.0
/*
 * parcel.c - a parcel as few bytes: 8 of the pool, then four numbers, 7 bits to the byte.
 */
#include "batch.h"

#include <string.h>

enum { PARCEL_MOST = 8 + 4 * 10 };

static size_t put(unsigned char *to, uint64_t number) {
    size_t count = 0;
    for (; number >= 128; number >>= 7)
        to[count++] = (unsigned char)(number | 128);
    to[count++] = (unsigned char)number;
    return count;
}

/* Moves *at; past the end if there is no number. */
static uint64_t take(const unsigned char **at, const unsigned char *end) {
    uint64_t number = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        unsigned char byte = *(*at)++;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return number;
    }
    *at = end + 1;
    return 0;
}

PyObject *parcel_to_bytes(const struct ebb_parcel *parcel) {
    unsigned char bytes[PARCEL_MOST];
    size_t count = sizeof parcel->pool;
    memcpy(bytes, &parcel->pool, count);
    count += put(bytes + count, parcel->slot);
    count += put(bytes + count, parcel->generation);
    count += put(bytes + count, parcel->root);
    count += put(bytes + count, parcel->bytes);
    return PyBytes_FromStringAndSize((const char *)bytes, (Py_ssize_t)count);
}

int parcel_from_bytes(PyObject *object, struct ebb_parcel *parcel) {
    char *text;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(object, &text, &size) != 0)
        return -1;
    const unsigned char *at = (const unsigned char *)text, *end = at + size;
    uint64_t slot = 0, generation = 0;
    if (size > 8) {
        memcpy(&parcel->pool, at, 8);
        at += 8;
        slot = take(&at, end);
        generation = at <= end ? take(&at, end) : 0;
        parcel->root = at <= end ? take(&at, end) : 0;
        parcel->bytes = at <= end ? take(&at, end) : 0;
    }
    parcel->slot = (uint32_t)slot;
    parcel->generation = (uint32_t)generation;
    if (size > 8 && at == end && slot <= UINT32_MAX && generation <= UINT32_MAX)
        return 0;
    error_raise_as(EBB_E_PARCEL, "the bytes of the parcel are none that ebb made");
    return -1;
}
