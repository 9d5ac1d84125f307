// SPDX-License-Identifier: Apache-2.0
/*
 * step.c - steps of ebb as marks: the calls go on to libebb, and begin and end are noted.
 *
 * A kind is the name of a site. Where the program has no libebb behind it (it looks the functions
 * up itself, say), sites and steps are made here; they are marks and nothing else. Programs that
 * want marks without ebb call ebb_record_begin() and ebb_record_end(), or ebb_record_call().
 *
 * Invariant: what failed is not noted; a step that ended in libebb has ended in the spool, at the
 * latest when its thread begins another one, or a mark: what closes its parent ends it, too, and
 * tells nobody. So it is with the first OPEN_MAX that a thread has open at once.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <ebb/step.h>

#include "recorder.h"

enum { SITES_MAX = 1024, LOOKS_MOST = 16 };

/* A trace nests fewer, but steps that go on may have ended in it, with one around them. Each thread
 * has the room, in a stack that may be small, and each begin looks at all that are open. */
enum { OPEN_MAX = 128 };

/* What is known of a site that there is. `of`: its address; this one's, of one that was made here
 * or is not known yet; NULL: the place is free. */
struct known_site {
    _Atomic(const void *) of;
    _Atomic uint32_t kind;
};

static struct known_site sites[SITES_MAX];
static struct known_site beyond; /* stands for all that were made here and have no place */
static _Atomic uint32_t site_count; /* places that were ever taken */
static _Atomic uint64_t own_steps;

/* Steps that this thread has begun and not ended, the newest one last. Where there are more, those
 * that came first: they are what a trace has. */
THREAD_OWN ebb_region open_step[OPEN_MAX];
THREAD_OWN uint32_t open_count;
THREAD_OWN volatile bool changes; /* a signal handler leaves them alone now */

EXPORT void ebb_record_begin(const char *kind, uint64_t argument);
EXPORT void ebb_record_end(void);
EXPORT void ebb_record_call(const char *kind);

struct libebb {
    ebb_site *(*site_create)(const struct ebb_site_options *);
    int (*site_destroy)(ebb_site *);
    ebb_step (*begin)(ebb_site *, uint64_t);
    ebb_step (*begin_under)(ebb_site *, ebb_region, uint64_t);
    int (*end)(ebb_step);
    int (*end_keeping)(ebb_step, ebb_region, struct ebb_survivor *, size_t, struct ebb_promoted *,
                       uint64_t *);
    bool (*is_open)(ebb_region);
};

/* A library may have a libebb inside, as a Python wheel has, and no other: its calls come here all
 * the same. */
