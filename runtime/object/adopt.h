// SPDX-License-Identifier: Apache-2.0
/* adopt.h - objects that change owners without moving (see adopt.c). */
#ifndef EBB_OBJECT_ADOPT_H
#define EBB_OBJECT_ADOPT_H

#include "object/object.h"

/* The other region of an adoption that the cleanup is of; NULL: it is of none. */
struct region *adoption_tied_to(const struct ebb_cleanup *cleanup);

/* True if the cleanup is of an adoption of the object. */
bool adoption_has(const struct ebb_cleanup *cleanup, const struct ebb_object *object);

/* The cleanup's region goes, no object ends: each is its host's again, or of whoever else borrowed
 * it. False: the cleanup is of no adoption. */
bool adoption_part(struct ebb_cleanup *cleanup);

bool object_is_lent(const struct ebb_object *object);

/* True if the object does not end with its owner when `closing`, at or above that, closes. */
bool object_outlives(const struct ebb_object *object, const struct region *closing);

/* The object that ends with the cleanup's region when `closing`, at or above that, closes, although
 * neither it nor one below it owns the object: that is lent to another. NULL: none, or one that
 * another cleanup leads to. */
struct ebb_object *adoption_lost(const struct ebb_cleanup *cleanup,
                                 const struct region *closing);

/* The live object at `address` if it may change hands: no member, not ending, not lent. 0 or the
 * error. */
int object_check_free(const void *address, struct object_place *place);

/* `target`, which is the host or below it, owns an object that is not lent. 0, or why the host has
 * no block for the record: EBB_E_MEMORY, or a limit. */
int object_adopt(struct ebb_object *object, struct region *target);

/* Between the two, in which nothing may happen to the object, no region ends that an adoption of it
 * hangs in: its host, who has it, and all that had it before. They may be of several trees. */
void adoption_begin_work(const struct ebb_object *object);
void adoption_end_work(const struct ebb_object *object);

/* The same for an object that ends with its members: it forgets its adoptions at once. They are the
 * caller's until all have ended, and the host must stay until then. */
struct ebb_adoption *adoption_begin_end(struct ebb_object *object);
void adoption_finish_end(struct ebb_adoption *top);

/* Counts that the object, with its members, is owned by another region now. */
void object_pass_kinds(struct ebb_object *object, struct region *from, struct region *to);

/* Counts that an object that is no member was given by one region to the other. */
void object_count_passed(uint32_t kind, struct region *from, struct region *to);

#endif
