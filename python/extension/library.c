// SPDX-License-Identifier: Apache-2.0
/*
 * library.c - tensors of torch and arrays of numpy, looked at without either's headers.
 *
 * Neither is imported here: what the program has not loaded cannot be in a batch. torch is asked
 * by attributes, some 30 ns each; numpy by __array_struct__, whose layout is fixed. That and others
 * are numpy's own fields: a subclass may say anything.
 */
#include "dtype.h"

#include <string.h>

struct torch_names torch_names;
PyObject *numpy_array;
static PyObject *numpy_scalar; /* numpy.generic */
static struct {
    PyObject *array_struct, *base, *flags, *dtype; /* of numpy.ndarray */
    PyObject *dlpack;                              /* the same; NULL: numpy is older */
    PyObject *scalar_struct;                       /* of numpy.generic */
} numpy_fields;

/* ---- finding ---- */

/* sys.modules[name] if it is loaded so far that it has `attribute`; else NULL, no exception. */
static PyObject *loaded(const char *name, const char *attribute) {
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    PyObject *module = modules ? PyDict_GetItemString(modules, name) : NULL;
    if (!module || !PyObject_HasAttrString(module, attribute))
        return NULL;
    return module;
}

static int find_methods(PyObject *tensor) {
    static const char *const wanted[] = {"data_ptr", "stride",  "is_contiguous",
                                         "is_neg",   "is_conj", "view",
                                         "detach",   "has_names"};
    PyObject **const to[] = {&torch_names.data_ptr, &torch_names.stride,
                             &torch_names.is_contiguous, &torch_names.is_neg,
                             &torch_names.is_conj, &torch_names.view, &torch_names.detach,
                             &torch_names.has_names};
    _Static_assert(sizeof wanted / sizeof *wanted == sizeof to / sizeof *to, "one for each name");
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!(*to[i] = PyObject_GetAttrString(tensor, wanted[i])))
            return -1;
    return 0;
}

/* torch 1 calls it otherwise. */
static int find_storage(PyObject *tensor, PyObject *inside) {
    torch_names.storage = PyObject_GetAttrString(tensor, "untyped_storage");
    if (!torch_names.storage && error_forgive())
        torch_names.storage = PyObject_GetAttrString(tensor, "_storage");
    torch_names.storage_class = PyObject_GetAttrString(inside, "StorageBase");
    if (!torch_names.storage || !torch_names.storage_class)
        return -1;
    torch_names.storage_first = PyObject_GetAttrString(torch_names.storage_class, "data_ptr");
    torch_names.storage_bytes = PyObject_GetAttrString(torch_names.storage_class, "nbytes");
    return torch_names.storage_first && torch_names.storage_bytes ? 0 : -1;
}

static int find_inside(PyObject *tensor, PyObject *inside) {
    torch_names.from_dlpack = PyObject_GetAttrString(inside, "_from_dlpack");
    torch_names.plainly = PyObject_GetAttrString(inside, "_disabled_torch_function_impl");
    return torch_names.from_dlpack && torch_names.plainly ? find_storage(tensor, inside) : -1;
}

static int find_torch(PyObject *torch) {
    PyObject *tensor = PyObject_GetAttrString(torch, "Tensor");
    PyObject *inside = tensor ? PyObject_GetAttrString(torch, "_C") : NULL;
    bool found = inside && find_inside(tensor, inside) == 0 && find_methods(tensor) == 0;
    Py_XDECREF(inside);
    if (!found || !(torch_names.strided = PyObject_GetAttrString(torch, "strided"))) {
        Py_XDECREF(tensor);
        return -1;
    }
    for (size_t i = 0; i < DTYPE_ROWS; i++) {
        torch_names.dtypes[i] = PyObject_GetAttrString(torch, dtype_table[i].name);
        if (!torch_names.dtypes[i] && !error_forgive())
            return -1; /* else it is an older torch: no uint16 and its likes */
        if (torch_names.dtypes[i] && dtype_table[i].dtype.code == EBB_BOOL)
            torch_names.bool_type = torch_names.dtypes[i];
    }
    torch_names.tensor = tensor; /* last: the others are complete when it is there */
    return 0;
}

