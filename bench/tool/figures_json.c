// SPDX-License-Identifier: Apache-2.0
/*
 * figures_json.c - one JSON object:
 *
 *     { "trace": "train.trace.gz", "events": 1, "objects": 1, "max_live_bytes": 1,
 *       "left_bytes": 1, "sites": true, "outside": AMOUNT, "main_kind": "train",
 *       "kinds": [ { "kind": "train", "steps": 27, "peak": 1, "fate": FATE } ],
 *       "places": [ { "place": "at::empty(int) (libtorch.so)", "brief": "at::empty (libtorch)",
 *                     "fate": FATE } ],
 *       "others": { "places": 1, "fate": FATE },
 *       "steps": [ { "number": 0, "born": RANGE, "survived": RANGE, "peak": RANGE } ] }
 *
 * AMOUNT is [blocks, bytes]; FATE is { "born": AMOUNT, "died": ..., "next": ..., "later": ...,
 * "never": AMOUNT }. The steps are those of the main kind; where there are more than STEPS_MOST,
 * each entry is of several in a row, and `number` that of the first. RANGE is the lowest and the
 * highest of them, so that none is left out. Places are the worst of those with survivors, and what
 * is beyond PLACES_MOST is in the sum of the others. Names of files are of any bytes: who reads
 * this takes what is no UTF-8 for that.
 */
#include "figures_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "brief.h"
#include "complain.h"

enum { STEPS_MOST = 600, PLACES_MOST = 40, BRIEF = 61 };

static void put_string(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        fputc((unsigned char)*text < ' ' || *text == 127 ? '?' : *text, file);
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
        fprintf(file, ", \"steps\": %" PRIu64 ", \"peak\": %" PRIu64 ", ", steps,
                case_peak(recorded, (int)i));
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
        char brief[BRIEF];
        name = *name ? name : "unknown";
        brief_place(brief, sizeof brief, name);
        fputs(i ? ",\n  {\"place\": " : "\n  {\"place\": ", file);
        put_string(file, name);
        fputs(", \"brief\": ", file);
        put_string(file, brief);
        fputs(", ", file);
        put_fate(file, &recorded->figures.place[place[i]]);
    }
    struct fate sum;
    size_t others = figures_others(&recorded->figures, place, count, &sum);
    fprintf(file, "],\n \"others\": {\"places\": %zu, ", others);
    put_fate(file, &sum);
}

struct range {
    uint64_t low, high;
};

struct stretch {
    uint64_t steps;
    struct range born, survived, peak;
};

static void widen(struct range *range, uint64_t value, bool first) {
    if (first || value < range->low)
        range->low = value;
    if (first || value > range->high)
        range->high = value;
}

static void lengthen(struct stretch *stretch, const struct step_figures *step) {
    bool first = stretch->steps++ == 0;
    widen(&stretch->born, step->born.bytes, first);
    widen(&stretch->survived, step->survived.bytes, first);
    widen(&stretch->peak, step->peak, first);
}

static void put_range(FILE *file, const char *name, struct range range) {
    fprintf(file, ", \"%s\": [%" PRIu64 ", %" PRIu64 "]", name, range.low, range.high);
}

static void put_stretch(FILE *file, const struct stretch *stretch, uint64_t number) {
    fprintf(file, "%s\n  {\"number\": %" PRIu64, number ? "," : "", number);
    put_range(file, "born", stretch->born);
    put_range(file, "survived", stretch->survived);
    put_range(file, "peak", stretch->peak);
    fputc('}', file);
}

static void put_steps(FILE *file, const struct recorded_case *recorded) {
    const struct figures *figures = &recorded->figures;
    uint64_t count = figures->main_kind < 0 ? 0 : case_steps(recorded, figures->main_kind);
    uint64_t most = (count + STEPS_MOST - 1) / STEPS_MOST, number = 0;
    struct stretch stretch = {0};
    fputs(",\n \"steps\": [", file);
    for (size_t i = 0; i < figures->step_count; i++) {
        if (figures->step[i].kind != figures->main_kind)
            continue;
        lengthen(&stretch, &figures->step[i]);
        if (stretch.steps < most && number + stretch.steps < count)
            continue;
        put_stretch(file, &stretch, number);
        number += stretch.steps;
        stretch = (struct stretch){0};
    }
    fputs("]", file);
}

static void put_main_kind(FILE *file, const struct recorded_case *recorded) {
    int kind = recorded->figures.main_kind;
    if (kind < 0)
        return;
    fputs(", \"main_kind\": ", file);
    put_string(file, recorded->trace->kinds.word[kind]);
}

bool figures_write(const struct recorded_case *recorded, int number) {
    const struct trace_totals *totals = &recorded->trace->totals;
    const char *stop = case_stop(recorded);
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
    if (stop) {
        fputs("\"stopped\": ", file);
        put_string(file, stop);
        fputs(", ", file);
    }
    put_amount(file, "outside", recorded->figures.outside);
    put_main_kind(file, recorded);
    put_kinds(file, recorded);
    put_places(file, recorded);
    put_steps(file, recorded);
    fputs("}\n", file);
    bool bad = ferror(file);
    if (fclose(file) == 0 && !bad)
        return true;
    return complain("the figures cannot be written: %s", strerror(errno));
}
