// SPDX-License-Identifier: Apache-2.0
/*
 * hostile.c - a peer that writes anything into the control part of the file. What it does may make
 * slots unusable and contents wrong; no call crashes, hangs, or gives out what is not in the file.
 */
#include "base/os.h"
#include "base/size.h"
#include "handoff/duo.h"
#include "kit/dlpack.h"
#include "kit/trees.h"
#include "pool/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT_BYTES (2 * MIB)
#define SLOTS 4

/* ---- what hurts most ---- */

static uint64_t nasty(struct dice *dice) {
    switch (dice_roll(dice, 6)) {
    case 0: return 0;
    case 1: return UINT64_MAX;
    case 2: return dice_roll(dice, 1 << 24) * PAGE;
    case 3: return (uint64_t)dice_roll(dice, 8) << 56 | dice_roll(dice, 1 << 20) << 22;
    case 4: return SLOT_BYTES + dice_roll(dice, 3) - 1;
    default: return dice_roll(dice, UINT64_MAX);
    }
}

/* One wild write. */
static void damage(struct shared *shared, struct dice *dice) {
    struct shared_control *control = shared->control;
    struct shared_record *record = &control->records[dice_roll(dice, shared->slot_count)];
    uint64_t word = atomic_load(&record->word);
    switch (dice_roll(dice, 9)) {
    case 0: atomic_store(&record->word, nasty(dice)); break;
    case 1: /* only the state, or only the owner */
        atomic_store(&record->word, (word & UINT64_MAX >> 8) | dice_roll(dice, 6) << 56);
        break;
    case 2: atomic_store(&record->word, (word & ~(uint64_t)UINT32_MAX) | shared->me); break;
    case 3: atomic_store(&record->backed, nasty(dice)); break;
    case 4: atomic_store(&record->sent, nasty(dice)); break;
    case 5: atomic_store(&record->last, (uint32_t)nasty(dice)); break;
    case 6: atomic_store(&record->trims, (uint32_t)nasty(dice)); break;
    case 7:
        atomic_store(&control->incarnations[dice_roll(dice, 4)], (uint32_t)nasty(dice));
        break;
    default:
        memset(&control->head, (int)dice_roll(dice, 256), sizeof control->head);
        atomic_store(&control->frees, (uint32_t)nasty(dice));
        atomic_store(&control->waiting, (uint32_t)nasty(dice));
    }
}

/* ---- an honest process in the middle of it ---- */

#define HELD_MOST 6

struct honest {
    ebb_pool *pool;
    ebb_lease *leases[HELD_MOST];
    ebb_region regions[HELD_MOST];
    struct ebb_parcel parcels[HELD_MOST];
    bool is_parcel[HELD_MOST];
    unsigned opened, refused;
};

static void open_one(struct honest *honest, unsigned at) {
    if (ebb_region_is_open(honest->regions[at]))
        return;
    honest->regions[at] = OPEN(.pool = honest->pool);
    honest->opened += ebb_region_is_open(honest->regions[at]);
    honest->refused += !ebb_region_is_open(honest->regions[at]);
}

static void use_one(struct honest *honest, unsigned at, struct dice *dice) {
    size_t bytes = dice_roll(dice, SLOT_BYTES + SLOT_BYTES / 4);
    if (!ebb_region_is_open(honest->regions[at]))
        return;
    char *block = ebb_region_alloc(honest->regions[at], bytes, 64);
    if (block)
        memset(block, 'x', bytes);
}

static void send_one(struct honest *honest, unsigned at) {
    if (!ebb_region_is_open(honest->regions[at]))
        return;
    if (ebb_region_send(honest->regions[at], NULL, &honest->parcels[at]) == 0)
        honest->is_parcel[at] = true;
    else
        assert_true(ebb_last_error() == EBB_E_STALE);
}

/* Everything that the lease says can be read and written. */
static void receive_one(struct honest *honest, unsigned at, struct dice *dice) {
    struct ebb_parcel parcel = honest->parcels[at];
    if (dice_roll(dice, 4) == 0)
        parcel.generation += (uint32_t)dice_roll(dice, 3);
    if (dice_roll(dice, 8) == 0)
        parcel.root = nasty(dice);
    if (honest->leases[at] || !honest->is_parcel[at])
        return;
    honest->leases[at] = ebb_parcel_open(honest->pool, &parcel);
    if (!honest->leases[at])
        return;
    size_t bytes = ebb_lease_bytes(honest->leases[at]), root_bytes;
    assert_true(bytes <= SLOT_BYTES);
    char *start = ebb_lease_at(honest->leases[at], 0, bytes);
    for (size_t i = 0; i < bytes; i += PAGE)
        start[i]++;
    char *root = ebb_lease_root(honest->leases[at], &root_bytes);
    assert_true(!root || (root >= start && root + root_bytes <= start + bytes));
}

