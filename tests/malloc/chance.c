// SPDX-License-Identifier: Apache-2.0
/*
 * chance.c - the whole family of malloc() at random, in and outside of scopes, beside a shadow.
 *
 * Players, each on a thread, allocate in all ways, resize, free and exchange blocks; begin, leave,
 * enter and end scopes in any order, fork and trim. The shadow knows each block's size, alignment
 * and contents. A player's threads end after each round, with blocks alive and scopes open, and the
 * next one goes on; then no two blocks overlap, and what libebb-malloc tells of itself is compared.
 *
 *     EBB_SEED=n      plays this seed only, alone and on threads
 *     EBB_OPS=n       operations of each player
 *
 * Where EBB_MALLOC_STATS is unix:PATH.%p the library is preloaded that is not hardened: then sizes
 * tell which blocks are scopes', and all that it counts is compared.
 */
#include "malloc/chance.h"
#include "malloc/chance_refusals.h"
#include "malloc/chance_told.h"

#include <ebb/ebb.h>

#include <malloc.h>
#include <pthread.h>
#include <stdalign.h>

enum { PLAYERS = 3, BLOCKS = 600, SHARED = 200, SCOPES = 12, SITES = 3, ROUNDS = 3 };
enum { HOT = 24 };

struct scope {
    ebb_step step;
    unsigned site;
    bool is_entered;
};

struct player {
    uint64_t chance;
    struct block blocks[BLOCKS], *newest;
    struct scope scopes[SCOPES]; /* in the order in which they were entered */
    unsigned open;
    uint64_t begun[SITES]; /* scopes */
    struct sum sure[SITES], doubtful[SITES]; /* of blocks in them */
    bool is_child;
};

void free_sized(void *block, size_t bytes) __attribute__((weak));
void free_aligned_sized(void *block, size_t align, size_t bytes) __attribute__((weak));
void cfree(void *block) __attribute__((weak));

