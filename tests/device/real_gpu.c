// SPDX-License-Identifier: Apache-2.0
/*
 * real_gpu.c - the same over the real driver, where there is one: what was copied comes back, steps
 * are planned, the driver takes registered pages, fences pass, everything is given back. Prints
 * what things cost as rows: device<TAB>case<TAB>metric<TAB>value. Without a driver or a device:
 * exit code 77, skipped.
 */
#include <ebb/ebb.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB ((size_t)1 << 20)

static void demand(bool holds, const char *claim, int line) {
    if (holds)
        return;
    fprintf(stderr, "real_gpu.c:%d: %s (last error: %s)\n", line, claim, ebb_last_error_text());
    exit(1);
}

#define DEMAND(claim) demand((claim), #claim, __LINE__)

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_row(const char *what, const char *metric, double value) {
    printf("device\t%s\t%s\t%.3f\n", what, metric, value);
}

static ebb_pool *make_pool(unsigned kind, const char *name) {
    double began = now_s();
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(.kind = kind, .name = name));
    DEMAND(pool);
    print_row(name, "create_ms", (now_s() - began) * 1e3);
    return pool;
}

static void fill(unsigned char *bytes, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)((i * 2654435761u + seed) >> 7);
}

static bool is_filled(const unsigned char *bytes, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != (unsigned char)((i * 2654435761u + seed) >> 7))
            return false;
    return true;
}

/* Blocks of many sizes go there, from one to another on the device, and back. */
static void copy_round(ebb_pool *device) {
    static const size_t sizes[] = {1, 100, 1024, 4097, 100000, 3 * MIB + 5, 40 * MIB};
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.pool = device));
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = sizes[i];
        unsigned char *there = malloc(bytes), *back = calloc(1, bytes);
        void *first = ebb_region_alloc(region, bytes, 256);
        void *second = ebb_region_alloc(region, bytes, 64);
        DEMAND(there && back && first && second);
        DEMAND(ebb_device_address(region, first) % 256 == 0);
        fill(there, bytes, i);
        DEMAND(ebb_fill_device(region, second, 0, 0xFF, bytes, NULL) == 0);
        DEMAND(ebb_copy_to_device(region, first, 0, there, bytes, NULL) == 0);
        DEMAND(ebb_copy_on_device(region, second, 0, region, first, 0, bytes, NULL) == 0);
        DEMAND(ebb_copy_from_device(region, second, 0, back, bytes, NULL) == 0);
        DEMAND(ebb_device_finish(region, NULL) == 0);
        DEMAND(is_filled(back, bytes, i));
        free(there);
        free(back);
    }
    DEMAND(ebb_region_close(region) == 0);
}

static void time_copies(ebb_pool *device, const void *source, size_t bytes, const char *name) {
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.pool = device));
    void *target = ebb_region_alloc(region, bytes, 256);
    DEMAND(target);
    double best = 1e9;
    for (int round = 0; round < 10; round++) {
        double began = now_s();
        DEMAND(ebb_copy_to_device(region, target, 0, source, bytes, NULL) == 0);
        DEMAND(ebb_device_finish(region, NULL) == 0);
        double took = now_s() - began;
        best = took < best ? took : best;
    }
    print_row(name, "to_device_gb_per_s", (double)bytes / best / 1e9);
    DEMAND(ebb_region_close(region) == 0);
}

/* Pinned memory: the driver takes it, a fence passes behind the copy and not before it. */
static void copy_pinned(ebb_pool *device) {
    ebb_pool *pool = make_pool(EBB_KIND_PINNED, "pinned");
    size_t bytes = 256 * MIB, pinned;
    ebb_region batch = ebb_region_open(EBB_REGION_OPTIONS(.pool = pool));
    double began = now_s();
    unsigned char *source = ebb_region_alloc(batch, bytes, 4096);
    DEMAND(source);
    print_row("pinned", "register_ms_per_mib", (now_s() - began) * 1e3 / 256);
    DEMAND(ebb_pool_pinning(pool, &pinned) == EBB_PINNING_REGISTERED && pinned >= bytes);
    fill(source, bytes, 5);
    time_copies(device, source, bytes, "pinned");

    struct ebb_fence fence = {{0}};
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.pool = device));
    void *target = ebb_region_alloc(region, bytes, 256);
    unsigned early = 0;
    DEMAND(target);
    for (int round = 0; round < 10; round++) {
        DEMAND(ebb_copy_to_device(region, target, 0, source, bytes, NULL) == 0);
        DEMAND(ebb_fence_record(&fence, 0, NULL) == 0);
        int done = ebb_fence_is_done(&fence);
        DEMAND(done >= 0);
        early += done == 1;
        while (ebb_fence_is_done(&fence) == 0)
            ;
        source[0]++; /* the memory is ours again */
    }
    print_row("fence", "done_at_once_of_10", early);
    DEMAND(ebb_fence_end(&fence) == 0);
    DEMAND(ebb_region_close(region) == 0 && ebb_region_close(batch) == 0);
    DEMAND(ebb_pool_destroy(pool) == 0);
}

static void time_steps(ebb_pool *device) {
    double began = 0;
    enum { STEPS = 200, BLOCKS = 500 };
    for (int step = -20; step < STEPS; step++) {
        if (step == 0)
            began = now_s();
        ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.pool = device));
        for (size_t i = 0; i < BLOCKS; i++)
            DEMAND(ebb_region_alloc(region, 5000 + i * 137 % 60000, 256));
        DEMAND(ebb_region_close(region) == 0);
    }
    print_row("steady_step", "ns_per_block", (now_s() - began) * 1e9 / STEPS / BLOCKS);
}

/* A block all of whose bytes are of one value. */
struct filled {
    void *block;
    size_t bytes;
    unsigned char value;
};

