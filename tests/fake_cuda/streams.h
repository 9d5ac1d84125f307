// SPDX-License-Identifier: Apache-2.0
/*
 * streams.h - what the streams of the fake driver are asked: one queue each, run from its start
 * when somebody runs it. A stream that is destroyed keeps its queue, and its handle may be the next
 * one's.
 *
 * The lock of fake_cuda.c is held in all of them.
 */
#ifndef FAKE_CUDA_STREAMS_H
#define FAKE_CUDA_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

struct event {
    bool exists, done;
    size_t recorded; /* number of the last record, which is the one that counts */
};

enum action { COPY_IN, COPY_OUT, COPY_ON, FILL, RECORD, AWAIT };

struct operation {
    enum action action;
    char *to, *from; /* as given: addresses of the device or of the host */
    size_t bytes;
    unsigned char value;
    struct event *event;
    size_t record; /* its number, or of that which is awaited */
};

struct stream;

/* Where the fake itself may touch what is at an address. */
char *touchable(char *addr, size_t bytes);

/* NULL: there is none by that handle, or are too many. */
struct stream *stream_of(void *handle);

/* A handle; NULL: there are too many. */
void *stream_begin(void);
bool stream_end(void *handle);

void stream_ask(struct stream *stream, const struct operation *operation);
void stream_run(struct stream *stream);

void streams_run(void);
void streams_step(void); /* one operation of each */

/* Some operation that waits copies from or to there. */
bool streams_use(const char *addr, size_t bytes);

size_t streams_waiting(void); /* operations */
extern size_t streams_copies; /* that were made */

#endif