static void end_one(struct honest *honest, unsigned at, struct dice *dice) {
    if (dice_roll(dice, 2)) {
        ebb_lease_drop(honest->leases[at]);
        honest->leases[at] = NULL;
    } else if (ebb_region_is_open(honest->regions[at])) {
        assert_int_equal(ebb_region_close(honest->regions[at]), 0);
    }
}

static void act(struct honest *honest, struct dice *dice) {
    unsigned at = (unsigned)dice_roll(dice, HELD_MOST);
    switch (dice_roll(dice, 8)) {
    case 0: case 1: open_one(honest, at); break;
    case 2: use_one(honest, at, dice); break;
    case 3: send_one(honest, at); break;
    case 4: receive_one(honest, at, dice); break;
    case 5: case 6: end_one(honest, at, dice); break;
    default:
        if (dice_roll(dice, 2))
            ebb_pool_reclaim(honest->pool, dice_roll(dice, 2));
        else
            ebb_pool_trim(honest->pool, dice_roll(dice, SLOT_BYTES));
    }
}

static void end_all(struct honest *honest) {
    for (unsigned at = 0; at < HELD_MOST; at++) {
        ebb_lease_drop(honest->leases[at]);
        if (ebb_region_is_open(honest->regions[at]))
            assert_int_equal(ebb_region_close(honest->regions[at]), 0);
    }
}

/* ---- tests ---- */

static void damage_between_calls_is_survived(void **state) {
    unsigned opened = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct honest honest = {.pool = shared_pool(SLOTS, SLOT_BYTES)};
        struct dice dice = {seed};
        for (unsigned turn = 0; turn < 400; turn++) {
            if (dice_roll(&dice, 10) == 0)
                damage(honest.pool->shared, &dice);
            act(&honest, &dice);
        }
        end_all(&honest);
        opened += honest.opened;
        ebb_check_pool(honest.pool);
        assert_int_equal(ebb_pool_destroy(honest.pool), 0);
    }
    assert_true(opened > 500);
}

/* The same from another process, at any moment. */
static void damage_in_the_middle_of_calls_is_survived(void **state) {
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct honest honest = {.pool = shared_pool(SLOTS, SLOT_BYTES)};
        struct dice dice = {seed};
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            for (struct dice wild = {seed + 77};;)
                damage(honest.pool->shared, &wild);
        for (unsigned turn = 0; turn < 3000; turn++)
            act(&honest, &dice);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        end_all(&honest);
        assert_int_equal(ebb_pool_destroy(honest.pool), 0);
    }
}

/* Once the wild writes stop, the pool heals: what nobody has becomes free. */
static void a_damaged_pool_heals(void **state) {
    for (uint64_t seed = 1; seed <= 40; seed++) {
        ebb_pool *pool = shared_pool(SLOTS, SLOT_BYTES);
        struct dice dice = {seed};
        struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
        for (unsigned i = 0; i < 20; i++)
            damage(pool->shared, &dice);
        ebb_pool_reclaim(pool, true);
        ebb_parcel_discard(pool, &parcel);
        ebb_region regions[SLOTS];
        unsigned counts[4], got = 0;
        count_states(pool, counts);
        for (unsigned i = 0; i < SLOTS; i++) {
            regions[i] = OPEN(.pool = pool);
            got += ebb_region_is_open(regions[i]);
        }
        assert_true(got + counts[SLOT_SENT] >= SLOTS); /* sent ones may be this process's */
        for (unsigned i = 0; i < SLOTS; i++)
            if (ebb_region_is_open(regions[i]))
                ebb_region_close(regions[i]);
        assert_int_equal(ebb_pool_destroy(pool), 0);
    }
}

