// SPDX-License-Identifier: Apache-2.0
/*
 * parcel.c - class Parcel: what was sent and is not on its way yet, and how it becomes a batch.
 *
 * Invariant: a slot that is claimed belongs to an object: the region that is written, then the
 * Parcel, then the tensors of the batch. Each goes over to the next in one call of C, and handlers
 * of signals run between bytecodes only, so an exception of theirs finds an owner that is dropped
 * with its last reference. What was pickled is the message's: nobody here owns it. A parcel inside
 * of a batch is as good as it was until that is sent; then it is that one's.
 *
 * A message has 8 bytes of the pool, then four numbers, 7 bits to the byte.
 */
#include "batch.h"

#include <string.h>

struct parcel {
    PyObject_HEAD
    PyObject *pool;
    struct ebb_parcel parcel;
    unsigned forks; /* that led to the process that sent it: a child's copy gives nothing back */
    bool is_here;   /* neither opened nor sent on so far: not pickled, and inside of no other */
    bool is_owned;  /* neither opened nor pickled, nor is what it is inside of */
    PyObject *inside; /* list of the parcels in the batch; NULL: none */
};

static PyObject *parcel_type;
static size_t objects; /* Parcels that there are, opened ones, too */

/* ---- as bytes ---- */

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

static PyObject *to_bytes(const struct ebb_parcel *parcel) {
    unsigned char bytes[PARCEL_MOST];
    size_t count = sizeof parcel->pool;
    memcpy(bytes, &parcel->pool, count);
    count += put(bytes + count, parcel->slot);
    count += put(bytes + count, parcel->generation);
    count += put(bytes + count, parcel->root);
    count += put(bytes + count, parcel->bytes);
    return PyBytes_FromStringAndSize((const char *)bytes, (Py_ssize_t)count);
}

