// SPDX-License-Identifier: Apache-2.0
/*
 * scope_thinned.c - pages of pinned trays that no survivor needs go: all of them when that is asked
 * for, in parts where survivors pin too much; and no others, whoever frees meanwhile. Run under
 * ThreadSanitizer by tests/run.
 */
#include "malloc/scoped.h"

#include "base/os.h"
#include "malloc/options.h"
#include "malloc/scope.h"

#include <pthread.h>
#include <stdatomic.h>

enum { COUNT = 60000, BYTES = 200, EACH = 270, KEPT = COUNT / EACH + 1 };
enum { PAGES_MOST = 3 }; /* of a survivor: of the tray's beginning, and of the block on two */

static void *blocks[COUNT];
static unsigned calls; /* callers that never come again, so that none is known to leak */

static void *make_sized(size_t bytes, unsigned seed) {
    void *block = front_alloc(bytes, (void *)(uintptr_t)(++calls * 4096));
    assert_non_null(block);
    pattern_fill(block, bytes, seed);
    return block;
}

static void *make_anywhere(unsigned seed) {
    return make_sized(BYTES, seed);
}

/* A scope that is dense until just before its end, of which each so manyth block survives. */
static void fill(ebb_site *site, unsigned each) {
    ebb_step step = begin(site);
    for (unsigned i = 0; i < COUNT; i++)
        blocks[i] = make_anywhere(i);
    assert_false(here.scope->plain);
    for (unsigned i = 0; i < COUNT; i++)
        if (i % each)
            end(blocks[i], BYTES, i);
    finish(step);
}

static void clear(unsigned each, unsigned but_each) {
    for (unsigned i = 0; i < COUNT; i += each)
        if (!but_each || i % but_each)
            end(blocks[i], BYTES, i);
}

/* Until new scopes have trays again. */
static void calm(ebb_site *site) {
    for (unsigned i = 0; i < 200; i++)
        finish(begin(site));
    assert_false(scope_pins_too_much());
}

static size_t resident(void) {
    const struct tray *last = NULL;
    size_t bytes = 0;
    for (unsigned i = 0; i < COUNT; i += EACH) {
        struct tray *tray = tray_of((uintptr_t)blocks[i]);
        bytes += tray == last ? 0 : os.resident(tray, TRAY_BYTES);
        last = tray;
    }
    return bytes;
}

static uint64_t pinned_by(const ebb_site *site) {
    return ((const struct served *)site->served)->holding->pinned_bytes;
}

static void test_a_trim_leaves_the_pages_of_survivors(void **state) {
    fill(*state, EACH);
    size_t before = tray_read_pinned().bytes;
    assert_true(before > (size_t)KEPT * TRAY_BYTES / 2);
    assert_int_equal(trim_all(), 1);
    size_t after = tray_read_pinned().bytes;
    assert_true(after <= (size_t)KEPT * PAGES_MOST * EBB_PAGE);
    assert_true(resident() <= after);
    assert_int_equal(pinned_by(*state), after);
    trim_all();
    assert_int_equal(tray_read_pinned().bytes, after);
    finish(begin(*state)); /* its end looks at what this one left */
    clear(EACH, 0);
    assert_int_equal(tray_read_pinned().bytes, 0);
    assert_int_equal(pinned_by(*state), 0);
    calm(*state);
    fill(*state, EACH); /* in the same trays */
    clear(EACH, 0);
    calm(*state);
}

/* What goes after a look is seen by the next. */
static void test_what_goes_later_goes_with_the_next_trim(void **state) {
    fill(*state, 2);
    trim_all();
    size_t before = tray_read_pinned().bytes;
    assert_true(before > (size_t)KEPT * TRAY_BYTES * 3 / 4);
    clear(2, EACH);
    assert_true(tray_read_pinned().bytes >= before - TRAY_BYTES);
    trim_all();
    assert_true(tray_read_pinned().bytes <= (size_t)KEPT * PAGES_MOST * EBB_PAGE);
    clear(EACH, 0);
    assert_int_equal(tray_read_pinned().bytes, 0);
    calm(*state);
}

