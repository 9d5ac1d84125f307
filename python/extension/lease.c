// SPDX-License-Identifier: Apache-2.0
/*
 * lease.c - reads a batch that was sent: the stream is read, its calls make tensors and arrays.
 *
 * While a stream is read, the reader is the thread's current one; the functions that the stream
 * calls find the leaves by it. Tensors hold the lease by the deleter of their DLPack struct, which
 * is libebb's: it takes no lock of the interpreter, and any thread may call it, also after the
 * interpreter's end. Arrays hold it by a Slice.
 *
 * Whoever wrote the batch may be broken: the header and each leaf are read once and checked.
 */
#include "batch.h"
#include "capsule.h"

#include <string.h>

struct reader {
    ebb_lease *lease;
    struct batch_header header;
    const char *leaves, *numbers, *stream; /* in the root block */
    struct reader *outer;                  /* that this one interrupts */
};

static _Thread_local struct reader *current;

/* ---- slices: bytes of a lease, for arrays and out-of-band buffers ---- */

struct slice {
    PyObject_HEAD
    ebb_lease *lease;
    void *data;
    Py_ssize_t bytes;
    int read_only;
};

static PyObject *slice_type;

static PyObject *slice_new(ebb_lease *lease, const struct batch_leaf *leaf) {
    static char none; /* what an array without elements points to */
    PyTypeObject *type = (PyTypeObject *)slice_type;
    void *data = leaf->bytes ? ebb_lease_at(lease, leaf->offset, leaf->bytes) : &none;
    if (!data)
        return error_raise();
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct slice *self = (struct slice *)make(type, 0);
    if (!self)
        return NULL;
    ebb_lease_hold(lease);
    self->lease = lease;
    self->data = data;
    self->bytes = (Py_ssize_t)leaf->bytes;
    self->read_only = (leaf->flags & LEAF_READ_ONLY) != 0;
    return (PyObject *)self;
}

