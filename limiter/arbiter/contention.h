/* Who uses the card: whether clients need turns there, and telling them so. */
#ifndef VGPU_ARBITER_CONTENTION_H
#define VGPU_ARBITER_CONTENTION_H

#include "schedule_state.h"

void contention_refresh(struct schedule *schedule, uint64_t now);
unsigned contention_active_tenants(const struct schedule *schedule, uint64_t now);
uint64_t contention_turn_budget(const struct schedule *schedule, uint64_t now);

#endif
