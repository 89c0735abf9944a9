/* The memory pools (CUmemoryPool, stream-ordered allocation) that this process uses. A pool takes memory from the card
 * in steps of 32 MiB and keeps freed memory until a synchronisation. The driver says how much a pool has reserved; that
 * is charged, instead of single pointers.
 *
 * LOCK_POOLS guards the charges of the pools. It is held across driver calls that query or trim pools of
 * other threads, so that no pool is destroyed meanwhile. In these calls the driver neither waits for the program nor
 * calls it, so this cannot deadlock. */
#ifndef VGPU_BOOKS_POOLS_POOLS_H
#define VGPU_BOOKS_POOLS_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "books/pools/exports.h"
#include "books/pools/recent_allocations.h"
#include "driver/abi.h"
#include "region/region.h"

/* Size of the table of pools. */
enum { POOLS = RECENT_ALLOCATIONS_POOLS };

/* "Guarded" means: atomic, and written under LOCK_POOLS. */
struct pool {
    CUmemoryPool handle;     /* guarded, stored last with release order; NULL = the place was never used, 1 = its pool
                                was destroyed */
    uint8_t uuid[UUID_SIZE]; /* of the card */
    int card;                /* the region's row */
    bool is_counted;         /* the pool's memory is on a card, so it is charged */
    bool is_managed;         /* CUDA managed memory, which NVML does not count */
    uint64_t charged;        /* guarded: bytes that are charged for the pool */
    uint32_t growths;        /* guarded: how often `charged` has grown, written before it */
    uint32_t corrections_when_charged; /* guarded: value of `*corrections` when `charged` was written */
    const uint32_t *corrections;       /* how often a measurement has changed this process's charge on the card
                                       (account_corrections_field); NULL = there is no region or no slot */
    uint64_t last_reserved;            /* guarded: bytes that the pool had reserved when the driver was last asked */
    uint64_t
        release_threshold; /* atomic: release threshold: up to this many bytes a synchronisation gives nothing back */
    uint64_t id; /* guarded: the library's number for the pool (books/pools/pool_ids.h); 0 = it has exported nothing */
    uint64_t lost_charged; /* guarded: bytes that are charged for lost memory (books/pools/exports.h) */
};

/* Bytes that a pool has reserved now; asks the driver; 0 where it returns an error. */
uint64_t pools_reserved(const struct pool *pool);

/* Bytes of a pool that are allocated now; asks the driver; 0 where it returns an error. */
uint64_t pools_used(const struct pool *pool);

/* Release threshold of a pool in bytes; asks the driver; 0 where it returns an error. */
uint64_t pools_threshold(const struct pool *pool);

/* Index of a pool in the table, as long as the pool is in it. */
int pools_index(const struct pool *pool);

/* Adds to the upper bound of a pool's allocated bytes, and returns the sum. The bound is kept without asking the driver
 * and without a lock; it is too high where a free is not noticed. */
uint64_t pools_add_used(const struct pool *pool, uint64_t bytes);

/* Sets the upper bound of a pool's allocated bytes. */
void pools_set_used(const struct pool *pool, uint64_t bytes);

/* Subtracts a freed allocation from the upper bound of its pool. */
void pools_subtract_used(struct recent_allocation freed);

/* The pool of a handle, or NULL where it is not in the table. Needs no lock. */
struct pool *pools_find(CUmemoryPool handle);

/* Adds a copy of `source`, or returns the pool if it is in the table already; NULL where the table is full. Takes
 * LOCK_POOLS. */
struct pool *pools_add(CUmemoryPool handle, const struct pool *source);

/* Records that a pool's release threshold was set; no effect where the pool is not in the table. Needs no lock. */
void pools_set_threshold(CUmemoryPool handle, uint64_t threshold);

/* Whether a synchronisation may have made a pool give back memory since the driver was last asked. A full card can make
 * pools give back memory regardless of that; refusals and measurements therefore ask the driver. Needs no lock. */
bool pools_may_have_shrunk(const struct pool *pool);

/* Whether pools_may_have_shrunk is true of any pool on a card. Needs no lock. */
bool pools_any_may_have_shrunk(int card);

/* Whether this process has ever used a pool. Needs no lock. */
bool pools_any(void);

/* Around a driver call that may destroy pools: in between, no pool is queried except by the thread that allocates from
 * it. Both take LOCK_POOLS, and do not keep it. */
void pools_suspend(void);
void pools_resume(void);

/* Removes a pool that was destroyed, and returns a copy, which holds its charges; its handle is NULL where the pool was
 * not in the table. Takes LOCK_POOLS. */
struct pool pools_remove(CUmemoryPool handle);

/* Asks the driver what a pool has reserved, and stores it in `last_reserved`. The caller holds LOCK_POOLS. */
void pools_read_reserved(struct pool *pool);

/* Applies pools_read_reserved to each pool of a card, and stores the sum of those that NVML counts in `measured`. False
 * while pools are suspended. The caller holds LOCK_POOLS. */
bool pools_read_card(int card, uint64_t *measured);

/* Iterates over the pools of a card; `*index` begins at 0. NULL after the last pool, and while pools are suspended. The
 * caller holds LOCK_POOLS. */
struct pool *pools_next(int card, unsigned *index);

/* Records that what a pool was last seen to have reserved is charged, at this number of corrections. The caller holds
 * LOCK_POOLS. */
void pools_set_charged(struct pool *pool, uint32_t corrections);

/* Records that a measurement has set the charge of this process on a card, which includes what its pools were last seen
 * to have reserved. `corrections` is their new number. The caller holds LOCK_POOLS. */
void pools_mark_charged(int card, uint32_t corrections);

#endif
