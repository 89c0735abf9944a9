/* What pools are charged: what they have reserved, as the driver says when it may have changed. */
#ifndef VGPU_HOOKS_POOLS_POOL_CHARGE_H
#define VGPU_HOOKS_POOLS_POOL_CHARGE_H

#include "books/pools.h"
#include "charge/charge.h"

/* Whether the pool has reserved otherwise than it is charged. */
bool pool_charge_is_due(const struct pool *pool);

/* Charges it anew, in place of what was claimed for its growth; the caller has `own` spans (charge.h) open. */
void pool_charge_update(struct pool *pool, const struct reservation *reservation, unsigned own);

/* After a call that may have let a pool shrink. */
void pool_charge_check(struct pool *pool);

/* The same of all pools of a card; the caller has `own` spans (charge.h) open. */
void pool_charge_check_card(const uint8_t uuid[UUID_SIZE], unsigned own);

/* The same for the view, of a card that has that row: of those that synchronisations may have made shrink. */
void pool_charge_refresh_view(const uint8_t uuid[UUID_SIZE], int card);

/* Has the pools of a card give back what no allocation is in, whatever their release threshold: the driver does so
 * itself before it says that the card is full (measured on an H200, driver 580). */
void pool_charge_trim_card(const uint8_t uuid[UUID_SIZE]);

#endif
