// SPDX-License-Identifier: Apache-2.0
/*
 * scope.c - ebb_scope.node: request scopes for Node. index.js makes an API of it.
 *
 * Each thread has one table of steps (table.h), for all loads of the module: they have malloc() in
 * common. Its steps end when its thread's Node does.
 */
#include "node_api.h"

#include "table.h"

#define NAME_MOST 32

static _Thread_local struct table table;
static _Thread_local unsigned loads;

/* ---- calls ---- */

static napi_value refuse(napi_env env, const char *why) {
    napi_throw_type_error(env, NULL, why);
    return NULL;
}

static napi_value fail(napi_env env) {
    napi_throw_error(env, ebb_error_name(ebb_last_error()), ebb_last_error_text());
    return NULL;
}

static napi_value fail_for_memory(napi_env env, const char *why) {
    napi_throw_error(env, "EBB_E_MEMORY", why);
    return NULL;
}

static bool arguments_of(napi_env env, napi_callback_info info, napi_value *argument,
                         size_t wanted) {
    size_t given = wanted;
    return napi_get_cb_info(env, info, &given, argument, NULL, NULL) == 0 && given >= wanted;
}

static void drop_site(napi_env env, void *site, void *hint) {
    (void)env, (void)hint;
    site_release(site);
}

static napi_value make_site(napi_env env, napi_callback_info info) {
    napi_value argument, made = NULL;
    char name[NAME_MOST];
    if (!arguments_of(env, info, &argument, 1) ||
        napi_get_value_string_utf8(env, argument, name, sizeof name, NULL) != 0)
        return refuse(env, "a site's name is text");
    struct site *site = site_create(name);
    if (!site)
        return fail_for_memory(env, "no memory for a site");
    if (napi_create_external(env, site, drop_site, NULL, &made) != 0)
        site_release(site);
    return made;
}

static napi_value begin(napi_env env, napi_callback_info info) {
    napi_value argument[2], made = NULL;
    void *site;
    int64_t tag;
    if (!arguments_of(env, info, argument, 2) ||
        napi_get_value_external(env, argument[0], &site) != 0 ||
        napi_get_value_int64(env, argument[1], &tag) != 0)
        return refuse(env, "begin(site, tag)");
    if (!table_has_room(&table))
        return fail_for_memory(env, "no memory for another open step");
    int64_t number = table_begin(&table, site, (uint64_t)tag);
    if (!number)
        return fail(env);
    napi_create_int64(env, number, &made);
    return made;
}

static struct place *place_given(napi_env env, napi_callback_info info) {
    napi_value argument;
    int64_t number;
    if (!arguments_of(env, info, &argument, 1) ||
        napi_get_value_int64(env, argument, &number) != 0) {
        refuse(env, "a step is a number");
        return NULL;
    }
    struct place *place = table_find(&table, number);
    if (!place)
        napi_throw_error(env, "EBB_E_STALE", "no open step of this thread");
    return place;
}

static napi_value end(napi_env env, napi_callback_info info) {
    struct place *place = place_given(env, info);
    return !place || table_end(&table, place) == 0 ? NULL : fail(env);
}

static napi_value leave(napi_env env, napi_callback_info info) {
    const struct place *place = place_given(env, info);
    return !place || ebb_scope_leave(place->step) == 0 ? NULL : fail(env);
}

static napi_value enter(napi_env env, napi_callback_info info) {
    const struct place *place = place_given(env, info);
    return !place || ebb_scope_enter(place->step) == 0 ? NULL : fail(env);
}

static napi_value is_served(napi_env env, napi_callback_info info) {
    napi_value made = NULL;
    (void)info;
    napi_get_boolean(env, ebb_scope_is_served(), &made);
    return made;
}

/* ---- module ---- */

__attribute__((visibility("default"))) int32_t node_api_module_get_api_version_v1(void);
__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env,
                                                                          napi_value exports);

int32_t node_api_module_get_api_version_v1(void) {
    return 3;
}

/* Before the sites of this load, as Node has it, and maybe after those of others. */
static void drop_load(void *env) {
    (void)env; /* which tells loads apart: Node wants no hook twice */
    if (--loads == 0)
        table_clear(&table);
}

napi_value napi_register_module_v1(napi_env env, napi_value exports) {
    loads++;
    if (napi_add_env_cleanup_hook(env, drop_load, env) != 0) {
        drop_load(env);
        return NULL;
    }
    static const struct {
        const char *name;
        napi_callback call;
    } functions[] = {{"site", make_site}, {"begin", begin}, {"end", end},
                     {"leave", leave},    {"enter", enter}, {"isServed", is_served}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        napi_value made;
        if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].call, NULL,
                                 &made) != 0 ||
            napi_set_named_property(env, exports, functions[i].name, made) != 0)
            return NULL;
    }
    return exports;
}
