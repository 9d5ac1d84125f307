// SPDX-License-Identifier: Apache-2.0
/*
 * writer.c - class Writer: puts the elements of a batch into a region that will be sent.
 *
 * A pickler calls reduce() for each object that it does not know itself: tensors and arrays become
 * a call with the number of a leaf, all others are left to the reducers that are registered for
 * their types, or to their own ways. Elements that were born in the region stay where they are;
 * others are copied there once. Parcels become the calls that open them, and go along once the
 * batch is sent: until then they are as good as they were.
 *
 * Invariant: every leaf's elements lie in blocks of the region.
 */
#include "batch.h"

#include <string.h>

PyObject *batch_tensor_at, *batch_array_at;

struct writer {
    PyObject_HEAD
    struct region *region;
    PyObject *other;      /* asked about tensors of torch that are more than their elements */
    PyObject *reducers;   /* dict of those registered for types; it may change at any time */
    PyObject *registered; /* asked about objects of these types */
    void *root;           /* the root block, once it is written */
    struct batch_leaf *leaves;
    int64_t *numbers;
    size_t leaf_count, leaf_room, number_count, number_room;
    uint64_t copied_bytes, born_bytes, buffers;
    size_t root_bytes;
    PyObject *parcels; /* list of those in the batch; NULL: none */
    char *slot; /* where offset 0 of the region's slot is; NULL: not known yet */
    bool is_refused; /* the region had no room for the latest that was put there, or is none */
};

/* ---- numbers ---- */

enum { KEPT = 1024 };
static PyObject *kept[KEPT];

PyObject *batch_number(uint64_t value) {
    if (value >= KEPT)
        return PyLong_FromUnsignedLongLong(value);
    if (!kept[value] && !(kept[value] = PyLong_FromUnsignedLongLong(value)))
        return NULL;
    return Py_NewRef(kept[value]);
}

/* ---- growing ---- */

static int grow(void **items, size_t *room, size_t needed, size_t bytes) {
    if (needed <= *room)
        return 0;
    size_t more = needed > 2 * *room ? needed + 64 : 2 * *room;
    void *grown = PyMem_Realloc(*items, more * bytes);
    if (!grown) {
        PyErr_NoMemory();
        return -1;
    }
    *items = grown;
    *room = more;
    return 0;
}

/* Room for one more leaf and its numbers. */
static int make_room(struct writer *self) {
    void *leaves = self->leaves, *numbers = self->numbers;
    int result = grow(&leaves, &self->leaf_room, self->leaf_count + 1, sizeof *self->leaves);
    self->leaves = leaves;
    if (result == 0)
        result = grow(&numbers, &self->number_room, self->number_count + 2 * EBB_DIMENSIONS_MAX,
                      sizeof *self->numbers);
    self->numbers = numbers;
    return result;
}

/* ---- elements ---- */

/*
 * True if the elements lie without gaps in some order of the dimensions, as channels_last does:
 * then they keep their strides. Negative strides and repeated elements are none.
 */
