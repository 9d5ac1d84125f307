// SPDX-License-Identifier: Apache-2.0
/*
 * scope.c - ebb_scope.node: request scopes for Node. index.js makes an API of it.
 *
 * JavaScript knows steps by numbers. A number names a place in a table of the thread, and how often
 * that place was taken before: those of ended steps, and of other threads, are found out. The table
 * grows before a step begins, never inside of one, and goes when the thread's Node does.
 */
#include "node_api.h"

#include <ebb/scope.h>
#include <stdlib.h>

#define PLACES_MOST (1u << 20) /* steps open at once, a thread */
#define NAME_MOST 32

struct place {
    ebb_step step;
    uint64_t turn; /* how often it was taken; odd: it is */
    uint32_t next; /* free one */
};

struct table {
    struct place *place;
    uint32_t count, unused; /* `unused`: the first free place; count: none */
};

static _Thread_local struct table table;

/* ---- table ---- */

static bool table_grow(void) {
    uint32_t more = table.count ? table.count * 2 : 64;
    if (table.count >= PLACES_MOST)
        return false;
    struct place *place = realloc(table.place, more * sizeof *place);
    if (!place)
        return false;
    for (uint32_t i = table.count; i < more; i++)
        place[i] = (struct place){.next = i + 1};
    table = (struct table){.place = place, .count = more, .unused = table.count};
    return true;
}

static int64_t table_take(ebb_step step) {
    struct place *place = &table.place[table.unused];
    int64_t number = (int64_t)(++place->turn * PLACES_MOST + table.unused);
    place->step = step;
    table.unused = place->next;
    return number;
}

/* NULL: it names no open step of this thread. */
static struct place *table_find(int64_t number) {
    uint64_t index = (uint64_t)number % PLACES_MOST, turn = (uint64_t)number / PLACES_MOST;
    if (number < 0 || index >= table.count || turn % 2 == 0 || table.place[index].turn != turn)
        return NULL;
    return &table.place[index];
}

static void table_drop(struct place *place) {
    place->turn++;
    place->next = table.unused;
    table.unused = (uint32_t)(place - table.place);
}

static void table_free(void *unused) {
    (void)unused;
    free(table.place);
    table = (struct table){0};
}

/* ---- calls ---- */

static napi_value refuse(napi_env env, const char *why) {
    napi_throw_type_error(env, NULL, why);
    return NULL;
}

static napi_value fail(napi_env env) {
    napi_throw_error(env, ebb_error_name(ebb_last_error()), ebb_last_error_text());
    return NULL;
}

static bool arguments_of(napi_env env, napi_callback_info info, napi_value *argument,
                         size_t wanted) {
    size_t given = wanted;
    return napi_get_cb_info(env, info, &given, argument, NULL, NULL) == 0 && given >= wanted;
}

static void drop_site(napi_env env, void *site, void *hint) {
    (void)env, (void)hint;
    (void)ebb_site_destroy(site); /* one with a step that is open stays */
}

static napi_value make_site(napi_env env, napi_callback_info info) {
    napi_value argument, made = NULL;
    char name[NAME_MOST];
    if (!arguments_of(env, info, &argument, 1) ||
        napi_get_value_string_utf8(env, argument, name, sizeof name, NULL) != 0)
        return refuse(env, "a site's name is text");
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = name, .scope = true));
    if (!site)
        return fail(env);
    if (napi_create_external(env, site, drop_site, NULL, &made) != 0)
        ebb_site_destroy(site);
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
    if (table.unused == table.count && !table_grow()) {
        napi_throw_error(env, "EBB_E_MEMORY", "no memory for another open step");
        return NULL;
    }
    ebb_step step = ebb_step_begin(site, (uint64_t)tag);
    if (!ebb_region_is_open(step.region))
        return fail(env);
    napi_create_int64(env, table_take(step), &made);
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
    struct place *place = table_find(number);
    if (!place)
        napi_throw_error(env, "EBB_E_STALE", "no open step of this thread");
    return place;
}

static napi_value end(napi_env env, napi_callback_info info) {
    struct place *place = place_given(env, info);
    if (!place)
        return NULL;
    ebb_step step = place->step;
    table_drop(place);
    return ebb_step_end(step) == 0 ? NULL : fail(env);
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

napi_value napi_register_module_v1(napi_env env, napi_value exports) {
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
    napi_add_env_cleanup_hook(env, table_free, NULL);
    return exports;
}
