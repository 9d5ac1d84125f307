// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/report.h - reports: what is where, in words.
 *
 * Every report is written through a callback, so that it allocates nothing and works when memory is
 * exhausted. What is reported must be quiescent: the callback may not end or change it, nor start
 * another report of it.
 *
 * Strings of JSON are UTF-8. A byte 0xNN of a name that is not valid UTF-8 is written as \udcNN, a
 * lone surrogate, so that different names stay different; Python's "surrogateescape" gives the byte
 * back.
 */
#ifndef EBB_REPORT_H
#define EBB_REPORT_H

#include <ebb/object.h>
#include <ebb/step.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives `bytes` bytes of text, not terminated. Returns 0 to go on; any other value ends the
 * report. Threads are not cancelled in it. */
typedef int ebb_write_fn(void *context, const char *text, size_t bytes);

enum ebb_report_format { EBB_REPORT_TEXT = 0, EBB_REPORT_JSON = 1 };

/*
 * The region and its descendants as a tree: name, blocks, requested, used, reserved, waste,
 * pinned. Text: one line a region, indented. JSON: one object, children nested.
 * Returns 0, the callback's value if it stopped, EBB_E_STALE, EBB_E_ARGUMENT.
 */
EBB_API int ebb_report_region(ebb_region region, enum ebb_report_format format,
                              ebb_write_fn *write, void *context);

/* All roots of a pool, with the pool's own counters in front. NULL: the default pool. */
EBB_API int ebb_report_pool(ebb_pool *pool, enum ebb_report_format format, ebb_write_fn *write,
                            void *context);

/*
 * An object and everything it consists of: type, bytes, fields; of tensors the data type, shape,
 * strides and how many see the storage. Text: one line an object, indented. JSON: one object,
 * {"type": NAME, "fields": {...}}, members nested; a tensor has no "fields". A field of several
 * members is a list, with null for a missing one; other empty fields are left out. A member that
 * several fields refer to is printed once; the others say "above". Returns 0, the callback's value
 * if it stopped, EBB_E_ARGUMENT, and the errors of ebb_object_end() if it is not a live object.
 */
EBB_API int ebb_report_object(const void *object, enum ebb_report_format format,
                              ebb_write_fn *write, void *context);

/*
 * The blocks of a region that are alive, grouped by the site that allocated them, most bytes
 * first; without `sites` in its options, one group. Sites are return addresses, printed as
 * symbol or as module and offset. At most 32 groups, the rest summed; 256 sites
 * are told apart. Returns as ebb_report_region().
 */
EBB_API int ebb_report_leaks(ebb_region region, enum ebb_report_format format,
                             ebb_write_fn *write, void *context);

/*
 * What a site has learnt and what its steps cost: all figures of struct ebb_site_stats. Text: a few
 * lines, also with shares of hits and of a plan's height. JSON: one object. Any thread.
 * Returns 0, the callback's value if it stopped, EBB_E_ARGUMENT.
 */
EBB_API int ebb_report_site(ebb_site *site, enum ebb_report_format format, ebb_write_fn *write,
                            void *context);

/*
 * The plan of steps with this tag, as JSON: the one that a step followed last, with what the step
 * got; or, when other steps of the site have taken that record's place, the newest plan.
 *
 *     {"site": NAME, "tag": T, "height": BYTES, "max_live": BYTES, "coarse": false,
 *      "followed": true,                                          false: the newest
 *      "slots": [[WHERE, offset, room, passed, served], ...],     in the order of allocation
 *      "order": [slot, ...]}                                      in the order of release
 *
 * WHERE is "placed", "tenured" (born in the parent), "guest" (in the parent for a while) or "left"
 * (to best fit). `passed`: how many slots of the order are to be released before this one is
 * allocated. `served`: the bytes that it got in that step. 0: it was not served; more than `room`
 * of a placed slot: its room was too small. Tenured slots have no room; guests have the room of
 * when the plan was made. In a coarse plan small blocks have no slots. Without a plan everything
 * after "tag" is missing.
 * No step of the site may begin meanwhile. Any thread.
 * Returns 0, the callback's value if it stopped, EBB_E_ARGUMENT, EBB_E_BUSY: a step is open.
 */
EBB_API int ebb_report_plan(ebb_site *site, uint64_t tag, ebb_write_fn *write, void *context);

/*
 * Walks every structure of the pool (NULL: the default one) and of its open regions and checks the
 * conservation laws.
 * Returns 0, or aborts with a message: a law that does not hold is a bug in ebb or a wild write.
 * Time is linear in blocks and runs, and for each limit in the regions that it covers. The regions
 * must be quiescent.
 */
EBB_API int ebb_check_pool(ebb_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
