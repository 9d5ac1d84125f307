// SPDX-License-Identifier: Apache-2.0
/*
 * replay.c - churn-replay: one allocator, one script, one kind of run, one process.
 *
 *     churn-replay --script-fd N --kind KIND [--passes P] [--until EVENT] [--limit PERCENT]
 *
 * The allocator is whatever is preloaded (LD_PRELOAD); with ebb-heap.so it is ebb. The harness
 * `churn` starts it; there is no need to run it by hand. It prints lines `heap NAME LIBRARY`,
 * `metric NAME VALUE`, `series NAME VALUE...` and `report NAME JSON` once all passes are done.
 *
 * Until then nothing in this program allocates with malloc: its tables are mapped and touched
 * before the first event. Exit codes: 0; 2 wrong arguments; 3 the heap failed (fault.h).
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fault.h"
#include "resident.h"
#include "tracer.h"
#include "watch.h"

enum { EXIT_ARGUMENT = 2, TABLE_BYTES_MIN = 4096 };

struct arguments {
    int script_fd;
    const char *kind;
    uint32_t passes, until, limit_percent;
};

static const struct watch *const watches[] = {&watch_time, &watch_bare, &watch_count,
                                              &watch_footprint, &watch_spike};

static const struct watch *find_watch(const char *kind) {
    for (size_t i = 0; i < sizeof watches / sizeof *watches; i++)
        if (kind && strcmp(watches[i]->kind, kind) == 0)
            return watches[i];
    return NULL;
}

static bool take_number(uint32_t *number, const char *text) {
    char *end = NULL;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    *number = (uint32_t)value;
    return errno == 0 && end != text && *end == '\0' && value <= UINT32_MAX;
}

static bool parse(int argc, char **argv, struct arguments *arguments) {
    static const struct option known[] = {{"script-fd", 1, NULL, 'f'}, {"kind", 1, NULL, 'k'},
                                          {"passes", 1, NULL, 'p'},    {"until", 1, NULL, 'u'},
                                          {"limit", 1, NULL, 'l'},     {NULL, 0, NULL, 0}};
    uint32_t fd = 0;
    bool good = true;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (option) {
        case 'f': good &= take_number(&fd, optarg); break;
        case 'k': arguments->kind = optarg; break;
        case 'p': good &= take_number(&arguments->passes, optarg); break;
        case 'u': good &= take_number(&arguments->until, optarg); break;
        case 'l': good &= take_number(&arguments->limit_percent, optarg); break;
        default: good = false;
        }
    arguments->script_fd = (int)fd;
    return good && optind == argc && arguments->passes > 0 && arguments->kind;
}

static const struct script *map_script(int fd) {
    struct stat file;
    if (fstat(fd, &file) != 0 || (size_t)file.st_size < sizeof(struct script))
        return NULL;
    void *at = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    const struct script *script = at == MAP_FAILED ? NULL : at;
    bool whole = script && script->magic == SCRIPT_MAGIC &&
                 script->total_bytes == (uint64_t)file.st_size;
    return whole ? script : NULL;
}

static struct slot *map_slots(uint32_t count) {
    size_t bytes = (size_t)count * sizeof(struct slot) + TABLE_BYTES_MIN;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool prepare(struct run *run, const struct watch *watch) {
    run->heap = &heap_ebb ? &heap_ebb : &heap_malloc;
    run->replay = (struct replay){
        .script = run->script,
        .slots = map_slots(run->script->slot_count),
        .until = run->until,
        .context = run,
        .on_begin = watch->on_begin,
        .on_end = watch->on_end,
    };
    if (!run->replay.slots || !watch->make(run))
        return false;
    run->base_resident = resident_now();
    return run->heap->start(run->script);
}

/* Says which heap was really used, so that the harness notices a preload that failed. */
static void print_heap(const struct heap *heap) {
    Dl_info where = {0};
    void *(*serves)(size_t) = malloc;
    void *address = NULL;
    memcpy(&address, &serves, sizeof address);
    if (dladdr(address, &where) == 0)
        where.dli_fname = "unknown";
    printf("heap %s %s\n", heap->name, where.dli_fname);
}

static int replay_all(struct run *run, const struct watch *watch) {
    if (!prepare(run, watch)) {
        fputs("no memory for the replayer's own tables\n", stderr);
        return FAULT_EXIT;
    }
    for (uint32_t pass = 0; pass < run->passes; pass++) {
        run->replay.pass = pass;
        run->heap->pass[watch->mode](&run->replay);
    }
    print_heap(run->heap);
    watch->report(run);
    return fflush(stdout) == 0 ? 0 : FAULT_EXIT;
}

/* Runs this program once more, as kind `count`, under the eyes of a tracer. */
static int trace_all(struct run *run, char **argv) {
    struct ledger calls;
    if (!ledger_make(&calls, run->script, run->passes, run->until))
        return FAULT_EXIT;
    for (char **argument = argv; *argument; argument++)
        if (strcmp(*argument, "trace") == 0)
            *argument = "count";
    int code = tracer_run(argv, &calls);
    if (code < 0) {
        printf("note this system does not allow tracing: no system calls counted\n");
        return replay_all(run, &watch_count);
    }
    if (code == 0)
        ledger_print_all(&calls, "syscalls_per_step");
    return code;
}

int main(int argc, char **argv) {
    static char buffer[BUFSIZ];
    struct arguments arguments = {.passes = 1, .until = UINT32_MAX, .limit_percent = 100};
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (!parse(argc, argv, &arguments)) {
        fputs("usage: churn-replay --script-fd N --kind KIND [--passes P] [--until EVENT] "
              "[--limit PERCENT]\n", stderr);
        return EXIT_ARGUMENT;
    }
    const struct watch *watch = find_watch(arguments.kind);
    bool traced = strcmp(arguments.kind, "trace") == 0;
    const struct script *script = map_script(arguments.script_fd);
    if (!script || (!watch && !traced)) {
        fputs(script ? "no such kind of run\n" : "not a script\n", stderr);
        return EXIT_ARGUMENT;
    }
    uint32_t events = script->event_count;
    struct run run = {.script = script,
                      .passes = arguments.passes,
                      .until = arguments.until < events ? arguments.until : events,
                      .limit_percent = arguments.limit_percent};
    return traced ? trace_all(&run, argv) : replay_all(&run, watch);
}
