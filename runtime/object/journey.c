// SPDX-License-Identifier: Apache-2.0
/*
 * journey.c - objects move to another region: their blocks first, then what points to them.
 *
 * Every block that goes is a survivor of one promotion of blocks, which is all or nothing. After
 * it, nothing can fail: pointers into blocks that were copied are mended, and owners, counters and
 * lists follow. A storage is relinked only if all tensors that see it go along; else they get a
 * copy of it, and the others keep theirs.
 *
 *     parcels    | object | its array | its bytes | object | ... | lone storages | compact views |
 *
 * Invariant: the parcels are in the order of the chains, so they are found again by walking.
 */
#include "object/journey.h"
#include "base/cancel.h"
#include "base/error.h"
#include "region/promote.h"
#include "object/adopt.h"
#include "object/exchange.h"
#include "region/scratch.h"
#include "region/survivor.h"
#include "region/undo.h"

/* What a block that goes is. */
enum parcel {
    PARCEL_HEAD,   /* an object without a storage of its own */
    PARCEL_TENSOR, /* a tensor with its storage */
    PARCEL_BLOCK,  /* what a field refers to; follows the head */
    PARCEL_STORAGE, /* a storage whose tensor has ended or stays */
    PARCEL_BYTES,   /* of a storage that has them apart; follows the tensor or storage */
    PARCEL_VIEW    /* a view that becomes a tensor with a storage */
};

struct luggage {
    struct ebb_survivor *survivors; /* where each block is now */
    void **old;                     /* where it was */
    unsigned char *parcels;         /* enum parcel */
    size_t count, views;            /* parcels; of them compact views, at the end */
    uint16_t pin_percent;           /* what auto may pin */
};

/* False: error set. */
static bool take_luggage(struct luggage *luggage, struct scratch *scratch, size_t blocks) {
    size_t each = sizeof *luggage->survivors + sizeof *luggage->old + 1, bytes;
    if (!size_multiply(blocks, each, &bytes)) {
        error_set(EBB_E_SIZE, "%zu blocks are too many", blocks);
        return false;
    }
    luggage->survivors = scratch_take(scratch, bytes);
    if (!luggage->survivors)
        return false;
    luggage->old = (void **)(void *)(luggage->survivors + blocks);
    luggage->parcels = (unsigned char *)(luggage->old + blocks);
    return true;
}

/* ---- packing ---- */

static void pack(struct luggage *luggage, enum parcel parcel, void *block, int mode,
                 size_t align) {
    luggage->old[luggage->count] = block;
    luggage->parcels[luggage->count] = (unsigned char)parcel;
    luggage->survivors[luggage->count++] =
        (struct ebb_survivor){.block = block, .mode = mode, .align = align,
                              .pin_percent = luggage->pin_percent};
}

/* Of a copy of its block, or of its bytes if they are apart; a producer's are elsewhere. */
static size_t storage_align(const struct ebb_storage *storage) {
    if (storage->flags & STORAGE_FOREIGN)
        return EBB_GRANULE;
    bool far = (uintptr_t)storage->data % EBB_STORAGE_ALIGN == 0 &&
               storage->bytes > EBB_SMALL_MAX_BYTES;
    return far ? EBB_STORAGE_ALIGN : EBB_TENSOR_ALIGN;
}

/* A storage may change regions in place if everybody who sees it goes along. */
static void pack_storage(const struct journey *journey, struct luggage *luggage,
                         enum parcel parcel, const struct ebb_storage *storage) {
    bool whole = storage->gathered == storage->tensors && !storage->exports;
    bool apart = storage->flags & STORAGE_APART;
    size_t align = storage_align(storage);
    int mode = whole ? journey->mode : PROMOTE_APART;
    pack(luggage, parcel, storage->block, apart ? PROMOTE_APART : mode,
         apart ? EBB_TENSOR_ALIGN : align);
    if (apart)
        pack(luggage, PARCEL_BYTES, storage->data, mode, align);
}

