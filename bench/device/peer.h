// SPDX-License-Identifier: Apache-2.0
/* peer.h - who gives memory of device 0. A block is valid until it is given back, or the step
 * ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peer {
    const char *name;
    bool (*start)(void); /* false: not to be had here */
    void (*begin_step)(void);
    void *(*take)(size_t bytes); /* NULL: none */
    void (*give_back)(void *block);
    bool ends_all; /* end_step() gives back what is left; else each block is given back before */
    void (*end_step)(void);
};

extern const struct peer peer_ebb, peer_planned, peer_driver, peer_driver_pool;
extern const struct peer peer_torch; /* where the program is linked with torch */

#ifdef __cplusplus
}
#endif
