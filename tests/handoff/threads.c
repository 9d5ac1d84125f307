// SPDX-License-Identifier: Apache-2.0
/* threads.c - regions go from thread to thread, and threads share leases. */
#include "base/os.h"
#include "handoff/duo.h"
#include "kit/dlpack.h"
#include "pool/shared.h"
#include "region/track.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOT_BYTES (4 * MIB)
#define THREADS 4

/* ---- hand over ---- */

struct parcel_of_thread {
    ebb_region region;
    char *block;
    bool right;
};

static void *go_on(void *context) {
    struct parcel_of_thread *work = context;
    char *more = ebb_region_alloc(work->region, 70000, 64), *small;
    work->right = more && pattern_holds(work->block, 50000, 50000);
    for (unsigned i = 0; i < 2000; i++)
        work->right &= (small = ebb_region_alloc(work->region, 40, 8)) != NULL && (*small = 1);
    work->right &= ebb_region_release(work->region, work->block) == 0;
    work->right &= ebb_region_close(work->region) == 0;
    return NULL;
}

static void in_a_thread(struct parcel_of_thread *work) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, go_on, work), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(work->right);
}

static void a_root_is_handed_over(void **state) {
    struct stage *stage = *state;
    ebb_region root = OPEN(.pool = stage->pool), child = OPEN(.parent = root);
    struct parcel_of_thread work = {.block = block_of(root, 50000, 64)};
    block_of(child, 5000, 64);
    uint64_t opened = pool_stats_of(stage->pool).opened_regions;
    work.region = ebb_region_hand_over(root);
    assert_true(ebb_region_is_open(work.region));
    assert_false(ebb_region_is_open(root));
    assert_true(ebb_region_is_open(child));
    assert_int_equal(pool_stats_of(stage->pool).opened_regions, opened);
    assert_false(ebb_region_is_open(ebb_region_hand_over(root)));
    assert_int_equal(ebb_last_error(), EBB_E_STALE);
    assert_null(ebb_region_alloc(root, 16, 16));
    in_a_thread(&work);
    assert_false(ebb_region_is_open(child));
}

static void a_child_is_cut_off(void **state) {
    struct stage *stage = *state;
    ebb_region top = OPEN(.parent = stage->root, .limit_bytes = 10 * MIB);
    ebb_region child = OPEN(.parent = top), below = OPEN(.parent = child, .limit_bytes = MIB);
    uint64_t before = stats_of(top).subtree_used;
    struct parcel_of_thread work = {.block = block_of(child, 50000, 64)};
    block_of(below, 5000, 64);
    block_of(below, 50, 8);
    work.region = ebb_region_hand_over(child);
    assert_true(ebb_region_is_open(work.region));
    assert_false(ebb_region_is_open(ebb_region_parent(work.region)));
    assert_true(ebb_region_is_ancestor(work.region, below));
    assert_false(ebb_region_is_ancestor(top, below));
    assert_int_equal(stats_of(top).children, 0);
    assert_int_equal(stats_of(top).subtree_used, before);
    assert_no_block(ebb_region_alloc(below, 2 * MIB, 64), EBB_E_REGION_LIMIT);
    block_of(work.region, 20 * MIB, 64); /* the ancestor's budget is another's now */
    ebb_check_pool(stage->pool);
    assert_int_equal(ebb_region_close(top), 0);
    in_a_thread(&work);
    assert_false(ebb_region_is_open(below));
}

