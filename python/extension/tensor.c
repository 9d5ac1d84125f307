// SPDX-License-Identifier: Apache-2.0
/*
 * tensor.c - class Tensor: the part of it that is C. Shape, elements by the buffer protocol.
 *
 * A Tensor and its region's tensor end together: when the object goes, its place in the region is
 * used again. Memory that was handed on is held by libebb's exports, not by the object.
 */
#include "module.h"

#include <dlpack/dlpack.h>

#include <string.h>

PyObject *tensor_type;
static PyObject *tensor_class; /* what new tensors are; tensor_type or a subclass */

/* ---- making ---- */

/*
 * Only blocks of the large lane can be shared with other libraries. A smaller tensor is made as an
 * alias of a block that is large enough, so that all tensors of Python are alike.
 */
static struct ebb_tensor *make_small(ebb_region region, struct ebb_dtype dtype, int ndim,
                                     const int64_t *shape) {
    const int64_t enough = EBB_SMALL_MAX_BYTES + 1;
    struct ebb_alias alias = {.size = sizeof alias, .shared = true};
    struct ebb_tensor *room = ebb_tensor_new(region, (struct ebb_dtype){EBB_UINT, 8, 1}, 1,
                                             &enough);
    if (!room)
        return NULL;
    struct ebb_tensor *tensor = ebb_tensor_alias(region, room, dtype, ndim, shape, &alias);
    ebb_object_end(room);
    return tensor;
}

struct ebb_tensor *tensor_make(ebb_region region, struct ebb_dtype dtype, int ndim,
                               const int64_t *shape) {
    size_t bytes = ebb_dtype_bytes(dtype);
    for (int i = 0; i < ndim; i++) {
        if (shape[i] <= 0 || bytes > EBB_SMALL_MAX_BYTES)
            return ebb_tensor_new(region, dtype, ndim, shape);
        bytes = (size_t)shape[i] > EBB_SMALL_MAX_BYTES ? SIZE_MAX : bytes * (size_t)shape[i];
    }
    return bytes > EBB_SMALL_MAX_BYTES ? ebb_tensor_new(region, dtype, ndim, shape)
                                       : make_small(region, dtype, ndim, shape);
}

struct ebb_tensor *tensor_copied(ebb_region region, const struct ebb_tensor *tensor) {
    struct ebb_tensor *copy = tensor_make(region, tensor->dtype, tensor->ndim, tensor->shape);
    if (!copy || ebb_tensor_bytes(copy) == 0 || ebb_tensor_copy(copy, tensor) == 0)
        return copy;
    ebb_object_end(copy);
    return NULL;
}

struct ebb_tensor *tensor_settle(ebb_region region, struct ebb_tensor *tensor) {
    size_t bytes = tensor ? ebb_tensor_bytes(tensor) : 0;
    if (bytes == 0 || bytes > EBB_SMALL_MAX_BYTES)
        return tensor; /* none, empty or large */
    struct ebb_tensor *settled = tensor_copied(region, tensor);
    ebb_object_end(tensor);
    return settled;
}

PyObject *tensor_wrap(struct region *region, struct ebb_tensor *tensor) {
    if (!tensor)
        return error_raise();
    PyTypeObject *class = (PyTypeObject *)tensor_class;
    allocfunc make = (allocfunc)PyType_GetSlot(class, Py_tp_alloc);
    uint64_t epoch = region->epoch; /* the collector may run now, and may have the region reset */
    struct tensor *self = (struct tensor *)make(class, 0);
    if (!self) {
        if (region_stays(region, epoch))
            ebb_object_end(tensor);
        return NULL;
    }
    self->region = (struct region *)Py_NewRef((PyObject *)region);
    self->tensor = tensor;
    self->epoch = epoch;
    return (PyObject *)self;
}

static bool is_live(const struct tensor *self) {
    return self->region && self->epoch == self->region->epoch &&
           ebb_region_is_open(self->region->handle);
}

bool tensor_is(PyObject *object) {
    return PyObject_TypeCheck(object, (PyTypeObject *)tensor_type);
}

struct ebb_tensor *tensor_of(PyObject *object) {
    struct tensor *self = (struct tensor *)object;
    if (tensor_is(object) && is_live(self))
        return self->tensor;
    if (tensor_is(object))
        error_raise_as(EBB_E_STALE, "the tensor ended with its region, which was closed or reset");
    else
        PyErr_Format(PyExc_TypeError, "%R is no ebb.Tensor", object);
    return NULL;
}

