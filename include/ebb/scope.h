// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/scope.h - request scopes: what a program mallocs during a step belongs to the step.
 *
 * For servers whose code allocates with malloc() and new. A scope is a step (ebb/step.h) of a site
 * that was made with `scope`, in a process that has libebb-malloc loaded, by LD_PRELOAD or linked:
 *
 *     site = ebb_site_create(EBB_SITE_OPTIONS(.name = "request", .scope = true));
 *     for each request:
 *         step = ebb_step_begin(site, 0);
 *         answer(request);          malloc() of this thread allocates in the scope
 *         ebb_step_end(step);
 *
 * free() works as ever, in any thread and at any time. What is alive when the step ends stays
 * where it is, for as long as the program wants it: its chunk is set aside and counted as pinned.
 * All else goes at once and is hot for the next request. Allocations that outlive their scopes
 * again and again are made outside of scopes from then on; now and then they are tried inside.
 *
 * Without libebb-malloc a step with a scope is a step like any other, and malloc() is untouched.
 *
 * Scopes nest: malloc() allocates in the one that was begun or entered last. A scope belongs to the
 * thread that began it, which must end it; one that is open when its thread ends is ended then. Its
 * step stays open, with what lies in its region, and any thread may end that. What other threads
 * allocate meanwhile is not the scope's. Source of the semantics: docs/malloc.md.
 */
#ifndef EBB_SCOPE_H
#define EBB_SCOPE_H

#include <ebb/step.h>

#ifdef __cplusplus
extern "C" {
#endif

/* True if libebb-malloc is loaded, so that scopes do something. Any thread. */
EBB_API bool ebb_scope_is_served(void);

/*
 * For servers that turn to other requests while one waits, on the same thread: malloc() goes where
 * it went before this scope was begun or entered. The step stays open; leave its scope whenever the
 * request gives up the thread. Scopes may be left in any order. If it is left already nothing
 * happens, and 0 is returned. Cleanups and deleters may call it, too. EBB_E_STALE: the step has
 * ended. EBB_E_ARGUMENT: its site has no scopes, or the handle is made of parts of two steps.
 * EBB_E_THREAD: another thread began it.
 */
EBB_API int ebb_scope_leave(ebb_step step);

/* And back: malloc() of this thread allocates in the scope again. Entered already: it becomes the
 * innermost one. Errors as ebb_scope_leave(). */
EBB_API int ebb_scope_enter(ebb_step step);

#ifdef __cplusplus
}

/*
 * A scope as long as the object, also if an exception ends it. Begins nothing if the step cannot
 * begin: ebb_last_error_text() tells why, malloc() is as before.
 *
 *     ebb_site_options options{};
 *     options.size = sizeof options;
 *     options.scope = true;
 *     ebb_site *site = ebb_site_create(&options);    once
 *     ebb::scope request(site);                      for each request
 */
namespace ebb {
class scope {
  public:
    explicit scope(ebb_site *site, uint64_t tag = 0) : step_(ebb_step_begin(site, tag)) {}
    ~scope() {
        if (step_.lane)
            (void)ebb_step_end(step_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    ebb_step step() const { return step_; }

  private:
    ebb_step step_;
};
} // namespace ebb
#endif

#endif
