// SPDX-License-Identifier: Apache-2.0
/*
 * falls.c - what a process without scopes had once goes back to the system while it rests for ever;
 * and one that has never had much, or has freed little, gets no thread for it.
 *
 * Run preloaded with libebb-malloc, and once without it: what glibc has freed last it gives back.
 * Each claim is of processes that wait in a read(); they are looked at from outside.
 */
#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define MIB ((size_t)1 << 20)
#define MUCH (100 * MIB)
#define LITTLE (8 * MIB)
#define LEFT (24 * MIB) /* of all that was had; the hardened library: and what it holds back */
#define HELD_BACK (40 * MIB)
#define LOOKS 400u      /* each of a tenth of a second: what is free ages for ten */

enum { WORKS = 2 };

static size_t left = LEFT;

struct rester {
    pid_t child;
    int done, go;
};

struct blocks {
    size_t size, count;
    void **list;
};

static struct blocks make(size_t bytes, size_t size) {
    struct blocks blocks = {.size = size, .count = bytes / size};
    EXPECT((blocks.list = malloc(blocks.count * sizeof *blocks.list)) != NULL);
    for (size_t i = 0; i < blocks.count; i++) {
        EXPECT((blocks.list[i] = malloc(size)) != NULL);
        memset(blocks.list[i], (int)i, size);
    }
    return blocks;
}

static void end(struct blocks blocks) {
    for (size_t i = 0; i < blocks.count; i++)
        free(blocks.list[i]);
    free(blocks.list);
}

static struct rester begin(void (*work)(size_t), size_t size) {
    int done[2], go[2];
    char byte = 0;
    EXPECT(pipe(done) == 0 && pipe(go) == 0);
    struct rester rester = {.child = fork(), .done = done[0], .go = go[1]};
    EXPECT(rester.child >= 0);
    close(done[1 - (rester.child == 0)]);
    close(go[rester.child == 0]);
    if (rester.child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(CHILD_SECONDS);
        work(size);
        EXPECT(write(done[1], &byte, 1) == 1);
        _exit(read(go[0], &byte, 1) != 1);
    }
    close(done[1]);
    close(go[0]);
    return rester;
}

static void await_rest(const struct rester *rester) {
    char byte;
    EXPECT(read(rester->done, &byte, 1) == 1);
}

/* A number of its status. */
static size_t told(const struct rester *rester, const char *name) {
    char path[40], line[256];
    size_t number = 0, length = strlen(name);
    snprintf(path, sizeof path, "/proc/%d/status", (int)rester->child);
    FILE *file = fopen(path, "r");
    EXPECT(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            number = strtoul(line + length + 1, NULL, 10);
    fclose(file);
    return number;
}

static size_t resident(const struct rester *rester) {
    return told(rester, "RssAnon") * 1024;
}

static void await(const struct rester *rester, bool (*is_so)(const struct rester *)) {
    await_rest(rester);
    for (unsigned i = 0; i < LOOKS && !is_so(rester); i++)
        usleep(100000);
    printf("# %zu MiB, %zu threads\n", resident(rester) / MIB, told(rester, "Threads"));
    EXPECT(is_so(rester));
}

static bool has_little(const struct rester *rester) {
    return resident(rester) < left;
}

static bool has_one_thread(const struct rester *rester) {
    return told(rester, "Threads") == 1;
}

static void release(struct rester *rester) {
    EXPECT(write(rester->go, "", 1) == 1);
    close(rester->go);
    close(rester->done);
    act_await(rester->child);
}

/* ---- what they do ---- */

static void have_much_once(size_t size) {
    end(make(MUCH, size));
}

static void have_much_in_a_child(size_t size) {
    struct rester child;
    have_much_once(size);
    child = begin(have_much_once, size);
    await(&child, has_little);
    release(&child);
}

static void work_on_a_little(size_t size) {
    for (unsigned i = 0; i < 20; i++) {
        usleep(100000);
        end(make(MIB, size));
    }
}

/* What it has freed is in memory yet when the child begins, which never has much. */
static void have_much_and_a_child(size_t size) {
    struct rester child;
    have_much_once(size);
    child = begin(work_on_a_little, size);
    await(&child, has_little);
    release(&child);
}

static void have_much_twice(size_t size) {
    have_much_once(size);
    sleep(13);
    have_much_once(size);
}

static void *end_later(void *context) {
    end(*(struct blocks *)context);
    return NULL;
}

/* What the first has made the other frees, which allocates nothing. */
static void free_on_a_thread(size_t size) {
    static struct blocks blocks;
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, end_later, &blocks) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    blocks = make(MUCH, size);
    EXPECT(pthread_create(&thread, NULL, end_later, &blocks) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
}

/* A filter that ends the process where it makes one of these calls. */
static void shut_in(unsigned call, unsigned other) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof lines / sizeof *lines, lines};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

