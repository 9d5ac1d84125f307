// SPDX-License-Identifier: Apache-2.0
/*
 * loop.h - the inner loop of a replay, to be compiled once for each heap.
 *
 * A heap's file defines its operations as static inline functions, puts them into one static
 * const struct heap_ops, and instantiates loop_pass() with it for each mode. Compilers fold the
 * constant table away: what remains is one switch over the events with direct calls.
 *
 * Touching: a block is written in full when it is born (memset with a value of its own, which comes
 * again after LOOP_FILLS slots), and one byte of every cache line and the last one are read when it
 * ends. The sum of what was read must be the sum of what was written: a heap that gave the same
 * bytes to two objects is found out here.
 */
#ifndef EBB_BENCH_LOOP_H
#define EBB_BENCH_LOOP_H

#include <stddef.h>
#include <string.h>

#include "account.h"
#include "fault.h"
#include "heap.h"

#define LOOP_INLINE static inline __attribute__((always_inline))

enum { LOOP_CACHE_LINE = 64, LOOP_FILLS = 128 }; /* not 0, which zeroed blocks have */

/* `region` and `owner` are numbers of the script, `align` is in bytes. NULL: no memory. */
struct heap_ops {
    void *(*alloc)(uint16_t region, size_t bytes, size_t align);
    void *(*zeroed)(uint16_t region, size_t bytes, size_t align);
    void *(*resize)(uint16_t region, void *block, size_t bytes);
    void *(*move)(uint16_t owner, uint16_t region, void *block, size_t old, size_t bytes);
    void (*release)(uint16_t owner, void *block);
    bool (*open)(uint16_t region, uint16_t parent, uint32_t kind);
    bool (*close)(uint16_t region, uint16_t parent, struct slot *slots,
                  const struct script_survivor *survivors, uint32_t count);
};

LOOP_INLINE void loop_write(struct slot *slot, uint64_t from) {
    if (slot->bytes > from)
        memset((char *)slot->block + from, slot->fill, slot->bytes - from);
}

LOOP_INLINE void loop_read(struct replay *replay, const struct slot *slot) {
    const unsigned char *block = slot->block;
    if (slot->bytes == 0)
        return;
    uint64_t sum = block[slot->bytes - 1], count = 1;
    for (uint64_t at = 0; at < slot->bytes; at += LOOP_CACHE_LINE, count++)
        sum += block[at];
    replay->read_sum += sum;
    if (__builtin_expect(sum != count * slot->fill, 0))
        fault_damaged(replay, slot);
}

LOOP_INLINE void loop_birth(struct replay *replay, const struct heap_ops *ops,
                            const struct script_event *event, enum replay_mode mode) {
    struct slot *slot = &replay->slots[event->slot];
    size_t align = (size_t)1 << event->align_log2;
    bool zeroed = event->op == SCRIPT_CALLOC;
    void *block = zeroed ? ops->zeroed(event->region, event->bytes, align)
                         : ops->alloc(event->region, event->bytes, align);
    if (__builtin_expect(block == NULL, 0))
        fault_no_memory(replay, event);
    slot->block = block;
    slot->bytes = event->bytes;
    slot->fill = zeroed ? 0 : (event->slot % LOOP_FILLS + 1) & 0xff;
    if (mode == REPLAY_TOUCH) {
        if (zeroed)
            loop_read(replay, slot);
        else
            loop_write(slot, 0);
    }
    if (mode == REPLAY_ACCOUNT)
        account_birth(replay->account, event->slot, event->region, slot);
}

LOOP_INLINE void loop_resize(struct replay *replay, const struct heap_ops *ops,
                             const struct script_event *event, enum replay_mode mode) {
    struct slot *slot = &replay->slots[event->slot];
    uint64_t old = slot->bytes;
    if (mode == REPLAY_ACCOUNT)
        account_death(replay->account, event->slot, slot);
    void *block = event->op == SCRIPT_REALLOC
                      ? ops->resize(event->region, slot->block, event->bytes)
                      : ops->move(event->owner, event->region, slot->block, old, event->bytes);
    if (__builtin_expect(block == NULL, 0))
        fault_no_memory(replay, event);
    slot->block = block;
    slot->bytes = event->bytes;
    if (mode == REPLAY_TOUCH)
        loop_write(slot, old);
    if (mode == REPLAY_ACCOUNT)
        account_birth(replay->account, event->slot, event->region, slot);
}

LOOP_INLINE void loop_death(struct replay *replay, const struct heap_ops *ops, uint32_t number,
                            uint16_t owner, enum replay_mode mode) {
    struct slot *slot = &replay->slots[number];
    if (mode == REPLAY_TOUCH)
        loop_read(replay, slot);
    if (mode == REPLAY_ACCOUNT)
        account_death(replay->account, number, slot);
    ops->release(owner, slot->block);
    slot->block = NULL;
}

LOOP_INLINE void loop_open(struct replay *replay, const struct heap_ops *ops,
                           const struct script_event *event, enum replay_mode mode) {
    if (event->slot)
        replay->on_begin(replay, event->slot - 1);
    if (__builtin_expect(!ops->open(event->region, event->owner, (uint32_t)event->bytes), 0))
        fault_no_memory(replay, event);
    if (mode == REPLAY_ACCOUNT)
        account_open(replay->account, event->region, event->owner, event->slot, replay->pass);
}

LOOP_INLINE void loop_close(struct replay *replay, const struct heap_ops *ops,
                            const struct script_event *event, enum replay_mode mode) {
    const struct script_closing *closing = &script_closings(replay->script)[event->slot];
    const struct script_survivor *list = &script_survivors(replay->script)[closing->first];
    if (mode == REPLAY_ACCOUNT)
        account_close(replay->account, event->region, closing->step);
    if (__builtin_expect(
            !ops->close(event->region, event->owner, replay->slots, list, closing->count), 0))
        fault_no_memory(replay, event);
    if (mode == REPLAY_ACCOUNT && !closing->step)
        account_moved(replay->account, replay->slots, list, closing->count);
    if (closing->step)
        replay->on_end(replay, closing->step - 1);
}

/* What is alive after the last event of a pass; all of it belongs to the root. */
LOOP_INLINE void loop_release_rest(struct replay *replay, const struct heap_ops *ops,
                                   enum replay_mode mode) {
    for (uint32_t i = 0; i < replay->script->slot_count; i++)
        if (replay->slots[i].block)
            loop_death(replay, ops, i, 0, mode);
}

LOOP_INLINE void loop_pass(struct replay *replay, const struct heap_ops *ops,
                           enum replay_mode mode) {
    const struct script_event *event = script_events(replay->script);
    const struct script_event *end = event + replay->until;
    for (; event < end; event++) {
        switch ((enum script_op)event->op) {
        case SCRIPT_ALLOC:
        case SCRIPT_CALLOC: loop_birth(replay, ops, event, mode); break;
        case SCRIPT_REALLOC:
        case SCRIPT_MOVE: loop_resize(replay, ops, event, mode); break;
        case SCRIPT_FREE: loop_death(replay, ops, event->slot, event->owner, mode); break;
        case SCRIPT_OPEN: loop_open(replay, ops, event, mode); break;
        case SCRIPT_CLOSE: loop_close(replay, ops, event, mode); break;
        }
    }
    loop_release_rest(replay, ops, mode);
}

#endif
