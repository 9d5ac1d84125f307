// SPDX-License-Identifier: Apache-2.0
/*
 * ort.h - the few declarations of onnxruntime's C API that ort_server.c needs.
 *
 * The API is a table of functions that has only grown since its version 1, whose first 102 places
 * these are; places that nothing here uses are skipped. Source of names, places and arguments: the
 * published onnxruntime_c_api.h and the table in onnxruntime_c_api.cc. Functions that return a
 * status: NULL is success.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ORT_API_OF 1 /* version of the table */

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtValue OrtValue;
typedef struct OrtRunOptions OrtRunOptions;

enum { ORT_WARNING = 2, ORT_INT32 = 6, ORT_DEVICE_ALLOCATOR = 0, ORT_MEMORY_DEFAULT = 0 };

typedef struct OrtApi {
    void *_0[2];
    const char *(*GetErrorMessage)(const OrtStatus *status);
    OrtStatus *(*CreateEnv)(int level, const char *name, OrtEnv **made);
    void *_4[3];
    OrtStatus *(*CreateSession)(const OrtEnv *env, const char *path,
                                const OrtSessionOptions *options, OrtSession **made);
    void *_8;
    OrtStatus *(*Run)(OrtSession *session, const OrtRunOptions *options,
                      const char *const *input_names, const OrtValue *const *inputs, size_t input,
                      const char *const *output_names, size_t output, OrtValue **outputs);
    OrtStatus *(*CreateSessionOptions)(OrtSessionOptions **made);
    void *_11[8];
    OrtStatus *(*DisableCpuMemArena)(OrtSessionOptions *options);
    void *_20[4];
    OrtStatus *(*SetIntraOpNumThreads)(OrtSessionOptions *options, int threads);
    OrtStatus *(*SetInterOpNumThreads)(OrtSessionOptions *options, int threads);
    void *_26[23];
    OrtStatus *(*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo *where, void *data,
                                                 size_t bytes, const int64_t *shape,
                                                 size_t dimensions, int type, OrtValue **made);
    void *_50;
    OrtStatus *(*GetTensorMutableData)(OrtValue *value, void **data);
    void *_52[17];
    OrtStatus *(*CreateCpuMemoryInfo)(int allocator, int type, OrtMemoryInfo **made);
    void *_70[23];
    void (*ReleaseStatus)(OrtStatus *status);
    void *_94[2];
    void (*ReleaseValue)(OrtValue *value);
} OrtApi;

_Static_assert(offsetof(OrtApi, Run) == 9 * sizeof(void *), "place of Run");
_Static_assert(offsetof(OrtApi, CreateTensorWithDataAsOrtValue) == 49 * sizeof(void *),
               "place of CreateTensorWithDataAsOrtValue");
_Static_assert(offsetof(OrtApi, CreateCpuMemoryInfo) == 69 * sizeof(void *),
               "place of CreateCpuMemoryInfo");
_Static_assert(offsetof(OrtApi, ReleaseValue) == 96 * sizeof(void *), "place of ReleaseValue");

typedef struct OrtApiBase {
    const OrtApi *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
} OrtApiBase;
