/* The turn that is under way: its beginning, charge and end. */
#ifndef VGPU_ARBITER_CURRENT_TURN_H
#define VGPU_ARBITER_CURRENT_TURN_H

#include "schedule_state.h"

/* After a grant, to launch something. */
#define CURRENT_TURN_TIME_TO_BEGIN NS_PER_MS

void current_turn_account(struct schedule *schedule, uint64_t now);
void current_turn_begin(struct schedule *schedule, int client, uint64_t budget, uint64_t end_by, uint64_t now);
void current_turn_note_waiter(struct schedule *schedule, uint64_t now);
void current_turn_end(struct schedule *schedule, uint64_t ended, uint64_t idle_since);
void current_turn_ask_to_yield(struct schedule *schedule, uint64_t now);
void current_turn_note_done(struct schedule *schedule, uint64_t drains_at, uint64_t now);

/* When a turn is over at the latest, whatever its client says. */
uint64_t current_turn_deadline(const struct schedule *schedule);

#endif
