/* Measures what the turns of a launch gate cost, and teaches the estimates. The caller owns the gate (gate_state.h). */
#ifndef VGPU_COMPUTE_GATE_GATE_MEASURE_H
#define VGPU_COMPUTE_GATE_GATE_MEASURE_H

#include "compute/gate/gate_state.h"

/* Waits until the turn's work has drained; false if it has not at `until` (CLOCK_MONOTONIC in ns). */
bool gate_measure_await_drain(const struct gate *gate, uint64_t until);

/* Waits until the turn's work has drained and returns its cost; `ends_recorded_at` as for turn_cost. */
uint64_t gate_measure_turn(struct gate *gate, uint64_t ends_recorded_at);

/* Sets the turn aside while its work still runs: gate_measure_collect measures it later. The next turn uses other
 * events. */
void gate_measure_set_aside(struct gate *gate, uint64_t ends_recorded_at);

/* Whether the work of the turn that was set aside has drained, as far as its end events say. Asks the driver. */
bool gate_measure_is_drained(const struct gate *gate);

/* Charges the turn that was set aside, if there is one, with what it took; its drain is waited for. No wait of a stream
 * is closed. */
void gate_measure_collect(struct gate *gate);

/* Drops the turn that was set aside, if there is one: it is charged with what was expected, at the next charge. Asks
 * neither the driver nor the region; the request may be another thread's. */
void gate_measure_drop(struct gate *gate);

#endif
