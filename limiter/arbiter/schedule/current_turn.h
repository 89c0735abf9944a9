/* The current turn of a card: its beginning, its charge by the arbiter's clock, and its end. At most one turn is
 * current (schedule_state.h). All times are in ns; points in time are CLOCK_MONOTONIC. */
#ifndef VGPU_ARBITER_SCHEDULE_CURRENT_TURN_H
#define VGPU_ARBITER_SCHEDULE_CURRENT_TURN_H

#include "arbiter/schedule/schedule_state.h"

/* How long a client may take from the grant of a turn to its first launch. */
#define CURRENT_TURN_TIME_TO_BEGIN NS_PER_MS

/* Shortest time between two readings of the holder's region. */
#define CURRENT_TURN_CHECK_MIN (NS_PER_MS / 20)

/* Charges the holder with the time up to now, if there is one, and advances virtual time. Called before anything that a
 * charge depends on changes: holder, waiting clients, weights. */
void current_turn_account(struct schedule *schedule, uint64_t now);

/* Gives the turn to a client and removes it from its queue; no turn is current. `end_by`: when another client is
 * expected to arrive, 0 = none is. The turn counts from the end of the previous one, which may lie in the future. */
void current_turn_begin(struct schedule *schedule, int client, uint64_t budget, uint64_t end_by, uint64_t now);

/* Updates since when a client waits for the end of the turn. Called when the queues have changed. */
void current_turn_note_waiter(struct schedule *schedule, uint64_t now);

/* Ends the turn at `ended`, in the future if the work is still to drain. `idle_since`: when the card became idle; less
 * than `ended` if the turn was revoked because its client launched nothing more. */
void current_turn_end(struct schedule *schedule, uint64_t ended, uint64_t idle_since);

/* Asks the holder to launch nothing more, by `yield_turn` in its page. */
void current_turn_ask_to_yield(struct schedule *schedule, uint64_t now);

/* The holder has sent DONE: its work drains at `drains_at`. `is_awaited`: it will say when it has. */
void current_turn_note_done(struct schedule *schedule, uint64_t drains_at, bool is_awaited, uint64_t now);

/* When the turn ends even if its client says nothing: after it is overdue, as far as the overrun budgets reach.
 * UINT64_MAX while no client waits or the turn is not overdue. */
uint64_t current_turn_deadline(const struct schedule *schedule);

#endif
