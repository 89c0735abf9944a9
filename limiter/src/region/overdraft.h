/* The overdraft of a container on a card: GPU time that launches may use before the container's share pays for it,
 * because a kernel on a card may be waiting for them (ADR 170). It is lent, and grows again with time. What is used is
 * charged to the token bucket all the same, so it is repaid before the next turn; this meter only bounds how much is
 * admitted early.
 *
 * Pure: `now` is CLOCK_MONOTONIC in ns. The caller holds the region's lock. */
#ifndef VGPU_REGION_OVERDRAFT_H
#define VGPU_REGION_OVERDRAFT_H

#include <stdbool.h>

#include "common/arithmetic.h"
#include "common/region_layout.h"

/* The most that can be lent, and what comes back within a second. */
#define OVERDRAFT_MAX (50 * NS_PER_MS)

/* The most that is lent at once. */
#define OVERDRAFT_LOAN_MAX (20 * NS_PER_MS)

/* Lends GPU time for launches that need `need` ns, and maybe for more of them; returns how much, 0 = nothing.
 * `is_urgent`: a full meter suffices for a launch that needs more than that. */
uint64_t overdraft_lend(struct region_card *card, uint64_t need, bool is_urgent, uint64_t now);

/* Takes a loan back: of `lent` ns, `used` were used, which may be more. */
void overdraft_return(struct region_card *card, uint64_t lent, uint64_t used, uint64_t now);

/* Whether the container may overdraw without having a turn: its debt is no larger than the overdraft. */
bool overdraft_is_repaid(const struct region_card *card);

#endif
