// SPDX-License-Identifier: Apache-2.0
/*
 * ort_model.c - see ort_model.h. One session, and no threads of onnxruntime's own.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "ort.h"
#include "ort_model.h"

static const OrtApi *ort;
static OrtSession *session;
static OrtMemoryInfo *memory;

static bool works(OrtStatus *status) {
    if (!status)
        return true;
    fprintf(stderr, "onnxruntime: %s\n", ort->GetErrorMessage(status));
    ort->ReleaseStatus(status);
    return false;
}

static const OrtApi *load_api(const char *library) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const OrtApiBase *(*base)(void) = NULL;
    void *symbol = handle ? dlsym(handle, "OrtGetApiBase") : NULL;
    if (!symbol) {
        fprintf(stderr, "onnxruntime: %s\n", dlerror());
        return NULL;
    }
    memcpy(&base, &symbol, sizeof base);
    return base()->GetApi(ORT_API_OF);
}

static bool load_model(const char *path, bool arena) {
    OrtEnv *env = NULL;
    OrtSessionOptions *options = NULL;
    return works(ort->CreateEnv(ORT_WARNING, "serve", &env)) &&
           works(ort->CreateSessionOptions(&options)) &&
           works(ort->SetIntraOpNumThreads(options, 1)) &&
           works(ort->SetInterOpNumThreads(options, 1)) &&
           (arena || works(ort->DisableCpuMemArena(options))) &&
           works(ort->CreateCpuMemoryInfo(ORT_DEVICE_ALLOCATOR, ORT_MEMORY_DEFAULT, &memory)) &&
           works(ort->CreateSession(env, path, options, &session));
}

static bool run(OrtValue *input, float answer[ANSWER_FLOATS]) {
    static const char *const inputs[] = {"tokens"}, *const outputs[] = {"answer"};
    const OrtValue *const given[] = {input};
    OrtValue *output = NULL;
    void *data = NULL;
    bool done = works(ort->Run(session, NULL, inputs, given, 1, outputs, 1, &output)) &&
                works(ort->GetTensorMutableData(output, &data));
    if (done)
        memcpy(answer, data, ANSWER_FLOATS * sizeof *answer);
    ort->ReleaseValue(output);
    return done;
}

bool ort_model_infer(const int32_t *tokens, size_t count, float answer[ANSWER_FLOATS]) {
    OrtValue *input = NULL;
    const int64_t shape[] = {(int64_t)count};
    if (!works(ort->CreateTensorWithDataAsOrtValue(memory, (void *)(uintptr_t)tokens,
                                                   count * sizeof *tokens, shape, 1, ORT_INT32,
                                                   &input)))
        return false;
    bool done = run(input, answer);
    ort->ReleaseValue(input);
    return done;
}

bool ort_model_open(const char *library, const char *path, bool arena) {
    ort = load_api(library);
    return ort && load_model(path, arena);
}
