// SPDX-License-Identifier: Apache-2.0
/* streams.c - see streams.h. */
#include "streams.h"
#include "fake_cuda.h"

#include <string.h>

enum { STREAMS = 16, HANDLES = 3, MOST = 1024 };

struct stream {
    bool exists; /* somebody has it, or its thread lives */
    struct operation queue[MOST];
    size_t length;
};

static struct stream streams[STREAMS]; /* the first one is the default stream */
static struct stream *handles[HANDLES]; /* their addresses are what stream_begin() gives */
static _Thread_local struct stream *own_stream;

size_t streams_copies;

static void run_until(size_t record);

static void run_first(struct stream *stream) {
    struct operation first = stream->queue[0];
    memmove(stream->queue, stream->queue + 1, --stream->length * sizeof first);
    if (first.action == AWAIT) {
        run_until(first.record);
        return;
    }
    if (first.action == RECORD) {
        if (first.event->recorded == first.record)
            first.event->done = true;
        return;
    }
    streams_copies++;
    char *to = touchable(first.to, first.bytes);
    if (first.action == FILL)
        memset(to, first.value, first.bytes);
    else
        memmove(to, touchable(first.from, first.bytes), first.bytes);
}

void stream_run(struct stream *stream) {
    while (stream->length)
        run_first(stream);
}

void streams_run(void) {
    for (size_t i = 0; i < STREAMS; i++)
        stream_run(&streams[i]);
}

static bool has_record(const struct stream *stream, size_t record) {
    for (size_t i = 0; i < stream->length; i++)
        if (stream->queue[i].action == RECORD && stream->queue[i].record == record)
            return true;
    return false;
}

static void run_until(size_t record) {
    for (size_t i = 0; i < STREAMS; i++)
        while (has_record(&streams[i], record))
            run_first(&streams[i]);
}

bool streams_use(const char *addr, size_t bytes) {
    for (size_t i = 0; i < STREAMS; i++)
        for (size_t k = 0; k < streams[i].length; k++) {
            const struct operation *waiting = &streams[i].queue[k];
            if (waiting->action < RECORD &&
                ((waiting->to < addr + bytes && waiting->to + waiting->bytes > addr) ||
                 (waiting->from < addr + bytes && waiting->from + waiting->bytes > addr)))
                return true;
        }
    return false;
}

/* One that nobody has, and that has nothing to do any more. */
static struct stream *new_stream(void) {
    for (size_t i = 1; i < STREAMS; i++)
        if (!streams[i].exists && !streams[i].length) {
            streams[i].exists = true;
            return &streams[i];
        }
    return NULL;
}

static struct stream *stream_of_thread(void) {
    if (!own_stream)
        own_stream = new_stream();
    return own_stream;
}

struct stream *stream_of(void *handle) {
    if (!handle || handle == FAKE_CUDA_LEGACY)
        return &streams[0];
    if (handle == FAKE_CUDA_PER_THREAD)
        return stream_of_thread();
    size_t at = (size_t)((struct stream **)handle - handles);
    return at < HANDLES ? handles[at] : NULL;
}

void stream_ask(struct stream *stream, const struct operation *operation) {
    if (stream->length == MOST)
        run_first(stream);
    stream->queue[stream->length++] = *operation;
}

void *stream_begin(void) {
    for (size_t i = 0; i < HANDLES; i++)
        if (!handles[i])
            return (handles[i] = new_stream()) ? &handles[i] : NULL;
    return NULL;
}

bool stream_end(void *handle) {
    size_t at = (size_t)((struct stream **)handle - handles);
    if (at >= HANDLES || !handles[at])
        return false;
    handles[at]->exists = false;
    handles[at] = NULL;
    return true;
}

void streams_step(void) {
    for (size_t i = 0; i < STREAMS; i++)
        if (streams[i].length)
            run_first(&streams[i]);
}

size_t streams_waiting(void) {
    size_t waiting = 0;
    for (size_t i = 0; i < STREAMS; i++)
        waiting += streams[i].length;
    return waiting;
}
