// SPDX-License-Identifier: Apache-2.0
/*
 * exchange.c - tensors go to consumers and come from producers while regions are open: what the
 * structs say, who sees a storage, when a producer has its struct back.
 */
#include "kit/dlpack.h"

#include <stdlib.h>

/* ---- exports ---- */

static void an_export_says_what_the_tensor_is(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor =
        ebb_tensor_new(stage->root, float32, 3, (int64_t[]){2, 50, 7});
    DLManagedTensor *managed = share(tensor);
    const DLTensor *seen = &managed->dl_tensor;
    assert_ptr_equal(seen->data, tensor->data);
    assert_int_equal((uintptr_t)seen->data % EBB_STORAGE_ALIGN, 0);
    assert_int_equal(seen->byte_offset, 0);
    assert_int_equal(seen->device.device_type, kDLCPU);
    assert_int_equal(seen->device.device_id, 0);
    assert_int_equal(seen->ndim, 3);
    assert_int_equal(seen->dtype.code, kDLFloat);
    assert_int_equal(seen->dtype.bits, 32);
    assert_int_equal(seen->dtype.lanes, 1);
    assert_memory_equal(seen->shape, ((int64_t[]){2, 50, 7}), 24);
    assert_memory_equal(seen->strides, ((int64_t[]){350, 7, 1}), 24);
    assert_ptr_not_equal(seen->shape, tensor->shape); /* the struct outlives the tensor */
    give_back(managed);
}

static void a_versioned_export_says_its_version_and_whether_it_is_a_copy(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor = tensor_of_bytes(stage->root, 5000);
    DLManagedTensorVersioned *shared =
        ebb_tensor_export_versioned(tensor, EBB_EXCHANGE_IF_NEEDED);
    DLManagedTensorVersioned *copied = ebb_tensor_export_versioned(tensor, EBB_EXCHANGE_COPY);
    assert_true(shared && copied);
    assert_int_equal(shared->version.major, 1);
    assert_int_equal(shared->version.minor, 0);
    assert_int_equal(shared->flags, 0);
    assert_int_equal(copied->flags, DLPACK_COPIED);
    assert_ptr_equal(shared->dl_tensor.data, tensor->data);
    assert_ptr_not_equal(copied->dl_tensor.data, tensor->data);
    assert_true(pattern_holds(copied->dl_tensor.data, 5000, 5000));
    shared->deleter(shared);
    copied->deleter(copied);
    assert_int_equal(ebb_region_count_exports(stage->root), 0);
}

