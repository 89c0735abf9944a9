/* Opens and closes the turns of a launch gate, and measures what they cost. */
#ifndef VGPU_COMPUTE_GATE_GATE_TURNS_H
#define VGPU_COMPUTE_GATE_GATE_TURNS_H

#include "compute/gate/gate_state.h"

/* One step towards a turn with room for a launch that got `verdict` from turn_judge: waits for the thread that opens or
 * closes the turn, waits until less work is in flight, closes the turn, or opens the next one. May block; the caller
 * asks turn_judge again afterwards. The caller holds LOCK_GATE, which is released while the function waits or calls the
 * driver. */
void gate_turns_step(struct gate *gate, enum verdict verdict);

#endif
