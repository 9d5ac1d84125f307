// SPDX-License-Identifier: Apache-2.0
/* elements.c - what is sent can be opened, of whatever type its elements are and wherever they lay:
 * they are as well aligned where they arrive. */
#include "handoff/post.h"
#include "kit/dlpack.h"
#include "kit/tensors.h"

#include <ebb/alias.h>
#include <ebb/sequence.h>
#include <ebb/view.h>

static _Alignas(64) float foreign[400];

/* Foreign elements that begin four bytes behind a multiple of the alignment. */
static struct ebb_tensor *import_askew(ebb_region region, int64_t count) {
    static int64_t shape;
    static DLManagedTensor managed;
    shape = count;
    managed = (DLManagedTensor){.dl_tensor = {.data = foreign + 1,
                                              .device = {kDLCPU, 0},
                                              .ndim = 1,
                                              .dtype = {kDLFloat, 32, 1},
                                              .shape = &shape}};
    for (int i = 0; i < 400; i++)
        foreign[i] = (float)i;
    struct ebb_tensor *tensor = ebb_tensor_import(region, &managed, EBB_EXCHANGE_SHARE);
    assert_non_null(tensor);
    return tensor;
}

/* What lies behind the first elements of a tensor, as elements of another type. */
static struct ebb_tensor *alias_behind(ebb_region region, struct ebb_tensor *tensor, int64_t first,
                                       struct ebb_dtype dtype, int64_t count) {
    struct ebb_alias alias = {.size = sizeof alias, .shared = true};
    const struct ebb_slice slice = {.start = first, .stop = tensor->shape[0]};
    struct ebb_tensor *rest = ebb_tensor_slice(region, tensor, slice);
    struct ebb_tensor *made = ebb_tensor_alias(region, rest, dtype, 1, &count, &alias);
    if (!made)
        print_error("%s\n", ebb_last_error_text());
    assert_non_null(made);
    return made;
}

/* A tensor of this type, alone or with a view of it. False: there is no such type. */
static bool send_one(struct ebb_dtype dtype, int64_t rows, bool seen) {
    struct post post = open_post();
    void *block = ebb_region_alloc(post.from, 64 + (size_t)rows * 64, 64); /* ends anywhere */
    assert_non_null(block);
    struct ebb_tensor *tensor = ebb_tensor_new(post.from, dtype, 1, &rows);
    if (!tensor) {
        assert_int_equal(ebb_region_close(post.from), 0);
        close_post(&post);
        return false;
    }
    memset(tensor->data, 7, ebb_tensor_bytes(tensor));
    void *object = tensor;
    if (seen) {
        void *both[] = {tensor, ebb_tensor_view(post.from, tensor, 1, &rows, SIZES(1), 0)};
        object = ebb_node_new_list(post.from, both, 2);
    }
    (void)deliver(&post, object);
    close_post(&post);
    return true;
}

static void a_tensor_of_any_type_arrives(void **state) {
    static const uint16_t lanes[] = {1, 2, 3, 4, 8, 16, 32, 64, 128};
    static const uint8_t bits[] = {1, 4, 8, 16, 24, 32, 64, 128};
    unsigned count = 0;
    for (unsigned code = 0; code < 7; code++)
        for (size_t b = 0; b < sizeof bits; b++)
            for (size_t l = 0; l < sizeof lanes / sizeof *lanes; l++)
                for (int64_t rows = 1; rows < 4; rows += 2)
                    count += send_one((struct ebb_dtype){(uint8_t)code, bits[b], lanes[l]}, rows,
                                      (b + l) % 2);
    assert_true(count > 200);
}

static void lanes_need_no_more_than_one_of_them(void **state) {
    static const float threes[8] = {3, 3, 3, 3, 3, 3, 3, 3};
    struct post post = open_post();
    struct ebb_tensor *base = ebb_tensor_new(post.from, FLOAT32, 1, SIZES(100));
    assert_int_equal(ebb_tensor_fill(base, ebb_value_int(3)), 0);
    struct ebb_tensor *made = deliver(
        &post, alias_behind(post.from, base, 4, (struct ebb_dtype){EBB_FLOAT, 64, 4}, 1));
    assert_int_equal(ebb_tensor_bytes(made), sizeof threes);
    assert_memory_equal(made->data, threes, sizeof threes);
    close_post(&post);
}

static void a_copy_is_as_well_aligned_as_the_original(void **state) {
    struct post post = open_post();
    struct ebb_tensor *askew = import_askew(post.from, 100);
    struct ebb_tensor *numbers = alias_behind(post.from, askew, 1, INT64, 8);
    void *both[] = {numbers, ebb_tensor_view(post.from, numbers, 1, SIZES(2), SIZES(1), 3)};
    struct ebb_node *made = deliver(&post, ebb_node_new_list(post.from, both, 2));
    struct ebb_tensor *first = made->members[0], *second = made->members[1];
    assert_int_equal((uintptr_t)first->data % sizeof(int64_t), 0);
    assert_memory_equal(first->data, foreign + 2, 8 * sizeof(int64_t));
    assert_memory_equal(second->data, foreign + 8, 2 * sizeof(int64_t));
    close_post(&post);
}

/* Those are copied where they arrive, too. */
static void batch_sizes_that_were_foreign_are_aligned(void **state) {
    struct post post = open_post();
    struct ebb_tensor *data = ebb_tensor_new(post.from, UINT8, 1, SIZES(8));
    struct ebb_tensor *askew = import_askew(post.from, 100);
    struct ebb_tensor *sizes = alias_behind(post.from, askew, 1, INT64, 8);
    void *sequences[2];
    assert_int_equal(ebb_tensor_fill(data, ebb_value_int(7)), 0);
    assert_int_equal(ebb_tensor_fill(sizes, ebb_value_int(1)), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct ebb_tensor *seen = ebb_tensor_view(post.from, sizes, 1, SIZES(8), SIZES(1), 0);
        struct ebb_tensor *bytes = ebb_tensor_view(post.from, data, 1, SIZES(8), SIZES(1), 0);
        sequences[i] = ebb_packed_from(post.from, bytes, seen, NULL, NULL);
    }
    struct ebb_node *made = deliver(&post, ebb_node_new_list(post.from, sequences, 2));
    for (unsigned i = 0; i < 2; i++) {
        const struct ebb_packed *packed = made->members[i];
        assert_int_equal((uintptr_t)packed->batch_sizes->data % sizeof(int64_t), 0);
        assert_int_equal(((const int64_t *)packed->batch_sizes->data)[7], 1);
    }
    close_post(&post);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_of_any_type_arrives),
        cmocka_unit_test(lanes_need_no_more_than_one_of_them),
        cmocka_unit_test(a_copy_is_as_well_aligned_as_the_original),
        cmocka_unit_test(batch_sizes_that_were_foreign_are_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