enum { IN_STEP = 120, ALIVE = 12, MOST = 1 << 20 };

static struct filled take_filled(ebb_region region, size_t bytes, unsigned char value) {
    struct filled one = {ebb_region_alloc(region, bytes, 256), bytes, value};
    DEMAND(one.block && ebb_device_address(region, one.block) % 256 == 0);
    DEMAND(ebb_fill_device(region, one.block, 0, value, bytes, NULL) == 0);
    return one;
}

static void check_filled(ebb_region region, struct filled one) {
    static unsigned char host[MOST];
    DEMAND(ebb_copy_from_device(region, one.block, 0, host, one.bytes, NULL) == 0);
    for (size_t i = 0; i < one.bytes; i++)
        DEMAND(host[i] == one.value);
}

/* A step whose every block is read back before it goes; the parent gets a copy of the last one. Odd
 * ones leave out blocks, have some of other sizes, and give back in another order. */
static struct filled play_step(ebb_site *site, ebb_region parent, unsigned number, bool odd) {
    struct filled alive[ALIVE], last = {NULL, 0, 0};
    ebb_step step = ebb_step_begin_under(site, parent, 0);
    unsigned count = 0;
    for (unsigned i = 0; i < IN_STEP; i++) {
        size_t bytes = ((size_t)512 << i * 7 % 12) - i * 37 % 500;
        if (odd && i % 11 == number % 11)
            continue;
        if (odd && i % 13 == number % 13)
            bytes = 1 + bytes * (number % 3) / 2;
        if (count == ALIVE) {
            unsigned goes = odd ? number % ALIVE : i % ALIVE;
            check_filled(step.region, alive[goes]);
            DEMAND(ebb_region_release(step.region, alive[goes].block) == 0);
            alive[goes] = alive[--count];
        }
        last = alive[count++] = take_filled(step.region, bytes, (unsigned char)(number * 31 + i));
    }
    for (unsigned i = 0; i < count; i++)
        check_filled(step.region, alive[i]);
    struct filled kept = take_filled(parent, last.bytes, 0);
    kept.value = last.value;
    DEMAND(ebb_copy_on_device(parent, kept.block, 0, step.region, last.block, 0, last.bytes,
                              NULL) == 0);
    DEMAND(ebb_step_end(step) == 0);
    return kept;
}

/* Planned offsets hold on the device: no block lies in another, whatever the step did. */
static void plan_steps(ebb_pool *device) {
    enum { STEPS = 60, KEPT = 3 };
    struct filled kept[KEPT] = {{NULL, 0, 0}};
    struct ebb_site_stats stats = {.size = sizeof stats};
    ebb_region parent = ebb_region_open(EBB_REGION_OPTIONS(.pool = device));
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "gpu", .pool = device));
    DEMAND(site && ebb_region_is_open(parent));
    for (unsigned step = 0; step < STEPS; step++) {
        struct filled *place = &kept[step % KEPT];
        if (place->block) {
            check_filled(parent, *place);
            DEMAND(ebb_region_release(parent, place->block) == 0);
        }
        *place = play_step(site, parent, step, step >= STEPS / 3 && step % 3 == 0);
    }
    for (unsigned i = 0; i < KEPT; i++)
        check_filled(parent, kept[i]);
    DEMAND(ebb_site_read_stats(site, &stats) == 0);
    DEMAND(stats.planned_steps > STEPS / 2 && stats.hits > stats.allocations / 2);
    print_row("planned_steps", "hits_percent",
              (double)stats.hits * 100 / (double)stats.allocations);
    DEMAND(ebb_site_destroy(site) == 0 && ebb_region_close(parent) == 0);
}

/* The device is full of slabs, each of which is free and too short: they make room. */
static void fill_device(void) {
    enum { MOST_SLABS = 64 };
    size_t bytes = 4096 * MIB, count = 0;
    ebb_pool *pool = make_pool(EBB_KIND_DEVICE, "filled");
    ebb_region regions[MOST_SLABS];
    for (; count < MOST_SLABS; count++) {
        regions[count] = ebb_region_open(EBB_REGION_OPTIONS(.pool = pool));
        if (!ebb_region_alloc(regions[count], bytes, 256))
            break;
    }
    DEMAND(count == MOST_SLABS || ebb_last_error() == EBB_E_DEVICE);
    for (size_t i = 0; i <= count && i < MOST_SLABS; i++)
        DEMAND(ebb_region_close(regions[i]) == 0);
    print_row("filled", "gib", (double)count * 4);
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.pool = pool));
    double began = now_s();
    if (count > 1)
        DEMAND(ebb_region_alloc(region, (count - 1) * bytes, 256));
    print_row("filled", "room_made_ms", (now_s() - began) * 1e3);
    DEMAND(ebb_region_close(region) == 0 && ebb_pool_destroy(pool) == 0);
}

int main(void) {
    int devices = ebb_device_count();
    if (devices <= 0) {
        printf("skipped: %s\n", ebb_last_error_text());
        return 77;
    }
    print_row("driver", "devices", devices);
    ebb_pool *device = make_pool(EBB_KIND_DEVICE, "device");
    copy_round(device);
    time_steps(device);
    plan_steps(device);
    unsigned char *pageable = malloc(256 * MIB);
    DEMAND(pageable);
    fill(pageable, 256 * MIB, 1);
    time_copies(device, pageable, 256 * MIB, "pageable");
    free(pageable);
    copy_pinned(device);
    double began = now_s();
    size_t given = ebb_pool_trim(device, 0);
    print_row("device", "trim_ms", (now_s() - began) * 1e3);
    DEMAND(given > 0 && ebb_check_pool(device) == 0);
    DEMAND(ebb_pool_destroy(device) == 0);
    fill_device();
    return 0;
}
