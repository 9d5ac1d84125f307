// SPDX-License-Identifier: Apache-2.0
/*
 * scopes.h - the site of a program whose steps are scopes, if SERVE_SCOPES=1 asks for them.
 *
 * libebb is not linked: its names are there if libebb-malloc is preloaded.
 */
#pragma once

#include <ebb/scope.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma weak ebb_scope_is_served
#pragma weak ebb_site_create
#pragma weak ebb_step_begin
#pragma weak ebb_step_end

/* *site is NULL where there are to be no scopes. False: they were asked for, and cannot be had. */
static inline bool scopes_begin(const char *name, ebb_site **site) {
    const char *asked = getenv("SERVE_SCOPES");
    *site = NULL;
    if (!asked || strcmp(asked, "1") != 0)
        return true;
    if (ebb_scope_is_served && ebb_scope_is_served())
        *site = ebb_site_create(EBB_SITE_OPTIONS(.name = name, .scope = true));
    if (!*site)
        fprintf(stderr, "SERVE_SCOPES, but there is no libebb-malloc\n");
    return *site != NULL;
}