static int find_fields(PyObject *array, PyObject *scalar) {
    numpy_fields.dlpack = PyObject_GetAttrString(array, "__dlpack__");
    if (!numpy_fields.dlpack && !error_forgive())
        return -1;
    numpy_fields.array_struct = PyObject_GetAttrString(array, "__array_struct__");
    numpy_fields.base = PyObject_GetAttrString(array, "base");
    numpy_fields.flags = PyObject_GetAttrString(array, "flags");
    numpy_fields.dtype = PyObject_GetAttrString(array, "dtype");
    numpy_fields.scalar_struct = PyObject_GetAttrString(scalar, "__array_struct__");
    return PyErr_Occurred() ? -1 : 0;
}

static int find_numpy(PyObject *numpy) {
    PyObject *array = PyObject_GetAttrString(numpy, "ndarray");
    PyObject *scalar = array ? PyObject_GetAttrString(numpy, "generic") : NULL;
    if (!scalar || find_fields(array, scalar) != 0) {
        Py_XDECREF(scalar);
        Py_XDECREF(array);
        return -1;
    }
    numpy_scalar = scalar;
    numpy_array = array; /* last, as above */
    return 0;
}

int library_find(void) {
    PyObject *torch = torch_names.tensor ? NULL : loaded("torch", "utils");
    if (torch && find_torch(torch) != 0 && !error_forgive())
        return -1; /* else another thread is about to import it: it is not loaded yet */
    PyObject *numpy = numpy_array ? NULL : loaded("numpy", "ndarray");
    return numpy ? find_numpy(numpy) : 0;
}

static bool is_of(PyObject *object, PyObject *class) {
    return class && PyObject_TypeCheck(object, (PyTypeObject *)class);
}

bool library_is_tensor(PyObject *object) {
    return is_of(object, torch_names.tensor);
}

bool library_is_array(PyObject *object) {
    return is_of(object, numpy_array);
}

/* ---- asking ---- */

bool library_count_elements(struct description *to) {
    bool fits = true, none = false;
    to->count = 1;
    for (int i = 0; i < to->ndim; i++) {
        if (to->shape[i] < 0)
            return false;
        none |= to->shape[i] == 0;
        fits &= !__builtin_mul_overflow(to->count, to->shape[i], &to->count);
    }
    if (none)
        to->count = 0;
    return fits || none;
}

/* Attribute `name` of the object is `value`: 1, 0, or -1 with an exception. */
static int attribute_is(PyObject *object, PyObject *name, PyObject *value) {
    PyObject *found = PyObject_GetAttr(object, name);
    if (!found)
        return -1;
    Py_DECREF(found);
    return found == value;
}

static int call_is_true(PyObject *method, PyObject *self) {
    PyObject *result = PyObject_CallFunctionObjArgs(method, self, NULL);
    int truth = result ? PyObject_IsTrue(result) : -1;
    Py_XDECREF(result);
    return truth;
}

static int read_sizes(PyObject *tuple, int64_t *sizes) {
    if (tuple && !PyTuple_Check(tuple)) /* of a tensor that a subclass made */
        PyErr_Format(PyExc_TypeError, "%R is no tuple of sizes", tuple);
    Py_ssize_t count = tuple && PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
    if (count > EBB_DIMENSIONS_MAX)
        return EBB_DIMENSIONS_MAX + 1;
    for (Py_ssize_t i = 0; i < count; i++)
        sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    return PyErr_Occurred() ? -1 : (int)count;
}

/* 1: one of ours, 0: another, -1. */
static int torch_dtype(PyObject *tensor, struct ebb_dtype *dtype) {
    PyObject *found = PyObject_GetAttr(tensor, names.dtype);
    if (!found)
        return -1;
    Py_DECREF(found); /* those of torch live for ever */
    for (size_t i = 0; i < DTYPE_ROWS; i++)
        if (found == torch_names.dtypes[i]) {
            *dtype = dtype_table[i].dtype;
            return 1;
        }
    return 0;
}

/* Elements that are there as they are: not conjugated or negated when they are read. */
static int is_plain(PyObject *tensor, const struct ebb_dtype *dtype) {
    int negated = call_is_true(torch_names.is_neg, tensor);
    if (negated == 0 && dtype->code == EBB_COMPLEX)
        negated = call_is_true(torch_names.is_conj, tensor);
    return negated < 0 ? -1 : !negated;
}

