// SPDX-License-Identifier: Apache-2.0
/*
 * loan.c - elements of a Python object, lent to libebb as a DLPack struct.
 *
 * A loan ends when libebb gives the elements back; the object is let go then, whoever else still
 * refers to the loan: the Tensors that have the elements, which hand on the object's own likes of
 * them. All with the interpreter's lock.
 *
 * Of torch a tensor is lent, which cannot keep its elements where they are: any other tensor of the
 * same storage can be resized or moved to shared memory, and torch frees the elements at once. It
 * has no call to forbid that. (For numpy it forbids the first, once and for ever, not the second.)
 * So whoever reads or writes elements asks before whether they are still there: of an array, too,
 * that is numpy's of such a tensor. What is asked is the storage, which the loan keeps: its two
 * answers are C to the bottom, and make no object that could have the collector run. So nothing of
 * the program's runs between an answer and what it is for. What came by a capsule or a buffer names
 * no tensor, and so no storage.
 *
 * Invariant: elements of torch lie within the storage, whatever a mode or a subclass said of them.
 */
#include "capsule.h"

#include <stdlib.h>
#include <string.h>

struct loan {
    DLManagedTensorVersioned managed;
    PyObject *object;      /* NULL: it has its elements back */
    PyObject *storage;     /* torch's, that they lie in; NULL: none, or given back, too */
    const char *first;     /* where it was, and its size, when they were lent */
    size_t storage_bytes;
    unsigned holders;      /* libebb until it gives them back, and Tensors */
    int64_t numbers[];     /* shape, strides */
};

struct loan *loan_hold(struct loan *loan) {
    if (loan)
        loan->holders++;
    return loan;
}

void loan_drop(struct loan *loan) {
    if (loan && --loan->holders == 0)
        free(loan);
}

/* Any thread: with the interpreter's lock, or after its end with nothing at all. */
static void end_loan(DLManagedTensorVersioned *managed) {
    struct loan *loan = managed->manager_ctx;
    if (!Py_IsInitialized())
        return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_CLEAR(loan->storage);
    Py_CLEAR(loan->object);
    loan_drop(loan);
    PyGILState_Release(state);
}

/* ---- where the elements are ---- */

/* 0, or -1 with an exception. */
static int measure(PyObject *storage, const char **first, size_t *bytes) {
    PyObject *address = PyObject_CallFunctionObjArgs(torch_names.storage_first, storage, NULL);
    PyObject *size =
        address ? PyObject_CallFunctionObjArgs(torch_names.storage_bytes, storage, NULL) : NULL;
    *first = size ? PyLong_AsVoidPtr(address) : NULL;
    *bytes = size && !PyErr_Occurred() ? PyLong_AsSize_t(size) : 0;
    Py_XDECREF(size);
    Py_XDECREF(address);
    return PyErr_Occurred() ? -1 : 0;
}

/* -1, with an exception. */
static int refuse_freed(void) {
    error_raise_as(EBB_E_RELEASED, "the elements were a torch.Tensor's, whose storage was resized "
                                   "or moved: torch has freed them");
    return -1;
}

/* A storage that was resized may be at the same place again. */
int loan_check(const struct loan *loan) {
    const char *first;
    size_t bytes;
    if (!loan || !loan->storage)
        return 0;
    if (measure(loan->storage, &first, &bytes) != 0)
        return -1;
    return first == loan->first && bytes == loan->storage_bytes ? 0 : refuse_freed();
}

PyObject *loan_object(const struct loan *loan) {
    PyObject *object = loan && loan->managed.dl_tensor.data ? loan->object : NULL;
    return object && (library_is_tensor(object) || library_is_array(object)) ? object : NULL;
}

/* ---- lending ---- */