/* A lone storage that is copied for one view, of which only that is wanted. */
static bool is_compact(const struct journey *journey, const struct ebb_storage *storage) {
    return journey->compact && storage->gathered == 1 && !gather_has_base(storage) &&
           (storage->tensors > 1 || journey->mode == EBB_PROMOTE_COPY);
}

static bool is_compact_view(const struct journey *journey, struct ebb_object *object) {
    return object_is_tensor(object) && !tensor_has_storage(tensor_of(object)) &&
           is_compact(journey, tensor_of(object)->storage);
}

static void pack_object(const struct journey *journey, struct luggage *luggage,
                        struct ebb_object *object) {
    if (is_compact_view(journey, object))
        return;
    if (object_is_tensor(object) && tensor_has_storage(tensor_of(object))) {
        pack_storage(journey, luggage, PARCEL_TENSOR, tensor_of(object)->storage);
        return;
    }
    pack(luggage, PARCEL_HEAD, object, journey->mode, 0);
    for (size_t i = 0; i < object->type->field_count; i++) {
        const struct ebb_field *field = &object->type->fields[i];
        void *block = *field_place(object, field);
        if (field->kind != EBB_FIELD_OBJECT && block)
            pack(luggage, PARCEL_BLOCK, block, journey->mode, 0);
    }
}

static void pack_all(const struct journey *journey, struct luggage *luggage) {
    for (struct ebb_object *at = journey->gathering.first; at; at = at->forward)
        pack_object(journey, luggage, at);
    for (struct ebb_storage *at = journey->gathering.storages; at; at = at->forward)
        if (!gather_has_base(at) && !is_compact(journey, at))
            pack_storage(journey, luggage, PARCEL_STORAGE, at);
    for (struct ebb_object *at = journey->gathering.first; at; at = at->forward)
        if (is_compact_view(journey, at)) {
            pack(luggage, PARCEL_VIEW, at, EBB_PROMOTE_COPY, 0);
            luggage->views++;
        }
}

static bool is_object(const struct luggage *luggage, size_t at) {
    return luggage->parcels[at] < PARCEL_BLOCK || luggage->parcels[at] == PARCEL_VIEW;
}

/* ---- first round: where everything went ---- */

/* What has no elements may lie at NULL. */
static void *moved(void *pointer, const void *old, void *fresh) {
    return pointer == old ? fresh : (char *)fresh + ((char *)pointer - (const char *)old);
}

/* Bytes of their own say where they are now to the storage of the copied head before them. */
static void forward_bytes(const struct luggage *luggage, size_t at) {
    const struct ebb_tensor *base = luggage->old[at - 1];
    struct ebb_storage *fresh = moved(base->storage, base, luggage->survivors[at - 1].block);
    fresh->data = luggage->survivors[at].block;
}

/* A storage that was copied leaves those tensors behind that stayed. The loan of a producer's bytes
 * ends with the target from now on, whichever way the storage goes. */
static void forward_storage(struct region *target, struct ebb_storage *storage, void *block) {
    struct ebb_storage *fresh = moved(storage, storage->block, block);
    if (storage->flags & STORAGE_FOREIGN)
        import_follow(storage, fresh, target);
    if (fresh != storage) {
        if (!(storage->flags & (STORAGE_FOREIGN | STORAGE_APART)))
            fresh->data = moved(storage->data, storage->block, block);
        fresh->block = block;
        fresh->tensors = storage->gathered;
        fresh->exports = NULL;
        fresh->gathered = 0;
        fresh->forward = NULL;
        storage->tensors -= storage->gathered;
    }
    storage->gathered = 0;
    storage->forward = fresh;
}

