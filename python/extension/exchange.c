// SPDX-License-Identifier: Apache-2.0
/*
 * exchange.c - elements come from and go to other libraries: DLPack capsules, both kinds.
 *
 * Going out, libebb's export holds the bytes; the capsule deletes it if nobody takes it. Coming in,
 * libebb reads and checks every field. Tensors of torch and arrays of numpy are read without their
 * help where DLPack lacks something: bool in torch 1.13, read-only arrays in numpy.
 */
#include "capsule.h"

#include <string.h>

#define PLAIN "dltensor"
#define VERSIONED "dltensor_versioned"

/* ---- out ---- */

static void drop_plain(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, PLAIN)) {
        DLManagedTensor *managed = PyCapsule_GetPointer(capsule, PLAIN);
        managed->deleter(managed);
    }
}

static void drop_versioned(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, VERSIONED)) {
        DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, VERSIONED);
        managed->deleter(managed);
    }
}

PyObject *exchange_wrap(struct DLManagedTensor *managed) {
    PyObject *capsule = PyCapsule_New(managed, PLAIN, drop_plain);
    if (!capsule)
        managed->deleter(managed);
    return capsule;
}

/* True if its bytes can be exported as they are. */
static bool is_shareable(const struct ebb_tensor *tensor) {
    DLManagedTensor *managed = ebb_tensor_export(tensor, EBB_EXCHANGE_SHARE);
    if (managed)
        managed->deleter(managed);
    return managed != NULL;
}

static bool needs_copy(const struct ebb_tensor *tensor, enum ebb_exchange_mode mode) {
    return mode == EBB_EXCHANGE_COPY || (mode == EBB_EXCHANGE_IF_NEEDED && !is_shareable(tensor));
}

int exchange_choose(PyObject *object, struct ebb_tensor *tensor, enum ebb_exchange_mode mode,
                    struct exported *exported) {
    struct region *region = ((struct tensor *)object)->region;
    *exported = (struct exported){.tensor = tensor, .mode = mode};
    if ((!region->keeps && !region_is_inherited(region)) || !needs_copy(tensor, mode))
        return 0;
    if (!region_of((PyObject *)region))
        return -1;
    exported->mode = EBB_EXCHANGE_SHARE;
    exported->copy = exported->tensor = tensor_copied(region->handle, tensor);
    return exported->copy ? 0 : (error_raise_buffer(), -1);
}

void *exchange_refuse(const struct exported *exported) {
    if (exported->copy) /* first: what is raised may have the collector run */
        ebb_object_end(exported->copy);
    return error_raise_buffer();
}

static PyObject *plain_capsule(const struct exported *exported, bool plain_bool) {
    DLManagedTensor *managed = ebb_tensor_export(exported->tensor, exported->mode);
    if (!managed)
        return exchange_refuse(exported);
    if (plain_bool && managed->dl_tensor.dtype.code == EBB_BOOL)
        managed->dl_tensor.dtype.code = EBB_UINT;
    return exchange_wrap(managed);
}

PyObject *exchange_capsule(PyObject *object, bool plain_bool) {
    struct exported exported;
    struct ebb_tensor *tensor = tensor_to_use(object);
    if (!tensor || exchange_choose(object, tensor, EBB_EXCHANGE_IF_NEEDED, &exported) != 0)
        return NULL;
    return plain_capsule(&exported, plain_bool);
}

static PyObject *versioned_capsule(const struct exported *exported, bool read_only) {
    DLManagedTensorVersioned *managed =
        ebb_tensor_export_versioned(exported->tensor, exported->mode);
    if (!managed)
        return exchange_refuse(exported);
    if (exported->copy)
        managed->flags |= DLPACK_COPIED;
    if (read_only)
        managed->flags |= DLPACK_READ_ONLY;
    PyObject *capsule = PyCapsule_New(managed, VERSIONED, drop_versioned);
    if (!capsule)
        managed->deleter(managed);
    return capsule;
}