static bool is_dense(const struct description *what) {
    int order[EBB_DIMENSIONS_MAX];
    for (int i = 0; i < what->ndim; i++) {
        int at = i;
        for (; at > 0 && what->strides[order[at - 1]] > what->strides[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    int64_t expected = 1;
    for (int i = 0; i < what->ndim; i++) {
        int64_t size = what->shape[order[i]];
        if (size == 1)
            continue;
        if (what->strides[order[i]] != expected)
            return false;
        expected *= size;
    }
    return true;
}

/* Elements as they lie: `run` bytes without a gap, for each place of `ndim` dimensions. */
struct runs {
    int ndim;
    size_t run;
    int64_t shape[EBB_DIMENSIONS_MAX];
    int64_t steps[EBB_DIMENSIONS_MAX]; /* in bytes */
};

/* The last dimensions are one run as far as they have no gaps: rows, of a crop. */
static void find_runs(struct runs *to, const struct description *what) {
    to->ndim = 0;
    to->run = what->item_bytes;
    for (int i = 0; i < what->ndim; i++) {
        if (what->shape[i] == 1)
            continue;
        to->shape[to->ndim] = what->shape[i];
        to->steps[to->ndim++] = what->strides[i] * (int64_t)what->item_bytes;
    }
    while (to->ndim > 0 && to->steps[to->ndim - 1] == (int64_t)to->run)
        to->run *= (size_t)to->shape[--to->ndim];
}

/* Copies dimension `dim` and those below it, row-major. */
static char *copy_runs(char *to, const char *from, const struct runs *runs, int dim) {
    if (dim == runs->ndim) {
        memcpy(to, from, runs->run);
        return to + runs->run;
    }
    for (int64_t i = 0; i < runs->shape[dim]; i++)
        to = copy_runs(to, from + i * runs->steps[dim], runs, dim + 1);
    return to;
}

/* Bytes from the first element to behind the last; 0: strides that leave the region's block. */
static size_t span_of(const struct description *what) {
    int64_t last = 0;
    if (what->contiguous)
        return (size_t)what->count * what->item_bytes;
    for (int i = 0; i < what->ndim; i++) {
        if (what->strides[i] < 0)
            return 0;
        last += (what->shape[i] - 1) * what->strides[i];
    }
    return ((size_t)last + 1) * what->item_bytes;
}

/* A block for the elements. Large ones begin at a page of their own that the next batch reuses. */
static char *allocate(struct writer *self, size_t bytes) {
    const struct region *to = region_of((PyObject *)self->region); /* it may be closed, or forked */
    char *block = to ? ebb_region_alloc(to->handle, bytes, 64) : NULL;
    self->is_refused = !block;
    if (!block)
        error_raise();
    else if (!self->slot)
        self->slot = block - ebb_region_offset(self->region->handle, block);
    return block;
}

/* Where tensors may begin: DLPack wants elements aligned. Arrays of other dtypes begin anywhere. */
static bool is_aligned(const struct description *what) {
    return !what->dtype.lanes || (uintptr_t)what->data % what->item_bytes == 0;
}

/* Elements that were made in the region, with ebb.empty() and its likes, are there already. */
static bool is_born_here(const struct writer *self, const struct description *what) {
    ebb_region owner = ebb_region_of(what->data);
    return is_aligned(what) && owner.lane && owner.lane == self->region->handle.lane &&
           owner.generation == self->region->handle.generation && span_of(what) != 0;
}

/* Large copies leave the interpreter to others, such as the thread that sends the last batch. */
static void copy(char *to, const char *from, const struct runs *runs, size_t bytes) {
    if (bytes < (size_t)1 << 20) {
        (void)copy_runs(to, from, runs, 0);
        return;
    }
    Py_BEGIN_ALLOW_THREADS
    (void)copy_runs(to, from, runs, 0);
    Py_END_ALLOW_THREADS
}

/* Where the elements are from now on; NULL with an exception. May make them row-major. */
static char *settle(struct writer *self, struct description *what) {
    size_t bytes;
    if (is_born_here(self, what)) {
        self->born_bytes += span_of(what);
        return what->data;
    }
    if (__builtin_mul_overflow((size_t)what->count, what->item_bytes, &bytes)) {
        self->is_refused = true;
        error_raise_as(EBB_E_SIZE, "a tensor of the batch has more bytes than there are addresses");
        return NULL;
    }
    char *block = allocate(self, bytes);
    if (!block)
        return NULL;
    self->copied_bytes += bytes;
    struct runs runs;
    runs.ndim = 0;
    runs.run = bytes;
    if (!what->contiguous && !is_dense(what)) {
        find_runs(&runs, what);
        what->contiguous = true;
    }
    copy(block, what->data, &runs, bytes);
    return block;
}

/* Adds a leaf. Its number, or SIZE_MAX with an exception. */
static size_t add_leaf(struct writer *self, struct description *what) {
    struct batch_leaf leaf = {.first = self->number_count, .dtype = what->dtype,
                              .ndim = (uint8_t)what->ndim};
    if (make_room(self) != 0)
        return SIZE_MAX;
    if (what->count != 0) {
        char *data = settle(self, what);
        if (!data)
            return SIZE_MAX;
        leaf.offset = self->slot ? (size_t)(data - self->slot)
                                 : ebb_region_offset(self->region->handle, data);
        leaf.bytes = span_of(what);
    }
    leaf.flags = what->read_only ? LEAF_READ_ONLY : 0;
    size_t sizes = (size_t)what->ndim * sizeof(int64_t);
    memcpy(self->numbers + self->number_count, what->shape, sizes);
    self->number_count += (size_t)what->ndim;
    if (!what->contiguous && what->count != 0) {
        leaf.flags |= LEAF_STRIDED;
        memcpy(self->numbers + self->number_count, what->strides, sizes);
        self->number_count += (size_t)what->ndim;
    }
    self->leaves[self->leaf_count] = leaf;
    return self->leaf_count++;
}

/* ---- what a pickler calls ---- */

/* (function, (number,)) or, with an argument, (function, (number, argument)). */
static PyObject *call_with(PyObject *function, size_t leaf, PyObject *argument) {
    PyObject *number = leaf == SIZE_MAX ? NULL : batch_number(leaf);
    PyObject *arguments = number ? PyTuple_New(argument ? 2 : 1) : NULL;
    PyObject *call = arguments ? PyTuple_New(2) : NULL;
    if (!call) {
        Py_XDECREF(number);
        Py_XDECREF(arguments);
        return NULL;
    }
    PyTuple_SetItem(arguments, 0, number);
    if (argument)
        PyTuple_SetItem(arguments, 1, Py_NewRef(argument));
    PyTuple_SetItem(call, 0, Py_NewRef(function));
    PyTuple_SetItem(call, 1, arguments);
    return call;
}

static PyObject *pass(void) {
    return Py_NewRef(Py_NotImplemented);
}

/* Tensors of torch that only Python's part of the package understands. */
static PyObject *reduce_other(struct writer *self, PyObject *tensor) {
    return PyObject_CallFunctionObjArgs(self->other, tensor, NULL);
}

static PyObject *reduce_tensor(struct writer *self, PyObject *tensor) {
    struct description what;
    PyObject *requires_grad = PyObject_GetAttr(tensor, names.requires_grad);
    if (!requires_grad)
        return NULL;
    Py_DECREF(requires_grad);
    if (requires_grad == Py_True)
        return reduce_other(self, tensor);
    int good = library_describe_torch(tensor, &what);
    int named = good > 0 ? library_has_names(tensor) : 0;
    if (good < 0 || named < 0)
        return NULL;
    if (!good || named) /* torch refuses those with names */
        return reduce_other(self, tensor);
    return call_with(batch_tensor_at, add_leaf(self, &what), NULL);
}

/* Arrays of objects are pickled as they always were. The dtype goes along: it may be anything. */
static PyObject *reduce_array(struct writer *self, PyObject *array) {
    struct description what;
    PyObject *dtype = PyObject_GetAttr(array, names.dtype);
    PyObject *has_objects = dtype ? PyObject_GetAttr(dtype, names.hasobject) : NULL;
    PyObject *result = NULL;
    if (has_objects) {
        int good = has_objects == Py_False ? library_describe_numpy(array, &what) : 0;
        if (good > 0)
            result = call_with(batch_array_at, add_leaf(self, &what), dtype);
        else if (good == 0)
            result = pass();
    }
    Py_XDECREF(has_objects);
    Py_XDECREF(dtype);
    return result;
}

static PyObject *reduce_parcel(struct writer *self, PyObject *parcel) {
    if (!self->parcels && !(self->parcels = PyList_New(0)))
        return NULL;
    PyObject *call = parcel_call(parcel);
    if (call && PyList_Append(self->parcels, parcel) != 0)
        Py_CLEAR(call);
    return call;
}

/* Tensors, arrays and parcels; others are passed on. */
static PyObject *reduce_own(struct writer *self, PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    if (type == (PyTypeObject *)torch_names.tensor)
        return reduce_tensor(self, value);
    if (type == (PyTypeObject *)numpy_array)
        return reduce_array(self, value);
    if (torch_names.tensor && PyType_IsSubtype(type, (PyTypeObject *)torch_names.tensor))
        return reduce_other(self, value);
    return parcel_is(value) ? reduce_parcel(self, value) : pass();
}

/* Asked here for each object, so that Python is asked about those alone that are registered. */
static PyObject *reduce_registered(struct writer *self, PyObject *value) {
    PyObject *reducer = PyDict_GetItemWithError(self->reducers, (PyObject *)Py_TYPE(value));
    if (!reducer)
        return PyErr_Occurred() ? NULL : pass();
    Py_INCREF(reducer); /* whoever is called may take it out of the table */
    PyObject *reduced = PyObject_CallFunctionObjArgs(self->registered, value, reducer, NULL);
    Py_DECREF(reducer);
    return reduced;
}

PyDoc_STRVAR(reduce_doc,
"reduce(object)\n--\n\n"
"A pickler's reducer_override: tensors of torch and arrays of numpy go into the region, parcels\n"
"with the batch, others by the reducer of their type, or are passed on.");

static PyObject *writer_reduce(PyObject *object, PyObject *value) {
    struct writer *self = (struct writer *)object;
    PyObject *reduced = reduce_own(self, value);
    if (reduced != Py_NotImplemented)
        return reduced;
    Py_DECREF(reduced);
    return reduce_registered(self, value);
}

PyDoc_STRVAR(put_doc,
"put(buffer)\n--\n\nA pickler's buffer_callback: the bytes of a buffer go into the region.");

static PyObject *writer_put(PyObject *object, PyObject *source) {
    Py_buffer view;
    if (PyObject_GetBuffer(source, &view, PyBUF_CONTIG_RO) != 0) {
        if (!PyErr_ExceptionMatches(PyExc_BufferError) &&
            !PyErr_ExceptionMatches(PyExc_ValueError)) /* numpy's */
            return NULL;
        PyErr_Clear(); /* not row-major: a part of the stream, as pickle does it */
        Py_RETURN_TRUE;
    }
    struct description what = {.data = view.buf, .dtype = {EBB_UINT, 8, 1}, .item_bytes = 1,
                               .read_only = view.readonly != 0, .contiguous = true, .ndim = 1,
                               .count = view.len, .shape = {view.len}};
    struct writer *self = (struct writer *)object;
    size_t leaf = add_leaf(self, &what);
    PyBuffer_Release(&view);
    if (leaf == SIZE_MAX)
        return NULL;
    self->leaves[leaf].flags |= LEAF_BUFFER;
    self->buffers++;
    Py_RETURN_FALSE;
}

/* ---- sending ---- */

/* Bytes of the root block but for the stream. */
static size_t root_bytes(const struct writer *self) {
    return sizeof(struct batch_header) + self->leaf_count * sizeof *self->leaves +
           self->number_count * sizeof *self->numbers;
}

/* Where the next bytes go. Nothing may be nowhere. */
static char *append(char *to, const void *from, size_t bytes) {
    if (bytes)
        memcpy(to, from, bytes);
    return to + bytes;
}

/* The root block; NULL with an exception. */
static void *write_root(struct writer *self, const char *stream, size_t stream_bytes) {
    struct batch_header header = {BATCH_MAGIC, self->leaf_count, self->number_count,
                                  stream_bytes, self->buffers};
    size_t leaves = self->leaf_count * sizeof *self->leaves;
    size_t numbers = self->number_count * sizeof *self->numbers;
    char *root = allocate(self, root_bytes(self) + stream_bytes);
    if (!root)
        return NULL;
    char *at = append(root, &header, sizeof header);
    at = append(at, self->leaves, leaves);
    at = append(at, self->numbers, numbers);
    append(at, stream, stream_bytes);
    return root;
}

PyDoc_STRVAR(finish_doc,
"finish(stream)\n--\n\nWrites the description. The batch may be dropped afterwards.");

static PyObject *writer_finish(PyObject *object, PyObject *stream) {
    struct writer *self = (struct writer *)object;
    Py_buffer view;
    if (PyObject_GetBuffer(stream, &view, PyBUF_SIMPLE) != 0)
        return NULL;
    self->root = write_root(self, view.buf, (size_t)view.len);
    self->root_bytes = self->root ? root_bytes(self) + (size_t)view.len : 0;
    PyBuffer_Release(&view);
    return self->root ? Py_NewRef(Py_None) : NULL;
}

PyDoc_STRVAR(send_doc,
"send()\n--\n\n"
"Closes the region and returns its Parcel. None if tensors that were made in the region, or below\n"
"it, are still in use: then the region stays open.");

/* False with an exception: somebody has opened or sent one meanwhile. */
static bool has_all_parcels(const struct writer *self) {
    for (Py_ssize_t i = 0; self->parcels && i < PyList_Size(self->parcels); i++)
        if (!parcel_check(PyList_GetItem(self->parcels, i)))
            return false;
    return true;
}

static PyObject *writer_send(PyObject *object, PyObject *Py_UNUSED(none)) {
    struct writer *self = (struct writer *)object;
    ebb_region region = self->region->handle;
    struct ebb_parcel parcel;
    if (!self->root)
        return error_raise_as(EBB_E_ORDER, "send() comes after finish()");
    if (ebb_region_count_exports(region) != 0)
        Py_RETURN_NONE;
    PyObject *sent = pool_of(self->region->pool) ? parcel_new(self->region->pool) : NULL;
    if (!sent)
        return NULL;
    if (!has_all_parcels(self)) {
        Py_DECREF(sent);
        return NULL;
    }
    int result = ebb_region_send(region, self->root, &parcel);
    if (result == 0 || result == EBB_E_CLEANUP) /* sent all the same */
        parcel_own(sent, &parcel, self->parcels);
    if (result != 0) {
        bool below = result == EBB_E_BUSY && ebb_region_is_open(region); /* exports are out there */
        PyObject *answer = below ? Py_NewRef(Py_None) : error_raise();
        Py_DECREF(sent);
        return answer;
    }
    self->root = NULL;
    pool_batches((struct pool *)self->region->pool)->sent++;
    return sent;
}

PyDoc_STRVAR(move_doc,
"move(region)\n--\n\nCopies what was written into another region, where it can be sent.");

/* Copies the elements of all leaves; 0, or -1 with an exception. */
static int move_leaves(struct writer *self, const char *from) {
    for (size_t i = 0; i < self->leaf_count; i++) {
        struct batch_leaf *leaf = &self->leaves[i];
        char *to = leaf->bytes ? allocate(self, leaf->bytes) : NULL;
        if (leaf->bytes && !to)
            return -1;
        if (to) {
            memcpy(to, from + leaf->offset, leaf->bytes);
            leaf->offset = (size_t)(to - self->slot);
        }
    }
    return 0;
}

static PyObject *writer_move(PyObject *object, PyObject *target) {
    struct writer *self = (struct writer *)object;
    struct region *region = region_of(target);
    char *from = self->slot, *root = self->root;
    if (!region || (root && !region_of((PyObject *)self->region)))
        return NULL;
    if (!root)
        return error_raise_as(EBB_E_ORDER, "move() comes after finish()");
    struct region *before = self->region;
    size_t head = root_bytes(self), leaves = self->leaf_count * sizeof *self->leaves;
    char *known = PyMem_Malloc(leaves);
    void *moved = NULL;
    if (!known)
        return PyErr_NoMemory();
    append(known, self->leaves, leaves);
    self->region = region;
    self->slot = NULL;
    if (move_leaves(self, from) == 0)
        moved = write_root(self, root + head, self->root_bytes - head);
    if (!moved) { /* all stays as it was; to the leaves in the root block others may have written */
        self->region = before;
        self->slot = from;
        append((char *)self->leaves, known, leaves);
    }
    PyMem_Free(known);
    if (!moved)
        return NULL;
    self->root = moved;
    Py_INCREF(target);
    Py_DECREF((PyObject *)before);
    Py_RETURN_NONE;
}

/* ---- the class ---- */

static PyObject *writer_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"region", "other", "reducers", "registered", NULL};
    PyObject *target, *other, *reducers, *registered;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOO!O:Writer", words, &target, &other,
                                     &PyDict_Type, &reducers, &registered))
        return NULL;
    struct region *region = region_of(target);
    if (!region || library_find() != 0)
        return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct writer *self = (struct writer *)make(type, 0);
    if (self) {
        self->region = (struct region *)Py_NewRef(target);
        self->other = Py_NewRef(other);
        self->reducers = Py_NewRef(reducers);
        self->registered = Py_NewRef(registered);
    }
    return (PyObject *)self;
}

