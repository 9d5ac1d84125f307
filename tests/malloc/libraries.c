// SPDX-License-Identifier: Apache-2.0
/*
 * libraries.c - blocks that the C library and libraries loaded late allocate and others free, with
 * scopes open; and processes that may have little memory.
 *
 * Run preloaded with libebb-malloc, and once without it, when steps are only steps.
 * libraries BRINGER: the library of bringer.cc.
 */
#include <stdbool.h>

#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <iconv.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <wchar.h>

#define MIB ((size_t)1 << 20)

static ebb_site *site;
static const char *bringer;
static bool may_be_refused; /* ebb needs 2 GB of addresses; without, malloc() goes on alone */

static ebb_step begin(void) {
    if (!site)
        site = ebb_site_create(EBB_SITE_OPTIONS(.name = "libraries", .scope = true));
    ebb_step step = ebb_step_begin(site, 0);
    EXPECT(ebb_region_is_open(step.region) || may_be_refused);
    return step;
}

static void finish(ebb_step step) {
    EXPECT(!step.lane || ebb_step_end(step) == 0);
}

/* ---- the C library ---- */

struct given {
    char *copy, *printed, *line, *folder, *path, *opened;
    wchar_t *wide;
    struct dirent **names;
    int count;
    size_t room;
};

static struct given take_all(void) {
    struct given given = {.copy = strdup("a text that is copied")};
    EXPECT(asprintf(&given.printed, "%0500d", 7) == 500);
    FILE *file = fopen("/proc/self/maps", "r");
    EXPECT(file && getline(&given.line, &given.room, file) > 0);
    EXPECT(fclose(file) == 0);
    given.folder = getcwd(NULL, 0);
    given.path = realpath("/proc/self/exe", NULL);
    given.wide = wcsdup(L"wide");
    given.count = scandir("/proc/self", &given.names, NULL, alphasort);
    EXPECT(given.folder && given.path && given.count > 10);
    size_t bytes = 0;
    FILE *stream = open_memstream(&given.opened, &bytes);
    for (unsigned i = 0; i < 5000; i++)
        fprintf(stream, "%u ", i);
    EXPECT(fclose(stream) == 0 && bytes > 20000);
    return given;
}

static void *give_back(void *context) {
    struct given *given = context;
    EXPECT(strcmp(given->copy, "a text that is copied") == 0);
    EXPECT(strlen(given->printed) == 500 && wcscmp(given->wide, L"wide") == 0);
    free(given->copy);
    free(given->printed);
    free(given->line);
    free(given->folder);
    free(given->path);
    free(given->wide);
    free(given->opened);
    for (int i = 0; i < given->count; i++)
        free(given->names[i]);
    free(given->names);
    return NULL;
}

static void what_the_c_library_gives(void) {
    for (unsigned i = 0; i < 30; i++) {
        ebb_step step = begin();
        struct given given = take_all(), other = take_all();
        if (i % 2)
            give_back(&given);
        finish(step);
        if (!(i % 2))
            give_back(&given);
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, give_back, &other) == 0);
        EXPECT(pthread_join(thread, NULL) == 0);
    }
}

/* It keeps to itself what it allocates at the first use, here in a scope. */
static void what_the_c_library_keeps(void) {
    char name[40];
    for (unsigned i = 0; i < 50; i++) {
        ebb_step step = begin();
        snprintf(name, sizeof name, "EBB_TEST_%u", i % 7);
        EXPECT(setenv(name, name, 1) == 0);
        EXPECT(setlocale(LC_ALL, i % 2 ? "C" : "C.UTF-8"));
        setenv("TZ", i % 2 ? "Europe/Berlin" : "UTC", 1);
        tzset();
        time_t now = 1000000;
        EXPECT(localtime(&now));
        (void)getpwuid(0);
        iconv_t converter = iconv_open("UTF-16", "UTF-8");
        regex_t regex;
        EXPECT(regcomp(&regex, "(a|b)*c[0-9]+", REG_EXTENDED) == 0);
        FILE *file = tmpfile();
        EXPECT(file && fprintf(file, "%u\n", i) > 0);
        finish(step);
        EXPECT(strcmp(getenv(name), name) == 0);
        EXPECT(regexec(&regex, "ababc77", 0, NULL, 0) == 0);
        regfree(&regex);
        if (converter != (iconv_t)-1)
            iconv_close(converter);
        rewind(file);
        unsigned number = 99;
        EXPECT(fscanf(file, "%u", &number) == 1 && number == i);
        EXPECT(fclose(file) == 0);
        EXPECT(printf("# turn %u\n", i) > 0 && fflush(stdout) == 0); /* a buffer of a scope */
    }
}

