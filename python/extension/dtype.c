// SPDX-License-Identifier: Apache-2.0
/*
 * dtype.c - names of data types, and shapes, as Python has them.
 *
 * The order of the table is that of torch_names.dtypes. Where C's long has 64 bits, numpy's int64
 * is that type and not long long: two types of its, of which isinstance() knows one.
 */
#include "dtype.h"

#include <string.h>

#define INT64_FORMAT (sizeof(long) == 8 ? "l" : "q")
#define UINT64_FORMAT (sizeof(long) == 8 ? "L" : "Q")

const struct dtype_row dtype_table[DTYPE_ROWS] = {
    {"float32", "f", {EBB_FLOAT, 32, 1}},    {"int64", INT64_FORMAT, {EBB_INT, 64, 1}},
    {"uint8", "B", {EBB_UINT, 8, 1}},        {"bool", "?", {EBB_BOOL, 8, 1}},
    {"int32", "i", {EBB_INT, 32, 1}},        {"float64", "d", {EBB_FLOAT, 64, 1}},
    {"float16", "e", {EBB_FLOAT, 16, 1}},    {"bfloat16", NULL, {EBB_BFLOAT, 16, 1}},
    {"int16", "h", {EBB_INT, 16, 1}},        {"int8", "b", {EBB_INT, 8, 1}},
    {"uint16", "H", {EBB_UINT, 16, 1}},      {"uint32", "I", {EBB_UINT, 32, 1}},
    {"uint64", UINT64_FORMAT, {EBB_UINT, 64, 1}}, {"complex64", "Zf", {EBB_COMPLEX, 64, 1}},
    {"complex128", "Zd", {EBB_COMPLEX, 128, 1}}};

static const struct dtype_row *find(const char *name) {
    for (size_t i = 0; i < DTYPE_ROWS; i++)
        if (strcmp(dtype_table[i].name, name) == 0)
            return &dtype_table[i];
    return NULL;
}

static const struct dtype_row *row_of(struct ebb_dtype dtype) {
    for (size_t i = 0; i < DTYPE_ROWS; i++)
        if (ebb_dtype_equal(dtype_table[i].dtype, dtype))
            return &dtype_table[i];
    return NULL;
}

const char *dtype_name(struct ebb_dtype dtype) {
    const struct dtype_row *row = row_of(dtype);
    return row ? row->name : NULL;
}

const char *dtype_format(struct ebb_dtype dtype) {
    const struct dtype_row *row = row_of(dtype);
    return row ? row->format : NULL;
}

/* The name that an object has for a data type: its own, or that of its class. New reference. */
static PyObject *name_of(PyObject *object) {
    static const char *const attributes[] = {"name", "__name__"}; /* numpy.dtype, numpy.float32 */
    if (PyUnicode_Check(object))
        return Py_NewRef(object);
    if (object == (PyObject *)&PyFloat_Type || object == (PyObject *)&PyLong_Type)
        return PyUnicode_FromString(object == (PyObject *)&PyFloat_Type ? "float64" : "int64");
    for (size_t i = 0; i < 2; i++) {
        PyObject *name = PyObject_GetAttrString(object, attributes[i]);
        if (name && PyUnicode_Check(name))
            return name;
        Py_XDECREF(name);
        if (!error_forgive())
            return NULL;
    }
    return PyObject_Str(object); /* "torch.float32" */
}

/* 1: numpy's data types of the other byte order have the same names. -1: exception. */
static int is_swapped(PyObject *object) {
    PyObject *native = PyUnicode_Check(object) ? NULL : PyObject_GetAttrString(object, "isnative");
    Py_XDECREF(native);
    return error_forgive() ? native == Py_False : -1;
}

int dtype_parse(PyObject *object, struct ebb_dtype *dtype) {
    PyObject *name = name_of(object);
    Py_ssize_t length = 0;
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, &length) : NULL;
    if (!text) {
        Py_XDECREF(name);
        return -1;
    }
    bool is_cut = (size_t)length != strlen(text); /* by a NUL that is part of it */
    bool is_of_torch = strncmp(text, "torch.", 6) == 0;
    text += is_of_torch ? 6 : 0;
    const struct dtype_row *row = find(strcmp(text, "bool_") == 0 ? "bool" : text);
    int swapped = is_of_torch ? 0 : is_swapped(object);
    if (swapped || is_cut)
        row = NULL;
    if (row)
        *dtype = row->dtype;
    else if (swapped >= 0)
        PyErr_Format(PyExc_TypeError, "%R is no data type that ebb knows", object);
    Py_DECREF(name);
    return row ? 0 : -1;
}

static int parse_size(PyObject *object, int64_t *size) {
    PyObject *index = PyNumber_Index(object);
    if (!index)
        return -1;
    int beyond;
    *size = PyLong_AsLongLongAndOverflow(index, &beyond);
    if (beyond)
        PyErr_Format(PyExc_OverflowError, "a dimension of %S is beyond 64 bits", index);
    Py_DECREF(index);
    return beyond ? -1 : 0;
}

int shape_parse(PyObject *object, int64_t shape[EBB_DIMENSIONS_MAX]) {
    if (PyIndex_Check(object))
        return parse_size(object, &shape[0]) == 0 ? 1 : -1;
    PyObject *sizes = PySequence_Tuple(object);
    if (!sizes)
        return -1;
    Py_ssize_t count = PyTuple_Size(sizes);
    int result = (int)count;
    if (count > EBB_DIMENSIONS_MAX) {
        PyErr_Format(PyExc_ValueError, "%zd dimensions, at most %d", count, EBB_DIMENSIONS_MAX);
        result = -1;
    }
    for (Py_ssize_t i = 0; i < count && result >= 0; i++)
        if (parse_size(PyTuple_GetItem(sizes, i), &shape[i]) != 0)
            result = -1;
    Py_DECREF(sizes);
    return result;
}

PyObject *shape_tuple(const int64_t *shape, int ndim) {
    int64_t sizes[EBB_DIMENSIONS_MAX];
    memcpy(sizes, shape, (size_t)ndim * sizeof *sizes); /* the collector may run now */
    PyObject *tuple = PyTuple_New(ndim);
    for (int i = 0; tuple && i < ndim; i++) {
        PyObject *size = PyLong_FromLongLong(sizes[i]);
        if (!size || PyTuple_SetItem(tuple, i, size) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}
