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

/* A name of any length in a line of text: what is not plain (base/name.h) is "?". */
void text_name(struct text *text, const char *name);

/* A name as a JSON string, what is not plain escaped, quotes included; and what is between them.
 * Byte 0xNN of no UTF-8 is \udcNN, which Python calls surrogateescape. */
void text_json_string(struct text *text, const char *string);
void text_json_inside(struct text *text, const char *string);

#endif
