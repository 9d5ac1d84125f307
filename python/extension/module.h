// SPDX-License-Identifier: Apache-2.0
/*
 * module.h - what the files of the extension module share.
 *
 * The module is the thin part of the package: it turns Python objects into calls of libebb and
 * back. Everything here runs with the interpreter's lock but the deleters of what was exported,
 * which are libebb's own and know nothing of Python.
 *
 * Naming: functions that return PyObject * or int follow Python's protocol: NULL or -1 means that
 * an exception is set.
 */
#ifndef EBB_PYTHON_MODULE_H
#define EBB_PYTHON_MODULE_H

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <ebb/ebb.h>

/* Methods that take keywords or fast arguments have other signatures than PyCFunction. */
#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

/* ---- error.c ---- */

extern PyObject *error_class; /* ebb.Error */

int error_add(PyObject *module);
/* Raises ebb.Error for the last error of libebb; NULL. */
PyObject *error_raise(void);
/* The same for an error that libebb did not see; `text` is the whole sentence. */
PyObject *error_raise_as(int code, const char *text);
/* Forgets an exception by which an object said no. False: one that nobody may forget is set, as
 * the KeyboardInterrupt of a handler that ran in the object's code. */
bool error_forgive(void);
/* Raises BufferError with the text of the last error of libebb; NULL. */
PyObject *error_raise_buffer(void);

/* ---- number.c ---- */

/* An argument that may be None: then `value` stays 0, which libebb takes for its default. */
struct number {
    const char *name;
    Py_ssize_t least, most;
    Py_ssize_t value;
    bool given;
};

/* For "O&" of PyArg_Parse functions. ValueError with the numbers. */
int number_parse(PyObject *object, void *number);

/* ---- dtype.c ---- */

/* Anything that names a data type: "float32", torch.float32, numpy.float32, float. */
int dtype_parse(PyObject *object, struct ebb_dtype *dtype);
/* "float32", or NULL if it has no name here. */
const char *dtype_name(struct ebb_dtype dtype);
/* The struct module's code, as numpy reads it; NULL if there is none. */
const char *dtype_format(struct ebb_dtype dtype);
/* A size or a tuple of them; how many, or -1. */
int shape_parse(PyObject *object, int64_t shape[EBB_DIMENSIONS_MAX]);
PyObject *shape_tuple(const int64_t *shape, int ndim);

/* ---- pool.c ---- */

extern PyObject *pool_type;
extern PyObject *pool_shared; /* list of weak references to those of kind shared, newest first */

struct pool_batches {
    uint64_t sent, received;
    uint64_t fallbacks; /* went another way than through the pool */
};

struct pool {
    PyObject_HEAD
    ebb_pool *pool;      /* NULL: closed */
    unsigned kind;       /* EBB_KIND_ flags */
    uint64_t wait_ns;    /* for a slot */
    bool is_attached;    /* to what another pool made */
    unsigned made_after; /* forks, in the process that has made or attached it */
    unsigned forks;      /* that led to the process that has counted these: */
    struct pool_batches batches;
};

int pool_add(PyObject *module);
/* The pool behind the object, NULL with an exception if it is closed or none. */
ebb_pool *pool_of(PyObject *object);
/* Whether what this thread opens from now on waits for no slot, whatever its pool says. */
void pool_hurry(bool does);
/* Ends a pool whose object is gone, if what it was needed for is by now; another one each time, and
 * none for 10 ms behind one that goes on, so that who asks often pays nothing. */
void pool_try_one_waiting(void);
/* CLOCK_MONOTONIC. */
uint64_t pool_now_ns(void);
/* What this process has counted: a forked child begins anew. */
struct pool_batches *pool_batches(struct pool *pool);

/* ---- region.c ---- */

extern PyObject *region_type;

