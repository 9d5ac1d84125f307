// SPDX-License-Identifier: Apache-2.0
/*
 * device.c - pools of a device's memory over the fake driver: blocks of both lanes lie where they
 * are said to lie, apart from each other; copies arrive and stay within their block; the host
 * touches nothing; what needs the host is refused by name; each call that fails leaves what there
 * was.
 */
#include "scene.h"

#include "kit/tensors.h"

#include "base/size.h"

#include <signal.h>
#include <stdlib.h>

static void *take(ebb_region region, size_t bytes, size_t align) {
    void *block = ebb_region_alloc(region, bytes, align);
    assert_non_null(block);
    return block;
}

static void send(ebb_region region, void *block, const void *bytes, size_t count) {
    assert_int_equal(ebb_copy_to_device(region, block, 0, bytes, count, NULL), 0);
}

/* The block has the pattern of `seed`. */
static bool arrived(ebb_region region, const void *block, size_t bytes, unsigned seed) {
    void *back = malloc(bytes + 1);
    assert_non_null(back);
    assert_int_equal(ebb_copy_from_device(region, block, 0, back, bytes, NULL), 0);
    bool holds = pattern_holds(back, bytes, seed);
    free(back);
    return holds;
}

static void send_pattern(ebb_region region, void *block, size_t bytes, unsigned seed) {
    void *there = malloc(bytes + 1);
    assert_non_null(there);
    pattern_fill(there, bytes, seed);
    send(region, block, there, bytes);
    free(there);
}

static void blocks_lie_apart_and_keep_their_bytes(void **state) {
    struct gpu *gpu = *state;
    enum { COUNT = 300 };
    void *blocks[COUNT];
    size_t bytes[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        bytes[i] = i % 7 == 0 ? i * 9973 : i * 13 % 1100;
        blocks[i] = take(gpu->region, bytes[i], i % 5 ? 16 : 256);
        assert_int_equal(ebb_device_address(gpu->region, blocks[i]) % (i % 5 ? 16 : 256), 0);
        send_pattern(gpu->region, blocks[i], bytes[i], i);
        if (i > 100 && i % 3 == 0) {
            assert_int_equal(ebb_region_release(gpu->region, blocks[i - 50]), 0);
            blocks[i - 50] = NULL;
        }
    }
    for (unsigned i = 0; i < COUNT; i++)
        if (blocks[i])
            assert_true(arrived(gpu->region, blocks[i], bytes[i], i));
    assert_int_equal(ebb_check_pool(gpu->pool), 0);
    assert_int_equal(driver_state().allocated_bytes, pool_stats_of(gpu->pool).reserved.current);
    assert_true(driver_state().allocations > 1);
}

static void an_address_is_as_far_from_another_as_the_blocks(void **state) {
    struct gpu *gpu = *state;
    char *first = take(gpu->region, 100, 16), *second = take(gpu->region, 100, 16);
    uint64_t one = ebb_device_address(gpu->region, first);
    assert_true(one != 0 && one != (uint64_t)(uintptr_t)first);
    assert_true(ebb_device_address(gpu->region, second) - one == (uint64_t)(second - first));
}

static void blocks_are_aligned_on_the_device_too(void **state) {
    struct gpu *gpu = *state;
    for (int misaligned = 0; misaligned < 2; misaligned++) {
        fake_cuda_misalign(misaligned);
        for (size_t align = 1; align <= EBB_ALIGN_MAX; align *= 2) {
            void *block = take(gpu->region, 3000, align);
            assert_int_equal(ebb_device_address(gpu->region, block) % align, 0);
            send_pattern(gpu->region, block, 3000, (unsigned)align);
            assert_true(arrived(gpu->region, block, 3000, (unsigned)align));
        }
        take(gpu->region, 10 * MIB, 64); /* a new slab for the next round */
    }
    fake_cuda_misalign(false);
}

/* Of a driver that aligns to less than is needed, a slab is asked for twice. */
static void what_the_driver_refuses_to_take_back_is_not_lost(void **state) {
    ebb_pool *pool = device_pool(0);
    ebb_region region = OPEN(.pool = pool);
    unsigned nth = 1, served = 0;
    fake_cuda_misalign(true);
    for (bool failed = true; failed; nth++) {
        driver_fail(nth, false);
        served += ebb_region_alloc(region, 1000, 64) != NULL;
        failed = driver_relent();
        assert_int_equal(ebb_region_reset(region, 0), 0);
        ebb_pool_trim(pool, 0);
        assert_int_equal(driver_state().allocations, 0);
    }
    fake_cuda_misalign(false);
    assert_true(nth > 9 && served > 4);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
    assert_driver_is_empty();
}