enum { GROUPS = 300, OF_GROUP = 66, BIG_OF_GROUP = 6, BIG = 8000, LITTLE = 24 };

static size_t bytes_of(unsigned i) {
    return i % OF_GROUP < BIG_OF_GROUP ? BIG : LITTLE;
}

static void end_group(unsigned first, unsigned from, unsigned to) {
    for (unsigned i = first + from; i < first + to; i++)
        end(blocks[i], bytes_of(i), i);
}

static void end_in_groups(unsigned from, unsigned to) {
    for (unsigned group = 0; group < GROUPS; group++)
        end_group(group * OF_GROUP, from, to);
}

/* They are few of the blocks, and nearly all of the bytes. */
static void free_big_ones_after_a_trim(ebb_site *site) {
    ebb_step step = begin(site);
    for (unsigned i = 0; i < GROUPS * OF_GROUP; i++)
        blocks[i] = make_sized(bytes_of(i), i);
    finish(step);
    trim_all();
    assert_true(tray_read_pinned().bytes > (size_t)GROUPS * BIG_OF_GROUP * BIG);
    end_in_groups(0, BIG_OF_GROUP);
}

static void forget_little_ones(ebb_site *site) {
    end_in_groups(BIG_OF_GROUP, OF_GROUP);
    assert_int_equal(tray_read_pinned().bytes, 0);
    calm(site);
}

static void test_few_that_go_are_enough_where_they_are_big(void **state) {
    free_big_ones_after_a_trim(*state);
    trim_all();
    assert_true(tray_read_pinned().bytes <= (size_t)GROUPS * 2 * PAGES_MOST * EBB_PAGE);
    forget_little_ones(*state);
}

static void test_so_they_are_where_nobody_asks(void **state) {
    size_t bytes = 0;
    free_big_ones_after_a_trim(*state);
    while (tray_thin(1000000, false, &bytes))
        ;
    assert_true(tray_read_pinned().bytes <= (size_t)GROUPS * 2 * PAGES_MOST * EBB_PAGE);
    forget_little_ones(*state);
}

/* A part each time, and then there is nothing left to do. */
static void test_it_goes_by_itself_where_survivors_pin_too_much(void **state) {
    struct trim_idle idle = {0};
    unsigned looks = 0;
    fill(*state, EACH);
    assert_true(scope_pins_too_much());
    while (tray_read_pinned().bytes > (size_t)KEPT * PAGES_MOST * EBB_PAGE && looks++ < 1000)
        trim_when_idle(&idle, 250, 1000);
    assert_true(looks < 1000);
    for (looks = 0; !trim_when_idle(&idle, 250, 1000) && looks < 1000;)
        looks++;
    assert_true(looks < 1000);
    clear(EACH, 0);
    calm(*state);
}

static void test_dense_trays_are_left_alone_in_idle_time(void **state) {
    struct trim_idle idle = {0};
    fill(*state, 2);
    size_t before = tray_read_pinned().bytes;
    assert_false(scope_pins_too_much());
    for (unsigned i = 0; i < 20; i++)
        trim_when_idle(&idle, 250, 1000);
    assert_int_equal(tray_read_pinned().bytes, before);
    clear(2, 0);
    calm(*state);
}

static uint64_t ticks;

/* It goes on by one each time it is read: so a look says how many trays it is for. */
static uint64_t count_reads(void) {
    return ++ticks;
}

static bool thin_so_many(unsigned trays, bool is_asked, size_t *bytes) {
    uint64_t (*now_ns)(void) = os.now_ns;
    os.now_ns = count_reads;
    bool is_left = tray_thin(trays + 1, is_asked, bytes);
    os.now_ns = now_ns;
    return is_left;
}

enum { LESS_THAN_A_PAGE = 38 }; /* of which each second one was alive, but a whole one is free */

