// SPDX-License-Identifier: Apache-2.0
/*
 * security.c - a set of small crimes against the heap, and what becomes of each.
 *
 * Each case runs in a child of its own. It is caught if the process dies of a signal, contained if
 * it goes on and nothing shows: no two live blocks overlap, no neighbour has changed, no secret is
 * read, no forged address is handed out. Otherwise it is missed. Caught and contained are counted
 * together, as good.
 *
 *     security [--scope] [--each] [LEAST]    fails if fewer than LEAST are good
 *
 * The same program judges any malloc() that is preloaded.
 */
#include <ebb/ebb.h>

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MISSED = 0, CONTAINED = 42, CAUGHT = 43 };
enum { NEIGHBOURS = 16, PROBES = 300, SIZES = 4 };

static const size_t sizes[SIZES] = {24, 1000, 20000, 1 << 20};

void free_sized(void *block, size_t bytes) __attribute__((weak));

static volatile char secret = 0x6b;
static char forged[1 << 12] __attribute__((aligned(4096)));

/* ---- what shows ---- */

static int judge(bool shows) {
    return shows ? MISSED : CONTAINED;
}

/* Blocks of this size that come now overlap, or lie in what is alive at `at`. */
static bool heap_is_broken(size_t bytes, const char *at, size_t alive) {
    static char *probes[PROBES];
    unsigned count = bytes > 100000 ? 12 : PROBES;
    bool broken = false;
    for (unsigned i = 0; i < count; i++) {
        probes[i] = malloc(bytes);
        for (unsigned k = 0; k < i; k++)
            broken |= probes[i] < probes[k] + bytes && probes[k] < probes[i] + bytes;
        broken |= at && probes[i] < at + alive && at < probes[i] + bytes;
        memset(probes[i], 1, bytes);
    }
    if (broken)
        return true;
    for (unsigned i = 0; i < count; i++)
        free(probes[i]);
    for (unsigned i = 0; i < 2000; i++)
        free(malloc(i % 2 ? bytes : i * 17 % 4000));
    return false;
}

static char *secret_block(size_t bytes) {
    char *block = malloc(bytes);
    memset(block, secret, bytes);
    return block;
}

static void churn(size_t bytes) {
    void *blocks[100];
    unsigned count = bytes > 100000 ? 20 : 100;
    for (unsigned i = 0; i < count; i++)
        blocks[i] = malloc(bytes);
    for (unsigned i = 0; i < count; i++)
        free(blocks[i]);
}

/* ---- double frees ---- */

static int twice_at_once(size_t bytes) {
    char *block = malloc(bytes);
    free(block);
    free(block);
    return judge(heap_is_broken(bytes, NULL, 0));
}

static int twice_around_another(size_t bytes) {
    char *block = malloc(bytes), *other = malloc(bytes);
    free(block);
    free(other);
    free(block);
    return judge(heap_is_broken(bytes, NULL, 0));
}

static int twice_much_later(size_t bytes) {
    char *block = malloc(bytes), *fence = malloc(bytes);
    free(block);
    churn(bytes);
    free(block);
    free(fence);
    return judge(heap_is_broken(bytes, NULL, 0));
}

static int twice_though_reused(size_t bytes) {
    char *block = malloc(bytes);
    free(block);
    char *reused = malloc(bytes);
    free(block);
    return judge(heap_is_broken(bytes, reused, bytes));
}

static void *free_on_thread(void *block) {
    free(block);
    return NULL;
}

static int twice_on_two_threads(size_t bytes) {
    pthread_t thread;
    char *block = malloc(bytes);
    pthread_create(&thread, NULL, free_on_thread, block);
    pthread_join(thread, NULL);
    free(block);
    return judge(heap_is_broken(bytes, NULL, 0));
}

static int freed_by_realloc(size_t bytes) {
    char *block = malloc(bytes);
    (void)!realloc(block, 0);
    free(block);
    return judge(heap_is_broken(bytes, NULL, 0));
}

static int twice_with_key_erased(size_t bytes) {
    char *block = malloc(bytes);
    free(block);
    memset(block, 0, 16);
    free(block);
    return judge(heap_is_broken(bytes, NULL, 0));
}

/* ---- frees of what is no block ---- */