/* Each call from the n-th on, also when it is asked again. */
static void what_it_goes_on_refusing_is_said_by_who_ends_the_pool(void **state) {
    unsigned kept = 0;
    fake_cuda_misalign(true);
    for (unsigned nth = 1; nth < 20; nth++) {
        ebb_pool *pool = device_pool(0);
        ebb_region region = OPEN(.pool = pool);
        driver_fail(nth, true);
        bool served = ebb_region_alloc(region, 1000, 64) != NULL;
        assert_int_equal(ebb_region_close(region), 0);
        int result = served ? 0 : ebb_pool_destroy(pool);
        driver_relent();
        kept += result != 0;
        if (result)
            assert_int_equal(result, EBB_E_DEVICE);
        if (result || served)
            pool_end(pool);
        assert_driver_is_empty();
    }
    fake_cuda_misalign(false);
    assert_true(kept > 1);
}

static void copies_go_to_any_part_of_a_block(void **state) {
    struct gpu *gpu = *state;
    unsigned char back[100], zeros[100] = {0};
    void *block = take(gpu->region, 100, 16);
    assert_int_equal(ebb_fill_device(gpu->region, block, 0, 7, 100, NULL), 0);
    assert_int_equal(ebb_copy_to_device(gpu->region, block, 30, zeros, 40, NULL), 0);
    assert_int_equal(ebb_copy_from_device(gpu->region, block, 20, back, 80, NULL), 0);
    for (int i = 0; i < 80; i++)
        assert_int_equal(back[i], i < 10 || i >= 50 ? 7 : 0);
}

static void nothing_leaves_a_block(void **state) {
    struct gpu *gpu = *state;
    static const struct {
        size_t offset, bytes;
    } outside[] = {{0, 101}, {100, 1}, {101, 0}, {50, 51}, {SIZE_MAX, 2}, {2, SIZE_MAX}, {1, 100}};
    void *block = take(gpu->region, 100, 16);
    char host[100];
    size_t copies = driver_state().copies;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        size_t offset = outside[i].offset, bytes = outside[i].bytes;
        assert_refused(ebb_copy_to_device(gpu->region, block, offset, host, bytes, NULL),
                       EBB_E_SIZE);
        assert_text_names("which has 100");
        assert_refused(ebb_copy_from_device(gpu->region, block, offset, host, bytes, NULL),
                       EBB_E_SIZE);
        assert_refused(ebb_fill_device(gpu->region, block, offset, 0, bytes, NULL), EBB_E_SIZE);
    }
    assert_int_equal(ebb_copy_to_device(gpu->region, block, 100, NULL, 0, NULL), 0);
    assert_refused(ebb_copy_to_device(gpu->region, block, 0, NULL, 1, NULL), EBB_E_ARGUMENT);
    assert_refused(ebb_copy_from_device(gpu->region, block, 0, NULL, 1, NULL), EBB_E_ARGUMENT);
    assert_int_equal(driver_state().waiting, 0);
    assert_int_equal(driver_state().copies, copies);
}

static void what_is_no_block_is_refused(void **state) {
    struct gpu *gpu = *state;
    char here[4], *block = take(gpu->region, 100, 16);
    ebb_region closed = OPEN(.pool = gpu->pool), host = OPEN(.name = "host");
    void *ours = block_of(host, 100, 16);
    assert_int_equal(ebb_region_close(closed), 0);
    assert_true(ebb_device_address(gpu->region, block + 16) == 0);
    assert_refused(ebb_last_error(), EBB_E_INTERIOR);
    assert_refused(ebb_copy_to_device(gpu->region, here, 0, here, 4, NULL), EBB_E_FOREIGN);
    assert_refused(ebb_copy_to_device(gpu->region, ours, 0, here, 4, NULL), EBB_E_FOREIGN);
    assert_refused(ebb_copy_to_device(host, ours, 0, here, 4, NULL), EBB_E_DEVICE);
    assert_text_names("region 'host' of pool 'default' is not memory of a device");
    assert_refused(ebb_copy_to_device(closed, block, 0, here, 4, NULL), EBB_E_STALE);
    assert_refused(ebb_device_finish(host, NULL), EBB_E_DEVICE);
    assert_refused(ebb_device_finish(closed, NULL), EBB_E_STALE);
    assert_int_equal(ebb_region_release(gpu->region, block), 0);
    assert_refused(ebb_fill_device(gpu->region, block, 0, 1, 1, NULL), EBB_E_RELEASED);
    assert_int_equal(ebb_region_close(host), 0);
}

