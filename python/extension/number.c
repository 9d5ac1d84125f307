// SPDX-License-Identifier: Apache-2.0
/*
 * number.c - numbers as arguments. Where an option of libebb means its default by 0, None does so
 * here, and 0 is refused: who computes a limit of 0 does not want none.
 */
#include "module.h"

/* Numbers beyond 64 bits are cut to what an index holds, which is out of all bounds but the
 * highest: `whole` is as it was given. */
static void refuse(const struct number *number, PyObject *whole) {
    if (number->most == PY_SSIZE_T_MAX && number->value < number->least)
        PyErr_Format(PyExc_ValueError, "%s is %S: at least %zd, or None", number->name, whole,
                     number->least);
    else
        PyErr_Format(PyExc_ValueError, "%s is %S: %zd to %zd, or None", number->name, whole,
                     number->least, number->most);
}

int number_parse(PyObject *object, void *address) {
    struct number *number = address;
    if (object == Py_None)
        return 1;
    PyObject *whole = PyNumber_Index(object);
    if (!whole)
        return 0;
    int beyond;
    (void)PyLong_AsLongLongAndOverflow(whole, &beyond);
    number->value = PyNumber_AsSsize_t(whole, NULL); /* cut to the nearest that it holds */
    number->given = true;
    bool good = !beyond && number->value >= number->least && number->value <= number->most;
    if (!good)
        refuse(number, whole);
    Py_DECREF(whole);
    return good;
}
