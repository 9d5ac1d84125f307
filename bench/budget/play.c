// SPDX-License-Identifier: Apache-2.0
/*
 * play.c - carries out a script: what churn-replay does with ebb, without clocks and touching.
 *
 * Invariant: `at` of a slot is its block while the script has an object there. Blocks are neither
 * written nor read: a budget is about what is asked for, not about what it is for. What is asked
 * for is counted here, as the script has it: ebb counts what it served, and a block that grows in
 * its place is served by nothing.
 */
#include "play.h"

#include <ebb/ebb.h>
#include <stdlib.h>

enum { ALIGN = 1 << SCRIPT_ALIGN_LOG2 };

struct cost {
    uint32_t kind;
    struct ebb_churn_budget asked; /* bytes and allocations */
};

struct player {
    const struct script *script;
    const struct stage *stage;
    void **at;                 /* by slot */
    ebb_region *regions;       /* by number of the script; 0: the root */
    ebb_step *steps;           /* the same; none of the root */
    struct cost *costs;        /* the same */
    struct ebb_survivor *kept; /* room for the longest list */
};

static bool make(struct player *player) {
    const struct script *script = player->script;
    player->at = calloc((size_t)script->slot_count + 1, sizeof *player->at);
    player->regions = calloc(script->region_count, sizeof *player->regions);
    player->steps = calloc(script->region_count, sizeof *player->steps);
    player->costs = calloc(script->region_count, sizeof *player->costs);
    player->kept = calloc((size_t)script->survivors_max + 1, sizeof *player->kept);
    if (!player->at || !player->regions || !player->steps || !player->costs || !player->kept)
        return false;
    player->regions[0] = ebb_region_open(EBB_REGION_OPTIONS(.name = "root"));
    return player->regions[0].lane != NULL;
}

static void end(struct player *player) {
    if (player->regions && player->regions[0].lane)
        ebb_region_close(player->regions[0]);
    free(player->at);
    free(player->regions);
    free(player->steps);
    free(player->costs);
    free(player->kept);
}

static void count(struct player *player, const struct script_event *event) {
    struct ebb_churn_budget *asked = &player->costs[event->region].asked;
    asked->bytes += event->bytes;
    asked->allocations++;
}

static bool bear(struct player *player, const struct script_event *event) {
    count(player, event);
    player->at[event->slot] = ebb_region_alloc(player->regions[event->region], event->bytes,
                                               (size_t)1 << event->align_log2);
    return player->at[event->slot] != NULL;
}

static bool resize(struct player *player, const struct script_event *event) {
    count(player, event);
    void *block = ebb_region_realloc(player->regions[event->region], player->at[event->slot],
                                     event->bytes, ALIGN);
    player->at[event->slot] = block;
    return block != NULL;
}

static bool release(struct player *player, const struct script_event *event) {
    return ebb_region_release(player->regions[event->owner], player->at[event->slot]) == 0;
}

/* The object belongs to the present region from now on. */
static bool move(struct player *player, const struct script_event *event) {
    void *old = player->at[event->slot];
    return bear(player, event) && ebb_region_release(player->regions[event->owner], old) == 0;
}

static bool begin(struct player *player, const struct script_event *event) {
    uint32_t kind = (uint32_t)event->bytes;
    ebb_step step =
        ebb_step_begin_under(player->stage->sites[kind], player->regions[event->owner], 0);
    player->costs[event->region] = (struct cost){.kind = kind};
    player->steps[event->region] = step;
    player->regions[event->region] = step.region;
    return step.lane != NULL;
}

static bool finish(struct player *player, const struct script_event *event) {
    const struct script_closing *closing = &script_closings(player->script)[event->slot];
    const struct script_survivor *list = &script_survivors(player->script)[closing->first];
    for (uint32_t i = 0; i < closing->count; i++)
        player->kept[i] = (struct ebb_survivor){.block = player->at[list[i].slot],
                                                .align = list[i].align,
                                                .mode = EBB_PROMOTE_AUTO};
    if (ebb_step_end_keeping(player->steps[event->region], player->regions[event->owner],
                             player->kept, closing->count, NULL, NULL) != 0)
        return false;
    for (uint32_t i = 0; i < closing->count; i++)
        player->at[list[i].slot] = player->kept[i].block;
    const struct cost *cost = &player->costs[event->region];
    player->stage->on_end(player->stage->context, cost->kind, &cost->asked);
    return true;
}

static bool do_event(struct player *player, const struct script_event *event) {
    switch ((enum script_op)event->op) {
    case SCRIPT_ALLOC:
    case SCRIPT_CALLOC: return bear(player, event);
    case SCRIPT_REALLOC: return resize(player, event);
    case SCRIPT_MOVE: return move(player, event);
    case SCRIPT_FREE: return release(player, event);
    case SCRIPT_OPEN: return begin(player, event);
    case SCRIPT_CLOSE: return finish(player, event);
    }
    return true;
}

bool play(const struct script *script, const struct stage *stage) {
    struct player player = {.script = script, .stage = stage};
    bool good = make(&player);
    for (uint32_t i = 0; good && i < script->event_count; i++)
        good = do_event(&player, &script_events(script)[i]);
    end(&player);
    return good;
}
