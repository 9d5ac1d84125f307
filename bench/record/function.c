// SPDX-License-Identifier: Apache-2.0
/*
 * function.c - notes each call of a named function of a shared library.
 *
 * In every loaded program and library that imports the name, the slot through which it is called
 * (of the procedure linkage table, or a pointer that the linker fills in) is set to a few
 * instructions that note the call and jump on to the function. Registers are kept, so any signature
 * will do. Not seen: calls inside of the library that has the function where it binds them itself,
 * calls through pointers that were fetched by dlsym(), functions that are not exported, calls from
 * a library that was loaded less than a chunk of records ago or binds the function when it first
 * calls it, up to the next chunk, of several functions or versions of one name any but the first,
 * and the recorder's own, which make room for the very record of a call.
 *
 * Invariant: a slot that is set would have held the very address that is jumped to. One that the
 * linker has bound says so itself. One that it has not is set only where nothing but the first
 * definition can be found for it, and else left until it is bound: what is called is the linker's
 * choice, and so is what may be unloaded, which it knows from what it has bound.
 *
 * Only x86-64; elsewhere nothing is watched and a line on standard error says so.
 */
#if defined __x86_64__
#include <cpuid.h>
#endif
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder.h"

/* Libraries so far, and those that have gone again. */
struct loads {
    unsigned long long adds, subs;
};

static char watched[SPOOL_FUNCTION];
static uint32_t kind;
static struct loads seen, seen_before; /* at the last two looks */
static atomic_flag looking = ATOMIC_FLAG_INIT;

static void say(const char *text) {
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

#if defined __x86_64__

void *function_target; /* the function itself */
void function_called(void);
extern char function_entry[]; /* code */

__attribute__((used)) void function_called(void) {
    if (!*recording)
        return;
    step_note_closed();
    lane_note(SPOOL_CALL, kind, 0, 0, 0);
}

/* The vector registers that a call may use: SSE, AVX, the masks and the rest of AVX-512. XSAVE
 * keeps them whole; the C library, which a full chunk calls, may clear their upper parts. */
#define VECTORS 0xe6
#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

uint64_t function_area; /* of XSAVE, in bytes; a multiple of 64 */

/* Makers of processors place the parts of VECTORS differently. False: there is no XSAVE. */
static bool find_area(void) {
    uint32_t a, b, c, d, end = 512 + 64; /* the part of SSE and the header */
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return false;
    for (uint32_t part = 2; VECTORS >> part; part++)
        if (VECTORS >> part & 1 && __get_cpuid_count(0xd, part, &a, &b, &c, &d) && b + a > end)
            end = b + a;
    function_area = (end + 63u) & ~63u;
    return true;
}

/* All that a call may pass is saved: six registers, the number of vectors, r10, the vectors. */
__asm__(".text\n"
        ".hidden function_target\n"
        ".hidden function_called\n"
        ".hidden function_entry\n"
        ".hidden function_area\n"
        ".globl function_entry\n"
        ".type function_entry, @function\n"
        "function_entry:\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    push %rax; push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9; push %r10\n"
        "    sub function_area(%rip), %rsp\n"
        "    and $-64, %rsp\n"
        "    xor %edx, %edx\n" /* the header has to be zeros */
        "    mov %rdx, 512(%rsp); mov %rdx, 520(%rsp); mov %rdx, 528(%rsp); mov %rdx, 536(%rsp)\n"
        "    mov %rdx, 544(%rsp); mov %rdx, 552(%rsp); mov %rdx, 560(%rsp); mov %rdx, 568(%rsp)\n"
        "    mov $" STRING(VECTORS) ", %eax\n"
        "    xsave (%rsp)\n"
        "    call function_called\n"
        "    xor %edx, %edx\n"
        "    mov $" STRING(VECTORS) ", %eax\n"
        "    xrstor (%rsp)\n"
        "    lea -64(%rbp), %rsp\n"
        "    pop %r10; pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi; pop %rax\n"
        "    pop %rbp\n"
        "    jmp *function_target(%rip)\n"
        ".size function_entry, . - function_entry\n");

/* What is needed of an object's dynamic section. */
struct tables {
    const ElfW(Sym) *symbols;
    const char *names;
    const ElfW(Rela) *jumps, *others;
    size_t jump_bytes, other_bytes;
    const uint32_t *hash, *gnu_hash; /* either may be missing */
    const uint16_t *versions;        /* by symbol; NULL: there are none */
    const char *defined, *needed;    /* the versions' names; either may be missing */
};

static void read_entries(const struct dl_phdr_info *object, const ElfW(Dyn) *entry,
                         struct tables *tables) {
    for (; entry->d_tag != DT_NULL; entry++) {
        uintptr_t at = entry->d_un.d_ptr;
        if (at < object->dlpi_addr) /* the vdso's are not moved */
            at += object->dlpi_addr;
        switch (entry->d_tag) {
        case DT_SYMTAB: tables->symbols = (const ElfW(Sym) *)at; break;
        case DT_STRTAB: tables->names = (const char *)at; break;
        case DT_JMPREL: tables->jumps = (const ElfW(Rela) *)at; break;
        case DT_RELA: tables->others = (const ElfW(Rela) *)at; break;
        case DT_PLTRELSZ: tables->jump_bytes = entry->d_un.d_val; break;
        case DT_RELASZ: tables->other_bytes = entry->d_un.d_val; break;
        case DT_HASH: tables->hash = (const uint32_t *)at; break;
        case DT_GNU_HASH: tables->gnu_hash = (const uint32_t *)at; break;
        case DT_VERSYM: tables->versions = (const uint16_t *)at; break;
        case DT_VERDEF: tables->defined = (const char *)at; break;
        case DT_VERNEED: tables->needed = (const char *)at; break;
        default: break;
        }
    }
}

/* False: it has none. `own`: it is the recorder. */
static bool read_tables(const struct dl_phdr_info *object, struct tables *tables, bool *own) {
    *tables = (struct tables){0};
    *own = false;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(object->dlpi_addr + part->p_vaddr);
        if (part->p_type != PT_DYNAMIC)
            continue;
        *own |= entry == _DYNAMIC;
        read_entries(object, entry, tables);
    }
    return tables->symbols && tables->names;
}