struct ebb_tensor *tensor_to_use(PyObject *object) {
    if (tensor_is(object) && loan_check(((struct tensor *)object)->loan) != 0)
        return NULL;
    return tensor_of(object);
}

static int tensor_traverse(PyObject *object, visitproc visit, void *arg) {
    const struct tensor *self = (struct tensor *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT((PyObject *)self->region);
    return 0;
}

static void tensor_dealloc(PyObject *object) {
    struct tensor *self = (struct tensor *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(object);
    if (is_live(self) && !self->region->keeps && !region_is_inherited(self->region))
        ebb_object_end(self->tensor);
    loan_drop(self->loan);
    Py_XDECREF((PyObject *)self->region);
    release(object);
    Py_DECREF(type);
}

PyObject *tensor_set_class(PyObject *Py_UNUSED(module), PyObject *class) {
    if (!PyType_Check(class) ||
        !PyType_IsSubtype((PyTypeObject *)class, (PyTypeObject *)tensor_type)) {
        PyErr_SetString(PyExc_TypeError, "no subclass of _ebb.Tensor");
        return NULL;
    }
    Py_INCREF(class);
    Py_DECREF(tensor_class);
    tensor_class = class;
    Py_RETURN_NONE;
}

/* ---- the buffer protocol ---- */

/* Of one view: the export that holds the bytes, and sizes in bytes. */
struct buffer {
    DLManagedTensor *managed;
    Py_ssize_t shape[EBB_DIMENSIONS_MAX];
    Py_ssize_t strides[EBB_DIMENSIONS_MAX];
};

static void fill_view(Py_buffer *view, struct buffer *buffer, const struct ebb_tensor *tensor,
                      int flags) {
    const DLTensor *described = &buffer->managed->dl_tensor;
    view->buf = described->data;
    view->itemsize = (Py_ssize_t)ebb_dtype_bytes(tensor->dtype);
    view->len = (Py_ssize_t)ebb_tensor_bytes(tensor);
    bool has_shape = (flags & PyBUF_ND) == PyBUF_ND; /* else it is bytes in one dimension */
    view->ndim = has_shape ? described->ndim : 1;
    for (int i = 0; i < described->ndim; i++) {
        buffer->shape[i] = (Py_ssize_t)described->shape[i];
        buffer->strides[i] = (Py_ssize_t)described->strides[i] * view->itemsize;
    }
    view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)dtype_format(tensor->dtype) : NULL;
    view->shape = has_shape ? buffer->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? buffer->strides : NULL;
    view->suboffsets = NULL;
    view->internal = buffer;
}

/* Whoever does not ask for strides wants them row-major; others may insist on an order. */
static bool has_order(const Py_buffer *view, int flags) {
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS)
        return PyBuffer_IsContiguous(view, 'F');
    if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS)
        return PyBuffer_IsContiguous(view, 'A');
    if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS)
        return PyBuffer_IsContiguous(view, 'C');
    return true;
}

/* Its name, or its numbers if it has none. */
static PyObject *dtype_text(struct ebb_dtype dtype) {
    const char *name = dtype_name(dtype);
    return name ? PyUnicode_FromString(name)
                : PyUnicode_FromFormat("code %d, %d bits, %d lanes", dtype.code, dtype.bits,
                                       dtype.lanes);
}

static int refuse_view(Py_buffer *view, const char *text) {
    view->obj = NULL;
    if (text)
        PyErr_SetString(PyExc_BufferError, text);
    return -1;
}

/* Of what has no format bfloat16 alone can be had otherwise. */
static int refuse_dtype(Py_buffer *view, struct ebb_dtype dtype) {
    const struct ebb_dtype bfloat16 = {EBB_BFLOAT, 16, 1};
    PyObject *text = dtype_text(dtype);
    if (text)
        PyErr_Format(PyExc_BufferError, "the buffer protocol has no format for %U%s", text,
                     ebb_dtype_equal(dtype, bfloat16) ? ", torch() and DLPack have" : "");
    Py_XDECREF(text);
    return refuse_view(view, NULL);
}

