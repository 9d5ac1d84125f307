// SPDX-License-Identifier: Apache-2.0
/*
 * cleanups.c - random trees of regions whose cleanups do what a program may do anywhere: alone,
 * under limits, in shared memory.
 *
 * The shadow is that of model.h. Beside it stand the cleanups that are registered and the ends that
 * are under way, each called by a cleanup of the one before. An end comes to the next cleanup by
 * rules of its own, and closes the shadow's regions as it passes them: so each callback knows
 * whether it is the one to run now, and finds a shadow that is exact.
 *
 *     EBB_SEED=n      plays this seed only
 *     EBB_OPS=n       operations per seed, without those of cleanups
 *     EBB_TRACE=1     says every operation, and checks everything after each
 *     --long [secs]   plays fresh seeds for so long (600)
 */
#include "kit/test.h"

#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FIXED_SEEDS = 3, MOST_SEEDS = 100, NODES = 60, DEEPEST = 4, STEP_BLOCKS = 6 };
enum { LIMITED = 1, SHARED = 2 };

/* What ends regions, or what they got since a mark; RUN ends one cleanup alone. */
enum way { CLOSE, RESET, REWIND, KEEP, STEP, SEND, RUN, WAYS };

struct node {
    struct ebb_cleanup cleanup;
    int region; /* MODEL_NONE: not registered */
    uint64_t when;
    int returns;
};

struct end {
    struct end *outer;
    enum way way;
    int region, refusal;           /* what the call has to return, or 0 */
    unsigned to;                   /* REWIND: a mark */
    int at;                        /* where it has come to */
    bool running;                  /* the cleanups there; else children come first */
    bool nested;                   /* another has ended in a callback */
    int host;                      /* of the callback that runs, or MODEL_NONE */
    struct node *only;             /* RUN: the one to run */
    const struct listing *listing; /* KEEP: promoted, and the shadow does not know yet; or NULL */
    int target;                    /* KEEP: who keeps; else MODEL_NONE */
    uint64_t pinned, pinned_was;   /* bytes there by the end itself, and when it went on */
    struct ebb_closed closed;      /* what it has to report */
    unsigned ran;                  /* callbacks */
};

static struct {
    struct model *model;
    struct end *ends; /* under way, newest first */
    unsigned depth;
    bool shared; /* memory */
    struct node nodes[NODES];
    ebb_site *site;
    ebb_step steps[MODEL_REGIONS]; /* all zero: an ordinary region */
    bool leaves[MODEL_REGIONS];    /* roots: is being sent */
} game;

/* What the games came to; the last ones not all games. */
enum seen { BUSY, LIMIT, FAILED, OVER, LATE, BORN, BLOCKS, DEEP, UNKEPT, LEFT, PLANNED, SEEN };
static const char *const names[SEEN] = {
    "refused as busy", "refused by a limit", "ends that failed", "handed over inside",
    "registered late", "born late", "inside with blocks", "deepest", "not kept inside",
    "left as sent", "planned blocks"};
static const char *const ways[WAYS] = {"close", "reset", "rewind", "keep", "step", "send", "run"};
static uint64_t seen[SEEN], crossings[WAYS][WAYS]; /* [around][inside] */
static uint64_t ops = 4000, fresh;
static bool only_one;

static ebb_region handle(const struct model *model, int region) {
    return model->regions[region].handle;
}

/* ---- where an end has come to ---- */

static struct node *newest_node(int region, uint64_t since) {
    struct node *newest = NULL;
    for (struct node *node = game.nodes; node < game.nodes + NODES; node++)
        if (node->region == region && node->when > since && (!newest || node->when > newest->when))
            newest = node;
    return newest;
}

static int newest_child(const struct model *model, int region) {
    int newest = MODEL_NONE;
    for (int at = 0; at < MODEL_REGIONS; at++) {
        const struct shadow_region *child = &model->regions[at];
        if (child->open && child->parent == region &&
            (newest == MODEL_NONE || child->opened > model->regions[newest].opened))
            newest = at;
    }
    return newest;
}

