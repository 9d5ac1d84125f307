// SPDX-License-Identifier: Apache-2.0
/* text.c - see text.h. The reader knows all of JSON's grammar. */
#include "kit/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

int page_write(void *context, const char *text, size_t bytes) {
    struct page *page = context;
    page->calls++;
    if (page->stop_at && page->calls == page->stop_at)
        return 77;
    if (bytes >= sizeof page->text - page->length)
        return -1;
    memcpy(page->text + page->length, text, bytes);
    page->length += bytes;
    page->text[page->length] = '\0';
    return 0;
}

unsigned page_count(const struct page *page, const char *part) {
    unsigned count = 0;
    for (const char *at = page->text; (at = strstr(at, part)); at += strlen(part))
        count++;
    return count;
}

static const char *read_value(const char *at);

/* A character of more than one byte in UTF-8; gives its last byte, or NULL if it is none. */
static const char *read_wide(const char *at) {
    static const struct {
        unsigned lead, mask, least;
        int more;
    } kinds[] = {{0xc0, 0xe0, 0x80, 1}, {0xe0, 0xf0, 0x800, 2}, {0xf0, 0xf8, 0x10000, 3}};
    unsigned char lead = (unsigned char)*at;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if ((lead & kinds[i].mask) != kinds[i].lead)
            continue;
        unsigned value = lead & ~kinds[i].mask;
        for (int k = 0; k < kinds[i].more; k++) {
            unsigned char next = (unsigned char)*++at;
            if ((next & 0xc0) != 0x80)
                return NULL;
            value = value << 6 | (next & 0x3f);
        }
        bool surrogate = value >= 0xd800 && value < 0xe000;
        return value >= kinds[i].least && value <= 0x10ffff && !surrogate ? at : NULL;
    }
    return NULL;
}

static const char *read_string(const char *at) {
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at >= 0x80 && !(at = read_wide(at)))
            return NULL;
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return NULL;
        if (*at != '\\')
            continue;
        at++;
        if (*at == 'u') {
            for (int digit = 0; digit < 4; digit++)
                if (!isxdigit((unsigned char)*++at))
                    return NULL;
        } else if (!*at || !strchr("\"\\/bfnrt", *at)) {
            return NULL;
        }
    }
    return at + 1;
}

static const char *read_member(const char *at) {
    at = read_string(at);
    return at && *at == ':' ? read_value(at + 1) : NULL;
}

/* Items up to `close`, separated by commas, none before or behind the last. */
static const char *read_items(const char *at, char close,
                              const char *(*read_item)(const char *at)) {
    if (*at == close)
        return at + 1;
    for (;;) {
        at = read_item(at);
        if (!at)
            return NULL;
        if (*at == close)
            return at + 1;
        if (*at++ != ',')
            return NULL;
    }
}

/* At least one digit; NULL if there is none. */
static const char *read_digits(const char *at) {
    if (!isdigit((unsigned char)*at))
        return NULL;
    while (isdigit((unsigned char)*at))
        at++;
    return at;
}

static const char *read_number(const char *at) {
    const char *first = *at == '-' ? at + 1 : at;
    at = read_digits(first);
    if (!at || (*first == '0' && at > first + 1))
        return NULL;
    if (*at == '.' && !(at = read_digits(at + 1)))
        return NULL;
    if (*at == 'e' || *at == 'E')
        at = read_digits(at + (at[1] == '+' || at[1] == '-' ? 2 : 1));
    return at;
}

static const char *read_word(const char *at) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return at + strlen(words[i]);
    return read_number(at);
}

static const char *read_value(const char *at) {
    if (*at == '{')
        return read_items(at + 1, '}', read_member);
    if (*at == '[')
        return read_items(at + 1, ']', read_value);
    return *at == '"' ? read_string(at) : read_word(at);
}

bool page_is_json(const struct page *page) {
    const char *end = read_value(page->text);
    return end && *end == '\0';
}

unsigned long long page_number(const struct page *page, const char *name, unsigned nth) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\":", name);
    const char *at = page->text;
    for (unsigned i = 0; (at = strstr(at, wanted)); i++) {
        at += strlen(wanted);
        if (i == nth)
            return strtoull(at, NULL, 10);
    }
    fail_msg("no %s number %u in %s", wanted, nth, page->text);
    return 0;
}
