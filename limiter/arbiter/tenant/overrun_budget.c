#include "arbiter/tenant/overrun_budget.h"

/* The longest kernel that may finish while other clients wait, in ns: 250 ms. */
#define BUDGET_MAX 250000000ULL

/* Longest time that one refill counts, in ns; keeps the product below within 64 bits. */
#define REFILL_MAX 1000000000000ULL

enum { FULL = 100, REFILL_PERCENT = 2 };

struct overrun_budget overrun_budget_new(uint64_t now) {
    return (struct overrun_budget){.left_ns = BUDGET_MAX, .refilled_at = now};
}

void overrun_budget_refill(struct overrun_budget *budget, uint64_t now) {
    uint64_t passed = now > budget->refilled_at ? now - budget->refilled_at : 0;
    if (passed > REFILL_MAX) passed = REFILL_MAX;
    budget->left_ns += passed * REFILL_PERCENT / FULL;
    if (budget->left_ns > BUDGET_MAX) budget->left_ns = BUDGET_MAX;
    if (passed) budget->refilled_at = now;
}

void overrun_budget_use(struct overrun_budget *budget, uint64_t ns) {
    budget->left_ns -= ns < budget->left_ns ? ns : budget->left_ns;
}
