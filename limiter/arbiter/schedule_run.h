/* What has become due by the clock on one card. */
#ifndef VGPU_ARBITER_SCHEDULE_RUN_H
#define VGPU_ARBITER_SCHEDULE_RUN_H

#include "schedule.h"

/* The tenant whose `leased_until` must be known now, or SCHEDULE_NONE; and what it is, 0 where it cannot be read. */
int schedule_run_tenant_to_look_at(struct schedule *schedule, uint64_t now);
void schedule_run_note_leased_until(struct schedule *schedule, uint64_t leased_until, uint64_t now);

/* Does what is due, and returns when something will be next; UINT64_MAX: only after an event. */
uint64_t schedule_run(struct schedule *schedule, uint64_t now);

#endif
