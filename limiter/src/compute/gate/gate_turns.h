/* Turns in which launches go to the card directly, within the turn's budget: how they begin, how they end, and when
 * there is room in them. */
#ifndef VGPU_COMPUTE_GATE_GATE_TURNS_H
#define VGPU_COMPUTE_GATE_GATE_TURNS_H

#include "compute/gate/gate_state.h"

/* Chooses the launch of the next turn that is timed alone. The caller holds LOCK_GATE. */
void gate_turns_draw_sample(struct gate *gate);

/* Begins a turn within `limits`. The caller holds LOCK_GATE. */
void gate_turns_begin(struct gate *gate, struct turn_limits limits);

/* Measures the turn and gives it back, or sets it aside, because a launch that needs `need` ns of GPU time got
 * `verdict`. Waits for its work, and asks the driver. False: the work does not drain, and the turn goes on, with a loan
 * for that launch. The caller owns the gate, and holds no lock. */
bool gate_turns_end(struct gate *gate, enum verdict verdict, uint64_t need);

/* Whether a turn, in which a launch got `verdict`, is held jointly and goes on after it was charged. The caller holds
 * LOCK_GATE. */
bool gate_turns_is_joint_to_go_on(const struct gate *gate, enum verdict verdict);

/* Charges such a turn, and learns from the launch that was timed alone, if that has left the driver (`is_sample_over`).
 * Waits for the turn that was set aside, if there is one. The caller owns the gate, and holds no lock. */
void gate_turns_charge_joint(struct gate *gate, bool is_sample_over);

/* Adds the launches that have passed without the gate's lock (joint_pass.h) to the turn. The caller holds LOCK_GATE, or
 * owns the gate. */
void gate_turns_count_passed(struct gate *gate, uint64_t now);

/* The driver was asked whether the card has passed the probe. The caller holds LOCK_GATE; meanwhile it did not. */
void gate_turns_apply_probe(struct gate *gate, CUevent probe, bool is_passed);

/* In how many ns less work is in flight: 1 ms at most, because the arbiter may ask the turn back meanwhile, and not
 * after the next turn could be given: a DONE that is sent later leaves the card idle. The caller holds LOCK_GATE. */
uint64_t gate_turns_room_in(const struct gate *gate);

#endif
