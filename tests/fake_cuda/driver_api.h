// SPDX-License-Identifier: Apache-2.0
/* driver_api.h - the functions of the CUDA driver API that ebb uses, as plain C types. */
#ifndef FAKE_CUDA_DRIVER_API_H
#define FAKE_CUDA_DRIVER_API_H

#include <stddef.h>

typedef unsigned long long address; /* CUdeviceptr */

int cuInit(unsigned flags);
int cuGetErrorName(int result, const char **name);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuStreamCreate(void **handle, unsigned flags);
int cuStreamDestroy_v2(void *handle);
int cuStreamSynchronize(void *handle);
int cuStreamWaitEvent(void *stream, void *handle, unsigned flags);
int cuMemGetInfo_v2(size_t *free, size_t *total);
int cuMemAlloc_v2(address *place, size_t bytes);
int cuMemFree_v2(address place);
int cuMemHostRegister_v2(void *addr, size_t bytes, unsigned flags);
int cuMemHostUnregister(void *addr);
int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *stream);
int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *stream);
int cuMemsetD8Async(address to, unsigned char value, size_t bytes, void *stream);
int cuEventCreate(void **handle, unsigned flags);
int cuEventRecord(void *handle, void *stream);
int cuEventQuery(void *handle);
int cuEventDestroy_v2(void *handle);

#endif
