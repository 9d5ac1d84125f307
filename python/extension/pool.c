// SPDX-License-Identifier: Apache-2.0
/*
 * pool.c - class Pool.
 *
 * A pool that still has pages out when its object goes cannot be destroyed: it keeps no others,
 * waits in a list and is tried again when the next pool comes or goes, and in its turn when a
 * region or a batch is opened or a step begins. Shared pools know how to come back by key.
 */
#include "module.h"

#include <limits.h>
#include <string.h>
#include <time.h>

PyObject *pool_type, *pool_shared;

/* ---- pools that could not be destroyed yet ---- */

static struct waiting {
    struct waiting *next;
    ebb_pool *pool;
} *waiting;

/* A look at one costs up to 50 us, as it has slots, and a region is opened in less than one: behind
 * a vain one there is none for a while. */
enum { LOOK_AFTER_NS = 10 * 1000 * 1000 };

static uint64_t looked_at; /* ns; 0: none was in vain, or another pool has come to wait since */

uint64_t pool_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void wait_on(struct waiting *one) {
    one->next = waiting;
    waiting = one;
}

/* Those that go on waiting are listed anew: nobody else finds the one that is tried. */
static void try_waiting(void) {
    struct waiting *at = waiting, *next;
    waiting = NULL;
    for (; at; at = next) {
        next = at->next;
        if (ebb_pool_destroy(at->pool) == 0)
            PyMem_Free(at);
        else
            wait_on(at);
    }
}

void pool_try_one_waiting(void) {
    struct waiting *one = waiting, **end = &waiting;
    uint64_t now = one ? pool_now_ns() : 0;
    if (!one || (looked_at && now - looked_at < LOOK_AFTER_NS))
        return;
    waiting = one->next;
    one->next = NULL;
    looked_at = 0;
    if (ebb_pool_destroy(one->pool) == 0) {
        PyMem_Free(one);
        return;
    }
    looked_at = now;
    while (*end)
        end = &(*end)->next;
    *end = one;
}

/* Without memory for its place in the list the pool stays: nothing else can be done about it.
 * `is_last`: nobody else is known to open regions there, so what is cached is of no use. */
static void destroy(ebb_pool *pool, bool is_last) {
    try_waiting();
    if (!pool || ebb_pool_destroy(pool) == 0)
        return;
    if (is_last)
        (void)ebb_pool_trim(pool, 0);
    struct waiting *one = PyMem_Malloc(sizeof *one);
    if (!one)
        return;
    one->pool = pool;
    looked_at = 0;
    wait_on(one);
}

/* ---- making and ending ---- */

#define SLOTS_MOST 4096 /* of libebb's shared pools */

static const struct {
    const char *name;
    unsigned flag;
} kinds[] = {{"host", EBB_KIND_HOST},     {"huge", EBB_KIND_HUGE},     {"pinned", EBB_KIND_PINNED},
             {"shared", EBB_KIND_SHARED}, {"device", EBB_KIND_DEVICE}};

/* "shared+pinned": flags. */
static int parse_kind(const char *text, unsigned *flags) {
    *flags = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, "+"), i = 0;
        while (i < sizeof kinds / sizeof *kinds &&
               (strlen(kinds[i].name) != length || strncmp(kinds[i].name, at, length) != 0))
            i++;
        if (i == sizeof kinds / sizeof *kinds) {
            PyErr_Format(PyExc_ValueError,
                         "kind '%s': none of host, huge, pinned, shared, device, joined by +",
                         text);
            return -1;
        }
        *flags |= kinds[i].flag;
        at += length;
        if (!*at)
            return 0;
    }
}

static PyObject *pool_wrap(PyTypeObject *type, ebb_pool *pool,
                           const struct ebb_pool_options *options, bool is_attached) {
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct pool *self = (struct pool *)make(type, 0);
    if (!self) {
        destroy(pool, false);
        return NULL;
    }
    self->pool = pool;
    self->kind = options->kind;
    self->wait_ns = options->wait_ns;
    self->is_attached = is_attached;
    self->made_after = ebb_forks();
    return (PyObject *)self;
}

/* What a pool is made of beside its kind. */
struct wishes {
    struct number limit, limit_used, slot_bytes, slots, device, descriptor;
    double wait;
};

/* An argument that this kind of pool has no use for is refused: it would be ignored. */
static int check_use(const char *kind, const char *name, bool given, const char *wanted) {
    if (!given)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s is for pools of kind %s, this one is '%s'", name, wanted,
                 kind);
    return -1;
}