static void blocks_are_copied_on_their_device(void **state) {
    struct gpu *gpu = *state;
    ebb_pool *pool = device_pool(1), *same = device_pool(0);
    ebb_region far = OPEN(.pool = pool), near = OPEN(.pool = same);
    void *from = take(gpu->region, 5000, 64), *to = take(near, 5000, 64);
    void *other = take(far, 64, 64);
    send_pattern(gpu->region, from, 5000, 3);
    assert_int_equal(ebb_copy_on_device(near, to, 0, gpu->region, from, 0, 5000, NULL), 0);
    assert_true(arrived(near, to, 5000, 3));
    assert_refused(ebb_copy_on_device(far, other, 0, gpu->region, from, 0, 64, NULL), EBB_E_DEVICE);
    assert_text_names("64 bytes from device 0 to device 1");
    assert_refused(ebb_copy_on_device(near, to, 0, near, to, 100, 101, NULL), EBB_E_OVERLAP);
    assert_int_equal(ebb_copy_on_device(near, to, 0, near, to, 100, 100, NULL), 0);
    assert_refused(ebb_copy_on_device(near, to, 4999, gpu->region, from, 0, 2, NULL), EBB_E_SIZE);
    assert_refused(ebb_copy_on_device(near, to, 0, gpu->region, from, 4999, 2, NULL), EBB_E_SIZE);
    assert_int_equal(ebb_region_close(far), 0);
    assert_int_equal(ebb_region_close(near), 0);
    pool_end(pool);
    pool_end(same);
}

static void *touched;

static int touch(void) {
    signal(SIGSEGV, SIG_DFL);
    return *(volatile char *)touched == 0;
}

static void the_host_cannot_touch_a_block(void **state) {
    struct gpu *gpu = *state;
    touched = take(gpu->region, 100, 16);
    int end = in_a_child(touch);
    assert_true(end == 128 + SIGSEGV || end == 1); /* 1: AddressSanitizer says it */
}

static void what_needs_the_host_is_refused(void **state) {
    struct gpu *gpu = *state;
    ebb_region child = OPEN(.parent = gpu->region, .name = "below");
    void *block = take(child, 2000, 64), *small = take(child, 100, 16);
    assert_non_null(take(child, 2000, 64));
    struct ebb_survivor list[] = {survivor_of(block, EBB_PROMOTE_AUTO)};
    struct ebb_region_stats before = stats_of(child), after;
    assert_no_block(ebb_region_alloc_zeroed(child, 100, 16), EBB_E_DEVICE);
    assert_text_names("region 'below' is memory of device 0");
    assert_no_block(ebb_region_realloc(child, block, 1 * MIB, 64), EBB_E_DEVICE);
    assert_refused(ebb_region_release_remote(child, small), EBB_E_DEVICE);
    assert_refused(ebb_promote(child, gpu->region, list, 1, NULL), EBB_E_DEVICE);
    assert_no_block(ebb_node_new_none(child), EBB_E_DEVICE);
    assert_no_block(ebb_tensor_new(child, INT32, 1, SIZES(3)), EBB_E_DEVICE);
    after = stats_of(child);
    assert_memory_equal(&before, &after, sizeof before);
    assert_non_null(ebb_region_realloc(child, block, 1000, 64)); /* stays where it is */
    assert_int_equal(ebb_close_keeping(child, gpu->region, NULL, 0, NULL, NULL), 0);
}

static void counters_marks_resets_and_limits_are_as_ever(void **state) {
    struct gpu *gpu = *state;
    ebb_region child = OPEN(.parent = gpu->region, .limit_bytes = 1 * MIB);
    take(child, 100000, 64);
    ebb_mark mark = ebb_region_mark(child);
    for (int i = 0; i < 100; i++)
        take(child, 1000, 16);
    assert_no_block(ebb_region_alloc(child, 1 * MIB, 64), EBB_E_REGION_LIMIT);
    assert_int_equal(stats_of(child).requested.current, 200000);
    assert_int_equal(ebb_region_rewind(child, mark), 0);
    assert_int_equal(stats_of(child).requested.current, 100000);
    assert_int_equal(ebb_region_reset(child, 0), 0);
    assert_int_equal(stats_of(child).blocks.current, 0);
    assert_int_equal(ebb_check_pool(gpu->pool), 0);
    assert_int_equal(ebb_region_close(child), 0);
    for (int i = 0; i < 20; i++) {
        ebb_region step = OPEN(.pool = gpu->pool, .hint_bytes = 3 * MIB);
        assert_true(stats_of(step).reserved.current >= 3 * MIB);
        take(step, 2 * MIB, 4096);
        assert_int_equal(ebb_region_close(step), 0);
    }
    assert_true(driver_state().allocated_bytes <= 8 * MIB);
}

