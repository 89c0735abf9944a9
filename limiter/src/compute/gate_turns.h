/* A gate's turns: opened, watched and closed. */
#ifndef VGPU_COMPUTE_GATE_TURNS_H
#define VGPU_COMPUTE_GATE_TURNS_H

#include "compute/gate_state.h"

/* One step towards a turn that has room for a launch that the open one has not. The gate's mutex is held, and let go
 * meanwhile. */
void gate_turns_step(struct gate *gate, enum verdict verdict);

#endif
