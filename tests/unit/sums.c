// SPDX-License-Identifier: Apache-2.0
/*
 * sums.c - what is said of the process is the sum of what its pools say, field by field. Who reads
 * while another thread is at work in a step gets a wrong number at most.
 */
#include "kit/dlpack.h"

#include "base/poison.h"
#include "region/track.h"

enum { FIELDS = sizeof(struct ebb_pool_stats) / sizeof(uint64_t) };

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "all fields are numbers of one size");

/* What the process says; its size is none of the sums. */
static void read_all(uint64_t fields[FIELDS]) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_process_read_stats(&stats), 0);
    memcpy(fields, &stats, sizeof stats);
    fields[0] = 0;
}

static void read_pool(ebb_pool *pool, uint64_t fields[FIELDS]) {
    struct ebb_pool_stats stats = pool_stats_of(pool);
    memcpy(fields, &stats, sizeof stats);
    fields[0] = 0;
}

static void assert_all_say(const uint64_t before[FIELDS], const uint64_t more[FIELDS]) {
    uint64_t after[FIELDS];
    read_all(after);
    for (unsigned i = 0; i < FIELDS; i++)
        if (after[i] != before[i] + more[i])
            fail_msg("field %u: %llu is not %llu + %llu", i, (unsigned long long)after[i],
                     (unsigned long long)before[i], (unsigned long long)more[i]);
}

/* A region ends, and leaves a survivor where it is. */
static void end_with_a_survivor(ebb_region above) {
    ebb_region region = OPEN(.parent = above);
    block_of(region, 100, 16);
    struct ebb_survivor survivor =
        survivor_of(block_of(region, 10000, 4096), EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_close_keeping(region, above, &survivor, 1, NULL, NULL), 0);
}

/* A region ends, and leaves pages under an export, and hot ones. */
static DLManagedTensor *end_with_an_export(ebb_pool *pool) {
    ebb_region region = OPEN(.pool = pool);
    DLManagedTensor *managed = share(tensor_of_bytes(region, 100000));
    block_of(region, 3 * MIB, 64);
    assert_int_equal(ebb_region_close(region), 0);
    return managed;
}

static void the_process_sums_each_field_of_its_pools(void **state) {
    uint64_t before[FIELDS], fields[FIELDS];
    read_all(before);
    ebb_pool *pool = POOL(.name = "summed");
    ebb_region root = OPEN(.pool = pool);
    end_with_a_survivor(root);
    DLManagedTensor *managed = end_with_an_export(pool);
    (void)ebb_pool_trim(pool, pool_stats_of(pool).cached / 2);
    read_pool(pool, fields);
    for (unsigned i = 1; i < FIELDS; i++)
        if (!fields[i]) /* it would not be seen to be left out */
            fail_msg("field %u is 0", i);
    assert_all_say(before, fields);
    give_back(managed);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* What ebb follows as a pointer lies in the default pool meanwhile. */
static void a_shared_pool_is_the_sum_of_its_slots(void **state) {
    uint64_t before[FIELDS], safes_before[FIELDS], safes[FIELDS], fields[FIELDS];
    ebb_pool *pool = POOL(.name = "slots", .kind = EBB_KIND_SHARED, .slots = 4,
                          .slot_bytes = 16 * MIB);
    assert_non_null(pool);
    read_all(before);
    read_pool(ebb_pool_default(), safes_before);
    ebb_region open = OPEN(.pool = pool), closed = OPEN(.pool = pool);
    block_of(open, 5000, 64);
    DLManagedTensor *managed = share(tensor_of_bytes(closed, 100000));
    assert_int_equal(ebb_region_close(closed), 0);
    struct ebb_pool_stats stats = pool_stats_of(pool);
    assert_true(stats.held >= 100000 && stats.owned >= 5000 && stats.open_regions == 1);
    read_pool(pool, fields);
    read_pool(ebb_pool_default(), safes);
    for (unsigned i = 0; i < FIELDS; i++)
        fields[i] += safes[i] - safes_before[i];
    assert_all_say(before, fields);
    give_back(managed);
    assert_int_equal(ebb_region_close(open), 0);
    pool_end(pool);
}

/* A step that follows its plan, and has served some of it. */
static ebb_step served_step(ebb_site *site) {
    for (unsigned i = 0;; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (unsigned k = 0; k < 8; k++)
            block_of(step.region, 5000, 64);
        if (i == 4)
            return step;
        assert_int_equal(ebb_step_end(step), 0);
    }
}

/* As another thread may find it, before or after some of its fields have changed. */
static void what_is_found_half_changed_is_left_out(void **state) {
    static struct track_slot elsewhere;
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    ebb_step step = served_step(site);
    struct track *track = ((struct region *)step.region.lane)->track;
    assert_true(track && track->plan && track->slots_limit > 8);
    struct track seen = *track;
    uint64_t blocks = pool_stats_of(stage->pool).blocks.current;
    track->open = true;
    track->next = &elsewhere; /* far away, on one side or the other */
    assert_true(pool_stats_of(stage->pool).blocks.current <= blocks);
    track->next = track->slots + track->slots_limit;
    assert_true(pool_stats_of(stage->pool).blocks.current <= blocks);
    track->open = false;
    track->cursor = UINT32_MAX;
    assert_true(pool_stats_of(stage->pool).blocks.current <= blocks);
    *track = seen;
    assert_int_equal(pool_stats_of(stage->pool).blocks.current, blocks);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Blocks come, and half of them go; nobody has looked at the step meanwhile. */
static ebb_step half_gone(ebb_site *site) {
    enum { BLOCKS = 40 };
    void *blocks[BLOCKS];
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned k = 0; k < BLOCKS; k++)
        blocks[k] = block_of(step.region, 5000, 64);
    for (unsigned k = 0; k < BLOCKS / 2; k++)
        assert_int_equal(ebb_region_release(step.region, blocks[k]), 0);
    return step;
}

static void a_pool_has_the_peaks_of_its_steps_before_they_are_read(void **state) {
    enum { STEPS = 12 };
    unsigned planned = 0, due = 0;
    struct stage *stage = *state;
    ebb_pool *pool = stage->pool;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < STEPS; i++) {
        ebb_step step = half_gone(site);
        const struct track *track = ((struct region *)step.region.lane)->track;
        planned += track && track->plan;
        due += track && track->due.on;
        /* as if those before it had never been */
        pool->closed_blocks.peak = pool->closed_requested.peak = pool->closed_used.peak = 0;
        struct ebb_pool_stats all = pool_stats_of(pool);
        struct ebb_region_stats one = stats_of(step.region);
        assert_int_equal(all.blocks.peak, one.blocks.peak);
        assert_int_equal(all.requested.peak, one.requested.peak);
        assert_int_equal(all.used.peak, one.used.peak);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_true(planned && due < planned);
    assert_true(EBB_POISON || due);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_sums_each_field_of_its_pools),
        cmocka_unit_test(a_shared_pool_is_the_sum_of_its_slots),
        STAGED(a_pool_has_the_peaks_of_its_steps_before_they_are_read),
        STAGED(what_is_found_half_changed_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
