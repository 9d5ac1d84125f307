// SPDX-License-Identifier: Apache-2.0
/*
 * site.c - what a site has learnt, in text or JSON.
 *
 * Every figure is of one moment: they are copied under the site's lock and written without it.
 */
#include "base/error.h"
#include "report/text.h"
#include "step/site.h"

#define NUMBER(x) ((unsigned long long)(x))

static double percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_text(struct text *text, const char *name, const struct ebb_site_stats *stats) {
    text_print(text, "site ");
    text_name(text, name);
    text_print(text, ": %llu steps, %llu planned, %llu recorded%s",
               NUMBER(stats->steps), NUMBER(stats->planned_steps), NUMBER(stats->recorded_steps),
               stats->suspended ? ", suspended: no plans for now" : "");
    if (stats->row_steps)
        text_print(text, ", in rows of %llu", NUMBER(stats->row_steps));
    text_print(text, "\n");
    text_print(text,
               "  allocated %llu blocks, %llu bytes; at most %llu used, %llu reserved; "
               "%llu given back\n",
               NUMBER(stats->allocations), NUMBER(stats->allocated_bytes),
               NUMBER(stats->used_peak), NUMBER(stats->reserved_peak), NUMBER(stats->given_back));
    text_print(text,
               "  served from plans %llu blocks, %llu bytes; missed %llu blocks, %llu bytes "
               "(%.1f %% of bytes served)\n",
               NUMBER(stats->hits), NUMBER(stats->hit_bytes), NUMBER(stats->missed),
               NUMBER(stats->missed_bytes),
               percent(stats->hit_bytes, stats->hit_bytes + stats->missed_bytes));
    text_print(text,
               "  plans %llu in %.3f ms; the newest: %llu slots, height %llu, max-live %llu "
               "(%.1f %%)\n",
               NUMBER(stats->plans), (double)stats->planning_ns / 1e6, NUMBER(stats->plan_slots),
               NUMBER(stats->plan_height), NUMBER(stats->plan_max_live),
               percent(stats->plan_height, stats->plan_max_live));
    text_print(text,
               "  born in the parent %llu blocks, %llu bytes rightly; %llu blocks, %llu bytes "
               "for nothing; guests %llu blocks, %llu bytes\n",
               NUMBER(stats->tenured_right), NUMBER(stats->tenured_right_bytes),
               NUMBER(stats->tenured_wrong), NUMBER(stats->tenured_wrong_bytes),
               NUMBER(stats->guests), NUMBER(stats->guest_bytes));
    text_print(text, "  takeovers %llu, strays %llu, over budget %llu\n",
               NUMBER(stats->takeovers), NUMBER(stats->strays), NUMBER(stats->excesses));
}

struct figure {
    const char *name;
    uint64_t value;
};

static void print_json(struct text *text, const char *name, const struct ebb_site_stats *stats) {
    const struct figure figures[] = {
        {"steps", stats->steps},
        {"planned_steps", stats->planned_steps},
        {"recorded_steps", stats->recorded_steps},
        {"allocations", stats->allocations},
        {"allocated_bytes", stats->allocated_bytes},
        {"hits", stats->hits},
        {"hit_bytes", stats->hit_bytes},
        {"missed", stats->missed},
        {"missed_bytes", stats->missed_bytes},
        {"tenured_right", stats->tenured_right},
        {"tenured_right_bytes", stats->tenured_right_bytes},
        {"tenured_wrong", stats->tenured_wrong},
        {"tenured_wrong_bytes", stats->tenured_wrong_bytes},
        {"guests", stats->guests},
        {"guest_bytes", stats->guest_bytes},
        {"strays", stats->strays},
        {"plans", stats->plans},
        {"takeovers", stats->takeovers},
        {"excesses", stats->excesses},
        {"plan_slots", stats->plan_slots},
        {"plan_height", stats->plan_height},
        {"plan_max_live", stats->plan_max_live},
        {"planning_ns", stats->planning_ns},
        {"used_peak", stats->used_peak},
        {"reserved_peak", stats->reserved_peak},
        {"given_back", stats->given_back},
        {"row_steps", stats->row_steps},
    };
    text_print(text, "{\"site\":");
    text_json_string(text, name);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        text_print(text, ",\"%s\":%llu", figures[i].name, NUMBER(figures[i].value));
    text_print(text, ",\"suspended\":%s}", stats->suspended ? "true" : "false");
}

int ebb_report_site(ebb_site *site, enum ebb_report_format format, ebb_write_fn *write,
                    void *context) {
    struct text text = {write, context, 0};
    struct ebb_site_stats stats = {.size = sizeof stats};
    if (!write || (format != EBB_REPORT_TEXT && format != EBB_REPORT_JSON))
        return error_set(EBB_E_ARGUMENT, "report: format %d, callback %s", (int)format,
                         write ? "set" : "NULL");
    int result = ebb_site_read_stats(site, &stats);
    if (result)
        return result;
    if (format == EBB_REPORT_JSON)
        print_json(&text, site->name, &stats);
    else
        print_text(&text, site->name, &stats);
    return text.result;
}