/* Who is alive and was made to look dead, looks alive again once it does something. */
static void a_sign_of_life_is_mended(void **state) {
    ebb_pool *here = shared_pool(SLOTS, SLOT_BYTES);
    ebb_pool *there = ebb_pool_attach(ebb_pool_descriptor(here), NULL);
    struct ebb_parcel parcel = send_pattern(here, 5000, 1);
    ebb_region first = OPEN(.pool = there);
    atomic_fetch_add(&here->shared->control->incarnations[0], 1);
    ebb_lease *lease = ebb_parcel_open(here, &parcel);
    assert_int_equal(ebb_pool_reclaim(there, true), 0);
    assert_true(lease_holds(lease, 5000, 1));
    assert_states(here, 1, 0, 1);
    ebb_lease_drop(lease);
    assert_int_equal(ebb_region_close(first), 0);
    assert_int_equal(ebb_pool_destroy(there), 0);
    pool_end(here);
}

static void forged_parcels_open_nothing(void **state) {
    ebb_pool *pool = shared_pool(SLOTS, SLOT_BYTES), *other = shared_pool(SLOTS, SLOT_BYTES);
    struct ebb_parcel good = send_pattern(pool, 5000, 1), forged;
    const struct {
        size_t offset;
        uint64_t value;
        unsigned bytes;
        int code;
    } forgeries[] = {
        {offsetof(struct ebb_parcel, pool), good.pool + 1, 8, EBB_E_PARCEL},
        {offsetof(struct ebb_parcel, slot), SLOTS, 4, EBB_E_PARCEL},
        {offsetof(struct ebb_parcel, slot), UINT32_MAX, 4, EBB_E_PARCEL},
        {offsetof(struct ebb_parcel, slot), (good.slot + 1) % SLOTS, 4, EBB_E_STALE},
        {offsetof(struct ebb_parcel, generation), good.generation + 1, 4, EBB_E_STALE},
        {offsetof(struct ebb_parcel, generation), good.generation - 1, 4, EBB_E_STALE},
        {offsetof(struct ebb_parcel, generation), good.generation | 1u << 24, 4, EBB_E_PARCEL},
        {offsetof(struct ebb_parcel, root), SLOT_BYTES, 8, EBB_E_PARCEL},
        {offsetof(struct ebb_parcel, root), UINT64_MAX - 1, 8, EBB_E_PARCEL},
        {offsetof(struct ebb_parcel, root), MIB, 8, EBB_E_PARCEL}, /* in the slot, not sent */
        {offsetof(struct ebb_parcel, bytes), UINT64_MAX, 8, EBB_E_PARCEL},
        {offsetof(struct ebb_parcel, bytes), UINT64_MAX - good.root, 8, EBB_E_PARCEL},
        {offsetof(struct ebb_parcel, bytes), SLOT_BYTES + 1, 8, EBB_E_PARCEL},
    };
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        forged = good;
        memcpy((char *)&forged + forgeries[i].offset, &forgeries[i].value, forgeries[i].bytes);
        ebb_lease *none = ebb_parcel_open(pool, &forged);
        if (none)
            print_error("%zu: opened\n", i);
        assert_null(none);
        if (ebb_last_error() != forgeries[i].code)
            print_error("%zu: %s\n", i, ebb_last_error_text());
        assert_int_equal(ebb_last_error(), forgeries[i].code);
        assert_int_equal(ebb_parcel_discard(pool, &forged) == 0, forgeries[i].offset ==
                         offsetof(struct ebb_parcel, root) && forgeries[i].value == MIB);
        if (forgeries[i].value == MIB) /* thrown away without a look inside */
            good = send_pattern(pool, 5000, 1);
    }
    assert_null(ebb_parcel_open(other, &good));
    assert_int_equal(ebb_last_error(), EBB_E_PARCEL);
    assert_null(ebb_parcel_open(pool, NULL));
    assert_int_equal(ebb_last_error(), EBB_E_ARGUMENT);
    assert_null(ebb_parcel_open(NULL, &good));
    assert_null(ebb_parcel_open(ebb_pool_default(), &good));
    assert_int_equal(ebb_last_error(), EBB_E_KIND);
    ebb_lease *lease = ebb_parcel_open(pool, &good);
    assert_non_null(lease);
    assert_null(ebb_parcel_open(pool, &good));
    assert_int_equal(ebb_last_error(), EBB_E_STALE);
    ebb_lease_drop(lease);
    assert_null(ebb_parcel_open(pool, &good));
    pool_end(pool);
    pool_end(other);
}

