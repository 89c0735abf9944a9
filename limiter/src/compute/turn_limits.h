/* What a turn may take, by the container's share and by what the arbiter's page says (arbitration.h). Pure. Nothing
 * that stands in a page makes a turn end before its first launch, or wait without a bound. */
#ifndef VGPU_COMPUTE_TURN_LIMITS_H
#define VGPU_COMPUTE_TURN_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arbitration.h"

/* How a card stands between containers. */
enum contention {
    CONTENTION_NONE,         /* nobody else uses it, or nobody says so: no turns are needed */
    CONTENTION_ARBITRATED,   /* the arbiter gives turns */
    CONTENTION_UNARBITRATED, /* others use it, and the arbiter is not there */
};

/* All times in ns; UINT64_MAX: any. */
struct turn_limits {
    uint64_t budget; /* GPU time */
    uint64_t depth;  /* of it, what may be in flight when a launch is added */
    uint64_t age;    /* from its beginning on */
    uint64_t end_by; /* a moment at which it is to end as nearly as kernels allow; 0 = none */
};

/* `page` is NULL before the first connection; afterwards it is the last one's. */
enum contention turn_limits_contention(const struct arbitration_page *page, bool is_connected, uint64_t now);

/* How long it is until the arbiter is away unless the page is written. Never 0. */
uint64_t turn_limits_fresh_for(const struct arbitration_page *page, uint64_t now);

/* A turn at `share` percent, 0 where nothing is limited any more: so short that, with what follows it until it is
 * repaid, it takes 18 ms at most. */
struct turn_limits turn_limits_alone(unsigned share);

/* A turn of the arbiter's, of whose budget there is so much left. What a turn without an end takes is charged every 50
 * ms all the same. */
struct turn_limits turn_limits_arbitrated(unsigned share, uint64_t left, uint64_t depth);

/* A turn beside others that nobody told apart. */
struct turn_limits turn_limits_without_arbiter(unsigned share);

/* The percentage that a container without a share of its own takes while the arbiter is away; 0 for any. */
unsigned turn_limits_fallback(const struct arbitration_page *page);

#endif
