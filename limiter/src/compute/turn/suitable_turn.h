/* The longest turns of a card that suit a program. A program is late in each of its steps by the turns of its
 * neighbours: the longer the turns, the more its steps differ from each other. Pure. All times are in ns. */
#ifndef VGPU_COMPUTE_TURN_SUITABLE_TURN_H
#define VGPU_COMPUTE_TURN_SUITABLE_TURN_H

#include <stdint.h>

/* The longest turns, the neighbours' ones too, that suit a program; 0 = any. `backlog`: what its host keeps launched
 * ahead of the card (backlog.h); `step`: the GPU time between two waits of its host (host_periods.h); 0 = unknown. */
uint64_t suitable_turn(uint64_t backlog, uint64_t step);

#endif
