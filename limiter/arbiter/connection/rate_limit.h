/* Limits how many messages a client, or a container, may send: a token bucket that holds one second's messages. Pure:
 * the clock is an argument, in ns. */
#ifndef VGPU_ARBITER_CONNECTION_RATE_LIMIT_H
#define VGPU_ARBITER_CONNECTION_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct rate_limit {
    uint64_t cost_ns; /* of one message */
    uint64_t left_ns; /* what the bucket holds; one second at most */
    uint64_t refilled_at;
};

/* A full bucket. */
struct rate_limit rate_limit_new(unsigned per_second, uint64_t now);

/* Takes one message out of the bucket; false if it is empty. */
bool rate_limit_allows(struct rate_limit *rate, uint64_t now);

#endif
