#include "arbiter/watermark/watermark.h"

/* In ns. STEP_NS: how often the share is decided. CREDIT_MAX: the most best-effort time that is saved up. DEBT_MAX: the
 * longest time for which best-effort tenants wait after a turn that was too long. REFILL_MAX: the longest time that one
 * refill counts. */
#define STEP_NS    100000000ULL
#define CREDIT_MAX 10000000LL
#define DEBT_MAX   1000000000LL
#define REFILL_MAX 1000000000ULL

enum { FULL = 100, SHARE_MIN = 1, SHARE_INCREMENT = 5 };

struct watermark watermark_new(unsigned high, unsigned low) {
    return (struct watermark){.high = high, .low = low, .share = FULL, .credit_ns = CREDIT_MAX};
}

void watermark_charge(struct watermark *watermark, uint64_t ns, bool is_best_effort) {
    if (!is_best_effort)
        watermark->used[watermark->step] += ns;
    else if (ns < (uint64_t)DEBT_MAX && watermark->credit_ns > -DEBT_MAX)
        watermark->credit_ns -= (int64_t)ns;
}

static unsigned used_percent(const struct watermark *watermark) {
    uint64_t used = 0;
    for (unsigned i = 0; i < WATERMARK_STEPS; i++) used += watermark->used[i];
    return (unsigned)(used / (WATERMARK_STEPS * STEP_NS / FULL));
}

static unsigned next_share(const struct watermark *watermark) {
    unsigned used = used_percent(watermark), share = watermark->share;
    if (used > watermark->high) return share / 2 > SHARE_MIN ? share / 2 : SHARE_MIN;
    if (used < watermark->low) return share + SHARE_INCREMENT < FULL ? share + SHARE_INCREMENT : FULL;
    return share;
}

static void take_step(struct watermark *watermark) {
    watermark->share = next_share(watermark);
    watermark->step = (watermark->step + 1) % WATERMARK_STEPS;
    watermark->used[watermark->step] = 0;
    watermark->next_step_at += STEP_NS;
}

static void refill(struct watermark *watermark, uint64_t now) {
    uint64_t passed = now > watermark->refilled_at ? now - watermark->refilled_at : 0;
    if (passed > REFILL_MAX) passed = REFILL_MAX;
    watermark->credit_ns += (int64_t)(passed * watermark->share / FULL);
    if (watermark->credit_ns > CREDIT_MAX) watermark->credit_ns = CREDIT_MAX;
    watermark->refilled_at = now;
}

/* After a gap of more than a second, the use in it is unknown: the ring is cleared, and the steps of the gap are
 * skipped. */
void watermark_run(struct watermark *watermark, uint64_t now) {
    refill(watermark, now);
    if (now > watermark->next_step_at + WATERMARK_STEPS * STEP_NS) {
        for (unsigned i = 0; i < WATERMARK_STEPS; i++) watermark->used[i] = 0;
        watermark->next_step_at = now + STEP_NS;
    }
    while (now >= watermark->next_step_at) take_step(watermark);
}

bool watermark_is_tight(const struct watermark *watermark) { return watermark->share < FULL; }

bool watermark_allows_best_effort(const struct watermark *watermark) {
    return !watermark_is_tight(watermark) || watermark->credit_ns > 0;
}
