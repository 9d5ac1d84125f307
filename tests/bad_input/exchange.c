// SPDX-License-Identifier: Apache-2.0
/*
 * exchange.c - hostile DLPack structs: every field wrong in every way that a struct can say.
 *
 * A refused struct is still its producer's: its deleter was not called, no block was made, no
 * counter has moved. What a struct cannot show (memory that is not there) is not tried. Elements
 * that were lent read-only are not written.
 */
#include "bad_input/court.h"
#include "kit/dlpack.h"

#include <ebb/ebb.h>

enum { MOST = 40 };

static struct offered {
    DLManagedTensor plain;
    DLManagedTensorVersioned versioned;
    int64_t shape[MOST], strides[MOST];
    _Alignas(64) char bytes[1024];
    int given_back;
} offered;

static void take_plain(DLManagedTensor *self) {
    (void)self;
    offered.given_back++;
}

static void take_versioned(DLManagedTensorVersioned *self) {
    (void)self;
    offered.given_back++;
}

/* A good struct: 3 rows of 4 floats. */
static DLTensor good(void) {
    memset(&offered, 0, sizeof offered);
    offered.shape[0] = 3, offered.shape[1] = 4;
    offered.strides[0] = 4, offered.strides[1] = 1;
    return (DLTensor){.data = offered.bytes, .device = {kDLCPU, 0}, .ndim = 2,
                      .dtype = {kDLFloat, 32, 1}, .shape = offered.shape,
                      .strides = offered.strides};
}

/* Both structs and all modes say no, name the numbers and change nothing. */
static void refuse_as(struct court *court, const DLTensor *tensor, int mode, int code,
                      const char *part) {
    offered.plain = (DLManagedTensor){*tensor, NULL, take_plain};
    offered.versioned.version = (DLPackVersion){1, 0};
    offered.versioned.deleter = take_versioned;
    offered.versioned.dl_tensor = *tensor;
    court_refused_block(court, ebb_tensor_import(court->child, &offered.plain,
                                                 (enum ebb_exchange_mode)mode), code, part);
    court_refused_block(court, ebb_tensor_import_versioned(court->child, &offered.versioned,
                                                           (enum ebb_exchange_mode)mode),
                        code, part);
    assert_int_equal(offered.given_back, 0);
}

static void refuse(struct court *court, const DLTensor *tensor, int code, const char *part) {
    for (int mode = EBB_EXCHANGE_SHARE; mode <= EBB_EXCHANGE_COPY; mode++)
        refuse_as(court, tensor, mode, code, part);
}

static void nothing_is_refused(void **state) {
    struct court *court = *state;
    court_refused_block(court, ebb_tensor_import(court->child, NULL, EBB_EXCHANGE_COPY),
                        EBB_E_EXCHANGE, "NULL");
    court_refused_block(court, ebb_tensor_import_versioned(court->child, NULL, EBB_EXCHANGE_COPY),
                        EBB_E_EXCHANGE, "NULL");
}

static void devices_without_host_memory_are_refused(void **state) {
    struct court *court = *state;
    static const int types[] = {0, -1, 2, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 99,
                                INT32_MAX, INT32_MIN};
    DLTensor tensor = good();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        memcpy(&tensor.device.device_type, &types[i], sizeof types[i]);
        refuse(court, &tensor, EBB_E_EXCHANGE, "device type");
    }
    tensor = good();
    tensor.device.device_id = 1;
    refuse(court, &tensor, EBB_E_EXCHANGE, "number 1");
    tensor.device = (DLDevice){kDLCUDAHost, -1};
    refuse(court, &tensor, EBB_E_EXCHANGE, "number -1");
}

