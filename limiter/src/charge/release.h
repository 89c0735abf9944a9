/* Takes charges back, at once or as soon as the region's lock can be had. */
#ifndef VGPU_CHARGE_RELEASE_H
#define VGPU_CHARGE_RELEASE_H

#include <stdint.h>

#include "region/pending_pool_ends.h"
#include "region/region.h"

/* Takes a charge back. Never fails: where the lock cannot be had in time, the next one to have it catches up. */
void release_charge(int card, uint64_t bytes);
void release_managed(int card, uint64_t bytes);

/* The same with the end of a pool that is shared, whose rows (shares.h) end at the same moment. */
void release_shared_pool(struct pending_pool_end end);

/* Takes back what waits for the lock, which the caller has. */
void release_apply_deferred(struct region *region, int slot);

#endif
