#include "common/share_tokens.h"

enum { FULL_SHARE = 100 }; /* percent */

/* Cap of the time since the last refill, 10,000 s. With that of debts, it keeps the arithmetic from overflowing
 * whatever a process has written into the region. */
#define REFILL_TIME_MAX (10000000 * NS_PER_MS)

static int64_t bounded(int64_t tokens) { return min_i64(max_i64(tokens, -SHARE_DEBT_MAX), SHARE_DEBT_MAX); }

int64_t share_tokens_at(int64_t tokens, uint64_t refilled_at, unsigned share, uint64_t now) {
    uint64_t since = refilled_at ? min_u64(saturating_sub(now, refilled_at), REFILL_TIME_MAX) : 0;
    return bounded(tokens) + (int64_t)(since * share / FULL_SHARE);
}

uint64_t share_tokens_time_to_repay(int64_t tokens, unsigned share) {
    return tokens < 0 ? (uint64_t)-bounded(tokens) * FULL_SHARE / share + 1 : 0;
}
