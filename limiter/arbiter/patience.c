#include "patience.h"

#define MOST       250000000ULL
#define PAUSE_MOST 1000000000000ULL

enum { FULL = 100, PERCENT = 2 };

struct patience patience_made(uint64_t now) { return (struct patience){.left = MOST, .refilled_at = now}; }

void patience_refill(struct patience *patience, uint64_t now) {
    uint64_t passed = now > patience->refilled_at ? now - patience->refilled_at : 0;
    if (passed > PAUSE_MOST) passed = PAUSE_MOST;
    patience->left += passed * PERCENT / FULL;
    if (patience->left > MOST) patience->left = MOST;
    if (passed) patience->refilled_at = now;
}

void patience_use(struct patience *patience, uint64_t ns) {
    patience->left -= ns < patience->left ? ns : patience->left;
}
