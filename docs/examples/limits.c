// SPDX-License-Identifier: Apache-2.0
/* limits.c - a budget that covers a subtree, the report when it is used up, and a pool's limit. */
#include <ebb/ebb.h>

#include <stdlib.h>
#include <string.h>

static char report[2048];

static void need(bool holds) {
    if (!holds)
        exit(1);
}

/* Called before the allocation returns NULL. Must not call into ebb. */
static void exhausted(void *context, const char *text) {
    (void)context;
    strncpy(report, text, sizeof report - 1);
}

static void use_up_a_budget(void) {
    ebb_region request = ebb_region_open(
        EBB_REGION_OPTIONS(.name = "request", .limit_bytes = (size_t)1 << 20));
    ebb_region token =
        ebb_region_open(EBB_REGION_OPTIONS(.name = "token", .parent = request));
    need(ebb_region_alloc(token, 800000, 64) != NULL);
    need(ebb_region_alloc(token, 400000, 64) == NULL); /* the parent's budget */
    need(ebb_last_error() == EBB_E_REGION_LIMIT);
    need(strstr(ebb_last_error_text(), "400000") != NULL); /* rounded up to 64: it fits exactly */
    need(strstr(report, "region 'token'") && strstr(report, "region 'request'"));
    need(ebb_region_alloc(token, 100000, 64) != NULL); /* nothing had changed */
    need(ebb_region_close(request) == 0);
}

static void use_up_a_pool(void) {
    ebb_pool *pool = ebb_pool_create(
        EBB_POOL_OPTIONS(.name = "small", .limit_reserved_bytes = (size_t)1 << 20));
    need(pool != NULL);
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .pool = pool));
    need(ebb_region_alloc(region, (size_t)2 << 20, 64) == NULL);
    need(ebb_last_error() == EBB_E_POOL_LIMIT);
    need(ebb_pool_set_reserved_limit(pool, (size_t)4 << 20) == 0);
    need(ebb_region_alloc(region, (size_t)2 << 20, 64) != NULL);
    need(ebb_pool_destroy(pool) == EBB_E_BUSY); /* the region is open */
    need(ebb_region_close(region) == 0 && ebb_pool_destroy(pool) == 0);
}

int main(void) {
    need(ebb_report_on_exhausted(exhausted, NULL) == NULL);
    use_up_a_budget();
    use_up_a_pool();
    return 0;
}
