// SPDX-License-Identifier: Apache-2.0
/*
 * compiler.c - makes a script of a trace: slots, owners, survivors.
 *
 * One walk over the events. Objects of an open region form a list; when the region closes, those
 * that are alive become a run of survivors and the rest of the list is dropped; survivors join
 * the parent's list. The root never closes and keeps no list.
 *
 *     regions[7]  head -> object 31 -> object 40 -> object 44 <- tail      (next_of[])
 *
 * Invariant: owner_of[object] is the number of an open region for every object that is alive.
 * Refused: traces without any region, more than SCRIPT_REGIONS_MAX regions open at once, blocks
 * of SCRIPT_BYTES_MAX bytes or more. What trace_read() guarantees is not checked again.
 */
#include "compiler.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint32_t NONE = UINT32_MAX;

struct open_region {
    uint32_t head, tail; /* objects allocated in it or promoted to it, dead ones included */
    uint32_t step;       /* step it is part of, + 1 */
};

struct thread {
    uint16_t open[TRACE_DEPTH_MAX];
    uint32_t depth;
};

struct compiler {
    const struct ebb_trace *trace;
    char *error;
    int fault; /* what compiler_run() returns after fail() */
    struct script head;
    struct script_event *events;
    struct script_survivor *survivors;
    uint32_t survivors_room;
    struct script_closing *closings;
    struct script_step *steps;

    uint32_t object_count;
    uint32_t *slot_of, *next_of; /* by object */
    uint16_t *owner_of;
    uint8_t *align_of, *alive;

    uint32_t *free_slots; /* stack: the slot that was freed last is used first */
    uint32_t free_slot_count;
    uint16_t *free_regions;
    uint32_t free_region_count, open_count;
    struct open_region *regions;
    struct thread *threads;
    struct thread *thread; /* of the present event */
    uint32_t kind_seen[TRACE_NAMES_MAX];
    uint64_t kind_bytes[TRACE_NAMES_MAX];   /* of all steps of a kind */
    uint64_t steady_bytes[TRACE_NAMES_MAX]; /* of those that are no warm-up */
};

/* What fails now is not the trace's fault. */
static struct compiler *without_room(struct compiler *c) {
    c->fault = COMPILER_NO_ROOM;
    return c;
}

static bool fail(struct compiler *c, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->error, COMPILER_ERROR_MAX, format, arguments);
    va_end(arguments);
    return false;
}

static uint32_t count_begins(const struct ebb_trace *trace) {
    uint32_t begins = 0;
    for (uint32_t i = 0; i < trace->event_count; i++)
        begins += trace->events[i].op == TRACE_BEGIN;
    return begins;
}

/* calloc of at least one element, so that NULL always means out of memory. */
static void *table(size_t count, size_t bytes) {
    return calloc(count ? count : 1, bytes);
}

static bool make_object_tables(struct compiler *c) {
    size_t objects = c->trace->totals.objects;
    c->slot_of = table(objects, sizeof *c->slot_of);
    c->next_of = table(objects, sizeof *c->next_of);
    c->owner_of = table(objects, sizeof *c->owner_of);
    c->align_of = table(objects, sizeof *c->align_of);
    c->alive = table(objects, sizeof *c->alive);
    c->free_slots = table(objects, sizeof *c->free_slots);
    return c->slot_of && c->next_of && c->owner_of && c->align_of && c->alive && c->free_slots;
}

static bool make_tables(struct compiler *c) {
    size_t begins = count_begins(c->trace);
    c->events = table(c->trace->event_count, sizeof *c->events);
    c->closings = table(begins, sizeof *c->closings);
    c->steps = table(begins, sizeof *c->steps);
    c->free_regions = table(SCRIPT_REGIONS_MAX, sizeof *c->free_regions);
    c->regions = table(SCRIPT_REGIONS_MAX, sizeof *c->regions);
    c->threads = table(TRACE_THREADS_MAX, sizeof *c->threads);
    bool made = c->events && c->closings && c->steps && c->free_regions && c->regions &&
                c->threads && make_object_tables(c);
    return made || fail(without_room(c), "out of memory: tables for %u events",
                        c->trace->event_count);
}

