// SPDX-License-Identifier: Apache-2.0
//
// trace.h - a whole `ebb-trace 1` file in memory (the format: bench/traces/FORMAT.md).
//
// trace_read() takes a file, plain or gzip, checks all of it and hands out an array of 16-byte
// events that a replayer or a simulator walks from front to back. A trace that is handed out is
// sound: every free and realloc names an object that is alive, the markers of every thread are
// balanced, and every count that the header claims is the one that was counted. Users of a trace
// therefore need no checks of their own.
//
// What is refused, each with its own code, a line number and the numbers that were wrong: see
// enum trace_error_code. There is no partial success: it is a sound trace or NULL.
//
// Memory: at most 80 bytes for each line of text, plus about 1 MiB; what the header claims is
// compared at the end and never used to size anything.
//
// Threads: the functions share nothing; a trace may be read by any number of threads.

#ifndef EBB_BENCH_TRACE_H
#define EBB_BENCH_TRACE_H

#include <stdint.h>

enum {
    TRACE_LINE_MAX = 1023,     // bytes in a line, its newline not counted
    TRACE_WORD_MAX = 63,       // bytes in the name of a trace, a kind or a phase
    TRACE_NAMES_MAX = 256,     // different kinds, and different phases
    TRACE_THREADS_MAX = 4096,  // thread numbers are below this
    TRACE_DEPTH_MAX = 16,      // regions open at once on one thread
    TRACE_ALIGN_MAX = 1 << 21, // bytes
    TRACE_NOTES_MAX = 16383,   // bytes of header lines that are kept
};

#ifndef TRACE_EVENTS_MAX
#define TRACE_EVENTS_MAX (UINT32_C(1) << 26) // 1 GiB of events; a test sets it lower
#endif

enum trace_op {
    TRACE_PREEXISTING, // 'p': born before the first marker
    TRACE_ALLOC,       // 'a'
    TRACE_CALLOC,      // 'c'
    TRACE_ALIGNED,     // 'm'
    TRACE_REALLOC,     // 'r'
    TRACE_FREE,        // 'f'
    TRACE_THREAD,      // 't'
    TRACE_BEGIN,       // 'B'
    TRACE_END,         // 'E'
    TRACE_PHASE,       // 'P'
};

// One line. What the members hold depends on `op`:
//
//     op                         index              value             name     align_log2  origin
//     PREEXISTING ALLOC CALLOC   the new object     its bytes         -        yes         yes
//       ALIGNED
//     REALLOC                    the OLD object     the new bytes     -        0           yes
//     FREE                       the object         its bytes         -        0           -
//     THREAD                     the thread         -                 -        -           -
//     BEGIN                      STEP               ARG, END's if >0  kind     -           -
//     END                        event of its BEGIN the line's ARG    kind     -           -
//     PHASE                      -                  -                 phase    -           -
//
// Objects are numbered 0, 1, 2, ... in the order of their events, so the object that a REALLOC
// makes has the next number. align_log2 is 0 where no alignment was asked for. Events stand in
// the order of the file; events[] has no header lines.
struct trace_event {
    uint64_t value;
    uint32_t index;
    uint8_t op;
    uint8_t align_log2;
    uint8_t name;
    char origin;
};

_Static_assert(sizeof(struct trace_event) == 16, "an event is 16 bytes");

// Counted while reading. `events` and `allocs` are the format's: events = allocs + frees +
// reallocs, and `p` lines and markers are neither. The two max-live need not coincide in time;
// a realloc's old object is dead before its new one is alive.
struct trace_totals {
    uint64_t objects;
    uint64_t preexisting, preexisting_bytes;
    uint64_t events, allocs, frees, reallocs;
    uint64_t max_live, max_live_bytes;
    uint64_t left, left_bytes;
};

enum trace_view { TRACE_VIEW_UNSAID, TRACE_VIEW_FULL, TRACE_VIEW_TENSOR };

struct trace_names {
    uint32_t count;
    char word[TRACE_NAMES_MAX][TRACE_WORD_MAX + 1];
};

