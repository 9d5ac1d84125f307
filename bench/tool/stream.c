// SPDX-License-Identifier: Apache-2.0
/*
 * stream.c - from records to blocks and regions.
 *
 * One pass in the order of the sequence numbers. Invariant: `map` has exactly the blocks that are
 * alive, but for those that a realloc() holds between its two records; each lane's open regions are
 * a stack. A record that a killed process did not get to write leaves a gap: an address that is
 * born again without having ended has lost its free, which is put in.
 *
 * Steps may end in any order, and on any thread; a trace knows nested regions only. So what is
 * open inside of a region that ends, ends with it; its own end, later, is passed over. Plain
 * regions have no identity, and an end without one belongs to the last plain region that has had
 * none, which may have ended with one around it, or lie too deep to be kept. A region that a call
 * began and no later call ended is taken back: what comes after the last step is none.
 */
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#include "block_map.h"
#include "complain.h"
#include "trace.h"

#define SIZE_MOST (UINT64_C(1) << 47) /* there are no more addresses */

enum { RECORD_MOVES_MAX = 4 }; /* by which a record makes moves and open regions more, together */

/* A move is a line, and another one where the thread changes. */
_Static_assert(2 * (uint64_t)STREAM_MOVES_MAX <= TRACE_EVENTS_MAX, "a trace takes all moves");

struct open_region {
    uint64_t identity; /* 0: it has none */
    uint32_t kind;
    bool call;        /* a call began it: only the next call ends it, or a region around it */
    uint32_t awaited; /* that of its lane, before it began */
    size_t begin;     /* its move */
};

struct lane_state {
    struct open_region open[STREAM_DEPTH_MAX];
    uint32_t depth;
    uint32_t awaited; /* ends of plain regions that began in the innermost one and are not open */
    int64_t moving;   /* block between the records of a realloc(), or STREAM_NO_BLOCK */
};

struct decoder {
    struct stream *stream;
    const struct spool_file *spool;
    struct block_map map;
    struct lane_state *lane;
    const uint32_t *ticks;
    size_t tick_count, tick;
    size_t open_count; /* regions of all lanes */
    uint32_t lanes;    /* the first ones, which have had regions */
    bool no_memory;
};

/* ---- what comes out */

static void *room_for(void *array, size_t count, size_t *room, size_t bytes) {
    size_t wanted = *room ? 2 * *room : 1024;
    if (count < *room)
        return array;
    void *grown = realloc(array, wanted * bytes);
    if (grown)
        *room = wanted;
    return grown;
}

static void add_move(struct decoder *decoder, struct move move) {
    struct stream *stream = decoder->stream;
    void *grown = room_for(stream->move, stream->move_count, &stream->move_room, sizeof move);
    decoder->no_memory |= !grown;
    if (!grown)
        return;
    stream->move = grown;
    stream->move[stream->move_count++] = move;
}

static void add_block(struct decoder *decoder, uint16_t lane, struct block block) {
    struct stream *stream = decoder->stream;
    void *grown = room_for(stream->block, stream->block_count, &stream->block_room, sizeof block);
    decoder->no_memory |= !grown;
    if (!grown)
        return;
    stream->block = grown;
    add_move(decoder, (struct move){(uint32_t)stream->block_count, lane, MOVE_BIRTH, 0});
    stream->block[stream->block_count++] = block;
}

/* ---- regions */

/* Its place. */
static uint32_t add_argument(struct decoder *decoder, uint64_t argument) {
    struct stream *stream = decoder->stream;
    void *grown = room_for(stream->argument, stream->argument_count, &stream->argument_room,
                           sizeof argument);
    decoder->no_memory |= !grown;
    if (!grown)
        return 0;
    stream->argument = grown;
    stream->argument[stream->argument_count] = argument;
    return (uint32_t)stream->argument_count++;
}

/* Begun without an identity; so is its end. */
static bool is_plain(const struct open_region *region) {
    return region->identity == 0 && !region->call;
}

static void begin(struct decoder *decoder, uint16_t lane, struct open_region region,
                  uint64_t argument) {
    struct lane_state *state = &decoder->lane[lane];
    if (state->depth == STREAM_DEPTH_MAX) {
        state->awaited += is_plain(&region);
        decoder->stream->too_deep++;
        return;
    }
    region.begin = decoder->stream->move_count;
    region.awaited = state->awaited;
    state->awaited = 0;
    state->open[state->depth++] = region;
    decoder->open_count++;
    if (decoder->lanes <= lane)
        decoder->lanes = lane + 1u;
    add_move(decoder, (struct move){add_argument(decoder, argument), lane, MOVE_BEGIN_REGION,
                                    (uint8_t)region.kind});
}

/* Ends regions of the lane until `depth` are left. */
static void end_down_to(struct decoder *decoder, uint16_t lane, uint32_t depth) {
    struct lane_state *state = &decoder->lane[lane];
    while (state->depth > depth) {
        const struct open_region *last = &state->open[--state->depth];
        state->awaited += last->awaited + is_plain(last);
        decoder->open_count--;
        add_move(decoder, (struct move){0, lane, MOVE_END_REGION, (uint8_t)last->kind});
    }
}

