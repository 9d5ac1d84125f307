// SPDX-License-Identifier: Apache-2.0
/*
 * node_api.h - the few declarations of Node-API that scope.c needs, so that it compiles where
 * Node's headers are not. Node-API is a stable binary interface (Node's documentation, "Node-API");
 * names, arguments and numbers are those of its version 3.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef int napi_status; /* 0: fine */
typedef napi_value (*napi_callback)(napi_env env, napi_callback_info info);
typedef unsigned napi_valuetype;

#define NAPI_FUNCTION 7u

typedef struct {
    const char *utf8name; /* or `name` */
    napi_value name;
    napi_callback method, getter, setter;
    napi_value value;
    unsigned attributes; /* 0: to be called, no more */
    void *data;
} napi_property_descriptor;

napi_status napi_get_cb_info(napi_env env, napi_callback_info info, size_t *count,
                             napi_value *arguments, napi_value *self, void **data);
napi_status napi_call_function(napi_env env, napi_value self, napi_value function, size_t count,
                               const napi_value *arguments, napi_value *result);
napi_status napi_define_properties(napi_env env, napi_value object, size_t count,
                                   const napi_property_descriptor *properties);
napi_status napi_typeof(napi_env env, napi_value value, napi_valuetype *type);
napi_status napi_get_undefined(napi_env env, napi_value *made);
napi_status napi_get_value_string_utf8(napi_env env, napi_value value, char *text, size_t size,
                                       size_t *length);
napi_status napi_create_int64(napi_env env, int64_t number, napi_value *made);
napi_status napi_get_value_int64(napi_env env, napi_value value, int64_t *number);
napi_status napi_adjust_external_memory(napi_env env, int64_t change, int64_t *all);
napi_status napi_get_boolean(napi_env env, bool value, napi_value *made);
napi_status napi_throw_error(napi_env env, const char *code, const char *message);
napi_status napi_throw_type_error(napi_env env, const char *code, const char *message);
napi_status napi_add_env_cleanup_hook(napi_env env, void (*hook)(void *data), void *data);
