// SPDX-License-Identifier: Apache-2.0
/*
 * writer.c - a peer that writes over everything in the slot that this process works in, between
 * any two calls and in the middle of them. Contents may be wrong; no call crashes, calls what it
 * should not, or loses count. The peer has a mapping of its own, as another process has.
 */
#include "handoff/duo.h"
#include "kit/boxes.h"
#include "kit/dlpack.h"
#include "kit/tensors.h"
#include "kit/trees.h"
#include "pool/shared.h"
#include "region/region.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT_BYTES (8 * MIB)
#define SLOTS 2

/* ---- the peer ---- */

struct peer {
    struct shared *shared;
    char *slots; /* all of them, mapped once more */
};

static struct peer peer_of(ebb_pool *pool) {
    struct peer peer = {.shared = pool->shared};
    peer.slots = mmap(NULL, SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                      ebb_pool_descriptor(pool), (off_t)peer.shared->control_bytes);
    assert_true(peer.slots != MAP_FAILED);
    return peer;
}

/* What is written everywhere; some of it looks like an object of the victim. */
struct weapon {
    uint64_t words[8];
    unsigned count;
};

static struct weapon choose_weapon(struct dice *dice, struct region *victim, const void *head) {
    struct weapon weapon = {.count = 1};
    switch (dice_roll(dice, 6)) {
    case 0: weapon.words[0] = 0; break;
    case 1: weapon.words[0] = UINT64_MAX; break;
    case 2: weapon.words[0] = 0x4141414141414141; break;
    case 3: weapon.words[0] = (uintptr_t)victim; break;
    case 4: weapon.words[0] = head ? (uintptr_t)head : (uintptr_t)&abort; break;
    default:
        weapon.count = 8;
        memcpy(weapon.words,
               &(struct ebb_object){.type = &ebb_type_tensor,
                                    .next = (void *)(uintptr_t)0x4141,
                                    .prev = (void *)(uintptr_t)0x4142,
                                    .state = OBJECT_LIVE | OBJECT_ALONE | victim->owner},
               sizeof weapon.words);
    }
    return weapon;
}

static void write_over(const struct peer *peer, const struct weapon *weapon) {
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint64_t backed = atomic_load(&peer->shared->control->records[i].backed);
        uint64_t *words = (uint64_t *)(void *)(peer->slots + i * SLOT_BYTES);
        for (size_t at = 0; at < backed / sizeof *words; at++)
            words[at] = weapon->words[at % weapon->count];
    }
}

/* ---- the writer ---- */

#define BLOCKS 12
#define THINGS 12
#define CLEANUPS 4
#define EXPORTS 4

struct writer {
    struct dice dice;
    struct peer peer;
    ebb_pool *pool;
    ebb_region host, root, child;
    ebb_mark mark;
    bool marked;
    void *blocks[BLOCKS];
    ebb_region block_regions[BLOCKS];
    void *things[THINGS]; /* objects, if they are still */
    struct ebb_cleanup cleanups[CLEANUPS];
    DLManagedTensor *exports[EXPORTS];
    unsigned called;
};

static int count_call(void *data) {
    struct writer *writer = data;
    writer->called++;
    return 0;
}

static ebb_region any_region(struct writer *writer) {
    if (!ebb_region_is_open(writer->child))
        writer->child = OPEN(.name = "child", .parent = writer->root);
    return dice_roll(&writer->dice, 3) ? writer->root : writer->child;
}

static void **any_thing(struct writer *writer) {
    return &writer->things[dice_roll(&writer->dice, THINGS)];
}

static struct ebb_tensor *any_tensor(struct writer *writer) {
    void *thing = *any_thing(writer);
    return thing ? ebb_object_as(thing, &ebb_type_tensor) : NULL;
}

static void make_block(struct writer *writer) {
    unsigned at = (unsigned)dice_roll(&writer->dice, BLOCKS);
    ebb_region region = any_region(writer);
    size_t bytes = dice_roll(&writer->dice, 3) ? dice_roll(&writer->dice, 900)
                                               : dice_roll(&writer->dice, 20000);
    if (writer->blocks[at]) {
        (void)ebb_region_release(writer->block_regions[at], writer->blocks[at]);
        writer->blocks[at] = NULL;
        return;
    }
    writer->blocks[at] = ebb_region_alloc(region, bytes, 16);
    writer->block_regions[at] = region;
    if (writer->blocks[at])
        memset(writer->blocks[at], 'w', bytes);
}