static void what_leads_outside_is_not_handed_over(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root), other = OPEN(.pool = stage->pool);
    struct ebb_tensor *tensor = tensor_of_bytes(stage->root, 5000);
    struct ebb_tensor *view = ebb_tensor_view(child, tensor, 1, &(int64_t){10}, &(int64_t){1}, 0);
    assert_non_null(view);
    assert_false(ebb_region_is_open(ebb_region_hand_over(child)));
    assert_int_equal(ebb_last_error(), EBB_E_BORROWED);
    assert_true(ebb_region_is_open(child));
    assert_int_equal(ebb_object_end(view), 0);
    assert_int_equal(ebb_object_borrow(tensor, other), 0);
    assert_false(ebb_region_is_open(ebb_region_hand_over(other)));
    assert_int_equal(ebb_last_error(), EBB_E_BORROWED);
    assert_false(ebb_region_is_open(ebb_region_hand_over(stage->root)));
    assert_int_equal(ebb_object_return(tensor), 0);
    other = ebb_region_hand_over(other);
    assert_true(ebb_region_is_open(other));
    void *survivor = block_of(child, 500000, 64);
    struct ebb_survivor list = survivor_of(survivor, EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_promote(child, stage->root, &list, 1, NULL), 0);
    assert_false(ebb_region_is_open(ebb_region_hand_over(child)));
    assert_int_equal(ebb_last_error(), EBB_E_BUSY);
    assert_int_equal(ebb_region_close(other), 0);
    assert_int_equal(ebb_region_close(child), 0);
}

/* A slot has one root: it would be free, or another process's, while the child is at work in it. */
static void a_child_stays_in_its_slot(void **state) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    ebb_region root = OPEN(.pool = pool), child = OPEN(.parent = root);
    struct ebb_parcel parcel;
    block_of(child, 5000, 64);
    assert_false(ebb_region_is_open(ebb_region_hand_over(child)));
    assert_int_equal(ebb_last_error(), EBB_E_KIND);
    assert_true(ebb_region_is_open(child));
    root = ebb_region_hand_over(root);
    assert_true(ebb_region_is_ancestor(root, child));
    assert_int_equal(ebb_region_send(root, NULL, &parcel), 0);
    assert_false(ebb_region_is_open(child));
    assert_int_equal(ebb_parcel_discard(pool, &parcel), 0);
    pool_end(pool);
}

/* Who closes or sends a region has still to do with its slot when that is not open any more. */
static void a_pool_stays_until_its_slots_are_left(void **state) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    ebb_pool *inner = shared_enter(pool);
    assert_non_null(inner);
    assert_refused(ebb_pool_destroy(pool), EBB_E_BUSY);
    assert_text_names("1 open regions");
    shared_leave(inner);
    pool_end(pool);
}

/* ---- a step waits for a slot; another thread comes to work in what it would close ---- */

struct meddler {
    ebb_region child, holder;
    struct ebb_cleanup cleanup;
    ebb_pool *pool;
    sem_t goes_on;
    pthread_t thread;
    bool right;
};

/* Of a child of the oldest region of the ring: gives the step a slot, and takes its time. */
static int let_it_begin(void *data) {
    struct meddler *meddler = data;
    meddler->right = ebb_region_close(meddler->holder) == 0;
    while (sem_wait(&meddler->goes_on) != 0) {
    }
    return 0;
}

static void *close_child_of_oldest(void *context) {
    struct meddler *meddler = context;
    while (!atomic_load(&meddler->pool->shared->control->waiting))
        usleep(1000);
    meddler->right = ebb_region_close(meddler->child) == 0 && meddler->right;
    return NULL;
}

/* One whose blocks are alive when it ends. */
static ebb_step take_step(ebb_site *site) {
    ebb_step step = ebb_step_begin(site, 0);
    assert_true(ebb_region_is_open(step.region));
    block_of(step.region, 100000, 64);
    return step;
}

static ebb_region end_step(ebb_step step) {
    assert_int_equal(ebb_step_end(step), 0);
    return step.region;
}

static ebb_site *site_with_waiting_steps(ebb_pool **pool) {
    *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 4, .slot_bytes = SLOT_BYTES,
                 .wait_ns = UINT64_C(60000000000));
    return ebb_site_create(EBB_SITE_OPTIONS(.pool = *pool, .ring = 1));
}

static struct track *track_of(ebb_region region) {
    return ((struct region *)region.lane)->track;
}

/* The region that a step took out of the ring, with its track; what became of an attempt to end the
 * site while another thread was at work there. */
