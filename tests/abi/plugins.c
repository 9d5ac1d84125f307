// SPDX-License-Identifier: Apache-2.0
/*
 * plugins.c - shared objects that are closed while something of theirs is left: one with libebb.a
 * inside, in whose steps a thread was, and one that registered a type with the program's libebb.so.
 */
#include "abi/plugin.h"
#include "kit/test.h"

#include <dlfcn.h>
#include <pthread.h>

struct loaded {
    void *handle;
    const struct plugin *plugin;
};

static struct loaded load(const char *path) {
    struct loaded loaded = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!loaded.handle)
        fail_msg("%s", dlerror());
    loaded.plugin = dlsym(loaded.handle, "plugin");
    assert_non_null(loaded.plugin);
    return loaded;
}

struct visitor {
    const struct plugin *plugin;
    pthread_barrier_t barrier;
};

static void *visit(void *data) {
    struct visitor *visitor = data;
    bool has = visitor->plugin->has_step();
    pthread_barrier_wait(&visitor->barrier);
    pthread_barrier_wait(&visitor->barrier); /* the plugin was closed */
    return has ? NULL : "no step";
}

static void a_thread_ends_after_a_plugin_with_ebb_inside_was_closed(void **state) {
    struct loaded loaded = load(PLUGIN_INSIDE);
    struct visitor visitor = {.plugin = loaded.plugin};
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_barrier_init(&visitor.barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, visit, &visitor), 0);
    pthread_barrier_wait(&visitor.barrier);
    assert_int_equal(dlclose(loaded.handle), 0);
    pthread_barrier_wait(&visitor.barrier);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    pthread_barrier_destroy(&visitor.barrier);
}

static void a_plugin_that_comes_again_finds_its_ebb(void **state) {
    struct loaded first = load(PLUGIN_INSIDE);
    assert_true(first.plugin->has_step());
    assert_int_equal(dlclose(first.handle), 0);
    struct loaded second = load(PLUGIN_INSIDE);
    assert_ptr_equal(second.plugin, first.plugin); /* no second range was reserved */
    assert_true(second.plugin->has_step());
    assert_int_equal(dlclose(second.handle), 0);
}

static void a_type_outlives_the_close_of_its_plugin(void **state) {
    ebb_region region = ebb_region_open(NULL);
    struct loaded loaded = load(PLUGIN_BESIDE);
    void *pair = loaded.plugin->made_pair(region);
    assert_non_null(pair);
    assert_int_equal(dlclose(loaded.handle), 0);
    assert_string_equal(((struct ebb_object *)pair)->type->name, "pair of a plugin");
    assert_int_equal(ebb_object_end(pair), 0);
    assert_int_equal(ebb_region_close(region), 0);
}

static void a_plugin_without_a_type_is_unloaded(void **state) {
    struct loaded loaded = load(PLUGIN_PLAIN);
    assert_true(loaded.plugin->has_step());
    assert_int_equal(dlclose(loaded.handle), 0);
    assert_null(dlopen(PLUGIN_PLAIN, RTLD_NOW | RTLD_NOLOAD));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_ends_after_a_plugin_with_ebb_inside_was_closed),
        cmocka_unit_test(a_plugin_that_comes_again_finds_its_ebb),
        cmocka_unit_test(a_type_outlives_the_close_of_its_plugin),
        cmocka_unit_test(a_plugin_without_a_type_is_unloaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