static uint64_t seed, ops = 24000;
static ebb_site *sites[SITES];
static struct player players[PLAYERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block shared[SHARED];

/* ---- blocks ---- */

static const struct scope *serving(const struct player *player) {
    for (unsigned i = player->open; i-- > 0;)
        if (player->scopes[i].is_entered)
            return &player->scopes[i];
    return NULL;
}

static void note_place(struct player *player, struct block *block) {
    const struct scope *scope = serving(player);
    bool is_scoped = is_in_a_tray(block->usable) || is_a_large_one(block->usable);
    EXPECT(scope || !is_scoped);
    if (!scope)
        return;
    block->site = scope->site;
    if (is_scoped)
        add(&player->sure[scope->site], what_it_takes(block->usable));
    else if (is_doubtful(block->bytes, block->usable))
        add(&player->doubtful[scope->site], what_it_takes(block->usable));
}

/* Where it was; what was a large one's counts on. */
static void note_growth(struct player *player, const struct block *block, size_t before) {
    size_t now = block->usable;
    if (is_in_a_tray(now) || is_in_a_tray(before) || (is_a_large_one(now) && now > before))
        add(&player->sure[block->site], (struct sum){0, now - before});
    else if (is_doubtful(block->bytes, now) && now > before)
        add(&player->doubtful[block->site], (struct sum){0, now - before});
}

static size_t natural(size_t bytes) {
    return bytes > 8 || !is_served ? alignof(max_align_t) : 8;
}

/* It has been allocated just now: of so many bytes, at a multiple of `align`, or as malloc() does
 * it. */
static void note(struct player *player, struct block *block, void *at, size_t bytes, size_t align) {
    EXPECT(at && errno == UNTOUCHED);
    EXPECT((uintptr_t)at % (align ? align : natural(bytes)) == 0);
    *block = (struct block){.at = at, .bytes = bytes, .align = align};
    block->usable = malloc_usable_size(at);
    block->seed = draw(&player->chance);
    EXPECT(block->usable >= bytes);
    block->written = block->seed % 4 ? block->usable : bytes;
    note_place(player, block);
    write_contents(block);
}

/* Where seeds are odd there is nothing doubtful (chance_told.h), and what is told is exact. */
static bool is_allowed(size_t bytes) {
    return seed % 2 == 0 || (bytes > 8 && bytes <= 4096);
}

/* Of what stays the library learns by size that it stays, in steps of 64 bytes, and has it in no
 * scope; so hot ones have sizes of their own, or hardly anything would lie in any. */
static size_t draw_bytes(struct player *player, const struct block *block) {
    bool is_hot = block < &player->blocks[HOT];
    size_t bytes;
    do
        bytes = draw_any(&player->chance);
    while (!is_allowed(bytes) || (mix(seed + bytes / 64) % 2 != 0) != is_hot);
    return bytes;
}

static void make_zeroed(struct player *player, struct block *block, size_t bytes) {
    size_t of = 1 + below(&player->chance, 16), count = bytes / of;
    unsigned char *at = calloc(count, of);
    EXPECT(at);
    for (size_t i = 0; i < count * of; i++)
        EXPECT(at[i] == 0);
    note(player, block, at, count * of, 0);
}

static void make_aligned(struct player *player, struct block *block, size_t bytes) {
    uint64_t *chance = &player->chance;
    size_t align = (size_t)8 << below(chance, below(chance, 6) ? 6 : 19), page = 4096;
    void *at = NULL;
    switch (below(chance, 10)) {
    case 0:
        note(player, block, valloc(bytes), bytes, page);
        break;
    case 1:
        note(player, block, pvalloc(bytes), (bytes + page - 1) / page * page, page);
        break;
    case 2:
        note(player, block, memalign(align / 4 * 3, bytes), bytes, align); /* rounded up */
        break;
    case 3:
    case 4:
    case 5:
        note(player, block, aligned_alloc(align, bytes), bytes, align);
        break;
    default:
        EXPECT(posix_memalign(&at, align, bytes) == 0);
        note(player, block, at, bytes, align);
    }
}

static void make(struct player *player, struct block *block) {
    size_t bytes = draw_bytes(player, block);
    errno = UNTOUCHED;
    switch (below(&player->chance, 8)) {
    case 0:
        make_zeroed(player, block, bytes);
        break;
    case 1:
        make_aligned(player, block, bytes);
        break;
    case 2:
        note(player, block, realloc(NULL, bytes), bytes, 0);
        break;
    default:
        note(player, block, malloc(bytes), bytes, 0);
    }
}

static void end(struct player *player, struct block *block) {
    if (!block->at)
        return;
    check_contents(block, block->written);
    EXPECT(malloc_usable_size(block->at) == block->usable);
    errno = UNTOUCHED;
    switch (below(&player->chance, 6)) {
    case 0:
    case 1:
        if (free_sized && !block->align)
            free_sized(block->at, block->bytes);
        else if (free_aligned_sized && block->align)
            free_aligned_sized(block->at, block->align, block->bytes);
        else
            free(block->at);
        break;
    case 2:
        if (cfree)
            cfree(block->at);
        else
            EXPECT(!realloc(block->at, 0));
        break;
    case 3:
        EXPECT(!realloc(block->at, 0));
        break;
    default:
        free(block->at);
    }
    EXPECT(errno == UNTOUCHED);
    block->at = NULL;
}

static void end_all(struct player *player, struct block *blocks, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        end(player, &blocks[i]);
}

/* By a little, to half or twice of it, or to any size. */
static size_t draw_new_bytes(struct player *player, const struct block *block) {
    static const size_t of_four[] = {1, 2, 3, 5, 6, 8};
    uint64_t *chance = &player->chance;
    size_t drawn = draw_bytes(player, block), bytes = block->bytes;
    if (below(chance, 3) == 0)
        drawn = bytes + below(chance, 64);
    else if (below(chance, 3) == 0)
        drawn = bytes / 4 * of_four[below(chance, 6)];
    return is_allowed(drawn) && drawn ? drawn : 100;
}

static void resize(struct player *player, struct block *block) {
    struct block before = *block;
    size_t bytes = draw_new_bytes(player, block);
    size_t of = 1 + below(&player->chance, 8);
    bool is_array = below(&player->chance, 2);
    check_contents(block, block->written);
    if (is_array)
        bytes = (bytes + of - 1) / of * of;
    errno = UNTOUCHED;
    block->at = is_array ? reallocarray(before.at, bytes / of, of) : realloc(before.at, bytes);
    EXPECT(block->at && errno == UNTOUCHED && (uintptr_t)block->at % natural(bytes) == 0);
    check_contents(block, before.bytes < bytes ? before.bytes : bytes);
    block->bytes = bytes;
    block->align = 0;
    block->usable = malloc_usable_size(block->at);
    block->written = block->seed % 4 ? block->usable : bytes;
    EXPECT(block->usable >= bytes);
    if (block->at != before.at)
        note_place(player, block);
    else
        note_growth(player, block, before.usable);
    write_contents(block);
}

/* ---- scopes ---- */

static void begin_scope(struct player *player) {
    struct scope scope = {.site = (unsigned)below(&player->chance, SITES), .is_entered = true};
    if (player->open == SCOPES)
        return;
    scope.step = ebb_step_begin(sites[scope.site], below(&player->chance, 2));
    EXPECT(scope.step.lane);
    player->begun[scope.site]++;
    player->scopes[player->open++] = scope;
}

static struct scope take_scope(struct player *player, unsigned at) {
    unsigned last = player->open - 1;
    struct scope scope = player->scopes[at];
    memmove(&player->scopes[at], &player->scopes[at + 1], (last - at) * sizeof scope);
    player->open = last;
    return scope;
}

static void end_scope(struct player *player) {
    unsigned open = player->open;
    if (open == 0)
        return;
    if (below(&player->chance, 8))
        end_all(player, player->blocks, HOT);
    unsigned at = below(&player->chance, 4) ? open - 1 : (unsigned)below(&player->chance, open);
    EXPECT(ebb_step_end(take_scope(player, at).step) == 0);
}

static void leave_or_enter(struct player *player) {
    if (!player->open || !ebb_scope_is_served())
        return;
    struct scope scope = take_scope(player, (unsigned)below(&player->chance, player->open));
    scope.is_entered = below(&player->chance, 3) == 0 || !scope.is_entered; /* or once more */
    EXPECT((scope.is_entered ? ebb_scope_enter : ebb_scope_leave)(scope.step) == 0);
    player->scopes[player->open++] = scope;
}

/* ---- players ---- */

static void play(struct player *player, uint64_t operations);

static void end_most(struct player *player) {
    for (unsigned i = 0; i < BLOCKS; i++)
        if (below(&player->chance, 4))
            end(player, &player->blocks[i]);
}

/* The child goes on, frees what all have, and ends what it may. */
static void fork_and_go_on(struct player *player) {
    if (player->is_child)
        return;
    pthread_mutex_lock(&lock);
    pid_t child = fork();
    pthread_mutex_unlock(&lock);
    if (child == 0) {
        alarm(CHILD_SECONDS);
        player->is_child = true;
        play(player, 500);
        end_all(player, player->blocks, BLOCKS);
        end_all(player, shared, SHARED);
        while (player->open)
            end_scope(player);
        _exit(0);
    }
    act_await(child);
    forget_socket(child);
}

static void exchange(struct player *player, struct block *block) {
    pthread_mutex_lock(&lock);
    struct block *other = &shared[below(&player->chance, SHARED)], own = *block;
    *block = *other;
    *other = own;
    pthread_mutex_unlock(&lock);
}

static void do_rarely(struct player *player) {
    switch (below(&player->chance, 200)) {
    case 0:
        fork_and_go_on(player);
        break;
    case 1:
    case 2:
        (void)malloc_trim(0);
        break;
    case 3:
    case 4:
        end_most(player);
        break;
    case 5:
        EXPECT(!is_served || mallinfo2().uordblks > 0);
        break;
    default:
        ask_in_vain(&player->chance, &player->blocks[below(&player->chance, BLOCKS)]);
    }
}

/* Any of them, one of those that come and go in one scope, mostly, or the newest. */
static struct block *choose(struct player *player) {
    size_t which = below(&player->chance, 8);
    if (which == 0 && player->newest)
        return player->newest;
    return &player->blocks[below(&player->chance, which < 5 ? HOT : BLOCKS)];
}

static void play_one(struct player *player) {
    struct block *block = choose(player);
    size_t which = below(&player->chance, 100);
    if (which < 82) {
        if (!block->at)
            make(player, player->newest = block);
        else if (which < 60)
            end(player, block);
        else
            resize(player, block);
    } else if (which < 90) {
        exchange(player, block);
    } else if (which < 93) {
        begin_scope(player);
    } else if (which < 96) {
        end_scope(player);
    } else if (which < 98) {
        leave_or_enter(player);
    } else {
        do_rarely(player);
    }
}

static void play(struct player *player, uint64_t operations) {
    for (uint64_t i = 0; i < operations; i++)
        play_one(player);
}

/* Each second time its end ends the scopes. */
static void *play_round(void *context) {
    struct player *player = context;
    play(player, ops / ROUNDS);
    while (player->open && draw(&player->chance) % 16 != 0)
        end_scope(player);
    return NULL;
}

/* ---- what is true when nobody plays ---- */

static int by_address(const void *left, const void *right) {
    const struct block *one = left, *other = right;
    return (one->at > other->at) - (one->at < other->at);
}

static unsigned collect(struct block *all) {
    unsigned count = 0;
    for (unsigned i = 0; i < PLAYERS * BLOCKS; i++)
        if (players[i / BLOCKS].blocks[i % BLOCKS].at)
            all[count++] = players[i / BLOCKS].blocks[i % BLOCKS];
    for (unsigned i = 0; i < SHARED; i++)
        if (shared[i].at)
            all[count++] = shared[i];
    return count;
}

/* What is told of trays: that much, or with `doubtful` blocks of up to 8 bytes more. */
static void check_pinned(const char *text, const struct block *all, unsigned count) {
    uint64_t blocks = 0, bytes = 0, doubtful = 0;
    for (unsigned i = 0; i < count; i++) {
        blocks += is_in_a_tray(all[i].usable);
        bytes += is_in_a_tray(all[i].usable) ? all[i].usable + 8 : 0;
        doubtful += all[i].usable == 8;
    }
    uint64_t more = told(text, "pinned_live_blocks") - blocks;
    EXPECT(more <= doubtful && told(text, "pinned_live_bytes") == bytes + more * 16);
    EXPECT(blocks == 0 || told(text, "pinned_trays") > 0);
}

/* The line of a site is in front of its numbers. */
static const char *find_site(const char *text, unsigned which) {
    char line[] = "\nsite a\n";
    line[6] = (char)('a' + which);
    EXPECT(text = strstr(text, line));
    return text;
}

static void check_site(const char *text, unsigned which) {
    struct sum sure = {0, 0}, doubtful = {0, 0};
    uint64_t scopes = 0;
    for (unsigned i = 0; i < PLAYERS; i++) {
        scopes += players[i].begun[which];
        add(&sure, players[i].sure[which]);
        add(&doubtful, players[i].doubtful[which]);
    }
    EXPECT(told(text, "scopes_total") == scopes && told(text, "scopes_open") == 0);
    EXPECT(told(text, "scope_blocks_total") - sure.blocks <= doubtful.blocks);
    EXPECT(told(text, "scope_bytes_total") - sure.bytes <= doubtful.bytes);
    EXPECT(told(text, "scope_held_bytes") == told(text, "scope_pinned_bytes"));
}

static void check_all(void) {
    static struct block all[PLAYERS * BLOCKS + SHARED];
    unsigned count = collect(all);
    qsort(all, count, sizeof *all, by_address);
    for (unsigned i = 1; i < count; i++)
        EXPECT(all[i - 1].at < all[i].at && all[i - 1].at + all[i - 1].usable <= all[i].at);
    if (!is_told)
        return;
    const char *text = ask();
    check_pinned(text, all, count);
    for (unsigned i = 0; i < SITES; i++)
        check_site(find_site(text, i), i);
}

static void check_none(void) {
    (void)malloc_trim(0);
    check_all();
    if (!is_told)
        return;
    const char *text = ask();
    EXPECT(told(text, "pinned_trays") == 0 && told(text, "pinned_bytes") == 0);
    for (unsigned i = 0; i < SITES; i++)
        EXPECT(told(find_site(text, i), "scope_held_bytes") == 0);
}

/* ---- games ---- */

static void end_steps(struct player *player) {
    while (player->open)
        EXPECT(ebb_step_end(player->scopes[--player->open].step) == 0);
}

static void play_game(unsigned threads) {
    pthread_t ids[PLAYERS];
    printf("# EBB_SEED=%" PRIu64 ", %u players\n", seed, threads);
    fflush(stdout);
    for (unsigned i = 0; i < SITES; i++) {
        char name[] = {(char)('a' + i), 0};
        EXPECT(sites[i] = ebb_site_create(EBB_SITE_OPTIONS(.name = name, .scope = true)));
    }
    for (unsigned i = 0; i < threads; i++)
        players[i].chance = mix(seed) + mix(i);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < threads; i++)
            EXPECT(pthread_create(&ids[i], NULL, play_round, &players[i]) == 0);
        for (unsigned i = 0; i < threads; i++)
            EXPECT(pthread_join(ids[i], NULL) == 0);
        for (unsigned i = 0; i < threads; i++)
            end_steps(&players[i]);
        check_all();
    }
    for (unsigned i = 0; i < threads; i++)
        end_all(&players[i], players[i].blocks, BLOCKS);
    end_all(&players[0], shared, SHARED);
    check_none();
    for (unsigned i = 0; i < SITES; i++)
        EXPECT(ebb_site_destroy(sites[i]) == 0);
}

/* The socket stays until its process has ended. */
static void play_in_a_child(uint64_t with, unsigned threads) {
    seed = with;
    pid_t child = fork();
    if (child == 0) {
        alarm(ACT_SECONDS);
        play_game(threads);
        exit(0);
    }
    act_await(child);
    forget_socket(child);
}

static void known_alone(void) {
    play_in_a_child(1, 1);
}

static void known_on_threads(void) {
    play_in_a_child(2, PLAYERS);
}

static void fresh_alone(void) {
    play_in_a_child(seed, 1);
}

static void fresh_on_threads(void) {
    play_in_a_child(seed, PLAYERS);
}

int main(void) {
    static const struct act acts[] = {ACT(fresh_alone), ACT(fresh_on_threads), ACT(known_alone),
                                      ACT(known_on_threads)};
    socket_pattern = getenv("EBB_MALLOC_STATS");
    is_served = ebb_scope_is_served();
    is_told = is_served && socket_pattern;
    seed = number_in("EBB_SEED", number_in("EBB_FRESH_SEED", (uint64_t)time(NULL)));
    ops = number_in("EBB_OPS", ops);
    int failed = act_all(acts, getenv("EBB_SEED") ? 2 : 4);
    forget_socket(getpid());
    return failed;
}