static void writer_dealloc(PyObject *object) {
    struct writer *self = (struct writer *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyMem_Free(self->leaves);
    PyMem_Free(self->numbers);
    Py_XDECREF(self->parcels);
    Py_XDECREF(self->other);
    Py_XDECREF(self->reducers);
    Py_XDECREF(self->registered);
    Py_XDECREF((PyObject *)self->region);
    release(object);
    Py_DECREF(type);
}

static PyObject *writer_stats(PyObject *object, void *Py_UNUSED(closure)) {
    const struct writer *self = (struct writer *)object;
    return Py_BuildValue("{sKsKsKsK}", "leaves", (unsigned long long)self->leaf_count,
                         "copied_bytes", (unsigned long long)self->copied_bytes, "born_bytes",
                         (unsigned long long)self->born_bytes, "root_bytes",
                         (unsigned long long)self->root_bytes);
}

static PyObject *writer_is_refused(PyObject *object, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(((const struct writer *)object)->is_refused);
}

static PyMethodDef writer_methods[] = {{"reduce", writer_reduce, METH_O, reduce_doc},
                                       {"put", writer_put, METH_O, put_doc},
                                       {"finish", writer_finish, METH_O, finish_doc},
                                       {"send", writer_send, METH_NOARGS, send_doc},
                                       {"move", writer_move, METH_O, move_doc},
                                       {NULL, NULL, 0, NULL}};

static PyGetSetDef writer_getters[] = {
    {"stats", writer_stats, NULL,
     "Leaves, bytes that were copied, that were born here, of the root block.", NULL},
    {"is_refused", writer_is_refused, NULL, "The latest error is the region's: no room.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

PyDoc_STRVAR(writer_doc,
"Writer(region, other, reducers, registered)\n--\n\n"
"Puts the elements of a batch into a region that will be sent. other(tensor) reduces tensors of\n"
"torch that are more than their elements, registered(object, reducer) what is none of ours and of\n"
"a type in the dict of reducers. Either may pass it on.");

static PyType_Slot writer_slots[] = {
    {Py_tp_new, writer_new},
    {Py_tp_dealloc, writer_dealloc},
    {Py_tp_doc, (void *)writer_doc},
    {Py_tp_methods, writer_methods},
    {Py_tp_getset, writer_getters},
    {0, NULL}};

static PyType_Spec writer_spec = {"ebb._ebb.Writer", sizeof(struct writer), 0, Py_TPFLAGS_DEFAULT,
                                  writer_slots};

int writer_add(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &writer_spec, NULL);
    int result = type ? PyModule_AddObjectRef(module, "Writer", type) : -1;
    Py_XDECREF(type);
    return result;
}
