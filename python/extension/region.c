// SPDX-License-Identifier: Apache-2.0
/*
 * region.c - class Region: the part of it that is C.
 *
 * Objects of Python never dangle: a Tensor asks its region whether it is open, and in which epoch,
 * before it looks at its elements. A region that goes unclosed is closed.
 *
 * Refuses in a forked child whatever would write to the slot of a region that is the parent's.
 */
#include "module.h"

PyObject *region_type;

struct region *region_make(PyTypeObject *type, PyObject *pool, PyObject *parent) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct region *self = (struct region *)allocate(type, 0);
    if (self) {
        self->pool = Py_NewRef(pool);
        self->parent = Py_NewRef(parent);
    }
    return self;
}

void region_take_pool(struct region *self, const struct region *above) {
    PyObject *before = self->pool;
    self->pool = Py_NewRef(above->pool);
    Py_DECREF(before);
}

/* ---- while threads open them ---- */

static struct region *opening; /* objects whose regions threads open now, the newest first */

void region_settle_fork(void) {
    static unsigned forks;
    unsigned now = ebb_forks();
    if (forks == now)
        return;
    forks = now;
    for (const struct region *region = opening; region; region = region->opening_next)
        if (region->handle.lane && ebb_region_is_open(region->handle))
            (void)ebb_region_close(region->handle);
    opening = NULL;
}

bool region_is_opening(const PyObject *pool) {
    region_settle_fork();
    const struct region *region = opening;
    while (region && region->pool != pool)
        region = region->opening_next;
    return region != NULL;
}

/* A handler that forked while it waited may have emptied the list. */
static void end_opening(const struct region *self) {
    struct region **link = &opening;
    while (*link && *link != self)
        link = &(*link)->opening_next;
    if (*link)
        *link = self->opening_next;
}

void region_open_listed(struct region *self, bool locked,
                        void (*open)(struct region *, const void *), const void *how) {
    region_settle_fork();
    self->opening_next = opening;
    opening = self;
    if (locked) {
        open(self, how);
    } else {
        Py_BEGIN_ALLOW_THREADS
        open(self, how);
        Py_END_ALLOW_THREADS
    }
    end_opening(self);
    self->forks = ebb_forks(); /* now: a handler that ran while it waited may have forked */
}

/* ---- making and ending ---- */

static void open_handle(struct region *self, const void *options) {
    self->handle = ebb_region_open(options);
}

/* Nothing of the program's runs in here. */
static void open_at_once(struct region *self, const void *options) {
    pool_hurry(true);
    open_handle(self, options);
    pool_hurry(false);
}

static int open_checked(struct region *self, struct ebb_region_options *options, bool waits) {
    if (self->pool != Py_None && !(options->pool = pool_of(self->pool)))
        return -1;
    if (self->parent != Py_None) {
        const struct region *above = region_of(self->parent);
        if (!above)
            return -1;
        options->parent = above->handle;
        region_take_pool(self, above);
    }
    bool locked = options->parent.lane; /* whose tensors any thread could end meanwhile */
    region_open_listed(self, locked, waits ? open_handle : open_at_once, options);
    if (ebb_region_is_open(self->handle))
        return 0;
    error_raise();
    return -1;
}

static PyObject *region_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"pool", "parent", "name", "hint", "limit", "_waits", NULL};
    struct ebb_region_options options = {.size = sizeof options};
    PyObject *pool = Py_None, *parent = Py_None;
    int waits = 1;
    struct number hint = {"hint", 0, PY_SSIZE_T_MAX, 0, false};
    struct number limit = {"limit", 1, PY_SSIZE_T_MAX, 0, false};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O$OzO&O&p:Region", words, &pool,
                                     &parent, &options.name, number_parse, &hint, number_parse,
                                     &limit, &waits))
        return NULL;
    options.hint_bytes = (size_t)hint.value;
    options.limit_bytes = (size_t)limit.value;
    pool_try_one_waiting();
    /* first: it may have the collector run */
    struct region *self = region_make(type, pool, parent);
    if (self && open_checked(self, &options, waits != 0) == 0)
        return (PyObject *)self;
    Py_XDECREF((PyObject *)self);
    return NULL;
}

static int region_traverse(PyObject *object, visitproc visit, void *arg) {
    const struct region *self = (struct region *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->pool);
    Py_VISIT(self->parent);
    Py_VISIT(self->outer);
    Py_VISIT(self->site);
    return 0;
}

