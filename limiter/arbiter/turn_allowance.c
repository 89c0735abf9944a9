#include "turn_allowance.h"

#include "common/arithmetic.h"

#define BUDGET_MAX   (16 * NS_PER_MS)
#define BUDGET_FIXED (10 * NS_PER_MS) /* a fixed share saves up no more, and would lose what it waits for longer */
#define BUDGET_MIN   (3 * NS_PER_MS)
#define BUDGET_BY_SQUARE \
    (225 * NS_PER_MS) /* over the square of the tenants: eight fixed ones then wait 50 ms at most */
#define CYCLE                   (50 * NS_PER_MS)
#define DEPTH_LATENCY_SENSITIVE (3 * NS_PER_MS / 20) /* enough for who launches to be in time with the next kernel */

#define DEPTH_MAX (5 * NS_PER_MS)

enum { FULL = 100 };

uint64_t turn_allowance_budget(unsigned tenants, bool has_fixed) {
    uint64_t count = tenants ? tenants : 1;
    uint64_t budget = min_u64(has_fixed ? BUDGET_FIXED : BUDGET_MAX, BUDGET_BY_SQUARE / (count * count));
    return budget > BUDGET_MIN ? budget : BUDGET_MIN;
}

uint64_t turn_allowance_own_budget(const struct demand *demand, uint64_t budget) {
    return demand->guarantee ? min_u64(budget, CYCLE * demand->guarantee / FULL) : budget;
}

uint64_t turn_allowance_depth(bool has_latency_sensitive_rival, uint64_t budget) {
    return has_latency_sensitive_rival ? DEPTH_LATENCY_SENSITIVE : min_u64(DEPTH_MAX, budget * 3 / 4);
}

unsigned turn_allowance_fallback(const struct demand *demand, unsigned guarantee_sum, unsigned without_guarantee) {
    if (demand->guarantee) return demand->guarantee;
    unsigned unassigned =
        guarantee_sum < FULL ? (FULL - guarantee_sum) / (without_guarantee ? without_guarantee : 1) : 0;
    return unassigned ? unassigned : 1;
}