/* A slot may lie where the linker has taken the right to write away. The page stays writable: the
 * linker may be about to write to it, in an object that is just being loaded. */
static void set_slot(void **slot, bool read_only) {
    uintptr_t page = (uintptr_t)slot & ~(uintptr_t)4095;
    if (*slot == function_entry)
        return;
    if (read_only && mprotect((void *)page, 4096, PROT_READ | PROT_WRITE) != 0)
        return;
    *slot = function_entry;
}

static bool is_read_only(const struct dl_phdr_info *object, uintptr_t slot) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_RELRO && slot - begin < part->p_memsz)
            return true;
    }
    return false;
}

/* ---- versions */

/* Of a symbol: a number that its library gave to the name of a version. 0 and 1: it has none. */
static uint16_t version_number(const struct tables *tables, uint32_t i) {
    return tables->versions ? tables->versions[i] & 0x7fff : VER_NDX_GLOBAL;
}

static const char *name_of_defined(const struct tables *tables, uint16_t number) {
    const char *at = number > VER_NDX_GLOBAL ? tables->defined : NULL;
    while (at) {
        const ElfW(Verdef) *entry = (const void *)at;
        const ElfW(Verdaux) *name = (const void *)(at + entry->vd_aux);
        if (entry->vd_ndx == number)
            return tables->names + name->vda_name;
        at = entry->vd_next ? at + entry->vd_next : NULL;
    }
    return NULL;
}

/* In what is wanted of one library. */
static const char *name_in(const struct tables *tables, const ElfW(Verneed) *library,
                           uint16_t number) {
    const char *at = (const char *)library + library->vn_aux;
    for (uint16_t left = library->vn_cnt; left > 0; left--) {
        const ElfW(Vernaux) *entry = (const void *)at;
        if ((entry->vna_other & 0x7fff) == number)
            return tables->names + entry->vna_name;
        at += entry->vna_next;
    }
    return NULL;
}

