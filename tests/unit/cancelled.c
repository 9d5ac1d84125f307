// SPDX-License-Identifier: Apache-2.0
/*
 * cancelled.c - a thread that was cancelled goes on through the functions of the program that ebb
 * calls with something locked or half done, though they come to points where it might end, and
 * ends behind the call.
 */
#include "kit/dlpack.h"

#include <pthread.h>
#include <unistd.h>

static unsigned called;

static void come_to_a_point(void) {
    called++;
    pthread_testcancel();
}

struct work {
    struct stage *stage;
    void (*act)(struct stage *stage);
    bool done;
};

static void *work(void *context) {
    struct work *work = context;
    pthread_cancel(pthread_self());
    work->act(work->stage);
    work->done = true;
    pthread_testcancel();
    return NULL;
}

/* On a thread that is told to end before it acts, and ends behind that, having been called so
 * often. */
static void demand_cancelled_behind(void (*act)(struct stage *), struct stage *stage,
                                    unsigned times) {
    struct work all = {.stage = stage, .act = act};
    pthread_t thread;
    void *result;
    called = 0;
    assert_int_equal(pthread_create(&thread, NULL, work, &all), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_true(all.done);
    assert_int_equal(called, times);
}

/* ---- the handler of exhausted memory ---- */

static void handle(void *context, const char *text) {
    come_to_a_point();
    assert_true(!context && text);
}

static void exhaust(struct stage *stage) {
    assert_no_block(ebb_region_alloc(stage->root, (size_t)1 << 52, 64), EBB_E_MEMORY);
}

static void in_a_handler(void **state) {
    ebb_report_on_exhausted(handle, NULL);
    demand_cancelled_behind(exhaust, *state, 1);
    alarm(20); /* if it waited for the thread, for ever */
    assert_ptr_equal(ebb_report_on_exhausted(NULL, NULL), handle);
    alarm(0);
}

/* ---- cleanups ---- */

static int clean_up(void *data) {
    come_to_a_point();
    return data != NULL;
}

static void close_and_reset(struct stage *stage) {
    struct ebb_cleanup nodes[] = {{.run = clean_up}, {.run = clean_up}, {.run = clean_up}};
    ebb_region child = OPEN(.parent = stage->root);
    assert_int_equal(ebb_cleanup_add(stage->root, &nodes[0]), 0);
    assert_int_equal(ebb_cleanup_add(stage->root, &nodes[1]), 0);
    assert_int_equal(ebb_cleanup_add(child, &nodes[2]), 0);
    assert_int_equal(ebb_cleanup_run(&nodes[1]), 0);
    assert_int_equal(ebb_region_close(child), 0);
    assert_int_equal(ebb_region_reset(stage->root, 0), 0);
}

static void in_cleanups(void **state) {
    struct stage *stage = *state;
    demand_cancelled_behind(close_and_reset, stage, 3);
    assert_int_equal(ebb_region_reset(stage->root, 0), 0); /* nothing is at work in it */
}

/* ---- a release check ---- */

static bool busy;

static bool check_release(void *context, ebb_lease *lease) {
    come_to_a_point();
    return !context && lease && !busy;
}

static void drop_and_trim(struct stage *stage) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 4 * MIB);
    struct ebb_parcel parcel;
    (void)stage;
    assert_int_equal(ebb_pool_set_release_check(pool, check_release, NULL), 0);
    ebb_region region = OPEN(.pool = pool);
    assert_int_equal(ebb_region_send(region, block_of(region, 5000, 64), &parcel), 0);
    busy = true;
    ebb_lease_drop(ebb_parcel_open(pool, &parcel));
    (void)ebb_pool_trim(pool, 0); /* asks with the pool locked */
    busy = false;
    assert_int_equal(ebb_pool_reclaim(pool, true), 0);
    pool_end(pool);
}

static void in_release_checks(void **state) {
    demand_cancelled_behind(drop_and_trim, *state, 3);
}

/* ---- producers, and types ---- */

static void have_back(DLManagedTensor *managed) {
    come_to_a_point();
    assert_non_null(managed);
}

static void import_and_end(struct stage *stage) {
    int64_t shape[] = {3};
    float bytes[3] __attribute__((aligned(64))) = {1, 2, 3};
    DLManagedTensor managed = {.deleter = have_back};
    managed.dl_tensor = (DLTensor){.data = bytes, .device = {1, 0}, .ndim = 1, .shape = shape,
                                   .dtype = {2, 32, 1}};
    struct ebb_tensor *tensor = ebb_tensor_import(stage->root, &managed, EBB_EXCHANGE_SHARE);
    assert_non_null(tensor);
    assert_int_equal(ebb_object_end(tensor), 0);
}

