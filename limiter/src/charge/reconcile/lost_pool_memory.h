/* Charges the lost memory of pools: exported, freed and given back by the pool, but still on the card and in no figure
 * of the driver's (books/pools/exports.h). The charge is marked as managed memory, for NVML does not count it. */
#ifndef VGPU_CHARGE_RECONCILE_LOST_POOL_MEMORY_H
#define VGPU_CHARGE_RECONCILE_LOST_POOL_MEMORY_H

#include "books/pools/pools.h"

/* Sets the charge for one pool's lost memory to what is lost now. The caller holds LOCK_POOLS and LOCK_REGION. */
void lost_pool_memory_charge(struct region *region, struct pool *pool);

/* Sets it for every pool of a card (the region's row). Called before a measurement is applied, which would otherwise
 * take off memory that NVML no longer counts. The caller holds LOCK_POOLS and LOCK_REGION. */
void lost_pool_memory_charge_card(struct region *region, int card);

/* Whether the pool's lost memory differs from what is charged for it. Needs no lock. */
bool lost_pool_memory_has_changed(const struct pool *pool);

#endif
