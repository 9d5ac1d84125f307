// SPDX-License-Identifier: Apache-2.0
/*
 * current.c - the current region of a thread or task.
 *
 * A variable of contextvars has the region that was entered last, and each region the one that was
 * entered before it. Another task than the one that entered a region may leave it, or have a copy
 * of the variable from before: so one that was left keeps what is below it, and is passed over.
 * So is, in a forked child, one whose memory is the parent's, until the child leaves it.
 *
 * Entering and leaving are calls of C, so that no handler of a signal, which runs between
 * bytecodes, raises in the middle: `with` leaves whatever it has entered.
 *
 * Invariant: the chain has no cycle, since no region is entered that is on it.
 */
#include "module.h"

static PyObject *variable, *get_name, *set_name;

static int set_innermost(PyObject *region) {
    PyObject *token = PyObject_CallMethodObjArgs(variable, set_name, region, NULL);
    Py_XDECREF(token);
    return token ? 0 : -1;
}

/* The region below; borrowed. None at the end. */
static PyObject *outer_of(PyObject *region) {
    PyObject *outer = ((struct region *)region)->outer;
    return outer ? outer : Py_None;
}

static bool is_left(const struct region *region) {
    return region->is_left;
}

static bool is_left_or_inherited(const struct region *region) {
    return region->is_left || region_is_inherited(region);
}

/* The region that was entered last and is not passed over, or None. New reference. */
static PyObject *find_last(bool (*is_passed)(const struct region *)) {
    PyObject *last = PyObject_CallMethodObjArgs(variable, get_name, NULL), *at = last;
    while (at && at != Py_None && is_passed((struct region *)at))
        at = outer_of(at);
    Py_XINCREF(at);
    Py_XDECREF(last);
    return at;
}

/* The region that was entered last and not left, or None. New reference. */
static PyObject *innermost(void) {
    return find_last(is_left);
}

int current_enter(PyObject *object) {
    struct region *region = region_of(object);
    PyObject *last = region ? innermost() : NULL;
    if (!last)
        return -1;
    PyObject *at = last;
    while (at != Py_None && at != object)
        at = outer_of(at);
    if (at == object)
        PyErr_SetString(PyExc_RuntimeError, "the region was entered and is not left yet");
    if (at == object || set_innermost(object) != 0) {
        Py_DECREF(last);
        return -1;
    }
    PyObject *before = region->outer; /* it was entered in another thread or task */
    region->outer = last;
    region->is_left = 0;
    Py_XDECREF(before);
    return 0;
}

int current_leave(PyObject *object) {
    PyObject *last = innermost(), *outer = Py_NewRef(outer_of(object));
    int result = !last || (last == object && set_innermost(outer) != 0) ? -1 : 0;
    if (result == 0) {
        ((struct region *)object)->is_left = 1;
        for (PyObject *at = last; at != Py_None; at = outer_of(at))
            if (outer_of(at) == object) { /* whoever calls has another reference */
                ((struct region *)at)->outer = Py_NewRef(outer);
                Py_DECREF(object);
            }
    }
    Py_DECREF(outer);
    Py_XDECREF(last);
    return result;
}

PyObject *current_find(PyObject *list) {
    PyObject *last = innermost(), *found = NULL;
    for (PyObject *at = last; at && at != Py_None && !found; at = outer_of(at))
        for (Py_ssize_t i = 0; i < PyList_Size(list) && !found; i++)
            if (PyList_GetItem(list, i) == at)
                found = Py_NewRef(at);
    if (last && !found)
        found = Py_XNewRef(PyList_GetItem(list, PyList_Size(list) - 1));
    Py_XDECREF(last);
    return found;
}

int current_change_scopes(PyObject *object, bool enters) {
    PyObject *last = innermost(), *at = last;
    while (at && at != Py_None && at != object) {
        PyObject *outer = outer_of(at);
        if (outer != Py_None)
            ((struct region *)outer)->inner = at;
        at = outer;
    }
    PyObject *end = at == object ? last : object; /* it was entered in another context: it alone */
    int result = last ? 0 : -1;
    for (at = object; result == 0; at = ((struct region *)at)->inner) {
        if (!is_left((struct region *)at))
            result = step_change_scope(at, enters);
        if (at == end)
            break;
    }
    Py_XDECREF(last);
    return result;
}

const char current_doc[] =
"current()\n--\n\n"
"The region that was entered last and not left, in this thread or task; None if there is none.\n\n"
"A region is entered by `with region`, `with ebb.step(...)`, and by ebb.Collate. A forked child\n"
"passes over those of shared pools that its parent entered.";

PyObject *current_get(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    PyObject *last = find_last(is_left_or_inherited);
    if (!last || last == Py_None || ebb_region_is_open(((struct region *)last)->handle))
        return last;
    Py_DECREF(last);
    Py_RETURN_NONE;
}

int current_add(void) {
    PyObject *module = PyImport_ImportModule("contextvars");
    PyObject *class = module ? PyObject_GetAttrString(module, "ContextVar") : NULL;
    PyObject *name = class ? Py_BuildValue("(s)", "ebb.current") : NULL;
    PyObject *words = name ? Py_BuildValue("{sO}", "default", Py_None) : NULL;
    variable = words ? PyObject_Call(class, name, words) : NULL;
    get_name = PyUnicode_InternFromString("get");
    set_name = PyUnicode_InternFromString("set");
    Py_XDECREF(words);
    Py_XDECREF(name);
    Py_XDECREF(class);
    Py_XDECREF(module);
    return variable && get_name && set_name ? 0 : -1;
}