static void in_deleters(void **state) {
    demand_cancelled_behind(import_and_end, *state, 1);
}

static void mend(struct ebb_object *copy, const struct ebb_object *original) {
    come_to_a_point();
    assert_ptr_not_equal(copy, original);
}

static const struct ebb_field no_fields[1];
static struct ebb_type mended = {.name = "mended", .bytes = sizeof(struct ebb_object),
                                 .fields = no_fields, .mend = mend};

static void close_keeping(struct stage *stage) {
    assert_int_equal(ebb_type_register(&mended), 0);
    ebb_region child = OPEN(.parent = stage->root);
    void *kept = ebb_object_new(child, &mended, 0);
    assert_non_null(kept);
    assert_int_equal(ebb_objects_close_keeping(child, stage->root, &kept, 1, NULL, NULL, NULL), 0);
    assert_true(ebb_region_owns(stage->root, kept));
}

static void in_types_that_mend_what_was_copied(void **state) {
    demand_cancelled_behind(close_keeping, *state, 1);
}

/* ---- types that check, and what is reported ---- */

struct couple {
    struct ebb_object object;
    struct ebb_object *one, *other;
};

static const struct ebb_field couple_fields[] = {
    EBB_FIELD(struct couple, EBB_FIELD_OBJECT, one),
    EBB_FIELD(struct couple, EBB_FIELD_OBJECT, other),
};

static int check_couple(const struct ebb_object *object) {
    come_to_a_point();
    return object->type ? 0 : EBB_E_TYPE;
}

static struct ebb_type couple_type = {.name = "couple", .bytes = sizeof(struct couple),
                                      .fields = couple_fields, .field_count = 2,
                                      .check = check_couple};

/* Of one object, twice. */
static struct couple *couple_in(ebb_region region) {
    struct couple *couple = ebb_object_new(region, &couple_type, 0);
    assert_non_null(couple);
    couple->one = couple->other = ebb_object_new(region, &mended, 0);
    assert_int_equal(ebb_object_compose(couple), 0);
    return couple;
}

static struct couple *checked;

static void replace_member(struct stage *stage) {
    assert_int_equal(ebb_type_register(&couple_type), 0);
    assert_int_equal(ebb_type_register(&mended), 0);
    checked = couple_in(stage->root);
    assert_int_equal(ebb_object_replace(checked, 0, ebb_object_new(stage->root, &mended, 0)), 0);
}

static void in_types_that_check(void **state) {
    demand_cancelled_behind(replace_member, *state, 2);
    assert_true(checked->one && checked->one != checked->other);
}

static char written[1024];

static int write_report(void *context, const char *text, size_t bytes) {
    come_to_a_point();
    assert_true(!context && strlen(written) + bytes < sizeof written);
    strncat(written, text, bytes);
    return 0;
}

static void report_couple(struct stage *stage) {
    (void)stage;
    written[0] = '\0';
    assert_int_equal(ebb_report_object(checked, EBB_REPORT_TEXT, write_report, NULL), 0);
    called = 1; /* however many pieces there are */
}

/* What it has noted of members goes behind it. */
static void in_reports(void **state) {
    struct stage *stage = *state;
    char first[sizeof written];
    assert_int_equal(ebb_type_register(&couple_type), 0);
    assert_int_equal(ebb_type_register(&mended), 0);
    checked = couple_in(stage->root);
    report_couple(stage);
    memcpy(first, written, sizeof first);
    demand_cancelled_behind(report_couple, stage, 1);
    assert_string_equal(written, first);
    report_couple(stage);
    assert_string_equal(written, first);
}

/* ---- who waits for a slot ---- */

static bool give_in(void *context) {
    come_to_a_point();
    return context != NULL;
}

static void begin_without_a_slot(struct stage *stage) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 4 * MIB,
                          .wait_ns = UINT64_C(60000000000), .go_on = give_in);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    ebb_region region = OPEN(.pool = pool);
    (void)stage;
    assert_false(ebb_region_is_open(ebb_step_begin(site, 0).region));
    assert_int_equal(ebb_last_error(), EBB_E_SLOTS);
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

static void in_those_that_are_asked_whether_to_go_on(void **state) {
    demand_cancelled_behind(begin_without_a_slot, *state, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(in_a_handler),
        STAGED(in_cleanups),
        STAGED(in_release_checks),
        STAGED(in_deleters),
        STAGED(in_types_that_mend_what_was_copied),
        STAGED(in_types_that_check),
        STAGED(in_reports),
        STAGED(in_those_that_are_asked_whether_to_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