static void slice_dealloc(PyObject *object) {
    struct slice *self = (struct slice *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    ebb_lease_drop(self->lease);
    release(object);
    Py_DECREF(type);
}

static int slice_get_buffer(PyObject *object, Py_buffer *view, int flags) {
    const struct slice *self = (struct slice *)object;
    return PyBuffer_FillInfo(view, object, self->data, self->bytes, self->read_only, flags);
}

static PyType_Slot slice_slots[] = {{Py_tp_dealloc, slice_dealloc},
                                    {Py_bf_getbuffer, slice_get_buffer},
                                    {Py_tp_doc, "Bytes of a batch. They stay while this does."},
                                    {0, NULL}};

static PyType_Spec slice_spec = {"ebb._ebb.Slice", sizeof(struct slice), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 slice_slots};

/* ---- leaves ---- */

/* Reads a leaf once. Its numbers are copied to `numbers`: shape and, if strided, strides. */
static int read_leaf(const struct reader *reader, uint64_t index, struct batch_leaf *leaf,
                     int64_t numbers[2 * EBB_DIMENSIONS_MAX]) {
    if (index >= reader->header.leaves) {
        error_raise_as(EBB_E_PARCEL, "the batch has no leaf of that number");
        return -1;
    }
    memcpy(leaf, reader->leaves + index * sizeof *leaf, sizeof *leaf);
    uint64_t count = (uint64_t)leaf->ndim * (leaf->flags & LEAF_STRIDED ? 2 : 1);
    if (leaf->ndim > EBB_DIMENSIONS_MAX || leaf->first > reader->header.numbers ||
        count > reader->header.numbers - leaf->first) {
        error_raise_as(EBB_E_PARCEL, "a leaf of the batch has no numbers that could be its shape");
        return -1;
    }
    memcpy(numbers, reader->numbers + leaf->first * sizeof *numbers, count * sizeof *numbers);
    return 0;
}

static int begin_leaf(PyObject *number, struct batch_leaf *leaf,
                      int64_t numbers[2 * EBB_DIMENSIONS_MAX]) {
    if (!current) {
        error_raise_as(EBB_E_ORDER, "leaves are made only while their batch is opened");
        return -1;
    }
    uint64_t index = PyLong_AsUnsignedLongLong(number);
    if (index == UINT64_MAX && PyErr_Occurred())
        return -1;
    return read_leaf(current, index, leaf, numbers);
}

/* ---- what the stream calls ---- */

static int need_torch(void) {
    if (torch_names.tensor)
        return 0;
    PyObject *torch = PyImport_ImportModule("torch");
    Py_XDECREF(torch);
    if (!torch || library_find() != 0)
        return -1;
    if (!torch_names.tensor)
        PyErr_SetString(PyExc_ImportError, "torch has no way to read DLPack");
    return torch_names.tensor ? 0 : -1;
}

static PyObject *be_bool(PyObject *bytes) {
    PyObject *tensor = PyObject_CallFunctionObjArgs(torch_names.view, bytes,
                                                    torch_names.bool_type, NULL);
    Py_DECREF(bytes);
    return tensor;
}

/* torch.Tensor number `number` of the batch that is being opened. */
static PyObject *tensor_at(PyObject *Py_UNUSED(module), PyObject *number) {
    struct batch_leaf leaf = {0};
    int64_t numbers[2 * EBB_DIMENSIONS_MAX];
    if (begin_leaf(number, &leaf, numbers) != 0 || need_torch() != 0)
        return NULL;
    bool is_bool = leaf.dtype.code == EBB_BOOL;
    if (is_bool)
        leaf.dtype.code = EBB_UINT; /* torch 1.13 reads no other */
    DLManagedTensor *managed = ebb_lease_export(
        current->lease, leaf.offset, leaf.dtype, leaf.ndim, numbers,
        leaf.flags & LEAF_STRIDED ? numbers + leaf.ndim : NULL);
    PyObject *capsule = managed ? exchange_wrap(managed) : error_raise();
    if (!capsule)
        return NULL;
    PyObject *tensor = PyObject_CallFunctionObjArgs(torch_names.from_dlpack, capsule, NULL);
    Py_DECREF(capsule);
    return tensor && is_bool ? be_bool(tensor) : tensor;
}

/*
 * Strides of the elements in bytes, given or row-major; how far they reach must lie in the leaf's
 * bytes. numpy's own check gives up where a buffer is empty. Writes strides behind the shape.
 */
static int check_extent(const struct batch_leaf *leaf, int64_t *numbers, int64_t item) {
    int64_t *strides = numbers + leaf->ndim, reach = item, step, row = item;
    bool is_strided = (leaf->flags & LEAF_STRIDED) != 0, is_empty = false, lies = item <= 0;
    for (int i = leaf->ndim - 1; i >= 0 && !lies; i--) {
        if (!is_strided)
            strides[i] = row;
        else
            lies = __builtin_mul_overflow(strides[i], item, &strides[i]);
        lies = lies || numbers[i] < 0 || strides[i] < 0;
        is_empty = is_empty || numbers[i] == 0;
        lies = lies || __builtin_mul_overflow(row, numbers[i] ? numbers[i] : 1, &row);
        lies = lies || __builtin_mul_overflow(strides[i], numbers[i] - 1, &step);
        lies = lies || __builtin_add_overflow(reach, numbers[i] ? step : 0, &reach);
    }
    if (!lies && (is_empty || (uint64_t)reach <= leaf->bytes))
        return 0;
    error_raise_as(EBB_E_PARCEL, "an array of the batch does not lie in its own bytes");
    return -1;
}

/* Strides in bytes as a tuple; None for row-major elements. */
static PyObject *byte_strides(const struct batch_leaf *leaf, int64_t *numbers, PyObject *dtype) {
    PyObject *size = PyObject_GetAttrString(dtype, "itemsize");
    int64_t item = size ? PyLong_AsLongLong(size) : -1;
    Py_XDECREF(size);
    if ((item < 0 && PyErr_Occurred()) || check_extent(leaf, numbers, item) != 0)
        return NULL;
    return leaf->flags & LEAF_STRIDED ? shape_tuple(numbers + leaf->ndim, leaf->ndim)
                                      : Py_NewRef(Py_None);
}

static int need_numpy(void) {
    if (numpy_array)
        return 0;
    PyObject *numpy = PyImport_ImportModule("numpy");
    Py_XDECREF(numpy);
    return numpy ? library_find() : -1;
}

/* numpy.ndarray(shape, dtype, buffer, 0, strides): numpy checks that all lies in the buffer. */
static PyObject *array_at(PyObject *Py_UNUSED(module), PyObject *arguments) {
    struct batch_leaf leaf = {0};
    int64_t numbers[2 * EBB_DIMENSIONS_MAX];
    PyObject *number, *dtype;
    if (!PyArg_ParseTuple(arguments, "OO:_array_at", &number, &dtype))
        return NULL;
    if (begin_leaf(number, &leaf, numbers) != 0 || need_numpy() != 0)
        return NULL;
    PyObject *slice = slice_new(current->lease, &leaf);
    PyObject *shape = slice ? shape_tuple(numbers, leaf.ndim) : NULL;
    PyObject *strides = shape ? byte_strides(&leaf, numbers, dtype) : NULL;
    PyObject *zero = strides ? batch_number(0) : NULL;
    PyObject *array = zero ? PyObject_CallFunctionObjArgs(numpy_array, shape, dtype, slice, zero,
                                                          strides, NULL)
                           : NULL;
    Py_XDECREF(zero);
    Py_XDECREF(strides);
    Py_XDECREF(shape);
    Py_XDECREF(slice);
    return array;
}

/* ---- opening ---- */

/* Whether everything that the header says lies in the root block. */
static int read_header(struct reader *reader, const char *root, size_t bytes) {
    struct batch_header *header = &reader->header;
    uint64_t room = bytes - sizeof *header, leaf = sizeof(struct batch_leaf);
    if (bytes < sizeof *header)
        return -1;
    memcpy(header, root, sizeof *header);
    if (header->magic != BATCH_MAGIC || header->leaves > room / leaf)
        return -1;
    room -= header->leaves * leaf;
    if (header->numbers > room / sizeof(int64_t))
        return -1;
    room -= header->numbers * sizeof(int64_t);
    if (header->stream_bytes > room || header->buffers > header->leaves)
        return -1;
    reader->leaves = root + sizeof *header;
    reader->numbers = reader->leaves + header->leaves * leaf;
    reader->stream = reader->numbers + header->numbers * sizeof(int64_t);
    return 0;
}

static PyObject *list_buffers(const struct reader *reader) {
    PyObject *list = PyList_New(0);
    for (uint64_t i = 0; list && reader->header.buffers && i < reader->header.leaves; i++) {
        struct batch_leaf leaf;
        memcpy(&leaf, reader->leaves + i * sizeof leaf, sizeof leaf);
        if (!(leaf.flags & LEAF_BUFFER))
            continue;
        PyObject *slice = slice_new(reader->lease, &leaf);
        if (!slice || PyList_Append(list, slice) != 0)
            Py_CLEAR(list);
        Py_XDECREF(slice);
    }
    return list;
}

static PyObject *loads; /* pickle.loads */

/* loads(stream, buffers=...) with the reader as the thread's current one. */
static PyObject *read_stream(struct reader *reader) {
    PyObject *buffers = list_buffers(reader);
    PyObject *words = buffers ? Py_BuildValue("{sN}", "buffers", buffers) : NULL;
    PyObject *stream = PyMemoryView_FromMemory((char *)(uintptr_t)reader->stream,
                                               (Py_ssize_t)reader->header.stream_bytes,
                                               PyBUF_READ);
    PyObject *arguments = stream ? PyTuple_Pack(1, stream) : NULL;
    PyObject *batch = NULL;
    if (words && arguments) {
        reader->outer = current;
        current = reader;
        batch = PyObject_Call(loads, arguments, words);
        current = reader->outer;
    }
    Py_XDECREF(arguments);
    Py_XDECREF(stream);
    Py_XDECREF(words);
    return batch;
}

PyObject *lease_read(struct pool *pool, ebb_lease *lease) {
    struct reader reader = {.lease = lease};
    size_t root_bytes = 0;
    pool_try_one_waiting();
    const char *root = ebb_lease_root(lease, &root_bytes);
    PyObject *batch = NULL;
    if (root && read_header(&reader, root, root_bytes) == 0) {
        pool_batches(pool)->received++;
        batch = read_stream(&reader);
    } else {
        error_raise_as(EBB_E_PARCEL, "what was sent is no batch of Python's");
    }
    ebb_lease_drop(lease);
    return batch;
}

PyDoc_STRVAR(guard_doc,
"guard_at(address, device, stream)\n--\n\n"
"The lease that holds the address is not free before the stream has done what it was asked.\n"
"Returns where what was sent begins and ends; None if the address is in no lease.");

static PyObject *guard_at(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *where, *handle;
    int device;
    if (!PyArg_ParseTuple(arguments, "OiO:guard_at", &where, &device, &handle))
        return NULL;
    const void *address = PyLong_AsVoidPtr(where);
    void *stream = PyErr_Occurred() ? NULL : PyLong_AsVoidPtr(handle);
    if (PyErr_Occurred())
        return NULL;
    ebb_lease *lease = ebb_lease_of(address);
    if (!lease)
        Py_RETURN_NONE;
    uintptr_t start = (uintptr_t)ebb_lease_at(lease, 0, 0);
    unsigned long long end = start + ebb_lease_bytes(lease);
    int result = ebb_lease_guard(lease, device, stream);
    PyObject *range = result == 0 ? Py_BuildValue("KK", (unsigned long long)start, end)
                                  : error_raise();
    ebb_lease_drop(lease);
    return range;
}

PyDoc_STRVAR(buffer_at_doc,
"buffer_at(object)\n--\n\n"
"The address of the first byte of an object's buffer; 0 if it has none, or gives none now. Of a\n"
"Tensor that of its first element, which in its buffer may be a copy.");

static PyObject *buffer_at(PyObject *Py_UNUSED(module), PyObject *object) {
    Py_buffer buffer;
    if (tensor_is(object)) {
        const struct ebb_tensor *tensor = tensor_to_use(object);
        PyErr_Clear(); /* it has ended, or its elements are gone */
        return PyLong_FromVoidPtr(tensor ? tensor->data : NULL);
    }
    if (!PyObject_CheckBuffer(object))
        return PyLong_FromLong(0);
    if (PyObject_GetBuffer(object, &buffer, PyBUF_FULL_RO) != 0)
        return error_forgive() ? PyLong_FromLong(0) : NULL;
    PyObject *address = PyLong_FromVoidPtr(buffer.buf);
    PyBuffer_Release(&buffer);
    return address;
}

/* ---- the functions of the module ---- */

static PyMethodDef functions[] = {
    {"_tensor_at", tensor_at, METH_O, "_tensor_at(number)\n--\n\nA tensor of the batch."},
    {"_array_at", array_at, METH_VARARGS, "_array_at(number, dtype)\n--\n\nAn array of the batch."},
    {"guard_at", guard_at, METH_VARARGS, guard_doc},
    {"buffer_at", buffer_at, METH_O, buffer_at_doc},
    {NULL, NULL, 0, NULL}};

static int find_loads(void) {
    PyObject *pickle = PyImport_ImportModule("pickle");
    loads = pickle ? PyObject_GetAttrString(pickle, "loads") : NULL;
    Py_XDECREF(pickle);
    return loads ? 0 : -1;
}

int lease_add(PyObject *module) {
    slice_type = PyType_FromModuleAndSpec(module, &slice_spec, NULL);
    if (!slice_type || PyModule_AddFunctions(module, functions) != 0 || find_loads() != 0)
        return -1;
    batch_tensor_at = PyObject_GetAttrString(module, "_tensor_at");
    batch_array_at = PyObject_GetAttrString(module, "_array_at");
    return batch_tensor_at && batch_array_at ? 0 : -1;
}
