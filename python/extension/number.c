// SPDX-License-Identifier: Apache-2.0
/*
 * number.c - numbers as arguments. Where an option of libebb means its default by 0, None does so
 * here, and 0 is refused: who computes a limit of 0 does not want none.
 */
#include "module.h"

int number_parse(PyObject *object, void *address) {
    struct number *number = address;
    if (object == Py_None)
        return 1;
    number->value = PyNumber_AsSsize_t(object, PyExc_OverflowError);
    number->given = true;
    if (number->value == -1 && PyErr_Occurred())
        return 0;
    if (number->value >= number->least && number->value <= number->most)
        return 1;
    if (number->most == PY_SSIZE_T_MAX)
        PyErr_Format(PyExc_ValueError, "%s is %zd: at least %zd, or None", number->name,
                     number->value, number->least);
    else
        PyErr_Format(PyExc_ValueError, "%s is %zd: %zd to %zd, or None", number->name,
                     number->value, number->least, number->most);
    return 0;
}