static void forget(struct model *model, int region) {
    game.steps[region] = (ebb_step){.lane = NULL};
    game.leaves[region] = false;
    shadow_close(model, region);
}

/* Children go first, the newest first, then all cleanups, and then what these have opened. */
static struct node *next_in_tree(struct model *model, struct end *end) {
    for (;;) {
        struct node *node = newest_node(end->at, 0);
        int child = newest_child(model, end->at), parent = model->regions[end->at].parent;
        if (node && (end->running || child == MODEL_NONE)) {
            end->running = true;
            return node;
        }
        if (child == MODEL_NONE && end->at == end->region)
            return NULL;
        seen[BORN] += end->running && child != MODEL_NONE;
        end->running = false;
        if (child == MODEL_NONE)
            forget(model, end->at);
        end->at = child == MODEL_NONE ? parent : child;
    }
}

/* The next callback of an end, or NULL: then the shadow has come to what the end began with. */
static struct node *end_next(struct model *model, struct end *end) {
    if (end->listing)
        listing_follow(model, end->listing);
    end->listing = NULL;
    if (end->way == RUN)
        return end->only;
    return end->way == REWIND
               ? newest_node(end->region, model->regions[end->region].marks[end->to].when)
               : next_in_tree(model, end);
}

/* It is, or is above, a region of which a cleanup runs. */
static bool is_closing(const struct model *model, int region) {
    for (const struct end *end = game.ends; end; end = end->outer)
        if (end->host != MODEL_NONE &&
            (end->host == region || shadow_is_above(model, region, end->host)))
            return true;
    return false;
}

static int root_of(const struct model *model, int region) {
    while (model->regions[region].parent != MODEL_NONE)
        region = model->regions[region].parent;
    return region;
}

static bool is_step(int region) {
    return game.steps[region].lane != NULL;
}

static bool ends_step(const struct end *end) {
    return (end->way == STEP || end->way == KEEP) && is_step(end->region);
}

/* A step that is ending is none any more, just a region. */
static bool is_ending_step(const struct end *again) {
    for (const struct end *end = again->outer; end && ends_step(again); end = end->outer)
        if (end->region == again->region && ends_step(end))
            return true;
    return false;
}

static void end_begin(struct model *model, struct end *end, enum way way, int region) {
    *end = (struct end){.outer = game.ends, .way = way, .region = region, .at = region,
                        .host = MODEL_NONE, .target = MODEL_NONE};
    if (way != RUN && is_closing(model, region))
        end->refusal = is_ending_step(end) ? EBB_E_STALE : EBB_E_BUSY;
    model_say(model, "region %d: %s", region, ways[way]);
    game.ends = end;
}

static uint64_t pinned_now(const struct model *model, const struct end *end) {
    return end->target == MODEL_NONE ? 0 : stats_of(handle(model, end->target)).pinned;
}

/* What the shadow is left with by what ran all its cleanups. */
static void settle(struct model *model, const struct end *end) {
    struct shadow_region *at = &model->regions[end->region];
    if (end->way == RESET)
        shadow_clear(model, end->region);
    if (end->way == REWIND && !game.leaves[root_of(model, end->region)]) /* else they stay */
        shadow_rewind(model, end->region, at->marks[end->to].when);
    if (end->way == REWIND)
        at->mark_count = end->to;
    MODEL_DEMAND(model, ebb_region_is_open(at->handle) ==
                            (end->way == RESET || end->way == REWIND || end->way == RUN));
    if (!ebb_region_is_open(at->handle))
        forget(model, end->region);
}

/* False: it was refused, as it must be. Else all callbacks ran, and it says whether any failed. */
static bool end_done(struct model *model, struct end *end, int result) {
    int parent = model->regions[end->region].parent;
    MODEL_DEMAND(model, game.ends == end);
    game.ends = end->outer;
    if (end->refusal) {
        MODEL_DEMAND(model, result == end->refusal && !end->ran);
        seen[BUSY] += result == EBB_E_BUSY;
    } else {
        MODEL_DEMAND(model, !end_next(model, end));
        MODEL_DEMAND(model, result == (end->closed.failed ? EBB_E_CLEANUP : 0));
        settle(model, end);
        seen[FAILED] += end->closed.failed > 0;
        if (end->outer) {
            crossings[end->outer->way][end->way]++;
            end->outer->nested = true;
        }
    }
    shadow_check_region(model, end->region);
    if (parent != MODEL_NONE)
        shadow_check_region(model, parent);
    return !end->refusal;
}

