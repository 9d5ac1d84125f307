// SPDX-License-Identifier: Apache-2.0
/*
 * shared_area.c - the memory file of a shared pool: making, attaching, mapping, ending.
 *
 * The file is as large as it will ever be when it is made, and sparse; sealed, so that no mapping
 * of it loses its pages. A process maps the control part at once and each slot when it first has to
 * do with it, at addresses of its own. Invariant: sizes and counts are those that were checked when
 * the pool was made or attached, never those that stand in the file later.
 *
 * Refuses descriptors of anything else (EBB_E_SHARED), and sizes that do not fit.
 */
#include "base/error.h"
#include "base/os.h"
#include "base/poison.h"
#include "pool/chunk.h"
#include "pool/shared.h"

#include <assert.h>
#include <errno.h>
#include <sys/resource.h>

static_assert(sizeof(struct shared_record) == 64, "a record is a line of the cache");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "words are changed without a lock that a peer has");

#define SLOTS_USUAL 256u
#define SLOT_USUAL ((size_t)1 << 30)

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct shared *all; /* newest first */

/* All views lie between these, and all that there were since there last was no pool. relaxed: who
 * has an address of one has it from who opened a lease there. */
static _Atomic uintptr_t views_from = UINTPTR_MAX, views_to;

/* ---- sizes ---- */

struct sizes {
    uint32_t slots;
    size_t slot_bytes, control_bytes, file_bytes;
};

static bool measure(struct sizes *sizes, uint32_t slots, size_t slot_bytes) {
    size_t control = offsetof(struct shared_control, records);
    size_t all_slots;
    if (slots == 0 || slots > SHARED_SLOTS_MOST || slot_bytes == 0 || slot_bytes % CHUNK_ALIGN)
        return false;
    control = size_align(control + slots * sizeof(struct shared_record), EBB_PAGE);
    sizes->slots = slots;
    sizes->slot_bytes = slot_bytes;
    sizes->control_bytes = control;
    return size_multiply(slots, slot_bytes, &all_slots) &&
           size_add(all_slots, control, &sizes->file_bytes) &&
           sizes->file_bytes <= SIZE_MAX / 2;
}

/* One process may have to do with all slots at once, and has pools of other kinds besides. */
static size_t addresses_of_slots(void) {
    return range.bytes / 2;
}

/* Half of what they may have: there may be a second pool. */
static size_t usual_bytes(uint32_t slots) {
    size_t part = size_align_down(addresses_of_slots() / 2 / slots, CHUNK_ALIGN);
    return size_smaller(SLOT_USUAL, size_larger(part, CHUNK_ALIGN));
}

/* Without a length, no more of the shortest ones than are half of that, too. */
static uint32_t usual_slots(size_t slot_bytes) {
    size_t most = addresses_of_slots() / (slot_bytes ? slot_bytes : 2 * CHUNK_ALIGN);
    return (uint32_t)size_larger(1, size_smaller(SLOTS_USUAL, most));
}

static int choose_sizes(struct sizes *sizes, const struct ebb_pool_options *options) {
    size_t asked = options->slot_bytes, slot_bytes;
    bool fits = size_round_up(asked, CHUNK_ALIGN, &slot_bytes);
    uint32_t slots = options->slots ? options->slots : usual_slots(fits ? slot_bytes : asked);
    if (fits && !slot_bytes)
        asked = slot_bytes = usual_bytes(slots);
    if (!fits || slot_bytes > addresses_of_slots() / slots)
        return error_set(EBB_E_SIZE, "%u slots of %zu bytes, in steps of %zu: all together they "
                         "have %zu bytes of addresses at most", slots, asked, CHUNK_ALIGN,
                         addresses_of_slots());
    if (!measure(sizes, slots, slot_bytes))
        return error_set(EBB_E_SIZE, "%u slots of %zu bytes: more than %u, or than a file has",
                         slots, asked, SHARED_SLOTS_MOST);
    return 0;
}

/* ---- this process's side ---- */