static int from_bytes(PyObject *object, struct ebb_parcel *parcel) {
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

/* ---- the object ---- */

PyObject *parcel_new(PyObject *pool) {
    PyTypeObject *type = (PyTypeObject *)parcel_type;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct parcel *self = (struct parcel *)make(type, 0);
    if (!self)
        return NULL;
    objects++;
    self->pool = Py_NewRef(pool);
    self->forks = ebb_forks();
    return (PyObject *)self;
}

void parcel_own(PyObject *object, const struct ebb_parcel *parcel, PyObject *inside) {
    struct parcel *self = (struct parcel *)object;
    self->parcel = *parcel;
    self->is_here = self->is_owned = true;
    self->inside = Py_XNewRef(inside);
    for (Py_ssize_t i = 0; inside && i < PyList_Size(inside); i++)
        ((struct parcel *)PyList_GetItem(inside, i))->is_here = false;
}

/* It is the message's, or opened, and so is what is inside. Not deep: there are as many slots. */
static void disown(struct parcel *self) {
    self->is_here = self->is_owned = false;
    for (Py_ssize_t i = 0; self->inside && i < PyList_Size(self->inside); i++)
        disown((struct parcel *)PyList_GetItem(self->inside, i));
}

bool parcel_is(PyObject *object) {
    return Py_TYPE(object) == (PyTypeObject *)parcel_type;
}

bool parcel_check(PyObject *object) {
    bool is_here = ((struct parcel *)object)->is_here;
    if (!is_here)
        PyErr_SetString(PyExc_ValueError, "the parcel was opened or sent before");
    return is_here;
}

static int parcel_traverse(PyObject *object, visitproc visit, void *arg) {
    const struct parcel *self = (struct parcel *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->pool);
    Py_VISIT(self->inside);
    return 0;
}

/* What somebody else opened by a forged message, or lies in a pool that is closed: nothing. */
static void parcel_dealloc(PyObject *object) {
    struct parcel *self = (struct parcel *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(object);
    if (self->is_owned && self->forks == ebb_forks() && ((struct pool *)self->pool)->pool)
        (void)ebb_parcel_discard(((struct pool *)self->pool)->pool, &self->parcel);
    Py_XDECREF(self->inside);
    Py_XDECREF(self->pool);
    objects--;
    release(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(open_doc,
"open()\n--\n\n"
"The batch. Its tensors hold the region; it is used again when the last is dropped. ValueError\n"
"if the parcel was opened or sent before.");

static PyObject *parcel_open(PyObject *object, PyObject *Py_UNUSED(none)) {
    struct parcel *self = (struct parcel *)object;
    if (!parcel_check(object))
        return NULL;
    ebb_pool *pool = pool_of(self->pool);
    ebb_lease *lease = pool ? ebb_parcel_open(pool, &self->parcel) : NULL;
    if (!lease)
        return error_raise(); /* and the parcel is as good as it was */
    self->is_here = self->is_owned = false;
    PyObject *batch = lease_read((struct pool *)self->pool, lease);
    if (batch)
        disown(self);
    return batch; /* NULL: what is inside and was not opened goes with its own object */
}

static PyObject *open_function; /* ebb._open */

PyObject *parcel_call(PyObject *object) {
    PyObject *message = to_bytes(&((struct parcel *)object)->parcel);
    PyObject *call = message ? Py_BuildValue("O(O)", open_function, message) : NULL;
    Py_XDECREF(message);
    if (call && !parcel_check(object)) /* asked last: what is made may have the collector run */
        Py_CLEAR(call);
    return call;
}

PyDoc_STRVAR(reduce_doc,
"__reduce__()\n--\n\n"
"The message; from here on the batch belongs to whoever reads it.");

static PyObject *parcel_reduce(PyObject *object, PyObject *Py_UNUSED(none)) {
    PyObject *call = parcel_call(object);
    if (call)
        disown((struct parcel *)object);
    return call;
}

PyDoc_STRVAR(check_doc,
"_check()\n--\n\nValueError if the parcel was opened or sent before.");

static PyObject *check(PyObject *object, PyObject *Py_UNUSED(none)) {
    return parcel_check(object) ? Py_NewRef(Py_None) : NULL;
}

PyDoc_STRVAR(message_doc,
"_message()\n--\n\n"
"(pool, bytes, inside): by the first two _recall() knows it, they own nothing; `inside` are the\n"
"same of the parcels in the batch that this process made. None of one that it did not make.");

static PyObject *parcel_message(PyObject *object, PyObject *none) {
    const struct parcel *self = (struct parcel *)object;
    Py_ssize_t count = self->inside ? PyList_Size(self->inside) : 0;
    if (self->forks != ebb_forks())
        return Py_NewRef(Py_None); /* its parent's, which gives it back */
    PyObject *inside = PyList_New(0);
    for (Py_ssize_t i = 0; inside && i < count; i++) {
        PyObject *one = parcel_message(PyList_GetItem(self->inside, i), none);
        if (!one || (one != Py_None && PyList_Append(inside, one) != 0))
            Py_CLEAR(inside);
        Py_XDECREF(one);
    }
    PyObject *bytes = inside ? to_bytes(&self->parcel) : NULL;
    PyObject *message = bytes ? PyTuple_Pack(3, self->pool, bytes, inside) : NULL;
    Py_XDECREF(bytes);
    Py_XDECREF(inside);
    return message;
}

PyDoc_STRVAR(copy_doc,
"TypeError: a batch has one owner.");

static PyObject *parcel_copy(PyObject *Py_UNUSED(object), PyObject *Py_UNUSED(memo)) {
    PyErr_SetString(PyExc_TypeError, "a parcel cannot be copied: it is good for one opening; "
                                     "pickle it for who is to have the batch, or open() it here");
    return NULL;
}

PyDoc_STRVAR(item_doc,
"Parcel[T], for annotations: a parcel of a batch of type T.");

PyDoc_STRVAR(parcel_doc,
"A batch that was sent: pickle it once, to whom it is for, or open() it here, once.\n\n"
"In the process that unpickles it the batch itself arrives. One inside of a batch that is sent\n"
"goes along. One that is dropped gives its region back, but for the copy that a forked child has.");

static PyMethodDef parcel_methods[] = {
    {"open", parcel_open, METH_NOARGS, open_doc},
    {"__reduce__", parcel_reduce, METH_NOARGS, reduce_doc},
    {"_check", check, METH_NOARGS, check_doc},
    {"_message", parcel_message, METH_NOARGS, message_doc},
    {"__copy__", parcel_copy, METH_NOARGS, copy_doc},
    {"__deepcopy__", parcel_copy, METH_O, copy_doc},
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, item_doc},
    {NULL, NULL, 0, NULL}};

static PyObject *parcel_repr(PyObject *object) {
    return PyUnicode_FromString(((struct parcel *)object)->is_here
                                    ? "<ebb.Parcel, to be opened>"
                                    : "<ebb.Parcel, opened or sent before>");
}

static PyType_Slot parcel_slots[] = {{Py_tp_dealloc, parcel_dealloc},
                                     {Py_tp_repr, parcel_repr},
                                     {Py_tp_traverse, parcel_traverse},
                                     {Py_tp_doc, (void *)parcel_doc},
                                     {Py_tp_methods, parcel_methods},
                                     {0, NULL}};

static PyType_Spec parcel_spec = {"ebb.Parcel", sizeof(struct parcel), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                      Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  parcel_slots};

/* ---- messages ---- */

static PyObject *no_pool(void) {
    PyErr_SetString(PyExc_LookupError, "a batch came, but this process has no shared pool: it must "
                                       "be made before the workers");
    return NULL;
}

/* The batch, if it is of that pool; else NULL, and *is_others if there is no exception. The pool
 * that was asked before has its word there: a batch that cannot be read is nobody else's. */
static PyObject *open_in(PyObject *pool, const struct ebb_parcel *parcel, bool *is_others) {
    ebb_lease *lease = ebb_parcel_open(((struct pool *)pool)->pool, parcel);
    *is_others = !lease && ebb_last_error() == EBB_E_PARCEL;
    if (lease)
        return lease_read((struct pool *)pool, lease);
    return *is_others ? NULL : error_raise();
}

PyDoc_STRVAR(open_any_doc,
"_open(parcel)\n--\n\n"
"Opens a batch that another process sent. Pickles of Parcel call this.");

/* The pools are those that are alive now: asking them runs nothing of Python's. */
static PyObject *open_any(PyObject *Py_UNUSED(module), PyObject *message) {
    struct ebb_parcel parcel;
    PyObject *pools = from_bytes(message, &parcel) == 0 ? PyList_AsTuple(pool_shared) : NULL;
    PyObject *batch = NULL;
    bool goes_on = pools != NULL, is_others = false;
    for (Py_ssize_t i = 0; goes_on && i < PyTuple_Size(pools); i++) {
        PyObject *pool = PyObject_CallNoArgs(PyTuple_GetItem(pools, i));
        if (pool && pool != Py_None && ((struct pool *)pool)->pool) {
            batch = open_in(pool, &parcel, &is_others);
            goes_on = !batch && is_others;
        }
        goes_on = goes_on && pool;
        Py_XDECREF(pool);
    }
    Py_XDECREF(pools);
    if (goes_on)
        return is_others ? error_raise() : no_pool();
    return batch;
}

PyDoc_STRVAR(recall_doc,
"_recall(pool, message)\n--\n\n"
"Gives the region of a parcel back if nobody opened it so far; whether that was so.");

static PyObject *recall(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *pool, *message;
    struct ebb_parcel parcel;
    if (!PyArg_ParseTuple(arguments, "O!O:_recall", pool_type, &pool, &message) ||
        from_bytes(message, &parcel) != 0)
        return NULL;
    ebb_pool *place = ((struct pool *)pool)->pool;
    return PyBool_FromLong(place && ebb_parcel_discard(place, &parcel) == 0);
}

PyDoc_STRVAR(count_doc,
"_count_parcels()\n--\n\nHow many Parcels there are in this process; 0: no batch has any in it.");

static PyObject *count_parcels(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    return PyLong_FromSize_t(objects);
}

static PyMethodDef functions[] = {{"_open", open_any, METH_O, open_any_doc},
                                  {"_count_parcels", count_parcels, METH_NOARGS, count_doc},
                                  {"_recall", recall, METH_VARARGS, recall_doc},
                                  {NULL, NULL, 0, NULL}};

/* Pickles name the function by the package, where it is found whatever module it is in. */
static int name_function(PyObject *module) {
    open_function = PyObject_GetAttrString(module, "_open");
    PyObject *package = PyUnicode_FromString("ebb");
    int result = open_function && package
                     ? PyObject_SetAttrString(open_function, "__module__", package)
                     : -1;
    Py_XDECREF(package);
    return result;
}

int parcel_add(PyObject *module) {
    parcel_type = PyType_FromModuleAndSpec(module, &parcel_spec, NULL);
    if (!parcel_type || PyModule_AddObjectRef(module, "Parcel", parcel_type) != 0 ||
        PyModule_AddFunctions(module, functions) != 0)
        return -1;
    return name_function(module);
}