static void free_tables(struct compiler *c) {
    void *tables[] = {c->events,   c->survivors, c->closings,   c->steps,        c->slot_of,
                      c->next_of,  c->owner_of,  c->align_of,   c->alive,        c->free_slots,
                      c->regions,  c->threads,   c->free_regions};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        free(tables[i]);
}

static uint16_t present_region(const struct compiler *c) {
    return c->thread->depth ? c->thread->open[c->thread->depth - 1] : 0;
}

static struct script_event *emit(struct compiler *c, enum script_op op) {
    struct script_event *event = &c->events[c->head.event_count++];
    event->op = (uint8_t)op;
    event->region = present_region(c);
    return event;
}

static uint32_t take_slot(struct compiler *c) {
    return c->free_slot_count ? c->free_slots[--c->free_slot_count] : c->head.slot_count++;
}

static void append(struct compiler *c, uint16_t region, uint32_t object) {
    struct open_region *owner = &c->regions[region];
    c->owner_of[object] = region;
    if (region == 0)
        return;
    c->next_of[object] = NONE;
    if (owner->tail == NONE)
        owner->head = object;
    else
        c->next_of[owner->tail] = object;
    owner->tail = object;
}

/* The next object is born in the present region, in `slot`. */
static void bear(struct compiler *c, uint32_t slot, uint8_t align_log2, uint64_t bytes) {
    uint32_t object = c->object_count++;
    uint16_t region = present_region(c);
    c->slot_of[object] = slot;
    c->align_of[object] = align_log2;
    c->alive[object] = 1;
    append(c, region, object);
    if (c->regions[region].step)
        c->steps[c->regions[region].step - 1].born_bytes += bytes;
}

static bool check_bytes(struct compiler *c, uint64_t bytes) {
    if (bytes < SCRIPT_BYTES_MAX)
        return true;
    return fail(c, "a block of %llu bytes: the replayer takes less than 2^47",
                (unsigned long long)bytes);
}

static bool on_alloc(struct compiler *c, const struct trace_event *from) {
    enum script_op op = from->op == TRACE_CALLOC ? SCRIPT_CALLOC : SCRIPT_ALLOC;
    struct script_event *event = emit(c, op);
    event->slot = take_slot(c);
    event->bytes = from->value & (SCRIPT_BYTES_MAX - 1);
    event->align_log2 =
        from->align_log2 > SCRIPT_ALIGN_LOG2 ? from->align_log2 : (uint8_t)SCRIPT_ALIGN_LOG2;
    bear(c, event->slot, event->align_log2, from->value);
    return check_bytes(c, from->value);
}

static bool on_realloc(struct compiler *c, const struct trace_event *from) {
    uint32_t old = from->index;
    bool stays = c->owner_of[old] == present_region(c);
    struct script_event *event = emit(c, stays ? SCRIPT_REALLOC : SCRIPT_MOVE);
    event->slot = c->slot_of[old];
    event->owner = c->owner_of[old];
    event->bytes = from->value & (SCRIPT_BYTES_MAX - 1);
    event->align_log2 = SCRIPT_ALIGN_LOG2;
    c->alive[old] = 0;
    bear(c, event->slot, SCRIPT_ALIGN_LOG2, from->value);
    return check_bytes(c, from->value);
}

static void on_free(struct compiler *c, const struct trace_event *from) {
    struct script_event *event = emit(c, SCRIPT_FREE);
    event->slot = c->slot_of[from->index];
    event->owner = c->owner_of[from->index];
    c->alive[from->index] = 0;
    c->free_slots[c->free_slot_count++] = event->slot;
}

static uint32_t begin_step(struct compiler *c, const struct trace_event *from) {
    struct script_step *step = &c->steps[c->head.step_count++];
    step->kind = from->name;
    step->warmup = c->kind_seen[from->name] < c->trace->warmup;
    step->begin = c->head.event_count;
    return c->head.step_count;
}

