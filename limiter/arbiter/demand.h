/* What a container asks of a card, as its limits file says. Pure. */
#ifndef VGPU_ARBITER_DEMAND_H
#define VGPU_ARBITER_DEMAND_H

#include "common/limits.h"

struct demand {
    enum compute_policy policy;
    uint32_t guarantee; /* percent of the card's time, 0 = none */
    uint32_t weight;    /* among those that divide what is left */
    uint32_t priority;  /* higher goes first */
};

/* False where the limits do not name the card. */
bool demand_of(const struct limits_slot *limits, const uint8_t uuid[UUID_SIZE], struct demand *out);

bool demand_is_equal(const struct demand *first, const struct demand *second);

#endif