static int check_wishes(const struct wishes *wishes, const char *kind, unsigned flags) {
    const struct {
        const char *name;
        bool given;
    } rows[] = {{"slot_bytes", wishes->slot_bytes.given},
                {"slots", wishes->slots.given},
                {"wait", wishes->wait > 0},
                {"descriptor", wishes->descriptor.given}};
    if (!(wishes->wait >= 0 && wishes->wait < 1e9)) {
        char *text = PyOS_double_to_string(wishes->wait, 'g', 6, 0, NULL);
        if (text)
            PyErr_Format(PyExc_ValueError, "wait is %s: 0 to below 1e9 seconds", text);
        PyMem_Free(text);
        return -1;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!(flags & EBB_KIND_SHARED) &&
            check_use(kind, rows[i].name, rows[i].given, "'shared'") != 0)
            return -1;
    return flags & (EBB_KIND_PINNED | EBB_KIND_DEVICE)
               ? 0
               : check_use(kind, "device", wishes->device.given, "'device' or 'pinned'");
}

static _Thread_local bool hurries;

void pool_hurry(bool does) {
    hurries = does;
}

/* Whoever waits for a slot: handlers of signals run in the main thread, and other threads may have
 * what is waited for. So nobody waits with the interpreter's lock, as none of those would run then.
 * What a handler raises stays for who called. */
static bool may_wait(void *context) {
    (void)context;
    if (hurries)
        return false;
    PyGILState_STATE state = PyGILState_Ensure();
    bool goes_on = state == PyGILState_UNLOCKED && PyErr_CheckSignals() == 0;
    PyGILState_Release(state);
    return goes_on;
}

static PyObject *pool_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"kind", "limit", "name", "limit_used", "keep_all", "slot_bytes",
                            "slots", "wait", "device", "descriptor", NULL};
    struct ebb_pool_options options = {.size = sizeof options};
    struct wishes wishes = {.limit = {"limit", 1, PY_SSIZE_T_MAX, 0, false},
                            .limit_used = {"limit_used", 1, PY_SSIZE_T_MAX, 0, false},
                            .slot_bytes = {"slot_bytes", 1, PY_SSIZE_T_MAX, 0, false},
                            .slots = {"slots", 1, SLOTS_MOST, 0, false},
                            .device = {"device", 0, INT_MAX, 0, false},
                            .descriptor = {"descriptor", 0, INT_MAX, 0, false}};
    const char *kind = "host";
    int keep_all = 0;
    if (!PyArg_ParseTupleAndKeywords(
            arguments, keywords, "|sO&$zO&pO&O&dO&O&:Pool", words, &kind, number_parse,
            &wishes.limit, &options.name, number_parse, &wishes.limit_used, &keep_all, number_parse,
            &wishes.slot_bytes, number_parse, &wishes.slots, &wishes.wait, number_parse,
            &wishes.device, number_parse, &wishes.descriptor))
        return NULL;
    if (parse_kind(kind, &options.kind) != 0 || check_wishes(&wishes, kind, options.kind) != 0)
        return NULL;
    options.limit_reserved_bytes = (size_t)wishes.limit.value;
    options.limit_used_bytes = (size_t)wishes.limit_used.value;
    options.keep_all = keep_all != 0;
    options.slot_bytes = (size_t)wishes.slot_bytes.value;
    options.slots = (uint32_t)wishes.slots.value;
    options.wait_ns = (uint64_t)(wishes.wait * 1e9);
    options.go_on = options.wait_ns ? may_wait : NULL;
    options.device = (int)wishes.device.value;
    try_waiting();
    ebb_pool *pool = wishes.descriptor.given
                         ? ebb_pool_attach((int)wishes.descriptor.value, &options)
                         : ebb_pool_create(&options);
    return pool ? pool_wrap(type, pool, &options, wishes.descriptor.given) : error_raise();
}

/* Free slots are of all who have the pool, and hot for them: they go with who made it. */
static bool is_last(const struct pool *self) {
    bool is_made_here = !self->is_attached && self->made_after == ebb_forks();
    return is_made_here || !(self->kind & EBB_KIND_SHARED);
}

static void pool_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    destroy(((struct pool *)object)->pool, is_last((struct pool *)object));
    release(object);
    Py_DECREF(type);
}