static int inside(size_t bytes, size_t offset) {
    char *block = malloc(bytes), *other = malloc(bytes);
    free(block + offset);
    (void)other;
    return judge(heap_is_broken(bytes, block, bytes));
}

static int inside_by_1(size_t bytes) {
    return inside(bytes, 1);
}

static int inside_by_8(size_t bytes) {
    return inside(bytes, 8);
}

static int inside_by_16(size_t bytes) {
    return inside(bytes, 16);
}

static int inside_in_the_middle(size_t bytes) {
    return inside(bytes, (bytes / 2 + 15) & ~(size_t)15);
}

static int before_it(size_t bytes) {
    char *block = malloc(bytes);
    free(block - 16);
    return judge(heap_is_broken(bytes, block, bytes));
}

static int on_the_stack(size_t offset) {
    char array[4096] __attribute__((aligned(64)));
    memset(array, 0x21, sizeof array);
    free(array + 64 + offset % 64);
    bool broken = heap_is_broken(24, array, sizeof array);
    return judge(broken || heap_is_broken(32, array, sizeof array));
}

static int of_a_global(size_t offset) {
    memset(forged, 0x21, sizeof forged);
    free(forged + offset % 64);
    return judge(heap_is_broken(24, forged, sizeof forged));
}

/* As an attacker would prepare it: what looks like glibc's head of a block of 32 bytes. */
static int of_a_forged_head(size_t offset) {
    size_t *head = (size_t *)(void *)(forged + 1024);
    (void)offset;
    head[1] = 0x21;
    head[5] = 0x21;
    free(head + 2);
    return judge(heap_is_broken(24, forged, sizeof forged));
}

static int of_a_mapping(size_t offset) {
    char *pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages[0] = 1;
    free(pages + offset);
    return judge(heap_is_broken(24, pages, 1 << 20));
}

static int of_code(size_t offset) {
    free((char *)(uintptr_t)of_code + offset);
    return judge(heap_is_broken(24, NULL, 0));
}

static int of_a_number(size_t number) {
    free((void *)(number << 4));
    return judge(heap_is_broken(24, NULL, 0));
}

static int of_a_wild_address(size_t bits) {
    free((void *)(0xdead000000000000u + (bits << 12)));
    return judge(heap_is_broken(24, NULL, 0));
}

/* ---- beyond the end ---- */

static int write_around(size_t bytes, long from, size_t count) {
    char *blocks[NEIGHBOURS];
    bool shows = false;
    for (unsigned i = 0; i < NEIGHBOURS; i++)
        blocks[i] = secret_block(bytes);
    memset(blocks[NEIGHBOURS / 2] + from, 0x41, count);
    for (unsigned i = 0; i < NEIGHBOURS; i++)
        for (size_t at = 0; at < bytes; at++)
            shows |= blocks[i][at] != secret && i != NEIGHBOURS / 2;
    for (unsigned i = 0; i < NEIGHBOURS; i++)
        free(blocks[i]);
    return judge(heap_is_broken(bytes, NULL, 0) || shows);
}

static int above_by_1(size_t bytes) {
    return write_around(bytes, (long)bytes, 1);
}

static int above_by_8(size_t bytes) {
    return write_around(bytes, (long)bytes, 8);
}

static int above_by_64(size_t bytes) {
    return write_around(bytes, (long)bytes, 64);
}

static int above_by_a_page(size_t bytes) {
    return write_around(bytes, (long)bytes, 4096);
}

static int below_by_1(size_t bytes) {
    return write_around(bytes, -1, 1);
}

static int below_by_8(size_t bytes) {
    return write_around(bytes, -8, 8);
}

static int below_by_64(size_t bytes) {
    return write_around(bytes, -64, 64);
}

static int read_above(size_t bytes) {
    char *blocks[NEIGHBOURS];
    unsigned seen = 0;
    for (unsigned i = 0; i < NEIGHBOURS; i++)
        blocks[i] = secret_block(bytes);
    const volatile char *block = blocks[NEIGHBOURS / 2];
    for (size_t at = 0; at < 256; at++)
        seen += block[bytes + at] == secret;
    return judge(seen > 8);
}