/* The device has 256 MiB. */
static void regions_share_slabs(void **state) {
    struct gpu *gpu = *state;
    ebb_region regions[8];
    for (int i = 0; i < 8; i++)
        regions[i] = OPEN(.pool = gpu->pool);
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 8; i++)
            take(regions[i], 30000, 64);
    assert_true(driver_state().allocated_bytes <= 16 * MIB); /* for 4.6 MiB of blocks */
    for (int i = 0; i < 8; i++)
        assert_int_equal(ebb_region_close(regions[i]), 0);
}

static void a_trim_frees_slabs_that_are_free_all_over(void **state) {
    struct gpu *gpu = *state;
    ebb_region step = OPEN(.pool = gpu->pool);
    take(gpu->region, 100, 16);
    take(step, 50 * MIB, 64);
    assert_int_equal(ebb_region_close(step), 0);
    size_t before = driver_state().allocated_bytes, given = ebb_pool_trim(gpu->pool, 0);
    assert_true(given >= 50 * MIB);
    assert_int_equal(driver_state().allocated_bytes, before - given);
    assert_int_equal(driver_state().allocations, 1);
}

/* Addresses that were a device's are ordinary memory for the next pool. */
static void addresses_go_back_as_they_were(void **state) {
    for (int i = 0; i < 3; i++) {
        ebb_pool *pool = device_pool(0), *host = POOL(.name = "host");
        ebb_region region = OPEN(.pool = pool);
        take(region, 5 * MIB, 64);
        assert_int_equal(ebb_region_close(region), 0);
        pool_end(pool);
        region = OPEN(.pool = host);
        block_of(region, 20 * MIB, 64);
        assert_int_equal(ebb_region_close(region), 0);
        pool_end(host);
    }
}

static void a_device_that_is_not_there_is_refused(void **state) {
    assert_null(POOL(.kind = EBB_KIND_DEVICE, .device = 2));
    assert_refused(ebb_last_error(), EBB_E_DEVICE);
    assert_text_names("device 2 asked, the CUDA driver has 2");
    assert_null(POOL(.kind = EBB_KIND_DEVICE | EBB_KIND_PINNED));
    assert_refused(ebb_last_error(), EBB_E_KIND);
}

/* ---- steps ---- */

/* A block of a step, where it lies on the device. */
struct lying {
    void *block;
    size_t bytes;
    uint64_t from;
    unsigned seed;
};

static void check_apart(const struct lying *lying, size_t count, const struct lying *other) {
    for (size_t i = 0; i < count; i++)
        assert_true(lying[i].from + lying[i].bytes <= other->from ||
                    other->from + other->bytes <= lying[i].from);
}

static void check_release(ebb_region region, struct lying *lying, size_t *count, size_t at) {
    assert_int_equal(ebb_device_address(region, lying[at].block), lying[at].from);
    assert_true(arrived(region, lying[at].block, size_smaller(lying[at].bytes, 500),
                        lying[at].seed));
    assert_int_equal(ebb_region_release(region, lying[at].block), 0);
    lying[at] = lying[--*count];
}

/* 60 blocks of 1 KiB to 90 KiB; one in `odd` has another size, comes not at all, or goes late. */
static void play_step(ebb_site *site, ebb_region parent, uint64_t *chance, unsigned odd) {
    struct lying lying[60];
    size_t count = 0;
    ebb_step step = ebb_step_begin_under(site, parent, 0);
    assert_true(ebb_region_is_open(step.region));
    for (unsigned i = 0; i < 60; i++) {
        *chance = (*chance * 1103515245 + 12345) % ((uint64_t)1 << 31);
        uint64_t fate = odd && *chance / 64 % odd == 0 ? 1 + *chance / 65536 % 3 : 0;
        size_t bytes = 1024 + i * 7919 % 90000 + (fate == 1 ? *chance / 7 % 20000 : 0);
        if (fate == 2)
            continue;
        struct lying new = {take(step.region, bytes, 256), bytes, 0, i};
        new.from = ebb_device_address(step.region, new.block);
        assert_int_equal(new.from % 256, 0);
        check_apart(lying, count, &new);
        send_pattern(step.region, new.block, size_smaller(bytes, 500), i);
        lying[count++] = new;
        while (count > 12 && fate != 3)
            check_release(step.region, lying, &count, i * 5 % count);
    }
    while (count > 3)
        check_release(step.region, lying, &count, 0);
    assert_int_equal(ebb_step_end(step), 0);
}

