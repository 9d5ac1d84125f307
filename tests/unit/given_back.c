// SPDX-License-Identifier: Apache-2.0
/*
 * given_back.c - exports that were given back while their region is open: nobody needs the bytes
 * any more, so they are in the way of no limit, and count nowhere that somebody looks.
 */
#include "kit/boxes.h"
#include "kit/dlpack.h"
#include "kit/text.h"

#include <pthread.h>
#include <stdatomic.h>

enum { ROUNDS = 40 };

/* A tensor comes, is exported, and ends; then the consumer gives it back. */
static void pass_on(ebb_region region, size_t bytes) {
    struct ebb_tensor *tensor = tensor_of_bytes(region, bytes);
    DLManagedTensor *managed = share(tensor);
    assert_int_equal(ebb_object_end(tensor), 0);
    give_back(managed);
}

static void they_are_not_in_the_way_of_a_limit(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .limit_bytes = 1 * MIB);
    for (unsigned i = 0; i < ROUNDS; i++)
        pass_on(region, 300 * KIB);
    assert_int_equal(ebb_region_close(region), 0);
}

static void their_bytes_are_used_again(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    for (unsigned i = 0; i < ROUNDS; i++)
        pass_on(region, 1 * MIB);
    struct ebb_region_stats stats = stats_of(region);
    assert_true(stats.blocks.peak <= 2);
    assert_true(stats.reserved.peak < 4 * MIB);
    assert_int_equal(ebb_region_close(region), 0);
}

/* However many were out before. */
static void few_stay_where_there_were_many(void **state) {
    enum { MANY = 100 };
    struct stage *stage = *state;
    DLManagedTensor *out[MANY];
    ebb_region region = OPEN(.parent = stage->root, .limit_bytes = 1 * MIB);
    for (unsigned i = 0; i < MANY; i++) {
        struct ebb_tensor *tensor = tensor_of_bytes(region, 5000);
        out[i] = share(tensor);
        assert_int_equal(ebb_object_end(tensor), 0);
    }
    for (unsigned i = 0; i < MANY; i++)
        give_back(out[i]);
    assert_int_equal(ebb_region_count_exports(region), 0);
    for (unsigned i = 0; i < ROUNDS; i++)
        pass_on(region, 300 * KIB);
    assert_int_equal(ebb_region_close(region), 0);
}

/* A type that looks at its region when it is composed, and does not agree. */
static struct ebb_region_stats seen;

static int look_and_refuse(const struct ebb_object *object) {
    seen = stats_of(ebb_object_owner(object));
    return EBB_E_ARGUMENT;
}

static const struct ebb_field pair_fields[] = {EBB_FIELD(struct box, EBB_FIELD_OBJECT, left),
                                               EBB_FIELD(struct box, EBB_FIELD_OBJECT, right)};
static struct ebb_type pair_type = {.name = "refused", .bytes = sizeof(struct box),
                                    .fields = pair_fields, .field_count = 2,
                                    .check = look_and_refuse};

static void assert_same_now(const struct ebb_pool_stats *before, ebb_pool *pool) {
    struct ebb_pool_stats after = pool_stats_of(pool);
    assert_int_equal(after.blocks.current, before->blocks.current);
    assert_int_equal(after.requested.current, before->requested.current);
    assert_int_equal(after.used.current, before->used.current);
    assert_int_equal(ebb_check_pool(pool), 0);
}

/* Calls that fail undo what they counted, but not what was given back meanwhile. */
static void what_is_undone_brings_none_back(void **state) {
    struct stage *stage = *state;
    ebb_pool *pools[] = {stage->pool, POOL(.kind = EBB_KIND_SHARED, .slots = 2)};
    assert_int_equal(ebb_type_register(&pair_type), 0);
    for (unsigned i = 0; i < 2; i++) {
        ebb_region region = OPEN(.pool = pools[i]);
        struct box *pair = ebb_object_new(region, &pair_type, 0);
        assert_non_null(pair);
        pair->left = &tensor_of_bytes(region, 100)->object;
        struct ebb_region_stats before = stats_of(region);
        struct ebb_pool_stats heads = pool_stats_of(ebb_pool_default()); /* of what is shared */
        pass_on(region, 5000);
        assert_int_equal(ebb_object_compose(pair), EBB_E_ARGUMENT);
        assert_same_now(&heads, ebb_pool_default());
        assert_int_equal(seen.requested.current, before.requested.current);
        assert_int_equal(stats_of(region).blocks.current, before.blocks.current);
        assert_int_equal(stats_of(region).used.current, before.used.current);
        assert_int_equal(ebb_check_pool(pools[i]), 0);
        assert_int_equal(ebb_region_close(region), 0);
    }
    pool_end(pools[1]);
}

static void nobody_counts_them(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .name = "step");
    ebb_region below = OPEN(.parent = region, .name = "below");
    struct page page = {.length = 0};
    uint64_t lost = 1;
    pass_on(region, 5000);
    assert_int_equal(stats_of(region).blocks.current, 0);
    pass_on(region, 5000);
    assert_int_equal(ebb_report_leaks(region, EBB_REPORT_TEXT, page_write, &page), 0);
    assert_string_equal(page.text, "live blocks of region step: 0\n");
    pass_on(region, 5000);
    pass_on(below, 5000);
    page.length = 0;
    assert_int_equal(ebb_report_region(region, EBB_REPORT_JSON, page_write, &page), 0);
    assert_null(strstr(page.text, "\"blocks\":1"));
    pass_on(region, 5000);
    pass_on(below, 5000);
    assert_int_equal(ebb_close_keeping(region, stage->root, NULL, 0, NULL, &lost), 0);
    assert_int_equal(lost, 0);
}

