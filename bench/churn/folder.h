// SPDX-License-Identifier: Apache-2.0
/* folder.h - finds the traces that are to be replayed. */
#ifndef EBB_BENCH_FOLDER_H
#define EBB_BENCH_FOLDER_H

struct folder {
    char **path;
    int count;
};

/*
 * Lists the *.trace.gz and *.trace files of a folder by name, or the one file that `path` is.
 * 0, or -1 after a message on standard error: missing, unreadable, or no trace in it; then there
 * is nothing to be freed. What of a folder is no ordinary file is left out with a message, too.
 */
int folder_list(struct folder *folder, const char *path);

void folder_free(struct folder *folder);

#endif