/* Imported elements are not ebb's to keep: readers get a copy of them, writers nothing. Nor do they
 * of a region that is inherited. NULL with an exception. */
static DLManagedTensor *export_elements(PyObject *object, struct ebb_tensor *tensor, bool writes,
                                        bool *read_only) {
    struct region *region = ((struct tensor *)object)->region;
    struct exported exported = {.tensor = tensor, .mode = EBB_EXCHANGE_SHARE};
    if (writes && !region_of((PyObject *)region))
        return NULL;
    DLManagedTensor *managed = ebb_tensor_export(tensor, EBB_EXCHANGE_SHARE);
    bool copies = !managed && !writes;
    *read_only = copies || region_is_inherited(region);
    if (copies) {
        if (exchange_choose(object, tensor, EBB_EXCHANGE_COPY, &exported) != 0)
            return NULL;
        managed = ebb_tensor_export(exported.tensor, exported.mode);
    }
    return managed ? managed : exchange_refuse(&exported);
}

static int tensor_get_buffer(PyObject *object, Py_buffer *view, int flags) {
    struct ebb_tensor *tensor = tensor_to_use(object);
    bool read_only;
    if (!tensor)
        return refuse_view(view, NULL);
    if (!dtype_format(tensor->dtype))
        return refuse_dtype(view, tensor->dtype);
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !ebb_tensor_is_contiguous(tensor))
        return refuse_view(view, "the tensor is not contiguous");
    DLManagedTensor *managed =
        export_elements(object, tensor, (flags & PyBUF_WRITABLE) != 0, &read_only);
    if (!managed)
        return refuse_view(view, NULL);
    struct buffer *buffer = PyMem_Malloc(sizeof *buffer);
    if (!buffer) {
        managed->deleter(managed);
        PyErr_NoMemory();
        return refuse_view(view, NULL);
    }
    buffer->managed = managed;
    fill_view(view, buffer, tensor, flags);
    view->readonly = read_only;
    if (!has_order(view, flags) && view->strides) {
        managed->deleter(managed);
        PyMem_Free(buffer);
        return refuse_view(view, "the elements do not lie in the order that is asked for");
    }
    view->obj = Py_NewRef(object);
    return 0;
}

static void tensor_release_buffer(PyObject *Py_UNUSED(object), Py_buffer *view) {
    struct buffer *buffer = view->internal;
    buffer->managed->deleter(buffer->managed);
    PyMem_Free(buffer);
}

/* ---- asking ---- */

static PyObject *get_shape(PyObject *object, void *Py_UNUSED(closure)) {
    const struct ebb_tensor *tensor = tensor_of(object);
    return tensor ? shape_tuple(tensor->shape, tensor->ndim) : NULL;
}

static PyObject *get_strides(PyObject *object, void *Py_UNUSED(closure)) {
    const struct ebb_tensor *tensor = tensor_of(object);
    return tensor ? shape_tuple(tensor->strides, tensor->ndim) : NULL;
}

static PyObject *get_dtype(PyObject *object, void *Py_UNUSED(closure)) {
    const struct ebb_tensor *tensor = tensor_of(object);
    return tensor ? dtype_text(tensor->dtype) : NULL;
}

static PyObject *get_ndim(PyObject *object, void *Py_UNUSED(closure)) {
    const struct ebb_tensor *tensor = tensor_of(object);
    return tensor ? PyLong_FromLong(tensor->ndim) : NULL;
}

static PyObject *get_nbytes(PyObject *object, void *Py_UNUSED(closure)) {
    const struct ebb_tensor *tensor = tensor_of(object);
    return tensor ? PyLong_FromSize_t(ebb_tensor_bytes(tensor)) : NULL;
}

static PyObject *get_is_live(PyObject *object, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(is_live((struct tensor *)object));
}

static PyObject *tensor_device(PyObject *object, PyObject *Py_UNUSED(none)) {
    return tensor_of(object) ? Py_BuildValue("(ii)", kDLCPU, 0) : NULL;
}

PyDoc_STRVAR(capsule_doc,
"_capsule()\n--\n\nAn old DLPack capsule in which bool is uint8, for torch up to 2.0.");

static PyObject *tensor_capsule(PyObject *object, PyObject *Py_UNUSED(none)) {
    return exchange_capsule(object, true);
}

