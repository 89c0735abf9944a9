/* Charges what pools have lost (exported.h): marked like managed memory, for NVML does not count it. Under the pools'
 * lock and the region's. */
#ifndef VGPU_CHARGE_LOST_POOL_MEMORY_H
#define VGPU_CHARGE_LOST_POOL_MEMORY_H

#include "books/pools.h"

/* Of one pool; of all of a card, before a measurement takes off what NVML has ceased to count. */
void lost_pool_memory_charge(struct region *region, struct pool *pool);
void lost_pool_memory_charge_card(struct region *region, int card);

/* Whether that would change anything. Under no lock. */
bool lost_pool_memory_has_changed(const struct pool *pool);

#endif