static void region_dealloc(PyObject *object) {
    struct region *self = (struct region *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(object);
    if (self->handle.lane && ebb_region_is_open(self->handle))
        ebb_region_close(self->handle);
    Py_XDECREF(self->outer);
    Py_XDECREF(self->site);
    Py_XDECREF(self->parent);
    Py_XDECREF(self->pool);
    release(object);
    Py_DECREF(type);
}

bool region_is_inherited(const struct region *region) {
    return region->forks != ebb_forks() && region->pool != Py_None &&
           ((const struct pool *)region->pool)->kind & EBB_KIND_SHARED;
}

static void refuse_inherited(void) {
    error_raise_as(EBB_E_STALE, "the region is of the process that this one was forked from, which "
                                "would find there what is written here");
}

struct region *region_of(PyObject *object) {
    struct region *region = (struct region *)object;
    if (!PyObject_TypeCheck(object, (PyTypeObject *)region_type))
        PyErr_Format(PyExc_TypeError, "%R is no ebb.Region", object);
    else if (!ebb_region_is_open(region->handle))
        error_raise_as(EBB_E_STALE, "the region is closed");
    else if (region_is_inherited(region))
        refuse_inherited();
    else
        return region;
    return NULL;
}

bool region_stays(const struct region *region, uint64_t epoch) {
    bool is_there = region->epoch == epoch && ebb_region_is_open(region->handle);
    if (is_there && !region_is_inherited(region))
        return true;
    if (!PyErr_Occurred() && is_there)
        refuse_inherited();
    else if (!PyErr_Occurred())
        error_raise_as(EBB_E_STALE, "the region was closed or reset by what was put into it");
    return false;
}

PyDoc_STRVAR(close_doc,
"close()\n--\n\n"
"Ends the region, its children and all their tensors at once. What was handed on to other\n"
"libraries stays valid until they drop it. Closing again: nothing.");

int region_end(PyObject *object) {
    struct region *self = (struct region *)object;
    if (self->has_ended || !ebb_region_is_open(self->handle))
        return 0;
    if ((self->site ? ebb_step_end(self->step) : ebb_region_close(self->handle)) != 0) {
        error_raise();
        return -1;
    }
    self->has_ended = self->site != NULL;
    Py_CLEAR(self->site);
    return 0;
}

static PyObject *region_close(PyObject *object, PyObject *Py_UNUSED(none)) {
    return region_end(object) == 0 ? Py_NewRef(Py_None) : NULL;
}

PyDoc_STRVAR(enter_doc,
"__enter__()\n--\n\nThe region becomes the current one of this thread or task.");

static PyObject *region_enter(PyObject *object, PyObject *Py_UNUSED(none)) {
    return current_enter(object) == 0 ? Py_NewRef(object) : NULL;
}

PyDoc_STRVAR(exit_doc,
"__exit__(*exception)\n--\n\nLeaves the region and closes it.");

static PyObject *region_exit(PyObject *object, PyObject *Py_UNUSED(arguments)) {
    bool left = step_change_scope(object, false) == 0 && current_leave(object) == 0;
    PyObject *closed = left ? PyObject_CallMethodObjArgs(object, names.close, NULL) : NULL;
    Py_XDECREF(closed);
    return closed ? Py_NewRef(Py_None) : NULL;
}

PyDoc_STRVAR(run_doc,
"_run(function, argument, hook)\n--\n\n"
"function(argument), with the region as the current one. hook(handle), if it is not None, says\n"
"where torch allocates, and returns what it said before.");

/* hook(handle); NULL with an exception. The handle is dropped. */
static PyObject *call_hook(PyObject *hook, PyObject *handle) {
    PyObject *before = handle ? PyObject_CallFunctionObjArgs(hook, handle, NULL) : NULL;
    Py_XDECREF(handle);
    return before;
}

static PyObject *handle_of(const struct region *region) {
    return PyBytes_FromStringAndSize((const char *)&region->handle, sizeof region->handle);
}

static PyObject *run_hooked(PyObject *object, PyObject *function, PyObject *argument,
                            PyObject *hook) {
    if (hook == Py_None)
        return PyObject_CallFunctionObjArgs(function, argument, NULL);
    PyObject *before = call_hook(hook, handle_of((struct region *)object));
    if (!before)
        return NULL;
    PyObject *result = PyObject_CallFunctionObjArgs(function, argument, NULL);
    if (region_is_inherited((struct region *)object)) { /* where torch allocates as always */
        Py_DECREF(before);
        return result;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *ours = call_hook(hook, before);
    if (!ours)
        Py_CLEAR(result);
    Py_XDECREF(ours);
    if (type)
        PyErr_Restore(type, value, trace);
    return result;
}

static PyObject *region_run(PyObject *object, PyObject *arguments) {
    PyObject *function, *argument, *hook;
    if (!PyArg_ParseTuple(arguments, "OOO:_run", &function, &argument, &hook) ||
        current_enter(object) != 0)
        return NULL;
    PyObject *result = run_hooked(object, function, argument, hook);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (current_leave(object) != 0)
        Py_CLEAR(result);
    if (type)
        PyErr_Restore(type, value, trace);
    return result;
}

PyDoc_STRVAR(turn_doc,
"_turn(function, argument)\n--\n\n"
"function(argument), with the scopes of the step and of those inside of it entered meanwhile.");

static PyObject *region_turn(PyObject *object, PyObject *arguments) {
    PyObject *function, *argument;
    if (!PyArg_ParseTuple(arguments, "OO:_turn", &function, &argument) ||
        current_change_scopes(object, true) != 0)
        return NULL;
    PyObject *result = PyObject_CallFunctionObjArgs(function, argument, NULL);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (current_change_scopes(object, false) != 0)
        Py_CLEAR(result);
    if (type)
        PyErr_Restore(type, value, trace);
    return result;
}

PyDoc_STRVAR(reset_doc,
"reset()\n--\n\nEnds all tensors and children; the region stays open and keeps its pages.");

static PyObject *region_reset(PyObject *object, PyObject *Py_UNUSED(none)) {
    struct region *self = region_of(object);
    if (!self)
        return NULL;
    if (ebb_region_reset(self->handle, EBB_KEEP_ALL) != 0)
        return error_raise();
    self->epoch++;
    Py_RETURN_NONE;
}

/* ---- tensors ---- */

static PyObject *make_tensor(PyObject *object, PyObject *arguments, PyObject *keywords,
                             bool zeroed) {
    static char *words[] = {"shape", "dtype", NULL};
    PyObject *sizes, *type = NULL;
    int64_t shape[EBB_DIMENSIONS_MAX];
    struct ebb_dtype dtype = {EBB_FLOAT, 32, 1};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O", words, &sizes, &type))
        return NULL;
    int ndim = shape_parse(sizes, shape);
    if (ndim < 0 || (type && dtype_parse(type, &dtype) != 0))
        return NULL;
    struct region *self = region_of(object); /* last: a size may be an object, and may fork */
    if (!self)
        return NULL;
    struct ebb_tensor *tensor = tensor_make(self->handle, dtype, ndim, shape);
    if (tensor && zeroed && ebb_tensor_fill(tensor, ebb_value_int(0)) != 0) {
        ebb_object_end(tensor);
        return error_raise();
    }
    return tensor_wrap(self, tensor);
}

PyDoc_STRVAR(empty_doc,
"empty(shape, dtype='float32')\n--\n\nA tensor in this region, contents undefined.");

static PyObject *region_empty(PyObject *object, PyObject *arguments, PyObject *keywords) {
    return make_tensor(object, arguments, keywords, false);
}

PyDoc_STRVAR(zeros_doc,
"zeros(shape, dtype='float32')\n--\n\nA tensor in this region, all zero.");

static PyObject *region_zeros(PyObject *object, PyObject *arguments, PyObject *keywords) {
    return make_tensor(object, arguments, keywords, true);
}

/* ---- promotion ---- */

/* The tensors of a list, which must be this region's. NULL with an exception. */
static void **collect(struct region *self, PyObject *list, Py_ssize_t count) {
    void **objects = PyMem_Malloc((size_t)(count ? count : 1) * sizeof *objects);
    if (!objects)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; objects && i < count; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        objects[i] = item ? tensor_of(item) : NULL;
        if (objects[i] && ((struct tensor *)item)->region != self) {
            error_raise_as(EBB_E_NOT_OWNED, "the tensor is of another region");
            objects[i] = NULL;
        }
        Py_XDECREF(item);
        if (!objects[i]) {
            PyMem_Free(objects);
            return NULL;
        }
    }
    return objects;
}

static int rehome(PyObject *list, Py_ssize_t count, void **objects, struct region *target) {
    for (Py_ssize_t i = 0; i < count; i++) {
        struct tensor *tensor = (struct tensor *)PySequence_GetItem(list, i);
        if (!tensor)
            return -1;
        Py_INCREF((PyObject *)target);
        Py_DECREF((PyObject *)tensor->region);
        tensor->region = target;
        tensor->tensor = objects[i];
        tensor->epoch = target->epoch;
        Py_DECREF((PyObject *)tensor);
    }
    return 0;
}

/* NULL with an exception. */
static struct region *find_target(const struct region *self, PyObject *to) {
    if (to != Py_None)
        return region_of(to);
    if (self->parent != Py_None)
        return region_of(self->parent);
    error_raise_as(EBB_E_ARGUMENT, "promote: the region has no parent");
    return NULL;
}

PyDoc_STRVAR(promote_doc,
"promote(tensors, to=None)\n--\n\n"
"Tensors of this region become those of `to`, an ancestor (None: the parent): small ones by a\n"
"copy, large ones by their pages, unless something that was handed on is kept, or another Tensor\n"
"of the same storage stays: then by a copy, too. What was handed on before a copy is of the old\n"
"bytes. All or none. The objects stay the same: what was given is returned, of an iterator that\n"
"has ended by then a tuple.\n\n"
"ebb.Error EBB_E_NOT_OWNED: one is of another region, or tensor() made it of one in a region\n"
"between the two, which keeps the elements: to.tensor(it) makes another one there. EBB_E_BUSY:\n"
"tensor() has taken elements without a copy that another Tensor sees, too, which does not go.");

/* 0, an error of libebb's with its exception, or -1 with another one. */
static int promote(PyObject *object, PyObject *tensors, PyObject *to) {
    Py_ssize_t count = PyTuple_Size(tensors);
    struct region *self = region_of(object); /* now: who made the list may have forked */
    struct region *target = self ? find_target(self, to) : NULL;
    void **objects = target ? collect(self, tensors, count) : NULL;
    int result = -1;
    if (objects) {
        result = ebb_objects_promote(self->handle, target->handle, objects, (size_t)count, NULL,
                                     NULL);
        if (result != 0)
            error_raise();
        else
            result = rehome(tensors, count, objects, target);
    }
    PyMem_Free(objects);
    return result;
}

/* Also where the program has switched that off. */
static void collect_cycles(void) {
    int enabled = PyGC_Enable();
    PyGC_Collect();
    if (!enabled)
        PyGC_Disable();
}

static PyObject *region_promote(PyObject *object, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"tensors", "to", NULL};
    PyObject *list, *to = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:promote", words, &list, &to))
        return NULL;
    PyObject *tensors = tensor_is(list) ? PyTuple_Pack(1, list) : PySequence_Tuple(list);
    if (!tensors)
        return NULL;
    int result = promote(object, tensors, to);
    if (result == EBB_E_BUSY) { /* what else sees imported elements may be in a cycle only */
        PyErr_Clear();
        collect_cycles();
        result = promote(object, tensors, to);
    }
    PyObject *promoted = Py_NewRef(PyIter_Check(list) ? tensors : list);
    Py_DECREF(tensors);
    if (result == 0)
        return promoted;
    Py_DECREF(promoted);
    return NULL;
}