static ebb_region take_out(ebb_pool *pool, ebb_site *site, struct track **track,
                           int *while_it_runs) {
    struct meddler meddler = {.cleanup = {.run = let_it_begin, .data = &meddler}, .pool = pool};
    for (unsigned i = 0; i < 12; i++)
        end_step(take_step(site));
    assert_true(site_stats(site).planned_steps > 0);
    ebb_region oldest = end_step(take_step(site));
    *track = track_of(oldest);
    assert_true(*track && (*track)->seen.served);
    meddler.child = OPEN(.parent = oldest);
    assert_int_equal(ebb_cleanup_add(meddler.child, &meddler.cleanup), 0);
    end_step(take_step(site));
    meddler.holder = OPEN(.pool = pool);
    ebb_region other = OPEN(.pool = pool); /* no slot is left */
    assert_int_equal(sem_init(&meddler.goes_on, 0, 0), 0);
    assert_int_equal(pthread_create(&meddler.thread, NULL, close_child_of_oldest, &meddler), 0);
    end_step(take_step(site));
    assert_true(ebb_region_is_open(oldest));
    *while_it_runs = ebb_site_destroy(site);
    assert_int_equal(sem_post(&meddler.goes_on), 0);
    assert_int_equal(pthread_join(meddler.thread, NULL), 0);
    assert_true(meddler.right);
    assert_int_equal(ebb_region_close(other), 0);
    assert_int_equal(sem_destroy(&meddler.goes_on), 0);
    return oldest;
}

