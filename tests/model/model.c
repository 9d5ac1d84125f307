// SPDX-License-Identifier: Apache-2.0
/*
 * model.c - the model suite: a few fixed seeds and a fresh one, alone and on threads.
 *
 *     EBB_SEED=n      plays this seed only (as printed by a failure)
 *     EBB_OPS=n       operations per seed
 *     EBB_KIND=n      in pools of this kind of memory (EBB_KIND_PINNED: 2)
 *     EBB_TRACE=1     says every operation, and checks everything after each
 *     --long [secs]   plays fresh seeds for so long (600), everything in turn
 */
#include "kit/test.h"

#include "model/model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIXED_SEEDS = 3, THREADS = 4 };

static uint64_t ops = 40000;
static unsigned kind; /* of memory */
static uint64_t fresh;
static bool only_one;

static void play_alone(uint64_t seed) {
    ebb_pool *pool = POOL(.name = "model", .kind = kind);
    model_play(seed, ops, pool, 0);
    pool_end(pool);
}

static void play_limited(uint64_t seed) {
    ebb_pool *pool = POOL(.name = "limited", .kind = kind, .limit_used_bytes = 6 * MIB,
                          .limit_reserved_bytes = 12 * MIB, .keep_margin_percent = 1);
    model_play(seed, ops, pool, MODEL_LIMITED);
    pool_end(pool);
}

static void play_measuring(uint64_t seed) {
    model_play(seed, ops, NULL, MODEL_SHARED);
}

struct share {
    pthread_t thread;
    uint64_t seed;
    ebb_pool *pool;
};

static void *play_share(void *context) {
    const struct share *share = context;
    model_play(share->seed, ops / 2, share->pool, MODEL_SHARED);
    return NULL;
}

static void play_threads(uint64_t seed) {
    struct share shares[THREADS];
    unsigned threads = 2 + (unsigned)(seed % (THREADS - 1));
    ebb_pool *pool = POOL(.name = "threads", .kind = kind);
    for (unsigned i = 0; i < threads; i++) {
        shares[i] = (struct share){.seed = seed + i, .pool = pool};
        assert_int_equal(pthread_create(&shares[i].thread, NULL, play_share, &shares[i]), 0);
    }
    for (unsigned i = 0; i < threads; i++)
        assert_int_equal(pthread_join(shares[i].thread, NULL), 0);
    pool_end(pool);
}

/* A seed from the environment, or the fixed ones and the fresh one. */
static void play_seeds(void (*play)(uint64_t seed)) {
    if (!only_one)
        for (uint64_t seed = 1; seed <= FIXED_SEEDS; seed++)
            play(seed);
    play(fresh);
}

static void random_operations_match_the_shadow(void **state) {
    play_seeds(play_alone);
}

static void random_operations_under_limits_match_the_shadow(void **state) {
    play_seeds(play_limited);
}

static void random_measuring_matches_the_shadow(void **state) {
    play_seeds(play_measuring);
}

static void random_operations_on_threads_match_their_shadows(void **state) {
    play_seeds(play_threads);
}

static int play_long(unsigned seconds) {
    time_t end = time(NULL) + (time_t)seconds;
    uint64_t games = 0;
    while (time(NULL) < end) {
        fprintf(stderr, "seed %llu\n", (unsigned long long)++fresh);
        play_alone(fresh);
        play_limited(fresh);
        play_measuring(fresh);
        play_threads(fresh);
        games += 4;
    }
    printf("%llu games, no difference\n", (unsigned long long)games);
    return 0;
}

/* Who makes a slip in a seed is told, and plays nothing. */
static void numbers_that_are_none_are_refused(void **state) {
    static const char *const none[] = {"", "x", "12x", " 12", "-1", "99999999999999999999"};
    assert_int_equal(number_in("EBB_OPS", "0"), 0);
    assert_int_equal(number_in("EBB_OPS", "0x10"), 16);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        int status = 0;
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            (void)number_in("EBB_OPS", none[i]);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    }
}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_that_are_none_are_refused),
        cmocka_unit_test(random_operations_match_the_shadow),
        cmocka_unit_test(random_operations_under_limits_match_the_shadow),
        cmocka_unit_test(random_measuring_matches_the_shadow),
        cmocka_unit_test(random_operations_on_threads_match_their_shadows),
    };
    only_one = getenv("EBB_SEED") != NULL;
    fresh = fresh_seed();
    ops = number_from("EBB_OPS", ops);
    kind = (unsigned)number_from("EBB_KIND", kind);
    if (argc > 1 && strcmp(argv[1], "--long") == 0)
        return play_long(argc > 2 ? (unsigned)number_in("--long", argv[2]) : 600);
    fprintf(stderr, "# fresh seed: EBB_SEED=%llu\n", (unsigned long long)fresh);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
