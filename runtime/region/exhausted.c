// SPDX-License-Identifier: Apache-2.0
/*
 * exhausted.c - the report of an allocation that is about to fail for want of memory.
 *
 * Written into a buffer on the stack, so that it works when nothing is left: what was asked, the
 * pool and the process first, then as many regions as there is room for, whose number has no bound.
 * Only memory and limits are reported; a caller's mistake has ebb_last_error_text().
 */
#include "region/exhausted.h"
#include "base/error.h"
#include "pool/chunk.h"
#include "region/small.h"

#include <ebb/exhausted.h>
#include <stdarg.h>
#include <stdio.h>

#define NEAREST 4      /* regions that are written whether they have a limit or not */
#define LINE_BYTES 256 /* a region's line at its longest, and the last one */

static pthread_mutex_t handler_lock = PTHREAD_MUTEX_INITIALIZER; /* nothing is locked inside it */
static ebb_exhausted_fn *handler;
static void *handler_context;
static atomic_bool was_set; /* until then nobody takes the lock */

static void before_fork(void) {
    pthread_mutex_lock(&handler_lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&handler_lock);
}

static void watch_forks(void) {
    /* without memory for it, forks do not wait */
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

void exhausted_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
}

ebb_exhausted_fn *ebb_report_on_exhausted(ebb_exhausted_fn *next, void *context) {
    exhausted_prepare();
    pthread_mutex_lock(&handler_lock);
    ebb_exhausted_fn *previous = handler;
    handler = next;
    handler_context = context;
    atomic_store_explicit(&was_set, true, memory_order_relaxed); /* the lock orders the rest */
    pthread_mutex_unlock(&handler_lock);
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

static void add_region(struct page *page, struct region *region) {
    small_fold(region);
    add(page, "  region '%s': used %llu, reserved %llu, waste %zu", region->name,
        (unsigned long long)flow_now(&region->used), (unsigned long long)region->reserved.current,
        count_waste(region));
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
    struct pages_sum process = {0, 0};
    pthread_mutex_lock(&pool->lock); /* other threads may be growing; not while all are summed up */
    add(page, "  pool '%s': reserved %llu (limit %zu), owned %zu, cached %zu, used limit %zu\n",
        pool->name, (unsigned long long)pool->reserved.current, pool->limit_reserved,
        pool->pages.run_bytes - pool->held_bytes, pool->pages.hot_bytes, pool->limit_used);
    pthread_mutex_unlock(&pool->lock);
    pool_each(add_pages, &process);
    add(page, "  process: owned %llu, reserved %llu, addresses %zu of %zu\n",
        (unsigned long long)process.owned, (unsigned long long)process.reserved,
        chunk_bytes(), range.bytes);
}

static void write_page(struct page *page, struct region *region, size_t bytes, size_t align) {
    add(page, "%s: %zu bytes at alignment %zu, %s lane: %s\n", ebb_error_name(ebb_last_error()),
        bytes, align,
        bytes <= EBB_SMALL_MAX_BYTES && align <= EBB_SMALL_MAX_ALIGN ? "small" : "large",
        ebb_last_error_text());
    add_pool(page, region->pool);
    add_regions(page, region);
}

void exhausted_report(struct region *region, size_t bytes, size_t align) {
    struct page page = {.length = 0};
    int code = ebb_last_error();
    if (error_muted || !atomic_load_explicit(&was_set, memory_order_relaxed))
        return; /* whoever tries it has another way */
    pthread_mutex_lock(&handler_lock);
    ebb_exhausted_fn *call = handler;
    void *context = handler_context;
    pthread_mutex_unlock(&handler_lock);
    if (!call || (code != EBB_E_MEMORY && code != EBB_E_NO_SPACE && code != EBB_E_POOL_LIMIT &&
                  code != EBB_E_REGION_LIMIT))
        return;
    write_page(&page, region, bytes, align);
    call(context, page.text);
}
