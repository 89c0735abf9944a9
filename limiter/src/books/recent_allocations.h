/* The sizes of what was lately allocated from pools, by pointer: a free does not say how much it frees, and to ask the
 * driver each time how much of a pool is in use costs as much as all else of an allocation. */
#ifndef VGPU_BOOKS_RECENT_ALLOCATIONS_H
#define VGPU_BOOKS_RECENT_ALLOCATIONS_H

#include <stdint.h>

/* A pool's number, and bytes of it; 0 where nothing is known. */
struct recent_allocation {
    int pool;
    uint64_t bytes;
};

/* After an allocation from the pool of that number, below RECENT_ALLOCATIONS_POOLS. It may be forgotten at any time. */
void recent_allocations_add(uint64_t pointer, int pool, uint64_t bytes);

enum { RECENT_ALLOCATIONS_POOLS = 256 };

/* What was allocated there, at most, and has not been taken since. */
struct recent_allocation recent_allocations_take(uint64_t pointer);

#endif
