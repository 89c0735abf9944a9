/* What is due on one card by the clock: ends turns, begins the next one, asks the holder to yield. See schedule.h for
 * the order of the calls. */
#ifndef VGPU_ARBITER_SCHEDULE_SCHEDULE_RUN_H
#define VGPU_ARBITER_SCHEDULE_SCHEDULE_RUN_H

#include "arbiter/schedule/schedule.h"

/* The tenant whose use of the card has to be read from its region now, to see whether it leaves the card idle;
 * SCHEDULE_NONE if no check is due. */
int schedule_run_tenant_to_check(struct schedule *schedule, uint64_t now);

/* The values that were read for that tenant, 0 if they cannot be read. Revokes the turn if other clients wait and the
 * card has been idle for 0.1 ms (0.02 ms after a periodic visit of usual length), or if the holder has launched nothing
 * in time; a job's turn only after the request to yield. While a thread of the holder waits for the card, the card
 * counts as busy until `awaited_until`. `is_waiting`: another process of the tenant waits for the card's turn, and
 * `busy_until` is no work that may go on beyond the turn. */
void schedule_run_note_use(struct schedule *schedule, uint64_t busy_until, uint64_t awaited_until, bool is_waiting,
                           uint64_t now);

/* `busy_until` of a tenant's region as one of its clients ends a turn, so that a change in the next turn is seen. */
void schedule_run_note_busy_until(struct schedule *schedule, int tenant, uint64_t busy_until);

/* Does what is due; returns when to call it again, later than `now`; UINT64_MAX: only after an event. */
uint64_t schedule_run(struct schedule *schedule, uint64_t now);

#endif