/* The meaning of `copy`: None, True, False. */
static int parse_copy(PyObject *copy, enum ebb_exchange_mode *mode) {
    int truth = copy == Py_None ? 2 : PyObject_IsTrue(copy);
    *mode = truth == 2   ? EBB_EXCHANGE_IF_NEEDED
            : truth == 1 ? EBB_EXCHANGE_COPY
                         : EBB_EXCHANGE_SHARE;
    return truth < 0 ? -1 : 0;
}

static int check_device(PyObject *device) {
    int kind, number;
    if (device == Py_None)
        return 0;
    if (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ii", &kind, &number))
        return PyErr_Occurred() ? -1 : (PyErr_SetString(PyExc_TypeError, "dl_device: a tuple"), -1);
    if (kind == kDLCPU && number == 0)
        return 0;
    PyErr_Format(PyExc_BufferError, "the tensor is in the host's memory, not on device (%d, %d)",
                 kind, number);
    return -1;
}

/* 1: the consumer knows versioned structs. */
static int wants_version(PyObject *version) {
    int major = 0, minor;
    if (version == Py_None)
        return 0;
    if (!PyTuple_Check(version)) {
        PyErr_SetString(PyExc_TypeError, "max_version is a tuple");
        return -1;
    }
    return PyArg_ParseTuple(version, "ii", &major, &minor) ? major >= 1 : -1;
}

PyObject *exchange_export(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    enum ebb_exchange_mode mode;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O$OOO:__dlpack__", words, &stream,
                                     &version, &device, &copy))
        return NULL;
    int wanted = wants_version(version);
    if (wanted < 0 || check_device(device) != 0 || parse_copy(copy, &mode) != 0)
        return NULL;
    int beyond = 0; /* of long: then the result is -1, too */
    if (stream != Py_None && !(PyLong_Check(stream) &&
                               PyLong_AsLongAndOverflow(stream, &beyond) == -1 && !beyond)) {
        PyErr_SetString(PyExc_BufferError, "the host's memory has no streams");
        return NULL;
    }
    struct exported exported;
    struct ebb_tensor *tensor = tensor_to_use(self);
    if (!tensor || exchange_choose(self, tensor, mode, &exported) != 0)
        return NULL;
    bool read_only = region_is_inherited(((struct tensor *)self)->region);
    return wanted ? versioned_capsule(&exported, read_only) : plain_capsule(&exported, false);
}

/* ---- in: capsules ---- */

/* Where the producer's elements begin; NULL: of a struct that libebb refuses, which may be shorter
 * than those that are known here. */
static const void *first_of(const void *managed, bool is_versioned) {
    const DLManagedTensorVersioned *versioned = managed;
    if (is_versioned && versioned->version.major != DLPACK_MAJOR)
        return NULL;
    const DLTensor *tensor = is_versioned ? &versioned->dl_tensor
                                          : &((const DLManagedTensor *)managed)->dl_tensor;
    uintptr_t first;
    bool wraps = __builtin_add_overflow((uintptr_t)tensor->data, tensor->byte_offset, &first);
    return wraps ? NULL : (const void *)first;
}

