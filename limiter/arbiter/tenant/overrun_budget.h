/* How long turns may still run beyond their end while other clients wait: a token bucket of ns. Long kernels use it; a
 * client that never ends its turns uses it up and then loses them earlier. Pure: the clock is an argument, in ns. */
#ifndef VGPU_ARBITER_TENANT_OVERRUN_BUDGET_H
#define VGPU_ARBITER_TENANT_OVERRUN_BUDGET_H

#include <stdint.h>

struct overrun_budget {
    uint64_t left_ns;
    uint64_t refilled_at;
};

/* A full budget. */
struct overrun_budget overrun_budget_new(uint64_t now);

/* Refills at 2 % of the time passed: all that a client which never ends its turns can take from the others. */
void overrun_budget_refill(struct overrun_budget *budget, uint64_t now);

/* Takes `ns` out, at most all that is left. */
void overrun_budget_use(struct overrun_budget *budget, uint64_t ns);

#endif