/* A look in idle time leaves alone what is worth none, but a trim wants it. */
static void test_a_look_in_idle_time_hides_nothing_from_a_trim(void **state) {
    size_t asked = 0, idle = 0, missed = 0;
    fill(*state, 2);
    trim_all();
    for (unsigned i = 0; i < COUNT; i += 2)
        if (i % EACH < LESS_THAN_A_PAGE)
            end(blocks[i], BYTES, i);
    unsigned part = (unsigned)tray_read_pinned().trays / 4;
    assert_true(thin_so_many(part, true, &asked));
    assert_true(asked > 0);
    assert_true(thin_so_many(part * 2, false, &idle));
    assert_false(thin_so_many(COUNT, true, &asked));
    (void)thin_so_many(COUNT, true, &missed);
    assert_int_equal(missed, 0);
    for (unsigned i = 0; i < COUNT; i += 2)
        if (i % EACH >= LESS_THAN_A_PAGE)
            end(blocks[i], BYTES, i);
    calm(*state);
}

/* The head of a block that is freed leads nowhere: nobody knows where the next one is. Once it is
 * known, the next trim gives the pages back. */
static void test_a_tray_with_an_overwritten_head_stays_as_it_is(void **state) {
    fill(*state, EACH);
    struct tray_head *head = tray_head_of(blocks[EACH + 3]);
    const struct tray *tray = tray_of((uintptr_t)head);
    uint32_t mark = head->mark;
    head->mark = 0x41414141;
    trim_all();
    assert_int_equal(tray->gone_bytes, 0);
    head->mark = mark;
    trim_all();
    assert_true(tray->gone_bytes > 0);
    clear(EACH, 0);
    calm(*state);
}

enum { THREADS = 3, ROUNDS = 400, PLACES = 500 };

static _Atomic(void *) places[PLACES];
static atomic_uint at_work, wrong;
static atomic_bool thinned; /* something, while they are at work */

static void put(unsigned place, void *block) {
    void *other = atomic_exchange(&places[place], block);
    if (other && !pattern_holds(other, BYTES, place))
        atomic_fetch_add(&wrong, 1);
    front_free(other);
}

/* Each leaves blocks behind for the others to free, and goes on while nothing was thinned: who does
 * that may have had no processor. */
static void *play(void *site) {
    for (unsigned round = 0;
         round < ROUNDS || (!atomic_load(&thinned) && round < 100 * ROUNDS); round++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (unsigned i = 0; i < PLACES; i++) {
            unsigned place = (i * 7 + round) % PLACES;
            void *block = front_alloc(BYTES, (void *)((uintptr_t)(round * PLACES + i) * 4096));
            pattern_fill(block, BYTES, place);
            if (i % 100)
                front_free(block);
            else
                put(place, block);
        }
        if (ebb_step_end(step) != 0)
            atomic_fetch_add(&wrong, 1);
    }
    atomic_fetch_sub(&at_work, 1);
    return NULL;
}

static void test_others_free_meanwhile(void **state) {
    pthread_t threads[THREADS];
    size_t bytes = 0;
    atomic_store(&at_work, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play, *state), 0);
    while (atomic_load(&at_work)) {
        (void)tray_thin(1000000, true, &bytes);
        atomic_store(&thinned, bytes > 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < PLACES; i++)
        put(i, NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_true(bytes > 0);
    assert_int_equal(tray_read_pinned().bytes, 0);
}

static int alone(void **state) {
    (void)state;
    options.idle_ms = 0; /* the tests alone thin */
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(test_a_trim_leaves_the_pages_of_survivors),
        SERVED(test_what_goes_later_goes_with_the_next_trim),
        SERVED(test_few_that_go_are_enough_where_they_are_big),
        SERVED(test_so_they_are_where_nobody_asks),
        SERVED(test_it_goes_by_itself_where_survivors_pin_too_much),
        SERVED(test_dense_trays_are_left_alone_in_idle_time),
        SERVED(test_a_look_in_idle_time_hides_nothing_from_a_trim),
        SERVED(test_a_tray_with_an_overwritten_head_stays_as_it_is),
        SERVED(test_others_free_meanwhile),
    };
    return cmocka_run_group_tests(tests, alone, NULL);
}