/* Renamed first: a deleter, which may run at once, may show the capsule again. */
static struct ebb_tensor *import_capsule(struct intake *intake, PyObject *capsule) {
    bool is_versioned = PyCapsule_IsValid(capsule, VERSIONED);
    const char *name = is_versioned ? VERSIONED : PLAIN;
    if (!PyCapsule_IsValid(capsule, name)) {
        const char *other = PyCapsule_GetName(capsule);
        bool was_taken = other && strncmp(other, "used_" PLAIN, strlen("used_" PLAIN)) == 0;
        PyErr_Format(PyExc_BufferError, was_taken ? "the capsule was taken before: it is '%s'"
                                                  : "the capsule is none of DLPack, but '%s'",
                     other ? other : "");
        return NULL;
    }
    void *managed = PyCapsule_GetPointer(capsule, name);
    if (!region_stays(intake->region, intake->epoch) ||
        PyCapsule_SetName(capsule, is_versioned ? "used_" VERSIONED : "used_" PLAIN) != 0)
        return NULL;
    ebb_region region = intake->region->handle;
    intake->first = first_of(managed, is_versioned);
    struct ebb_tensor *tensor =
        is_versioned ? ebb_tensor_import_versioned(region, managed, intake->mode)
                     : ebb_tensor_import(region, managed, intake->mode);
    if (!tensor) {
        error_raise();
        (void)PyCapsule_SetName(capsule, name); /* it stays its producer's */
    }
    return tensor;
}

/* method(**words), which it takes. */
static PyObject *ask_with(PyObject *method, PyObject *words) {
    PyObject *none = PyTuple_New(0);
    PyObject *capsule = none && words ? PyObject_Call(method, none, words) : NULL;
    Py_XDECREF(words);
    Py_XDECREF(none);
    return capsule;
}

/* True: the method does not know these words, and may be asked with fewer. */
static bool knows_less(const PyObject *capsule) {
    if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError))
        return false;
    PyErr_Clear();
    return true;
}

/* object.__dlpack__(max_version=(1, 0)), or without where that is not known; with copy=False before
 * both if nothing may be copied. */
static PyObject *ask_capsule(PyObject *method, bool shares) {
    PyObject *capsule = NULL;
    if (shares)
        capsule = ask_with(method, Py_BuildValue("{s(ii)sO}", "max_version", 1, 0, "copy",
                                                 Py_False));
    if (!shares || knows_less(capsule))
        capsule = ask_with(method, Py_BuildValue("{s(ii)}", "max_version", 1, 0));
    return knows_less(capsule) ? PyObject_CallNoArgs(method) : capsule;
}

/* Whether the elements were copied for this capsule, and their producer says so. */
static bool was_copied(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, VERSIONED))
        return false;
    const DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, VERSIONED);
    return managed->version.major == DLPACK_MAJOR && managed->flags & DLPACK_COPIED;
}

static struct ebb_tensor *import_speaker(struct intake *intake, PyObject *method) {
    bool shares = intake->mode == EBB_EXCHANGE_SHARE;
    PyObject *capsule = ask_capsule(method, shares);
    struct ebb_tensor *tensor = NULL;
    if (capsule && shares && was_copied(capsule))
        error_raise_as(EBB_E_EXCHANGE, "the elements were to be shared, and __dlpack__() has "
                                       "copied them");
    else if (capsule)
        tensor = import_capsule(intake, capsule);
    Py_XDECREF(capsule);
    return tensor;
}

/* ---- in: the buffer protocol, by way of a memoryview, which keeps the buffer ---- */

/*
 * The data type of a buffer's elements. C's long and long long are what their size says. In front
 * there may be a byte order that is the machine's, as in the arrays of ctypes.
 */
static bool find_dtype(const char *format, Py_ssize_t item_bytes, struct ebb_dtype *dtype) {
    static const uint8_t codes[] = {EBB_FLOAT, EBB_INT, EBB_UINT, EBB_BOOL, EBB_COMPLEX};
    static const char own_order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
    if (*format == '@' || *format == '=' || *format == own_order)
        format++;
    bool is_long = strcmp(format, "l") == 0 || strcmp(format, "q") == 0;
    bool is_unsigned_long = strcmp(format, "L") == 0 || strcmp(format, "Q") == 0;
    for (size_t i = 0; i < sizeof codes && item_bytes <= 16; i++) {
        *dtype = (struct ebb_dtype){codes[i], (uint8_t)(8 * item_bytes), 1};
        const char *ours = dtype_format(*dtype);
        if (ours && (strcmp(ours, format) == 0 || (is_long && codes[i] == EBB_INT) ||
                     (is_unsigned_long && codes[i] == EBB_UINT)))
            return true;
    }
    return false;
}

