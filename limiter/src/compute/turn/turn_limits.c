#include "compute/turn/turn_limits.h"

#include "common/arithmetic.h"

#include <stddef.h>

/* A turn without the arbiter takes 5 ms at most, and with the pause that repays it 18 ms, so that short kernels stall
 * for less than 20 ms. After AGE_MAX a turn ends even if its budget is not used, so that its time is charged. */
#define ALONE_BUDGET_MAX (5 * NS_PER_MS)
#define ALONE_CYCLE_MAX  (18 * NS_PER_MS)
#define AGE_MAX          (20 * NS_PER_MS)

/* A handover takes 0.25 ms (measured on an H200), so turns of 16 ms cost two containers 1.5 % of the card. A fixed
 * share saves up no more than 10 ms of tokens and would lose what it earns during longer turns of others: with 16 ms
 * instead of 13, shares of 10, 20, 30 and 35 percent lost up to 1.8 points (H200). For a small share, a turn and its
 * repayment take 50 ms at most. A turn below 0.5 ms is not worth its handover. */
#define ARBITRATED_BUDGET_MAX   (16 * NS_PER_MS)
#define ARBITRATED_BUDGET_FIXED (13 * NS_PER_MS)
#define ARBITRATED_CYCLE_MAX    (50 * NS_PER_MS)
#define ARBITRATED_BUDGET_MIN   (500 * NS_PER_US)

/* A turn of the arbiter's without a bound is charged in parts of this size, with this much in flight. */
#define UNBOUNDED_BUDGET (50 * NS_PER_MS)
#define UNBOUNDED_DEPTH  (10 * NS_PER_MS)

/* A joint turn is charged this often, so that the arbiter soon sees how much of the card each container has. It has no
 * budget: only its depth bounds what is in flight. */
#define JOINT_AGE    (10 * NS_PER_MS)
#define JOINT_BUDGET (UINT64_MAX - 1)

/* Lower bounds, so that no page can make a process wait for nothing or poll without a pause. */
#define DEPTH_MIN (100 * NS_PER_US)
#define FRESH_MIN (1 * NS_PER_MS)

/* Below the driver's time slice of 2 ms, a pair of events measures the true GPU time even beside other processes
 * (measured on an H100). */
#define UNARBITRATED_BUDGET_MAX (1500 * NS_PER_US)

enum { FULL = 100 };

static bool has_heartbeat(const struct arbitration_page *page, uint64_t now) {
    uint64_t beat = __atomic_load_n(&page->heartbeat_at, __ATOMIC_RELAXED);
    return (beat < now ? now - beat : beat - now) <= ARBITRATION_HEARTBEAT_TIMEOUT_NS;
}

enum contention turn_limits_contention(const struct arbitration_page *page, bool is_connected, uint64_t now) {
    if (!page || !__atomic_load_n(&page->contended, __ATOMIC_RELAXED)) return CONTENTION_NONE;
    return is_connected && has_heartbeat(page, now) ? CONTENTION_ARBITRATED : CONTENTION_UNARBITRATED;
}

uint64_t turn_limits_fresh_for(const struct arbitration_page *page, uint64_t now) {
    uint64_t until = __atomic_load_n(&page->heartbeat_at, __ATOMIC_RELAXED) + ARBITRATION_HEARTBEAT_TIMEOUT_NS;
    return until > now ? max_u64(until - now, FRESH_MIN) : FRESH_MIN;
}

struct turn_limits turn_limits_alone(unsigned share) {
    uint64_t budget = share ? min_u64(ALONE_BUDGET_MAX, ALONE_CYCLE_MAX * share / FULL) : UINT64_MAX;
    return (struct turn_limits){.budget = budget, .depth = UINT64_MAX, .age = AGE_MAX};
}

struct turn_limits turn_limits_arbitrated(unsigned share, uint64_t left, uint64_t depth) {
    uint64_t budget_max =
        min_u64(share < FULL ? ARBITRATED_BUDGET_FIXED : ARBITRATED_BUDGET_MAX, ARBITRATED_CYCLE_MAX * share / FULL);
    struct turn_limits limits = {.budget = max_u64(ARBITRATED_BUDGET_MIN, min_u64(budget_max, left)),
                                 .depth = max_u64(DEPTH_MIN, depth),
                                 .age = AGE_MAX};
    bool is_unbounded = left == UINT64_MAX && share >= FULL;
    if (!is_unbounded) return limits;
    return (struct turn_limits){
        .budget = UNBOUNDED_BUDGET, .depth = min_u64(limits.depth, UNBOUNDED_DEPTH), .age = UNBOUNDED_BUDGET};
}

struct turn_limits turn_limits_joint(uint64_t depth) {
    return (struct turn_limits){.budget = JOINT_BUDGET,
                                .depth = max_u64(DEPTH_MIN, min_u64(depth, UNBOUNDED_DEPTH)),
                                .age = JOINT_AGE,
                                .is_joint = true};
}

/* The first launch of a turn is always admitted. */
struct turn_limits turn_limits_one_launch(void) {
    return (struct turn_limits){.budget = 0, .depth = UINT64_MAX, .age = AGE_MAX};
}

struct turn_limits turn_limits_without_arbiter(unsigned share) {
    struct turn_limits limits = turn_limits_alone(share);
    if (share) limits.budget = min_u64(limits.budget, UNARBITRATED_BUDGET_MAX);
    return limits;
}

unsigned turn_limits_fallback(const struct arbitration_page *page) {
    uint32_t percent = __atomic_load_n(&page->fallback_percent, __ATOMIC_RELAXED);
    if (percent >= FULL) return 0;
    return percent ? percent : 1;
}
