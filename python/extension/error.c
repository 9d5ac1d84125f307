// SPDX-License-Identifier: Apache-2.0
/* error.c - errors of libebb become exceptions of class ebb.Error. */
#include "module.h"

#include <string.h>

PyObject *error_class;

PyDoc_STRVAR(error_doc,
"What libebb refused, with its numbers.\n\n"
"code    the number of the error, negative, such as -7\n"
"name    its name, such as 'EBB_E_STALE'; include/ebb/base.h explains each\n\n"
"0 and '' if all that is left is the text, as of a worker's error that torch raises again.\n");

int error_add(PyObject *module) {
    PyObject *defaults = Py_BuildValue("{siss}", "code", 0, "name", "");
    if (defaults)
        error_class = PyErr_NewExceptionWithDoc("ebb.Error", error_doc, PyExc_RuntimeError,
                                                defaults);
    Py_XDECREF(defaults);
    if (!error_class)
        return -1;
    return PyModule_AddObjectRef(module, "Error", error_class);
}

static int set_attribute(PyObject *exception, const char *name, PyObject *value) {
    int result = value ? PyObject_SetAttrString(exception, name, value) : -1;
    Py_XDECREF(value);
    return result;
}

/* libebb cuts long names at a byte, which may be in the middle of a character. */
static PyObject *decode(const char *text) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *error_raise_as(int code, const char *text) {
    PyObject *words = text ? decode(text) : NULL;
    PyObject *exception = words ? PyObject_CallFunctionObjArgs(error_class, words, NULL) : NULL;
    if (exception && set_attribute(exception, "code", PyLong_FromLong(code)) == 0 &&
        set_attribute(exception, "name", PyUnicode_FromString(ebb_error_name(code))) == 0)
        PyErr_SetObject(error_class, exception);
    Py_XDECREF(exception);
    Py_XDECREF(words);
    return NULL;
}

PyObject *error_raise(void) {
    if (PyErr_Occurred())
        return NULL;
    return error_raise_as(ebb_last_error(), ebb_last_error_text());
}

bool error_forgive(void) {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return false;
    PyErr_Clear();
    return true;
}

PyObject *error_raise_buffer(void) {
    PyObject *words = PyErr_Occurred() ? NULL : decode(ebb_last_error_text());
    if (words)
        PyErr_SetObject(PyExc_BufferError, words);
    Py_XDECREF(words);
    return NULL;
}
