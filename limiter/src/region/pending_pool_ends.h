/* Queue of destroyed pools whose export rows (region/pool_exports.h) and charges are taken back later, together, by the
 * next thread of this process that holds the region's lock. */
#ifndef VGPU_REGION_PENDING_POOL_ENDS_H
#define VGPU_REGION_PENDING_POOL_ENDS_H

#include <stdint.h>

#include <stdbool.h>

#include "common/region_layout.h"

/* What is taken back for a destroyed pool. Where descriptors still hold `kept` bytes of the pool, those are charged
 * instead, marked as managed, and the export rows stay until a second entry of that pool. */
struct pending_pool_end {
    uint64_t pool;    /* the library's number for the pool (books/pools/pool_ids.h) */
    int card;         /* the region's row */
    uint64_t bytes;   /* charge to be taken back */
    uint64_t managed; /* part of `bytes` that is marked as managed */
    uint64_t kept;    /* bytes that stay charged */
};

/* Adds an entry. False where malloc fails: the pool's rows and charge then stay until the process ends. Takes
 * LOCK_PENDING_POOL_ENDS. */
bool pending_pool_ends_add(struct pending_pool_end end);

/* Applies and removes all entries. The caller holds the region's lock; takes LOCK_PENDING_POOL_ENDS. */
void pending_pool_ends_apply(struct region *region, int slot);

#endif