struct region {
    PyObject_HEAD
    PyObject *pool;   /* None: the default pool; kept alive */
    PyObject *parent; /* or None; kept alive */
    PyObject *outer;  /* that was entered before this one, or None; NULL: never entered */
    PyObject *inner;  /* whose `outer` this is, while current.c goes through them */
    PyObject *site;   /* of the step that the region is, until that ends; or NULL */
    ebb_region handle;
    ebb_step step;
    struct region *opening_next; /* while a thread opens it without the interpreter's lock */
    unsigned forks;   /* that led to the process that opened it */
    uint64_t epoch;   /* grows when all tensors end at once */
    char is_left;     /* since it was entered last, in whatever thread or task */
    char has_ended;   /* the step: its region is the ring's from then on */
    char keeps;       /* tensors stay to the region's end though nobody refers to them: it is
                       * sent, and what a description names must be there then */
};

int region_add(PyObject *module);
/* The open region behind the object, which this process may change; NULL with an exception. */
struct region *region_of(PyObject *object);
/* True in a forked child for a region of a shared pool that its parent opened: it can be closed and
 * its tensors read, no more. A slot is not copied by a fork: what is written there, the parent has.
 * Pages of other pools are, and the child goes on with its own. */
bool region_is_inherited(const struct region *region);
/* False with an exception if the region was closed or reset since that epoch, or this is a forked
 * child by now. Objects that are asked for their elements, or let go, may do anything. */
bool region_stays(const struct region *region, uint64_t epoch);
/* An object of class `type` for a region that is not open yet. */
struct region *region_make(PyTypeObject *type, PyObject *pool, PyObject *parent);
/* Below another region the pool is that one's, whatever was said. */
void region_take_pool(struct region *region, const struct region *above);
/* open(region, how), which opens its handle: if not `locked`, without the interpreter's lock, so it
 * may wait for a slot that another thread gives back. The pool is not closed meanwhile. */
void region_open_listed(struct region *region, bool locked,
                        void (*open)(struct region *, const void *), const void *how);
/* Whether a thread of this process opens a region of that pool now. */
bool region_is_opening(const PyObject *pool);
/* In a forked child, which has one thread: what others were opening is nobody's, and is closed. */
void region_settle_fork(void);
/* Closes the region or ends its step, if it is open. 0, or -1 with an exception. */
int region_end(PyObject *object);

/* ---- current.c ---- */

/* The region becomes the current one; and the one before that again, if it is the current one. Any
 * other one is taken out of the chain. -1 with an exception: nothing has changed. */
int current_enter(PyObject *region);
int current_leave(PyObject *region);
/* The one of the list that was entered last here, else the last of the list. New reference. */
PyObject *current_find(PyObject *list);
/* Enters the scopes of the region and of what was entered in it here and is not left, the outermost
 * first; or leaves them. -1 with an exception: one is another thread's. */
int current_change_scopes(PyObject *region, bool enters);
PyObject *current_get(PyObject *module, PyObject *none);
extern const char current_doc[];
int current_add(void);

/* ---- tensor.c ---- */

extern PyObject *tensor_type; /* _ebb.Tensor */

struct tensor {
    PyObject_HEAD
    struct region *region; /* kept alive */
    struct ebb_tensor *tensor;
    uint64_t epoch;        /* of the region when the tensor came there */
    struct loan *loan;     /* that its elements are of; or NULL */
};

int tensor_add(PyObject *module);
/* The Python class that tensors get from now on; a subclass of _ebb.Tensor. */
PyObject *tensor_set_class(PyObject *module, PyObject *class);
/* A new object for a tensor of the region; ends the tensor if that fails or it is NULL. */
PyObject *tensor_wrap(struct region *region, struct ebb_tensor *tensor);
/* Whether the object is one of these. That its __class__ says so, as that of a proxy, is nothing:
 * what is behind it would be read as fields. So it is with pools, regions, and what others have. */
bool tensor_is(PyObject *object);
/* The live tensor behind the object, NULL with an exception. */
struct ebb_tensor *tensor_of(PyObject *object);
/* The same for who reads or writes its elements, which may be gone although the tensor is not. */
struct ebb_tensor *tensor_to_use(PyObject *object);
/* A copy, row-major, that can be exported without another. NULL with ebb's error. */
struct ebb_tensor *tensor_copied(ebb_region region, const struct ebb_tensor *tensor);
/* Makes a new tensor, whose elements are its own, one that can be exported. NULL gives NULL, with
 * ebb's error. */