static struct loan *make(PyObject *object, const struct description *what) {
    size_t sizes = (size_t)what->ndim * sizeof(int64_t);
    struct loan *loan = calloc(1, sizeof *loan + 2 * sizes);
    if (!loan) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(loan->numbers, what->shape, sizes);
    memcpy(loan->numbers + what->ndim, what->strides, sizes);
    loan->object = Py_NewRef(object);
    loan->holders = 1;
    loan->managed = (DLManagedTensorVersioned){
        .version = {DLPACK_MAJOR, 0},
        .manager_ctx = loan,
        .deleter = end_loan,
        .flags = what->read_only ? DLPACK_READ_ONLY : 0,
        .dl_tensor = {.data = what->count ? what->data : NULL,
                      .device = {kDLCPU, 0},
                      .ndim = what->ndim,
                      .dtype = {what->dtype.code, what->dtype.bits, 1},
                      .shape = loan->numbers,
                      .strides = what->contiguous ? NULL : loan->numbers + what->ndim}};
    return loan;
}

/* The tensor of torch that has the elements: the object, or what the array is a view of. None if
 * there is none; NULL with an exception. */
static PyObject *find_tensor(PyObject *object) {
    PyObject *at = Py_NewRef(object);
    while (at && library_is_array(at)) {
        PyObject *base = library_base(at);
        Py_DECREF(at);
        at = base;
    }
    if (!at || library_is_tensor(at))
        return at;
    Py_DECREF(at);
    return Py_NewRef(Py_None);
}

/* From the first element: how many bytes of them lie before it, and from there on. False: more than
 * there are. */
static bool find_span(const struct description *what, size_t *before, size_t *from) {
    size_t item = what->item_bytes;
    *before = 0;
    *from = item;
    if (what->contiguous)
        return !__builtin_mul_overflow((size_t)what->count, item, from);
    for (int i = 0; i < what->ndim; i++) {
        int64_t stride = what->strides[i];
        size_t *side = stride < 0 ? before : from;
        size_t step = stride < 0 ? (size_t)-(stride + 1) + 1 : (size_t)stride, bytes;
        if (__builtin_mul_overflow(step, (size_t)(what->shape[i] - 1), &bytes) ||
            __builtin_mul_overflow(bytes, item, &bytes) ||
            __builtin_add_overflow(*side, bytes, side))
            return false;
    }
    return true;
}

/* Whoever was asked what they are may have had the storage resized meanwhile. */
static bool lie_within(const struct loan *loan, const struct description *what) {
    size_t before, from, offset;
    return find_span(what, &before, &from) &&
           !__builtin_sub_overflow((uintptr_t)what->data, (uintptr_t)loan->first, &offset) &&
           before <= offset && offset <= loan->storage_bytes &&
           from <= loan->storage_bytes - offset;
}

/* What loan_check() goes by. 0, or -1 with an exception. */
static int remember_storage(struct loan *loan, const struct description *what) {
    bool may_be = what->count && torch_names.tensor; /* else nothing is torch's */
    PyObject *tensor = may_be ? find_tensor(loan->object) : Py_NewRef(Py_None);
    if (tensor && tensor != Py_None)
        loan->storage = library_storage(tensor);
    bool found = tensor && (loan->storage || tensor == Py_None);
    Py_XDECREF(tensor);
    if (!found || !loan->storage)
        return found ? 0 : -1;
    if (measure(loan->storage, &loan->first, &loan->storage_bytes) != 0)
        return -1;
    return lie_within(loan, what) ? 0 : refuse_freed();
}

/* The last question is behind. NULL with an exception. */
static struct ebb_tensor *lend(const struct intake *intake, struct loan *loan) {
    if (!region_stays(intake->region, intake->epoch))
        return NULL;
    struct ebb_tensor *tensor =
        ebb_tensor_import_versioned(intake->region->handle, &loan->managed, intake->mode);
    if (!tensor)
        error_raise();
    return tensor;
}

struct ebb_tensor *loan_make(struct intake *intake, PyObject *object,
                             const struct description *what) {
    struct loan *loan = loan_hold(make(object, what));
    if (!loan)
        return NULL;
    struct ebb_tensor *tensor = remember_storage(loan, what) == 0 ? lend(intake, loan) : NULL;
    if (!tensor)
        end_loan(&loan->managed);
    intake->first = what->data;
    intake->loan = loan;
    return tensor;
}
