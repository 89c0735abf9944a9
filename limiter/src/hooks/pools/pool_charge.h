/* Charges pools of stream-ordered allocation by the bytes that they have reserved, which the driver is asked for after
 * calls that may have changed them. The caller holds no lock, and keeps the pool from being destroyed
 * (books/pools/pool_guard.h). */
#ifndef VGPU_HOOKS_POOLS_POOL_CHARGE_H
#define VGPU_HOOKS_POOLS_POOL_CHARGE_H

#include "books/pools/pools.h"
#include "charge/reserve/charge.h"
#include "charge/reserve/memory_class.h"

/* Whether the pool's charge is out of date: the pool has reserved or lost another number of bytes than are charged, or
 * a measurement has corrected this process's charge since. Asks the driver. */
bool pool_charge_is_due(const struct pool *pool);

/* Whether no measurement has corrected this process's charge since the pool was charged. Only then does the difference
 * between reserved and charged bytes say what is missing, for a correction may contain it already. Managed memory is
 * not measured. */
bool pool_charge_is_uncorrected(const struct pool *pool);

/* Sets the pool's charge to what it has reserved, and releases `reservation` (0 bytes: none), which was made for its
 * growth. The calling thread has `own_calls` calls open (see charge/reconcile/reconcile.h). */
void pool_charge_update(struct pool *pool, const struct reservation *reservation, unsigned own_calls);

/* Updates the charge, if it is out of date, after a call that may have let the pool shrink. `pool` may be NULL. */
void pool_charge_check(struct pool *pool);

/* Corrects by setting the charge of every pool of a card to what it has reserved. Trims by giving back all memory that
 * no allocation is in, whatever a pool's release threshold. */
extern const struct memory_class pool_memory_class;

#endif
