// SPDX-License-Identifier: Apache-2.0
/* case.c - see case.h. */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../churn/table.h"
#include "brief.h"
#include "command.h"
#include "complain.h"
#include "words.h"

enum { WORST_MOST = 64, NAME_SHOWN = 45, STOP_SHOWN = 200 };

int case_read(struct recorded_case *recorded, const char *path) {
    struct trace_error error;
    *recorded = (struct recorded_case){.path = path};
    recorded->trace = trace_read(path, &error);
    if (!recorded->trace) {
        complain("%s: %s (%s)", path, error.text, trace_error_name(error.code));
        return error.code == TRACE_ERROR_MEMORY ? EXIT_FAILED : EXIT_BAD_INPUT;
    }
    int code = places_read(&recorded->places, recorded->trace, path);
    if (!code) {
        if (figures_make(&recorded->figures, recorded->trace, &recorded->places))
            return 0;
        places_free(&recorded->places);
        code = EXIT_FAILED;
    }
    trace_free(recorded->trace);
    return code;
}

void case_free(struct recorded_case *recorded) {
    figures_free(&recorded->figures);
    places_free(&recorded->places);
    trace_free(recorded->trace);
}

uint64_t case_steps(const struct recorded_case *recorded, int kind) {
    uint64_t count = 0;
    for (size_t i = 0; i < recorded->figures.step_count; i++)
        count += recorded->figures.step[i].kind == kind;
    return count;
}

uint64_t case_peak(const struct recorded_case *recorded, int kind) {
    uint64_t peak = 0;
    for (size_t i = 0; i < recorded->figures.step_count; i++)
        if (recorded->figures.step[i].kind == kind && recorded->figures.step[i].peak > peak)
            peak = recorded->figures.step[i].peak;
    return peak;
}

const char *case_stop(const struct recorded_case *recorded) {
    static const char key[] = "#stopped ";
    char why[STOP_SHOWN];
    for (const char *note = recorded->trace->notes; *note; note += strcspn(note, "\n") + 1)
        if (strncmp(note, key, strlen(key)) == 0) {
            note += strlen(key);
            snprintf(why, sizeof why, "%.*s", (int)strcspn(note, "\n"), note);
            return words_name(why);
        }
    return NULL;
}

void case_print_stop(const struct recorded_case *recorded) {
    const char *why = case_stop(recorded);
    if (why)
        printf("The recording stopped early (%s).\n"
               "What was alive then counts as left.\n\n", why);
}

static double each(uint64_t sum, uint64_t steps) {
    return steps ? (double)sum / (double)steps : 0;
}

static void put_kind(struct table *table, const struct recorded_case *recorded, int kind) {
    const struct fate *fate = &recorded->figures.kind[kind];
    uint64_t steps = case_steps(recorded, kind);
    table_row(table);
    table_cell(table, "%s", recorded->trace->kinds.word[kind]);
    table_cell(table, "%s", words_count(steps).text);
    table_cell(table, "%s", words_number(each(fate->born.blocks, steps), 0).text);
    table_cell(table, "%s", words_bytes(each(fate->born.bytes, steps)).text);
    table_cell(table, "%s", words_bytes((double)case_peak(recorded, kind)).text);
    table_cell(table, "%s", words_share(fate->died.blocks, fate->born.blocks, 2).text);
    table_cell(table, "%s", words_share(fate->died.bytes, fate->born.bytes, 2).text);
    table_cell(table, "%s", words_bytes(each(fate_survived(fate).bytes, steps)).text);
    table_cell(table, "%s", words_share(fate->next.bytes, fate->born.bytes, 2).text);
    table_cell(table, "%s", words_share(fate->later.bytes, fate->born.bytes, 2).text);
    table_cell(table, "%s", words_share(fate->never.bytes, fate->born.bytes, 2).text);
}

void case_print_steps(const struct recorded_case *recorded) {
    struct table *table = malloc(sizeof *table);
    if (!table)
        return;
    table_begin(table, "step|steps|blocks|bytes|peak|blocks die|bytes die|survive|next|later|left");
    for (uint32_t i = 0; i < recorded->trace->kinds.count; i++)
        if (case_steps(recorded, (int)i))
            put_kind(table, recorded, (int)i);
    table_print(table);
    free(table);
}

static void put_survivors(struct table *table, const char *name, const struct fate *fate,
                          uint64_t steps) {
    table_row(table);
    table_cell(table, "%s", name);
    table_cell(table, "%s", words_number(each(fate_survived(fate).blocks, steps), 1).text);
    table_cell(table, "%s", words_bytes(each(fate_survived(fate).bytes, steps)).text);
    table_cell(table, "%s", words_share(fate_survived(fate).blocks, fate->born.blocks, 1).text);
    table_cell(table, "%s", words_bytes((double)fate->next.bytes).text);
    table_cell(table, "%s", words_bytes((double)fate->later.bytes).text);
    table_cell(table, "%s", words_bytes((double)fate->never.bytes).text);
}

static void put_place(struct table *table, const struct recorded_case *recorded, uint16_t place) {
    const char *name = recorded->places.name[place];
    char brief[NAME_SHOWN];
    brief_place(brief, sizeof brief, *name ? name : "unknown");
    put_survivors(table, brief, &recorded->figures.place[place], recorded->figures.step_count);
}

static void put_others(struct table *table, const struct recorded_case *recorded,
                       const uint16_t *place, size_t count) {
    struct fate sum;
    char name[NAME_SHOWN];
    size_t others = figures_others(&recorded->figures, place, count, &sum);
    snprintf(name, sizeof name, "and %s other%s", words_count(others).text, others > 1 ? "s" : "");
    if (others)
        put_survivors(table, name, &sum, recorded->figures.step_count);
}

void case_print_worst(const struct recorded_case *recorded, size_t most) {
    struct table *table = malloc(sizeof *table);
    uint16_t place[WORST_MOST];
    size_t count = figures_worst(&recorded->figures, place, most < WORST_MOST ? most : WORST_MOST);
    if (!table)
        return;
    table_begin(table, "survivors of|blocks|bytes|of its own|next|later|left");
    for (size_t i = 0; i < count; i++)
        put_place(table, recorded, place[i]);
    put_others(table, recorded, place, count);
    if (count)
        table_print(table);
    else
        puts("  nothing outlives its step");
    free(table);
}