/* The word in front of the block, where some heaps keep its size, says another one. */
static int forged_size(size_t bytes, size_t claimed) {
    char *block = malloc(bytes), *other = malloc(bytes), *third = malloc(bytes);
    memset(other, secret, bytes);
    ((volatile size_t *)(void *)block)[-1] = claimed;
    free(block);
    bool broken = heap_is_broken(bytes, other, bytes) || heap_is_broken(2 * bytes, other, bytes);
    return judge(broken || other[0] != secret || other[bytes - 1] != secret || !third);
}

static int forged_size_twice(size_t bytes) {
    return forged_size(bytes, ((bytes + 23) & ~(size_t)15) * 2 + 1);
}

static int forged_size_huge(size_t bytes) {
    return forged_size(bytes, SIZE_MAX - bytes);
}

/* ---- after the end ---- */

static int write_late(size_t bytes) {
    char *block = malloc(bytes);
    free(block);
    char *other = secret_block(bytes);
    memset(block, 0x41, bytes);
    return judge(other[bytes / 2] != secret || heap_is_broken(bytes, other, bytes));
}

static int write_much_later(size_t bytes) {
    char *blocks[50], *block = malloc(bytes);
    free(block);
    unsigned count = bytes > 100000 ? 10 : 50;
    bool shows = false;
    for (unsigned i = 0; i < count; i++)
        blocks[i] = secret_block(bytes);
    memset(block, 0x41, bytes);
    for (unsigned i = 0; i < count; i++)
        shows |= blocks[i][bytes / 2] != secret;
    return judge(shows || heap_is_broken(bytes, NULL, 0));
}

static int read_late(size_t bytes) {
    volatile char *block = secret_block(bytes);
    free((char *)block);
    unsigned seen = 0;
    for (size_t at = 16; at < bytes; at++)
        seen += block[at] == secret;
    return judge(seen == bytes - 16);
}

/* An address in the freed block's first word, that a heap may take for its own link. */
static int forged_link(size_t bytes) {
    char *first = malloc(bytes), *block = malloc(bytes);
    free(first);
    free(block);
    ((void *volatile *)(void *)block)[0] = forged + 1024;
    bool given = false;
    for (unsigned i = 0; i < 50; i++) {
        char *fresh = malloc(bytes);
        given |= fresh >= forged && fresh < forged + sizeof forged;
    }
    return judge(given || heap_is_broken(bytes, forged, sizeof forged));
}

static int grown_late(size_t bytes) {
    char *block = malloc(bytes), *fence = malloc(bytes);
    free(block);
    char *other = malloc(bytes), *grown = realloc(block, bytes * 4);
    (void)fence;
    return judge(grown == other || heap_is_broken(bytes, other, bytes));
}

static int usable_late(size_t bytes) {
    char *block = malloc(bytes);
    free(block);
    return judge(malloc_usable_size(block) != 0);
}

static int usable_inside(size_t bytes) {
    char *block = malloc(bytes);
    size_t usable = malloc_usable_size(block + 16);
    return judge(usable != 0 && usable > bytes - 16);
}

/* ---- what was there before ---- */

static int remains(size_t bytes) {
    char *block = secret_block(bytes);
    free(block);
    volatile char *next = malloc(bytes);
    unsigned seen = 0;
    for (size_t at = 0; at < bytes; at++)
        seen += next[at] == secret;
    return judge(seen > bytes / 4);
}

static int remains_in_growth(size_t bytes) {
    unsigned seen = 0;
    char *blocks[20];
    for (unsigned i = 0; i < 20; i++)
        blocks[i] = secret_block(bytes * 2);
    for (unsigned i = 0; i < 20; i++)
        free(blocks[i]);
    volatile char *grown = realloc(calloc(1, bytes), bytes * 2);
    for (size_t at = bytes; at < bytes * 2; at++)
        seen += grown[at] == secret;
    return judge(seen > bytes / 4);
}

/* ---- wrong sizes ---- */

static int freed_as(size_t bytes, size_t claimed) {
    char *block = malloc(bytes);
    if (free_sized)
        free_sized(block, claimed);
    else
        free(block);
    return judge(heap_is_broken(bytes, NULL, 0) || heap_is_broken(claimed, NULL, 0));
}

static int freed_as_larger(size_t bytes) {
    return freed_as(bytes, bytes * 3);
}

