// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/report.h - reports: what is where, in words.
 *
 * Every report is written through a callback, so that it allocates nothing and works when
 * memory is exhausted. The regions that are reported must be quiescent: the callback neither ends
 * nor changes what is told, nor has it told once more meanwhile.
 *
 * Strings of JSON are UTF-8. Byte 0xNN of a name that is none is \udcNN there, half of a pair of
 * UTF-16, so names that differ stay different: Python's "surrogateescape" makes it the byte again.
 */
#ifndef EBB_REPORT_H
#define EBB_REPORT_H

#include <ebb/object.h>
#include <ebb/step.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives `bytes` bytes of text, not terminated. Returns 0 to go on, else the report ends. No
 * thread is cancelled in it. */
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
 * {"type": NAME, "fields": {...}}, what is in fields nested; of tensors without "fields". A field
 * of several members is a list, null where there is none; other fields without one are left out.
 * A member that several fields refer to is printed once; the others say "above". Returns 0, the
 * callback's value if it stopped, EBB_E_ARGUMENT, and the errors of ebb_object_end() for what is no
 * live object.
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
 * The plan of steps with this tag, as JSON: that which a step followed last; or the newest, if what
 * that step got is not known any more, since others of the site have taken its place.
 *
 *     {"site": NAME, "tag": T, "height": BYTES, "max_live": BYTES, "coarse": false,
 *      "followed": true,                                          by a step; else the newest
 *      "slots": [[WHERE, offset, room, passed, served], ...],     in the order of allocation
 *      "order": [slot, ...]}                                      in the order of release
 *
 * WHERE is "placed", "tenured" (born in the parent), "guest" (in the parent for a while) or "left"
 * (to best fit). So many slots of the order are to be released before a slot as `passed` says.
 * `served`: bytes that it got in that step; 0: it was not served; of a placed one more than
 * `room`: that was too small. Tenured slots have no room there, guests that which they had when the
 * plan was made. In a coarse plan small blocks have no slots. Without a plan all behind "tag" is
 * missing.
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
