// SPDX-License-Identifier: Apache-2.0
/*
 * site_list.h - which place of the program asked for which object: a file beside the trace, called
 * NAME.sites.gz where that is NAME.trace.gz, and FILE.sites where it has any other name. So no two
 * traces share one; and no trace is called so.
 *
 *     #ebb-sites 1
 *     s NUMBER ORIGIN FILE+0xADDRESS NAME     a place; NAME may be empty and has spaces
 *     NUMBER                                  one line per object of the trace, in its order
 *
 * Gzip, like the trace. Place 0 is one that is not known.
 */
#ifndef EBB_BENCH_TOOL_SITE_LIST_H
#define EBB_BENCH_TOOL_SITE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "output.h"
#include "spool_read.h"

struct site_list {
    struct output output;
};

/* Origin letter of a place. */
char site_list_origin(const struct spool_file *spool, uint32_t site, bool aligned);

/* Begins the list that belongs to `trace`, with all places of the spool. False after a message. */
bool site_list_begin(struct site_list *list, const struct spool_file *spool, const char *trace);

/* The next object of the trace comes from this place. */
void site_list_object(struct site_list *list, uint32_t site);

/* The trace has no list: one of an older trace with its name goes. False after a message. */
bool site_list_forget(const char *trace);

/* The path of the list that belongs to a trace. False: too long. */
bool site_list_path(const char *trace, char *path, size_t room);

/* True if a trace may be called so: it is no name of a list, and there is one for its own. False
 * after a message. */
bool site_list_spares(const char *path);

/* True if a trace that may be called so may be put there with its list, as output_allowed() has it.
 * False after a message. */
bool site_list_allowed(const char *trace);

#endif