static void data_types_that_are_none_are_refused(void **state) {
    struct court *court = *state;
    static const struct { DLDataType dtype; int code; const char *part; } wrong[] = {
        {{7, 8, 1}, EBB_E_DTYPE, "code 7"},        {{255, 8, 1}, EBB_E_DTYPE, "code 255"},
        {{2, 0, 1}, EBB_E_DTYPE, "0 bits"},        {{2, 129, 1}, EBB_E_DTYPE, "129 bits"},
        {{2, 255, 1}, EBB_E_DTYPE, "255 bits"},    {{2, 32, 0}, EBB_E_DTYPE, "0 lanes"},
        {{0, 4, 3}, EBB_E_EXCHANGE, "3 times 4"},  {{0, 12, 1}, EBB_E_EXCHANGE, "12 bits"},
    };
    static const DLDataType packed[] = {{0, 1, 1}, {0, 4, 1}, {1, 7, 1}};
    DLTensor tensor = good();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tensor.dtype = wrong[i].dtype;
        refuse(court, &tensor, wrong[i].code, wrong[i].part);
    }
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        tensor = good();
        tensor.dtype = packed[i];
        refuse_as(court, &tensor, EBB_EXCHANGE_SHARE, EBB_E_EXCHANGE, "may be packed");
        offered.strides[0] = 8;
        refuse_as(court, &tensor, EBB_EXCHANGE_COPY, EBB_E_EXCHANGE, "stride 8 of dimension 0");
        offered.strides[0] = 4, offered.strides[1] = -1;
        refuse_as(court, &tensor, EBB_EXCHANGE_IF_NEEDED, EBB_E_EXCHANGE, "stride -1");
    }
}

static void numbers_of_dimensions_are_checked_before_they_are_counted(void **state) {
    struct court *court = *state;
    static const int counts[] = {-1, 33, 1000, INT32_MAX, INT32_MIN};
    DLTensor tensor = good();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        tensor.ndim = counts[i];
        refuse(court, &tensor, EBB_E_SHAPE, "dimensions");
    }
    tensor = good();
    tensor.shape = NULL;
    refuse(court, &tensor, EBB_E_SHAPE, "2 dimensions");
}

static void sizes_are_not_negative_and_do_not_overflow(void **state) {
    struct court *court = *state;
    static const struct { int64_t shape[2]; int code; } wrong[] = {
        {{-1, 4}, EBB_E_SHAPE},
        {{3, -1}, EBB_E_SHAPE},
        {{0, -1}, EBB_E_SHAPE},
        {{INT64_MIN, INT64_MIN}, EBB_E_SHAPE},
        {{INT64_MAX, 2}, EBB_E_SIZE},
        {{(int64_t)1 << 62, 8}, EBB_E_SIZE},
        {{(int64_t)1 << 32, (int64_t)1 << 32}, EBB_E_SIZE},
        {{((int64_t)1 << 61) + 1, 1}, EBB_E_SIZE},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int strides = 0; strides < 3; strides++) { /* given, broadcast, missing */
            DLTensor tensor = good();
            memcpy(offered.shape, wrong[i].shape, sizeof wrong[i].shape);
            if (strides == 1)
                offered.strides[0] = offered.strides[1] = 0;
            if (strides == 2)
                tensor.strides = NULL;
            refuse(court, &tensor, wrong[i].code, wrong[i].code == EBB_E_SHAPE ? "-" : "overflow");
        }
}

static void strides_do_not_overflow(void **state) {
    struct court *court = *state;
    static const int64_t wrong[][2] = {
        {INT64_MAX, 1},           {INT64_MIN, 1},           {INT64_MAX / 2, INT64_MAX / 3},
        {-INT64_MAX, 1},          {1, INT64_MAX / 3 + 1},   {1, -(INT64_MAX / 3) - 1},
        {(int64_t)1 << 60, 1},    {-((int64_t)1 << 61), 1}, {INT64_MAX / 2 + 1, INT64_MIN},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        DLTensor tensor = good();
        memcpy(offered.strides, wrong[i], sizeof wrong[i]);
        refuse(court, &tensor, EBB_E_SIZE, "overflow");
    }
    DLTensor tensor = good();
    offered.shape[0] = 2; /* one step of a size that has no opposite */
    offered.strides[0] = INT64_MIN;
    refuse(court, &tensor, EBB_E_SIZE, "overflow");
}

static void addresses_do_not_wrap(void **state) {
    struct court *court = *state;
    DLTensor tensor = good();
    tensor.byte_offset = UINT64_MAX;
    refuse(court, &tensor, EBB_E_SIZE, "18446744073709551615");
    tensor.byte_offset = UINT64_MAX - (uintptr_t)offered.bytes - 8;
    refuse(court, &tensor, EBB_E_SIZE, "overflow");
    tensor = good();
    tensor.data = (void *)(UINTPTR_MAX - 15); /* NOLINT: never touched */
    refuse(court, &tensor, EBB_E_SIZE, "overflow");
    tensor = good();
    offered.strides[0] = -((int64_t)1 << 58); /* below address 0 */
    refuse(court, &tensor, EBB_E_SIZE, "before");
}