/* 1; 0: its format or strides are none of ebb's. */
static int describe_buffer(const Py_buffer *view, struct description *to) {
    if (view->ndim > EBB_DIMENSIONS_MAX || view->suboffsets ||
        !find_dtype(view->format ? view->format : "B", view->itemsize, &to->dtype))
        return 0;
    to->data = view->buf;
    to->read_only = view->readonly != 0;
    to->contiguous = false;
    to->ndim = view->ndim;
    for (int i = 0; i < view->ndim; i++) {
        to->shape[i] = view->shape[i];
        if (view->strides[i] % view->itemsize != 0)
            return 0;
        to->strides[i] = view->strides[i] / view->itemsize;
    }
    return library_count_elements(to);
}

static struct ebb_tensor *import_buffer(struct intake *intake, PyObject *object) {
    struct description what;
    Py_buffer view;
    int odd = library_is_odd_scalar(object); /* dates show bytes, which they are not read as */
    if (odd)
        return odd < 0 ? NULL
                       : (PyErr_Format(PyExc_TypeError, "%R has no dtype that ebb reads", object),
                          NULL);
    PyObject *memory = PyMemoryView_FromObject(object);
    if (!memory || PyObject_GetBuffer(memory, &view, PyBUF_FULL_RO) != 0) {
        Py_XDECREF(memory);
        if (PyErr_ExceptionMatches(PyExc_TypeError)) /* others know better what is wrong */
            PyErr_Format(PyExc_TypeError, "%R speaks neither DLPack nor the buffer protocol",
                         object);
        return NULL;
    }
    int good = describe_buffer(&view, &what);
    if (!good)
        PyErr_Format(PyExc_TypeError, "a buffer of format '%s' is none that ebb reads",
                     view.format ? view.format : "B");
    PyBuffer_Release(&view);
    struct ebb_tensor *tensor = good ? loan_make(intake, memory, &what) : NULL;
    Py_DECREF(memory);
    return tensor;
}

/* ---- in ---- */

/*
 * What is lent of a tensor of torch: another one of the same elements, as this one may get others,
 * as a parameter does by `data`. A subclass is asked once, for that: its elements may be elsewhere,
 * or not there yet. What it answers is taken as torch's own, which no subclass is asked about. For
 * the length of a call a plain tensor itself will do, as the loan keeps its storage.
 */
static PyObject *find_lender(const struct intake *intake, PyObject *tensor) {
    if (Py_TYPE(tensor) == (PyTypeObject *)torch_names.tensor)
        return intake->is_short ? Py_NewRef(tensor) : library_call(torch_names.detach, tensor);
    PyObject *answer = PyObject_CallFunctionObjArgs(torch_names.detach, tensor, NULL);
    PyObject *lender = NULL;
    if (answer && library_is_tensor(answer))
        lender = library_call(torch_names.detach, answer);
    else if (answer)
        PyErr_Format(PyExc_TypeError, "%R, which detach() returned, is no tensor", answer);
    Py_XDECREF(answer);
    return lender;
}

/* torch's own capsules forget that elements are negated, and have no bool. */
static struct ebb_tensor *import_torch(struct intake *intake, PyObject *object) {
    struct description what;
    PyObject *lender = find_lender(intake, object);
    int good = lender ? library_describe_torch(lender, &what) : -1;
    if (good == 0)
        PyErr_Format(PyExc_TypeError, "a tensor %s: ebb takes plain elements in the host's memory",
                     what.refused);
    struct ebb_tensor *tensor = good > 0 ? loan_make(intake, lender, &what) : NULL;
    Py_XDECREF(lender);
    return tensor;
}

