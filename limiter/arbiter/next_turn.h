/* Whose turn is next, and whether somebody is due now. */
#ifndef VGPU_ARBITER_NEXT_TURN_H
#define VGPU_ARBITER_NEXT_TURN_H

#include "schedule_state.h"

struct next_turn {
    int tenant;      /* SCHEDULE_NONE: nobody may go now */
    bool is_starved; /* it goes out of the order */
};

struct next_turn next_turn_choose(struct schedule *schedule, uint64_t now);

/* Whether the tenant that has the turn is to give way now to the best of those that wait. */
bool next_turn_is_due(struct schedule *schedule, uint64_t now);

/* Whether its turn needs no end of its own: none of those that wait is of its rank or above, and best effort is not
 * held to a part of the card. */
bool next_turn_is_unbounded(const struct schedule *schedule, int tenant);

/* Whether somebody else who uses the card is hasty: then no more than a moment's work is to be in flight. */
bool next_turn_has_latency_sensitive_rival(const struct schedule *schedule, int tenant, uint64_t now);

/* Whether the one would be asked to make way for the other at once. */
bool next_turn_would_preempt(const struct schedule *schedule, int holder, int candidate);

#endif