static void release_far(struct writer *writer) {
    unsigned at = (unsigned)dice_roll(&writer->dice, BLOCKS);
    if (writer->blocks[at])
        (void)ebb_region_release_remote(writer->block_regions[at], writer->blocks[at]);
    writer->blocks[at] = NULL;
}

static void make_tensor(struct writer *writer) {
    static const int64_t sizes[] = {0, 3, 40, 250, 3000, 40000};
    size_t bytes = (size_t)sizes[dice_roll(&writer->dice, 6)];
    *any_thing(writer) = tensor_of_bytes(any_region(writer), bytes);
}

static void make_tree(struct writer *writer) {
    uint64_t structure = dice_roll(&writer->dice, 50) + 1;
    *any_thing(writer) = tree_make(any_region(writer), structure, 7, TREE_ANY);
}

/* Its pointers and bytes are blocks of the user, in the slot until they are composed. */
static void make_box(struct writer *writer) {
    ebb_region region = any_region(writer);
    struct box *box = box_in(region);
    box->part_count = 3;
    box->parts = ebb_region_alloc_zeroed(region, 3 * sizeof *box->parts, 8);
    assert_non_null(box->parts);
    for (unsigned i = 0; i < 2; i++)
        box->parts[i] = &floats_in(region, 5 + (int64_t)dice_roll(&writer->dice, 400))->object;
    box->byte_count = 100;
    box->bytes = ebb_region_alloc(region, 100, 8);
    if (dice_roll(&writer->dice, 3) == 0)
        write_over(&writer->peer, &(struct weapon){.words = {(uintptr_t)box}, .count = 1});
    (void)ebb_object_compose(box);
    *any_thing(writer) = box;
}

static void see(struct writer *writer) {
    struct ebb_tensor *tensor = any_tensor(writer);
    int64_t count = tensor ? ebb_tensor_count(tensor) / 2 : 0, stride = 1;
    if (tensor)
        *any_thing(writer) = ebb_tensor_view(any_region(writer), tensor, 1, &count, &stride, 0);
}

static void end_thing(struct writer *writer) {
    void **thing = any_thing(writer);
    if (*thing)
        (void)ebb_object_end(*thing);
    *thing = NULL;
}

static void add_cleanup(struct writer *writer) {
    struct ebb_cleanup *node = &writer->cleanups[dice_roll(&writer->dice, CLEANUPS)];
    struct ebb_cleanup *exposed = ebb_region_alloc_zeroed(writer->root, sizeof *exposed, 8);
    if (exposed) {
        exposed->run = count_call;
        assert_refused(ebb_cleanup_add(writer->root, exposed), EBB_E_KIND);
        write_over(&writer->peer, &(struct weapon){.words = {UINT64_MAX}, .count = 1});
        assert_int_equal(ebb_cleanup_remove(exposed), 0);
        assert_int_equal(ebb_cleanup_run(exposed), 0);
        assert_int_equal(ebb_region_release(writer->root, exposed), 0);
    }
    (void)ebb_cleanup_remove(node);
    *node = (struct ebb_cleanup){.run = count_call, .data = writer};
    assert_int_equal(ebb_cleanup_add(any_region(writer), node), 0);
}

static void promote_thing(struct writer *writer) {
    void **thing = any_thing(writer);
    (void)any_region(writer);
    if (*thing && ebb_objects_promote(writer->child, writer->root, thing, 1, NULL, NULL) != 0)
        assert_true(ebb_last_error() != EBB_E_STALE);
}

static void promote_block(struct writer *writer) {
    unsigned at = (unsigned)dice_roll(&writer->dice, BLOCKS);
    struct ebb_survivor survivor = {.block = writer->blocks[at],
                                    .mode = (int)dice_roll(&writer->dice, 3)};
    (void)any_region(writer);
    if (!survivor.block || ebb_promote(writer->child, writer->root, &survivor, 1, NULL) != 0)
        return;
    writer->blocks[at] = survivor.block;
    writer->block_regions[at] = writer->root;
}

static void move_thing(struct writer *writer) {
    void **thing = any_thing(writer);
    ebb_region to = dice_roll(&writer->dice, 2) ? writer->host : any_region(writer);
    void *moved = *thing ? ebb_object_move(*thing, to) : NULL;
    *thing = moved ? moved : *thing;
}

static void lend_thing(struct writer *writer) {
    void *thing = *any_thing(writer);
    if (!thing || ebb_object_return(thing) == 0)
        return;
    if (dice_roll(&writer->dice, 2))
        (void)ebb_object_borrow(thing, dice_roll(&writer->dice, 2) ? writer->host
                                                                  : any_region(writer));
    else
        (void)ebb_object_attach(thing, any_region(writer));
}

