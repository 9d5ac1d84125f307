// SPDX-License-Identifier: Apache-2.0
/*
 * used_late.c - the hardened library ends a process that uses what it has freed: by a fault, or,
 * when the block leaves the quarantine, with a line; and what it costs to see that is bounded.
 */
#include "kit/maps.h"
#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { THREADS = 60, SCOPES = 300, SCOPE_BLOCKS = 20, MAPPINGS_MOST = 20000 };
enum { PAGE = 4096, SPARE = 40, MAPPINGS_USUAL = 70000, FILL = 0xEB };
enum { RESIDENT_MOST = 100 << 20, WRITTEN = 1 << 20, LARGE = 100 << 20 };
enum { OTHERS = 9000, HELD = 4000, MOST_HELD = 4 };

#define GIANT ((size_t)3 << 29)
#define HELD_MOST (((size_t)1 << 30) - PAGE) /* of which MOST_HELD are held back at once */

static ebb_site *site;

static ebb_step begin(void) {
    if (!site)
        site = ebb_site_create(EBB_SITE_OPTIONS(.name = "late", .scope = true));
    EXPECT(site);
    return ebb_step_begin(site, 0);
}

static void end(ebb_step step) {
    EXPECT(ebb_step_end(step) == 0);
}

static char *block_of(size_t bytes) {
    char *block = malloc(bytes);
    EXPECT(block);
    memset(block, 1, bytes < WRITTEN ? bytes : WRITTEN);
    return block;
}

/* What the system, or the library, ends the process by. */
static void dies_of(int signal_number, void (*crime)(void)) {
    int status = 0;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        EXPECT(freopen("/dev/null", "w", stderr));
        crime();
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == signal_number);
}

/* ---- after the end of a scope ---- */

static void *freed_in_a_scope(void *context) {
    ebb_step step = begin();
    char *block = block_of(1000);
    free(block);
    end(step);
    return context ? context : block;
}

static void use_in_the_same_thread(void) {
    *(volatile char *)freed_in_a_scope(NULL) = 1;
}

static void use_when_its_thread_has_ended(void) {
    pthread_t thread;
    void *block = NULL;
    EXPECT(pthread_create(&thread, NULL, freed_in_a_scope, NULL) == 0);
    EXPECT(pthread_join(thread, &block) == 0 && block);
    end(begin());
    *(volatile char *)block = 1;
}

static void use_when_memory_was_given_back(void) {
    char *block = freed_in_a_scope(NULL);
    malloc_trim(0);
    end(begin());
    *(volatile char *)block = 1;
}

static void what_a_scope_has_freed_faults_after_its_end(void) {
    dies_of(SIGSEGV, use_in_the_same_thread);
    dies_of(SIGSEGV, use_when_its_thread_has_ended);
    dies_of(SIGSEGV, use_when_memory_was_given_back);
}

/* All that waits leaves. */
static void free_others(void) {
    for (unsigned i = 0; i < OTHERS; i++)
        free(malloc(64));
}

static void write_beside_a_survivor(void) {
    ebb_step step = begin();
    char *survivor = block_of(100), *block = block_of(1000);
    free(block);
    end(step);
    *(volatile char *)block ^= 1;
    free_others();
    free(survivor);
}

static void use_when_the_survivor_has_gone(void) {
    ebb_step step = begin();
    char *survivor = block_of(100), *block = block_of(1000);
    free(block);
    end(step);
    end(begin());
    free(survivor);
    end(begin());
    *(volatile char *)block ^= 1;
}

static void what_lies_beside_a_survivor_is_held_back(void) {
    dies_of(SIGABRT, write_beside_a_survivor);
    dies_of(SIGSEGV, use_when_the_survivor_has_gone);
}

static char *freed_beside_a_survivor(char **survivor) {
    *survivor = block_of(100);
    char *block = malloc(1000);
    free(block);
    return block;
}

/* Else who allocates it would be sent to the general heap, soon. */
static void what_is_held_back_is_no_survivor(void) {
    char *survivor, *block, *neighbour;
    for (unsigned i = 0; i < 50; i++) {
        ebb_step step = begin();
        block = freed_beside_a_survivor(&survivor);
        neighbour = malloc(2000 + 64 * i); /* who has not been seen before */
        EXPECT(((uintptr_t)block ^ (uintptr_t)neighbour) >> 16 == 0);
        free(neighbour);
        end(step);
        free(survivor);
    }
}

/* ---- before its end, and without one ---- */

static size_t late_bytes, late_at;

static void write_to_a_freed_block(void) {
    char *block = block_of(late_bytes);
    free(block);
    block[late_at] ^= 1;
    free_others();
}