/* glibc's own about its heap; they have none of ours, but may be called. */
static void what_glibc_says_of_its_heap(void) {
    ebb_step step = begin();
    FILE *null = fopen("/dev/null", "w");
    EXPECT(malloc_info(0, null) == 0);
    EXPECT(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1);
    struct mallinfo2 info = mallinfo2();
    EXPECT(info.uordblks + info.hblkhd > 0);
    (void)malloc_trim(0);
    finish(step);
    fclose(null);
}

/* ---- loaded late ---- */

struct library {
    void *handle;
    char *(*gives)(void), *(*news)(void);
    void (*takes)(char *), (*deletes)(char *);
    int (*fails)(void);
    size_t (*words)(void);
};

static struct library find_in(void *handle) {
    struct library found = {.handle = handle};
    EXPECT(handle);
    *(void **)&found.gives = dlsym(handle, "bringer_gives");
    *(void **)&found.news = dlsym(handle, "bringer_news");
    *(void **)&found.takes = dlsym(handle, "bringer_takes");
    *(void **)&found.deletes = dlsym(handle, "bringer_deletes");
    *(void **)&found.fails = dlsym(handle, "bringer_fails");
    *(void **)&found.words = dlsym(handle, "bringer_words");
    EXPECT(found.gives && found.news && found.takes && found.deletes && found.fails && found.words);
    return found;
}

static void *use_on_a_thread(void *context) {
    const struct library *library = context;
    EXPECT(library->words() >= 5200);
    library->deletes(library->news());
    return NULL;
}

static void use(struct library library, bool shares) {
    EXPECT(library.words() >= 5200);
    EXPECT(library.fails() == 3);
    library.takes(library.gives());
    library.deletes(library.news());
    if (shares) { /* one heap: what one side gives the other takes */
        char *block = library.gives();
        EXPECT(block[99] == 'g');
        free(block);
        library.takes(strdup("ours"));
        library.takes(realloc(library.gives(), 50000));
    }
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, use_on_a_thread, &library) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
}

static void a_library_comes_and_goes(void) {
    char *before = strdup("from before");
    for (unsigned i = 0; i < 10; i++) {
        ebb_step step = begin();
        struct library library = find_in(dlopen(bringer, i % 2 ? RTLD_NOW : RTLD_LAZY));
        use(library, true);
        if (i % 3)
            finish(step);
        use(library, true);
        if (i == 5)
            library.takes(before);
        EXPECT(dlclose(library.handle) == 0);
        if (i % 3 == 0)
            finish(step);
    }
}

static void a_library_in_a_namespace_of_its_own(void) {
    ebb_step step = begin();
    for (unsigned i = 0; i < 3; i++) {
        struct library library = find_in(dlmopen(LM_ID_NEWLM, bringer, RTLD_NOW));
        EXPECT(library.words() >= 5200);
        library.takes(library.gives());
        library.deletes(library.news());
        EXPECT(library.fails() == 3);
        free(strdup("ours"));
        EXPECT(dlclose(library.handle) == 0);
    }
    finish(step);
}

static void *open_and_close(void *context) {
    const atomic_bool *is_over = context;
    while (!*is_over) {
        void *handle = dlopen("libresolv.so.2", RTLD_NOW);
        EXPECT(handle && dlclose(handle) == 0);
    }
    return NULL;
}

/* A new that fails looks for the handler of a C++ library that only this one has loaded. */
static void news_fail_while_libraries_come_and_go(void) {
    struct library library = find_in(dlopen(bringer, RTLD_NOW | RTLD_LOCAL));
    atomic_bool is_over = false;
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, open_and_close, &is_over) == 0);
    for (unsigned i = 0; i < 2000; i++)
        EXPECT(library.fails() == 3);
    is_over = true;
    EXPECT(pthread_join(thread, NULL) == 0);
}

