// SPDX-License-Identifier: Apache-2.0
/*
 * copied_imports.c - producers whose bytes are copied have them back before the copy is returned:
 * whatever their deleters do, it is there then.
 */
#include "kit/dlpack.h"
#include "kit/tensors.h"

enum { ELEMENTS = 4 };

/* What the deleter does, and what came of it. */
static struct {
    ebb_pool *pool;
    ebb_region region;
    ebb_mark mark;
    int (*asks)(void);
    int calls, result;
} act;

static int end_all(void) {
    void *object[2];
    assert_int_equal(ebb_region_list_objects(act.region, object, 2), 1);
    return ebb_object_end(object[0]);
}

static int end_none_but_others(void) {
    void *object[2];
    assert_int_equal(ebb_region_list_objects(act.region, object, 2), 1);
    return ebb_objects_end_but(act.region, object, 1);
}

static int close_region(void) {
    return ebb_region_close(act.region);
}

static int reset_region(void) {
    return ebb_region_reset(act.region, 0);
}

static int rewind_region(void) {
    return ebb_region_rewind(act.region, act.mark);
}

static void take_back(DLManagedTensor *self) {
    int32_t *values = self->dl_tensor.data;
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = -1;
    act.calls++;
    act.result = act.asks();
    assert_int_equal(ebb_check_pool(act.pool), 0);
}

static struct ebb_tensor *import(ebb_region region, enum ebb_exchange_mode mode) {
    static int64_t shape[] = {ELEMENTS}, backwards[] = {-1};
    static int32_t values[ELEMENTS];
    static DLManagedTensor managed = {.deleter = take_back};
    bool turned = mode == EBB_EXCHANGE_IF_NEEDED;
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = turned ? ELEMENTS - 1 - i : i;
    managed.dl_tensor = (DLTensor){.data = values, .device = {kDLCPU, 0}, .ndim = 1,
                                   .dtype = {kDLInt, 32, 1}, .shape = shape,
                                   .strides = turned ? backwards : NULL,
                                   .byte_offset = turned ? (ELEMENTS - 1) * sizeof *values : 0};
    return ebb_tensor_import(region, &managed, mode);
}

static void a_copy_is_there_whatever_its_producer_does(void **state) {
    static int (*const asks[])(void) = {close_region, reset_region, rewind_region, end_all,
                                        end_none_but_others};
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        for (int needed = 0; needed < 2; needed++) {
            memset(&act, 0, sizeof act);
            act.pool = stage->pool;
            act.region = OPEN(.parent = stage->root);
            act.mark = ebb_region_mark(act.region);
            act.asks = asks[i];
            struct ebb_tensor *copy =
                import(act.region, needed ? EBB_EXCHANGE_IF_NEEDED : EBB_EXCHANGE_COPY);
            assert_int_equal(act.calls, 1);
            assert_int_equal(act.result, EBB_E_BUSY);
            ASSERT_ELEMENTS(copy, 0, 1, 2, 3);
            assert_int_equal(ebb_check_pool(stage->pool), 0);
            assert_int_equal(ebb_object_end(copy), 0);
            assert_int_equal(ebb_region_close_strict(act.region), 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_copy_is_there_whatever_its_producer_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