static void play_site(ebb_pool *pool, ebb_region parent) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "gpu", .pool = pool));
    uint64_t chance = 7;
    assert_non_null(site);
    for (int i = 0; i < 20; i++)
        play_step(site, parent, &chance, 0);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.planned_steps, 18);
    assert_int_equal(stats.missed, 0);
    assert_true(stats.plan_height < stats.plan_max_live + stats.plan_max_live / 4);
    for (unsigned odd = 320; odd > 1; odd /= 2)
        for (int i = 0; i < 12; i++)
            play_step(site, parent, &chance, odd);
    assert_true(site_stats(site).planned_steps > 60);
    assert_true(site_stats(site).missed > 20);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void steps_are_planned_and_blocks_of_others_lie_apart_as_well(void **state) {
    ebb_pool *pool = device_pool(1);
    ebb_region parent = OPEN(.pool = pool);
    take(parent, 5000, 256);
    play_site(pool, (ebb_region){NULL, 0});
    play_site(pool, parent);
    assert_int_equal(ebb_check_pool(pool), 0);
    assert_int_equal(ebb_region_close(parent), 0);
    pool_end(pool);
    assert_driver_is_empty();
}

/* A plan is served from one slab, whatever slabs usually have. */
static void a_plan_larger_than_a_slab_is_in_one_piece(void **state) {
    ebb_pool *pool = device_pool(0);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "large", .pool = pool));
    const size_t bytes = 24 * MIB + 512;
    for (int i = 0; i < 5; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        void *blocks[4];
        char ends[8], back[8];
        for (unsigned k = 0; k < 4; k++) {
            blocks[k] = take(step.region, bytes, 256);
            memset(ends, (int)k + 1, sizeof ends);
            send(step.region, blocks[k], ends, sizeof ends);
            assert_int_equal(ebb_copy_to_device(step.region, blocks[k], bytes - sizeof ends, ends,
                                                sizeof ends, NULL), 0);
        }
        for (unsigned k = 0; k < 8; k++) {
            memset(ends, (int)k / 2 + 1, sizeof ends);
            assert_int_equal(ebb_copy_from_device(step.region, blocks[k / 2],
                                                  k % 2 ? bytes - sizeof ends : 0, back,
                                                  sizeof ends, NULL), 0);
            assert_memory_equal(ends, back, sizeof ends);
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).planned_steps, 3);
    assert_int_equal(site_stats(site).hits, 12);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_true(ebb_pool_trim(pool, 0) >= 96 * MIB);
    pool_end(pool);
    assert_driver_is_empty();
}

static void a_limit_holds_for_planned_steps_too(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_DEVICE, .limit_reserved_bytes = 64 * MIB);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "limited", .pool = pool));
    for (int i = 0; i < 8; i++) {
        ebb_region other = OPEN(.pool = pool);
        if (i >= 2) /* of what steps had before, slabs have to go for it */
            take(other, 20 * MIB, 256);
        ebb_step step = ebb_step_begin(site, 0);
        for (unsigned k = 0; k < 4; k++)
            take(step.region, 10 * MIB, 256);
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(ebb_region_close(other), 0);
    }
    assert_int_equal(site_stats(site).planned_steps, 6);
    assert_true(pool_stats_of(pool).reserved.peak <= 64 * MIB);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
    assert_driver_is_empty();
}

