// SPDX-License-Identifier: Apache-2.0
/*
 * choose.c - which course a step belongs to.
 *
 *     tag ----------------------------> course of the tag, as long as that does well
 *      |--- the step before was odd ----> course of what comes after such steps
 *      `--- rhythm says "234 after 84" -> course of that kind
 *
 * Invariant: entries of courses do not move while the site lives, for tracks are found by their
 * place. One of a kind is given to another when it was not used for long, is nobody's step's, and
 * no plan is being made for it. Without memory or entries a step goes with its tag, or is ordinary.
 */
#include "step/site.h"

#include "base/error.h"

/* So many steps of the site after its last one, for each tag, a kind is past: no row is so long;
 * rows of several tags come at once. */
#define KIND_PAST (2 * RHYTHM_MOST)

/* ---- tags ---- */

/*
 * Steps of another tag do the same with other sizes, as a rule. So a new course begins with what
 * was learnt under the tag that a step belonged to last.
 */
static void inherit(struct course *course, const struct course *from) {
    if (!from || !from->plan)
        return;
    course->plan = from->plan;
    plan_share(course->plan);
    learn_inherit(&course->learning, course->plan->hash, course->plan->coarse);
}

static struct rhythm *make_rhythm(const struct ebb_site *site) {
    error_mute();
    struct rhythm *rhythm = ebb_region_alloc(site->memory, sizeof *rhythm, EBB_UNIT);
    error_unmute();
    if (rhythm)
        rhythm_start(rhythm);
    return rhythm;
}

static bool is_of_tag(const struct course *course, uint64_t tag) {
    return course->tag == tag && !course->kind.count && course->steps;
}

/* An entry that nothing was written to, or that is free again. */
static struct course *add_entry(struct ebb_site *site) {
    struct course *course = &site->courses[site->course_count++];
    *course = (struct course){.plan = NULL};
    return course;
}

/* An entry for another tag; NULL: there is none. */
static struct course *take_free(struct ebb_site *site) {
    for (unsigned i = 0; i < site->course_count; i++)
        if (course_is_free(&site->courses[i]))
            return &site->courses[i];
    if (site->course_count - site->kind_count == SITE_TAGS)
        return NULL;
    return add_entry(site);
}

static struct course *find_tag(struct ebb_site *site, uint64_t tag) {
    for (unsigned i = 0; i < site->course_count; i++)
        if (is_of_tag(&site->courses[i], tag))
            return &site->courses[i];
    struct course *course = take_free(site);
    if (!course)
        return NULL;
    course->tag = tag;
    learn_start(&course->learning);
    inherit(course, site->newest);
    course->rhythm = make_rhythm(site);
    return course;
}

/* ---- kinds ---- */

static bool is_of_kind(const struct course *course, uint64_t tag, struct step_kind kind) {
    return course->tag == tag && course->kind.count == kind.count &&
           course->kind.before == kind.before;
}

static bool is_past(const struct ebb_site *site, const struct course *course) {
    uint64_t tags = site->course_count - site->kind_count;
    if (!course->kind.count || site->stats.steps - course->used < KIND_PAST * tags ||
        course->planning || search_is_for(site, course))
        return false;
    for (const struct lane *lane = site->lanes; lane; lane = lane->next)
        if (lane->course == course) /* it is open */
            return false;
    return true;
}

/* What steps saw of the kind that had the entry tells those of another nothing. */
static void forget_past(const struct ebb_site *site, const struct course *course) {
    for (struct lane *lane = site->lanes; lane; lane = lane->next)
        lane->past[course - site->courses] = (struct lane_past){.above = 0};
}

/* An entry for another kind; NULL: there is none. */
static struct course *take_entry(struct ebb_site *site) {
    if (site->kind_count < SITE_KINDS) {
        site->kind_count++;
        return add_entry(site);
    }
    for (unsigned i = 0; i < site->course_count; i++) {
        struct course *course = &site->courses[i];
        if (is_past(site, course)) {
            course_end(course);
            forget_past(site, course);
            return course;
        }
    }
    return NULL;
}