/* ---- ends ---- */

static void close_one(struct model *model, int region) {
    struct ebb_closed report = {0, 0};
    struct end end;
    end_begin(model, &end, is_step(region) ? STEP : CLOSE, region);
    int result = end.way == STEP ? ebb_step_end(game.steps[region])
                                 : ebb_region_close_reporting(handle(model, region), &report);
    if (end_done(model, &end, result) && end.way == CLOSE)
        MODEL_DEMAND(model, report.failed == end.closed.failed &&
                                report.first_error == end.closed.first_error);
}

static void act_close(struct model *model) {
    int region = shadow_some_region(model);
    if (region != MODEL_NONE && (model->regions[region].depth > 1 || model_chance(model, 4)))
        close_one(model, region);
}

static void act_reset(struct model *model) {
    int region = shadow_some_region(model);
    struct end end;
    if (region == MODEL_NONE)
        return;
    size_t keep = model_chance(model, 2) ? EBB_KEEP_ALL : model_below(model, 3) * 100000;
    end_begin(model, &end, RESET, region);
    (void)end_done(model, &end, ebb_region_reset(handle(model, region), keep));
}

static void act_rewind(struct model *model) {
    int region = shadow_some_region(model);
    struct end end;
    if (region == MODEL_NONE || !model->regions[region].mark_count)
        return;
    end_begin(model, &end, REWIND, region);
    end.to = (unsigned)model_below(model, model->regions[region].mark_count);
    ebb_mark mark = model->regions[region].marks[end.to].mark;
    if (end_done(model, &end, ebb_region_rewind(handle(model, region), mark)))
        MODEL_DEMAND(model, ebb_region_rewind(handle(model, region), mark) == EBB_E_MARK);
}

static bool is_limit(int code) {
    return code == EBB_E_REGION_LIMIT || code == EBB_E_POOL_LIMIT;
}

static void act_keep(struct model *model) {
    struct ebb_promoted cost = {0};
    struct listing listing;
    uint64_t lost = 0;
    struct end end;
    if (!listing_make(model, &listing) || listing.source == listing.target)
        return;
    ebb_region source = handle(model, listing.source), target = handle(model, listing.target);
    end_begin(model, &end, KEEP, listing.source);
    end.listing = &listing;
    end.target = listing.target;
    end.pinned_was = pinned_now(model, &end);
    int result = is_step(listing.source)
                     ? ebb_step_end_keeping(game.steps[listing.source], target, listing.list,
                                            listing.count, &cost, &lost)
                     : ebb_close_keeping(source, target, listing.list, listing.count, &cost, &lost);
    end.pinned += pinned_now(model, &end) - end.pinned_was;
    if (!end.refusal && result && result != EBB_E_CLEANUP) {
        listing_check_failure(model, &listing, end.refusal = result);
        seen[UNKEPT] += game.depth && is_limit(result);
    }
    if (end_done(model, &end, result)) {
        listing_check_end(model, &listing, &cost, lost);
        MODEL_DEMAND(model, end.nested || cost.pinned_bytes == end.pinned);
    }
    shadow_check_region(model, listing.target);
}

static void act_run(struct model *model) {
    struct node *node = &game.nodes[model_below(model, NODES)];
    struct end end;
    if (node->region == MODEL_NONE)
        return;
    int returns = node->returns;
    end_begin(model, &end, RUN, node->region);
    end.only = node;
    MODEL_DEMAND(model, ebb_cleanup_run(&node->cleanup) == returns && end.ran == 1);
    (void)end_done(model, &end, returns ? EBB_E_CLEANUP : 0);
}

/* ---- what goes to others ---- */

