// SPDX-License-Identifier: Apache-2.0
/*
 * render.c - the trace, in two passes: one that counts, for the header, and one that writes.
 *
 * Both passes are the same code; the first has no file. What lies before the first region becomes
 * `p` lines, or, if it never ends, the line #untouched; what lies behind the last region is left
 * out. Where there is no region everything is in the file.
 *
 * Invariant: the file appears under its name only when it is complete (it is written beside it and
 * renamed), and bench/trace accepts it.
 */
#include "render.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "complain.h"
#include "gzip_text.h"
#include "origin.h"
#include "output.h"
#include "site_list.h"
#include "warmup.h"

struct totals {
    uint64_t objects, preexisting, preexisting_bytes, untouched, untouched_bytes;
    uint64_t events, allocs, frees, reallocs, live, live_bytes, max_live, max_live_bytes;
    uint64_t regions;
};

struct writer {
    const struct stream *stream;
    const struct spool_file *spool;
    const struct render *render;
    gzFile file; /* NULL: counting */
    struct site_list *sites; /* NULL: none is wanted */
    uint32_t *number; /* by block: the object's number */
    bool *ends;       /* by block: it ends inside of the window */
    size_t first, last; /* the window: moves [first, last) */
    struct totals totals;
    uint32_t lane;
    uint32_t step[SPOOL_KINDS];
};

/* ---- which part, and what of it */

static void find_window(struct writer *writer) {
    const struct stream *stream = writer->stream;
    bool found = false;
    writer->first = 0;
    writer->last = stream->move_count;
    for (size_t i = stream->move_count; i-- > 0;) {
        if (stream->move[i].move == MOVE_BEGIN_REGION)
            writer->first = i;
        if (stream->move[i].move == MOVE_END_REGION && !found) {
            writer->last = i + 1;
            found = true;
        }
    }
}

static char origin_at(const struct writer *writer, const struct block *block) {
    return site_list_origin(writer->spool, block->site, block->align_log2 != 0);
}

static bool is_shown(const struct writer *writer, uint32_t number) {
    return !writer->render->tensor ||
           origin_at(writer, &writer->stream->block[number]) == 'T';
}

static void mark_ends(struct writer *writer) {
    const struct stream *stream = writer->stream;
    for (size_t i = writer->first; i < writer->last; i++) {
        const struct move *move = &stream->move[i];
        if (move->move == MOVE_END)
            writer->ends[move->block] = true;
        else if (move->move == MOVE_BIRTH && stream->block[move->block].from >= 0)
            writer->ends[stream->block[move->block].from] = true;
    }
}

/* ---- lines */

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void count_birth(struct writer *writer, uint32_t number) {
    struct totals *totals = &writer->totals;
    uint64_t bytes = writer->stream->block[number].size;
    writer->number[number] = (uint32_t)totals->objects++;
    totals->live++;
    totals->live_bytes += bytes;
    totals->max_live = larger(totals->max_live, totals->live);
    totals->max_live_bytes = larger(totals->max_live_bytes, totals->live_bytes);
    if (writer->file && writer->sites)
        site_list_object(writer->sites, writer->stream->block[number].site);
}

static void count_death(struct writer *writer, uint32_t number) {
    writer->totals.live--;
    writer->totals.live_bytes -= writer->stream->block[number].size;
}

static uint64_t back(const struct writer *writer, uint32_t number) {
    return writer->totals.objects - writer->number[number];
}

/* The format's largest alignment is 2 MiB; what asks for more is written as that. */
static uint64_t align_of(const struct block *block) {
    return UINT64_C(1) << (block->align_log2 < 21 ? block->align_log2 : 21);
}

static void write_birth(struct writer *writer, uint32_t number) {
    const struct block *block = &writer->stream->block[number];
    char origin = origin_at(writer, block);
    writer->totals.events++;
    if (block->from >= 0 && is_shown(writer, (uint32_t)block->from)) {
        gzip_print(writer->file,
                   "r %" PRIu64 " %" PRIu64 " %c\n", back(writer, (uint32_t)block->from),
            block->size, origin);
        count_death(writer, (uint32_t)block->from);
        writer->totals.reallocs++;
    } else {
        if (block->op == SPOOL_ALIGNED)
            gzip_print(writer->file,
                       "m %" PRIu64 " %" PRIu64 " %c\n", block->size, align_of(block), origin);
        else
            gzip_print(writer->file,
                       "%c %" PRIu64 " %c\n", block->op == SPOOL_CALLOC ? 'c' : 'a', block->size,
                origin);
        writer->totals.allocs++;
    }
    count_birth(writer, number);
}

static void write_end(struct writer *writer, uint32_t number) {
    gzip_print(writer->file, "f %" PRIu64 "\n", back(writer, number));
    count_death(writer, number);
    writer->totals.events++;
    writer->totals.frees++;
}