static void collate(struct writer *writer) {
    ebb_region region = any_region(writer);
    uint64_t structure = dice_roll(&writer->dice, 50) + 1;
    void *samples[3];
    for (unsigned i = 0; i < 3; i++)
        samples[i] = tree_make(dice_roll(&writer->dice, 2) ? writer->host : region, structure, i,
                               TREE_COLLATABLE);
    *any_thing(writer) = ebb_batch_collate(region, samples, 3, NULL, NULL);
    for (unsigned i = 0; i < 3; i++)
        (void)ebb_object_end(samples[i]);
}

static void sequence(struct writer *writer) {
    ebb_region region = any_region(writer);
    struct ebb_tensor *parts[3], *back[3];
    for (unsigned i = 0; i < 3; i++)
        parts[i] = floats_in(region, 1 + (int64_t)dice_roll(&writer->dice, 300));
    struct ebb_packed *packed = ebb_sequences_pack(region, parts, 3, NULL);
    struct weapon weapon = {.words = {0x7fffffff}, .count = 1};
    if (packed)
        write_over(&writer->peer, &weapon);
    if (packed && ebb_packed_unpack(region, packed, back, 3) == 0)
        for (unsigned i = 0; i < 3; i++)
            (void)ebb_object_end(back[i]);
    struct ebb_ragged *ragged = packed ? ebb_packed_join(region, packed) : NULL;
    write_over(&writer->peer, &weapon);
    struct ebb_packed *again = ragged ? ebb_ragged_pack(region, ragged, NULL) : NULL;
    if (again)
        (void)ebb_object_end(again);
    *any_thing(writer) = ragged;
    *any_thing(writer) = packed;
    for (unsigned i = 0; i < 3; i++)
        (void)ebb_object_end(parts[i]);
}

/* What is newer than a mark has gone. */
static void mark_or_rewind(struct writer *writer) {
    if (!writer->marked) {
        writer->mark = ebb_region_mark(writer->root);
        writer->marked = true;
        return;
    }
    if (ebb_region_rewind(writer->root, writer->mark) != 0)
        return;
    writer->marked = false;
    memset(writer->blocks, 0, sizeof writer->blocks);
}

static void export_thing(struct writer *writer) {
    DLManagedTensor **slot = &writer->exports[dice_roll(&writer->dice, EXPORTS)];
    const struct ebb_tensor *tensor = any_tensor(writer);
    if (*slot)
        give_back(*slot);
    *slot = tensor ? ebb_tensor_export(tensor, EBB_EXCHANGE_IF_NEEDED) : NULL;
}

static void close_child(struct writer *writer) {
    if (ebb_region_is_open(writer->child))
        assert_int_equal(ebb_region_close(writer->child), 0);
}

static void look(struct writer *writer) {
    if (writer->things[0])
        (void)ebb_region_of(writer->things[0]);
    (void)ebb_object_end(writer->blocks[0]); /* whatever it looks like, it is a block */
    ebb_check_pool(writer->pool);
    ebb_check_pool(ebb_pool_default());
}

static void (*const steps[])(struct writer *writer) = {
    make_block,  make_block,  release_far, make_tensor,    make_tensor,   make_tree,
    make_box,    see,         end_thing,   add_cleanup,    promote_thing, promote_block,
    move_thing,  lend_thing,  collate,     sequence,       mark_or_rewind, export_thing,
    look,        close_child};

#define STEPS (sizeof steps / sizeof *steps)

static void step(struct writer *writer, bool attacked) {
    steps[dice_roll(&writer->dice, STEPS)](writer);
    if (!attacked)
        return;
    struct region *root = (struct region *)writer->root.lane;
    struct weapon weapon = choose_weapon(&writer->dice, root, *any_thing(writer));
    write_over(&writer->peer, &weapon);
}

static void end_exports(struct writer *writer) {
    for (unsigned i = 0; i < EXPORTS; i++)
        if (writer->exports[i])
            give_back(writer->exports[i]);
    memset(writer->exports, 0, sizeof writer->exports);
}

