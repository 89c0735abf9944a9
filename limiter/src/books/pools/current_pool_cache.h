/* Cache of the devices' current pools, so that an allocation need not ask the driver. Takes no lock. */
#ifndef VGPU_BOOKS_POOLS_CURRENT_POOL_CACHE_H
#define VGPU_BOOKS_POOLS_CURRENT_POOL_CACHE_H

#include <stdbool.h>

#include "driver/abi.h"

struct pool;

/* The current pool of a device; NULL where it is not cached. */
struct pool *current_pool_cache_find(CUdevice device);

/* How often the cache was dropped. To be read before the driver is asked for a current pool. */
unsigned current_pool_cache_generation(void);

/* Caches the driver's answer, unless the cache was dropped since `generation` was read. */
void current_pool_cache_put(CUdevice device, struct pool *pool, unsigned generation);

/* Drops the cached current pools. Called before and after every driver call that changes a device's current pool. */
void current_pool_cache_drop(void);

/* Records that the program chooses a current pool, and drops the cached ones. Called before the driver's call. */
void current_pool_cache_note_choice(void);

/* Whether the program has ever chosen a current pool. */
bool current_pool_cache_has_choice(void);

#endif
