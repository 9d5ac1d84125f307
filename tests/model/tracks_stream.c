// SPDX-License-Identifier: Apache-2.0
/* tracks_stream.c - random steps, and mistakes in them. */
#include "model/tracks.h"

uint64_t dice_roll(struct dice *dice) {
    uint64_t z = dice->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t dice_below(struct dice *dice, uint32_t n) {
    return (uint32_t)(dice_roll(dice) % n);
}

bool dice_chance(struct dice *dice, uint32_t one_in) {
    return dice_below(dice, one_in) == 0;
}

static uint32_t any_size(struct dice *dice) {
    static const uint32_t edges[] = {0, 1, 15, 16, 17, 1023, 1024, 1025, 4095, 4096, 4097};
    switch (dice_below(dice, 16)) {
    case 0:
        return edges[dice_below(dice, sizeof edges / sizeof *edges)];
    case 1:
        return dice_below(dice, 20000);
    case 2:
    case 3:
        return dice_below(dice, 3000);
    default:
        return dice_below(dice, 300);
    }
}

/* Of one stream. */
struct shape {
    uint32_t length, most; /* events; alive at once */
    uint32_t times;        /* as large as others' blocks */
    uint32_t keys;         /* that take turns; 0: none */
    uint32_t keyless;      /* one in so many has no key */
};

static void add_alloc(struct dice *dice, struct stream *stream, const struct shape *shape) {
    struct event *event = &stream->events[stream->count++];
    uint32_t align = dice_chance(dice, 8) ? (uint32_t)1 << dice_below(dice, 13) : 16;
    bool keyed = shape->keys && !dice_chance(dice, shape->keyless);
    uint32_t key = keyed ? 1 + stream->blocks % shape->keys : 0;
    *event = (struct event){true, stream->blocks++, any_size(dice) * shape->times, align, key};
}

static void add_release(struct stream *stream, uint32_t number) {
    stream->events[stream->count++] = (struct event){.number = number};
}

/* Some have one key for each block, and lead far ahead. */
static struct shape shape_make(struct dice *dice) {
    static const uint32_t keys[] = {0, 0, 12, STREAM_MOST};
    struct shape shape = {.most = 1 + dice_below(dice, 60), .times = 1};
    shape.keys = keys[dice_below(dice, sizeof keys / sizeof *keys)];
    shape.length = 20 + dice_below(dice, dice_chance(dice, 4) ? 1500 : 200);
    shape.keyless = dice_chance(dice, 2) ? UINT32_MAX : 2 + dice_below(dice, 6);
    return shape;
}

/* No keys, many slots, and little in tables beside them. */
static struct shape shape_of_tables(struct dice *dice) {
    return (struct shape){.length = 80 + dice_below(dice, 200), .most = 10 + dice_below(dice, 50),
                          .times = 40};
}

void stream_make(struct dice *dice, struct stream *stream, bool suits_tables) {
    uint32_t alive[STREAM_MOST], count = 0, order = dice_below(dice, 3);
    const struct shape shape = suits_tables ? shape_of_tables(dice) : shape_make(dice);
    stream->count = stream->blocks = 0;
    while (stream->count < shape.length) {
        if (count < shape.most && (!count || dice_chance(dice, 2))) {
            alive[count++] = stream->blocks;
            add_alloc(dice, stream, &shape);
            continue;
        }
        uint32_t at = order == 0 ? count - 1 : order == 1 ? 0 : dice_below(dice, count);
        add_release(stream, alive[at]);
        for (count--; at < count; at++)
            alive[at] = alive[at + 1];
    }
    while (count && dice_chance(dice, 2))
        add_release(stream, alive[--count]);
}

/* An event that was put off comes after so many others. */
struct late {
    struct event event;
    uint32_t after;
};

static void change_alloc(struct dice *dice, struct event *event, struct stream *to) {
    switch (dice_below(dice, 5)) {
    case 0:
        event->bytes += 1 + (dice_chance(dice, 16) ? any_size(dice) : dice_below(dice, 64));
        break;
    case 1:
        event->bytes /= 2;
        break;
    case 2:
        event->align = (uint32_t)1 << dice_below(dice, 14);
        break;
    case 3: /* missing: its releases are ignored, since the block never came */
        event->alloc = false;
        event->number = UINT32_MAX;
        break;
    default: /* an extra one, without a release */
        to->events[to->count++] =
            (struct event){true, STREAM_MOST + to->count, any_size(dice), 16, event->key};
    }
}

/* A step of keys leaves out what comes next, however much that is, or begins anew. */
static uint32_t elsewhere(struct dice *dice, uint32_t at, uint32_t end) {
    if (dice_chance(dice, 4))
        return dice_below(dice, at + 1);
    return at + dice_below(dice, (end - at) / (1 + dice_below(dice, 8)) + 1);
}

void stream_mutate(struct dice *dice, const struct stream *from, struct stream *to,
                   uint32_t wild) {
    struct late late = {.after = 0};
    uint32_t end = dice_chance(dice, 8) ? dice_below(dice, from->count) : from->count;
    to->count = 0;
    to->blocks = from->blocks;
    for (uint32_t i = 0; i < end && to->count + 4 < STREAM_MOST; i++) {
        struct event event = from->events[i];
        bool wrong = dice_below(dice, 16) < wild && dice_chance(dice, 3);
        if (wrong && event.key && dice_chance(dice, 3)) {
            i = elsewhere(dice, i, end);
            continue;
        }
        if (wrong && event.alloc) {
            change_alloc(dice, &event, to);
        } else if (wrong && dice_chance(dice, 2)) {
            if (!late.after && dice_chance(dice, 2))
                late = (struct late){event, 1 + dice_below(dice, 40)};
            continue; /* late, or lost */
        } else if (wrong && i + 1 < end && !from->events[i + 1].alloc) {
            to->events[to->count++] = from->events[++i]; /* the next one comes first */
        } else if (wrong && event.number > 1) {
            to->events[to->count++] = (struct event){.number = dice_below(dice, event.number)};
        }
        if (event.number != UINT32_MAX)
            to->events[to->count++] = event;
        if (late.after && --late.after == 0)
            to->events[to->count++] = late.event;
    }
}
