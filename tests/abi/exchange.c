// SPDX-License-Identifier: Apache-2.0
/*
 * exchange.c - DLPack's structs as all libraries lay them out, whichever header is installed.
 *
 * The old struct is the header's, the versioned one ours where the header is too old to have it;
 * the numbers are those of the specification on 64-bit machines.
 */
#include "kit/dlpack.h"

#define PIN(claim) _Static_assert(claim, #claim)

PIN(sizeof(DLDevice) == 8 && offsetof(DLDevice, device_id) == 4);
PIN(sizeof(DLDataType) == 4 && offsetof(DLDataType, bits) == 1 && offsetof(DLDataType, lanes) == 2);
PIN(sizeof(DLTensor) == 48);
PIN(offsetof(DLTensor, data) == 0);
PIN(offsetof(DLTensor, device) == 8);
PIN(offsetof(DLTensor, ndim) == 16);
PIN(offsetof(DLTensor, dtype) == 20);
PIN(offsetof(DLTensor, shape) == 24);
PIN(offsetof(DLTensor, strides) == 32);
PIN(offsetof(DLTensor, byte_offset) == 40);
PIN(sizeof(DLManagedTensor) == 64);
PIN(offsetof(DLManagedTensor, manager_ctx) == 48);
PIN(offsetof(DLManagedTensor, deleter) == 56);

PIN(sizeof(DLPackVersion) == 8 && offsetof(DLPackVersion, minor) == 4);
PIN(sizeof(DLManagedTensorVersioned) == 80);
PIN(offsetof(DLManagedTensorVersioned, version) == 0);
PIN(offsetof(DLManagedTensorVersioned, manager_ctx) == 8);
PIN(offsetof(DLManagedTensorVersioned, deleter) == 16);
PIN(offsetof(DLManagedTensorVersioned, flags) == 24);
PIN(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

/* ebb's data types are DLPack's, number by number. */
PIN(sizeof(struct ebb_dtype) == sizeof(DLDataType));
PIN(offsetof(struct ebb_dtype, bits) == 1 && offsetof(struct ebb_dtype, lanes) == 2);
PIN((int)EBB_INT == kDLInt && (int)EBB_UINT == kDLUInt && (int)EBB_FLOAT == kDLFloat);
PIN((int)EBB_OPAQUE == kDLOpaqueHandle && (int)EBB_BFLOAT == kDLBfloat);
PIN((int)EBB_COMPLEX == kDLComplex && EBB_BOOL == 6);
PIN(DLPACK_READ_ONLY == 1 && DLPACK_COPIED == 2 && DLPACK_PADDED == 4);
#ifdef DLPACK_MAJOR_VERSION
PIN(DLPACK_MAJOR_VERSION == DLPACK_MAJOR);
PIN((int)EBB_BOOL == kDLBool);
PIN(DLPACK_FLAG_BITMASK_READ_ONLY == DLPACK_READ_ONLY);
PIN(DLPACK_FLAG_BITMASK_IS_COPIED == DLPACK_COPIED);
#endif

PIN(EBB_EXCHANGE_SHARE == 0 && EBB_EXCHANGE_IF_NEEDED == 1 && EBB_EXCHANGE_COPY == 2);

static void structs_of_exchange_are_as_promised(void **state) {
    (void)state; /* this file has compiled */
    assert_int_equal(sizeof(DLManagedTensorVersioned), 80);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(structs_of_exchange_are_as_promised)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