static bool on_begin(struct compiler *c, const struct trace_event *from) {
    struct thread *thread = c->thread;
    uint16_t parent = present_region(c);
    if (!c->free_region_count && c->head.region_count == SCRIPT_REGIONS_MAX)
        return fail(c, "more than %d regions open at once", SCRIPT_REGIONS_MAX - 1);
    uint16_t region = c->free_region_count ? c->free_regions[--c->free_region_count]
                                           : (uint16_t)c->head.region_count++;
    uint32_t step = thread->depth ? 0 : begin_step(c, from);
    struct script_event *event = emit(c, SCRIPT_OPEN);
    event->region = region;
    event->owner = parent;
    event->slot = step;
    event->bytes = from->name;
    c->regions[region] =
        (struct open_region){NONE, NONE, step ? step : c->regions[parent].step};
    thread->open[thread->depth++] = region;
    c->open_count++;
    c->kind_seen[from->name]++;
    return true;
}

static bool add_survivor(struct compiler *c, uint32_t object) {
    if (c->head.survivor_count == c->survivors_room) {
        uint32_t room = c->survivors_room ? 2 * c->survivors_room : 1024;
        void *grown = realloc(c->survivors, (size_t)room * sizeof *c->survivors);
        if (!grown)
            return fail(without_room(c), "out of memory: %u survivors", room);
        c->survivors = grown;
        c->survivors_room = room;
    }
    c->survivors[c->head.survivor_count++] =
        (struct script_survivor){c->slot_of[object], UINT32_C(1) << c->align_of[object]};
    return true;
}

/* Hands what is alive in `region` to `parent`. */
static bool pass_up(struct compiler *c, uint16_t region, uint16_t parent) {
    uint32_t next, object = c->regions[region].head;
    for (; object != NONE; object = next) {
        next = c->next_of[object];
        if (!c->alive[object])
            continue;
        if (!add_survivor(c, object))
            return false;
        append(c, parent, object);
    }
    return true;
}

static void end_step(struct compiler *c, uint32_t step) {
    struct script_step *ended = &c->steps[step - 1];
    ended->end = c->head.event_count - 1;
    ended->quiet = c->open_count == 0;
    c->kind_bytes[ended->kind] += ended->born_bytes;
    if (!ended->warmup)
        c->steady_bytes[ended->kind] += ended->born_bytes;
}

static bool on_end(struct compiler *c) {
    struct thread *thread = c->thread;
    uint16_t region = thread->open[--thread->depth];
    struct script_event *event = emit(c, SCRIPT_CLOSE);
    event->region = region;
    event->owner = thread->depth ? thread->open[thread->depth - 1] : 0;
    event->slot = c->head.closing_count;
    struct script_closing *closing = &c->closings[c->head.closing_count++];
    closing->first = c->head.survivor_count;
    if (!pass_up(c, region, event->owner))
        return false;
    closing->count = c->head.survivor_count - closing->first;
    closing->step = thread->depth ? 0 : c->regions[region].step;
    if (closing->count > c->head.survivors_max)
        c->head.survivors_max = closing->count;
    c->open_count--;
    c->free_regions[c->free_region_count++] = region;
    if (closing->step)
        end_step(c, closing->step);
    return true;
}

static bool on_event(struct compiler *c, const struct trace_event *event) {
    switch ((enum trace_op)event->op) {
    case TRACE_PREEXISTING:
    case TRACE_ALLOC:
    case TRACE_CALLOC:
    case TRACE_ALIGNED: return on_alloc(c, event);
    case TRACE_REALLOC: return on_realloc(c, event);
    case TRACE_FREE: on_free(c, event); return true;
    case TRACE_THREAD: c->thread = &c->threads[event->index]; return true;
    case TRACE_BEGIN: return on_begin(c, event);
    case TRACE_END: return on_end(c);
    case TRACE_PHASE: return true;
    }
    return true;
}