static int torch_shape(PyObject *tensor, struct description *to) {
    PyObject *shape = PyObject_GetAttr(tensor, names.shape);
    to->ndim = read_sizes(shape, to->shape);
    Py_XDECREF(shape);
    if (to->ndim < 0 || to->ndim > EBB_DIMENSIONS_MAX)
        return to->ndim < 0 ? -1 : 0;
    if (!library_count_elements(to))
        return 0;
    int contiguous = call_is_true(torch_names.is_contiguous, tensor);
    to->contiguous = contiguous == 1;
    if (contiguous != 0)
        return contiguous;
    PyObject *strides = PyObject_CallFunctionObjArgs(torch_names.stride, tensor, NULL);
    int count = read_sizes(strides, to->strides);
    Py_XDECREF(strides);
    return count < 0 ? -1 : count == to->ndim;
}

static int torch_data(PyObject *tensor, struct description *to) {
    PyObject *address = PyObject_CallFunctionObjArgs(torch_names.data_ptr, tensor, NULL);
    if (!address)
        return -1;
    to->data = PyLong_AsVoidPtr(address);
    Py_DECREF(address);
    if (PyErr_Occurred())
        return -1;
    return to->data || to->count == 0; /* torch has zeros that lie nowhere */
}

/* What it is that a step of the description stops at. */
static int note(struct description *to, const char *what, int good) {
    if (good == 0)
        to->refused = what;
    return good;
}

int library_describe_torch(PyObject *tensor, struct description *to) {
    int good = note(to, "on a device", attribute_is(tensor, names.is_cpu, Py_True));
    if (good == 1)
        good = note(to, "that is not strided",
                    attribute_is(tensor, names.layout, torch_names.strided));
    if (good == 1) /* those are strided, too, but have no shape */
        good = note(to, "that is nested", attribute_is(tensor, names.is_nested, Py_False));
    if (good == 1)
        good = note(to, "of a dtype that ebb does not know", torch_dtype(tensor, &to->dtype));
    if (good == 1)
        good = note(to, "that is conjugated or negated", is_plain(tensor, &to->dtype));
    if (good == 1)
        good = note(to, "of a shape that ebb has not: up to 32 dimensions",
                    torch_shape(tensor, to));
    if (good == 1)
        good = note(to, "whose elements lie nowhere", torch_data(tensor, to));
    to->item_bytes = to->dtype.bits / 8u;
    to->read_only = false;
    return good;
}

PyObject *library_call(PyObject *method, PyObject *tensor) {
    if (Py_TYPE(tensor) == (PyTypeObject *)torch_names.tensor)
        return PyObject_CallFunctionObjArgs(method, tensor, NULL);
    return PyObject_CallFunction(torch_names.plainly, "O()(O)", method, tensor);
}

/* A mode of the program's sees the typed storage in torch 1, which has the other one inside. */
PyObject *library_storage(PyObject *tensor) {
    PyObject *storage = library_call(torch_names.storage, tensor);
    if (!storage || is_of(storage, torch_names.storage_class))
        return storage;
    PyObject *inside = PyObject_GetAttrString(storage, "_storage");
    Py_DECREF(storage);
    return inside;
}

int library_has_names(PyObject *tensor) {
    return call_is_true(torch_names.has_names, tensor);
}

/* ---- numpy ---- */

/* numpy's PyArrayInterface. */
struct array_interface {
    int two;
    int ndim;
    char kind;
    int item_bytes;
    int flags;
    Py_ssize_t *shape;
    Py_ssize_t *strides; /* bytes */
    void *data;
    PyObject *description;
};

enum {
    ARRAY_C_CONTIGUOUS = 1,
    ARRAY_NOT_SWAPPED = 0x200,
    ARRAY_WRITEABLE = 0x400,
    ARRAY_HAS_DESCRIPTION = 0x800
};

/*
 * A dtype without lanes, {0, 0, 0}, if the elements are none of DLPack's: dates, structs, text, and
 * long doubles, which are no floats of 128 bits.
 */
static struct ebb_dtype array_dtype(const struct array_interface *array) {
    static const struct {
        char kind;
        uint8_t code;
    } kinds[] = {{'f', EBB_FLOAT}, {'i', EBB_INT}, {'u', EBB_UINT}, {'b', EBB_BOOL},
                 {'c', EBB_COMPLEX}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == array->kind && array->item_bytes <= (array->kind == 'c' ? 16 : 8) &&
            (array->flags & ARRAY_NOT_SWAPPED))
            return (struct ebb_dtype){kinds[i].code, (uint8_t)(8 * array->item_bytes), 1};
    return (struct ebb_dtype){0, 0, 0};
}

