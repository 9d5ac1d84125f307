// SPDX-License-Identifier: Apache-2.0
/*
 * symbols.c - reads the symbol tables of 64-bit ELF files of this machine's byte order.
 *
 * The files are those of the recorded program, so nothing in them is believed: every table must lie
 * inside of the file, every name inside of its table. What does not fit has no names.
 */
#include "symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "brief.h"
#include "complain.h"
#include "spool.h"

enum { FILES_MAX = SPOOL_MODULES, PATH_BYTES = SPOOL_MODULE_PATH };

struct function {
    uint64_t begin, reach; /* as far as it and those before it reach */
    const Elf64_Sym *symbol;
};

/* Of one table, by where they begin: a table may have a million, and is asked for each place. */
struct functions {
    struct functions *next; /* those of the file's next table */
    const char *names;
    size_t count;
    struct function list[];
};

struct elf {
    char path[PATH_BYTES];
    const char *at; /* NULL: no names */
    size_t bytes;
    struct functions *functions;
};

static struct elf files[FILES_MAX];
static int file_count;

static void map_file(struct elf *file) {
    struct stat status;
    int descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 &&
        (size_t)status.st_size >= sizeof(Elf64_Ehdr)) {
        file->bytes = (size_t)status.st_size;
        void *at = mmap(NULL, file->bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
        file->at = at == MAP_FAILED ? NULL : at;
    }
    if (descriptor >= 0)
        close(descriptor);
    if (file->at && (memcmp(file->at, ELFMAG, SELFMAG) != 0 || file->at[EI_CLASS] != ELFCLASS64)) {
        munmap((void *)(uintptr_t)file->at, file->bytes);
        file->at = NULL;
    }
}

static bool fits(const struct elf *file, uint64_t at, uint64_t bytes) {
    return at <= file->bytes && bytes <= file->bytes - at && at % 4 == 0;
}

static const Elf64_Shdr *sections_of(const struct elf *file, size_t *count) {
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)file->at;
    *count = head->e_shnum;
    if (head->e_shentsize != sizeof(Elf64_Shdr) ||
        !fits(file, head->e_shoff, *count * sizeof(Elf64_Shdr)))
        return NULL;
    return (const Elf64_Shdr *)(const void *)(file->at + head->e_shoff);
}

/* ---- tables */

static bool has_end(const struct elf *file, const Elf64_Shdr *names) {
    return names->sh_offset < file->bytes && names->sh_size != 0 &&
           names->sh_size <= file->bytes - names->sh_offset &&
           file->at[names->sh_offset + names->sh_size - 1] == '\0';
}

/* Of those that begin together the first of the table comes last. */
static int compare(const void *left, const void *right) {
    const struct function *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->symbol < b->symbol) - (a->symbol > b->symbol);
}

static void sort(struct functions *functions) {
    uint64_t reach = 0;
    qsort(functions->list, functions->count, sizeof *functions->list, compare);
    for (size_t i = 0; i < functions->count; i++) {
        struct function *function = &functions->list[i];
        uint64_t size = function->symbol->st_size;
        uint64_t end = size > UINT64_MAX - function->begin ? UINT64_MAX : function->begin + size;
        reach = end > reach ? end : reach;
        function->reach = reach;
    }
}

static struct functions *take_table(const struct elf *file, const Elf64_Shdr *table,
                                    const Elf64_Shdr *names) {
    if (!fits(file, table->sh_offset, table->sh_size) || !has_end(file, names))
        return NULL;
    const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(file->at + table->sh_offset);
    size_t count = table->sh_size / sizeof *symbol;
    struct functions *functions = malloc(sizeof *functions + count * sizeof *functions->list);
    if (!functions) {
        complain("%s: no memory for the names of %zu symbols", file->path, count);
        return NULL;
    }
    *functions = (struct functions){.names = file->at + names->sh_offset};
    for (size_t i = 0; i < count; i++)
        if (ELF64_ST_TYPE(symbol[i].st_info) == STT_FUNC && symbol[i].st_value &&
            symbol[i].st_name < names->sh_size)
            functions->list[functions->count++] =
                (struct function){symbol[i].st_value, 0, &symbol[i]};
    sort(functions);
    return functions;
}

/* All tables together are no longer than the file: thousands may be said to lie in one place. */
static void take_tables(struct elf *file) {
    size_t count, left = file->bytes;
    const Elf64_Shdr *section = sections_of(file, &count);
    struct functions **last = &file->functions;
    for (size_t i = 0; section && i < count; i++) {
        bool has_symbols = section[i].sh_type == SHT_SYMTAB || section[i].sh_type == SHT_DYNSYM;
        if (!has_symbols || section[i].sh_link >= count || section[i].sh_size > left)
            continue;
        left -= section[i].sh_size;
        *last = take_table(file, &section[i], &section[section[i].sh_link]);
        if (*last)
            last = &(*last)->next;
    }
}

static struct elf *file_of(const char *path) {
    for (int i = 0; i < file_count; i++)
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
    if (file_count == FILES_MAX || strlen(path) >= PATH_BYTES)
        return NULL;
    struct elf *file = &files[file_count++];
    strcpy(file->path, path);
    map_file(file);
    if (file->at)
        take_tables(file);
    return file;
}

/* ---- names */

/* How many functions begin at or before `address`. */
static size_t count_before(const struct functions *functions, uint64_t address) {
    size_t low = 0, high = functions->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (functions->list[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The name of the function with `address` that begins nearest to it. */
static const char *find_in(const struct functions *functions, uint64_t address) {
    const struct function *list = functions->list;
    for (size_t i = count_before(functions, address); i > 0 && list[i - 1].reach >= address; i--)
        if (address - list[i - 1].begin <= list[i - 1].symbol->st_size)
            return functions->names + list[i - 1].symbol->st_name;
    return NULL;
}

static const char *find_symbol(const struct elf *file, uint64_t address) {
    const char *name = NULL;
    for (const struct functions *at = file->functions; at && !name; at = at->next)
        name = find_in(at, address);
    return name;
}

typedef char *demangler(const char *, char *, size_t *, int *);

static demangler *find_demangler(void) {
    union {
        void *found;
        demangler *function;
    } way = {NULL};
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY);
    if (library)
        way.found = dlsym(library, "__cxa_demangle");
    return way.function;
}

void symbols_name(const char *path, uint64_t address, char *name, size_t room) {
    static demangler *demangle;
    static bool looked;
    const struct elf *file = file_of(path);
    const char *found = file ? find_symbol(file, address) : NULL;
    int status = 1;
    if (!looked)
        demangle = find_demangler();
    looked = true;
    char *plain = found && demangle && strncmp(found, "_Z", 2) == 0
                      ? demangle(found, NULL, NULL, &status) : NULL;
    const char *text = plain ? plain : found ? found : "";
    brief_function(name, room, text, strlen(text));
    free(plain);
}

void symbols_close(void) {
    for (int i = 0; i < file_count; i++) {
        for (struct functions *next, *at = files[i].functions; at; at = next) {
            next = at->next;
            free(at);
        }
        if (files[i].at)
            munmap((void *)(uintptr_t)files[i].at, files[i].bytes);
    }
    file_count = 0;
    memset(files, 0, sizeof files);
}