/* Sends an object, or the region, or closes it; what arrives may be anything, or nothing. */
static void finish(struct writer *writer) {
    struct ebb_parcel parcel;
    void *thing = *any_thing(writer);
    if (dice_roll(&writer->dice, 2))
        end_exports(writer);
    int result = thing ? ebb_region_send_object(writer->root, thing, &parcel)
                       : ebb_region_send(writer->root, NULL, &parcel);
    write_over(&writer->peer, &(struct weapon){.words = {UINT64_MAX, 1}, .count = 2});
    if (result == 0) {
        ebb_lease *lease = ebb_parcel_open(writer->pool, &parcel);
        assert_non_null(lease);
        void *made = ebb_lease_object(lease, writer->host);
        assert_true(!made || is_object(made));
        ebb_lease_drop(lease);
    } else if (ebb_region_is_open(writer->root)) {
        assert_int_equal(ebb_region_close(writer->root), 0);
    }
    end_exports(writer);
    assert_int_equal(ebb_region_close(writer->host), 0);
}

static void begin(struct writer *writer, ebb_pool *pool, uint64_t seed) {
    *writer = (struct writer){.dice = {seed}, .pool = pool, .peer = peer_of(pool)};
    writer->host = OPEN(.name = "host");
    writer->root = OPEN(.name = "root", .pool = pool);
    assert_true(ebb_region_is_open(writer->root));
}

static struct ebb_object_counts process_counts(void) {
    struct ebb_object_counts counts;
    assert_int_equal(ebb_process_read_objects(EBB_OBJECT_ALL, &counts), 0);
    return counts;
}

/* Nothing of the writer is left, in the shared pool and in the default one. */
static void end(struct writer *writer, uint64_t live, const struct ebb_pool_stats *before) {
    struct ebb_pool_stats after = pool_stats_of(ebb_pool_default());
    struct ebb_object_counts counts = process_counts();
    assert_int_equal(counts.live, live);
    assert_int_equal(counts.created_outside + counts.created_inside,
                     counts.ended_outside + counts.ended_inside + counts.live);
    assert_int_equal(after.open_regions, before->open_regions);
    assert_int_equal(after.blocks.current, before->blocks.current);
    assert_int_equal(after.used.current, before->used.current);
    munmap(writer->peer.slots, SLOTS * SLOT_BYTES);
    pool_end(writer->pool);
}

/* ---- tests ---- */

static void write_for_long(uint64_t seed, unsigned turns, bool attacked) {
    static struct writer writer;
    struct ebb_pool_stats before = pool_stats_of(ebb_pool_default());
    uint64_t live = process_counts().live;
    ebb_pool *pool = shared_pool(SLOTS, SLOT_BYTES);
    begin(&writer, pool, seed);
    for (unsigned turn = 0; turn < turns; turn++)
        step(&writer, attacked);
    finish(&writer);
    end(&writer, live, &before);
}

static void a_writer_survives_what_is_written_between_its_calls(void **state) {
    for (uint64_t seed = 1; seed <= 60; seed++)
        write_for_long(seed, 120, true);
}

/* The same from another process, at any moment. */
static void a_writer_survives_what_is_written_in_the_middle_of_calls(void **state) {
    for (uint64_t seed = 101; seed <= 112; seed++) {
        static struct writer writer;
        struct ebb_pool_stats before = pool_stats_of(ebb_pool_default());
        uint64_t live = process_counts().live;
        begin(&writer, shared_pool(SLOTS, SLOT_BYTES), seed);
        struct region *root = (struct region *)writer.root.lane;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            for (struct dice wild = {seed};;) {
                struct weapon weapon = choose_weapon(&wild, root, root->objects);
                write_over(&writer.peer, &weapon);
            }
        for (unsigned turn = 0; turn < 150; turn++)
            step(&writer, false);
        finish(&writer);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        end(&writer, live, &before);
    }
}

/* The peer knows everything: what the head of an object of this region looks like. */
static void what_looks_like_an_object_is_a_block(void **state) {
    static struct writer writer;
    struct ebb_pool_stats before = pool_stats_of(ebb_pool_default());
    uint64_t live = process_counts().live;
    begin(&writer, shared_pool(SLOTS, SLOT_BYTES), 1);
    struct ebb_tensor *real = floats_in(writer.root, 30), *forged, *list[2] = {real, NULL};
    struct box *box = box_in(writer.root);
    for (unsigned alone = 0; alone < 2; alone++) {
        list[1] = forged = ebb_region_alloc(writer.root, sizeof *forged, 64);
        *forged = *real;
        forged->object.state |= alone ? OBJECT_ALONE : 0;
        forged->object.next = forged->object.prev = (void *)(uintptr_t)0x4141414141414140;
        forged->shape = forged->strides = (void *)forged->object.next;
        assert_refused(ebb_object_end(forged), EBB_E_TYPE);
        assert_null(ebb_object_as(forged, &ebb_type_tensor));
        assert_false(ebb_region_owns(writer.root, forged));
        assert_no_block(ebb_sequences_pack(writer.root, list, 2, NULL), EBB_E_TYPE);
        assert_no_block(ebb_tensor_export(forged, EBB_EXCHANGE_COPY), EBB_E_TYPE);
        assert_refused(ebb_object_attach(forged, writer.root), EBB_E_TYPE);
        box->left = &forged->object;
        assert_refused(ebb_object_compose(box), EBB_E_TYPE);
        assert_int_equal(ebb_region_release(writer.root, forged), 0);
    }
    box->left = NULL;
    assert_refused(ebb_region_send(writer.root, real, &(struct ebb_parcel){0}), EBB_E_FOREIGN);
    finish(&writer);
    end(&writer, live, &before);
}