/* At the end of a thread, and of all. */
static void end_all(struct decoder *decoder, uint16_t lane) {
    struct lane_state *state = &decoder->lane[lane];
    while (state->depth > 0) {
        const struct open_region *last = &state->open[state->depth - 1];
        if (last->call && last->begin < decoder->stream->move_count) {
            decoder->stream->move[last->begin].move = MOVE_NOTHING;
            state->depth--;
            decoder->open_count--;
        } else {
            end_down_to(decoder, lane, state->depth - 1);
        }
    }
    state->awaited = 0;
}

static bool end_identity(struct decoder *decoder, uint16_t lane, uint64_t identity) {
    struct lane_state *state = &decoder->lane[lane];
    for (uint32_t i = state->depth; i-- > 0;)
        if (state->open[i].identity == identity) {
            end_down_to(decoder, lane, i);
            return true;
        }
    return false;
}

/* Without an identity: of a region that is not open any more, or of the innermost plain one. */
static void end_plain(struct decoder *decoder, uint16_t lane) {
    struct lane_state *state = &decoder->lane[lane];
    uint32_t *awaited = &state->awaited, depth = state->depth;
    while (*awaited == 0 && depth > 0 && !is_plain(&state->open[depth - 1]))
        awaited = &state->open[--depth].awaited;
    if (*awaited == 0 && depth == 0)
        return;
    if (*awaited == 0) {
        end_down_to(decoder, lane, depth - 1);
        awaited = &state->awaited; /* which the region has added itself to */
    }
    --*awaited;
}

static void end_region(struct decoder *decoder, uint16_t lane, uint64_t identity) {
    if (!decoder->stream->marked)
        return; /* the program ends what it has not begun, and no tick */
    if (identity == 0) {
        end_plain(decoder, lane);
    } else if (!end_identity(decoder, lane, identity)) {
        size_t elsewhere = decoder->open_count - decoder->lane[lane].depth;
        for (uint32_t other = 0; elsewhere && other < decoder->lanes; other++)
            if (decoder->lane[other].depth && end_identity(decoder, (uint16_t)other, identity))
                return;
    }
}

static void called(struct decoder *decoder, uint16_t lane, uint32_t kind) {
    struct lane_state *state = &decoder->lane[lane];
    decoder->stream->calls++;
    for (uint32_t i = state->depth; i-- > 0;)
        if (state->open[i].call && state->open[i].kind == kind)
            end_down_to(decoder, lane, i);
    begin(decoder, lane, (struct open_region){.kind = kind, .call = true}, 0);
}

/* A tick ends the period of all lanes, of those too that do nothing then. */
static void pass_ticks(struct decoder *decoder, size_t place) {
    size_t before = decoder->tick;
    while (decoder->tick < decoder->tick_count && decoder->ticks[decoder->tick] <= place)
        decoder->tick++;
    if (decoder->tick == before)
        return;
    for (uint32_t lane = 0; decoder->open_count && lane < decoder->lanes; lane++)
        end_down_to(decoder, (uint16_t)lane, 0);
}

/* What is born in a lane begins its period. So what is freed after a thread, whose lane it had,
 * makes none. */
static void begin_period(struct decoder *decoder, uint16_t lane, enum spool_op op) {
    if (!decoder->tick_count || decoder->lane[lane].depth)
        return;
    if (op <= SPOOL_ALIGNED || op == SPOOL_REALLOC_TO)
        begin(decoder, lane, (struct open_region){0}, 0); /* there are no others, of any kind */
}

/* ---- blocks */

static void put(struct decoder *decoder, uint16_t lane, uint64_t address, uint32_t block) {
    int64_t old = block_map_take(&decoder->map, address);
    if (old != BLOCK_NONE) {
        decoder->stream->lost_frees++;
        add_move(decoder, (struct move){(uint32_t)old, lane, MOVE_END, 0});
    }
    decoder->no_memory |= !block_map_put(&decoder->map, address, block);
}

static void born(struct decoder *decoder, uint16_t lane, const struct spool_record *record,
                 uint64_t wide) {
    uint64_t what = record->what, address = spool_address(what);
    struct lane_state *state = &decoder->lane[lane];
    struct block block = {.size = (uint32_t)record->when | (wide & UINT32_MAX) << 32,
                          .from = STREAM_NO_BLOCK,
                          .site = (uint16_t)spool_site(what),
                          .align_log2 = (uint8_t)(wide >> 32 & 63),
                          .op = (uint8_t)spool_op(what)};
    if (block.size > SIZE_MOST) /* of a damaged spool */
        block.size = SIZE_MOST;
    if (block.op == SPOOL_REALLOC_TO) {
        block.from = (int32_t)state->moving;
        if (state->moving == STREAM_NO_BLOCK)
            block.op = SPOOL_MALLOC;
        state->moving = STREAM_NO_BLOCK;
    }
    put(decoder, lane, address, (uint32_t)decoder->stream->block_count);
    add_block(decoder, lane, block);
}

