// SPDX-License-Identifier: Apache-2.0
/*
 * batch.h - how a batch lies in a region that is sent.
 *
 *     root block   | header | leaves | numbers | stream |
 *     others       the elements that the leaves name, by their offset in the slot
 *
 * The stream is a pickle of protocol 5 in which each tensor is a call with the number of its leaf.
 * A leaf whose elements lie row-major has no strides. Its reader trusts nothing: each number is
 * read once and checked.
 */
#ifndef EBB_PYTHON_BATCH_H
#define EBB_PYTHON_BATCH_H

#include "module.h"

#define BATCH_MAGIC UINT64_C(0x31686374616265) /* "ebatch1" */

struct batch_header {
    uint64_t magic;
    uint64_t leaves;
    uint64_t numbers;
    uint64_t stream_bytes;
    uint64_t buffers; /* leaves that the stream takes out of band, in their order */
};

enum { LEAF_STRIDED = 1, LEAF_READ_ONLY = 2, LEAF_BUFFER = 4 };

struct batch_leaf {
    uint64_t offset; /* of the first element in the slot */
    uint64_t bytes;  /* from there to behind the last one */
    uint64_t first;  /* of its numbers: the shape, and the strides if it is strided */
    struct ebb_dtype dtype;
    uint8_t ndim, flags;
    uint16_t zero;
};

/* Makes the small integer of a leaf, or of a size. Most are kept. New reference. */
PyObject *batch_number(uint64_t value);

/* The functions that the stream calls. */
extern PyObject *batch_tensor_at, *batch_array_at;

/* ---- parcel.c ---- */

/* A Parcel of that pool, an ebb.Pool, which owns nothing yet; and what it owns from then on: what
 * was sent, and a list of the parcels in it, which nobody opens or pickles any more, or NULL. */
PyObject *parcel_new(PyObject *pool);
void parcel_own(PyObject *object, const struct ebb_parcel *parcel, PyObject *inside);
bool parcel_is(PyObject *object);
/* True if it was neither opened nor sent so far; else ValueError. */
bool parcel_check(PyObject *object);
/* The call that opens it where it is unpickled, as a reducer returns it; nothing has changed. NULL
 * with an exception. */
PyObject *parcel_call(PyObject *object);

/* ---- lease.c ---- */

/* The batch that was opened from that pool, which counts it; drops the caller's reference to the
 * lease. NULL with an exception. */
PyObject *lease_read(struct pool *pool, ebb_lease *lease);

int parcel_add(PyObject *module);
int writer_add(PyObject *module);
int lease_add(PyObject *module);

#endif
