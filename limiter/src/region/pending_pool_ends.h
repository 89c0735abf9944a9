/* Pools that have ended, whose rows (shares.h) and charges end together when the region's lock can be had. */
#ifndef VGPU_REGION_PENDING_POOL_ENDS_H
#define VGPU_REGION_PENDING_POOL_ENDS_H

#include <stdint.h>

#include <stdbool.h>

#include "common/region_layout.h"

/* What ends with a pool: `bytes` of a card, of which `managed` are marked so. Where `kept` bytes are held on, those are
 * charged instead, marked, and the rows stay until another end of the same pool. */
struct pending_pool_end {
    uint64_t pool;
    int card;
    uint64_t bytes;
    uint64_t managed;
    uint64_t kept;
};

/* False when our own memory is out: then its rows stay as long as the process. */
bool pending_pool_ends_add(struct pending_pool_end end);

/* Ends them, under the region's lock. */
void pending_pool_ends_apply(struct region *region, int slot);

#endif