static void failing_lookups_allocate(void) {
    ebb_step step = begin();
    for (unsigned i = 0; i < 20; i++) {
        EXPECT(!dlopen("no-such-library.so", RTLD_NOW));
        EXPECT(strstr(dlerror(), "no-such-library"));
        EXPECT(!dlsym(RTLD_DEFAULT, "no_such_function"));
        if (i == 10)
            finish(step);
        EXPECT(dlerror());
    }
}

/* ---- little memory ---- */

static void allow(enum __rlimit_resource what, size_t bytes) {
    struct rlimit limit = {bytes, bytes};
    EXPECT(setrlimit(what, &limit) == 0);
}

/* Blocks of all sizes in scopes, with survivors; then all that there is, and again. */
static void live_within(size_t most) {
    enum { MANY = 4096 };
    static void *blocks[MANY];
    for (unsigned i = 0; i < 200; i++) {
        ebb_step step = begin();
        void *kept = memset(malloc(100 + i * 50), 1, 100 + i * 50);
        EXPECT(kept);
        void *large = malloc(MIB);
        EXPECT(large);
        memset(large, 2, MIB);
        if (i % 2)
            finish(step);
        free(large);
        if (!(i % 2))
            finish(step);
        free(kept);
    }
    for (unsigned round = 0; round < 6; round++) {
        ebb_step step = begin();
        size_t got = 0, each = MIB << (round % 3);
        unsigned count = 0;
        errno = 0;
        while (count < MANY && (blocks[count] = malloc(each))) {
            memset(blocks[count], 3, 100);
            count++;
            got += each;
            if (got > most)
                break;
        }
        EXPECT(count == MANY || got > most || errno == ENOMEM);
        EXPECT(got >= most / 16); /* chunks from jemalloc leave gaps, more with some addresses */
        while (count)
            free(blocks[--count]);
        finish(step);
        (void)malloc_trim(0);
    }
    free(malloc(1000));
}

static void limited_late(void) {
    finish(begin());
    allow(RLIMIT_AS, 512 * MIB); /* below what is reserved already: nothing new can be had */
    for (unsigned i = 0; i < 1000; i++) {
        ebb_step step = begin();
        free(malloc(100));
        void *block = malloc(20 * MIB), *kept = malloc(50);
        EXPECT(block || errno == ENOMEM);
        finish(step);
        free(block);
        free(kept);
    }
}

static void limited_data(void) {
    may_be_refused = true;
    allow(RLIMIT_DATA, 300 * MIB);
    live_within(200 * MIB);
}

static void limited_stack(void) {
    allow(RLIMIT_STACK, RLIM_INFINITY);
    live_within(200 * MIB);
}

static void a_large_address_space(void) {
    allow(RLIMIT_AS, 4096 * MIB);
    live_within(1024 * MIB);
}

static void a_small_address_space(void) {
    may_be_refused = true;
    allow(RLIMIT_AS, 400 * MIB);
    live_within(200 * MIB);
}

static void a_tiny_address_space(void) {
    may_be_refused = true;
    allow(RLIMIT_AS, 80 * MIB);
    live_within(16 * MIB);
}

