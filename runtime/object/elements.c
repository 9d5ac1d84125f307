// SPDX-License-Identifier: Apache-2.0
/*
 * elements.c - strided copies, as few and as long as the strides allow.
 *
 * A copy is planned first: dimensions of size 1 go, the others are ordered by the strides of the
 * destination, neighbours that are one dimension on both sides are merged, and if elements lie
 * side by side on both sides they become one longer element. Contiguous tensors end as a single
 * element, which is one memcpy(). What is left is done plane by plane; where source and
 * destination disagree about which dimension is the dense one, in tiles, so that each cache line
 * is touched while it is near.
 *
 * Invariant of a plan: all sizes are at least 2, strides of the destination decrease.
 */
#include "object/copy.h"
#include "base/size.h"

#include <string.h>

/* Strides in bytes. */
struct plan {
    int ndim;
    size_t bytes; /* of an element */
    int64_t shape[EBB_DIMENSIONS_MAX];
    int64_t to[EBB_DIMENSIONS_MAX];
    int64_t from[EBB_DIMENSIONS_MAX];
};

/* Two dimensions of a plan. */
struct plane {
    int64_t rows, columns;
    int64_t to_row, to_column, from_row, from_column;
};

enum { TILE_BYTES = 4096, TILE_LINE = 32, REPEATED_BYTES = 4096 };

void copy_repeated(void *to, const void *from, size_t bytes, size_t count) {
    size_t total = bytes * count, done = bytes, step;
    if (total == 0)
        return;
    memcpy(to, from, bytes);
    for (; done < total; done += step) {
        step = size_smaller(done, total - done);
        if (step > REPEATED_BYTES && bytes <= REPEATED_BYTES)
            step = REPEATED_BYTES - REPEATED_BYTES % bytes;
        memcpy((char *)to + done, to, step);
    }
}

/* ---- planning ---- */

/* Puts a dimension where its destination stride belongs. */
static void insert(struct plan *plan, int64_t size, int64_t to, int64_t from) {
    int at = plan->ndim++;
    for (; at > 0 && plan->to[at - 1] < to; at--) {
        plan->shape[at] = plan->shape[at - 1];
        plan->to[at] = plan->to[at - 1];
        plan->from[at] = plan->from[at - 1];
    }
    plan->shape[at] = size;
    plan->to[at] = to;
    plan->from[at] = from;
}

static void merge(struct plan *plan) {
    int last = 0;
    for (int i = 1; i < plan->ndim; i++) {
        bool one = plan->to[last] == plan->to[i] * plan->shape[i] &&
                   plan->from[last] == plan->from[i] * plan->shape[i];
        int64_t outer = plan->shape[last];
        last += !one;
        plan->shape[last] = one ? outer * plan->shape[i] : plan->shape[i];
        plan->to[last] = plan->to[i];
        plan->from[last] = plan->from[i];
    }
    plan->ndim = plan->ndim ? last + 1 : 0;
}

/* Elements that lie side by side on both sides become one. */
static void lengthen(struct plan *plan) {
    int last = plan->ndim - 1;
    if (last < 0 || plan->to[last] != (int64_t)plan->bytes ||
        plan->from[last] != (int64_t)plan->bytes)
        return;
    plan->bytes *= (size_t)plan->shape[last];
    plan->ndim = last;
}

/* Dimension `from` moves behind those up to `to`. */
static void rotate(struct plan *plan, int from, int to) {
    int64_t size = plan->shape[from], target = plan->to[from], source = plan->from[from];
    for (int i = from; i < to; i++) {
        plan->shape[i] = plan->shape[i + 1];
        plan->to[i] = plan->to[i + 1];
        plan->from[i] = plan->from[i + 1];
    }
    plan->shape[to] = size;
    plan->to[to] = target;
    plan->from[to] = source;
}

/*
 * The dimension that forms planes with the last one comes second to last: the one in which the
 * source is denser than in the last one, if there is one. Returns whether tiles are called for.
 */
static bool pair(struct plan *plan) {
    int last = plan->ndim - 1, best = last;
    for (int i = 0; i < last; i++)
        if (plan->from[i] > 0 && plan->from[i] < plan->from[best])
            best = i;
    if (best == last)
        return false;
    rotate(plan, best, last - 1);
    return true;
}

/* ---- planes ---- */

static inline __attribute__((always_inline)) void
copy_plane_of(char *restrict to, const char *restrict from, struct plane plane, size_t bytes) {
    for (int64_t row = 0; row < plane.rows; row++) {
        for (int64_t i = 0; i < plane.columns; i++)
            memcpy(to + i * plane.to_column, from + i * plane.from_column, bytes);
        to += plane.to_row;
        from += plane.from_row;
    }
}

/* Elements of the usual sizes are moved by an instruction each. */
static void copy_plane(char *to, const char *from, const struct plane *plane, size_t bytes) {
    switch (bytes) {
    case 1:
        copy_plane_of(to, from, *plane, 1);
        return;
    case 2:
        copy_plane_of(to, from, *plane, 2);
        return;
    case 4:
        copy_plane_of(to, from, *plane, 4);
        return;
    case 8:
        copy_plane_of(to, from, *plane, 8);
        return;
    case 16:
        copy_plane_of(to, from, *plane, 16);
        return;
    default:
        copy_plane_of(to, from, *plane, bytes);
    }
}

