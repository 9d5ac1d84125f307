// SPDX-License-Identifier: Apache-2.0
/* exchange.h - tensors that come from and go to others: what export.c and import.c offer. */
#ifndef EBB_OBJECT_EXCHANGE_H
#define EBB_OBJECT_EXCHANGE_H

#include "object/object.h"

#include <ebb/exchange.h>

/* ---- export.c ---- */

/* True if all consumers know elements of this type. */
bool exchange_knows(struct ebb_dtype dtype);

/* 0, or EBB_E_EXCHANGE: some consumers do not know elements of this type. */
int exchange_check_dtype(struct ebb_dtype dtype);

/* 0, or EBB_E_ARGUMENT. */
int exchange_check_mode(enum ebb_exchange_mode mode);

uint64_t export_count(const struct ebb_storage *storage);

/* Ends those exports of the storage that were given back. */
void export_sweep(struct ebb_storage *storage);

/*
 * True if exports of the storage are out: its bytes stay where they are. A promotion copies it;
 * the exports go on with the old bytes, which they hold like any other viewer.
 */
bool storage_is_exported(struct ebb_storage *storage);

/* ---- import.c ---- */

/* The most that exchange_align() says: numbers have 128 bits at most. */
#define EXCHANGE_ALIGN_MOST ((size_t)16)

/* What the processor wants for an element to be read where it is, in bytes. */
size_t exchange_align(struct ebb_dtype dtype);

/* 0, or EBB_E_EXCHANGE: the producer of the elements forbids to write to them. */
int tensor_check_writable(const struct ebb_tensor *tensor);

/* What a producer lent, which he gets back once. */
struct loan {
    void *managed; /* his struct; NULL: he has it back */
    bool versioned;
};

/* EBB_E_RELEASED if the producer of the storage's bytes has them back: its region is closing. Asked
 * of every tensor, also of one that is a member, before an element of it is read or written. */
int import_check(const struct ebb_storage *storage);

/* Nobody sees a foreign storage any more. Once it is gone what it was a loan of is returned: none
 * in a forked child whose parent has it, but such as are counted in each process. */
struct loan import_end(struct ebb_storage *storage);

/* Calls the producer, who may do anything: end objects, too. So this comes last. */
void loan_return(struct loan loan);

/* Says which loans are but counted in each process, so that any may return its own: leases. */
void import_know_counted(bool (*is_counted)(struct loan loan));

/* The region is of the process that this one was forked from: if the cleanup is a loan's, it is
 * taken away, and the loan is let go of, but goes back only if it is such a one; else false. */
bool import_part(struct ebb_cleanup *cleanup);

/*
 * `fresh` has the producer's bytes from now on, and its block is of `host`: a copy byte by byte of
 * the foreign storage `old`, which has nothing then, or that one itself. Nothing of them moves.
 */
void import_follow(struct ebb_storage *old, struct ebb_storage *fresh, struct region *host);

#endif