static void elements_at_null_are_refused(void **state) {
    struct court *court = *state;
    DLTensor tensor = good();
    tensor.data = NULL;
    refuse(court, &tensor, EBB_E_EXCHANGE, "48 bytes");
    tensor.byte_offset = 4096;
    refuse(court, &tensor, EBB_E_EXCHANGE, "NULL");
}

static void what_needs_a_copy_is_not_shared(void **state) {
    struct court *court = *state;
    static const struct { DLDataType dtype; size_t off; } crooked[] = {
        {{2, 32, 1}, 1}, {{2, 32, 1}, 2}, {{0, 16, 1}, 1}, {{2, 64, 1}, 4}, {{5, 64, 1}, 2},
        {{5, 128, 1}, 4}, {{2, 128, 1}, 8}, {{2, 32, 2}, 2}};
    for (size_t i = 0; i < sizeof crooked / sizeof *crooked; i++) {
        DLTensor tensor = good();
        tensor.dtype = crooked[i].dtype;
        tensor.byte_offset = crooked[i].off;
        refuse_as(court, &tensor, EBB_EXCHANGE_SHARE, EBB_E_EXCHANGE, "aligned");
    }
    DLTensor tensor = good();
    tensor.byte_offset = 512;
    offered.strides[0] = -4;
    refuse_as(court, &tensor, EBB_EXCHANGE_SHARE, EBB_E_EXCHANGE, "reach 32 bytes before");
}

static void refuse_version(struct court *court, DLPackVersion version, uint64_t flags,
                           const char *part) {
    offered.versioned = (DLManagedTensorVersioned){
        .version = version, .deleter = take_versioned, .flags = flags, .dl_tensor = good()};
    court_refused_block(court, ebb_tensor_import_versioned(court->child, &offered.versioned,
                                                           EBB_EXCHANGE_IF_NEEDED),
                        EBB_E_EXCHANGE, part);
    assert_int_equal(offered.given_back, 0);
}

static void other_versions_and_unknown_flags_are_refused(void **state) {
    struct court *court = *state;
    refuse_version(court, (DLPackVersion){0, 8}, 0, "0.8");
    refuse_version(court, (DLPackVersion){2, 0}, 0, "2.0");
    refuse_version(court, (DLPackVersion){UINT32_MAX, 0}, 0, "4294967295.0");
    for (int bit = 3; bit < 64; bit++)
        refuse_version(court, (DLPackVersion){1, 1}, (uint64_t)1 << bit, "flags 0x");
    refuse_version(court, (DLPackVersion){1, 0}, DLPACK_PADDED, "1.0 has none above 0x3");
}

static void newer_minor_versions_and_padded_elements_are_understood(void **state) {
    struct court *court = *state;
    offered.versioned = (DLManagedTensorVersioned){
        .version = {1, 7}, .deleter = take_versioned, .flags = 1 << 9, .dl_tensor = good()};
    struct ebb_tensor *tensor = ebb_tensor_import_versioned(court->child, &offered.versioned,
                                                            EBB_EXCHANGE_SHARE);
    assert_non_null(tensor);
    assert_int_equal(ebb_object_end(tensor), 0);
    offered.versioned.version.minor = 1;
    offered.versioned.flags = DLPACK_PADDED;
    offered.versioned.dl_tensor.dtype = (DLDataType){kDLInt, 4, 1};
    tensor = ebb_tensor_import_versioned(court->child, &offered.versioned, EBB_EXCHANGE_SHARE);
    assert_non_null(tensor);
    assert_int_equal(tensor->storage->bytes, 12);
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(offered.given_back, 2);
    offered.versioned.dl_tensor.dtype.lanes = 2;
    assert_null(ebb_tensor_import_versioned(court->child, &offered.versioned, EBB_EXCHANGE_COPY));
}

static void pinned_memory_of_the_host_is_understood(void **state) {
    struct court *court = *state;
    offered.plain = (DLManagedTensor){good(), NULL, take_plain};
    offered.plain.dl_tensor.device = (DLDevice){kDLCUDAHost, 3};
    struct ebb_tensor *tensor =
        ebb_tensor_import(court->child, &offered.plain, EBB_EXCHANGE_SHARE);
    assert_non_null(tensor);
    assert_int_equal(ebb_object_end(tensor), 0);
}

