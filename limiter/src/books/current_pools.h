/* Which pool is meant: a device's current one, or one by its handle; and where it lies. */
#ifndef VGPU_BOOKS_CURRENT_POOLS_H
#define VGPU_BOOKS_CURRENT_POOLS_H

#include "books/pools.h"

/* The current pool of the calling thread's device; NULL where there is none. Between the two of pool_users.h. */
struct pool *current_pools_get(void);

/* The same as long as no program's choice has made another pool current than the device's own, which nobody destroys:
 * needs neither those nor the driver. NULL also where the driver would have to be asked. */
struct pool *current_pools_cached_default(void);

/* The pool of that handle. One that nobody told us of is a device's default pool, else taken to be the current
 * device's. NULL where the table is full: then only NVML knows of it. */
struct pool *current_pools_find(CUmemoryPool handle);

/* Tells of a pool, new or not: where it lies and whether its memory is managed. */
void current_pools_learn(CUmemoryPool handle, const CUmemLocation *location, CUmemAllocationType type, bool is_new);

/* Around whatever changes which pool is a device's current one; and where that is the program's choice. */
void current_pools_invalidate(void);
void current_pools_note_choice(void);

#endif
