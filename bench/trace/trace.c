// SPDX-License-Identifier: Apache-2.0
//
// trace.c - turns the lines of an `ebb-trace 1` file into an array of events.
//
// One pass. The reader keeps, for each object, its size and whether it is dead, and for each thread
// the stack of its open regions; nothing else is needed to check all that the format demands. One
// invariant: events[0 .. event_count) is sound at any time, that is, every line taken in so far was
// checked against the lines before it.
//
// Refused: whatever enum trace_error_code lists. The header's counts are compared last, because
// only then they are known. Memory grows by doubling with the lines that were read.

#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "fields.h"
#include "header.h"
#include "source.h"

#define DEAD (UINT64_C(1) << 63) // in reader.object[]; sizes are at most PTRDIFF_MAX

struct open_region {
    uint32_t begin; // its event
    uint8_t kind;
};

struct thread {
    uint32_t depth;
    struct open_region open[TRACE_DEPTH_MAX];
};

struct reader {
    struct trace_source *source;
    struct trace_header header;
    struct trace_error *error;
    struct ebb_trace *trace;
    size_t event_capacity, object_capacity;
    uint64_t *object; // bytes, and DEAD
    uint64_t live, live_bytes;
    uint64_t born_bytes; // of all objects, so that nobody's sums of them wrap around
    uint32_t thread; // the current one
    struct thread threads[TRACE_THREADS_MAX];
};

static bool fail_memory(struct reader *reader, uint64_t bytes)
{
    return trace_fail(reader->error, TRACE_ERROR_MEMORY, reader->source->line,
                      "out of memory: %" PRIu64 " bytes", bytes);
}

// Makes room for one more element behind `count`: doubles, from 64 elements.
static bool reserve(struct reader *reader, void **array, size_t *capacity, size_t count,
                    size_t element_bytes)
{
    size_t wanted = *capacity ? 2 * *capacity : 64;
    void *grown;

    if (count < *capacity)
        return true;
    grown = realloc(*array, wanted * element_bytes);
    if (!grown)
        return fail_memory(reader, wanted * element_bytes);
    *array = grown;
    *capacity = wanted;
    return true;
}

static bool add_event(struct reader *reader, struct trace_event event)
{
    struct ebb_trace *trace = reader->trace;
    void *events = trace->events;

    if (trace->event_count >= TRACE_EVENTS_MAX)
        return trace_fail(reader->error, TRACE_ERROR_TOO_MANY_EVENTS, reader->source->line,
                          "more than %" PRIu32 " lines", (uint32_t)TRACE_EVENTS_MAX);
    if (!reserve(reader, &events, &reader->event_capacity, trace->event_count, sizeof event))
        return false;
    trace->events = events;
    trace->events[trace->event_count++] = event;
    return true;
}

// ---- objects

static bool check_size(struct reader *reader, uint64_t bytes)
{
    if (bytes > PTRDIFF_MAX)
        return trace_fail(reader->error, TRACE_ERROR_SIZE_TOO_LARGE, reader->source->line,
                          "an object of %" PRIu64 " bytes", bytes);
    if (bytes > PTRDIFF_MAX - reader->live_bytes)
        return trace_fail(reader->error, TRACE_ERROR_SIZE_TOO_LARGE, reader->source->line,
                          "%" PRIu64 " bytes more, with %" PRIu64 " bytes alive", bytes,
                          reader->live_bytes);
    if (bytes > UINT64_MAX - reader->born_bytes)
        return trace_fail(reader->error, TRACE_ERROR_SIZE_TOO_LARGE, reader->source->line,
                          "%" PRIu64 " bytes more than the %" PRIu64 " before, above 2^64 - 1",
                          bytes, reader->born_bytes);
    return true;
}

