// SPDX-License-Identifier: Apache-2.0
/* plugin.c - what plugins.c loads and closes: a user of ebb with a type of its own. */
#include "abi/plugin.h"

struct pair {
    struct ebb_object object;
    struct ebb_object *left, *right;
};

static const struct ebb_field pair_fields[] = {
    EBB_FIELD(struct pair, EBB_FIELD_OBJECT, left),
    EBB_FIELD(struct pair, EBB_FIELD_OBJECT, right),
};

static struct ebb_type pair_type = {
    .name = "pair of a plugin", .bytes = sizeof(struct pair),
    .fields = pair_fields, .field_count = 2,
};

static bool has_step(void) {
    static ebb_site *site;
    if (!site)
        site = ebb_site_create(NULL);
    ebb_step step = ebb_step_begin(site, 0);
    return ebb_region_alloc(step.region, 100, 16) && ebb_step_end(step) == 0;
}

static void *new_pair(ebb_region region) {
    struct pair *pair = ebb_object_new(region, &pair_type, 0);
    if (!pair)
        return NULL;
    pair->left = ebb_object_new(region, &pair_type, 0);
    return pair->left && ebb_object_compose(pair) == 0 ? pair : NULL;
}

static void *made_pair(ebb_region region) {
    return ebb_type_register(&pair_type) == 0 ? new_pair(region) : NULL;
}

__attribute__((visibility("default"))) const struct plugin plugin = {has_step, made_pair};
