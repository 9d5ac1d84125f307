// SPDX-License-Identifier: Apache-2.0
/*
 * exhausted.c - the report of an allocation that is about to fail for want of memory.
 *
 * Written into a buffer on the stack, so that it works when nothing is left: what was asked, the
 * pool and the process first, then as many regions as there is room for, whose number has no bound.
 * Only memory and limits are reported; a caller's mistake has ebb_last_error_text().
 *
 * Invariant: `calls` are those of handlers that are at work. Who sets another handler waits for the
 * calls of those before, but not inside of such a call, which would wait for itself. Nor for those
 * of a process that this one was forked from: nobody ends them here.
 */
#include "region/exhausted.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/name.h"
#include "base/os.h"
#include "pool/chunk.h"
#include "pool/cuda.h"
#include "pool/fork.h"
#include "region/count.h"
#include "region/small.h"

#include <ebb/exhausted.h>
#include <stdarg.h>
#include <stdio.h>

#define SECOND_NS UINT64_C(1000000000)
#define NEAREST 4      /* regions that are written whether they have a limit or not */
#define LINE_BYTES 256 /* a region's line at its longest, and the last one */

struct call {
    uint64_t set;       /* number of the handler */
    unsigned forks;     /* when it began: another number by now: it is a parent's */
    struct call *next;  /* of all */
    struct call *outer; /* of the same thread: it is in the handler of that */
};

static pthread_mutex_t handler_lock = PTHREAD_MUTEX_INITIALIZER; /* nothing is locked inside it */
static ebb_exhausted_fn *handler;
static void *handler_context;
static uint64_t handler_set; /* how many were set so far */
static struct call *calls;
static _Thread_local struct call *innermost; /* of this thread */
static _Thread_local unsigned forking; /* see pool/fork.h */
static atomic_uint ended;    /* calls, ever: what is waited for */
static atomic_bool was_set; /* until then nobody takes the lock */

static void before_fork(void) {
    if (fork_is_first(&forking))
        pthread_mutex_lock(&handler_lock);
}

static void after_fork(void) {
    if (fork_is_last(&forking))
        pthread_mutex_unlock(&handler_lock);
}

/* The calls of others lie on stacks that will serve new threads. */
static void after_fork_in_child(void) {
    calls = NULL;
    for (struct call *own = innermost; own; own = own->outer) {
        own->forks = fork_count();
        own->next = calls;
        calls = own;
    }
    after_fork();
}

static void watch_forks(void) {
    fork_prepare(); /* a child is counted before its calls are */
    /* without memory for it, forks do not wait */
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void exhausted_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
}

/* The handler as it is now, at work until end_call(); NULL: none, and nothing begins. */
static ebb_exhausted_fn *begin_call(struct call *call, void **context) {
    pthread_mutex_lock(&handler_lock);
    ebb_exhausted_fn *found = handler;
    *context = handler_context;
    if (found) {
        *call = (struct call){handler_set, fork_count(), .next = calls, .outer = innermost};
        calls = innermost = call;
    }
    pthread_mutex_unlock(&handler_lock);
    return found;
}

static void end_call(struct call *call) {
    struct call **link = &calls;
    pthread_mutex_lock(&handler_lock);
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    innermost = call->outer;
    /* relaxed: the lock orders it, and the system reads it anew */
    atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed);
    pthread_mutex_unlock(&handler_lock);
    os.wake(&ended);
}

/* True while a call of that handler, or of one before, is at work in this process. */
static bool is_at_work(uint64_t set) {
    const struct call *call = calls;
    while (call && (call->set > set || call->forks != fork_count()))
        call = call->next;
    return call != NULL;
}

/* Waits until no call of the handler with this number, or of one before, is at work. Does not wait
 * inside of a handler. */
static void await_calls(uint64_t set) {
    for (bool waits = !innermost; waits;) {
        pthread_mutex_lock(&handler_lock);
        unsigned seen = atomic_load_explicit(&ended, memory_order_relaxed); /* the lock, as above */
        waits = is_at_work(set);
        pthread_mutex_unlock(&handler_lock);
        if (waits)
            (void)os.wait(&ended, seen, SECOND_NS);
    }
}

ebb_exhausted_fn *ebb_report_on_exhausted(ebb_exhausted_fn *next, void *context) {
    exhausted_prepare();
    fork_prepare_raw();
    pthread_mutex_lock(&handler_lock);
    ebb_exhausted_fn *previous = handler;
    uint64_t set = handler_set++;
    handler = next;
    handler_context = context;
    atomic_store_explicit(&was_set, true, memory_order_relaxed); /* the lock orders the rest */
    pthread_mutex_unlock(&handler_lock);
    await_calls(set);
    return previous;
}

