// SPDX-License-Identifier: Apache-2.0
/*
 * scope.c - ebb_scope.node: request scopes for Node. index.js makes an API of it.
 *
 *     makeSite(name)                   its number; dropSite(site) when JavaScript has it no more
 *     begin(site, tag)                 the number of a step, which is left
 *     runNew(site, function, tag)      in a step of its own
 *     run(step, function)              and enter(step), leave(step), end(step)
 *     isServed()
 *
 * Each thread has one table of sites and steps (table.h), for all loads of the module: they have
 * malloc() in common. All of them end when its thread's Node does.
 *
 * V8 is told what sites take, which it does not see: it collects them the sooner.
 *
 * No object gets a finalizer. Node queues those of objects that are collected, and where a worker
 * ends for want of memory it looks at the queue when the module's environment has gone.
 *
 * What run() has begun or entered is ended or left here, not in JavaScript: where a script is
 * terminated its `finally` is skipped, and where the stack is full calls in it fail.
 */
#include "node_api.h"

#include "table.h"

#define NAME_MOST 32
#define SITE_BYTES 38000 /* about what one takes */

static _Thread_local struct table table = {.innermost = TABLE_NOBODY};
static _Thread_local unsigned loads;

/* ---- calls ---- */

struct call {
    napi_value argument[3];
};

static napi_value refuse(napi_env env, const char *why) {
    napi_throw_type_error(env, NULL, why);
    return NULL;
}

/* If what JavaScript threw is on its way, it stays that. */
static napi_value fail(napi_env env) {
    napi_throw_error(env, ebb_error_name(ebb_last_error()), ebb_last_error_text());
    return NULL;
}

static napi_value fail_for_memory(napi_env env, const char *why) {
    napi_throw_error(env, "EBB_E_MEMORY",
                     table_is_full(&table) ? "too many sites and open steps at once" : why);
    return NULL;
}

static bool read_call(napi_env env, napi_callback_info info, struct call *call, size_t wanted) {
    size_t given = wanted;
    return napi_get_cb_info(env, info, &given, call->argument, NULL, NULL) == 0 && given >= wanted;
}

/* What a site's or a step's number finds. NULL: it has thrown. */
static struct place *read_place(napi_env env, napi_value number_given, int64_t *number,
                                struct place *find(const struct table *table, int64_t number)) {
    if (napi_get_value_int64(env, number_given, number) != 0) {
        refuse(env, "sites and steps are numbers");
        return NULL;
    }
    struct place *place = find(&table, *number);
    if (!place)
        napi_throw_error(env, "EBB_E_STALE", "no site or open step of this thread");
    return place;
}

static bool is_function(napi_env env, napi_value value) {
    napi_valuetype type;
    return napi_typeof(env, value, &type) == 0 && type == NAPI_FUNCTION;
}

/* NULL if it throws or is terminated: Node passes that on when this module returns. */
static napi_value call_function(napi_env env, napi_value function) {
    napi_value nothing = NULL, result = NULL;
    napi_get_undefined(env, &nothing);
    return napi_call_function(env, nothing, function, 0, NULL, &result) == 0 ? result : NULL;
}

/* ---- sites ---- */

/* One more, or one less. */
static void tell_v8(napi_env env, int64_t change) {
    int64_t all;
    (void)napi_adjust_external_memory(env, change * SITE_BYTES, &all);
}

static napi_value make_site(napi_env env, napi_callback_info info) {
    struct call call;
    napi_value made = NULL;
    char name[NAME_MOST];
    if (!read_call(env, info, &call, 1) ||
        napi_get_value_string_utf8(env, call.argument[0], name, sizeof name, NULL) != 0)
        return refuse(env, "a site's name is text");
    struct site *site = table_has_room(&table) ? site_create(name) : NULL;
    if (!site)
        return fail_for_memory(env, "no memory for a site");
    napi_create_int64(env, table_add_site(&table, site), &made);
    tell_v8(env, 1);
    return made;
}

static napi_value drop_site(napi_env env, napi_callback_info info) {
    struct call call;
    int64_t number;
    if (!read_call(env, info, &call, 1))
        return refuse(env, "dropSite(site)");
    struct place *place = read_place(env, call.argument[0], &number, table_find_site);
    if (!place)
        return NULL;
    table_drop_site(&table, place);
    tell_v8(env, -1);
    return NULL;
}

