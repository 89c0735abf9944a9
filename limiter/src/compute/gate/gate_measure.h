/* Measures what the turns of a launch gate cost, and teaches the estimates. The caller owns the gate (gate_machine.h).
 */
#ifndef VGPU_COMPUTE_GATE_GATE_MEASURE_H
#define VGPU_COMPUTE_GATE_GATE_MEASURE_H

#include "compute/gate/gate_state.h"

/* How a wait for the drain of the turn's work ended. */
enum drain {
    DRAIN_DONE,
    DRAIN_STAYS,    /* it is overdue, so a loan was taken for the launch that waits, and the turn goes on */
    DRAIN_TIMED_OUT /* neither */
};

/* The host has waited for the card: if the launches before the first loan are over, the ends of the early ones are
 * recorded. At the next launch, what the host does until then would lie before them. */
void gate_measure_end_early_launches(struct gate *gate);

/* Waits until the turn's work has drained, which a launch that needs `need` ns of GPU time waits for: until `until` at
 * most, CLOCK_MONOTONIC in ns; UINT64_MAX = without a bound: then the overdraft is one. Each second of such a wait is
 * charged. */
enum drain gate_measure_await_drain(struct gate *gate, uint64_t need, uint64_t until);

/* Ends the loans of the turn and returns the cost of its work, which has drained; `ends_recorded_at` as for turn_cost.
 */
uint64_t gate_measure_turn(struct gate *gate, uint64_t ends_recorded_at);

/* Learns from the sampled launch of a turn that was held jointly, if it is done. Waits for nothing. */
void gate_measure_learn_beside(struct gate *gate);

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

/* Takes the CUDA events of both turns away, before a context is destroyed: copies them to the heap, because they take
 * too much room for a thread's stack, and clears the originals. The caller passes the copy to
 * gate_measure_destroy_events, without the lock. NULL, and the events are leaked, if memory is out or a launch that
 * stays in the driver may use them. The caller holds LOCK_GATE, and has not released it since the launches left the
 * driver. */
struct turn_events *gate_measure_detach_events(struct gate *gate);

/* Destroys what gate_measure_detach_events returned; NULL does nothing. Asks the driver. */
void gate_measure_destroy_events(struct turn_events *events);

/* Gives the turn back and charges it by its estimates, because the events that would measure it end with their
 * contexts. */
void gate_measure_charge_estimates(struct gate *gate);

#endif