static struct shared *make_side(const struct sizes *sizes) {
    size_t slots = sizes->slots * sizeof(struct shared_slot);
    size_t bytes = sizeof(struct shared) + slots + sizes->slots * sizeof(uint32_t);
    struct shared *shared = os.allow(OS_FILE) ? os_pages(bytes) : NULL;
    if (!shared) {
        error_set(EBB_E_MEMORY, "no memory for %u slots of a shared pool", sizes->slots);
        return NULL;
    }
    pthread_mutex_init(&shared->lock, NULL);
    shared->control_bytes = sizes->control_bytes;
    shared->slot_bytes = sizes->slot_bytes;
    shared->slot_count = sizes->slots;
    shared->own_bytes = bytes;
    shared->fd = shared->life = -1;
    shared->mine = (uint32_t *)(void *)((char *)shared->slots + slots);
    for (uint32_t i = 0; i < sizes->slots; i++)
        shared->slots[i] = (struct shared_slot){.shared = shared, .index = i};
    return shared;
}

static void drop_side(struct shared *shared) {
    if (shared->control)
        os.release(shared->control, shared->control_bytes);
    shared_close(shared, shared->fd);
    os.release(shared, shared->own_bytes);
}

/* The control part has pages, so that touching it never fails, and is mapped. */
static int map_control(struct shared *shared) {
    int reason = ENOMEM;
    if (!os.allow(OS_BACKING) || (reason = os.file_back(shared->fd, 0, shared->control_bytes)) != 0)
        return error_set(EBB_E_NO_SPACE, "no pages for %zu bytes of control words, error %d",
                         shared->control_bytes, reason);
    shared->control = os.reserve(shared->control_bytes);
    if (shared->control && (reason = os.file_map(shared->fd, 0, shared->control,
                                                 shared->control_bytes)) == 0)
        return 0;
    return error_set(EBB_E_MEMORY, "no mapping of %zu bytes of control words, error %d",
                     shared->control_bytes, reason);
}

static void enlist(struct shared *shared) {
    fork_prepare_raw();
    pthread_mutex_lock(&registry);
    shared->next = all;
    all = shared;
    pthread_mutex_unlock(&registry);
}

/* The pool that the user has, around what is complete; else that is dropped. */
static struct ebb_pool *publish(struct shared *shared, const struct ebb_pool_options *options) {
    struct ebb_pool *pool = shared->control ? pool_make(options, &kind_slot) : NULL;
    if (!pool) {
        drop_side(shared);
        return NULL;
    }
    shared->wait_ns = options->wait_ns;
    shared->go_on = options->go_on;
    shared->go_on_context = options->go_on_context;
    shared->pins = options->kind & EBB_KIND_PINNED;
    shared->device = options->device;
    shared->pool = pool;
    pool->shared = shared;
    enlist(shared);
    return pool;
}

/* ---- making ---- */

/* All pages of all slots are in the file's length, however few there will be: what a limit of files
 * allows is seldom enough, and says nothing of memory. */
static int report_file(size_t bytes, int reason) {
    struct rlimit limit = {.rlim_cur = 0};
    if (reason != EFBIG)
        return error_set(EBB_E_MEMORY, "no memory file of %zu bytes, error %d", bytes, reason);
    (void)getrlimit(RLIMIT_FSIZE, &limit);
    return error_set(EBB_E_MEMORY, "no memory file of %zu bytes, which are addresses of all slots: "
                     "RLIMIT_FSIZE (ulimit -f) allows %llu; fewer or smaller slots need less",
                     bytes, (unsigned long long)limit.rlim_cur);
}

static int make_file(struct shared *shared, size_t bytes) {
    int fd = -1, reason = EMFILE;
    if (!os.allow(OS_FILE) || (reason = os.file_make("ebb", bytes, &fd)) != 0)
        return report_file(bytes, reason);
    return shared_take_file(shared, fd) == 0 ? map_control(shared) : error_latest();
}

static void describe(struct shared *shared) {
    shared->identity = os.draw();
    shared->control->head = (struct shared_head){.magic = SHARED_MAGIC,
                                                 .layout = SHARED_LAYOUT,
                                                 .slots = shared->slot_count,
                                                 .slot_bytes = shared->slot_bytes,
                                                 .identity = shared->identity};
}

/* Who makes a pool uses it, as a rule. That this cannot be is said now, not when the first parcel
 * is opened, which is out of its queue by then. NULL: the pool is gone, error set. */