static const char *name_of_needed(const struct tables *tables, uint16_t number) {
    const char *at = tables->needed, *name = NULL;
    while (at && !name) {
        const ElfW(Verneed) *library = (const void *)at;
        name = name_in(tables, library, number);
        at = library->vn_next ? at + library->vn_next : NULL;
    }
    return name;
}

/* ---- where the function is */

/*
 * Its first definition, in the order in which objects were loaded. dlsym() is not asked: this may
 * be a free() in the midst of dlerror(), or the last of a thread, whose message another failure
 * would free again; nor does it know of libraries that were opened for one other alone, as Python's
 * are. An object that is just being loaded is looked at once more when it is there.
 */
struct definitions {
    int objects;
    void *first;         /* NULL: there is none, or it is data, whose slots are read, not called */
    int first_in;        /* number of its object; -1 */
    const char *version; /* of the first; NULL: it has none, and does for whoever wants one */
    bool older;          /* before it there is an object that has older versions of it alone */
};

static struct definitions known = {.first_in = -1};
static int begun; /* so many objects were there when the program began; all bind to theirs */

static bool defines(const struct tables *tables, uint32_t i) {
    const ElfW(Sym) *symbol = &tables->symbols[i];
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
           ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
           strcmp(tables->names + symbol->st_name, watched) == 0;
}

/* Whether it may not be asked for without a version. */
static bool is_older(const struct tables *tables, uint32_t i) {
    return tables->versions && tables->versions[i] & 0x8000;
}

static uint32_t find_by_gnu_hash(const struct tables *tables) {
    const uint32_t *head = tables->gnu_hash; /* buckets, first symbol, words of the filter, shift */
    const uint32_t *buckets = head + 4 + head[2] * (sizeof(ElfW(Addr)) / sizeof *head);
    const uint32_t *chains = buckets + head[0];
    uint32_t hash = 5381, older = 0;
    for (const char *c = watched; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    uint32_t i = head[0] ? buckets[hash % head[0]] : 0;
    for (; i >= head[1] && i > 0; i++) {
        uint32_t of_symbol = chains[i - head[1]];
        if ((of_symbol | 1) == (hash | 1) && defines(tables, i)) {
            if (!is_older(tables, i))
                return i;
            older = i;
        }
        if (of_symbol & 1) /* the last of its bucket */
            break;
    }
    return older;
}

/* The newest version, or an older one where that is all there is. 0: there is none. */
static uint32_t find_definition(const struct tables *tables) {
    uint32_t older = 0;
    if (tables->gnu_hash)
        return find_by_gnu_hash(tables);
    for (uint32_t i = 1; tables->hash && i < tables->hash[1]; i++)
        if (defines(tables, i)) {
            if (!is_older(tables, i))
                return i;
            older = i;
        }
    return older;
}

/* NULL as well for one that its library chooses, as long as that may not be ready to run. */
static void *address_of(const struct dl_phdr_info *object, const ElfW(Sym) *symbol, bool ready) {
    uintptr_t at = object->dlpi_addr + symbol->st_value;
    switch (ELF64_ST_TYPE(symbol->st_info)) {
    case STT_FUNC:
    case STT_NOTYPE: return (void *)at;
    case STT_GNU_IFUNC: return ready ? ((void *(*)(void))at)() : NULL;
    default: return NULL;
    }
}

static int note_definition(struct dl_phdr_info *object, size_t size, void *to) {
    struct definitions *found = to;
    struct tables tables;
    bool own;
    int number = found->objects++;
    (void)size;
    if (found->first_in >= 0 ||
        (object->dlpi_addr && object->dlpi_addr == getauxval(AT_SYSINFO_EHDR)))
        return 0; /* the vdso's are the C library's alone */
    uint32_t symbol = read_tables(object, &tables, &own) ? find_definition(&tables) : 0;
    if (symbol && is_older(&tables, symbol)) {
        found->older = true;
    } else if (symbol) {
        found->first = address_of(object, &tables.symbols[symbol], !begun || number < begun);
        found->first_in = number;
        found->version = name_of_defined(&tables, version_number(&tables, symbol));
    }
    return 0;
}

/* ---- from where it is called */

/* Slots that the linker had not bound at the last look, as far as there is room: the others are
 * looked at again when something has been loaded. They are there as long as nothing is unloaded. */
static struct {
    void **slot[256];
    size_t count;
} unbound;

static bool lies_in(const struct dl_phdr_info *object, const void *value) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD &&
            (uintptr_t)value - object->dlpi_addr - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

/* Whether the linker will find the first definition and no other for a symbol of an object that was
 * there when the program began. Those that came later may look elsewhere first. */
static bool finds_first(const struct tables *tables, uint32_t symbol) {
    uint16_t wanted = version_number(tables, symbol);
    if (known.first_in >= begun || known.older ||
        tables->symbols[symbol].st_shndx != SHN_UNDEF) /* perhaps its own goes first */
        return false;
    const char *name = name_of_needed(tables, wanted);
    return !known.version || (name && strcmp(name, known.version) == 0);
}

static void watch_slots(const struct dl_phdr_info *object, const struct tables *tables,
                        const ElfW(Rela) *slot, size_t bytes, bool early) {
    const ElfW(Rela) *end = slot ? slot + bytes / sizeof *slot : NULL; /* not every object has it */
    for (; slot < end; slot++) {
        uint32_t type = ELF64_R_TYPE(slot->r_info);
        uint32_t symbol = (uint32_t)ELF64_R_SYM(slot->r_info);
        void **at = (void **)(object->dlpi_addr + slot->r_offset);
        if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
            strcmp(tables->names + tables->symbols[symbol].st_name, watched) != 0)
            continue;
        bool bound = type == R_X86_64_GLOB_DAT || !lies_in(object, *at);
        if (*at == known.first || (!bound && early && finds_first(tables, symbol)))
            set_slot(at, is_read_only(object, (uintptr_t)at));
        else if (!bound && unbound.count < sizeof unbound.slot / sizeof *unbound.slot)
            unbound.slot[unbound.count++] = at;
    }
}

