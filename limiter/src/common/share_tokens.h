/* The tokens of a fixed share: ns of GPU time, which flow in at the share, and of which a debt is repaid. What the
 * container counts (region/token_bucket.h), and what the arbiter reads of it. Pure: the clock is an argument. */
#ifndef VGPU_COMMON_SHARE_TOKENS_H
#define VGPU_COMMON_SHARE_TOKENS_H

#include "common/arithmetic.h"

/* A debt above 60 s of GPU time is forgiven: nothing that was used within a minute, whatever was lent for it
 * (region/overdraft.h). */
#define SHARE_DEBT_MAX (60000 * (int64_t)NS_PER_MS)

/* The tokens at `now`, of which there were `tokens` at `refilled_at`, 0 = never. `share`: 1 to 99 percent. */
int64_t share_tokens_at(int64_t tokens, uint64_t refilled_at, unsigned share, uint64_t now);

/* The ns until a debt is repaid; 0: there is none. */
uint64_t share_tokens_time_to_repay(int64_t tokens, unsigned share);

#endif
