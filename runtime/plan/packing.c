// SPDX-License-Identifier: Apache-2.0
/*
 * packing.c - how much is tried until a plan is good enough (see packing.h).
 *
 * A try that passes the best height so far is given up where it does. Orders of the portfolio must
 * be better than that to count, steps of the search at least as good: equally high plans are the
 * ways between better ones. Which of several places a buffer has is decided last, in the best try.
 *
 * Invariant: `offsets` and `height` always belong together, to the best try. Refused, with
 * nothing changed: lives that end before they begin, alignments that are no powers of two, and
 * what needs more than EBB_SIZE_MAX bytes, or than are wanted.
 */
#include "plan/packing.h"

#include "base/error.h"
#include "base/size.h"
#include "plan/keys.h"
#include "plan/live.h"
#include "plan/order.h"
#include "plan/skyline.h"
#include "plan/warm.h"

#include <inttypes.h>

enum { MILLION = 1000000 };

/*
 * Work is counted in looks. To place a buffer takes as long as some 32, with what rises until the
 * next one is. Real steps do 35 to 50 a buffer and order, and need six orders at most: up to
 * 93,750 buffers they have them.
 */
enum { WORK_A_TILE = 32, WORK_EACH = 256, WORK_IN_ALL = 24 * MILLION };

/*
 * The workspace. Ordering and laying are not at work at the same time, nor is warming: `ordered`
 * and `scratch` share their memory with what a try needs.
 *
 *     tiles | offsets | segments | heap    | nodes           | keys | shaken
 *                     | ordered  | scratch | gone
 */
struct workspace {
    struct tile *tiles;
    uint64_t *offsets;
    struct segment *segments;
    struct low *heap;
    struct candidate *nodes;
    uint32_t *keys, *shaken;
};

enum {
    BYTES_EACH = sizeof(struct tile) + sizeof(uint64_t) + sizeof(struct segment) +
                 sizeof(struct low) + 2 * sizeof(struct candidate) + 2 * sizeof(uint32_t),
    BYTES_MORE = 1024, /* for the last segment, and the upper levels of the sweep's set */
};

_Static_assert(sizeof(struct segment) >= sizeof(struct ordered), "they share memory");
_Static_assert(sizeof(struct low) >= sizeof(struct ordered), "they share memory");
_Static_assert(BYTES_EACH >= 3 * sizeof(struct ordered) + 2 * sizeof(uint32_t) + 1,
               "the sweep has enough room");

struct attempts {
    struct skyline skyline;
    struct workspace space;
    const struct packing_buffer *buffers;
    const struct packing_effort *effort;
    uint64_t enough;
    uint64_t until_ns; /* of the effort's clock */
    uint64_t *offsets;
    struct packing_result best;
};

uint64_t packing_work_most(uint32_t count) {
    return size_smaller((uint64_t)WORK_EACH * count, WORK_IN_ALL);
}

bool packing_workspace_bytes(size_t count, size_t *bytes) {
    return count <= PACKING_COUNT_MAX && size_multiply(count, BYTES_EACH, bytes) &&
           size_add(*bytes, BYTES_MORE, bytes);
}

static struct workspace workspace_of(void *memory, uint32_t count) {
    struct workspace space = {.tiles = memory};
    space.offsets = (uint64_t *)(space.tiles + count);
    space.segments = (struct segment *)(space.offsets + count);
    space.heap = (struct low *)(space.segments + count + 1);
    space.nodes = (struct candidate *)(space.heap + count);
    space.keys = (uint32_t *)(space.nodes + (size_t)2 * count);
    space.shaken = space.keys + count;
    return space;
}

/* ---- what is refused */

static int check_effort(const struct packing_effort *effort, uint32_t count) {
    if (effort->keys < 1 || effort->keys > PACKING_ORDERS)
        return error_set(EBB_E_ARGUMENT, "%u orders to try, 1 to %u are possible", effort->keys,
                         PACKING_ORDERS);
    if (effort->slack_ppm > MILLION)
        return error_set(EBB_E_ARGUMENT, "a slack of %" PRIu32 " millionths, at most %d",
                         effort->slack_ppm, MILLION);
    if (effort->search_ns > 0 && !effort->clock_ns)
        return error_set(EBB_E_ARGUMENT, "a search for %" PRIu64 " ns without a clock",
                         effort->search_ns);
    if (count > PACKING_COUNT_MAX)
        return error_set(EBB_E_ARGUMENT, "%" PRIu32 " buffers, at most %" PRIu32 " can be planned",
                         count, PACKING_COUNT_MAX);
    return 0;
}