ebb_pool *pool_of(PyObject *object) {
    bool is_pool = PyObject_TypeCheck(object, (PyTypeObject *)pool_type);
    region_settle_fork();
    if (is_pool && ((struct pool *)object)->pool)
        return ((struct pool *)object)->pool;
    if (is_pool)
        error_raise_as(EBB_E_STALE, "the pool is closed");
    else
        PyErr_Format(PyExc_TypeError, "%R is no ebb.Pool", object);
    return NULL;
}

struct pool_batches *pool_batches(struct pool *self) {
    unsigned forks = ebb_forks();
    if (self->forks != forks)
        self->batches = (struct pool_batches){0, 0, 0};
    self->forks = forks;
    return &self->batches;
}

/* ---- methods ---- */

PyDoc_STRVAR(close_doc,
"close()\n--\n\n"
"Ends the pool; its pages go back to the system. ebb.Error EBB_E_BUSY while a region is open or\n"
"another thread opens one, or something that was exported holds pages. Again: nothing.");

static PyObject *pool_close(PyObject *object, PyObject *Py_UNUSED(none)) {
    struct pool *self = (struct pool *)object;
    if (region_is_opening(object))
        return error_raise_as(EBB_E_BUSY, "another thread opens a region of the pool");
    if (self->pool && ebb_pool_destroy(self->pool) != 0)
        return error_raise();
    self->pool = NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(trim_doc,
"trim(target=0)\n--\n\nGives cached pages back to the system until at most `target` bytes are\n"
"cached. Returns how many bytes were resident and are not any more.");

static PyObject *pool_trim(PyObject *object, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"target", NULL};
    struct number target = {"target", 0, PY_SSIZE_T_MAX, 0, false};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O&:trim", words, number_parse,
                                     &target))
        return NULL;
    ebb_pool *pool = pool_of(object); /* now: arguments have methods, which may close it */
    return pool ? PyLong_FromSize_t(ebb_pool_trim(pool, (size_t)target.value)) : NULL;
}

PyDoc_STRVAR(reclaim_doc,
"reclaim(sent_too=False)\n--\n\n"
"Frees regions of a shared pool whose processes are dead; returns how many. `sent_too`: also\n"
"those that were sent and nobody opened. ebb.Error EBB_E_KIND if the pool is not shared.");

static PyObject *pool_reclaim(PyObject *object, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"sent_too", NULL};
    int sent_too = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|p:reclaim", words, &sent_too))
        return NULL;
    ebb_pool *pool = pool_of(object);
    if (!pool)
        return NULL;
    size_t freed = ebb_pool_reclaim(pool, sent_too != 0);
    bool is_shared = ((const struct pool *)object)->kind & EBB_KIND_SHARED;
    return is_shared ? PyLong_FromSize_t(freed) : error_raise();
}

PyDoc_STRVAR(fileno_doc,
"fileno()\n--\n\n"
"The descriptor of a shared pool's memory, for Pool(kind='shared', descriptor=...) in another\n"
"process. It stays the pool's.");

static PyObject *pool_fileno(PyObject *object, PyObject *Py_UNUSED(none)) {
    ebb_pool *pool = pool_of(object);
    if (!pool)
        return NULL;
    int descriptor = ebb_pool_descriptor(pool);
    return descriptor < 0 ? error_raise() : PyLong_FromLong(descriptor);
}

static int set_count(PyObject *dict, const char *name, uint64_t value) {
    PyObject *number = PyLong_FromUnsignedLongLong(value);
    int result = number ? PyDict_SetItemString(dict, name, number) : -1;
    Py_XDECREF(number);
    return result;
}

static PyObject *pool_stats(PyObject *object, void *Py_UNUSED(closure)) {
    const struct pool_batches *batches = pool_batches((struct pool *)object);
    struct ebb_pool_stats stats = {.size = sizeof stats};
    ebb_pool *pool = pool_of(object);
    if (!pool)
        return NULL;
    if (ebb_pool_read_stats(pool, &stats) != 0)
        return error_raise();
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"reserved", stats.reserved.current}, {"reserved_peak", stats.reserved.peak},
                {"owned", stats.owned},               {"cached", stats.cached},
                {"held", stats.held},                 {"used", stats.used.current},
                {"used_peak", stats.used.peak},       {"blocks", stats.blocks.current},
                {"waste", stats.waste},               {"pinned", stats.pinned},
                {"given_back", stats.given_back},     {"open_regions", stats.open_regions},
                {"opened_regions", stats.opened_regions}, {"sent", batches->sent},
                {"received", batches->received},      {"fallbacks", batches->fallbacks}};
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < sizeof rows / sizeof *rows; i++)
        if (set_count(dict, rows[i].name, rows[i].value) != 0)
            Py_CLEAR(dict);
    return dict;
}

