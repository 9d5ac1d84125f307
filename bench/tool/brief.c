// SPDX-License-Identifier: Apache-2.0
/*
 * brief.c - see brief.h. Names are demangled by a C++ library and taken as they come: brackets that
 * do not match make a cut less apt, and nothing else.
 */
#include "brief.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CUT = sizeof "..." - 1 };

static bool is_of_a_word(char byte) {
    return byte == '_' || isalnum((unsigned char)byte) || (unsigned char)byte > 127;
}

/* The bytes of an operator's name up to the end of a sign in it that opens or closes nothing; 0:
 * no operator is named there. */
static size_t operator_at(const char *name, size_t at) {
    static const char word[] = "operator";
    static const char *const sign[] = {"<=>", "<<=", ">>=", "->*", "<<", ">>",
                                       "<=",  ">=",  "->",  "<",   ">"};
    const char *end = name + at + sizeof word - 1;
    if (strncmp(name + at, word, sizeof word - 1) != 0 || is_of_a_word(*end) ||
        (at > 0 && is_of_a_word(name[at - 1])))
        return 0;
    for (size_t i = 0; i < sizeof sign / sizeof *sign; i++)
        if (strncmp(end, sign[i], strlen(sign[i])) == 0)
            return sizeof word - 1 + strlen(sign[i]);
    return sizeof word - 1;
}

/* Where the name proper begins, behind the last `::` that is in no brackets; 0: there is none. */
static size_t own_part(const char *name, size_t length) {
    size_t found = 0;
    int open = 0;
    for (size_t i = 0; i + 1 < length; i++) {
        size_t passed = operator_at(name, i);
        if (passed) {
            i += passed - 1;
            continue;
        }
        open += (strchr("<({", name[i]) != NULL) - (strchr(">)}", name[i]) != NULL);
        if (open == 0 && name[i] == ':' && name[i + 1] == ':')
            found = i + 2;
    }
    return found;
}

/* At most `room` bytes of a text, and no part of a character. */
static size_t whole(const char *text, size_t length, size_t room) {
    if (length <= room)
        return length;
    while (room > 0 && ((unsigned char)text[room] & 0xC0) == 0x80)
        room--;
    return room;
}

static size_t written(int bytes, size_t room) {
    return (size_t)bytes < room ? (size_t)bytes : room - 1;
}

/* A text, or its begin and dots where there is no room for all of it. */
static size_t put_begin(char *to, size_t room, const char *text, size_t length) {
    size_t most = room - 1, head = most > CUT ? whole(text, length, most - CUT) : 0;
    if (length <= most)
        return written(snprintf(to, room, "%.*s", (int)length, text), room);
    return written(snprintf(to, room, "%.*s...", (int)head, text), room);
}

/* The middle is left out, down to what the name proper has as arguments of a template. Where that
 * is too long its end is, and nothing of the rest is there. */
size_t brief_function(char *to, size_t room, const char *name, size_t length) {
    size_t most = room - 1, own = own_part(name, length), rest = length - own;
    const char *arguments = "";
    if (length <= most)
        return put_begin(to, room, name, length);
    size_t plain = operator_at(name, own);
    plain += strcspn(name + own + plain, "<");
    if (rest + sizeof "...::" > most && plain < rest) {
        arguments = "<...>";
        rest = plain;
    }
    size_t least = rest + strlen(arguments), head = own > 2 ? own - 2 : 0;
    const char *dots = own + least > most ? "..." : "";
    least += strlen(dots) + sizeof "::" - 1;
    if (head == 0 || least >= most)
        return put_begin(to, room, name + own, length - own);
    head = whole(name, head, most - least);
    return written(snprintf(to, room, "%.*s%s::%.*s%s", (int)head, name, dots, (int)rest,
                            name + own, arguments), room);
}

/* The bytes of a name before the arguments that C++ writes behind it. */
static size_t without_arguments(const char *name, size_t length) {
    size_t at = length;
    while (at > 0 && name[at - 1] != ')')
        at--;
    for (int open = 0; at > 0; at--) {
        open += (name[at - 1] == ')') - (name[at - 1] == '(');
        if (open == 0)
            break;
    }
    return at > 1 ? at - 1 : length;
}

void brief_place(char *to, size_t room, const char *name) {
    size_t length = strlen(name);
    const char *file = strrchr(name, '(');
    if (!file || file == name || file[-1] != ' ' || name[length - 1] != ')') {
        brief_function(to, room, name, length);
        return;
    }
    const char *end = strstr(file, ".so");
    size_t bytes = (size_t)((end ? end : name + length - 1) - file), tail = bytes + sizeof " )" - 1;
    size_t used = brief_function(to, room > tail + CUT ? room - tail : CUT + 1, name,
                                 without_arguments(name, (size_t)(file - 1 - name)));
    to[used++] = ' ';
    used += put_begin(to + used, room - used - 1, file, bytes);
    strcpy(to + used, ")");
}