static void an_export_sees_the_storage_as_a_tensor_does(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor = tensor_of_bytes(stage->root, 5000);
    struct ebb_storage *storage = tensor->storage;
    DLManagedTensor *first = share(tensor), *second = share(tensor);
    assert_int_equal(storage->tensors, 3);
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(storage->tensors, 2);
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
    give_back(first);
    assert_int_equal(ebb_region_count_exports(stage->root), 1);
    assert_true(export_holds(second));
    give_back(second);
    assert_int_equal(ebb_region_count_exports(stage->root), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

static void exports_are_counted_where_their_bytes_are(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct ebb_tensor *base = tensor_of_bytes(stage->root, 20000);
    struct ebb_tensor *view = ebb_tensor_view(inner, base, 1, base->shape, base->strides, 0);
    DLManagedTensor *shared = share(view), *copied = ebb_tensor_export(view, EBB_EXCHANGE_COPY);
    assert_int_equal(ebb_region_count_exports(stage->root), 1);
    assert_int_equal(ebb_region_count_exports(inner), 1);
    give_back(shared);
    assert_int_equal(ebb_region_count_exports(stage->root), 0);
    give_back(copied);
}

static void the_end_of_a_tensor_notices_what_was_given_back(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor = tensor_of_bytes(stage->root, 5000);
    give_back(share(tensor));
    give_back(share(tensor));
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

/* Nobody asks for it, yet the structs of exports that were given back do not pile up. */
static void exporting_notices_what_was_given_back(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < 5000; i++) {
        struct ebb_tensor *tensor = tensor_of_bytes(stage->root, 5000);
        DLManagedTensor *managed = share(tensor);
        assert_int_equal(ebb_object_end(tensor), 0);
        give_back(managed);
    }
    assert_true(stats_of(stage->root).blocks.peak <= 20);
}

static void a_second_call_of_the_deleter_does_nothing(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor = tensor_of_bytes(stage->root, 5000);
    DLManagedTensor *twice = share(tensor), *other = share(tensor);
    give_back(twice);
    give_back(twice);
    twice->deleter(NULL);
    assert_int_equal(ebb_region_count_exports(stage->root), 1);
    assert_int_equal(tensor->storage->tensors, 2);
    assert_true(export_holds(other));
    give_back(other);
}

static void an_export_of_nothing_holds_nothing(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor = ebb_tensor_new(stage->root, float32, 2, (int64_t[]){3, 0});
    for (int mode = EBB_EXCHANGE_SHARE; mode <= EBB_EXCHANGE_COPY; mode++) {
        DLManagedTensor *managed = ebb_tensor_export(tensor, (enum ebb_exchange_mode)mode);
        assert_non_null(managed);
        assert_null(managed->dl_tensor.data);
        assert_int_equal(managed->dl_tensor.shape[0], 3);
        assert_int_equal(managed->dl_tensor.shape[1], 0);
        assert_int_equal(tensor->storage->tensors, 1);
        assert_int_equal(ebb_region_count_exports(stage->root), 0);
        give_back(managed);
    }
}

static void a_scalar_is_exported_without_dimensions(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor = ebb_tensor_new(stage->root, float32, 0, NULL);
    *(float *)tensor->data = 42;
    DLManagedTensor *managed = ebb_tensor_export(tensor, EBB_EXCHANGE_IF_NEEDED);
    assert_non_null(managed);
    assert_int_equal(managed->dl_tensor.ndim, 0);
    assert_true(*(float *)managed->dl_tensor.data == 42);
    give_back(managed);
}

static void views_are_exported_with_their_strides(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = ebb_tensor_new(stage->root, float32, 2, (int64_t[]){64, 64});
    struct ebb_tensor *turned = ebb_tensor_view(stage->root, base, 2, (int64_t[]){64, 64},
                                                (int64_t[]){1, 64}, 0);
    struct ebb_tensor *rows = ebb_tensor_view(stage->root, base, 2, (int64_t[]){10, 64},
                                              (int64_t[]){64, 1}, 64 * 3);
    struct ebb_tensor *spread = ebb_tensor_view(stage->root, base, 2, (int64_t[]){5, 64},
                                                (int64_t[]){0, 1}, 0);
    DLManagedTensor *a = share(turned), *b = share(rows), *c = share(spread);
    assert_memory_equal(a->dl_tensor.strides, ((int64_t[]){1, 64}), 16);
    assert_ptr_equal(b->dl_tensor.data, (float *)base->data + 64 * 3);
    assert_memory_equal(c->dl_tensor.strides, ((int64_t[]){0, 1}), 16);
    assert_int_equal(base->storage->tensors, 7);
    give_back(a), give_back(b), give_back(c);
}

/* Every one of these would be misread by somebody, or may be. */
static void what_needs_a_copy_is_refused_or_copied(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = tensor_of_bytes(stage->root, 5000);
    struct ebb_tensor *off = ebb_tensor_view(stage->root, base, 1, (int64_t[]){100},
                                             (int64_t[]){2}, 64);
    struct ebb_tensor *small = tensor_of_bytes(stage->root, 100);
    struct ebb_region_stats before = stats_of(stage->root), after;
    assert_no_block(ebb_tensor_export(off, EBB_EXCHANGE_SHARE), EBB_E_EXCHANGE);
    assert_text_names("100 bytes");
    assert_text_names("256");
    assert_no_block(ebb_tensor_export(small, EBB_EXCHANGE_SHARE), EBB_E_EXCHANGE);
    assert_text_names("small block");
    after = stats_of(stage->root);
    assert_memory_equal(&before, &after, sizeof before);
    DLManagedTensor *copy = ebb_tensor_export(off, EBB_EXCHANGE_IF_NEEDED);
    assert_non_null(copy);
    assert_int_equal((uintptr_t)copy->dl_tensor.data % EBB_STORAGE_ALIGN, 0);
    assert_int_equal(copy->dl_tensor.strides[0], 1);
    for (int i = 0; i < 100; i++)
        assert_int_equal(((uint8_t *)copy->dl_tensor.data)[i],
                         ((uint8_t *)base->data)[64 + 2 * i]);
    assert_int_equal(base->storage->tensors, 2); /* a copy sees nothing */
    give_back(copy);
    assert_int_equal(ebb_region_count_exports(stage->root), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, before.blocks.current);
}

/* Elements of any view arrive in a copy as counting them one by one gives them. */
static void copies_hold_the_elements_of_any_view(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = ebb_tensor_new(stage->root, float32, 1, (int64_t[]){4096});
    float *values = base->data;
    for (int i = 0; i < 4096; i++)
        values[i] = (float)i;
    for (unsigned seed = 1; seed < 300; seed++) {
        int64_t shape[3] = {1 + seed % 7, 1 + seed / 7 % 5, 1 + seed / 35 % 9};
        int64_t strides[3] = {seed * 37 % 90, seed * 11 % 70, seed * 5 % 50};
        struct ebb_tensor *view =
            ebb_tensor_view(stage->root, base, 3, shape, strides, seed);
        DLManagedTensor *copy = ebb_tensor_export(view, EBB_EXCHANGE_COPY);
        assert_true(view && copy);
        const float *at = copy->dl_tensor.data;
        for (int64_t i = 0; i < shape[0]; i++)
            for (int64_t j = 0; j < shape[1]; j++)
                for (int64_t k = 0; k < shape[2]; k++)
                    assert_true(*at++ == (float)(seed + i * strides[0] + j * strides[1] +
                                                 k * strides[2]));
        give_back(copy);
        assert_int_equal(ebb_object_end(view), 0);
    }
}

/* ---- imports ---- */

/* Static in the tests: it must be there until the stage closes. */
struct producer {
    DLManagedTensor plain;
    DLManagedTensorVersioned versioned;
    int64_t shape[2], strides[2];
    _Alignas(64) float values[64];
    int given_back;
};

static void take_plain_back(DLManagedTensor *self) {
    ((struct producer *)self->manager_ctx)->given_back++;
}

static void take_versioned_back(DLManagedTensorVersioned *self) {
    ((struct producer *)self->manager_ctx)->given_back++;
}

/* 8 rows of 4 out of 8 columns. */
static struct producer *produce(struct producer *producer) {
    memset(producer, 0, sizeof *producer);
    for (int i = 0; i < 64; i++)
        producer->values[i] = (float)i;
    producer->shape[0] = 8, producer->shape[1] = 4;
    producer->strides[0] = 8, producer->strides[1] = 1;
    producer->plain = (DLManagedTensor){
        .dl_tensor = {.data = producer->values, .device = {kDLCPU, 0}, .ndim = 2,
                      .dtype = {kDLFloat, 32, 1}, .shape = producer->shape,
                      .strides = producer->strides},
        .manager_ctx = producer, .deleter = take_plain_back};
    producer->versioned = (DLManagedTensorVersioned){
        .version = {1, 0}, .manager_ctx = producer, .deleter = take_versioned_back,
        .dl_tensor = producer->plain.dl_tensor};
    return producer;
}

static struct ebb_tensor *import_plain(ebb_region region, struct producer *producer) {
    struct ebb_tensor *tensor =
        ebb_tensor_import(region, &producer->plain, EBB_EXCHANGE_SHARE);
    assert_non_null(tensor);
    return tensor;
}

static void an_import_sees_the_bytes_of_its_producer(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    produce(&producer)->plain.dl_tensor.byte_offset = 16;
    producer.shape[0] = 7;
    struct ebb_tensor *tensor = import_plain(stage->root, &producer);
    assert_ptr_equal(tensor->data, producer.values + 4);
    assert_int_equal(tensor->ndim, 2);
    assert_memory_equal(tensor->shape, ((int64_t[]){7, 4}), 16);
    assert_memory_equal(tensor->strides, ((int64_t[]){8, 1}), 16);
    assert_true(ebb_dtype_equal(tensor->dtype, float32));
    assert_int_equal(tensor->storage->bytes, (6 * 8 + 4) * sizeof(float));
    assert_false(ebb_tensor_is_read_only(tensor));
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(producer.given_back, 1);
}

static void a_producer_has_it_back_with_the_last_view(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    struct ebb_tensor *tensor = import_plain(stage->root, produce(&producer));
    struct ebb_tensor *view = ebb_tensor_view(stage->root, tensor, 1, (int64_t[]){4},
                                              (int64_t[]){1}, 8);
    assert_true(view && *(float *)view->data == 8);
    assert_null(ebb_tensor_view(stage->root, tensor, 1, (int64_t[]){61}, (int64_t[]){1}, 0));
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(producer.given_back, 0);
    assert_int_equal(ebb_object_end(view), 0);
    assert_int_equal(producer.given_back, 1);
    assert_int_equal(ebb_region_reset(stage->root, 0), 0);
    assert_int_equal(producer.given_back, 1);
}

static int close_region(ebb_region region) {
    return ebb_region_close(region);
}

static int reset_region(ebb_region region) {
    return ebb_region_reset(region, 0) || ebb_region_close(region);
}

static void a_producer_has_it_back_when_the_region_ends(void **state) {
    struct stage *stage = *state;
    int (*const ends[])(ebb_region) = {close_region, reset_region};
    for (size_t i = 0; i < 2; i++) {
        struct producer producer;
        ebb_region region = OPEN(.parent = stage->root);
        struct ebb_tensor *tensor = import_plain(region, produce(&producer));
        assert_non_null(ebb_tensor_view(region, tensor, 1, (int64_t[]){4}, (int64_t[]){1}, 0));
        ends[i](region);
        assert_int_equal(producer.given_back, 1);
    }
}

static void a_producer_has_it_back_after_a_rewind(void **state) {
    struct stage *stage = *state;
    static struct producer before, after;
    import_plain(stage->root, produce(&before));
    ebb_mark mark = ebb_region_mark(stage->root);
    import_plain(stage->root, produce(&after));
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    assert_int_equal(before.given_back, 0);
    assert_int_equal(after.given_back, 1);
    assert_int_equal(ebb_region_close(stage->root), 0);
    assert_int_equal(before.given_back, 1);
    assert_int_equal(after.given_back, 1);
}

static void producers_without_a_deleter_are_legal(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    produce(&producer)->plain.deleter = NULL;
    producer.versioned.deleter = NULL;
    assert_int_equal(ebb_object_end(import_plain(stage->root, &producer)), 0);
    assert_int_equal(ebb_object_end(ebb_tensor_import_versioned(
                         stage->root, &producer.versioned, EBB_EXCHANGE_COPY)), 0);
}

static void read_only_stays_visible(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    produce(&producer)->versioned.flags = DLPACK_READ_ONLY;
    struct ebb_tensor *tensor = ebb_tensor_import_versioned(
        stage->root, &producer.versioned, EBB_EXCHANGE_IF_NEEDED);
    assert_true(ebb_tensor_is_read_only(tensor));
    struct ebb_tensor *view = ebb_tensor_view(stage->root, tensor, 1, (int64_t[]){4},
                                              (int64_t[]){1}, 0);
    assert_true(ebb_tensor_is_read_only(view));
    assert_int_equal(ebb_object_end(view), 0);
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(producer.given_back, 1);
    struct ebb_tensor *copy = ebb_tensor_import_versioned(stage->root, &producer.versioned,
                                                          EBB_EXCHANGE_COPY);
    assert_non_null(copy);
    assert_false(ebb_tensor_is_read_only(copy));
    assert_int_equal(producer.given_back, 2);
}

static void what_cannot_be_used_in_place_is_copied_if_asked(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    produce(&producer)->plain.dl_tensor.byte_offset = 7 * 8 * sizeof(float);
    producer.strides[0] = -8;
    struct ebb_tensor *turned =
        ebb_tensor_import(stage->root, &producer.plain, EBB_EXCHANGE_IF_NEEDED);
    assert_non_null(turned);
    assert_int_equal(producer.given_back, 1);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 4; k++)
            assert_true(((float *)turned->data)[i * 4 + k] == (float)((7 - i) * 8 + k));
    produce(&producer)->plain.dl_tensor.data = (char *)producer.values + 2;
    producer.shape[0] = 7;
    struct ebb_tensor *aligned =
        ebb_tensor_import(stage->root, &producer.plain, EBB_EXCHANGE_IF_NEEDED);
    assert_non_null(aligned);
    assert_memory_equal(aligned->data, (char *)producer.values + 2, 16);
    assert_int_equal(producer.given_back, 1);
}

static void packed_elements_get_a_byte_each(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    for (unsigned bits = 1; bits < 8; bits++) {
        unsigned char *bytes = (unsigned char *)produce(&producer)->values;
        memset(bytes, 0, 32);
        for (unsigned i = 0; i < 32 * bits; i++) /* bit by bit, as one long number */
            bytes[i / 8] |= (unsigned char)((i / bits * 5 + 3) >> i % bits & 1) << i % 8;
        producer.plain.dl_tensor.dtype = (DLDataType){kDLUInt, (uint8_t)bits, 1};
        producer.strides[0] = producer.shape[1];
        struct ebb_tensor *tensor =
            ebb_tensor_import(stage->root, &producer.plain, EBB_EXCHANGE_IF_NEEDED);
        assert_non_null(tensor);
        assert_int_equal(producer.given_back, 1);
        assert_int_equal(ebb_tensor_bytes(tensor), 32);
        for (unsigned i = 0; i < 32; i++)
            assert_int_equal(((unsigned char *)tensor->data)[i], (i * 5 + 3) % (1u << bits));
    }
}

static void vectors_that_fill_their_bytes_are_shared(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    produce(&producer)->plain.dl_tensor.dtype = (DLDataType){kDLInt, 4, 2};
    struct ebb_tensor *tensor = import_plain(stage->root, &producer);
    assert_ptr_equal(tensor->data, producer.values);
    assert_int_equal(ebb_tensor_bytes(tensor), 32);
}

/* They may lie at NULL, also where a view of them goes along. */
static void imports_without_elements_have_views_and_are_promoted(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    ebb_region child = ebb_region_open(EBB_REGION_OPTIONS(.parent = stage->root));
    produce(&producer)->plain.dl_tensor.data = NULL;
    producer.shape[0] = 0;
    struct ebb_tensor *tensor = import_plain(child, &producer);
    assert_int_equal(ebb_tensor_count(tensor), 0);
    void *both[] = {tensor, ebb_tensor_transpose(child, tensor, 0, 1)};
    assert_non_null(both[1]);
    assert_int_equal(ebb_objects_promote(child, stage->root, both, 2, NULL, NULL), 0);
    assert_int_equal(ebb_region_close(child), 0);
    assert_int_equal(producer.given_back, 0);
    assert_null(((struct ebb_tensor *)both[1])->data);
    assert_int_equal(ebb_object_end(both[0]), 0);
    assert_int_equal(ebb_object_end(both[1]), 0);
    assert_int_equal(producer.given_back, 1);
}

/* Nothing to copy is a copy, too: the producer has it back at once, and forbids no writes. */
static void a_copy_of_nothing_is_no_loan(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    produce(&producer)->versioned.flags = DLPACK_READ_ONLY;
    producer.shape[1] = 0;
    producer.versioned.dl_tensor.data = NULL;
    struct ebb_tensor *copy = ebb_tensor_import_versioned(stage->root, &producer.versioned,
                                                          EBB_EXCHANGE_COPY);
    assert_non_null(copy);
    assert_int_equal(producer.given_back, 1);
    assert_false(ebb_tensor_is_read_only(copy));
    assert_memory_equal(copy->shape, ((int64_t[]){8, 0}), 16);
    assert_int_equal(ebb_object_end(copy), 0);
    assert_int_equal(producer.given_back, 1);
}

/* A complex number is two numbers to the processor. */
static void complex_elements_are_aligned_to_their_parts(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    produce(&producer)->plain.dl_tensor.dtype = (DLDataType){kDLComplex, 64, 1};
    producer.plain.dl_tensor.byte_offset = sizeof(float);
    producer.shape[0] = 3;
    struct ebb_tensor *tensor = import_plain(stage->root, &producer);
    assert_ptr_equal(tensor->data, producer.values + 1);
}

static void missing_strides_are_row_major_and_idle_ones_do_not_matter(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    produce(&producer)->plain.dl_tensor.strides = NULL;
    struct ebb_tensor *tensor = import_plain(stage->root, &producer);
    assert_memory_equal(tensor->strides, ((int64_t[]){4, 1}), 16);
    assert_true(ebb_tensor_is_contiguous(tensor));
    produce(&producer)->shape[0] = 1;
    producer.strides[0] = INT64_MIN; /* of a dimension that is never stepped along */
    tensor = import_plain(stage->root, &producer);
    assert_memory_equal(tensor->strides, ((int64_t[]){4, 1}), 16);
    produce(&producer)->shape[0] = 0;
    producer.strides[1] = -5;
    producer.plain.dl_tensor.data = NULL;
    tensor = import_plain(stage->root, &producer);
    assert_int_equal(ebb_tensor_count(tensor), 0);
    assert_int_equal(tensor->storage->bytes, 0);
}

static void imports_are_promoted_without_touching_their_bytes(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct ebb_tensor *tensor = import_plain(step, produce(&producer));
    struct ebb_tensor *view = ebb_tensor_view(step, tensor, 1, (int64_t[]){4}, (int64_t[]){1},
                                              16);
    void *objects[] = {tensor};
    assert_refused(ebb_objects_promote(step, stage->root, objects, 1, NULL, NULL), EBB_E_BUSY);
    assert_text_names("1 of the 2 tensors");
    void *both[] = {tensor, view};
    assert_int_equal(ebb_objects_promote(step, stage->root, both, 2, NULL, NULL), 0);
    tensor = both[0], view = both[1];
    assert_int_equal(ebb_region_close(step), 0);
    assert_int_equal(producer.given_back, 0);
    assert_ptr_equal(tensor->data, producer.values);
    assert_ptr_equal(view->data, producer.values + 16);
    assert_ptr_equal(tensor->storage, view->storage);
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(producer.given_back, 0);
    assert_int_equal(ebb_object_end(view), 0);
    assert_int_equal(producer.given_back, 1);
}

/* The last view of imported bytes takes a copy of what it sees along: nobody sees them any more. */
static void a_compact_view_leaves_the_bytes_to_their_producer(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    ebb_region child = OPEN(.parent = stage->root);
    struct ebb_tensor *tensor = import_plain(child, produce(&producer));
    void *view = ebb_tensor_view(child, tensor, 1, (int64_t[]){4}, (int64_t[]){1}, 8);
    struct ebb_own_options compact = {
        .size = sizeof compact, .mode = EBB_PROMOTE_COPY, .compact = true};
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(ebb_objects_promote(child, stage->root, &view, 1, &compact, NULL), 0);
    assert_int_equal(producer.given_back, 1);
    assert_true(*(float *)((struct ebb_tensor *)view)->data == 8);
    for (int i = 0; i < 20; i++) /* where the import was, whose cleanup is gone */
        block_of(child, 256, 16);
    assert_int_equal(ebb_region_close(child), 0);
    assert_int_equal(producer.given_back, 1);
}

static void imports_move_to_another_tree_and_end_there(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    ebb_region other = OPEN(.name = "other", .pool = stage->pool);
    struct ebb_tensor *tensor = import_plain(stage->root, produce(&producer));
    tensor = ebb_object_move(tensor, other);
    assert_non_null(tensor);
    assert_ptr_equal(tensor->data, producer.values);
    assert_int_equal(ebb_region_reset(stage->root, 0), 0);
    assert_int_equal(producer.given_back, 0);
    assert_int_equal(ebb_region_close(other), 0);
    assert_int_equal(producer.given_back, 1);
}

static void taken_imports_are_given_back_once(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    struct ebb_tensor *tensor = ebb_tensor_take(import_plain(stage->root, produce(&producer)));
    assert_non_null(tensor);
    assert_ptr_equal(tensor->data, producer.values);
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(producer.given_back, 1);
}

static void imports_are_exported_by_copy_only(void **state) {
    struct stage *stage = *state;
    static struct producer producer;
    struct ebb_tensor *tensor = import_plain(stage->root, produce(&producer));
    assert_no_block(ebb_tensor_export(tensor, EBB_EXCHANGE_SHARE), EBB_E_EXCHANGE);
    assert_text_names("imported");
    DLManagedTensor *managed = ebb_tensor_export(tensor, EBB_EXCHANGE_IF_NEEDED);
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(producer.given_back, 1);
    memset(producer.values, 0, sizeof producer.values);
    assert_true(((float *)managed->dl_tensor.data)[4] == 8);
    give_back(managed);
}

static void ebb_imports_what_ebb_exported(void **state) {
    struct stage *stage = *state;
    ebb_region from = OPEN(.name = "from", .parent = stage->root), to = OPEN(.name = "to");
    struct ebb_tensor *tensor = tensor_of_bytes(from, 9000);
    struct ebb_tensor *seen = ebb_tensor_import(to, share(tensor), EBB_EXCHANGE_SHARE);
    assert_ptr_equal(seen->data, tensor->data);
    assert_int_equal(ebb_region_close(from), 0);
    assert_true(pattern_holds(seen->data, 9000, 9000));
    assert_true(pool_stats_of(stage->pool).held >= 9000);
    assert_int_equal(ebb_region_close(to), 0);
    assert_int_equal(pool_stats_of(stage->pool).held, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(an_export_says_what_the_tensor_is),
        STAGED(a_versioned_export_says_its_version_and_whether_it_is_a_copy),
        STAGED(an_export_sees_the_storage_as_a_tensor_does),
        STAGED(exports_are_counted_where_their_bytes_are),
        STAGED(the_end_of_a_tensor_notices_what_was_given_back),
        STAGED(exporting_notices_what_was_given_back),
        STAGED(a_second_call_of_the_deleter_does_nothing),
        STAGED(an_export_of_nothing_holds_nothing),
        STAGED(a_scalar_is_exported_without_dimensions),
        STAGED(views_are_exported_with_their_strides),
        STAGED(what_needs_a_copy_is_refused_or_copied),
        STAGED(copies_hold_the_elements_of_any_view),
        STAGED(an_import_sees_the_bytes_of_its_producer),
        STAGED(a_producer_has_it_back_with_the_last_view),
        STAGED(a_producer_has_it_back_when_the_region_ends),
        STAGED(a_producer_has_it_back_after_a_rewind),
        STAGED(producers_without_a_deleter_are_legal),
        STAGED(read_only_stays_visible),
        STAGED(what_cannot_be_used_in_place_is_copied_if_asked),
        STAGED(packed_elements_get_a_byte_each),
        STAGED(vectors_that_fill_their_bytes_are_shared),
        STAGED(imports_without_elements_have_views_and_are_promoted),
        STAGED(a_copy_of_nothing_is_no_loan),
        STAGED(complex_elements_are_aligned_to_their_parts),
        STAGED(missing_strides_are_row_major_and_idle_ones_do_not_matter),
        STAGED(imports_are_promoted_without_touching_their_bytes),
        STAGED(a_compact_view_leaves_the_bytes_to_their_producer),
        STAGED(imports_move_to_another_tree_and_end_there),
        STAGED(taken_imports_are_given_back_once),
        STAGED(imports_are_exported_by_copy_only),
        STAGED(ebb_imports_what_ebb_exported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
