// SPDX-License-Identifier: Apache-2.0
/*
 * scope_threads.c - threads free each other's blocks, of scopes that are open and that ended;
 * threads that end with scopes open; heaps that pass on. Run under ThreadSanitizer by tests/run.
 */
#include "cooler.h"
#include "kit/test.h"

#include "malloc/front.h"
#include "malloc/heap.h"
#include "malloc/options.h"
#include "malloc/trim.h"
#include "malloc/view.h"

#include "base/os.h"
#include "pool/pool.h"
#include "step/site.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 300, PLACES = 64, BATCHES = 200 };

static atomic_uint wrong, begun;
static ebb_site *site;

struct parcel {
    size_t bytes;
    unsigned seed;
    unsigned char data[];
};

static _Atomic(struct parcel *) places[PLACES];

static void expect(bool holds) {
    if (!holds)
        atomic_fetch_add(&wrong, 1);
}

static unsigned draw(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*random >> 33);
}

static void discard(struct parcel *parcel) {
    if (!parcel)
        return;
    expect(pattern_holds(parcel->data, parcel->bytes, parcel->seed));
    front_free(parcel);
}

static void exchange(uint64_t *random) {
    static const size_t most[] = {64, 600, 7000, 30000, 200000};
    size_t bytes = draw(random) % most[draw(random) % 5];
    struct parcel *parcel = front_alloc(sizeof *parcel + bytes, (void *)(uintptr_t)draw(random));
    expect(parcel != NULL);
    parcel->bytes = bytes;
    parcel->seed = draw(random) % 256;
    pattern_fill(parcel->data, bytes, parcel->seed);
    discard(atomic_exchange(&places[draw(random) % PLACES], parcel));
}

static void *play(void *context) {
    uint64_t random = (uintptr_t)context * 77 + 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        ebb_step step = ebb_step_begin(site, 0), inner = {0};
        bool nests = draw(&random) % 3 == 0;
        for (unsigned i = draw(&random) % 60; i; i--)
            exchange(&random);
        if (nests)
            inner = ebb_step_begin(site, 1);
        for (unsigned i = draw(&random) % 20; i; i--)
            exchange(&random);
        if (nests)
            expect(ebb_step_end(inner) == 0);
        if (draw(&random) % 50)
            expect(ebb_step_end(step) == 0);
        else
            return NULL; /* left open by a thread that ends */
    }
    return NULL;
}

static void test_threads_free_each_others_blocks(void **state) {
    for (unsigned turn = 0; turn < 6; turn++) {
        pthread_t threads[THREADS];
        for (uintptr_t i = 0; i < THREADS; i++)
            assert_int_equal(
                pthread_create(&threads[i], NULL, play, (void *)(turn * THREADS + i)), 0);
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        trim_all();
    }
    for (unsigned i = 0; i < PLACES; i++)
        discard(atomic_exchange(&places[i], NULL));
    trim_all();
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(tray_read_pinned().trays, 0);
}

static void *end_it(void *context) {
    expect(ebb_step_end(*(ebb_step *)context) == EBB_E_THREAD);
    expect(ebb_scope_leave(*(ebb_step *)context) == EBB_E_THREAD);
    return NULL;
}

static void on_another_thread(void *(*body)(void *), void *context) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

static void test_another_threads_scope_is_refused(void **state) {
    ebb_step step = ebb_step_begin(site, 0);
    void *block = front_alloc(100, NULL);
    on_another_thread(end_it, &step);
    assert_ptr_equal(here.scope->heap, here.heap);
    front_free(block);
    assert_int_equal(ebb_step_end(step), 0);
}

static void *leave_open(void *context) {
    *(ebb_step *)context = ebb_step_begin(site, 0);
    places[0] = front_alloc(sizeof(struct parcel), NULL);
    places[1] = front_alloc(sizeof(struct parcel) + 50000, NULL);
    return NULL;
}

static void test_a_scope_of_a_thread_that_ended(void **state) {
    ebb_step step;
    on_another_thread(leave_open, &step);
    assert_int_equal(ebb_step_end(step), 0); /* only the step is left */
    front_free(places[0]);
    front_free(places[1]);
    places[0] = places[1] = NULL;
    trim_all();
    assert_int_equal(tray_read_pinned().trays, 0);
}