static void regions_and_modes_are_checked_too(void **state) {
    struct court *court = *state;
    offered.plain = (DLManagedTensor){good(), NULL, take_plain};
    static const int modes[] = {-1, 3, 1 << 30};
    for (size_t i = 0; i < 3; i++) {
        court_refused_block(court, ebb_tensor_import(court->child, &offered.plain,
                                                     (enum ebb_exchange_mode)modes[i]),
                            EBB_E_ARGUMENT, "mode");
        court_refused_block(court, ebb_tensor_export((struct ebb_tensor *)court->large,
                                                     (enum ebb_exchange_mode)modes[i]),
                            EBB_E_ARGUMENT, "mode");
    }
    const struct { ebb_region region; int code; const char *part; } wrong[] = {
        {court->closed, EBB_E_STALE, ""},
        {court->sealed, EBB_E_SEALED, "'sealed'"},
        {court->measuring, EBB_E_MEASURING, "'measuring'"}};
    for (size_t i = 0; i < 3; i++)
        for (int mode = EBB_EXCHANGE_SHARE; mode <= EBB_EXCHANGE_COPY; mode++)
            court_refused_block(court, ebb_tensor_import(wrong[i].region, &offered.plain,
                                                         (enum ebb_exchange_mode)mode),
                                wrong[i].code, wrong[i].part);
    assert_int_equal(offered.given_back, 0);
    assert_int_equal(ebb_region_count_exports(court->closed), 0);
    assert_refused(ebb_last_error(), EBB_E_STALE);
}

static void what_is_no_tensor_is_not_exported(void **state) {
    struct court *court = *state;
    int local = 0;
    static const enum ebb_exchange_mode mode = EBB_EXCHANGE_IF_NEEDED;
    court_refused_block(court, ebb_tensor_export(NULL, mode), EBB_E_FOREIGN, "");
    court_refused_block(court, ebb_tensor_export((void *)&local, mode), EBB_E_FOREIGN, "");
    court_refused_block(court, ebb_tensor_export((void *)court->large, mode), EBB_E_TYPE,
                        "no object");
    court_refused_block(court, ebb_tensor_export_versioned((void *)court->large, mode),
                        EBB_E_TYPE, "no object");
    struct ebb_tensor *tensor = tensor_of_bytes(court->child, 5000);
    assert_int_equal(ebb_object_end(tensor), 0);
    court_note(court);
    court_refused_block(court, ebb_tensor_export(tensor, mode), EBB_E_RELEASED, "");
}

static void data_types_that_some_consumers_misread_are_not_exported(void **state) {
    struct court *court = *state;
    static const struct ebb_dtype wrong[] = {
        {EBB_INT, 4, 1},    {EBB_INT, 1, 1},     {EBB_INT, 24, 1},    {EBB_INT, 128, 1},
        {EBB_UINT, 128, 1}, {EBB_FLOAT, 8, 1},   {EBB_FLOAT, 80, 1},  {EBB_FLOAT, 128, 1},
        {EBB_FLOAT, 32, 4}, {EBB_OPAQUE, 64, 1}, {EBB_BFLOAT, 32, 1}, {EBB_COMPLEX, 32, 1},
        {EBB_BOOL, 1, 1},   {EBB_BOOL, 16, 1},   {EBB_INT, 8, 2},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct ebb_tensor *tensor =
            ebb_tensor_new(court->child, wrong[i], 1, (int64_t[]){5000});
        assert_non_null(tensor);
        court_note(court);
        for (int mode = EBB_EXCHANGE_SHARE; mode <= EBB_EXCHANGE_COPY; mode++)
            court_refused_block(court, ebb_tensor_export(tensor, (enum ebb_exchange_mode)mode),
                                EBB_E_EXCHANGE, "bits");
    }
}

static void copies_are_refused_where_blocks_are(void **state) {
    struct court *court = *state;
    struct ebb_tensor *small = tensor_of_bytes(court->limited, 200);
    struct ebb_tensor *more = tensor_of_bytes(court->limited, 900);
    court_note(court);
    assert_non_null(more);
    void *filler = block_of(court->limited, 2000, 64);
    assert_non_null(filler);
    court_note(court);
    court_refused_block(court, ebb_tensor_export(more, EBB_EXCHANGE_COPY), EBB_E_REGION_LIMIT,
                        "'limited'");
    assert_int_equal(ebb_region_seal(court->limited), 0);
    court_refused_block(court, ebb_tensor_export(small, EBB_EXCHANGE_COPY), EBB_E_SEALED,
                        "'limited'");
}

static struct ebb_tensor *lend_read_only(ebb_region region) {
    offered.versioned = (DLManagedTensorVersioned){
        .version = {1, 0}, .deleter = take_versioned, .flags = DLPACK_READ_ONLY,
        .dl_tensor = good()};
    for (int i = 0; i < 12; i++)
        ((float *)(void *)offered.bytes)[i] = (float)i;
    return ebb_tensor_import_versioned(region, &offered.versioned, EBB_EXCHANGE_SHARE);
}

