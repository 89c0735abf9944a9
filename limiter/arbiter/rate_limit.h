/* How many messages a client may send. Pure: the clock is an argument, in ns. */
#ifndef VGPU_ARBITER_RATE_LIMIT_H
#define VGPU_ARBITER_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct rate_limit {
    uint64_t cost_ns; /* of a message, in ns */
    uint64_t left_ns; /* of a second */
    uint64_t refilled_at;
};

struct rate_limit rate_limit_new(unsigned per_second, uint64_t now);

/* One more message; false where there were more than so many a second. */
bool rate_limit_allows(struct rate_limit *rate, uint64_t now);

#endif