/* A word, whatever a damaged spool has there. */
static const char *kind_name(const struct writer *writer, uint32_t kind) {
    const char *name = writer->spool->head->kind[kind];
    size_t length = 0;
    if (!writer->stream->marked)
        return "tick";
    while (length < SPOOL_KIND_NAME && name[length] > ' ' && name[length] < 127)
        length++;
    return length > 0 && length < SPOOL_KIND_NAME && !name[length] ? name : "damaged";
}

/* What is not shown may be made of what is: for the trace that one ends. */
static struct move shown_part(const struct writer *writer, struct move move) {
    bool is_block = move.move == MOVE_BIRTH || move.move == MOVE_END;
    if (!is_block || is_shown(writer, move.block))
        return move;
    int32_t from = writer->stream->block[move.block].from;
    bool ends = move.move == MOVE_BIRTH && from >= 0 && is_shown(writer, (uint32_t)from);
    return (struct move){ends ? (uint32_t)from : 0, move.lane, ends ? MOVE_END : MOVE_NOTHING, 0};
}

static void write_move(struct writer *writer, struct move move) {
    if (move.move == MOVE_NOTHING)
        return;
    if (move.lane != writer->lane)
        gzip_print(writer->file, "t %u\n", move.lane);
    writer->lane = move.lane;
    switch (move.move) {
    case MOVE_BIRTH: write_birth(writer, move.block); break;
    case MOVE_END: write_end(writer, move.block); break;
    case MOVE_BEGIN_REGION:
        gzip_print(writer->file,
                   "B %s %u %" PRIu64 "\n", kind_name(writer, move.kind),
            writer->step[move.kind]++, writer->stream->argument[move.block]);
        writer->totals.regions++;
        break;
    default: gzip_print(writer->file, "E %s 0\n", kind_name(writer, move.kind)); break;
    }
}

/* ---- before the window */

static bool lives(const struct writer *writer, const bool *ended, uint32_t number) {
    return !ended[number] && is_shown(writer, number);
}

static bool write_older(struct writer *writer) {
    const struct stream *stream = writer->stream;
    bool *ended = calloc(stream->block_count + 1, sizeof *ended);
    if (!ended)
        return complain("out of memory: %zu blocks", stream->block_count);
    for (size_t i = 0; i < writer->first; i++) {
        const struct move *move = &stream->move[i];
        if (move->move == MOVE_END)
            ended[move->block] = true;
        else if (move->move == MOVE_BIRTH && stream->block[move->block].from >= 0)
            ended[stream->block[move->block].from] = true;
    }
    for (size_t i = 0; i < writer->first; i++) {
        uint32_t number = stream->move[i].block;
        const struct block *block = &stream->block[number];
        if (stream->move[i].move != MOVE_BIRTH || !lives(writer, ended, number))
            continue;
        if (!writer->ends[number]) {
            writer->totals.untouched++;
            writer->totals.untouched_bytes += block->size;
            continue;
        }
        gzip_print(writer->file, "p %" PRIu64 " %" PRIu64 " %c\n", block->size,
            block->align_log2 ? align_of(block) : 0, origin_at(writer, block));
        writer->totals.preexisting++;
        writer->totals.preexisting_bytes += block->size;
        count_birth(writer, number);
    }
    free(ended);
    return true;
}

static bool write_body(struct writer *writer) {
    writer->totals = (struct totals){0};
    memset(writer->step, 0, sizeof writer->step);
    writer->lane = 0;
    if (!write_older(writer))
        return false;
    for (size_t i = writer->first; i < writer->last; i++)
        write_move(writer, shown_part(writer, writer->stream->move[i]));
    return true;
}

/* ---- the header */

static const char *stop_text(uint32_t why) {
    switch (why) {
    case SPOOL_STOP_LIMIT: return "limit: the spool has reached its limit";
    case SPOOL_STOP_DISK: return "disk: no room for more, or the limit of file sizes";
    case SPOOL_STOP_FILE: return "file: the spool was closed and could not be opened again";
    case SPOOL_STOP_MEMORY: return "memory: no addresses for more records";
    case SPOOL_STOP_END: return "end: the command ended, and this process went on";
    default: return "threads: more than 4096 at once";
    }
}

/* A line of free text: one line, printable, short enough. */
static void put_text(struct writer *writer, const char *key, const char *text) {
    char line[1000];
    size_t length = 0;
    for (; text[length] && length < sizeof line - 1; length++)
        line[length] = text[length] >= ' ' && text[length] < 127 ? text[length] : '?';
    line[length] = '\0';
    gzip_print(writer->file, "#%s %s\n", key, line);
}

static void put_name(struct writer *writer) {
    char word[SPOOL_KIND_NAME];
    const char *slash = strrchr(writer->render->path, '/');
    const char *from = slash ? slash + 1 : writer->render->path;
    size_t length = strcspn(from, ".");
    if (length > sizeof word - 1)
        length = sizeof word - 1;
    for (size_t i = 0; i < length; i++)
        word[i] = from[i] > ' ' && from[i] < 127 ? from[i] : '_';
    word[length] = '\0';
    gzip_print(writer->file, "#name %s\n", length ? word : "trace");
}