static int freed_as_smaller(size_t bytes) {
    return freed_as(bytes, bytes / 3);
}

static int wild_size(size_t which) {
    void *blocks[] = {
        malloc(SIZE_MAX - which),
        calloc(SIZE_MAX / 2 + 2, 2 + which),
        reallocarray(NULL, (size_t)1 << 33, ((size_t)1 << 31) + which),
        realloc(NULL, (size_t)PTRDIFF_MAX + 1 + which),
        memalign(64, SIZE_MAX - 32 - which),
    };
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (blocks[i])
            return MISSED;
    return CONTAINED;
}

/* ---- all of them ---- */

struct crime {
    const char *name;
    int (*commit)(size_t);
    size_t with[SIZES]; /* all 0: each of the sizes */
};

#define CRIME(function) {#function, function, {0}}
#define WITH(function, ...) {#function, function, {__VA_ARGS__}}

static const struct crime crimes[] = {
    CRIME(twice_at_once),
    CRIME(twice_around_another),
    CRIME(twice_much_later),
    CRIME(twice_though_reused),
    CRIME(twice_on_two_threads),
    CRIME(freed_by_realloc),
    CRIME(twice_with_key_erased),
    CRIME(inside_by_1),
    CRIME(inside_by_8),
    CRIME(inside_by_16),
    CRIME(inside_in_the_middle),
    CRIME(before_it),
    WITH(on_the_stack, 1, 8, 16, 32),
    WITH(of_a_global, 1, 8, 16, 32),
    WITH(of_a_forged_head, 1),
    WITH(of_a_mapping, 4096, 16, 8192, 100),
    WITH(of_code, 1, 16),
    WITH(of_a_number, 1, 2, 4096),
    WITH(of_a_wild_address, 1, 2),
    CRIME(above_by_1),
    CRIME(above_by_8),
    CRIME(above_by_64),
    CRIME(above_by_a_page),
    CRIME(below_by_1),
    CRIME(below_by_8),
    CRIME(below_by_64),
    CRIME(read_above),
    CRIME(forged_size_twice),
    CRIME(forged_size_huge),
    CRIME(write_late),
    CRIME(write_much_later),
    CRIME(read_late),
    CRIME(forged_link),
    CRIME(grown_late),
    CRIME(usable_late),
    CRIME(usable_inside),
    CRIME(remains),
    CRIME(remains_in_growth),
    CRIME(freed_as_larger),
    CRIME(freed_as_smaller),
    WITH(wild_size, 1, 64),
};

static int commit(const struct crime *crime, size_t with, bool in_scope) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        alarm(10);
        (void)!freopen("/dev/null", "w", stderr);
        churn(64); /* a heap that is in use */
        if (in_scope) {
            ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "crime", .scope = true));
            (void)ebb_step_begin(site, 0);
            churn(64);
        }
        _exit(crime->commit(with));
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return MISSED;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? MISSED : CAUGHT;
    return WEXITSTATUS(status);
}

int main(int count, char **words) {
    unsigned all = 0, good = 0, caught = 0, least = 0;
    bool in_scope = false, each = false;
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--scope") == 0)
            in_scope = true;
        else if (strcmp(words[i], "--each") == 0)
            each = true;
        else
            least = (unsigned)strtoul(words[i], NULL, 10);
    }
    for (unsigned i = 0; i < sizeof crimes / sizeof *crimes; i++) {
        bool own = crimes[i].with[0] != 0;
        if (each)
            printf("# %-22s", crimes[i].name);
        for (unsigned k = 0; k < SIZES && (!own || crimes[i].with[k]); k++) {
            int outcome = commit(&crimes[i], own ? crimes[i].with[k] : sizes[k], in_scope);
            all++;
            caught += outcome == CAUGHT;
            good += outcome == CAUGHT || outcome == CONTAINED;
            if (each)
                printf(" %s", outcome == CAUGHT      ? "caught   "
                              : outcome == CONTAINED ? "contained"
                                                     : "missed   ");
        }
        if (each)
            printf("\n");
    }
    printf("1..1\n%sok 1 - %u of %u good, %u of them caught; at least %u\n",
           good < least ? "not " : "", good, all, caught, least);
    return good < least;
}