/* A pool is made, grows, copies and ends; what fails is done again. How many calls failed. */
static unsigned live(unsigned nth, bool all) {
    unsigned refusals = 0;
    ebb_pool *pool;
    char host[64] = {1}, back[64] = {0};
    driver_fail(nth, all);
    while (!(pool = POOL(.kind = EBB_KIND_DEVICE))) {
        refusals += driver_relent();
        assert_refused(ebb_last_error(), EBB_E_DEVICE);
        assert_driver_is_empty();
    }
    ebb_region region = OPEN(.pool = pool);
    for (int i = 0; i < 8; i++) {
        void *block;
        struct ebb_region_stats before = stats_of(region);
        while (!(block = ebb_region_alloc(region, 1 * MIB, 64))) {
            struct ebb_region_stats after = stats_of(region);
            assert_memory_equal(&before, &after, sizeof before);
            assert_int_equal(ebb_last_error(), EBB_E_DEVICE);
            refusals += driver_relent();
        }
        while (ebb_copy_to_device(region, block, 5, host, 64, NULL) != 0)
            refusals += driver_relent();
        while (ebb_copy_from_device(region, block, 5, back, 64, NULL) != 0)
            refusals += driver_relent();
        assert_memory_equal(host, back, 64);
    }
    while (ebb_device_finish(region, NULL) != 0)
        refusals += driver_relent();
    assert_int_equal(ebb_region_close(region), 0);
    ebb_pool_trim(pool, 3 * MIB);
    assert_int_equal(ebb_check_pool(pool), 0);
    while (ebb_pool_destroy(pool) != 0) {
        assert_int_equal(ebb_last_error(), EBB_E_DEVICE);
        refusals += driver_relent();
        assert_int_equal(driver_state().allocated_bytes, pool_stats_of(pool).reserved.current);
    }
    return refusals + driver_relent();
}

static void each_call_that_fails_leaves_what_there_was(void **state) {
    unsigned nth = 1;
    for (; live(nth, nth % 2 == 0) != 0; nth++)
        assert_driver_is_empty();
    assert_true(nth > 60);
    assert_driver_is_empty();
}

static struct gpu inherited;
static void *inherited_block;

static void hear(void *calls, const char *text) {
    (void)text;
    ++*(int *)calls;
}

/* Its driver is not used: there is no want of memory that a handler is to hear of. */
static int go_on_in_the_child(void) {
    char host[4] = {0};
    int calls = 0;
    ebb_report_on_exhausted(hear, &calls);
    int bad = ebb_copy_to_device(inherited.region, inherited_block, 0, host, 4, NULL) !=
              EBB_E_DEVICE;
    bad |= strstr(ebb_last_error_text(), "is a fork of") == NULL;
    bad |= ebb_region_alloc(inherited.region, 50 * MIB, 64) != NULL || calls;
    ebb_report_on_exhausted(NULL, NULL);
    bad |= ebb_pool_create(EBB_POOL_OPTIONS(.kind = EBB_KIND_DEVICE)) != NULL;
    bad |= ebb_last_error() != EBB_E_DEVICE;
    bad |= ebb_region_close(inherited.region) != 0;
    bad |= ebb_pool_trim(inherited.pool, 0) == 0;
    return bad | (ebb_pool_destroy(inherited.pool) != 0);
}

static void a_forked_child_leaves_the_device_alone(void **state) {
    struct gpu *gpu = *state;
    inherited = *gpu;
    inherited_block = take(gpu->region, 100, 16);
    send_pattern(gpu->region, inherited_block, 100, 8);
    assert_int_equal(in_a_child(go_on_in_the_child), 0);
    assert_true(arrived(gpu->region, inherited_block, 100, 8));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        ON_GPU(blocks_lie_apart_and_keep_their_bytes),
        ON_GPU(an_address_is_as_far_from_another_as_the_blocks),
        ON_GPU(blocks_are_aligned_on_the_device_too),
        cmocka_unit_test(what_the_driver_refuses_to_take_back_is_not_lost),
        cmocka_unit_test(what_it_goes_on_refusing_is_said_by_who_ends_the_pool),
        ON_GPU(copies_go_to_any_part_of_a_block),
        ON_GPU(nothing_leaves_a_block),
        ON_GPU(what_is_no_block_is_refused),
        ON_GPU(blocks_are_copied_on_their_device),
        ON_GPU(the_host_cannot_touch_a_block),
        ON_GPU(what_needs_the_host_is_refused),
        ON_GPU(counters_marks_resets_and_limits_are_as_ever),
        ON_GPU(regions_share_slabs),
        ON_GPU(a_trim_frees_slabs_that_are_free_all_over),
        cmocka_unit_test(addresses_go_back_as_they_were),
        cmocka_unit_test(a_device_that_is_not_there_is_refused),
        cmocka_unit_test(steps_are_planned_and_blocks_of_others_lie_apart_as_well),
        cmocka_unit_test(a_plan_larger_than_a_slab_is_in_one_piece),
        cmocka_unit_test(a_limit_holds_for_planned_steps_too),
        cmocka_unit_test(each_call_that_fails_leaves_what_there_was),
        ON_GPU(a_forked_child_leaves_the_device_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