static void a_step_has_not_lost_them(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 6; i++) {
        ebb_step step = ebb_step_begin_under(site, stage->root, 0);
        uint64_t lost = 0;
        pass_on(step.region, 5000);
        block_of(step.region, 7000, 64);
        assert_int_equal(ebb_step_end_keeping(step, stage->root, NULL, 0, NULL, &lost), 0);
        assert_int_equal(lost, 1);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A large block whose tensor has ended: it lives as long as its export. */
struct exported {
    void *block;
    DLManagedTensor *managed;
};

static struct exported exported_in(ebb_region region, size_t bytes) {
    struct ebb_tensor *tensor = tensor_of_bytes(region, bytes);
    struct exported exported = {tensor->storage->block, share(tensor)};
    assert_int_equal(ebb_object_end(tensor), 0);
    return exported;
}

static void they_are_none_to_promote(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    struct exported exported = exported_in(region, 50000);
    struct ebb_survivor survivor = survivor_of(exported.block, EBB_PROMOTE_COPY);
    give_back(exported.managed);
    assert_refused(ebb_promote(region, stage->root, &survivor, 1, NULL), EBB_E_RELEASED);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    assert_int_equal(ebb_region_close(region), 0);
}

static void they_are_none_to_keep(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (int is_step = 0; is_step < 2; is_step++) {
        ebb_step step = {.lane = NULL};
        uint64_t lost = 77;
        if (is_step)
            step = ebb_step_begin_under(site, stage->root, 0);
        ebb_region region = is_step ? step.region : OPEN(.parent = stage->root);
        struct exported exported = exported_in(region, 50000);
        struct ebb_survivor survivor = survivor_of(exported.block, EBB_PROMOTE_COPY);
        give_back(exported.managed);
        int result = is_step
                         ? ebb_step_end_keeping(step, stage->root, &survivor, 1, NULL, &lost)
                         : ebb_close_keeping(region, stage->root, &survivor, 1, NULL, &lost);
        assert_refused(result, EBB_E_RELEASED);
        assert_int_equal(lost, 77);
        assert_int_equal(is_step ? ebb_step_end(step) : ebb_region_close(region), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Nobody has looked at the region since. */
static void their_blocks_are_resized_and_released(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 6; i++) { /* the later ones by a plan */
        ebb_step step = ebb_step_begin_under(site, stage->root, 0);
        struct ebb_tensor *tensor = tensor_of_bytes(step.region, 50000);
        void *block = tensor->storage->block;
        size_t bytes = ebb_region_block_bytes(step.region, block);
        DLManagedTensor *managed = share(tensor);
        assert_refused(ebb_region_resize(step.region, block, bytes), EBB_E_BUSY);
        assert_no_block(ebb_region_alloc(step.region, 100, 3), EBB_E_ALIGNMENT);
        give_back(managed);
        assert_int_equal(ebb_region_resize(step.region, block, bytes), 0);
        give_back(share(tensor));
        assert_ptr_equal(ebb_region_realloc(step.region, block, bytes, 64), block);
        assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT); /* the last that was refused */
        assert_int_equal(ebb_object_end(tensor), 0);
        struct exported exported = exported_in(step.region, 60000);
        assert_refused(ebb_region_release(step.region, exported.block), EBB_E_BUSY);
        give_back(exported.managed);
        assert_refused(ebb_region_release(step.region, exported.block), EBB_E_RELEASED);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).hits, 4 * 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Gives the export back while the other thread copies its block, or shortly before. */
struct consumer {
    DLManagedTensor *managed;
    atomic_int starts;
};

static void *give_back_now(void *context) {
    struct consumer *consumer = context;
    while (!atomic_load(&consumer->starts))
        ;
    give_back(consumer->managed);
    return NULL;
}

static void one_that_comes_back_meanwhile_is_lost_or_kept(void **state) {
    struct stage *stage = *state;
    for (unsigned i = 0; i < ROUNDS; i++) {
        ebb_region region = OPEN(.parent = stage->root);
        struct exported exported = exported_in(region, 4 * MIB);
        struct ebb_survivor survivor = survivor_of(exported.block, EBB_PROMOTE_COPY);
        struct consumer consumer = {.managed = exported.managed};
        pthread_t thread;
        uint64_t lost = 77;
        assert_int_equal(pthread_create(&thread, NULL, give_back_now, &consumer), 0);
        atomic_store(&consumer.starts, 1);
        int result = ebb_close_keeping(region, stage->root, &survivor, 1, NULL, &lost);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(result == 0 || result == EBB_E_RELEASED);
        assert_int_equal(lost, result ? 77 : 0);
        assert_int_equal(result ? ebb_region_close(region)
                                : ebb_region_release(stage->root, survivor.block), 0);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(they_are_not_in_the_way_of_a_limit),
        STAGED(their_bytes_are_used_again),
        STAGED(few_stay_where_there_were_many),
        STAGED(what_is_undone_brings_none_back),
        STAGED(nobody_counts_them),
        STAGED(a_step_has_not_lost_them),
        STAGED(they_are_none_to_promote),
        STAGED(they_are_none_to_keep),
        STAGED(their_blocks_are_resized_and_released),
        STAGED(one_that_comes_back_meanwhile_is_lost_or_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