struct ebb_trace {
    char name[TRACE_WORD_MAX + 1]; // "" where the header has none
    enum trace_view view;
    uint32_t warmup; // the first `warmup` regions of each kind are warm-up; 0 unless said
    uint64_t untouched, untouched_bytes; // as the header has them: nothing can be counted
    char notes[TRACE_NOTES_MAX + 1];     // header lines that nobody checks, as they stand; what
                                         // does not fit is left out
    uint32_t event_count;
    struct trace_event *events;
    struct trace_totals totals;
    struct trace_names kinds, phases;
};

enum trace_error_code {
    TRACE_OK,
    TRACE_ERROR_OPEN,                 // the file cannot be opened
    TRACE_ERROR_READ,                 // the operating system cannot read it
    TRACE_ERROR_MEMORY,               // out of memory
    TRACE_ERROR_TRUNCATED,            // the gzip stream ends too early
    TRACE_ERROR_CORRUPT,              // the gzip stream is damaged
    TRACE_ERROR_LINE_TOO_LONG,        // more than TRACE_LINE_MAX bytes
    TRACE_ERROR_NUL,                  // a NUL byte inside a line
    TRACE_ERROR_NO_NEWLINE,           // the last line does not end
    TRACE_ERROR_MAGIC,                // the first line is not "#ebb-trace 1"
    TRACE_ERROR_HEADER_LATE,          // '#' after the first line without it
    TRACE_ERROR_HEADER_TWICE,         // the same header line again
    TRACE_ERROR_HEADER_FIELDS,        // a known header line that cannot be understood
    TRACE_ERROR_UNKNOWN_LINE,         // the first byte is no letter of the format
    TRACE_ERROR_FIELDS,               // missing, superfluous or malformed field
    TRACE_ERROR_NUMBER_TOO_LARGE,     // does not fit its type
    TRACE_ERROR_SIZE_TOO_LARGE,       // above PTRDIFF_MAX, alone or all live objects together;
                                      // above 2^64 - 1, all that there ever were
    TRACE_ERROR_ALIGNMENT_NOT_POWER,  // no power of two
    TRACE_ERROR_ALIGNMENT_TOO_LARGE,  // above TRACE_ALIGN_MAX
    TRACE_ERROR_PREEXISTING_LATE,     // 'p' after the first event
    TRACE_ERROR_UNKNOWN_OBJECT,       // BACK is 0 or reaches before object 0
    TRACE_ERROR_DEAD_OBJECT,          // free or realloc of an object that has ended
    TRACE_ERROR_THREAD_TOO_LARGE,     // not below TRACE_THREADS_MAX
    TRACE_ERROR_NESTING_TOO_DEEP,     // more than TRACE_DEPTH_MAX regions on a thread
    TRACE_ERROR_END_WITHOUT_BEGIN,    // no region is open on the thread
    TRACE_ERROR_KIND_MISMATCH,        // the innermost open region is of another kind
    TRACE_ERROR_REGION_LEFT_OPEN,     // the file ends inside a region
    TRACE_ERROR_TOO_MANY_NAMES,       // more than TRACE_NAMES_MAX kinds or phases
    TRACE_ERROR_TOO_MANY_EVENTS,      // more than TRACE_EVENTS_MAX lines
    TRACE_ERROR_COUNT_OBJECTS,        // #objects is not what was counted; so for the rest
    TRACE_ERROR_COUNT_PREEXISTING,
    TRACE_ERROR_COUNT_EVENTS,
    TRACE_ERROR_COUNT_ALLOCS,
    TRACE_ERROR_COUNT_FREES,
    TRACE_ERROR_COUNT_REALLOCS,
    TRACE_ERROR_COUNT_MAX_LIVE,
    TRACE_ERROR_COUNT_LEFT,
    TRACE_ERROR_CODES, // how many there are
};

struct trace_error {
    enum trace_error_code code;
    uint64_t line;  // counted from 1; 0 where the error has no line
    char text[256]; // "line 7: alignment 48 is no power of two"
};

// Reads `path`. Returns the trace, owned by the caller until trace_free(); or NULL with the reason
// in *error, which must not be NULL and is TRACE_OK after a success. O(bytes of text).
struct ebb_trace *trace_read(const char *path, struct trace_error *error);

// Ends a trace. NULL is allowed.
void trace_free(struct ebb_trace *trace);

// "TRACE_ERROR_MAGIC"; "TRACE_ERROR_?" for what is no code. Static storage.
const char *trace_error_name(enum trace_error_code code);

#endif
