/* Whether launches need turns, which is asked at each of them. */
#ifndef VGPU_COMPUTE_TURN_NEED_H
#define VGPU_COMPUTE_TURN_NEED_H

#include "compute/gate_state.h"

/* Whether launches are to be asked about at all. Follows the limits within half a second of their change, and the
 * arbiter's page at once. */
bool turn_need_is_any(void);

/* Whether launches at the gate need turns now. */
bool turn_need_is_at_gate(struct gate *gate);

/* A context is about to be made on the device. */
void turn_need_note_device(CUdevice device);

#endif