static void freed(struct decoder *decoder, uint16_t lane, uint64_t address) {
    int64_t block = block_map_take(&decoder->map, address);
    if (block == BLOCK_NONE)
        decoder->stream->unknown_frees++;
    else
        add_move(decoder, (struct move){(uint32_t)block, lane, MOVE_END, 0});
}

static void stays(struct decoder *decoder, uint16_t lane, uint64_t address) {
    struct lane_state *state = &decoder->lane[lane];
    if (state->moving != STREAM_NO_BLOCK)
        put(decoder, lane, address, (uint32_t)state->moving);
    state->moving = STREAM_NO_BLOCK;
}

static void gone(struct decoder *decoder, uint16_t lane) {
    struct lane_state *state = &decoder->lane[lane];
    if (state->moving != STREAM_NO_BLOCK)
        add_move(decoder, (struct move){(uint32_t)state->moving, lane, MOVE_END, 0});
    state->moving = STREAM_NO_BLOCK;
}

/* ---- records */

static void take_block_record(struct decoder *decoder, uint16_t lane,
                              const struct spool_record *record, uint64_t wide) {
    uint64_t address = spool_address(record->what);
    begin_period(decoder, lane, spool_op(record->what));
    switch (spool_op(record->what)) {
    case SPOOL_FREE: freed(decoder, lane, address); break;
    case SPOOL_REALLOC_FROM:
        gone(decoder, lane); /* of a call that a jump has left: there is no telling */
        decoder->lane[lane].moving = block_map_take(&decoder->map, address);
        decoder->stream->unknown_frees += decoder->lane[lane].moving == BLOCK_NONE;
        break;
    case SPOOL_REALLOC_FREED: gone(decoder, lane); break;
    case SPOOL_REALLOC_FAILED: stays(decoder, lane, address); break;
    default: born(decoder, lane, record, wide); break;
    }
}

static void take_record(struct decoder *decoder, size_t place) {
    const struct spool_record *record = &decoder->spool->records[place];
    uint16_t lane = (uint16_t)spool_file_lane(decoder->spool, place);
    uint64_t what = record->what, wide = 0;
    uint32_t kind = spool_site(what) % SPOOL_KINDS;
    if (spool_op(record[-1].what) == SPOOL_WIDE)
        wide = record[-1].when;
    switch (spool_op(what)) {
    case SPOOL_BEGIN:
        begin(decoder, lane,
              (struct open_region){.identity = spool_address(what), .kind = kind},
              (uint32_t)record->when | (wide & UINT32_MAX) << 32);
        break;
    case SPOOL_END: end_region(decoder, lane, spool_address(what)); break;
    case SPOOL_CALL: called(decoder, lane, kind); break;
    case SPOOL_THREAD_END:
        end_all(decoder, lane);
        gone(decoder, lane);
        break;
    default: take_block_record(decoder, lane, record, wide); break;
    }
}

/* Each region that is open ends with one more move. */
static bool is_full(const struct decoder *decoder) {
    return decoder->stream->move_count + decoder->open_count + RECORD_MOVES_MAX > STREAM_MOVES_MAX;
}

static void decode_all(struct decoder *decoder) {
    const struct spool_file *spool = decoder->spool;
    struct stream *stream = decoder->stream;
    for (size_t i = 0; i < spool->order_count && !decoder->no_memory; i++) {
        pass_ticks(decoder, i);
        if (is_full(decoder)) {
            stream->cut = true;
            break;
        }
        if (spool->order[i])
            take_record(decoder, spool->order[i] - 1);
    }
    for (uint32_t lane = 0; lane < SPOOL_LANES; lane++)
        end_all(decoder, (uint16_t)lane);
}

/* A kind may be that of a site that no step was begun of. */
static bool has_marks(const struct spool_file *spool) {
    for (size_t i = 0; spool->head->kind_count && i < spool->order_count; i++) {
        enum spool_op op = spool->order[i] ? spool_op(spool->records[spool->order[i] - 1].what)
                                           : SPOOL_NOTHING;
        if (op == SPOOL_BEGIN || op == SPOOL_CALL)
            return true;
    }
    return false;
}

bool stream_decode(struct stream *stream, const struct spool_file *spool, const uint32_t *ticks,
                   size_t tick_count) {
    struct decoder decoder = {.stream = stream, .spool = spool};
    *stream = (struct stream){0};
    stream->marked = has_marks(spool);
    if (!stream->marked) {
        decoder.ticks = ticks;
        decoder.tick_count = tick_count;
    }
    decoder.lane = calloc(SPOOL_LANES, sizeof *decoder.lane);
    decoder.no_memory = !block_map_make(&decoder.map) || !decoder.lane;
    for (uint32_t i = 0; decoder.lane && i < SPOOL_LANES; i++)
        decoder.lane[i].moving = STREAM_NO_BLOCK;
    if (!decoder.no_memory)
        decode_all(&decoder);
    block_map_free(&decoder.map);
    free(decoder.lane);
    if (!decoder.no_memory)
        return true;
    stream_free(stream);
    return complain("out of memory: %zu records", spool->order_count);
}

void stream_free(struct stream *stream) {
    free(stream->block);
    free(stream->move);
    free(stream->argument);
    *stream = (struct stream){0};
}