/* 0: strides that are no multiples of the element. Along a single one they may be anything. */
static int array_shape(const struct array_interface *array, struct description *to) {
    to->count = 1;
    to->ndim = array->ndim;
    for (int i = 0; i < array->ndim; i++) {
        to->shape[i] = array->shape[i];
        to->count *= array->shape[i];
        if (to->contiguous)
            continue;
        bool is_multiple = array->item_bytes != 0 && array->strides[i] % array->item_bytes == 0;
        if (array->shape[i] == 1 && (!is_multiple || array->strides[i] < 0))
            to->strides[i] = 0;
        else if (is_multiple)
            to->strides[i] = array->strides[i] / array->item_bytes;
        else
            return 0;
    }
    return 1;
}

/* What numpy's own field is for the object; its class is not asked. NULL with an exception. */
static PyObject *get_field(PyObject *field, PyObject *object) {
    descrgetfunc get = (descrgetfunc)PyType_GetSlot(Py_TYPE(field), Py_tp_descr_get);
    return get(field, object, (PyObject *)Py_TYPE(object));
}

/* numpy loses all other flags of arrays whose elements have fields. 1, 0, or -1. */
static int is_read_only(PyObject *object, const struct array_interface *array) {
    if (array->flags & ~ARRAY_HAS_DESCRIPTION)
        return !(array->flags & ARRAY_WRITEABLE);
    PyObject *flags = get_field(numpy_fields.flags, object);
    PyObject *writeable = flags ? PyObject_GetAttrString(flags, "writeable") : NULL;
    int truth = writeable ? PyObject_IsTrue(writeable) : -1;
    Py_XDECREF(writeable);
    Py_XDECREF(flags);
    return truth < 0 ? -1 : !truth;
}

PyObject *library_base(PyObject *array) {
    return get_field(numpy_fields.base, array);
}

int library_describe_numpy(PyObject *object, struct description *to) {
    PyObject *capsule = get_field(numpy_fields.array_struct, object);
    const struct array_interface *array = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    int good = array ? 0 : -1;
    if (array)
        to->dtype = array_dtype(array);
    if (array && array->two == 2 && array->ndim <= EBB_DIMENSIONS_MAX && array->kind != 'O' &&
        array->item_bytes > 0) {
        to->data = array->data;
        to->item_bytes = (size_t)array->item_bytes;
        to->contiguous = (array->flags & ARRAY_C_CONTIGUOUS) != 0;
        good = array_shape(array, to);
        int read_only = is_read_only(object, array);
        to->read_only = read_only != 0;
        good = read_only < 0 ? -1 : good;
    }
    Py_XDECREF(capsule);
    return good;
}

int library_is_odd_scalar(PyObject *object) {
    if (!is_of(object, numpy_scalar) || PyBytes_Check(object))
        return 0;
    PyObject *capsule = get_field(numpy_fields.scalar_struct, object);
    const struct array_interface *array = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    int odd = array ? !array_dtype(array).lanes : -1;
    Py_XDECREF(capsule);
    return odd;
}

PyObject *library_dtype(PyObject *array) {
    return get_field(numpy_fields.dtype, array);
}

bool library_has_own_dlpack(PyObject *array) {
    PyTypeObject *class = Py_TYPE(array);
    if (class == (PyTypeObject *)numpy_array)
        return false;
    PyObject *method = PyObject_GetAttrString((PyObject *)class, "__dlpack__");
    bool own = method && method != numpy_fields.dlpack;
    if (!method)
        PyErr_Clear();
    Py_XDECREF(method);
    return own;
}

bool library_is_masked(PyObject *array) {
    PyObject *module = Py_TYPE(array) == (PyTypeObject *)numpy_array
                           ? NULL
                           : loaded("numpy.ma", "MaskedArray");
    PyObject *class = module ? PyObject_GetAttrString(module, "MaskedArray") : NULL;
    bool masked = class && PyType_Check(class) && is_of(array, class);
    if (!class)
        PyErr_Clear();
    Py_XDECREF(class);
    return masked;
}
