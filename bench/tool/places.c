// SPDX-License-Identifier: Apache-2.0
/*
 * places.c - see places.h. Refused: a list that is damaged or cut (its check sum and what lies
 * behind it included, as of a trace), names a place above PLACES_MAX, or has another number of
 * objects than the trace.
 */
#include "places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/name.h"
#include "command.h"
#include "complain.h"
#include "origin.h"
#include "site_list.h"
#include "source.h"

/* "FILE+0x12" and a name as people read them: the name if there is one, no folders. */
static void shorten(char *to, const char *module, const char *name) {
    const char *slash = strrchr(module, '/'), *file = slash ? slash + 1 : module;
    const char *address = strstr(file, "+0x"), *end = address ? address : file + strlen(file);
    if (*name)
        snprintf(to, PLACE_NAME_MAX, "%s (%.*s)", name, (int)(end - file), file);
    else
        snprintf(to, PLACE_NAME_MAX, "%s", file);
}

static bool take_place(struct places *places, char *line) {
    char *rest = line + 2, *end = NULL;
    bool has_digits = *rest >= '0' && *rest <= '9';
    unsigned long number = strtoul(rest, &end, 10);
    if (!has_digits || number >= PLACES_MAX || strlen(end) < 4 || end[2] != ' ')
        return false;
    char *module = end + 3, *name = strstr(module, "+0x");
    name = name ? strchr(name, ' ') : NULL;
    if (!name)
        return false;
    *name++ = '\0';
    shorten(places->name[number], module, name);
    return true;
}

static bool take_object(struct places *places, const char *line, uint64_t number) {
    char *end = NULL;
    bool has_digits = *line >= '0' && *line <= '9'; /* no space, no sign */
    unsigned long place = strtoul(line, &end, 10);
    if (!has_digits || *end || place >= PLACES_MAX)
        return false;
    places->of[number] = (uint16_t)place;
    return true;
}

static bool take_lines(struct places *places, struct trace_source *source, uint64_t objects,
                       struct trace_error *error) {
    char line[TRACE_LINE_MAX + 1];
    uint64_t count = 0;
    const char *next = trace_source_next(source, error);
    if (!next || strcmp(next, "#ebb-sites 1") != 0)
        return false;
    while ((next = trace_source_next(source, error))) {
        strcpy(line, next);
        name_make_plain(line);
        bool taken = line[0] == 's' ? take_place(places, line)
                                    : count < objects && take_object(places, line, count++);
        if (!taken)
            return false;
    }
    return error->code == TRACE_OK && count == objects;
}

static bool is_birth(uint8_t op) {
    return op <= TRACE_REALLOC;
}

static void take_origins(struct places *places, const struct ebb_trace *trace) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (!is_birth(event->op))
            continue;
        places->of[count++] = (uint16_t)event->origin;
        snprintf(places->name[(int)event->origin], PLACE_NAME_MAX, "%s",
                 origin_name(event->origin));
    }
}

/* As places_read(). */
static int take_list(struct places *places, uint64_t objects, const char *path) {
    struct trace_source *source = calloc(1, sizeof *source);
    struct trace_error error = {0};
    if (!source) {
        complain("out of memory: a buffer for lines");
        return EXIT_FAILED;
    }
    bool good = trace_source_open(source, path, &error);
    if (good) {
        good = take_lines(places, source, objects, &error);
        trace_source_close(source);
    }
    free(source);
    if (error.code != TRACE_OK)
        complain("%s: %s", path, error.text);
    else if (!good)
        complain("%s: damaged, or of another trace", path);
    if (error.code == TRACE_ERROR_MEMORY)
        return EXIT_FAILED;
    return good ? 0 : EXIT_BAD_INPUT;
}

int places_read(struct places *places, const struct ebb_trace *trace, const char *path) {
    char beside[OUTPUT_PATH_MAX];
    places->of = calloc(trace->totals.objects + 1, sizeof *places->of);
    places->name = calloc(PLACES_MAX, sizeof *places->name);
    if (!places->of || !places->name) {
        places_free(places);
        complain("out of memory: %" PRIu64 " objects", trace->totals.objects);
        return EXIT_FAILED;
    }
    places->sites = site_list_path(path, beside, sizeof beside) && access(beside, F_OK) == 0;
    if (!places->sites) {
        take_origins(places, trace);
        return 0;
    }
    strcpy(places->name[0], "unknown");
    int code = take_list(places, trace->totals.objects, beside);
    if (code)
        places_free(places);
    return code;
}

void places_free(struct places *places) {
    free(places->of);
    free(places->name);
    *places = (struct places){0};
}