/* Of what is kept a view of it is lent: others may give the array itself another shape. */
static struct ebb_tensor *import_array(struct intake *intake, PyObject *array,
                                       const struct description *what) {
    PyObject *lent = intake->is_short
                         ? Py_NewRef(array)
                         : PyObject_CallMethod(numpy_array, "view", "OO", array, numpy_array);
    struct ebb_tensor *tensor = lent ? loan_make(intake, lent, what) : NULL;
    Py_XDECREF(lent);
    return tensor;
}

/* True if nothing but its strides is in the way: those of a struct's field, in which others lie. */
static bool may_be_straightened(const struct intake *intake, PyObject *array,
                                const struct description *what) {
    return what->dtype.lanes && intake->mode != EBB_EXCHANGE_SHARE &&
           !library_has_own_dlpack(array);
}

/* No tensor can say such strides: numpy copies the elements, and these are copied. */
static struct ebb_tensor *import_straightened(struct intake *intake, PyObject *array) {
    struct description what;
    PyObject *straight = PyObject_CallMethod(numpy_array, "copy", "O", array);
    int good = straight ? library_describe_numpy(straight, &what) : -1;
    if (good == 0)
        PyErr_Format(PyExc_BufferError, "an array of more than %d dimensions", EBB_DIMENSIONS_MAX);
    intake->mode = EBB_EXCHANGE_COPY;
    struct ebb_tensor *tensor = good > 0 ? loan_make(intake, straight, &what) : NULL;
    Py_XDECREF(straight);
    return tensor;
}

/* numpy would say first what else is in its way. A class of the program's may know better. */
static bool refuse_dtype(PyObject *array, const struct description *what) {
    if (what->dtype.lanes || library_has_own_dlpack(array))
        return false;
    PyObject *dtype = library_dtype(array);
    if (dtype)
        PyErr_Format(PyExc_TypeError, "%R is none that ebb reads", dtype);
    Py_XDECREF(dtype);
    return true;
}

/* Neither a tensor nor DLPack has a place for a mask. */
static bool refuse_mask(PyObject *array) {
    if (!library_is_masked(array))
        return false;
    PyErr_SetString(PyExc_TypeError, "a masked array has a mask, which tensors have not: take its "
                                     "filled() or its data");
    return true;
}

static struct ebb_tensor *import(struct intake *intake, PyObject *object) {
    struct description what;
    if (library_find() != 0)
        return NULL;
    if (PyCapsule_CheckExact(object))
        return import_capsule(intake, object);
    if (library_is_tensor(object))
        return import_torch(intake, object);
    bool is_array = library_is_array(object);
    if (is_array && refuse_mask(object))
        return NULL;
    int good = is_array ? library_describe_numpy(object, &what) : 0;
    if (good < 0 || (is_array && refuse_dtype(object, &what)))
        return NULL;
    if (good && what.dtype.lanes)
        return import_array(intake, object, &what);
    if (is_array && may_be_straightened(intake, object, &what))
        return import_straightened(intake, object);
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    if (!method)
        return error_forgive() ? import_buffer(intake, object) : NULL;
    struct ebb_tensor *tensor = import_speaker(intake, method);
    Py_DECREF(method);
    return tensor;
}

/* ---- in: tensors of ebb's ---- */

/* Another head of the same storage. NULL with ebb's error. */
static struct ebb_tensor *view_in(const struct region *region, const struct ebb_tensor *tensor) {
    return ebb_tensor_view(region->handle, tensor, tensor->ndim, tensor->shape, tensor->strides, 0);
}

/* Of a region that is not above: who lent the elements does so again, or they are exported. */
static struct ebb_tensor *import_stranger(struct intake *intake, PyObject *object) {
    PyObject *lender = loan_object(((struct tensor *)object)->loan);
    PyObject *lent = Py_XNewRef(lender);
    struct ebb_tensor *tensor = import(intake, lender ? lender : object);
    Py_XDECREF(lent);
    return tensor;
}

