/* Keeps the card free for clients whose periodic requests are predicted (ADR 19): the turn before an expected arrival
 * ends in time, and the client gets the next turn before it asks (a reservation). Part of the schedule
 * (schedule_state.h). All times are in ns; points in time are CLOCK_MONOTONIC. */
#ifndef VGPU_ARBITER_SCHEDULE_EXPECTED_ARRIVALS_H
#define VGPU_ARBITER_SCHEDULE_EXPECTED_ARRIVALS_H

#include "arbiter/schedule/schedule_state.h"

struct expected_arrival {
    int client;  /* SCHEDULE_NONE: no client is expected */
    uint64_t at; /* 0 if no client is expected */
};

/* An arrival closer than this gets a reservation at once. A turn may end up to ARBITRATION_IDLE_BEFORE_ARRIVAL_MAX_NS
 * before the arrival, and 0.1 ms more, because its client does not know exactly when its work drains. */
#define EXPECTED_ARRIVALS_NEAR (ARBITRATION_IDLE_BEFORE_ARRIVAL_MAX_NS + NS_PER_MS / 10)

/* The earliest expected arrival for which a turn of the tenant `holder` would have to end. No client is expected while
 * the time that may be reserved is used up. */
struct expected_arrival expected_arrivals_next(struct schedule *schedule, int holder, uint64_t now);

/* Whether the arrival is so near that no other turn is to begin before it. */
bool expected_arrivals_is_near(const struct schedule *schedule, const struct expected_arrival *expected_arrival,
                               uint64_t now);

/* When the turn before the arrival has to end; 0 if no client is expected. After each millisecond of reserved time it
 * is 0.4 ms after the arrival. */
uint64_t expected_arrivals_turn_end(struct schedule *schedule, const struct expected_arrival *expected_arrival);

/* Gives the expected client the turn before it asks. The time for which the card then waits is charged to its tenant,
 * as are the handovers that the reservation costs the previous holder. */
void expected_arrivals_reserve(struct schedule *schedule, const struct expected_arrival *expected_arrival,
                               uint64_t budget, uint64_t now);

/* Ends the wait of a reservation: its client has arrived, or (`has_come` is false) has not come in time. Does nothing
 * if the current turn is not reserved. */
void expected_arrivals_conclude(struct schedule *schedule, bool has_come, uint64_t now);

#endif