struct page {
    char text[2048];
    size_t length;
};

static void __attribute__((format(printf, 2, 3))) add(struct page *page, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(page->text + page->length, sizeof page->text - page->length, format,
                           arguments);
    va_end(arguments);
    if (length > 0)
        page->length = size_smaller(page->length + (size_t)length, sizeof page->text - 1);
}

/* Whose line it is. A name cannot end the line, nor act on what shows it. */
static void add_name(struct page *page, const char *what, const char *name) {
    char plain[REGION_NAME_BYTES];
    name_copy(plain, sizeof plain, name);
    name_make_plain(plain);
    add(page, "  %s '%s': ", what, plain);
}

static void add_region(struct page *page, struct region *region) {
    small_fold(region);
    add_name(page, "region", region->name);
    add(page, "used %llu, reserved %llu, waste %zu", (unsigned long long)flow_now(&region->used),
        (unsigned long long)region->reserved.current, count_waste(region));
    if (region->limit_bytes)
        add(page, ", limit %zu with %zu charged", region->limit_bytes, region->charged);
    add(page, "\n");
}

/* From the region up: the nearest, and those with a limit, as far as there is room. */
static void add_regions(struct page *page, struct region *region) {
    size_t written = 0, more = 0;
    for (; region; region = region->parent) {
        bool wanted = written < NEAREST || region->limit_bytes;
        if (wanted && page->length <= sizeof page->text - 2 * LINE_BYTES) {
            add_region(page, region);
            written++;
        } else {
            more++;
        }
    }
    if (more)
        add(page, "  ... %zu more on the way up\n", more);
}

struct pages_sum {
    uint64_t reserved, owned;
};

/* Pages only: they are exact whatever other threads are doing. */
static void add_pages(void *context, struct ebb_pool *pool) {
    struct pages_sum *sum = context;
    pthread_mutex_lock(&pool->lock);
    sum->reserved += pool->reserved.current;
    sum->owned += pool->pages.run_bytes - pool->held_bytes;
    pthread_mutex_unlock(&pool->lock);
}

static void add_pool(struct page *page, struct ebb_pool *pool) {
    pthread_mutex_lock(&pool->lock); /* other threads may be growing */
    add_name(page, "pool", pool->name);
    add(page, "reserved %llu (limit %zu), owned %zu, cached %zu, used limit %zu\n",
        (unsigned long long)pool->reserved.current, pool->limit_reserved,
        pool->pages.run_bytes - pool->held_bytes, pool->pages.hot_bytes, pool->limit_used);
    pthread_mutex_unlock(&pool->lock);
}

static void add_process(struct page *page) {
    struct pages_sum process = {0, 0};
    pool_each(add_pages, &process);
    add(page, "  process: owned %llu, reserved %llu, addresses %zu of %zu\n",
        (unsigned long long)process.owned, (unsigned long long)process.reserved,
        chunk_bytes(), range.bytes);
}

/* Of a safe, which the program does not know, and of the region whose safe it is. */
static void write_page(struct page *page, struct region *region, size_t bytes, size_t align) {
    struct region *shown = region->safe_of ? region->safe_of : region;
    add(page, "%s: %zu bytes at alignment %zu, %s lane: %s\n", ebb_error_name(ebb_last_error()),
        bytes, align,
        small_suits(bytes, align) ? "small" : "large",
        ebb_last_error_text());
    add_pool(page, shown->pool);
    if (shown != region)
        add_pool(page, region->pool);
    add_process(page);
    if (shown != region)
        add_region(page, region);
    add_regions(page, shown);
}

/* True: memory or a limit, where placing a block has failed. EBB_E_DEVICE is there what a driver
 * said that gave no memory, or did not register any; or, in a fork, that nobody asked it. */
static bool is_want(int code) {
    return code == EBB_E_MEMORY || code == EBB_E_NO_SPACE || code == EBB_E_POOL_LIMIT ||
           code == EBB_E_REGION_LIMIT || (code == EBB_E_DEVICE && !cuda_is_inherited());
}

void exhausted_report(struct region *region, size_t bytes, size_t align) {
    struct page page = {.length = 0};
    struct call call;
    void *context;
    int code = ebb_last_error();
    if (error_muted || !atomic_load_explicit(&was_set, memory_order_relaxed))
        return; /* whoever tries it has another way */
    if (!is_want(code))
        return;
    ebb_exhausted_fn *found = begin_call(&call, &context);
    if (!found)
        return;
    write_page(&page, region, bytes, align);
    int cancels = cancel_defer();
    found(context, page.text);
    error_put_latest(code);
    end_call(&call);
    cancel_restore(cancels);
}