/* A file like that of a pool, with seals of its own. */
static int forged_file(int seals) {
    struct shared_head head = {SHARED_MAGIC, SHARED_LAYOUT, 1, 2 * MIB, 1};
    size_t control = size_align(sizeof(struct shared_control) + sizeof(struct shared_record), PAGE);
    int fd = memfd_create("forged", MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, (off_t)(control + head.slot_bytes)), 0);
    assert_int_equal(pwrite(fd, &head, sizeof head, 0), sizeof head);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static size_t blocks_of(int fd) {
    struct stat stat;
    assert_int_equal(fstat(fd, &stat), 0);
    return (size_t)stat.st_blocks;
}

static void assert_not_attached(int seals) {
    int fd = forged_file(seals);
    size_t blocks = blocks_of(fd);
    assert_no_block(ebb_pool_attach(fd, NULL), EBB_E_SHARED);
    assert_int_equal(blocks_of(fd), blocks); /* nothing was touched */
    close(fd);
}

/* A peer could take pages, or the whole file, from under who works there: or nobody could write. */
static void files_with_other_seals_are_not_attached(void **state) {
    const int sealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, no_new_writer = 0x10;
    assert_not_attached(0);
    assert_not_attached(sealed & ~F_SEAL_SHRINK);
    assert_not_attached(sealed & ~F_SEAL_GROW);
    assert_not_attached(sealed & ~F_SEAL_SEAL);
    assert_not_attached(sealed | no_new_writer);
    int fd = forged_file(sealed); /* which shows that nothing else was wrong */
    ebb_pool *pool = ebb_pool_attach(fd, NULL);
    assert_non_null(pool);
    close(fd);
    pool_end(pool);
}

/* Of the right file, but to read only. */
static void a_descriptor_to_read_is_not_attached(void) {
    char path[40];
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ebb_pool_descriptor(pool));
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_no_block(ebb_pool_attach(fd, NULL), EBB_E_SHARED);
    close(fd);
    pool_end(pool);
}

static void other_files_are_not_attached(void **state) {
    int fd = memfd_create("plain", 0), ends[2], sealed;
    assert_int_equal(pipe(ends), 0);
    const int wrong[] = {-1, fd, ends[0], 9999};
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    assert_int_equal(os.file_make("other", 1 << 20, &sealed), 0);
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_no_block(ebb_pool_attach(wrong[i], NULL), EBB_E_SHARED);
    assert_no_block(ebb_pool_attach(sealed, NULL), EBB_E_SHARED);
    struct shared_head *head = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, sealed, 0);
    struct shared_head good = {SHARED_MAGIC, SHARED_LAYOUT, 1, 2 * MIB, 1}, forged[6];
    for (unsigned i = 0; i < 6; i++)
        forged[i] = good;
    forged[0].magic++;
    forged[1].layout++;
    forged[2].slots = 0;
    forged[3].slots = UINT32_MAX;
    forged[4].slot_bytes = UINT64_MAX - 2 * MIB + 1;
    forged[5].slot_bytes = 12345;
    for (unsigned i = 0; i < 6; i++) {
        *head = forged[i];
        assert_no_block(ebb_pool_attach(sealed, NULL), EBB_E_SHARED);
    }
    munmap(head, PAGE);
    os.file_close(sealed);
    close(fd);
    a_descriptor_to_read_is_not_attached();
    close(ends[0]);
    close(ends[1]);
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    fd = ebb_pool_descriptor(pool);
    assert_no_block(ebb_pool_attach(fd, EBB_POOL_OPTIONS(.slots = 3)), EBB_E_ARGUMENT);
    assert_no_block(ebb_pool_attach(fd, EBB_POOL_OPTIONS(.kind = EBB_KIND_HUGE)), EBB_E_KIND);
    assert_no_block(ebb_pool_attach(fd, EBB_POOL_OPTIONS(.device = 5)), EBB_E_ARGUMENT);
    assert_text_names("device 5");
    assert_no_block(ebb_pool_attach(fd, EBB_POOL_OPTIONS(.kind = EBB_KIND_SHARED | EBB_KIND_PINNED,
                                                         .device = -7)), EBB_E_ARGUMENT);
    assert_no_block(ebb_pool_attach(fd, &(struct ebb_pool_options){.size = 3}), EBB_E_ARGUMENT);
    assert_int_equal(ebb_pool_descriptor(NULL), -1);
    assert_int_equal(ebb_pool_descriptor(ebb_pool_default()), -1);
    assert_int_equal(ebb_last_error(), EBB_E_KIND);
    assert_int_equal(ebb_pool_reclaim(ebb_pool_default(), true), 0);
    assert_int_equal(ebb_pool_reclaim(NULL, true), 0);
    assert_refused(ebb_pool_set_release_check(NULL, NULL, NULL), EBB_E_KIND);
    pool_end(pool);
    assert_no_block(POOL(.kind = EBB_KIND_SHARED, .slots = 5000), EBB_E_SIZE);
    assert_no_block(POOL(.kind = EBB_KIND_SHARED, .slot_bytes = SIZE_MAX), EBB_E_SIZE);
    assert_text_names("1 slots of 18446744073709551615 bytes"); /* as asked, not rounded up */
    assert_no_block(POOL(.kind = EBB_KIND_SHARED, .slot_bytes = SIZE_MAX / 256), EBB_E_SIZE);
    assert_no_block(POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = (size_t)2 << 40),
                    EBB_E_SIZE); /* more than all addresses of ebb */
    assert_no_block(POOL(.kind = EBB_KIND_SHARED, .slot_bytes = (size_t)1 << 40), EBB_E_SIZE);
}

