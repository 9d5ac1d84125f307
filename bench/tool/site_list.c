// SPDX-License-Identifier: Apache-2.0
/* site_list.c - see site_list.h. */
#include "site_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/name.h"
#include "complain.h"
#include "origin.h"
#include "symbols.h"

enum { NAME_BYTES = 600 };

/* The module of a site, NULL where it is not known. Nothing in the spool is believed. */
static const struct spool_module *module_of(const struct spool_file *spool, uint32_t site) {
    uint32_t number = site && site < SPOOL_SITES ? spool->head->site[site].module : 0;
    if (number == 0 || number >= SPOOL_MODULES)
        return NULL;
    const struct spool_module *module = &spool->head->module[number];
    return module->base && memchr(module->path, '\0', SPOOL_MODULE_PATH) ? module : NULL;
}

char site_list_origin(const struct spool_file *spool, uint32_t site, bool aligned) {
    const struct spool_module *module = module_of(spool, site);
    return origin_of(module ? module->path : "", aligned);
}

/* Of a name; a folder is none. */
static bool ends_with(const char *path, const char *end) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    return length > strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

bool site_list_path(const char *trace, char *path, size_t room) {
    static const char end[] = ".trace.gz";
    if (!ends_with(trace, end))
        return (size_t)snprintf(path, room, "%s.sites", trace) < room;
    return (size_t)snprintf(path, room, "%.*s.sites.gz", (int)(strlen(trace) - strlen(end)),
                            trace) < room;
}

bool site_list_spares(const char *path) {
    char list[OUTPUT_PATH_MAX];
    if (ends_with(path, ".sites") || ends_with(path, ".sites.gz"))
        return complain("%s: a list of places has such a name, and a trace another", path);
    return site_list_path(path, list, sizeof list) || complain("%s: too long a name", path);
}

bool site_list_allowed(const char *trace) {
    char list[OUTPUT_PATH_MAX];
    return output_allowed(trace) && site_list_path(trace, list, sizeof list) &&
           output_allowed(list);
}

/* In a list the address follows where the first "+0x" is. */
static void mask_addresses(char *path) {
    for (char *at = path; (at = strstr(at, "+0x"));)
        *at = '?';
}

static void put_site(struct site_list *list, const struct spool_file *spool, uint32_t number) {
    const struct spool_module *module = module_of(spool, number);
    char name[NAME_BYTES] = "", path[SPOOL_MODULE_PATH] = "?";
    uint64_t address = spool->head->site[number].caller;
    if (module) {
        address -= module->base - 1;
        symbols_name(module->path, address - 1, name, sizeof name);
        snprintf(path, sizeof path, "%s", module->path);
    }
    name_make_plain(name);
    name_make_plain(path);
    mask_addresses(path);
    gzprintf(list->output.file, "s %" PRIu32 " %c %s+0x%" PRIx64 " %s\n", number,
             site_list_origin(spool, number, false), path, address, name);
}

bool site_list_begin(struct site_list *list, const struct spool_file *spool, const char *trace) {
    char path[OUTPUT_PATH_MAX];
    if (!site_list_path(trace, path, sizeof path))
        return complain("%s: too long a name", trace);
    if (!output_begin(&list->output, path))
        return false;
    gzputs(list->output.file, "#ebb-sites 1\n");
    for (uint32_t i = 1; i < SPOOL_SITES; i++)
        if (spool->head->site[i].caller)
            put_site(list, spool, i);
    symbols_close();
    return true;
}

void site_list_object(struct site_list *list, uint32_t site) {
    gzprintf(list->output.file, "%" PRIu32 "\n", site);
}

bool site_list_forget(const char *trace) {
    char path[OUTPUT_PATH_MAX];
    if (!site_list_path(trace, path, sizeof path) || unlink(path) == 0 || errno == ENOENT ||
        errno == ENOTDIR)
        return true;
    return complain("%s: it is of an older trace, and cannot be removed: %s", path,
                    strerror(errno));
}
