#include "compute/turn_limits.h"

#include "common/arithmetic.h"

#include <stddef.h>

#define ALONE_MOST (5 * NS_PER_MS)
#define CYCLE_MOST (18 * NS_PER_MS)
#define AGE_MOST   (20 * NS_PER_MS)

/* A handover takes 0.25 ms (measured on an H200), so two containers lose 1.5 % of a card. Who has a fixed share would
 * lose some of it by longer turns of others, for it is saved up for 10 ms only; of those with little, a cycle is to be
 * 50 ms. */
#define GRANTED_MOST       (16 * NS_PER_MS)
#define GRANTED_FIXED      (13 * NS_PER_MS)
#define GRANTED_CYCLE_MOST (50 * NS_PER_MS)
#define ENDLESS_MOST       (50 * NS_PER_MS)
#define ENDLESS_DEPTH      (10 * NS_PER_MS)
#define GRANTED_LEAST      (500 * NS_PER_US)
#define FRESH_LEAST        (1 * NS_PER_MS)
#define DEPTH_LEAST        (100 * NS_PER_US)

/* Below the driver's time slice of 2 ms a span reads true beside neighbours (measured on an H100). */
#define AWAY_MOST (1500 * NS_PER_US)

enum { FULL = 100 };

static bool is_beating(const struct arbitration_page *page, uint64_t now) {
    uint64_t beat = __atomic_load_n(&page->beat, __ATOMIC_RELAXED);
    return (beat < now ? now - beat : beat - now) <= ARBITRATION_AWAY_NS;
}

enum contention turn_limits_contention(const struct arbitration_page *page, bool is_joined, uint64_t now) {
    if (!page || !__atomic_load_n(&page->contended, __ATOMIC_RELAXED)) return CONTENTION_NONE;
    return is_joined && is_beating(page, now) ? CONTENTION_ARBITRATED : CONTENTION_UNARBITRATED;
}

uint64_t turn_limits_fresh_for(const struct arbitration_page *page, uint64_t now) {
    uint64_t until = __atomic_load_n(&page->beat, __ATOMIC_RELAXED) + ARBITRATION_AWAY_NS;
    return until > now ? max_u64(until - now, FRESH_LEAST) : FRESH_LEAST;
}

struct turn_limits turn_limits_alone(unsigned share) {
    uint64_t budget = share ? min_u64(ALONE_MOST, CYCLE_MOST * share / FULL) : UINT64_MAX;
    return (struct turn_limits){.budget = budget, .depth = UINT64_MAX, .age = AGE_MOST};
}

struct turn_limits turn_limits_arbitrated(unsigned share, uint64_t left, uint64_t depth) {
    uint64_t most = min_u64(share < FULL ? GRANTED_FIXED : GRANTED_MOST, GRANTED_CYCLE_MOST * share / FULL);
    struct turn_limits limits = {
        .budget = max_u64(GRANTED_LEAST, min_u64(most, left)), .depth = max_u64(DEPTH_LEAST, depth), .age = AGE_MOST};
    bool is_endless = left == UINT64_MAX && share >= FULL;
    if (!is_endless) return limits;
    return (struct turn_limits){
        .budget = ENDLESS_MOST, .depth = min_u64(limits.depth, ENDLESS_DEPTH), .age = ENDLESS_MOST};
}

struct turn_limits turn_limits_without_arbiter(unsigned share) {
    struct turn_limits limits = turn_limits_alone(share);
    if (share) limits.budget = min_u64(limits.budget, AWAY_MOST);
    return limits;
}

unsigned turn_limits_fallback(const struct arbitration_page *page) {
    uint32_t percent = __atomic_load_n(&page->fallback, __ATOMIC_RELAXED);
    if (percent >= FULL) return 0;
    return percent ? percent : 1;
}
