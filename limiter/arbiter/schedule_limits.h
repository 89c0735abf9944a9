/* How many of what one card's schedule can hold. */
#ifndef VGPU_ARBITER_SCHEDULE_LIMITS_H
#define VGPU_ARBITER_SCHEDULE_LIMITS_H

enum { SCHEDULE_TENANTS = 512, SCHEDULE_CLIENTS = 4096, SCHEDULE_NONE = -1 };

#endif