static void refuse_writes(struct court *court, struct ebb_tensor *target,
                          const struct ebb_tensor *source, const char *part) {
    struct ebb_alias careless = {.size = sizeof careless, .shared = true};
    court_note(court);
    court_refused(court, ebb_tensor_fill(target, ebb_value_int(9)), EBB_E_EXCHANGE, part,
                  "read-only", NULL);
    court_refused(court, ebb_tensor_copy(target, source), EBB_E_EXCHANGE, part, NULL);
    court_refused(court, ebb_tensor_copy(target, target), EBB_E_EXCHANGE, part, NULL);
    court_refused_block(court, ebb_tensor_alias(court->child, target, float32, target->ndim,
                                                target->shape, &careless), EBB_E_EXCHANGE, part);
    for (int i = 0; i < 12; i++)
        assert_true(((float *)(void *)offered.bytes)[i] == (float)i);
}

static void elements_that_were_lent_read_only_are_not_written(void **state) {
    struct court *court = *state;
    struct ebb_tensor *lent = lend_read_only(court->root);
    struct ebb_tensor *row = ebb_tensor_select(court->child, lent, 0, 1);
    struct ebb_tensor *turned = ebb_tensor_transpose(court->child, row, 0, 0);
    struct ebb_tensor *whole = ebb_tensor_new_zeroed(court->child, float32, 2, lent->shape);
    struct ebb_tensor *part = ebb_tensor_new_zeroed(court->child, float32, 1, row->shape);
    refuse_writes(court, lent, whole, "12 elements");
    refuse_writes(court, row, part, "4 elements");
    refuse_writes(court, turned, part, "4 elements");
    struct ebb_tensor *taken = ebb_tensor_take(turned);
    refuse_writes(court, taken, part, "4 elements");
    assert_int_equal(ebb_object_end(lent), 0);
    refuse_writes(court, row, part, "4 elements");
    assert_int_equal(offered.given_back, 0);
}

static void what_is_read_only_may_be_read(void **state) {
    struct court *court = *state;
    struct ebb_tensor *lent = lend_read_only(court->child);
    struct ebb_tensor *own = ebb_tensor_contiguous(court->child, lent);
    struct ebb_alias alias = {.size = sizeof alias, .fall_back = true};
    assert_int_equal(ebb_tensor_copy(own, lent), 0);
    assert_int_equal(ebb_tensor_fill(own, ebb_value_int(3)), 0);
    struct ebb_tensor *fresh =
        ebb_tensor_alias(court->child, lent, float32, 2, lent->shape, &alias);
    assert_non_null(fresh);
    assert_int_equal(alias.reason, EBB_E_EXCHANGE);
    assert_int_equal(ebb_tensor_fill(fresh, ebb_value_int(4)), 0);
    assert_true(((float *)lent->data)[11] == 11);
    void *kept = lent;
    assert_int_equal(ebb_objects_promote(court->child, court->root, &kept, 1, NULL, NULL), 0);
    refuse_writes(court, kept, own, "12 elements");
}

#define AT_COURT(test) cmocka_unit_test_setup_teardown(test, court_open, court_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        AT_COURT(nothing_is_refused),
        AT_COURT(devices_without_host_memory_are_refused),
        AT_COURT(data_types_that_are_none_are_refused),
        AT_COURT(numbers_of_dimensions_are_checked_before_they_are_counted),
        AT_COURT(sizes_are_not_negative_and_do_not_overflow),
        AT_COURT(strides_do_not_overflow),
        AT_COURT(addresses_do_not_wrap),
        AT_COURT(elements_at_null_are_refused),
        AT_COURT(what_needs_a_copy_is_not_shared),
        AT_COURT(other_versions_and_unknown_flags_are_refused),
        AT_COURT(newer_minor_versions_and_padded_elements_are_understood),
        AT_COURT(pinned_memory_of_the_host_is_understood),
        AT_COURT(regions_and_modes_are_checked_too),
        AT_COURT(what_is_no_tensor_is_not_exported),
        AT_COURT(data_types_that_some_consumers_misread_are_not_exported),
        AT_COURT(copies_are_refused_where_blocks_are),
        AT_COURT(elements_that_were_lent_read_only_are_not_written),
        AT_COURT(what_is_read_only_may_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
