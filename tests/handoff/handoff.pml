// SPDX-License-Identifier: Apache-2.0
/*
 * handoff.pml - the protocol between processes of a shared pool, for Spin.
 *
 * Two workers send batches to a trainer through two slots. Each process may be killed between any
 * two steps, and a worker is started again in the place of a dead one. A step is one read or one
 * compare-and-swap of a slot's word, one call of the kernel about a lock, or one use of contents.
 * What is a function in runtime/pool/shared_state.c and shared_owner.c has its name here.
 *
 * Shown, for every order of steps:
 *   - two processes never write to one slot, and none writes to what another one holds;
 *   - what the trainer opens is what the message said, and stays so until it is dropped, or until it
 *     is sent as before, since it could not be read;
 *   - a message is stale only if its sender is dead;
 *   - when all is over, reclaiming leaves every slot free.
 *
 * tests/handoff/verify runs it. Sizes can be set: -DWORKERS=, one or two, -DBATCHES=, -DKILLS=. With
 * -DBLIND (who reclaims does not ask whether the owner lives) or -DANY_GENERATION (a parcel opens
 * whatever was sent) the protocol is broken, and that must be found.
 */
#ifndef BATCHES
#define BATCHES 2 /* that a worker sends */
#endif
#ifndef KILLS
#define KILLS 2 /* at most, in all */
#endif
#ifndef WORKERS
#define WORKERS 2 /* or one */
#endif
#define SLOTS 2
#define TRAINER WORKERS /* its index among the owners */
#define OWNERS (WORKERS + 1)
#define STAMPS 8

mtype = {FREE, WRITING, SENT, HELD};

typedef word {
    mtype state;
    byte generation;
    byte index;       /* of the owner */
    byte incarnation;
}

word slots[SLOTS];
bool locked[OWNERS];      /* by the kernel, until the process is gone */
byte incarnations[OWNERS];
byte contents[SLOTS];     /* a stamp that tells who wrote it, and when */
byte writers[SLOTS];      /* processes that are alive and write there */
byte gone[OWNERS];       /* the latest incarnation that is no more */
bool held[SLOTS];         /* by a trainer that is alive */
byte kills = 0;
byte workers_done = 0;

/* The message: what crosses the pipe. The last two are for the assertions only. */
chan pipe = [2] of {byte, byte, byte, byte, byte}; /* slot, generation, stamp, sender, incarnation */

/* The processes die here. What only they knew is gone with them; the kernel drops the lock. */
#define MAY_DIE(forget) \
    if \
    :: kills < KILLS -> atomic { kills++; forget; gone[me] = my_number; locked[me] = false; goto dead } \
    :: true \
    fi

/* shared_is_alive(): the lock first, then the incarnation. */
inline is_alive(owner, number, result) {
    if
    :: owner == me -> result = (number == my_number)
    :: else ->
        result = locked[owner];
        if
        :: result -> result = (incarnations[owner] == number)
        :: else -> skip
        fi
    fi
}

inline swap(slot, old, to, to_generation, to_index, to_incarnation, done) {
    d_step {
        done = slots[slot].state == old.state && slots[slot].generation == old.generation &&
               slots[slot].index == old.index && slots[slot].incarnation == old.incarnation;
        if
        :: done ->
            slots[slot].state = to;
            slots[slot].generation = to_generation;
            slots[slot].index = to_index;
            slots[slot].incarnation = to_incarnation
        :: else -> skip
        fi
    }
}

/* Forgets what was only known in passing, so that states are not told apart by it. */
inline forget() {
    seen.state = 0; seen.generation = 0; seen.index = 0; seen.incarnation = 0;
    slot = 0; stamp = 0; did = false; alive = false
}

inline forget_message() {
    d_step {
        forget();
        generation = 0; sender = 0; number = 0
    }
}

inline read(slot, into) {
    d_step {
        into.state = slots[slot].state;
        into.generation = slots[slot].generation;
        into.index = slots[slot].index;
        into.incarnation = slots[slot].incarnation
    }
}

/* shared_identify() */
inline identify() {
    atomic { !locked[me] -> locked[me] = true };
    MAY_DIE(my_number = gone[me]);
    incarnations[me]++;
    my_number = incarnations[me]
}

/* free_written(): taken over first, since the pages that nothing counts go from it */
inline free_written(slot) {
    atomic {
        swap(slot, seen, WRITING, seen.generation, me, my_number, did);
        if
        :: did -> assert(writers[slot] == 0 && !held[slot])
        :: else -> skip
        fi
    };
    if
    :: did ->
        MAY_DIE(skip);
        d_step { seen.index = me; seen.incarnation = my_number };
        swap(slot, seen, FREE, seen.generation, 0, 0, did)
    :: else -> skip
    fi
}

