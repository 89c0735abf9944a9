#include "arbiter/tenant/recent_time.h"

#include "common/arithmetic.h"

#define WINDOW (1000 * NS_PER_MS)

enum { FULL = 100 };

void recent_time_age(struct recent_time *recent, uint64_t now) {
    uint64_t passed = min_u64(saturating_sub(now, recent->at), WINDOW);
    recent->ns -= recent->ns * passed / WINDOW;
    recent->at = max_u64(recent->at, now);
}

void recent_time_add(struct recent_time *recent, uint64_t ns) {
    recent->ns = min_u64(recent->ns + min_u64(ns, WINDOW), WINDOW);
}

static uint64_t part_of(uint32_t guarantee, unsigned percent) { return WINDOW / FULL * guarantee / FULL * percent; }

bool recent_time_is_below(const struct recent_time *recent, uint32_t guarantee, unsigned percent) {
    return recent->ns < part_of(guarantee, percent);
}

bool recent_time_is_above(const struct recent_time *recent, uint32_t guarantee, unsigned percent) {
    return recent->ns > part_of(guarantee, percent);
}