PyDoc_STRVAR(lender_doc,
"_lender()\n--\n\nThe torch.Tensor or numpy.ndarray whose elements these are, or None.");

static PyObject *tensor_lender(PyObject *object, PyObject *Py_UNUSED(none)) {
    if (!tensor_to_use(object))
        return NULL;
    PyObject *lender = loan_object(((struct tensor *)object)->loan);
    return Py_NewRef(lender ? lender : Py_None);
}

PyDoc_STRVAR(copy_doc,
"copy_(source, /)\n--\n\n"
"Writes the elements of `source`, of the same shape and dtype, and returns self.");

/* As tensor_to_use(), of elements that this process may write. */
static struct ebb_tensor *tensor_to_write(PyObject *object) {
    struct ebb_tensor *tensor = tensor_to_use(object);
    return tensor && region_of((PyObject *)((struct tensor *)object)->region) ? tensor : NULL;
}

/* 0, or -1 with an exception. Nothing of the program's runs any more. */
static int copy_borrowed(PyObject *object, const struct borrowed *read) {
    struct ebb_tensor *tensor = exchange_stays(read) ? tensor_to_write(object) : NULL;
    if (!tensor)
        return -1;
    return ebb_tensor_copy(tensor, read->tensor) == 0 ? 0 : (error_raise(), -1);
}

/* The source, when it is asked, may have the tensor promoted, its elements freed, and the regions
 * ended. */
static PyObject *tensor_copy(PyObject *object, PyObject *source) {
    struct borrowed read;
    if (!tensor_to_write(object) ||
        exchange_borrow(((struct tensor *)object)->region, source, &read) != 0)
        return NULL;
    int result = copy_borrowed(object, &read);
    exchange_give_back(&read);
    return result == 0 ? Py_NewRef(object) : NULL;
}

PyDoc_STRVAR(dlpack_doc,
"__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
"A DLPack capsule, a versioned one if max_version is (1, 0) or more. The elements outlive the\n"
"region. copy: None, only where it must; True; False, or BufferError.");
PyDoc_STRVAR(device_doc,
"__dlpack_device__()\n--\n\n(1, 0): memory of the host.");
PyDoc_STRVAR(class_doc,
"Elements in a region. Made by the methods of Region.");

static PyMethodDef tensor_methods[] = {
    {"__dlpack__", METHOD(exchange_export), METH_VARARGS | METH_KEYWORDS, dlpack_doc},
    {"__dlpack_device__", tensor_device, METH_NOARGS, device_doc},
    {"_capsule", tensor_capsule, METH_NOARGS, capsule_doc},
    {"_lender", tensor_lender, METH_NOARGS, lender_doc},
    {"copy_", tensor_copy, METH_O, copy_doc},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef tensor_getters[] = {
    {"shape", get_shape, NULL, "Sizes of the dimensions.", NULL},
    {"strides", get_strides, NULL, "Strides of the dimensions, in elements.", NULL},
    {"dtype", get_dtype, NULL, "Name of the data type, such as 'float32'.", NULL},
    {"ndim", get_ndim, NULL, "Number of dimensions.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"is_live", get_is_live, NULL, "False once its region was closed or reset.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMemberDef tensor_members[] = {
    {"region", T_OBJECT, offsetof(struct tensor, region), READONLY, "The region that owns it."},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot tensor_slots[] = {{Py_tp_dealloc, tensor_dealloc},
                                     {Py_tp_traverse, tensor_traverse},
                                     {Py_tp_doc, (void *)class_doc},
                                     {Py_tp_methods, tensor_methods},
                                     {Py_tp_getset, tensor_getters},
                                     {Py_tp_members, tensor_members},
                                     {Py_bf_getbuffer, tensor_get_buffer},
                                     {Py_bf_releasebuffer, tensor_release_buffer},
                                     {0, NULL}};

static PyType_Spec tensor_spec = {"ebb._ebb.Tensor", sizeof(struct tensor), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                                      Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  tensor_slots};

int tensor_add(PyObject *module) {
    tensor_type = PyType_FromModuleAndSpec(module, &tensor_spec, NULL);
    if (!tensor_type)
        return -1;
    tensor_class = Py_NewRef(tensor_type);
    return PyModule_AddObjectRef(module, "Tensor", tensor_type);
}