struct ebb_tensor *tensor_settle(ebb_region region, struct ebb_tensor *tensor);
/* A tensor that can be exported without a copy, however small. NULL with ebb's error. */
struct ebb_tensor *tensor_make(ebb_region region, struct ebb_dtype dtype, int ndim,
                               const int64_t *shape);

/* ---- exchange.c ---- */

/* Tensor.__dlpack__(), with keywords. */
PyObject *exchange_export(PyObject *self, PyObject *arguments, PyObject *keywords);
/* What torch._C._from_dlpack() takes: bool as uint8 if `plain_bool`. */
PyObject *exchange_capsule(PyObject *tensor, bool plain_bool);
/* What is exported of a Tensor, and how. Where a copy is needed in a region whose tensors stay,
 * that is a tensor, too: a batch that is written there may name it when the export is over. */
struct exported {
    struct ebb_tensor *tensor, *copy; /* the second is the first, or NULL */
    enum ebb_exchange_mode mode;
};
/* Of a Tensor and what tensor_to_use() said of it. Asks nobody for anything: that stays what it is.
 * 0, or -1 with an exception. */
int exchange_choose(PyObject *object, struct ebb_tensor *tensor, enum ebb_exchange_mode mode,
                    struct exported *exported);
/* It could not be exported: NULL, with ebb's error. */
void *exchange_refuse(const struct exported *exported);
/* Region.tensor(object, copy=None): anything that has elements. */
PyObject *exchange_import(PyObject *self, PyObject *arguments, PyObject *keywords);
/* The same for functions that only read: a head for as long as they do. */
struct borrowed {
    struct ebb_tensor *tensor;
    struct region *region; /* of the head: the reader's, or that of a tensor of ebb's; held */
    uint64_t epoch;        /* of that region: in another one the head has ended */
    struct loan *loan;     /* that the elements are of, held; or NULL */
};
/* 0, or -1 with an exception. */
int exchange_borrow(struct region *region, PyObject *object, struct borrowed *borrowed);
/* False with an exception: because of what was asked later the region has ended, or the elements
 * are gone. Runs nothing of the program's, as loan_check(). */
bool exchange_stays(const struct borrowed *borrowed);
/* Who lent the elements gets them back, and may do anything then. */
void exchange_give_back(struct borrowed *borrowed);
/* A capsule of an old struct that deletes it if nobody takes it. Deletes it on failure. */
PyObject *exchange_wrap(struct DLManagedTensor *managed);

/* ---- sequence.c ---- */

