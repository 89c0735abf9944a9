/* Which launches the gate admits now: the phase says to what, the turn or the queue says whether the launch fits. The
 * caller holds LOCK_GATE; no function waits or asks the driver. */
#ifndef VGPU_COMPUTE_GATE_GATE_ADMISSION_H
#define VGPU_COMPUTE_GATE_GATE_ADMISSION_H

#include "compute/gate/gate_state.h"

/* A launch has come to the gate. */
void gate_admission_note_arrival(struct gate *gate);

/* Admits a launch, of which key, context and stream are given, and fills in its `slot`; or says why it does not fit. */
enum verdict gate_admission_try(struct gate *gate, struct queued_launch *launch, struct launch_slot *slot);

/* A launch got this verdict, and waits. */
void gate_admission_note_held_back(struct gate *gate, enum verdict verdict);

/* A launch was admitted after a wait of `ns`. */
void gate_admission_note_waited(struct gate *gate, uint64_t ns);

#endif