static void a_site_stays_with_what_a_step_took_out_of_its_ring(void **state) {
    ebb_pool *pool;
    ebb_site *site = site_with_waiting_steps(&pool);
    struct track *track;
    int while_it_runs;
    ebb_region oldest = take_out(pool, site, &track, &while_it_runs);
    assert_int_equal(while_it_runs, EBB_E_BUSY);
    for (unsigned i = 0; i < 300; i++) /* long enough for what is idle to be given back */
        end_step(take_step(site));
    assert_ptr_equal(track->region, oldest.lane);
    assert_true(track->plan && track->plan->slot_count == 1);
    assert_int_equal(stats_of(oldest).requested.current, 100000);
    assert_int_equal(ebb_site_destroy(site), EBB_E_BUSY);
    assert_int_equal(ebb_region_close(oldest), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

static void *reset(void *region) {
    return ebb_region_reset(*(ebb_region *)region, 0) == 0 ? region : NULL;
}

/* How many of two steps, one for each berth, follow a track, and whether it is this one. */
static unsigned count_planned(ebb_site *site, const struct track *track, bool *is_among) {
    unsigned planned = 0;
    *is_among = false;
    for (unsigned i = 0; i < 2; i++) {
        ebb_step step = take_step(site);
        *is_among = *is_among || track_of(step.region) == track;
        planned += track_of(step.region) != NULL;
        end_step(step);
    }
    return planned;
}

/* Whoever has it says when its track is free, by closing it: the track may be untied just now. */
static void nor_does_a_step_follow_its_track_until_it_is_closed(void **state) {
    ebb_pool *pool;
    ebb_site *site = site_with_waiting_steps(&pool);
    struct track *track;
    int while_it_runs;
    bool is_among;
    void *done;
    pthread_t thread;
    ebb_region oldest = take_out(pool, site, &track, &while_it_runs);
    assert_int_equal(pthread_create(&thread, NULL, reset, &oldest), 0);
    for (unsigned i = 0; i < 20; i++)
        end_step(take_step(site));
    assert_int_equal(pthread_join(thread, &done), 0);
    assert_ptr_equal(done, &oldest);
    assert_null(track->region);
    assert_int_equal(count_planned(site, track, &is_among), 1);
    assert_false(is_among);
    assert_int_equal(ebb_region_close(oldest), 0);
    assert_int_equal(count_planned(site, track, &is_among), 2);
    assert_true(is_among);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

/* ---- leases ---- */

struct crowd {
    ebb_pool *pool;
    ebb_lease *lease;
    atomic_uint turns, wrong;
};

/* Everything that calls the system with locks held: making, entering, growing, opening, trimming,
 * ending. It has been told to go before it begins. */
static void *work_though_cancelled(void *context) {
    struct crowd *crowd = context;
    struct ebb_parcel parcel;
    pthread_cancel(pthread_self());
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 2, .slot_bytes = SLOT_BYTES);
    ebb_pool *again = pool ? ebb_pool_attach(ebb_pool_descriptor(pool), NULL) : NULL;
    if (again && try_send(crowd->pool, 5000, 1, &parcel) &&
        ebb_parcel_discard(crowd->pool, &parcel) == 0 && try_send(pool, 5000, 1, &parcel)) {
        ebb_lease_drop(ebb_parcel_open(again, &parcel));
        crowd->turns = ebb_pool_trim(again, 0) != 0;
        crowd->wrong += ebb_pool_destroy(again) != 0;
        crowd->wrong += ebb_pool_destroy(pool) != 0;
    }
    crowd->turns++;
    pthread_testcancel();
    return NULL;
}

static void nobody_is_cancelled_with_locks_held(void **state) {
    struct crowd crowd = {.pool = shared_pool(2, SLOT_BYTES)};
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, work_though_cancelled, &crowd), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(crowd.turns, 2);
    assert_int_equal(crowd.wrong, 0);
    pool_end(crowd.pool);
}

static void *hold_and_drop(void *context) {
    struct crowd *crowd = context;
    DLManagedTensor *tensors[20];
    for (unsigned turn = 0; turn < 200; turn++) {
        for (unsigned i = 0; i < 20; i++) {
            tensors[i] = ebb_lease_export(crowd->lease, 0, bytes8, 1, &(int64_t){5000}, NULL);
            crowd->wrong += !tensors[i] || !pattern_holds(tensors[i]->dl_tensor.data, 5000, 1);
        }
        for (unsigned i = 0; i < 20; i++)
            give_back(tensors[i]);
    }
    ebb_lease_drop(crowd->lease);
    return NULL;
}

static void threads_share_a_lease(void **state) {
    struct crowd crowd = {.pool = shared_pool(2, SLOT_BYTES)};
    struct ebb_parcel parcel = send_pattern(crowd.pool, 5000, 1);
    pthread_t threads[THREADS];
    crowd.lease = ebb_parcel_open(crowd.pool, &parcel);
    for (unsigned i = 0; i < THREADS; i++) {
        ebb_lease_hold(crowd.lease);
        assert_int_equal(pthread_create(&threads[i], NULL, hold_and_drop, &crowd), 0);
    }
    ebb_lease_drop(crowd.lease);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(crowd.wrong, 0);
    assert_states(crowd.pool, 0, 0, 0);
    pool_end(crowd.pool);
}

struct look_up {
    const char *own, *got; /* in a region of this process; in what was sent */
    atomic_bool stop;
    unsigned found;
};

/* Who asks has nothing to do with who opens, and may be at it before there is any lease. */
static void *look_up(void *context) {
    struct look_up *asked = context;
    do {
        ebb_lease *lease = ebb_lease_of(asked->got);
        asked->found += lease != NULL;
        ebb_lease_drop(lease);
        asked->found += ebb_lease_of(asked->own) != NULL;
    } while (!atomic_load(&asked->stop));
    return NULL;
}

static void addresses_are_looked_up_while_the_first_parcel_is_opened(void **state) {
    for (unsigned turn = 0; turn < 20; turn++) {
        ebb_pool *pool = shared_pool(2, SLOT_BYTES);
        ebb_region region = OPEN(.pool = pool);
        struct look_up asked = {.own = block_of(region, 5000, 64)};
        struct ebb_parcel parcel = send_pattern(pool, 5000, 1);
        pthread_t thread;
        asked.got = (char *)atomic_load(&pool->shared->slots[parcel.slot].addr) + parcel.root;
        assert_int_equal(pthread_create(&thread, NULL, look_up, &asked), 0);
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        assert_true(lease_holds(lease, 5000, 1));
        atomic_store(&asked.stop, true);
        pthread_join(thread, NULL);
        ebb_lease_drop(lease);
        assert_int_equal(ebb_region_close(region), 0);
        assert_states(pool, 0, 0, 0);
        pool_end(pool);
    }
}

/* Two who set the check of the same pool, each with a context of its own. */
struct setter {
    ebb_release_check *check;
    ebb_pool *pool;
    atomic_bool *stop;
    pthread_t thread;
    atomic_uint calls, wrong;
};

static bool ask_first(void *context, ebb_lease *lease) {
    struct setter *setter = context;
    setter->calls++;
    setter->wrong += setter->check != ask_first || !ebb_lease_at(lease, 0, 1);
    return true;
}

static bool ask_second(void *context, ebb_lease *lease) {
    struct setter *setter = context;
    setter->calls++;
    setter->wrong += setter->check != ask_second || !ebb_lease_at(lease, 0, 1);
    return true;
}

static void *set_checks(void *context) {
    struct setter *setter = context;
    while (!atomic_load(setter->stop)) {
        int result = ebb_pool_set_release_check(setter->pool, setter->check, setter);
        setter->wrong += result != 0 && result != EBB_E_BUSY;
        sched_yield();
    }
    return NULL;
}

/* The first ones make what all have in common; whose check it is that is asked is not said. */
static void open_while_checks_are_set(unsigned parcels) {
    ebb_pool *pool = shared_pool(2, SLOT_BYTES);
    atomic_bool stop = false;
    struct setter setters[] = {{.check = ask_first}, {.check = ask_second}};
    for (unsigned i = 0; i < 2; i++) {
        setters[i].pool = pool;
        setters[i].stop = &stop;
        assert_int_equal(pthread_create(&setters[i].thread, NULL, set_checks, &setters[i]), 0);
    }
    for (unsigned i = 0; i < parcels; i++) {
        struct ebb_parcel parcel = send_pattern(pool, 5000, i);
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        assert_true(lease_holds(lease, 5000, i));
        ebb_lease_drop(lease);
        assert_states(pool, 0, 0, 0);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(setters[i].thread, NULL);
        assert_int_equal(setters[i].wrong, 0);
    }
    assert_true(setters[0].calls + setters[1].calls <= parcels);
    pool_end(pool);
}

static void checks_are_set_while_parcels_are_opened(void **state) {
    for (unsigned turn = 0; turn < 20; turn++)
        open_while_checks_are_set(turn % 2 ? 200 : 2);
}

static void *trim_by_steps(void *context) {
    for (size_t target = 16; target-- > 0;)
        (void)ebb_pool_trim(context, target * 4 * PAGE);
    return NULL;
}

static void counters_are_read_while_the_pool_is_trimmed(void **state) {
    ebb_pool *pool = shared_pool(16, SLOT_BYTES);
    struct ebb_parcel parcels[16];
    pthread_t thread;
    for (unsigned i = 0; i < 16; i++)
        parcels[i] = send_pattern(pool, 4 * PAGE, i);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(ebb_parcel_discard(pool, &parcels[i]), 0);
    assert_int_equal(pthread_create(&thread, NULL, trim_by_steps, pool), 0);
    while (pool_stats_of(pool).given_back < 16 * 4 * PAGE)
        sched_yield();
    pthread_join(thread, NULL);
    pool_end(pool);
}

/* Each sends, and opens what it sent or leaves that to others: one queue of one place. */
static _Atomic(struct ebb_parcel *) queue;

static void *send_and_receive(void *context) {
    struct crowd *crowd = context;
    struct ebb_parcel mine, *other;
    for (unsigned turn = 0; turn < 300; turn++) {
        if (!try_send(crowd->pool, 3000, 3000, &mine)) {
            crowd->wrong++;
            continue;
        }
        struct ebb_parcel *box = malloc(sizeof *box);
        *box = mine;
        if ((other = atomic_exchange(&queue, box)) == NULL)
            continue;
        ebb_lease *lease = ebb_parcel_open(crowd->pool, other);
        crowd->wrong += !lease || !lease_holds(lease, 3000, 3000);
        ebb_lease_drop(lease);
        free(other);
    }
    return NULL;
}

static void threads_send_to_each_other(void **state) {
    struct crowd crowd = {.pool = shared_pool(16, SLOT_BYTES)};
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_and_receive, &crowd), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(crowd.wrong, 0);
    struct ebb_parcel *last = atomic_exchange(&queue, NULL);
    assert_int_equal(ebb_parcel_discard(crowd.pool, last), 0);
    free(last);
    assert_states(crowd.pool, 0, 0, 0);
    pool_end(crowd.pool);
}