PyObject *sequence_stack(PyObject *self, PyObject *sequence);
PyObject *sequence_pad(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *sequence_pack(PyObject *self, PyObject *arguments, PyObject *keywords);

/* ---- step.c ---- */

int step_add(PyObject *module);
/* Enters or leaves the scope of the step that the region is, if it is one, has one and has not
 * ended; whoever leaves a region to end it leaves that first. -1 with an exception: it is another
 * thread's, which is still to end it; nothing has changed. */
int step_change_scope(PyObject *region, bool enters);
PyObject *step_is_scope_served(PyObject *module, PyObject *none);
extern const char step_is_scope_served_doc[];

/* ---- library.c ---- */

/* What is looked up in torch and numpy once, when first needed. Each NULL if it is not loaded. */
struct torch_names {
    PyObject *tensor;                       /* the class */
    PyObject *data_ptr, *stride, *is_contiguous, *is_neg, *is_conj, *view; /* its methods */
    PyObject *detach, *has_names, *storage; /* three more */
    PyObject *storage_class, *storage_first, *storage_bytes; /* of untyped storages, two methods */
    PyObject *from_dlpack, *strided;
    PyObject *plainly;                      /* a method's call, as if there were no subclasses */
    PyObject *dtypes[16];                   /* beside those of dtype.c, in its order */
    PyObject *bool_type;
};
extern struct torch_names torch_names;
extern PyObject *numpy_array; /* numpy.ndarray */

/* Looks which of them the program has loaded. Nothing is imported. */
int library_find(void);

/* Whether it is a tensor of torch, an array of numpy. False if there is no such class. Proxies are
 * none: they do not keep what is behind them. */
bool library_is_tensor(PyObject *object);
bool library_is_array(PyObject *object);
/* What numpy says an array's elements are, whatever its class says. NULL: exception. */
PyObject *library_dtype(PyObject *array);
/* Whether an array is of a class that has a __dlpack__ of its own. */
bool library_has_own_dlpack(PyObject *array);
/* Whether an array is one of numpy.ma. */
bool library_is_masked(PyObject *array);
/* Whether it is a scalar of numpy whose dtype has no name here, as a date. 1, 0, or -1. */
int library_is_odd_scalar(PyObject *object);

/* Where the elements of somebody's tensor lie. Filled field by field, read once. */
struct description {
    void *data;
    struct ebb_dtype dtype;
    size_t item_bytes;   /* of one element; structured ones of numpy have no dtype here */
    bool read_only, contiguous;
    int ndim;
    int64_t count;       /* of elements */
    int64_t shape[EBB_DIMENSIONS_MAX];
    int64_t strides[EBB_DIMENSIONS_MAX]; /* in elements */
    const char *refused; /* what it is that is not described */
};

/* Fills in `count`. Where one size is 0 the others may be anything. False: more elements than there
 * are numbers, or a size that is none. */
bool library_count_elements(struct description *to);
/* 1: described; 0: of a kind that has no plain elements in host memory, which `refused` says, or
 * more dimensions than ebb has; -1: exception. */
int library_describe_torch(PyObject *tensor, struct description *to);
/* What a method of torch's has for the tensor alone, whatever its class would make of it. */
PyObject *library_call(PyObject *method, PyObject *tensor);
/* torch's storage of the tensor. New reference; NULL with an exception. */
PyObject *library_storage(PyObject *tensor);
/* Whether its dimensions have names, which are no part of its elements. 1, 0, or -1. */
int library_has_names(PyObject *tensor);
/* The same; the dtype is there in both cases, without lanes if the elements are none of ebb's. */
int library_describe_numpy(PyObject *array, struct description *to);
/* What the array is a view of, or None. New reference; NULL with an exception. */
PyObject *library_base(PyObject *array);

/* ---- loan.c ---- */

/* How elements come in, and what whoever keeps them is to know. */
struct intake {
    struct region *region;
    uint64_t epoch;    /* of the region when it was asked for: in another one nothing comes in. To
                        * be looked at after all questions: who is asked may do anything */
    enum ebb_exchange_mode mode;
    bool is_short;     /* for the length of a call, whose user looks at the loan before he reads */
    const void *first; /* where they began; if they do no more, they were copied */
    struct loan *loan; /* that they are of, held; or NULL */
};

/* A tensor of what is described of the object, which is kept until libebb gives the elements back.
 * NULL with an exception. */
struct ebb_tensor *loan_make(struct intake *intake, PyObject *object,
                             const struct description *what);
/* One more refers to the loan, and one less. NULL is none. */
struct loan *loan_hold(struct loan *loan);
void loan_drop(struct loan *loan);
/* 0 if the elements are still where they were, or have been given back; -1 with an exception. Runs
 * nothing of the program's: what was true of another loan is true still. */
int loan_check(const struct loan *loan);
/* The tensor of torch, or array of numpy, that lends them now; borrowed. NULL: none does, or there
 * are none. */
PyObject *loan_object(const struct loan *loan);

/* ---- names that are looked up often ---- */

extern struct names {
    PyObject *dtype, *shape, *layout, *is_cpu, *is_nested, *requires_grad, *hasobject, *close;
} names;

#endif
