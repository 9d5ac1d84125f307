// SPDX-License-Identifier: Apache-2.0
/*
 * error.c - the last error of each thread.
 *
 * Invariants: code and text always belong to the same failure; a line can show the text, which has
 * names and values that callers chose. A successful call leaves both alone, so that the reason
 * survives clean-up code. Nothing here can fail or allocate.
 */
#include "base/error.h"
#include "base/name.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

struct last_error {
    int code;
    char text[320];
};

_Thread_local unsigned error_muted;
/* The last error, and the one before it for error_take_back(). */
static _Thread_local struct last_error noted[2];
static _Thread_local unsigned newest;
static _Thread_local int latest;

int error_latest(void) {
    return latest;
}

void error_put_latest(int code) {
    latest = code;
}

void error_take_back(void) {
    newest ^= error_muted == 0;
}

/* Ends a text that did not fit with "...", so that no half number passes for a whole one, and not
 * within a character. */
static void end_cut(char *text, size_t room) {
    static const char end[] = "...";
    size_t at = room - sizeof end;
    while (at > 0 && (text[at] & 0xc0) == 0x80)
        at--;
    memcpy(text + at, end, sizeof end);
}

int error_set(int code, const char *format, ...) {
    latest = code;
    if (error_muted)
        return code;
    newest ^= 1;
    struct last_error *last = &noted[newest];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(last->text, sizeof last->text, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof last->text)
        end_cut(last->text, sizeof last->text);
    name_make_plain(last->text);
    last->code = code;
    return code;
}

int ebb_last_error(void) {
    return noted[newest].code;
}

const char *ebb_last_error_text(void) {
    return noted[newest].text;
}

const char *ebb_error_name(int code) {
    static const char *const names[] = {
        "EBB_OK",           "EBB_E_ARGUMENT",    "EBB_E_ALIGNMENT",    "EBB_E_SIZE",
        "EBB_E_MEMORY",     "EBB_E_POOL_LIMIT",  "EBB_E_REGION_LIMIT", "EBB_E_STALE",
        "EBB_E_SEALED",     "EBB_E_FOREIGN",     "EBB_E_INTERIOR",     "EBB_E_RELEASED",
        "EBB_E_MARK",       "EBB_E_NO_ROOM",     "EBB_E_NOT_ANCESTOR", "EBB_E_MEASURING",
        "EBB_E_BUSY",       "EBB_E_LIVE_BLOCKS", "EBB_E_CHILD_OPEN",   "EBB_E_DUPLICATE",
        "EBB_E_NOT_OWNED",  "EBB_E_MEMBER",      "EBB_E_TYPE",         "EBB_E_BORROWED",
        "EBB_E_CYCLE",      "EBB_E_DEPTH",       "EBB_E_CLEANUP",      "EBB_E_DTYPE",
        "EBB_E_SHAPE",      "EBB_E_VIEW",        "EBB_E_OVERLAP",      "EBB_E_VALUE",
        "EBB_E_EMPTY",      "EBB_E_LENGTH_COUNT", "EBB_E_LENGTH_NEGATIVE", "EBB_E_LENGTH_EXCEEDS",
        "EBB_E_TOTAL_LENGTH", "EBB_E_UNSORTED",  "EBB_E_BATCH_SIZES",  "EBB_E_PERMUTATION",
        "EBB_E_METADATA",   "EBB_E_STRUCTURE",   "EBB_E_EXCHANGE",
        "EBB_E_ORDER",      "EBB_E_KIND",        "EBB_E_NO_SPACE",     "EBB_E_SLOTS",
        "EBB_E_PARCEL",     "EBB_E_SHARED",      "EBB_E_DEVICE",      "EBB_E_THREAD",
    };
    size_t index = code <= 0 ? (size_t)-(long)code : SIZE_MAX;
    return index < sizeof names / sizeof *names ? names[index] : "EBB_E_UNKNOWN";
}

const char *ebb_version(void) {
    return STRING(EBB_VERSION_MAJOR) "." STRING(EBB_VERSION_MINOR) "." STRING(EBB_VERSION_PATCH);
}
