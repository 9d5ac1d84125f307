// SPDX-License-Identifier: Apache-2.0
/* text.h - what a report wrote, in one string, and the smallest JSON reader that can say no. */
#ifndef KIT_TEXT_H
#define KIT_TEXT_H

#include "kit/test.h"

struct page {
    char text[1 << 16];
    size_t length;
    unsigned calls;
    unsigned stop_at; /* the call that returns 77; 0: none */
};

/* An ebb_write_fn over a page. */
int page_write(void *context, const char *text, size_t bytes);

/* How often `part` occurs. */
unsigned page_count(const struct page *page, const char *part);

/* True if the page is exactly one JSON value with nothing behind it. */
bool page_is_json(const struct page *page);

/* The number behind the n-th "name": of the page (n from 0); fails the test if there is none. */
unsigned long long page_number(const struct page *page, const char *name, unsigned nth);

#endif
