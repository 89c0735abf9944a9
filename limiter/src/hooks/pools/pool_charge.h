/* What pools are charged: what they have reserved, as the driver says when it may have changed. */
#ifndef VGPU_HOOKS_POOLS_POOL_CHARGE_H
#define VGPU_HOOKS_POOLS_POOL_CHARGE_H

#include "books/pools.h"
#include "charge/charge.h"
#include "charge/memory_class.h"

/* Whether the pool has reserved otherwise than it is charged. */
bool pool_charge_is_due(const struct pool *pool);

/* Charges it anew, in place of what was claimed for its growth; the caller has `own` spans (charge.h) open. */
void pool_charge_update(struct pool *pool, const struct reservation *reservation, unsigned own_calls);

/* After a call that may have let a pool shrink. */
void pool_charge_check(struct pool *pool);

/* Charges every pool of a card what it has reserved; trimming gives back what no allocation is in, whatever a pool's
 * release threshold. */
extern const struct memory_class pool_memory_class;

#endif
