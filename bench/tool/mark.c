// SPDX-License-Identifier: Apache-2.0
/*
 * mark.c - see mark.h. As in render.c the same pass first counts, for the header, and then writes.
 */
#include "mark.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "complain.h"
#include "gzip_text.h"
#include "output.h"
#include "site_list.h"
#include "warmup.h"

struct writer {
    const struct mark *mark;
    gzFile file, sites;    /* NULL: counting; no list */
    uint8_t *end;          /* by object: where it ends */
    uint32_t *number;      /* by object: its new one */
    uint64_t *bytes;       /* by object */
    struct trace_totals totals;
    uint64_t live, live_bytes, untouched, untouched_bytes;
};

enum { ENDS_NEVER, ENDS_BEFORE, ENDS_INSIDE };

static uint32_t first_event(const struct writer *writer) {
    return writer->mark->anchor->at[0];
}

static uint32_t last_event(const struct writer *writer) {
    return writer->mark->anchor->at[writer->mark->anchor->count - 1];
}

static void find_ends(struct writer *writer) {
    const struct ebb_trace *trace = writer->mark->trace;
    for (uint32_t i = 0; i < last_event(writer); i++) {
        const struct trace_event *event = &trace->events[i];
        if (event->op == TRACE_FREE || event->op == TRACE_REALLOC)
            writer->end[event->index] = i < first_event(writer) ? ENDS_BEFORE : ENDS_INSIDE;
    }
}

static void bear(struct writer *writer, uint32_t object, uint64_t bytes) {
    struct trace_totals *totals = &writer->totals;
    writer->number[object] = (uint32_t)totals->objects++;
    writer->bytes[object] = bytes;
    writer->live++;
    writer->live_bytes += bytes;
    if (writer->live > totals->max_live)
        totals->max_live = writer->live;
    if (writer->live_bytes > totals->max_live_bytes)
        totals->max_live_bytes = writer->live_bytes;
    if (writer->sites)
        gzprintf(writer->sites, "%u\n", writer->mark->places->of[object]);
}

static void bury(struct writer *writer, uint32_t object) {
    writer->live--;
    writer->live_bytes -= writer->bytes[object];
}

static void write_older(struct writer *writer, const struct trace_event *event, uint32_t object) {
    if (writer->end[object] == ENDS_BEFORE)
        return;
    if (writer->end[object] == ENDS_NEVER) {
        writer->untouched++;
        writer->untouched_bytes += event->value;
        return;
    }
    gzip_print(writer->file, "p %" PRIu64 " %u %c\n", event->value,
        event->align_log2 ? 1u << event->align_log2 : 0, event->origin);
    writer->totals.preexisting++;
    writer->totals.preexisting_bytes += event->value;
    bear(writer, object, event->value);
}

static uint64_t back(const struct writer *writer, uint32_t object) {
    return writer->totals.objects - writer->number[object];
}

/* `object`: the number that an object born by this event has. */
static void write_event(struct writer *writer, const struct trace_event *event, uint32_t object) {
    struct trace_totals *totals = &writer->totals;
    switch (event->op) {
    case TRACE_THREAD: gzip_print(writer->file, "t %u\n", event->index); return;
    case TRACE_FREE:
        gzip_print(writer->file, "f %" PRIu64 "\n", back(writer, event->index));
        bury(writer, event->index);
        totals->frees++;
        break;
    case TRACE_REALLOC:
        gzip_print(writer->file,
                   "r %" PRIu64 " %" PRIu64 " %c\n", back(writer, event->index), event->value,
            event->origin);
        bury(writer, event->index);
        bear(writer, object, event->value);
        totals->reallocs++;
        break;
    case TRACE_ALLOC:
    case TRACE_CALLOC:
    case TRACE_ALIGNED:
        if (event->op == TRACE_ALIGNED)
            gzip_print(writer->file, "m %" PRIu64 " %u %c\n", event->value, 1u << event->align_log2,
                event->origin);
        else
            gzip_print(writer->file, "%c %" PRIu64 " %c\n", event->op == TRACE_CALLOC ? 'c' : 'a',
                event->value, event->origin);
        bear(writer, object, event->value);
        totals->allocs++;
        break;
    default: return; /* other regions */
    }
    totals->events++;
}

static void write_body(struct writer *writer) {
    const struct mark *mark = writer->mark;
    uint32_t object = 0, step = 0, thread = 0;
    writer->totals = (struct trace_totals){0};
    writer->live = writer->live_bytes = 0;
    writer->untouched = mark->trace->untouched; /* those are in no file */
    writer->untouched_bytes = mark->trace->untouched_bytes;
    for (uint32_t i = 0; i <= last_event(writer); i++) {
        const struct trace_event *event = &mark->trace->events[i];
        bool older = i < first_event(writer), born = event->op <= TRACE_REALLOC;
        if (event->op == TRACE_THREAD)
            thread = event->index;
        if (older && born)
            write_older(writer, event, object);
        if (i == mark->anchor->at[step]) {
            if (step)
                gzip_print(writer->file, "E advised 0\n");
            else if (thread) /* a trace starts with thread 0 */
                gzip_print(writer->file, "t %u\n", thread);
            if (++step < mark->anchor->count) /* the last one only ends a step */
                gzip_print(writer->file, "B advised %u 0\n", step - 1);
        }
        if (!older && step < mark->anchor->count)
            write_event(writer, event, object);
        object += born;
    }
}