static void writes_beside_whole_pages_are_seen_later(void) {
    static const size_t places[] = {0, 2, 9500, 9999, 10000, 10015};
    late_bytes = 10000;
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        late_at = places[i];
        dies_of(SIGABRT, write_to_a_freed_block);
    }
    late_at = 5000;
    dies_of(SIGSEGV, write_to_a_freed_block);
}

/* Its pages cost nothing once they are closed. */
static void large_blocks_are_held_back_too(void) {
    static const size_t sizes[] = {100000, 8 << 20, 9 << 20, 100 << 20, 1 << 30};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        late_bytes = sizes[i];
        late_at = sizes[i] / 2;
        dies_of(SIGSEGV, write_to_a_freed_block);
        late_at = sizes[i] - 1;
        dies_of(SIGABRT, write_to_a_freed_block);
    }
}

static void write_after_what_none_can_have(void) {
    static volatile size_t bytes = (size_t)1 << 47;
    char *block = block_of(100000);
    free(block);
    EXPECT(!malloc(bytes));
    EXPECT(!calloc(bytes, 2));
    EXPECT(!memalign(PAGE, bytes));
    EXPECT(!realloc(NULL, bytes));
    block[50000] = 1;
}

/* Or who chooses a size would choose when what was freed is used again. */
static void what_none_can_have_leaves_it_held_back(void) {
    dies_of(SIGSEGV, write_after_what_none_can_have);
}

/* ---- what it costs ---- */

static void *allocate_zeroed(size_t bytes) {
    return calloc(bytes, 1);
}

static void *allocate_aligned(size_t bytes) {
    return memalign(PAGE, bytes);
}

static void *allocate_resized(size_t bytes) {
    return realloc(malloc(100), bytes);
}

/* Nobody else asks meanwhile, so that what is held back is let go for this one. */
static void use_few_addresses(void *(*allocate)(size_t)) {
    struct rlimit limit = {LARGE * 8ul, LARGE * 8ul};
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
    for (unsigned i = 0; i < 100; i++) {
        char *block = allocate(LARGE);
        EXPECT(block);
        block[LARGE / 2] = 1;
        free(block);
    }
}

static void where_addresses_are_few_they_are_not(void) {
    static void *(*const ways[])(size_t) = {malloc, allocate_zeroed, allocate_aligned,
                                            allocate_resized};
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        pid_t child = fork();
        if (child == 0) {
            use_few_addresses(ways[i]);
            _exit(0);
        }
        act_await(child);
    }
}

static volatile bool opens_nothing; /* as where the process has all the data that it may have */

int mprotect(void *addr, size_t bytes, int protection) {
    if (!opens_nothing || !(protection & PROT_WRITE))
        return (int)syscall(SYS_mprotect, addr, bytes, protection);
    errno = ENOMEM;
    return -1;
}

static void what_is_too_large_to_be_held_back_is_not_lost(void) {
    struct rlimit limit = {4 * GIANT, 4 * GIANT};
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
    opens_nothing = true;
    for (unsigned i = 0; i < 20; i++) {
        char *block = malloc(GIANT);
        EXPECT(block);
        block[GIANT / 2] = 1;
        free(block);
    }
}

/* There are not as many addresses again as one block had, of which others are held back then. */
static void what_is_held_back_leaves_for_what_is_larger(void) {
    struct rlimit limit = {4 * GIANT, 4 * GIANT};
    char *blocks[MOST_HELD];
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
    free(block_of(3 * GIANT));
    for (unsigned i = 0; i < MOST_HELD; i++)
        blocks[i] = block_of(HELD_MOST);
    for (unsigned i = 0; i < MOST_HELD; i++)
        free(blocks[i]);
    free(block_of(3 * GIANT));
}

/* Mappings that a process may have. */
static unsigned mappings_most(void) {
    unsigned most = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    EXPECT(file && fscanf(file, "%u", &most) == 1);
    fclose(file);
    return most;
}

/* But for a few that the heap needs itself. */
static void use_up_mappings(void) {
    size_t pages = 2 * (size_t)mappings_most(), at = 0;
    char *area = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(area != MAP_FAILED);
    while (at < pages && mprotect(area + at * PAGE, PAGE, PROT_READ) == 0)
        at += 2;
    EXPECT(at < pages);
    for (unsigned i = 0; i < SPARE; i++)
        EXPECT(mprotect(area + (at -= 2) * PAGE, PAGE, PROT_NONE) == 0);
}

