#include "rate.h"

#define PER_SECOND 2000ULL
#define SECOND     1000000000ULL
#define COST       (SECOND / PER_SECOND)

struct rate rate_made(uint64_t now) { return (struct rate){.left = SECOND, .refilled_at = now}; }

bool rate_allows(struct rate *rate, uint64_t now) {
    uint64_t passed = now > rate->refilled_at ? now - rate->refilled_at : 0;
    rate->left = passed < SECOND - rate->left ? rate->left + passed : SECOND;
    rate->refilled_at = now;
    if (rate->left < COST) return false;
    rate->left -= COST;
    return true;
}