static void forward_all(const struct journey *journey, const struct luggage *luggage) {
    struct region *target = journey->gathering.target;
    size_t lone = luggage->count;
    for (size_t i = 0; i < luggage->count; i++) {
        struct ebb_object *head = luggage->old[i];
        if (is_object(luggage, i))
            head->forward = luggage->survivors[i].block;
        if (luggage->parcels[i] == PARCEL_STORAGE && lone == luggage->count)
            lone = i;
        if (luggage->parcels[i] == PARCEL_BYTES)
            forward_bytes(luggage, i);
    }
    for (struct ebb_storage *at = journey->gathering.storages, *next; at; at = next) {
        struct ebb_object *base = at->block;
        next = at->forward;
        if (is_compact(journey, at)) {
            at->forward = NULL;
            at->gathered = 0;
            continue;
        }
        if (gather_has_base(at)) {
            forward_storage(target, at, base->forward);
            continue;
        }
        struct ebb_object *fresh = luggage->survivors[lone++].block;
        lone += (at->flags & STORAGE_APART) != 0;
        if (fresh != base) { /* of the copy only the storage lives, which its head leads to */
            fresh->state = 0;
            tensor_of(fresh)->storage = moved(at, base, fresh);
        }
        fresh->serial = target->mark_serial;
        forward_storage(target, at, fresh);
    }
}

/* ---- second round: pointers ---- */

static struct ebb_object *forwarded(struct ebb_object *member) {
    return member ? member->forward : NULL;
}

static void mend_view(struct region *target, struct ebb_tensor *old, struct ebb_tensor *view) {
    struct ebb_storage *storage = old->storage, *fresh = storage->forward;
    tensor_unwatch_storage(old);
    tensor_mend_view(view);
    if (fresh) {
        view->data = moved(old->data, storage->data, fresh->data);
        view->storage = fresh;
    } else if (storage_host(storage) != target) {
        tensor_watch_storage(target, view);
    }
}

static void mend_fields(struct ebb_object *object, const struct luggage *luggage, size_t at) {
    for (size_t i = 0; i < object->type->field_count; i++) {
        const struct ebb_field *field = &object->type->fields[i];
        void **place = field_place(object, field);
        if (*place && field->kind == EBB_FIELD_OBJECT)
            *place = forwarded(*place);
        else if (*place)
            *place = luggage->survivors[++at].block;
        void **members = *place;
        if (field->kind == EBB_FIELD_OBJECTS && members)
            for (size_t k = 0; k < field_count(object, field); k++)
                members[k] = forwarded(members[k]);
    }
}

static bool stays_in_place(const struct ebb_storage *storage) {
    return storage->flags & STORAGE_APART ? storage->forward->data == storage->data
                                          : storage->forward == storage;
}

/* The bytes of the object stay where they are, or they do not. */
static void count_way(const struct journey *journey, struct ebb_object *old) {
    const struct ebb_storage *storage = object_is_tensor(old) ? tensor_of(old)->storage : NULL;
    bool stays = storage && storage->forward ? stays_in_place(storage) : old->forward == old;
    struct kind_counts *counts = kind_of(journey->owner, old->type->kind);
    kind_count(stays ? &counts->relinked : &counts->copied);
}

/* Objects are on their way: none is left half there. */
static void mend_copy(struct ebb_object *fresh, const struct ebb_object *old) {
    int cancels = cancel_defer();
    fresh->type->mend(fresh, old);
    cancel_restore(cancels);
}

static void mend(const struct journey *journey, const struct luggage *luggage, size_t at) {
    struct ebb_object *old = luggage->old[at], *fresh = luggage->survivors[at].block;
    if (luggage->parcels[at] == PARCEL_VIEW)
        tensor_unwatch_storage(tensor_of(old));
    else if (object_is_tensor(old) && !tensor_has_storage(tensor_of(old)))
        mend_view(journey->gathering.target, tensor_of(old), tensor_of(fresh));
    else if (fresh != old && fresh->type->mend)
        mend_copy(fresh, old);
    mend_fields(fresh, luggage, at);
    fresh->whole = forwarded(fresh->whole);
}

/* ---- third round: owners and counters ---- */

static void hand_over(const struct journey *journey, struct ebb_object *old,
                      struct ebb_object *fresh) {
    struct region *target = journey->gathering.target;
    object_delist(journey->owner, old);
    adoption_forget(old);
    fresh->adoption = NULL;
    object_enlist(target, fresh);
    target->hooks = journey->owner->hooks;
    object_count_passed(fresh->type->kind, journey->owner, target);
}

