/* Which tenants use a card, and therefore whether launches on it need turns. A tenant is active if it wanted or held
 * the card within the last two seconds. Part of the schedule (schedule_state.h). */
#ifndef VGPU_ARBITER_SCHEDULE_CONTENTION_H
#define VGPU_ARBITER_SCHEDULE_CONTENTION_H

#include "arbiter/schedule/schedule_state.h"

/* Decides anew for every tenant whether the card is contended, and marks all pages to be published. A tenant that has
 * the card to itself needs no turn: its waiting clients get turns without limits, and its current turn ends. */
void contention_refresh(struct schedule *schedule, uint64_t now);

/* The number of active tenants with connected clients. */
unsigned contention_active_tenants(const struct schedule *schedule, uint64_t now);

/* The GPU time in ns of a turn, by the number of active tenants and whether one of them has a fixed share. */
uint64_t contention_turn_budget(const struct schedule *schedule, uint64_t now);

#endif
