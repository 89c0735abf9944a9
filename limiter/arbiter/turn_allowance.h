/* What a turn is allowed: how long, how much in flight, and what goes while the arbiter is away. Pure. */
#ifndef VGPU_ARBITER_TURN_ALLOWANCE_H
#define VGPU_ARBITER_TURN_ALLOWANCE_H

#include "demand.h"

/* The GPU time that a turn may take where so many tenants use the card, in ns; `has_fixed`: one of them by a fixed
 * share. */
uint64_t turn_allowance_budget(unsigned tenants, bool has_fixed);

/* The same for one who takes no more at once because its share is small. */
uint64_t turn_allowance_own_budget(const struct demand *demand, uint64_t budget);

/* What may be in flight, in ns: little where somebody is in a hurry; else so much less than the budget that who
 * launches has seen how far the card is when he says how much is left. */
uint64_t turn_allowance_depth(bool has_latency_sensitive_rival, uint64_t budget);

/* Percent of the card for one with this ask while the arbiter is away. `guaranteed` is the sum of all tenants'
 * guarantees, `open` how many have none. */
unsigned turn_allowance_fallback(const struct demand *demand, unsigned guarantee_sum, unsigned without_guarantee);

#endif
