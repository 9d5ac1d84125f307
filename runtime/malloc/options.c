// SPDX-License-Identifier: Apache-2.0
/* options.c - reads the environment (see options.h). Nothing here allocates. */
#include "malloc/options.h"
#include "base/name.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 512 /* of what is said, with a zero; reasons are long in some languages */
#define IDLE_MS 1000u
#define IDLE_MOST 86400000u /* a day */

struct options options = {.idle_ms = IDLE_MS};

/* The path as it was asked for. A child does not look at the environment: the program may have
 * cleared it, or have been about to change it as it forked. */
static char asked[OPTIONS_PATH_BYTES + 1];

void options_complain(const char *format, ...) {
    static const char name[] = "ebb-malloc: ";
    char text[LINE_BYTES];
    va_list words;
    memcpy(text, name, sizeof name);
    va_start(words, format);
    int more = vsnprintf(text + sizeof name - 1, sizeof text - sizeof name, format, words);
    va_end(words);
    if (more < 0)
        return;
    name_make_plain(text); /* what was asked for may have anything in it */
    size_t length = strlen(text);
    text[length++] = '\n';
    (void)!write(STDERR_FILENO, text, length);
}

static void read_idle(const char *value, int length) {
    char *end;
    bool has_digits = *value >= '0' && *value <= '9'; /* no space, no sign */
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (!has_digits || end != value + length || errno || number > IDLE_MOST)
        options_complain("EBB_MALLOC: idle_ms is '%.*s', expected 0 to %u", length, value,
                         IDLE_MOST);
    else
        options.idle_ms = (unsigned)number;
}

static void read_turns(const char *value, int length) {
    if (length == 4 && strncmp(value, "wait", 4) == 0)
        options.turns = TURNS_WAIT;
    else if (length == 7 && strncmp(value, "receive", 7) == 0)
        options.turns = TURNS_RECEIVE;
    else
        options_complain("EBB_MALLOC: turns is '%.*s', expected wait or receive", length, value);
}

/* One of KEY:VALUE, `length` bytes long. */
static void read_pair(const char *pair, int length) {
    const char *colon = memchr(pair, ':', (size_t)length);
    int key = colon ? (int)(colon - pair) : length;
    const char *value = pair + key + (colon != NULL);
    int rest = length - key - (colon != NULL);
    if (key == 7 && strncmp(pair, "idle_ms", 7) == 0)
        read_idle(value, rest);
    else if (key == 5 && strncmp(pair, "turns", 5) == 0)
        read_turns(value, rest);
    else
        options_complain("EBB_MALLOC: no such key: '%.*s', there are idle_ms and turns", key,
                         pair);
}

static void read_pairs(const char *text) {
    while (*text) {
        size_t length = strcspn(text, ",");
        if (length)
            read_pair(text, length < INT_MAX ? (int)length : INT_MAX);
        text += length + (text[length] == ',');
    }
}

/* With the number of the process in place of the first %p. */
static void set_path(const char *path) {
    const char *place = strstr(path, "%p");
    int length = place ? snprintf(options.stats, sizeof options.stats, "%.*s%ld%s",
                                  (int)(place - path), path, (long)getpid(), place + 2)
                       : snprintf(options.stats, sizeof options.stats, "%s", path);
    options.is_per_process = place != NULL;
    if (length > 0 && length < (int)sizeof options.stats)
        return;
    options_complain("EBB_MALLOC_STATS: a path of %d bytes, expected 1 to %zu", length,
                     sizeof options.stats - 1);
    *options.stats = 0;
}

static void read_stats(const char *path) {
    options.is_socket = strncmp(path, "unix:", 5) == 0;
    path += options.is_socket ? 5 : 0;
    set_path(path);
    if (*options.stats)
        snprintf(asked, sizeof asked, "%s", path);
}

void options_read(void) {
    const char *pairs = secure_getenv("EBB_MALLOC");
    const char *stats = secure_getenv("EBB_MALLOC_STATS");
    if (pairs)
        read_pairs(pairs);
    if (stats)
        read_stats(stats);
}

void options_for_child(void) {
    if (options.is_per_process && *asked)
        set_path(asked);
    else
        *options.stats = 0;
}