static void arrive(const struct journey *journey, struct ebb_object *old,
                   struct ebb_object *fresh) {
    struct region *target = journey->gathering.target;
    if (fresh->whole) {
        member_pass(fresh, journey->owner, target);
    } else {
        kind_passed(journey->owner, target, old->type->kind);
        hand_over(journey, old, fresh);
    }
    fresh->state = OBJECT_LIVE | target->owner | (fresh->state & OBJECT_WHOLE);
    fresh->serial = target->mark_serial;
    if (fresh != old)
        fresh->forward = NULL;
}

/* ---- last round: what is left behind ---- */

static void leave_block(const struct journey *journey, void *block) {
    if (!journey->closes)
        object_release(block);
}

/* `at`: the parcel of the block that it lies in; bytes that are apart come next. */
static void leave_storage(const struct journey *journey, const struct luggage *luggage, size_t at) {
    struct ebb_storage *storage = ((struct ebb_tensor *)luggage->old[at])->storage;
    void *data = storage->data;
    storage->forward = NULL;
    if (luggage->survivors[at].block == luggage->old[at] || storage->tensors)
        return;
    if (storage->flags & STORAGE_APART && luggage->survivors[at + 1].block != data)
        leave_block(journey, data);
    leave_block(journey, storage->block);
}

/*
 * Compact views, which come last. One may have been the last to see its storage, of which a
 * producer hears who may do anything but end the host.
 */
static void leave_views(const struct journey *journey, const struct luggage *luggage) {
    size_t first = luggage->count - luggage->views;
    for (size_t i = first; i < luggage->count; i++)
        ((struct ebb_object *)luggage->old[i])->whole = NULL; /* it has gone */
    region_begin_work(journey->gathering.host);
    for (size_t i = first; i < luggage->count; i++) {
        struct ebb_tensor *old = luggage->old[i];
        struct ebb_storage *storage = old->storage;
        old->object.forward = NULL;
        old->object.state = 0;
        leave_block(journey, old);
        if (!--storage->tensors && !journey->closes)
            storage_end(storage);
    }
    region_end_work(journey->gathering.host);
}

/* The block goes when its storage does. */
static bool has_storage(const struct luggage *luggage, size_t at) {
    return luggage->parcels[at] == PARCEL_TENSOR || luggage->parcels[at] == PARCEL_STORAGE ||
           luggage->parcels[at] == PARCEL_BYTES;
}

/* Views before what they see. */
static void leave_all(const struct journey *journey, const struct luggage *luggage) {
    for (size_t i = 0; i < luggage->count - luggage->views; i++) {
        struct ebb_object *old = luggage->old[i];
        bool stays = luggage->survivors[i].block == old;
        if (is_object(luggage, i)) {
            old->forward = NULL;
            old->state = stays ? old->state : 0;
        }
        if (!stays && !has_storage(luggage, i))
            leave_block(journey, old);
    }
    for (size_t i = 0; i < luggage->count; i++)
        if (luggage->parcels[i] == PARCEL_TENSOR || luggage->parcels[i] == PARCEL_STORAGE)
            leave_storage(journey, luggage, i);
    leave_views(journey, luggage);
}

/* What objects need besides what they begin with is claimed for them where it is now. */
static void claim_all(const struct journey *journey, const struct luggage *luggage) {
    for (size_t i = 0; i < luggage->count; i++)
        if (luggage->parcels[i] == PARCEL_BLOCK || luggage->parcels[i] == PARCEL_BYTES)
            block_claim(journey->gathering.target, luggage->survivors[i].block);
}

void journey_adopt(struct journey *journey) {
    struct region *target = journey->gathering.target;
    for (size_t i = 0; i < journey->count; i++) {
        struct ebb_object *object = journey->objects[i];
        if (object->adoption)
            object_adopt(object, target);
    }
}