static int check_buffer(const struct packing_buffer *buffer, uint32_t index) {
    if (buffer->lower >= buffer->upper)
        return error_set(EBB_E_ARGUMENT, "buffer %" PRIu32 " lives from %" PRIu32 " to %" PRIu32,
                         index, buffer->lower, buffer->upper);
    if (!size_is_power_of_two(buffer->align))
        return error_set(EBB_E_ALIGNMENT, "buffer %" PRIu32 " is aligned to %" PRIu32
                         ", which is no power of two", index, buffer->align);
    if (buffer->bytes > EBB_SIZE_MAX)
        return error_set(EBB_E_SIZE, "buffer %" PRIu32 " has %" PRIu64 " bytes, %zu are possible",
                         index, buffer->bytes, EBB_SIZE_MAX);
    return 0;
}

static int check(const struct packing_buffer *buffers, uint32_t count,
                 const struct packing_effort *effort) {
    int error = check_effort(effort, count);
    for (uint32_t i = 0; i < count && !error; i++)
        error = check_buffer(&buffers[i], i);
    return error;
}

/* ---- tiles */

/* The first of the births at `from` or behind that is not before `time`: near ones cost least. */
static uint32_t birth_from(const struct ordered *births, uint32_t from, uint32_t count,
                           uint32_t time) {
    uint32_t step = 1;
    while (step < count - from && births[from + step].key < time) {
        from += step;
        step *= 2;
    }
    for (; step > 0; step /= 2)
        if (step < count - from && births[from + step].key < time)
            from += step;
    return from + 1; /* births[from] is before it: at first the birth of the one that dies then */
}

static void make_tiles(struct attempts *attempts, uint32_t count) {
    const struct packing_buffer *buffers = attempts->buffers;
    struct ordered *births = (struct ordered *)attempts->space.segments;
    for (uint32_t i = 0; i < count; i++)
        births[i] = (struct ordered){buffers[i].lower, i};
    order_sort(births, (struct ordered *)attempts->space.heap, count);
    for (uint32_t i = 0, first = 0; i < count; i++) {
        const struct packing_buffer *buffer = &buffers[births[i].index];
        if (births[i].key != births[first].key)
            first = i;
        attempts->space.tiles[i] = (struct tile){
            .bytes = buffer->bytes, .align = buffer->align, .index = births[i].index,
            .first = first, .end = birth_from(births, i, count, buffer->upper)};
    }
}

