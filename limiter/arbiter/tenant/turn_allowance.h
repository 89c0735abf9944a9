/* What turns are allowed: their GPU time, their depth, and the share that applies without a heartbeat. Pure. All times
 * are in ns. */
#ifndef VGPU_ARBITER_TENANT_TURN_ALLOWANCE_H
#define VGPU_ARBITER_TENANT_TURN_ALLOWANCE_H

#include "arbiter/tenant/demand.h"

/* The GPU time of a turn while `tenants` use the card; `has_fixed`: one of them has a fixed share; `suitable_turn`: the
 * longest turns that suit the steps of all of them, UINT64_MAX = any. */
uint64_t turn_allowance_budget(unsigned tenants, bool has_fixed, uint64_t suitable_turn);

/* How many whole steps of `step` ns a turn of a program has that waits for each of them: as many as fit into `budget`,
 * if these are several, otherwise one. `step` is not 0. */
uint64_t turn_allowance_steps(uint64_t step, uint64_t budget);

/* The GPU time of a job's turn: `budget`, or more if that is short beside the time from the job's call to its beginning
 * on the last card, `handover`. */
uint64_t turn_allowance_job(uint64_t handover, uint64_t budget);

/* `budget`, or less for a tenant whose guarantee is so small that its own turns are shorter. */
uint64_t turn_allowance_own_budget(const struct demand *demand, uint64_t budget);

/* How much GPU time may be in flight in a turn: little while a latency-sensitive tenant may preempt it; otherwise
 * enough below the budget that the client knows how far the card is when it announces the drain. */
uint64_t turn_allowance_depth(bool has_latency_sensitive_rival, bool is_preemptible, uint64_t budget);

/* The percentage of the card's time, at least 1, that a tenant may use while there is no heartbeat: its guarantee, or
 * an equal part of what is not guaranteed. `guarantee_sum`: of all active tenants; `without_guarantee`: how many of
 * them have none. */
unsigned turn_allowance_fallback(const struct demand *demand, unsigned guarantee_sum, unsigned without_guarantee);

#endif