static void shut_in_and_have_much(size_t size) {
    shut_in(SYS_clone3, SYS_clone);
    have_much_once(size);
}

static void begin_shut_in(const char *options) {
    EXPECT(setenv("EBB_MALLOC", options, 1) == 0);
    shut_in(SYS_prctl, SYS_prctl);
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
}

/* In the memory of a process that waits for it meanwhile. */
static void have_much_after_vfork(size_t size) {
    struct blocks blocks = make(MUCH, size);
    pid_t child = vfork();
    if (child == 0) {
        end(blocks);
        _exit(0);
    }
    act_await(child);
    have_much_once(size);
}

/* What it shuts itself out of is no matter of the other's. */
static void have_much_after_one_that_is_shut_in(size_t size) {
    struct blocks blocks = make(MUCH, size);
    pid_t child = vfork();
    if (child == 0) {
        shut_in(SYS_clone3, SYS_clone);
        end(blocks);
        _exit(0);
    }
    act_await(child);
    have_much_once(size);
}

static void have_much_after_one_with_a_scope(size_t size) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "falls", .scope = true));
    pid_t child = vfork();
    if (child == 0) {
        EXPECT(ebb_step_end(ebb_step_begin(site, 0)) == 0);
        _exit(0);
    }
    act_await(child);
    have_much_once(size);
}

static void have_little_often(size_t size) {
    for (unsigned i = 0; i < 40; i++)
        end(make(LITTLE, size));
}

static void keep_much(size_t size) {
    (void)make(MUCH, size);
    have_little_often(size);
}

/* ---- how threads begin ---- */

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* volatile: no compiler expects free() to call back */
static volatile bool is_watching;
static void *volatile of_creation; /* what that allocates comes from where this does */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *context) {
    create_fn *create;
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&create, &found, sizeof create);
    if (is_watching)
        of_creation = malloc(100);
    return create(thread, attributes, run, context);
}

/* ---- the claims ---- */

static const size_t sizes[] = {1000, 16000, 1000000};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void play(void (*const *works)(size_t), unsigned count,
                 bool (*is_so)(const struct rester *)) {
    struct rester resters[WORKS * SIZES];
    for (unsigned i = 0; i < count * SIZES; i++)
        resters[i] = begin(works[i / SIZES], sizes[i % SIZES]);
    for (unsigned i = 0; i < count * SIZES; i++) {
        await(&resters[i], is_so);
        release(&resters[i]);
    }
}

static void what_was_freed_goes_while_the_process_rests(void) {
    static void (*const works[])(size_t) = {have_much_once, free_on_a_thread};
    play(works, 2, has_little);
}

static void a_child_begins_no_thread_in_memory_that_it_shares(void) {
    static void (*const works[])(size_t) = {have_much_after_vfork,
                                            have_much_after_one_with_a_scope};
    play(works, 2, has_little);
}

