// SPDX-License-Identifier: Apache-2.0
/*
 * blocks.h - which blocks the cases ask for: fixed lists, made once from fixed seeds.
 *
 * All peers and all rounds see the same sizes in the same order. The lists are made before
 * anything is timed.
 */
#ifndef MICRO_BLOCKS_H
#define MICRO_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SMALL10K_COUNT ((size_t)10000)
#define LARGE_COUNT ((size_t)400)
#define REQUEST_SMALL_COUNT ((size_t)300)
#define REQUEST_LARGE_COUNT ((size_t)20)
#define REQUEST_COUNT (REQUEST_SMALL_COUNT + REQUEST_LARGE_COUNT)
#define REQUEST_SURVIVORS ((size_t)3)
#define REQUEST_KEPT ((size_t)50) /* requests that a survivor lives for */

/* 16 to 512 bytes, uniform, no multiple of anything. */
const uint32_t *blocks_small10k(void);

/* 256 B to 4 MiB, uniform in the logarithm. */
const uint32_t *blocks_large(void);

/*
 * One request: 300 blocks of 16 B to 8 KiB and 20 of 64 KiB to 1 MiB, log-uniform, shuffled.
 * free_after[i] lists what is freed once block i was allocated: the indices of `dies` from
 * dies_first[i] up to dies_first[i + 1]. What is not listed lives to the end of the request;
 * the first REQUEST_SURVIVORS of those, `survivor`, beyond it.
 */
struct request_plan {
    uint32_t bytes[REQUEST_COUNT];
    uint16_t dies[REQUEST_COUNT];
    uint16_t dies_first[REQUEST_COUNT + 1];
    uint16_t survivor[REQUEST_SURVIVORS];
};

const struct request_plan *blocks_request(void);

#define BLOCKS_MOST ((size_t)10000000)

/* Room for BLOCKS_MOST pointers; mapped, so that no peer's heap holds them. Ends the process if
 * the system has no room. */
void **blocks_pointers(void);

#ifdef __cplusplus
}
#endif

#endif