/* ---- slots that are ours already ---- */

/* What a parcel would be of the slot in this state, whose word says that it was sent. */
static struct ebb_parcel lie(struct shared *shared, enum slot_state state, uint64_t *before) {
    struct ebb_parcel parcel = {.pool = shared->identity, .root = UINT64_MAX};
    while (word_state(atomic_load(&shared->control->records[parcel.slot].word)) != state)
        assert_true(++parcel.slot < shared->slot_count);
    _Atomic uint64_t *word = &shared->control->records[parcel.slot].word;
    *before = atomic_load(word);
    parcel.generation = word_generation(*before);
    atomic_store(word, word_make(SLOT_SENT, parcel.generation, word_owner(*before)));
    return parcel;
}

static void assert_stays_shut(ebb_pool *pool, enum slot_state state) {
    uint64_t before;
    struct ebb_parcel parcel = lie(pool->shared, state, &before);
    assert_no_block(ebb_parcel_open(pool, &parcel), EBB_E_STALE);
    atomic_store(&pool->shared->control->records[parcel.slot].word, before);
}

static void a_slot_that_is_ours_is_not_opened_whatever_its_word_says(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    ebb_region region = OPEN(.pool = pool);
    block_of(region, 5000, 64);
    assert_stays_shut(pool, SLOT_WRITING);
    assert_int_equal(ebb_region_close(region), 0);
    struct ebb_parcel parcel = send_pattern(pool, 70000, 3);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_stays_shut(pool, SLOT_HELD);
    assert_true(lease_holds(lease, 70000, 3));
    ebb_lease_drop(lease);
    assert_states(pool, 0, 0, 0);
    pool_end(pool);
}

/* The next number of a process is the first one after the last. */
static void a_number_beyond_all_is_mended(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct shared_control *control = pool->shared->control;
    atomic_store(&control->incarnations[0], UINT32_MAX);
    ebb_region region = OPEN(.pool = pool);
    assert_true(ebb_region_is_open(region));
    assert_int_equal(atomic_load(&control->incarnations[0]), 1);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

static void a_parcel_without_root_has_no_bytes_of_one(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 5000, 3), forged = parcel;
    forged.root = UINT64_MAX;
    assert_no_block(ebb_parcel_open(pool, &forged), EBB_E_PARCEL);
    forged.bytes = 0;
    ebb_lease *lease = ebb_parcel_open(pool, &forged);
    size_t bytes = 1;
    assert_non_null(lease);
    assert_null(ebb_lease_root(lease, &bytes));
    assert_int_equal(bytes, 0);
    ebb_lease_drop(lease);
    pool_end(pool);
}

/* ---- a description that changes while it is read ---- */

static struct os_table real;
static int64_t *described;

static bool describe_more(enum os_acquisition what) {
    if (what == OS_EXPORT)
        described[0] = described[1] = INT64_MAX / 2;
    return real.allow(what);
}

static void numbers_are_those_that_were_checked(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    described = ebb_lease_root(lease, NULL); /* shape and strides, where the peer writes */
    described[0] = 100;
    described[1] = 2;
    real = os;
    os.allow = describe_more;
    DLManagedTensor *out =
        ebb_lease_export(lease, 0, bytes8, 1, &described[0], &described[1]);
    os = real;
    assert_non_null(out);
    assert_int_equal(described[0], INT64_MAX / 2);
    assert_int_equal(out->dl_tensor.shape[0], 100);
    assert_int_equal(out->dl_tensor.strides[0], 2);
    give_back(out);
    ebb_lease_drop(lease);
    pool_end(pool);
}