static void put_state(struct writer *writer) {
    const struct stream *stream = writer->stream;
    const struct spool_head *head = writer->spool->head;
    if (head->stopped)
        gzip_print(writer->file, "#stopped %s, after %zu records\n", stop_text(head->stopped),
            writer->spool->order_count);
    if (stream->cut)
        gzip_print(writer->file, "#stopped length: more than %d moves\n", STREAM_MOVES_MAX);
    if (writer->render->recovered)
        gzip_print(writer->file, "#recovered from its spool\n");
    if (stream->unknown_frees)
        gzip_print(writer->file, "#unknown-frees %" PRIu64 "\n", stream->unknown_frees);
    if (stream->lost_frees)
        gzip_print(writer->file, "#lost-frees %" PRIu64 "\n", stream->lost_frees);
    if (stream->too_deep)
        gzip_print(writer->file, "#too-deep %" PRIu64 "\n", stream->too_deep);
}

static void put_header(struct writer *writer) {
    const struct totals *totals = &writer->totals;
    gzip_print(writer->file, "#ebb-trace 1\n");
    put_name(writer);
    gzip_print(writer->file, "#view %s\n", writer->render->tensor ? "tensor" : "full");
    put_text(writer, "about", writer->render->about);
    if (writer->render->every_ms && !writer->stream->marked)
        gzip_print(writer->file, "#settings a region every %ld ms\n", writer->render->every_ms);
    put_state(writer);
    gzip_print(writer->file,
               "#warmup %" PRIu64 "\n#objects %" PRIu64 "\n", warmup_of(totals->regions),
        totals->objects);
    gzip_print(writer->file, "#preexisting %" PRIu64 " %" PRIu64 "\n", totals->preexisting,
        totals->preexisting_bytes);
    gzip_print(writer->file, "#untouched %" PRIu64 " %" PRIu64 "\n", totals->untouched,
        totals->untouched_bytes);
    gzip_print(writer->file,
               "#events %" PRIu64 "\n#allocs %" PRIu64 "\n#frees %" PRIu64 "\n#reallocs %" PRIu64
                "\n", totals->events, totals->allocs, totals->frees, totals->reallocs);
    gzip_print(writer->file,
               "#max-live %" PRIu64 " %" PRIu64 "\n", totals->max_live, totals->max_live_bytes);
    gzip_print(writer->file, "#left %" PRIu64 " %" PRIu64 "\n", totals->live, totals->live_bytes);
}

/* ---- the file */

static bool write_files(struct writer *writer, struct output *output) {
    struct site_list *sites = writer->sites;
    if (sites && !site_list_begin(sites, writer->spool, writer->render->path))
        return false;
    if (!output_begin(output, writer->render->path))
        return false;
    writer->file = output->file;
    put_header(writer);
    bool good = write_body(writer);
    writer->file = NULL;
    good = good && output_close(output) && (!sites || output_close(&sites->output));
    good = good && (sites ? output_name(&sites->output) : site_list_forget(writer->render->path));
    return good && output_name(output);
}

static bool write_all(struct writer *writer, struct rendered *rendered) {
    struct output output = {0};
    find_window(writer);
    mark_ends(writer);
    if (!write_body(writer))
        return false;
    rendered->events = writer->totals.events;
    rendered->objects = writer->totals.objects;
    rendered->regions = writer->totals.regions;
    rendered->blocks = writer->stream->block_count;
    rendered->unknown_frees = writer->stream->unknown_frees;
    rendered->lost_frees = writer->stream->lost_frees;
    rendered->cut = writer->stream->cut;
    rendered->calls = writer->stream->calls;
    rendered->untouched = writer->totals.untouched;
    rendered->untouched_bytes = writer->totals.untouched_bytes;
    bool good = write_files(writer, &output);
    output_drop(&output);
    if (writer->sites)
        output_drop(&writer->sites->output);
    return good;
}

bool render_trace(const struct stream *stream, const struct spool_file *spool,
                  const struct render *render, struct rendered *rendered) {
    struct site_list sites = {0};
    struct writer writer = {.stream = stream, .spool = spool, .render = render,
                            .sites = render->sites ? &sites : NULL};
    *rendered = (struct rendered){0};
    writer.number = calloc(stream->block_count + 1, sizeof *writer.number);
    writer.ends = calloc(stream->block_count + 1, sizeof *writer.ends);
    bool good = (writer.number && writer.ends) ||
                complain("out of memory: %zu blocks", stream->block_count);
    good = good && output_allowed(render->path) && write_all(&writer, rendered);
    if (good && render->sites)
        snprintf(rendered->sites_path, sizeof rendered->sites_path, "%s", sites.output.path);
    free(writer.number);
    free(writer.ends);
    return good;
}