/* ---- asking ---- */

static PyObject *region_is_open(PyObject *object, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(ebb_region_is_open(((struct region *)object)->handle));
}

/* For the module _torch_hook, which shares no memory with this one but libebb's. */
static PyObject *region_handle(PyObject *object, void *Py_UNUSED(closure)) {
    const struct region *self = region_of(object);
    return self ? handle_of(self) : NULL;
}

static PyObject *region_stats(PyObject *object, void *Py_UNUSED(closure)) {
    struct ebb_region_stats stats = {.size = sizeof stats};
    const struct region *self = region_of(object);
    if (!self)
        return NULL;
    if (ebb_region_read_stats(self->handle, &stats) != 0)
        return error_raise();
    return Py_BuildValue("{sKsKsKsKsKsKsK}", "used", stats.used.current, "used_peak",
                         stats.used.peak, "reserved", stats.reserved.current, "reserved_peak",
                         stats.reserved.peak, "blocks", stats.blocks.current, "children",
                         stats.children, "waste", stats.waste);
}

static PyObject *region_exports(PyObject *object, void *Py_UNUSED(closure)) {
    const struct region *self = region_of(object);
    return self ? PyLong_FromSize_t(ebb_region_count_exports(self->handle)) : NULL;
}

PyDoc_STRVAR(region_doc,
"Region(pool=None, *, parent=None, name=None, hint=0, limit=None)\n--\n\n"
"Memory that lives as long as one step. `hint` bytes are reserved at once; `limit` bounds the\n"
"live bytes of it and all regions below it.");