static struct ebb_pool *take_place(struct ebb_pool *pool) {
    struct shared *shared = pool->shared;
    shared_lock(shared);
    int result = shared_identify(shared);
    shared_unlock(shared);
    if (!result)
        return pool;
    shared_end(shared);
    pool_retire(pool);
    return NULL;
}

struct ebb_pool *shared_create(const struct ebb_pool_options *options) {
    struct sizes sizes;
    if (range_prepare() != 0 || choose_sizes(&sizes, options) != 0)
        return NULL;
    struct shared *shared = make_side(&sizes);
    if (!shared)
        return NULL;
    if (make_file(shared, sizes.file_bytes) != 0) {
        drop_side(shared);
        return NULL;
    }
    describe(shared);
    struct ebb_pool *pool = publish(shared, options);
    return pool ? take_place(pool) : NULL;
}

/* ---- attaching ---- */

static int inspect(int fd, struct sizes *sizes, uint64_t *identity) {
    struct shared_head head = {0};
    size_t bytes = 0;
    int reason = os.file_check(fd, &bytes);
    if (!reason)
        reason = os.file_read(fd, &head, sizeof head); /* once: what is checked is what is used */
    if (reason)
        return error_set(EBB_E_SHARED, "descriptor %d is of no sealed memory file, open to "
                         "read and write, that is long enough, error %d", fd, reason);
    if (head.magic != SHARED_MAGIC || head.layout != SHARED_LAYOUT)
        return error_set(EBB_E_SHARED, "descriptor %d: magic %#llx, layout %u; %#llx, %u needed",
                         fd, (unsigned long long)head.magic, head.layout,
                         (unsigned long long)SHARED_MAGIC, SHARED_LAYOUT);
    *identity = head.identity;
    if (measure(sizes, head.slots, head.slot_bytes) && sizes->file_bytes == bytes)
        return 0;
    return error_set(EBB_E_SHARED, "descriptor %d: %u slots of %llu bytes do not make %zu", fd,
                     head.slots, (unsigned long long)head.slot_bytes, bytes);
}

static int check_attach_options(const struct ebb_pool_options *options) {
    if (options->size != sizeof *options)
        return error_set(EBB_E_ARGUMENT, "pool options: size field is %zu, expected %zu",
                         options->size, sizeof *options);
    if (options->kind && (options->kind & ~(unsigned)EBB_KIND_PINNED) != EBB_KIND_SHARED)
        return error_set(EBB_E_KIND, "kind %#x cannot be attached", options->kind);
    if (options->slots || options->slot_bytes)
        return error_set(EBB_E_ARGUMENT, "%u slots of %zu bytes asked: that is the file's to say",
                         options->slots, options->slot_bytes);
    return pool_check_device(options);
}

static struct ebb_pool *attach(int fd, const struct ebb_pool_options *options) {
    struct sizes sizes;
    uint64_t identity = 0;
    if (range_prepare() != 0 || inspect(fd, &sizes, &identity) != 0)
        return NULL;
    struct shared *shared = make_side(&sizes);
    if (!shared)
        return NULL;
    int copy = -1, reason = os.allow(OS_FILE) ? os.file_copy(fd, &copy) : EMFILE;
    if (reason) {
        error_set(EBB_E_MEMORY, "descriptor %d cannot be copied, error %d", fd, reason);
        drop_side(shared);
        return NULL;
    }
    shared->identity = identity;
    if (shared_take_file(shared, copy) != 0 || map_control(shared) != 0) {
        drop_side(shared);
        return NULL;
    }
    return publish(shared, options);
}

struct ebb_pool *ebb_pool_attach(int fd, const struct ebb_pool_options *options) {
    static const struct ebb_pool_options defaults = {.size = sizeof defaults};
    if (!options)
        options = &defaults;
    return check_attach_options(options) == 0 ? attach(fd, options) : NULL;
}

int ebb_pool_descriptor(struct ebb_pool *pool) {
    if (pool && pool_is_shared(pool))
        return shared_check_file(pool->shared) == 0 ? pool->shared->fd : -1;
    error_set(EBB_E_KIND, "pool '%s' is not shared: it has no descriptor",
              pool ? pool->name : "NULL");
    return -1;
}