static void *begin_and_end(void *context) {
    ebb_step step = ebb_step_begin(site, 0);
    *(ebb_step *)context = step;
    atomic_fetch_add(&begun, 1);
    return NULL;
}

/* It is refused until the scope's thread is ending. */
static int insist_on_its_end(ebb_step step) {
    int result = EBB_E_THREAD;
    while (result == EBB_E_THREAD)
        result = ebb_scope_leave(step) ? EBB_E_THREAD : ebb_step_end(step);
    return result;
}

/* Whoever comes first ends the scope. */
static void test_a_step_goes_while_its_thread_ends(void **state) {
    for (unsigned round = 1; round <= ROUNDS; round++) {
        pthread_t thread;
        ebb_step step;
        assert_int_equal(pthread_create(&thread, NULL, begin_and_end, &step), 0);
        while (atomic_load(&begun) < round)
            sched_yield();
        assert_int_equal(round % 2 ? ebb_region_close(step.region) : insist_on_its_end(step), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    on_another_thread(play, NULL);
    for (unsigned i = 0; i < PLACES; i++)
        discard(atomic_exchange(&places[i], NULL));
}

static void *close_parent(void *context) {
    expect(ebb_region_close(*(ebb_region *)context) == 0);
    return NULL;
}

static void test_a_parent_is_closed_by_another_thread(void **state) {
    ebb_region parent = OPEN(.name = "parent");
    ebb_step step = ebb_step_begin_under(site, parent, 0);
    (void)step;
    void *block = front_alloc(100, NULL), *large = front_alloc(30000, NULL);
    on_another_thread(close_parent, &parent);
    void *still = front_alloc(100, NULL);
    assert_int_equal(ebb_step_end(ebb_step_begin(site, 0)), 0);
    assert_null(here.scope);
    front_free(block);
    front_free(still);
    front_free(large);
    assert_int_equal(tray_read_pinned().trays, 0);
}

/* A scope whose step is over still names its site until its own thread ends it. */
static void *fail_to_destroy(void *brief) {
    expect(ebb_site_destroy(brief) == EBB_E_BUSY);
    expect(strstr(ebb_last_error_text(), "1 open scopes") != NULL);
    return NULL;
}

static void test_a_site_outlives_scopes_that_others_closed(void **state) {
    ebb_region parent = OPEN(.name = "parent");
    ebb_site *brief = ebb_site_create(EBB_SITE_OPTIONS(.name = "brief", .scope = true));
    ebb_step step = ebb_step_begin_under(brief, parent, 0);
    (void)step;
    on_another_thread(close_parent, &parent);
    on_another_thread(fail_to_destroy, brief);
    front_free(front_alloc(30000, NULL));
    assert_int_equal(ebb_step_end(ebb_step_begin(site, 0)), 0);
    assert_int_equal(ebb_site_destroy(brief), 0);
}

/* Who has such a scope need not begin another one first. */
static void test_who_destroys_a_site_ends_its_own_scopes_of_it(void **state) {
    ebb_region parent = OPEN(.name = "parent");
    ebb_site *brief = ebb_site_create(EBB_SITE_OPTIONS(.name = "brief", .scope = true));
    ebb_step step = ebb_step_begin_under(brief, parent, 0);
    void *small = front_alloc(100, NULL), *large = front_alloc(100000, NULL);
    (void)step;
    on_another_thread(close_parent, &parent);
    on_another_thread(fail_to_destroy, brief);
    assert_int_equal(ebb_site_destroy(brief), 0);
    memset(small, 1, 100);
    memset(large, 1, 100000);
    front_free(small);
    front_free(large);
}

static void *look(void *context) {
    static char text[64 << 10];
    while (!atomic_load((atomic_bool *)context))
        expect(view_write(text, sizeof text, false) != 0);
    return NULL;
}

static void test_sites_go_while_statistics_are_read(void **state) {
    atomic_bool over = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look, &over), 0);
    for (unsigned i = 0; i < 2000; i++) {
        ebb_site *brief = ebb_site_create(EBB_SITE_OPTIONS(.name = "brief", .scope = true));
        assert_int_equal(ebb_step_end(ebb_step_begin(brief, 0)), 0);
        assert_int_equal(ebb_site_destroy(brief), 0);
    }
    atomic_store(&over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* Nobody is known to leak: keys are few, and another test's survivors may have the same one. */
static void forget_leaks(void) {
    memset((void *)&leaks, 0, sizeof leaks);
}

/* ---- who freed what ---- */

static void *free_one(void *block) {
    front_free(block);
    return NULL;
}

/* A survivor, one that its thread frees and one that another does, in each order, before the end or
 * after it: what is pinned are the survivors. */
static void test_frees_of_others_are_counted_once(void **state) {
    for (unsigned way = 0; way < 16; way++) {
        bool stays = way & 1, others_first = way & 2, late = way & 4, own = way & 8;
        void *caller = (void *)(uintptr_t)((way + 1) * 4096); /* or it is known to survive */
        ebb_step step = ebb_step_begin(site, 0);
        void *kept = stays ? front_alloc(100, caller) : NULL;
        void *passed = front_alloc(200, caller), *freed = own ? front_alloc(400, caller) : NULL;
        if (!others_first)
            front_free(freed);
        if (!late)
            on_another_thread(free_one, passed);
        if (others_first)
            front_free(freed);
        assert_int_equal(ebb_step_end(step), 0);
        struct tray_pinned pinned = tray_read_pinned();
        assert_int_equal(pinned.trays, stays || late);
        assert_int_equal(pinned.blocks, (unsigned)stays + late);
        assert_int_equal(pinned.live, stays * 112u + late * 208u);
        if (late)
            on_another_thread(free_one, passed);
        front_free(kept);
        assert_int_equal(tray_read_pinned().trays, 0);
    }
}

struct ending {
    _Atomic(void *) block;
    atomic_bool ends;
};

static void *end_with_a_survivor(void *context) {
    struct ending *ending = context;
    ebb_step step = ebb_step_begin(site, 0);
    atomic_store(&ending->block, front_alloc(100, ending));
    while (!atomic_load(&ending->ends))
        sched_yield();
    expect(ebb_step_end(step) == 0);
    return NULL;
}

/* The owner waits for the lock of pinned trays, with its count made, while the last block goes. */
static void test_the_last_free_comes_while_a_tray_is_sealed(void **state) {
    for (unsigned round = 0; round < 20; round++) {
        static struct ending ending;
        pthread_t thread;
        forget_leaks(); /* its block is of the scope each time */
        atomic_store(&ending.block, NULL);
        atomic_store(&ending.ends, false);
        assert_int_equal(pthread_create(&thread, NULL, end_with_a_survivor, &ending), 0);
        while (!atomic_load(&ending.block))
            sched_yield();
        tray_fork(true);
        atomic_store(&ending.ends, true);
        usleep(2000); /* shorter, and it is freed before the count: no harm */
        front_free(atomic_load(&ending.block));
        tray_fork(false);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(tray_read_pinned().trays, 0);
    }
    assert_int_equal(atomic_load(&wrong), 0);
}

enum { HANDED = 6, RACES = 20000 };

struct race {
    _Atomic(void *) blocks[HANDED];
    atomic_bool over;
};

static void *free_batches(void *context) {
    void *_Atomic *batch = context;
    for (unsigned i = 0; i < BATCHES; i++) {
        while (!atomic_load(batch))
            sched_yield();
        for (void *block = atomic_load(batch), *next; block; block = next) {
            next = *(void **)block;
            front_free(block);
        }
        atomic_store(batch, NULL);
    }
    return NULL;
}

/* One whose blocks others free gives its trays back, as if it had freed them itself. */
static void test_a_scope_whose_blocks_others_free_stays_dense(void **state) {
    static void *_Atomic batch;
    pthread_t thread;
    forget_leaks();
    assert_int_equal(pthread_create(&thread, NULL, free_batches, (void *)&batch), 0);
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < BATCHES; i++) {
        void *first = NULL;
        for (unsigned k = 0; k < 100; k++) {
            void **block = front_alloc(1000, NULL);
            *block = first;
            first = block;
        }
        atomic_store(&batch, first);
        while (atomic_load(&batch))
            sched_yield();
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(here.scope->plain);
    assert_true(here.scope->trays <= 128);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(tray_read_pinned().trays, 0);
}

static void *free_what_comes(void *context) {
    struct race *race = context;
    for (unsigned i = 0; !atomic_load(&race->over); i = (i + 1) % HANDED)
        front_free(atomic_exchange(&race->blocks[i], NULL));
    return NULL;
}

/* Another thread frees while the scope ends, at whatever moment. */
static void test_frees_race_with_the_end(void **state) {
    static struct race race;
    uint64_t random = 5;
    pthread_t thread;
    atomic_store(&race.over, false);
    assert_int_equal(pthread_create(&thread, NULL, free_what_comes, &race), 0);
    for (unsigned round = 0; round < RACES; round++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (unsigned i = 0; i < HANDED; i++) {
            void *caller = (void *)(uintptr_t)draw(&random);
            void *own = front_alloc(draw(&random) % 3000, caller);
            front_free(atomic_exchange(&race.blocks[i], front_alloc(50, caller)));
            front_free(own);
        }
        expect(ebb_step_end(step) == 0);
    }
    for (unsigned i = 0; i < HANDED; i++)
        front_free(atomic_exchange(&race.blocks[i], NULL));
    atomic_store(&race.over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(tray_read_pinned().trays, 0);
}

static atomic_uint stage; /* relaxed: hands nothing over */

static void reach(unsigned next) {
    atomic_store_explicit(&stage, next, memory_order_relaxed);
}

static void await(unsigned next) {
    while (atomic_load_explicit(&stage, memory_order_relaxed) != next)
        sched_yield();
}

/* It lies between the range of ebb and the zone of trays, which is not there yet. */
static void *free_a_block_of_no_scope(void *unused) {
    void *block = front_alloc(4 * MIB, NULL);
    expect(block != NULL);
    reach(1);
    await(2);
    front_free(block);
    return unused;
}

/* Before all other tests. */
static void test_the_first_scope_begins_while_others_free(void **state) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_a_block_of_no_scope, NULL), 0);
    await(1);
    assert_false(tray_zone.bytes);
    ebb_step step = ebb_step_begin(site, 0);
    reach(2);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* ---- threads that rest ---- */

static void *rest_with_a_survivor(void *context) {
    ebb_step step = ebb_step_begin(site, 0);
    void *block = front_alloc(4 * MIB, NULL);
    pattern_fill(block, 4 * MIB, 7);
    atomic_store((void *_Atomic *)context, block);
    expect(ebb_step_end(step) == 0);
    reach(3);
    await(4);
    expect(ebb_step_end(ebb_step_begin(site, 0)) == 0); /* takes over what was freed */
    reach(5);
    await(6);
    return NULL;
}

static uint64_t given_back(void) {
    struct ebb_pool *pool = heap_pool();
    pthread_mutex_lock(&pool->lock);
    pool_check_locked(pool);
    uint64_t bytes = pool->given_back;
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}

/* Once, whoever gives them back, and however often. */
static void test_pages_of_a_thread_that_rests_are_counted(void **state) {
    void *_Atomic block = NULL;
    pthread_t thread;
    forget_leaks();
    assert_int_equal(pthread_create(&thread, NULL, rest_with_a_survivor, (void *)&block), 0);
    await(3);
    trim_all();
    uint64_t before = given_back();
    front_free(block);
    struct heap_cooling cooling = {.least_ms = 100};
    assert_true(heap_cool(&cooling));
    assert_true(heap_cool(&cooling));
    assert_int_equal(cooling.given, 0);
    assert_int_equal(os.resident(block, 4 * MIB), 4 * MIB);
    assert_int_equal(trim_all(), 1);
    assert_int_equal(os.resident(block, 4 * MIB), 0);
    assert_int_equal(heap_cooled_bytes(), 4 * MIB);
    assert_int_equal(given_back() - before, 4 * MIB);
    assert_false(heap_cool(&cooling));
    reach(4);
    await(5);
    assert_int_equal(heap_cooled_bytes(), 0);
    size_t written = os.resident(block, 4 * MIB); /* poison, where there are full checks */
    trim_all();
    written -= os.resident(block, 4 * MIB);
    assert_int_equal(given_back() - before, 4 * MIB + written);
    reach(6);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

#define TRAYS_USED 20u /* more than are kept */

static void use_trays(void) {
    void *blocks[TRAYS_USED * (TRAY_BYTES / TRAY_MOST)];
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        blocks[i] = front_alloc(FRONT_SMALL_MOST, NULL);
        expect(tray_holds((uintptr_t)blocks[i]));
        pattern_fill(blocks[i], FRONT_SMALL_MOST, i);
    }
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++)
        front_free(blocks[i]);
    expect(ebb_step_end(step) == 0);
}

