// SPDX-License-Identifier: Apache-2.0
/*
 * module.c - the module ebb._ebb. Its names are for the package; users see those of ebb.
 *
 * One interpreter only: the classes are static, as those of torch and numpy are. Others are
 * refused: what they set would be gone with them.
 */
#include "batch.h"

struct names names;

static int find_names(void) {
    const struct {
        PyObject **to;
        const char *text;
    } rows[] = {{&names.dtype, "dtype"},
                {&names.shape, "shape"},
                {&names.layout, "layout"},
                {&names.is_cpu, "is_cpu"},
                {&names.is_nested, "is_nested"},
                {&names.requires_grad, "requires_grad"},
                {&names.hasobject, "hasobject"},
                {&names.close, "close"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!(*rows[i].to = PyUnicode_InternFromString(rows[i].text)))
            return -1;
    return 0;
}

PyDoc_STRVAR(forks_doc, "forks()\n--\n\n"
                        "Another number than in each process that this one was forked from.");

static PyObject *count_forks(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    return PyLong_FromUnsignedLong(ebb_forks());
}

static PyMethodDef functions[] = {
    {"current", current_get, METH_NOARGS, current_doc},
    {"set_tensor_class", tensor_set_class, METH_O,
     "set_tensor_class(cls)\n--\n\nThe class that tensors get from now on."},
    {"is_scope_served", step_is_scope_served, METH_NOARGS, step_is_scope_served_doc},
    {"forks", count_forks, METH_NOARGS, forks_doc},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ebb._ebb", .m_doc = "The C part of the package ebb.",
    .m_size = 0, .m_methods = functions};

PyMODINIT_FUNC PyInit__ebb(void);

/* NULL with an exception. */
static PyObject *make_module(void) {
    (void)ebb_forks(); /* are counted from here on */
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    if (find_names() != 0 || current_add() != 0 || error_add(module) != 0 ||
        pool_add(module) != 0 || region_add(module) != 0 || tensor_add(module) != 0 ||
        step_add(module) != 0 || writer_add(module) != 0 || lease_add(module) != 0 ||
        parcel_add(module) != 0 ||
        PyModule_AddStringConstant(module, "version", ebb_version()) != 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}

/* Called for each import that does not find the module in sys.modules: it is made once. */
PyMODINIT_FUNC PyInit__ebb(void) {
    static PyObject *module;
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError, "ebb works in the main interpreter only");
        return NULL;
    }
    if (!module)
        module = make_module();
    return Py_XNewRef(module);
}