/* It arrives as it was when it was sent, whatever its cleanups did. */
static void act_send(struct model *model) {
    int region = shadow_some_region(model);
    struct shadow_block list[MODEL_BLOCKS];
    size_t offsets[MODEL_BLOCKS], count = 0;
    struct ebb_parcel parcel;
    struct end end;
    if (region == MODEL_NONE || !game.shared)
        return;
    end_begin(model, &end, SEND, root_of(model, region));
    ebb_region root = handle(model, end.region);
    for (unsigned i = 0; i < model->block_count; i++)
        if (root_of(model, model->blocks[i].owner) == end.region) {
            offsets[count] = ebb_region_offset(root, model->blocks[i].addr);
            list[count++] = model->blocks[i];
        }
    game.leaves[end.region] |= !end.refusal;
    if (!end_done(model, &end, ebb_region_send(root, NULL, &parcel)))
        return;
    ebb_lease *lease = ebb_parcel_open(model->pool, &parcel);
    MODEL_DEMAND(model, lease);
    while (count-- > 0) {
        const void *block = ebb_lease_at(lease, offsets[count], list[count].bytes);
        MODEL_DEMAND(model, block && pattern_holds(block, list[count].bytes, list[count].seed));
    }
    ebb_lease_drop(lease);
}

static void act_hand_over(struct model *model) {
    int region = shadow_some_region(model);
    if (region == MODEL_NONE)
        return;
    struct shadow_region *at = &model->regions[region];
    bool stays = is_closing(model, region) || is_step(region);
    bool has_slot = !game.shared || at->parent == MODEL_NONE;
    ebb_region over = ebb_region_hand_over(at->handle);
    model_say(model, "region %d: hand over: %d", region, ebb_region_is_open(over));
    MODEL_DEMAND(model, ebb_region_is_open(at->handle) == !ebb_region_is_open(over));
    if (!ebb_region_is_open(over)) {
        MODEL_DEMAND(model, ebb_last_error() == (has_slot ? EBB_E_BUSY : EBB_E_KIND));
        return;
    }
    MODEL_DEMAND(model, has_slot && !stays);
    at->handle = over;
    at->parent = MODEL_NONE;
    for (int below = 0; below < MODEL_REGIONS; below++)
        if (shadow_is_above(model, region, below))
            model->regions[below].depth -= at->depth - 1;
    at->depth = 1;
    seen[OVER] += game.depth > 0;
}

/* ---- everything else ---- */

/* A step begins in the same way each time, and ends in any. */
static void act_step(struct model *model) {
    static const size_t sizes[STEP_BLOCKS] = {5000, 300, 40000, 64, 9000, 2000};
    int parent = shadow_some_region(model);
    bool room = false;
    for (int at = 0; at < MODEL_REGIONS; at++)
        room |= !model->regions[at].open;
    if (!room || parent == MODEL_NONE || model->regions[parent].depth == MODEL_DEPTH ||
        model->block_count + 40 > MODEL_BLOCKS)
        return;
    size_t tag = model_below(model, 3);
    ebb_step step = ebb_step_begin_under(game.site, handle(model, parent), tag);
    MODEL_DEMAND(model, ebb_region_is_open(step.region));
    int at = shadow_open(model, step.region, parent, 0, false);
    model_say(model, "region %d: step under %d", at, parent);
    game.steps[at] = step;
    for (size_t i = 0; i < STEP_BLOCKS; i++) {
        size_t bytes = sizes[i * (tag + 1) % STEP_BLOCKS];
        void *block = ebb_region_alloc(step.region, bytes, 16);
        MODEL_DEMAND(model, block || is_limit(ebb_last_error()));
        if (block)
            shadow_add(model, at, block, bytes, 16);
    }
    shadow_check_region(model, at);
}

/* What is being sent stays where it is, and counts, whoever releases or shrinks it. */
static void leave_block(struct model *model) {
    int at = shadow_some_block(model);
    if (at == MODEL_NONE || !game.leaves[root_of(model, model->blocks[at].owner)])
        return;
    const struct shadow_block *block = &model->blocks[at];
    ebb_region owner = handle(model, block->owner);
    int result = model_chance(model, 2) ? ebb_region_release(owner, block->addr)
                                        : ebb_region_resize(owner, block->addr, block->bytes / 2);
    MODEL_DEMAND(model, result == 0);
    seen[LEFT]++;
    shadow_check_region(model, block->owner);
}

