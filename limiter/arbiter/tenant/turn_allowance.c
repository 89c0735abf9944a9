#include "arbiter/tenant/turn_allowance.h"

#include "common/arithmetic.h"

/* GPU time of a turn: 16 ms for up to three tenants, which loses 1.5 % of the card to handovers (measured on an H200).
 * A fixed share saves up no more than 10 ms, and would lose what it earns beyond that while other tenants hold the
 * card. Divided by the square of the number of tenants, 225 ms keep the wait of eight fixed shares below 50 ms. */
#define BUDGET_MAX       (16 * NS_PER_MS)
#define BUDGET_FIXED     (10 * NS_PER_MS)
#define BUDGET_MIN       (3 * NS_PER_MS)
#define BUDGET_BY_SQUARE (225 * NS_PER_MS)

/* Turns that suit a tenant's steps are no shorter than this: otherwise they would cost more than a tenth of the card.
 */
#define BUDGET_MIN_SUITABLE (4 * NS_PER_MS)

/* A tenant's own turns are a part of this time as large as its guarantee. */
#define CYCLE (50 * NS_PER_MS)

/* GPU time in flight: beside a latency-sensitive tenant, just enough that the launching thread adds the next kernel in
 * time. An arrival in this time finds two kernels on the card (ADR 35). */
#define DEPTH_LATENCY_SENSITIVE (100 * NS_PER_US)
#define DEPTH_PREEMPTIBLE       (NS_PER_MS / 2) /* of a best-effort tenant: about a kernel and a handover */
#define DEPTH_MAX               (5 * NS_PER_MS)

enum { FULL = 100 };

/* A job's turns are at least so many times as long as the handovers between jobs, which a busy machine makes long, as
 * far as the budget of a single tenant may be. With more, two jobs with short steps did as many of them, and the
 * slowest took longer by that turn. */
enum { HANDOVERS_IN_TURN = 3 };

/* In turns of two steps, every second step waits for two of each neighbour's, and the handovers take nearly as much of
 * the card as in turns of one. */
enum { SEVERAL = 3 };

/* A turn of several steps may be longer than its budget by this part of a step. */
enum { LONGER_DIVISOR = 4 };

uint64_t turn_allowance_budget(unsigned tenants, bool has_fixed, uint64_t suitable_turn) {
    uint64_t count = tenants ? tenants : 1;
    uint64_t budget = min_u64(has_fixed ? BUDGET_FIXED : BUDGET_MAX, BUDGET_BY_SQUARE / (count * count));
    budget = min_u64(budget, max_u64(suitable_turn, BUDGET_MIN_SUITABLE));
    return budget > BUDGET_MIN ? budget : BUDGET_MIN;
}

uint64_t turn_allowance_steps(uint64_t step, uint64_t budget) {
    uint64_t fitting = (budget + step / LONGER_DIVISOR) / step;
    return fitting >= SEVERAL ? fitting : 1;
}

uint64_t turn_allowance_job(uint64_t handover, uint64_t budget) {
    return max_u64(budget, min_u64(HANDOVERS_IN_TURN * handover, BUDGET_MAX));
}

uint64_t turn_allowance_own_budget(const struct demand *demand, uint64_t budget) {
    return demand->guarantee ? min_u64(budget, CYCLE * demand->guarantee / FULL) : budget;
}

uint64_t turn_allowance_depth(bool has_latency_sensitive_rival, bool is_preemptible, uint64_t budget) {
    if (has_latency_sensitive_rival) return DEPTH_LATENCY_SENSITIVE;
    return is_preemptible ? DEPTH_PREEMPTIBLE : min_u64(DEPTH_MAX, budget * 3 / 4);
}

unsigned turn_allowance_fallback(const struct demand *demand, unsigned guarantee_sum, unsigned without_guarantee) {
    if (demand->guarantee) return demand->guarantee;
    unsigned unassigned =
        guarantee_sum < FULL ? (FULL - guarantee_sum) / (without_guarantee ? without_guarantee : 1) : 0;
    return unassigned ? unassigned : 1;
}
