#include "overrun_budget.h"

#define MOST       250000000ULL
#define PAUSE_MOST 1000000000000ULL

enum { FULL = 100, PERCENT = 2 };

struct overrun_budget overrun_budget_new(uint64_t now) {
    return (struct overrun_budget){.left = MOST, .refilled_at = now};
}

void overrun_budget_refill(struct overrun_budget *budget, uint64_t now) {
    uint64_t passed = now > budget->refilled_at ? now - budget->refilled_at : 0;
    if (passed > PAUSE_MOST) passed = PAUSE_MOST;
    budget->left += passed * PERCENT / FULL;
    if (budget->left > MOST) budget->left = MOST;
    if (passed) budget->refilled_at = now;
}

void overrun_budget_use(struct overrun_budget *budget, uint64_t ns) {
    budget->left -= ns < budget->left ? ns : budget->left;
}
