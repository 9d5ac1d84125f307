// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/exhausted.h - the report of an allocation that fails, while it fails.
 *
 * What was asked, and what stands in the way, is known at that moment only, and nothing may be
 * allocated to say it: so a handler gets the text, ready made, before the call returns.
 */
#ifndef EBB_EXHAUSTED_H
#define EBB_EXHAUSTED_H

#include <ebb/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Called when an allocation is about to fail for want of memory, also that of a device or of pages
 * that its driver registers, or by a limit, with all numbers as text of fewer than 2048 bytes. In
 * this order, a line each: what was asked, in which lane, and why it fails (as in
 * ebb_last_error_text(), which names the limit and whose it is); the pool with its limits and what
 * it has cached; the process; the region and those on the way up, the nearest four and of the
 * others those that have a limit, as many as there is room for; how many more there are. What ebb
 * keeps beside a region in shared memory (ebb/handoff.h) has a line in front of the region's, and
 * its pool one behind that of the region's, where there is no room for more of it.
 * What a line cannot show of a name, line ends and escapes among it, is a "?". Regions that cannot
 * be opened and steps that cannot begin just fail.
 *
 * The handler must not call into ebb, and it returns: no jump leaves it, and no thread is cancelled
 * in it. NULL: none. Returns the previous handler, once no call of that is at work any more, on
 * whichever thread, so that its context may go: so hold no lock that it takes. In a handler itself
 * a call does not wait. Any thread.
 */
typedef void ebb_exhausted_fn(void *context, const char *text);
EBB_API ebb_exhausted_fn *ebb_report_on_exhausted(ebb_exhausted_fn *handler, void *context);

#ifdef __cplusplus
}
#endif

#endif
