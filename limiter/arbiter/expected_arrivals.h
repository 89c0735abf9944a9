/* Clients that come at regular moments find the card free: the turn before ends then, and the card is kept for them. */
#ifndef VGPU_ARBITER_EXPECTED_ARRIVALS_H
#define VGPU_ARBITER_EXPECTED_ARRIVALS_H

#include "schedule_state.h"

struct expected_arrival {
    int client;  /* SCHEDULE_NONE: nobody is expected */
    uint64_t at; /* 0 then */
};

/* A turn that is to end at a moment ends so much before it at most, for its client does not know that exactly. */
#define EXPECTED_ARRIVALS_NEAR (ARBITRATION_KEPT_NS + NS_PER_MS / 10)

/* Who comes first of those for whom that tenant would have to make way. */
struct expected_arrival expected_arrivals_next(struct schedule *schedule, int holder, uint64_t now);

/* Whether that is so soon that nobody else is to begin. */
bool expected_arrivals_is_near(const struct schedule *schedule, const struct expected_arrival *expected_arrival,
                               uint64_t now);

/* When the turn of one who has to make way is to end; 0 = when it likes. */
uint64_t expected_arrivals_turn_end(struct schedule *schedule, const struct expected_arrival *expected_arrival);

/* Gives it the turn before it asks. */
void expected_arrivals_reserve(struct schedule *schedule, const struct expected_arrival *expected_arrival,
                               uint64_t budget, uint64_t now);

/* It came, for whom the card was kept, or did not; if it was. */
void expected_arrivals_conclude(struct schedule *schedule, bool has_come, uint64_t now);

#endif
