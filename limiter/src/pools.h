/* The pools of stream-ordered allocation that this process uses. A pool takes memory from the card in steps of 32 MiB,
 * keeps what is freed until a synchronisation, and says what it has reserved in 30 ns: that is what is charged, not
 * each pointer. */
#ifndef VGPU_POOLS_H
#define VGPU_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "region.h"

/* What a pool grows by, or a multiple of it (measured on an H200, driver 580). */
#define POOL_STEP (32ULL << 20)

struct pool {
    CUmemoryPool handle; /* atomically, last; NULL: this place is free */
    uint8_t uuid[UUID_SIZE];
    int card;           /* the region's row */
    bool is_counted;    /* memory of a card */
    bool is_managed;    /* which NVML does not count */
    uint64_t reserved;  /* atomically, under the mutex when written: what is charged */
    uint32_t settled;   /* atomically, likewise: `account_settled` as it was then */
    uint64_t seen;      /* under the mutex: of the last `pools_reserved_on` */
    uint64_t used_most; /* atomically: at most so much of it is in use */
};

/* What a pool has reserved, and of it in use, as the driver says now. */
uint64_t pools_reserved(const struct pool *pool);
uint64_t pools_used(const struct pool *pool);

/* The current pool of the calling thread's device; NULL where there is none. */
struct pool *pools_current(void);

/* The pool of that handle. One that nobody told us of is a device's default pool, else taken to be the current
 * device's. NULL where the table is full: then only NVML knows of it. */
struct pool *pools_find(CUmemoryPool handle);

/* Tells of a pool, new or not: where it lies and whether its memory is managed. */
void pools_learn(CUmemoryPool handle, const CUmemLocation *location, CUmemAllocationType type, bool is_new);

/* Whether any have been used. */
bool pools_any(void);

/* The pools of a card, one after the other, NULL after the last; `*at` begins at 0. */
struct pool *pools_next(int card, unsigned *at);

/* Around whatever changes which pool is a device's current one. */
void pools_current_changes(void);

/* Around a call that may destroy pools: in between no pool is asked anything but by who allocates from it. */
void pools_suspend(void);
void pools_resume(void);

/* Forgets a pool that was destroyed, or any one of all. What was charged for it is in the answer; its handle is NULL
 * where there is none. */
struct pool pools_drop(CUmemoryPool handle);
struct pool pools_drop_any(void);

/* Guards the pools' charges. It is held across the question what a pool has reserved, which the driver answers from its
 * memory, and across nothing else of the driver's: so no pool is destroyed while it is asked. */
void pools_lock(void);
void pools_unlock(void);

/* Under it: what the pools of a card have reserved, without managed memory, as the driver says now; false while
 * suspended. */
bool pools_reserved_on(int card, uint64_t *bytes);

/* Under it, after that: this much of them is charged now by a measurement, the `settled`th. */
void pools_adopt(int card, uint32_t settled);

/* In the child of a fork. */
void pools_forget(void);

#endif