/* NULL: there is none. */
static struct course *look_up_kind(struct ebb_site *site, uint64_t tag, struct step_kind kind) {
    for (unsigned i = 0; i < site->course_count; i++)
        if (is_of_kind(&site->courses[i], tag, kind))
            return &site->courses[i];
    return NULL;
}

static struct course *find_kind(struct ebb_site *site, uint64_t tag, struct step_kind kind) {
    struct course *course = look_up_kind(site, tag, kind);
    if (course || !(course = take_entry(site)))
        return course;
    *course = (struct course){.tag = tag, .kind = kind};
    learn_start(&course->learning);
    course->learning.foretold = kind.before != 0;
    return course;
}

/* ---- steps after odd ones ---- */

/* What comes after an odd step is apart from the others, as if it were of a kind; which one is not
 * known, so it may be any. */
static const struct step_kind after_odd = {.count = UINT32_MAX, .before = 0};

static bool is_after_odd(const struct course *course) {
    return course->kind.count && !course->kind.before;
}

/* The tag's own course, which has the rhythm and was there before the step. */
static struct course *tag_of(const struct lane *lane) {
    struct course *course = lane->site->courses;
    while (course->rhythm != lane->rhythm)
        course++;
    return course;
}

/* The tag's plan may fit steps after odd ones all the same. */
static void compare_with_tag(struct course *tag, const struct learn_step *step) {
    uint64_t hash = tag->learning.plan_hash;
    bool alike = hash == step->hash || hash == step->coarse_hash;
    if (step->mode != LEARN_RECORD || !tag->learning.planned || !alike)
        return;
    tag->like_odd = hash;
    learn_goes_on(&tag->learning);
}

/* What it leaves behind may have the next one do something else. Loops are never the same. */
static bool leaves_something(const struct learn_step *step) {
    return !step->keyed && step->tenured_bytes + step->escaped_bytes + step->refused_bytes > 0;
}

static bool comes_after_odd(const struct course *tag, const struct lane *lane) {
    return tag->odd_next && tag->odd_next == lane->number && tag->plan &&
           tag->like_odd != tag->learning.plan_hash;
}

/* ---- a row is found ---- */

/* What served a step well, for its rhythm. */
enum { SERVED_BY_TAG = 1, SERVED_AFTER_ODD };

static void note_server(struct lane *lane) {
    rhythm_note(lane->rhythm, lane->number,
                is_after_odd(lane->course) ? SERVED_AFTER_ODD : SERVED_BY_TAG);
}

/* The kind was served by the course of the tag, which goes. Not if that was suspended just now. */
static void split_off(struct ebb_site *site, const struct course *tag, struct step_kind kind) {
    bool serves = tag->plan && tag->learning.planned;
    struct course *course = serves ? find_kind(site, tag->tag, kind) : NULL;
    if (!course || course->plan || course->planning)
        return;
    course->plan = tag->plan;
    plan_share(course->plan);
    course->searched_for = tag->searched_for || search_is_for(site, tag);
    course->used = site->stats.steps;
    learn_share(&course->learning, &tag->learning);
}

/* The kind has been what comes after odd steps so far. */
static void rename_after_odd(struct ebb_site *site, uint64_t tag, struct step_kind kind) {
    struct course *course = look_up_kind(site, tag, after_odd);
    if (course && course->plan && !look_up_kind(site, tag, kind))
        course->kind = kind;
}

/* The tag's steps go with their kinds from here on, which begin with what has served them well.
 * What was learnt of all of them together did badly, and should they come back some day, they have
 * changed. */
static void start_over(struct ebb_site *site, struct course *tag) {
    uint8_t server;
    for (uint32_t back = 0; back < tag->rhythm->period; back++) {
        struct step_kind kind = rhythm_kind(tag->rhythm, back, &server);
        if (server == SERVED_BY_TAG)
            split_off(site, tag, kind);
        else if (server == SERVED_AFTER_ODD)
            rename_after_odd(site, tag->tag, kind);
    }
    search_stop(site, tag);
    course_end(tag);
    tag->followed = NULL;
    learn_start(&tag->learning);
}

