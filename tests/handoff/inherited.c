// SPDX-License-Identifier: Apache-2.0
/* inherited.c - leases that a forked child has of its parent, and what is in their slots since. */
#include "handoff/duo.h"
#include "kit/dlpack.h"

#include <unistd.h>

#define SLOT_BYTES (4 * MIB)

typedef struct duo duo_start(ebb_pool *pool, duo_part *part, const void *context);

/* ---- the slot of an inherited lease is the child's ---- */

struct inherited {
    ebb_lease *lease;
    int dropped[2]; /* the parent has dropped it */
};

static int find_nothing_of_the_parent(const void *address) {
    EXPECT(!ebb_lease_of(address));
    EXPECT(ebb_last_error() == EBB_E_FOREIGN);
    return 0;
}

/* A region, what is left of it under an export, and a parcel of its own. */
static int use_the_slot(ebb_pool *pool, int out, const void *context) {
    const struct inherited *inherited = context;
    struct ebb_parcel parcel;
    char byte;
    EXPECT(read_all(inherited->dropped[0], &byte, 1));
    ebb_region region = OPEN(.pool = pool);
    EXPECT(ebb_region_is_open(region));
    void *block = block_of(region, 70000, 64);
    EXPECT(find_nothing_of_the_parent(block) == 0);
    EXPECT(ebb_region_send(region, block, &parcel) == 0);
    ebb_lease *own = ebb_parcel_open(pool, &parcel), *found = ebb_lease_of(block);
    EXPECT(own && found == own);
    ebb_lease_drop(found);
    ebb_lease_drop(own);
    region = OPEN(.pool = pool);
    DLManagedTensor *exported = share(tensor_of_bytes(region, 70000));
    EXPECT(ebb_region_close(region) == 0);
    EXPECT(find_nothing_of_the_parent(exported->dl_tensor.data) == 0);
    give_back(exported);
    ebb_lease_drop(inherited->lease);
    EXPECT(ebb_pool_destroy(pool) == 0);
    return 0;
}

static void use_what_the_parent_has_dropped(duo_start *start) {
    ebb_pool *pool = shared_pool(1, SLOT_BYTES);
    struct ebb_parcel parcel = send_pattern(pool, 70000, 1);
    struct inherited inherited = {.lease = ebb_parcel_open(pool, &parcel)};
    assert_non_null(inherited.lease);
    assert_int_equal(pipe(inherited.dropped), 0);
    struct duo duo = start(pool, use_the_slot, &inherited);
    ebb_lease_drop(inherited.lease);
    assert_true(write_all(inherited.dropped[1], "d", 1));
    assert_int_equal(duo_end(&duo), 0);
    assert_states(pool, 0, 0, 0);
    close(inherited.dropped[0]);
    close(inherited.dropped[1]);
    pool_end(pool);
}

static void what_a_child_has_in_a_slot_is_in_no_lease_of_its_parent(void **state) {
    use_what_the_parent_has_dropped(duo_fork);
    use_what_the_parent_has_dropped(duo_fork_raw);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_child_has_in_a_slot_is_in_no_lease_of_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