static void act_block(struct model *model) {
    static const struct act all[] = {{op_release, 5}, {op_resize, 3}, {op_realloc, 2}};
    for (const struct end *end = game.ends; end; end = end->outer)
        if (end->way == SEND) {
            leave_block(model);
            return;
        }
    model_act(model, all, sizeof all / sizeof *all);
}

static int run_node(void *data);

static void act_add(struct model *model) {
    int region = shadow_some_region(model);
    struct node *node = &game.nodes[model_below(model, NODES)];
    if (region == MODEL_NONE || node->region != MODEL_NONE)
        return;
    *node = (struct node){.cleanup = {.run = run_node, .data = node}, .region = region,
                          .when = ++model->now,
                          .returns = model_chance(model, 5) ? 1 + (int)model_below(model, 9) : 0};
    model_say(model, "region %d: add cleanup %d", region, (int)(node - game.nodes));
    MODEL_DEMAND(model, ebb_cleanup_add(handle(model, region), &node->cleanup) == 0);
    MODEL_DEMAND(model, ebb_cleanup_add(handle(model, region), &node->cleanup) == EBB_E_DUPLICATE);
    seen[LATE] += is_closing(model, region);
}

static void act_remove(struct model *model) {
    struct node *node = &game.nodes[model_below(model, NODES)];
    model_say(model, "remove cleanup %d", (int)(node - game.nodes));
    MODEL_DEMAND(model, ebb_cleanup_remove(&node->cleanup) == 0 && !node->cleanup.list);
    node->region = MODEL_NONE;
}

static void act(struct model *model) {
    static const struct act all[] = {
        {op_alloc, 200}, {act_block, 120}, {op_open, 80},       {act_step, 30},  {act_close, 25},
        {act_reset, 8},  {op_mark, 60},    {act_rewind, 40},    {op_promote, 30}, {act_keep, 30},
        {act_add, 130},  {act_remove, 10}, {act_run, 20},       {act_send, 12},
        {op_seal, 1},    {op_use_closed, 4}, {act_hand_over, 8},
    };
    model_act(model, all, sizeof all / sizeof *all);
    if (model->trace)
        shadow_check_all(model);
}

static int run_node(void *data) {
    struct node *node = data;
    struct model *model = game.model;
    struct end *end = game.ends;
    MODEL_DEMAND(model, end && end_next(model, end) == node && !node->cleanup.list);
    model_say(model, "cleanup %d of region %d", (int)(node - game.nodes), node->region);
    end->pinned += pinned_now(model, end) - end->pinned_was;
    end->host = node->region;
    end->only = NULL;
    end->ran++;
    int returns = node->returns, code = ebb_last_error();
    uint64_t before = model->now;
    node->region = MODEL_NONE; /* others may add it again */
    if (model_chance(model, 16))
        shadow_check_all(model);
    seen[DEEP] += ++game.depth == DEEPEST;
    size_t most = game.depth == DEEPEST ? 1 : end->way == SEND ? 24 : 8;
    for (size_t left = model_below(model, most); left; left--) {
        act(model);
        seen[LIMIT] += ebb_last_error() != code && is_limit(ebb_last_error());
        code = ebb_last_error();
    }
    seen[BLOCKS] += model->now > before;
    game.depth--;
    MODEL_DEMAND(model, game.ends == end && ebb_region_is_open(handle(model, end->host)));
    end->pinned_was = pinned_now(model, end);
    end->host = MODEL_NONE;
    if (returns && !end->closed.failed++)
        end->closed.first_error = returns;
    return returns;
}

/* ---- games ---- */