/* Producers hear of it last: they may end what is where it was to go. */
static void travel(struct journey *journey, const struct luggage *luggage) {
    forward_all(journey, luggage);
    for (size_t i = 0; i < luggage->count; i++)
        if (is_object(luggage, i)) {
            count_way(journey, luggage->old[i]); /* a head that stays forgets its old storage */
            mend(journey, luggage, i);
        }
    for (size_t left = luggage->count; left > 0; left--)
        if (is_object(luggage, left - 1))
            arrive(journey, luggage->old[left - 1], luggage->survivors[left - 1].block);
    for (size_t i = 0; i < journey->count; i++) {
        struct ebb_object *object = journey->objects[i];
        journey->objects[i] = object->forward ? object->forward : object; /* not on this journey */
    }
    journey_adopt(journey);
    claim_all(journey, luggage);
    leave_all(journey, luggage);
}

static void give_view(const struct luggage *luggage, size_t at) {
    storage_release(((struct ebb_tensor *)luggage->survivors[at].block)->storage);
}

/* Compact views get their new blocks first; a failure gives all of them back. */
static int make_views(struct journey *journey, struct luggage *luggage) {
    struct region *target = journey->gathering.target;
    size_t first = luggage->count - luggage->views;
    for (size_t i = first; i < luggage->count; i++) {
        struct ebb_tensor *fresh = tensor_compact(target, luggage->old[i], journey->site);
        if (!fresh) {
            undo_begin(target);
            while (i > first)
                give_view(luggage, --i);
            return error_latest();
        }
        luggage->survivors[i].block = fresh;
        journey->cost.copied_blocks++;
        journey->cost.copied_bytes += fresh->storage->bytes;
    }
    return 0;
}

static void give_views(const struct region *target, struct luggage *luggage) {
    undo_begin(target);
    for (size_t i = luggage->count - luggage->views; i < luggage->count; i++)
        give_view(luggage, i);
}

static int move_blocks(struct journey *journey, struct luggage *luggage) {
    struct gathering *gathering = &journey->gathering;
    struct undo undo;
    undo_remember(gathering->target, &undo);
    int result = make_views(journey, luggage);
    if (!result) {
        result = promote_blocks(gathering->host, gathering->target, luggage->survivors,
                                luggage->count - luggage->views, gathering->anywhere,
                                journey->site, &journey->cost);
        if (result)
            give_views(gathering->target, luggage);
    }
    if (result)
        undo_restore(gathering->target, &undo);
    else if (!gathering->anywhere)
        promoted_count(gathering->host, &journey->cost);
    return result;
}

/* What a producer lent goes with all tensors that see it, or it stays. */
static int check_foreign(const struct journey *journey, struct ebb_storage *storage) {
    if (!(storage->flags & STORAGE_FOREIGN))
        return 0;
    if (import_check(storage) != 0)
        return EBB_E_RELEASED;
    if (storage->gathered == storage->tensors || is_compact(journey, storage))
        return 0;
    return error_set(EBB_E_BUSY, "%zu imported bytes: %llu of the %llu tensors that see them stay",
                     storage->bytes, (unsigned long long)(storage->tensors - storage->gathered),
                     (unsigned long long)storage->tensors);
}

int journey_make(struct journey *journey) {
    struct gathering *gathering = &journey->gathering;
    struct luggage luggage = {.pin_percent = journey->pin_percent};
    struct scratch scratch;
    size_t blocks = gathering->blocks;
    int result = 0;
    for (struct ebb_storage *at = gathering->storages; at && !result; at = at->forward) {
        blocks += (gather_has_base(at) ? 0u : 1u) + at->flags / STORAGE_APART;
        (void)storage_is_exported(at); /* what was given back holds nothing here */
        result = check_foreign(journey, at);
    }
    if (result)
        return result;
    if (!take_luggage(&luggage, &scratch, blocks))
        return error_latest();
    pack_all(journey, &luggage);
    result = move_blocks(journey, &luggage);
    if (!result)
        travel(journey, &luggage);
    scratch_give(&scratch);
    if (EBB_CHECK_FULL && !result) {
        region_check(gathering->host);
        region_check(gathering->target);
    }
    return result;
}