static void *find_inside(const void *caller, const char *name) {
    Dl_info around, of;
    void *library, *found = NULL;
    if (dladdr(caller, &around) &&
        (library = dlopen(around.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) != NULL)
        found = dlsym(library, name);
    return found && dladdr(found, &of) && of.dli_fbase == around.dli_fbase ? found : NULL;
}

/* A library that was loaded for one of the program's libraries only, such as a Python extension, is
 * not among the next ones. */
static void find(void *function, const void *caller, const char *name) {
    void *library, *found = dlsym(RTLD_NEXT, name);
    if (!found && (library = dlopen("libebb.so.0", RTLD_LAZY | RTLD_NOLOAD)) != NULL)
        found = dlsym(library, name);
    if (!found && caller)
        found = find_inside(caller, name);
    memcpy(function, &found, sizeof found);
}

static void look(struct libebb *functions, const void *caller) {
    find(&functions->site_create, caller, "ebb_site_create");
    find(&functions->site_destroy, caller, "ebb_site_destroy");
    find(&functions->begin, caller, "ebb_step_begin");
    find(&functions->begin_under, caller, "ebb_step_begin_under");
    find(&functions->end_keeping, caller, "ebb_step_end_keeping");
    find(&functions->is_open, caller, "ebb_region_is_open");
    find(&functions->end, caller, "ebb_step_end");
}

/* That of the first `caller` whose look came to an end; of threads that look at a time each has a
 * table of its own. NULL: there is none, and later there will be none either, or sites would be
 * mixed up. */
static const struct libebb *libebb(const void *caller) {
    static struct libebb tables[LOOKS_MOST];
    static _Atomic uint32_t looks;
    static _Atomic(struct libebb *) known;
    struct libebb *functions = known;
    uint32_t mine = functions ? 0 : atomic_fetch_add(&looks, 1);
    if (!functions && mine < LOOKS_MOST) {
        look(&tables[mine], caller);
        if (atomic_compare_exchange_strong(&known, &functions, &tables[mine]))
            functions = &tables[mine];
    }
    while (!functions) { /* so many look at this moment */
        sched_yield();
        functions = known;
    }
    return functions->end ? functions : NULL;
}

/* ---- sites */

static const char *name_of(const char *kind) {
    return kind ? kind : "site";
}

static struct known_site *find_site(const void *site) {
    for (uint32_t i = 0, count = site_count; i < count; i++)
        if (site && sites[i].of == site)
            return &sites[i];
    return NULL;
}

static uint32_t kind_of(const void *site) {
    const struct known_site *known = find_site(site);
    return known ? known->kind : spool_kind(name_of(NULL));
}

/* A place, as that of one made here; NULL: there is none. */
static struct known_site *take_place(void) {
    for (uint32_t i = 0; i < SITES_MAX; i++) {
        const void *none = NULL;
        if (!atomic_compare_exchange_strong(&sites[i].of, &none, &sites[i]))
            continue;
        uint32_t count = site_count;
        while (count <= i && !atomic_compare_exchange_weak(&site_count, &count, i + 1))
            ;
        return &sites[i];
    }
    return NULL;
}

static struct known_site *remember(const struct ebb_site_options *options) {
    struct known_site *site = take_place();
    if (site)
        site->kind = *recording ? spool_kind(name_of(options ? options->name : NULL)) : 0;
    return site;
}

EXPORT ebb_site *ebb_site_create(const struct ebb_site_options *options) {
    const struct libebb *below = libebb(__builtin_return_address(0));
    ebb_site *site = below ? below->site_create(options) : NULL;
    if (below && !site)
        return NULL;
    struct known_site *known = remember(options);
    if (known && below)
        known->of = site;
    return below ? site : (ebb_site *)(void *)(known ? known : &beyond);
}

/* Its place is free before its address may come again. */
EXPORT int ebb_site_destroy(ebb_site *site) {
    const struct libebb *below = libebb(__builtin_return_address(0));
    struct known_site *known = find_site(site);
    if (known)
        known->of = below ? (const void *)known : NULL;
    int result = below ? below->site_destroy(site) : 0;
    if (known && below)
        known->of = result ? (const void *)site : NULL;
    return result;
}

/* ---- steps */

/* Not 0, and a multiple of 8, as addresses in records are. */
static uint64_t identity_of(ebb_region region) {
    uint64_t mixed = (uint64_t)(uintptr_t)region.lane +
                     region.generation * UINT64_C(0x9e3779b97f4a7c15);
    return (mixed & ((UINT64_C(1) << 48) - 8)) | 8;
}

static void note_end_of(ebb_region region) {
    lane_note(SPOOL_END, 0, identity_of(region), 0, 0);
}

static void drop_open(uint32_t number) {
    open_count--;
    memmove(&open_step[number], &open_step[number + 1],
            (open_count - number) * sizeof *open_step);
}

static void set_changes(bool now) {
    atomic_signal_fence(memory_order_seq_cst);
    changes = now;
    atomic_signal_fence(memory_order_seq_cst);
}

/* False: this is a signal handler, and what it interrupted changes them. */
static bool begin_change(void) {
    if (changes)
        return false;
    set_changes(true);
    return true;
}

/* libebb is looked for after it is known that a step is open, when it has been: a mark may be a
 * signal handler's, and that look allocates. */
void step_note_closed(void) {
    const struct libebb *below;
    if (open_count == 0 || !begin_change())
        return;
    below = libebb(NULL);
    for (uint32_t i = open_count; below && i-- > 0;)
        if (!below->is_open(open_step[i])) {
            note_end_of(open_step[i]);
            drop_open(i);
        }
    set_changes(false);
}

static void keep_open(ebb_region region) {
    if (!begin_change())
        return;
    if (open_count < OPEN_MAX)
        open_step[open_count++] = region;
    set_changes(false);
}

static void forget_open(ebb_region region) {
    if (!begin_change())
        return;
    for (uint32_t i = open_count; i-- > 0;)
        if (open_step[i].lane == region.lane && open_step[i].generation == region.generation)
            drop_open(i);
    set_changes(false);
}

static ebb_step begun(ebb_site *site, ebb_step step, uint64_t tag) {
    if (!step.region.lane || !*recording)
        return step;
    step_note_closed();
    lane_note(SPOOL_BEGIN, kind_of(site), identity_of(step.region), tag, tag >> 32);
    keep_open(step.region);
    return step;
}

static ebb_step own_step(ebb_site *site) {
    uint64_t number = atomic_fetch_add(&own_steps, 1) + 1;
    return (ebb_step){.region = {.lane = (struct ebb_lane *)(void *)site, .generation = number}};
}

EXPORT ebb_step ebb_step_begin(ebb_site *site, uint64_t tag) {
    const struct libebb *below = libebb(__builtin_return_address(0));
    return begun(site, below ? below->begin(site, tag) : own_step(site), tag);
}

EXPORT ebb_step ebb_step_begin_under(ebb_site *site, ebb_region parent, uint64_t tag) {
    const struct libebb *below = libebb(__builtin_return_address(0));
    return begun(site, below ? below->begin_under(site, parent, tag) : own_step(site), tag);
}

/* A step is over, too, where a cleanup has failed, and where it was closed with its parent. */
static bool is_over(ebb_region region, int result) {
    const struct libebb *below = libebb(NULL);
    return result == 0 || result == EBB_E_CLEANUP || (below && !below->is_open(region));
}

static int ended(ebb_step step, int result) {
    if (!*recording || !is_over(step.region, result))
        return result;
    note_end_of(step.region);
    forget_open(step.region);
    return result;
}

EXPORT int ebb_step_end(ebb_step step) {
    const struct libebb *below = libebb(__builtin_return_address(0));
    return ended(step, below ? below->end(step) : 0);
}

EXPORT int ebb_step_end_keeping(ebb_step step, ebb_region target, struct ebb_survivor *survivors,
                                size_t count, struct ebb_promoted *cost, uint64_t *lost_blocks) {
    const struct libebb *below = libebb(__builtin_return_address(0));
    int result = below ? below->end_keeping(step, target, survivors, count, cost, lost_blocks) : 0;
    return ended(step, result);
}

/* ---- marks without ebb */

void ebb_record_begin(const char *kind, uint64_t argument) {
    if (!*recording)
        return;
    step_note_closed();
    lane_note(SPOOL_BEGIN, spool_kind(name_of(kind)), 0, argument, argument >> 32);
}

void ebb_record_end(void) {
    if (*recording)
        lane_note(SPOOL_END, 0, 0, 0, 0);
}

/* Ends the region that the last call of it began on this thread, and begins another. */
void ebb_record_call(const char *kind) {
    if (!*recording)
        return;
    step_note_closed();
    lane_note(SPOOL_CALL, spool_kind(name_of(kind)), 0, 0, 0);
}
