/* Whether launches need turns. Every launch asks, so the answer is cached: usually it costs one cache line, one read of
 * the processor's tick counter and, beside an arbiter, one load from the arbiter's page. */
#ifndef VGPU_COMPUTE_GATE_TURN_NEED_H
#define VGPU_COMPUTE_GATE_TURN_NEED_H

#include "compute/gate/gate_state.h"

/* Whether a launch of this process may need a turn, on whatever card it is; if false, the launch needs no gate. Follows
 * a change of the limits within half a second, and the arbiter's page at once. Takes no lock while the cached answer
 * is fresh; to refresh it, takes LOCK_CONTAINER, LOCK_REGION (for up to 50 ms) and, if free, LOCK_ARBITER_LINK. */
bool turn_need_is_any(void);

/* Whether launches on the gate's card need turns now: the container has a fixed share of it, or the card is contended.
 * Caches and locks as turn_need_is_any does. */
bool turn_need_is_at_gate(struct gate *gate);

/* Called before a context is created on `device`: the next turn_need_is_any refreshes its answer. */
void turn_need_note_device(CUdevice device);

#endif