bool course_sort(struct lane *lane, const struct learn_step *step, enum learn_verdict verdict) {
    struct course *course = lane->course, *tag = course;
    if (course->kind.before)
        return false;
    if (step->mode == LEARN_SERVE && course->learning.good) {
        note_server(lane);
        return false;
    }
    if (is_after_odd(course))
        compare_with_tag(tag = tag_of(lane), step);
    else if (verdict == LEARN_KEEP && learn_was_odd(&course->learning) && leaves_something(step))
        course->odd_next = lane->number + 1;
    if (verdict == LEARN_ADOPT && course->learning.repeats)
        note_server(lane); /* the plan that is made of it will do so */
    if (tag->planning || !learn_does_badly(&course->learning) ||
        !rhythm_look(lane->rhythm, lane->number))
        return false;
    start_over(lane->site, tag);
    return tag == course;
}

/* ---- steps ---- */

static struct course *find_course(struct ebb_site *site, uint64_t tag, struct lane *lane) {
    struct course *course = site->options.unplanned ? NULL : find_tag(site, tag), *other = NULL;
    struct step_kind kind;
    lane->rhythm = course ? course->rhythm : NULL;
    if (!lane->rhythm)
        return course;
    lane->number = rhythm_begin(lane->rhythm);
    if (rhythm_foretell(lane->rhythm, lane->number, &kind))
        other = find_kind(site, tag, kind);
    else if (comes_after_odd(course, lane))
        other = find_kind(site, tag, after_odd);
    return other ? other : course;
}

void course_choose(struct ebb_site *site, struct ticket *ticket) {
    struct lane *lane = ticket->lane;
    struct course *course = lane->course = find_course(site, ticket->tag, lane);
    ticket->begun = site->stats.steps;
    ticket->mode = course ? learn_next(&course->learning) : LEARN_PLAIN;
    ticket->plan = ticket->mode == LEARN_SERVE ? course->plan : NULL;
    ticket->fits = ticket->plan && course->learning.inherited;
    if (!course)
        return;
    if (ticket->plan && !ring_follows(lane, course, ticket->plan))
        plan_share(ticket->own = ticket->plan);
    lane->before.used = course->used;
    lane->before.began = course->began;
    course->used = ticket->begun;
    course->began = ticket->number;
    course->steps++;
    site->newest = course;
}

/* Nothing was learnt there; with it go free ones at the end. */
static void free_entry(struct ebb_site *site, struct course *course) {
    course_end(course);
    if (course->rhythm)
        ebb_region_release(site->memory, course->rhythm);
    *course = (struct course){.plan = NULL};
    while (site->course_count && course_is_free(&site->courses[site->course_count - 1]))
        site->course_count--;
}

static struct course *find_newest(struct ebb_site *site) {
    struct course *newest = NULL;
    for (unsigned i = 0; i < site->course_count; i++)
        if (site->courses[i].began > (newest ? newest->began : 0))
            newest = &site->courses[i];
    return newest;
}

/* Unless another has begun there since. */
static void leave_course(struct course *course, const struct ticket *ticket) {
    course->steps--;
    if (course->began != ticket->number)
        return;
    course->began = ticket->lane->before.began;
    course->used = ticket->lane->before.used;
}

void course_return(struct ebb_site *site, const struct ticket *ticket) {
    struct lane *lane = ticket->lane;
    struct course *course = lane->course;
    if (lane->rhythm)
        rhythm_return(lane->rhythm, lane->number);
    if (course)
        leave_course(course, ticket);
    lane->course = NULL;
    lane->rhythm = NULL;
    if (course && course_is_free(course))
        free_entry(site, course);
    site->newest = find_newest(site);
}

bool course_tells_of(const struct course *course, const struct track *track) {
    return track && track == course->followed && track->plan && track->seen.served;
}

uint32_t course_row(const struct ebb_site *site) {
    for (unsigned i = 0; site->newest && i < site->course_count; i++)
        if (is_of_tag(&site->courses[i], site->newest->tag) && site->courses[i].rhythm)
            return site->courses[i].rhythm->period;
    return 0;
}
