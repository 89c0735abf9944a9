/* What a container asks of a card, by its limits file. Pure. */
#ifndef VGPU_ARBITER_TENANT_DEMAND_H
#define VGPU_ARBITER_TENANT_DEMAND_H

#include "common/limits.h"

struct demand {
    enum compute_policy policy;
    uint32_t guarantee; /* percent of the card's time; 0 = none */
    uint32_t weight;    /* for the division of the remaining time; at least 1 */
    uint32_t priority;  /* higher goes first within a class (ranking.h) */
};

/* Stores in `out` what the limits ask of the card; false if they do not name it: then nothing is guaranteed. */
bool demand_of(const struct limits_slot *limits, const uint8_t uuid[UUID_SIZE], struct demand *out);

bool demand_is_equal(const struct demand *first, const struct demand *second);

#endif
