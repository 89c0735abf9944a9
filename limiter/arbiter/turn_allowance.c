#include "turn_allowance.h"

#include "common/arithmetic.h"

#define BUDGET_MOST   (16 * NS_PER_MS)
#define BUDGET_FIXED  (10 * NS_PER_MS) /* a fixed share saves up no more, and would lose what it waits for longer */
#define BUDGET_LEAST  (3 * NS_PER_MS)
#define BUDGETS       (225 * NS_PER_MS) /* over the square of the tenants: eight fixed ones then wait 50 ms at most */
#define OWN_CYCLE     (50 * NS_PER_MS)
#define DEPTH_HURRIED (3 * NS_PER_MS / 20) /* enough for who launches to be in time with the next kernel */

#define DEPTH_MOST (5 * NS_PER_MS)

enum { FULL = 100 };

uint64_t turn_allowance_budget(unsigned tenants, bool has_fixed) {
    uint64_t count = tenants ? tenants : 1;
    uint64_t budget = min_u64(has_fixed ? BUDGET_FIXED : BUDGET_MOST, BUDGETS / (count * count));
    return budget > BUDGET_LEAST ? budget : BUDGET_LEAST;
}

uint64_t turn_allowance_own_budget(const struct demand *demand, uint64_t budget) {
    return demand->guarantee ? min_u64(budget, OWN_CYCLE * demand->guarantee / FULL) : budget;
}

uint64_t turn_allowance_depth(bool is_hurried, uint64_t budget) {
    return is_hurried ? DEPTH_HURRIED : min_u64(DEPTH_MOST, budget * 3 / 4);
}

unsigned turn_allowance_fallback(const struct demand *demand, unsigned guaranteed, unsigned open) {
    if (demand->guarantee) return demand->guarantee;
    unsigned left = guaranteed < FULL ? (FULL - guaranteed) / (open ? open : 1) : 0;
    return left ? left : 1;
}
