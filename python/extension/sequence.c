// SPDX-License-Identifier: Apache-2.0
/*
 * sequence.c - many tensors become one: stacked, padded, packed. For Region's methods.
 *
 * Inputs are borrowed: each gets a head in the region while the call lasts.
 */
#include "module.h"

#include <string.h>

struct inputs {
    PyObject *list; /* keeps what has regions of its own */
    struct borrowed *borrowed;
    struct ebb_tensor **tensors; /* theirs */
    size_t count;
};

/* What was lent is let go, and may end any of the regions, and the other heads with them. */
static void give_back(struct inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++)
        exchange_give_back(&inputs->borrowed[i]);
    PyMem_Free(inputs->tensors);
    PyMem_Free(inputs->borrowed);
    Py_XDECREF(inputs->list);
}

/* False with an exception. */
static bool all_stay(const struct inputs *inputs) {
    size_t i = 0;
    while (i < inputs->count && exchange_stays(&inputs->borrowed[i]))
        i++;
    return i == inputs->count;
}

static bool borrow_one(struct region *region, PyObject *object, struct inputs *inputs) {
    struct borrowed *borrowed = &inputs->borrowed[inputs->count];
    if (exchange_borrow(region, object, borrowed) != 0)
        return false;
    inputs->tensors[inputs->count++] = borrowed->tensor;
    return true;
}

static int borrow(struct region *region, PyObject *sequence, struct inputs *inputs) {
    uint64_t epoch = region->epoch;
    PyObject *list = PySequence_List(sequence);
    size_t count = list ? (size_t)PyList_Size(list) : 0;
    *inputs = (struct inputs){list, PyMem_Malloc((count + 1) * sizeof *inputs->borrowed),
                              PyMem_Malloc((count + 1) * sizeof *inputs->tensors), 0};
    bool good = list && inputs->tensors && inputs->borrowed;
    while (good && inputs->count < count)
        good = borrow_one(region, PyList_GetItem(list, (Py_ssize_t)inputs->count), inputs);
    if (region_stays(region, epoch) && good && all_stay(inputs))
        return 0;
    give_back(inputs);
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return -1;
}

/* ---- stack ---- */

static bool is_alike(const struct ebb_tensor *a, const struct ebb_tensor *b) {
    bool alike = a->ndim == b->ndim && ebb_dtype_equal(a->dtype, b->dtype);
    for (int i = 0; alike && i < a->ndim; i++)
        alike = a->shape[i] == b->shape[i];
    return alike;
}

static int refuse_unlike(const struct inputs *inputs, size_t index) {
    const struct ebb_tensor *first = inputs->tensors[0], *other = inputs->tensors[index];
    const char *a = dtype_name(first->dtype), *b = dtype_name(other->dtype);
    int64_t sizes[EBB_DIMENSIONS_MAX]; /* first: to make a tuple may end the region */
    int ndim = other->ndim;
    memcpy(sizes, other->shape, (size_t)ndim * sizeof *sizes);
    PyObject *one = shape_tuple(first->shape, first->ndim);
    PyObject *two = shape_tuple(sizes, ndim);
    if (one && two) {
        PyObject *text = PyUnicode_FromFormat("stack: number %zu is %s %S, the first is %s %S",
                                              index, b ? b : "?", two, a ? a : "?", one);
        if (text)
            error_raise_as(EBB_E_SHAPE, PyUnicode_AsUTF8AndSize(text, NULL));
        Py_XDECREF(text);
    }
    Py_XDECREF(one);
    Py_XDECREF(two);
    return -1;
}

static int check_stack(const struct inputs *inputs) {
    if (inputs->count == 0) {
        error_raise_as(EBB_E_EMPTY, "stack: there are no tensors");
        return -1;
    }
    if (inputs->tensors[0]->ndim == EBB_DIMENSIONS_MAX) {
        error_raise_as(EBB_E_SHAPE, "stack: the result would have 33 dimensions, at most 32");
        return -1;
    }
    for (size_t i = 1; i < inputs->count; i++)
        if (!is_alike(inputs->tensors[0], inputs->tensors[i]))
            return refuse_unlike(inputs, i);
    return 0;
}

/* Copies input after input into the result's parts. 0 or an error of ebb's. */
static int fill(ebb_region region, struct ebb_tensor *result, const struct inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++) {
        struct ebb_tensor *part = ebb_tensor_select(region, result, 0, (int64_t)i);
        if (!part)
            return ebb_last_error();
        int code = ebb_tensor_copy(part, inputs->tensors[i]);
        ebb_object_end(part);
        if (code != 0)
            return code;
    }
    return 0;
}

/* NULL with ebb's error, which is raised when nothing is left to end: that may end the region. */
static struct ebb_tensor *stack(ebb_region region, const struct inputs *inputs) {
    const struct ebb_tensor *first = inputs->tensors[0];
    int64_t shape[EBB_DIMENSIONS_MAX] = {(int64_t)inputs->count};
    for (int i = 0; i < first->ndim; i++)
        shape[i + 1] = first->shape[i];
    struct ebb_tensor *result = tensor_make(region, first->dtype, first->ndim + 1, shape);
    if (!result || ebb_tensor_count(result) == 0 || fill(region, result, inputs) == 0)
        return result;
    ebb_object_end(result);
    return NULL;
}

PyObject *sequence_stack(PyObject *self, PyObject *sequence) {
    struct inputs inputs;
    struct region *region = region_of(self);
    if (!region || borrow(region, sequence, &inputs) != 0)
        return NULL;
    PyObject *result = NULL;
    if (check_stack(&inputs) == 0)
        result = tensor_wrap(region, stack(region->handle, &inputs));
    give_back(&inputs);
    return result;
}