/* ---- one who comes to wait while a slot becomes free ---- */

static struct os_table real;

static struct late {
    ebb_pool *pool;
    ebb_region quicker; /* has the slot that becomes free, */
    pthread_t thread;   /* so that this one waits for the next */
    sem_t announced, rung;
    atomic_bool waited;
    int result; /* of waiting */
} late;

static int announce_and_wait(const void *word, uint32_t value, uint64_t ns) {
    if (atomic_exchange(&late.waited, true))
        return real.wait(word, value, ns);
    sem_post(&late.announced);
    sem_wait(&late.rung);
    late.result = real.wait(word, value, UINT64_C(2000000000));
    return late.result;
}

static void *come_late(void *context) {
    ebb_region region = OPEN(.pool = late.pool);
    assert_int_equal(ebb_region_close(region), 0);
    return NULL;
}

static void be_quicker(const char *step) {
    if (strcmp(step, "free: ring") != 0)
        return;
    os.pass = real.pass;
    late.quicker = OPEN(.pool = late.pool);
    assert_int_equal(pthread_create(&late.thread, NULL, come_late, NULL), 0);
    sem_wait(&late.announced);
}

static void who_comes_late_is_woken_by_the_next(void **state) {
    late.pool = ebb_pool_create(EBB_POOL_OPTIONS(
        .kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = SLOT_BYTES, .wait_ns = 10000000000));
    struct ebb_parcel parcel = send_pattern(late.pool, 5000, 1);
    ebb_lease *lease = ebb_parcel_open(late.pool, &parcel);
    assert_non_null(lease);
    sem_init(&late.announced, 0, 0);
    sem_init(&late.rung, 0, 0);
    real = os;
    os.wait = announce_and_wait;
    os.pass = be_quicker;
    ebb_lease_drop(lease);
    sem_post(&late.rung);
    usleep(100000); /* it sleeps */
    assert_int_equal(ebb_region_close(late.quicker), 0);
    pthread_join(late.thread, NULL);
    os = real;
    assert_int_not_equal(late.result, ETIMEDOUT);
    pool_end(late.pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_root_is_handed_over),
        STAGED(a_child_is_cut_off),
        STAGED(what_leads_outside_is_not_handed_over),
        cmocka_unit_test(a_child_stays_in_its_slot),
        cmocka_unit_test(a_pool_stays_until_its_slots_are_left),
        cmocka_unit_test(a_site_stays_with_what_a_step_took_out_of_its_ring),
        cmocka_unit_test(nor_does_a_step_follow_its_track_until_it_is_closed),
        cmocka_unit_test(nobody_is_cancelled_with_locks_held),
        cmocka_unit_test(threads_share_a_lease),
        cmocka_unit_test(addresses_are_looked_up_while_the_first_parcel_is_opened),
        cmocka_unit_test(checks_are_set_while_parcels_are_opened),
        cmocka_unit_test(counters_are_read_while_the_pool_is_trimmed),
        cmocka_unit_test(threads_send_to_each_other),
        cmocka_unit_test(who_comes_late_is_woken_by_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
