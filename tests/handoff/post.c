// SPDX-License-Identifier: Apache-2.0
/* post.c - see post.h. */
#include "handoff/post.h"
#include "handoff/duo.h"

struct post open_post(void) {
    struct post post = {.pool = shared_pool(2, POST_SLOT_BYTES)};
    post.from = OPEN(.name = "from", .pool = post.pool);
    post.to = OPEN(.name = "to");
    return post;
}

void close_post(struct post *post) {
    ebb_lease_drop(post->lease);
    assert_int_equal(ebb_region_close(post->to), 0);
    assert_states(post->pool, 0, 0, 0);
    pool_end(post->pool);
}

void *deliver(struct post *post, void *object) {
    struct ebb_parcel parcel;
    int sent = ebb_region_send_object(post->from, object, &parcel);
    if (sent)
        print_error("%s\n", ebb_last_error_text());
    assert_int_equal(sent, 0);
    post->lease = ebb_parcel_open(post->pool, &parcel);
    assert_non_null(post->lease);
    void *made = ebb_lease_object(post->lease, post->to);
    if (!made)
        print_error("%s\n", ebb_last_error_text());
    assert_non_null(made);
    return made;
}
