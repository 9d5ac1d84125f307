// SPDX-License-Identifier: Apache-2.0
/*
 * loan.c - elements of a Python object, lent to libebb as a DLPack struct.
 *
 * A loan ends when libebb gives the elements back; the object is let go then, whoever else still
 * refers to the loan: the Tensors that have the elements, which hand on the object's own likes of
 * them. All with the interpreter's lock.
 */
#include "capsule.h"

#include <stdlib.h>
#include <string.h>

struct loan {
    DLManagedTensorVersioned managed;
    PyObject *object;      /* NULL: it has its elements back */
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
    Py_CLEAR(loan->object);
    loan_drop(loan);
    PyGILState_Release(state);
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

struct ebb_tensor *loan_make(struct region *region, PyObject *object,
                             const struct description *what, enum ebb_exchange_mode mode,
                             struct intake *intake) {
    struct loan *loan = loan_hold(make(object, what));
    if (!loan)
        return NULL;
    struct ebb_tensor *tensor = ebb_tensor_import_versioned(region->handle, &loan->managed, mode);
    if (!tensor) {
        error_raise();
        end_loan(&loan->managed);
    }
    if (!intake) {
        loan_drop(loan);
        return tensor;
    }
    *intake = (struct intake){what->data, loan};
    return tensor;
}
