/* How many messages a client may send. Pure: the clock is an argument, in ns. */
#ifndef VGPU_RATE_H
#define VGPU_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct rate {
    uint64_t left; /* ns, of which each message costs some */
    uint64_t refilled_at;
};

struct rate rate_made(uint64_t now);

/* One more message; false where there were more than 2,000 a second. */
bool rate_allows(struct rate *rate, uint64_t now);

#endif
