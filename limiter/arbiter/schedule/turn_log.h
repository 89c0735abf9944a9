/* Lines of the debug log that say what the turns of each tenant did. */
#ifndef VGPU_ARBITER_SCHEDULE_TURN_LOG_H
#define VGPU_ARBITER_SCHEDULE_TURN_LOG_H

#include "arbiter/schedule/schedule.h"

/* Writes a line for each tenant. All figures count from the tenant's begin. */
void turn_log_write(const struct schedule *schedule, const char *card);

#endif
