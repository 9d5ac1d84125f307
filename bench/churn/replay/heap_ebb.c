// SPDX-License-Identifier: Apache-2.0
/*
 * heap_ebb.c - ebb as a heap; the only file of the benchmark that calls the library.
 *
 * A root region holds what belongs to no marked region: preexisting objects and what is allocated
 * between steps. Each marked region is a region, child of the one around it or of the root. When
 * it closes, its survivors are promoted to the parent (mode auto) by the same call, and the slots
 * learn the new addresses. Blocks are released in the region that owns them at that moment.
 *
 * The file is compiled into ebb-heap.so, which is preloaded; the names it needs from the program
 * (account, fault) are the program's own.
 */
#include <ebb/ebb.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "loop.h"

static ebb_region *regions;         /* by number of the script; 0: the root */
static struct ebb_survivor *kept;   /* room for the longest list of one closing */
static struct ebb_promoted cost;    /* of all promotions so far */

static inline void *take(uint16_t region, size_t bytes, size_t align) {
    return ebb_region_alloc(regions[region], bytes, align);
}

static inline void *take_zeroed(uint16_t region, size_t bytes, size_t align) {
    return ebb_region_alloc_zeroed(regions[region], bytes, align);
}

static inline void *resize(uint16_t region, void *block, size_t bytes) {
    return ebb_region_realloc(regions[region], block, bytes, (size_t)1 << SCRIPT_ALIGN_LOG2);
}

static inline void give(uint16_t owner, void *block) {
    if (__builtin_expect(ebb_region_release(regions[owner], block) != 0, 0))
        fault_heap("ebb_region_release", ebb_last_error_text());
}

static inline void *move(uint16_t owner, uint16_t region, void *block, size_t old, size_t bytes) {
    void *moved = take(region, bytes, (size_t)1 << SCRIPT_ALIGN_LOG2);
    if (!moved)
        return NULL;
    memcpy(moved, block, old < bytes ? old : bytes);
    give(owner, block);
    return moved;
}

static inline bool open_region(uint16_t region, uint16_t parent) {
    regions[region] = ebb_region_open(EBB_REGION_OPTIONS(.parent = regions[parent]));
    return regions[region].lane != NULL;
}

static bool close_keeping(uint16_t region, uint16_t parent, struct slot *slots,
                          const struct script_survivor *survivors, uint32_t count) {
    uint64_t lost = 0;
    for (uint32_t i = 0; i < count; i++)
        kept[i] = (struct ebb_survivor){.block = slots[survivors[i].slot].block,
                                        .align = survivors[i].align,
                                        .mode = EBB_PROMOTE_AUTO};
    if (ebb_close_keeping(regions[region], regions[parent], kept, count, &cost, &lost) != 0)
        fault_heap("ebb_close_keeping", ebb_last_error_text());
    if (lost)
        fault_heap("ebb_close_keeping", "blocks were lost that nobody knew of");
    for (uint32_t i = 0; i < count; i++)
        slots[survivors[i].slot].block = kept[i].block;
    return true;
}

static inline bool close_region(uint16_t region, uint16_t parent, struct slot *slots,
                                const struct script_survivor *survivors, uint32_t count) {
    if (count)
        return close_keeping(region, parent, slots, survivors, count);
    if (ebb_region_close(regions[region]) != 0)
        fault_heap("ebb_region_close", ebb_last_error_text());
    return true;
}

static const struct heap_ops ops = {take, take_zeroed, resize,      move,
                                    give, open_region, close_region};

static void pass_bare(struct replay *replay) {
    loop_pass(replay, &ops, REPLAY_BARE);
}

static void pass_touch(struct replay *replay) {
    loop_pass(replay, &ops, REPLAY_TOUCH);
}

static void pass_account(struct replay *replay) {
    loop_pass(replay, &ops, REPLAY_ACCOUNT);
}

static void *map_table(size_t count, size_t bytes) {
    void *at = mmap(NULL, (count + 1) * bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool start(const struct script *script) {
    regions = map_table(script->region_count, sizeof *regions);
    kept = map_table(script->survivors_max, sizeof *kept);
    if (!regions || !kept)
        return false;
    regions[0] = ebb_region_open(EBB_REGION_OPTIONS(.name = "root"));
    if (regions[0].lane)
        return true;
    fprintf(stderr, "ebb_region_open failed: %s\n", ebb_last_error_text());
    return false;
}

/* What is summed over steady steps, and the highest that was seen after one. */
static struct {
    struct ebb_promoted before, steady;
    uint64_t pinned, waste, runs;
    struct ebb_pool_stats pool;
} seen;

static uint64_t higher(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void add_promotions(void) {
    seen.steady.copied_bytes += cost.copied_bytes - seen.before.copied_bytes;
    seen.steady.relinked_bytes += cost.relinked_bytes - seen.before.relinked_bytes;
    seen.steady.copied_blocks += cost.copied_blocks - seen.before.copied_blocks;
    seen.steady.relinked_blocks += cost.relinked_blocks - seen.before.relinked_blocks;
}

static void sample(bool steady) {
    struct ebb_region_stats root = {.size = sizeof root};
    seen.pool.size = sizeof seen.pool;
    if (ebb_pool_read_stats(ebb_pool_default(), &seen.pool) != 0 ||
        ebb_region_read_stats(regions[0], &root) != 0)
        fault_heap("reading statistics", ebb_last_error_text());
    if (steady) {
        add_promotions();
        seen.pinned = higher(seen.pinned, seen.pool.pinned);
        seen.waste = higher(seen.waste, seen.pool.waste);
        seen.runs = higher(seen.runs, root.runs);
    }
    seen.before = cost;
}

static void print(const char *metric, double value) {
    printf("metric %s %.17g\n", metric, value);
}

static void report(uint64_t steps) {
    double n = steps ? (double)steps : 1;
    double copied = (double)seen.steady.copied_bytes, relinked = (double)seen.steady.relinked_bytes;
    print("promoted_bytes_per_step", (copied + relinked) / n);
    print("copied_bytes_per_step", copied / n);
    print("relinked_bytes_per_step", relinked / n);
    print("copied_blocks_per_step", (double)seen.steady.copied_blocks / n);
    print("relinked_blocks_per_step", (double)seen.steady.relinked_blocks / n);
    print("pinned_bytes", (double)seen.pinned);
    print("waste_bytes", (double)seen.waste);
    print("root_runs", (double)seen.runs);
    print("reserved_bytes", (double)seen.pool.reserved.current);
    print("reserved_peak_bytes", (double)seen.pool.reserved.peak);
    print("used_peak_bytes", (double)seen.pool.used.peak);
    print("given_back_bytes", (double)seen.pool.given_back);
}

HEAP_SHARED const struct heap heap_ebb = {
    .name = "ebb",
    .pass = {pass_bare, pass_touch, pass_account},
    .start = start,
    .sample = sample,
    .report = report,
};