static bool walk(struct compiler *c) {
    c->head.region_count = 1;
    c->regions[0].step = 0;
    c->thread = &c->threads[0];
    for (uint32_t i = 0; i < c->trace->event_count; i++)
        if (!on_event(c, &c->trace->events[i]))
            return false;
    return c->head.step_count ||
           fail(c, "no region in it, so no step: `ebb advise -o FILE` may put some in");
}

/* The kind with most bytes; where none has more, that of the first step. */
static uint32_t largest_kind(const struct compiler *c, const uint64_t *bytes) {
    uint32_t largest = c->steps[0].kind;
    for (uint32_t i = 0; i < c->trace->kinds.count; i++)
        if (bytes[i] > bytes[largest])
            largest = i;
    return largest;
}

static void name_kinds(struct compiler *c) {
    const struct trace_names *kinds = &c->trace->kinds;
    c->head.kind_count = kinds->count;
    for (uint32_t i = 0; i < kinds->count; i++)
        memcpy(c->head.kind[i], kinds->word[i], SCRIPT_WORD_MAX);
    c->head.main_kind = largest_kind(c, c->steady_bytes);
    if (c->steady_bytes[c->head.main_kind] == 0) /* all are warm-up */
        c->head.main_kind = largest_kind(c, c->kind_bytes);
}

static uint64_t lay_out(struct script *head) {
    uint64_t at = sizeof *head;
    head->magic = SCRIPT_MAGIC;
    head->events_at = at;
    at += (uint64_t)head->event_count * sizeof(struct script_event);
    head->survivors_at = at;
    at += (uint64_t)head->survivor_count * sizeof(struct script_survivor);
    head->closings_at = at;
    at += (uint64_t)head->closing_count * sizeof(struct script_closing);
    head->steps_at = at;
    at += (uint64_t)head->step_count * sizeof(struct script_step);
    return head->total_bytes = at;
}

static void fill(const struct compiler *c, char *to) {
    const struct script *head = &c->head;
    memcpy(to, head, sizeof *head);
    memcpy(to + head->events_at, c->events, head->event_count * sizeof *c->events);
    if (head->survivor_count)
        memcpy(to + head->survivors_at, c->survivors,
               head->survivor_count * sizeof *c->survivors);
    memcpy(to + head->closings_at, c->closings, head->closing_count * sizeof *c->closings);
    memcpy(to + head->steps_at, c->steps, head->step_count * sizeof *c->steps);
}

/* It is a file, for which limits other than that of memory hold, too. */
static bool fail_script(struct compiler *c, uint64_t bytes) {
    return fail(without_room(c), "a script of %llu bytes: %s", (unsigned long long)bytes,
                strerror(errno));
}

static bool write_script(struct compiler *c, struct compiled *compiled) {
    name_kinds(c);
    uint64_t bytes = lay_out(&c->head);
    compiled->fd = memfd_create("ebb-script", 0);
    if (compiled->fd < 0 || ftruncate(compiled->fd, (off_t)bytes) != 0)
        return fail_script(c, bytes);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, compiled->fd, 0);
    if (at == MAP_FAILED)
        return fail_script(c, bytes);
    fill(c, at);
    compiled->script = at;
    return true;
}

int compiler_run(const struct ebb_trace *trace, struct compiled *compiled, char *error) {
    struct compiler c = {.trace = trace, .error = error, .fault = COMPILER_REFUSED};
    *compiled = (struct compiled){.fd = -1};
    bool made = make_tables(&c) && walk(&c) && write_script(&c, compiled);
    free_tables(&c);
    if (!made)
        compiled_free(compiled);
    return made ? 0 : c.fault;
}

void compiled_free(struct compiled *compiled) {
    if (compiled->script)
        munmap((void *)(uintptr_t)compiled->script, compiled->script->total_bytes);
    if (compiled->fd >= 0)
        close(compiled->fd);
    *compiled = (struct compiled){.fd = -1};
}