/* shared_reclaim() of one slot */
inline reclaim(slot, sent_too) {
    read(slot, seen);
    if
    :: seen.state == WRITING || seen.state == HELD || (seen.state == SENT && sent_too) ->
        is_alive(seen.index, seen.incarnation, alive);
        if
#ifdef BLIND
        :: seen.state == WRITING -> free_written(slot)
        :: seen.state != WRITING -> swap(slot, seen, FREE, seen.generation, 0, 0, did)
#else
        :: !alive && seen.state == WRITING -> free_written(slot)
        :: !alive && seen.state != WRITING -> swap(slot, seen, FREE, seen.generation, 0, 0, did)
        :: else -> skip
#endif
        fi
    :: else -> skip
    fi
}

proctype worker(byte me) {
    byte my_number, stamp, slot, sent = 0;
    word seen;
    bool did, alive;

alive_again:
    identify();
    do
    :: sent == BATCHES -> break
    :: sent < BATCHES ->
        /* shared_find(): any free slot, else what the dead have left */
        do
        :: slot = 0; break
        :: slot = 1; break
        od;
        read(slot, seen);
        did = false;
        if
        :: seen.state == FREE ->
            MAY_DIE(skip);
            atomic {
                swap(slot, seen, WRITING, (seen.generation + 1) % 256, me, my_number, did);
                if
                :: did -> writers[slot]++; assert(writers[slot] == 1 && !held[slot])
                :: else -> skip
                fi
            }
        :: else ->
            reclaim(slot, false);
            did = false;
            /* under need only: none is free */
            if
            :: slots[0].state != FREE && slots[1].state != FREE -> reclaim(slot, true); did = false
            :: else -> skip
            fi
        fi;
        if
        :: did ->
            MAY_DIE(writers[slot]--);
            stamp = me * STAMPS / 2 + (my_number + sent) % (STAMPS / 2);
            contents[slot] = stamp;
            MAY_DIE(writers[slot]--);
            if
            :: true -> /* ebb_region_send() */
                read(slot, seen);
                assert(seen.state == WRITING && seen.index == me && seen.incarnation == my_number);
                atomic {
                    writers[slot]--;
                    swap(slot, seen, SENT, seen.generation, me, my_number, did);
                    assert(did)
                };
                MAY_DIE(skip);
                pipe!slot, seen.generation, stamp, me, my_number
            :: true -> /* closed without being sent */
                read(slot, seen);
                atomic {
                    writers[slot]--;
                    swap(slot, seen, FREE, seen.generation, 0, 0, did);
                    assert(did)
                }
            fi;
            sent++
        :: else -> skip
        fi;
        d_step { forget() }
    od;
    goto leaves;
dead:
    my_number = 0; /* another process comes in its place */
    d_step { forget() };
    goto alive_again;
leaves:
    atomic { gone[me] = my_number; locked[me] = false };
    workers_done++
}

proctype trainer(byte me) {
    byte my_number, slot, generation, stamp, sender, number;
    word seen;
    bool did, alive, refused = false; /* once is as good as more often */

alive_again:
    identify();
end:
    do
    :: pipe?slot, generation, stamp, sender, number ->
        MAY_DIE(skip);
open:
        read(slot, seen); /* ebb_parcel_open() */
        did = false;
        if
#ifdef ANY_GENERATION
        :: seen.state == SENT ->
#else
        :: seen.state == SENT && seen.generation == generation ->
#endif
            atomic {
                swap(slot, seen, HELD, seen.generation, me, my_number, did);
                if
                :: did -> held[slot] = true; assert(writers[slot] == 0)
                :: else -> skip
                fi
            }
        :: else -> skip
        fi;
        if
        :: did ->
            assert(contents[slot] == stamp);
            MAY_DIE(held[slot] = false);
            assert(contents[slot] == stamp);
            if
            :: !refused -> /* it cannot be read now: put_back(), and opened once more */
                atomic {
                    refused = true;
                    held[slot] = false;
                    assert(slots[slot].state == HELD && slots[slot].index == me &&
                           slots[slot].incarnation == my_number);
                    slots[slot].state = SENT;
                    slots[slot].index = sender;
                    slots[slot].incarnation = number
                };
                MAY_DIE(skip);
                goto open
            :: true
            fi;
            read(slot, seen);
            atomic {
                held[slot] = false; /* ebb_lease_drop(), the last */
                swap(slot, seen, FREE, seen.generation, 0, 0, did);
                assert(did)
            }
        :: else -> assert(gone[sender] >= number)
        fi;
        forget_message()
    :: workers_done == WORKERS && empty(pipe) -> break
    od;
    /* all is over: ebb_pool_reclaim(pool, true) */
    for (slot : 0 .. SLOTS - 1) {
        reclaim(slot, true)
    }
    assert(slots[0].state == FREE && slots[1].state == FREE);
    goto leaves;
dead:
    my_number = 0;
    forget_message();
    goto alive_again;
leaves:
    locked[me] = false
}

init {
    byte slot;
    atomic {
        for (slot : 0 .. SLOTS - 1) {
            slots[slot].state = FREE
        }
        run worker(0);
#if WORKERS > 1
        run worker(1);
#endif
        run trainer(TRAINER)
    }
}