PyDoc_STRVAR(tensor_doc,
"tensor(object, copy=None)\n--\n\n"
"A tensor of somebody else's elements: of torch, of numpy, or whatever speaks DLPack or the\n"
"buffer protocol. copy: None, only where it must; True; False, or an error. What is not copied\n"
"stays the producer's: see Tensor. Of a tensor of ebb in this region or above it is another of\n"
"the same storage, which is promoted as far up as that one is: further with copy=True.\n\n"
"TypeError: elements of a dtype that ebb does not read; a masked array, as no tensor has a mask.");
PyDoc_STRVAR(stack_doc,
"_stack(sequence)\n--\n\nTensors of one shape become one with a new first dimension.");
PyDoc_STRVAR(pad_doc,
"_pad(sequences, padding, batch_first, left, total_length)\n--\n\n"
"Sequences [length, ...] become one tensor.");
PyDoc_STRVAR(pack_doc,
"_pack(sequences, enforce_sorted)\n--\n\n"
"Sequences become (data, batch_sizes, sorted_indices, unsorted_indices).");

static PyMethodDef region_methods[] = {
    {"close", region_close, METH_NOARGS, close_doc},
    {"__enter__", region_enter, METH_NOARGS, enter_doc},
    {"__exit__", region_exit, METH_VARARGS, exit_doc},
    {"_run", region_run, METH_VARARGS, run_doc},
    {"_turn", region_turn, METH_VARARGS, turn_doc},
    {"reset", region_reset, METH_NOARGS, reset_doc},
    {"empty", METHOD(region_empty), METH_VARARGS | METH_KEYWORDS, empty_doc},
    {"zeros", METHOD(region_zeros), METH_VARARGS | METH_KEYWORDS, zeros_doc},
    {"promote", METHOD(region_promote), METH_VARARGS | METH_KEYWORDS, promote_doc},
    {"tensor", METHOD(exchange_import), METH_VARARGS | METH_KEYWORDS, tensor_doc},
    {"_stack", sequence_stack, METH_O, stack_doc},
    {"_pad", METHOD(sequence_pad), METH_VARARGS | METH_KEYWORDS, pad_doc},
    {"_pack", METHOD(sequence_pack), METH_VARARGS | METH_KEYWORDS, pack_doc},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef region_getters[] = {
    {"is_open", region_is_open, NULL, "False once it or a region above it was closed.", NULL},
    {"stats", region_stats, NULL, "Counters as a dict: bytes, and numbers of blocks.", NULL},
    {"_handle", region_handle, NULL, "The handle as bytes.", NULL},
    {"exports", region_exports, NULL, "How many exports of tensors are out.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMemberDef region_members[] = {
    {"pool", T_OBJECT, offsetof(struct region, pool), READONLY, "The pool; None: the default."},
    {"_keeps", T_BOOL, offsetof(struct region, keeps), 0, 
     "A batch is made here: nothing ends early."},
    {"parent", T_OBJECT, offsetof(struct region, parent), READONLY, "The region above, or None."},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot region_slots[] = {{Py_tp_new, region_new},
                                     {Py_tp_dealloc, region_dealloc},
                                     {Py_tp_traverse, region_traverse},
                                     {Py_tp_doc, (void *)region_doc},
                                     {Py_tp_methods, region_methods},
                                     {Py_tp_getset, region_getters},
                                     {Py_tp_members, region_members},
                                     {0, NULL}};

static PyType_Spec region_spec = {"ebb._ebb.Region", sizeof(struct region), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                  region_slots};

int region_add(PyObject *module) {
    region_type = PyType_FromModuleAndSpec(module, &region_spec, NULL);
    return region_type ? PyModule_AddObjectRef(module, "Region", region_type) : -1;
}
