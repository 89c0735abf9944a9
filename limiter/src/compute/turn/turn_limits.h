/* The limits of a turn, by the container's share of the card and by the arbiter's page (arbitration.h). Pure. Whatever
 * a page contains, a turn has room for its first launch, and every wait has a bound. */
#ifndef VGPU_COMPUTE_TURN_TURN_LIMITS_H
#define VGPU_COMPUTE_TURN_TURN_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arbitration.h"

/* How containers share a card at the moment. */
enum contention {
    CONTENTION_NONE,         /* no other container is known to use the card: no turn of the arbiter's is needed */
    CONTENTION_ARBITRATED,   /* other containers use the card, and the arbiter gives turns */
    CONTENTION_UNARBITRATED, /* other containers use the card, but there is no heartbeat from the arbiter */
};

/* All times in ns; UINT64_MAX: no limit. */
struct turn_limits {
    uint64_t budget; /* GPU time that the turn may use */
    uint64_t depth;  /* GPU time that may be in flight when another launch is added */
    uint64_t age;    /* time from the beginning of the turn, after which nothing is launched in it */
    uint64_t end_by; /* CLOCK_MONOTONIC; the turn ends as close to this time as its kernels allow; 0 = no such time */
    bool is_joint;   /* other containers run at the same moment, so times between events contain theirs */
};

/* `page` is the page of the last connection to the arbiter, NULL before the first one; `is_connected`: that connection
 * still stands. */
enum contention turn_limits_contention(const struct arbitration_page *page, bool is_connected, uint64_t now);

/* The ns until the heartbeat in the page times out; at least 1 ms. */
uint64_t turn_limits_fresh_for(const struct arbitration_page *page, uint64_t now);

/* A turn on a card that is not contended, at `share` percent of its time; 0 = without a limit. The turn and the pause
 * that repays it take 18 ms together at most. */
struct turn_limits turn_limits_alone(unsigned share);

/* A turn, or the rest of one, that the arbiter gave. `left`: what remains of its budget; `depth`: from its page. A turn
 * without a bound is divided, so that its time is charged every 50 ms. */
struct turn_limits turn_limits_arbitrated(unsigned share, uint64_t left, uint64_t depth);

/* A turn that the process holds jointly with clients of other containers, until it is to be charged; `depth`: from the
 * arbiter's page. */
struct turn_limits turn_limits_joint(uint64_t depth);

/* Of a turn for one launch. */
struct turn_limits turn_limits_one_launch(void);

/* A turn on a contended card without a heartbeat from the arbiter, at `share` percent; 0 = without a limit. */
struct turn_limits turn_limits_without_arbiter(unsigned share);

/* The percentage of the card's time that a container without a fixed share uses while there is no heartbeat, as the
 * arbiter wrote it last; 0 = no limit. */
unsigned turn_limits_fallback(const struct arbitration_page *page);

#endif
