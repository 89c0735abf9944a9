/* Ends a pool's charge when the pool is destroyed. */
#ifndef VGPU_HOOKS_POOLS_POOL_END_H
#define VGPU_HOOKS_POOLS_POOL_END_H

#include "books/pools/pool_ids.h"
#include "books/pools/pools.h"

/* Releases what is charged for a destroyed pool, and ends its exports and imports. `shared` is its entry of
 * books/pools/pool_ids.h; a number of 0 means that it was not shared. The caller holds no lock. */
void pool_end(const struct pool *pool, struct shared_pool shared);

#endif