/* Bytes that the limit counts. */
static size_t counted(enum __rlimit_resource what) {
    static char text[8192];
    FILE *file = fopen("/proc/self/status", "r");
    EXPECT(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    const char *line = strstr(text, what == RLIMIT_DATA ? "VmData:" : "VmSize:");
    EXPECT(line);
    return strtoul(line + strlen("VmData:"), NULL, 10) * 1024;
}

/* The first scope, and the thread that begins with it, find little left. */
static void begin_with(enum __rlimit_resource what, size_t left) {
    char *big = malloc(MIB);
    EXPECT(big && memset(big, 1, MIB));
    ebb_site *first = ebb_site_create(EBB_SITE_OPTIONS(.name = "first", .scope = true));
    EXPECT(first);
    allow(what, counted(what) + left);
    ebb_step step = ebb_step_begin(first, 0);
    char *small = malloc(100), *large = malloc(100000);
    if (small)
        memset(small, 2, 100);
    free(large);
    if (ebb_region_is_open(step.region))
        EXPECT(ebb_step_end(step) == 0);
    EXPECT(!small || small[99] == 2);
    EXPECT(big[0] == 1 && big[MIB - 1] == 1);
    _exit(0);
}

static void a_first_scope_near_a_limit(void) {
    for (size_t left = 500 << 10; left <= 6 * MIB; left += 500 << 10)
        for (unsigned i = 0; i < 2; i++) {
            pid_t child = fork();
            if (child == 0)
                begin_with(i ? RLIMIT_DATA : RLIMIT_AS, left);
            act_await(child);
        }
}

/* A program with nothing but libebb-malloc in its environment, no open file, little memory. */
static void programs_start_with_nothing(void) {
    const char *library = getenv("LD_PRELOAD");
    char preload[4096];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library ? library : "");
    for (unsigned i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            char *const words[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"exit 5"}, NULL};
            char *const variables[] = {preload, NULL};
            if (i & 1)
                allow(RLIMIT_AS, 80 * MIB);
            for (int file = 0; i & 2 && file < 3; file++)
                close(file);
            execve("/bin/sh", words, variables);
            _exit(1);
        }
        int status = 0;
        EXPECT(child > 0 && waitpid(child, &status, 0) == child);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    }
}

static void a_user_without_rights(void) {
    if (geteuid() == 0)
        EXPECT(setgid(65534) == 0 && setuid(65534) == 0);
    live_within(100 * MIB);
}

/* Blocks of gigabytes, of which little is touched. */
static void gigabytes(void) {
    ebb_step step = begin();
    char *block = malloc(5120 * MIB);
    EXPECT(block);
    block[0] = 1;
    block[5120 * MIB - 1] = 2;
    EXPECT(malloc_usable_size(block) >= 5120 * MIB);
    block = realloc(block, 3072 * MIB);
    EXPECT(block && block[0] == 1);
    char *zeroed = calloc(3, 1024 * MIB);
    EXPECT(zeroed && zeroed[2048 * MIB] == 0);
    free(zeroed);
    finish(step);
    EXPECT(block[0] == 1);
    block = realloc(block, 100);
    EXPECT(block && block[0] == 1);
    free(block);
}

/* Where the system holds no more mappings, which a mapping a block would use up. */
static void many_blocks_need_few_mappings(void) {
    enum { MANY = 100000 };
    static void *blocks[MANY];
    ebb_step step = begin();
    for (unsigned i = 0; i < MANY; i++)
        EXPECT(blocks[i] = malloc(20000));
    for (unsigned i = 0; i < MANY; i += 2)
        free(blocks[i]);
    finish(step);
    unsigned lines = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    for (int letter; (letter = fgetc(maps)) != EOF;)
        lines += letter == '\n';
    fclose(maps);
    EXPECT(lines < 1000);
    for (unsigned i = 1; i < MANY; i += 2)
        free(blocks[i]);
}

static void it_is_what_was_preloaded(void) {
    EXPECT(ebb_scope_is_served() == (getenv("LD_PRELOAD") != NULL));
}

int main(int count, char **words) {
    static const struct act acts[] = {
        ACT(it_is_what_was_preloaded),
        ACT(what_the_c_library_gives),
        ACT(what_the_c_library_keeps),
        ACT(what_glibc_says_of_its_heap),
        ACT(a_library_comes_and_goes),
        ACT(a_library_in_a_namespace_of_its_own),
        ACT(news_fail_while_libraries_come_and_go),
        ACT(failing_lookups_allocate),
        ACT(a_tiny_address_space),
        ACT(a_small_address_space),
        ACT(a_large_address_space),
        ACT(a_first_scope_near_a_limit),
        ACT(limited_late),
        ACT(limited_data),
        ACT(limited_stack),
        ACT(programs_start_with_nothing),
        ACT(a_user_without_rights),
        ACT(gigabytes),
        ACT(many_blocks_need_few_mappings),
    };
    bringer = count > 1 ? words[1] : "./bringer.so";
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
