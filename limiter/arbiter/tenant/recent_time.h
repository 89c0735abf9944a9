/* How much time something took in about the last second: what is longer ago counts less and less. Pure. All times are
 * in ns; points in time are CLOCK_MONOTONIC. */
#ifndef VGPU_ARBITER_TENANT_RECENT_TIME_H
#define VGPU_ARBITER_TENANT_RECENT_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct recent_time {
    uint64_t ns; /* of about the last second */
    uint64_t at; /* up to when that is known */
};

/* Lets the time up to `now` pass. */
void recent_time_age(struct recent_time *recent, uint64_t now);

/* Adds time that was taken up to now. */
void recent_time_add(struct recent_time *recent, uint64_t ns);

/* Whether it is less, or more, than this percentage of `guarantee` percent of the time. */
bool recent_time_is_below(const struct recent_time *recent, uint32_t guarantee, unsigned percent);
bool recent_time_is_above(const struct recent_time *recent, uint32_t guarantee, unsigned percent);

#endif
