// SPDX-License-Identifier: Apache-2.0
/*
 * unwind.c - who is called by the library sees who called it: profilers, exceptions and reports of
 * crashes unwind through its frames.
 */
#include "kit/test.h"

#include <unwind.h>

enum { FRAMES_MOST = 64 };

struct frames {
    void *function[FRAMES_MOST];
    unsigned count;
};

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *to) {
    struct frames *frames = to;
    if (frames->count == FRAMES_MOST)
        return _URC_END_OF_STACK;
    /* of the call, not of what it returns to */
    void *call = (void *)(_Unwind_GetIP(context) - 1);
    frames->function[frames->count++] = _Unwind_FindEnclosingFunction(call);
    return _URC_NO_REASON;
}

static void unwind(void *context, const char *text) {
    struct frames *frames = context;
    frames->count = 0;
    _Unwind_Backtrace(note_frame, frames);
}

__attribute__((noinline)) static void ask_too_much(ebb_region region) {
    assert_no_block(ebb_region_alloc(region, (size_t)1 << 20, 64), EBB_E_REGION_LIMIT);
}

static void a_handler_finds_who_asked(void **state) {
    struct frames frames = {.count = 0};
    struct stage *stage = *state;
    ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = 4096);
    ebb_report_on_exhausted(unwind, &frames);
    ask_too_much(limited);
    ebb_report_on_exhausted(NULL, NULL);
    unsigned found = 0;
    for (unsigned i = 0; i < frames.count; i++)
        found += frames.function[i] == (void *)(uintptr_t)ask_too_much;
    assert_int_equal(found, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_handler_finds_who_asked, stage_open, stage_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
