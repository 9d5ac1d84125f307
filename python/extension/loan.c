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
 * that is numpy's of such a tensor. What came by a capsule or a buffer names no tensor to ask.
 */
#include "capsule.h"

#include <stdlib.h>
#include <string.h>

struct loan {
    DLManagedTensorVersioned managed;
    PyObject *object;      /* NULL: it has its elements back */
    PyObject *tensor;      /* of torch, whose elements they are; NULL: none, or given back, too */
    const void *first;     /* where that had them */
    size_t storage_bytes;  /* of torch's storage */
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
    Py_CLEAR(loan->tensor);
    Py_CLEAR(loan->object);
    loan_drop(loan);
    PyGILState_Release(state);
}

/* ---- where the elements are ---- */

/* Of torch's tensor: 0, or -1 with an exception. */
static int measure(PyObject *tensor, const void **first, size_t *storage_bytes) {
    PyObject *address = PyObject_CallFunctionObjArgs(torch_names.data_ptr, tensor, NULL);
    PyObject *storage = address ? PyObject_CallFunctionObjArgs(torch_names.storage, tensor, NULL)
                                : NULL;
    PyObject *bytes = storage ? PyObject_CallMethodObjArgs(storage, names.nbytes, NULL) : NULL;
    *first = bytes ? PyLong_AsVoidPtr(address) : NULL;
    *storage_bytes = bytes && !PyErr_Occurred() ? PyLong_AsSize_t(bytes) : 0;
    Py_XDECREF(bytes);
    Py_XDECREF(storage);
    Py_XDECREF(address);
    return PyErr_Occurred() ? -1 : 0;
}

/* 1, 0, or -1 with an exception. A storage that was resized may be at the same place again. A
 * subclass of torch's tensor may do anything when it is asked: end the loan, too. */
static int is_in_place(const struct loan *loan) {
    const void *first;
    size_t storage_bytes;
    PyObject *tensor = Py_NewRef(loan->tensor);
    int result = measure(tensor, &first, &storage_bytes);
    Py_DECREF(tensor);
    if (result != 0)
        return -1;
    return !loan->tensor || (first == loan->first && storage_bytes == loan->storage_bytes);
}

int loan_check(const struct loan *loan) {
    if (!loan || !loan->tensor || !loan->managed.dl_tensor.data)
        return 0;
    int result = is_in_place(loan);
    if (result == 0)
        error_raise_as(EBB_E_RELEASED, "the elements were a torch.Tensor's, whose storage was "
                                       "resized or moved: torch has freed them");
    return result == 1 ? 0 : -1;
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

/* What loan_check() goes by. 0, or -1 with an exception. */
static int remember_storage(struct loan *loan) {
    PyObject *tensor = find_tensor(loan->object);
    int result = !tensor             ? -1
                 : tensor == Py_None ? 0
                                     : measure(tensor, &loan->first, &loan->storage_bytes);
    if (result == 0 && tensor != Py_None)
        loan->tensor = Py_NewRef(tensor);
    Py_XDECREF(tensor);
    return result;
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
    struct ebb_tensor *tensor = NULL;
    if (intake->is_short || remember_storage(loan) == 0)
        tensor = lend(intake, loan);
    if (!tensor)
        end_loan(&loan->managed);
    intake->first = what->data;
    if (intake->is_short)
        loan_drop(loan);
    else
        intake->loan = loan;
    return tensor;
}
