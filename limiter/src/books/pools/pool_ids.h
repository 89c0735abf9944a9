/* Numbers for the pools that this process shares with others, as exporter or importer. The library assigns them,
 * because the driver reuses handles. Every function takes LOCK_POOL_IDS; pool_ids_get also takes LOCK_PHYSICAL_MEMORY.
 * Pure apart from that. */
#ifndef VGPU_BOOKS_POOLS_POOL_IDS_H
#define VGPU_BOOKS_POOLS_POOL_IDS_H

#include <stdbool.h>
#include <stdint.h>

struct shared_pool {
    uint64_t id;      /* a memory number (books/physical/physical_memory.h); 0 = none */
    uint64_t charged; /* bytes that an importer is charged for pointers that the region has no row for */
    int card;         /* of `charged`: the region's row */
};

/* The shared pool of a handle, with a new number where it has none; the number is 0 where malloc fails. */
struct shared_pool pool_ids_get(uint64_t handle);

/* Adds `bytes` on `card` to what is charged for a pool. */
void pool_ids_charge(uint64_t handle, int card, uint64_t bytes);

/* Adds a pool again that was removed by pool_ids_take; nothing for number 0. */
void pool_ids_put(uint64_t handle, struct shared_pool pool);

/* Removes and returns a pool that is being destroyed. */
struct shared_pool pool_ids_take(uint64_t handle);

#endif
