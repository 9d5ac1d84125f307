// SPDX-License-Identifier: Apache-2.0
/* plugin.h - what a plugin offers: its symbol `plugin`. */
#ifndef EBB_TESTS_ABI_PLUGIN_H
#define EBB_TESTS_ABI_PLUGIN_H

#include <ebb/ebb.h>

struct plugin {
    bool (*has_step)(void); /* began and ended one, on this thread */
    void *(*made_pair)(ebb_region region); /* an object of its type, with a member; or NULL */
};

extern const struct plugin plugin;

#endif
