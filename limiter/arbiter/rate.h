/* How many messages a client may send. Pure: the clock is an argument, in ns. */
#ifndef VGPU_RATE_H
#define VGPU_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct rate {
    uint64_t cost; /* of a message, in ns */
    uint64_t left; /* of a second */
    uint64_t refilled_at;
};

struct rate rate_made(unsigned per_second, uint64_t now);

/* One more message; false where there were more than so many a second. */
bool rate_allows(struct rate *rate, uint64_t now);

#endif
