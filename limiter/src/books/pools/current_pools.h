/* Finds the pool that an allocation comes from: a device's current pool, or a pool by its handle; and records pools
 * that the library has not seen yet. Functions that add a pool take LOCK_POOLS, LOCK_CONTAINER and LOCK_REGION. */
#ifndef VGPU_BOOKS_POOLS_CURRENT_POOLS_H
#define VGPU_BOOKS_POOLS_CURRENT_POOLS_H

#include "books/pools/pools.h"

/* The current pool of the calling thread's device; NULL where there is none. May ask the driver. The caller has entered
 * the guard of books/pools/pool_guard.h. */
struct pool *current_pools_get(void);

/* The current pool of the calling thread's device if it is cached and the program has never chosen a current pool: then
 * it is the device's default pool, which cannot be destroyed. Else NULL. Needs neither the guard nor, with a single
 * device, the driver. */
struct pool *current_pools_cached_default(void);

/* The pool of a handle. An unknown pool is added: as its device's pool if it is a default pool, else as a pool of the
 * current device. NULL where the table is full: then only NVML counts the pool's memory. */
struct pool *current_pools_find(CUmemoryPool handle);

/* Adds a pool that the driver has just reported, with its location and its kind of memory; `is_new` if it was created
 * by this call. */
void current_pools_learn(CUmemoryPool handle, const CUmemLocation *location, CUmemAllocationType type, bool is_new);

#endif
