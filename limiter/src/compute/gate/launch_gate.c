#include "compute/gate/launch_gate.h"

#include "compute/gate/gate_drive.h"
#include "compute/gate/gate_state.h"
#include "compute/gate/turn_need.h"
#include "compute/turn/estimates.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "driver/kernel_loading.h"
#include "loader/libc.h"

uint64_t launch_gate_kernel_key(const void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y, unsigned block_z) {
    unsigned shape[6] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
    return estimates_key(function, shape);
}

uint64_t launch_gate_graph_key(CUgraphExec graph) { return estimates_key(graph, NULL); }

static bool is_capturing(CUstream stream) { return capture_was_seen() && turn_events_is_capturing(stream); }

struct launch_pass launch_gate_enter(uint64_t key, CUstream stream, CUfunction kernel) {
    struct launch_pass pass = {0};
    CUcontext context = NULL;
    struct gate *gate = gate_of_current_context();
    if (!gate || !turn_need_is_at_gate(gate) || is_capturing(stream)) return pass;
    if (joint_pass_try(&gate->joint_pass, &gate->request.link, key)) return pass;
    if (REAL(cuCtxGetCurrent)(&context) != CUDA_SUCCESS || !context) return pass;
    if (kernel) kernel_loading_ensure(kernel);
    LIBC(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, &pass.cancel_state);
    struct queued_launch launch = {.key = key, .context = context, .stream = stream};
    gate_note_used();
    gate_drive_admit(gate, &launch, &pass.slot);
    pass.gate = gate;
    if (pass.slot.reads_sample) gate_drive_read_sample(gate);
    turn_events_before_launch(&pass.slot);
    return pass;
}

void launch_gate_leave(const struct launch_pass *pass) {
    if (!pass->gate) return;
    turn_events_after_launch(&pass->slot);
    gate_drive_note_left_driver(pass->gate, pass->slot.is_sampled);
    LIBC(pthread_setcancelstate)(pass->cancel_state, NULL);
}