static bool check_align(struct reader *reader, uint64_t align)
{
    if (!align || align & (align - 1))
        return trace_fail(reader->error, TRACE_ERROR_ALIGNMENT_NOT_POWER, reader->source->line,
                          "alignment %" PRIu64 " is no power of two", align);
    if (align > TRACE_ALIGN_MAX)
        return trace_fail(reader->error, TRACE_ERROR_ALIGNMENT_TOO_LARGE, reader->source->line,
                          "alignment %" PRIu64 " is above %d", align, TRACE_ALIGN_MAX);
    return true;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void count_birth(struct reader *reader, uint64_t bytes)
{
    struct trace_totals *totals = &reader->trace->totals;

    totals->objects++;
    reader->live++;
    reader->live_bytes += bytes;
    reader->born_bytes += bytes;
    totals->max_live = larger(totals->max_live, reader->live);
    totals->max_live_bytes = larger(totals->max_live_bytes, reader->live_bytes);
}

// A new object: number, size and aliveness. An object has a line, so there are never more objects
// than events, and their number fits 32 bits.
static bool bear(struct reader *reader, uint64_t bytes)
{
    size_t count = (size_t)reader->trace->totals.objects;
    void *object = reader->object;

    if (!check_size(reader, bytes) ||
        !reserve(reader, &object, &reader->object_capacity, count, sizeof *reader->object))
        return false;
    reader->object = object;
    reader->object[count] = bytes;
    count_birth(reader, bytes);
    return true;
}

// Resolves BACK to an object that is alive.
static bool find_object(struct reader *reader, uint64_t back, uint32_t *number)
{
    uint64_t objects = reader->trace->totals.objects;

    if (!back || back > objects)
        return trace_fail(reader->error, TRACE_ERROR_UNKNOWN_OBJECT, reader->source->line,
                          "%" PRIu64 " objects back, with %" PRIu64 " objects so far", back,
                          objects);
    *number = (uint32_t)(objects - back);
    if (reader->object[*number] & DEAD)
        return trace_fail(reader->error, TRACE_ERROR_DEAD_OBJECT, reader->source->line,
                          "object %" PRIu32 " has ended before", *number);
    return true;
}

static uint64_t bury(struct reader *reader, uint32_t number)
{
    uint64_t bytes = reader->object[number];

    reader->object[number] |= DEAD;
    reader->live--;
    reader->live_bytes -= bytes;
    return bytes;
}

static bool take_birth(struct reader *reader, enum trace_op op, const struct trace_fields *fields,
                       uint64_t align)
{
    struct trace_event event = {.op = (uint8_t)op, .origin = fields->origin};

    event.value = fields->number[0];
    event.index = (uint32_t)reader->trace->totals.objects;
    event.align_log2 = align ? (uint8_t)__builtin_ctzll(align) : 0;
    return bear(reader, event.value) && add_event(reader, event);
}

static bool take_preexisting(struct reader *reader, const struct trace_fields *fields)
{
    struct trace_totals *totals = &reader->trace->totals;

    if (totals->events)
        return trace_fail(reader->error, TRACE_ERROR_PREEXISTING_LATE, reader->source->line,
                          "'p' after %" PRIu64 " events", totals->events);
    if (fields->number[1] && !check_align(reader, fields->number[1]))
        return false;
    totals->preexisting++;
    totals->preexisting_bytes += fields->number[0];
    return take_birth(reader, TRACE_PREEXISTING, fields, fields->number[1]);
}

static bool take_event_birth(struct reader *reader, enum trace_op op,
                             const struct trace_fields *fields, uint64_t align)
{
    reader->trace->totals.events++;
    reader->trace->totals.allocs++;
    return take_birth(reader, op, fields, align);
}

static bool take_alloc(struct reader *reader, const struct trace_fields *fields)
{
    return take_event_birth(reader, TRACE_ALLOC, fields, 0);
}

static bool take_calloc(struct reader *reader, const struct trace_fields *fields)
{
    return take_event_birth(reader, TRACE_CALLOC, fields, 0);
}

static bool take_aligned(struct reader *reader, const struct trace_fields *fields)
{
    return check_align(reader, fields->number[1]) &&
           take_event_birth(reader, TRACE_ALIGNED, fields, fields->number[1]);
}

static bool take_realloc(struct reader *reader, const struct trace_fields *fields)
{
    struct trace_event event = {.op = TRACE_REALLOC, .origin = fields->origin};

    if (!find_object(reader, fields->number[0], &event.index))
        return false;
    bury(reader, event.index);
    event.value = fields->number[1];
    reader->trace->totals.events++;
    reader->trace->totals.reallocs++;
    return bear(reader, event.value) && add_event(reader, event);
}

static bool take_free(struct reader *reader, const struct trace_fields *fields)
{
    struct trace_event event = {.op = TRACE_FREE};

    if (!find_object(reader, fields->number[0], &event.index))
        return false;
    event.value = bury(reader, event.index);
    reader->trace->totals.events++;
    reader->trace->totals.frees++;
    return add_event(reader, event);
}

// ---- markers

static bool take_thread(struct reader *reader, const struct trace_fields *fields)
{
    uint64_t number = fields->number[0];

    if (number >= TRACE_THREADS_MAX)
        return trace_fail(reader->error, TRACE_ERROR_THREAD_TOO_LARGE, reader->source->line,
                          "thread %" PRIu64 " is not below %d", number, TRACE_THREADS_MAX);
    reader->thread = (uint32_t)number;
    return add_event(reader, (struct trace_event){.op = TRACE_THREAD, .index = reader->thread});
}

// The number of `word` in `names`, added where it is new.
static bool find_name(struct reader *reader, struct trace_names *names, const char *word,
                      uint8_t *number)
{
    uint32_t i = 0;

    while (i < names->count && strcmp(names->word[i], word))
        i++;
    if (i == TRACE_NAMES_MAX)
        return trace_fail(reader->error, TRACE_ERROR_TOO_MANY_NAMES, reader->source->line,
                          "'%s' is name %" PRIu32 " of its sort, %d are allowed", word, i + 1,
                          TRACE_NAMES_MAX);
    if (i == names->count)
        memcpy(names->word[names->count++], word, strlen(word) + 1);
    *number = (uint8_t)i;
    return true;
}

static bool take_begin(struct reader *reader, const struct trace_fields *fields)
{
    struct thread *thread = &reader->threads[reader->thread];
    struct trace_event event = {.op = TRACE_BEGIN, .value = fields->number[1]};

    if (thread->depth == TRACE_DEPTH_MAX)
        return trace_fail(reader->error, TRACE_ERROR_NESTING_TOO_DEEP, reader->source->line,
                          "thread %" PRIu32 " has %d regions open", reader->thread,
                          TRACE_DEPTH_MAX);
    if (fields->number[0] > UINT32_MAX)
        return trace_fail(reader->error, TRACE_ERROR_NUMBER_TOO_LARGE, reader->source->line,
                          "step %" PRIu64 " is above 2^32 - 1", fields->number[0]);
    event.index = (uint32_t)fields->number[0];
    if (!find_name(reader, &reader->trace->kinds, fields->word, &event.name))
        return false;
    thread->open[thread->depth++] = (struct open_region){reader->trace->event_count, event.name};
    return add_event(reader, event);
}

static bool take_end(struct reader *reader, const struct trace_fields *fields)
{
    struct thread *thread = &reader->threads[reader->thread];
    struct trace_event event = {.op = TRACE_END, .value = fields->number[0]};
    const char *kind;

    if (!thread->depth)
        return trace_fail(reader->error, TRACE_ERROR_END_WITHOUT_BEGIN, reader->source->line,
                          "'E %s' with no region open on thread %" PRIu32, fields->word,
                          reader->thread);
    event.name = thread->open[thread->depth - 1].kind;
    event.index = thread->open[thread->depth - 1].begin;
    kind = reader->trace->kinds.word[event.name];
    if (strcmp(kind, fields->word))
        return trace_fail(reader->error, TRACE_ERROR_KIND_MISMATCH, reader->source->line,
                          "'E %s' while '%s' is open on thread %" PRIu32, fields->word, kind,
                          reader->thread);
    thread->depth--;
    if (event.value)
        reader->trace->events[event.index].value = event.value;
    return add_event(reader, event);
}

static bool take_phase(struct reader *reader, const struct trace_fields *fields)
{
    struct trace_event event = {.op = TRACE_PHASE};

    return find_name(reader, &reader->trace->phases, fields->word, &event.name) &&
           add_event(reader, event);
}

// ---- lines

struct line_type {
    char letter;
    const char *pattern;
    bool (*take)(struct reader *reader, const struct trace_fields *fields);
};

static const struct line_type line_types[] = {
    {'a', "no", take_alloc},        {'f', "n", take_free},      {'c', "no", take_calloc},
    {'m', "nno", take_aligned},     {'r', "nno", take_realloc}, {'t', "n", take_thread},
    {'p', "nno", take_preexisting}, {'B', "wnn", take_begin},   {'E', "wn", take_end},
    {'P', "w", take_phase},
};

static const struct line_type *find_line_type(char letter)
{
    for (size_t i = 0; i < sizeof line_types / sizeof line_types[0]; i++)
        if (line_types[i].letter == letter)
            return &line_types[i];
    return NULL;
}

static bool take_body_line(struct reader *reader, const char *text)
{
    const struct line_type *type = find_line_type(text[0]);
    uint64_t line = reader->source->line;
    struct trace_fields fields;

    if (text[0] == '#')
        return trace_fail(reader->error, TRACE_ERROR_HEADER_LATE, line,
                          "a header line behind the header");
    if (!text[0])
        return trace_fail(reader->error, TRACE_ERROR_UNKNOWN_LINE, line, "an empty line");
    if (!type)
        return trace_fail(reader->error, TRACE_ERROR_UNKNOWN_LINE, line,
                          "starts with byte %d, no letter of the format",
                          (unsigned char)text[0]);
    return trace_fields_scan(&fields, text + 1, type->pattern, line, reader->error) &&
           type->take(reader, &fields);
}

static bool take_magic(struct reader *reader)
{
    const char *text = trace_source_next(reader->source, reader->error);

    if (!text && reader->error->code != TRACE_OK)
        return false;
    if (!text)
        return trace_fail(reader->error, TRACE_ERROR_MAGIC, 1, "the file is empty, and no trace");
    if (strcmp(text, "#ebb-trace 1"))
        return trace_fail(reader->error, TRACE_ERROR_MAGIC, 1,
                          "'%.40s' is not '#ebb-trace 1'", text);
    return true;
}

static bool take_lines(struct reader *reader)
{
    bool in_header = true;
    const char *text;

    while ((text = trace_source_next(reader->source, reader->error))) {
        in_header &= text[0] == '#';
        if (in_header ? !trace_header_line(&reader->header, text, reader->source->line,
                                           reader->error)
                      : !take_body_line(reader, text))
            return false;
    }
    return reader->error->code == TRACE_OK;
}

static bool check_all_closed(struct reader *reader)
{
    for (uint32_t i = 0; i < TRACE_THREADS_MAX; i++) {
        const struct thread *thread = &reader->threads[i];

        if (thread->depth)
            return trace_fail(reader->error, TRACE_ERROR_REGION_LEFT_OPEN, reader->source->line,
                              "thread %" PRIu32 " ends inside '%s', %" PRIu32 " open", i,
                              reader->trace->kinds.word[thread->open[thread->depth - 1].kind],
                              thread->depth);
    }
    return true;
}

static bool finish(struct reader *reader)
{
    struct ebb_trace *trace = reader->trace;

    trace->totals.left = reader->live;
    trace->totals.left_bytes = reader->live_bytes;
    memcpy(trace->name, reader->header.name, sizeof trace->name);
    trace->view = reader->header.view;
    trace->warmup = (uint32_t)reader->header.warmup;
    trace->untouched = reader->header.untouched[0];
    trace->untouched_bytes = reader->header.untouched[1];
    return check_all_closed(reader) &&
           trace_header_check(&reader->header, &trace->totals, reader->error);
}

static struct ebb_trace *read_with(struct reader *reader)
{
    if (take_magic(reader) && take_lines(reader) && finish(reader))
        return reader->trace;
    trace_free(reader->trace);
    return NULL;
}

static struct reader *create_reader(struct trace_error *error)
{
    struct reader *reader = calloc(1, sizeof *reader);

    if (!reader)
        return NULL;
    reader->error = error;
    reader->trace = calloc(1, sizeof *reader->trace);
    if (reader->trace) {
        reader->header.notes = reader->trace->notes;
        return reader;
    }
    free(reader);
    return NULL;
}

static void destroy_reader(struct reader *reader)
{
    free(reader->object);
    free(reader);
}

struct ebb_trace *trace_read_source(struct trace_source *source, struct trace_error *error)
{
    struct reader *reader;
    struct ebb_trace *trace;

    memset(error, 0, sizeof *error);
    reader = create_reader(error);
    if (!reader) {
        trace_fail(error, TRACE_ERROR_MEMORY, 0, "out of memory: the reader");
        return NULL;
    }
    reader->source = source;
    trace = read_with(reader);
    destroy_reader(reader);
    return trace;
}

struct ebb_trace *trace_read(const char *path, struct trace_error *error)
{
    struct trace_source *source = calloc(1, sizeof *source);
    struct ebb_trace *trace = NULL;

    memset(error, 0, sizeof *error);
    if (!source) {
        trace_fail(error, TRACE_ERROR_MEMORY, 0, "out of memory: a buffer for lines");
    } else if (trace_source_open(source, path, error)) {
        trace = trace_read_source(source, error);
        trace_source_close(source);
    }
    free(source);
    return trace;
}

void trace_free(struct ebb_trace *trace)
{
    if (!trace)
        return;
    free(trace->events);
    free(trace);
}
