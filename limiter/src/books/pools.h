/* The pools of stream-ordered allocation that this process uses. A pool takes memory from the card in steps of 32 MiB,
 * keeps what is freed until a synchronisation, and says what it has reserved: that is what is charged, not each
 * pointer. */
#ifndef VGPU_BOOKS_POOLS_H
#define VGPU_BOOKS_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "books/exports.h"
#include "books/recent_allocations.h"
#include "driver/abi.h"
#include "region/region.h"

/* As many pools are known at once. */
enum { POOLS = RECENT_ALLOCATIONS_POOLS };

struct pool {
    CUmemoryPool handle; /* atomically, last; NULL: this place is free */
    uint8_t uuid[UUID_SIZE];
    int card;                 /* the region's row */
    bool is_counted;          /* memory of a card */
    bool is_managed;          /* which NVML does not count */
    uint64_t reserved;        /* atomically, under the mutex when written: what is charged */
    uint32_t settled;         /* atomically, likewise: `*measured` as it was then */
    const uint32_t *measured; /* in the region: how often this process was charged anew there */
    uint64_t seen;            /* atomically, likewise: what was last seen reserved */
    uint64_t kept;            /* atomically: up to so much it gives nothing back by itself */
    uint64_t number;          /* atomically, under the mutex when written: 0 until it has exported (pool_numbers.h) */
    uint64_t lost;            /* likewise: what is charged for what it has lost (exported.h) */
};

/* What a pool has reserved, of it in use, and its release threshold, as the driver says now. */
uint64_t pools_reserved(const struct pool *pool);
uint64_t pools_used(const struct pool *pool);
uint64_t pools_threshold(const struct pool *pool);

/* Its number among those known, as long as it is. */
int pools_index(const struct pool *pool);

/* How much of a pool is in use at most, as far as it was told: so much more, which returns it; so much; so much less.
 */
uint64_t pools_add_used(const struct pool *pool, uint64_t bytes);
void pools_set_used(const struct pool *pool, uint64_t bytes);
void pools_subtract_used(struct recent_allocation freed);

/* The pool of that handle if it was added, else NULL. Needs no lock. */
struct pool *pools_find(CUmemoryPool handle);

/* Adds a pool, unless it was; NULL where the table is full. */
struct pool *pools_add(CUmemoryPool handle, const struct pool *made);

/* The pool's release threshold has been set, if it was added. */
void pools_set_threshold(CUmemoryPool handle, uint64_t threshold);

/* Whether a synchronisation may have made a pool give back of what was last seen; or any of a card. A full card may
 * make all do so: that is looked for before a refusal, and by who measures. */
bool pools_may_have_shrunk(const struct pool *pool);
bool pools_any_may_have_shrunk(int card);

/* Whether any have been used. */
bool pools_any(void);

/* Around a call that may destroy pools: in between no pool is asked anything but by who allocates from it. */
void pools_suspend(void);
void pools_resume(void);

/* Forgets a pool that was destroyed, or any one of all. What was charged for it is in the answer; its handle is NULL
 * where there is none. */
struct pool pools_remove(CUmemoryPool handle);
struct pool pools_remove_any(void);

/* Guards the pools' charges. It is held across what we ask the driver about pools of other threads', and have it give
 * back of them, so that none is destroyed meanwhile; the driver does neither wait for the program in that nor call it.
 */
void pools_lock(void);
void pools_unlock(void);

/* The functions down to the next line are called under it. */

/* Sees what a pool has reserved, as the driver says now; or each of a card, and the sum of those that NVML counts.
 * False while suspended. */
void pools_read_reserved(struct pool *pool);
bool pools_read_card(int card, uint64_t *measured);

/* The pools of a card, one after the other, NULL after the last and while suspended; `*at` begins at 0. */
struct pool *pools_next(int card, unsigned *at);

/* What was seen of those that NVML counts is charged now by a measurement, the `settled`th. */
void pools_mark_charged(int card, uint32_t settled);

/* The functions from here on take it, or need it not. */

#endif