/* ---- slots ---- */

/* Addresses that cannot be covered again are lost, rather than others' pages reused. */
static void put_back(const struct shared *shared, uintptr_t addr) {
    if (os.cover((void *)addr, shared->slot_bytes) == 0)
        chunk_give(addr, shared->slot_bytes);
}

/* Over addresses that are there. 0, or EBB_E_MEMORY. */
static int map_at(const struct shared_slot *slot, uintptr_t addr) {
    const struct shared *shared = slot->shared;
    int reason = ENOMEM;
    if (os.allow(OS_FILE))
        reason = os.file_map(shared->fd, shared_offset(slot), (void *)addr, shared->slot_bytes);
    if (!reason)
        return 0;
    return error_set(EBB_E_MEMORY, "slot %u of %zu bytes cannot be mapped, error %d", slot->index,
                     shared->slot_bytes, reason);
}

/* What this process touched so far is elsewhere; so is what it pinned, until it pins anew. */
static int map_in_range(struct shared_slot *slot) {
    struct shared *shared = slot->shared;
    uintptr_t addr = chunk_take(shared->slot_bytes);
    if (!addr)
        return error_set(EBB_E_MEMORY, "no chunk for a slot of %zu bytes: no addresses left (%zu "
                         "of %zu in use), or no memory to open them", shared->slot_bytes,
                         chunk_bytes(), range.bytes);
    if (map_at(slot, addr) != 0) {
        put_back(shared, addr);
        return error_latest();
    }
    slot->populated = 0;
    /* release: who finds the address finds the mapping */
    atomic_store_explicit(&slot->addr, addr, memory_order_release);
    return 0;
}

static void note_view(uintptr_t from, uintptr_t to) {
    uintptr_t least = atomic_load_explicit(&views_from, memory_order_relaxed);
    uintptr_t most = atomic_load_explicit(&views_to, memory_order_relaxed);
    while (from < least &&
           !atomic_compare_exchange_weak_explicit(&views_from, &least, from, memory_order_relaxed,
                                                  memory_order_relaxed)) {}
    while (to > most &&
           !atomic_compare_exchange_weak_explicit(&views_to, &most, to, memory_order_relaxed,
                                                  memory_order_relaxed)) {}
}

/* There is no pool, and who makes one waits for the lock of their list. */
static void forget_views(void) {
    atomic_store_explicit(&views_from, UINTPTR_MAX, memory_order_relaxed);
    atomic_store_explicit(&views_to, 0, memory_order_relaxed);
}

bool shared_may_view(const void *address) {
    return (uintptr_t)address >= atomic_load_explicit(&views_from, memory_order_relaxed) &&
           (uintptr_t)address < atomic_load_explicit(&views_to, memory_order_relaxed);
}

static int map_outside(struct shared_slot *slot) {
    struct shared *shared = slot->shared;
    void *addr = os.allow(OS_FILE) ? os.reserve(shared->slot_bytes) : NULL;
    if (!addr)
        return error_set(EBB_E_MEMORY, "no addresses left for a slot of %zu bytes",
                         shared->slot_bytes);
    if (map_at(slot, (uintptr_t)addr) != 0) {
        os.release(addr, shared->slot_bytes);
        return error_latest();
    }
    note_view((uintptr_t)addr, (uintptr_t)addr + shared->slot_bytes);
    atomic_store_explicit(&slot->view, (uintptr_t)addr, memory_order_release); /* as above */
    return 0;
}

int shared_map(struct shared_slot *slot) {
    if (atomic_load_explicit(&slot->addr, memory_order_relaxed))
        return 0;
    int result = shared_check_file(slot->shared);
    return result ? result : map_in_range(slot);
}

/*
 * Addresses outside of the range cost nothing, and those inside tables, which limits of memory
 * count. But where addresses are limited, the range has most of them, and what the program has
 * besides may have nowhere else to go. Half of it is for regions, as long as there are others.
 */
static bool is_range_first(const struct shared_slot *slot) {
    return range.bytes < RANGE_MOST &&
           chunk_bytes() + slot->shared->slot_bytes <= range.bytes / 2;
}

