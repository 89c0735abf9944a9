/* How far turns may still run over their budget while others wait. Pure: the clock is an argument, in ns. */
#ifndef VGPU_ARBITER_OVERRUN_BUDGET_H
#define VGPU_ARBITER_OVERRUN_BUDGET_H

#include <stdint.h>

struct overrun_budget {
    uint64_t left_ns;
    uint64_t refilled_at;
};

struct overrun_budget overrun_budget_new(uint64_t now);

/* It comes back slowly, so that who never ends a turn by himself takes a small part of the card from the others. */
void overrun_budget_refill(struct overrun_budget *budget, uint64_t now);

void overrun_budget_use(struct overrun_budget *budget, uint64_t ns);

#endif