static void play(uint64_t seed, unsigned how) {
    ebb_pool *pool = how & SHARED  ? POOL(.kind = EBB_KIND_SHARED, .slots = MODEL_REGIONS + 4,
                                          .slot_bytes = 64 * MIB, .limit_reserved_bytes = 2 * MIB)
                     : how & LIMITED ? POOL(.limit_used_bytes = 600 * KIB,
                                            .limit_reserved_bytes = 2 * MIB)
                                     : POOL(.name = "cleanups");
    assert_non_null(pool);
    struct model *model = model_begin(seed, pool, how ? MODEL_LIMITED : 0);
    memset(&game, 0, sizeof game);
    game.model = model;
    game.shared = how & SHARED;
    for (struct node *node = game.nodes; node < game.nodes + NODES; node++)
        node->region = MODEL_NONE;
    game.site = ebb_site_create(EBB_SITE_OPTIONS(.tenure_none = true));
    for (model->op = 0; model->op < ops; model->op++) {
        act(model);
        if (model->op % 100 == 99)
            shadow_check_all(model);
    }
    for (int root; (root = newest_child(model, MODEL_NONE)) != MODEL_NONE;)
        close_one(model, root);
    MODEL_DEMAND(model, model->block_count == 0 && !game.ends);
    seen[PLANNED] += site_stats(game.site).hits;
    assert_int_equal(ebb_site_destroy(game.site), 0);
    model_end(model);
    pool_end(pool);
}

/* Whether these games have come to what they are for: nothing is sent but in shared memory, and
 * under limits on bytes no step has a plan. */
static bool seen_enough(unsigned how) {
    unsigned without = how & LIMITED ? PLANNED : UNKEPT;
    bool all = true;
    for (unsigned what = 0; what < SEEN; what++)
        all &= seen[what] || what == without || (what == LEFT && !(how & SHARED));
    for (unsigned around = 0; around < WAYS; around++)
        for (unsigned inside = 0; inside < WAYS; inside++)
            all &= crossings[around][inside] ||
                   (!(how & SHARED) && (around == SEND || inside == SEND));
    return all;
}

static void tell(void) {
    fputc('#', stderr);
    for (unsigned what = 0; what < SEEN; what++)
        fprintf(stderr, "%s %llu %s", what ? "," : "", (unsigned long long)seen[what], names[what]);
    for (unsigned around = 0; around < WAYS; around++) {
        fprintf(stderr, "\n# in %s:", ways[around]);
        for (unsigned inside = 0; inside < WAYS; inside++)
            fprintf(stderr, " %llu %s", (unsigned long long)crossings[around][inside],
                    ways[inside]);
    }
    fputc('\n', stderr);
}

static void play_seeds(void **state) {
    unsigned how = *(unsigned *)*state;
    uint64_t seed = 1;
    memset(seen, 0, sizeof seen);
    memset(crossings, 0, sizeof crossings);
    for (; !only_one && seed <= FIXED_SEEDS; seed++)
        play(seed, how);
    play(fresh, how);
    for (; !only_one && !seen_enough(how) && seed <= MOST_SEEDS; seed++)
        play(seed, how);
    tell();
    assert_true(seen_enough(how) || only_one);
}

static int play_long(unsigned seconds) {
    time_t end = time(NULL) + (time_t)seconds;
    uint64_t games = 0;
    for (; time(NULL) < end; fresh++, games += 3)
        for (unsigned how = 0; how <= SHARED; how++)
            play(fresh, how);
    tell();
    printf("%llu games, no difference\n", (unsigned long long)games);
    return 0;
}

int main(int argc, char **argv) {
    static unsigned hows[] = {0, LIMITED, SHARED};
    static const struct CMUnitTest tests[] = {
        {"cleanups_do_anything", play_seeds, NULL, NULL, &hows[0]},
        {"cleanups_do_anything_under_limits", play_seeds, NULL, NULL, &hows[1]},
        {"cleanups_do_anything_in_shared_memory", play_seeds, NULL, NULL, &hows[2]},
    };
    only_one = getenv("EBB_SEED") != NULL;
    fresh = fresh_seed();
    ops = number_from("EBB_OPS", ops);
    if (argc > 1 && strcmp(argv[1], "--long") == 0)
        return play_long(argc > 2 ? (unsigned)number_in("--long", argv[2]) : 600);
    fprintf(stderr, "# fresh seed: EBB_SEED=%llu\n", (unsigned long long)fresh);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