/* Begins a step of a site. 0: it has thrown. */
static int64_t begin_step(napi_env env, napi_value site_given, napi_value tag_given) {
    int64_t tag, site_number, number;
    struct place *place = read_place(env, site_given, &site_number, table_find_site);
    if (!place)
        return 0;
    struct site *site = place->site; /* its place may move */
    if (napi_get_value_int64(env, tag_given, &tag) != 0) {
        refuse(env, "a site's step has a tag");
        return 0;
    }
    if (!table_has_room(&table)) {
        fail_for_memory(env, "no memory for another open step");
        return 0;
    }
    number = table_begin(&table, site, (uint64_t)tag);
    if (!number)
        fail(env);
    return number;
}

static napi_value begin(napi_env env, napi_callback_info info) {
    struct call call;
    napi_value made = NULL;
    if (!read_call(env, info, &call, 2))
        return refuse(env, "begin(tag)");
    int64_t number = begin_step(env, call.argument[0], call.argument[1]);
    if (!number)
        return NULL;
    (void)table_leave(&table, table_find(&table, number));
    napi_create_int64(env, number, &made);
    return made;
}

static napi_value run_new(napi_env env, napi_callback_info info) {
    struct call call;
    if (!read_call(env, info, &call, 3) || !is_function(env, call.argument[1]))
        return refuse(env, "run(function, tag)");
    struct table_moment before = table_before(&table, NULL);
    int64_t number = begin_step(env, call.argument[0], call.argument[2]);
    if (!number)
        return NULL;
    napi_value result = call_function(env, call.argument[1]);
    struct place *place = table_find(&table, number); /* NULL: somebody has guessed its number */
    int ended = place ? table_end(&table, place) : 0;
    table_go_back(&table, &before);
    return ended == 0 ? result : fail(env);
}

/* ---- steps ---- */

/* The step that is the first argument. NULL: it has thrown. */
static struct place *read_step(napi_env env, napi_callback_info info, struct call *call,
                               size_t wanted, int64_t *number) {
    if (!read_call(env, info, call, wanted)) {
        refuse(env, "a step is missing, or a function");
        return NULL;
    }
    return read_place(env, call->argument[0], number, table_find);
}

static napi_value change_step(napi_env env, napi_callback_info info,
                              int change(struct table *table, struct place *place)) {
    struct call call;
    int64_t number;
    struct place *place = read_step(env, info, &call, 1, &number);
    return !place || change(&table, place) == 0 ? NULL : fail(env);
}

static napi_value end(napi_env env, napi_callback_info info) {
    return change_step(env, info, table_end);
}

static napi_value leave(napi_env env, napi_callback_info info) {
    return change_step(env, info, table_leave);
}

static napi_value enter(napi_env env, napi_callback_info info) {
    return change_step(env, info, table_enter);
}

static napi_value run(napi_env env, napi_callback_info info) {
    struct call call;
    int64_t number;
    struct place *place = read_step(env, info, &call, 2, &number);
    if (!place)
        return NULL;
    if (!is_function(env, call.argument[1]))
        return refuse(env, "run(step, function)");
    struct table_moment before = table_before(&table, place);
    if (table_enter(&table, place) != 0)
        return fail(env);
    napi_value result = call_function(env, call.argument[1]);
    table_go_back(&table, &before);
    return result;
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

static bool export_functions(napi_env env, napi_value exports) {
    const napi_property_descriptor functions[] = {
        {.utf8name = "makeSite", .method = make_site},
        {.utf8name = "dropSite", .method = drop_site},
        {.utf8name = "begin", .method = begin},
        {.utf8name = "runNew", .method = run_new},
        {.utf8name = "run", .method = run},
        {.utf8name = "end", .method = end},
        {.utf8name = "leave", .method = leave},
        {.utf8name = "enter", .method = enter},
        {.utf8name = "isServed", .method = is_served},
    };
    return napi_define_properties(env, exports, sizeof functions / sizeof *functions,
                                  functions) == 0;
}

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
    return export_functions(env, exports) ? exports : NULL;
}
