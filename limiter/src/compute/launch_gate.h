/* Where every launch asks whether it may go on. Without a share of the card's time, and with the card to itself, it
 * always may, at the cost of a look at a line or two of memory. With a share, or beside other containers, the process
 * takes turns (turn.h, request.h): in a turn launches pass until what they are expected to take has filled it, or the
 * arbiter wants it back; then the next one waits until the card has done it, what it took is charged, and the turn goes
 * on to whoever may have it. So a program's launches block, at most for what its share and its neighbours make it wait,
 * and what is in flight is bounded.
 *
 * Launches into a stream that captures pass: they run nothing. Copies and memsets pass: they use the copy engines, or
 * little of the card. What lies between two kernels of a turn is in its time.
 */
#ifndef VGPU_COMPUTE_LAUNCH_GATE_H
#define VGPU_COMPUTE_LAUNCH_GATE_H

#include "compute/turn_events.h"
#include "driver/abi.h"

struct gate;

/* A launch that was let through. */
struct launch_pass {
    struct gate *gate; /* NULL: nothing is counted */
    struct launch_slot slot;
};

/* Names a launch of a kernel: the function with its grid and blocks. */
uint64_t launch_gate_kernel_key(const void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y, unsigned block_z);

/* Names a graph that is launched. */
uint64_t launch_gate_graph_key(CUgraphExec graph);

/* Before the launch, into a stream as LEGACY or PER_THREAD name it, and after it. May wait. */
struct launch_pass launch_gate_enter(uint64_t key, CUstream stream);
void launch_gate_leave(const struct launch_pass *pass);

/* Whether any launch has ever had to ask. */
bool launch_gate_is_used(void);
#endif
