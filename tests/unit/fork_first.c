// SPDX-License-Identifier: Apache-2.0
/*
 * fork_first.c - a child that is made while another thread is just the first to use something
 * uses it, too, and forks: it registers the handlers of forks once more, and they lock nothing
 * twice. Nor does it find a lock held of what that thread made meanwhile.
 */
#include "kit/test.h"
#include "pool/pool.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HANDLERS = 4 }; /* of pools, of exhausted memory, of sites, of what is registered */

static unsigned registered, stop_at;
static sem_t stopped, goes_on;

typedef void handler(void);
typedef int registers(handler *before, handler *in_parent, handler *in_child, void *library);

registers __register_atfork;

/* What pthread_atfork() calls, in front of the C library's. Handlers are there when it stops. */
int __register_atfork(handler *before, handler *in_parent, handler *in_child, void *library) {
    registers *theirs;
    void *symbol = dlsym(RTLD_NEXT, "__register_atfork");
    memcpy(&theirs, &symbol, sizeof theirs);
    int result = theirs(before, in_parent, in_child, library);
    if (++registered == stop_at) {
        sem_post(&stopped);
        sem_wait(&goes_on);
    }
    return result;
}

static const struct ebb_field no_fields[1];
static struct ebb_type type = {.name = "type", .bytes = sizeof(struct ebb_object),
                               .fields = no_fields};

static bool use_all(void) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "site"));
    ebb_step step = ebb_step_begin(site, 0);
    return ebb_region_alloc(step.region, 5000, 64) && ebb_step_end(step) == 0 &&
           ebb_site_destroy(site) == 0 && !ebb_report_on_exhausted(NULL, NULL) &&
           ebb_type_register(&type) == 0;
}

static void *use_first(void *context) {
    return use_all() ? context : NULL;
}

static bool ends_well(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && status == 0;
}

/* In a child: uses all, and has a child that does. */
static bool use_and_fork(void) {
    alarm(20); /* if a lock were taken twice, for ever */
    bool right = use_all();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        _exit(!use_all());
    }
    return ends_well(child) && right && use_all();
}

/* In a process that has used nothing so far. */
static bool fork_while_registering(unsigned number) {
    pthread_t thread;
    void *result = NULL;
    alarm(60); /* if there were not as many to stop at */
    stop_at = registered + number;
    if (pthread_create(&thread, NULL, use_first, &type) != 0)
        return false;
    sem_wait(&stopped);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(!use_and_fork());
    sem_post(&goes_on);
    bool right = pthread_join(thread, &result) == 0 && result;
    return ends_well(child) && right;
}

static void a_child_that_registers_handlers_again_may_fork(void **state) {
    (void)state;
    sem_init(&stopped, 0, 0);
    sem_init(&goes_on, 0, 0);
    for (unsigned number = 1; number <= HANDLERS; number++) {
        pid_t process = fork();
        assert_true(process >= 0);
        if (process == 0)
            _exit(!fork_while_registering(number));
        if (!ends_well(process))
            fail_msg("handlers number %u", number);
    }
}

/* ---- the measuring pool, which is on no list of pools ---- */

static sem_t has_lock;
static _Thread_local bool stops; /* at the next unlock: the pool is made, and nobody knows it */

typedef int unlocks(pthread_mutex_t *lock);

/* In place of the C library's. */
int pthread_mutex_unlock(pthread_mutex_t *lock) {
    static unlocks *_Atomic theirs;
    if (!theirs) {
        void *symbol = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
        unlocks *found;
        memcpy(&found, &symbol, sizeof found);
        theirs = found;
    }
    int result = theirs(lock);
    if (stops) {
        stops = false;
        sem_post(&stopped);
        sem_wait(&goes_on);
    }
    return result;
}

static void *measure_first(void *context) {
    stops = true;
    struct ebb_pool *pool = pool_for_measuring();
    pthread_mutex_lock(&pool->lock);
    sem_post(&has_lock);
    sem_wait(&goes_on);
    pthread_mutex_unlock(&pool->lock);
    return context;
}

/* The fork has all locks by now: the thread goes on as far as it can. */
static void let_go_on(void) {
    struct timespec until;
    sem_post(&goes_on);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    (void)sem_timedwait(&has_lock, &until);
}

static bool measures(void) {
    ebb_region region = OPEN(.measure = true);
    return ebb_region_alloc(region, 5000, 64) && ebb_region_close(region) == 0;
}

/* In a process that has used nothing so far: handlers that come first are called last. */
static bool fork_while_publishing(void) {
    pthread_t thread;
    alarm(60);
    if (pthread_atfork(let_go_on, NULL, NULL) != 0 || !ebb_pool_default() ||
        pthread_create(&thread, NULL, measure_first, NULL) != 0)
        return false;
    sem_wait(&stopped);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        _exit(!measures());
    }
    bool right = ends_well(child);
    sem_post(&goes_on);
    return pthread_join(thread, NULL) == 0 && right && measures();
}

static void a_child_measures_while_the_first_one_begins_to(void **state) {
    (void)state;
    sem_init(&stopped, 0, 0);
    sem_init(&goes_on, 0, 0);
    sem_init(&has_lock, 0, 0);
    pid_t process = fork();
    assert_true(process >= 0);
    if (process == 0)
        _exit(!fork_while_publishing());
    assert_true(ends_well(process));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_that_registers_handlers_again_may_fork),
        cmocka_unit_test(a_child_measures_while_the_first_one_begins_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
