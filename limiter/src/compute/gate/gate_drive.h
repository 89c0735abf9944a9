/* Drives a launch gate: takes its lock, asks gate_machine.h what comes next, and does it. This is the only file that
 * takes and releases LOCK_GATE, and that writes the phase. Every function takes the lock itself, so the caller holds
 * none that ranks below it. */
#ifndef VGPU_COMPUTE_GATE_GATE_DRIVE_H
#define VGPU_COMPUTE_GATE_GATE_DRIVE_H

#include "compute/gate/gate_state.h"

/* Admits a launch, of which key, context and stream are given, and fills in its `slot`. Blocks until it fits into a
 * turn or into the queue; never fails. Takes the locks of turn_request.h. */
void gate_drive_admit(struct gate *gate, struct queued_launch *launch, struct launch_slot *slot);

/* Notes that an admitted launch has left the driver. `is_sampled`: this launch is timed alone. */
void gate_drive_note_left_driver(struct gate *gate, bool is_sampled);

/* Learns from the sample that slot->reads_sample announced, if the card has passed it. */
void gate_drive_read_sample(struct gate *gate);

/* The calling thread is about to make the card copy: time in which the card was idle before that is noted. */
void gate_drive_note_copy(struct gate *gate);

/* The calling thread is about to wait for the card, at `since` (CLOCK_MONOTONIC in ns); whether that ends a period, for
 * gate_drive_end_wait. The turn of what is queued is asked for, and a host-bound program's turn is given back. */
bool gate_drive_begin_wait(struct gate *gate, uint64_t since);

/* The wait that began at `since` is over: the card was busy until now. */
void gate_drive_end_wait(struct gate *gate, uint64_t since, bool ends_period);

/* If launches are queued: opens them, in a turn if there is one within a second, and waits until their work should have
 * drained, for 0.1 s at most. */
void gate_drive_drain(struct gate *gate);

/* `stream` is about to be destroyed: records the ends of its launches in the open turn. Waits for one second at most.
 */
void gate_drive_end_stream(struct gate *gate, CUstream stream);

/* Contexts of the card are about to be destroyed: ends its turn, charges it by its estimates, and destroys its CUDA
 * events. Waits for a turn for one second at most, for a thread that closes the turn likewise, and 0.1 s for launches
 * in the driver. */
void gate_drive_end_contexts(struct gate *gate);

/* Returns when the thread that held LOCK_GATE, if any, has released it. */
void gate_drive_await_holder(struct gate *gate);

#endif
