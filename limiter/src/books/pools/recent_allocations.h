/* Sizes of the latest allocations from pools, by pointer: a lossy cache without a lock. A free does not say how many
 * bytes it frees, and asking the driver how much of a pool is in use costs as much as all the rest of an allocation. */
#ifndef VGPU_BOOKS_POOLS_RECENT_ALLOCATIONS_H
#define VGPU_BOOKS_POOLS_RECENT_ALLOCATIONS_H

#include <stdint.h>

struct recent_allocation {
    int pool;       /* pools_index of the pool */
    uint64_t bytes; /* 0 = unknown */
};

/* Records an allocation of `bytes` from a pool of that index. Any record may be lost at any time. */
void recent_allocations_add(uint64_t pointer, int pool, uint64_t bytes);

/* One more than the highest pool index. */
enum { RECENT_ALLOCATIONS_POOLS = 256 };

/* Removes and returns the record of a pointer; `bytes` is at most what was allocated, 0 where there is no record. */
struct recent_allocation recent_allocations_take(uint64_t pointer);

#endif