/*
 * A tile by way of a buffer: its columns are read one by one, each a dense run of the source, then
 * its rows are written, dense in the destination. So no line has to stay in the cache between two
 * visits, which those of strides of a power of two would not.
 */
static void copy_tile(char *to, const char *from, const struct plane *tile, size_t bytes) {
    char buffer[TILE_BYTES];
    int64_t column_bytes = tile->rows * (int64_t)bytes;
    struct plane turned = {tile->rows, tile->columns, tile->to_row, tile->to_column,
                           (int64_t)bytes, column_bytes};
    for (int64_t column = 0; column < tile->columns; column++)
        memcpy(buffer + column * column_bytes, from + column * tile->from_column,
               (size_t)column_bytes);
    copy_plane(to, buffer, &turned, bytes);
}

/* Half of a side that is too long, in lines of the cache. */
static int64_t half_of(int64_t side, size_t bytes) {
    int64_t line = 64 / (int64_t)bytes;
    return side <= 2 * line ? side / 2 : side / 2 / line * line;
}

/*
 * Halves the longer side until a tile is left: parts that are near each other on both sides are
 * done together, whatever the sizes of the caches and of what translates addresses.
 */
static void copy_tiles(char *to, const char *from, const struct plane *plane, size_t bytes) {
    struct plane first = *plane, second = *plane;
    bool is_dense = plane->from_row == (int64_t)bytes;
    if (plane->rows * plane->columns <= (int64_t)(TILE_BYTES / bytes)) {
        if (is_dense && plane->rows * (int64_t)bytes >= TILE_LINE)
            copy_tile(to, from, plane, bytes);
        else
            copy_plane(to, from, plane, bytes);
        return;
    }
    if (plane->rows > plane->columns) {
        first.rows = half_of(plane->rows, bytes);
        second.rows -= first.rows;
        copy_tiles(to, from, &first, bytes);
        copy_tiles(to + first.rows * plane->to_row, from + first.rows * plane->from_row, &second,
                   bytes);
    } else {
        first.columns = half_of(plane->columns, bytes);
        second.columns -= first.columns;
        copy_tiles(to, from, &first, bytes);
        copy_tiles(to + first.columns * plane->to_column,
                   from + first.columns * plane->from_column, &second, bytes);
    }
}

static void repeat_rows(char *to, const char *from, const struct plane *plane, size_t bytes) {
    for (int64_t row = 0; row < plane->rows; row++)
        copy_repeated(to + row * plane->to_row, from + row * plane->from_row, bytes,
                      (size_t)plane->columns);
}

typedef void plane_function(char *to, const char *from, const struct plane *plane, size_t bytes);

static plane_function *choose(const struct plane *plane, bool tiles, size_t bytes) {
    if (plane->from_column == 0 && plane->to_column == (int64_t)bytes)
        return repeat_rows;
    return tiles && bytes <= 16 ? copy_tiles : copy_plane;
}

/* ---- all of it ---- */

static void copy_planes(struct plan *plan, char *to, const char *from) {
    int64_t at[EBB_DIMENSIONS_MAX];
    bool tiles = pair(plan);
    int last = plan->ndim - 1, outer = plan->ndim - 2;
    struct plane plane = {1, plan->shape[last], 0, plan->to[last], 0, plan->from[last]};
    if (outer >= 0) {
        plane.rows = plan->shape[outer];
        plane.to_row = plan->to[outer];
        plane.from_row = plan->from[outer];
    }
    plane_function *copy = choose(&plane, tiles, plan->bytes);
    for (int i = 0; i < outer; i++)
        at[i] = 0;
    for (;;) {
        int i = outer - 1;
        copy(to, from, &plane, plan->bytes);
        for (; i >= 0 && ++at[i] == plan->shape[i]; i--) {
            to -= (at[i] - 1) * plan->to[i];
            from -= (at[i] - 1) * plan->from[i];
            at[i] = 0;
        }
        if (i < 0)
            return;
        to += plan->to[i];
        from += plan->from[i];
    }
}

/* False if there is nothing to copy. */
static bool make_plan(struct plan *plan, const int64_t *to_strides, const int64_t *from_strides,
                      const int64_t *shape, int ndim, size_t element_bytes) {
    int64_t bytes = (int64_t)element_bytes, row_major = bytes;
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0)
            return false;
    plan->ndim = 0;
    plan->bytes = element_bytes;
    for (int i = ndim - 1; i >= 0; i--) {
        if (shape[i] == 1)
            continue;
        insert(plan, shape[i], to_strides ? to_strides[i] * bytes : row_major,
               from_strides ? from_strides[i] * bytes : row_major);
        row_major *= shape[i];
    }
    merge(plan);
    lengthen(plan);
    return true;
}

void copy_elements(void *to, const int64_t *to_strides, const void *from,
                   const int64_t *from_strides, const int64_t *shape, int ndim,
                   size_t element_bytes) {
    struct plan plan;
    if (!make_plan(&plan, to_strides, from_strides, shape, ndim, element_bytes))
        return;
    if (plan.ndim == 0)
        copy_bytes(to, from, plan.bytes);
    else
        copy_planes(&plan, to, from);
}
