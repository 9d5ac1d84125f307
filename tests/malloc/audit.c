// SPDX-License-Identifier: Apache-2.0
/* audit.c - an auditor of the loader, for LD_AUDIT, that wants to know nothing. */
#include <link.h>

__attribute__((visibility("default"))) unsigned la_version(unsigned version) {
    return version;
}
