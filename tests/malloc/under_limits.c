// SPDX-License-Identifier: Apache-2.0
/*
 * under_limits.c - what the hardened library forbids, and opens again, in a process that may open
 * no files, and in one that may have little data (RLIMIT_DATA). There the system refuses to open
 * what was forbidden, and nothing may get lost by it.
 */
#include "malloc/acts.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { HELD = 4096, KIB = 1024, MIB = 1 << 20 };

/* ---- no files ---- */

/* From now on a call that opens a file ends the process. */
static bool forbids_files(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0)
        return true;
    printf("# skipped: no filter of system calls: %s\n", strerror(errno));
    return false;
}

static void free_opens_no_file(void) {
    char *block = malloc(100 * KIB);
    EXPECT(block);
    memset(block, 1, 100 * KIB);
    if (!forbids_files())
        return;
    free(block);
    for (unsigned i = 0; i < HELD + 1; i++)
        free(malloc(20 * KIB));
}

int main(void) {
    static const struct act acts[] = {
        ACT(free_opens_no_file),
    };
    return act_all(acts, sizeof acts / sizeof *acts) != 0;
}
