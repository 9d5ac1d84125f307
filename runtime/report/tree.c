// SPDX-License-Identifier: Apache-2.0
/*
 * tree.c - regions as a tree, in text or JSON.
 *
 * Walks children newest first. The depth of the walk is the depth of the regions; nothing is
 * allocated. Stops as soon as the callback says so.
 */
#include "base/error.h"
#include "pool/shared.h"
#include "region/count.h"
#include "region/remote.h"
#include "region/small.h"
#include "report/text.h"

#define NUMBER(x) ((unsigned long long)(x))

static int check_arguments(enum ebb_report_format format, ebb_write_fn *write) {
    if (write && (format == EBB_REPORT_TEXT || format == EBB_REPORT_JSON))
        return 0;
    return error_set(EBB_E_ARGUMENT, "report: format %d, callback %s", (int)format,
                     write ? "set" : "NULL");
}

static void print_line(struct text *text, struct region *region, unsigned indent) {
    text_print(text, "%*s", (int)size_smaller(indent, 32) * 2, "");
    text_name(text, region->name);
    text_print(text,
               "%s: %llu blocks, requested %llu, used %llu (peak %llu), reserved %llu, "
               "waste %zu, pinned %zu, runs %llu",
               region->sealed ? " (sealed)" : "",
               NUMBER(flow_now(&region->counted)), NUMBER(flow_now(&region->requested)),
               NUMBER(flow_now(&region->used)), NUMBER(flow_read(&region->used).peak),
               NUMBER(region->reserved.current), count_waste(region), region->pinned,
               NUMBER(region->run_count));
    if (region->limit_bytes)
        text_print(text, ", limit %zu with %zu charged", region->limit_bytes, region->charged);
    text_print(text, "\n");
}

static void print_object(struct text *text, struct region *region) {
    text_print(text, "{\"name\":");
    text_json_string(text, region->name);
    text_print(text,
               ",\"blocks\":%llu,\"requested\":%llu,\"used\":%llu,\"used_peak\":%llu,"
               "\"reserved\":%llu,\"waste\":%zu,\"pinned\":%zu,\"runs\":%llu,\"limit\":%zu,"
               "\"sealed\":%s,\"children\":[",
               NUMBER(flow_now(&region->counted)), NUMBER(flow_now(&region->requested)),
               NUMBER(flow_now(&region->used)), NUMBER(flow_read(&region->used).peak),
               NUMBER(region->reserved.current), count_waste(region), region->pinned,
               NUMBER(region->run_count), region->limit_bytes,
               region->sealed ? "true" : "false");
}

/* The next region of a walk in depth order below `root`; *up counts the levels left. */
static struct region *next_region(struct region *region, const struct region *root,
                                  unsigned *up) {
    *up = 0;
    if (region->children)
        return region->children;
    for (; region != root; region = region->parent) {
        ++*up;
        if (region->sibling_next)
            return region->sibling_next;
    }
    ++*up;
    return NULL;
}

static void print_text(struct text *text, struct region *root, unsigned indent) {
    unsigned up;
    for (struct region *at = root; at && !text->result; at = next_region(at, root, &up)) {
        small_fold(at);
        print_line(text, at, indent + at->depth - root->depth);
    }
}

static void print_json(struct text *text, struct region *root) {
    unsigned up;
    for (struct region *at = root; at && !text->result;) {
        small_fold(at);
        print_object(text, at);
        at = next_region(at, root, &up);
        for (unsigned level = 0; level < up; level++)
            text_print(text, "]}");
        if (at && up)
            text_print(text, ",");
    }
}

int ebb_report_region(ebb_region handle, enum ebb_report_format format, ebb_write_fn *write,
                      void *context) {
    struct text text = {write, context, 0};
    struct region *region = region_find(handle);
    if (!region)
        return EBB_E_STALE;
    int result = check_arguments(format, write);
    if (result)
        return result;
    remote_settle_below(region);
    if (format == EBB_REPORT_JSON)
        print_json(&text, region);
    else
        print_text(&text, region, 0);
    return text.result;
}

static void print_pool(struct text *text, struct ebb_pool *pool, bool json) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    ebb_pool_read_stats(pool, &stats);
    text_print(text, json ? "{\"pool\":" : "pool ");
    if (json)
        text_json_string(text, pool->name);
    else
        text_name(text, pool->name);
    text_print(text,
               json ? ",\"used\":%llu,\"reserved\":%llu,\"owned\":%llu,\"cached\":%llu,"
                      "\"held\":%llu,\"waste\":%llu,\"pinned\":%llu,\"open_regions\":%llu,"
                      "\"regions\":["
                    : ": used %llu, reserved %llu, owned %llu, cached %llu, held %llu, waste %llu, "
                      "pinned %llu, %llu open regions\n",
               NUMBER(stats.used.current), NUMBER(stats.reserved.current), NUMBER(stats.owned),
               NUMBER(stats.cached), NUMBER(stats.held), NUMBER(stats.waste), NUMBER(stats.pinned),
               NUMBER(stats.open_regions));
}

/* What others released or gave back is gone before anything is counted. */
static void look_at_trees(void *context, struct ebb_pool *pool) {
    (void)context;
    for (struct region *region = pool->slots; region; region = region->list_next)
        if (region_is_live(region))
            remote_settle(region);
}

/* Where trees of a pool are printed to. */
struct trees {
    struct text *text;
    bool json, some;
};

static void print_trees(void *context, struct ebb_pool *pool) {
    struct trees *trees = context;
    for (struct region *region = pool->slots; region; region = region->list_next) {
        if (region->parent || !region_is_live(region))
            continue;
        if (trees->json && trees->some)
            text_print(trees->text, ",");
        trees->some = true;
        if (trees->json)
            print_json(trees->text, region);
        else
            print_text(trees->text, region, 1);
    }
}

int ebb_report_pool(struct ebb_pool *pool, enum ebb_report_format format, ebb_write_fn *write,
                    void *context) {
    struct text text = {write, context, 0};
    struct trees trees = {&text, format == EBB_REPORT_JSON, false};
    int result = check_arguments(format, write);
    if (result)
        return result;
    if (!pool && !(pool = ebb_pool_default()))
        return EBB_E_MEMORY;
    look_at_trees(NULL, pool);
    if (pool_is_shared(pool))
        shared_each(pool->shared, look_at_trees, NULL);
    print_pool(&text, pool, trees.json);
    print_trees(&trees, pool);
    if (pool_is_shared(pool))
        shared_each(pool->shared, print_trees, &trees);
    if (trees.json)
        text_print(&text, "]}");
    return text.result;
}
