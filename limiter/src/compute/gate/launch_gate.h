/* The gate that every kernel and graph launch passes. A container without a fixed share that has the card to itself
 * launches at once, at the cost of reading one or two cache lines. Otherwise the process takes turns on the card
 * (turn.h, turn_request.h): launches are admitted until the estimates of their GPU time fill the turn's budget, or the
 * arbiter asks the turn back. The next launch then waits until the turn's work has drained and its measured time is
 * charged, and until the process has another turn. So a launch blocks for no longer than its share and the other
 * containers require, and the GPU time in flight is bounded.
 *
 * A launch into a capturing stream passes, because it runs nothing. Copies and memsets pass, because they use the copy
 * engines or little of the card; those between two kernels of a turn are part of the turn's measured time.
 */
#ifndef VGPU_COMPUTE_GATE_LAUNCH_GATE_H
#define VGPU_COMPUTE_GATE_LAUNCH_GATE_H

#include "compute/queue/turn_events.h"
#include "driver/abi.h"

struct gate;

/* An admitted launch. */
struct launch_pass {
    struct gate *gate; /* NULL: the launch needed no turn, and is not measured */
    struct launch_slot slot;
    int cancel_state; /* of the thread, before launch_gate_enter; valid unless `gate` is NULL */
};

/* The estimates key of a kernel launch: the function with its grid (in blocks) and block (in threads) dimensions. */
uint64_t launch_gate_kernel_key(const void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y, unsigned block_z);

/* The estimates key of a graph launch. */
uint64_t launch_gate_graph_key(CUgraphExec graph);

/* Admits a launch into `stream` of the current context, as LEGACY or PER_THREAD (turn_events.h) name the stream. Called
 * right before the driver's launch function. `kernel` (NULL for a graph) is loaded first. Blocks until the launch fits
 * into a turn; never fails. Takes LOCK_GATE and the locks of turn_request.h, and holds none on return. An admitted
 * launch is counted, so the thread cannot be cancelled (pthread_cancel) until launch_gate_leave. */
struct launch_pass launch_gate_enter(uint64_t key, CUstream stream, CUfunction kernel);

/* Ends what launch_gate_enter began. Called by the same thread right after the driver's launch function, even if that
 * has failed. Takes LOCK_GATE. */
void launch_gate_leave(const struct launch_pass *pass);
#endif
