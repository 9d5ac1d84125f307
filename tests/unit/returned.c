// SPDX-License-Identifier: Apache-2.0
/*
 * returned.c - imported bytes that their producer has back, while tensors of them are there: the
 * cleanups of a region that closes run newest first, and those that are older than an import find
 * it so. Whatever reads or writes elements says no then, wherever the tensor is a member.
 *
 * The bytes are freed at once, so whoever looked at them all the same is told by AddressSanitizer.
 */
#include "kit/dlpack.h"
#include "kit/tensors.h"

#include <stdlib.h>

enum { SEQUENCES = 3, ROWS = 6 };

/* Everything of the region that closes is made of imports; `keep` stays open. */
static struct {
    ebb_region keep;
    struct ebb_tensor *rows, *again, *own; /* of which the last is none */
    struct ebb_tensor *padded, *order;
    struct ebb_packed *packed;
    struct ebb_ragged *ragged;
    struct ebb_sample *boxes;
} world;

static void free_bytes(DLManagedTensor *self) {
    free(self->dl_tensor.data);
    free(self);
}

static struct ebb_tensor *import(ebb_region region, struct ebb_dtype dtype, int ndim,
                                 const int64_t *shape, const void *values) {
    size_t numbers = sizeof *shape * (size_t)ndim, bytes = ebb_dtype_bytes(dtype);
    DLManagedTensor *managed = calloc(1, sizeof *managed + numbers);
    assert_non_null(managed);
    int64_t *sizes = (int64_t *)(void *)(managed + 1);
    memcpy(sizes, shape, numbers);
    for (int i = 0; i < ndim; i++)
        bytes *= (size_t)shape[i];
    void *data = malloc(bytes);
    assert_non_null(data);
    memcpy(data, values, bytes);
    managed->deleter = free_bytes;
    managed->dl_tensor =
        (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = ndim,
                   .dtype = {dtype.code, dtype.bits, dtype.lanes}, .shape = sizes};
    struct ebb_tensor *tensor = ebb_tensor_import(region, managed, EBB_EXCHANGE_SHARE);
    assert_non_null(tensor);
    return tensor;
}

/* Three sequences of 3, 2 and 1 rows. */
static const int32_t values[ROWS] = {1, 4, 6, 2, 5, 3};
static const int64_t lengths[SEQUENCES] = {3, 2, 1}, offsets[SEQUENCES + 1] = {0, 3, 5, 6};
static const int64_t order[SEQUENCES] = {2, 0, 1};

static struct ebb_sample *boxes_of(ebb_region region) {
    static const float corners[4 * ROWS];
    static const int64_t canvases[2 * SEQUENCES] = {9, 9, 9, 9, 9, 9};
    struct ebb_sample *sample = ebb_object_new(region, &ebb_type_sample, 0);
    assert_non_null(sample);
    sample->kind = EBB_SAMPLE_BOXES;
    sample->format = EBB_BOX_XYXY;
    sample->clamping = EBB_CLAMP_SOFT;
    sample->data = import(region, FLOAT32, SHAPE(ROWS, 4), corners);
    sample->offsets = import(region, INT64, SHAPE(SEQUENCES + 1), offsets);
    sample->canvases = import(region, INT64, SHAPE(SEQUENCES, 2), canvases);
    assert_int_equal(ebb_object_compose(sample), 0);
    return sample;
}

static void import_all(ebb_region region) {
    world.rows = import(region, INT32, SHAPE(ROWS), values);
    world.again = import(region, INT32, SHAPE(ROWS), values);
    world.padded = import(region, INT32, SHAPE(2, 3), values);
    world.order = import(region, INT64, SHAPE(SEQUENCES), order);
    world.packed = ebb_packed_from(region, import(region, INT32, SHAPE(ROWS), values),
                                   import(region, INT64, SHAPE(SEQUENCES), lengths),
                                   import(region, INT64, SHAPE(SEQUENCES), order), NULL);
    world.ragged = ebb_ragged_from(region, import(region, INT32, SHAPE(ROWS), values),
                                   import(region, INT64, SHAPE(SEQUENCES + 1), offsets));
    world.boxes = boxes_of(region);
    assert_true(world.packed && world.ragged);
}

/* ---- one call each; 0 or its error */

static int error_of(const void *result) {
    return result ? 0 : ebb_last_error();
}

static int copy_from(void) {
    return ebb_tensor_copy(world.own, world.rows);
}

static int copy_to(void) {
    return ebb_tensor_copy(world.rows, world.own);
}

static int fill(void) {
    return ebb_tensor_fill(world.rows, ebb_value_int(1));
}

static int make_contiguous(void) {
    return error_of(ebb_tensor_contiguous(world.keep, world.rows));
}

static int convert(void) {
    return error_of(ebb_tensor_convert(world.keep, world.rows, INT64));
}

static int make_alias(void) {
    struct ebb_alias alias = {.size = sizeof alias, .fall_back = true};
    return error_of(ebb_tensor_alias(ebb_object_owner(world.rows), world.rows, INT32,
                                     SHAPE(ROWS), &alias));
}

static int export(void) {
    return error_of(ebb_tensor_export(world.rows, EBB_EXCHANGE_COPY));
}

static int promote(void) {
    void *list[] = {world.packed};
    return ebb_objects_promote(ebb_object_owner(world.packed), world.keep, list, 1, NULL, NULL);
}

static int pack_list(void) {
    return error_of(ebb_sequences_pack(world.keep, &world.rows, 1, NULL));
}

static int join_list(void) {
    return error_of(ebb_sequences_join(world.keep, &world.rows, 1));
}

