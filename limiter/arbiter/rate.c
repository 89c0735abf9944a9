#include "rate.h"

#define SECOND 1000000000ULL

struct rate rate_made(unsigned per_second, uint64_t now) {
    return (struct rate){.cost = SECOND / per_second, .left = SECOND, .refilled_at = now};
}

bool rate_allows(struct rate *rate, uint64_t now) {
    uint64_t passed = now > rate->refilled_at ? now - rate->refilled_at : 0;
    rate->left = passed < SECOND - rate->left ? rate->left + passed : SECOND;
    rate->refilled_at = now;
    if (rate->left < rate->cost) return false;
    rate->left -= rate->cost;
    return true;
}
