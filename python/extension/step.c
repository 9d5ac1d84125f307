// SPDX-License-Identifier: Apache-2.0
/* step.c - class Site: steps that learn. ebb.step() is made of it. */
#include "module.h"

#include <ebb/scope.h>
#include <limits.h>
#include <string.h>

struct site {
    PyObject_HEAD
    ebb_site *site;
    PyObject *pool;
};

static PyObject *site_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"name", "pool", "ring", "scope", NULL};
    struct ebb_site_options options = {.size = sizeof options};
    PyObject *pool = Py_None;
    Py_ssize_t ring = 0;
    int scope = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s|Onp:Site", words, &options.name,
                                     &pool, &ring, &scope))
        return NULL;
    if (ring < 0 || (size_t)ring > UINT_MAX)
        return PyErr_Format(PyExc_ValueError, "a ring of %zd steps, not of 0 to 64", ring);
    options.ring = (unsigned)ring;
    options.scope = scope != 0;
    if (pool != Py_None && !(options.pool = pool_of(pool)))
        return NULL;
    ebb_site *made = ebb_site_create(&options);
    if (!made)
        return error_raise();
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct site *self = (struct site *)make(type, 0);
    if (!self) {
        ebb_site_destroy(made);
        return NULL;
    }
    self->site = made;
    self->pool = Py_NewRef(pool);
    return (PyObject *)self;
}

static int site_traverse(PyObject *object, visitproc visit, void *arg) {
    const struct site *self = (struct site *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->pool);
    return 0;
}

/* A site with a step that is open stays: the step's region says so when it is used. */
static void site_dealloc(PyObject *object) {
    struct site *self = (struct site *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(object);
    ebb_site_destroy(self->site);
    Py_XDECREF(self->pool);
    release(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(begin_doc,
"begin(cls, parent, tag)\n--\n\nBegins a step: (its region as a `cls`, a token for end()).");

static PyObject *site_begin(PyObject *object, PyObject *arguments) {
    struct site *self = (struct site *)object;
    PyObject *class, *parent;
    unsigned long long tag;
    ebb_region above = {NULL, 0};
    if (!PyArg_ParseTuple(arguments, "OOK:begin", &class, &parent, &tag))
        return NULL;
    if (!PyType_Check(class) ||
        !PyType_IsSubtype((PyTypeObject *)class, (PyTypeObject *)region_type)) {
        PyErr_SetString(PyExc_TypeError, "no class of regions");
        return NULL;
    }
    if (self->pool != Py_None && !pool_of(self->pool))
        return NULL;
    if (parent != Py_None) {
        const struct region *region = region_of(parent);
        if (!region)
            return NULL;
        above = region->handle;
    }
    ebb_step step = ebb_step_begin_under(self->site, above, tag);
    if (!ebb_region_is_open(step.region))
        return error_raise();
    PyObject *region = region_wrap((PyTypeObject *)class, step.region, self->pool, parent);
    PyObject *token = region ? PyBytes_FromStringAndSize((const char *)&step, sizeof step) : NULL;
    PyObject *both = token ? PyTuple_Pack(2, region, token) : NULL;
    Py_XDECREF(token);
    Py_XDECREF(region);
    return both;
}

PyDoc_STRVAR(end_doc,
"end(token)\n--\n\nEnds the step: what was not promoted ends with it.");

static PyObject *site_end(PyObject *Py_UNUSED(object), PyObject *token) {
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(token, &bytes, &size) != 0)
        return NULL;
    if (size != sizeof(ebb_step)) {
        PyErr_SetString(PyExc_ValueError, "no token of begin()");
        return NULL;
    }
    ebb_step step;
    memcpy(&step, bytes, sizeof step);
    if (ebb_step_end(step) != 0)
        return error_raise();
    Py_RETURN_NONE;
}

static PyObject *site_stats(PyObject *object, void *Py_UNUSED(closure)) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    if (ebb_site_read_stats(((struct site *)object)->site, &stats) != 0)
        return error_raise();
    return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsKsO}", "steps", stats.steps, "planned_steps",
                         stats.planned_steps, "recorded_steps", stats.recorded_steps,
                         "allocations", stats.allocations, "hits", stats.hits, "missed",
                         stats.missed, "plan_height", stats.plan_height, "used_peak",
                         stats.used_peak, "given_back", stats.given_back, "row_steps",
                         stats.row_steps, "suspended", stats.suspended ? Py_True : Py_False);
}

const char step_is_scope_served_doc[] =
"is_scope_served()\n--\n\n"
"Whether libebb-malloc is loaded, so that steps with a scope have what their thread mallocs.";

PyObject *step_is_scope_served(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    return PyBool_FromLong(ebb_scope_is_served());
}

static PyMethodDef site_methods[] = {{"begin", site_begin, METH_VARARGS, begin_doc},
                                     {"end", site_end, METH_O, end_doc},
                                     {NULL, NULL, 0, NULL}};

static PyGetSetDef site_getters[] = {
    {"stats", site_stats, NULL, "What the site has learnt, as a dict.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

PyDoc_STRVAR(site_doc,
"Site(name, pool=None, ring=0, scope=False)\n--\n\n"
"A place that a program passes again and again; its steps are planned from those before.");

static PyType_Slot site_slots[] = {{Py_tp_new, site_new},
                                   {Py_tp_dealloc, site_dealloc},
                                   {Py_tp_traverse, site_traverse},
                                   {Py_tp_doc, (void *)site_doc},
                                   {Py_tp_methods, site_methods},
                                   {Py_tp_getset, site_getters},
                                   {0, NULL}};

static PyType_Spec site_spec = {"ebb._ebb.Site", sizeof(struct site), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, site_slots};

int step_add(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &site_spec, NULL);
    int result = type ? PyModule_AddObjectRef(module, "Site", type) : -1;
    Py_XDECREF(type);
    return result;
}
