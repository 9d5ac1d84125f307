// SPDX-License-Identifier: Apache-2.0
//
// known.c - see known.h.

#include "known.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "program.h"
#include "trace_scratch.h"

void assert_said(const char *part)
{
    if (!strstr(said, part))
        print_error("not said: %s\nbut: %s\n", part, said);
    assert_non_null(strstr(said, part));
}

void write_steps(unsigned steps)
{
    struct text *text = new_text();

    add(text, "#name known\n#warmup 2\n");
    for (unsigned i = 0; i < steps; i++) {
        add(text, "B train %u 0\na 100 C\na 200 C\nf 2\n", i);
        if (i)
            add(text, "f 4\n"); // of 60, two objects of this step and the last 40 later
        add(text, "f 1\na 60 T\na 40 P\nE train 0\n");
    }
    add(text, "a 1000 O\nf 1\n");
    write_bytes(text->bytes, text->used);
}