/* False if more than EBB_SIZE_MAX bytes are alive at once. */
static bool find_max_live(struct attempts *attempts, uint32_t count) {
    uint64_t *live = attempts->space.offsets;
    if (!live_fill(live, attempts->space.tiles, count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (live[i] > attempts->best.max_live) {
            attempts->best.max_live = live[i];
            attempts->skyline.peak = i;
        }
    return true;
}

static void set_up(struct attempts *attempts, uint32_t count) {
    const struct workspace *space = &attempts->space;
    attempts->skyline = (struct skyline){
        .count = count, .peak = attempts->skyline.peak, .tiles = space->tiles,
        .offsets = space->offsets, .candidates = {.nodes = space->nodes, .count = count},
        .contour = {.segments = space->segments, .heap = space->heap, .width = count}};
    uint64_t max_live = attempts->best.max_live, ppm = attempts->effort->slack_ppm;
    uint64_t slack = max_live / MILLION * ppm + max_live % MILLION * ppm / MILLION;
    attempts->enough = size_larger(attempts->effort->target, max_live + slack);
    attempts->best.height = UINT64_MAX;
    if (attempts->effort->search_ns > 0) {
        attempts->skyline.candidates.timed = attempts->effort->orders_too;
        attempts->skyline.clock_ns = attempts->effort->clock_ns;
        attempts->skyline.until_ns = UINT64_MAX;
    }
}

/* ---- tries */

/* One try; kept, and true, if it gets no higher than `limit`. */
static bool attempt(struct attempts *attempts, const uint32_t *keys, uint64_t limit) {
    struct skyline *skyline = &attempts->skyline;
    uint64_t height;
    attempts->best.tries++;
    bool laid = skyline_lay(skyline, keys, limit, &height);
    attempts->best.work +=
        (uint64_t)WORK_A_TILE * skyline->candidates.removed + skyline->candidates.looked;
    if (!laid)
        return false;
    for (uint32_t i = 0; i < skyline->count; i++)
        attempts->offsets[skyline->tiles[i].index] = skyline->offsets[i];
    attempts->best.height = height;
    return true;
}

static bool is_enough(const struct attempts *attempts) {
    return attempts->best.height <= attempts->enough;
}

static bool is_over(const struct attempts *attempts) {
    const struct packing_effort *effort = attempts->effort;
    return effort->search_ns > 0 && effort->clock_ns() >= attempts->until_ns;
}

/* Of the work that all plans have together. While none of the orders has been low enough, half of
 * it is for the plan that will be tried instead. */
static uint64_t work_left(const struct attempts *attempts) {
    const struct packing_effort *effort = attempts->effort;
    uint64_t most = packing_work_most(attempts->skyline.count);
    uint64_t left = most - size_smaller(most, effort->worked ? *effort->worked : 0);
    return effort->worked && attempts->best.height == UINT64_MAX ? left / 2 : left;
}

/* May another order be begun? It is taken to cost as much as those before it. */
static bool may_begin(const struct attempts *attempts, unsigned order) {
    if (order == 0)
        return true;
    if (is_over(attempts))
        return false;
    uint64_t work = attempts->best.work;
    return attempts->skyline.candidates.timed || work + work / order <= work_left(attempts);
}

/* A search goes on from any height: what is wanted it may find later. */
static uint64_t highest_wanted(const struct packing_effort *effort) {
    bool any = effort->height_most == 0 || effort->search_ns > 0;
    return any ? EBB_SIZE_MAX : size_smaller(effort->height_most, EBB_SIZE_MAX);
}

/* The order that did best; its keys are not kept. The first is tried whatever it takes. */
static unsigned try_portfolio(struct attempts *attempts) {
    uint32_t *keys = attempts->space.keys;
    unsigned best = 0;
    for (unsigned order = 0; order < attempts->effort->keys && !is_enough(attempts); order++) {
        if (!may_begin(attempts, order))
            break;
        keys_fill(keys, &attempts->skyline, order);
        uint64_t height = attempts->best.height;
        uint64_t limit = height == UINT64_MAX ? highest_wanted(attempts->effort) : height - 1;
        if (attempt(attempts, keys, limit))
            best = order;
        attempts->skyline.until_ns = attempts->until_ns;
    }
    if (attempts->effort->worked)
        *attempts->effort->worked += attempts->best.work;
    return best;
}

/* By the clock, when what begins now ends. */
static uint64_t end_of_time(const struct packing_effort *effort) {
    uint64_t until_ns;
    bool over = __builtin_add_overflow(effort->clock_ns(), effort->search_ns, &until_ns);
    return over ? UINT64_MAX : until_ns;
}

static void search(struct attempts *attempts, unsigned order) {
    uint32_t *keys = attempts->space.keys, *shaken = attempts->space.shaken, random = 1;
    keys_fill(keys, &attempts->skyline, order);
    if (!attempts->effort->orders_too)
        attempts->until_ns = end_of_time(attempts->effort);
    attempts->skyline.candidates.timed = true;
    attempts->skyline.until_ns = attempts->until_ns;
    while (!is_enough(attempts) && !is_over(attempts)) {
        keys_shake(shaken, keys, &attempts->skyline, attempts->offsets, attempts->enough, &random);
        if (attempt(attempts, shaken, attempts->best.height)) {
            uint32_t *left = keys;
            keys = shaken;
            shaken = left;
        }
    }
}

/* Which of several places a buffer has; that may lower the height, too. */
static void warm_up(struct attempts *attempts, uint32_t count) {
    const struct tile *tiles = attempts->space.tiles;
    warm_places(tiles, count, attempts->offsets, (struct ordered *)attempts->space.segments,
                (struct ordered *)attempts->space.heap);
    attempts->best.height = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = attempts->offsets[tiles[i].index] + tiles[i].bytes;
        attempts->best.height = size_larger(attempts->best.height, end);
    }
}

static int report_no_result(const struct attempts *attempts) {
    if (attempts->effort->search_ns > 0 && attempts->effort->clock_ns() == UINT64_MAX)
        return error_set(EBB_E_ARGUMENT, "the clock says that no time is left for %" PRIu32
                         " buffers", attempts->skyline.count);
    return error_set(EBB_E_SIZE, "%" PRIu64 " bytes alive at once do not fit in %" PRIu64
                     ", in %u tries", attempts->best.max_live, highest_wanted(attempts->effort),
                     attempts->best.tries);
}

int packing_solve(const struct packing_buffer *buffers, uint32_t count,
                  const struct packing_effort *effort, void *workspace, uint64_t *offsets,
                  struct packing_result *result) {
    int error = check(buffers, count, effort);
    if (error)
        return error;
    if (count == 0) {
        *result = (struct packing_result){0};
        return 0;
    }
    struct attempts attempts = {.buffers = buffers, .effort = effort, .offsets = offsets,
                                .space = workspace_of(workspace, count),
                                .until_ns = UINT64_MAX};
    if (effort->search_ns > 0 && effort->orders_too)
        attempts.until_ns = end_of_time(effort);
    make_tiles(&attempts, count);
    if (!find_max_live(&attempts, count))
        return error_set(EBB_E_SIZE, "more than %zu bytes are alive at once", EBB_SIZE_MAX);
    if (effort->height_most && attempts.best.max_live > effort->height_most)
        return error_set(EBB_E_SIZE, "%" PRIu64 " bytes are alive at once, %" PRIu64
                         " are the most that is wanted", attempts.best.max_live,
                         effort->height_most);
    set_up(&attempts, count);
    unsigned order = try_portfolio(&attempts);
    if (attempts.best.height == UINT64_MAX)
        return report_no_result(&attempts);
    if (effort->search_ns > 0)
        search(&attempts, order);
    warm_up(&attempts, count);
    *result = attempts.best;
    return 0;
}