#define SETTINGS "#settings steps found by ebb advise\n"

/* Whether it says something of regions, which go. */
static bool is_of_regions(const char *note) {
    static const char *const gone[] = {"#arg ", "#too-deep ", "#settings a region every ",
                                       SETTINGS};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        if (strncmp(note, gone[i], strlen(gone[i])) == 0)
            return true;
    return false;
}

/* What the first file says of the program and of its recording. */
static void write_notes(struct writer *writer) {
    for (const char *note = writer->mark->trace->notes; *note;) {
        int length = (int)strcspn(note, "\n") + 1;
        if (!is_of_regions(note))
            gzip_print(writer->file, "%.*s", length, note);
        note += length;
    }
}

static void write_header(struct writer *writer) {
    const struct trace_totals *totals = &writer->totals;
    const char *name = writer->mark->trace->name;
    gzip_print(writer->file, "#ebb-trace 1\n#name %s\n#view %s\n", *name ? name : "trace",
        writer->mark->trace->view == TRACE_VIEW_TENSOR ? "tensor" : "full");
    write_notes(writer);
    gzip_print(writer->file, SETTINGS "#warmup %" PRIu64 "\n",
        warmup_of(writer->mark->anchor->count - 1));
    gzip_print(writer->file,
               "#objects %" PRIu64 "\n#preexisting %" PRIu64 " %" PRIu64 "\n", totals->objects,
        totals->preexisting, totals->preexisting_bytes);
    gzip_print(writer->file, "#untouched %" PRIu64 " %" PRIu64 "\n", writer->untouched,
        writer->untouched_bytes);
    gzip_print(writer->file,
               "#events %" PRIu64 "\n#allocs %" PRIu64 "\n#frees %" PRIu64 "\n", totals->events,
        totals->allocs, totals->frees);
    gzip_print(writer->file,
               "#reallocs %" PRIu64 "\n#max-live %" PRIu64 " %" PRIu64 "\n", totals->reallocs,
        totals->max_live, totals->max_live_bytes);
    gzip_print(writer->file, "#left %" PRIu64 " %" PRIu64 "\n", writer->live, writer->live_bytes);
}

/* ---- files */

/* The places, as they stand in the list of the first trace. To be freed; NULL after a message. */
static char *read_places(const char *trace) {
    char path[OUTPUT_PATH_MAX], line[TRACE_LINE_MAX + 2], *text = NULL;
    size_t length = 0;
    gzFile in = site_list_path(trace, path, sizeof path) ? gzopen(path, "rb") : NULL;
    FILE *places = in ? open_memstream(&text, &length) : NULL;
    while (places && gzgets(in, line, sizeof line))
        if (line[0] == 's' || line[0] == '#')
            fputs(line, places);
    if (!places)
        complain("%s: %s", path, strerror(errno));
    if (in)
        gzclose(in);
    return places && fclose(places) == 0 ? text : NULL;
}

static bool begin_sites(struct writer *writer, struct output *sites) {
    char path[OUTPUT_PATH_MAX];
    char *places = read_places(writer->mark->from);
    if (!places)
        return false;
    bool good = site_list_path(writer->mark->to, path, sizeof path) ||
                complain("%s: too long a name", writer->mark->to);
    good = good && output_begin(sites, path);
    writer->sites = sites->file;
    if (good)
        gzputs(sites->file, places);
    free(places);
    return good;
}

/* Both may be the files that were read. */
static bool write_files(struct writer *writer, struct output *trace, struct output *sites) {
    bool listed = writer->mark->places->sites;
    find_ends(writer);
    write_body(writer);
    if (!output_begin(trace, writer->mark->to) || (listed && !begin_sites(writer, sites)))
        return false;
    writer->file = trace->file;
    write_header(writer);
    write_body(writer);
    if (!output_close(trace) || (listed && !output_close(sites)))
        return false;
    return (listed ? output_name(sites) : site_list_forget(writer->mark->to)) &&
           output_name(trace);
}

bool mark_write(const struct mark *mark) {
    size_t objects = mark->trace->totals.objects + 1;
    struct writer writer = {.mark = mark};
    struct output trace = {0}, sites = {0};
    if (!output_allowed(mark->to))
        return false;
    writer.end = calloc(objects, sizeof *writer.end);
    writer.number = calloc(objects, sizeof *writer.number);
    writer.bytes = calloc(objects, sizeof *writer.bytes);
    bool good = writer.end && writer.number && writer.bytes;
    good = good ? write_files(&writer, &trace, &sites)
                : complain("out of memory: %zu objects", objects);
    output_drop(&trace);
    output_drop(&sites);
    free(writer.end);
    free(writer.number);
    free(writer.bytes);
    return good;
}