static struct ebb_tensor *import_own(struct intake *intake, PyObject *object) {
    const struct ebb_tensor *tensor = tensor_to_use(object);
    if (!tensor || !region_stays(intake->region, intake->epoch))
        return NULL;
    bool copies = intake->mode == EBB_EXCHANGE_COPY;
    struct ebb_tensor *taken = copies ? tensor_copied(intake->region->handle, tensor)
                                      : view_in(intake->region, tensor);
    if (!taken && !copies && ebb_last_error() == EBB_E_NOT_ANCESTOR)
        return import_stranger(intake, object);
    if (!taken) {
        error_raise();
        return NULL;
    }
    intake->first = taken->data;
    if (!copies)
        intake->loan = loan_hold(((struct tensor *)object)->loan);
    return taken;
}

/* ---- in ---- */

static PyObject *keep(const struct intake *intake, struct ebb_tensor *tensor) {
    struct region *region = intake->region;
    bool copied = tensor->data != intake->first;
    PyObject *object =
        tensor_wrap(region, copied ? tensor_settle(region->handle, tensor) : tensor);
    if (object && !copied)
        ((struct tensor *)object)->loan = loan_hold(intake->loan);
    return object;
}

PyObject *exchange_import(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *words[] = {"object", "copy", NULL};
    PyObject *object, *copy = Py_None;
    struct intake intake = {.region = region_of(self)};
    if (!intake.region || !PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:tensor", words,
                                                       &object, &copy))
        return NULL;
    if (parse_copy(copy, &intake.mode) != 0)
        return NULL;
    intake.epoch = intake.region->epoch;
    struct ebb_tensor *tensor = tensor_is(object) ? import_own(&intake, object)
                                                  : import(&intake, object);
    /* once more: who lent what was copied has it back, and may have done anything */
    bool stays = tensor && region_stays(intake.region, intake.epoch);
    PyObject *made = stays ? keep(&intake, tensor) : NULL;
    loan_drop(intake.loan);
    return made;
}

/* ---- in, for the length of a call ---- */

/* A second head, so that ending it leaves the caller's alone. */
static int borrow_own(PyObject *object, struct borrowed *borrowed) {
    const struct ebb_tensor *tensor = tensor_to_use(object);
    if (!tensor)
        return -1;
    struct region *region = ((struct tensor *)object)->region;
    *borrowed = (struct borrowed){view_in(region, tensor), region, region->epoch, NULL};
    if (!borrowed->tensor)
        return error_raise(), -1;
    Py_INCREF((PyObject *)region);
    borrowed->loan = loan_hold(((struct tensor *)object)->loan);
    return 0;
}

int exchange_borrow(struct region *region, PyObject *object, struct borrowed *borrowed) {
    if (tensor_is(object))
        return borrow_own(object, borrowed);
    *borrowed = (struct borrowed){NULL, (struct region *)Py_NewRef((PyObject *)region),
                                  region->epoch, NULL};
    struct intake intake = {.region = region,
                            .epoch = region->epoch,
                            .mode = EBB_EXCHANGE_IF_NEEDED,
                            .is_short = true};
    borrowed->tensor = import(&intake, object);
    borrowed->loan = intake.loan;
    if (borrowed->tensor)
        return 0;
    loan_drop(intake.loan);
    Py_DECREF((PyObject *)region);
    return -1;
}

static bool is_there(const struct borrowed *borrowed) {
    return borrowed->region->epoch == borrowed->epoch &&
           ebb_region_is_open(borrowed->region->handle);
}

bool exchange_stays(const struct borrowed *borrowed) {
    if (!is_there(borrowed))
        return region_stays(borrowed->region, borrowed->epoch); /* it says no */
    return loan_check(borrowed->loan) == 0;
}

void exchange_give_back(struct borrowed *borrowed) {
    if (is_there(borrowed))
        ebb_object_end(borrowed->tensor);
    loan_drop(borrowed->loan);
    Py_DECREF((PyObject *)borrowed->region);
}
