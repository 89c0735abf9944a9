#include "arbiter/connection/rate_limit.h"

#define SECOND 1000000000ULL

struct rate_limit rate_limit_new(unsigned per_second, uint64_t now) {
    return (struct rate_limit){.cost_ns = SECOND / per_second, .left_ns = SECOND, .refilled_at = now};
}

bool rate_limit_allows(struct rate_limit *rate, uint64_t now) {
    uint64_t passed = now > rate->refilled_at ? now - rate->refilled_at : 0;
    rate->left_ns = passed < SECOND - rate->left_ns ? rate->left_ns + passed : SECOND;
    rate->refilled_at = now;
    if (rate->left_ns < rate->cost_ns) return false;
    rate->left_ns -= rate->cost_ns;
    return true;
}