/* ---- pad and pack ---- */

/* Beyond 64 bits: a float may be as large, if it is just that number. */
static int parse_large(PyObject *number, struct ebb_value *value) {
    *value = ebb_value_float(PyLong_AsDouble(number));
    PyObject *back = PyErr_Occurred() ? NULL : PyLong_FromDouble(value->f);
    int same = back ? PyObject_RichCompareBool(back, number, Py_EQ) : 0;
    Py_XDECREF(back);
    if (same == 0 && error_forgive())
        error_raise_as(EBB_E_VALUE, "the padding has more than 64 bits, and is no float");
    return same == 1 ? 0 : -1;
}

static int parse_whole(PyObject *number, struct ebb_value *value) {
    int beyond = 0;
    long long whole = PyLong_AsLongLongAndOverflow(number, &beyond);
    *value = ebb_value_int(whole);
    if (!beyond)
        return 0;
    unsigned long long positive = beyond > 0 ? PyLong_AsUnsignedLongLong(number) : 0;
    if (beyond < 0 || PyErr_Occurred())
        return error_forgive() ? parse_large(number, value) : -1;
    *value = ebb_value_uint(positive);
    return 0;
}

/* Whole numbers of numpy and torch, too, are no floats: those hold 53 bits. */
static int parse_value(PyObject *object, struct ebb_value *value) {
    if (PyBool_Check(object)) {
        *value = ebb_value_bool(object == Py_True);
        return 0;
    }
    PyObject *number = PyIndex_Check(object) ? PyNumber_Index(object) : NULL;
    if (number) {
        int result = parse_whole(number, value);
        Py_DECREF(number);
        return result;
    }
    if (!error_forgive()) /* an array or a tensor that is not whole */
        return -1;
    *value = ebb_value_float(PyFloat_AsDouble(object));
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *sequence_pad(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"sequences", "padding", "batch_first", "left", "total_length", NULL};
    PyObject *sequence, *padding, *total;
    int batch_first, left;
    struct inputs inputs;
    struct ebb_pad_options options = {.size = sizeof options};
    struct region *region = region_of(self);
    if (!region || !PyArg_ParseTupleAndKeywords(arguments, keywords, "OOppO:_pad", words, &sequence,
                                                &padding, &batch_first, &left, &total))
        return NULL;
    options.batch_first = batch_first != 0;
    options.side = left ? EBB_SIDE_LEFT : EBB_SIDE_RIGHT;
    options.has_total_length = total != Py_None;
    options.total_length = total != Py_None ? PyLong_AsLongLong(total) : 0;
    if (PyErr_Occurred())
        return NULL;
    if (parse_value(padding, &options.padding) != 0 || borrow(region, sequence, &inputs) != 0)
        return NULL;
    struct ebb_tensor *padded = ebb_sequences_pad(region->handle, inputs.tensors, inputs.count,
                                                  &options);
    PyObject *result = tensor_wrap(region, tensor_settle(region->handle, padded));
    give_back(&inputs);
    return result;
}

/* A member of the packed sequence as a tensor of its own. NULL: there is none, so None. */
static PyObject *take_member(struct region *region, const struct ebb_tensor *member) {
    return member ? tensor_wrap(region, tensor_copied(region->handle, member))
                  : Py_NewRef(Py_None);
}

/* The data, of which there may be much, without a copy: another head of the same storage. */
static PyObject *take_data(struct region *region, const struct ebb_tensor *data) {
    if (ebb_tensor_bytes(data) <= EBB_SMALL_MAX_BYTES)
        return take_member(region, data);
    return tensor_wrap(region, ebb_tensor_view(region->handle, data, data->ndim, data->shape,
                                               data->strides, 0));
}

/* What is made may have the collector run, and that may end the region. */
static PyObject *take_apart(struct region *region, struct ebb_packed *packed) {
    const struct ebb_tensor *parts[] = {packed->data, packed->batch_sizes, packed->sorted_indices,
                                        packed->unsorted_indices};
    uint64_t epoch = region->epoch;
    PyObject *tuple = PyTuple_New(4);
    for (Py_ssize_t i = 0; tuple && i < 4; i++) {
        PyObject *part = !region_stays(region, epoch) ? NULL
                         : i == 0                     ? take_data(region, parts[i])
                                                      : take_member(region, parts[i]);
        if (part)
            PyTuple_SetItem(tuple, i, part);
        else
            Py_CLEAR(tuple);
    }
    if (region_stays(region, epoch))
        ebb_object_end(packed);
    else
        Py_CLEAR(tuple);
    return tuple;
}

PyObject *sequence_pack(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"sequences", "enforce_sorted", NULL};
    PyObject *sequence;
    int enforce_sorted;
    struct inputs inputs;
    struct ebb_pack_options options = {.size = sizeof options, .refuse_empty = true}; /* as torch */
    struct region *region = region_of(self);
    if (!region || !PyArg_ParseTupleAndKeywords(arguments, keywords, "Op:_pack", words, &sequence,
                                                &enforce_sorted))
        return NULL;
    options.enforce_sorted = enforce_sorted != 0;
    if (borrow(region, sequence, &inputs) != 0)
        return NULL;
    struct ebb_packed *packed = ebb_sequences_pack(region->handle, inputs.tensors, inputs.count,
                                                   &options);
    PyObject *result = packed ? take_apart(region, packed) : error_raise();
    give_back(&inputs);
    return result;
}