/* Pointers to members leave the slot when they are composed, or nothing happens. */
static void members_are_kept_where_nobody_loses_them(void **state) {
    static struct writer writer;
    struct ebb_pool_stats before = pool_stats_of(ebb_pool_default());
    uint64_t live = process_counts().live;
    begin(&writer, shared_pool(SLOTS, SLOT_BYTES), 1);
    struct box *box = box_in(writer.root);
    struct ebb_object **exposed = ebb_region_alloc_zeroed(writer.root, 3 * sizeof *exposed, 8);
    box->parts = exposed;
    box->part_count = 3;
    exposed[0] = &floats_in(writer.root, 10)->object;
    exposed[1] = &box->object;
    struct counted counted = counted_of(writer.root);
    assert_refused(ebb_object_compose(box), EBB_E_CYCLE);
    assert_ptr_equal(box->parts, exposed);
    assert_nothing_changed(writer.root, &counted);
    exposed[1] = &floats_in(writer.root, 2000)->object;
    assert_int_equal(ebb_object_compose(box), 0);
    assert_int_equal(ebb_region_block_bytes(writer.root, exposed), 0); /* released */
    write_over(&writer.peer, &(struct weapon){.words = {(uintptr_t)box}, .count = 1});
    assert_int_equal(live_in(writer.root), 3);
    assert_int_equal(ebb_object_end(box), 0);
    assert_int_equal(live_in(writer.root), 0);
    assert_int_equal(stats_of(writer.root).blocks.current, 0);
    assert_int_equal(ebb_region_close_strict(writer.root), 0);
    writer.root = OPEN(.pool = writer.pool);
    finish(&writer);
    end(&writer, live, &before);
}

/* Blocks and elements of a step may follow a plan there, too; heads do not. */
static void steps_in_shared_memory_follow_plans(void **state) {
    static struct writer writer;
    struct ebb_pool_stats before = pool_stats_of(ebb_pool_default());
    uint64_t live = process_counts().live;
    begin(&writer, shared_pool(SLOTS, SLOT_BYTES), 5);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "site"));
    assert_non_null(site);
    for (unsigned i = 0; i < 30; i++) {
        ebb_step step = ebb_step_begin_under(site, writer.root, 0);
        void *block = block_of(step.region, 30000, 64), *gone = block_of(step.region, 5000, 64);
        void *tensor = tensor_of_bytes(step.region, 20000);
        struct ebb_tensor *view = floats_of(step.region, floats_in(step.region, 100), 3, 10);
        assert_true(pattern_holds(block, 30000, 30000));
        struct weapon weapon = choose_weapon(&writer.dice, (struct region *)step.region.lane, view);
        write_over(&writer.peer, &weapon);
        assert_int_equal(ebb_region_release_remote(step.region, gone), 0);
        write_over(&writer.peer, &weapon);
        assert_int_equal(ebb_objects_promote(step.region, writer.root, &tensor, 1, NULL, NULL), 0);
        write_over(&writer.peer, &weapon);
        assert_int_equal(ebb_object_end(view), 0);
        assert_int_equal(ebb_region_release(step.region, block), 0);
        ebb_check_pool(writer.pool);
        assert_int_equal(ebb_object_end(tensor), 0);
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_true(stats.planned_steps > 10);
    assert_int_equal(ebb_site_destroy(site), 0);
    finish(&writer);
    end(&writer, live, &before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_survives_what_is_written_between_its_calls),
        cmocka_unit_test(a_writer_survives_what_is_written_in_the_middle_of_calls),
        cmocka_unit_test(what_looks_like_an_object_is_a_block),
        cmocka_unit_test(members_are_kept_where_nobody_loses_them),
        cmocka_unit_test(steps_in_shared_memory_follow_plans),
    };
    return cmocka_run_group_tests(tests, boxes_prepare, NULL);
}
