// SPDX-License-Identifier: Apache-2.0
/*
 * plan.c - a plan, slot by slot, and what became of it in the last step that followed it.
 *
 * A track keeps how far its last step came and how many bytes each slot got, until it is tied
 * again: that is what is read here. Invariant: the plan has a user of its own while it is written,
 * so that it does not end meanwhile.
 *
 * Refused: sites with an open step (EBB_E_BUSY), whose tracks are being written.
 */
#include "base/error.h"
#include "report/text.h"
#include "step/site.h"

#define NUMBER(x) ((unsigned long long)(x))

/* What is reported: a plan, and who followed it last; NULL: nobody, or there is no plan. */
struct followed {
    struct plan *plan;
    const struct track *track;
};

/* The one that the tag's last step belonged to. */
static const struct course *find_course(const struct ebb_site *site, uint64_t tag) {
    const struct course *last = NULL;
    for (unsigned i = 0; i < site->course_count; i++) {
        const struct course *course = &site->courses[i];
        if (course->tag == tag && !course_is_free(course) &&
            (!last || course->used >= last->used))
            last = course;
    }
    return last;
}

/* With the site's lock held. The plan gets a user. */
static struct followed find_followed(struct ebb_site *site, uint64_t tag) {
    const struct course *course = find_course(site, tag);
    bool told = course && course_tells_of(course, course->followed);
    const struct track *track = told ? course->followed : NULL;
    struct plan *plan = track ? track->plan : course ? course->plan : NULL;
    if (plan)
        plan_share(plan);
    return (struct followed){plan, track};
}

/* Bytes that the slot got in that step; 0: it was not served. */
static uint64_t served_bytes(const struct followed *followed, uint32_t number) {
    const struct track *track = followed->track;
    bool came = track && number < track_cursor(track) && !track_has_refused(track, number);
    return came ? track_asked(track, &track->slots[number]) : 0;
}

static void print_slot(struct text *text, const struct followed *followed, uint32_t number) {
    const struct plan_slot *slot = &followed->plan->slots[number];
    text_print(text, "%s[\"%s\",%llu,%llu,%u,%llu]", number ? "," : "",
               slot->room      ? "placed"
               : slot->tenured ? "tenured"
               : slot->guest   ? "guest"
                               : "left",
               slot->room ? NUMBER(slot->offset) * RANGE_GRANULE : 0,
               NUMBER(slot->guest ? slot->offset : slot->room) * RANGE_GRANULE,
               slot->passed, NUMBER(served_bytes(followed, number)));
}

static void print_plan(struct text *text, const struct followed *followed) {
    const struct plan *plan = followed->plan;
    text_print(text,
               ",\"height\":%zu,\"max_live\":%zu,\"coarse\":%s,\"followed\":%s,\"slots\":[",
               plan->height_bytes, plan->max_live_bytes, plan->coarse ? "true" : "false",
               followed->track ? "true" : "false");
    for (uint32_t i = 0; i < plan->slot_count && !text->result; i++)
        print_slot(text, followed, i);
    text_print(text, "],\"order\":[");
    for (uint32_t i = 0; i < plan->order_count && !text->result; i++)
        text_print(text, "%s%u", i ? "," : "", plan->order[i]);
    text_print(text, "]");
}

int ebb_report_plan(ebb_site *site, uint64_t tag, ebb_write_fn *write, void *context) {
    struct text text = {write, context, 0};
    struct followed followed = {NULL, NULL};
    if (!site || !write)
        return error_set(EBB_E_ARGUMENT, "report: site %p, callback %s", (void *)site,
                         write ? "set" : "NULL");
    pthread_mutex_lock(&site->lock);
    uint64_t open = lane_count_open(site);
    if (!open)
        followed = find_followed(site, tag);
    pthread_mutex_unlock(&site->lock);
    if (open)
        return error_set(EBB_E_BUSY, "site '%s' has %llu open steps", site->name, NUMBER(open));
    text_print(&text, "{\"site\":");
    text_json_string(&text, site->name);
    text_print(&text, ",\"tag\":%llu", NUMBER(tag));
    if (followed.plan)
        print_plan(&text, &followed);
    text_print(&text, "}");
    plan_drop(followed.plan);
    return text.result;
}
