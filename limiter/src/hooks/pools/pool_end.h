/* What becomes of a pool's charge when the pool is gone. */
#ifndef VGPU_HOOKS_POOLS_POOL_END_H
#define VGPU_HOOKS_POOLS_POOL_END_H

#include "books/pool_ids.h"
#include "books/pools.h"

/* Gives back what was charged for it, and ends what it `shared`. */
void pool_end(const struct pool *pool, struct shared_pool shared);

#endif
