// SPDX-License-Identifier: Apache-2.0
/*
 * heap_ebb.c - ebb as a heap; the only file of the benchmark that calls the library.
 *
 * A root region holds what belongs to no marked region: preexisting objects and what is allocated
 * between steps. Each kind of marked region is a site, each marked region a step of it, child of
 * the one around it or of the root. When it ends, its survivors are promoted to the parent (mode
 * auto) by the same call, and the slots learn the new addresses. Blocks are released in the region
 * that owns them at that moment. With EBB_BENCH_PLANS=no sites do not learn.
 *
 * The file is compiled into ebb-heap.so, which is preloaded; the names it needs from the program
 * (account, fault) are the program's own.
 */
#include <ebb/ebb.h>
#include <ebb/step.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "loop.h"

static ebb_region *regions;         /* by number of the script; 0: the root */
static ebb_step *steps;             /* the same; none of the root */
static ebb_site **sites;            /* by kind */
static struct ebb_survivor *kept;   /* room for the longest list of one closing */
static struct ebb_promoted cost;    /* of all promotions so far */
static uint32_t kind_count, main_kind;

/* Programs know the alignment where they allocate: most often it is that of malloc(). */
static inline void *take(uint16_t region, size_t bytes, size_t align) {
    const size_t usual = (size_t)1 << SCRIPT_ALIGN_LOG2;
    return align == usual ? ebb_region_alloc(regions[region], bytes, usual)
                          : ebb_region_alloc(regions[region], bytes, align);
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

static inline bool open_region(uint16_t region, uint16_t parent, uint32_t kind) {
    steps[region] = ebb_step_begin_under(sites[kind], regions[parent], 0);
    regions[region] = steps[region].region;
    return steps[region].lane != NULL;
}

static bool close_keeping(uint16_t region, uint16_t parent, struct slot *slots,
                          const struct script_survivor *survivors, uint32_t count) {
    uint64_t lost = 0;
    for (uint32_t i = 0; i < count; i++)
        kept[i] = (struct ebb_survivor){.block = slots[survivors[i].slot].block,
                                        .align = survivors[i].align,
                                        .mode = EBB_PROMOTE_AUTO};
    if (ebb_step_end_keeping(steps[region], regions[parent], kept, count, &cost, &lost) != 0)
        fault_heap("ebb_step_end_keeping", ebb_last_error_text());
    if (lost)
        fault_heap("ebb_step_end_keeping", "blocks were lost that nobody knew of");
    for (uint32_t i = 0; i < count; i++)
        slots[survivors[i].slot].block = kept[i].block;
    return true;
}

static inline bool close_region(uint16_t region, uint16_t parent, struct slot *slots,
                                const struct script_survivor *survivors, uint32_t count) {
    if (count)
        return close_keeping(region, parent, slots, survivors, count);
    if (ebb_step_end(steps[region]) != 0)
        fault_heap("ebb_step_end", ebb_last_error_text());
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

static void make_sites(const struct script *script) {
    const char *plans = getenv("EBB_BENCH_PLANS");
    bool unplanned = plans && strcmp(plans, "no") == 0;
    for (uint32_t kind = 0; kind < script->kind_count; kind++) {
        sites[kind] = ebb_site_create(
            EBB_SITE_OPTIONS(.name = script->kind[kind], .unplanned = unplanned));
        if (!sites[kind])
            fault_heap("ebb_site_create", ebb_last_error_text());
    }
    kind_count = script->kind_count;
    main_kind = script->main_kind;
}

static bool start(const struct script *script) {
    regions = map_table(script->region_count, sizeof *regions);
    steps = map_table(script->region_count, sizeof *steps);
    sites = map_table(script->kind_count, sizeof *sites);
    kept = map_table(script->survivors_max, sizeof *kept);
    if (!regions || !steps || !sites || !kept)
        return false;
    make_sites(script);
    regions[0] = ebb_region_open(EBB_REGION_OPTIONS(.name = "root"));
    if (!regions[0].lane)
        fault_heap("ebb_region_open", ebb_last_error_text());
    return true;
}

/* What steps got from plans, of what they asked for. */
struct service {
    uint64_t allocations, bytes, hits, hit_bytes;
};

/* What is summed over steady steps (of service: over those that are no warm-up), and the highest
 * that was seen after one. */
static struct {
    struct ebb_promoted before, steady;
    struct service served_before, served_steady;
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

static struct ebb_site_stats read_site(uint32_t kind) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    if (ebb_site_read_stats(sites[kind], &stats) != 0)
        fault_heap("ebb_site_read_stats", ebb_last_error_text());
    return stats;
}

/* Of all steps that have ended, nested ones included. */
static struct service service_now(void) {
    struct service now = {0};
    for (uint32_t kind = 0; kind < kind_count; kind++) {
        struct ebb_site_stats one = read_site(kind);
        now.allocations += one.allocations;
        now.bytes += one.allocated_bytes;
        now.hits += one.hits;
        now.hit_bytes += one.hit_bytes;
    }
    return now;
}

static void add_service(const struct service *now) {
    struct service *sum = &seen.served_steady, *before = &seen.served_before;
    sum->allocations += now->allocations - before->allocations;
    sum->bytes += now->bytes - before->bytes;
    sum->hits += now->hits - before->hits;
    sum->hit_bytes += now->hit_bytes - before->hit_bytes;
}

static void sample(bool steady, bool warmup) {
    struct service served = service_now();
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
    if (!warmup)
        add_service(&served);
    seen.before = cost;
    seen.served_before = served;
}

static void print(const char *metric, double value) {
    printf("metric %s %.17g\n", metric, value);
}

static void print_share(const char *metric, uint64_t part, uint64_t whole) {
    print(metric, 100 * (double)part / (double)higher(whole, 1));
}

/* What the sites have learnt: sums, and of plans the largest. */
static void report_sites(void) {
    struct ebb_site_stats sum = {0};
    for (uint32_t kind = 0; kind < kind_count; kind++) {
        struct ebb_site_stats one = read_site(kind);
        sum.allocations += one.allocations;
        sum.allocated_bytes += one.allocated_bytes;
        sum.hits += one.hits;
        sum.hit_bytes += one.hit_bytes;
        sum.plans += one.plans;
        sum.takeovers += one.takeovers;
        sum.planned_steps += one.planned_steps;
        sum.recorded_steps += one.recorded_steps;
        sum.tenured_right += one.tenured_right;
        sum.tenured_wrong += one.tenured_wrong;
        sum.guests += one.guests;
        sum.planning_ns += one.planning_ns;
        sum.suspended |= one.suspended;
        if (one.plan_height > sum.plan_height) {
            sum.plan_height = one.plan_height;
            sum.plan_max_live = one.plan_max_live;
            sum.plan_slots = one.plan_slots;
        }
    }
    print_share("plan_hits_percent", sum.hits, sum.allocations);
    print_share("plan_hit_bytes_percent", sum.hit_bytes, sum.allocated_bytes);
    print_share("steady_hits_percent", seen.served_steady.hits, seen.served_steady.allocations);
    print_share("steady_hit_bytes_percent", seen.served_steady.hit_bytes,
                seen.served_steady.bytes);
    print("plans", (double)sum.plans);
    print("planned_steps", (double)sum.planned_steps);
    print("recorded_steps", (double)sum.recorded_steps);
    print("plan_takeovers", (double)sum.takeovers);
    print("plan_suspended", sum.suspended);
    print("plan_slots", (double)sum.plan_slots);
    print("plan_height_bytes", (double)sum.plan_height);
    print("plan_max_live_bytes", (double)sum.plan_max_live);
    print("planning_us", (double)sum.planning_ns / 1e3);
    print("tenured_right", (double)sum.tenured_right);
    print("tenured_wrong", (double)sum.tenured_wrong);
    print("guests", (double)sum.guests);
}

static int write_out(void *context, const char *text, size_t bytes) {
    (void)context;
    return fwrite(text, 1, bytes, stdout) == bytes ? 0 : 1;
}

/* ebb's own reports, a line each: every site, and the plan of the main kind. */
static void print_reports(void) {
    int result = 0;
    for (uint32_t kind = 0; kind < kind_count && result == 0; kind++) {
        fputs("report site ", stdout);
        result = ebb_report_site(sites[kind], EBB_REPORT_JSON, write_out, NULL);
        putchar('\n');
    }
    if (result == 0) {
        fputs("report plan ", stdout);
        result = ebb_report_plan(sites[main_kind], 0, write_out, NULL);
        putchar('\n');
    }
    if (result != 0)
        fault_heap("a report", ebb_last_error_text());
}

static void report(uint64_t steady_steps) {
    double n = steady_steps ? (double)steady_steps : 1;
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
    report_sites();
    print_reports();
}

HEAP_SHARED const struct heap heap_ebb = {
    .name = "ebb",
    .pass = {pass_bare, pass_touch, pass_account},
    .start = start,
    .sample = sample,
    .report = report,
};