static int pad_list(void) {
    return error_of(ebb_sequences_pad(world.keep, &world.rows, 1, NULL));
}

static int pack_padded(void) {
    return error_of(ebb_padded_pack(world.keep, world.padded, (int64_t[]){2, 1, 1}, 3, NULL));
}

static int join_padded(void) {
    return error_of(ebb_padded_join(world.keep, world.padded, (int64_t[]){2, 1, 1}, 3, NULL));
}

static int unpad(void) {
    struct ebb_tensor *list[SEQUENCES];
    return ebb_padded_unpad(world.keep, world.padded, (int64_t[]){2, 1, 1}, 3, NULL, list);
}

static int pad_packed(void) {
    return error_of(ebb_packed_pad(world.keep, world.packed, NULL));
}

static int unpack(void) {
    struct ebb_tensor *list[SEQUENCES];
    return ebb_packed_unpack(world.keep, world.packed, list, SEQUENCES);
}

static int read_lengths(void) {
    int64_t read[SEQUENCES];
    return ebb_packed_read_lengths(world.packed, read, SEQUENCES);
}

static int join_packed(void) {
    return error_of(ebb_packed_join(world.keep, world.packed));
}

static int pad_ragged(void) {
    return error_of(ebb_ragged_pad(world.keep, world.ragged, NULL));
}

static int split(void) {
    struct ebb_tensor *list[SEQUENCES];
    return ebb_ragged_split(world.keep, world.ragged, list, SEQUENCES);
}

static int pack_ragged(void) {
    return error_of(ebb_ragged_pack(world.keep, world.ragged, NULL));
}

static int invert(void) {
    return error_of(ebb_permutation_invert(world.keep, world.order));
}

static int compose_packed(void) {
    return ebb_object_compose(world.packed);
}

static int compose_ragged(void) {
    return ebb_object_compose(world.ragged);
}

static int compose_sample(void) {
    return ebb_object_compose(world.boxes);
}

/* The data of a packed sequence is field 0; its batch sizes are read when it changes. */
static int replace_data(void) {
    return ebb_object_replace(world.packed, 0, world.own);
}

static int compare_tensors(void) {
    return error_of((void *)ebb_batch_equal(world.rows, world.again));
}

static int compare_with_own(void) {
    return error_of((void *)ebb_batch_equal(world.own, world.rows));
}

static int take_row(void) {
    return error_of(ebb_sample_row(ebb_object_owner(world.boxes), world.boxes, 1));
}

static int wrap_like(void) {
    ebb_region region = ebb_object_owner(world.boxes);
    struct ebb_tensor *tensor = ebb_tensor_new_zeroed(region, FLOAT32, SHAPE(ROWS, 4));
    return error_of(ebb_sample_wrap(region, tensor, world.boxes, NULL));
}

static int collate(void) {
    void *samples[] = {world.own, world.rows};
    return error_of(ebb_batch_collate(world.keep, samples, 2, NULL, NULL));
}

#define CALL(function) {#function, function}

static const struct {
    const char *name;
    int (*call)(void);
} calls[] = {
    CALL(copy_from),       CALL(copy_to),          CALL(fill),           CALL(make_contiguous),
    CALL(convert),         CALL(make_alias),       CALL(export),         CALL(promote),
    CALL(pack_list),       CALL(join_list),        CALL(pad_list),       CALL(pack_padded),
    CALL(join_padded),     CALL(unpad),            CALL(pad_packed),     CALL(unpack),
    CALL(read_lengths),    CALL(join_packed),      CALL(pad_ragged),     CALL(split),
    CALL(pack_ragged),     CALL(invert),           CALL(compose_packed), CALL(compose_ragged),
    CALL(compose_sample),  CALL(replace_data),     CALL(compare_tensors), CALL(compare_with_own),
    CALL(take_row),        CALL(wrap_like),        CALL(collate),
};

enum { CALLS = sizeof calls / sizeof *calls };

static int results[CALLS];

static int call_all(void *data) {
    for (size_t i = 0; i < CALLS; i++)
        results[i] = calls[i].call();
    return 0;
}

/* ---- tests */

static void elements_that_went_back_are_neither_read_nor_written(void **state) {
    struct stage *stage = *state;
    struct ebb_cleanup older = {.run = call_all};
    ebb_region region = OPEN(.parent = stage->root);
    assert_int_equal(ebb_cleanup_add(region, &older), 0);
    world.keep = stage->root;
    world.own = ebb_tensor_from(region, INT32, SHAPE(ROWS), values);
    import_all(region);
    uint64_t blocks = stats_of(stage->root).blocks.current;
    assert_int_equal(ebb_region_close(region), 0);
    for (size_t i = 0; i < CALLS; i++)
        if (results[i] != EBB_E_RELEASED)
            fail_msg("%s: %s", calls[i].name, results[i] ? ebb_error_name(results[i]) : "done");
    assert_int_equal(stats_of(stage->root).blocks.current, blocks);
}

/* So the calls are right, and what says no is what this is about. */
static void the_same_calls_work_before(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < CALLS; i++) {
        ebb_region region = OPEN(.parent = stage->root);
        world.keep = stage->root;
        world.own = ebb_tensor_from(region, INT32, SHAPE(ROWS), values);
        import_all(region);
        if (calls[i].call == export)
            give_back(ebb_tensor_export(world.rows, EBB_EXCHANGE_COPY));
        else if (calls[i].call() != 0)
            fail_msg("%s: %s", calls[i].name, ebb_last_error_text());
        assert_int_equal(ebb_region_close(region), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(elements_that_went_back_are_neither_read_nor_written),
        STAGED(the_same_calls_work_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