static void *rest_with_empty_trays(void *context) {
    use_trays();
    atomic_store((struct heap *_Atomic *)context, here.heap);
    reach(7);
    await(8);
    use_trays();
    reach(9);
    await(10);
    return NULL;
}

static unsigned count_stash(struct heap *heap) {
    unsigned count = 0;
    for (unsigned i = 0; i < HEAP_STASH; i++)
        count += atomic_load(&heap->stash[i]) != NULL;
    return count;
}

/* They go when it has begun no scope for long enough, and it does without. */
static void test_empty_trays_of_a_thread_that_rests_go(void **state) {
    struct heap *_Atomic heap = NULL;
    pthread_t thread;
    forget_leaks();
    assert_int_equal(pthread_create(&thread, NULL, rest_with_empty_trays, (void *)&heap), 0);
    await(7);
    for (unsigned round = 0; round < 2; round++) {
        struct heap_cooling cooling = {.now_ms = 60, .least_ms = 100};
        for (; cooling.now_ms < 180; cooling.now_ms += 60)
            assert_true(heap_cool(&cooling));
        assert_int_equal(count_stash(heap), HEAP_STASH);
        assert_false(heap_cool(&cooling));
        assert_int_equal(count_stash(heap), 0);
        reach(round ? 10 : 8);
        if (!round)
            await(9);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* No byte of a live block goes, and nothing that was handed in is lost. */
static void test_pages_go_while_threads_free_each_others_blocks(void **state) {
    atomic_bool over = false;
    pthread_t threads[THREADS], cooler;
    assert_int_equal(pthread_create(&cooler, NULL, cool_all_the_time, &over), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play, (void *)(i + 100)), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < PLACES; i++)
        discard(atomic_exchange(&places[i], NULL));
    atomic_store(&over, true);
    assert_int_equal(pthread_join(cooler, NULL), 0);
    trim_all();
    assert_int_equal(heap_cooled_bytes(), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

static int serve(void **state) {
    options.idle_ms = 0; /* the tests alone cool */
    scope_serve();
    site = ebb_site_create(EBB_SITE_OPTIONS(.name = "request", .scope = true));
    return site == NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_scope_begins_while_others_free),
        cmocka_unit_test(test_another_threads_scope_is_refused),
        cmocka_unit_test(test_a_scope_of_a_thread_that_ended),
        cmocka_unit_test(test_a_step_goes_while_its_thread_ends),
        cmocka_unit_test(test_a_parent_is_closed_by_another_thread),
        cmocka_unit_test(test_a_site_outlives_scopes_that_others_closed),
        cmocka_unit_test(test_who_destroys_a_site_ends_its_own_scopes_of_it),
        cmocka_unit_test(test_sites_go_while_statistics_are_read),
        cmocka_unit_test(test_frees_of_others_are_counted_once),
        cmocka_unit_test(test_the_last_free_comes_while_a_tray_is_sealed),
        cmocka_unit_test(test_frees_race_with_the_end),
        cmocka_unit_test(test_a_scope_whose_blocks_others_free_stays_dense),
        cmocka_unit_test(test_pages_of_a_thread_that_rests_are_counted),
        cmocka_unit_test(test_empty_trays_of_a_thread_that_rests_go),
        cmocka_unit_test(test_threads_free_each_others_blocks),
        cmocka_unit_test(test_pages_go_while_threads_free_each_others_blocks),
    };
    return cmocka_run_group_tests(tests, serve, NULL);
}