static int watch_object(struct dl_phdr_info *object, size_t size, void *counted) {
    struct tables tables;
    bool own;
    int number = (*(int *)counted)++;
    (void)size;
    if (read_tables(object, &tables, &own) && !own) {
        watch_slots(object, &tables, tables.jumps, tables.jump_bytes, number < begun);
        watch_slots(object, &tables, tables.others, tables.other_bytes, number < begun);
    }
    return 0;
}

/* ---- again and again */

/* Nothing can be unloaded meanwhile. */
static int read_loads(struct dl_phdr_info *object, size_t size, void *to) {
    struct loads *now = to;
    (void)size;
    *now = (struct loads){object->dlpi_adds, object->dlpi_subs};
    for (size_t i = 0; now->subs == seen.subs && i < unbound.count; i++)
        if (*unbound.slot[i] == known.first)
            set_slot(unbound.slot[i], false); /* the linker has just written there */
    return 1;
}

static bool are_same(struct loads a, struct loads b) {
    return a.adds == b.adds && a.subs == b.subs;
}

static void look_at_all(void) {
    struct definitions found = {.first_in = -1};
    int counted = 0;
    dl_iterate_phdr(note_definition, &found);
    known = found;
    unbound.count = 0;
    if (!begun)
        begun = found.objects;
    if (found.first) {
        function_target = found.first;
        dl_iterate_phdr(watch_object, &counted);
    }
}

void function_look_again(void) {
    struct loads now = {0};
    if (!watched[0] || atomic_flag_test_and_set(&looking))
        return;
    dl_iterate_phdr(read_loads, &now);
    if (!are_same(now, seen) || !are_same(now, seen_before)) {
        look_at_all();
        seen_before = seen;
        seen = now;
    }
    atomic_flag_clear(&looking);
}

void function_watch(const char *name) {
    if (!find_area()) {
        say("libebb-record: no function is watched, for this processor has no XSAVE\n");
        return;
    }
    if (strlen(name) >= sizeof watched)
        return;
    kind = spool_kind(name);
    strcpy(watched, name);
}

#else

void function_look_again(void) {}

void function_watch(const char *name) {
    say("libebb-record: functions are watched on x86-64 only\n");
    (void)name, (void)watched, (void)kind, (void)seen, (void)seen_before, (void)looking;
}

#endif
