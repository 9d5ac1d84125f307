// SPDX-License-Identifier: Apache-2.0
/*
 * places.c - see places.h. Refused: a list that is damaged, names a place above PLACES_MAX, or has
 * another number of objects than the trace.
 */
#include "places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "complain.h"
#include "origin.h"
#include "site_list.h"
#include "words.h"

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
    unsigned long number = strtoul(rest, &end, 10);
    if (end == rest || number >= PLACES_MAX || strlen(end) < 4 || end[2] != ' ')
        return false;
    char *module = end + 3, *name = strstr(module, "+0x");
    name = name ? strchr(name, ' ') : NULL;
    if (!name)
        return false;
    *name++ = '\0';
    shorten(places->name[number], module, name);
    return true;
}

static bool take_lines(struct places *places, gzFile file, uint64_t objects) {
    char line[1024], *end = NULL;
    uint64_t count = 0;
    if (!gzgets(file, line, sizeof line) || strcmp(line, "#ebb-sites 1\n") != 0)
        return false;
    while (gzgets(file, line, sizeof line)) {
        line[strcspn(line, "\n")] = '\0';
        words_plain(line);
        if (line[0] == 's') {
            if (!take_place(places, line))
                return false;
            continue;
        }
        unsigned long number = strtoul(line, &end, 10);
        if (end == line || *end || number >= PLACES_MAX || count == objects)
            return false;
        places->of[count++] = (uint16_t)number;
    }
    return count == objects;
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

bool places_read(struct places *places, const struct ebb_trace *trace, const char *path) {
    char beside[4200];
    gzFile file = NULL;
    places->of = calloc(trace->totals.objects + 1, sizeof *places->of);
    places->name = calloc(PLACES_MAX, sizeof *places->name);
    if (!places->of || !places->name) {
        places_free(places);
        return complain("out of memory: %" PRIu64 " objects", trace->totals.objects);
    }
    if (site_list_path(path, beside, sizeof beside) && access(beside, R_OK) == 0)
        file = gzopen(beside, "rb");
    places->sites = file != NULL;
    if (!file) {
        take_origins(places, trace);
        return true;
    }
    strcpy(places->name[0], "unknown");
    bool good = take_lines(places, file, trace->totals.objects);
    gzclose(file);
    if (good)
        return true;
    places_free(places);
    return complain("%s: damaged, or of another trace", beside);
}

void places_free(struct places *places) {
    free(places->of);
    free(places->name);
    *places = (struct places){0};
}
