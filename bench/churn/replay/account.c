// SPDX-License-Identifier: Apache-2.0
/*
 * account.c - footprint of each step, and the course of one of them.
 *
 * The entry of a step in the ledgers plus one is also its stamp in the table of pages, so that
 * every step of every pass starts without pages. Steps of different threads that are open at the
 * same time and share a page may count it more than once.
 *
 * The course is that of the middle step of the main kind, in the last pass. It is printed with at
 * most COURSE_POINTS points: of each stretch, the one with most bytes alive.
 */
#include "account.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>

enum { COURSE_POINTS = 400, ALLOWANCE_BYTES = 256 << 10 };

static void *map_table(uint64_t count, uint64_t bytes) {
    void *at = mmap(NULL, (count + 1) * bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* The middle one of the main kind's steps that take place. */
static uint32_t choose_step(const struct script *script, uint32_t until) {
    const struct script_step *steps = script_steps(script);
    uint32_t of_kind = 0, chosen = 0;
    for (uint32_t i = 0; i < script->step_count; i++)
        of_kind += steps[i].kind == script->main_kind && steps[i].end < until;
    for (uint32_t i = 0, seen = 0; i < script->step_count && seen <= of_kind / 2; i++)
        if (steps[i].kind == script->main_kind && steps[i].end < until) {
            chosen = i;
            seen++;
        }
    return chosen;
}

static bool make_course(struct account *account, uint32_t passes, uint32_t until) {
    struct course *course = &account->course;
    uint32_t step = choose_step(account->script, until);
    const struct script_step *chosen = &script_steps(account->script)[step];
    course->stamp = (passes - 1) * account->script->step_count + step + 1;
    course->room = 2 * (chosen->end - chosen->begin) + 1; /* a realloc is a death and a birth */
    course->count = 0;
    course->live = map_table(course->room, sizeof *course->live);
    course->pages = map_table(course->room, sizeof *course->pages);
    return course->live && course->pages;
}

bool account_make(struct account *account, const struct script *script, uint32_t passes,
                  uint32_t until) {
    account->script = script;
    account->region_step = map_table(script->region_count, sizeof *account->region_step);
    account->slot_step = map_table(script->slot_count, sizeof *account->slot_step);
    return account->region_step && account->slot_step && pages_make(&account->pages) &&
           ledger_make(&account->open, script, passes, until) &&
           ledger_make(&account->live, script, passes, until) &&
           ledger_make(&account->max_live, script, passes, until) &&
           ledger_make(&account->held, script, passes, until) &&
           ledger_make(&account->ratio, script, passes, until) &&
           make_course(account, passes, until);
}

static void note_course(struct account *account, uint32_t stamp) {
    struct course *course = &account->course;
    if (stamp != course->stamp || course->count == course->room)
        return;
    course->live[course->count] = account->live.value[stamp - 1];
    course->pages[course->count] = account->held.value[stamp - 1];
    course->count++;
}

static void hold(struct account *account, uint32_t stamp, const struct slot *slot) {
    uint64_t fresh = pages_stamp(&account->pages, slot->block, slot->bytes, stamp);
    account->held.value[stamp - 1] += (double)(fresh * PAGES_BYTES);
}

void account_birth(struct account *account, uint32_t number, uint16_t region,
                   const struct slot *slot) {
    uint32_t stamp = account->slot_step[number] = account->region_step[region];
    if (stamp == 0)
        return;
    double live = account->live.value[stamp - 1] += (double)slot->bytes;
    if (live > account->max_live.value[stamp - 1])
        account->max_live.value[stamp - 1] = live;
    hold(account, stamp, slot);
    note_course(account, stamp);
}

void account_death(struct account *account, uint32_t number, const struct slot *slot) {
    uint32_t stamp = account->slot_step[number];
    if (stamp == 0)
        return;
    account->live.value[stamp - 1] -= (double)slot->bytes;
    if (account->open.value[stamp - 1] != 0)
        note_course(account, stamp);
}

void account_open(struct account *account, uint16_t region, uint16_t parent, uint32_t step,
                  uint32_t pass) {
    uint32_t stamp = step ? pass * account->script->step_count + step
                          : account->region_step[parent];
    account->region_step[region] = stamp;
    if (step)
        account->open.value[stamp - 1] = 1;
}

void account_close(struct account *account, uint16_t region, uint32_t step) {
    if (step)
        account->open.value[account->region_step[region] - 1] = 0;
}

void account_moved(struct account *account, const struct slot *slots,
                   const struct script_survivor *survivors, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = survivors[i].slot, stamp = account->slot_step[number];
        if (stamp && account->open.value[stamp - 1] != 0)
            hold(account, stamp, &slots[number]);
    }
}

/* Fills the ratios; returns how many steady steps hold more than they may. */
static uint64_t compare_steps(struct account *account, uint32_t limit_percent) {
    uint64_t over = 0, entries = (uint64_t)account->ratio.passes * account->script->step_count;
    for (uint64_t i = 0; i < entries; i++) {
        double live = account->max_live.value[i], held = account->held.value[i];
        double limit = fmax(live * limit_percent / 100, live + ALLOWANCE_BYTES);
        uint32_t steps = account->script->step_count;
        account->ratio.value[i] = live > 0 ? held / live : NAN;
        over += held > limit && ledger_steady(account->script, (uint32_t)(i / steps),
                                              (uint32_t)(i % steps));
    }
    return over;
}

static void print_highest(const char *stretch, double held, double live) {
    if (live <= 0)
        return;
    printf("metric %s_peak_bytes %.17g\n", stretch, held);
    printf("metric %s_peak_live_bytes %.17g\n", stretch, live);
    printf("metric %s_peak_ratio %.17g\n", stretch, held / live);
}

/* What the costliest step of the main kind holds, over what is alive at once in the one that has
 * most alive; of all its steps, or of those that are no warm-up in any pass. */
static void print_peak(const struct account *account, const char *stretch, bool steady_only) {
    const struct script *script = account->script;
    double held = 0, live = 0;
    for (uint32_t pass = 0; pass < account->held.passes; pass++)
        for (uint32_t step = 0; step < script->step_count; step++)
            if (script_steps(script)[step].kind == script->main_kind &&
                (!steady_only || !script_steps(script)[step].warmup)) {
                held = fmax(held, *ledger_at(&account->held, pass, step));
                live = fmax(live, *ledger_at(&account->max_live, pass, step));
            }
    print_highest(stretch, held, live);
}

static uint32_t highest_in(const struct course *course, uint32_t from, uint32_t to) {
    uint32_t highest = from;
    for (uint32_t i = from; i < to; i++)
        if (course->live[i] > course->live[highest])
            highest = i;
    return highest;
}

static void print_course(const struct course *course, const char *name, const double *values) {
    uint32_t points = course->count < COURSE_POINTS ? course->count : COURSE_POINTS;
    printf("series %s", name);
    for (uint64_t i = 0; i < points; i++) {
        uint32_t at = highest_in(course, (uint32_t)(i * course->count / points),
                                 (uint32_t)((i + 1) * course->count / points));
        printf(" %.17g", values ? values[at] : (double)at);
    }
    putchar('\n');
}

void account_report(struct account *account, uint32_t limit_percent) {
    uint64_t over = compare_steps(account, limit_percent);
    ledger_print_kinds(&account->ratio, "footprint_ratio");
    ledger_print_kinds(&account->held, "footprint_bytes");
    ledger_print_kinds(&account->max_live, "max_live_bytes");
    print_peak(account, "steady", true);
    print_peak(account, "run", false);
    ledger_sort(&account->ratio, LEDGER_ALL_KINDS);
    ledger_print("footprint_steps", "", (double)account->ratio.count);
    ledger_print("footprint_steps_over", "", (double)over);
    print_course(&account->course, "course_event", NULL);
    print_course(&account->course, "course_live_bytes", account->course.live);
    print_course(&account->course, "course_page_bytes", account->course.pages);
}