static PyObject *pool_kind(PyObject *object, void *Py_UNUSED(closure)) {
    unsigned flags = ((struct pool *)object)->kind;
    char text[64] = "";
    for (size_t i = 1; i < sizeof kinds / sizeof *kinds; i++)
        if (flags & kinds[i].flag) {
            strcat(text, *text ? "+" : "");
            strcat(text, kinds[i].name);
        }
    return PyUnicode_FromString(*text ? text : "host");
}

static PyObject *pool_is_closed(PyObject *object, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(!((struct pool *)object)->pool);
}

PyDoc_STRVAR(settle_doc,
"_settle()\n--\n\n"
"Gives slots back that waited for devices, where these are done with them; none of a closed one.");

static PyObject *pool_settle(PyObject *object, PyObject *Py_UNUSED(none)) {
    ebb_pool *pool = ((struct pool *)object)->pool;
    if (pool)
        (void)ebb_pool_trim(pool, SIZE_MAX); /* which looks at them, and gives no pages */
    Py_RETURN_NONE;
}

PyDoc_STRVAR(count_doc,
"_count_fallback()\n--\n\nNotes a batch that went another way than through the pool.");

static PyObject *pool_count_fallback(PyObject *object, PyObject *Py_UNUSED(none)) {
    pool_batches((struct pool *)object)->fallbacks++;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(pool_doc,
"Pool(kind='host', limit=None, *, name=None, limit_used=None, keep_all=False, slot_bytes=None,\n"
"     slots=None, wait=0.0, device=None, descriptor=None)\n--\n\n"
"Where regions get their pages from, and where the pages stay, hot, between steps.\n\n"
"kind        'host', 'huge', 'pinned', 'shared' or 'device'; some may be joined: 'shared+pinned'\n"
"limit       most bytes of pages, owned and cached; None: no limit\n"
"limit_used  most bytes in live blocks; None: no limit\n"
"keep_all    never give pages back by itself\n"
"slot_bytes  shared: most bytes of one region (address space only); None: 1 GiB, or less\n"
"slots       shared: most regions at once, those included that others hold; None: 256, or fewer\n"
"wait        shared: seconds that opening a region waits when all slots are taken, unless the\n"
"            handler of a signal raises, as that of Ctrl-C does\n"
"device      device, pinned: its number; None: 0\n"
"descriptor  shared: attach to the pool behind this descriptor of another process\n");

static PyMethodDef pool_methods[] = {
    {"close", pool_close, METH_NOARGS, close_doc},
    {"trim", METHOD(pool_trim), METH_VARARGS | METH_KEYWORDS, trim_doc},
    {"reclaim", METHOD(pool_reclaim), METH_VARARGS | METH_KEYWORDS, reclaim_doc},
    {"fileno", pool_fileno, METH_NOARGS, fileno_doc},
    {"_count_fallback", pool_count_fallback, METH_NOARGS, count_doc},
    {"_settle", pool_settle, METH_NOARGS, settle_doc},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef pool_getters[] = {
    {"stats", pool_stats, NULL,
     "Counters as a dict: bytes of pages (reserved, owned, cached, held), of blocks (used, waste,\n"
     "pinned), regions, and of this process: batches sent, received, fallbacks.", NULL},
    {"kind", pool_kind, NULL, "What the pool was made as, such as 'shared'.", NULL},
    {"_is_closed", pool_is_closed, NULL, "True after close().", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot pool_slots[] = {{Py_tp_new, pool_new},
                                   {Py_tp_dealloc, pool_dealloc},
                                   {Py_tp_doc, (void *)pool_doc},
                                   {Py_tp_methods, pool_methods},
                                   {Py_tp_getset, pool_getters},
                                   {0, NULL}};

static PyType_Spec pool_spec = {"ebb._ebb.Pool", sizeof(struct pool), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, pool_slots};

int pool_add(PyObject *module) {
    pool_type = PyType_FromModuleAndSpec(module, &pool_spec, NULL);
    pool_shared = PyList_New(0);
    if (!pool_type || !pool_shared || PyModule_AddObjectRef(module, "Pool", pool_type) != 0)
        return -1;
    return PyModule_AddObjectRef(module, "shared_pools", pool_shared);
}