int shared_map_to_read(struct shared_slot *slot) {
    bool in_range_first = is_range_first(slot);
    if (shared_start(slot))
        return 0;
    if (shared_check_file(slot->shared) != 0)
        return error_latest();
    error_mute();
    int result = in_range_first ? map_in_range(slot) : map_outside(slot);
    error_unmute();
    if (!result)
        return 0;
    return in_range_first ? map_outside(slot) : map_in_range(slot);
}

static bool is_within(const _Atomic uintptr_t *place, size_t bytes, uintptr_t address) {
    /* acquire: what was mapped there is seen */
    uintptr_t start = atomic_load_explicit(place, memory_order_acquire);
    return start && address >= start && address - start < bytes;
}

static struct shared_slot *slot_within(struct shared *shared, uintptr_t address) {
    for (uint32_t i = 0; i < shared->slot_count; i++) {
        struct shared_slot *slot = &shared->slots[i];
        if (is_within(&slot->addr, shared->slot_bytes, address) ||
            is_within(&slot->view, shared->slot_bytes, address))
            return slot;
    }
    return NULL;
}

struct shared_slot *shared_slot_at(const void *address) {
    struct shared_slot *slot = NULL;
    pthread_mutex_lock(&registry);
    for (struct shared *shared = all; shared && !slot; shared = shared->next)
        slot = slot_within(shared, (uintptr_t)address);
    pthread_mutex_unlock(&registry);
    return slot;
}

static void unmap(struct shared_slot *slot) {
    uintptr_t addr = atomic_load_explicit(&slot->addr, memory_order_relaxed);
    uintptr_t view = atomic_load_explicit(&slot->view, memory_order_relaxed);
    if (view) {
        poison_opened(view, slot->shared->slot_bytes);
        os.release((void *)view, slot->shared->slot_bytes);
    }
    if (addr) {
        poison_opened(addr, slot->shared->slot_bytes);
        put_back(slot->shared, addr);
    }
}

void shared_end(struct shared *shared) {
    struct shared **link = &all;
    const struct shared_hooks *hooks = atomic_load(&shared->hooks);
    if (hooks)
        hooks->end(shared);
    pthread_mutex_lock(&registry);
    shared_forget_owner(shared, true); /* a fork waits: a copy would keep this process alive */
    while (*link != shared)
        link = &(*link)->next;
    *link = shared->next;
    if (!all)
        forget_views();
    pthread_mutex_unlock(&registry);
    for (uint32_t i = 0; i < shared->slot_count; i++)
        unmap(&shared->slots[i]);
    drop_side(shared);
}

/* ---- fork ---- */

/* What waits for exports goes on waiting: they are in the child, too. */
static void be_child(struct shared *shared, bool shares_files) {
    static const enum slot_use inherited[] = {[SLOT_IDLE] = SLOT_IDLE,
                                              [SLOT_OPEN] = SLOT_LOST,
                                              [SLOT_LINGERS] = SLOT_LOST_LINGERS,
                                              [SLOT_LOST] = SLOT_LOST,
                                              [SLOT_LOST_LINGERS] = SLOT_LOST_LINGERS};
    const struct shared_hooks *hooks = atomic_load(&shared->hooks);
    if (hooks)
        hooks->inherit(shared);
    shared_forget_owner(shared, !shares_files);
    for (uint32_t i = 0; i < shared->slot_count; i++) {
        struct shared_slot *slot = &shared->slots[i];
        slot->use = inherited[slot->use];
        slot->populated = 0; /* page tables of shared mappings are not inherited */
        atomic_store(&slot->leased, 0);
    }
    shared->mine_count = 0;
    shared_forget_pins(shared);
}

void shared_be_child(bool shares_files) {
    for (struct shared *shared = all; shared; shared = shared->next)
        be_child(shared, shares_files);
}

void shared_fork(bool before) {
    if (before)
        pthread_mutex_lock(&registry);
    for (struct shared *shared = all; shared; shared = shared->next)
        (before ? pthread_mutex_lock : pthread_mutex_unlock)(&shared->lock);
    if (!before)
        pthread_mutex_unlock(&registry);
}