static bool is_forbidden(const char *block) {
    return maps_open((uintptr_t)block, (uintptr_t)block + WRITTEN) < WRITTEN;
}

/* What was forbidden before leaves its mappings to others. */
static char *freed_and_not_forbidden(void) {
    for (unsigned i = 0; i < RESIDENT_MOST / WRITTEN; i++) {
        char *block = block_of(WRITTEN);
        free(block);
        if (!is_forbidden(block))
            return block;
    }
    return NULL;
}

static void write_where_nothing_can_be_forbidden(void) {
    char *large = block_of(LARGE);
    memset(large, 1, LARGE);
    use_up_mappings();
    for (unsigned i = 0; i < 3 * RESIDENT_MOST / WRITTEN; i++)
        free(block_of(WRITTEN));
    free(large); /* it is not held back */
    EXPECT(act_resident() < RESIDENT_MOST);
    char *block = freed_and_not_forbidden();
    EXPECT(block && (unsigned char)block[WRITTEN / 2] == FILL);
    block[WRITTEN / 2] ^= 1;
    free_others();
}

static void what_cannot_be_forbidden_is_filled_and_held_back(void) {
    if (mappings_most() <= MAPPINGS_USUAL) /* else it takes long */
        dies_of(SIGABRT, write_where_nothing_can_be_forbidden);
}

static pthread_barrier_t all_rest;

static void *serve_and_rest(void *context) {
    for (unsigned i = 0; i < SCOPES; i++) {
        ebb_step step = begin();
        for (unsigned k = 0; k < SCOPE_BLOCKS; k++)
            free(block_of(2000));
        end(step);
    }
    pthread_barrier_wait(&all_rest);
    pthread_barrier_wait(&all_rest);
    return context;
}

static void threads_that_rest_need_few_mappings_and_pages(void) {
    pthread_t threads[THREADS];
    end(begin());
    EXPECT(pthread_barrier_init(&all_rest, NULL, THREADS + 1) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, serve_and_rest, NULL) == 0);
    pthread_barrier_wait(&all_rest);
    EXPECT(act_mappings() < MAPPINGS_MOST);
    EXPECT(act_resident() < RESIDENT_MOST);
    pthread_barrier_wait(&all_rest);
    for (unsigned i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
}

/* But for jemalloc's maps of addresses, 2 MiB for each further GiB in which there are some. */
static void what_is_forbidden_does_not_count_as_used(void) {
    end(begin());
    struct mallinfo2 before = mallinfo2();
    for (unsigned i = 0; i < SCOPES; i++)
        (void)freed_in_a_scope(NULL);
    struct mallinfo2 after = mallinfo2();
    EXPECT(after.uordblks < before.uordblks + WRITTEN);
    EXPECT(after.fordblks < before.fordblks + WRITTEN);
    EXPECT(after.arena < before.arena + 5 * WRITTEN);
}

/* Only pages that are forbidden are in no memory, not what lies beside them. */
static void what_is_filled_counts_as_resident(void) {
    static char *blocks[HELD];
    size_t arena = mallinfo2().arena, resident = act_resident();
    for (unsigned i = 0; i < HELD; i++)
        memset(blocks[i] = block_of(2 * PAGE), 1, 2 * PAGE);
    for (unsigned i = 0; i < HELD; i++)
        free(blocks[i]);
    EXPECT(mallinfo2().arena + WRITTEN > arena + act_resident() - resident);
}

/* jemalloc has five for four of these. */
static void what_lies_behind_does_not(void) {
    size_t arena = mallinfo2().arena;
    for (unsigned i = 0; i < SCOPES; i++)
        free(block_of(WRITTEN));
    EXPECT(mallinfo2().arena < arena + 8 * WRITTEN);
}

int main(void) {
    static const struct act acts[] = {
        ACT(what_a_scope_has_freed_faults_after_its_end),
        ACT(what_lies_beside_a_survivor_is_held_back),
        ACT(what_is_held_back_is_no_survivor),
        ACT(writes_beside_whole_pages_are_seen_later),
        ACT(large_blocks_are_held_back_too),
        ACT(what_none_can_have_leaves_it_held_back),
        ACT(where_addresses_are_few_they_are_not),
        ACT(what_is_too_large_to_be_held_back_is_not_lost),
        ACT(what_is_held_back_leaves_for_what_is_larger),
        ACT(what_cannot_be_forbidden_is_filled_and_held_back),
        ACT(threads_that_rest_need_few_mappings_and_pages),
        ACT(what_is_forbidden_does_not_count_as_used),
        ACT(what_is_filled_counts_as_resident),
        ACT(what_lies_behind_does_not),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