/* ---- pages that are said to be there ---- */

static unsigned asked;

static int count_questions(int fd, size_t offset, size_t *at) {
    asked++;
    return real.file_hole(fd, offset, at);
}

static int tell_nothing(int fd, size_t offset, size_t *at) {
    (void)fd, (void)offset, (void)at;
    return EIO;
}

static void open_and_close_all(ebb_pool *pool) {
    ebb_region regions[SLOTS];
    for (unsigned i = 0; i < SLOTS; i++) {
        regions[i] = OPEN(.pool = pool);
        assert_true(ebb_region_is_open(regions[i]));
    }
    for (unsigned i = 0; i < SLOTS; i++)
        assert_int_equal(ebb_region_close(regions[i]), 0);
}

/* Who had all of them entered in his page table would fill the system's memory. */
static void numbers_that_are_wrong_make_no_pages(void **state) {
    ebb_pool *pool = shared_pool(SLOTS, SLOT_BYTES);
    struct shared_record *records = pool->shared->control->records;
    struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
    size_t sent = atomic_load(&records[parcel.slot].sent);
    size_t blocks = blocks_of(ebb_pool_descriptor(pool));
    atomic_store(&records[parcel.slot].sent, UINT64_MAX);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_true(lease_holds(lease, 5000, 1));
    assert_int_equal(ebb_lease_bytes(lease), sent);
    ebb_lease_drop(lease);
    for (unsigned i = 0; i < SLOTS; i++)
        atomic_store(&records[i].backed, SLOT_BYTES - i * PAGE);
    open_and_close_all(pool);
    assert_int_equal(blocks_of(ebb_pool_descriptor(pool)), blocks);
    assert_int_equal(pool_stats_of(pool).reserved.current, sent);
    pool_end(pool);
}

/* Nor does who goes round, also after what was wrong has been put right. */
static void who_knows_of_all_pages_does_not_ask(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    real = os;
    os.file_hole = count_questions;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = asked = 0; i < 20; i++) {
            struct ebb_parcel parcel = send_pattern(pool, 70000, i);
            ebb_lease *lease = ebb_parcel_open(pool, &parcel);
            assert_true(lease_holds(lease, 70000, i));
            ebb_lease_drop(lease);
        }
        assert_int_equal(asked, round);
        atomic_store(&pool->shared->control->records[0].backed, SLOT_BYTES);
    }
    os = real;
    pool_end(pool);
}

static void a_file_that_does_not_tell_opens_nothing(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
    struct shared_record *record = pool->shared->control->records;
    size_t sent = atomic_load(&record->sent);
    real = os;
    os.file_hole = tell_nothing;
    atomic_store(&record->sent, SLOT_BYTES);
    assert_no_block(ebb_parcel_open(pool, &parcel), EBB_E_SHARED);
    assert_text_names("error 5");
    atomic_store(&record->sent, sent);
    assert_int_equal(ebb_parcel_discard(pool, &parcel), 0);
    atomic_store(&record->backed, SLOT_BYTES);
    assert_false(ebb_region_is_open(OPEN(.pool = pool)));
    assert_int_equal(ebb_last_error(), EBB_E_SHARED);
    os = real;
    assert_states(pool, 0, 0, 0);
    assert_int_equal(ebb_region_close(OPEN(.pool = pool)), 0);
    pool_end(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_parcels_open_nothing),
        cmocka_unit_test(other_files_are_not_attached),
        cmocka_unit_test(files_with_other_seals_are_not_attached),
        cmocka_unit_test(damage_between_calls_is_survived),
        cmocka_unit_test(damage_in_the_middle_of_calls_is_survived),
        cmocka_unit_test(a_damaged_pool_heals),
        cmocka_unit_test(a_sign_of_life_is_mended),
        cmocka_unit_test(a_number_beyond_all_is_mended),
        cmocka_unit_test(a_slot_that_is_ours_is_not_opened_whatever_its_word_says),
        cmocka_unit_test(a_parcel_without_root_has_no_bytes_of_one),
        cmocka_unit_test(numbers_are_those_that_were_checked),
        cmocka_unit_test(numbers_that_are_wrong_make_no_pages),
        cmocka_unit_test(who_knows_of_all_pages_does_not_ask),
        cmocka_unit_test(a_file_that_does_not_tell_opens_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
