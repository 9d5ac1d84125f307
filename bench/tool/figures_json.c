// SPDX-License-Identifier: Apache-2.0
/*
 * figures_json.c - one JSON object:
 *
 *     { "trace": "train.trace.gz", "events": 1, "objects": 1, "max_live_bytes": 1,
 *       "left_bytes": 1, "sites": true, "outside": AMOUNT,
 *       "kinds": [ { "kind": "train", "steps": 27, "fate": FATE } ],
 *       "places": [ { "place": "at::empty (libtorch.so)", "fate": FATE } ],
 *       "steps": [ { "number": 0, "born": 1, "survived": 1, "peak": 1 } ] }
 *
 * AMOUNT is [blocks, bytes]; FATE is { "born": AMOUNT, "died": ..., "next": ..., "later": ...,
 * "never": AMOUNT }. Of the steps at most STEPS_MOST are there, evenly taken, of the main kind.
 */
#include "figures_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "complain.h"

enum { STEPS_MOST = 600, PLACES_MOST = 40 };

static void put_string(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        if ((unsigned char)*text < ' ' || (unsigned char)*text > 126)
            fputc('?', file); /* names of files may be of any bytes */
        else
            fputc(*text, file);
    }
    fputc('"', file);
}

static void put_amount(FILE *file, const char *name, struct amount amount) {
    fprintf(file, "\"%s\": [%" PRIu64 ", %" PRIu64 "]", name, amount.blocks, amount.bytes);
}

static void put_fate(FILE *file, const struct fate *fate) {
    fputs("\"fate\": {", file);
    put_amount(file, "born", fate->born);
    fputs(", ", file);
    put_amount(file, "died", fate->died);
    fputs(", ", file);
    put_amount(file, "next", fate->next);
    fputs(", ", file);
    put_amount(file, "later", fate->later);
    fputs(", ", file);
    put_amount(file, "never", fate->never);
    fputs("}}", file);
}

static void put_kinds(FILE *file, const struct recorded_case *recorded) {
    bool first = true;
    fputs(",\n \"kinds\": [", file);
    for (uint32_t i = 0; i < recorded->trace->kinds.count; i++) {
        uint64_t steps = case_steps(recorded, (int)i);
        if (!steps)
            continue;
        fputs(first ? "\n  {\"kind\": " : ",\n  {\"kind\": ", file);
        put_string(file, recorded->trace->kinds.word[i]);
        fprintf(file, ", \"steps\": %" PRIu64 ", ", steps);
        put_fate(file, &recorded->figures.kind[i]);
        first = false;
    }
    fputs("]", file);
}

static void put_places(FILE *file, const struct recorded_case *recorded) {
    uint16_t place[PLACES_MOST];
    size_t count = figures_worst(&recorded->figures, place, PLACES_MOST);
    fputs(",\n \"places\": [", file);
    for (size_t i = 0; i < count; i++) {
        const char *name = recorded->places.name[place[i]];
        fputs(i ? ",\n  {\"place\": " : "\n  {\"place\": ", file);
        put_string(file, *name ? name : "unknown");
        fputs(", ", file);
        put_fate(file, &recorded->figures.place[place[i]]);
    }
    fputs("]", file);
}

static void put_steps(FILE *file, const struct recorded_case *recorded) {
    const struct figures *figures = &recorded->figures;
    uint64_t count = figures->main_kind < 0 ? 0 : case_steps(recorded, figures->main_kind);
    uint64_t stride = count / STEPS_MOST + 1, seen = 0;
    fputs(",\n \"steps\": [", file);
    for (size_t i = 0; i < figures->step_count; i++) {
        const struct step_figures *step = &figures->step[i];
        if (step->kind != figures->main_kind || seen++ % stride)
            continue;
        fprintf(file, "%s\n  {\"number\": %" PRIu64 ", \"born\": %" PRIu64 ", \"survived\": %"
                PRIu64 ", \"peak\": %" PRIu64 "}", seen > 1 ? "," : "", seen - 1,
                step->born.bytes, step->survived.bytes, step->peak);
    }
    fputs("]", file);
}

bool figures_write(const struct recorded_case *recorded, int number) {
    const struct trace_totals *totals = &recorded->trace->totals;
    int own = dup(number);
    FILE *file = own < 0 ? NULL : fdopen(own, "w");
    if (!file)
        return complain("no file for the figures: %s", strerror(errno));
    fputs("{\"trace\": ", file);
    put_string(file, recorded->path);
    fprintf(file, ", \"events\": %" PRIu64 ", \"objects\": %" PRIu64 ", \"max_live_bytes\": %"
            PRIu64 ", \"left_bytes\": %" PRIu64 ", \"sites\": %s, ", totals->events,
            totals->objects, totals->max_live_bytes, totals->left_bytes,
            recorded->places.sites ? "true" : "false");
    put_amount(file, "outside", recorded->figures.outside);
    put_kinds(file, recorded);
    put_places(file, recorded);
    put_steps(file, recorded);
    fputs("}\n", file);
    bool bad = ferror(file);
    if (fclose(file) == 0 && !bad)
        return true;
    return complain("the figures cannot be written: %s", strerror(errno));
}
