// SPDX-License-Identifier: Apache-2.0
/*
 * function.c - notes each call of a named function of a shared library.
 *
 * In every loaded program and library that imports the name, the slot through which it is called
 * (of the procedure linkage table, or a pointer that the linker fills in) is set to a few
 * instructions that note the call and jump on to the function. Registers are kept, so any signature
 * will do. Not seen: calls inside of the library that has the function where it binds them itself,
 * calls through pointers that were fetched by dlsym(), functions that are not exported, calls from
 * a library that was loaded less than a chunk of records ago, and the recorder's own, which make
 * room for the very record of a call.
 *
 * Only x86-64; elsewhere nothing is watched and a line on standard error says so.
 */
#if defined __x86_64__
#include <cpuid.h>
#endif
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder.h"

static char watched[SPOOL_FUNCTION];
static uint32_t kind;
static unsigned long long loaded; /* number of libraries loaded so far, when they were looked at */
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
    if (*recording)
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
};

static void read_tables(const struct dl_phdr_info *object, const ElfW(Dyn) *entry,
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
        default: break;
        }
    }
}

/* A slot may lie where the linker has taken the right to write away again. */
static void set_slot(void **slot, bool read_only) {
    uintptr_t page = (uintptr_t)slot & ~(uintptr_t)4095;
    if (*slot == function_entry)
        return;
    if (read_only && mprotect((void *)page, 4096, PROT_READ | PROT_WRITE) != 0)
        return;
    *slot = function_entry;
    if (read_only)
        mprotect((void *)page, 4096, PROT_READ);
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

static void watch_slots(const struct dl_phdr_info *object, const struct tables *tables,
                        const ElfW(Rela) *slot, size_t bytes) {
    const ElfW(Rela) *end = slot ? slot + bytes / sizeof *slot : NULL; /* not every object has it */
    for (; slot < end; slot++) {
        uint32_t type = ELF64_R_TYPE(slot->r_info);
        const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(slot->r_info)];
        uintptr_t at = object->dlpi_addr + slot->r_offset;
        if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) &&
            strcmp(tables->names + symbol->st_name, watched) == 0)
            set_slot((void **)at, is_read_only(object, at));
    }
}

static int watch_object(struct dl_phdr_info *object, size_t size, void *ignored) {
    (void)size;
    (void)ignored;
    loaded = object->dlpi_adds;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(object->dlpi_addr + part->p_vaddr);
        struct tables tables = {0};
        if (part->p_type != PT_DYNAMIC || entry == _DYNAMIC)
            continue;
        read_tables(object, entry, &tables);
        if (!tables.symbols || !tables.names)
            continue;
        watch_slots(object, &tables, tables.jumps, tables.jump_bytes);
        watch_slots(object, &tables, tables.others, tables.other_bytes);
    }
    return 0;
}

static int read_loaded(struct dl_phdr_info *object, size_t size, void *now) {
    (void)size;
    *(unsigned long long *)now = object->dlpi_adds;
    return 1;
}

static void *own; /* the recorder, to be asked for what it has itself; NULL: not yet */

/* The function of that name that comes behind the program's. NULL: there is none, or it is not
 * known so far, for libraries are not opened in the midst of malloc(). */
static void *find_behind_program(const char *name) {
    Dl_info mine, other;
    void *found = own ? dlsym(own, name) : NULL;
    if (found && dladdr(function_entry, &mine) && dladdr(found, &other) &&
        mine.dli_fbase == other.dli_fbase)
        return found;
    return own ? dlsym(RTLD_NEXT, name) : NULL;
}

/* NULL as well for data, whose slots are read and not called. A program at a fixed address that
 * takes the function's has code of its own there, which only jumps through its slot. */
static void *find_function(const char *name) {
    const ElfW(Sym) *symbol = NULL;
    void *found = dlsym(RTLD_DEFAULT, name);
    Dl_info ignored;
    if (!found || !dladdr1(found, &ignored, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return found;
    if (symbol->st_shndx == SHN_UNDEF)
        return find_behind_program(name);
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT ? NULL : found;
}

void function_look_again(void) {
    unsigned long long now = 0;
    if (!watched[0] || atomic_flag_test_and_set(&looking))
        return;
    dl_iterate_phdr(read_loaded, &now);
    if (now != loaded) {
        if (!function_target)
            function_target = find_function(watched);
        if (function_target)
            dl_iterate_phdr(watch_object, NULL);
    }
    atomic_flag_clear(&looking);
}

void function_begin(void) {
    Dl_info mine;
    if (watched[0] && dladdr(function_entry, &mine))
        own = dlopen(mine.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    function_look_again();
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

void function_begin(void) {}

void function_watch(const char *name) {
    say("libebb-record: functions are watched on x86-64 only\n");
    (void)name, (void)watched, (void)kind, (void)loaded, (void)looking;
}

#endif