static void what_a_child_in_shared_memory_may_do_is_its_own_affair(void) {
    static void (*const works[])(size_t) = {have_much_after_one_that_is_shut_in};
    if (prctl(PR_GET_SECCOMP) != 0)
        act_skips("there are filters already");
    play(works, 1, has_little);
}

static void it_goes_again_and_in_children(void) {
    static void (*const works[])(size_t) = {have_much_in_a_child, have_much_twice};
    play(works, 2, has_little);
}

static void what_a_parent_had_goes_in_its_child(void) {
    static void (*const works[])(size_t) = {have_much_and_a_child};
    play(works, 1, has_little);
}

/* What is held back is in use, and may fall. */
static void afterwards_there_is_one_thread_again(void) {
    static void (*const works[])(size_t) = {have_much_once};
    play(works, 1, left == LEFT ? has_one_thread : has_little);
}

static void who_frees_little_never_has_another_thread(void) {
    for (unsigned i = 0; i < SIZES; i++) {
        struct rester resters[] = {begin(have_little_often, sizes[i]), begin(keep_much, sizes[i])};
        for (unsigned which = 0; which < 2; which++) {
            await_rest(&resters[which]);
            EXPECT(has_one_thread(&resters[which]));
            release(&resters[which]);
        }
    }
}

static void who_may_begin_no_thread_is_not_made_to(void) {
    if (prctl(PR_GET_SECCOMP) != 0)
        act_skips("there are filters already");
    for (unsigned i = 0; i < SIZES; i++) {
        struct rester rester = begin(shut_in_and_have_much, sizes[i]);
        await(&rester, has_one_thread);
        release(&rester);
    }
}

static void without_idle_time_nobody_asks_for_filters(void) {
    if (prctl(PR_GET_SECCOMP) != 0)
        act_skips("there are filters already");
    pid_t child = fork();
    if (child == 0)
        begin_shut_in("idle_ms:0");
    act_await(child);
}

static void realloc_much(void *context) {
    EXPECT(realloc(context, MIB));
}

static void begin_inside(void *context) {
    EXPECT(ebb_step_begin(*(ebb_site **)context, 0).lane);
}

/* In a child that has the scope of its parent, and no thread but its own. */
static void begin_in_scope(ebb_site *site, void (*begins)(void *context), void *context) {
    ebb_step step = ebb_step_begin(site, 0);
    EXPECT(step.lane);
    pid_t child = fork();
    if (child == 0) {
        is_watching = true;
        uintptr_t in_scope = (uintptr_t)malloc(100);
        begins(context);
        is_watching = false;
        EXPECT(!ebb_scope_is_served() || (uintptr_t)of_creation > in_scope + MUCH);
        _exit(0);
    }
    act_await(child);
    EXPECT(ebb_step_end(step) == 0);
}

static void a_thread_that_begins_in_a_scope_is_not_made_of_it(void) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "falls", .scope = true));
    begin_in_scope(site, begin_inside, &site);
    struct blocks blocks = make(MUCH, 1000); /* so much is in use that a malloc() begins it */
    begin_in_scope(site, realloc_much, blocks.list[0]);
    end(blocks);
}

int main(int count, char **words) {
    static const struct act acts[] = {
        ACT(what_was_freed_goes_while_the_process_rests),
        ACT(a_child_begins_no_thread_in_memory_that_it_shares),
        ACT(what_a_child_in_shared_memory_may_do_is_its_own_affair),
        ACT(it_goes_again_and_in_children),
        ACT(what_a_parent_had_goes_in_its_child),
        ACT(afterwards_there_is_one_thread_again),
        ACT(who_frees_little_never_has_another_thread),
        ACT(who_may_begin_no_thread_is_not_made_to),
        ACT(without_idle_time_nobody_asks_for_filters),
        ACT(a_thread_that_begins_in_a_scope_is_not_made_of_it),
    };
    left += count > 1 && strcmp(words[1], "--hardened") == 0 ? HELD_BACK : 0;
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
