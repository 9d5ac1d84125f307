// SPDX-License-Identifier: Apache-2.0
/*
 * step.c - class Site: steps that learn, and class Step, what is C of ebb.step().
 *
 * Invariant: a step that has begun belongs to the object of its region: it ends when that is
 * closed, and without learning if it is dropped. Entering and leaving are one call each, which no
 * handler of a signal interrupts.
 *
 * A site outlives its pool where a program keeps it, or a step of it below a region of another
 * pool. Then no step begins any more; nothing else of it needs the pool.
 */
#include "module.h"

#include <ebb/scope.h>

struct site {
    PyObject_HEAD
    ebb_site *site;
    PyObject *name;
    PyObject *pool; /* a weak reference, as the pool keeps its sites; NULL: the default pool */
    bool has_ring;
    bool has_scopes;
};

static PyObject *site_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"name", "pool", "ring", "scope", NULL};
    struct ebb_site_options options = {.size = sizeof options};
    struct number ring = {"ring", 0, 64, 0, false};
    PyObject *pool = Py_None;
    int scope = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s|OO&p:Site", words, &options.name,
                                     &pool, number_parse, &ring, &scope))
        return NULL;
    options.ring = (unsigned)ring.value;
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
    self->has_scopes = options.scope;
    self->has_ring = ring.value != 0;
    if (!(self->name = PyUnicode_FromString(options.name)) ||
        (pool != Py_None && !(self->pool = PyWeakref_NewRef(pool, NULL))))
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* A site with a step that is open stays: the step's region says so when it is used. */
static void site_dealloc(PyObject *object) {
    struct site *self = (struct site *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    ebb_site_destroy(self->site);
    Py_XDECREF(self->name);
    Py_XDECREF(self->pool);
    release(object);
    Py_DECREF(type);
}

static PyObject *site_type;

/* The pool, or None for the default one. New reference; NULL with an exception: it is gone. Who has
 * it at hand says so: in a cycle that is being collected it is there without weak references. */
static PyObject *find_pool(const struct site *site, PyObject *at_hand) {
    if (!site->pool)
        return Py_NewRef(Py_None);
    if (at_hand)
        return Py_NewRef(at_hand);
    PyObject *pool = PyObject_CallNoArgs(site->pool);
    if (pool != Py_None)
        return pool;
    Py_DECREF(pool);
    return error_raise_as(EBB_E_STALE, "the pool of the site is gone");
}

struct beginning {
    ebb_site *site;
    ebb_region above;
    uint64_t tag;
};

static void open_step(struct region *region, const void *how) {
    const struct beginning *beginning = how;
    region->step = ebb_step_begin_under(beginning->site, beginning->above, beginning->tag);
    region->handle = region->step.region;
}

static void open_plain(struct region *region, const void *options) {
    region->handle = ebb_region_open(options);
}

/* Waits for a slot as the region that the step will have, which is closed again with the
 * interpreter's lock: no other thread that needs that gets the slot first. */
static bool wait_for_slot(struct region *made, ebb_pool *pool) {
    struct ebb_region_options options = {.size = sizeof options, .pool = pool};
    region_open_listed(made, false, open_plain, &options);
    return ebb_region_is_open(made->handle) && ebb_region_close(made->handle) == 0;
}

/* A step that has a ring closes its oldest, which other threads may use: so it begins with the
 * interpreter's lock, with which nobody waits (see pool.c), and waits before it begins. */
static void begin_in_turn(struct region *made, const struct beginning *beginning) {
    const struct pool *pool = (const struct pool *)made->pool;
    uint64_t began = pool_now_ns();
    do {
        region_open_listed(made, true, open_step, beginning);
    } while (!ebb_region_is_open(made->handle) && ebb_last_error() == EBB_E_SLOTS &&
             pool_now_ns() - began < pool->wait_ns && wait_for_slot(made, pool->pool));
}

static bool is_shared(const PyObject *pool) {
    return pool != Py_None && ((const struct pool *)pool)->kind & EBB_KIND_SHARED;
}

/* Without the interpreter's lock where it may wait: below a parent there is no slot to wait for,
 * but tensors that any thread could end meanwhile. */
static int begin_in(struct region *made, struct site *site, uint64_t tag) {
    struct beginning beginning = {site->site, {NULL, 0}, tag};
    if (made->pool != Py_None && !pool_of(made->pool))
        return -1;
    if (made->parent != Py_None) {
        const struct region *above = region_of(made->parent);
        if (!above)
            return -1;
        beginning.above = above->handle;
        region_take_pool(made, above);
    }
    bool may_wait = !beginning.above.lane && is_shared(made->pool);
    if (may_wait && site->has_ring)
        begin_in_turn(made, &beginning);
    else
        region_open_listed(made, !may_wait, open_step, &beginning);
    if (!ebb_region_is_open(made->handle)) {
        error_raise();
        return -1;
    }
    made->site = Py_NewRef((PyObject *)site);
    return 0;
}

/* A new step's region as an object of that class, which ends the step when it is closed. The site's
 * pool may be NULL. */
static PyObject *begin(PyObject *object, PyObject *class, PyObject *pool_at_hand, PyObject *parent,
                       uint64_t tag) {
    struct site *site = (struct site *)object;
    if (!PyType_Check(class) ||
        !PyType_IsSubtype((PyTypeObject *)class, (PyTypeObject *)region_type)) {
        PyErr_SetString(PyExc_TypeError, "no class of regions");
        return NULL;
    }
    pool_try_one_waiting();
    PyObject *pool = find_pool(site, pool_at_hand);
    struct region *made = pool ? region_make((PyTypeObject *)class, pool, parent) : NULL;
    if (made && begin_in(made, site, tag) != 0)
        Py_CLEAR(made);
    Py_XDECREF(pool);
    return (PyObject *)made;
}

PyDoc_STRVAR(begin_doc,
"begin(cls, parent, tag)\n--\n\nBegins a step: its region as a `cls`, which is closed to end it.");

static PyObject *site_begin(PyObject *object, PyObject *arguments) {
    PyObject *class, *parent;
    unsigned long long tag;
    if (!PyArg_ParseTuple(arguments, "OOK:begin", &class, &parent, &tag))
        return NULL;
    return begin(object, class, NULL, parent, tag);
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

static PyObject *site_repr(PyObject *object) {
    const struct site *self = (struct site *)object;
    struct ebb_site_stats stats = {.size = sizeof stats};
    if (ebb_site_read_stats(self->site, &stats) != 0)
        return error_raise();
    return PyUnicode_FromFormat("<ebb site of steps %R: %llu steps, %llu of them planned%s>",
                                self->name, (unsigned long long)stats.steps,
                                (unsigned long long)stats.planned_steps,
                                stats.suspended ? ", suspended" : "");
}

const char step_is_scope_served_doc[] =
"is_scope_served()\n--\n\n"
"Whether libebb-malloc is loaded, so that steps with a scope have what their thread mallocs.";

PyObject *step_is_scope_served(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    return PyBool_FromLong(ebb_scope_is_served());
}

static PyMethodDef site_methods[] = {{"begin", site_begin, METH_VARARGS, begin_doc},
                                     {NULL, NULL, 0, NULL}};

static PyGetSetDef site_getters[] = {
    {"stats", site_stats, NULL, "What the site has learnt, as a dict.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

PyDoc_STRVAR(site_doc,
"Site(name, pool=None, ring=0, scope=False)\n--\n\n"
"A place that a program passes again and again; its steps are planned from those before.");

static PyType_Slot site_slots[] = {{Py_tp_new, site_new},
                                   {Py_tp_dealloc, site_dealloc},
                                   {Py_tp_repr, site_repr},
                                   {Py_tp_doc, (void *)site_doc},
                                   {Py_tp_methods, site_methods},
                                   {Py_tp_getset, site_getters},
                                   {0, NULL}};

static PyType_Spec site_spec = {"ebb._ebb.Site", sizeof(struct site), 0, Py_TPFLAGS_DEFAULT,
                                site_slots};

/* ---- class Step: how a step is entered and left ---- */

/* What a subclass has: of an ebb.step() the arguments, the site, and `_open`, a list. */
struct parts {
    PyObject *site, *pool, *parent, *tag, *class, *open;
};

static void drop_parts(struct parts *parts) {
    Py_XDECREF(parts->site);
    Py_XDECREF(parts->pool);
    Py_XDECREF(parts->parent);
    Py_XDECREF(parts->tag);
    Py_XDECREF(parts->class);
    Py_XDECREF(parts->open);
}

static PyObject *open_list(PyObject *object) {
    PyObject *list = PyObject_GetAttrString(object, "_open");
    if (list && !PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "_open of a step is no list");
        Py_CLEAR(list);
    }
    return list;
}

/* The parent is the current region, unless there is another one or a pool. */
static int find_parts(PyObject *object, struct parts *parts) {
    if (!(parts->site = PyObject_GetAttrString(object, "site")) ||
        !(parts->pool = PyObject_GetAttrString(object, "_pool")) ||
        !(parts->parent = PyObject_GetAttrString(object, "_parent")) ||
        !(parts->tag = PyObject_GetAttrString(object, "_tag")) ||
        !(parts->class = PyObject_GetAttrString(object, "_region")) ||
        !(parts->open = open_list(object)))
        return -1;
    if (!PyObject_TypeCheck(parts->site, (PyTypeObject *)site_type)) {
        PyErr_SetString(PyExc_TypeError, "no site of steps");
        return -1;
    }
    if (parts->parent == Py_None && parts->pool == Py_None) {
        Py_DECREF(parts->parent);
        parts->parent = current_get(NULL, NULL);
    }
    return parts->parent ? 0 : -1;
}

/* Takes the region out of the list. */
static int unlist(PyObject *list, PyObject *region) {
    for (Py_ssize_t i = PyList_Size(list); i > 0; i--)
        if (PyList_GetItem(list, i - 1) == region)
            return PyList_SetSlice(list, i - 1, i, NULL);
    return 0;
}

static PyObject *enter_step(const struct parts *parts) {
    uint64_t tag = PyLong_AsUnsignedLongLongMask(parts->tag);
    PyObject *pool = parts->pool == Py_None ? NULL : parts->pool;
    if (PyErr_Occurred())
        return NULL;
    PyObject *region = begin(parts->site, parts->class, pool, parts->parent, tag);
    if (region && PyList_Append(parts->open, region) != 0)
        Py_CLEAR(region);
    if (region && current_enter(region) != 0) {
        unlist(parts->open, region);
        Py_CLEAR(region);
    }
    return region;
}

static PyObject *step_enter(PyObject *object, PyObject *Py_UNUSED(none)) {
    struct parts parts = {.site = NULL};
    PyObject *region = find_parts(object, &parts) == 0 ? enter_step(&parts) : NULL;
    drop_parts(&parts);
    return region;
}

int step_change_scope(PyObject *object, bool enters) {
    const struct region *region = (const struct region *)object;
    bool has_scope = region->site && ((struct site *)region->site)->has_scopes;
    if (!has_scope || region->has_ended)
        return 0;
    if ((enters ? ebb_scope_enter : ebb_scope_leave)(region->step) != EBB_E_THREAD)
        return 0;
    error_raise();
    return -1;
}

/* One step may be open in several threads and tasks: it is this one's that ends. New reference. */
static PyObject *find_begun(PyObject *list) {
    PyObject *region = current_find(list);
    if (region && !PyObject_TypeCheck(region, (PyTypeObject *)region_type)) {
        PyErr_Format(PyExc_TypeError, "_open of a step has %R, which is no ebb.Region", region);
        Py_CLEAR(region);
    }
    return region;
}

static PyObject *step_exit(PyObject *object, PyObject *Py_UNUSED(arguments)) {
    PyObject *list = open_list(object);
    bool is_begun = list && PyList_Size(list) > 0;
    if (list && !is_begun)
        PyErr_SetString(PyExc_RuntimeError, "the step was not begun, or was ended before");
    PyObject *region = is_begun ? find_begun(list) : NULL;
    bool own = region && step_change_scope(region, false) == 0;
    bool left = own && unlist(list, region) == 0 && current_leave(region) == 0;
    int result = left ? region_end(region) : -1;
    if (own && !left)
        (void)ebb_scope_enter(((struct region *)region)->step); /* it goes on */
    Py_XDECREF(region);
    Py_XDECREF(list);
    return result == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef step_methods[] = {
    {"__enter__", step_enter, METH_NOARGS,
     "__enter__()\n--\n\nBegins a step; its region becomes the current one."},
    {"__exit__", step_exit, METH_VARARGS,
     "__exit__(*exception)\n--\n\nEnds the step that was begun last here."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot step_slots[] = {{Py_tp_doc, "What is C of ebb.step()."},
                                   {Py_tp_methods, step_methods},
                                   {0, NULL}};

static PyType_Spec step_spec = {"ebb._ebb.Step", sizeof(PyObject), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, step_slots};

int step_add(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &step_spec, NULL);
    site_type = PyType_FromModuleAndSpec(module, &site_spec, NULL);
    int result = type && site_type ? PyModule_AddObjectRef(module, "Site", site_type) : -1;
    if (result == 0)
        result = PyModule_AddObjectRef(module, "Step", type);
    Py_XDECREF(type);
    return result;
}
