/* The container's turn on a card: its processes share one token bucket (region/token_bucket.h), and one of them at a
 * time takes from it. Here it is waited for, extended, and charged. */
#ifndef VGPU_COMPUTE_LINK_CONTAINER_TURN_H
#define VGPU_COMPUTE_LINK_CONTAINER_TURN_H

#include "compute/link/request_state.h"

/* Returns 0 if this process has the container's turn, or LOCK_REGION cannot be taken; otherwise the ns to wait before
 * the next attempt. Takes LOCK_CONTAINER and LOCK_REGION. */
uint64_t container_turn_take(struct turn_request *request, enum contention contention);

/* How many turns of the container have ended, for container_turn_sleep. */
uint32_t container_turn_count(const struct turn_request *request);

/* Sleeps for `ns`, or until a turn ends after `turns_seen` of them; 0.1 s at most. */
void container_turn_sleep(const struct turn_request *request, uint32_t turns_seen, uint64_t ns);

/* Takes the container's turn, whoever holds it, for a turn of the arbiter's that was waited for `waited` ns. Takes
 * LOCK_REGION. */
void container_turn_seize(const struct turn_request *request, uint64_t waited);

/* Whether the tokens suffice for another turn after this one, which is expected to be charged `expected` ns. */
bool container_turn_covers(const struct turn_request *request, uint64_t expected);

/* Writes into the region that the turn is needed until `until`, CLOCK_MONOTONIC in ns. Takes no lock. */
void container_turn_extend(struct turn_request *request, uint64_t until);

/* Writes into the region that a thread waits for the turn's work, which may last until `until`, CLOCK_MONOTONIC in ns;
 * 0: no thread waits. Takes no lock. */
void container_turn_note_awaited(struct turn_request *request, uint64_t until);

/* Charges the token bucket with the `cost` of a turn that was given back, or that goes on, before its work had drained.
 * Takes LOCK_REGION; if that fails, the time is charged with the next turn. */
void container_turn_charge(struct turn_request *request, uint64_t cost);

/* Like container_turn_charge, at the next charge of the thread that owns the request. Takes no lock; any thread may
 * call it. */
void container_turn_charge_later(struct turn_request *request, uint64_t cost);

/* Counts a launch that waited `ns` in the region's statistics. Takes no lock; any thread may call it. */
void container_turn_count_wait(const struct turn_request *request, uint64_t ns);

/* The card's counters in the region; NULL as `activity`. Any thread may call it. */
struct region_activity *container_turn_activity(const struct turn_request *request);

#endif
