// SPDX-License-Identifier: Apache-2.0
/*
 * promoted_imports.c - imports that were promoted: the loan hangs in the region that they went to,
 * wherever the block of their head came to lie there, and no byte of a head is for elements.
 */
#include "kit/dlpack.h"

enum { IMPORTS = 1000, ELEMENTS = 2048 };

static _Alignas(EBB_STORAGE_ALIGN) char elements[ELEMENTS]; /* of all imports */
static int64_t shape[EBB_DIMENSIONS_MAX];
static int given_back;

static void take_back(DLManagedTensor *self) {
    (void)self;
    given_back++;
}

static void *import(ebb_region region, DLManagedTensor *managed, int ndim) {
    for (int i = 0; i < ndim; i++)
        shape[i] = i + 1 < ndim ? 1 : ELEMENTS;
    *managed = (DLManagedTensor){.dl_tensor = {.data = elements, .device = {kDLCPU, 0},
                                               .ndim = ndim, .dtype = {kDLUInt, 8, 1},
                                               .shape = shape},
                                 .deleter = take_back};
    struct ebb_tensor *tensor = ebb_tensor_import(region, managed, EBB_EXCHANGE_SHARE);
    assert_non_null(tensor);
    assert_ptr_equal(tensor->data, elements);
    return tensor;
}

/* The storage of an import may lie in another KiB than its block begins in, which says nothing of
 * it: the first time that pages are used, or whatever was true of them before. */
static void a_producer_has_bytes_back_with_the_region_they_were_promoted_to(void **state) {
    struct stage *stage = *state;
    static DLManagedTensor managed;
    for (size_t before = 1792; before > 1024; before -= 64)
        for (int ndim = EBB_DIMENSIONS_MAX; ndim > 0; ndim--) {
            ebb_region to = OPEN(.pool = stage->pool), from = OPEN(.parent = to);
            given_back = 0;
            block_of(to, before, 64);
            void *tensor = import(from, &managed, ndim);
            assert_int_equal(ebb_objects_promote(from, to, &tensor, 1, NULL, NULL), 0);
            assert_int_equal(ebb_region_close(from), 0);
            assert_int_equal(given_back, 0);
            assert_int_equal(ebb_region_close(to), 0);
            assert_int_equal(given_back, 1);
        }
}

static void a_promoted_import_takes_what_its_head_does(void **state) {
    struct stage *stage = *state;
    static DLManagedTensor managed[IMPORTS];
    ebb_region from = OPEN(.parent = stage->root);
    void *tensors[IMPORTS];
    given_back = 0;
    for (size_t i = 0; i < IMPORTS; i++)
        tensors[i] = import(from, &managed[i], 1);
    size_t used = stats_of(from).used.current;
    assert_int_equal(ebb_objects_promote(from, stage->root, tensors, IMPORTS, NULL, NULL), 0);
    assert_int_equal(stats_of(stage->root).used.current, used);
    assert_int_equal(stats_of(stage->root).large_blocks, 0);
    assert_int_equal(ebb_region_close(from), 0);
    assert_int_equal(ebb_region_close(stage->root), 0);
    assert_int_equal(given_back, IMPORTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_producer_has_bytes_back_with_the_region_they_were_promoted_to),
        STAGED(a_promoted_import_takes_what_its_head_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
