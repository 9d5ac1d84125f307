// SPDX-License-Identifier: Apache-2.0
/* text.h - formatted output through a callback, without allocating; keeps the first failure. */
#ifndef EBB_REPORT_TEXT_H
#define EBB_REPORT_TEXT_H

#include <ebb/report.h>

struct text {
    ebb_write_fn *write;
    void *context;
    int result; /* of the callback, once it is not 0 nothing more is written */
};

void text_print(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Bytes of the UTF-8 sequence that starts here; 0 if none does. */
size_t text_utf8_bytes(const char *string);

/* A name as a JSON string, quotes included. */
void text_json_string(struct text *text, const char *string);

#endif
