// SPDX-License-Identifier: Apache-2.0
/*
 * leaks.c - the live blocks of a region, grouped by the site that allocated them.
 *
 * The table of groups is on the stack and bounded: more sites are told apart than are printed, so
 * that those with most bytes are among them; all others are summed. Sites are return addresses
 * noted at allocation; they are named here, not before. What other threads released or gave back is
 * released first.
 */
#include "base/error.h"
#include "region/remote.h"
#include "region/small.h"
#include "report/text.h"

#include <dlfcn.h>

#define GROUPS 256 /* that are told apart */
#define PRINTED 32

struct group {
    uintptr_t site;
    uint64_t blocks, bytes;
};

struct leaks {
    const struct region *region;
    struct group groups[GROUPS + 1]; /* the last one: all other sites */
    unsigned count;
};

static struct group *group_of(struct leaks *leaks, uintptr_t site) {
    for (unsigned i = 0; i < leaks->count; i++)
        if (leaks->groups[i].site == site)
            return &leaks->groups[i];
    if (leaks->count == GROUPS)
        return &leaks->groups[GROUPS];
    leaks->groups[leaks->count].site = site;
    return &leaks->groups[leaks->count++];
}

static void add_block(struct leaks *leaks, uintptr_t addr, size_t bytes) {
    struct group *group = group_of(leaks, leaks->region->sites ? *range_site(addr) : 0);
    group->blocks++;
    group->bytes += bytes;
}

static void add_small(void *context, uintptr_t addr, size_t bytes, bool block) {
    if (block)
        add_block(context, addr, bytes);
}

static void add_planned(void *context, uintptr_t addr, size_t bytes, size_t room) {
    (void)room;
    add_block(context, addr, bytes);
}

static void collect(struct leaks *leaks) {
    const struct region *region = leaks->region;
    for (struct ebb_piece *block = region->blocks; block; block = block->next)
        if (block->state == PIECE_BLOCK)
            add_block(leaks, block->addr, block->block.requested);
    for (struct ebb_piece *window = region->windows; window; window = window->next)
        small_each_live(region, window, add_small, leaks);
    if (region->track)
        track_each_live(region_track(region), add_planned, leaks);
}

static void add_group(struct group *sum, const struct group *group) {
    sum->blocks += group->blocks;
    sum->bytes += group->bytes;
}

/* Where the group belongs among those before it, which are sorted. */
static void insert(struct group *groups, unsigned at) {
    struct group group = groups[at];
    for (; at > 0 && groups[at - 1].bytes < group.bytes; at--)
        groups[at] = groups[at - 1];
    groups[at] = group;
}

/* Those with most bytes come first; the table ends with the sum of those that are not printed.
 * (qsort() may allocate.) */
static void sort(struct leaks *leaks) {
    for (unsigned i = 1; i < leaks->count; i++)
        insert(leaks->groups, i);
    for (; leaks->count > PRINTED; leaks->count--)
        add_group(&leaks->groups[GROUPS], &leaks->groups[leaks->count - 1]);
}

/* What a site is called: what there is a name of, and how far in it lies; 0: that is all. */
struct origin {
    const char *name;
    size_t offset;
};

static struct origin origin_of(uintptr_t site) {
    Dl_info info;
    if (!site)
        return (struct origin){"unknown site", 0};
    if (!dladdr((void *)site, &info))
        return (struct origin){"", site};
    if (info.dli_sname)
        return (struct origin){info.dli_sname, site - (uintptr_t)info.dli_saddr};
    return (struct origin){info.dli_fname ? info.dli_fname : "",
                           info.dli_fname ? site - (uintptr_t)info.dli_fbase : site};
}

static void print_group(struct text *text, const struct group *group, struct origin origin,
                        bool json) {
    text_print(text,
               json ? "{\"bytes\":%llu,\"blocks\":%llu,\"site\":\""
                    : "  %llu bytes in %llu blocks from ",
               (unsigned long long)group->bytes, (unsigned long long)group->blocks);
    (json ? text_json_inside : text_name)(text, origin.name);
    if (origin.offset)
        text_print(text, "%s0x%zx", *origin.name ? "+" : "", origin.offset);
    text_print(text, json ? "\"}" : "\n");
}

static void print_groups(struct text *text, const struct leaks *leaks, bool json) {
    for (unsigned i = 0; i < leaks->count; i++) {
        if (json && i)
            text_print(text, ",");
        print_group(text, &leaks->groups[i], origin_of(leaks->groups[i].site), json);
    }
    if (!leaks->groups[GROUPS].blocks)
        return;
    if (json)
        text_print(text, ",");
    print_group(text, &leaks->groups[GROUPS], (struct origin){"all other sites", 0}, json);
}

int ebb_report_leaks(ebb_region handle, enum ebb_report_format format, ebb_write_fn *write,
                     void *context) {
    struct text text = {write, context, 0};
    struct leaks leaks = {.region = region_find(handle)};
    bool json = format == EBB_REPORT_JSON;
    if (!leaks.region)
        return EBB_E_STALE;
    if (!write || (format != EBB_REPORT_TEXT && !json))
        return error_set(EBB_E_ARGUMENT, "report: format %d, callback %s", (int)format,
                         write ? "set" : "NULL");
    remote_settle((struct region *)handle.lane);
    small_fold((struct region *)handle.lane);
    collect(&leaks);
    sort(&leaks);
    text_print(&text, json ? "{\"region\":" : "live blocks of region ");
    (json ? text_json_string : text_name)(&text, leaks.region->name);
    text_print(&text, json ? ",\"blocks\":%llu,\"groups\":[" : ": %llu\n",
               (unsigned long long)flow_now(&leaks.region->counted));
    print_groups(&text, &leaks, json);
    if (json)
        text_print(&text, "]}");
    return text.result;
}
