/* Capacity of one card's schedule, and the index that stands for none. */
#ifndef VGPU_ARBITER_SCHEDULE_SCHEDULE_LIMITS_H
#define VGPU_ARBITER_SCHEDULE_SCHEDULE_LIMITS_H

enum { SCHEDULE_TENANTS = 512, SCHEDULE_CLIENTS = 4096, SCHEDULE_NONE = -1 };

#endif
